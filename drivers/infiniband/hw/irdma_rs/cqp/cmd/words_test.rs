// SPDX-License-Identifier: GPL-2.0

//! Every control WQE against the one that C computes with the macros of the kernel's own headers,
//! for random arguments and those at the edges of their fields.

use super::{
    super::{
        Command,
        Op, //
    },
    *,
};
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use kernel::prelude::*;
use rdma::testing::{
    random::Random,
    words::{
        self,
        op,
        page_size,
        qp_state,
        AhArgs,
        CqArgs,
        GroupArgs,
        NodeArgs,
        QpArgs,
        SdArgs,
        StagArgs, //
    }, //
};

/// Random arguments tried for each operation.
const ROUNDS: u32 = 300;

/// Compares the entry of `command` with `expected`, which is told the valid bit.
fn same<C: Command>(command: &C, expected: impl Fn(bool) -> [u64; words::CQP_WORDS]) -> Result {
    let wqe = command.wqe()?;

    for valid in [false, true] {
        let (ours, c) = (wqe.finish(C::OP, valid), expected(valid));
        if ours != c {
            pr_err!("irdma_rs: {}: {ours:#x?} here, {c:#x?} in C\n", C::OP);
            return Err(EINVAL);
        }
    }
    Ok(())
}

fn qp(random: &mut Random) -> (QpRef, QpArgs) {
    let ours = QpRef {
        id: random.bits32(24),
        kind: if random.flip() {
            QpType::Ud
        } else {
            QpType::Rc
        },
        context: random.bits(64),
        shadow: random.bits(64),
        virtual_rings: random.flip(),
    };
    let c = QpArgs {
        id: ours.id,
        ud: ours.kind == QpType::Ud,
        context: ours.context,
        shadow: ours.shadow,
        virtual_rings: ours.virtual_rings,
        next: qp_state::IDLE,
        ord_valid: false,
        cq_num_valid: false,
        arp_index_valid: false,
    };
    (ours, c)
}

fn cq(random: &mut Random) -> (CreateCq, CqArgs) {
    let paged = random.flip();
    let (address, pbl) = (random.bits(64), random.bits32(28));
    let ours = CreateCq {
        id: random.bits32(19),
        ceq: random.bits32(10),
        entries: random.bits32(21),
        ring: if paged {
            CqRing::Paged(pbl)
        } else {
            CqRing::Contiguous(address)
        },
        shadow: random.bits(64),
        shadow_read_threshold: random.bits32(18),
        mask_events: random.flip(),
        vsi: random.bits16(16),
    };
    let c = CqArgs {
        id: ours.id,
        ceq: ours.ceq,
        entries: ours.entries,
        paged,
        ring: address,
        pbl,
        shadow: ours.shadow,
        threshold: ours.shadow_read_threshold,
        mask_events: ours.mask_events,
        vsi: ours.vsi,
    };
    (ours, c)
}

fn reg_mr(random: &mut Random) -> (RegMr, StagArgs) {
    let (page_size, c_page_size) = match random.below(3) {
        0 => (HostPageSize::Size4K, page_size::SIZE_4K),
        1 => (HostPageSize::Size2M, page_size::SIZE_2M),
        _ => (HostPageSize::Size1G, page_size::SIZE_1G),
    };
    let (address, pbl) = (random.bits(64), random.bits32(28));
    let (pages, levels) = match random.below(3) {
        0 => (MrPages::Contiguous(address), 0),
        1 => (MrPages::Level1(pbl), 1),
        _ => (MrPages::Level2(pbl), 3),
    };
    let rights = random.bits8(4);
    let ours = RegMr {
        stag_index: random.bits32(24),
        key: random.bits8(8),
        pd: random.bits32(18),
        access: Access::from(rights),
        va_or_offset: random.bits(64),
        va_based: random.flip(),
        length: random.bits(46),
        page_size,
        pages,
    };
    let c = StagArgs {
        index: ours.stag_index,
        key: ours.key,
        pd: ours.pd,
        rights,
        va_or_offset: ours.va_or_offset,
        va_based: ours.va_based,
        length: ours.length,
        page_size: c_page_size,
        levels,
        address,
        pbl,
    };
    (ours, c)
}

