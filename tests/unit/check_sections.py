#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""check_sections.py FILE - the sections of restartable sequences in a library or program agree.

Every 32 bytes of __rseq_cs are a descriptor (version 0, flags 0, a range of code, an abort address
outside it with the signature before it), and __rseq_cs_ptr_array names each of them once. In
position-independent files the addresses are relocations. Exit status 77: no such sections.
"""
import struct
import sys

SIGNATURES = {62: 0x53053053, 183: 0xd428bc00}  # x86-64, aarch64
RELATIVE = {62: 8, 183: 1027}
SHT_RELA, SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 4, 1, 2, 4

data = open(sys.argv[1], 'rb').read()
assert data[:6] == b'\x7fELF\x02\x01', 'not a little-endian 64-bit ELF file'
machine, = struct.unpack_from('<H', data, 18)
table, = struct.unpack_from('<Q', data, 40)
size, number, names_index = struct.unpack_from('<HHH', data, 58)
headers = [struct.unpack_from('<IIQQQQIIQQ', data, table + i * size) for i in range(number)]
names_at = headers[names_index][4]


class Section:
    def __init__(self, header):
        start = names_at + header[0]
        self.name = data[start:data.index(b'\0', start)].decode()
        self.type, self.flags, self.address, self.offset, self.size = header[1:6]

    def holds(self, address, length=1):
        return self.flags & SHF_ALLOC and self.address <= address <= \
            address + length <= self.address + self.size

    def at(self, address, layout):
        return struct.unpack_from(layout, data, self.offset + address - self.address)


sections = [Section(header) for header in headers]
by_name = {section.name: section for section in sections}
descriptors, pointers = by_name.get('__rseq_cs'), by_name.get('__rseq_cs_ptr_array')
if not descriptors and not pointers:
    print('skipped: no restartable sequences in', sys.argv[1])
    sys.exit(77)
assert descriptors and pointers, 'one of the two sections is missing'

relocated = {}
for section in sections:
    if section.type == SHT_RELA:
        for at in range(section.offset, section.offset + section.size, 24):
            place, info, addend = struct.unpack_from('<QQq', data, at)
            if info & 0xffffffff == RELATIVE[machine]:
                relocated[place] = addend


def pointer_at(section, address):
    """An address as it will be when the file is loaded at 0."""
    return relocated.get(address, section.at(address, '<Q')[0])


def code_at(address, length):
    found = [section for section in sections
             if section.flags & SHF_EXECINSTR and section.holds(address, length)]
    assert found, f'{address:#x} is not code'
    return found[0]


assert descriptors.size and descriptors.size % 32 == 0 and descriptors.address % 32 == 0
assert descriptors.flags & SHF_WRITE, 'descriptors are relocated, so they must be writable'
assert pointers.size == descriptors.size // 32 * 8, 'as many pointers as descriptors'
ranges = []
for address in range(descriptors.address, descriptors.address + descriptors.size, 32):
    version, flags = descriptors.at(address, '<II')
    start, abort = pointer_at(descriptors, address + 8), pointer_at(descriptors, address + 24)
    length, = descriptors.at(address + 16, '<Q')
    assert (version, flags) == (0, 0), f'descriptor {address:#x}: version, flags'
    assert 16 < length < 1024, f'descriptor {address:#x}: length {length}'
    code_at(start, length)
    assert not start <= abort < start + length, f'descriptor {address:#x}: aborts into itself'
    signature, = code_at(abort - 4, 8).at(abort - 4, '<I')
    assert signature == SIGNATURES[machine], f'descriptor {address:#x}: signature {signature:#x}'
    ranges.append((start, start + length))
ranges.sort()
for (_, end), (start, _) in zip(ranges, ranges[1:]):
    assert end <= start, f'two sections share the code at {start:#x}'
named = [pointer_at(pointers, address)
         for address in range(pointers.address, pointers.address + pointers.size, 8)]
assert sorted(named) == list(range(descriptors.address, descriptors.address + descriptors.size,
                                   32)), 'the pointers name each descriptor once'
print(f'{len(ranges)} sequences')
