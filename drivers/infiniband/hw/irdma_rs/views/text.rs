// SPDX-License-Identifier: GPL-2.0

//! How values are written.

use core::net::IpAddr;

use kernel::{
    fmt::{
        Display,
        Formatter,
        Result, //
    },
    prelude::*, //
};

/// An address, in its usual form.
pub(crate) struct Address(pub(crate) IpAddr);

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        core::fmt::Display::fmt(&self.0, f)
    }
}

/// Something that may be missing.
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<T: Display> Display for Maybe<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// Values with commas between them.
pub(crate) struct Commas<I>(pub(crate) I);

impl<I, T> Display for Commas<I>
where
    I: Iterator<Item = T> + Clone,
    T: Display,
{
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut values = self.0.clone().peekable();

        if values.peek().is_none() {
            return f.write_str("-");
        }
        for (i, value) in values.enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            value.fmt(f)?;
        }
        Ok(())
    }
}

/// A MAC address.
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Display for Mac {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let [a, b, c, d, e, g] = self.0;
        f.write_fmt(fmt!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}
