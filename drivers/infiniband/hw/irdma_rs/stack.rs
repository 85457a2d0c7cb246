// SPDX-License-Identifier: GPL-2.0

//! A list that takes what comes with its own place in it, so that nothing can fail when it is put there.

use kernel::prelude::*;

/// An item with a place in a list.
pub(crate) struct Node<T> {
    item: T,
    next: Option<KBox<Node<T>>>,
}

impl<T> Node<T> {
    /// Gives `item` a place.
    pub(crate) fn new(item: T) -> Self {
        Self { item, next: None }
    }

    /// The item.
    pub(crate) fn item(&self) -> &T {
        &self.item
    }

    /// Takes the item, and gives up its place.
    pub(crate) fn into_item(node: KBox<Self>) -> T {
        KBox::into_inner(node).item
    }
}

/// Items, the last one first.
pub(crate) struct Stack<T> {
    first: Option<KBox<Node<T>>>,
}

impl<T> Stack<T> {
    /// No items.
    pub(crate) const fn new() -> Self {
        Self { first: None }
    }

    /// Adds an item.
    pub(crate) fn push(&mut self, mut node: KBox<Node<T>>) {
        node.next = self.first.take();
        self.first = Some(node);
    }

    /// Takes the item that was added last.
    pub(crate) fn pop(&mut self) -> Option<KBox<Node<T>>> {
        let mut node = self.first.take()?;

        self.first = node.next.take();
        Some(node)
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        // One by one: the list may be long and the stack of the kernel is short.
        while self.pop().is_some() {}
    }
}

#[kernel::macros::kunit_tests(irdma_rs_stack)]
mod tests {
    use super::*;
    use kernel::sync::Arc;

    #[test]
    fn the_last_one_comes_first() -> Result {
        let mut stack = Stack::new();

        for item in 0..3 {
            stack.push(KBox::new(Node::new(item), GFP_KERNEL)?);
        }
        for item in [2, 1, 0] {
            assert_eq!(stack.pop().map(Node::into_item), Some(item));
        }
        assert!(stack.pop().is_none());
        Ok(())
    }

    /// As many as would not fit the kernel's stack.
    #[test]
    fn long_lists_are_dropped() -> Result {
        let item = Arc::new((), GFP_KERNEL)?;
        let mut stack = Stack::new();

        for _ in 0..10_000 {
            stack.push(KBox::new(Node::new(item.clone()), GFP_KERNEL)?);
        }
        drop(stack);
        assert!(Arc::into_unique_or_drop(item).is_some());
        Ok(())
    }
}
