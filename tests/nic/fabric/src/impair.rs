// SPDX-License-Identifier: GPL-2.0
//! Loss, duplication and reordering, ordered by count.
//!
//! A rule waits for the n-th frame of its kind and then acts on a number of frames. There is no
//! chance and no clock in it, so a test that orders a rule knows which frame it hits.

use crate::frame::{is_roce, Frame};
use std::collections::VecDeque;

/// The frames a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every frame.
    Any,
    /// RoCEv2 only.
    Roce,
    /// All but RoCEv2.
    Other,
}

impl Kind {
    fn covers(self, frame: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Roce => is_roce(frame),
            Self::Other => !is_roce(frame),
        }
    }
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives after so many later frames.
    Hold(u32),
}

/// One order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which frames count.
    pub kind: Kind,
    /// The first frame acted on; 1 is the next one.
    pub nth: u64,
    /// Frames acted on.
    pub count: u64,
    /// What happens to them.
    pub action: Action,
}

/// The rules of one direction of a port.
#[derive(Default)]
pub struct Impairments {
    rules: Vec<Rule>,
    held: VecDeque<(u32, Frame)>,
    dropped: u64,
}

impl Impairments {
    /// Adds a rule; of several that hit the same frame the oldest acts.
    pub fn add(&mut self, rule: Rule) {
        if rule.count > 0 {
            self.rules.push(Rule {
                nth: rule.nth.max(1),
                ..rule
            });
        }
    }

    /// Removes all rules and returns the frames that were held back.
    pub fn clear(&mut self) -> Vec<Frame> {
        self.rules.clear();
        self.held.drain(..).map(|(_, frame)| frame).collect()
    }

    /// Frames lost so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Counts `frame` against the rules and returns what goes on now, in order.
    pub fn pass(&mut self, frame: Frame) -> Vec<Frame> {
        let action = self.act_on(&frame);
        let mut out = Vec::with_capacity(1);
        if action != Some(Action::Drop) {
            // Frames that pass count down those held before them.
            self.held
                .iter_mut()
                .for_each(|(after, _)| *after = after.saturating_sub(1));
        }
        match action {
            None => out.push(frame),
            Some(Action::Duplicate) => out.extend([frame.clone(), frame]),
            Some(Action::Hold(after)) if after > 0 => self.held.push_back((after, frame)),
            Some(Action::Hold(_)) => out.push(frame),
            Some(Action::Drop) => self.dropped += 1,
        }
        while self.held.front().is_some_and(|(after, _)| *after == 0) {
            out.extend(self.held.pop_front().map(|(_, frame)| frame));
        }
        out
    }

    /// The action of the first rule that hits; all rules count the frame.
    fn act_on(&mut self, frame: &[u8]) -> Option<Action> {
        let mut action = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.kind.covers(frame)) {
            if rule.nth > 1 {
                rule.nth -= 1;
            } else if action.is_none() {
                rule.count -= 1;
                action = Some(rule.action);
            }
        }
        self.rules.retain(|rule| rule.count > 0);
        action
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rule: Rule, frames: u8) -> Vec<u8> {
        let mut impairments = Impairments::default();
        impairments.add(rule);
        (1..=frames)
            .flat_map(|n| impairments.pass(vec![n].into()))
            .map(|f| f[0])
            .collect()
    }

    fn rule(nth: u64, count: u64, action: Action) -> Rule {
        Rule {
            kind: Kind::Any,
            nth,
            count,
            action,
        }
    }

    #[test]
    fn rules_act_by_count() {
        let table: [(Rule, &[u8]); 7] = [
            (rule(1, 1, Action::Drop), &[2, 3, 4, 5]),
            (rule(0, 1, Action::Drop), &[2, 3, 4, 5]),
            (rule(3, 2, Action::Drop), &[1, 2, 5]),
            (rule(6, 1, Action::Drop), &[1, 2, 3, 4, 5]),
            (rule(2, 1, Action::Duplicate), &[1, 2, 2, 3, 4, 5]),
            (rule(2, 1, Action::Hold(2)), &[1, 3, 4, 2, 5]),
            (rule(2, 0, Action::Drop), &[1, 2, 3, 4, 5]),
        ];
        for (rule, expected) in table {
            assert_eq!(run(rule, 5), expected, "{rule:?}");
        }
    }

    #[test]
    fn kinds_count_separately() {
        let mut impairments = Impairments::default();
        impairments.add(Rule {
            kind: Kind::Roce,
            nth: 1,
            count: 1,
            action: Action::Drop,
        });
        assert_eq!(impairments.pass(vec![1].into()).len(), 1);
        impairments.add(Rule {
            kind: Kind::Other,
            nth: 1,
            count: 1,
            action: Action::Drop,
        });
        assert_eq!(impairments.pass(vec![1].into()).len(), 0);
        assert_eq!(impairments.dropped(), 1);
    }

    #[test]
    fn clearing_lets_held_frames_go() {
        let mut impairments = Impairments::default();
        impairments.add(rule(1, 1, Action::Hold(9)));
        assert!(impairments.pass(vec![1].into()).is_empty());
        assert_eq!(impairments.clear().len(), 1);
    }
}
