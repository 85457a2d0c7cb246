// SPDX-License-Identifier: GPL-2.0
//! Switch configuration and rules. The rules of one command follow each other in the buffer.

use super::{Answer, Code, Command};
use crate::le::{Load, Store};
use crate::switch::{Action, Direction, ListKind, Recipe, Rule, PATTERN};
use crate::Lan;

/// Bytes of a lookup rule before its pattern.
const LOOKUP: usize = 16;
/// Bytes of a list rule before its members.
const LIST: usize = 8;
/// Members a list rule may name.
const MAX_MEMBERS: u16 = 768;

/// Types of rules.
const LOOKUP_RECEIVE: u16 = 0;
const LOOKUP_TRANSMIT: u16 = 1;
const VSI_LIST_SET: u16 = 3;
const VSI_LIST_CLEAR: u16 = 4;
const PRUNE_LIST_SET: u16 = 5;
const PRUNE_LIST_CLEAR: u16 = 6;

/// 0x0200: get the switch configuration: one element, the physical port.
pub fn configuration(command: &mut Command) -> Answer {
    const SWITCH_ID: u16 = 1;
    command.set_u16(2, 0);
    command.set_u16(4, 1);
    let mut element = vec![0; 6];
    element.put_u16(2, SWITCH_ID)?;
    command.answer(element)
}

/// 0x020d: get the VLAN mode: single.
pub fn vlan_mode(command: &mut Command) -> Answer {
    command.data.fill(0);
    Ok(())
}

/// 0x02a4: clear the function's configuration.
pub fn clear(lan: &Lan) -> Answer {
    lan.switch.write().clear_rules();
    Ok(())
}

/// Visits each rule: type and offset. `visit` returns the rule's length.
fn each(
    command: &mut Command,
    mut visit: impl FnMut(&mut Vec<u8>, u16, usize) -> Result<usize, Code>,
) -> Answer {
    let mut at = 0;
    for _ in 0..command.u16(0) {
        let kind = command.data.u16_at(at)?;
        at += visit(&mut command.data, kind, at)?;
    }
    Ok(())
}

/// Carries out a list rule at `at` and returns its length.
fn list(lan: &Lan, data: &[u8], kind: u16, at: usize) -> Result<usize, Code> {
    let (list, member) = match kind {
        VSI_LIST_SET => (ListKind::Replicate, true),
        VSI_LIST_CLEAR => (ListKind::Replicate, false),
        PRUNE_LIST_SET => (ListKind::Prune, true),
        PRUNE_LIST_CLEAR => (ListKind::Prune, false),
        _ => return Err(Code::Einval),
    };
    let id = data.u16_at(at + 4)?;
    let count = data.u16_at(at + 6)?;
    if count > MAX_MEMBERS || id >= 1024 {
        return Err(Code::Einval);
    }
    let vsis: Result<Vec<u16>, _> = (0..usize::from(count))
        .map(|index| data.u16_at(at + LIST + 2 * index))
        .collect();
    let vsis = vsis?;
    lan.switch.write().change_list(list, id, member, &vsis);
    Ok(LIST + 2 * usize::from(count))
}

/// Whether a rule of this type looks frames up.
fn is_lookup(kind: u16) -> bool {
    matches!(kind, LOOKUP_RECEIVE | LOOKUP_TRANSMIT)
}

/// Decodes a lookup rule at `at`.
fn lookup(lan: &Lan, data: &[u8], kind: u16, at: usize) -> Result<Rule, Code> {
    let number = data.u16_at(at + 4)?;
    let Some(recipe) = Recipe::decode(number) else {
        lan.log(format_args!("switch rule: recipe {number} is not known"));
        return Err(Code::Einval);
    };
    // The default rule has no pattern.
    let pattern = match data.u16_at(at + 14)? {
        0 => [0; PATTERN],
        _ => data.array_at(at + LOOKUP)?,
    };
    Ok(Rule {
        direction: if kind == LOOKUP_RECEIVE {
            Direction::Receive
        } else {
            Direction::Transmit
        },
        recipe,
        pattern,
        action: Action::decode(data.u32_at(at + 8)?),
    })
}

/// 0x02a0: add rules, and report the index of each.
pub fn add_rules(lan: &Lan, command: &mut Command) -> Answer {
    each(command, |data, kind, at| {
        if !is_lookup(kind) {
            return list(lan, data, kind, at);
        }
        let rule = lookup(lan, data, kind, at)?;
        let index = lan.switch.write().add_rule(rule).ok_or(Code::Enospc)?;
        data.put_u16(at + 2, 0)?;
        data.put_u16(at + 12, index)?;
        Ok(LOOKUP + usize::from(data.u16_at(at + 14)?))
    })
}

/// 0x02a1: give rules other actions, or lists other members.
pub fn update_rules(lan: &Lan, command: &mut Command) -> Answer {
    each(command, |data, kind, at| {
        if !is_lookup(kind) {
            return list(lan, data, kind, at);
        }
        let index = data.u16_at(at + 12)?;
        let action = Action::decode(data.u32_at(at + 8)?);
        if !lan.switch.write().update_rule(index, action) {
            return Err(Code::Enoent);
        }
        Ok(LOOKUP + usize::from(data.u16_at(at + 14)?))
    })
}

/// 0x02a2: remove rules. Only the index matters; the driver leaves the pattern out.
pub fn remove_rules(lan: &Lan, command: &mut Command) -> Answer {
    each(command, |data, kind, at| {
        if !is_lookup(kind) {
            return list(lan, data, kind, at);
        }
        let index = data.u16_at(at + 12)?;
        if !lan.switch.write().remove_rule(index) {
            return Err(Code::Enoent);
        }
        Ok(LOOKUP + usize::from(data.u16_at(at + 14)?))
    })
}
