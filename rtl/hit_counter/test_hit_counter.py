# SPDX-License-Identifier: Apache-2.0
"""Test bench of the hit counters: no hit is lost, whatever the order of entries, during clears and reads."""

import os
import random

import cocotb
from cocotb.triggers import RisingEdge

from bench import start

ENTRIES = int(os.environ["ENTRIES"])


async def read(dut, index):
    """Reads the counter of an entry, which is not hit at the time."""
    dut.read_index.value = index
    for _ in range(7):
        await RisingEdge(dut.clk)
    return int(dut.read_packets.value)


@cocotb.test()
async def every_hit_is_counted(dut):
    """Hits in every cycle, or with gaps, of few or of all entries; entries are cleared meanwhile."""
    await start(dut, hit_valid=0, hit_index=0, clear=0, clear_index=0, read_index=0)
    chance = random.Random(1)
    expected = [0] * ENTRIES
    for entries, density in ((1, 1.0), (2, 1.0), (3, 1.0), (1, 0.5), (2, 0.7), (ENTRIES, 1.0), (ENTRIES, 0.5)):
        quiet, since = ENTRIES - 1, 0
        for cycle in range(2000):
            hit = chance.random() < density
            index = chance.randrange(entries)
            if index == quiet:
                hit = False
            dut.hit_valid.value, dut.hit_index.value = int(hit), index
            expected[index] += hit
            # The quiet entry is cleared, read, and exchanged for another one.
            since = (since + 1) % 20
            dut.clear.value, dut.clear_index.value = int(since == 8), quiet
            dut.read_index.value = quiet
            if since == 8:
                expected[quiet] = 0
            if since == 0 and cycle:
                assert int(dut.read_packets.value) == 0, "a cleared entry has a count"
                quiet = chance.randrange(ENTRIES)
            await RisingEdge(dut.clk)
        dut.hit_valid.value = dut.clear.value = 0
        for index in range(ENTRIES):
            assert await read(dut, index) == expected[index], (entries, density, index)


@cocotb.test()
async def counts_are_read_during_hits(dut):
    """The count of an entry that is hit in every third cycle grows by one in three cycles."""
    await start(dut, hit_valid=1, hit_index=0, clear=0, clear_index=0, read_index=5)
    for index in range(ENTRIES):
        dut.hit_valid.value, dut.clear.value, dut.clear_index.value = 0, 1, index
        await RisingEdge(dut.clk)
        dut.clear.value = 0
        for _ in range(4):
            await RisingEdge(dut.clk)
    hits, history = 0, []
    for cycle in range(600):
        dut.hit_valid.value, dut.hit_index.value = 1, 5 if cycle % 3 == 0 else 6
        hits += cycle % 3 == 0
        history.append(hits)
        await RisingEdge(dut.clk)
        if cycle > 20:
            shown = int(dut.read_packets.value)
            assert history[cycle - 7] <= shown <= hits, (cycle, shown, hits)
