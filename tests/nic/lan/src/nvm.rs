// SPDX-License-Identifier: GPL-2.0
//! The flash image: shadow RAM with its pointers, and per bank an NVM header, an option ROM version
//! and a netlist id (section 5.3 of the hardware contract). All versions are the virtual card's own.

use crate::le::Store;

/// Bytes of the flash.
const FLASH: usize = 0x5_4000;
/// Bytes of the shadow RAM at its start.
const SHADOW_RAM: usize = 0x1_0000;
/// First byte of the two copies of each module.
const NVM_BANKS: [usize; 2] = [0x1_0000, 0x3_0000];
const OPTION_ROM_BANKS: [usize; 2] = [0x5_0000, 0x5_1000];
const NETLIST_BANKS: [usize; 2] = [0x5_2000, 0x5_3000];

/// Word address of the preserved field area.
const PFA: u16 = 0x0200;
/// Length of an NVM bank's header in 32-bit words.
const CSS_HEADER: u16 = 0xa1;
/// "Pointer counts 4 KiB sectors".
const SECTORS: u16 = 0x8000;
/// Version of the NVM: 4.0x32, coded as the card does.
const NVM_VERSION: u16 = 0x4032;
/// Identification of the image, low and high word.
const EETRACK: [u16; 2] = [0x0810, 0x8000];
/// Product board assembly number as `devlink dev info` shows it.
const BOARD: &[u8; 10] = b"VE8100-001";
/// Bytes of the option ROM's version structure.
const CIV: usize = 74;

/// A flash image.
pub struct Nvm(Vec<u8>);

impl Nvm {
    /// Builds the image. Every address in it is a constant inside it.
    pub fn new() -> Self {
        let mut flash = vec![0; FLASH];
        shadow_ram(&mut flash);
        let copy: Vec<u8> = flash.iter().take(SHADOW_RAM / 2).copied().collect();
        for bank in NVM_BANKS {
            nvm_bank(&mut flash, bank, &copy);
        }
        for bank in OPTION_ROM_BANKS {
            option_rom(&mut flash, bank);
        }
        for bank in NETLIST_BANKS {
            netlist(&mut flash, bank);
        }
        Self(flash)
    }

    /// `len` bytes from `offset`, or `None` past the end.
    pub fn read(&self, offset: usize, len: usize) -> Option<&[u8]> {
        self.0.get(offset..offset.checked_add(len)?)
    }
}

/// Stores a word by its word address from `base`.
fn word(flash: &mut [u8], base: usize, address: usize, value: u16) {
    let stored = flash.put_u16(base + 2 * address, value);
    debug_assert!(stored.is_ok());
}

/// Number of the 4 KiB sector at a byte address of the image.
fn sector(address: usize) -> u16 {
    u16::try_from(address >> 12).unwrap_or(0)
}

fn shadow_ram(flash: &mut [u8]) {
    word(flash, 0, 0x00, 0x0040); // valid, first banks active
    word(flash, 0, 0x18, NVM_VERSION);
    word(flash, 0, 0x2d, EETRACK[0]);
    word(flash, 0, 0x2e, EETRACK[1]);
    word(flash, 0, 0x40, PFA);
    let [nvm, _] = NVM_BANKS;
    let [rom, _] = OPTION_ROM_BANKS;
    let [netlist, _] = NETLIST_BANKS;
    for (pointer, bank, sectors) in [(0x42, nvm, 0x20), (0x44, rom, 1), (0x46, netlist, 1)] {
        word(flash, 0, pointer, SECTORS | sector(bank));
        word(flash, 0, pointer + 1, sectors);
    }
    preserved_fields(flash);
}

