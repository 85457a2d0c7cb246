// SPDX-License-Identifier: GPL-2.0
//! Switches at work, with their threads and the real clock: delays, queries, links between them.

use nic_fabric::impair::{Action, Kind, Rule};
use nic_fabric::snoop::Config;
use nic_fabric::view::{Destination, View};
use nic_fabric::{Direction, Fabric, Port, Receiver};
use std::sync::mpsc::{channel, Receiver as Channel, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

struct Device(Mutex<Sender<Vec<u8>>>);

impl Receiver for Device {
    fn receive(&self, frame: &[u8]) {
        // The test may be over.
        let _ = self.0.lock().unwrap().send(frame.to_vec());
    }
}

fn device(fabric: &Arc<Fabric>, name: &str) -> (Arc<Port>, Channel<Vec<u8>>) {
    let (sender, channel) = channel();
    let port = fabric.attach(name).unwrap();
    port.connect(Arc::new(Device(Mutex::new(sender)))).unwrap();
    (port, channel)
}

fn frame(to: u8, from: u8) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5];
    bytes.resize(60, 0);
    bytes
}

/// A datagram for a group, or a report about it.
fn group(report: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [1, 0, 0x5e, 1, 2, 3]);
    if report {
        let mut message = vec![0x16, 0, 0, 0, 239, 1, 2, 3];
        let sum = etherparse::checksum::Sum16BitWords::new()
            .add_slice(&message)
            .ones_complement();
        message[2..4].copy_from_slice(&sum.to_ne_bytes());
        builder
            .ipv4([10, 0, 0, 1], [239, 1, 2, 3], 1)
            .write(&mut bytes, etherparse::IpNumber::IGMP, &message)
            .unwrap();
    } else {
        builder
            .ipv4([10, 0, 0, 1], [239, 1, 2, 3], 64)
            .udp(1, 4791)
            .write(&mut bytes, &[7; 40])
            .unwrap();
    }
    bytes
}

