// SPDX-License-Identifier: GPL-2.0

//! Layouts against those of C.

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
        name,
        ArmArgs,
        CqeArgs,
        ExtArgs,
        Name,
        QpcArgs,
        SendArgs, //
    }, //
};

use crate::queues::{
    cqe::{
        Cqe,
        Extension,
        ShadowArm,
        MAJOR_FLUSHED, //
    },
    flush::Status,
    qpctx::{
        PathContext,
        QpContext, //
    },
    wqe::{
        additional_fragments,
        Fragment,
        RqHeader,
        SqHeader,
        SqOpcode,
        UdDest, //
    },
};

/// Random arguments tried for each layout.
const ROUNDS: u32 = 500;

const OPCODES: [(SqOpcode, Name); 12] = [
    (SqOpcode::RdmaWrite, name::SQ_RDMA_WRITE),
    (SqOpcode::RdmaRead, name::SQ_RDMA_READ),
    (SqOpcode::Send, name::SQ_SEND),
    (SqOpcode::SendInv, name::SQ_SEND_INV),
    (SqOpcode::SendSolicited, name::SQ_SEND_SOLICITED),
    (SqOpcode::SendSolicitedInv, name::SQ_SEND_SOLICITED_INV),
    (SqOpcode::BindMw, name::SQ_BIND_MW),
    (SqOpcode::FastRegister, name::SQ_FAST_REGISTER),
    (SqOpcode::LocalInvalidate, name::SQ_LOCAL_INVALIDATE),
    (SqOpcode::RdmaReadLocalInv, name::SQ_RDMA_READ_LOCAL_INV),
    (SqOpcode::Nop, name::SQ_NOP),
    (SqOpcode::RdmaWriteSolicited, name::SQ_RDMA_WRITE_SOLICITED),
];

/// An address, of the family asked for.
fn ip(random: &mut Random, v4: bool) -> IpAddr {
    if v4 {
        IpAddr::V4(Ipv4Addr::from(random.octets::<4>()))
    } else {
        IpAddr::V6(Ipv6Addr::from(random.octets::<16>()))
    }
}

fn path(random: &mut Random) -> PathContext {
    let v4 = random.flip();

    PathContext {
        local_ip: ip(random, v4),
        remote_ip: ip(random, v4),
        arp_index: random.bits16(16),
        vlan: random.flip().then(|| random.bits16(16)),
        traffic_class: random.bits8(8),
        hop_limit: random.bits8(8),
        flow_label: random.bits32(20),
        src_port: random.bits16(16),
    }
}

fn context(random: &mut Random) -> QpContext {
    QpContext {
        sq_addr: random.bits(64),
        rq_addr: random.bits(64),
        sq_size: random.bits32(4),
        rq_size: random.bits32(4),
        rq_wqe_shift: random.bits32(2),
        pd: random.bits32(18),
        send_cq: random.bits32(25),
        recv_cq: random.bits32(25),
        completion_context: random.bits(64),
        mtu: random.bits16(14),
        pkey: random.bits16(16),
        qkey: random.bits32(32),
        mac: random.octets(),
        qs_handle: random.bits16(10),
        kernel: random.flip(),
        remote_read: random.flip(),
        remote_write: random.flip(),
        dest_qp: random.bits32(24),
        send_psn: random.flip().then(|| random.bits32(24)),
        recv_psn: random.bits32(24),
        retry: random.bits8(6),
        rnr_retry: random.bits8(3),
        path: random.flip().then(|| path(random)),
    }
}

/// The same for C.
fn arguments(ours: &QpContext) -> Result<QpcArgs> {
    let path = ours.path.as_ref();
    let (ipv4, remote_ip) = path.map_or((false, [0; 4]), |p| words::ip(p.remote_ip));
    let (_, local_ip) = path.map_or((false, [0; 4]), |p| words::ip(p.local_ip));
    let vlan = path.and_then(|p| p.vlan);

    Ok(QpcArgs {
        sq_addr: ours.sq_addr,
        rq_addr: ours.rq_addr,
        sq_size: ours.sq_size.try_into()?,
        rq_size: ours.rq_size.try_into()?,
        rq_wqe_size: ours.rq_wqe_shift.try_into()?,
        pd: ours.pd,
        send_cq: ours.send_cq,
        recv_cq: ours.recv_cq,
        completion_context: ours.completion_context,
        mtu: ours.mtu,
        pkey: ours.pkey,
        qkey: ours.qkey,
        mac: ours.mac,
        qs_handle: ours.qs_handle,
        privileged: ours.kernel,
        remote_read: ours.remote_read,
        remote_write: ours.remote_write,
        dest_qp: ours.dest_qp,
        psn_valid: ours.send_psn.is_some(),
        send_psn: ours.send_psn.unwrap_or(0),
        recv_psn: ours.recv_psn,
        retry: ours.retry,
        rnr_retry: ours.rnr_retry,
        connected: path.is_some(),
        ipv4,
        local_ip,
        remote_ip,
        arp_index: path.map_or(0, |p| p.arp_index),
        insert_vlan: vlan.is_some(),
        vlan: vlan.unwrap_or(0),
        tos: path.map_or(0, |p| p.traffic_class),
        ttl: path.map_or(0, |p| p.hop_limit),
        flow_label: path.map_or(0, |p| p.flow_label),
        src_port: path.map_or(0, |p| p.src_port),
    })
}

