// SPDX-License-Identifier: GPL-2.0

//! The queue pair host context: 256 bytes in which the driver tells the device all about a queue pair.
//!
//! The device reads the whole of it with each command that creates or modifies the queue pair, so it
//! is always written whole, from a [`QpContext`] that says what each field means. Fields that are zero
//! on this path are not declared.

use core::net::IpAddr;

use kernel::{
    bitfield,
    prelude::*, //
};

/// Words in the context.
pub(crate) const CONTEXT_WORDS: usize = 32;

/// The UDP port of RoCEv2.
const ROCE_PORT: u16 = 4791;

/// Source port of a queue pair without a path; see `ROCE_V2` hashing in the kernel's `ib_verbs.h`.
pub(crate) const DEFAULT_SPORT: u16 = 0xc000;

bitfield! {
    /// Word 0.
    struct Flags(u64) {
        /// `PDIDXHI`: PD number, 17:16.
        21:20 pd_hi;
        /// `RQWQESIZE`: a receive WQE has `32 << n` bytes.
        9:8 rq_wqe_size;
        /// `INSERTVLANTAG`
        5:5 insert_vlan;
        /// `IPV4`
        3:3 ipv4;
    }
}

bitfield! {
    /// Word 3.
    struct Sizes(u64) {
        /// `DESTPORTNUM`
        63:48 dest_port;
        /// `SRCPORTNUM`
        47:32 src_port;
        /// `TOS`
        31:24 tos;
        /// `SQSIZE`: the send queue has `4 << n` quanta.
        15:12 sq_size;
        /// `RQSIZE`: the receive queue has `4 << n` quanta.
        11:8 rq_size;
        /// `TTL`
        7:0 ttl;
    }
}

bitfield! {
    /// Two words of an IP address, as in words 4, 5, 23 and 24.
    struct IpPair(u64) {
        /// The more significant word.
        63:32 high;
        /// The less significant word.
        31:0 low;
    }
}

bitfield! {
    /// Word 6.
    struct Path(u64) {
        /// `ARPIDX`
        63:48 arp_idx;
        /// `VLANTAG`
        47:32 vlan_tag;
        /// `SNDMSS`: path MTU in bytes.
        29:16 send_mss;
    }
}

bitfield! {
    /// Word 7.
    struct Keys(u64) {
        /// `PDIDX`: PD number, 15:0.
        63:48 pd_lo;
        /// `PKEY`
        47:32 pkey;
        /// `ACKCREDITS`
        24:20 ack_credits;
        /// `FLOWLABEL`
        19:0 flow_label;
    }
}

bitfield! {
    /// Word 8.
    struct Remote(u64) {
        /// `QKEY`
        63:32 qkey;
        /// `DESTQP`
        23:0 dest_qp;
    }
}

bitfield! {
    /// Word 10.
    struct SendPsn(u64) {
        /// `LSN`
        55:32 lsn;
        /// `PSNNXT`
        23:0 psn_next;
    }
}

bitfield! {
    /// Word 11.
    struct ExpectedPsn(u64) {
        /// `EPSN`
        23:0 psn;
    }
}

bitfield! {
    /// Word 12.
    struct PsnWindow(u64) {
        /// `PSNUNA`
        55:32 psn_una;
        /// `PSNMAX`
        23:0 psn_max;
    }
}

bitfield! {
    /// Word 14.
    struct Congestion(u64) {
        /// `CWNDROCE`
        55:32 cwnd;
    }
}

bitfield! {
    /// Word 16.
    struct Retry(u64) {
        /// `RTOMIN`
        63:57 rto_min;
        /// `RNRNAK_THRESH`
        56:54 rnr_retry;
        /// `REXMIT_THRESH`
        53:48 retry;
    }
}

bitfield! {
    /// Word 17.
    struct Cqs(u64) {
        /// `RXCQNUM`
        56:32 recv_cq;
        /// `TXCQNUM`
        24:0 send_cq;
    }
}

bitfield! {
    /// Word 19.
    struct SourceMac(u64) {
        /// `MACADDRESS`: first octet in the most significant byte.
        63:16 mac;
    }
}

bitfield! {
    /// Word 20.
    struct Rights(u64) {
        /// `PRIVEN`: STag 0, physical addressing, is allowed.
        25:25 privileged;
        /// `FASTREGEN`
        24:24 fast_reg;
        /// `RDOK`: remote read allowed.
        21:21 read_ok;
        /// `WRRDRSPOK`: remote write allowed.
        20:20 write_ok;
        /// `UDPRIVCQENABLE`
        19:19 ud_priv_cq;
        /// `IRDSIZE`: code of the inbound read depth.
        18:16 ird_size;
        /// `ORDSIZE`: outbound read depth.
        7:0 ord_size;
    }
}

bitfield! {
    /// Word 22.
    struct Scheduling(u64) {
        /// `QSHANDLE`
        25:16 qs_handle;
    }
}

bitfield! {
    /// Word 26.
    struct Endpoint(u64) {
        /// `REMENDPOINTIDX`: equals the ARP index.
        16:0 remote_index;
    }
}

