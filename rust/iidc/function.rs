// SPDX-License-Identifier: GPL-2.0

//! One RDMA function of the LAN driver's device.

use core::ops::Deref;
use kernel::{
    device,
    error::to_result,
    io::{
        Mmio,
        MmioRaw,
        Region, //
    },
    new_mutex,
    new_srcu,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        srcu,
        Arc,
        Mutex,
        Srcu, //
    }, //
};

use crate::{
    bindings,
    device::{
        DeviceInfo,
        Registration,
        UnregisteredDevice, //
    },
    mmap::IoPage,
    net::NetDevice,
    ops::Operations, //
};

/// Offset in BAR 0 of the page whose doorbells a process may ring by itself. It holds nothing
/// else: that is what the device has it for.
const USER_DOORBELL_PAGE: u64 = 0x7f_0000;

/// The RDMA side of a PCI function, as long as the LAN driver lends it.
///
/// Counted, and usable from any context. Every use goes through [`Function::access`], which fails
/// once the device is unbound; unbinding waits for the uses in progress. A use may sleep where its
/// caller may.
///
/// # Invariants
///
/// While `live` is set, `cdev` and all it points to is valid.
#[pin_data]
pub struct Function {
    cdev: *mut bindings::iidc_rdma_core_dev_info,
    live: Atomic<bool>,
    #[pin]
    srcu: Srcu,
    /// The RDMA device on this function. Not where its driver could forget it: it has to be gone
    /// before the function is.
    #[pin]
    registered: Mutex<Option<KBox<dyn Registered>>>,
}

/// A registration of any driver.
trait Registered: Send + Sync {}

impl<D: Operations> Registered for Registration<'static, D> {}

// SAFETY: `cdev` is followed only in a read section while `live`; the LAN driver's functions
// synchronise by themselves.
unsafe impl Send for Function {}

// SAFETY: As above.
unsafe impl Sync for Function {}

