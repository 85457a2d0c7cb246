// SPDX-License-Identifier: GPL-2.0
//! The sockets of the rack: made in its directory, removed when it ends.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Sockets made so far; dropping them removes their files.
pub struct Sockets {
    dir: PathBuf,
    made: Vec<PathBuf>,
}

impl Sockets {
    /// Sockets in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            made: Vec::new(),
        }
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Listens on the socket `name`, in place of one that an earlier rack left behind.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made, or the name is taken by something else.
    pub fn listen(&mut self, name: &str) -> io::Result<UnixListener> {
        let path = self.dir.join(name);
        if path
            .symlink_metadata()
            .is_ok_and(|found| found.file_type().is_socket())
        {
            std::fs::remove_file(&path)?;
        }
        let listener = UnixListener::bind(&path).map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("cannot listen on {}: {e}", path.display()),
            )
        })?;
        self.made.push(path);
        Ok(listener)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for path in &self.made {
            // Somebody else may have cleared the directory first.
            let _ = std::fs::remove_file(path);
        }
    }
}
