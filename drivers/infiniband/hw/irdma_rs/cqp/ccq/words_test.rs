// SPDX-License-Identifier: GPL-2.0

//! Layouts of the control completion queue against those of C.

use super::{
    CcqHeader,
    CcqResult,
    ShadowArm,
    ShadowHead, //
};
use kernel::prelude::*;
use rdma::testing::{
    random::Random,
    words::{
        self,
        ArmArgs,
        CcqeArgs, //
    }, //
};

#[kernel::macros::kunit_tests(irdma_rs_ccq_words)]
mod suite {
    use super::*;

    #[test]
    fn completions() {
        let mut random = Random::new(1);

        for _ in 0..500 {
            let c = CcqeArgs {
                valid: random.flip(),
                error: random.flip(),
                wqe_index: random.bits16(15),
                major: random.bits16(16),
                minor: random.bits16(16),
                result: random.bits32(32),
            };
            let [_, _, result, header] = words::ccqe(&c);
            let (result, header) = (CcqResult::from(result), CcqHeader::from(header));

            assert_eq!(header.valid().into_bool(), c.valid);
            assert_eq!(header.error().into_bool(), c.error);
            assert_eq!(header.wqeidx(), u64::from(c.wqe_index));
            assert_eq!(header.majerr(), u64::from(c.major));
            assert_eq!(header.minerr(), u64::from(c.minor));
            assert_eq!(result.opretval(), u64::from(c.result));
        }
    }

    #[test]
    fn shadow_area() -> Result {
        let mut random = Random::new(2);

        for _ in 0..200 {
            let index = random.bits32(20);
            let head = ShadowHead::from(0).try_with_cqeidx(index)?;
            assert_eq!(u64::from(head), words::consumer(index));

            let c = ArmArgs {
                sequence: random.bits8(2),
                next_solicited: random.flip(),
                next: random.flip(),
                select: random.bits16(14),
            };
            let arm = ShadowArm::from(0)
                .try_with_arm_seq_num(c.sequence)?
                .with_arm_next_se(c.next_solicited)
                .with_arm_next(c.next)
                .try_with_sw_cq_select(c.select)?;
            assert_eq!(u64::from(arm), words::arm(&c));
        }
        Ok(())
    }
}
