// SPDX-License-Identifier: GPL-2.0
//! Loss, duplication, reordering, delay and corruption.
//!
//! A rule acts by count: it waits for the n-th frame of its kind and then acts on a number of frames,
//! so a test that orders it knows which frame it hits. Or it acts by rate, on a share of the frames
//! chosen by a generator with a given seed: the same frames in the same order meet the same fate.

use crate::frame::{is_roce, Frame, HEADER};
use crate::view::{Destination, View};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::mem::take;
use std::time::Duration;

/// What a rate is a share of.
pub const MILLION: u32 = 1_000_000;

/// The frames a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every frame.
    Any,
    /// RoCEv2 only.
    Roce,
    /// All but RoCEv2.
    Other,
    /// Messages of group management: IGMP and MLD.
    Membership,
}

impl Kind {
    fn covers(self, frame: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Roce => is_roce(frame),
            Self::Other => !is_roce(frame),
            Self::Membership => View::of(frame)
                .is_some_and(|view| matches!(view.destination, Destination::Management(_))),
        }
    }

    /// The name used in control commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Roce => "roce",
            Self::Other => "other",
            Self::Membership => "membership",
        }
    }

    /// The kind that `name` means.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Any, Self::Roce, Self::Other, Self::Membership]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives after so many later frames of the rule's kind.
    Hold(u32),
    /// It arrives so much later.
    Delay(Duration),
    /// It arrives with this bit changed, counted from behind the Ethernet header, modulo its length;
    /// with one that the rule's generator chooses if `None`. Addresses stay, so it still arrives.
    Corrupt(Option<u32>),
}

impl Action {
    /// The name used in control commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
            Self::Hold(_) => "hold",
            Self::Delay(_) => "delay",
            Self::Corrupt(_) => "corrupt",
        }
    }
}

/// Which of the frames of its kind a rule acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `count` frames, beginning with the `nth` from now; 1 is the next one.
    Count {
        /// The first.
        nth: u64,
        /// How many.
        count: u64,
    },
    /// So many of a million, until the rules are removed.
    Rate(u32),
}

/// One order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which frames count.
    pub kind: Kind,
    /// Which of them it acts on.
    pub choice: Choice,
    /// What happens to them.
    pub action: Action,
    /// Seed of the rule's generator.
    pub seed: u64,
}

impl Rule {
    /// A rule that acts by count.
    pub fn by_count(kind: Kind, nth: u64, count: u64, action: Action) -> Self {
        Self {
            kind,
            choice: Choice::Count { nth, count },
            action,
            seed: 0,
        }
    }
}

/// How far a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The rule.
    pub rule: Rule,
    /// Frames of its kind so far.
    pub seen: u64,
    /// How often it has acted.
    pub acted: u64,
}

/// A rule at work.
struct Working {
    rule: Rule,
    /// Frames of its kind so far.
    seen: u64,
    /// How often it acted.
    acted: u64,
    random: ChaCha8Rng,
}

impl Working {
    fn new(rule: Rule) -> Self {
        Self {
            rule,
            seen: 0,
            acted: 0,
            random: ChaCha8Rng::seed_from_u64(rule.seed),
        }
    }

    /// Counts a frame; `true` if the rule would act on it.
    fn hits(&mut self) -> bool {
        self.seen += 1;
        match self.rule.choice {
            Choice::Count { nth, count } => self.seen >= nth && self.acted < count,
            Choice::Rate(rate) => self.random.next_u32() % MILLION < rate,
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.rule.choice, Choice::Count { count, .. } if self.acted >= count)
    }

    /// The action on the frame that was hit, with what the rule left open chosen.
    fn act(&mut self) -> Action {
        self.acted += 1;
        match self.rule.action {
            Action::Corrupt(None) => Action::Corrupt(Some(self.random.next_u32())),
            action => action,
        }
    }
}

/// What goes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Now, in order.
    pub now: Vec<Frame>,
    /// After a time.
    pub later: Vec<(Duration, Frame)>,
    /// What happened to the frame.
    pub action: Option<Action>,
}