impl Function {
    /// # Safety
    ///
    /// `cdev` is valid until `revoke` was called.
    pub(super) unsafe fn new(cdev: *mut bindings::iidc_rdma_core_dev_info) -> Result<Arc<Self>> {
        // INVARIANT: By this function's contract.
        Arc::pin_init(
            try_pin_init!(Self {
                cdev,
                live: Atomic::new(true),
                srcu <- new_srcu!("Function::srcu"),
                registered <- new_mutex!(None, "Function::registered"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes `device`, which is on this function, known to the RDMA core. It is unregistered when
    /// the driver is unbound, after [`super::Driver::unbind`] and before its data is dropped.
    ///
    /// Process context, in the driver's probe and as its last step that can fail.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is one already, `ENODEV` once the function is taken back, and those of the
    /// core; the device is deallocated then.
    pub fn register<D: Operations>(
        &self,
        device: UnregisteredDevice<D>,
        info: DeviceInfo<'_>,
    ) -> Result {
        let live = self.access()?;
        let room = KBox::<Registration<'static, D>>::new_uninit(GFP_KERNEL)?;
        let mut registered = self.registered.lock();
        if registered.is_some() {
            return Err(EBUSY);
        }

        let dma = core::ptr::from_ref(live.dma_device());
        // SAFETY: Valid, and bound for longer than the registration lives: the adapter calls
        // `unregister` before the function is taken back.
        let dma = unsafe { &*dma };
        // SAFETY: The registration stays here until `unregister`; nobody else has it.
        let registration = unsafe { device.register(dma, info) }.map_err(|(error, _)| error)?;
        let registration: KBox<Registration<'static, D>> = KBox::write(room, registration);
        *registered = Some(registration);
        Ok(())
    }

    /// Undoes [`Function::register`], if that succeeded. May sleep.
    pub(super) fn unregister(&self) {
        let registration = self.registered.lock().take();
        // Not under the lock: the driver's data is dropped here.
        drop(registration);
    }

    /// Ends every use, and waits for those in progress.
    pub(super) fn revoke(&self) {
        // Pairs with the load in `access`: whoever did not see it is waited for.
        self.live.store(false, Release);
        self.srcu.synchronize();
    }

    /// The function, for the time of one use.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the device is unbound.
    pub fn access(&self) -> Result<Live<'_>> {
        let guard = self.srcu.read_lock();

        if !self.live.load(Acquire) {
            return Err(ENODEV);
        }

        // INVARIANT: Live, and `revoke` waits for the guard.
        Ok(Live {
            function: self,
            _guard: guard,
        })
    }

    /// Whether the device is still bound. It may be unbound right after.
    pub fn is_live(&self) -> bool {
        self.live.load(Acquire)
    }

    /// Runs `f` with the first `SIZE` octets of the registers; `None` once the device is unbound.
    pub fn with_registers<const SIZE: usize, R>(
        &self,
        f: impl FnOnce(Mmio<'_, Region<SIZE>>) -> R,
    ) -> Option<R> {
        let live = self.access().ok()?;
        let registers = live.registers().ok()?;

        Some(f(registers))
    }

    /// Asks the LAN driver to reset; it unbinds and binds the device again. Any context.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the device is unbound.
    pub fn request_reset(&self, kind: ResetKind) -> Result {
        let live = self.access()?;

        // SAFETY: Valid while live.
        to_result(unsafe { bindings::ice_rdma_request_reset(live.cdev(), kind.to_raw()) })
    }
}

/// What to reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetKind {
    /// This function.
    Function,
    /// The whole device.
    Device,
}

impl ResetKind {
    fn to_raw(self) -> bindings::iidc_rdma_reset_type {
        match self {
            Self::Function => bindings::iidc_rdma_reset_type_IIDC_FUNC_RESET,
            Self::Device => bindings::iidc_rdma_reset_type_IIDC_DEV_RESET,
        }
    }
}

/// PCI identity of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciIds {
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
    /// Revision.
    pub revision: u8,
}

/// Weight and kind of a traffic class.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TrafficClass {
    /// Share of the bandwidth in percent.
    pub rel_bw: u8,
    /// Kind of priority.
    pub prio_type: u8,
}

/// Quality of service, as the LAN driver set it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QosParams {
    /// The classes; only the first `num_tc` count.
    pub tc: [TrafficClass; 8],
    /// User priority to class.
    pub up2tc: [u8; 8],
    /// Weight of the function's node.
    pub rel_bw: u8,
    /// Kind of priority of the function's node.
    pub prio_type: u8,
    /// Number of classes.
    pub num_tc: u8,
    /// Whether classes go by DSCP instead of VLAN priority.
    pub dscp_mode: bool,
    /// DSCP to user priority, in that mode.
    pub dscp_map: [u8; 64],
}

/// A function in use.
///
/// # Invariants
///
/// The function is live as long as this exists.
pub struct Live<'a> {
    function: &'a Function,
    _guard: srcu::Guard<'a>,
}

