# SPDX-License-Identifier: Apache-2.0
"""Test bench of the data plane: throughput in every cycle, latency, updates under load, bad frames."""

import itertools
import os
import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

import device
import model
from bench import Sink, action, beats, command, data, egress, execute, key, output, padded, send, send_beat, start

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


async def prepare(dut):
    """Resets the data plane and waits until it takes commands."""
    await start(
        dut, in_valid=0, in_last=0, in_bad=0, in_keep=0, in_data=0, in_port=0, out_ready=1, command_valid=0,
        command=0, read_valid=0, read_ppu=0, read_index=0, miss_output=device.OUTPUT_DISCARD,
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


def kinds_of_actions(ppu):
    """Fields of an action of each kind, for a PPU."""
    out = {"output_kind": device.OUTPUT_PORT, "port": ppu}
    l3 = {"base": device.EDIT_BASE_L3, "offset": 12, "insert": 4, "remove": 4, "data": data(bytes([10, 9, 8, ppu]))}
    l4 = {"base": device.EDIT_BASE_L4, "insert": 2, "remove": 2, "data": data(bytes([7, ppu]))}
    macs = {"insert": 12, "remove": 12, "data": data(bytes([2, ppu] * 6))}
    # A tag is removed by one PPU and inserted by the next one.
    tag = {"offset": 12, "insert": 4, "data": data(b"\x81\0\0\x07")} if ppu % 2 else {"offset": 12, "remove": 4}
    return {
        "forward": out, "to the ingress port": out | {"to_ingress": 1},
        "to the controller": out | {"output_kind": device.OUTPUT_CONTROLLER},
        "TTL": out | {"dec_ttl": 1}, "TTL and MAC addresses": out | macs | {"dec_ttl": 1},
        "TTL, IPv4 address and checksums": out | l3 | {"dec_ttl": 1, "fix_ip": 1, "fix_l4": 1},
        "port and checksum": out | l4 | {"fix_l4": 1}, "4 bytes for 4": out | l3, "tag": out | tag,
        "metadata": out | {"write_metadata": 1, "metadata": ppu + 1},
        "drop": {"output_kind": device.OUTPUT_DISCARD},
    }


@cocotb.test()
async def each_kind_of_action_passes_a_frame_in_every_cycle(dut):
    """All PPUs execute an action of one kind on each frame: every frame of 64 bytes leaves in its own cycle."""
    await prepare(dut)
    ip = bytes.fromhex("81000007 0800 4500 002e 0000 4000 4011 0000 0a000001 0a000002 1234 0035 001a abcd")
    frames = [(MACS[:11] + bytes([n % 4]) + ip + frame(64, n))[:64] for n in range(80)]
    for name in kinds_of_actions(0):
        # PPU p matches the metadata that PPU p - 1 writes, and a drop concerns one of four frames.
        slices = [(device.BASE_EXTENDED, 12, 4), (device.BASE_FRAME, 8, 4)] + [(device.BASE_EXTENDED, 0, 0)] * 2
        program = []
        for ppu in range(PPUS):
            value, mask = key((ppu if name == "metadata" else 0, 0xFFFF), (3, 3 if name == "drop" else 0))
            kinds = kinds_of_actions(ppu)
            entries = {3: (value, mask, kinds[name])} | ({4: (*key(), kinds["forward"])} if name == "drop" else {})
            program.append((slices, entries))
            await execute(dut, command(device.COMMAND_SELECT, ppu, slices=slices))
            for index, (value, mask, fields) in entries.items():
                await execute(dut, command(device.COMMAND_WRITE, ppu, index, value, mask, action(**fields)))
        results = [model.run(program, f, 9) for f in frames]
        expected = [(egress(where[1], where[0], ppu=where[2]), f) for where, f in results if where]
        places = [at for at, (where, _) in enumerate(results) if where]
        assert len(places) == (60 if name == "drop" else 80), (name, results[:4])
        sink = Sink(dut)
        await send(dut, frames)
        await sink.wait_for(len(expected))
        assert sink.frames == expected, name
        assert sink.cycles == [sink.cycles[0] - places[0] + at for at in places], f"{name}: a cycle was without a beat"
        sink.stop()


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
async def latency_grows_with_the_number_of_beats(dut):
    """The data plane stores whole frames."""
    await prepare(dut)
    dut.miss_output.value = device.OUTPUT_PORT
    for length in (64, 65, 1518):
        sink = Sink(dut)
        await send(dut, [frame(length)])
        await sink.wait_for(1)
        count = -(-length // 64)
        sent_at = 1
        latency = sink.cycles[0] - sent_at
        assert latency == 16 + 12 * PPUS + (count if count > 1 else 0), (length, latency)
        sink.stop()


@cocotb.test()
async def frames_that_grow_leave_at_bus_rate(dut):
    """Inserted bytes cost a cycle only if the frame leaves with a beat more. Then each cycle has a beat."""
    await prepare(dut)
    for inserted in (4, 12):
        tag = bytes(range(inserted))
        await add(dut, 0, 0, action(data=data(tag), offset=12, insert=inserted, output_kind=2, port=2))
        for length in (60, 64, 65, 76, 77, 116, 124, 125, 128, 129, 180, 184, 189, 192, 193, 1514, 1518):
            sink = Sink(dut)
            frames = [frame(length, seed) for seed in range(12)]
            await send(dut, frames)
            await sink.wait_for(12)
            assert [f for _, f in sink.frames] == [f[:12] + tag + f[12:] for f in frames]
            span = sink.cycles[-1] - sink.cycles[0] + 1
            beats_in, beats_out = -(-length // 64), -(-(length + inserted) // 64)
            assert span <= 12 * max(beats_in, beats_out), (length, inserted, span)
            sink.stop()


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
    lengths = set()
    for turn in range(20):
        wanted = 2 + turn % 2
        lengths.add(await add(dut, 0, 5, output(wanted), None, (wanted, 0xFF)))
        await ClockCycles(dut.clk, 40)
    removal = await execute(dut, command(device.COMMAND_REMOVE, 0, 5))
    await sending
    await ClockCycles(dut.clk, 200)
    assert (lengths, removal) == ({57}, 25), "cycles of an update and of a removal"
    assert sink.cycles and len(sink.frames) > 500
    hits = {1: 0, 2: 0, 3: 0}
    for word, got in sink.frames:
        # The port of the action is the byte that the key required.
        assert word == egress(got[11]), (hex(word), got[:14].hex())
        hits[got[11]] += 1
    assert hits[1] == 800, "the neighbour was missed while the row was rewritten"
    assert hits[2] > 50 and hits[3] > 50


@cocotb.test()
async def an_entry_changes_for_all_keys_in_one_cycle(dut):
    """Packets in every cycle, with keys that differ in the first bits, see each update in the same order."""
    await prepare(dut)
    await execute(dut, command(device.COMMAND_SELECT, 0, slices=[(device.BASE_FRAME, 0, 4)]))
    await add(dut, 0, 9, output(20))
    sink = Sink(dut)
    frames = [bytes([n % 4 << 6 | 2]) + frame(64, n)[1:] for n in range(1200)]
    sending = cocotb.start_soon(send(dut, frames))
    ports = [20]
    for port in range(8):
        await add(dut, 0, 5, output(port))
        await ClockCycles(dut.clk, 20 + port)
        # While the entry is written again, and after it was removed, packets hit entry 9.
        ports += [port, 20]
    await execute(dut, command(device.COMMAND_REMOVE, 0, 5))
    await sending
    await sink.wait_for(len(frames))
    assert [word for word, _ in itertools.groupby(sink.frames, lambda sent: sent[0])] == [egress(port) for port in ports]


@cocotb.test()
async def bad_frames_are_dropped_whole_and_counted(dut):
    """Runts, giants, aborted and malformed frames between good ones."""
    await prepare(dut)
    await add(dut, 0, 0, output(4))
    sink = Sink(dut)
    good = [frame(length, length) for length in (64, 1518, 14, 200)]
    # Kind: length, keep bits of each beat that are inverted.
    kinds = {
        "runt": (13, ()), "giant": (1519, ()), "aborted": (700, ()), "hole": (200, (0, 0, 0, 2)),
        "short beat before the last": (200, (0, (1 << 64) - 256)), "empty beat": (200, (0, (1 << 64) - 1)),
        "empty last beat": (129, (0, 0, 1)), "first byte missing": (64, (1,)), "another port": (200, ()),
    }
    for bad, (length, inverted) in kinds.items():
        await send(dut, good)
        for at, (word, keep, last) in enumerate(beats(frame(length))):
            change = inverted[at] if at < len(inverted) else 0
            port = 8 if bad == "another port" and at == 2 else 9
            await send_beat(dut, word, keep ^ change, last, int(bad == "aborted" and last), port)
    await send(dut, good)
    await sink.wait_for(40)
    await ClockCycles(dut.clk, 100)
    assert [f for _, f in sink.frames] == [padded(f) for f in good] * 10
    counted = counters(dut)
    assert counted == {
        "received": 49, "to_port": 40, "to_controller": 0, "discarded": 0, "bad_edit": 0, "ttl_expired": 0,
        "runt": 1, "bad_frame": 8, "no_room": 0,
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
async def many_short_frames_wait_for_a_stalled_output(dut):
    """More frames than headers that may be in flight: those with room leave in order after the stall."""
    await prepare(dut)
    await add(dut, 0, 0, output(4))
    stalled = [True]
    sink = Sink(dut, ready=lambda: not stalled[0])
    dut.out_ready.value = 0
    frames = [MACS + n.to_bytes(4, "big") + frame(64, n)[16:] for n in range(700)]
    await send(dut, frames)
    await ClockCycles(dut.clk, 300)
    assert not sink.frames
    stalled[0] = False
    await ClockCycles(dut.clk, 1000)
    counted = counters(dut)
    assert counted["received"] == 700 and counted["no_room"] > 0, counted
    assert [f for _, f in sink.frames] == frames[: 700 - counted["no_room"]]


@cocotb.test()
async def the_miss_action_changes_between_frames(dut):
    """Frames without an output meet each miss action, which changes in traffic; no frame is cut."""
    await prepare(dut)
    sink = Sink(dut)
    chance = random.Random(5)
    frames = [MACS + n.to_bytes(4, "big") + frame(130 + n % 70, n)[16:] for n in range(600)]
    sending = cocotb.start_soon(send(dut, frames))
    port, controller = device.OUTPUT_PORT, device.OUTPUT_CONTROLLER
    for kind in (port, controller, device.OUTPUT_DISCARD, port, device.OUTPUT_KEEP):
        dut.miss_output.value = kind
        await ClockCycles(dut.clk, 200)
    words = [word for word, _ in itertools.groupby(word for word, _ in sink.frames)]
    assert words == [egress(0, kind, ppu=255) for kind in (port, controller, port)], [hex(word) for word in words]
    while not sending.done():
        dut.miss_output.value = chance.randrange(4)
        await RisingEdge(dut.clk)
    await ClockCycles(dut.clk, 300)
    places = [int.from_bytes(f[12:16], "big") for _, f in sink.frames]
    assert [f for _, f in sink.frames] == [frames[at] for at in places] and places == sorted(places)
    counted = counters(dut)
    kinds = [word >> 24 for word, _ in sink.frames]
    assert (counted["to_port"], counted["to_controller"]) == (kinds.count(2), kinds.count(3)), counted
    assert counted["discarded"] == 600 - len(kinds) > 50 and counted["received"] == 600, counted


@cocotb.test()
async def each_field_of_the_extended_header_is_matched(dut):
    """A key over each field, against the value that the field must have; and one over the cycle of arrival."""
    await prepare(dut)
    ip = bytes.fromhex("81007005 86dd 6ab00000 0020 11 40") + bytes(range(32)) + bytes(8) + bytes(40)
    made = MACS + ip
    headers = (device.PRESENT_ETHERNET, device.PRESENT_VLAN, device.PRESENT_IPV6, device.PRESENT_UDP)
    present = sum(1 << bit for bit in headers)
    values = {
        "in_port": 9, "in_phy_port": 9, "metadata": 0, "tunnel_id": 0, "eth_type": 0x86DD, "vlan": 0x7005,
        "ip_tos": 0xAB, "ip_proto": 17, "exthdr": 0, "present": present, "l3_offset": 18, "l4_offset": 58,
        "reserved": 0, "frame_bytes": len(made),
    }
    sink = Sink(dut)
    names = []
    for name, bit, width in device.FIELDS:
        for at in range(bit // 8, (bit + width) // 8, 4) if name in values else ():
            count = min(4, (bit + width) // 8 - at)
            whole = values[name] if width <= 32 else values[name] & 0xFFFFFFFF if at > bit // 8 else 0
            part = whole << 8 * (4 - count)
            mask = (1 << 32) - (1 << 8 * (4 - count))
            await execute(dut, command(device.COMMAND_SELECT, 0, slices=[(device.BASE_EXTENDED, at, count)]))
            # Entry 0 has the value, entries 1 to 15 one bit of it inverted.
            await add(dut, 0, 0, output(1), (part, mask))
            for index in range(1, 4):
                await add(dut, 0, index, output(2), (part ^ 1 << (32 - 8 * count + 2 * index), mask))
            await send(dut, [made])
            names.append(name)
            await ClockCycles(dut.clk, 100)
    assert [word for word, _ in sink.frames] == [egress(1)] * len(names), list(zip(names, sink.frames))
    # A frame every 16 cycles: bit 6 of the cycle changes every fourth frame.
    sink.frames.clear()
    at = next(bit for name, bit, _ in device.FIELDS if name == "timestamp") // 8 + 4
    await execute(dut, command(device.COMMAND_SELECT, 0, slices=[(device.BASE_EXTENDED, at, 4)]))
    for index in range(2):
        await add(dut, 0, index, output(1 + index), (index << 6, 1 << 6))
    for index in range(2, 4):
        await execute(dut, command(device.COMMAND_REMOVE, 0, index))
    for _ in range(32):
        await send(dut, [made[:64]])
        await ClockCycles(dut.clk, 15)
    await ClockCycles(dut.clk, 200)
    runs = [len(list(group)) for _, group in itertools.groupby(word for word, _ in sink.frames)]
    assert sum(runs) == 32 and set(runs[1:-1]) == {4}, runs


@cocotb.test()
async def checksums_of_zero(dut):
    """A UDP checksum that becomes 0 is written as 0xffff, one of 0 stays; TCP has no such rule."""
    await prepare(dut)
    # The edit writes 10.0.0.3. If the address is 10.0.0.2, a checksum of 1 becomes 0.
    write = action(
        data=data(bytes([10, 0, 0, 3])), base=device.EDIT_BASE_L3, offset=16, insert=4, remove=4, fix_ip=1, fix_l4=1,
        output_kind=2, port=1,
    )
    await add(dut, 0, 0, write)
    sink = Sink(dut)
    wanted = []
    udp, tcp = (17, 40), (6, 50)
    cases = ((udp, 2, 1, 0xFFFF), (udp, 2, 0, 0), (udp, 2, 2, 1), (tcp, 2, 1, 0), (tcp, 2, 0, 0xFFFE))
    # The address stays, and so does the checksum.
    cases += tuple((proto, 3, same, same) for proto in (udp, tcp) for same in (0, 0xFFFF))
    for (proto, place), host, old, new in cases:
        made = bytearray(MACS + bytes.fromhex("0800 450000320000400040000000 0a000001 0a000002") + bytes(26))
        made[23], made[33], made[46] = proto, host, 0x50
        made[place : place + 2] = old.to_bytes(2, "big")
        await send(dut, [bytes(made)])
        wanted.append((place, new))
    await sink.wait_for(len(wanted))
    for (place, new), (_, got) in zip(wanted, sink.frames):
        assert got[33] == 3 and int.from_bytes(got[place : place + 2], "big") == new, (place, new, got.hex())


@cocotb.test()
async def a_reset_in_traffic_leaves_no_part_of_a_frame(dut):
    """After a reset within a frame, its rest is dropped and counted; the next frame is forwarded."""
    await prepare(dut)
    made = frame(384)
    for cut in range(1, 6):
        parts = list(beats(made))
        for word, keep, last in parts[:cut]:
            await send_beat(dut, word, keep, last)
        dut.rst.value = 1
        await ClockCycles(dut.clk, 2)
        dut.rst.value = 0
        dut.miss_output.value = device.OUTPUT_CONTROLLER
        sink = Sink(dut)
        for word, keep, last in parts[cut:]:
            await send_beat(dut, word, keep, last)
        await send(dut, [made])
        await ClockCycles(dut.clk, 300)
        assert [f for _, f in sink.frames] == [made], cut
        counted = counters(dut)
        assert (counted["received"], counted["bad_frame"], counted["to_controller"]) == (2, 1, 1), counted
        sink.stop()


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
    await execute(dut, command(device.COMMAND_SELECT, 0, index=0xFFFF))
    assert await read(ppus, 0) is None
    assert await read(0, entries) is None
