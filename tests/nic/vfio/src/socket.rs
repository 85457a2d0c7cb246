// SPDX-License-Identifier: GPL-2.0
//! Messages with file descriptors over a UNIX stream socket.
//!
//! Descriptors travel with the first byte of the message they belong to, so the header is received
//! by itself: what arrives with it belongs to this message and to no other.

use crate::message::{Header, HEADER, MAX_FDS};
use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// One message as it came.
pub struct Incoming {
    /// The header.
    pub header: Header,
    /// What follows it.
    pub payload: Vec<u8>,
    /// Descriptors that came along.
    pub fds: Vec<OwnedFd>,
}

/// One end of a connection.
pub struct Socket(UnixStream);

impl Socket {
    /// Takes over a connected stream.
    pub fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    /// Waits for the next message; `None` when the peer has closed between two messages.
    pub fn receive(&mut self) -> io::Result<Option<Incoming>> {
        let mut fds = Vec::new();
        let mut head = [0; HEADER];
        let mut have = 0;
        while let Some(rest) = head.get_mut(have..).filter(|rest| !rest.is_empty()) {
            match self.receive_some(rest, &mut fds)? {
                0 if have == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => have += n,
            }
        }
        let header = Header::decode(&head);
        let Some(len) = header.payload_len() else {
            let text = format!("message of {} bytes", header.size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        let mut payload = vec![0; len];
        self.0.read_exact(&mut payload)?;
        Ok(Some(Incoming {
            header,
            payload,
            fds,
        }))
    }

    fn receive_some(&mut self, into: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut iov = [IoSliceMut::new(into)];
            match recvmsg(&self.0, &mut iov, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => continue,
                other => break other?,
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) || fds.len() > MAX_FDS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "too many file descriptors",
            ));
        }
        Ok(received.bytes)
    }

    /// Sends a finished message.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MAX_MESSAGE;
    use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    fn bytes(command: u16, size: u32) -> Vec<u8> {
        let mut head = Vec::new();
        head.extend_from_slice(&1u16.to_ne_bytes());
        head.extend_from_slice(&command.to_ne_bytes());
        head.extend_from_slice(&size.to_ne_bytes());
        head.extend_from_slice(&[0; 8]);
        head
    }

    #[test]
    fn descriptors_stay_with_their_message() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        client.write_all(&bytes(4, 16)).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [file.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(
            &client,
            &[IoSlice::new(&bytes(2, 16))],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
        client.write_all(&bytes(13, 18)).unwrap();
        client.write_all(&[5, 6]).unwrap();
        drop(client);
        let mut socket = Socket::new(server);
        let mut seen = Vec::new();
        while let Some(m) = socket.receive().unwrap() {
            seen.push((m.header.command, m.payload, m.fds.len()));
        }
        assert_eq!(seen, [(4, vec![], 0), (2, vec![], 1), (13, vec![5, 6], 0)]);
    }

    #[test]
    fn broken_streams_are_errors() {
        let cases: [Vec<u8>; 4] = [
            bytes(4, 15),
            bytes(4, MAX_MESSAGE as u32 + 1),
            bytes(4, 16)[..9].to_vec(),
            bytes(4, 17),
        ];
        for case in cases {
            let (mut client, server) = UnixStream::pair().unwrap();
            client.write_all(&case).unwrap();
            drop(client);
            assert!(Socket::new(server).receive().is_err());
        }
    }
}