fn sd(random: &mut Random) -> (SdEntry, SdArgs) {
    let index = random.bits32(15);
    let address = random.bits(64) & !0xfff;
    let (ours, direct, valid) = match random.below(4) {
        0 => (SdEntry::Direct { index, address }, true, true),
        1 => (SdEntry::Paged { index, address }, false, true),
        2 => {
            let direct = true;
            (SdEntry::Clear { index, direct }, true, false)
        }
        _ => {
            let direct = false;
            (SdEntry::Clear { index, direct }, false, false)
        }
    };
    let c = SdArgs {
        index,
        direct,
        valid,
        address,
    };
    (ours, c)
}

fn v4(random: &mut Random) -> Ipv4Addr {
    Ipv4Addr::from(random.octets::<4>())
}

fn v6(random: &mut Random) -> Ipv6Addr {
    Ipv6Addr::from(random.octets::<16>())
}

fn ah(random: &mut Random) -> (AddressVector, AhArgs) {
    let (pair, source, destination): (_, IpAddr, IpAddr) = if random.flip() {
        let (source, destination) = (v4(random), v4(random));
        let pair = IpPair::V4 {
            source,
            destination,
        };
        (pair, source.into(), destination.into())
    } else {
        let (source, destination) = (v6(random), v6(random));
        let pair = IpPair::V6 {
            source,
            destination,
        };
        (pair, source.into(), destination.into())
    };
    let ours = AddressVector {
        index: random.bits32(24),
        pd: random.bits32(24),
        source_mac: random.octets(),
        arp_index: random.bits16(16),
        ip: pair,
        traffic_class: random.bits8(8),
        hop_limit: random.bits8(8),
        flow_label: random.bits32(20),
        vlan: random.flip().then(|| random.bits16(16)),
        loopback: random.flip(),
    };
    let (ipv4, destination) = words::ip(destination);
    let (_, source) = words::ip(source);
    let c = AhArgs {
        index: ours.index,
        pd: ours.pd,
        mac: ours.source_mac,
        arp_index: ours.arp_index,
        ipv4,
        source,
        destination,
        traffic_class: ours.traffic_class,
        hop_limit: ours.hop_limit,
        flow_label: ours.flow_label,
        insert_vlan: ours.vlan.is_some(),
        vlan: ours.vlan.unwrap_or(0),
        loopback: ours.loopback,
    };
    (ours, c)
}

fn group(random: &mut Random) -> (McastGroup, GroupArgs) {
    let ip: IpAddr = if random.flip() {
        v4(random).into()
    } else {
        v6(random).into()
    };
    let ours = McastGroup {
        index: random.bits16(12),
        ip,
        mac: random.octets(),
        vlan: random.flip().then(|| random.bits16(12)),
        function: random.bits8(6),
        qs_handle: random.bits16(10),
        context: random.bits(64),
    };
    let (ipv4, ip) = words::ip(ip);
    let c = GroupArgs {
        index: ours.index,
        ipv4,
        ip,
        mac: ours.mac,
        vlan_valid: ours.vlan.is_some(),
        // What the kernel's driver gives for no VLAN: all bits of the field.
        vlan: ours.vlan.unwrap_or(0xffff),
        function: ours.function,
        qs_handle: ours.qs_handle,
        context: ours.context,
    };
    (ours, c)
}

