// SPDX-License-Identifier: GPL-2.0

//! What operators see in debugfs: `/sys/kernel/debug/irdma_rs/DEVICE/`, with the device's name in the
//! kernel log, such as `ice.roce.0`. Unlike the name of the RDMA device it never changes.
//!
//! - [`cqp`]: the control queue and what became of its commands;
//! - [`groups`]: multicast groups and who is in them;
//! - [`limits`]: how many objects there can be, and are;
//! - [`text`]: how values are written.
//!
//! Each file has a line with the names of its columns and then one line an object, in columns separated
//! by blanks, for people and programs alike; `-` stands for nothing.

mod cqp;
mod groups;
mod limits;
pub(crate) mod text;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::sys::debugfs::{
    Folder,
    Root, //
};

use crate::{
    dev::Dev,
    mcast::Groups, //
};

/// The directory of all devices.
const ROOT: &CStr = c"irdma_rs";

/// Makes the directory of all devices; it is to be there before the first of them.
pub(crate) fn root() -> Root {
    Root::new(ROOT)
}

/// What the files of a device show.
pub(crate) struct Shown {
    dev: Arc<Dev>,
    groups: Arc<Groups>,
}

/// The files of a device. They vanish when it is dropped.
pub(crate) struct Views {
    _folder: Folder<Shown>,
}

impl Views {
    /// Makes the files. Process context.
    pub(crate) fn new(dev: Arc<Dev>, groups: Arc<Groups>) -> Result<Self> {
        let shown = Arc::new(Shown { dev, groups }, GFP_KERNEL)?;
        let folder = Folder::new(ROOT, shown.dev.port.log().name(), shown.clone());

        Ok(Self {
            _folder: folder
                .add::<cqp::View>()
                .add::<groups::View>()
                .add::<limits::View>(),
        })
    }
}
