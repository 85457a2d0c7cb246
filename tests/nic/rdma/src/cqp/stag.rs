// SPDX-License-Identifier: GPL-2.0
//! REG_MR, ALLOC_STAG and DEALLOC_STAG.

use super::{Done, OpResult, Wqe};
use crate::bits::{bit, bits, low8, Field};
use crate::config::Kind;
use crate::cqp::error::CqpError;
use crate::model::Model;
use crate::stag::{Backing, PageSize, Region, Rights, Stag};

/// Word 1.
const LENGTH: Field = bits(45, 0);
const PD_LOW: Field = bits(63, 46);
/// Word 2.
const KEY: Field = bits(7, 0);
const INDEX: Field = bits(31, 8);
const PD_HIGH: Field = bits(59, 54);
/// Word 3.
const IS_MR: Field = bit(43);
const LPBL_SIZE: Field = bits(45, 44);
const PAGE_SIZE: Field = bits(47, 46);
const RIGHTS: Field = bits(52, 48);
const REMOTE: Field = bit(53);
const VA_BASED: Field = bit(59);
/// Word 6.
const FIRST_PBLE: Field = bits(27, 0);

fn pd(wqe: &Wqe) -> u32 {
    PD_HIGH.get32(wqe[2]) << 18 | PD_LOW.get32(wqe[1])
}

fn backing(wqe: &Wqe) -> Result<Backing, CqpError> {
    let first = FIRST_PBLE.get32(wqe[6]);
    match LPBL_SIZE.get(wqe[3]) {
        0 => Ok(Backing::Contiguous(wqe[4])),
        1 => Ok(Backing::List(first)),
        3 => Ok(Backing::Tree(first)),
        level => Err(CqpError::parameter(format_args!("page list level {level}"))),
    }
}

impl Model {
    fn new_stag(&mut self, wqe: &Wqe, region: Option<Region>, rights: Rights) -> OpResult {
        let field = INDEX.get32(wqe[2]);
        if !IS_MR.is_set(wqe[3]) {
            return Err(CqpError::parameter("memory windows do not exist here"));
        }
        let count = self.hmc.count(Kind::Mr);
        let stag = Stag {
            key: low8(KEY.get(wqe[2])),
            pd: pd(wqe),
            rights,
            remote: REMOTE.is_set(wqe[3]),
            region,
        };
        self.stags.insert(field, count, stag)?;
        Ok(Done::default())
    }

    pub(super) fn op_reg_mr(&mut self, wqe: &Wqe) -> OpResult {
        let page = PageSize::from_code(PAGE_SIZE.get(wqe[3]))
            .ok_or_else(|| CqpError::parameter("page size code 3"))?;
        let region = Region {
            start: wqe[0],
            length: LENGTH.get(wqe[1]),
            va_based: VA_BASED.is_set(wqe[3]),
            page,
            backing: backing(wqe)?,
        };
        let rights = Rights::from_bits(low8(RIGHTS.get(wqe[3])));
        self.new_stag(wqe, Some(region), rights)
    }

    pub(super) fn op_alloc_stag(&mut self, wqe: &Wqe) -> OpResult {
        self.new_stag(wqe, None, Rights::from_bits(0))
    }

    pub(super) fn op_dealloc_stag(&mut self, wqe: &Wqe) -> OpResult {
        let field = INDEX.get32(wqe[2]);
        let Some(stag) = self.stags.get(field) else {
            return Err(CqpError::unused("STag", field));
        };
        let owner = stag.pd;
        let asked = pd(wqe);
        // Drivers cut the PD id to its low 15 bits here.
        if (owner ^ asked) & 0x7FFF != 0 {
            return Err(CqpError::parameter(format_args!(
                "STag {field:#x} belongs to PD {owner}, not {asked}"
            )));
        }
        self.stags.remove(field);
        Ok(Done::default())
    }
}
