// SPDX-License-Identifier: GPL-2.0
//! Stand-ins for the card: guest memory as bytes, interrupts and frames as lists.

use nic_bus::{Card, Dma, DmaError, Host, Interrupts, Log, Reset, Wire};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Guest memory from address 0.
pub struct Memory(Mutex<Vec<u8>>);

impl Memory {
    pub fn new(len: usize) -> Self {
        Self(Mutex::new(vec![0; len]))
    }

    fn range(addr: u64, len: usize, size: usize) -> Result<std::ops::Range<usize>, DmaError> {
        let error = DmaError { addr, len };
        let start = usize::try_from(addr).map_err(|_| error)?;
        let end = start.checked_add(len).ok_or(error)?;
        if end > size {
            return Err(error);
        }
        Ok(start..end)
    }

    fn aligned(addr: u64, len: usize) -> Result<(), DmaError> {
        if addr % len as u64 != 0 {
            return Err(DmaError { addr, len });
        }
        Ok(())
    }
}

impl Dma for Memory {
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), DmaError> {
        let memory = self.0.lock();
        buf.copy_from_slice(&memory[Self::range(addr, buf.len(), memory.len())?]);
        Ok(())
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), DmaError> {
        let mut memory = self.0.lock();
        let range = Self::range(addr, data.len(), memory.len())?;
        memory[range].copy_from_slice(data);
        Ok(())
    }

    fn read_u32(&self, addr: u64) -> Result<u32, DmaError> {
        let mut bytes = [0; 4];
        Self::aligned(addr, 4)?;
        self.read(addr, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn read_u64(&self, addr: u64) -> Result<u64, DmaError> {
        let mut bytes = [0; 8];
        Self::aligned(addr, 8)?;
        self.read(addr, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write_u32(&self, addr: u64, value: u32) -> Result<(), DmaError> {
        Self::aligned(addr, 4)?;
        self.write(addr, &value.to_le_bytes())
    }

    fn write_u64(&self, addr: u64, value: u64) -> Result<(), DmaError> {
        Self::aligned(addr, 8)?;
        self.write(addr, &value.to_le_bytes())
    }
}

/// Everything the LAN half does to its surroundings.
#[derive(Default)]
pub struct Surroundings {
    pub events: Mutex<Vec<u16>>,
    pub sent: Mutex<Vec<Vec<u8>>>,
    pub lines: Mutex<Vec<String>>,
    pub link_down: AtomicBool,
    pub calls: Mutex<Vec<Call>>,
}

/// A call of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Reset(Reset),
    PeFilter(u16, bool),
    QueueSet(u16, u32, bool),
}

impl Interrupts for Surroundings {
    fn event(&self, vector: u16) {
        self.events.lock().push(vector);
    }

    fn other_cause(&self, _bits: u32) {}
}

impl Wire for Surroundings {
    fn send(&self, frame: Vec<u8>) {
        self.sent.lock().push(frame);
    }

    fn mac(&self) -> [u8; 6] {
        [2, 0xe8, 0x10, 0, 0, 1]
    }

    fn link_up(&self) -> bool {
        !self.link_down.load(Ordering::Relaxed)
    }
}

impl Log for Surroundings {
    fn line(&self, text: fmt::Arguments<'_>) {
        self.lines.lock().push(text.to_string());
    }
}

impl Card for Surroundings {
    fn reset(&self, kind: Reset) {
        self.calls.lock().push(Call::Reset(kind));
    }

    fn set_pe_filter(&self, vsi: u16, enabled: bool) {
        self.calls.lock().push(Call::PeFilter(vsi, enabled));
    }

    fn queue_set(&self, handle: u16, teid: u32, present: bool) {
        self.calls
            .lock()
            .push(Call::QueueSet(handle, teid, present));
    }
}

/// A host that lends `memory` and records in `surroundings`.
pub fn host(memory: &Arc<Memory>, surroundings: &Arc<Surroundings>) -> Host {
    Host {
        dma: memory.clone(),
        interrupts: surroundings.clone(),
        wire: surroundings.clone(),
        log: surroundings.clone(),
        pf_id: 0,
    }
}
