# SPDX-License-Identifier: Apache-2.0
"""Test bench of the TCAM: a search in every cycle, each result compared with a table after exactly 4 cycles."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

from bench import CLOCK_NS, package_number
from ternary import (
    ANY, KEY_BITS, Driver, accepts, key_of, near_miss, part_accepts, parts, probe, random_entry, replacement,
)

ENTRIES = int(os.environ["ENTRIES"])
CHUNK_BITS, ROW_ENTRIES = package_number("CHUNK_BITS"), package_number("ROW_ENTRIES")
CHUNKS = parts(CHUNK_BITS)
LAST = CHUNKS - 1
LAST_BITS = KEY_BITS - LAST * CHUNK_BITS
BANK_ADDRESSES = 1 << LAST_BITS
LATENCY = 4
# Writes of an update: both banks of the last chunk, and all addresses of a row between them.
UPDATE = 2 * BANK_ADDRESSES + (1 << CHUNK_BITS)


class Tcam(Driver):
    """Drives the module."""

    def __init__(self, dut):
        super().__init__(dut, ENTRIES)
        self.bank = 0

    async def start(self):
        """Starts the clock and hides all entries, as the writer of the tables does after a reset."""
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.key.value, dut.bank.value, dut.write.value, dut.write_last.value = 0, 0, 0, 0
        dut.row.value, dut.address.value, dut.bits.value = 0, 0, 0
        await self.clear()

    async def clear(self):
        """Hides all entries. No search is hit meanwhile."""
        dut = self.dut
        dut.clearing.value, dut.write_last.value, dut.bits.value = 1, 1, 0
        for address in range(2 * BANK_ADDRESSES):
            dut.address.value = address
            await FallingEdge(dut.clk)
            assert not dut.hit.value
            await RisingEdge(dut.clk)
        dut.write_last.value = 0
        # Searches of the time before the writes end.
        for _ in range(LATENCY):
            await FallingEdge(dut.clk)
            assert not dut.hit.value
            await RisingEdge(dut.clk)
        dut.clearing.value = 0

    async def step(self):
        """One cycle: the next search and the next write, if there are any."""
        dut = self.dut
        write = self.writes.pop(0) if self.writes else None
        dut.write.value, dut.write_last.value, dut.bank.value = 0, 0, self.bank
        if write:
            signal, row, address, bits = write[:4]
            getattr(dut, signal).value = 1
            dut.row.value, dut.address.value, dut.bits.value = row, address, bits
        if self.keys:
            key = self.keys.pop(0)
            dut.key.value = key
            found = next((index for index, entry in enumerate(self.table) if accepts(entry, key)), None)
            self.expect(LATENCY, found, write)
        await FallingEdge(dut.clk)
        self.check()
        await RisingEdge(dut.clk)
        self.cycle += 1
        for index, entry in write[4] if write else ():
            # The change of the bank shows or hides the entry.
            self.table[index], self.bank = entry, 1 - self.bank

    def set(self, index, entry):
        """Queues the writes of one update, in an empty queue. The other entries of the row keep their bits."""
        row = index // ROW_ENTRIES
        first = row * ROW_ENTRIES
        now = (self.table + [None] * ROW_ENTRIES)[first : first + ROW_ENTRIES]
        new = [entry if first + at == index else old for at, old in enumerate(now)]
        other = 1 - self.bank

        def word(address, hidden):
            return sum(
                1 << chunk * ROW_ENTRIES + at
                for chunk in range(CHUNKS) for at, e in enumerate(new)
                if part_accepts(e, chunk, address, CHUNK_BITS)
                and (chunk != LAST or e is not None and not (hidden and first + at == index))
            )

        def last(bank, hidden, change):
            addresses = [bank << LAST_BITS | low for low in range(BANK_ADDRESSES)]
            self.writes += [("write_last", row, at, word(at, hidden), []) for at in addresses]
            self.writes[-1][4].extend(change)

        last(other, True, [(index, None)])
        if entry is not None:
            # The searched bank hides the entry, the other one gets it.
            for address in range(1 << CHUNK_BITS):
                hidden = address >> LAST_BITS & 1 == other
                self.writes.append(("write", row, address, word(address, hidden), []))
            self.writes[-1][4].append((index, entry))
            last(other, False, [])
        else:
            last(self.bank, True, [])
        return len(self.writes)


@cocotb.test()
async def entries_are_found_and_near_misses_are_not(dut):
    """Each entry with a matching key, and with one wrong bit in each chunk of the key, in every cycle."""
    chance = random.Random(1)
    tcam = Tcam(dut)
    await tcam.start()
    for index in range(ENTRIES):
        tcam.set(index, random_entry(chance, CHUNK_BITS))
        begin = tcam.cycle
        await tcam.drain()
        assert tcam.cycle - begin == UPDATE
    for index, entry in enumerate(tcam.table):
        for chunk in range(CHUNKS):
            tcam.keys += [key_of(chance, entry), near_miss(chance, entry, chunk, CHUNK_BITS)]
    count, begin = len(tcam.keys), tcam.cycle
    await tcam.drain()
    assert tcam.cycle - begin == count + LATENCY, "searches do not follow each other"
    assert tcam.hits[None] == count // 2, tcam.hits
    assert all(tcam.hits[index] == CHUNKS for index in range(ENTRIES)), tcam.hits


@cocotb.test()
async def the_lowest_index_wins(dut):
    """All entries accept each key; they are hidden and shown in random order while each cycle has a search."""
    chance = random.Random(2)
    tcam = Tcam(dut)
    await tcam.start()
    await tcam.show_all()
    for _ in range(6000):
        shown = [at for at, entry in enumerate(tcam.table) if entry]
        if not tcam.writes:
            # Few entries stay shown, so that each of them is the lowest one at times.
            many = len(shown) > 1
            tcam.set(chance.choice(shown) if many else chance.randrange(ENTRIES), None if many else ANY)
        tcam.keys.append(chance.getrandbits(KEY_BITS))
        await tcam.step()
    await tcam.drain()
    behind = sum(count for index, count in tcam.hits.items() if index is not None and index >= ENTRIES // 2)
    assert sum(tcam.hits.values()) == 6000 and len(tcam.hits) > ENTRIES // 3 and behind > 500, tcam.hits


@cocotb.test()
async def searches_see_updates_whole_and_do_not_wait(dut):
    """A search in every cycle, while an entry is written in every cycle."""
    chance = random.Random(3)
    tcam = Tcam(dut)
    await tcam.start()
    order = list(range(ENTRIES)) + [chance.randrange(ENTRIES) for _ in range(200)]
    for count, index in enumerate(order):
        before, after = replacement(chance, tcam.table[index], count >= ENTRIES, CHUNK_BITS)
        for _ in range(tcam.set(index, after)):
            # The entry itself as it was or will be, another one of its row, or any other one.
            row = range(index - index % ROW_ENTRIES, min(index - index % ROW_ENTRIES + ROW_ENTRIES, ENTRIES))
            target = chance.choice((index, index, chance.choice(row), chance.randrange(ENTRIES)))
            entry = chance.choice((before, after or before)) if target == index else tcam.table[target] or before
            tcam.keys.append(probe(chance, entry, CHUNK_BITS))
            await tcam.step()
    during = sum(count for index, count in tcam.during.items() if index is not None)
    await tcam.drain()
    assert during > 2000 and tcam.during[None] > 1000, (during, tcam.during[None])
    assert len(tcam.hits) > ENTRIES * 9 // 10, tcam.hits


@cocotb.test()
async def a_reset_hides_all_entries(dut):
    """No search is hit while entries are hidden, nor after it, and a new entry shows no other one."""
    chance = random.Random(4)
    tcam = Tcam(dut)
    await tcam.start()
    await tcam.show_all()
    await tcam.clear()
    await tcam.check_hidden(chance)