#[kernel::macros::kunit_tests(irdma_rs_queue_words)]
mod suite {
    use super::*;

    #[test]
    fn contexts_of_queue_pairs() -> Result {
        let mut random = Random::new(1);

        for _ in 0..ROUNDS {
            let ours = context(&mut random);
            let (rust, c) = (ours.encode()?, words::qpc(&arguments(&ours)?));

            for (i, (rust, c)) in rust.iter().zip(c).enumerate() {
                if *rust != c {
                    pr_err!("irdma_rs: context word {i}: {rust:#x} here, {c:#x} in C\n");
                }
                assert_eq!(*rust, c);
            }
        }
        Ok(())
    }

    #[test]
    fn contexts_refuse_what_does_not_fit() {
        let good = context(&mut Random::new(2));
        let path = path(&mut Random::new(3));

        for bad in [
            QpContext {
                sq_size: 16,
                ..good
            },
            QpContext {
                rq_size: 16,
                ..good
            },
            QpContext {
                rq_wqe_shift: 4,
                ..good
            },
            QpContext {
                pd: 1 << 18,
                ..good
            },
            QpContext {
                send_cq: 1 << 25,
                ..good
            },
            QpContext {
                recv_cq: 1 << 25,
                ..good
            },
            QpContext {
                mtu: 1 << 14,
                ..good
            },
            QpContext {
                qs_handle: 1 << 10,
                ..good
            },
            QpContext {
                dest_qp: 1 << 24,
                ..good
            },
            QpContext {
                send_psn: Some(1 << 24),
                ..good
            },
            QpContext {
                recv_psn: 1 << 24,
                ..good
            },
            QpContext {
                retry: 1 << 6,
                ..good
            },
            QpContext {
                rnr_retry: 1 << 3,
                ..good
            },
            QpContext {
                path: Some(PathContext {
                    flow_label: 1 << 20,
                    ..path
                }),
                ..good
            },
        ] {
            assert_eq!(bad.encode(), Err(EINVAL));
        }
    }

    #[test]
    fn opcodes_of_the_send_queue() -> Result {
        for (ours, name) in OPCODES {
            let header = SqHeader::zeroed().with_opcode(ours);
            let code = u64::from(words::number(name));

            assert_eq!(header.into_raw() >> 32, code);
            assert_eq!(header.opcode(), Ok(ours));
        }
        let known = (0..64u64)
            .filter(|code| SqHeader::from_raw(code << 32).opcode().is_ok())
            .count();
        assert_eq!(known, OPCODES.len());
        Ok(())
    }

    #[test]
    fn headers_of_datagrams() -> Result {
        let mut random = Random::new(4);

        for round in 0..ROUNDS {
            let immediate = random.flip();
            let fragments = u8::try_from(round % 14)?;
            let (opcode, c_opcode) = if random.flip() {
                (SqOpcode::Send, name::SQ_SEND)
            } else {
                (SqOpcode::SendSolicited, name::SQ_SEND_SOLICITED)
            };
            let c = SendArgs {
                valid: random.flip(),
                signaled: random.flip(),
                read_fence: random.flip(),
                immediate,
                fragments,
                opcode: c_opcode,
                ah: random.bits32(25),
            };
            let places = u32::from(fragments) + u32::from(immediate);
            let ours = SqHeader::zeroed()
                .with_opcode(opcode)
                .try_with_ah_id(c.ah)?
                .with_signaled(c.signaled)
                .with_read_fence(c.read_fence)
                .with_imm_flag(immediate)
                .try_with_add_frag_cnt(additional_fragments(places))?
                .with_valid(c.valid);
            assert_eq!(ours.into_raw(), words::send_header(&c));

            let ours = RqHeader::zeroed()
                .try_with_add_frag_cnt(additional_fragments(u32::from(fragments)))?
                .with_valid(c.valid);
            assert_eq!(ours.into_raw(), words::recv_header(c.valid, fragments));

            let (qpn, qkey) = (random.bits32(24), random.bits32(32));
            let ours = UdDest::zeroed()
                .try_with_dest_qpn(qpn)?
                .with_dest_qkey(qkey);
            assert_eq!(ours.into_raw(), words::ud_destination(qpn, qkey));

            let fragment = Fragment {
                addr: random.bits(64),
                len: random.bits32(31),
                lkey: random.bits32(32),
            };
            assert_eq!(
                fragment.words(c.valid)?,
                (
                    fragment.addr,
                    words::fragment(c.valid, fragment.len, fragment.lkey)
                )
            );
        }
        Ok(())
    }

