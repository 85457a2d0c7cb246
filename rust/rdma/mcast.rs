// SPDX-License-Identifier: GPL-2.0

//! Membership in multicast groups, for consumers in the kernel.
//!
//! The core's functions want a UD queue pair, a multicast GID and a LID in host byte order, and
//! leave it to the caller to keep attaches and detaches in balance. Here all four are matters of
//! type: [`UdQp`], [`MulticastGid`], [`Lid`], and a [`Membership`] that exists exactly while the
//! queue pair is attached.
//!
//! The device delivers what reaches its port. Whether the fabric sends the group there is another
//! matter: on InfiniBand it takes a join at the subnet administrator, on Ethernet with snooping
//! switches the membership of the host, see [`crate::net::membership`].

use core::mem::ManuallyDrop;
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    client::{
        Receiver,
        UdQp, //
    },
    gid::MulticastGid,
    lid::Lid, //
};

/// The membership of a queue pair in a group.
///
/// Dropping it leaves the group; [`Membership::detach`] does so and tells what went wrong. Both
/// may sleep.
///
/// # Invariants
///
/// The queue pair is attached once for this membership.
#[must_use = "the queue pair leaves the group when this is dropped"]
pub struct Membership<R: Receiver> {
    qp: Arc<UdQp<R>>,
    gid: MulticastGid,
    lid: Lid,
}

/// A LID as the core's functions take it: in host byte order.
///
/// The only place where a LID becomes a plain number on its way to the core.
fn core_lid(lid: Lid) -> u16 {
    lid.to_host()
}

impl<R: Receiver> Membership<R> {
    /// Attaches `qp` to the group `gid`. When this returns, the device delivers the next datagram
    /// to the group that reaches it. Process context.
    ///
    /// On InfiniBand `lid` is the group's, from the subnet administrator; on Ethernet it has no
    /// meaning, and any will do.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: on InfiniBand, a LID that is not a multicast one.
    /// - `EOPNOTSUPP`: the device has no multicast.
    /// - `ENOMEM`: no group or no place in the group is left; others of the driver.
    pub fn attach(qp: &Arc<UdQp<R>>, gid: MulticastGid, lid: Lid) -> Result<Self> {
        let mut raw = gid.gid().to_raw();

        // SAFETY: An owned UD queue pair, and a GID that is read during the call.
        to_result(unsafe { bindings::ib_attach_mcast(qp.as_raw(), &mut raw, core_lid(lid)) })?;

        // INVARIANT: Attached just now.
        Ok(Self {
            qp: qp.clone(),
            gid,
            lid,
        })
    }

    /// The group.
    pub fn gid(&self) -> MulticastGid {
        self.gid
    }

    /// The LID it was attached with.
    pub fn lid(&self) -> Lid {
        self.lid
    }

    /// Leaves the group. Process context.
    ///
    /// # Errors
    ///
    /// Those of the driver, with the membership: the queue pair is attached as before, as far as
    /// the core knows.
    pub fn detach(self) -> Result<(), (Error, Self)> {
        match self.leave() {
            Ok(()) => {
                // Not to be left once more; the reference is all that is to be given back.
                let this = ManuallyDrop::new(self);
                // SAFETY: Valid, and `this` does not drop it.
                drop(unsafe { core::ptr::read(&this.qp) });
                Ok(())
            }
            Err(error) => Err((error, self)),
        }
    }

    fn leave(&self) -> Result {
        let mut raw = self.gid.gid().to_raw();

        // SAFETY: An owned UD queue pair, and a GID that is read during the call. The queue pair
        // is attached by the type invariant, so that counts stay in balance.
        to_result(unsafe {
            bindings::ib_detach_mcast(self.qp.as_raw(), &mut raw, core_lid(self.lid))
        })
    }
}

impl<R: Receiver> Drop for Membership<R> {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            dev_err!(
                self.qp.device().as_ref(),
                "QP {} cannot leave group {:?}: {error:?}\n",
                self.qp.number().get(),
                self.gid.ip()
            );
        }
    }
}

#[kunit_tests(rdma_mcast)]
mod tests {
    use super::*;
    use crate::lid::Be16;

    #[test]
    fn the_core_gets_lids_in_host_order() {
        // As it stands in a packet: 0xc0 first.
        let wire = Lid::from_wire(Be16::from_bytes([0xc0, 0x01]));

        assert_eq!(core_lid(wire), 0xc001);
        assert_eq!(core_lid(Lid::from_host(0xc001)), 0xc001);
        assert_eq!(core_lid(Lid::MULTICAST_BASE), 0xc000);
        assert_eq!(core_lid(Lid::from_host(0)), 0);
    }
}
