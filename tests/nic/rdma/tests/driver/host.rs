// SPDX-License-Identifier: GPL-2.0
//! A stand-in for the card: sparse guest memory, and recorders of interrupts, frames and log lines.

use nic_bus::{Dma, DmaError, Host, Interrupts, Log, Wire};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Guest memory: everything below this address exists.
pub const MEMORY: u64 = 1 << 30;
const PAGE: u64 = 4096;

/// What the device did to its surroundings.
#[derive(Default)]
pub struct Surroundings {
    pages: Mutex<HashMap<u64, Vec<u8>>>,
    /// Vectors raised, in order.
    pub events: Mutex<Vec<u16>>,
    /// Bits of the other interrupt cause.
    pub causes: Mutex<u32>,
    /// Frames sent, in order.
    pub frames: Mutex<Vec<Vec<u8>>>,
    /// Log lines.
    pub lines: Mutex<Vec<String>>,
    /// Station address.
    pub mac: [u8; 6],
}

impl Surroundings {
    pub fn new(mac: [u8; 6]) -> Arc<Self> {
        Arc::new(Self {
            mac,
            ..Self::default()
        })
    }

    pub fn host(self: &Arc<Self>) -> Host {
        Host {
            dma: self.clone(),
            interrupts: self.clone(),
            wire: self.clone(),
            log: self.clone(),
            pf_id: 0,
        }
    }

    fn check(addr: u64, len: usize) -> Result<(), DmaError> {
        let fits = addr
            .checked_add(len as u64)
            .is_some_and(|end| end <= MEMORY);
        if fits {
            Ok(())
        } else {
            Err(DmaError { addr, len })
        }
    }
}

impl Dma for Surroundings {
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), DmaError> {
        Self::check(addr, buf.len())?;
        let pages = self.pages.lock().unwrap();
        for (n, byte) in buf.iter_mut().enumerate() {
            let at = addr + n as u64;
            *byte = pages
                .get(&(at / PAGE))
                .map_or(0, |p| p[(at % PAGE) as usize]);
        }
        Ok(())
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), DmaError> {
        Self::check(addr, data.len())?;
        let mut pages = self.pages.lock().unwrap();
        for (n, byte) in data.iter().enumerate() {
            let at = addr + n as u64;
            let page = pages
                .entry(at / PAGE)
                .or_insert_with(|| vec![0; PAGE as usize]);
            page[(at % PAGE) as usize] = *byte;
        }
        Ok(())
    }

    fn read_u32(&self, addr: u64) -> Result<u32, DmaError> {
        if addr % 4 != 0 {
            return Err(DmaError { addr, len: 4 });
        }
        let mut buf = [0; 4];
        self.read(addr, &mut buf)?;
        Ok(u32::from_le_bytes(buf))
    }

    fn read_u64(&self, addr: u64) -> Result<u64, DmaError> {
        if addr % 8 != 0 {
            return Err(DmaError { addr, len: 8 });
        }
        let mut buf = [0; 8];
        self.read(addr, &mut buf)?;
        Ok(u64::from_le_bytes(buf))
    }

    fn write_u32(&self, addr: u64, value: u32) -> Result<(), DmaError> {
        if addr % 4 != 0 {
            return Err(DmaError { addr, len: 4 });
        }
        self.write(addr, &value.to_le_bytes())
    }

    fn write_u64(&self, addr: u64, value: u64) -> Result<(), DmaError> {
        if addr % 8 != 0 {
            return Err(DmaError { addr, len: 8 });
        }
        self.write(addr, &value.to_le_bytes())
    }
}

impl Interrupts for Surroundings {
    fn event(&self, vector: u16) {
        self.events.lock().unwrap().push(vector);
    }

    fn other_cause(&self, bits: u32) {
        *self.causes.lock().unwrap() |= bits;
    }
}

impl Wire for Surroundings {
    fn send(&self, frame: Vec<u8>) {
        self.frames.lock().unwrap().push(frame);
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn link_up(&self) -> bool {
        true
    }
}

impl Log for Surroundings {
    fn line(&self, text: fmt::Arguments<'_>) {
        self.lines.lock().unwrap().push(text.to_string());
    }
}