fn node(random: &mut Random) -> (WorkSchedNode, NodeArgs) {
    let (op, c_op) = match random.below(3) {
        0 => (NodeOp::Add, op::CREATE),
        1 => (NodeOp::Modify, op::MODIFY),
        _ => (NodeOp::Delete, op::DESTROY),
    };
    let node = Node {
        id: random.bits16(14),
        parent: random.bits16(14),
        leaf: random.flip(),
        enabled: random.flip(),
        weight: random.bits8(7),
        traffic_class: random.bits8(3),
        vsi: random.bits16(16),
    };
    let c = NodeArgs {
        op: c_op,
        id: node.id,
        parent: node.parent,
        leaf: node.leaf,
        enabled: node.enabled,
        weight: node.weight,
        traffic_class: node.traffic_class,
        vsi: node.vsi,
    };
    (WorkSchedNode { op, node }, c)
}

#[kernel::macros::kunit_tests(irdma_rs_cqp_words)]
mod suite {
    use super::*;

    #[test]
    fn queue_pairs() -> Result {
        let mut random = Random::new(1);

        for _ in 0..ROUNDS {
            let (ours, c) = qp(&mut random);

            same(&CreateQp { qp: ours }, |valid| {
                words::qp(valid, op::CREATE, &c)
            })?;
            same(&DestroyQp { qp: ours }, |valid| {
                words::qp(valid, op::DESTROY, &c)
            })?;
            for (next, c_next) in [
                (QpState::Idle, qp_state::IDLE),
                (QpState::Rts, qp_state::RTS),
                (QpState::Sqd, qp_state::SQD),
                (QpState::Rtr, qp_state::RTR),
                (QpState::Terminate, qp_state::TERMINATE),
                (QpState::Error, qp_state::ERROR),
            ] {
                let modify = ModifyQp {
                    qp: ours,
                    next,
                    ord_valid: random.flip(),
                    cq_num_valid: random.flip(),
                    arp_index_valid: random.flip(),
                };
                let c = QpArgs {
                    next: c_next,
                    ord_valid: modify.ord_valid,
                    cq_num_valid: modify.cq_num_valid,
                    arp_index_valid: modify.arp_index_valid,
                    ..c
                };
                same(&modify, |valid| words::qp(valid, op::MODIFY, &c))?;
            }
        }
        Ok(())
    }

    #[test]
    fn completion_queues() -> Result {
        let mut random = Random::new(2);

        for _ in 0..ROUNDS {
            let (create, c) = cq(&mut random);
            let destroy = DestroyCq {
                id: create.id,
                ceq: create.ceq,
                entries: create.entries,
                ring: create.ring,
                shadow: create.shadow,
                mask_events: create.mask_events,
            };

            same(&create, |valid| words::cq(valid, op::CREATE, &c))?;
            same(&destroy, |valid| words::cq(valid, op::DESTROY, &c))?;
        }
        Ok(())
    }

    #[test]
    fn event_queues() -> Result {
        let mut random = Random::new(3);

        for _ in 0..ROUNDS {
            let (id, entries) = (random.bits32(10), random.bits32(22));
            let (ring, vsi) = (random.bits(64), random.bits16(16));
            let create = CreateCeq {
                id,
                entries,
                ring,
                vsi,
            };
            same(&create, |valid| {
                words::ceq(valid, op::CREATE, id, entries, ring, vsi)
            })?;
            same(&DestroyCeq { id, entries }, |valid| {
                words::ceq(valid, op::DESTROY, id, entries, ring, vsi)
            })?;

            let entries = random.bits32(19);
            same(&CreateAeq { entries, ring }, |valid| {
                words::aeq(valid, op::CREATE, entries, ring)
            })?;
            same(&DestroyAeq { entries }, |valid| {
                words::aeq(valid, op::DESTROY, entries, ring)
            })?;
        }
        Ok(())
    }

