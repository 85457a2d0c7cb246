// SPDX-License-Identifier: GPL-2.0

//! The operations of the control queue pair, one type each, grouped by the object they act on.
//!
//! Layouts are those of the hardware contract (control queue pair, sections 7 to 13); the field
//! names are its macro names in lower case. A value that does not fit its field is refused with
//! `EOVERFLOW` before anything is sent.

mod aeq;
mod ah;
mod arp;
mod ceq;
mod cq;
mod flush;
mod hmc;
mod mcast;
mod probe;
mod qp;
mod sched;
mod stag;
mod suspend;
#[cfg(CONFIG_KUNIT = "y")]
mod words_test;

pub(crate) use aeq::{
    CreateAeq,
    DestroyAeq, //
};
pub(crate) use ah::{
    AddressVector,
    CreateAh,
    DestroyAh,
    IpPair, //
};
pub(crate) use arp::{
    AddArp,
    DeleteArp, //
};
pub(crate) use ceq::{
    CreateCeq,
    DestroyCeq, //
};
pub(crate) use cq::{
    CqRing,
    CreateCq,
    DestroyCq, //
};
pub(crate) use flush::{
    FlushCode,
    FlushWqes, //
};
pub(crate) use hmc::{
    SdEntry,
    ShmcPagesAllocated,
    UpdatePeSds, //
};
pub(crate) use mcast::{
    CreateMcastGrp,
    DestroyMcastGrp,
    McastGroup,
    ModifyMcastGrp, //
};
pub(crate) use probe::{
    CommitFpmVal,
    QueryFpmVal,
    QueryRdmaFeatures, //
};
pub(crate) use qp::{
    CreateQp,
    DestroyQp,
    ModifyQp,
    QpRef,
    QpState,
    QpType, //
};
pub(crate) use sched::{
    Node,
    NodeOp,
    WorkSchedNode, //
};
pub(crate) use stag::{
    Access,
    DeallocStag,
    HostPageSize,
    MrPages,
    RegMr, //
};
pub(crate) use suspend::{
    ResumeQp,
    SuspendQp, //
};

use kernel::num::Bounded;

/// Six octets of a MAC address as the device holds them: the first octet is the most significant.
pub(crate) fn mac_word(mac: [u8; 6]) -> Bounded<u64, 48> {
    let [a, b, c, d, e, f] = mac;
    Bounded::<u64, 64>::from(u64::from_be_bytes([a, b, c, d, e, f, 0, 0])).shr::<16, 48>()
}

#[kernel::macros::kunit_tests(irdma_rs_cqp_cmd)]
mod tests {
    use super::{
        super::{
            Command,
            Op, //
        },
        *,
    };
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };
    use kernel::prelude::*;

    const QP: QpRef = QpRef {
        id: 0x45,
        kind: QpType::Ud,
        context: 0x1234_5600,
        shadow: 0x9abc_de00,
        virtual_rings: false,
    };

    /// The worked examples of the contract (queues, section 12), polarity 1.
    #[test]
    fn headers_of_the_contract() -> Result {
        let create = CreateQp { qp: QP }.wqe()?.finish(Op::CreateQp, true);
        assert_eq!(create[3], 0x900c_8000_0000_0045);
        assert_eq!((create[2], create[5]), (0x1234_5600, 0x9abc_de00));

        let av = AddressVector {
            index: 5,
            pd: 0x2_0003,
            source_mac: [2, 0, 0, 0, 0, 1],
            arp_index: 7,
            ip: IpPair::V4 {
                source: Ipv4Addr::new(10, 0, 0, 1),
                destination: Ipv4Addr::new(224, 0, 0, 1),
            },
            traffic_class: 0x20,
            hop_limit: 64,
            flow_label: 0x12345,
            vlan: None,
            loopback: true,
        };
        let ah = CreateAh { av }.wqe()?.finish(Op::CreateAddrHandle, true);
        assert_eq!(ah[3], 0xc800_001c_0000_0005);
        assert_eq!(ah[0], 0x0200_0000_0001_0000);
        assert_eq!(ah[1], 0x0003_0020_0000_0000);
        assert_eq!(ah[2], 0x0007_0040_0021_2345);
        assert_eq!((ah[4], ah[5]), (0xe000_0001, 0));
        assert_eq!((ah[6], ah[7]), (0x0a00_0001, 0));

        let arp = AddArp {
            index: 2,
            mac: [1, 2, 3, 4, 5, 6],
        };
        let arp = arp.wqe()?.finish(Op::ManageArp, true);
        assert_eq!((arp[2], arp[3]), (0x0102_0304_0506, 0x8000_0c0f_0000_0002));

        let group = McastGroup {
            index: 1,
            ip: IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3)),
            mac: [1, 0, 0x5e, 1, 2, 3],
            vlan: None,
            function: 3,
            qs_handle: 0x155,
            context: 0x7000,
        };
        let group = CreateMcastGrp { group }.wqe()?;
        let group = group.finish(Op::CreateMcastGrp, true);
        assert_eq!(group[3], 0x9000_0026_0000_0001);
        assert_eq!((group[0], group[1]), (0x0100_5e01_0203, 3));
        assert_eq!((group[2], group[4]), (0x0fff_0000_0155, 0x7000));
        assert_eq!((group[6], group[7]), (0xef01_0203, 0));
        Ok(())
    }

    #[test]
    fn suspending_and_resuming() -> Result {
        let suspend = SuspendQp { qp: 0x45 }.wqe()?.finish(Op::SuspendQp, true);
        assert_eq!((suspend[2], suspend[3]), (0, 0x8000_0029_0000_0045));
        let resume = ResumeQp {
            qp: 0x45,
            qs_handle: 0x155,
        };
        let resume = resume.wqe()?.finish(Op::ResumeQp, true);
        assert_eq!((resume[2], resume[3]), (0x155, 0x8000_002a_0000_0045));
        Ok(())
    }

    #[test]
    fn segments() -> Result {
        let entries = [
            SdEntry::Direct {
                index: 0,
                address: 0x4000_0000,
            },
            SdEntry::Paged {
                index: 5,
                address: 0x5000,
            },
            SdEntry::Clear {
                index: 7,
                direct: true,
            },
        ];
        let update = UpdatePeSds {
            function: 2,
            entries: &entries,
        };
        let words = update.wqe()?.finish(Op::UpdatePeSds, true);
        assert_eq!((words[0], words[1]), (0x8000_8000, 0x4000_0803));
        assert_eq!((words[4], words[5]), (0x8000_0000_8000_8005, 0x5801));
        assert_eq!((words[6], words[7]), (0x8000_0000_8000_8007, 0x802));
        assert_eq!((words[2], words[3]), (2, 0x8000_001f_0000_0000));
        Ok(())
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let qp = QpRef { id: 1 << 24, ..QP };
        assert_eq!(CreateQp { qp }.wqe().err(), Some(EOVERFLOW));
        let none = UpdatePeSds {
            function: 0,
            entries: &[],
        };
        assert_eq!(none.wqe().err(), Some(EINVAL));
        let arp = DeleteArp { index: 4096 };
        assert_eq!(arp.wqe().err(), Some(EOVERFLOW));
    }
}
