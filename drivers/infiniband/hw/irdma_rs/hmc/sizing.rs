// SPDX-License-Identifier: GPL-2.0

//! How many objects of each kind to ask for.
//!
//! Everything but PBLEs costs memory at load, 2 MiB at a time, so the counts follow from a modest
//! number of queue pairs (a parameter of the module) instead of from what the device could do.
//! PBLEs get memory when they are used.

#[cfg(CONFIG_KUNIT = "y")]
mod model_test;

use super::{
    fpm::{
        space,
        Offer,
        SEGMENT, //
    },
    objects::{
        Object,
        PerObject, //
    },
};
use kernel::prelude::*;

/// Fewest queue pairs worth a device: three numbers are reserved.
pub(crate) const MIN_QPS: u64 = 16;

/// Most queue pairs the device's formats allow.
const MAX_QPS: u64 = 262_144;

/// Inbound read queue entries per queue pair: twice the greatest depth.
const Q1_PER_QP: u64 = 254;

/// Inbound read queue entries besides those of queue pairs.
const Q1_SPARE: u64 = 512;

/// Hash table and timers are counted in groups of this size.
const GROUP: u64 = 512;

/// Memory regions per queue pair.
const MRS_PER_QP: u64 = 16;

/// Address handles per queue pair.
const AHS_PER_QP: u64 = 16;

/// Page buffer list entries per queue pair: with 1024 queue pairs, 16 GiB in pages of 4 KiB.
const PBLES_PER_QP: u64 = 4096;

/// Fewest address handles worth having: programs make one per peer.
const MIN_AHS: u64 = 4096;

/// Destination addresses.
const MAX_ARPS: u64 = 4096;

/// Multicast groups: the greatest index is 4095.
const MAX_GROUPS: u64 = 4096;

/// Read request FIFO entries per queue pair.
const RRF_PER_QP: u64 = 32;

/// Largest power of two not above `n`; `n` is at least one.
fn pow2_floor(n: u64) -> u64 {
    1 << (63 - n.max(1).leading_zeros())
}

fn pow2_ceil(n: u64) -> Result<u64> {
    n.checked_next_power_of_two().ok_or(EOVERFLOW)
}

/// Inbound read queue entries for `qps` queue pairs.
fn q1(qps: u64) -> Result<u64> {
    pow2_ceil(Q1_PER_QP * qps + Q1_SPARE)
}

/// Counts for `qps` queue pairs, without PBLEs.
fn counts(offer: &Offer, qps: u64) -> Result<PerObject<u64>> {
    let max = |object: Object| offer.max.get(object);
    let mut counts = PerObject::all(0);
    let groups = qps.div_ceil(GROUP);

    let fsimc = max(Object::Fsimc).min(MAX_GROUPS);
    let hash_slots = (qps + fsimc)
        .checked_next_multiple_of(GROUP)
        .ok_or(EOVERFLOW)?;
    let xf = 4 * offer.xf_block.checked_mul(qps).ok_or(EOVERFLOW)?;
    let q1 = q1(qps)?;

    counts.set(Object::Qp, qps);
    counts.set(Object::Cq, (2 * qps).min(max(Object::Cq)));
    counts.set(
        Object::Hte,
        pow2_ceil(hash_slots)?
            .checked_mul(offer.ht_multiplier)
            .ok_or(EOVERFLOW)?,
    );
    counts.set(Object::Arp, max(Object::Arp).min(MAX_ARPS));
    counts.set(Object::Apbvt, 1);
    counts.set(Object::Mr, max(Object::Mr).min(MRS_PER_QP * qps));
    counts.set(Object::Xf, xf);
    counts.set(Object::Xffl, xf / offer.xf_block);
    counts.set(Object::Q1, q1);
    counts.set(Object::Q1fl, q1 / offer.q1_block);
    counts.set(Object::Timer, (groups + 1) * offer.timer_bucket);
    counts.set(Object::Fsimc, fsimc);
    counts.set(
        Object::Fsiav,
        max(Object::Fsiav).min((AHS_PER_QP * qps).max(MIN_AHS)),
    );
    if max(Object::Rrf) != 0 {
        counts.set(Object::Rrf, RRF_PER_QP * qps);
    }
    if max(Object::Rrffl) != 0 && offer.rrf_block != 0 {
        counts.set(Object::Rrffl, RRF_PER_QP * qps / offer.rrf_block);
    }
    counts.set(Object::Hdr, qps);
    counts.set(Object::Md, max(Object::Md));
    Ok(counts)
}

