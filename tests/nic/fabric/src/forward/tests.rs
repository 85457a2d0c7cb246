// SPDX-License-Identifier: GPL-2.0
//! Where frames go.

use super::*;
use crate::view::Mac;
use proptest::prelude::*;

const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];
const ALL: Mac = [0xff; 6];

fn switch(ports: usize) -> Forwarding {
    let mut forwarding = Forwarding::default();
    (0..ports).for_each(|n| assert_eq!(forwarding.add_port(), n));
    forwarding
}

fn frame(to: Mac, from: Mac, tag: Option<u16>) -> Frame {
    let mut bytes = [to, from].concat();
    if let Some(tag) = tag {
        let [high, low] = tag.to_be_bytes();
        bytes.extend([0x81, 0, high, low]);
    }
    bytes.extend([0x88, 0xb5]);
    bytes.resize(60, 0);
    bytes.into()
}

fn ports(forwarding: &mut Forwarding, ingress: PortId, frame: &Frame) -> Vec<PortId> {
    let outs = forwarding.forward(Duration::ZERO, ingress, frame);
    outs.into_iter().map(|(port, _)| port).collect()
}

#[test]
fn everywhere_but_back() {
    let mut f = switch(3);
    assert_eq!(ports(&mut f, 1, &frame(A, B, None)), [0, 2]);
    assert_eq!(ports(&mut f, 1, &frame(ALL, B, Some(7))), [0, 2]);
    assert_eq!(ports(&mut f, 7, &frame(A, B, None)), [0; 0], "no such port");
}

#[test]
fn stations_are_learned() {
    let mut f = switch(3);
    f.learn(true);
    assert_eq!(
        ports(&mut f, 0, &frame(B, A, None)),
        [1, 2],
        "not heard yet"
    );
    assert_eq!(ports(&mut f, 1, &frame(A, B, None)), [0]);
    assert_eq!(ports(&mut f, 0, &frame(B, A, None)), [1]);
    assert_eq!(
        ports(&mut f, 0, &frame(B, A, Some(5))),
        [1, 2],
        "another VLAN"
    );
    assert_eq!(
        ports(&mut f, 1, &frame(B, A, None)),
        [0; 0],
        "both behind one port"
    );
    f.link_changed(Duration::ZERO, 1, false);
    assert_eq!(ports(&mut f, 0, &frame(B, A, None)), [1, 2]);
    let expected = Counts {
        known: 2,
        unknown: 3,
        returned: 1,
        ..Counts::default()
    };
    assert_eq!(f.counts, expected);
    f.learn(false);
    assert_eq!(ports(&mut f, 1, &frame(A, B, None)), [0, 2]);
}

#[test]
fn vlans_keep_ports_apart() {
    let mut f = switch(4);
    let access = |vlan| Vlans::Only {
        untagged: Some(vlan),
        tagged: [].into(),
    };
    f.set_vlans(0, access(5));
    f.set_vlans(1, access(5));
    f.set_vlans(2, access(6));
    let outs = f.forward(Duration::ZERO, 0, &frame(ALL, A, None));
    assert_eq!(
        outs,
        [
            (1, frame(ALL, A, None)),
            (3, {
                let mut bytes = frame(ALL, A, None).to_vec();
                bytes.splice(12..12, [0x81, 0, 0, 5]);
                bytes.into()
            })
        ]
    );
    assert_eq!(ports(&mut f, 3, &frame(ALL, B, Some(6))), [2]);
    assert_eq!(ports(&mut f, 0, &frame(ALL, A, Some(6))), [0; 0]);
    assert_eq!(f.counts.filtered, 1);
}

#[test]
fn groups_go_to_who_joined() {
    use crate::snoop::message::tests::igmp_frame;
    let mut f = switch(3);
    let config = crate::snoop::Config {
        querier: false,
        ..Default::default()
    };
    let report: Frame = igmp_frame(vec![0x16, 0, 0, 0, 239, 1, 2, 3]).into();
    let mut group = Vec::new();
    etherparse::PacketBuilder::ethernet2(A, [1, 0, 0x5e, 1, 2, 3])
        .ipv4([10, 0, 0, 1], [239, 1, 2, 3], 64)
        .udp(1, 4791)
        .write(&mut group, &[0; 32])
        .unwrap();
    let group: Frame = group.into();
    assert_eq!(
        ports(&mut f, 2, &report),
        [0, 1],
        "flooded without snooping"
    );
    f.snoop(Some(config), 0, Duration::ZERO);
    assert_eq!(ports(&mut f, 0, &group), [0; 0]);
    assert_eq!(ports(&mut f, 2, &report), [0; 0], "no router");
    assert_eq!(ports(&mut f, 0, &group), [2]);
    f.snoop(None, 0, Duration::ZERO);
    assert_eq!(ports(&mut f, 0, &group), [1, 2]);
}

#[test]
fn a_restart_forgets() {
    let mut f = switch(3);
    f.learn(true);
    f.stations_mut().unwrap().aging = Duration::from_secs(7);
    ports(&mut f, 1, &frame(B, A, None));
    assert_eq!(ports(&mut f, 0, &frame(A, B, None)), [1]);
    f.restart(Duration::ZERO);
    assert_eq!(f.counts, Counts::default());
    assert_eq!(ports(&mut f, 0, &frame(A, B, None)), [1, 2]);
    assert_eq!(f.stations().unwrap().aging, Duration::from_secs(7));
}

#[test]
fn the_switchs_own_frames_have_each_ports_form() {
    let mut f = switch(2);
    f.set_vlans(
        1,
        Vlans::Only {
            untagged: None,
            tagged: [5].into(),
        },
    );
    f.snoop(Some(Default::default()), 0, Duration::ZERO);
    let to: Vec<PortId> = f
        .tick(Duration::ZERO)
        .into_iter()
        .map(|out| out.0)
        .collect();
    assert_eq!(to, [0, 0], "two queries in VLAN 0");
    // A frame of a group makes VLAN 5 known.
    let mut group = frame([1, 0, 0x5e, 1, 2, 3], A, Some(5)).to_vec();
    group.truncate(16);
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [239, 1, 2, 3], 64)
        .udp(1, 2)
        .write(&mut packet, &[0; 20])
        .unwrap();
    group.extend([8, 0]);
    group.extend(packet);
    f.forward(Duration::ZERO, 0, &group.into());
    let outs = f.tick(Duration::ZERO);
    assert_eq!(outs.len(), 4);
    assert!(outs
        .iter()
        .all(|(_, frame)| frame[12..16] == [0x81, 0, 0, 5]));
}

proptest! {
    /// Nothing returns to where it came from, nothing goes anywhere twice, whatever is sent.
    #[test]
    fn no_port_gets_a_frame_twice(
        frames in prop::collection::vec((0usize..5, prop::collection::vec(any::<u8>(), 14..80)), 1..60)
    ) {
        let mut f = switch(5);
        f.learn(true);
        f.snoop(Some(Default::default()), 0, Duration::ZERO);
        for (ingress, bytes) in frames {
            let mut to = ports(&mut f, ingress, &bytes.into());
            prop_assert!(!to.contains(&ingress));
            let len = to.len();
            to.dedup();
            prop_assert_eq!(to.len(), len);
            f.tick(Duration::from_secs(1));
        }
    }
}
