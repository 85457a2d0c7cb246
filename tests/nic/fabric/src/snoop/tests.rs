// SPDX-License-Identifier: GPL-2.0
//! Who gets what, and who is asked when.

use super::*;
use crate::view::{Destination, View};
use proptest::prelude::*;

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
const ROUTER: PortId = 9;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn quiet() -> Config {
    Config {
        querier: false,
        ..Config::default()
    }
}

fn snooping(config: Config) -> Snooping {
    Snooping::new(config, 0, at(0))
}

fn say(snooping: &mut Snooping, now: u64, port: PortId, change: Change) -> Way {
    let message = Message::Report(vec![(GROUP, change)]);
    snooping.message(at(now), 0, port, &message)
}

fn query(source: [u8; 4], group: Option<IpAddr>) -> Message {
    Message::Query {
        source: Ipv4Addr::from(source).into(),
        group,
        response: at(1),
        keep_timers: false,
    }
}

fn to(ports: &[PortId]) -> Way {
    Way::Ports(ports.iter().copied().collect())
}

fn frame_goes(snooping: &mut Snooping) -> Way {
    snooping.group(0, GROUP)
}

#[test]
fn a_group_goes_to_members_and_routers() {
    let mut s = snooping(quiet());
    assert_eq!(frame_goes(&mut s), to(&[]));
    assert_eq!(
        s.message(at(0), 0, ROUTER, &query([10, 0, 0, 1], None)),
        Way::All
    );
    assert_eq!(frame_goes(&mut s), to(&[ROUTER]), "unregistered");
    assert_eq!(
        say(&mut s, 0, 1, Change::Join),
        to(&[ROUTER]),
        "reports go to routers"
    );
    say(&mut s, 0, 2, Change::Join);
    assert_eq!(frame_goes(&mut s), to(&[1, 2, ROUTER]));
    assert_eq!(s.group(5, GROUP), to(&[]), "another VLAN");
    s.forget_port(2);
    assert_eq!(frame_goes(&mut s), to(&[1, ROUTER]));
}

#[test]
fn unregistered_groups_may_be_flooded() {
    let mut s = snooping(Config {
        flood_unregistered: true,
        ..quiet()
    });
    assert_eq!(frame_goes(&mut s), Way::All);
    say(&mut s, 0, 1, Change::Join);
    assert_eq!(frame_goes(&mut s), to(&[1]));
}

#[test]
fn who_does_not_answer_is_no_member_any_more() {
    let mut s = snooping(quiet());
    say(&mut s, 0, 1, Change::Join);
    say(&mut s, 100, 2, Change::Join);
    s.message(at(0), 0, ROUTER, &query([10, 0, 0, 1], None));
    assert_eq!(
        s.next_tick(),
        Some(at(255)),
        "two queries missed, and half an answer"
    );
    s.tick(at(255));
    assert_eq!(frame_goes(&mut s), to(&[1, 2]));
    s.tick(at(260));
    assert_eq!(frame_goes(&mut s), to(&[2]));
    s.tick(at(360));
    assert_eq!((frame_goes(&mut s), s.next_tick()), (to(&[]), None));
}

#[test]
fn a_leave_is_followed_by_a_question() {
    let mut s = snooping(Config::default());
    s.tick(at(0));
    say(&mut s, 1, 1, Change::Join);
    say(&mut s, 1, 2, Change::Join);
    say(&mut s, 10, 1, Change::Leave);
    assert_eq!(frame_goes(&mut s), to(&[1, 2]), "others may be there");
    for second in [10, 11] {
        assert_eq!(s.next_tick(), Some(at(second)));
        let asked = s.tick(at(second));
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].way, to(&[1]));
    }
    s.tick(at(12));
    assert_eq!(frame_goes(&mut s), to(&[2]));
}

#[test]
fn an_answer_keeps_the_group() {
    let mut s = snooping(Config::default());
    s.tick(at(0));
    say(&mut s, 1, 1, Change::Join);
    say(&mut s, 10, 1, Change::Leave);
    s.tick(at(10));
    say(&mut s, 11, 1, Change::Join);
    assert!(s.tick(at(11)).is_empty(), "no doubt is left");
    s.tick(at(20));
    assert_eq!(frame_goes(&mut s), to(&[1]));
}

#[test]
fn fast_leave_takes_the_port_off_at_once() {
    let mut s = snooping(Config {
        fast_leave: true,
        ..Config::default()
    });
    say(&mut s, 1, 1, Change::Join);
    say(&mut s, 2, 1, Change::Leave);
    assert_eq!(frame_goes(&mut s), to(&[]));
}

#[test]
fn a_routers_question_shortens_the_time() {
    let mut s = snooping(quiet());
    say(&mut s, 0, 1, Change::Join);
    say(&mut s, 1, 1, Change::Leave);
    s.tick(at(5));
    assert_eq!(frame_goes(&mut s), to(&[1]), "the router has not asked");
    let asked = Message::Query {
        source: Ipv4Addr::new(10, 0, 0, 1).into(),
        group: Some(GROUP),
        response: at(1),
        keep_timers: true,
    };
    s.message(at(5), 0, ROUTER, &asked);
    s.tick(at(8));
    assert_eq!(
        frame_goes(&mut s),
        to(&[1, ROUTER]),
        "told to keep its timers"
    );
    s.message(at(8), 0, ROUTER, &query([10, 0, 0, 1], Some(GROUP)));
    s.tick(at(10));
    assert_eq!(frame_goes(&mut s), to(&[ROUTER]));
}

