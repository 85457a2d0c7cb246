// SPDX-License-Identifier: GPL-2.0

//! RDMA driver for Intel E810.

use kernel::{
    auxiliary,
    device::Core,
    driver,
    prelude::*,
    sync::Arc,
    InPlaceModule, //
};
use rdma::iidc;

/// The driver of one RDMA function.
struct IrdmaDriver;

kernel::auxiliary_device_table!(
    IDS,
    (),
    [(auxiliary::DeviceId::new(c"ice", c"roce"), ())]
);

impl iidc::Driver for IrdmaDriver {
    type Data<'bound> = ();

    const ID_TABLE: auxiliary::IdTable<()> = &IDS;

    fn probe<'bound>(
        _dev: &'bound auxiliary::Device<Core<'_>>,
        _function: Arc<iidc::Function>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        Err::<(), Error>(ENODEV)
    }

    fn event(_data: Pin<&()>, _events: iidc::Events) {}
}

module! {
    type: IrdmaModule,
    name: "irdma_rs",
    authors: ["The irdma_rs authors"],
    description: "RDMA driver for Intel E810",
    license: "GPL",
}

#[pin_data]
struct IrdmaModule {
    #[pin]
    _driver: driver::Registration<iidc::Adapter<IrdmaDriver>>,
}

impl InPlaceModule for IrdmaModule {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _driver <- driver::Registration::new(c"irdma_rs", module),
        })
    }
}