    #[test]
    fn steering_tags() -> Result {
        let mut random = Random::new(4);

        for _ in 0..ROUNDS {
            let (ours, c) = reg_mr(&mut random);
            let dealloc = DeallocStag {
                stag_index: ours.stag_index,
                pd: ours.pd,
            };

            same(&ours, |valid| words::reg_mr(valid, &c))?;
            same(&dealloc, |valid| words::dealloc_stag(valid, c.index, c.pd))?;
        }
        Ok(())
    }

    #[test]
    fn destination_addresses() -> Result {
        let mut random = Random::new(5);

        for _ in 0..ROUNDS {
            let (index, mac) = (random.bits16(12), random.octets());

            same(&AddArp { index, mac }, |valid| {
                words::arp(valid, op::CREATE, index, mac)
            })?;
            same(&DeleteArp { index }, |valid| {
                words::arp(valid, op::DESTROY, index, mac)
            })?;
        }
        Ok(())
    }

    #[test]
    fn host_memory() -> Result {
        let mut random = Random::new(6);

        for _ in 0..ROUNDS {
            let (function, buffer, size) = (random.bits8(6), random.bits(64), random.bits32(32));

            same(&QueryRdmaFeatures { buffer, size }, |valid| {
                words::query_features(valid, buffer, size)
            })?;
            same(&QueryFpmVal { function, buffer }, |valid| {
                words::query_fpm(valid, function, buffer)
            })?;
            let commit = CommitFpmVal {
                function,
                buffer,
                size,
            };
            same(&commit, |valid| {
                words::commit_fpm(valid, function, buffer, size)
            })?;
            same(&ShmcPagesAllocated { function }, |valid| {
                words::pages_allocated(valid, function)
            })?;

            let (ours, c): ([_; 3], [_; 3]) = {
                let sds: [_; 3] = core::array::from_fn(|_| sd(&mut random));
                (sds.map(|(ours, _)| ours), sds.map(|(_, c)| c))
            };
            for count in 1..=UpdatePeSds::MAX {
                let entries = ours.get(..count).ok_or(EINVAL)?;
                let c = c.get(..count).ok_or(EINVAL)?;
                same(&UpdatePeSds { function, entries }, |valid| {
                    words::update_sds(valid, function, c)
                })?;
            }
        }
        Ok(())
    }

    #[test]
    fn flushes() -> Result {
        let mut random = Random::new(7);
        const CODES: [Option<FlushCode>; 12] = [
            None,
            Some(FlushCode::General),
            Some(FlushCode::Prot),
            Some(FlushCode::RemAccess),
            Some(FlushCode::LocQpOp),
            Some(FlushCode::RemOp),
            Some(FlushCode::LocLen),
            Some(FlushCode::Fatal),
            Some(FlushCode::RetryExc),
            Some(FlushCode::MwBind),
            Some(FlushCode::RemInvReq),
            Some(FlushCode::RnrRetryExc),
        ];

        for sq in CODES {
            for rq in CODES {
                let qp = random.bits32(24);
                let value = |code: Option<FlushCode>| code.map_or(0, |code| code.value());

                same(&FlushWqes { qp, sq, rq }, |valid| {
                    words::flush(valid, qp, value(sq), value(rq))
                })?;
            }
        }
        Ok(())
    }

    #[test]
    fn flush_codes() {
        use words::name;

        for (code, name) in [
            (FlushCode::General, name::FLUSH_GENERAL),
            (FlushCode::Prot, name::FLUSH_PROT),
            (FlushCode::RemAccess, name::FLUSH_REM_ACCESS),
            (FlushCode::LocQpOp, name::FLUSH_LOC_QP_OP),
            (FlushCode::RemOp, name::FLUSH_REM_OP),
            (FlushCode::LocLen, name::FLUSH_LOC_LEN),
            (FlushCode::Fatal, name::FLUSH_FATAL),
            (FlushCode::RetryExc, name::FLUSH_RETRY_EXC),
            (FlushCode::MwBind, name::FLUSH_MW_BIND),
            (FlushCode::RemInvReq, name::FLUSH_REM_INV_REQ),
            (FlushCode::RnrRetryExc, name::FLUSH_RNR_RETRY_EXC),
        ] {
            assert_eq!(u32::from(code.value()), words::number(name));
        }
        assert_eq!(
            u32::from(FlushWqes::MAJOR),
            words::number(name::FLUSH_MAJOR)
        );
    }

