# SPDX-License-Identifier: Apache-2.0
"""Test bench of the TCAM with two cycles per search: compares each result and its cycle with a table."""

import os
import random
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

from bench import CLOCK_NS, package_number
from ternary import (
    ANY, KEY_BITS, Driver, accepts, key_of, near_miss, part_accepts, parts, probe, random_entry, replacement,
)

ENTRIES = int(os.environ["ENTRIES"])
# An address of a memory cell is a part of the key and the page.
PART_BITS = package_number("CHUNK_BITS") - 1
PARTS = parts(PART_BITS)
ADDRESSES = 1 << PART_BITS
LATENCY = 5


class Tcam(Driver):
    """Drives the module."""

    def __init__(self, dut):
        super().__init__(dut, ENTRIES)
        # A search after its first cycle: its key, and the index found in page 0.
        self.first = None

    async def start(self):
        """Starts the clock and hides all entries, as the writer of the tables does after a reset."""
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.in_valid.value, dut.key.value, dut.write.value, dut.clearing.value = 0, 0, 0, 1
        dut.pair.value, dut.address.value, dut.bits.value, dut.shown.value = 0, 0, 0, 0
        for _ in range(8):
            await RisingEdge(dut.clk)
        for pair in range(ENTRIES // 2):
            dut.write.value, dut.pair.value = 1, pair
            await FallingEdge(dut.clk)
            assert not dut.hit.value and not dut.out_valid.value
            await RisingEdge(dut.clk)
        dut.write.value, dut.clearing.value = 0, 0

    def _find(self, page, key):
        half = ENTRIES // 2
        return next((i for i in range(page * half, (page + 1) * half) if accepts(self.table[i], key)), None)

    async def step(self):
        """One cycle: a part of the next search, if there is one, and the next write, if there is one."""
        dut = self.dut
        if self.keys:
            dut.key.value = self.keys[0]
        dut.in_valid.value = int(bool(self.keys))
        write = self.writes.pop(0) if self.writes else None
        dut.write.value = int(write is not None)
        if write:
            dut.pair.value, dut.address.value, dut.bits.value, dut.shown.value = write[:4]
        await FallingEdge(dut.clk)
        ready = int(dut.in_ready.value)
        if self.first is not None:
            assert ready, "a search takes more than two cycles"
            key, found = self.first
            found = self._find(1, key) if found is None else found
            # The search has begun one cycle before.
            self.expect(LATENCY - 1, found, write)
            self.first = None
            self.keys.pop(0)
        elif self.keys:
            assert not ready
            self.first = self.keys[0], self._find(0, self.keys[0])
        assert bool(dut.out_valid.value) == self.check()
        await RisingEdge(dut.clk)
        self.cycle += 1
        for index, entry in write[4] if write else ():
            self.table[index] = entry

    def set(self, index, entry):
        """Queues the writes of one update, in an empty queue. The other entry of the pair keeps its bits."""
        first = index & ~1
        now = self.table[first : first + 2]
        new = [entry if first + at == index else now[at] for at in range(2)]
        other = [int(e is not None and first + at != index) for at, e in enumerate(now)]
        shown = [int(e is not None) for e in new]
        steps = [(0, other, [(index, None)])]
        if entry is not None:
            steps += [(address, other, []) for address in range(1, ADDRESSES)] + [(0, shown, [(index, entry)])]
        for address, bits, change in steps:
            word = 0
            for at, e in enumerate(new):
                for part in range(PARTS):
                    word |= int(part_accepts(e, part, address, PART_BITS)) << 2 * part + at
            self.writes.append((first // 2, address, word, bits[0] | bits[1] << 1, change))
        return len(steps)


@cocotb.test()
async def entries_are_found_and_near_misses_are_not(dut):
    """Each entry with a matching key, and with one wrong bit in each part of the key."""
    chance = random.Random(1)
    tcam = Tcam(dut)
    await tcam.start()
    for index in range(ENTRIES):
        begin = tcam.cycle
        tcam.set(index, random_entry(chance, PART_BITS))
        while tcam.writes:
            await tcam.step()
        # The entry is found in the next cycle.
        assert tcam.cycle - begin == 17
        tcam.keys.append(key_of(chance, tcam.table[index]))
        await tcam.drain()
    for index, entry in enumerate(list(tcam.table)):
        tcam.keys.append(key_of(chance, entry))
        for part in range(PARTS):
            tcam.keys.append(near_miss(chance, entry, part, PART_BITS))
    before, begin = sum(tcam.hits.values()), tcam.cycle
    await tcam.drain()
    searches, missed = sum(tcam.hits.values()) - before, tcam.hits[None]
    assert searches == ENTRIES * (PARTS + 1) and missed == ENTRIES * PARTS, tcam.hits
    assert all(tcam.hits[index] == 2 for index in range(ENTRIES)), tcam.hits
    assert tcam.cycle - begin == 2 * searches + LATENCY - 1, "searches do not follow each other"


@cocotb.test()
async def the_lowest_index_wins(dut):
    """All entries accept each key; they are hidden and shown in random order between and during searches."""
    chance = random.Random(2)
    tcam = Tcam(dut)
    await tcam.start()
    await tcam.show_all()
    # Few entries stay shown, so that each of them is the lowest one at times.
    for _ in range(3000):
        shown = [at for at, entry in enumerate(tcam.table) if entry]
        if not tcam.writes and len(shown) > 3:
            tcam.set(chance.choice(shown), None)
        elif not tcam.writes:
            tcam.set(chance.randrange(ENTRIES), ANY)
        if not tcam.keys and chance.random() < 0.9:
            tcam.keys.append(chance.getrandbits(KEY_BITS))
        await tcam.step()
    await tcam.drain()
    behind = sum(count for index, count in tcam.hits.items() if index is not None and index >= ENTRIES // 2)
    assert sum(tcam.hits.values()) > 1000 and len(tcam.hits) > ENTRIES // 3 and behind > 100, tcam.hits


@cocotb.test()
async def searches_see_updates_whole_and_do_not_wait(dut):
    """A search in every second cycle, or with gaps, while an entry is written in every cycle."""
    chance = random.Random(3)
    tcam = Tcam(dut)
    await tcam.start()
    half = ENTRIES // 2
    # Page 0 is filled first: its entries must be found while addresses of page 1 are written for the first time.
    order = list(range(ENTRIES)) + [chance.randrange(ENTRIES) for _ in range(300)]
    found = Counter()
    old = [None] * ENTRIES
    for count, index in enumerate(order):
        before, after = replacement(chance, tcam.table[index], count >= ENTRIES, PART_BITS)
        length = tcam.set(index, after)
        for _ in range(length):
            if not tcam.keys and (count % 3 or chance.random() < 0.5):
                # The entry itself, one that shares its cells, or any other one.
                near = [index, index, index ^ 1, index ^ half, index ^ half ^ 1, chance.randrange(ENTRIES)]
                target = chance.choice(near)
                entry = chance.choice((before, after or before)) if target == index else tcam.table[target]
                entry = entry or old[target] or before
                tcam.keys.append(probe(chance, entry, PART_BITS))
                found[near.index(target)] += 1
            await tcam.step()
        old[index] = before
    during = sum(count for index, count in tcam.during.items() if index is not None)
    await tcam.drain()
    assert min(found[at] for at in (0, 2, 3, 4)) > 200, found
    assert during > 800 and tcam.during[None] > 300, (during, tcam.during[None])
    assert len(tcam.hits) > ENTRIES * 9 // 10, tcam.hits


@cocotb.test()
async def a_reset_hides_all_entries(dut):
    """No search begins while entries are hidden, none is hit after it, and a new entry shows no other one."""
    chance = random.Random(4)
    tcam = Tcam(dut)
    await tcam.start()
    await tcam.show_all()
    dut.clearing.value, dut.in_valid.value = 1, 1
    dut.address.value, dut.shown.value = 0, 0
    for pair in range(ENTRIES // 2):
        dut.write.value, dut.pair.value = 1, pair
        await FallingEdge(dut.clk)
        assert not dut.hit.value and (pair == 0 or not dut.in_ready.value)
        await RisingEdge(dut.clk)
    dut.clearing.value, dut.in_valid.value = 0, 0
    await tcam.check_hidden(chance)
