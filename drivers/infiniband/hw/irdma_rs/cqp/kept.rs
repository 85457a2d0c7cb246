// SPDX-License-Identifier: GPL-2.0

//! Things that have to stay because the device may still use them.

use crate::stack;
use core::mem::MaybeUninit;
use kernel::prelude::*;

/// Anything with a destructor.
pub(super) trait Item: Send + Sync {}

impl<T: Send + Sync> Item for T {}

/// An element of the list.
pub(super) type Node = stack::Node<KBox<dyn Item>>;

/// A list that only grows, and is dropped as a whole.
pub(super) type Kept = stack::Stack<KBox<dyn Item>>;

/// Prepares `item` for the list. Any context.
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
            Ok(KBox::<MaybeUninit<Node>>::write(node, Node::new(item)))
        }
        Err(error) => {
            core::mem::forget(item);
            Err(error.into())
        }
    }
}
