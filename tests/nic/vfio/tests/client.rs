// SPDX-License-Identifier: GPL-2.0
//! The server against a client that speaks the protocol over a socket, well and badly.

use nic_bus::Dma;
use nic_vfio::config::Identity;
use nic_vfio::memory::GuestMemory;
use nic_vfio::msix::Msix;
use nic_vfio::server::{Function, BAR0_SIZE};
use nic_vfio::{Backend, ResetCause};
use proptest::prelude::*;
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::fmt::Arguments;
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

#[derive(Default)]
struct Toy {
    writes: Mutex<Vec<(u64, Vec<u8>)>>,
    resets: Mutex<Vec<ResetCause>>,
    lines: Mutex<Vec<String>>,
}

impl Backend for Toy {
    fn bar_read(&self, offset: u64, data: &mut [u8]) {
        assert!(offset + data.len() as u64 <= BAR0_SIZE);
        data.fill(0x5a);
    }
    fn bar_write(&self, offset: u64, data: &[u8]) {
        assert!(offset + data.len() as u64 <= BAR0_SIZE);
        self.writes.lock().unwrap().push((offset, data.to_vec()));
    }
    fn reset(&self, cause: ResetCause) {
        self.resets.lock().unwrap().push(cause);
    }
    fn log(&self, text: Arguments<'_>) {
        self.lines.lock().unwrap().push(text.to_string());
    }
}

struct Client {
    stream: Option<UnixStream>,
    server: Option<JoinHandle<()>>,
    toy: Arc<Toy>,
    memory: Arc<GuestMemory>,
    msix: Arc<Msix>,
    id: u16,
}

impl Client {
    fn new() -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (toy, memory) = (Arc::new(Toy::default()), Arc::new(GuestMemory::new()));
        let msix = Arc::new(Msix::new(8));
        let identity = Identity {
            serial: 1,
            vectors: 8,
        };
        let mut function = Function::new(identity, memory.clone(), msix.clone(), toy.clone());
        let server = Some(std::thread::spawn(move || function.connection(theirs)));
        Self {
            stream: Some(ours),
            server,
            toy,
            memory,
            msix,
            id: 0,
        }
    }

    fn stream(&mut self) -> &mut UnixStream {
        self.stream.as_mut().unwrap()
    }

    fn send(&mut self, command: u16, flags: u32, payload: &[u8], file: Option<&File>) {
        self.id += 1;
        let mut m = Vec::new();
        m.extend_from_slice(&self.id.to_ne_bytes());
        m.extend_from_slice(&command.to_ne_bytes());
        m.extend_from_slice(&(16 + payload.len() as u32).to_ne_bytes());
        m.extend_from_slice(&flags.to_ne_bytes());
        m.extend_from_slice(&[0; 4]);
        m.extend_from_slice(payload);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<_> = file.iter().map(|f| f.as_fd()).collect();
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        let iov = [IoSlice::new(&m)];
        assert_eq!(
            sendmsg(self.stream(), &iov, &mut control, SendFlags::empty()).unwrap(),
            m.len()
        );
    }

    /// The payload of the next reply, or its errno.
    fn reply(&mut self) -> Result<Vec<u8>, u32> {
        let mut head = [0; 16];
        self.stream().read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        assert_eq!(u16::from_ne_bytes([head[0], head[1]]), self.id);
        let mut payload = vec![0; word(4) as usize - 16];
        self.stream().read_exact(&mut payload).unwrap();
        if word(8) & 0x20 != 0 {
            Err(word(12))
        } else {
            Ok(payload)
        }
    }

    fn call(&mut self, command: u16, payload: &[u8]) -> Result<Vec<u8>, u32> {
        self.send(command, 0, payload, None);
        self.reply()
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<Vec<u8>, u32> {
        let payload = [&access(region, offset, data.len() as u32), data].concat();
        self.call(10, &payload)
    }

    fn hang_up(mut self) -> Arc<Toy> {
        self.stream = None;
        self.server.take().unwrap().join().unwrap();
        self.toy.clone()
    }
}

fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
    [
        &offset.to_ne_bytes()[..],
        &region.to_ne_bytes(),
        &count.to_ne_bytes(),
    ]
    .concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

fn map(address: u64, size: u64) -> Vec<u8> {
    let mut payload = words(&[32, 3]);
    for field in [0, address, size] {
        payload.extend_from_slice(&field.to_ne_bytes());
    }
    payload
}

