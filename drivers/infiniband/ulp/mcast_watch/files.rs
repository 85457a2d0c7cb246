// SPDX-License-Identifier: GPL-2.0

//! A device's directory in debugfs: `groups` to read, `join` and `leave` to write.

use kernel::{
    debugfs::ScopedDir,
    fmt,
    prelude::*,
    uaccess::UserSliceReader, //
};

use crate::{
    spec::{
        self,
        GroupSpec, //
    },
    tally::Tally,
    watch::Watch, //
};

/// Octets that can be written at once.
const MAX_WRITE: usize = 4096;

/// Makes the files of `watch` in `dir`.
pub(crate) fn add<'data>(watch: &'data Watch, dir: &ScopedDir<'data, '_>) {
    dir.read_callback_file(c"groups", watch, &show);
    dir.write_only_callback_file(c"join", watch, &join);
    dir.write_only_callback_file(c"leave", watch, &leave);
}

fn show_tally(out: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    writeln!(out, " packets {} bytes {}", tally.packets, tally.bytes)
}

/// One line for the device, one for each group and, indented, one for each of its senders.
fn show(watch: &Watch, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let table = watch.table();

    write!(
        out,
        "qp {} lost {} stray",
        watch.qp().number().get(),
        table.lost()
    )?;
    show_tally(out, &table.stray())?;

    table.try_for_each(|group| {
        let counts = group.counts().lock();

        write!(
            out,
            "group {:?} lid {:#06x}",
            group.address(),
            group.lid().to_host()
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
    })
}

fn join(watch: &Watch, input: &mut UserSliceReader) -> Result {
    for_each(watch, "join", input, Watch::join)
}

fn leave(watch: &Watch, input: &mut UserSliceReader) -> Result {
    for_each(watch, "leave", input, Watch::leave)
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
