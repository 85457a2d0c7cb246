// SPDX-License-Identifier: GPL-2.0

//! One function of the card as the LAN driver lends it.

use crate::{
    mem::DmaWords,
    regs::BAR_SIZE, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    io::{
        register::LocatedRegister,
        Io,
        IoCapable,
        IoLoc,
        MmioBackend,
        Region, //
    },
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    },
};
use rdma::{
    iidc::{
        Function,
        PciIds,
        QosParams,
        Qset,
        ResetKind, //
    },
    mmap::IoPage,
    net::NetDevice, //
};

/// The registers.
type Bar = Region<BAR_SIZE>;

/// A function, usable from any context until the LAN driver takes it back. After that registers
/// cannot be read, writes go nowhere, and nothing can be allocated.
pub(crate) struct Port {
    function: Arc<Function>,
    /// The auxiliary device, for messages.
    log: ARef<Device>,
    pf_id: u8,
    vsi: u16,
    pci_id: PciIds,
    guid: [u8; 8],
    /// A reset was requested: asking once is enough.
    reset_requested: AtomicFlag,
}

impl Port {
    /// Takes down what does not change while the function is lent.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the function is taken back.
    pub(crate) fn new(function: Arc<Function>, log: &Device) -> Result<Arc<Self>> {
        let live = function.access()?;
        let port = Self {
            log: log.into(),
            pf_id: live.pf_id(),
            vsi: live.vport_id(),
            pci_id: live.pci_ids(),
            guid: live.netdev().mac().eui64(),
            reset_requested: AtomicFlag::new(false),
            function: function.clone(),
        };
        drop(live);
        Ok(Arc::new(port, GFP_KERNEL)?)
    }

    /// The function itself.
    pub(crate) fn function(&self) -> &Arc<Function> {
        &self.function
    }

    /// The device to name in messages.
    pub(crate) fn log(&self) -> &Device {
        &self.log
    }

    /// Number of the physical function.
    pub(crate) fn pf_id(&self) -> u8 {
        self.pf_id
    }

    /// Number of the VSI.
    pub(crate) fn vsi(&self) -> u16 {
        self.vsi
    }

    /// Identity of the PCI function.
    pub(crate) fn pci_id(&self) -> PciIds {
        self.pci_id
    }

    /// The GUID made of the MAC address the port had at probe, octets in wire order.
    pub(crate) fn guid(&self) -> [u8; 8] {
        self.guid
    }

    /// The net device of the port. The reference must not be kept: it holds up the removal of the net
    /// device.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the function is taken back.
    pub(crate) fn netdev(&self) -> Result<ARef<NetDevice>> {
        Ok(self.function.access()?.netdev().into())
    }

    /// The page of doorbells that processes may map.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the function is taken back, `EINVAL` if the BAR does not reach that far.
    pub(crate) fn doorbell_page(&self) -> Result<IoPage> {
        self.function.access()?.user_doorbell_page()
    }

    /// Reads the register at `location`. Any context.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the function is taken back.
    #[inline(always)]
    pub(crate) fn read<T, L>(&self, location: L) -> Result<T>
    where
        L: IoLoc<Bar, T>,
        MmioBackend: IoCapable<L::IoType>,
    {
        self.function
            .with_registers::<BAR_SIZE, _>(|io| io.read(location))
            .ok_or(ENODEV)
    }

    /// Writes `value` to the register at `location`, one of an array. Any context.
    pub(crate) fn write_at<T, L>(&self, location: L, value: T)
    where
        L: IoLoc<Bar, T>,
        MmioBackend: IoCapable<L::IoType>,
    {
        // A function that has been taken back wants to be told nothing, and the arrays lie within
        // the registers.
        let _ = self
            .function
            .with_registers::<BAR_SIZE, _>(|io| io.try_write(location, value));
    }

    /// Writes a register whose type says where it is. Any context.
    #[inline(always)]
    pub(crate) fn write_reg<T, L, V>(&self, value: V)
    where
        L: IoLoc<Bar, T>,
        V: LocatedRegister<Bar, Location = L, Value = T>,
        MmioBackend: IoCapable<L::IoType>,
    {
        // A function that has been taken back wants to be told nothing.
        let _ = self
            .function
            .with_registers::<BAR_SIZE, _>(|io| io.write_reg(value));
    }

    /// Runs `f` with the device to allocate DMA memory for. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the function is taken back, and those of `f`.
    pub(crate) fn with_dma<R>(&self, f: impl FnOnce(&Device<Bound>) -> Result<R>) -> Result<R> {
        f(self.function.access()?.dma_device())
    }

    /// Allocates `words` zeroed words of DMA memory. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `ENODEV` once the function is taken back.
    pub(crate) fn alloc(&self, words: usize) -> Result<DmaWords> {
        self.with_dma(|dev| DmaWords::new(dev, words))
    }

    /// Asks for a reset of the function, once. Any context.
    pub(crate) fn request_reset(&self) {
        if self.reset_requested.xchg(true, Relaxed) {
            return;
        }
        if let Err(error) = self.function.request_reset(ResetKind::Function) {
            dev_err!(
                self.log(),
                "the LAN driver refused a reset of the function, error {}\n",
                error.to_errno()
            );
        }
    }

    /// The traffic classes as the LAN driver has set them up. To be read when the function is brought
    /// up, and when the LAN driver says that they have changed.
    ///
    /// # Errors
    ///
    /// `ENODEV` once the function is taken back.
    pub(crate) fn qos(&self) -> Result<QosParams> {
        Ok(self.function.access()?.qos())
    }

    /// Adds a queue set to the LAN driver's scheduler. Process context.
    ///
    /// # Errors
    ///
    /// Those of the LAN driver.
    pub(crate) fn add_qset(&self, handle: u16, class: u8) -> Result<Qset> {
        Qset::add(self.function.clone(), handle, class)
    }
}
