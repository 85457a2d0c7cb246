// SPDX-License-Identifier: GPL-2.0
//! The rack's log: one file for all cards, limited so that a guest cannot fill the disk.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines one card may write in a period; the rest is counted.
const LINES: u32 = 500;
const PERIOD: Duration = Duration::from_secs(1);

/// Where the lines of all cards go.
pub struct LogFile {
    out: Mutex<Box<dyn Write + Send>>,
    start: Instant,
}

impl LogFile {
    /// Logs to the file at `path`, or to standard error.
    ///
    /// # Errors
    ///
    /// When the file cannot be made.
    pub fn open(path: Option<&Path>) -> io::Result<Arc<Self>> {
        Ok(Self::to(match path {
            Some(path) => Box::new(File::create(path)?),
            None => Box::new(io::stderr()),
        }))
    }

    /// Logs to `out`.
    pub fn to(out: Box<dyn Write + Send>) -> Arc<Self> {
        Arc::new(Self {
            out: Mutex::new(out),
            start: Instant::now(),
        })
    }

    fn line(&self, name: &str, text: Arguments<'_>) {
        let line = format!(
            "{:11.6} {name}: {text}\n",
            self.start.elapsed().as_secs_f64()
        );
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nowhere to report that the log cannot be written.
        let _ = out.write_all(line.as_bytes());
    }
}

struct Budget {
    since: Instant,
    left: u32,
    suppressed: u32,
}

/// The log of one card.
pub struct CardLog {
    name: String,
    file: Arc<LogFile>,
    budget: Mutex<Budget>,
}

impl CardLog {
    /// A log whose lines start with `name`.
    pub fn new(name: &str, file: Arc<LogFile>) -> Arc<Self> {
        let budget = Budget {
            since: Instant::now(),
            left: LINES,
            suppressed: 0,
        };
        Arc::new(Self {
            name: name.to_owned(),
            file,
            budget: Mutex::new(budget),
        })
    }
}

impl nic_bus::Log for CardLog {
    fn line(&self, text: Arguments<'_>) {
        let suppressed = {
            let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
            if budget.since.elapsed() >= PERIOD {
                budget.since = Instant::now();
                budget.left = LINES;
            }
            let Some(left) = budget.left.checked_sub(1) else {
                budget.suppressed = budget.suppressed.saturating_add(1);
                return;
            };
            budget.left = left;
            std::mem::take(&mut budget.suppressed)
        };
        if suppressed > 0 {
            self.file
                .line(&self.name, format_args!("{suppressed} lines suppressed"));
        }
        self.file.line(&self.name, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic_bus::Log;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(buf);
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_flood_is_cut_short() {
        let buffer = Buffer::default();
        let log = CardLog::new("nic0", LogFile::to(Box::new(buffer.clone())));
        (0..2 * LINES).for_each(|n| log.line(format_args!("line {n}")));
        log.budget.lock().unwrap().since -= 2 * PERIOD;
        log.line(format_args!("later"));
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), LINES as usize + 2);
        assert!(lines[0].ends_with("nic0: line 0"));
        assert!(lines[LINES as usize].ends_with("nic0: 500 lines suppressed"));
        assert!(lines[LINES as usize + 1].ends_with("nic0: later"));
    }
}
