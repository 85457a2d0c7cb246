// SPDX-License-Identifier: GPL-2.0

//! Operation codes of the control queue pair and their names.

use kernel::{
    fmt,
    num::Bounded,
    prelude::*, //
};

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal;)*) => {
        /// Operation code of a control WQE.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Op {
            $($(#[$doc])* $variant,)*
        }

        impl Op {
            /// All there are, in the order of their codes.
            pub(crate) const ALL: [Self; Self::COUNT] = [$(Self::$variant,)*];

            /// How many there are.
            pub(crate) const COUNT: usize = [$($code,)*].len();

            /// The operation's code.
            pub(crate) const fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// The operation's place in [`Self::ALL`].
            pub(crate) const fn position(self) -> usize {
                // CAST: the number of a variant.
                self as usize
            }

            /// The operation's name in the hardware contract.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl From<Op> for Bounded<u64, 6> {
            fn from(op: Op) -> Self {
                match op {
                    $(Op::$variant => Self::new::<$code>(),)*
                }
            }
        }

        impl TryFrom<Bounded<u64, 6>> for Op {
            type Error = Error;

            fn try_from(code: Bounded<u64, 6>) -> Result<Self> {
                match code.get() {
                    $($code => Ok(Self::$variant),)*
                    _ => Err(EINVAL),
                }
            }
        }
    };
}

ops! {
    CreateQp = 0x00, "CREATE_QP";
    ModifyQp = 0x01, "MODIFY_QP";
    DestroyQp = 0x02, "DESTROY_QP";
    CreateCq = 0x03, "CREATE_CQ";
    DestroyCq = 0x05, "DESTROY_CQ";
    RegMr = 0x0a, "REG_MR";
    DeallocStag = 0x0d, "DEALLOC_STAG";
    ManageArp = 0x0f, "MANAGE_ARP";
    QueryRdmaFeatures = 0x12, "QUERY_RDMA_FEATURES";
    CreateCeq = 0x16, "CREATE_CEQ";
    DestroyCeq = 0x18, "DESTROY_CEQ";
    CreateAeq = 0x19, "CREATE_AEQ";
    DestroyAeq = 0x1b, "DESTROY_AEQ";
    CreateAddrHandle = 0x1c, "CREATE_ADDR_HANDLE";
    DestroyAddrHandle = 0x1e, "DESTROY_ADDR_HANDLE";
    UpdatePeSds = 0x1f, "UPDATE_PE_SDS";
    QueryFpmVal = 0x20, "QUERY_FPM_VAL";
    CommitFpmVal = 0x21, "COMMIT_FPM_VAL";
    FlushWqes = 0x22, "FLUSH_WQES";
    CreateMcastGrp = 0x26, "CREATE_MCAST_GRP";
    ModifyMcastGrp = 0x27, "MODIFY_MCAST_GRP";
    DestroyMcastGrp = 0x28, "DESTROY_MCAST_GRP";
    SuspendQp = 0x29, "SUSPEND_QP";
    ResumeQp = 0x2a, "RESUME_QP";
    ShmcPagesAllocated = 0x2b, "SHMC_PAGES_ALLOCATED";
    WorkSchedNode = 0x2c, "WORK_SCHED_NODE";
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
