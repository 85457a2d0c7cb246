// SPDX-License-Identifier: GPL-2.0
//! No event is lost between a device, a driver that serves the event queue on another thread, and an
//! application that sleeps until a completion is announced.

mod driver;

use driver::{Driver, CQ_ACK, CQ_ARM, QKEY, WQE_ALLOC};
use nic_bus::{Dma, RdmaFunction};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const MAC: [u8; 6] = [2, 0xE8, 0x10, 0, 0, 1];
const SENDS: u64 = 20_000;

#[test]
fn a_sleeper_is_woken_for_each_completion() {
    for entries in [4, 34] {
        sleep_and_send(entries);
    }
}

/// The application arms, looks once more and sleeps, as an application must; its library keeps one
/// arm outstanding and remembers a further request until the event of the first was taken.
fn sleep_and_send(entries: u64) {
    let mut d = Driver::up(MAC);
    let mut cq = d.create_cq(3, entries);
    let mut qp = d.ud(4, cq.id);
    d.arp(1, [2, 0xE8, 0x10, 0, 0, 2]);
    d.ah4(1, 1, 1, 2, false);
    let mut ceq = d.ceq.take().expect("an event queue");
    let done = AtomicBool::new(false);
    let (announce, announced) = mpsc::channel();
    let (host, rdma) = (d.host.clone(), d.rdma.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if std::mem::take(&mut *host.events.lock().unwrap()).is_empty() {
                    std::thread::yield_now();
                    continue;
                }
                while let Some(words) = ceq.next(&host) {
                    rdma.write32(CQ_ACK, u32::try_from(words[0] & 0xFFFF).unwrap());
                    announce.send(()).unwrap();
                }
            }
        });
        let (mut armed, mut wanted, mut seq) = (false, false, 0u64);
        let shadow = cq.shadow;
        let arm = |seq: &mut u64| {
            *seq = (*seq + 1) % 4;
            let word = 3 << 14 | *seq << 16;
            d.host.write_u64(shadow + 32, word).unwrap();
            d.rdma.write32(CQ_ARM, 3);
        };
        for n in 0..SENDS {
            d.post_send(&mut qp, &[[0, 0, QKEY | 9 << 32, 1 | 3 << 32 | 1 << 62]]);
            d.rdma.write32(WQE_ALLOC, 4);
            let poll = |cq: &mut driver::Queue| {
                let found = cq.reader.next(&d.host).is_some();
                if found {
                    d.host.write_u64(cq.shadow, cq.reader.index()).unwrap();
                }
                found
            };
            while !poll(&mut cq) {
                if armed {
                    wanted = true;
                } else {
                    armed = true;
                    arm(&mut seq);
                }
                if poll(&mut cq) {
                    break;
                }
                if announced.recv_timeout(Duration::from_secs(5)).is_err() {
                    done.store(true, Ordering::Relaxed);
                    panic!("send {n} of {SENDS} with {entries} entries: {}", d.state());
                }
                if std::mem::take(&mut wanted) {
                    arm(&mut seq);
                } else {
                    armed = false;
                }
            }
            d.host.frames.lock().unwrap().clear();
        }
        done.store(true, Ordering::Relaxed);
    });
    d.assert_clean();
}
