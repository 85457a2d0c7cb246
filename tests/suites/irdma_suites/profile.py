# SPDX-License-Identifier: GPL-2.0
"""Coverage counters of a module, as they were in memory, as a profile for LLVM.

The compiler leaves, for each function, a record in the section __llvm_prf_data: MD5
of its name, a hash of its shape, where in __llvm_prf_cnts its counters are (a
relocation), and how many. Names are in __llvm_prf_names. From these and the counters
comes a profile in LLVM's text form, which `llvm-profdata merge` reads; see
llvm/ProfileData/InstrProfData.inc and the CommandGuide of llvm-profdata.
"""

import hashlib
import struct
import zlib

#: struct __llvm_profile_data of LLVM 19: size, and offsets of what is read.
RECORD, NAME, HASH, COUNTERS, COUNT = 64, 0, 8, 16, 48
#: R_X86_64_PC64: symbol + addend - place.
PC64 = 24


class Elf:
    """Sections of an x86-64 object file."""

    def __init__(self, data: bytes):
        self._data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no little-endian ELF64 file")
        start, = struct.unpack_from("<Q", data, 0x28)
        entry, count, strings = struct.unpack_from("<HHH", data, 0x3A)
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * entry)
                        for i in range(count)]
        self.names = [self._text(self.headers[strings], h[0]) for h in self.headers]

    def _text(self, table, offset: int) -> str:
        start = table[4] + offset
        return self._data[start:self._data.index(b"\0", start)].decode()

    def index(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"no section {name}: not built with coverage counters")
        return self.names.index(name)

    def body(self, name: str) -> bytes:
        header = self.headers[self.index(name)]
        return self._data[header[4]:header[4] + header[5]]

    def relocations(self, name: str):
        """(offset, type, section of the symbol, its value, addend) of a section's."""
        table = self.index(".rela" + name)
        symbols = self.headers[self.headers[table][6]]
        for offset, info, addend in struct.iter_unpack("<QQq", self.body(".rela" + name)):
            _, _, _, section, value, _ = struct.unpack_from(
                "<IBBHQQ", self._data, symbols[4] + (info >> 32) * 24)
            yield offset, info & 0xffffffff, section, value, addend


def _leb128(data: bytes, at: int) -> tuple:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def names(body: bytes) -> dict:
    """MD5 (as in the records) -> name, of the section __llvm_prf_names."""
    found, at = {}, 0
    while at < len(body):
        if not body[at]:
            # Padding between what several objects brought.
            at += 1
            continue
        plain, at = _leb128(body, at)
        packed, at = _leb128(body, at)
        size = packed or plain
        text = body[at:at + size]
        at += size
        for name in (zlib.decompress(text) if packed else text).split(b"\x01"):
            key, = struct.unpack("<Q", hashlib.md5(name).digest()[:8])
            found[key] = name.decode()
    return found


def profile(module: bytes, counters: bytes) -> str:
    """Text of a profile, of a module file and its counters in memory."""
    elf = Elf(module)
    known, data = names(elf.body("__llvm_prf_names")), elf.body("__llvm_prf_data")
    size = elf.headers[elf.index("__llvm_prf_cnts")][5]
    if len(counters) != size:
        raise ValueError(f"{len(counters)} bytes of counters, {size} expected")
    if len(data) % RECORD:
        raise ValueError(f"records of another size than {RECORD}: another release of LLVM?")
    section, where = elf.index("__llvm_prf_cnts"), {}
    for offset, kind, target, value, addend in elf.relocations("__llvm_prf_data"):
        if offset % RECORD == COUNTERS:
            if kind != PC64 or target != section:
                raise ValueError(f"relocation of type {kind} for counters")
            where[offset - COUNTERS] = value + addend - COUNTERS
    lines = []
    for record in range(0, len(data), RECORD):
        key, shape = struct.unpack_from("<QQ", data, record + NAME)
        count, = struct.unpack_from("<I", data, record + COUNT)
        if key not in known or record not in where:
            raise ValueError(f"record {record // RECORD} has no name or no counters")
        values = struct.unpack_from(f"<{count}Q", counters, where[record])
        lines += [known[key], str(shape), str(count), *map(str, values), ""]
    return "\n".join(lines) + "\n"
