// SPDX-License-Identifier: GPL-2.0
//! QUERY_RDMA_FEATURES: firmware and hardware version.

use super::{Done, OpResult, Wqe};
use crate::bits::{bits, bytes, len64, size, Field};
use crate::cqp::error::CqpError;
use crate::model::Model;

/// Word 3 of the WQE: bytes of the buffer.
const BUFFER_LEN: Field = bits(31, 0);

/// A word of the answer: type and value.
const FEATURE_TYPE: Field = bits(63, 48);
const COUNT: Field = bits(47, 32);
const FW_MAJOR: Field = bits(31, 16);
const FW_MINOR: Field = bits(15, 0);
const HW_MAJOR: Field = bits(23, 16);

impl Model {
    pub(super) fn op_query_features(&mut self, wqe: &Wqe) -> OpResult {
        let (major, minor) = self.config.firmware;
        let answer = [
            COUNT.put(2) | FW_MAJOR.put(major.into()) | FW_MINOR.put(minor.into()),
            FEATURE_TYPE.put(1) | HW_MAJOR.put(1),
        ];
        let room = BUFFER_LEN.get32(wqe[3]);
        let out = bytes(&answer);
        if len64(out.len()) > u64::from(room) {
            return Err(CqpError::parameter(format_args!(
                "buffer of {} bytes",
                size(room)
            )));
        }
        self.host.dma.write(wqe[4], &out)?;
        Ok(Done::default())
    }
}
