// SPDX-License-Identifier: GPL-2.0

//! Who will notice the next completion: an event that was asked for, or a caller that looks.

/// Whether the next completion is noticed, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    /// An event was asked for and has not been handled yet.
    armed: bool,
    /// Callers that look at the queue over and over.
    looking: u32,
}

impl Watch {
    /// Nobody notices anything.
    pub(super) const fn new() -> Self {
        Self {
            armed: false,
            looking: 0,
        }
    }

    /// Whether somebody who sleeps need not ask for an event.
    pub(super) const fn is_kept(self) -> bool {
        self.armed || self.looking != 0
    }

    /// Whether an event is asked for or on its way.
    pub(super) const fn is_armed(self) -> bool {
        self.armed
    }

    /// The device is asked for an event.
    pub(super) fn arm(&mut self) {
        self.armed = true;
    }

    /// The event has come: there is no other before the device is asked again.
    pub(super) fn fired(&mut self) {
        self.armed = false;
    }

    /// A caller looks over and over, until [`Watch::end_look`].
    pub(super) fn begin_look(&mut self) {
        // As many as there are tasks.
        self.looking = self.looking.saturating_add(1);
    }

    /// A caller that looked goes.
    pub(super) fn end_look(&mut self) {
        self.looking = self.looking.saturating_sub(1);
    }
}

#[kernel::macros::kunit_tests(irdma_rs_cqp_watch)]
mod tests {
    use super::*;

    #[test]
    fn the_last_caller_that_looks_leaves_nobody() {
        let mut watch = Watch::new();

        watch.begin_look();
        watch.begin_look();
        assert!(watch.is_kept() && !watch.is_armed());
        watch.end_look();
        assert!(watch.is_kept());
        watch.end_look();
        assert!(!watch.is_kept());
    }

    #[test]
    fn an_arm_holds_until_its_event() {
        let mut watch = Watch::new();

        watch.arm();
        watch.begin_look();
        watch.end_look();
        assert!(watch.is_kept() && watch.is_armed());
        watch.fired();
        assert_eq!(watch, Watch::new());
    }
}
