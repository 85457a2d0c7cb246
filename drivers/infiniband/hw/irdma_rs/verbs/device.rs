// SPDX-License-Identifier: GPL-2.0

//! The device and its port: what they can do and are doing.
//!
//! Every limit reported here can be reached exactly. Those of completion queues and protection domains
//! are one below what the device has, as the MAD layer of the kernel takes one of each.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use rdma::{
    device::{
        Device,
        DeviceAttrs,
        DeviceCaps,
        DeviceInfo,
        DriverId,
        Mtu,
        PortAttrs,
        PortCaps,
        PortImmutable,
        PortNum,
        UnregisteredDevice, //
    },
    iidc::Function,
    ops::Operations,
};

use super::{
    abi,
    ah::{
        Ah,
        Handles, //
    },
    cq::Cq,
    mr::{
        Mr,
        MAX_MR_SIZE,
        PAGE_SIZES, //
    },
    pd::Pd,
    qp::{
        Qp,
        QpShared, //
    },
    ucontext::Ucontext,
};
use crate::{
    dev::Dev,
    events::Table,
    mcast::{
        context::MAX_MEMBERS,
        Groups, //
    },
    queues::geometry,
    views::Views, //
};

/// The P_Key of the default partition, the only one.
pub(crate) const PKEY: u16 = 0xffff;

/// Entries of the GID table.
const GID_TABLE_LEN: u16 = 32;

/// Entries of the P_Key table.
const PKEY_TABLE_LEN: u16 = 1;

/// Octets of a MAD.
const MAD_SIZE: u32 = 256;

/// LID of the port; Ethernet has no use for it, but zero means "none" to some.
const LID: u16 = 1;

/// Octets of a largest message.
const MAX_MESSAGE: u32 = 0x7fff_ffff;

/// Driver of the verbs.
pub(crate) struct Irdma;

/// What the verbs keep of a device.
#[pin_data(PinnedDrop)]
pub(crate) struct Data {
    // Dropped first.
    _views: Views,
    pub(crate) dev: Arc<Dev>,
    /// Queue pairs of the kernel, by number, for those who poll their completions.
    #[pin]
    pub(crate) kernel_qps: Table<QpShared>,
    /// Address handles of processes.
    #[pin]
    pub(crate) handles: Handles,
    /// Multicast groups.
    pub(crate) groups: Arc<Groups>,
    /// Distinguishes those who had a number one after the other.
    generation: Atomic<u32>,
}

impl Data {
    /// Prepares the verbs of `dev`, which has been brought up.
    pub(crate) fn new(dev: Arc<Dev>) -> impl PinInit<Self, Error> {
        let limits = dev.limits;

        try_pin_init!(Self {
            kernel_qps <- Table::new(limits.qps)?,
            handles <- Handles::new(),
            groups: Arc::pin_init(Groups::new(dev.clone()), GFP_KERNEL)?,
            _views: Views::new(dev.clone(), groups.clone())?,
            // Undone by the destructor of the whole: nothing that can fail may follow.
            _: {
                dev.tc.set_groups(Some(groups.clone()));
            },
            dev,
            generation: Atomic::new(0),
        })
    }

    /// Returns a number that comes again only after all others.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.fetch_add(1, Relaxed)
    }
}

#[pinned_drop]
impl PinnedDrop for Data {
    fn drop(self: Pin<&mut Self>) {
        // The groups hold on to the device, so the device must not go on holding on to them.
        self.dev.tc.set_groups(None);
    }
}

/// Makes the verbs of `dev`, which is on `function`, known to the RDMA core. Process context.
///
/// # Errors
///
/// Those of memory and of the core.
pub(crate) fn register(dev: &Arc<Dev>, function: &Function) -> Result {
    let device = UnregisteredDevice::<Irdma>::new(Data::new(dev.clone()))?;
    let netdev = dev.port.netdev()?;
    let info = DeviceInfo {
        name: c"irdma%d",
        ports: 1,
        comp_vectors: dev.ceqs(),
        node_guid: dev.port.guid(),
        local_dma_lkey: 0,
        netdev: &netdev,
    };
    function.register(device, info)
}

#[vtable]
impl Operations for Irdma {
    type OwnerModule = crate::IrdmaModule;
    type Data = Data;
    type Ucontext = Ucontext;
    type Pd = Pd;
    type Cq = Cq;
    type Qp = Qp;
    type Mr = Mr;
    type Ah = Ah;

    const DRIVER_ID: DriverId = DriverId::IRDMA;
    // CAST: Widening in a constant.
    const ABI_VERSION: u32 = abi::ABI_VERSION as u32;

    fn query_device(device: &Device<Self>) -> Result<DeviceAttrs> {
        let data = device.data();
        let dev = &data.dev;
        let pci = dev.port.pci_id();
        let (major, minor) = dev.fw_version();
        let groups = data.groups.capacity();
        // CAST: A small constant.
        let members = MAX_MEMBERS as u32;

        Ok(DeviceAttrs {
            fw_ver: u64::from(major) << 32 | u64::from(minor),
            sys_image_guid: dev.port.guid(),
            max_mr_size: MAX_MR_SIZE,
            page_size_cap: PAGE_SIZES,
            vendor_id: u32::from(pci.vendor),
            vendor_part_id: u32::from(pci.device),
            hw_ver: u32::from(pci.revision),
            max_qp: dev.ids.qps.capacity(),
            max_qp_wr: geometry::MAX_WRS,
            device_caps: DeviceCaps::default(),
            local_dma_lkey: true,
            max_send_sge: geometry::MAX_SGE,
            max_recv_sge: geometry::MAX_SGE,
            max_sge_rd: geometry::MAX_SGE,
            max_cq: dev.ids.cqs.capacity().saturating_sub(1),
            max_cqe: geometry::MAX_CQE,
            max_mr: dev.ids.mrs.capacity(),
            max_pd: dev.ids.pds.capacity().saturating_sub(1),
            max_ah: dev.ids.ahs.capacity(),
            max_mcast_grp: groups,
            max_mcast_qp_attach: members,
            max_total_mcast_qp_attach: groups.saturating_mul(members),
            max_pkeys: PKEY_TABLE_LEN,
            ..DeviceAttrs::default()
        })
    }

    fn query_port(device: &Device<Self>, port: PortNum) -> Result<PortAttrs> {
        let netdev = device.data().dev.port.netdev()?;

        Ok(PortAttrs {
            active: netdev.is_link_up(),
            max_mtu: Mtu::Mtu4096,
            active_mtu: Mtu::for_ethernet(netdev.mtu()).unwrap_or(Mtu::Mtu256),
            gid_tbl_len: GID_TABLE_LEN,
            pkey_tbl_len: PKEY_TABLE_LEN,
            port_cap_flags: PortCaps::CM_SUP.with(PortCaps::REINIT_SUP),
            max_msg_sz: MAX_MESSAGE,
            lid: LID,
            speed: device.eth_speed(port)?,
        })
    }

    fn port_immutable(_device: &Device<Self>, _port: PortNum) -> Result<PortImmutable> {
        Ok(PortImmutable {
            pkey_tbl_len: PKEY_TABLE_LEN,
            gid_tbl_len: GID_TABLE_LEN,
            max_mad_size: MAD_SIZE,
        })
    }

    fn query_pkey(_device: &Device<Self>, _port: PortNum, index: u16) -> Result<u16> {
        if index >= PKEY_TABLE_LEN {
            return Err(EINVAL);
        }
        Ok(PKEY)
    }

    fn fw_version(device: &Device<Self>) -> (u32, u32) {
        device.data().dev.fw_version()
    }
}
