// SPDX-License-Identifier: GPL-2.0

//! RDMA driver for Intel E810 (RoCEv2).
//!
//! The driver binds to the auxiliary device by which the LAN driver, `ice`, lends the RDMA side of a
//! function. From the outside in:
//!
//! - [`lan`]: the boundary to the LAN driver; [`regs`]: registers; [`mem`]: memory shared with the
//!   device;
//! - [`cqp`]: the control queue pair, by which orders are given;
//! - [`hmc`]: host memory the device keeps its objects in; [`events`]: what the device tells by itself;
//! - [`ids`], [`arp`], [`sched`]: numbers, destination addresses, queue sets; [`tc`]: what to do when the
//!   traffic classes change;
//! - [`queues`]: send, receive and completion queues; [`mcast`]: multicast groups;
//! - [`stack`]: a list that cannot fail;
//! - [`verbs`]: what the RDMA core asks for; [`views`]: what operators see in debugfs;
//! - [`watchdog`], [`oicr`]: what to do about a device in trouble; [`trace`]: trace events;
//! - [`dev`]: all of that together, one function; [`bringup`]: making and unmaking it.
//!
//! Glossary: *CQP*, control queue pair; *CCQ*, its completion queue; *CEQ*, completion event queue;
//! *AEQ*, asynchronous event queue; *HMC*, host memory cache; *SD*, segment descriptor; *FPM*, function
//! private memory; *PBLE*, page buffer list entry; *STag*, steering tag; *AH*, address handle; *MCG*,
//! multicast group; *VSI*, virtual station interface, the LAN driver's word for a port of its switch.

use kernel::{
    auxiliary,
    device::{
        Core as CoreContext,
        Device, //
    },
    driver,
    prelude::*,
    sync::Arc,
    InPlaceModule, //
};
use rdma::iidc;

mod arp;
mod bringup;
mod cqp;
mod dev;
mod events;
mod features;
mod hmc;
mod ids;
#[cfg(CONFIG_KUNIT = "y")]
mod ids_test;
mod lan;
mod mcast;
mod mem;
mod oicr;
mod queues;
mod regs;
mod sched;
mod stack;
mod tc;
mod trace;
mod verbs;
mod views;
mod watchdog;

use bringup::Core;
use lan::Port;

/// The driver of one RDMA function.
struct IrdmaDriver;

/// What a bound function is. The RDMA device on it belongs to the function itself and is gone before
/// this is dropped.
#[pin_data]
struct Bound {
    // Dropped from top to bottom.
    _filter: iidc::Filter,
    core: Core,
}

kernel::auxiliary_device_table!(IDS, (), [(auxiliary::DeviceId::new(c"ice", c"roce"), ())]);

impl Bound {
    /// Nothing happens before the initializer runs: by then there is a place for the data, and no
    /// step that can fail follows the registration.
    fn new<'a>(
        log: &'a Device,
        function: Arc<iidc::Function>,
    ) -> impl PinInit<Self, Error> + use<'a> {
        try_pin_init!(Self {
            core: Self::bring_up(log, &function)?,
            // Before anybody can use the device: what is sent to the first user has to arrive.
            _filter: iidc::Filter::enable(function.clone()).inspect_err(|error| {
                dev_err!(
                    log,
                    "packet filter: refused by the LAN driver, error {}\n",
                    error.to_errno()
                );
            })?,
            _: {
                verbs::register(core.dev(), &function).inspect_err(|error| {
                    dev_err!(
                        log,
                        "registration of the RDMA device failed, error {}\n",
                        error.to_errno()
                    );
                })?;
            },
        })
    }

    fn bring_up(log: &Device, function: &Arc<iidc::Function>) -> Result<Core> {
        if !function.access()?.is_rocev2() {
            dev_err!(log, "the LAN driver does not run this function as RoCEv2\n");
            return Err(EOPNOTSUPP);
        }
        let port = Port::new(function.clone(), log)?;
        Core::new(port, u64::from(module_parameters::max_qps.value()))
    }
}

impl iidc::Driver for IrdmaDriver {
    type Data<'bound> = Bound;

    const ID_TABLE: auxiliary::IdTable<()> = &IDS;

    fn probe<'bound>(
        dev: &'bound auxiliary::Device<CoreContext<'_>>,
        function: Arc<iidc::Function>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        Bound::new(dev.as_ref(), function)
    }

    fn event(data: Pin<&Bound>, events: iidc::Events) {
        if events.contains(iidc::Event::CriticalError) {
            oicr::handle(data.core.dev(), events.register());
        }
        let dev = data.core.dev();
        if events.contains(iidc::Event::BeforeTcChange) {
            dev.tc.before(dev);
        }
        if events.contains(iidc::Event::AfterTcChange) {
            dev.tc.after(dev);
        }
        // The MTU is read from the net device whenever it matters.
    }
}

module! {
    type: IrdmaModule,
    name: "irdma_rs",
    authors: ["The irdma_rs authors"],
    description: "RDMA driver for Intel E810",
    license: "GPL",
    params: {
        max_qps: u32 {
            default: 1024,
            description: "Queue pairs per function; memory taken at load grows with it",
        },
    },
}

#[pin_data]
struct IrdmaModule {
    #[pin]
    _driver: driver::Registration<iidc::Adapter<IrdmaDriver>>,
    // Dropped when all devices are gone.
    _views: rdma::sys::debugfs::Root,
}

impl InPlaceModule for IrdmaModule {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _views: views::root(),
            _driver <- driver::Registration::new(c"irdma_rs", module),
        })
    }
}