/// Settings of a switch whose queries come at once.
fn snooping(fabrics: &[&Arc<Fabric>]) {
    let config = Config {
        interval: Duration::from_millis(400),
        response: Duration::from_millis(200),
        ..Config::default()
    };
    for fabric in fabrics {
        fabric.forwarding(|forwarding, now| {
            forwarding.learn(true);
            forwarding.snoop(Some(config), fabric.id(), now);
        });
    }
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_query(frame: &[u8]) -> bool {
    use nic_fabric::snoop::message::Message;
    matches!(
        View::of(frame).map(|view| view.destination),
        Some(Destination::Management(Message::Query { .. }))
    )
}

fn is_data(frame: &[u8]) -> bool {
    matches!(
        View::of(frame).map(|view| view.destination),
        Some(Destination::Group(_))
    )
}

#[test]
fn delayed_frames_arrive_later_and_others_pass_them() {
    let fabric = Fabric::new(None).unwrap();
    let (a, _from_a) = device(&fabric, "a");
    let (b, from_b) = device(&fabric, "b");
    let delay = |ms| Rule::by_count(Kind::Any, 1, 1, Action::Delay(Duration::from_millis(ms)));
    let start = Instant::now();
    a.impair(Direction::Transmit, delay(300));
    a.send(frame(1, 9));
    b.impair(Direction::Receive, delay(100));
    a.send(frame(2, 9));
    a.send(frame(3, 9));
    let order: Vec<u8> = (0..3)
        .map(|_| from_b.recv_timeout(LONG).unwrap()[5])
        .collect();
    assert_eq!(order, [3, 2, 1]);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(a.counters().transmit.frames.get(), 3);
    assert_eq!(b.counters().receive.frames.get(), 3);
}

#[test]
fn hosts_are_asked_and_forgotten() {
    let fabric = Fabric::new(None).unwrap();
    let (a, from_a) = device(&fabric, "a");
    let (b, _from_b) = device(&fabric, "b");
    snooping(&[&fabric]);
    let query = from_a.recv_timeout(LONG).unwrap();
    assert!(is_query(&query));
    a.send(group(true));
    let groups = || fabric.forwarding(|f, _| f.snooping().map_or(0, |s| s.table().list().count()));
    until("the member", || groups() == 1);
    b.send(group(false));
    until("the datagram", || {
        from_a.try_recv().is_ok_and(|frame| is_data(&frame))
    });
    until("the end of a member that does not answer", || groups() == 0);
}

#[test]
fn groups_cross_linked_switches() {
    let fabrics: Vec<Arc<Fabric>> = (0..3)
        .map(|id| Fabric::numbered(id, None).unwrap())
        .collect();
    Fabric::link(&fabrics[0], &fabrics[1]).unwrap();
    Fabric::link(&fabrics[1], &fabrics[2]).unwrap();
    let (member, from_member) = device(&fabrics[2], "member");
    let (_idle, from_idle) = device(&fabrics[1], "idle");
    let (sender, _from_sender) = device(&fabrics[0], "sender");
    snooping(&[&fabrics[0], &fabrics[1], &fabrics[2]]);
    // The switch with the lowest address asks; reports find their way there.
    until("one that asks", || {
        let asks = |f: &Arc<Fabric>| {
            f.forwarding(|f, now| f.snooping().is_some_and(|s| s.vlans(now) == [(0, true)]))
        };
        asks(&fabrics[0]) && !asks(&fabrics[1]) && !asks(&fabrics[2])
    });
    until("the datagram", || {
        member.send(group(true));
        sender.send(group(false));
        std::iter::from_fn(|| from_member.try_recv().ok()).any(|frame| is_data(&frame))
    });
    assert!(
        !from_idle.try_iter().any(|frame| is_data(&frame)),
        "nobody there joined"
    );
}

#[test]
fn stations_are_found_across_switches() {
    let one = Fabric::numbered(0, None).unwrap();
    let other = Fabric::numbered(1, None).unwrap();
    let (a, from_a) = device(&one, "a");
    let (_c, from_c) = device(&one, "c");
    Fabric::link(&one, &other).unwrap();
    let (b, from_b) = device(&other, "b");
    snooping(&[]);
    for fabric in [&one, &other] {
        fabric.forwarding(|f, _| f.learn(true));
    }
    a.send(frame(2, 1));
    assert_eq!(from_b.recv_timeout(LONG).unwrap()[11], 1);
    assert_eq!(from_c.recv_timeout(LONG).unwrap()[11], 1, "not heard yet");
    b.send(frame(1, 2));
    assert_eq!(from_a.recv_timeout(LONG).unwrap()[11], 2);
    a.send(frame(2, 1));
    assert_eq!(from_b.recv_timeout(LONG).unwrap()[11], 1);
    assert!(from_c.try_recv().is_err());
    // A cable that is pulled is pulled at both ends.
    let cable = one.port("switch0-1").unwrap();
    cable.set_link(false);
    assert!(!other.port("switch1-0").unwrap().link_up());
    a.send(frame(2, 1));
    assert_eq!(
        from_c.recv_timeout(LONG).unwrap()[11],
        1,
        "it may be anywhere"
    );
    assert!(from_b.try_recv().is_err());
}

#[test]
fn a_switch_without_power_forwards_nothing_and_forgets() {
    let fabric = Fabric::new(None).unwrap();
    let (a, _from_a) = device(&fabric, "a");
    let (b, from_b) = device(&fabric, "b");
    let (c, _from_c) = device(&fabric, "c");
    c.set_link(false);
    fabric.forwarding(|f, _| f.learn(true));
    a.send(frame(2, 1));
    assert_eq!(from_b.recv_timeout(LONG).unwrap()[11], 1);
    fabric.power(false);
    fabric.power(false);
    assert!(!fabric.is_on() && !a.link_up() && !b.link_up());
    a.send(frame(2, 3));
    // Nor if the links come up by themselves.
    a.set_link(true);
    b.set_link(true);
    a.send(frame(2, 4));
    fabric.power(true);
    assert!(fabric.is_on() && a.link_up() && b.link_up() && !c.link_up());
    let known = || fabric.forwarding(|f, now| f.stations().map(|s| s.list(now).len()));
    assert_eq!(known(), Some(0));
    a.send(frame(2, 5));
    assert_eq!(from_b.recv_timeout(LONG).unwrap()[11], 5);
    fabric.restart();
    assert!(a.link_up() && known() == Some(0));
}

#[test]
fn members_are_back_after_the_switch_was_off() {
    let fabric = Fabric::new(None).unwrap();
    let (a, from_a) = device(&fabric, "a");
    let (b, _from_b) = device(&fabric, "b");
    snooping(&[&fabric]);
    fabric.power(false);
    from_a.try_iter().for_each(drop);
    fabric.power(true);
    until("the query", || {
        from_a.try_recv().is_ok_and(|frame| is_query(&frame))
    });
    a.send(group(true));
    until("the datagram", || {
        b.send(group(false));
        from_a.try_recv().is_ok_and(|frame| is_data(&frame))
    });
}

#[test]
fn a_switch_ends_with_its_last_owner() {
    let fabric = Fabric::new(None).unwrap();
    snooping(&[&fabric]);
    let weak = Arc::downgrade(&fabric);
    let (port, _channel) = device(&fabric, "a");
    drop(fabric);
    // Its thread may hold it for a moment.
    until("the end", || weak.upgrade().is_none());
    port.send(frame(1, 2));
}
