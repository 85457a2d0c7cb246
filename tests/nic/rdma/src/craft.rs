// SPDX-License-Identifier: GPL-2.0
//! Datagrams built for a test: the control command `datagram` says which, the answer is the frame.
//! With it a test sends what no guest would, such as a tag of a VLAN that nobody has.

use std::fmt::Write as _;

use crate::args::{number, number_or, text};
use crate::ip::Ip;
use crate::packet::{build, Datagram, Path, MULTICAST_QP, VLAN_ID};
use serde_json::{json, Value};
use std::net::{IpAddr, Ipv6Addr};

/// Source unless one is given: an address that no card has.
const SOURCE_MAC: [u8; 6] = [0x02, 0xe8, 0x10, 0xff, 0xff, 0xfe];
const SOURCE_IPV4: [u8; 4] = [10, 99, 0, 250];
const SOURCE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 0xfa);
/// Q_Key unless one is given: that of the connection manager, which the test programs use as well.
const QKEY: u32 = 0x0123_4567;
const SOURCE_PORT: u16 = 0xC000;
const LARGEST: u64 = 4096;

/// Builds the frame that `args` describe and returns it in hexadecimal.
pub(crate) fn control(args: &Value) -> Result<Value, String> {
    let destination = address(text(args, "to").ok_or("to is missing")?)?;
    let source = match text(args, "from") {
        Some(text) => address(text)?,
        None => match destination {
            Ip::V4(_) => Ip::V4(SOURCE_IPV4.into()),
            Ip::V6(_) => Ip::V6(SOURCE_IPV6),
        },
    };
    let multicast = destination.is_multicast();
    let destination_mac = match text(args, "mac") {
        Some(text) => mac(text)?,
        None if multicast => group_mac(destination),
        None => return Err("mac is missing: the address is no group's".to_owned()),
    };
    let destination_qp = number_or(args, "qpn", MULTICAST_QP)?;
    if destination_qp == MULTICAST_QP && !multicast {
        return Err("qpn is missing: the address is no group's".to_owned());
    }
    let payload = payload(args)?;
    let path = Path {
        destination_mac,
        source_mac: text(args, "source_mac").map_or(Ok(SOURCE_MAC), mac)?,
        tag: tag(args)?,
        source,
        destination,
        traffic_class: number_or(args, "tclass", 0)?,
        hop_limit: number_or(args, "ttl", 64)?,
        flow_label: 0,
        source_port: SOURCE_PORT,
    };
    let datagram = Datagram {
        solicited: crate::args::flag(args, "solicited"),
        pkey: number_or(args, "pkey", 0xFFFF)?,
        destination_qp,
        psn: number_or(args, "psn", 0)?,
        qkey: number_or(args, "qkey", QKEY)?,
        source_qp: number_or(args, "source_qp", 1)?,
        immediate: match number(args, "immediate")? {
            None => None,
            Some(_) => Some(number_or(args, "immediate", 0)?),
        },
        payload: &payload,
    };
    let frame = build(&path, &datagram).ok_or("from and to are of different families")?;
    let mut hex = String::with_capacity(2 * frame.len());
    for byte in &frame {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(json!({"frame": hex}))
}

fn address(text: &str) -> Result<Ip, String> {
    match text.parse() {
        Ok(IpAddr::V4(a)) => Ok(Ip::V4(a)),
        Ok(IpAddr::V6(a)) => Ok(Ip::V6(a)),
        Err(e) => Err(format!("{text}: {e}")),
    }
}

fn mac(text: &str) -> Result<[u8; 6], String> {
    let octets: Result<Vec<u8>, _> = text
        .split(':')
        .map(|octet| u8::from_str_radix(octet, 16))
        .collect();
    octets
        .ok()
        .and_then(|octets| octets.try_into().ok())
        .ok_or_else(|| format!("{text}: no MAC address"))
}

/// The address that Ethernet has for a group: RFC 1112, RFC 2464.
fn group_mac(ip: Ip) -> [u8; 6] {
    match ip {
        Ip::V4(a) => {
            let [_, b, c, d] = a.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        Ip::V6(a) => {
            let [.., w, x, y, z] = a.octets();
            [0x33, 0x33, w, x, y, z]
        }
    }
}

/// The tag of `vlan` and `priority`, if either is given.
fn tag(args: &Value) -> Result<Option<u16>, String> {
    let (vlan, priority) = (number(args, "vlan")?, number(args, "priority")?);
    if vlan.is_none() && priority.is_none() {
        return Ok(None);
    }
    let vlan = number_or(args, "vlan", 0u16)?;
    let priority = number_or(args, "priority", 0u16)?;
    if vlan > VLAN_ID || priority > 7 {
        return Err("vlan goes to 4095 and priority to 7".to_owned());
    }
    Ok(Some(priority << 13 | vlan))
}

/// The bytes of `payload`, or `size` bytes that count up.
fn payload(args: &Value) -> Result<Vec<u8>, String> {
    if let Some(hex) = text(args, "payload") {
        let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
        let digits = digits
            .filter(|d| d.len() % 2 == 0)
            .ok_or("payload is no hexadecimal text")?;
        return Ok(digits
            .chunks(2)
            .map(|pair| crate::bits::low8(pair.iter().fold(0, |n, d| n << 4 | u64::from(*d))))
            .collect());
    }
    let size = number_or(args, "size", 64u64)?;
    if size > LARGEST {
        return Err(format!("size goes to {LARGEST}"));
    }
    Ok((0..size).map(crate::bits::low8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{icrc_valid, Envelope};

    fn frame(args: Value) -> Vec<u8> {
        let answer = control(&args).unwrap_or_default();
        let hex = answer["frame"].as_str().unwrap_or_default();
        (0..hex.len() / 2)
            .filter_map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).ok())
            .collect()
    }

    #[test]
    fn a_group_needs_its_address_only() {
        let bytes =
            frame(json!({"to": "239.129.2.3", "vlan": 5, "priority": 3, "payload": "0aff"}));
        assert_eq!(bytes[..6], [1, 0, 0x5e, 1, 2, 3]);
        assert_eq!(bytes[12..16], [0x81, 0, 0x60, 5]);
        let Some(envelope) = Envelope::parse(&bytes) else {
            panic!("no packet")
        };
        assert!(icrc_valid(&envelope));
        let Ok(datagram) = Datagram::parse(&envelope) else {
            panic!("no datagram")
        };
        assert_eq!(datagram.destination_qp, MULTICAST_QP);
        assert_eq!(datagram.payload, [0x0a, 0xff]);
        let six = frame(json!({"to": "ff0e::1:203", "size": 0}));
        assert_eq!(six[..6], [0x33, 0x33, 0, 1, 2, 3]);
    }

    #[test]
    fn nonsense_is_refused() {
        for args in [
            json!({}),
            json!({"to": "10.0.0.1"}),
            json!({"to": "10.0.0.1", "mac": "2:0:0:0:0:1"}),
            json!({"to": "10.0.0.1", "mac": "2:0:0:0:1", "qpn": 5}),
            json!({"to": "239.0.0.1", "from": "::1"}),
            json!({"to": "239.0.0.1", "vlan": 4096}),
            json!({"to": "239.0.0.1", "payload": "abc"}),
            json!({"to": "239.0.0.1", "size": 5000}),
        ] {
            assert!(control(&args).is_err(), "{args}");
        }
        assert!(control(&json!({"to": "10.0.0.1", "mac": "2:0:0:0:0:1", "qpn": 5})).is_ok());
    }
}
