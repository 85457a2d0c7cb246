// SPDX-License-Identifier: GPL-2.0

//! What queue pairs remember of their attaches, with interfaces that come and go and commands that
//! fail half-way.
//!
//! The model keeps, for each queue pair and address, the VLANs that the first attach took and the
//! number of attaches; from these follows how often the queue pair is in which group of the device.

use core::net::{
    IpAddr,
    Ipv4Addr, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::testing::random::Random;

use super::{
    device::{
        Device,
        Held,
        Share,
        Temper, //
    },
    view::View,
};
use crate::mcast::{
    group::GroupKey,
    list::{
        List,
        Occasion, //
    },
    membership::Memberships,
    vlan::Joins, //
};

const QPS: usize = 5;
const IPS: usize = 4;
const STEPS: u32 = 1500;

/// Where the host can have joined: on the port itself, and on VLANs.
const INTERFACES: [Option<u16>; 4] = [None, Some(1), Some(100), Some(4094)];

/// An attach as the model remembers it: how often, and one flag for each of [`INTERFACES`]; the first
/// stands for the group that takes all VLANs.
#[derive(Clone, Copy, Default)]
struct Record {
    uses: u32,
    groups: [bool; INTERFACES.len()],
}

struct Run {
    seed: u64,
    step: u32,
    random: Random,
    device: Arc<Device>,
    list: Arc<List<Arc<Held>, Share>>,
    qps: KVec<Memberships<Arc<Held>>>,
    free: KVec<Arc<Atomic<bool>>>,
    records: [[Record; IPS]; QPS],
}

fn number(qp: usize) -> u32 {
    // CAST: Below `QPS`.
    10 + qp as u32
}

fn address(ip: usize) -> IpAddr {
    // CAST: Below `IPS`.
    IpAddr::V4(Ipv4Addr::new(239, 0, 0, ip as u8))
}

impl Run {
    fn new(objects: u32, temper: Temper, seed: u64) -> Result<Self> {
        let list = Arc::pin_init(List::new(objects), GFP_KERNEL)?;
        let device = Device::new(list.limit(), seed ^ 0xdeed, temper)?;
        let (mut qps, mut free) = (KVec::new(), KVec::new());

        for qp in 0..QPS {
            let flag = Arc::new(Atomic::new(true), GFP_KERNEL)?;
            let held = Held::new(number(qp), &flag, &device)?;
            qps.push(Memberships::new(held), GFP_KERNEL)?;
            free.push(flag, GFP_KERNEL)?;
        }
        Ok(Self {
            seed,
            step: 0,
            random: Random::new(seed),
            device,
            list,
            qps,
            free,
            records: [[Record::default(); IPS]; QPS],
        })
    }

    fn expect(&self, good: bool, what: &str) -> Result {
        if good {
            return Ok(());
        }
        pr_err!(
            "irdma_rs: mcast: records, seed {}, step {}: {what}\n",
            self.seed,
            self.step
        );
        Err(EINVAL)
    }

    fn attach(&mut self, qp: usize, ip: usize) -> Result {
        let joined: [bool; INTERFACES.len()] = core::array::from_fn(|_| self.random.chance(1, 3));
        let record = self
            .records
            .get_mut(qp)
            .and_then(|row| row.get_mut(ip))
            .ok_or(EINVAL)?;
        let first = record.uses == 0;
        let mut asked = false;
        let interfaces = || {
            asked = true;
            let mut joins = Joins::new();
            for (vlan, joined) in INTERFACES.into_iter().zip(joined) {
                if joined {
                    joins.add(vlan);
                }
            }
            joins.decide()
        };
        let memberships = self.qps.get_mut(qp).ok_or(EINVAL)?;
        let result = memberships.attach(&self.list, &self.device, address(ip), interfaces);

        match result {
            Ok(()) => {
                record.uses += 1;
                if first {
                    let [untagged, tagged @ ..] = joined;
                    let all = untagged || !tagged.contains(&true);
                    record.groups = if all { [false; 4] } else { joined };
                    let [any, ..] = &mut record.groups;
                    *any = all;
                }
            }
            Err(error) => {
                let good = error == ENOMEM || self.device.failed_with(error);
                self.expect(good, "an attach failed for no reason")?;
            }
        }
        self.expect(
            asked == first,
            "the interfaces count for the first attach, and only for that",
        )
    }

    fn detach(&mut self, qp: usize, ip: usize) -> Result {
        let record = self
            .records
            .get_mut(qp)
            .and_then(|row| row.get_mut(ip))
            .ok_or(EINVAL)?;
        let attached = record.uses > 0;
        record.uses = record.uses.saturating_sub(1);

        let memberships = self.qps.get_mut(qp).ok_or(EINVAL)?;
        let result = memberships.detach(&self.list, &self.device, address(ip));
        let expected = if attached { Ok(()) } else { Err(EINVAL) };
        self.expect(result == expected, "result of a detach")
    }

    /// How often the queue pair should be in the group of `vlan`.
    fn expected(&self, qp: usize, ip: usize, vlan: Option<u16>) -> u32 {
        let record = self.records.get(qp).and_then(|row| row.get(ip));
        let place = INTERFACES.iter().position(|other| *other == vlan);

        match (record, place) {
            (Some(record), Some(place)) if record.groups.get(place) == Some(&true) => record.uses,
            _ => 0,
        }
    }

    /// Compares list, device and model for all groups of an address.
    fn check(&self, ip: usize) -> Result {
        if let Some(violation) = self.device.violation() {
            return self.expect(false, violation);
        }
        for vlan in INTERFACES {
            let key = GroupKey {
                ip: address(ip),
                vlan,
            };
            let view = View::of(&self.list, &key);
            for qp in 0..QPS {
                let uses = view.as_ref().map_or(0, |view| view.uses(number(qp)));
                self.expect(
                    uses == self.expected(qp, ip, vlan),
                    "a count of uses is wrong",
                )?;
            }
            if let Some(what) = view.and_then(|view| view.disagreement(&self.device)) {
                return self.expect(false, what);
            }
        }
        Ok(())
    }

    fn run(mut self) -> Result {
        for step in 0..STEPS {
            let (qp, ip) = (self.random.index(QPS), self.random.index(IPS));

            self.step = step;
            self.device.forget_errors();
            if self.random.chance(11, 20) {
                self.attach(qp, ip)?;
            } else {
                self.detach(qp, ip)?;
            }
            self.check(ip)?;
        }

        self.device.set_temper(Temper::default());
        for memberships in &mut self.qps {
            memberships.detach_all(&self.list, &self.device);
        }
        self.records = [[Record::default(); IPS]; QPS];
        self.list.retry(&self.device, Occasion::Last);
        for ip in 0..IPS {
            self.check(ip)?;
        }
        self.expect(self.device.groups() == 0, "a group is left")?;
        self.expect(self.device.shares() == 0, "a share is left")?;
        self.qps = KVec::new();
        let free = self.free.iter().all(|free| free.load(Relaxed));
        self.expect(free, "a number is held back")
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_records)]
mod suite {
    use super::*;

    const OBEDIENT: Temper = Temper {
        refuse: 0,
        swallow: 0,
        no_share: 0,
        slow: false,
    };

    #[test]
    fn a_detach_gives_back_what_the_attach_took() -> Result {
        for seed in 0..3 {
            Run::new(64, OBEDIENT, seed)?.run()?;
        }
        Ok(())
    }

    /// Groups run out between the VLANs of one attach.
    #[test]
    fn an_attach_takes_all_groups_or_none_when_groups_run_out() -> Result {
        for seed in 10..13 {
            Run::new(6, OBEDIENT, seed)?.run()?;
        }
        Ok(())
    }

    #[test]
    fn an_attach_takes_all_groups_or_none_when_commands_are_refused() -> Result {
        let temper = Temper {
            refuse: 150,
            no_share: 50,
            ..OBEDIENT
        };

        for seed in 20..23 {
            Run::new(64, temper, seed)?.run()?;
            Run::new(6, temper, seed)?.run()?;
        }
        Ok(())
    }
}
