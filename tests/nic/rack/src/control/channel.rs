// SPDX-License-Identifier: GPL-2.0
//! A control socket: lines in, lines out, any number of connections.

use super::{request, Control, Target};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;

/// The longest line: a large frame in hexadecimal, and its command.
const LONGEST: u64 = 256 << 10;

/// Serves `listener` on threads of its own; commands are for `target` if they do not say.
///
/// # Errors
///
/// When no thread can be started.
pub fn serve(listener: UnixListener, control: Arc<Control>, target: Target) -> io::Result<()> {
    let accept = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let control = control.clone();
            thread::spawn(move || connection(&stream, &control, target));
        }
    };
    thread::Builder::new()
        .name("control".into())
        .spawn(accept)?;
    Ok(())
}

/// Answers lines until the peer goes away.
fn connection(stream: &UnixStream, control: &Control, target: Target) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            // Too long, or cut off: where the next line starts is unknown.
            let error = request::reply(Value::Null, Err("line without an end".into()));
            writer.write_all(format!("{error}\n").as_bytes())?;
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let reply = control.line(&line, target);
        writer.write_all(format!("{reply}\n").as_bytes())?;
    }
}
