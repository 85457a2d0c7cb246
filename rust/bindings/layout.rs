// SPDX-License-Identifier: GPL-2.0

//! Do both compilers lay structures out alike?
//!
//! bindgen asks libclang, the kernel may be built by gcc, and a plug-in or an option that only one
//! of them knows would make every access of this crate wrong. So the sizes and offsets that the C
//! compiler saw (`helpers.c`) are compared with Rust's when the module is loaded.

use kernel::prelude::*;

use crate::bindings;

macro_rules! layout {
    ($($c:ident $(. $field:ident)?),* $(,)?) => {
        [$(layout!(@entry $c $($field)?)),*]
    };
    (@entry $c:ident) => {
        (stringify!($c), size_of::<bindings::$c>())
    };
    (@entry $c:ident $field:ident) => {
        (
            concat!(stringify!($c), ".", stringify!($field)),
            core::mem::offset_of!(bindings::$c, $field),
        )
    };
}

// CAST: A small constant.
const LEN: usize = bindings::RDMA_RS_LAYOUT_LEN as usize;

/// Rust's view of each entry of `rdma_rs_layout`, in its order. The device in an `ib_device` is in
/// a union without a name.
const LAYOUT: [(&str, usize); LEN] = layout![
    ib_ah,
    ib_block_iter,
    ib_client,
    ib_cq,
    ib_cq.cq_context,
    ib_device,
    ib_device.attrs,
    ib_device.__bindgen_anon_1,
    ib_device.name,
    ib_device.phys_port_cnt,
    ib_device_attr,
    ib_device_ops,
    ib_device_ops.size_ib_qp,
    ib_gid_attr,
    ib_mr,
    ib_pd,
    ib_port_attr,
    ib_qp,
    ib_qp_attr,
    ib_qp_init_attr,
    ib_recv_wr,
    ib_ucontext,
    ib_ud_wr,
    ib_umem,
    ib_wc,
    iidc_rdma_core_auxiliary_dev,
    iidc_rdma_core_auxiliary_drv,
    iidc_rdma_priv_dev_info,
    in_ifaddr.ifa_local,
    inet6_ifaddr.if_list,
    neighbour.dev,
    net_device,
    net_device.mtu,
    rdma_ah_attr,
    rdma_user_mmap_entry,
    uverbs_attr_bundle,
];

/// Compares the two views.
///
/// # Errors
///
/// `ENOEXEC` if they differ, with a message for each difference.
pub(crate) fn check() -> Result {
    let mut result = Ok(());

    // SAFETY: A constant array of this length.
    let c_layout = unsafe {
        (&raw const bindings::rdma_rs_layout)
            .cast::<[usize; LEN]>()
            .read()
    };

    for ((name, rust), c) in LAYOUT.into_iter().zip(c_layout) {
        if c != rust {
            pr_err!("{name}: {c} octets in C, {rust} in Rust\n");
            result = Err(ENOEXEC);
        }
    }

    result
}