#[test]
fn the_switch_asks_at_once_and_then_in_turn() {
    let mut s = snooping(Config::default());
    let mut times = Vec::new();
    while times.len() < 4 {
        let now = s.next_tick().unwrap();
        let asked = s.tick(now);
        assert_eq!(asked.len(), 2, "both families");
        assert!(asked.iter().all(|own| own.way == Way::All && own.vlan == 0));
        times.push(now.as_millis());
    }
    assert_eq!(times, [0, 31_250, 156_250, 281_250]);
    s.know_vlan(5, at(300));
    let asked = s.tick(at(300));
    assert_eq!(asked.iter().map(|own| own.vlan).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn the_lowest_address_asks() {
    let mut s = snooping(Config::default());
    s.tick(at(0));
    s.message(at(1), 0, ROUTER, &query([203, 0, 113, 1], None));
    assert_eq!(s.vlans(at(1)), [(0, true)], "a higher one");
    s.message(at(1), 0, ROUTER, &query([0, 0, 0, 0], None));
    assert_eq!(s.vlans(at(1)), [(0, true)], "none");
    s.message(at(2), 0, ROUTER, &query([10, 0, 0, 1], None));
    assert_eq!(s.vlans(at(2)), [(0, false)]);
    let asked = s.tick(at(100));
    assert_eq!(asked.len(), 1, "MLD goes on");
    s.tick(at(257));
    assert_eq!(s.vlans(at(257)), [(0, true)], "the other is gone");
}

#[test]
fn a_new_link_is_asked_by_who_does_not_ask_otherwise() {
    let mut s = snooping(Config::default());
    s.tick(at(0));
    s.message(at(1), 0, ROUTER, &query([10, 0, 0, 1], None));
    s.ask_soon(at(2));
    let asked = s.tick(at(2));
    let sources: Vec<Option<IpAddr>> = asked
        .iter()
        .map(|own| match View::of(&own.frame).unwrap().destination {
            Destination::Management(Message::Query { source, .. }) => Some(source),
            _ => None,
        })
        .collect();
    assert_eq!(
        sources,
        [Some(Ipv4Addr::UNSPECIFIED.into()), Some(s.address6.into())]
    );
    assert_eq!(s.vlans(at(2)), [(0, false)], "no claim to be the router");
    s.ask_soon(at(300));
    s.tick(at(300));
    assert_eq!(s.vlans(at(300)), [(0, true)], "the other was gone already");
}

#[test]
fn other_settings_are_asked_with_at_once_by_who_asks() {
    let mut s = snooping(Config::default());
    s.tick(at(0));
    s.set_config(
        Config {
            robustness: 3,
            ..s.config()
        },
        at(1),
    );
    assert_eq!(s.tick(at(1)).len(), 2);
    s.message(at(2), 0, ROUTER, &query([10, 0, 0, 1], None));
    s.set_config(Config::default(), at(3));
    assert_eq!(s.tick(at(3)).len(), 1, "MLD, where no other asks");
}

#[test]
fn a_restart_leaves_settings_and_vlans() {
    let config = Config {
        fast_leave: true,
        ..Config::default()
    };
    let mut s = Snooping::new(config, 3, at(0));
    s.know_vlan(5, at(0));
    s.tick(at(0));
    say(&mut s, 1, 1, Change::Join);
    s.message(at(1), 0, ROUTER, &query([10, 0, 0, 1], None));
    s.restart(at(10));
    assert_eq!(frame_goes(&mut s), to(&[]));
    assert_eq!(
        (s.config(), s.vlans(at(10))),
        (config, vec![(0, true), (5, true)])
    );
    assert_eq!(s.address4, Ipv4Addr::new(192, 0, 2, 4));
    assert_eq!(s.tick(at(10)).len(), 4, "both families in both VLANs");
    assert_eq!((s.counts.joins, s.counts.sent), (0, 4));
}

#[test]
fn damaged_messages_go_nowhere() {
    let mut s = snooping(quiet());
    s.message(at(0), 0, ROUTER, &query([10, 0, 0, 1], None));
    assert_eq!(s.message(at(0), 0, 1, &Message::Damaged), to(&[]));
    assert_eq!(s.counts.damaged, 1);
}

#[test]
fn link_local_groups_are_not_remembered() {
    let mut s = snooping(quiet());
    let group: IpAddr = Ipv4Addr::new(224, 0, 0, 251).into();
    s.message(at(0), 0, 1, &Message::Report(vec![(group, Change::Join)]));
    assert_eq!(s.table().list().count(), 0);
}

proptest! {
    /// Against a plain list of (port, end): members are those that joined in time and did not leave.
    #[test]
    fn members_are_those_of_a_plain_model(
        steps in prop::collection::vec((0u64..40, 0usize..4, any::<bool>()), 1..200)
    ) {
        let config = Config { fast_leave: true, ..quiet() };
        let mut s = snooping(config);
        let mut plain: BTreeMap<PortId, u64> = BTreeMap::new();
        let mut now = 0;
        for (wait, port, join) in steps {
            now += wait;
            s.tick(at(now));
            plain.retain(|_, end| *end > now);
            if join {
                say(&mut s, now, port, Change::Join);
                plain.insert(port, now + config.membership().as_secs());
            } else {
                say(&mut s, now, port, Change::Leave);
                plain.remove(&port);
            }
            let expected: Vec<PortId> = plain.keys().copied().collect();
            prop_assert_eq!(frame_goes(&mut s), to(&expected));
            prop_assert_eq!(s.next_tick().is_some(), s.next_tick() > Some(at(now)) );
        }
    }
}
