# SPDX-License-Identifier: Apache-2.0
"""What the benches of TCAMs share: random entries, keys that they accept or nearly accept, and the driver.

An entry is its value and its mask, or None if it is hidden. A memory compares a part of the key: `bits` key bits.
"""

from collections import Counter

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


def replacement(chance, old, may_hide, bits):
    """An entry that an update replaces, and the new one: random, with few other bits, or none if `may_hide`. Without
    an old entry, the replaced one is random."""
    kind = chance.random()
    before, after = old or random_entry(chance, bits), random_entry(chance, bits)
    if may_hide and kind < 0.2:
        return before, None
    if may_hide and kind < 0.4:
        return before, (before[0] ^ (1 << chance.randrange(KEY_BITS)) & before[1], before[1])
    return before, after


def probe(chance, entry, bits):
    """Mostly a key that an entry accepts, and otherwise a near miss in a random part."""
    part = chance.randrange(parts(bits))
    return key_of(chance, entry) if chance.random() < 0.8 else near_miss(chance, entry, part, bits)


class Driver:
    """Drives a TCAM cycle by cycle. Holds the table that a search must see in each cycle. A subclass has `step` for
    one cycle and `set`, which queues the writes of an update."""

    def __init__(self, dut, entries):
        self.dut = dut
        self.table = [None] * entries
        self.keys, self.writes = [], []
        # Results by the cycle in which they are due.
        self.cycle, self.due = 0, {}
        # Searches by the index of their result; in `during`, only those beside a write.
        self.hits, self.during = Counter(), Counter()

    def expect(self, latency, found, beside_write):
        """Records the result of a search that has begun `latency` cycles before it is due."""
        self.due[self.cycle + latency] = found
        self.during[found] += bool(beside_write)

    def check(self):
        """Compares the result of this cycle, if one is due. Returns whether one is."""
        if self.cycle not in self.due:
            return False
        wanted = self.due.pop(self.cycle)
        got = int(self.dut.index.value) if self.dut.hit.value else None
        assert got == wanted, f"cycle {self.cycle}: entry {got} instead of {wanted}"
        self.hits[got] += 1
        return True

    async def drain(self):
        """Ends all searches and writes."""
        while self.keys or self.writes or self.due:
            await self.step()

    async def show_all(self):
        """Lets all entries accept every key."""
        for index in range(len(self.table)):
            self.set(index, ANY)
            await self.drain()

    async def check_hidden(self, chance):
        """Checks that no entry is hit, and that each of two new entries is the only one that is hit."""
        self.table = [None] * len(self.table)
        self.keys += [chance.getrandbits(KEY_BITS) for _ in range(100)]
        await self.drain()
        assert self.hits == {None: 100}, self.hits
        for index in (len(self.table) - 1, 0):
            self.set(index, ANY)
            await self.drain()
            self.keys += [chance.getrandbits(KEY_BITS) for _ in range(100)]
            await self.drain()
            assert self.hits[index] == 100, self.hits