    #[test]
    fn access_rights() {
        use words::name;

        for (access, name) in [
            (
                Access::from(0).with_local_read(true),
                name::ACCESS_LOCAL_READ,
            ),
            (
                Access::from(0).with_remote_read(true),
                name::ACCESS_REMOTE_READ,
            ),
            (
                Access::from(0).with_local_write(true),
                name::ACCESS_LOCAL_WRITE,
            ),
            (
                Access::from(0).with_remote_write(true),
                name::ACCESS_REMOTE_WRITE,
            ),
        ] {
            assert_eq!(u32::from(access.into_raw()), words::number(name));
        }
    }

    #[test]
    fn suspensions() -> Result {
        let mut random = Random::new(12);

        for _ in 0..ROUNDS {
            let (qp, qs_handle) = (random.bits32(24), random.bits16(16));

            same(&SuspendQp { qp }, |valid| words::suspend(valid, qp))?;
            same(&ResumeQp { qp, qs_handle }, |valid| {
                words::resume(valid, qp, qs_handle)
            })?;
        }
        Ok(())
    }

    #[test]
    fn scheduler_nodes() -> Result {
        let mut random = Random::new(8);

        for _ in 0..ROUNDS {
            let (ours, c) = node(&mut random);
            same(&ours, |valid| words::node(valid, &c))?;
        }
        Ok(())
    }

    #[test]
    fn address_handles() -> Result {
        let mut random = Random::new(9);

        for _ in 0..ROUNDS {
            let (av, c) = ah(&mut random);

            same(&CreateAh { av }, |valid| words::ah(valid, op::CREATE, &c))?;
            same(&DestroyAh { av }, |valid| words::ah(valid, op::DESTROY, &c))?;
        }
        Ok(())
    }

    #[test]
    fn multicast_groups() -> Result {
        let mut random = Random::new(10);

        for _ in 0..ROUNDS {
            let (group, c) = group(&mut random);

            same(&CreateMcastGrp { group }, |valid| {
                words::group(valid, op::CREATE, &c)
            })?;
            same(&ModifyMcastGrp { group }, |valid| {
                words::group(valid, op::MODIFY, &c)
            })?;
            same(&DestroyMcastGrp { group }, |valid| {
                words::group(valid, op::DESTROY, &c)
            })?;
        }
        Ok(())
    }

    #[test]
    fn group_indexes_end_where_the_kernel_says() {
        assert_eq!(
            u32::from(McastGroup::INDEX_LIMIT),
            words::number(words::name::MAX_MCAST_GROUPS)
        );
    }

