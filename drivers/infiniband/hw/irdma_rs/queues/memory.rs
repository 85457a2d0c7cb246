// SPDX-License-Identifier: GPL-2.0

//! Ring memory as 64-bit words.
//!
//! Rings are generic over [`Words`], so that they can be tested without a device.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::mem::DmaWords;

/// Memory shared with the device, in words of host byte order.
pub(crate) trait Words {
    /// Reads the word with this number.
    ///
    /// # Errors
    ///
    /// An errno if there is no such word.
    fn read(&self, word: u32) -> Result<u64>;

    /// Writes the word with this number.
    ///
    /// # Errors
    ///
    /// An errno if there is no such word.
    fn write(&self, word: u32, value: u64) -> Result;
}

impl Words for Arc<DmaWords> {
    fn read(&self, word: u32) -> Result<u64> {
        DmaWords::read(self, usize::try_from(word)?)
    }

    fn write(&self, word: u32, value: u64) -> Result {
        DmaWords::write(self, usize::try_from(word)?, value)
    }
}

/// Memory of the CPU alone, for tests of the rings.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) mod fake {
    use super::*;
    use kernel::{
        new_spinlock,
        sync::SpinLock, //
    };

    /// Words that a test can look at while a ring holds them too.
    #[pin_data]
    pub(crate) struct FakeWords {
        #[pin]
        words: SpinLock<KVec<u64>>,
    }

    impl FakeWords {
        /// Makes `count` words of zero.
        pub(crate) fn new(count: usize) -> Result<Arc<Self>> {
            let words = KVec::from_elem(0, count, GFP_KERNEL)?;
            Arc::pin_init(
                pin_init!(Self {
                    words <- new_spinlock!(words),
                }),
                GFP_KERNEL,
            )
        }
    }

    impl Words for Arc<FakeWords> {
        fn read(&self, word: u32) -> Result<u64> {
            let i = usize::try_from(word)?;
            self.words.lock().get(i).copied().ok_or(EINVAL)
        }

        fn write(&self, word: u32, value: u64) -> Result {
            let i = usize::try_from(word)?;
            *self.words.lock().get_mut(i).ok_or(EINVAL)? = value;
            Ok(())
        }
    }
}
