// SPDX-License-Identifier: GPL-2.0

//! The notifier chains of net devices, addresses and neighbours.
//!
//! One pinned [`Notifier`] per chain and handler; dropping it unregisters and waits for calls in
//! progress. Contexts differ: the net device and the IPv4 address chain may sleep, the IPv6
//! address and the neighbour chain are atomic. One rule serves all: a handler copies what it needs
//! and queues work, no more.

use core::{
    marker::PhantomData,
    net::IpAddr, //
};
use kernel::{
    bindings::notifier_block,
    container_of,
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use crate::{
    bindings,
    net::{
        MacAddress,
        NetDevice, //
    },
};

mod sealed {
    pub trait Sealed {}
}

/// A notifier chain of the kernel.
pub trait Chain: sealed::Sealed + 'static {
    /// What the chain announces, in terms a handler understands.
    type Event<'a>;

    #[doc(hidden)]
    const REGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int;

    #[doc(hidden)]
    const UNREGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int;

    /// # Safety
    ///
    /// The arguments are those that the chain passed to a notifier call that is in progress.
    #[doc(hidden)]
    unsafe fn decode<'a>(event: usize, data: *mut c_void) -> Option<Self::Event<'a>>;
}

/// What happened to a net device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetdevEvent {
    /// Brought up.
    Up,
    /// Taken down.
    Down,
    /// Carrier or operational state changed.
    Change,
    /// The MAC address changed.
    ChangeAddress,
    /// The MTU changed.
    ChangeMtu,
    /// About to go away.
    Unregister,
}

/// What happened to an address of a net device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressEvent {
    /// Added.
    Added,
    /// Removed.
    Removed,
}

/// The chain of net devices. Under RTNL, may sleep.
pub struct Netdev;

/// The chain of IPv4 addresses. May sleep.
pub struct Inet;

/// The chain of IPv6 addresses. Atomic.
pub struct Inet6;

/// The chain of neighbours. Atomic.
pub struct Neighbour;

/// A change to an address.
pub struct AddressChange<'a> {
    /// The device that has or had the address.
    pub device: &'a NetDevice,
    /// The address.
    pub address: IpAddr,
    /// What happened to it.
    pub event: AddressEvent,
}

/// A neighbour as the kernel knows it now.
pub struct NeighbourUpdate<'a> {
    /// The device on whose link the neighbour is.
    pub device: &'a NetDevice,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its MAC address, or `None` if it is not valid at present.
    pub mac: Option<MacAddress>,
}

fn address_event(event: usize) -> Option<AddressEvent> {
    match u32::try_from(event).ok()? {
        bindings::netdev_cmd_NETDEV_UP => Some(AddressEvent::Added),
        bindings::netdev_cmd_NETDEV_DOWN => Some(AddressEvent::Removed),
        _ => None,
    }
}

impl sealed::Sealed for Netdev {}

impl Chain for Netdev {
    type Event<'a> = (&'a NetDevice, NetdevEvent);

    const REGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::register_netdevice_notifier;
    const UNREGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::unregister_netdevice_notifier;

    unsafe fn decode<'a>(event: usize, data: *mut c_void) -> Option<Self::Event<'a>> {
        let event = match u32::try_from(event).ok()? {
            bindings::netdev_cmd_NETDEV_UP => NetdevEvent::Up,
            bindings::netdev_cmd_NETDEV_DOWN => NetdevEvent::Down,
            bindings::netdev_cmd_NETDEV_CHANGE => NetdevEvent::Change,
            bindings::netdev_cmd_NETDEV_CHANGEADDR => NetdevEvent::ChangeAddress,
            bindings::netdev_cmd_NETDEV_CHANGEMTU => NetdevEvent::ChangeMtu,
            bindings::netdev_cmd_NETDEV_UNREGISTER => NetdevEvent::Unregister,
            _ => return None,
        };

        // SAFETY: The chain passes a `netdev_notifier_info`, at the start of its own struct.
        let device = unsafe { (*data.cast::<bindings::netdev_notifier_info>()).dev };

        // SAFETY: The device is valid during the call.
        Some((unsafe { NetDevice::from_raw(device.cast()) }, event))
    }
}

impl sealed::Sealed for Inet {}

impl Chain for Inet {
    type Event<'a> = AddressChange<'a>;

    const REGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::register_inetaddr_notifier;
    const UNREGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::unregister_inetaddr_notifier;

    unsafe fn decode<'a>(event: usize, data: *mut c_void) -> Option<Self::Event<'a>> {
        let ifa = data.cast::<bindings::in_ifaddr>();
        let event = address_event(event)?;

        // SAFETY: The chain passes an address that is valid during the call.
        let (local, in_dev) = unsafe { ((*ifa).ifa_local, (*ifa).ifa_dev) };
        // SAFETY: An address belongs to an `in_device`, which holds its net device.
        let device = unsafe { (*in_dev).dev };

        Some(AddressChange {
            // SAFETY: Held by the `in_device` during the call.
            device: unsafe { NetDevice::from_raw(device.cast()) },
            address: IpAddr::from(local.to_ne_bytes()),
            event,
        })
    }
}

