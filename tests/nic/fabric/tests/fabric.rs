// SPDX-License-Identifier: GPL-2.0
//! Ports, link, impairments and captures of a running fabric.

use nic_fabric::impair::{Action, Kind, Rule};
use nic_fabric::{stream, Direction, Fabric, Port, Receiver};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{channel, Receiver as Channel, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq)]
enum Event {
    Frame(Vec<u8>),
    Link(bool),
}

struct Device(Mutex<Sender<Event>>);

impl Receiver for Device {
    fn receive(&self, frame: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .send(Event::Frame(frame.to_vec()))
            .unwrap();
    }
    fn link_changed(&self, up: bool) {
        self.0.lock().unwrap().send(Event::Link(up)).unwrap();
    }
}

fn device(fabric: &Arc<Fabric>, name: &str) -> (Arc<Port>, Channel<Event>) {
    let (sender, channel) = channel();
    let port = fabric.attach(name).unwrap();
    port.connect(Arc::new(Device(Mutex::new(sender)))).unwrap();
    (port, channel)
}

fn next(channel: &Channel<Event>) -> Event {
    channel.recv_timeout(LONG).unwrap()
}

fn frame(n: u8) -> Vec<u8> {
    vec![n; 60]
}

#[test]
fn frames_go_to_all_other_ports() {
    let fabric = Fabric::new(None).unwrap();
    let (a, from_a) = device(&fabric, "a");
    let (_b, from_b) = device(&fabric, "b");
    let (_c, from_c) = device(&fabric, "c");
    a.send(frame(1));
    a.send(vec![2; 20]);
    a.send(vec![3; 13]);
    for channel in [&from_b, &from_c] {
        assert_eq!(next(channel), Event::Frame(frame(1)));
        let Event::Frame(padded) = next(channel) else {
            panic!()
        };
        assert_eq!((padded.len(), padded[19], padded[20]), (60, 2, 0));
    }
    assert!(from_a.try_recv().is_err());
    assert_eq!(a.counters().malformed.get(), 1);
    assert_eq!(a.counters().transmit.frames.get(), 2);
}

#[test]
fn a_link_that_is_down_carries_nothing() {
    let fabric = Fabric::new(None).unwrap();
    let (a, from_a) = device(&fabric, "a");
    let (b, from_b) = device(&fabric, "b");
    a.set_link(false);
    a.set_link(false);
    a.send(frame(1));
    b.send(frame(2));
    a.set_link(true);
    assert_eq!(
        (next(&from_a), next(&from_a)),
        (Event::Link(false), Event::Link(true))
    );
    a.send(frame(3));
    assert_eq!(next(&from_b), Event::Frame(frame(3)));
    assert_eq!(a.counters().transmit.link_down.get(), 1);
}

#[test]
fn ordered_loss_hits_the_frame_it_names() {
    let fabric = Fabric::new(None).unwrap();
    let (a, _from_a) = device(&fabric, "a");
    let (b, from_b) = device(&fabric, "b");
    b.impair(
        Direction::Receive,
        Rule::by_count(Kind::Any, 2, 1, Action::Drop),
    );
    (1..=3).for_each(|n| a.send(frame(n)));
    assert_eq!(next(&from_b), Event::Frame(frame(1)));
    assert_eq!(next(&from_b), Event::Frame(frame(3)));
    assert_eq!(b.counters().receive.impaired.get(), 1);
    let recent: Vec<_> = b
        .recent()
        .into_iter()
        .map(|(n, d, f)| (n, d, f[0]))
        .collect();
    assert_eq!(
        recent,
        [(0, Direction::Receive, 1), (1, Direction::Receive, 3)]
    );
}

/// Answers each frame from within its receive path until the count in it is used up.
struct Echo(Arc<Port>, Mutex<Sender<()>>);

impl Receiver for Echo {
    fn receive(&self, frame: &[u8]) {
        match frame[0] {
            0 => self.1.lock().unwrap().send(()).unwrap(),
            n => self.0.send(vec![n - 1; 60]),
        }
    }
}

#[test]
fn devices_may_send_while_they_receive() {
    let fabric = Fabric::new(None).unwrap();
    let (sender, done) = channel();
    let ports: Vec<_> = ["a", "b"].map(|name| fabric.attach(name).unwrap()).into();
    for port in &ports {
        port.connect(Arc::new(Echo(port.clone(), Mutex::new(sender.clone()))))
            .unwrap();
    }
    for _ in 0..200 {
        ports.iter().for_each(|port| port.send(frame(100)));
    }
    for _ in 0..400 {
        done.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn captures_show_each_port_and_the_fabric() {
    let dir = tempfile::tempdir().unwrap();
    let fabric = Fabric::new(Some(dir.path().into())).unwrap();
    let (a, _from_a) = device(&fabric, "a");
    let (_b, from_b) = device(&fabric, "b");
    a.send(frame(7));
    next(&from_b);
    for name in ["a", "b", "fabric"] {
        let bytes = std::fs::read(dir.path().join(format!("{name}.pcap"))).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 60, "{name}");
        assert_eq!(bytes[40..], frame(7));
    }
}

#[test]
fn a_stream_guest_can_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("port0.sock");
    let fabric = Fabric::new(None).unwrap();
    let (a, from_a) = device(&fabric, "a");
    let port = fabric.attach("port0").unwrap();
    stream::serve(UnixListener::bind(&path).unwrap(), port).unwrap();
    for n in 1..=2 {
        let mut guest = UnixStream::connect(&path).unwrap();
        guest.set_read_timeout(Some(LONG)).unwrap();
        guest
            .write_all(&[&[0, 0, 0, 60], &frame(n)[..]].concat())
            .unwrap();
        assert_eq!(next(&from_a), Event::Frame(frame(n)));
        a.send(frame(n + 10));
        let mut back = [0; 64];
        guest.read_exact(&mut back).unwrap();
        assert_eq!((back[3], back[4]), (60, n + 10));
    }
}
