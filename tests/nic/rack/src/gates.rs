// SPDX-License-Identifier: GPL-2.0
//! `GLINT_DYN_CTL`: the gate in front of each MSI-X vector.
//!
//! An event passes an enabled gate, which closes behind it; at a closed gate one event waits until
//! the driver opens it. The driver sets "clear pending" with every enable and does not look at its
//! queues again afterwards, so that bit must not lose an event: it is ignored. Moderation is not
//! modelled; an event passes at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The register of vector 0.
pub const GLINT_DYN_CTL: u32 = 0x16_0000;
/// Vectors that have a register.
const REGISTERS: u32 = 2048;

const INTENA: u32 = 1 << 0;
const CLEARPBA: u32 = 1 << 1;
const SWINT_TRIG: u32 = 1 << 2;
const INTENA_MSK: u32 = 1 << 31;

/// Sends the interrupt of a vector.
pub trait Raise: Send + Sync {
    /// Sends it now.
    fn raise(&self, vector: u16);
}

impl Raise for Arc<nic_vfio::msix::Msix> {
    fn raise(&self, vector: u16) {
        nic_vfio::msix::Msix::raise(self, vector);
    }
}

/// The vector whose gate is the register at `offset`.
pub fn vector_of(offset: u32) -> Option<u16> {
    let index = offset.checked_sub(GLINT_DYN_CTL)? / 4;
    (index < REGISTERS).then(|| u16::try_from(index).ok())?
}

#[derive(Clone, Copy, Default)]
struct Gate {
    enabled: bool,
    pending: bool,
    /// Stored bits other than enable.
    control: u32,
    /// Events to lose by order of a test.
    lose: u32,
}

/// What a gate looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The vector.
    pub vector: u16,
    /// Whether the next event passes.
    pub enabled: bool,
    /// Whether an event waits.
    pub pending: bool,
}

/// The gates of all vectors of a function.
pub struct Gates<R> {
    gates: Vec<Mutex<Gate>>,
    out: R,
}

impl<R: Raise> Gates<R> {
    /// Closed gates for `count` vectors in front of `out`.
    pub fn new(count: u16, out: R) -> Self {
        Self {
            gates: (0..count).map(|_| Mutex::default()).collect(),
            out,
        }
    }

    fn gate(&self, vector: u16) -> Option<MutexGuard<'_, Gate>> {
        let gate = self.gates.get(usize::from(vector))?;
        Some(gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An event for `vector`. The interrupt is sent under the gate's lock, so that none follows a
    /// reset that has returned.
    pub fn event(&self, vector: u16) {
        let Some(mut gate) = self.gate(vector) else {
            return;
        };
        if let Some(left) = gate.lose.checked_sub(1) {
            gate.lose = left;
        } else if gate.enabled {
            gate.enabled = false;
            self.out.raise(vector);
        } else {
            gate.pending = true;
        }
    }

    /// Reads the register of `vector`.
    pub fn read(&self, vector: u16) -> u32 {
        self.gate(vector)
            .map_or(0, |gate| gate.control | u32::from(gate.enabled))
    }

    /// Writes the register of `vector`; returns whether the write was a software trigger, which has
    /// already had its effect on the gate.
    pub fn write(&self, vector: u16, value: u32) -> bool {
        let Some(mut gate) = self.gate(vector) else {
            return false;
        };
        if value & INTENA_MSK == 0 {
            gate.enabled = value & INTENA != 0;
        }
        gate.control = value & !(INTENA | CLEARPBA | SWINT_TRIG | INTENA_MSK);
        let triggered = value & SWINT_TRIG != 0;
        gate.pending |= triggered;
        if gate.enabled && gate.pending {
            (gate.enabled, gate.pending) = (false, false);
            self.out.raise(vector);
        }
        triggered
    }

    /// Closes all gates and forgets what waits. A core reset announces its end with an interrupt
    /// on vector 0, whose gate stays as it is then.
    pub fn reset(&self, keep_first: bool) {
        let first = if keep_first { 1 } else { 0 };
        for gate in self.gates.iter().skip(first) {
            *gate.lock().unwrap_or_else(PoisonError::into_inner) = Gate::default();
        }
    }

    /// Loses the next `count` events of `vector`; `false` if there is no such vector.
    pub fn lose(&self, vector: u16, count: u32) -> bool {
        self.gate(vector)
            .map(|mut gate| gate.lose = count)
            .is_some()
    }

    /// The gates that are open or hold an event.
    pub fn status(&self) -> Vec<Status> {
        (0..u16::MAX)
            .map_while(|vector| self.gate(vector).map(|gate| (vector, *gate)))
            .map(|(vector, g)| Status {
                vector,
                enabled: g.enabled,
                pending: g.pending,
            })
            .filter(|status| status.enabled || status.pending)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Raise for &Count {
        fn raise(&self, _vector: u16) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    const ENABLE: u32 = INTENA | CLEARPBA;

    #[test]
    fn registers() {
        assert_eq!(vector_of(GLINT_DYN_CTL), Some(0));
        assert_eq!(vector_of(GLINT_DYN_CTL + 4 * 2047), Some(2047));
        assert_eq!(vector_of(GLINT_DYN_CTL + 4 * 2048), None);
        assert_eq!(vector_of(GLINT_DYN_CTL - 4), None);
    }

    /// Steps on one gate and the interrupts seen after each.
    #[test]
    fn one_event_waits_at_a_closed_gate() {
        enum Step {
            Event,
            Write(u32),
        }
        use Step::{Event, Write};
        let count = Count::default();
        let gates = Gates::new(1, &count);
        let steps = [
            (Event, 0),
            (Event, 0),
            (Write(ENABLE), 1),
            (Write(ENABLE), 1),
            (Event, 2),
            (Event, 2),
            (Write(INTENA_MSK | INTENA), 2),
            (Write(0), 2),
            (Write(ENABLE), 3),
            (Write(SWINT_TRIG), 3),
            (Write(ENABLE), 4),
            (Write(ENABLE | SWINT_TRIG), 5),
            (Write(ENABLE), 5),
            (Write(INTENA_MSK | SWINT_TRIG), 6),
        ];
        for (n, (step, expected)) in steps.into_iter().enumerate() {
            match step {
                Event => gates.event(0),
                Write(value) => assert_eq!(gates.write(0, value), value & SWINT_TRIG != 0),
            }
            assert_eq!(count.0.load(Ordering::Relaxed), expected, "step {n}");
        }
    }

    #[test]
    fn reset_and_lost_events() {
        let count = Count::default();
        let gates = Gates::new(2, &count);
        gates.write(0, ENABLE);
        gates.event(1);
        gates.reset(true);
        assert_eq!(
            gates.status(),
            [Status {
                vector: 0,
                enabled: true,
                pending: false
            }]
        );
        gates.reset(false);
        assert!(gates.status().is_empty());
        gates.write(0, ENABLE | 3 << 3);
        assert_eq!(gates.read(0), INTENA | 3 << 3);
        assert!(gates.lose(0, 1));
        gates.event(0);
        gates.event(0);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        gates.event(7);
        assert!(!gates.write(7, ENABLE) && !gates.lose(7, 1));
    }
}
