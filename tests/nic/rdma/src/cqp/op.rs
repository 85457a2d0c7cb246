// SPDX-License-Identifier: GPL-2.0
//! The operations of the control queue by code and name.

use crate::bits::{bits, low8, Field};

/// Word 3 of every control WQE: the operation.
pub(crate) const OPCODE: Field = bits(37, 32);

macro_rules! ops {
    ($($variant:ident = $code:literal, $name:literal;)*) => {
        /// An operation of the control queue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Op { $(#[doc = $name] $variant,)* }

        impl Op {
            /// Every operation the device knows.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The operation with this code.
            pub(crate) const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// Its name in the hardware contract.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

ops! {
    CreateQp = 0x00, "CREATE_QP";
    ModifyQp = 0x01, "MODIFY_QP";
    DestroyQp = 0x02, "DESTROY_QP";
    CreateCq = 0x03, "CREATE_CQ";
    ModifyCq = 0x04, "MODIFY_CQ";
    DestroyCq = 0x05, "DESTROY_CQ";
    AllocStag = 0x09, "ALLOC_STAG";
    RegMr = 0x0A, "REG_MR";
    DeallocStag = 0x0D, "DEALLOC_STAG";
    ManageArp = 0x0F, "MANAGE_ARP";
    QueryRdmaFeatures = 0x12, "QUERY_RDMA_FEATURES";
    CreateCeq = 0x16, "CREATE_CEQ";
    DestroyCeq = 0x18, "DESTROY_CEQ";
    CreateAeq = 0x19, "CREATE_AEQ";
    DestroyAeq = 0x1B, "DESTROY_AEQ";
    CreateAh = 0x1C, "CREATE_ADDR_HANDLE";
    DestroyAh = 0x1E, "DESTROY_ADDR_HANDLE";
    UpdatePeSds = 0x1F, "UPDATE_PE_SDS";
    QueryFpmVal = 0x20, "QUERY_FPM_VAL";
    CommitFpmVal = 0x21, "COMMIT_FPM_VAL";
    FlushWqes = 0x22, "FLUSH_WQES";
    Nop = 0x24, "NOP";
    CreateMcastGrp = 0x26, "CREATE_MCAST_GRP";
    ModifyMcastGrp = 0x27, "MODIFY_MCAST_GRP";
    DestroyMcastGrp = 0x28, "DESTROY_MCAST_GRP";
    SuspendQp = 0x29, "SUSPEND_QP";
    ResumeQp = 0x2A, "RESUME_QP";
    ShmcPagesAllocated = 0x2B, "SHMC_PAGES_ALLOCATED";
    WorkSchedNode = 0x2C, "WORK_SCHED_NODE";
    GatherStats = 0x2E, "GATHER_STATS";
}

impl Op {
    /// The operation named in word 3, or the unknown code.
    pub(crate) fn decode(header: u64) -> Result<Self, u8> {
        let code = low8(OPCODE.get(header));
        Self::from_code(code).ok_or(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_headers_decode() {
        for (header, op) in [
            (0x900C_8000_0000_0045, Op::CreateQp),
            (0xC800_001C_0000_0005, Op::CreateAh),
            (0x8000_0C0F_0000_0002, Op::ManageArp),
            (0x9000_0026_0000_0001, Op::CreateMcastGrp),
        ] {
            assert_eq!(Op::decode(header), Ok(op));
        }
        assert_eq!(Op::decode(0x3F << 32), Err(0x3F));
    }
}
