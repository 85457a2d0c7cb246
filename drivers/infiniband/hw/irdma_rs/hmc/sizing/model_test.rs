// SPDX-License-Identifier: GPL-2.0

//! Sizing for devices that offer anything, reasonable or not.

use super::{
    choose,
    space,
    Object,
    Offer,
    PerObject,
    MIN_QPS,
    SEGMENT, //
};
use kernel::prelude::*;
use rdma::testing::random::Random;

/// An offer with any value that its fields in the query buffer can hold.
fn offer(random: &mut Random) -> Offer {
    let mut max = PerObject::all(0);
    let mut size = PerObject::all(0);

    for object in Object::ALL {
        // Often something a device would say.
        let count = if random.chance(3, 4) {
            1 << (4 + random.below(20))
        } else {
            random.bits(32)
        };
        let log2 = if random.chance(7, 8) {
            random.below(11)
        } else {
            random.below(64)
        };
        // What the device must offer for its answer to be taken.
        let least = match object {
            Object::Pble => 512,
            Object::Fsimc => 0,
            _ => 4,
        };
        max.set(object, count.max(least));
        size.set(object, 1 << log2);
    }
    // These the device does not choose.
    for (object, bytes) in [
        (Object::Pble, 8),
        (Object::Xffl, 4),
        (Object::Q1fl, 4),
        (Object::Rrffl, 4),
        (Object::Apbvt, 8192),
    ] {
        size.set(object, bytes);
    }
    max.set(Object::Apbvt, 1);
    Offer {
        max,
        size,
        max_sds: random.bits(13).max(1),
        max_ceqs: 1 + random.below(1023),
        ht_multiplier: random.bits(4).max(1),
        timer_bucket: random.bits(16),
        xf_block: random.bits(32).max(1),
        q1_block: random.bits(32).max(1),
        rrf_block: random.bits(32).max(1),
    }
}

/// Whether `counts` keeps what the device offered.
fn keeps(offer: &Offer, counts: &PerObject<u64>) -> Result<bool> {
    let mut used = 0u64;

    for object in Object::ALL {
        let bytes = space(counts.get(object), offer.size.get(object))?;
        used = used.checked_add(bytes).ok_or(EOVERFLOW)?;
    }
    let bounded = [
        Object::Qp,
        Object::Cq,
        Object::Arp,
        Object::Mr,
        Object::Fsimc,
        Object::Fsiav,
        Object::Pble,
        Object::Q1,
    ];
    Ok(bounded
        .iter()
        .all(|object| counts.get(*object) <= offer.max.get(*object))
        && used.div_ceil(SEGMENT) <= offer.max_sds
        && counts.get(Object::Qp).is_power_of_two()
        && counts.get(Object::Fsimc) <= 4096
        && counts.get(Object::Arp) <= 4096
        && counts.get(Object::Pble) >= 512)
}

#[kernel::macros::kunit_tests(irdma_rs_hmc_offers)]
mod suite {
    use super::*;

    #[test]
    fn any_offer_is_kept_or_refused() -> Result {
        let mut random = Random::new(1);
        let (mut chosen, mut refused) = (0, 0);

        for _ in 0..3000 {
            let offer = offer(&mut random);
            let wanted = random.bits(32);

            match choose(&offer, wanted) {
                Ok(counts) => {
                    if !keeps(&offer, &counts)? {
                        pr_err!("irdma_rs: hmc: wanted {wanted}: {counts:?} of {offer:?}\n");
                    }
                    assert!(keeps(&offer, &counts)?);
                    assert!(counts.get(Object::Qp) <= wanted.max(MIN_QPS));
                    chosen += 1;
                }
                Err(error) => {
                    assert!(error == ENOSPC || error == EOVERFLOW);
                    refused += 1;
                }
            }
        }
        // Else the test showed only half of it.
        assert!(chosen > 100 && refused > 100);
        Ok(())
    }
}