/// Congestion window a queue pair starts with.
const CWND: u32 = 0x400;
/// Ack credits a queue pair starts with.
const ACK_CREDITS: u32 = 0x1e;
/// Minimal retransmission timeout.
const RTO_MIN: u32 = 5;
/// The `lsn` that goes with a set send PSN.
const LSN: u32 = 0xffff;

/// The far end of a connected queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathContext {
    /// Local address, of the family of `remote_ip`.
    pub(crate) local_ip: IpAddr,
    pub(crate) remote_ip: IpAddr,
    pub(crate) arp_index: u16,
    pub(crate) vlan: Option<u16>,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) flow_label: u32,
    pub(crate) src_port: u16,
}

/// What the device is to know of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QpContext {
    /// Bus address of the send ring, or its index in the page lists of the device.
    pub(crate) sq_addr: u64,
    /// The same of the receive ring.
    pub(crate) rq_addr: u64,
    /// Size code of the send ring.
    pub(crate) sq_size: u32,
    /// Size code of the receive ring.
    pub(crate) rq_size: u32,
    /// A receive WQE has `32 << n` bytes.
    pub(crate) rq_wqe_shift: u32,
    pub(crate) pd: u32,
    pub(crate) send_cq: u32,
    pub(crate) recv_cq: u32,
    /// Comes back in each completion and event.
    pub(crate) completion_context: u64,
    /// Path MTU in bytes.
    pub(crate) mtu: u16,
    pub(crate) pkey: u16,
    pub(crate) qkey: u32,
    pub(crate) mac: [u8; 6],
    pub(crate) qs_handle: u16,
    /// Privileges of a queue pair of the kernel.
    pub(crate) kernel: bool,
    pub(crate) remote_read: bool,
    pub(crate) remote_write: bool,
    pub(crate) dest_qp: u32,
    pub(crate) send_psn: Option<u32>,
    pub(crate) recv_psn: u32,
    pub(crate) retry: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) path: Option<PathContext>,
}

impl QpContext {
    /// Returns the words of the context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a number does not fit its field.
    pub(crate) fn encode(&self) -> Result<[u64; CONTEXT_WORDS]> {
        self.try_encode().map_err(|_| EINVAL)
    }

    fn try_encode(&self) -> Result<[u64; CONTEXT_WORDS]> {
        let mut words = [0; CONTEXT_WORDS];
        let path = self.path.as_ref();
        let ipv4 = path.is_some_and(|p| p.remote_ip.is_ipv4());
        let vlan = path.and_then(|p| p.vlan);

        let mut set = |word: usize, value: u64| {
            if let Some(place) = words.get_mut(word) {
                *place = value;
            }
        };

        set(
            0,
            Flags::zeroed()
                .try_with_pd_hi(self.pd >> 16)?
                .try_with_rq_wqe_size(self.rq_wqe_shift)?
                .with_insert_vlan(vlan.is_some())
                .with_ipv4(ipv4)
                .into_raw(),
        );
        set(1, self.sq_addr);
        set(2, self.rq_addr);
        set(
            3,
            Sizes::zeroed()
                .with_dest_port(ROCE_PORT)
                .with_src_port(path.map_or(DEFAULT_SPORT, |p| p.src_port))
                .with_tos(path.map_or(0, |p| p.traffic_class))
                .try_with_sq_size(self.sq_size)?
                .try_with_rq_size(self.rq_size)?
                .with_ttl(path.map_or(0, |p| p.hop_limit))
                .into_raw(),
        );
        if let Some(path) = path {
            let (low, high) = ip_words(path.remote_ip);
            set(4, low);
            set(5, high);
            let (low, high) = ip_words(path.local_ip);
            set(23, low);
            set(24, high);
            set(
                26,
                Endpoint::zeroed()
                    .with_remote_index(path.arp_index)
                    .into_raw(),
            );
        }
        set(
            6,
            Path::zeroed()
                .with_arp_idx(path.map_or(0, |p| p.arp_index))
                .with_vlan_tag(vlan.unwrap_or(0))
                .try_with_send_mss(self.mtu)?
                .into_raw(),
        );
        set(
            7,
            Keys::zeroed()
                .try_with_pd_lo(self.pd & 0xffff)?
                .with_pkey(self.pkey)
                .try_with_ack_credits(ACK_CREDITS)?
                .try_with_flow_label(path.map_or(0, |p| p.flow_label))?
                .into_raw(),
        );
        set(
            8,
            Remote::zeroed()
                .with_qkey(self.qkey)
                .try_with_dest_qp(self.dest_qp)?
                .into_raw(),
        );
        if let Some(psn) = self.send_psn {
            set(
                10,
                SendPsn::zeroed()
                    .try_with_lsn(LSN)?
                    .try_with_psn_next(psn)?
                    .into_raw(),
            );
            set(
                12,
                PsnWindow::zeroed()
                    .try_with_psn_una(psn)?
                    .try_with_psn_max(psn)?
                    .into_raw(),
            );
        }
        set(
            11,
            ExpectedPsn::zeroed()
                .try_with_psn(self.recv_psn)?
                .into_raw(),
        );
        set(14, Congestion::zeroed().try_with_cwnd(CWND)?.into_raw());
        set(
            16,
            Retry::zeroed()
                .try_with_rto_min(RTO_MIN)?
                .try_with_rnr_retry(self.rnr_retry)?
                .try_with_retry(self.retry)?
                .into_raw(),
        );
        set(
            17,
            Cqs::zeroed()
                .try_with_recv_cq(self.recv_cq)?
                .try_with_send_cq(self.send_cq)?
                .into_raw(),
        );
        let [a, b, c, d, e, f] = self.mac;
        set(
            19,
            SourceMac::zeroed()
                .try_with_mac(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))?
                .into_raw(),
        );
        set(
            20,
            Rights::zeroed()
                .with_privileged(self.kernel)
                .with_fast_reg(self.kernel)
                .with_ud_priv_cq(self.kernel)
                .with_read_ok(self.remote_read)
                .with_write_ok(self.remote_write)
                .with_const_ird_size::<4>()
                .with_const_ord_size::<255>()
                .into_raw(),
        );
        set(21, self.completion_context);
        set(
            22,
            Scheduling::zeroed()
                .try_with_qs_handle(self.qs_handle)?
                .into_raw(),
        );
        Ok(words)
    }
}