    /// One more than fits is refused before anything is sent, field by field.
    #[test]
    fn what_does_not_fit_is_refused() {
        let mut random = Random::new(11);
        let (qp, _) = qp(&mut random);
        let (cq, _) = cq(&mut random);
        let (mr, _) = reg_mr(&mut random);
        let (av, _) = ah(&mut random);
        let (group, _) = group(&mut random);
        let (WorkSchedNode { op, node }, _) = node(&mut random);
        let ceq = CreateCeq {
            id: 0,
            entries: 0,
            ring: 0,
            vsi: 0,
        };
        let mac = [0; 6];

        for refused in [
            CreateQp {
                qp: QpRef { id: 1 << 24, ..qp },
            }
            .wqe(),
            CreateCq { id: 1 << 19, ..cq }.wqe(),
            CreateCq { ceq: 1 << 10, ..cq }.wqe(),
            CreateCq {
                entries: 1 << 21,
                ..cq
            }
            .wqe(),
            CreateCq {
                shadow_read_threshold: 1 << 18,
                ..cq
            }
            .wqe(),
            CreateCq {
                ring: CqRing::Paged(1 << 28),
                ..cq
            }
            .wqe(),
            CreateCeq { id: 1 << 10, ..ceq }.wqe(),
            CreateCeq {
                entries: 1 << 22,
                ..ceq
            }
            .wqe(),
            CreateAeq {
                entries: 1 << 19,
                ring: 0,
            }
            .wqe(),
            RegMr {
                stag_index: 1 << 24,
                ..mr
            }
            .wqe(),
            RegMr { pd: 1 << 18, ..mr }.wqe(),
            RegMr {
                length: 1 << 46,
                ..mr
            }
            .wqe(),
            RegMr {
                pages: MrPages::Level1(1 << 28),
                ..mr
            }
            .wqe(),
            RegMr {
                pages: MrPages::Level2(1 << 28),
                ..mr
            }
            .wqe(),
            DeallocStag {
                stag_index: 1 << 24,
                pd: 0,
            }
            .wqe(),
            AddArp {
                index: 1 << 12,
                mac,
            }
            .wqe(),
            ShmcPagesAllocated { function: 1 << 6 }.wqe(),
            UpdatePeSds {
                function: 0,
                entries: &[SdEntry::Clear {
                    index: 1 << 15,
                    direct: true,
                }],
            }
            .wqe(),
            SuspendQp { qp: 1 << 24 }.wqe(),
            ResumeQp {
                qp: 1 << 24,
                qs_handle: 0,
            }
            .wqe(),
            FlushWqes {
                qp: 1 << 24,
                sq: None,
                rq: None,
            }
            .wqe(),
            WorkSchedNode {
                op,
                node: Node {
                    id: 1 << 14,
                    ..node
                },
            }
            .wqe(),
            WorkSchedNode {
                op,
                node: Node {
                    weight: 1 << 7,
                    ..node
                },
            }
            .wqe(),
            WorkSchedNode {
                op,
                node: Node {
                    traffic_class: 8,
                    ..node
                },
            }
            .wqe(),
            CreateAh {
                av: AddressVector {
                    index: 1 << 24,
                    ..av
                },
            }
            .wqe(),
            CreateAh {
                av: AddressVector { pd: 1 << 24, ..av },
            }
            .wqe(),
            CreateAh {
                av: AddressVector {
                    flow_label: 1 << 20,
                    ..av
                },
            }
            .wqe(),
            CreateMcastGrp {
                group: McastGroup {
                    qs_handle: 1 << 10,
                    ..group
                },
            }
            .wqe(),
            CreateMcastGrp {
                group: McastGroup {
                    vlan: Some(1 << 12),
                    ..group
                },
            }
            .wqe(),
            CreateMcastGrp {
                group: McastGroup {
                    function: 1 << 6,
                    ..group
                },
            }
            .wqe(),
        ] {
            assert_eq!(refused.err(), Some(EOVERFLOW));
        }

        let group = McastGroup {
            index: McastGroup::INDEX_LIMIT,
            ..group
        };
        assert_eq!(DestroyMcastGrp { group }.wqe().err(), Some(EINVAL));
        let entries = &[SdEntry::Direct {
            index: 0,
            address: 0x800,
        }];
        let unaligned = UpdatePeSds {
            function: 0,
            entries,
        };
        assert_eq!(unaligned.wqe().err(), Some(EINVAL));
    }

    /// The code of every operation is its own, and leads back to it.
    #[test]
    fn operation_codes_are_one_to_one() {
        use kernel::num::Bounded;

        for code in 0..64u64 {
            let Some(bits) = Bounded::<u64, 6>::try_new(code) else {
                continue;
            };
            if let Ok(op) = Op::try_from(bits) {
                assert_eq!(Bounded::<u64, 6>::from(op).get(), code);
            }
        }
    }
}
