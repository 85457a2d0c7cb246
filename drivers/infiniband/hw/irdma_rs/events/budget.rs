// SPDX-License-Identifier: GPL-2.0

//! How much is done with interrupts off at a time.

/// Events and completions that one hard interrupt takes. The time that each takes has a bound, and
/// so has their number, however many threads give orders to the device.
const HARD: u32 = 4;

/// What may still be done.
#[derive(Debug)]
pub(crate) struct Budget {
    /// `None` has no end.
    left: Option<u32>,
}

impl Budget {
    /// That of a hard interrupt.
    pub(crate) const fn hard() -> Self {
        Self { left: Some(HARD) }
    }

    /// That of process context, which others may interrupt.
    pub(crate) const fn unlimited() -> Self {
        Self { left: None }
    }

    /// Whether nothing more may be done.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == Some(0)
    }

    /// Something has been done.
    pub(crate) fn spend(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }
}

#[kernel::macros::kunit_tests(irdma_rs_budget)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_interrupt_ends() {
        let mut budget = Budget::hard();

        for _ in 0..HARD {
            assert!(!budget.is_spent());
            budget.spend();
        }
        assert!(budget.is_spent());
        budget.spend();
        assert!(budget.is_spent());
    }

    #[test]
    fn process_context_does_not() {
        let mut budget = Budget::unlimited();

        for _ in 0..10 * HARD {
            budget.spend();
        }
        assert!(!budget.is_spent());
    }
}