/// Chooses the counts for about `wanted` queue pairs, fewer when the device has no room for them.
///
/// # Errors
///
/// `ENOSPC` when not even the fewest fit the segments the device offers.
pub(super) fn choose(offer: &Offer, wanted: u64) -> Result<PerObject<u64>> {
    let most = offer.max.get(Object::Qp).min(MAX_QPS);
    let mut qps = pow2_floor(wanted.clamp(MIN_QPS.min(most), most));
    loop {
        if q1(qps)? <= offer.max.get(Object::Q1) {
            let mut counts = counts(offer, qps)?;
            let mut used = 0u64;
            for object in Object::ALL {
                let bytes = space(counts.get(object), offer.size.get(object))?;
                used = used.checked_add(bytes).ok_or(EOVERFLOW)?;
            }
            // The device may leave gaps, and starts the PBLEs on a page: keep one segment aside.
            let room = offer.max_sds.saturating_sub(used.div_ceil(SEGMENT) + 1);
            let pbles = room
                .saturating_mul(SEGMENT / 8)
                .min(PBLES_PER_QP * qps)
                .min(offer.max.get(Object::Pble));
            if pbles >= 512 {
                counts.set(Object::Pble, pbles);
                return Ok(counts);
            }
        }
        if qps <= 4 {
            return Err(ENOSPC);
        }
        qps /= 2;
    }
}

#[kunit_tests(irdma_rs_hmc_sizing)]
mod tests {
    use super::*;

    fn offer(max_sds: u64) -> Offer {
        let mut max = PerObject::all(1 << 20);
        max.set(Object::Qp, 65536);
        max.set(Object::Arp, 2048);
        max.set(Object::Md, 1024);
        Offer {
            max,
            size: PerObject::all(64),
            max_sds,
            max_ceqs: 64,
            ht_multiplier: 2,
            timer_bucket: 64,
            xf_block: 16,
            q1_block: 16,
            rrf_block: 16,
        }
    }

    #[test]
    fn asks_for_what_was_wanted() -> Result {
        let counts = choose(&offer(4096), 1024)?;
        assert_eq!(counts.get(Object::Qp), 1024);
        assert_eq!(counts.get(Object::Cq), 2048);
        assert_eq!(counts.get(Object::Q1), 262_144);
        assert_eq!(counts.get(Object::Fsimc), 4096);
        assert_eq!(counts.get(Object::Arp), 2048);
        assert_eq!(counts.get(Object::Pble), 1 << 20);
        assert!(counts.get(Object::Mr) >= 1024);
        Ok(())
    }

    #[test]
    fn rounds_down_and_clamps() -> Result {
        assert_eq!(choose(&offer(4096), 1500)?.get(Object::Qp), 1024);
        assert_eq!(choose(&offer(4096), 0)?.get(Object::Qp), MIN_QPS);
        assert_eq!(choose(&offer(1 << 40), u64::MAX)?.get(Object::Qp), 4096);
        Ok(())
    }

    #[test]
    fn shrinks_to_the_room_there_is() -> Result {
        let counts = choose(&offer(10), 1024)?;
        assert!(counts.get(Object::Qp) < 1024);
        assert!(counts.get(Object::Pble) >= 512);
        assert_eq!(choose(&offer(1), 1024).err(), Some(ENOSPC));
        Ok(())
    }
}
