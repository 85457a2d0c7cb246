// SPDX-License-Identifier: GPL-2.0
//! A whole card against a guest that writes anything anywhere, with rings full of anything, while
//! anything arrives from the wire. Nothing may panic, in no thread, and the card must still come
//! out of a reset empty.

use nic_bus::Dma;
use nic_fabric::{Fabric, Receiver};
use nic_lan::Lan;
use nic_rack::card::{Card, Slots};
use nic_rdma::Rdma;
use nic_vfio::memory::GuestMemory;
use nic_vfio::msix::Msix;
use nic_vfio::{Backend, ResetCause};
use proptest::prelude::*;
use serde_json::Value;
use std::fmt::Arguments;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

const MEMORY: u64 = 1 << 20;
const BAR: u64 = 16 << 20;

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            print(info);
        }));
    });
}

struct NoLog;

impl nic_bus::Log for NoLog {
    fn line(&self, _text: Arguments<'_>) {}
}

struct Bench {
    card: Arc<Card>,
    memory: Arc<GuestMemory>,
}

impl Bench {
    fn new() -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MEMORY).unwrap();
        let memory = Arc::new(GuestMemory::new());
        memory
            .map(3, Some(&OwnedFd::from(file)), 0, 0, MEMORY)
            .unwrap();
        memory.set_bus_master(true);
        let slots = Slots {
            memory: memory.clone(),
            msix: Arc::new(Msix::new(64)),
            port: Fabric::new(None).unwrap().attach("nic0").unwrap(),
            mac: [2, 0xe8, 0x10, 0, 0, 1],
            log: Arc::new(NoLog),
        };
        let card = Card::new(slots, &|host, card| {
            (
                Lan::new(host.clone(), card, Default::default()),
                Rdma::new(host),
            )
        });
        Self { card, memory }
    }

    fn state(&self) -> Value {
        self.card
            .rdma()
            .control("state", &Value::Null)
            .unwrap()
            .unwrap()
    }

    fn write(&self, offset: u32, value: u32) {
        self.card.bar_write(offset.into(), &value.to_le_bytes());
    }
}

#[derive(Clone, Debug)]
enum Act {
    Write(u64, Vec<u8>),
    Register(u32, u32),
    Read(u64, usize),
    Memory(u64, Vec<u8>),
    Frame(Vec<u8>),
    Reset(bool),
}

/// Registers that start something.
const ACTIVE: [u32; 24] = [
    0x08_0000, 0x08_0200, 0x08_0400, 0x08_0080, 0x08_0280, 0x08_0480, 0x22_e300, 0x09_1000,
    0x0b_8190, 0x16_0000, 0x16_ca00, 0x16_ca80, 0x12_0000, 0x2c_0000, 0x29_0000, 0x50_0800,
    0x50_a100, 0x50_a080, 0x50_2c00, 0x50_2c80, 0x50_4400, 0x52_0300, 0x7f_0000, 0x7f_0040,
];

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..16,
        (0u32..256).prop_map(|page| page << 12),
        any::<u32>()
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
    let frame = (0usize..3, bytes(200)).prop_map(|(kind, mut frame)| {
        // To the card, to a group, or to anybody.
        let to: &[u8] = [&[2, 0xe8, 0x10, 0, 0, 1][..], &[1, 0, 0x5e, 1, 2, 3], &[]][kind];
        frame.iter_mut().zip(to).for_each(|(byte, to)| *byte = *to);
        frame
            .iter_mut()
            .skip(12)
            .zip([8, 0, 0x45])
            .for_each(|(byte, v)| *byte = v);
        frame
    });
    prop_oneof![
        4 => (prop::sample::select(&ACTIVE[..]), small()).prop_map(|(at, v)| Act::Register(at, v)),
        2 => (0..BAR / 4, small()).prop_map(|(at, v)| Act::Register(4 * at as u32, v)),
        1 => (0..BAR - 64, bytes(20)).prop_map(|(at, data)| Act::Write(at, data)),
        2 => (0..BAR - 64, 0usize..20).prop_map(|(at, len)| Act::Read(at, len)),
        3 => ((0..MEMORY / 64).prop_map(|at| at * 32), bytes(256)).prop_map(|(at, d)| Act::Memory(at, d)),
        1 => frame.prop_map(Act::Frame),
        1 => any::<bool>().prop_map(Act::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_panics_and_reset_empties(acts in prop::collection::vec(act(), 0..120)) {
        count_panics();
        let bench = Bench::new();
        // Rings that the guest has set up, of memory that it will fill with anything.
        for (offset, value) in [(0x80200, 0x8000_00c0), (0x80000, 0x1000), (0x80280, 0x8000_0040), (0x80080, 0x8000)] {
            bench.write(offset, value);
        }
        let mut context = [0; 64];
        context[1] = 4;
        context[8..16].copy_from_slice(&0x2_0000u64.to_le_bytes());
        bench.memory.write(0x3000, &context).unwrap();
        bench.write(0x50_a080, 0x3000);
        prop_assert_eq!(&bench.state()["cqp"], true);
        for act in acts {
            match act {
                Act::Write(offset, data) => bench.card.bar_write(offset, &data),
                Act::Register(offset, value) => bench.write(offset, value),
                Act::Read(offset, len) => bench.card.bar_read(offset, &mut vec![0; len]),
                Act::Memory(at, data) => bench.memory.write(at, &data).unwrap_or_default(),
                Act::Frame(frame) => Receiver::receive(&*bench.card, &frame),
                Act::Reset(true) => Backend::reset(&*bench.card, ResetCause::FunctionLevel),
                Act::Reset(false) => Receiver::link_changed(&*bench.card, true),
            }
        }
        Backend::reset(&*bench.card, ResetCause::Machine);
        let state = bench.state();
        for objects in ["qps", "cqs", "mrs", "ahs", "groups", "ceqs"] {
            prop_assert_eq!(&state[objects], 0, "{}", objects);
        }
        prop_assert!(bench.card.gates().status().is_empty());
        prop_assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    }
}
