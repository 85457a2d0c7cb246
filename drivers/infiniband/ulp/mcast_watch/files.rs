// SPDX-License-Identifier: GPL-2.0

//! A device's directory in debugfs: `groups` to read, `join` and `leave` to write.

use core::ops::Deref;

use kernel::{
    fmt,
    prelude::*,
    sync::Arc,
    uaccess::UserSliceReader, //
};
use rdma::sys::debugfs::{
    Folder,
    Order,
    Records,
    View, //
};

use crate::{
    spec::{
        self,
        GroupSpec, //
    },
    tally::{
        Group,
        Tally, //
    },
    watch::Watch, //
};

/// Name of the directory of all devices' directories.
pub(crate) const TOP: &CStr = c"mcast_watch";

/// Octets that can be written at once.
const MAX_WRITE: usize = 4096;

/// A device that is watched, with its files.
pub(crate) struct Watched {
    /// Goes first: who reads or writes uses what it shows.
    _folder: Folder<Watch>,
    watch: Arc<Watch>,
}

impl Watched {
    /// Makes the files of `watch` in the directory `name`. Process context.
    pub(crate) fn new(name: &CStr, watch: Arc<Watch>) -> Self {
        Self {
            _folder: Folder::new(TOP, name, watch.clone())
                .add::<Groups>()
                .add_order::<Join>()
                .add_order::<Leave>(),
            watch,
        }
    }
}

impl Deref for Watched {
    type Target = Watch;

    fn deref(&self) -> &Watch {
        &self.watch
    }
}

fn show_tally(out: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    writeln!(out, " packets {} bytes {}", tally.packets, tally.bytes)
}

/// The first line: of the device.
struct DeviceLine<'a>(&'a Watch);

impl fmt::Display for DeviceLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.0.table();

        write!(
            out,
            "qp {} lost {} stray",
            self.0.qp().number().get(),
            table.lost()
        )?;
        show_tally(out, &table.stray())
    }
}

/// The lines of a group: one for itself and, indented, one for each of its senders.
struct GroupLines<'a>(&'a Group);

impl fmt::Display for GroupLines<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.counts().lock();

        write!(
            out,
            "group {:?} lid {:#06x}",
            self.0.address(),
            self.0.lid().to_host()
        )?;
        show_tally(out, &counts.total)?;
        for (source, tally) in &counts.sources {
            write!(
                out,
                "  source {:?} qp {}",
                source.address(),
                source.qp().get()
            )?;
            show_tally(out, tally)?;
        }
        if counts.others != Tally::default() {
            write!(out, "  others")?;
            show_tally(out, &counts.others)?;
        }
        Ok(())
    }
}

/// The counters: record 0 is the device, the others are the groups in the order of addresses.
struct Groups;

impl View<Watch> for Groups {
    const NAME: &'static CStr = c"groups";

    fn show(watch: &Watch, from: u32, out: &mut Records<'_>) -> Result {
        if from == 0 && !out.push(0, fmt!("{}", DeviceLine(watch))) {
            return Ok(());
        }

        let mut number = 0;
        // An error says that there is no more room, which is none.
        let _ = watch.table().try_for_each(|group| {
            number += 1;
            if number < from || out.push(number, fmt!("{}", GroupLines(group))) {
                Ok(())
            } else {
                Err(())
            }
        });
        Ok(())
    }
}

struct Join;

impl Order<Watch> for Join {
    const NAME: &'static CStr = c"join";

    fn obey(watch: &Watch, input: &mut UserSliceReader) -> Result {
        for_each(watch, "join", input, Watch::join)
    }
}

struct Leave;

impl Order<Watch> for Leave {
    const NAME: &'static CStr = c"leave";

    fn obey(watch: &Watch, input: &mut UserSliceReader) -> Result {
        for_each(watch, "leave", input, Watch::leave)
    }
}

/// Calls `change` for each group in what the user wrote, until one fails. Nothing is changed
/// unless all of it can be read.
fn for_each(
    watch: &Watch,
    file: &str,
    input: &mut UserSliceReader,
    change: fn(&Watch, GroupSpec) -> Result,
) -> Result {
    let len = input.len();
    if len > MAX_WRITE {
        return Err(E2BIG);
    }

    let mut octets = KVec::from_elem(0u8, len, GFP_KERNEL)?;
    input.read_slice(&mut octets)?;
    let text = core::str::from_utf8(&octets).map_err(|_| EINVAL)?;

    let mut groups = KVec::new();
    for item in spec::items(text) {
        let group = GroupSpec::parse(item, watch.default_lid()).map_err(|why| {
            dev_err!(
                watch.qp().device().as_ref(),
                "mcast_watch: {file}: \"{item}\": {why}\n"
            );
            EINVAL
        })?;
        groups.push(group, GFP_KERNEL)?;
    }

    groups.iter().try_for_each(|group| change(watch, *group))
}
