// SPDX-License-Identifier: GPL-2.0

//! How the device finds memory: at one bus address if it is contiguous there, else through a list of
//! pages.

use kernel::{
    dma::DmaAddress,
    prelude::*,
    sync::Arc, //
};

use crate::{
    cqp::cmd::MrPages,
    hmc::{
        Hmc,
        Levels,
        Pbles, //
    },
};

/// Where a range of memory is.
pub(crate) enum Location {
    /// At this bus address, contiguous.
    Direct(DmaAddress),
    /// At the pages in this list.
    List(Pbles),
}

impl Location {
    /// Finds out about the pages, each of `page_size`, that `pages` gives; it is called twice.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are none, and those of the space for lists.
    pub(crate) fn new<I>(
        hmc: &Arc<Hmc>,
        page_size: u64,
        levels: Levels,
        pages: impl Fn() -> I,
    ) -> Result<Self>
    where
        I: Iterator<Item = DmaAddress>,
    {
        let (count, start) = survey(pages(), page_size)?;

        if let Some(start) = start {
            return Ok(Location::Direct(start));
        }
        let list = hmc.alloc_pbles(count, levels)?;
        list.fill(pages())?;
        Ok(Location::List(list))
    }

    /// Returns the range as operations on memory regions name it.
    pub(crate) fn mr_pages(&self) -> Result<MrPages> {
        match self {
            Location::Direct(address) => Ok(MrPages::Contiguous(*address)),
            Location::List(list) => list.pages(),
        }
    }
}

/// Counts pages and returns where they start if they are contiguous.
///
/// # Errors
///
/// `EINVAL` if there are none.
pub(crate) fn survey(
    pages: impl Iterator<Item = DmaAddress>,
    page_size: u64,
) -> Result<(usize, Option<DmaAddress>)> {
    let mut first = None;
    let mut expected = None;
    let mut contiguous = true;
    let mut count = 0usize;

    for page in pages {
        if first.is_none() {
            first = Some(page);
        } else if expected != Some(page) {
            contiguous = false;
        }
        expected = page.checked_add(page_size);
        count = count.checked_add(1).ok_or(EINVAL)?;
    }
    let first = first.ok_or(EINVAL)?;
    Ok((count, contiguous.then_some(first)))
}

#[kernel::macros::kunit_tests(irdma_rs_pages)]
mod tests {
    use super::*;

    #[test]
    fn sees_what_is_contiguous() {
        let page = 0x1000;

        for (pages, count, start) in [
            (&[0x5000][..], 1, Some(0x5000)),
            (&[0x5000, 0x6000, 0x7000], 3, Some(0x5000)),
            (&[0x5000, 0x7000, 0x6000], 3, None),
            (&[0x6000, 0x5000], 2, None),
            (&[0x5000, 0x5000], 2, None),
            (&[u64::MAX - 0xfff, 0], 2, None),
        ] {
            let found = survey(pages.iter().copied(), page);
            assert_eq!(found, Ok((count, start)));
        }
        assert_eq!(survey(core::iter::empty(), page), Err(EINVAL));
    }
}
