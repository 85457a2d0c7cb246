// SPDX-License-Identifier: GPL-2.0
//! A rack from outside: its sockets, the traffic between plain guests, its control channels.

use nic_rack::absent::{NoLan, NoRdma};
use nic_rack::rack::{serial, Rack, Setup};
use nic_rack::switches::{Layout, Switches};
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn rack(dir: &Path) -> Rack {
    rack_with(dir, Switches::default())
}

fn rack_with(dir: &Path, switches: Switches) -> Rack {
    let setup = Setup {
        dir: dir.into(),
        nics: 2,
        ports: 2,
        switches,
        pcap: Some(dir.into()),
        log: Some(dir.join("log")),
    };
    Rack::new(&setup, &|_host, _card| (Arc::new(NoLan), Arc::new(NoRdma))).unwrap()
}

fn connect(dir: &Path, name: &str) -> UnixStream {
    let stream = UnixStream::connect(dir.join(name)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

fn ask(dir: &Path, channel: &str, request: Value) -> Value {
    let mut stream = connect(dir, channel);
    stream
        .write_all(format!("\n{request}\n").as_bytes())
        .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn receive(mut stream: &UnixStream) -> Vec<u8> {
    let mut message = vec![0; 64];
    stream.read_exact(&mut message).unwrap();
    message.split_off(4)
}

#[test]
fn guests_reach_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let _rack = rack(dir.path());
    let (mut a, b) = (
        connect(dir.path(), "port0.sock"),
        connect(dir.path(), "port1.sock"),
    );
    a.write_all(&[&[0, 0, 0, 60], &[1; 60][..]].concat())
        .unwrap();
    assert_eq!(receive(&b), [1; 60]);
    let lost = ask(
        dir.path(),
        "port1.ctl",
        json!({"id": 1, "cmd": "drop", "kind": "any"}),
    );
    assert_eq!(lost, json!({"id": 1, "ok": true, "result": {}}));
    for n in 2..=3 {
        a.write_all(&[&[0, 0, 0, 60], &[n; 60][..]].concat())
            .unwrap();
    }
    assert_eq!(receive(&b), [3; 60]);
    let counters = ask(
        dir.path(),
        "control.sock",
        json!({"cmd": "counters", "port": 1}),
    );
    assert_eq!(counters["result"]["port"]["rx_impaired"], 1);
    let frames = ask(
        dir.path(),
        "port1.ctl",
        json!({"cmd": "frames", "count": 1}),
    );
    assert_eq!(frames["result"][0]["hex"], "03".repeat(60));
    assert!(dir.path().join("fabric.pcap").metadata().unwrap().len() >= 24 + 2 * 76);
}

#[test]
fn each_channel_speaks_for_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let _rack = rack(dir.path());
    let name = |channel: &str, request| {
        ask(dir.path(), channel, request)["result"]["port"]["name"].clone()
    };
    assert_eq!(name("nic1.ctl", json!({"cmd": "state"})), "nic1");
    assert_eq!(name("port1.ctl", json!({"cmd": "state"})), "port1");
    assert_eq!(name("nic1.ctl", json!({"cmd": "state", "nic": 0})), "nic0");
    assert_eq!(
        name("control.sock", json!({"cmd": "state", "port": "0"})),
        "port0"
    );
    let link = ask(dir.path(), "nic1.ctl", json!({"cmd": "link", "up": false}));
    assert_eq!(link["result"]["up"], false);
    let error = |request| ask(dir.path(), "control.sock", request)["error"].clone();
    assert_eq!(error(json!({"cmd": "state", "nic": 2})), "no nic 2");
    assert_eq!(
        error(json!({"cmd": "nonsense"})),
        "nonsense: unknown command"
    );
    assert_eq!(
        error(json!({"cmd": "reset", "port": 0})),
        "reset: not a command of a port"
    );
    assert_eq!(
        error(json!({"cmd": "interrupts", "lose": 1, "vector": 64})),
        "interrupts: no vector 64"
    );
}

#[test]
fn a_card_is_there_for_its_guest() {
    let dir = tempfile::tempdir().unwrap();
    let _rack = rack(dir.path());
    let mut client = connect(dir.path(), "nic1.sock");
    let read = |offset: u64| {
        let mut m = Vec::new();
        m.extend_from_slice(&[1, 0, 9, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        m.extend_from_slice(&offset.to_ne_bytes());
        m.extend_from_slice(&7u32.to_ne_bytes());
        m.extend_from_slice(&8u32.to_ne_bytes());
        m
    };
    client.write_all(&read(0x104)).unwrap();
    let mut reply = [0; 40];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply[32..], serial(1).to_le_bytes());
}

#[test]
fn sockets_go_with_the_rack_and_may_be_stale_before() {
    let dir = tempfile::tempdir().unwrap();
    std::mem::forget(rack(dir.path()));
    let again = rack(dir.path());
    for name in ["nic1.sock", "ice.pkg", "ice-02e810fffe000002.pkg"] {
        assert!(dir.path().join(name).exists(), "{name}");
    }
    drop(again);
    for name in [
        "nic0.sock",
        "port1.sock",
        "nic0.ctl",
        "port0.ctl",
        "control.sock",
    ] {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn switches_learn_snoop_and_know_vlans_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let _rack = rack(dir.path());
    let ask = |request| ask(dir.path(), "port0.ctl", request);
    let result = |request| {
        let answer = ask(request);
        assert_eq!(answer["ok"], json!(true), "{answer}");
        answer["result"].clone()
    };
    let show = result(json!({"cmd": "switch"}));
    assert_eq!(
        (&show["learn"], &show["snoop"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(show["ports"], json!(["nic0", "nic1", "port0", "port1"]));
    let show = result(json!({"cmd": "switch", "snoop": "interval=60,fast_leave=true", "aging": 5}));
    assert_eq!(show["snoop"]["interval"], json!(60.0));
    assert_eq!(show["learn"]["aging"], json!(5));
    let show = result(json!({"cmd": "switch", "snoop": "response=2"}));
    assert_eq!(
        show["snoop"]["fast_leave"],
        json!(true),
        "what is not named stays"
    );

    let (mut a, b) = (
        connect(dir.path(), "port0.sock"),
        connect(dir.path(), "port1.sock"),
    );
    let frame = [
        &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..],
        &[0; 46],
    ]
    .concat();
    a.write_all(&[&[0, 0, 0, 60], &frame[..]].concat()).unwrap();
    // The switch's own queries come as well.
    while receive_any(&b) != frame {}
    let stations = result(json!({"cmd": "stations"}));
    assert_eq!(
        stations,
        json!([{"vlan": 0, "mac": "02:00:00:00:00:01", "port": "port0"}])
    );
    assert_eq!(
        result(json!({"cmd": "members"})),
        json!({"groups": [], "routers": []})
    );
    assert_eq!(
        result(json!({"cmd": "vlan", "untagged": "5", "tagged": "7,8"})),
        json!({"transparent": false, "untagged": 5, "tagged": [7, 8]})
    );
    assert_eq!(
        result(json!({"cmd": "vlan", "port": 1})),
        json!({"transparent": true})
    );
    assert_eq!(
        result(json!({"cmd": "switch", "snoop": false}))["snoop"],
        json!(null)
    );
    for request in [
        json!({"cmd": "switch", "switch": 1}),
        json!({"cmd": "switch", "snoop": "x=1"}),
        json!({"cmd": "switch", "snoop": 1}),
        json!({"cmd": "vlan", "untagged": 4095}),
        json!({"cmd": "vlan", "tagged": "5,x"}),
        json!({"cmd": "vlan", "transparent": true, "untagged": 5}),
    ] {
        assert_eq!(ask(request.clone())["ok"], json!(false), "{request}");
    }
}

#[test]
fn switches_and_links_between_them_go_off_and_on() {
    let dir = tempfile::tempdir().unwrap();
    let switches = Switches {
        layout: Layout::parse("nic0/port0").unwrap(),
        snoop: Some(Default::default()),
        ..Switches::default()
    };
    let _rack = rack_with(dir.path(), switches);
    let ask = |request| ask(dir.path(), "nic0.ctl", request);
    let link = |at: &str| ask(json!({"cmd": "link", "at": at}))["result"]["up"].clone();
    assert_eq!(link("switch1-0"), json!(true));
    ask(json!({"cmd": "link", "at": "switch0-1", "up": false}));
    assert_eq!(link("switch1-0"), json!(false), "a cable has two ends");
    ask(json!({"cmd": "link", "at": "switch0-1", "up": true}));
    let off = ask(json!({"cmd": "switch", "at": "switch1-0", "power": false}));
    assert_eq!(
        (&off["result"]["switch"], &off["result"]["power"]),
        (&json!(1), &json!(false))
    );
    let names = ["nic0", "switch0-1", "switch1-0", "port0"];
    assert_eq!(names.map(link), [true, false, false, false]);
    let on = ask(json!({"cmd": "switch", "switch": 1, "power": true, "restart": true}));
    assert_eq!(on["result"]["power"], json!(true));
    assert_eq!(names.map(link), [true; 4]);
    for request in [
        json!({"cmd": "link", "at": "nic7"}),
        json!({"cmd": "groups", "at": "nic0"}),
        json!({"cmd": "switch", "power": 1}),
    ] {
        assert_eq!(ask(request.clone())["ok"], json!(false), "{request}");
    }
}

/// The next frame, of any length.
fn receive_any(mut stream: &UnixStream) -> Vec<u8> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut frame).unwrap();
    frame
}

#[test]
fn impairments_are_ordered_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let _rack = rack(dir.path());
    let ask = |request| ask(dir.path(), "port0.ctl", request);
    for request in [
        json!({"cmd": "drop", "rate": 1000, "seed": 7}),
        json!({"cmd": "delay", "ms": 20, "dir": "tx", "kind": "any"}),
        json!({"cmd": "corrupt", "bit": 3, "nth": 2}),
    ] {
        assert_eq!(ask(request.clone())["ok"], json!(true), "{request}");
    }
    let list = ask(json!({"cmd": "impairments"}))["result"].clone();
    assert_eq!(list["tx"][0]["action"], json!("delay"));
    assert_eq!(list["rx"][0]["rate"], json!(1000));
    assert_eq!(list["rx"][1]["nth"], json!(2));
    ask(json!({"cmd": "drop", "clear": true}));
    let list = ask(json!({"cmd": "impairments"}))["result"].clone();
    assert_eq!(list, json!({"tx": [], "rx": []}));
    let counters = ask(json!({"cmd": "counters"}))["result"]["port"].clone();
    assert_eq!(counters["rx_corrupted"], json!(0));
    let refused = ask(json!({"cmd": "drop", "rate": 1_000_001}));
    assert_eq!(refused["ok"], json!(false));
}