/// The rules of one direction of a port.
#[derive(Default)]
pub struct Impairments {
    rules: Vec<Working>,
    held: Vec<Held>,
}

/// A frame that waits for later ones to pass.
struct Held {
    frame: Frame,
    /// The kind that has to pass: what a host says of its own accord frees nothing.
    kind: Kind,
    /// How many more.
    after: u32,
}

impl Impairments {
    /// Adds a rule; of several that hit the same frame the oldest acts.
    pub fn add(&mut self, rule: Rule) {
        let working = Working::new(rule);
        if !working.is_done() {
            self.rules.push(working);
        }
    }

    /// The rules that still act.
    pub fn list(&self) -> Vec<Status> {
        let status = |working: &Working| Status {
            rule: working.rule,
            seen: working.seen,
            acted: working.acted,
        };
        self.rules.iter().map(status).collect()
    }

    /// Removes all rules and returns the frames that were held back.
    pub fn clear(&mut self) -> Vec<Frame> {
        self.rules.clear();
        self.held.drain(..).map(|held| held.frame).collect()
    }

    /// Counts `frame` against the rules and returns what goes on.
    pub fn pass(&mut self, frame: Frame) -> Passed {
        let (action, kind) = self.act_on(&frame).unzip();
        let mut passed = Passed {
            action,
            ..Passed::default()
        };
        if action != Some(Action::Drop) {
            // Frames that pass count down those held before them.
            self.held
                .iter_mut()
                .filter(|held| held.kind.covers(&frame))
                .for_each(|held| held.after = held.after.saturating_sub(1));
        }
        match action {
            None | Some(Action::Hold(0)) => passed.now.push(frame),
            Some(Action::Duplicate) => passed.now.extend([frame.clone(), frame]),
            Some(Action::Hold(after)) => self.held.push(Held {
                frame,
                kind: kind.unwrap_or(Kind::Any),
                after,
            }),
            Some(Action::Delay(time)) => passed.later.push((time, frame)),
            Some(Action::Corrupt(bit)) => passed.now.push(corrupt(&frame, bit.unwrap_or(0))),
            Some(Action::Drop) => {}
        }
        let (free, waiting) = take(&mut self.held)
            .into_iter()
            .partition::<Vec<_>, _>(|held| held.after == 0);
        passed.now.extend(free.into_iter().map(|held| held.frame));
        self.held = waiting;
        passed
    }

    /// Action and kind of the first rule that hits; all rules count the frame.
    fn act_on(&mut self, frame: &[u8]) -> Option<(Action, Kind)> {
        let mut action = None;
        for working in self.rules.iter_mut().filter(|w| w.rule.kind.covers(frame)) {
            if working.hits() && action.is_none() {
                action = Some((working.act(), working.rule.kind));
            }
        }
        self.rules.retain(|working| !working.is_done());
        action
    }
}

