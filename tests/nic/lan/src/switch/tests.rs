// SPDX-License-Identifier: GPL-2.0
//! Filters as `ice` programs them.

use super::*;
use crate::vsi::CONTEXT;

const OWN: [u8; 6] = [2, 0xe8, 0x10, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0xe8, 0x10, 0, 0, 9];
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];

fn vsi(prune: bool) -> Vsi {
    let mut context = vec![0; CONTEXT];
    context[0] = 1;
    context[4] = u8::from(prune);
    Vsi::new(&context).unwrap()
}

fn rule(direction: Direction, recipe: Recipe, address: [u8; 6], tag: u16, action: u32) -> Rule {
    let mut pattern = [0; PATTERN];
    pattern[..6].copy_from_slice(&address);
    pattern[12..14].copy_from_slice(&[0x81, 0]);
    pattern[14..].copy_from_slice(&tag.to_be_bytes());
    Rule {
        direction,
        recipe,
        pattern,
        action: Action::decode(action),
    }
}

fn frame(destination: [u8; 6], vlan: Option<u16>) -> Header {
    Header {
        destination,
        vlan,
        ether_type: 0x800,
        len: 14,
    }
}

fn switch(prune: bool) -> Switch {
    let mut switch = Switch::default();
    switch.add_vsi(None, 4, vsi(prune)).unwrap();
    let own = rule(Direction::Transmit, Recipe::Mac, OWN, 0, 0x2_000c);
    switch.add_rule(own).unwrap();
    switch
}

#[test]
fn actions_are_the_contracts() {
    assert_eq!(Action::decode(0x2_000c), Action::Vsi(0));
    assert_eq!(Action::decode(0x6_0000), Action::Drop);
    assert_eq!(Action::decode(0x1_c01a), Action::PruneList(1));
    assert_eq!(Action::decode(0x2_401c), Action::List(1));
    assert_eq!(Action::decode(0), Action::Other);
}

#[test]
fn only_asked_addresses_come_in() {
    let mut switch = switch(false);
    assert_eq!(switch.receivers(&frame(OWN, None)), [0]);
    assert!(switch.receivers(&frame(OTHER, None)).is_empty());
    assert!(switch.receivers(&frame(GROUP, None)).is_empty());
    let group = rule(Direction::Transmit, Recipe::Mac, GROUP, 0, 0x2_000c);
    let index = switch.add_rule(group).unwrap();
    assert_eq!(switch.receivers(&frame(GROUP, None)), [0]);
    assert!(switch.remove_rule(index) && !switch.remove_rule(index));
    assert!(switch.receivers(&frame(GROUP, None)).is_empty());
}

#[test]
fn promiscuous_rules_match_by_class() {
    let mut switch = switch(false);
    let unicast = [2, 0, 0, 0, 0, 0];
    let rule = rule(
        Direction::Receive,
        Recipe::Promiscuous,
        unicast,
        0,
        0x2_0000,
    );
    switch.add_rule(rule).unwrap();
    assert_eq!(switch.receivers(&frame(OTHER, None)), [0]);
    assert!(switch.receivers(&frame(GROUP, None)).is_empty());
    assert!(switch.receivers(&frame([0xff; 6], None)).is_empty());
}

#[test]
fn promiscuous_vlan_rules_match_their_vlan() {
    let mut switch = switch(false);
    let recipe = Recipe::PromiscuousVlan;
    let rule = rule(Direction::Receive, recipe, [3, 0, 0, 0, 0, 0], 7, 0x2_0000);
    switch.add_rule(rule).unwrap();
    assert_eq!(switch.receivers(&frame(GROUP, Some(7))), [0]);
    assert!(switch.receivers(&frame(GROUP, Some(8))).is_empty());
}

#[test]
fn default_rule_takes_everything() {
    let mut switch = switch(false);
    let all = rule(Direction::Receive, Recipe::Default, [0; 6], 0, 0x2_0000);
    switch.add_rule(all).unwrap();
    assert_eq!(switch.receivers(&frame(OTHER, None)), [0]);
}

#[test]
fn pruning_wants_a_listed_vlan() {
    let mut switch = switch(true);
    assert!(switch.receivers(&frame(OWN, None)).is_empty());
    for (vlan, list) in [(0, 1), (5, 2)] {
        switch.change_list(ListKind::Prune, list, true, &[0]);
        let action = 0x1_c00a | u32::from(list) << 4;
        let prune = rule(Direction::Transmit, Recipe::Vlan, [0; 6], vlan, action);
        switch.add_rule(prune).unwrap();
    }
    assert_eq!(switch.receivers(&frame(OWN, None)), [0]);
    assert_eq!(switch.receivers(&frame(OWN, Some(0xe005))), [0]);
    assert!(switch.receivers(&frame(OWN, Some(6))).is_empty());
    switch.change_list(ListKind::Prune, 2, false, &[0]);
    assert!(switch.receivers(&frame(OWN, Some(5))).is_empty());
}

#[test]
fn lists_replicate_to_each_member_once() {
    let mut switch = switch(false);
    switch.add_vsi(None, 4, vsi(false)).unwrap();
    switch.change_list(ListKind::Replicate, 1, true, &[0, 1, 3]);
    let all = rule(Direction::Transmit, Recipe::Mac, [0xff; 6], 0, 0x2_401c);
    switch.add_rule(all).unwrap();
    // VSI 3 does not exist.
    assert_eq!(switch.receivers(&frame([0xff; 6], None)), [0, 1]);
    switch.remove_vsi(1);
    assert_eq!(switch.receivers(&frame([0xff; 6], None)), [0]);
    switch.remove_list(ListKind::Replicate, 1);
    assert!(switch.receivers(&frame([0xff; 6], None)).is_empty());
}

#[test]
fn drop_rules_keep_frames_in() {
    let mut switch = switch(false);
    let mut lldp = rule(Direction::Transmit, Recipe::EtherType, [0; 6], 0, 0x6_0000);
    lldp.pattern[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
    switch.add_rule(lldp).unwrap();
    let mut header = frame(GROUP, None);
    assert!(switch.may_leave(&header));
    header.ether_type = 0x88cc;
    assert!(!switch.may_leave(&header));
}

#[test]
fn table_has_a_limit() {
    let mut switch = switch(false);
    let any = rule(Direction::Transmit, Recipe::Mac, OTHER, 0, 0x2_000c);
    while switch.add_rule(any).is_some() {}
    assert_eq!(switch.rules().len(), MAX_RULES);
}

#[test]
fn the_functions_addresses_are_those_with_a_rule() {
    let mut switch = switch(false);
    assert!(switch.has_address(OWN) && !switch.has_address(OTHER));
    let list = rule(Direction::Transmit, Recipe::Mac, OTHER, 0, 0x2_401c);
    let index = switch.add_rule(list).unwrap();
    assert!(!switch.has_address(OTHER), "nobody in the list");
    switch.change_list(ListKind::Replicate, 1, true, &[0]);
    assert!(switch.has_address(OTHER));
    assert!(switch.remove_rule(index) && !switch.has_address(OTHER));
    let group = rule(Direction::Transmit, Recipe::Mac, GROUP, 0, 0x2_000c);
    switch.add_rule(group).unwrap();
    assert!(!switch.has_address(GROUP));
}
