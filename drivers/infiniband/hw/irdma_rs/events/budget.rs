// SPDX-License-Identifier: GPL-2.0

//! How much is done for an interrupt at a time.

/// Events and completions that one hard interrupt takes. The time that each takes has a bound, and
/// so has their number, however many threads give orders to the device.
const HARD: u32 = 4;

/// The same for the interrupt's thread before it lets others run. Below real-time priority nobody else
/// does as long as it runs.
const THREAD: u32 = 256;

/// What may still be done.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u32,
}

impl Budget {
    /// That of a hard interrupt.
    pub(crate) const fn hard() -> Self {
        Self { left: HARD }
    }

    /// That of the thread of an interrupt, until it sleeps.
    pub(crate) const fn thread() -> Self {
        Self { left: THREAD }
    }

    /// Whether nothing more may be done.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Something has been done.
    pub(crate) fn spend(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

#[kernel::macros::kunit_tests(irdma_rs_budget)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_and_thread_end() {
        for (mut budget, most) in [(Budget::hard(), HARD), (Budget::thread(), THREAD)] {
            for _ in 0..most {
                assert!(!budget.is_spent());
                budget.spend();
            }
            assert!(budget.is_spent());
            budget.spend();
            assert!(budget.is_spent());
        }
    }
}
