// SPDX-License-Identifier: GPL-2.0

//! Things that have to stay because the device may still use them.

use core::mem::MaybeUninit;
use kernel::prelude::*;

/// Anything with a destructor.
trait Item: Send + Sync {}

impl<T: Send + Sync> Item for T {}

/// An element of the list.
pub(super) struct Node {
    _item: KBox<dyn Item>,
    next: Option<KBox<Node>>,
}

/// A list that only grows, and is dropped as a whole.
pub(super) struct Kept {
    first: Option<KBox<Node>>,
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self { first: None }
    }

    /// Prepares `item` for [`Self::push`]. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the item is forgotten then, without its destructor having run.
    pub(super) fn wrap<T: Send + Sync + 'static>(item: T) -> Result<KBox<Node>> {
        // Both boxes before the item goes into one: it must not be dropped on failure.
        let boxes = KBox::<T>::new_uninit(GFP_ATOMIC)
            .and_then(|place| Ok((place, KBox::<Node>::new_uninit(GFP_ATOMIC)?)));
        match boxes {
            Ok((place, node)) => {
                let item: KBox<dyn Item> = KBox::<MaybeUninit<T>>::write(place, item);
                Ok(KBox::<MaybeUninit<Node>>::write(
                    node,
                    Node {
                        _item: item,
                        next: None,
                    },
                ))
            }
            Err(error) => {
                core::mem::forget(item);
                Err(error.into())
            }
        }
    }

    /// Adds an element.
    pub(super) fn push(&mut self, mut node: KBox<Node>) {
        node.next = self.first.take();
        self.first = Some(node);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // One by one: the list may be long and the stack is short.
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}
