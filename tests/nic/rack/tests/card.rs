// SPDX-License-Identifier: GPL-2.0
//! The card between two halves that write down how they are called.

use nic_bus::{Card as _, Host, LanFunction, Log, RdmaFunction, Reset};
use nic_fabric::{Fabric, Port, Receiver};
use nic_rack::card::{Card, Slots};
use nic_rack::gates::GLINT_DYN_CTL;
use nic_vfio::memory::GuestMemory;
use nic_vfio::msix::Msix;
use nic_vfio::{Backend, ResetCause};
use serde_json::Value;
use std::fmt::Arguments;
use std::sync::{Arc, Mutex, OnceLock};

type Calls = Arc<Mutex<Vec<String>>>;

struct Half {
    name: &'static str,
    calls: Calls,
}

impl Half {
    fn call(&self, text: Arguments<'_>) {
        self.calls
            .lock()
            .unwrap()
            .push(format!("{} {text}", self.name));
    }
}

impl LanFunction for Half {
    fn read32(&self, offset: u32) -> u32 {
        self.call(format_args!("read {offset:x}"));
        1
    }
    fn read64(&self, offset: u32) -> u64 {
        self.call(format_args!("read64 {offset:x}"));
        1 << 40
    }
    fn write32(&self, offset: u32, value: u32) {
        self.call(format_args!("write {offset:x} {value:x}"));
    }
    fn has_address(&self, mac: [u8; 6]) -> bool {
        mac == [2, 0, 0, 0, 0, 7]
    }
    fn receive(&self, frame: &[u8]) {
        self.call(format_args!("receive {}", frame[0]));
    }
    fn link_changed(&self, up: bool) {
        self.call(format_args!("link {up}"));
    }
    fn other_cause(&self, bits: u32) {
        self.call(format_args!("cause {bits:x}"));
    }
    fn reset(&self, kind: Reset) {
        self.call(format_args!("reset {kind:?}"));
    }
    fn control(&self, _command: &str, _args: &Value) -> Option<Result<Value, String>> {
        None
    }
}

/// The RDMA half has the registers at 0x500000 and wants frames that start with 9.
impl RdmaFunction for Half {
    fn read32(&self, offset: u32) -> Option<u32> {
        (offset >> 20 == 5).then_some(2)
    }
    fn write32(&self, offset: u32, value: u32) -> bool {
        let mine = offset >> 20 == 5;
        if mine {
            self.call(format_args!("write {offset:x} {value:x}"));
        }
        mine
    }
    fn wants(&self, frame: &[u8]) -> bool {
        frame[0] == 9
    }
    fn receive(&self, frame: &[u8]) {
        self.call(format_args!("receive {}", frame[0]));
    }
    fn set_filter(&self, vsi: u16, enabled: bool) {
        self.call(format_args!("filter {vsi} {enabled}"));
    }
    fn queue_set(&self, handle: u16, teid: u32, present: bool) {
        self.call(format_args!("queue set {handle} {teid} {present}"));
    }
    fn reset(&self, kind: Reset) {
        self.call(format_args!("reset {kind:?}"));
    }
    fn control(&self, _command: &str, _args: &Value) -> Option<Result<Value, String>> {
        None
    }
}

struct NoLog(Calls);

impl Log for NoLog {
    fn line(&self, text: Arguments<'_>) {
        self.0.lock().unwrap().push(format!("log {text}"));
    }
}

struct Bench {
    card: Arc<Card>,
    host: Host,
    port: Arc<Port>,
    calls: Calls,
}

impl Bench {
    fn new() -> Self {
        let calls = Calls::default();
        let fabric = Fabric::new(None).unwrap();
        let port = fabric.attach("nic0").unwrap();
        let slots = Slots {
            memory: Arc::new(GuestMemory::new()),
            msix: Arc::new(Msix::new(4)),
            port: port.clone(),
            mac: [2, 0xe8, 0x10, 0, 0, 1],
            log: Arc::new(NoLog(calls.clone())),
        };
        let lent = OnceLock::new();
        let card = Card::new(slots, &|host, _card| {
            let _ = lent.set(host);
            let half = |name| {
                Arc::new(Half {
                    name,
                    calls: calls.clone(),
                })
            };
            (half("lan"), half("rdma"))
        });
        let host = lent.into_inner().unwrap();
        Self {
            card,
            host,
            port,
            calls,
        }
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.card.bar_read(offset, &mut data);
        data
    }
}

