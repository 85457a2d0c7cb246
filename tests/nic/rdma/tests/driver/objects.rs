// SPDX-License-Identifier: GPL-2.0
//! Regions, MAC table entries, address handles, groups.

use super::*;

/// A buffer with its key.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub addr: u64,
    pub va: u64,
    pub stag: u64,
}

impl Driver {
    /// A buffer of one contiguous block with local rights.
    pub fn buffer(&mut self, len: u64) -> Buffer {
        let addr = self.alloc(len, 4096);
        let va = 0x7F00_0000_0000 | addr;
        let stag = self.next_stag << 8 | 0x5A;
        self.next_stag += 1;
        self.ok(0x0A, mr_wqe(va, len, stag, PD, 0x3, addr, None));
        Buffer { addr, va, stag }
    }

    pub fn dealloc(&mut self, stag: u64) -> Completion {
        self.op(0x0D, [0, PD << 46, stag, 1 << 43, 0, 0, 0, 0])
    }

    pub fn arp(&mut self, index: u64, mac: [u8; 6]) {
        self.ok(0x0F, [0, 0, mac_word(mac), index | 3 << 42, 0, 0, 0, 0]);
    }

    /// An address handle between IPv4 addresses.
    pub fn ah4(&mut self, index: u64, arp: u64, source: u32, destination: u32, loopback: bool) {
        let mac = mac_word(self.host.mac);
        self.ok(
            0x1C,
            [
                mac << 16,
                PD << 48,
                64 << 32 | arp << 48,
                index | 1 << 59 | u64::from(loopback) << 62,
                destination.into(),
                0,
                source.into(),
                0,
            ],
        );
    }

    /// An address handle between IPv6 addresses.
    pub fn ah6(&mut self, index: u64, arp: u64, source: u128, destination: u128, loopback: bool) {
        let mac = mac_word(self.host.mac);
        // The lower of the two words holds the last 32 bits in its lower half.
        let pair = |a: u128| {
            let words = [a >> 96, a >> 64, a >> 32, a].map(|w| (w & 0xFFFF_FFFF) as u64);
            (words[3] | words[2] << 32, words[1] | words[0] << 32)
        };
        let (d0, d1) = pair(destination);
        let (s0, s1) = pair(source);
        self.ok(
            0x1C,
            [
                mac << 16,
                PD << 48,
                0x12345 | 64 << 32 | arp << 48,
                index | u64::from(loopback) << 62,
                d0,
                d1,
                s0,
                s1,
            ],
        );
    }

    /// A multicast operation (0x26 to 0x28) on an IPv4 group.
    pub fn group(&mut self, opcode: u64, index: u64, ip: u32, members: &[u64]) -> Completion {
        self.group_on(opcode, index, ip, None, members)
    }

    pub fn group_on(
        &mut self,
        opcode: u64,
        index: u64,
        ip: u32,
        vlan: Option<u64>,
        members: &[u64],
    ) -> Completion {
        let context = self.group_context(members);
        self.op(opcode, group_wqe(index, ip, vlan, context))
    }

    /// A group context with these members.
    pub fn group_context(&mut self, members: &[u64]) -> u64 {
        let context = self.alloc(64, 64);
        self.put_members(context, members);
        context
    }

    pub fn put_members(&self, context: u64, members: &[u64]) {
        let mut words = [0; 8];
        for (word, qp) in words.iter_mut().zip(members) {
            *word = qp | 1 << 31;
        }
        self.put(context, &words);
    }
}

/// The words of a multicast operation, without the opcode.
pub fn group_wqe(index: u64, ip: u32, vlan: Option<u64>, context: u64) -> [u64; 8] {
    let mac = 0x0100_5E00_0000 | u64::from(ip & 0x7F_FFFF);
    [
        mac,
        0,
        2 | vlan.unwrap_or(0xFFF) << 32,
        index | 1 << 60 | u64::from(vlan.is_some()) << 59,
        context,
        0,
        ip.into(),
        0,
    ]
}

pub fn mac_word(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |w, b| w << 8 | u64::from(*b))
}

/// REG_MR of small pages, VA based. `list` is a page list: level code and first index.
pub fn mr_wqe(
    va: u64,
    len: u64,
    stag: u64,
    pd: u64,
    rights: u64,
    addr: u64,
    list: Option<(u64, u64)>,
) -> [u64; 8] {
    let (level, first) = list.unwrap_or((0, 0));
    [
        va,
        len | pd << 46,
        stag,
        1 << 43 | level << 44 | rights << 48 | 1 << 59,
        if level == 0 { addr } else { 0 },
        0,
        first,
        0,
    ]
}
