// SPDX-License-Identifier: GPL-2.0
//! A port for QEMU's `-netdev stream`: a UNIX socket that carries each frame behind its length in
//! four bytes, big-endian. One connection at a time; a new one takes the place of the old.

use crate::frame::LONGEST;
use crate::lock;
use crate::port::{Port, Receiver};
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The guest's end of the port.
#[derive(Default)]
struct Guest {
    stream: Mutex<Option<UnixStream>>,
}

impl Guest {
    fn replace(&self, stream: Option<UnixStream>) {
        if let Some(old) = std::mem::replace(&mut *lock(&self.stream), stream) {
            let _ = old.shutdown(Shutdown::Both);
        }
    }

    fn write(mut stream: &UnixStream, frame: &[u8]) -> io::Result<()> {
        let len = u32::try_from(frame.len()).map_err(io::Error::other)?;
        let message = [&len.to_be_bytes(), frame].concat();
        stream.write_all(&message)
    }
}

impl Receiver for Guest {
    fn receive(&self, frame: &[u8]) {
        let stream = lock(&self.stream)
            .as_ref()
            .and_then(|stream| stream.try_clone().ok());
        // A failed write means that the guest has gone; its reader notices too.
        if stream.is_some_and(|stream| Self::write(&stream, frame).is_err()) {
            self.replace(None);
        }
    }
}

/// Serves `listener` as the device behind `port`, on threads of its own.
///
/// # Errors
///
/// When no thread can be started.
pub fn serve(listener: UnixListener, port: Arc<Port>) -> io::Result<()> {
    let guest = Arc::new(Guest::default());
    port.connect(guest.clone())?;
    let name = format!("{} tx", port.name());
    let accept = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            guest.replace(stream.try_clone().ok());
            let port = port.clone();
            thread::spawn(move || read_frames(stream, &port));
        }
    };
    thread::Builder::new().name(name).spawn(accept)?;
    Ok(())
}

/// Reads frames until the stream ends or stops making sense.
fn read_frames(stream: UnixStream, port: &Port) {
    let mut reader = BufReader::with_capacity(LONGEST, stream);
    while let Ok(Some(frame)) = read_frame(&mut reader) {
        port.send(frame);
    }
    let _ = reader.get_ref().shutdown(Shutdown::Both);
}

/// The next frame; `None` for a length that no frame has.
fn read_frame(reader: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    reader.read_exact(&mut len)?;
    let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
    if len == 0 || len > LONGEST {
        return Ok(None);
    }
    let mut frame = vec![0; len];
    reader.read_exact(&mut frame)?;
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing() {
        let mut bytes = &[0, 0, 0, 2, 7, 8, 0, 0, 0, 0][..];
        assert_eq!(read_frame(&mut bytes).unwrap(), Some(vec![7, 8]));
        assert_eq!(read_frame(&mut bytes).unwrap(), None);
        assert_eq!(read_frame(&mut &[0xff; 8][..]).unwrap(), None);
        assert!(read_frame(&mut &[0, 0, 0, 9, 1][..]).is_err());
    }
}