/// The frame with one bit changed.
fn corrupt(frame: &[u8], bit: u32) -> Frame {
    let mut bytes = frame.to_vec();
    let body = bytes.get_mut(HEADER..).unwrap_or_default();
    let bit = usize::try_from(bit).unwrap_or(0);
    let at = (bit / 8).checked_rem(body.len());
    if let Some(byte) = at.and_then(|at| body.get_mut(at)) {
        *byte ^= 1 << (bit % 8);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rule: Rule, frames: u8) -> Vec<u8> {
        let mut impairments = Impairments::default();
        impairments.add(rule);
        (1..=frames)
            .flat_map(|n| impairments.pass(vec![n].into()).now)
            .map(|f| f[0])
            .collect()
    }

    fn rule(nth: u64, count: u64, action: Action) -> Rule {
        Rule::by_count(Kind::Any, nth, count, action)
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
        impairments.add(Rule::by_count(Kind::Roce, 1, 1, Action::Drop));
        assert_eq!(impairments.pass(vec![1].into()).now.len(), 1);
        impairments.add(Rule::by_count(Kind::Other, 1, 1, Action::Drop));
        let passed = impairments.pass(vec![1].into());
        assert_eq!((passed.now.len(), passed.action), (0, Some(Action::Drop)));
    }

    #[test]
    fn group_management_is_a_kind() {
        let report = crate::snoop::message::tests::igmp_frame(vec![0x16, 0, 0, 0, 239, 1, 2, 3]);
        for (frame, covered) in [(report, true), (vec![0; 60], false)] {
            assert_eq!(Kind::Membership.covers(&frame), covered);
            assert!(Kind::Other.covers(&frame) && !Kind::Roce.covers(&frame));
        }
        for name in ["any", "roce", "other", "membership"] {
            assert_eq!(Kind::from_name(name).map(Kind::name), Some(name));
        }
        assert_eq!(Kind::from_name("none"), None);
    }

    #[test]
    fn frames_of_another_kind_free_nothing() {
        let report = |last| {
            Frame::from(crate::snoop::message::tests::igmp_frame(vec![
                0x16, 0, 0, 0, 239, 1, 2, last,
            ]))
        };
        let mut impairments = Impairments::default();
        impairments.add(Rule::by_count(Kind::Membership, 1, 1, Action::Hold(1)));
        let mut pass = |frame: &Frame| impairments.pass(frame.clone()).now;
        let (first, second, other) = (report(1), report(2), Frame::from(vec![1]));
        assert!(pass(&first).is_empty());
        assert_eq!(pass(&other), [other.clone()]);
        assert_eq!(pass(&second), [second.clone(), first]);
    }

    #[test]
    fn clearing_lets_held_frames_go() {
        let mut impairments = Impairments::default();
        impairments.add(rule(1, 1, Action::Hold(9)));
        assert!(impairments.pass(vec![1].into()).now.is_empty());
        assert_eq!(impairments.clear().len(), 1);
    }

    #[test]
    fn rates_are_met_and_repeat_with_the_seed() {
        let by_rate = |rate, seed| {
            let mut impairments = Impairments::default();
            impairments.add(Rule {
                kind: Kind::Any,
                choice: Choice::Rate(rate),
                action: Action::Drop,
                seed,
            });
            let lost = |_| impairments.pass(vec![0].into()).now.is_empty();
            let lost = (0..10_000).map(lost).collect::<Vec<bool>>();
            let [status] = impairments.list()[..] else {
                panic!()
            };
            assert_eq!(status.seen, 10_000);
            assert_eq!(
                status.acted,
                lost.iter().map(|lost| u64::from(*lost)).sum::<u64>()
            );
            lost
        };
        let count = |lost: &[bool]| lost.iter().filter(|lost| **lost).count();
        let first = by_rate(100_000, 7);
        assert!((900..1100).contains(&count(&first)), "{}", count(&first));
        assert_eq!(first, by_rate(100_000, 7));
        assert_ne!(first, by_rate(100_000, 8));
        assert_eq!(count(&by_rate(0, 7)), 0);
        assert_eq!(count(&by_rate(MILLION, 7)), 10_000);
    }

    #[test]
    fn delays_are_handed_on() {
        let mut impairments = Impairments::default();
        let time = Duration::from_millis(5);
        impairments.add(rule(1, 1, Action::Delay(time)));
        let passed = impairments.pass(vec![1].into());
        assert_eq!((passed.now.len(), passed.later.len()), (0, 1));
        assert_eq!(passed.later[0].0, time);
    }

    #[test]
    fn corruption_changes_one_bit_behind_the_header() {
        let frame: Frame = vec![0; 60].into();
        for seed in 0..50 {
            let mut impairments = Impairments::default();
            impairments.add(Rule {
                seed,
                ..rule(1, 1, Action::Corrupt(None))
            });
            let out = &impairments.pass(frame.clone()).now[0];
            assert_eq!(out[..HEADER], [0; HEADER]);
            assert_eq!(out.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        }
        assert_eq!(corrupt(&frame, 17)[HEADER + 2], 2);
        assert_eq!(corrupt(&frame[..HEADER], 17).len(), HEADER);
    }
}