/// The preserved field area: its length, then records of type, length, data.
fn preserved_fields(flash: &mut [u8]) {
    const BOARD_NUMBER: u16 = 0x16;
    const END: u16 = 0xffff;
    let words: Vec<u16> = BOARD
        .chunks_exact(2)
        .map(|pair| {
            pair.iter()
                .fold(0, |word, byte| word << 8 | u16::from(*byte))
        })
        .collect();
    // The string's own length word counts itself.
    let len = u16::try_from(words.len() + 1).unwrap_or(0);
    let mut area = vec![BOARD_NUMBER, len, len];
    area.extend(words);
    area.extend([END, 0]);
    let base = 2 * usize::from(PFA);
    word(flash, base, 0, u16::try_from(area.len()).unwrap_or(0));
    for (address, value) in (1..).zip(area) {
        word(flash, base, address, value);
    }
}

fn nvm_bank(flash: &mut [u8], bank: usize, shadow_ram: &[u8]) {
    word(flash, bank, 2, CSS_HEADER);
    word(flash, bank, 3, 0);
    // The copy of the shadow RAM follows header and authentication block on a 64-byte boundary.
    let start = (2 * usize::from(CSS_HEADER) + 8).next_multiple_of(32);
    let stored = flash.put(bank + 2 * start, shadow_ram);
    debug_assert!(stored.is_ok());
}

/// "$CIV", a byte that makes the sum 0, then the version: major, build, patch.
fn option_rom(flash: &mut [u8], bank: usize) {
    let mut civ = [0u8; CIV];
    let version = 1u32 << 24 | 1 << 8;
    let stored = civ
        .put(0, b"$CIV")
        .and_then(|()| civ.put_u32(5, version))
        .and_then(|()| {
            let sum = civ.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            civ.put_u8(4, sum.wrapping_neg())
        })
        .and_then(|()| flash.put(bank, &civ));
    debug_assert!(stored.is_ok());
}

fn netlist(flash: &mut [u8], bank: usize) {
    const LINK_TOPOLOGY: u16 = 0x011b;
    const NODES: u16 = 4;
    word(flash, bank, 0, LINK_TOPOLOGY);
    word(flash, bank, 2, 0x100); // length in words
    word(flash, bank, 3, NODES);
    // The id block follows header, nodes and their offsets: low and high words of major, minor,
    // type and revision.
    let id_block = 6 + 2 * usize::from(NODES);
    for (address, value) in [(2, 1), (4, 0), (6, 0), (8, 1)] {
        word(flash, bank, id_block + address, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::le::Load;

    fn word_at(nvm: &Nvm, address: usize) -> u16 {
        nvm.read(2 * address, 2).unwrap().u16_at(0).unwrap()
    }

    #[test]
    fn pointers_are_the_contracts() {
        let nvm = Nvm::new();
        assert_eq!(word_at(&nvm, 0x42), 0x8010);
        assert_eq!(word_at(&nvm, 0x43), 0x20);
        assert_eq!(word_at(&nvm, 0x44), 0x8050);
        assert_eq!(word_at(&nvm, 0x46), 0x8052);
        assert_eq!(nvm.read(0x1_0004, 4).unwrap().u32_at(0), Ok(0xa1));
        assert_eq!(nvm.read(0x1_02f0, 2).unwrap().u16_at(0), Ok(NVM_VERSION));
    }

    #[test]
    fn size_ends_reads() {
        let nvm = Nvm::new();
        assert!(nvm.read(FLASH - 1, 1).is_some());
        assert!(nvm.read(FLASH, 1).is_none());
        assert!(nvm.read(usize::MAX, 2).is_none());
    }

    #[test]
    fn option_rom_sums_to_zero() {
        let nvm = Nvm::new();
        let civ = nvm.read(0x5_0000, CIV).unwrap();
        assert!(civ.starts_with(b"$CIV"));
        assert_eq!(civ.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0);
    }

    #[test]
    fn board_number_is_readable() {
        let nvm = Nvm::new();
        let base = usize::from(PFA);
        assert_eq!(word_at(&nvm, base + 1), 0x16);
        assert_eq!(word_at(&nvm, base + 4), u16::from_be_bytes(*b"VE"));
    }
}
