// SPDX-License-Identifier: GPL-2.0

//! The device as the list of groups sees it: three commands, and how they can fail.

use kernel::prelude::*;

use super::{
    context::MAX_MEMBERS,
    group::GroupKey,
    index::GroupIndex, //
};

/// The operation asked of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `CREATE_MCAST_GRP`
    Create,
    /// `MODIFY_MCAST_GRP`
    Modify,
    /// `DESTROY_MCAST_GRP`
    Destroy,
}

/// How a command ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The device answered with an error, or was never asked: it is as it was before.
    Refused(Error),
    /// The device has not answered and may act on the command at any time.
    Unanswered(Error),
    /// The device takes no commands any more and will be reset before it is used again. It was not
    /// told of this one.
    Gone(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(e) | Failure::Unanswered(e) | Failure::Gone(e) => e,
        }
    }
}

/// The device as the list sees it.
pub(crate) trait Hardware {
    /// What a group needs of the device besides its index, for as long as it exists.
    type Share: Send + Unpin;

    /// Takes such a share. May sleep.
    fn share(&self) -> Result<Self::Share>;

    /// Returns whether a share is still what it was when it was taken.
    fn is_current(&self, share: &Self::Share) -> bool;

    /// Carries out `command` on the group with the given key and index and member words; returns
    /// when the device has answered. May sleep.
    ///
    /// Calls for one index do not overlap.
    fn execute(
        &self,
        command: Command,
        key: &GroupKey,
        index: GroupIndex,
        share: &Self::Share,
        members: &[u64; MAX_MEMBERS],
    ) -> Result<(), Failure>;
}
