// SPDX-License-Identifier: GPL-2.0
//! Layout of send and receive WQEs, decoded from words alone.

use crate::aeq::code;
use crate::bits::{bit, bits, bytes, low8, size, Field};

/// A quantum of a work queue.
pub(crate) type Quantum = [u64; 4];
/// Bytes of a quantum.
pub(crate) const QUANTUM: u64 = 32;
/// Most quanta of a WQE; one never crosses a boundary of as many.
pub(crate) const MAX_QUANTA: u32 = 8;

/// Word 3, common to both queues.
const ADD_FRAGMENTS: Field = bits(41, 38);
const VALID: Field = bit(63);

/// Word 3 of a send WQE.
mod header {
    use super::{bit, bits, Field};
    pub(super) const AH: Field = bits(24, 0);
    pub(super) const OPCODE: Field = bits(37, 32);
    pub(super) const IMMEDIATE: Field = bit(47);
    pub(super) const INLINE_LEN: Field = bits(55, 48);
    pub(super) const INLINE: Field = bit(57);
    pub(super) const SIGNALED: Field = bit(62);
}

/// Word 2 of a datagram.
const QKEY: Field = bits(31, 0);
const DESTINATION_QP: Field = bits(55, 32);
/// Word 0 with the immediate flag.
const IMMEDIATE: Field = bits(31, 0);

/// The second word of a fragment.
const FRAGMENT_STAG: Field = bits(31, 0);
const FRAGMENT_LEN: Field = bits(62, 32);

/// Inline data in the first quantum, and most of it at all.
const INLINE_FIRST: u32 = 8;
const INLINE_NEXT: u32 = 31;
const MAX_INLINE: u32 = 101;

/// Send operations.
pub(crate) mod opcode {
    pub(crate) const SEND: u8 = 0x03;
    pub(crate) const SEND_SOLICITED: u8 = 0x05;
    pub(crate) const BIND_MW: u8 = 0x08;
    pub(crate) const FAST_REGISTER: u8 = 0x09;
    pub(crate) const LOCAL_INVALIDATE: u8 = 0x0A;
    pub(crate) const NOP: u8 = 0x0C;
}

/// The valid bit of a quantum's word 3.
pub(crate) fn is_valid(word: u64, polarity: bool) -> bool {
    VALID.is_set(word) == polarity
}

/// A piece of a registered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) to: u64,
    pub(crate) stag: u32,
    pub(crate) len: u32,
}

impl Fragment {
    fn from_words(to: u64, rest: u64) -> Self {
        Self {
            to,
            stag: FRAGMENT_STAG.get32(rest),
            len: FRAGMENT_LEN.get32(rest),
        }
    }
}

/// The header of a send WQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(u64);

impl Header {
    pub(crate) fn new(word: u64) -> Self {
        Self(word)
    }

    pub(crate) fn opcode(self) -> u8 {
        low8(header::OPCODE.get(self.0))
    }

    pub(crate) fn signaled(self) -> bool {
        header::SIGNALED.is_set(self.0)
    }

    /// Number of quanta, or the event code if no WQE can be so long.
    pub(crate) fn quanta(self) -> Result<u32, u16> {
        match self.opcode() {
            opcode::NOP | opcode::LOCAL_INVALIDATE | opcode::FAST_REGISTER | opcode::BIND_MW => {
                return Ok(1)
            }
            _ => {}
        }
        if header::INLINE.is_set(self.0) {
            let len = header::INLINE_LEN.get32(self.0);
            if len > MAX_INLINE {
                return Err(code::WQE_INVALID_PARAMETER);
            }
            return Ok(1 + len.saturating_sub(INLINE_FIRST).div_ceil(INLINE_NEXT));
        }
        match 1 + ADD_FRAGMENTS.get32(self.0).div_ceil(2) {
            n if n <= MAX_QUANTA => Ok(n),
            _ => Err(code::WQE_INVALID_FRAG_DATA),
        }
    }
}

/// What a datagram carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Inline(Vec<u8>),
    Fragments(Vec<Fragment>),
}

/// A SEND of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) solicited: bool,
    pub(crate) ah: u32,
    pub(crate) qkey: u32,
    pub(crate) destination_qp: u32,
    pub(crate) immediate: Option<u32>,
    pub(crate) payload: Payload,
}

impl Send {
    /// Decodes a WQE of the length that its header says. `polarity` is the valid bit expected in
    /// every quantum.
    ///
    /// # Errors
    ///
    /// The event code of what is wrong.
    pub(crate) fn decode(quanta: &[Quantum], polarity: bool) -> Result<Self, u16> {
        let (first, more) = quanta.split_first().ok_or(code::WQE_INVALID_PARAMETER)?;
        let [w0, w1, w2, w3] = *first;
        let head = Header(w3);
        let solicited = match head.opcode() {
            opcode::SEND => false,
            opcode::SEND_SOLICITED => true,
            _ => return Err(code::WQE_UNEXPECTED_OPCODE),
        };
        if more.iter().any(|q| !is_valid(q[3], polarity)) {
            return Err(code::WQE_INVALID_FRAG_DATA);
        }
        let has_immediate = header::IMMEDIATE.is_set(w3);
        let payload = if header::INLINE.is_set(w3) {
            let len = header::INLINE_LEN.get32(w3);
            Payload::Inline(inline(w1, more, size(len))?)
        } else {
            let added = size(ADD_FRAGMENTS.get32(w3));
            let slots = fragments(more);
            if added > slots.len() {
                return Err(code::WQE_INVALID_FRAG_DATA);
            }
            // Immediate data takes the first slot, whose second word is then stale.
            let own = (!has_immediate).then(|| Fragment::from_words(w0, w1));
            Payload::Fragments(
                own.into_iter()
                    .chain(slots.into_iter().take(added))
                    .collect(),
            )
        };
        Ok(Self {
            solicited,
            ah: header::AH.get32(w3),
            qkey: QKEY.get32(w2),
            destination_qp: DESTINATION_QP.get32(w2),
            immediate: has_immediate.then(|| IMMEDIATE.get32(w0)),
            payload,
        })
    }
}

/// The fragments of further quanta, two in each.
fn fragments(quanta: &[Quantum]) -> Vec<Fragment> {
    quanta
        .iter()
        .flat_map(|&[a, b, c, d]| [Fragment::from_words(a, b), Fragment::from_words(c, d)])
        .collect()
}

/// Inline data: 8 bytes in the first quantum, 31 in each further one.
fn inline(w1: u64, more: &[Quantum], len: usize) -> Result<Vec<u8>, u16> {
    let mut data = w1.to_le_bytes().to_vec();
    for quantum in more {
        let raw = bytes(quantum);
        data.extend(raw.iter().take(size(INLINE_NEXT)));
    }
    if len > data.len() {
        return Err(code::WQE_INVALID_PARAMETER);
    }
    data.truncate(len);
    Ok(data)
}

/// The fragments of a receive WQE that fills its slot.
///
/// # Errors
///
/// The event code if it lists more fragments than its size holds.
pub(crate) fn receive_fragments(quanta: &[Quantum]) -> Result<Vec<Fragment>, u16> {
    let (first, more) = quanta.split_first().ok_or(code::WQE_INVALID_PARAMETER)?;
    let [w0, w1, _, w3] = *first;
    let added = size(ADD_FRAGMENTS.get32(w3));
    let slots = fragments(more);
    if added > slots.len() {
        return Err(code::WQE_INVALID_FRAG_DATA);
    }
    Ok(std::iter::once(Fragment::from_words(w0, w1))
        .chain(slots.into_iter().take(added))
        .collect())
}
