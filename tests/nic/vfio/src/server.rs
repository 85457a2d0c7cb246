// SPDX-License-Identifier: GPL-2.0
//! Answers the client of one function.
//!
//! [`Function`] is what stays while clients come and go; [`Function::run`] accepts one client after
//! the other on its socket. A protocol error ends the connection, never the server.

use crate::config::{Config, Effect, Identity};
use crate::memory::GuestMemory;
use crate::message::{self, Header, Place, Reply, Request};
use crate::msix::Msix;
use crate::socket::{Incoming, Socket};
use crate::{Backend, ResetCause};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

/// Bytes of BAR 0, the device registers.
pub const BAR0_SIZE: u64 = 16 << 20;
/// Bytes of BAR 3, the MSI-X table and pending bits.
pub const BAR3_SIZE: u64 = 64 << 10;

const REGION_READ_WRITE: u32 = 1 | 2;
const DEVICE_RESETS: u32 = 1 << 0;
const DEVICE_PCI: u32 = 1 << 1;
const IRQ_EVENTFD: u32 = 1 << 0;
const PAGE_SIZE: u64 = 4096;

/// One PCI function.
pub struct Function {
    config: Config,
    memory: Arc<GuestMemory>,
    msix: Arc<Msix>,
    backend: Arc<dyn Backend>,
}

impl Function {
    /// A function without a client.
    pub fn new(
        identity: Identity,
        memory: Arc<GuestMemory>,
        msix: Arc<Msix>,
        backend: Arc<dyn Backend>,
    ) -> Self {
        Self {
            config: Config::new(identity),
            memory,
            msix,
            backend,
        }
    }

    /// Serves clients of `listener`, one at a time, until accepting fails.
    pub fn run(mut self, listener: &UnixListener) -> io::Error {
        loop {
            match listener.accept() {
                Ok((stream, _)) => self.connection(stream),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e,
            }
        }
    }

    /// Serves one client until it goes away, and forgets it.
    pub fn connection(&mut self, stream: UnixStream) {
        if let Err(e) = self.serve(Socket::new(stream)) {
            self.backend
                .log(format_args!("vfio-user: connection lost: {e}"));
        }
        self.memory.set_bus_master(false);
        self.backend.reset(ResetCause::Disconnect);
        self.config.reset();
        self.msix.clear();
        self.memory.clear();
    }

    fn serve(&mut self, mut socket: Socket) -> io::Result<()> {
        while let Some(Incoming {
            header,
            payload,
            fds,
        }) = socket.receive()?
        {
            // This server sends no commands, so no reply is for it.
            if !header.is_command() {
                continue;
            }
            let reply = match Request::decode(&header, &payload) {
                Ok(request) => self.execute(&header, request, fds),
                Err(e) => {
                    self.backend.log(format_args!("vfio-user: {e}"));
                    Err(Errno::INVAL)
                }
            };
            let reply = reply.unwrap_or_else(|errno| {
                let command = header.command;
                self.backend.log(format_args!(
                    "vfio-user: command {command} refused: {errno}"
                ));
                Reply::error(&header, errno.raw_os_error())
            });
            if header.wants_reply() {
                socket.send(&reply.finish())?;
            }
        }
        Ok(())
    }

    fn execute(
        &mut self,
        header: &Header,
        request: Request<'_>,
        fds: Vec<OwnedFd>,
    ) -> Result<Reply, Errno> {
        let reply = Reply::to(header);
        Ok(match request {
            Request::Version {
                major,
                minor,
                capabilities,
            } => {
                if major != 0 {
                    return Err(Errno::NOTSUP);
                }
                let limits = capabilities_for(capabilities);
                reply
                    .u16(0)
                    .u16(minor.min(1))
                    .bytes(limits.as_bytes())
                    .bytes(&[0])
            }
            Request::DmaMap {
                flags,
                offset,
                address,
                size,
            } => {
                self.memory.map(flags, fds.first(), offset, address, size)?;
                reply
            }
            Request::DmaUnmap {
                flags,
                address,
                size,
            } => {
                self.memory.unmap(flags, address, size)?;
                reply.u32(24).u32(flags).u64(address).u64(size)
            }
            Request::DeviceInfo => reply
                .u32(16)
                .u32(DEVICE_RESETS | DEVICE_PCI)
                .u32(message::REGIONS)
                .u32(message::INTERRUPTS),
            Request::RegionInfo { index } => {
                let size = region_size(index).ok_or(Errno::INVAL)?;
                let flags = if size > 0 { REGION_READ_WRITE } else { 0 };
                reply.u32(32).u32(flags).u32(index).u32(0).u64(size).u64(0)
            }
            Request::IrqInfo { index } => {
                let count = match index {
                    message::INTERRUPT_MSIX => self.msix.count().try_into().unwrap_or(0),
                    // The error interrupt is offered, or QEMU warns about its absence.
                    3 | 4 => 1,
                    0 | 1 => 0,
                    _ => return Err(Errno::INVAL),
                };
                let flags = if count > 0 { IRQ_EVENTFD } else { 0 };
                reply.u32(16).u32(flags).u32(index).u32(count)
            }
            Request::SetIrqs {
                flags,
                index,
                start,
                count,
            } => {
                if index == message::INTERRUPT_MSIX {
                    self.msix.set(flags, start, count, fds)?;
                }
                reply
            }
            Request::RegionRead { place, count } => {
                let size = u32::try_from(count).map_err(|_| Errno::INVAL)?;
                let reply = reply.u64(place.offset).u32(place.region).u32(size);
                self.region_read(place, count, reply)?
            }
            Request::RegionWrite { place, data } => {
                let size = u32::try_from(data.len()).map_err(|_| Errno::INVAL)?;
                self.region_write(place, data)?;
                reply.u64(place.offset).u32(place.region).u32(size)
            }
            Request::Reset => {
                self.reset(ResetCause::Machine);
                reply
            }
        })
    }

