# SPDX-License-Identifier: Apache-2.0
"""Test bench of the data plane: throughput in every cycle, latency, updates under load, bad frames."""

import os
import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

import device
from bench import Sink, action, beats, command, data, egress, execute, key, output, padded, send, start

COUNTERS = ("received", "to_port", "to_controller", "discarded", "bad_edit", "ttl_expired", "runt", "bad_frame", "no_room")
PPUS, ENTRIES = int(os.environ["PPUS"]), int(os.environ["ENTRIES"])
MACS = bytes.fromhex("020000000001020000000002")


def counters(dut):
    """All counters by name."""
    word = int(dut.counters.value)
    return {name: word >> 64 * at & (1 << 64) - 1 for at, name in enumerate(COUNTERS)}


def frame(length, seed=0, vlan=False):
    """An Ethernet frame of an unknown type, maybe with a VLAN tag."""
    tag = bytes.fromhex("8100600a") if vlan else b""
    return (MACS + tag + b"\x88\xb5" + random.Random(seed).randbytes(length))[:length]


async def prepare(dut, miss=device.OUTPUT_DISCARD):
    """Resets the data plane and waits until it takes commands."""
    await start(
        dut, in_valid=0, in_last=0, in_bad=0, in_keep=0, in_data=0, in_port=0, out_ready=1, command_valid=0,
        command=0, read_valid=0, read_ppu=0, read_index=0, miss_output=miss,
    )
    while not dut.command_ready.value:
        await RisingEdge(dut.clk)


async def add(dut, ppu, index, word, *slices):
    """Adds an entry."""
    value, mask = key(*slices)
    return await execute(dut, command(device.COMMAND_WRITE, ppu, index, value, mask, word))


@cocotb.test()
async def frames_of_64_bytes_leave_in_every_cycle(dut):
    """All PPUs edit each frame; no cycle is without a beat; the latency is the documented one."""
    await prepare(dut)
    ppus = PPUS
    for ppu in range(ppus):
        write = action(data=data(bytes([ppu])), offset=20 + ppu, insert=1, remove=1, output_kind=2, port=ppu)
        await add(dut, ppu, 3, write)
    sink = Sink(dut)
    frames = [frame(64, seed) for seed in range(300)]
    sent_at = sink.cycle + 1
    await send(dut, frames)
    await sink.wait_for(300)
    expected = [f[:20] + bytes(range(ppus)) + f[20 + ppus :] for f in frames]
    assert [f for _, f in sink.frames] == expected
    assert {e for e, _ in sink.frames} == {egress(ppus - 1, ppu=ppus - 1)}
    assert sink.cycles == list(range(sink.cycles[0], sink.cycles[0] + 300)), "a cycle was without a beat"
    latency = sink.cycles[0] - sent_at
    dut._log.info("latency %d cycles with %d PPUs", latency, ppus)
    assert latency == 16 + 12 * ppus, latency


@cocotb.test()
async def longer_frames_leave_at_bus_rate(dut):
    """Removal of a tag in front of frames of all lengths: as many cycles as beats arrived."""
    await prepare(dut)
    await add(dut, 0, 0, action(offset=12, remove=4, output_kind=2, port=5))
    for length in (65, 127, 128, 129, 191, 192, 193, 1500, 1518):
        sink = Sink(dut)
        frames = [frame(length, seed, vlan=True) for seed in range(12)]
        count = await send(dut, frames)
        await sink.wait_for(12)
        assert [f for _, f in sink.frames] == [f[:12] + f[16:] for f in frames], length
        span = sink.cycles[-1] - sink.cycles[0] + 1
        assert span <= count, f"{length} bytes: {count} beats in, {span} cycles out"


@cocotb.test()
async def back_pressure_and_gaps_change_no_frame(dut):
    """Random gaps on both sides, frames of 14 to 1518 bytes, with and without growth of the header."""
    await prepare(dut)
    chance = random.Random(7)
    await add(dut, 0, 0, action(data=data(b"\x81\0\0\x07"), offset=12, insert=4, output_kind=2, port=2))
    sink = Sink(dut, ready=lambda: chance.random() < 0.6)
    frames = [frame(chance.choice((14, 60, 64, 65, 124, 125, 128, 129, 300, 1518)), s) for s in range(200)]
    await send(dut, frames, idle=lambda: chance.random() < 0.75)
    await sink.wait_for(200, 20000)
    assert [f for _, f in sink.frames] == [padded(f[:12] + b"\x81\0\0\x07" + f[12:]) for f in frames]


