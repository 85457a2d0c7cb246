// SPDX-License-Identifier: GPL-2.0

//! What the firmware says of itself.

use crate::{
    cqp::{
        cmd,
        Cqp, //
    },
    dev::Firmware,
    lan::Port, //
};
use kernel::{
    bitfield,
    prelude::*, //
};

bitfield! {
    /// A word of the answer.
    struct Feature(u64) {
        63:48 feature_type;
    }
}

bitfield! {
    /// The first word of the answer.
    struct FirmwareInfo(u64) {
        47:32 feature_cnt;
        31:16 fw_ver_major;
        15:0 fw_ver_minor;
    }
}

/// Features the driver knows numbers for.
const MAX_FEATURES: usize = 34;

/// Bytes of the buffer: a word per feature, rounded up to 16.
const BUFFER_BYTES: u32 = 272;

/// The fewest words an answer has.
const MIN_COUNT: u64 = 2;

/// Asks the firmware for its version. Process context.
///
/// None of the features it lists matters to this generation.
///
/// # Errors
///
/// `EIO` when the answer makes no sense, and those of the control operation.
pub(crate) fn query(port: &Port, cqp: &Cqp) -> Result<Firmware> {
    let buffer = port.alloc(MAX_FEATURES)?;
    let answer = cqp.execute(&cmd::QueryRdmaFeatures {
        buffer: buffer.address(),
        size: BUFFER_BYTES,
    });
    let buffer = cqp.reclaim(answer, buffer)?;
    let first = buffer.read(0)?;
    let info = FirmwareInfo::from(first);
    if Feature::from(first).feature_type().get() != 0 || info.feature_cnt().get() < MIN_COUNT {
        dev_err!(
            port.log(),
            "QUERY_RDMA_FEATURES: impossible answer {first:#x}\n"
        );
        return Err(EIO);
    }
    Ok(Firmware {
        major: info.fw_ver_major().cast::<u32>().get(),
        minor: info.fw_ver_minor().cast::<u32>().get(),
    })
}
