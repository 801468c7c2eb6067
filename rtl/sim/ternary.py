# SPDX-License-Identifier: Apache-2.0
"""Random entries of a TCAM, keys that they accept, and keys that differ from these in one bit.

An entry is its value and its mask, or None if it is hidden. A memory compares a part of the key: `bits` key bits.
"""

import device

KEY_BITS = device.KEY_BITS
ALL = (1 << KEY_BITS) - 1
# An entry that accepts every key.
ANY = (0, 0)


def parts(bits):
    """Number of parts of a key."""
    return -(-KEY_BITS // bits)


def accepts(entry, key):
    """Whether an entry matches."""
    return entry is not None and (entry[0] ^ key) & entry[1] == 0


def random_entry(chance, bits):
    """An entry that compares most bits, and at least one of each part."""
    mask = chance.getrandbits(KEY_BITS) | chance.getrandbits(KEY_BITS)
    for part in range(parts(bits)):
        mask |= 1 << min(part * bits + chance.randrange(bits), KEY_BITS - 1)
    return chance.getrandbits(KEY_BITS) & mask, mask


def key_of(chance, entry):
    """A random key that an entry accepts."""
    return entry[0] | chance.getrandbits(KEY_BITS) & ~entry[1] & ALL


def near_miss(chance, entry, part, bits):
    """A key that an entry would accept without one bit of a part."""
    compared = [bit for bit in range(KEY_BITS) if bit // bits == part and entry[1] >> bit & 1]
    return key_of(chance, entry) ^ 1 << chance.choice(compared)


def part_accepts(entry, part, address, bits):
    """Whether an entry accepts this value of a part. A hidden entry accepts any."""
    value, mask = entry or ANY
    return (value >> part * bits ^ address) & mask >> part * bits & (1 << bits) - 1 == 0