@cocotb.test()
async def an_update_never_stalls_and_is_never_half_seen(dut):
    """An entry is replaced again and again while a packet per cycle is searched, also its row's neighbour."""
    await prepare(dut)
    await execute(dut, command(device.COMMAND_SELECT, 0, slices=[(device.BASE_FRAME, 0, 4), (device.BASE_FRAME, 8, 4)]))
    # Frames differ in their last source MAC byte. Entry 6 always wants 1; entry 5 wants 2 or 3 in turns.
    await add(dut, 0, 6, output(1), None, (1, 0xFF))
    sink = Sink(dut)
    frames = [MACS[:11] + bytes([1 + n % 3]) + frame(64, n)[12:] for n in range(2400)]
    sending = cocotb.start_soon(send(dut, frames))
    longest = 0
    for turn in range(20):
        wanted = 2 + turn % 2
        longest = max(longest, await add(dut, 0, 5, output(wanted), None, (wanted, 0xFF)))
        await ClockCycles(dut.clk, 40)
    await sending
    await ClockCycles(dut.clk, 200)
    dut._log.info("an update takes %d cycles", longest)
    assert longest <= 64
    assert sink.cycles and len(sink.frames) > 500
    hits = {1: 0, 2: 0, 3: 0}
    for word, got in sink.frames:
        # The port of the action is the byte that the key required.
        assert word == egress(got[11]), (hex(word), got[:14].hex())
        hits[got[11]] += 1
    assert hits[1] == 800, "the neighbour was missed while the row was rewritten"
    assert hits[2] > 50 and hits[3] > 50


@cocotb.test()
async def bad_frames_are_dropped_whole_and_counted(dut):
    """Runts, giants, aborted and malformed frames between good ones."""
    await prepare(dut)
    await add(dut, 0, 0, output(4))
    sink = Sink(dut)
    good = [frame(length, length) for length in (64, 1518, 14, 200)]
    for bad in ("runt", "giant", "aborted", "aborted", "hole"):
        await send(dut, good)
        length = {"runt": 13, "giant": 1519, "aborted": 700, "hole": 200}[bad]
        for word, keep, last in beats(frame(length)):
            dut.in_valid.value, dut.in_data.value, dut.in_last.value = 1, word, last
            dut.in_keep.value = keep ^ 2 if bad == "hole" and last else keep
            dut.in_bad.value = int(bad == "aborted" and last)
            await RisingEdge(dut.clk)
    await send(dut, good)
    await sink.wait_for(24)
    await ClockCycles(dut.clk, 100)
    assert [f for _, f in sink.frames] == [padded(f) for f in good] * 6
    counted = counters(dut)
    assert counted == {
        "received": 29, "to_port": 24, "to_controller": 0, "discarded": 0, "bad_edit": 0, "ttl_expired": 0,
        "runt": 1, "bad_frame": 4, "no_room": 0,
    }, counted


@cocotb.test()
async def ingress_faster_than_egress_drops_whole_frames(dut):
    """The egress takes a beat in every fourth cycle. What arrives is whole and in order; the rest is counted."""
    await prepare(dut)
    await add(dut, 0, 0, output(4))
    turn = iter(range(10**9))
    sink = Sink(dut, ready=lambda: next(turn) % 4 == 0)
    frames = [frame(n * 37 % 1400 + 64, n) for n in range(300)]
    await send(dut, frames)
    await ClockCycles(dut.clk, 16000)
    counted = counters(dut)
    got = [f for _, f in sink.frames]
    assert counted["received"] == 300 and counted["no_room"] > 50, counted
    assert counted["to_port"] == len(got) == 300 - counted["no_room"]
    positions = [frames.index(f) for f in got]
    assert positions == sorted(positions)


@cocotb.test()
async def entries_are_read_back_and_foreign_places_refused(dut):
    """Reads return what was written; a removed entry does not exist; PPU and index are checked."""
    await prepare(dut)
    entries, ppus = ENTRIES, PPUS
    value, mask = key((0x11223344, 0xFFFF00FF & 0xFFFFFFFF), None, (5, 7))
    value &= mask
    await execute(dut, command(device.COMMAND_WRITE, ppus - 1, entries - 1, value, mask, output(9)))

    async def read(ppu, index):
        dut.read_valid.value, dut.read_ppu.value, dut.read_index.value = 1, ppu, index
        await RisingEdge(dut.clk)
        while not dut.read_ready.value:
            await RisingEdge(dut.clk)
        dut.read_valid.value = 0
        while True:
            await RisingEdge(dut.clk)
            if dut.refused.value:
                return None
            if dut.reply_valid.value:
                return tuple(int(s.value) for s in (dut.reply_exists, dut.reply_value, dut.reply_mask, dut.reply_action))

    assert await read(ppus - 1, entries - 1) == (1, value, mask, output(9))
    await execute(dut, command(device.COMMAND_ACT, ppus - 1, entries - 1, word=output(8)))
    assert await read(ppus - 1, entries - 1) == (1, value, mask, output(8))
    await execute(dut, command(device.COMMAND_REMOVE, ppus - 1, entries - 1))
    assert (await read(ppus - 1, entries - 1))[0] == 0
    assert await read(ppus, 0) is None
    assert await read(0, entries) is None