#[test]
fn registers_find_their_half() {
    let bench = Bench::new();
    assert_eq!(bench.read(0x500880, 4), [2, 0, 0, 0]);
    assert_eq!(bench.read(0x500880, 8), [2, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bench.read(0xb8188, 4), [1, 0, 0, 0]);
    assert_eq!(bench.read(0x380000, 8), [0, 0, 0, 0, 0, 1, 0, 0]);
    bench.card.bar_write(0x500800, &[7, 0, 0, 0]);
    bench.card.bar_write(0x80400, &[8, 0, 0, 0]);
    bench.card.bar_write(0x80400, &[8]);
    let expected = [
        "lan read b8188",
        "lan read64 380000",
        "rdma write 500800 7",
        "lan write 80400 8",
        "log BAR 0: write of 1 bytes at 0x80400 ignored",
    ];
    assert_eq!(bench.calls(), expected);
}

#[test]
fn gates_belong_to_the_card() {
    let bench = Bench::new();
    let gate = u64::from(GLINT_DYN_CTL);
    bench.card.bar_write(gate + 4, &[3, 0, 0, 0]);
    assert_eq!(bench.read(gate + 4, 4), [1, 0, 0, 0]);
    bench.host.interrupts.event(1);
    assert_eq!(bench.read(gate + 4, 4), [0; 4]);
    assert_eq!(bench.calls(), [""; 0]);
    bench.card.bar_write(gate + 4, &[4, 0, 0, 0]);
    bench.card.bar_write(gate, &[4, 0, 0, 0]);
    bench.host.interrupts.other_cause(1 << 28);
    assert_eq!(bench.calls(), ["lan cause 80000000", "lan cause 10000000"]);
    let waiting: Vec<_> = bench
        .card
        .gates()
        .status()
        .iter()
        .map(|s| s.vector)
        .collect();
    assert_eq!(waiting, [0, 1]);
}

#[test]
fn resets_go_through_the_card_in_order() {
    let bench = Bench::new();
    let gates = |bench: &Bench| bench.card.gates().status().len();
    let arm = || (0..2).for_each(|v| bench.card.bar_write(0x160000 + 4 * v, &[1, 0, 0, 0]));
    let both = |kind: &str| ["rdma", "lan"].map(|half| format!("{half} reset {kind}"));
    arm();
    nic_bus::Card::reset(&*bench.card, Reset::Core);
    assert_eq!(bench.calls(), both("Core"));
    assert_eq!(
        gates(&bench),
        1,
        "vector 0 announces the end of a core reset"
    );
    arm();
    Backend::reset(&*bench.card, ResetCause::FunctionLevel);
    assert_eq!(bench.calls(), both("Function"));
    assert_eq!(gates(&bench), 0);
    Backend::reset(&*bench.card, ResetCause::Machine);
    assert_eq!(bench.calls(), both("Disconnect"));
}

#[test]
fn frames_and_orders_find_their_half() {
    let bench = Bench::new();
    Receiver::receive(&*bench.card, &[9; 60]);
    Receiver::receive(&*bench.card, &[8; 60]);
    bench.card.set_pe_filter(3, true);
    bench.card.queue_set(1, 2, false);
    Receiver::link_changed(&*bench.card, false);
    let expected = [
        "rdma receive 9",
        "lan receive 8",
        "rdma filter 3 true",
        "rdma queue set 1 2 false",
        "lan link false",
    ];
    assert_eq!(bench.calls(), expected);
    assert!(bench.host.wire.is_own([2, 0, 0, 0, 0, 7]));
    assert!(
        !bench.host.wire.is_own(bench.host.wire.mac()),
        "the driver took the address away"
    );
    assert!(bench.host.wire.link_up());
    bench.port.set_link(false);
    assert!(!bench.host.wire.link_up());
    assert_eq!(bench.host.wire.mac(), [2, 0xe8, 0x10, 0, 0, 1]);
}