    /// The client keeps its memory mappings and event descriptors over a reset.
    fn reset(&mut self, cause: ResetCause) {
        self.memory.set_bus_master(false);
        self.backend.reset(cause);
        self.config.reset();
    }

    fn region_read(&self, place: Place, count: usize, reply: Reply) -> Result<Reply, Errno> {
        Ok(match place.region {
            0 => {
                inside(place.offset, count, BAR0_SIZE)?;
                reply.filled(count, |data| self.backend.bar_read(place.offset, data))
            }
            // The table is the client's and pending bits are never set here.
            3 => {
                inside(place.offset, count, BAR3_SIZE)?;
                reply.filled(count, |_| ())
            }
            message::REGION_CONFIG => {
                reply.bytes(self.config.read(place.offset, count).ok_or(Errno::INVAL)?)
            }
            _ => return Err(Errno::INVAL),
        })
    }

    fn region_write(&mut self, place: Place, data: &[u8]) -> Result<(), Errno> {
        match place.region {
            0 => {
                inside(place.offset, data.len(), BAR0_SIZE)?;
                self.backend.bar_write(place.offset, data);
            }
            3 => inside(place.offset, data.len(), BAR3_SIZE)?,
            message::REGION_CONFIG => {
                match self.config.write(place.offset, data).ok_or(Errno::INVAL)? {
                    Some(Effect::FunctionReset) => self.reset(ResetCause::FunctionLevel),
                    Some(Effect::BusMaster(enabled)) => self.bus_master(enabled),
                    None => {}
                }
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    fn bus_master(&self, enabled: bool) {
        if enabled && self.memory.is_unreachable() {
            self.backend.log(format_args!(
                "vfio-user: guest memory came without files, DMA cannot work: \
                 give QEMU a memory-backend-memfd with share=on"
            ));
        }
        self.memory.set_bus_master(enabled);
    }
}

fn region_size(index: u32) -> Option<u64> {
    match index {
        0 => Some(BAR0_SIZE),
        3 => Some(BAR3_SIZE),
        message::REGION_CONFIG => u64::try_from(crate::config::SIZE).ok(),
        other => (other < message::REGIONS).then_some(0),
    }
}

fn inside(offset: u64, count: usize, size: u64) -> Result<(), Errno> {
    let end = u64::try_from(count)
        .ok()
        .and_then(|count| offset.checked_add(count));
    end.filter(|end| *end <= size)
        .map(|_| ())
        .ok_or(Errno::INVAL)
}

/// The limits of this server as JSON. The client refuses a reply longer than its own proposal, so
/// only what differs from the defaults is said.
fn capabilities_for(proposal: &[u8]) -> String {
    let text = proposal.strip_suffix(b"\0").unwrap_or(proposal);
    let proposal: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    let fds = proposal
        .pointer("/capabilities/max_msg_fds")
        .and_then(|fds| fds.as_u64());
    let most = u64::try_from(message::MAX_FDS).unwrap_or(1);
    serde_json::json!({"capabilities": {
        "max_msg_fds": fds.unwrap_or(1).min(most),
        "max_data_xfer_size": message::MAX_TRANSFER,
        "pgsizes": PAGE_SIZE,
        "max_dma_maps": 65535,
    }})
    .to_string()
}