/// Returns an address as two words, the less significant first.
fn ip_words(ip: IpAddr) -> (u64, u64) {
    match ip {
        IpAddr::V4(ip) => (IpPair::zeroed().with_low(ip.to_bits()).into_raw(), 0),
        IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = ip.octets();
            (
                u64::from_be_bytes([i, j, k, l, m, n, o, p]),
                u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            )
        }
    }
}

#[kernel::macros::kunit_tests(irdma_rs_qpctx)]
mod tests {
    use super::*;
    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };

    const UD: QpContext = QpContext {
        sq_addr: 0x1000,
        rq_addr: 0x2000,
        sq_size: 8,
        rq_size: 7,
        rq_wqe_shift: 1,
        pd: 0x2_0005,
        send_cq: 3,
        recv_cq: 4,
        completion_context: 0xdead_beef,
        mtu: 1024,
        pkey: 0xffff,
        qkey: 0x1111_1111,
        mac: [2, 0, 0, 0, 0, 1],
        qs_handle: 9,
        kernel: true,
        remote_read: false,
        remote_write: false,
        dest_qp: 0,
        send_psn: None,
        recv_psn: 0,
        retry: 2,
        rnr_retry: 2,
        path: None,
    };

    #[test]
    fn encodes_a_datagram_queue_pair() -> Result {
        let words = UD.encode()?;

        // Word and value; words not named are zero.
        let expected = [
            (0, 0x0020_0100),
            (1, 0x1000),
            (2, 0x2000),
            (3, 0x12b7_c000_0000_8700),
            (6, 0x0000_0000_0400_0000),
            (7, 0x0005_ffff_01e0_0000),
            (8, 0x1111_1111_0000_0000),
            (14, 0x0000_0400_0000_0000),
            (16, 0x0a82_0000_0000_0000),
            (17, 0x0000_0004_0000_0003),
            (19, 0x0200_0000_0001_0000),
            (20, 0x030c_00ff),
            (21, 0xdead_beef),
            (22, 0x0009_0000),
        ];
        for (i, word) in words.iter().enumerate() {
            let value = expected
                .iter()
                .find(|(w, _)| *w == i)
                .map_or(0, |(_, v)| *v);
            assert_eq!(*word, value);
        }
        Ok(())
    }

    #[test]
    fn encodes_a_path() -> Result {
        let path = PathContext {
            local_ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            remote_ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
            arp_index: 5,
            vlan: Some(100),
            traffic_class: 3,
            hop_limit: 64,
            flow_label: 0x12345,
            src_port: 0xc123,
        };
        let words = QpContext {
            path: Some(path),
            send_psn: Some(0x10),
            ..UD
        }
        .encode()?;

        assert_eq!(words.first().copied(), Some(0x0020_0128));
        assert_eq!(words.get(3).copied(), Some(0x12b7_c123_0300_8740));
        assert_eq!(words.get(4).copied(), Some(0x0a00_0002));
        assert_eq!(words.get(6).copied(), Some(0x0005_0064_0400_0000));
        assert_eq!(words.get(10).copied(), Some(0x0000_ffff_0000_0010));
        assert_eq!(words.get(12).copied(), Some(0x0000_0010_0000_0010));
        assert_eq!(words.get(23).copied(), Some(0x0a00_0001));
        assert_eq!(words.get(26).copied(), Some(5));

        let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 2, 3, 4, 5);
        assert_eq!(
            ip_words(IpAddr::V6(v6)),
            (0x0002_0003_0004_0005, 0x2001_0db8_0000_0001)
        );
        Ok(())
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for bad in [
            QpContext { pd: 1 << 18, ..UD },
            QpContext { sq_size: 16, ..UD },
            QpContext {
                qs_handle: 1024,
                ..UD
            },
            QpContext {
                send_cq: 1 << 25,
                ..UD
            },
        ] {
            assert_eq!(bad.encode(), Err(EINVAL));
        }
    }
}