    #[test]
    fn completions() -> Result {
        let mut random = Random::new(5);

        for _ in 0..ROUNDS {
            let c = CqeArgs {
                length: random.bits32(32),
                context: random.bits(64),
                qp: random.bits32(24),
                source_qp: random.bits32(24),
                valid: random.flip(),
                sq: random.flip(),
                op: random.bits8(6),
                error: random.flip(),
                solicited: random.flip(),
                ipv4: random.flip(),
                extended: random.flip(),
                wqe_index: random.bits16(15),
                major: random.bits16(16),
                minor: random.bits16(16),
            };
            let ours = Cqe::decode(words::cqe(&c), None);

            assert_eq!(ours.context, c.context);
            assert_eq!(ours.length.payload_len(), u64::from(c.length));
            assert_eq!(ours.qp.qp_id(), u64::from(c.qp));
            assert_eq!(ours.qp.src_qpn(), u64::from(c.source_qp));
            assert_eq!(ours.status.valid().into_bool(), c.valid);
            assert_eq!(ours.status.sq().into_bool(), c.sq);
            assert_eq!(ours.status.rq_op(), u64::from(c.op));
            assert_eq!(ours.status.error().into_bool(), c.error);
            assert_eq!(ours.status.solicited().into_bool(), c.solicited);
            assert_eq!(ours.status.ipv4().into_bool(), c.ipv4);
            assert_eq!(ours.status.extended().into_bool(), c.extended);
            assert_eq!(ours.status.wqe_idx(), u64::from(c.wqe_index));
            assert_eq!(ours.status.major(), u64::from(c.major));
            assert_eq!(ours.status.minor(), u64::from(c.minor));
            let known = OPCODES
                .iter()
                .find(|(_, name)| words::number(*name) == u32::from(c.op));
            assert_eq!(ours.status.sq_op().ok(), known.map(|(op, _)| *op));
        }
        Ok(())
    }

    #[test]
    fn extensions_of_completions() {
        let mut random = Random::new(6);

        for _ in 0..ROUNDS {
            let c = ExtArgs {
                valid: random.flip(),
                imm_valid: random.flip(),
                imm: random.bits32(32),
                smac_valid: random.flip(),
                smac: random.octets(),
                vlan_valid: random.flip(),
                vlan: random.bits16(16),
            };
            assert_eq!(
                Extension::decode(words::ext(&c)),
                Extension {
                    imm: c.imm_valid.then_some(c.imm),
                    smac: c.smac_valid.then_some(c.smac),
                    vlan: c.vlan_valid.then_some(c.vlan),
                }
            );
        }
    }

    #[test]
    fn arm_requests() -> Result {
        let mut random = Random::new(7);

        for _ in 0..ROUNDS {
            let c = ArmArgs {
                sequence: random.bits8(2),
                next_solicited: random.flip(),
                next: random.flip(),
                select: random.bits16(14),
            };
            let ours = ShadowArm::zeroed()
                .try_with_seq(c.sequence)?
                .with_next_se(c.next_solicited)
                .with_next(c.next)
                .try_with_sw_cq_select(c.select)?;
            assert_eq!(ours.into_raw(), words::arm(&c));
        }
        Ok(())
    }

    #[test]
    fn reasons_of_flushed_work() {
        for (name, status) in [
            (name::FLUSH_GENERAL, Status::Flushed),
            (name::FLUSH_PROT, Status::LocalProtection),
            (name::FLUSH_REM_ACCESS, Status::RemoteAccess),
            (name::FLUSH_LOC_QP_OP, Status::LocalQpOperation),
            (name::FLUSH_REM_OP, Status::RemoteOperation),
            (name::FLUSH_LOC_LEN, Status::LocalLength),
            (name::FLUSH_FATAL, Status::Fatal),
            (name::FLUSH_RETRY_EXC, Status::RetryExceeded),
            (name::FLUSH_MW_BIND, Status::MwBind),
            (name::FLUSH_REM_INV_REQ, Status::RemoteInvalidRequest),
            (name::FLUSH_RNR_RETRY_EXC, Status::RnrRetryExceeded),
        ] {
            let code = u64::from(words::number(name));
            assert_eq!(Status::from_flush_code(code), status);
        }
        assert_eq!(MAJOR_FLUSHED, u64::from(words::number(name::FLUSH_MAJOR)));
        // Whatever else a device may say is an error too.
        for code in 12..=0xffff {
            assert_eq!(Status::from_flush_code(code), Status::Fatal);
        }
    }
}