impl Live<'_> {
    pub(super) fn cdev(&self) -> *mut bindings::iidc_rdma_core_dev_info {
        self.function.cdev
    }

    fn pdev(&self) -> *mut kernel::bindings::pci_dev {
        // SAFETY: Valid while live.
        unsafe { (*self.cdev()).pdev }
    }

    fn private(&self) -> *mut bindings::iidc_rdma_priv_dev_info {
        // SAFETY: Valid while live; `ice` keeps this structure there.
        unsafe { (*self.cdev()).iidc_priv.cast() }
    }

    /// The PCI device, for DMA.
    pub fn dma_device(&self) -> &device::Device<device::Bound> {
        // SAFETY: The LAN driver is bound to its device while the function is live.
        unsafe { device::Device::from_raw(&raw mut (*self.pdev()).dev) }
    }

    /// PCI identity.
    pub fn pci_ids(&self) -> PciIds {
        // SAFETY: Valid while live; constants.
        unsafe {
            PciIds {
                vendor: (*self.pdev()).vendor,
                device: (*self.pdev()).device,
                revision: (*self.pdev()).revision,
            }
        }
    }

    /// Whether the LAN driver runs the function as RoCEv2 and nothing else.
    pub fn is_rocev2(&self) -> bool {
        // SAFETY: Valid while live.
        let protocol = unsafe { (*self.cdev()).rdma_protocol };

        protocol == bindings::iidc_rdma_protocol_IIDC_RDMA_PROTOCOL_ROCEV2
    }

    /// Number of the physical function.
    pub fn pf_id(&self) -> u8 {
        // SAFETY: Valid while live.
        unsafe { (*self.private()).pf_id }
    }

    /// Number of the function's VSI.
    pub fn vport_id(&self) -> u16 {
        // SAFETY: Valid while live.
        unsafe { (*self.private()).vport_id }
    }

    /// The net device of the port.
    pub fn netdev(&self) -> &NetDevice {
        // SAFETY: The LAN driver unbinds the auxiliary device before it lets go of the net device.
        unsafe { NetDevice::from_raw((*self.private()).netdev.cast()) }
    }

    /// Quality of service at this moment. To be read at probe and in the handler of
    /// [`super::Event::AfterTcChange`].
    pub fn qos(&self) -> QosParams {
        // SAFETY: Valid while live.
        let raw = unsafe { &(*self.private()).qos_info };

        QosParams {
            tc: raw.tc_info.map(|tc| TrafficClass {
                rel_bw: tc.rel_bw,
                prio_type: tc.prio_type,
            }),
            up2tc: raw.up2tc,
            rel_bw: raw.vport_relative_bw,
            prio_type: raw.vport_priority_type,
            num_tc: raw.num_tc,
            dscp_mode: u32::from(raw.pfc_mode) == bindings::IIDC_DSCP_PFC_MODE,
            dscp_map: raw.dscp_map,
        }
    }

    /// The first `SIZE` octets of the function's registers.
    ///
    /// # Errors
    ///
    /// `EINVAL` if BAR 0 is smaller than that.
    pub fn registers<const SIZE: usize>(&self) -> Result<Mmio<'_, Region<SIZE>>> {
        // SAFETY: Valid while live.
        let len = unsafe { bindings::rdma_rs_pci_bar_len(self.pdev()) };
        let len = usize::try_from(len).map_err(|_| EINVAL)?;
        // SAFETY: Valid while live.
        let base = unsafe { (*self.private()).hw_addr };
        if base.is_null() || len < SIZE {
            return Err(EINVAL);
        }

        // CAST: The address of a mapping.
        let raw = MmioRaw::<Region<SIZE>>::new_region(base as usize, SIZE)?;
        // SAFETY: The LAN driver maps all of BAR 0, and keeps it mapped while the function is
        // live.
        Ok(unsafe { Mmio::from_raw(raw) })
    }

    /// The page of doorbells that processes may map.
    ///
    /// # Errors
    ///
    /// `EINVAL` if BAR 0 does not reach that far.
    pub fn user_doorbell_page(&self) -> Result<IoPage> {
        // SAFETY: Valid while live.
        let (start, len) = unsafe {
            (
                bindings::rdma_rs_pci_bar_start(self.pdev()),
                bindings::rdma_rs_pci_bar_len(self.pdev()),
            )
        };
        // CAST: 4096.
        let page_size = kernel::page::PAGE_SIZE as u64;
        let end = USER_DOORBELL_PAGE.checked_add(page_size).ok_or(EINVAL)?;
        if len < end {
            return Err(EINVAL);
        }

        let address = start.checked_add(USER_DOORBELL_PAGE).ok_or(EINVAL)?;
        let pfn = usize::try_from(address >> kernel::page::PAGE_SHIFT).map_err(|_| EINVAL)?;

        // SAFETY: In BAR 0 by the check above, and made for processes.
        Ok(unsafe { IoPage::from_pfn(pfn) })
    }

    /// Lets RoCEv2 packets for the function reach its RDMA side, or not. May sleep.
    fn update_filter(&self, enable: bool) -> Result {
        // SAFETY: Valid while live.
        to_result(unsafe {
            bindings::ice_rdma_update_vsi_filter(self.cdev(), self.vport_id(), enable)
        })
    }
}

/// The packet filter, on. Dropping it turns it off. May sleep.
pub struct Filter(Arc<Function>);

impl Filter {
    /// From here on RoCEv2 packets for the function reach its RDMA side. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the device is unbound, and those of the LAN driver.
    pub fn enable(function: Arc<Function>) -> Result<Self> {
        function.access()?.update_filter(true)?;
        Ok(Self(function))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let Ok(live) = self.0.access() else {
            // The LAN driver has let go of the function, and of its filter.
            return;
        };

        if let Err(error) = live.update_filter(false) {
            dev_warn!(
                live.dma_device().deref(),
                "RDMA packet filter of VSI {}: cannot turn it off: {}\n",
                live.vport_id(),
                error.to_errno()
            );
        }
    }
}
