// SPDX-License-Identifier: GPL-2.0

//! Which VLANs' packets a group takes.
//!
//! A UD queue pair has no VLAN of its own, and `ib_attach_mcast` names none. What belongs to a VLAN is
//! the host's membership of the IP group, which is on an interface. So an attach looks where the host
//! has joined the group:
//!
//! - on no interface of the port: packets of all VLANs and untagged ones are taken;
//! - on an interface without a tag, such as the port's own: the same, as the device has no group for
//!   untagged packets alone;
//! - on VLAN interfaces only: packets of just these VLANs are taken, by one group of the device each.
//!
//! The answer holds until the queue pair is detached, whatever becomes of the interfaces.

use core::net::IpAddr;

use kernel::prelude::*;

use super::group::GroupKey;

/// The VLANs of an attach.
///
/// # Invariants
///
/// Ascending, without repetition. None at all means that the VLAN does not matter.
pub(crate) struct Vlans(KVec<u16>);

impl Vlans {
    /// Returns the keys of the groups of `ip` in the device, always in the same order; there is at
    /// least one.
    pub(crate) fn keys(&self, ip: IpAddr) -> impl Iterator<Item = GroupKey> + '_ {
        let any = self.0.is_empty().then_some(GroupKey { ip, vlan: None });
        let tagged = self.0.iter().map(move |&vlan| GroupKey {
            ip,
            vlan: Some(vlan),
        });

        Iterator::chain(any.into_iter(), tagged)
    }

    /// Returns the VLANs; none if the VLAN does not matter.
    pub(crate) fn as_slice(&self) -> &[u16] {
        &self.0
    }
}

/// Where the host has joined a group, as far as it has been looked at. Usable in atomic context.
pub(crate) struct Joins {
    untagged: bool,
    short_of_memory: bool,
    vlans: KVec<u16>,
}

impl Joins {
    /// Nothing has been looked at.
    pub(crate) const fn new() -> Self {
        Self {
            untagged: false,
            short_of_memory: false,
            vlans: KVec::new(),
        }
    }

    /// The host has joined on an interface whose frames bear the tag `vlan`.
    pub(crate) fn add(&mut self, vlan: Option<u16>) {
        let Some(vlan) = vlan else {
            self.untagged = true;
            return;
        };
        let Err(place) = self.vlans.binary_search(&vlan) else {
            return;
        };
        let added = self.vlans.reserve(1, GFP_ATOMIC).is_ok()
            && self.vlans.insert_within_capacity(place, vlan).is_ok();
        self.short_of_memory |= !added;
    }

    /// Decides by what was found.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if something was found that could not be remembered and matters.
    pub(crate) fn decide(self) -> Result<Vlans> {
        if self.untagged {
            // INVARIANT: None.
            return Ok(Vlans(KVec::new()));
        }
        if self.short_of_memory {
            return Err(ENOMEM);
        }
        // INVARIANT: Each was put in its place, unless it was there.
        Ok(Vlans(self.vlans))
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_vlan)]
mod tests {
    use super::*;

    fn keys(joined: &[Option<u16>]) -> Result<KVec<Option<u16>>> {
        let mut joins = Joins::new();
        let mut keys = KVec::new();

        for vlan in joined {
            joins.add(*vlan);
        }
        for key in joins.decide()?.keys(IpAddr::from([239, 1, 2, 3])) {
            keys.push(key.vlan, GFP_KERNEL)?;
        }
        Ok(keys)
    }

    #[test]
    fn takes_all_vlans_unless_joined_on_vlans_alone() -> Result {
        for (joined, expected) in [
            (&[][..], &[None][..]),
            (&[None], &[None]),
            (&[Some(100)], &[Some(100)]),
            (&[Some(200), Some(100)], &[Some(100), Some(200)]),
            (&[Some(7), Some(7), Some(7)], &[Some(7)]),
            (&[Some(100), None], &[None]),
            (&[None, Some(100), Some(200)], &[None]),
        ] {
            assert!(*keys(joined)? == *expected);
        }
        Ok(())
    }
}
