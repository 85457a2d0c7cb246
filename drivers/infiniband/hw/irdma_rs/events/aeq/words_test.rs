// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events as C writes them.

use super::{
    AeCode,
    Aeqe,
    AsyncEvent,
    Source, //
};
use rdma::testing::{
    random::Random,
    words::{
        self,
        name,
        AeqeArgs, //
    }, //
};

#[kernel::macros::kunit_tests(irdma_rs_aeq_words)]
mod suite {
    use super::*;

    #[test]
    fn events() {
        let mut random = Random::new(1);

        for _ in 0..500 {
            let c = AeqeArgs {
                valid: random.flip(),
                source: random.bits8(4),
                number: random.bits32(19),
                code: random.bits16(12),
                overflow: random.flip(),
            };
            let [_, word] = words::aeqe(&c);
            let entry = Aeqe::from(word);
            let event = AsyncEvent::from(entry);

            assert_eq!(entry.valid().into_bool(), c.valid);
            assert_eq!(event.code, AeCode(c.code));
            assert_eq!(event.source, Source::from(u64::from(c.source)));
            assert_eq!(event.number, c.number);
            assert_eq!(event.overflow, c.overflow);
        }
    }

    #[test]
    fn codes() {
        for (code, name) in [
            (AeCode::CQ_OPERATION_ERROR, name::AE_CQ_OPERATION_ERROR),
            (AeCode::ROCE_EMPTY_MCG, name::AE_ROCE_EMPTY_MCG),
            (AeCode::ROCE_BAD_MC_IP_ADDR, name::AE_ROCE_BAD_MC_IP_ADDR),
            (AeCode::ROCE_BAD_MC_QPID, name::AE_ROCE_BAD_MC_QPID),
            (
                AeCode::MCG_QP_PROTOCOL_MISMATCH,
                name::AE_MCG_QP_PROTOCOL_MISMATCH,
            ),
            (
                AeCode::LLP_DOUBT_REACHABILITY,
                name::AE_LLP_DOUBT_REACHABILITY,
            ),
            (
                AeCode::LLP_CONNECTION_ESTABLISHED,
                name::AE_LLP_CONNECTION_ESTABLISHED,
            ),
            (AeCode::RESOURCE_EXHAUSTION, name::AE_RESOURCE_EXHAUSTION),
            (AeCode::RESET_NOT_SENT, name::AE_RESET_NOT_SENT),
            (
                AeCode::LCE_FUNCTION_CATASTROPHIC,
                name::AE_LCE_FUNCTION_CATASTROPHIC,
            ),
            (AeCode::LCE_CQ_CATASTROPHIC, name::AE_LCE_CQ_CATASTROPHIC),
            (AeCode::QP_SUSPEND_COMPLETE, name::AE_QP_SUSPEND_COMPLETE),
            (AeCode::ADAPTER_CATASTROPHIC, name::AE_ADAPTER_CATASTROPHIC),
        ] {
            assert_eq!(u32::from(code.0), words::number(name));
        }
    }

    /// Multicast events name a queue pair that has done nothing wrong.
    #[test]
    fn multicast_events_are_told_apart() {
        let multicast = (0..0x1000)
            .filter(|code| AeCode(*code).is_multicast())
            .count();

        assert_eq!(multicast, 4);
        for code in 0x380..0x384 {
            assert!(AeCode(code).is_multicast());
            assert!(!AeCode(code).is_fatal() && !AeCode(code).is_harmless());
        }
    }

    /// The sixteen sources of the kernel's header.
    #[test]
    fn sources() {
        for (code, source) in [
            (0x1, Source::Rq),
            (0x3, Source::Rq),
            (0x2, Source::Cq),
            (0x6, Source::Cq),
            (0xa, Source::Cq),
            (0xe, Source::Cq),
            (0x5, Source::Sq),
            (0x7, Source::Sq),
            (0x9, Source::Qp),
            (0xb, Source::Qp),
            (0xd, Source::Qp),
            (0xf, Source::Qp),
            (0x0, Source::Unknown),
            (0x4, Source::Unknown),
            (0x8, Source::Unknown),
            (0xc, Source::Unknown),
        ] {
            assert_eq!(Source::from(code), source);
        }
    }
}
