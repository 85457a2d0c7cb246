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
    sync::Arc, //
};
use rdma::testing::random::Random;

use super::{
    device::{
        Held,
        Temper, //
    },
    rig::{
        number,
        Rig, //
    },
    view::View,
};
use crate::mcast::{
    group::GroupKey,
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
    rig: Rig,
    random: Random,
    qps: KVec<Memberships<Arc<Held>>>,
    records: [[Record; IPS]; QPS],
}

fn address(ip: usize) -> IpAddr {
    // CAST: Below `IPS`.
    IpAddr::V4(Ipv4Addr::new(239, 0, 0, ip as u8))
}

impl Run {
    fn new(objects: u32, temper: Temper, seed: u64) -> Result<Self> {
        let rig = Rig::new("records", objects, temper, QPS, seed)?;
        let mut qps = KVec::new();

        for qp in 0..QPS {
            let held = rig.hold(qp)?.ok_or(EINVAL)?;
            qps.push(Memberships::new(held), GFP_KERNEL)?;
        }
        Ok(Self {
            rig,
            random: Random::new(seed),
            qps,
            records: [[Record::default(); IPS]; QPS],
        })
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
        let result = memberships.attach(&self.rig.list, &self.rig.device, address(ip), interfaces);

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
                let good = error == ENOMEM || self.rig.device.failed_with(error);
                self.rig.expect(good, "an attach failed for no reason")?;
            }
        }
        self.rig.expect(
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
        let result = memberships.detach(&self.rig.list, &self.rig.device, address(ip));
        let expected = if attached { Ok(()) } else { Err(EINVAL) };
        self.rig.expect(result == expected, "result of a detach")
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
        self.rig.expect_no_violation()?;
        for vlan in INTERFACES {
            let key = GroupKey {
                ip: address(ip),
                vlan,
            };
            let view = View::of(&self.rig.list, &key);
            for qp in 0..QPS {
                let uses = view.as_ref().map_or(0, |view| view.uses(number(qp)));
                self.rig.expect(
                    uses == self.expected(qp, ip, vlan),
                    "a count of uses is wrong",
                )?;
            }
            if let Some(what) = view.and_then(|view| view.disagreement(&self.rig.device)) {
                return self.rig.expect(false, what);
            }
        }
        Ok(())
    }

    fn run(mut self) -> Result {
        for step in 0..STEPS {
            let (qp, ip) = (self.random.index(QPS), self.random.index(IPS));

            self.rig.step = step;
            self.rig.device.forget_errors();
            if self.random.chance(11, 20) {
                self.attach(qp, ip)?;
            } else {
                self.detach(qp, ip)?;
            }
            self.check(ip)?;
        }

        self.rig.obey();
        for memberships in &mut self.qps {
            memberships.detach_all(&self.rig.list, &self.rig.device);
        }
        self.records = [[Record::default(); IPS]; QPS];
        for ip in 0..IPS {
            self.check(ip)?;
        }
        self.qps = KVec::new();
        self.rig.expect_empty()
    }
}

#[kernel::macros::kunit_tests(irdma_rs_mcast_records)]
mod suite {
    use super::*;

    #[test]
    fn a_detach_gives_back_what_the_attach_took() -> Result {
        for seed in 0..3 {
            Run::new(64, Temper::OBEDIENT, seed)?.run()?;
        }
        Ok(())
    }

    /// Groups run out between the VLANs of one attach.
    #[test]
    fn an_attach_takes_all_groups_or_none_when_groups_run_out() -> Result {
        for seed in 10..13 {
            Run::new(6, Temper::OBEDIENT, seed)?.run()?;
        }
        Ok(())
    }

    #[test]
    fn an_attach_takes_all_groups_or_none_when_commands_are_refused() -> Result {
        let temper = Temper {
            refuse: 150,
            no_share: 50,
            ..Temper::OBEDIENT
        };

        for seed in 20..23 {
            Run::new(64, temper, seed)?.run()?;
            Run::new(6, temper, seed)?.run()?;
        }
        Ok(())
    }
}