#[test]
fn a_client_from_start_to_end() {
    let mut c = Client::new();
    let proposal = b"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8}}\0";
    let version = c.call(1, proposal).unwrap();
    assert_eq!(version[..4], [0; 4]);
    let text = std::str::from_utf8(&version[4..version.len() - 1]).unwrap();
    assert!(text.contains("\"max_msg_fds\":8"), "{text}");
    assert_eq!(c.call(4, &[]).unwrap(), words(&[16, 3, 9, 5]));
    assert_eq!(
        c.call(5, &words(&[32, 0, 0, 0, 0, 0, 0, 0])).unwrap()[..16],
        words(&[32, 3, 0, 0])
    );
    assert_eq!(c.call(5, &words(&[32, 0, 9])), Err(22));
    assert_eq!(
        c.call(7, &words(&[16, 0, 2, 0])).unwrap(),
        words(&[16, 1, 2, 8])
    );

    let file = tempfile::tempfile().unwrap();
    file.set_len(0x2000).unwrap();
    c.send(2, 0, &map(0x10000, 0x2000), Some(&file));
    assert_eq!(c.reply(), Ok(vec![]));
    assert!(c.memory.read_u32(0x10000).is_err(), "no bus mastering yet");
    c.region_write(7, 4, &[6, 0]).unwrap();
    c.memory.write_u32(0x10004, 0x1234_5678).unwrap();

    let (mut event, other) = UnixStream::pair().unwrap();
    c.send(
        8,
        0,
        &words(&[20, 0x24, 2, 5, 1]),
        Some(&File::from(std::os::fd::OwnedFd::from(other))),
    );
    assert_eq!(c.reply(), Ok(vec![]));
    c.msix.raise(5);
    let mut one = [0; 8];
    event.read_exact(&mut one).unwrap();
    assert_eq!(u64::from_ne_bytes(one), 1);

    assert_eq!(c.call(9, &access(0, 0x10, 4)).unwrap()[16..], [0x5a; 4]);
    assert_eq!(
        c.call(9, &access(7, 0, 4)).unwrap()[16..],
        [0x86, 0x80, 0x92, 0x15]
    );
    // A posted write gets no reply: the next one is the reset's.
    let write = [access(0, 0x20, 4), vec![1, 2, 3, 4]].concat();
    c.send(10, 0x10, &write, None);
    c.call(13, &[]).unwrap();
    assert!(
        c.memory.read_u32(0x10004).is_err(),
        "reset takes bus mastering away"
    );
    c.region_write(7, 4, &[6, 0]).unwrap();
    assert_eq!(
        c.memory.read_u32(0x10004).unwrap(),
        0x1234_5678,
        "memory stays mapped"
    );
    c.region_write(7, 0xa9, &[0x80]).unwrap();
    let memory = c.memory.clone();
    let toy = c.hang_up();
    assert!(memory.read_u32(0x10004).is_err());
    assert_eq!(*toy.writes.lock().unwrap(), [(0x20, vec![1, 2, 3, 4])]);
    let causes = [
        ResetCause::Machine,
        ResetCause::FunctionLevel,
        ResetCause::Disconnect,
    ];
    assert_eq!(*toy.resets.lock().unwrap(), causes);
    assert_eq!(
        *toy.lines.lock().unwrap(),
        ["vfio-user: command 5 refused: Invalid argument (os error 22)"]
    );
}

#[test]
fn memory_without_files_is_reported() {
    let mut c = Client::new();
    c.call(2, &map(0, 0x1000)).unwrap();
    c.region_write(7, 4, &[6, 0]).unwrap();
    let toy = c.hang_up();
    assert!(toy.lines.lock().unwrap()[0].contains("share=on"));
}

#[test]
fn accesses_past_the_end_are_refused() {
    let mut c = Client::new();
    for (region, offset, count) in [
        (0, BAR0_SIZE - 3, 4),
        (0, u64::MAX, 4),
        (3, 0xfffd, 4),
        (7, 0xffd, 4),
        (1, 0, 4),
        (8, 0, 1),
        (0, 0, u32::MAX),
    ] {
        assert_eq!(
            c.call(9, &access(region, offset, count)),
            Err(22),
            "{region} {offset:#x}"
        );
    }
    assert!(c.region_write(0, BAR0_SIZE - 4, &[0; 5]).is_err());
    assert!(c.region_write(0, BAR0_SIZE - 4, &[0; 4]).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_stream_of_messages_is_survived(
        messages in prop::collection::vec((0u16..16, any::<bool>(), prop::collection::vec(prop_oneof![any::<u32>(), 0u32..64], 0..10)), 0..20),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut c = Client::new();
        let file = tempfile::tempfile().unwrap();
        file.set_len(0x4000).unwrap();
        for (command, with_fd, payload) in messages {
            c.send(command, 0x10, &words(&payload), with_fd.then_some(&file));
        }
        // The server may have hung up already, which is an answer too.
        let _ = c.stream().write_all(&tail);
        let toy = c.hang_up();
        let last = toy.resets.lock().unwrap().last().copied();
        prop_assert_eq!(last, Some(ResetCause::Disconnect));
    }
}