impl sealed::Sealed for Inet6 {}

impl Chain for Inet6 {
    type Event<'a> = AddressChange<'a>;

    const REGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::register_inet6addr_notifier;
    const UNREGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::unregister_inet6addr_notifier;

    unsafe fn decode<'a>(event: usize, data: *mut c_void) -> Option<Self::Event<'a>> {
        let ifp = data.cast::<bindings::inet6_ifaddr>();
        let event = address_event(event)?;

        // SAFETY: The chain passes an address that is valid during the call.
        let (octets, idev) = unsafe { ((*ifp).addr.in6_u.u6_addr8, (*ifp).idev) };
        // SAFETY: An address belongs to an `inet6_dev`, which holds its net device.
        let device = unsafe { (*idev).dev };

        Some(AddressChange {
            // SAFETY: Held by the `inet6_dev` during the call.
            device: unsafe { NetDevice::from_raw(device.cast()) },
            address: IpAddr::from(octets),
            event,
        })
    }
}

impl sealed::Sealed for Neighbour {}

impl Chain for Neighbour {
    type Event<'a> = NeighbourUpdate<'a>;

    const REGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::register_netevent_notifier;
    const UNREGISTER: unsafe extern "C" fn(*mut notifier_block) -> c_int =
        bindings::unregister_netevent_notifier;

    unsafe fn decode<'a>(event: usize, data: *mut c_void) -> Option<Self::Event<'a>> {
        if u32::try_from(event).ok()? != bindings::netevent_notif_type_NETEVENT_NEIGH_UPDATE {
            return None;
        }

        let neigh = data.cast::<bindings::neighbour>();
        let mut key = [0u8; 16];
        let mut mac = [0u8; 6];

        // SAFETY: The chain passes a neighbour that is valid during the call; there is room for
        // the longest key and an Ethernet address.
        let snapshot =
            unsafe { bindings::rdma_rs_neigh_read(neigh, key.as_mut_ptr(), mac.as_mut_ptr()) };

        let [a, b, c, d, ..] = key;
        let address = match snapshot & !bindings::RDMA_RS_NEIGH_VALID {
            4 => IpAddr::from([a, b, c, d]),
            16 => IpAddr::from(key),
            _ => return None,
        };

        Some(NeighbourUpdate {
            // SAFETY: A neighbour holds its device.
            device: unsafe { NetDevice::from_raw((*neigh).dev.cast()) },
            address,
            mac: (snapshot & bindings::RDMA_RS_NEIGH_VALID != 0).then_some(MacAddress::new(mac)),
        })
    }
}

/// Something that wants to hear of a chain's events.
pub trait Handler<C: Chain>: Send + Sync + 'static {
    /// Called for each event, in the chain's context.
    fn event(&self, event: C::Event<'_>);
}

/// A handler registered on a chain. Dropping it unregisters, which may sleep.
#[pin_data(PinnedDrop)]
pub struct Notifier<C: Chain, H: Handler<C>> {
    #[pin]
    handler: H,
    #[pin]
    block: Opaque<notifier_block>,
    _chain: PhantomData<fn(C)>,
}

impl<C: Chain, H: Handler<C>> Notifier<C, H> {
    /// Registers `handler`. Process context.
    ///
    /// The net device chain replays the present devices before this returns, so the handler may
    /// run at once.
    pub fn new(handler: impl PinInit<H, Error>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            handler <- handler,
            block <- Opaque::try_ffi_init(|block: *mut notifier_block| {
                let init = notifier_block {
                    notifier_call: Some(Self::call),
                    ..pin_init::zeroed()
                };

                // SAFETY: `block` is valid for writing.
                unsafe { block.write(init) };
                // SAFETY: Initialised, and in place until it is unregistered.
                to_result(unsafe { C::REGISTER(block) })
            }),
            _chain: PhantomData,
        })
    }

    /// # Safety
    ///
    /// Called by the chain with the `block` of a registered `Self` and the chain's arguments.
    unsafe extern "C" fn call(
        block: *mut notifier_block,
        event: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `block` is a field of a pinned `Self` that is registered, hence alive; `handler`
        // was initialised before it.
        let this = unsafe { &*container_of!(Opaque::cast_from(block), Self, block) };

        // SAFETY: The chain's own arguments, in its call.
        if let Some(event) = unsafe { C::decode(event, data) } {
            this.handler.event(event);
        }

        // NOTIFY_DONE: not interested in the fate of the event.
        0
    }
}

#[pinned_drop]
impl<C: Chain, H: Handler<C>> PinnedDrop for Notifier<C, H> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered when it was initialised.
        unsafe { C::UNREGISTER(self.block.get()) };
    }
}

// SAFETY: The block is touched by the chain alone; handlers are `Send`.
unsafe impl<C: Chain, H: Handler<C>> Send for Notifier<C, H> {}

// SAFETY: Nothing is reachable through a shared reference but the `Sync` handler.
unsafe impl<C: Chain, H: Handler<C>> Sync for Notifier<C, H> {}
