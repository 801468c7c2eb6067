# SPDX-License-Identifier: Apache-2.0
"""Test bench of the NIC shell: no bubble, fairness, whole frames, slow and missing channels, overload."""

import os
import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

import device
from bench import BUS_BYTES, beats, egress, start
from streams import BUS_BITS, Collector, offer

CHANNELS = int(os.environ["CHANNELS"])


def frame(length, mark):
    """A frame that begins with four bytes of its mark."""
    return (mark.to_bytes(4, "big") + random.Random(mark).randbytes(length))[:length]


def mark(data):
    """The mark of a frame."""
    return int.from_bytes(data[:4], "big")


async def prepare(dut):
    """Resets the shell; all channels take frames."""
    await start(
        dut, rx_valid=0, rx_data=0, rx_keep=0, rx_last=0, rx_bad=0, tx_ready=(1 << CHANNELS) - 1, up_ready=1,
        out_valid=0, out_data=0, out_keep=0, out_last=0, out_port=0, out_direct=0,
        done_valid=0, done_data=0, done_keep=0, done_last=0, done_egress=0,
    )


def counters(dut):
    """Counters of the shell and of each channel, by name."""
    word = int(dut.counters.value)
    shell = {name: word >> 64 * at & (1 << 64) - 1 for at, name in enumerate(device.SHELL_COUNTER_NAMES)}
    word, channels = int(dut.channel_counters.value), []
    for _ in range(CHANNELS):
        channels.append({name: word >> 64 * at & (1 << 64) - 1 for at, name in enumerate(device.CHANNEL_COUNTER_NAMES)})
        word >>= 64 * device.CHANNEL_COUNTERS
    return shell, channels


async def receive(dut, lists, idle=lambda channel: False):
    """Sends the frames of each channel, all channels at the same time, with idle cycles where `idle` is true."""
    lists = lists + [[]] * (CHANNELS - len(lists))
    queues = [[beat for item in frames for beat in beats(item)] for frames in lists]
    at = [0] * CHANNELS
    while any(at[c] < len(queues[c]) for c in range(CHANNELS)):
        valid = last = keep = data = 0
        for c in range(CHANNELS):
            if at[c] < len(queues[c]) and not idle(c):
                word, kept, ends = queues[c][at[c]]
                valid, last = valid | 1 << c, last | ends << c
                data, keep = data | word << c * BUS_BITS, keep | kept << c * BUS_BYTES
                at[c] += 1
        dut.rx_valid.value, dut.rx_last.value = valid, last
        dut.rx_data.value, dut.rx_keep.value = data, keep
        await RisingEdge(dut.clk)
    dut.rx_valid.value = 0


@cocotb.test()
async def all_channels_share_the_bus_fairly_and_without_a_bubble(dut):
    """Every input has frames at all times. A frame waits for at most one frame of each other input."""
    await prepare(dut)
    chance = random.Random(1)
    bus = Collector(dut, "in", info=dut.in_port, bad=dut.in_bad)
    lists = []
    for c in range(CHANNELS):
        lengths = []
        while sum(-(-n // BUS_BYTES) for n in lengths) < 36:
            lengths.append(chance.choice((64, 65, 60, 128, 200, 600)))
        lists.append([frame(n, c << 16 | at) for at, n in enumerate(lengths)])
    packet_outs = [(frame(100, CHANNELS << 16 | at), at) for at in range(8)]

    def set_port(_):
        dut.out_port.value = 77

    sending = cocotb.start_soon(offer(dut, "out", packet_outs, set_port))
    await receive(dut, lists)
    await sending
    await ClockCycles(dut.clk, 200)
    lists.append([item for item, _ in packet_outs])
    # After the first beat of a whole frame there is no cycle without a beat until all frames have passed.
    begin = next(at for at, (port, _) in enumerate(bus.frames) if port != 77)
    first_beat = sum(-(-len(item) // BUS_BYTES) for _, item in bus.frames[:begin])
    cycles = bus.cycles[first_beat:]
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))), "a cycle was without a beat"
    assert len(bus.frames) == sum(map(len, lists))
    waited = 0
    for source, expected in enumerate(lists):
        port = 77 if source == CHANNELS else source + 1
        places = [at for at, (got, _) in enumerate(bus.frames) if got == port]
        assert [bus.frames[at][1] for at in places] == expected, source
        # From the third frame on, the next frame was whole when the one before it was sent.
        waited = max(waited, *(b - a - 1 for a, b in zip(places[2:], places[3:])))
    assert waited == CHANNELS, waited


@cocotb.test()
async def a_channel_that_pauses_within_a_frame_delays_no_other(dut):
    """A channel stops in the middle of a frame; the frames of another one pass meanwhile."""
    await prepare(dut)
    bus = Collector(dut, "in", info=dut.in_port, bad=dut.in_bad)
    long, others = frame(600, 1), [frame(64, 100 + at) for at in range(20)]
    pauses = iter(range(10**6))
    await receive(dut, [[long], others], idle=lambda c: c == 0 and next(pauses) in range(4, 300))
    await ClockCycles(dut.clk, 20)
    assert [data for _, data in bus.frames] == [*others, long]


@cocotb.test()
async def a_frame_passes_each_direction_in_four_cycles(dut):
    """Latency from the last beat to the first beat, on idle buses."""
    await prepare(dut)
    bus = Collector(dut, "in", info=dut.in_port, bad=dut.in_bad, origin="rx")
    sink = Collector(dut, "tx", 1, origin="done")
    for length in (64, 600):
        for collector in (bus, sink):
            collector.cycles.clear()
            collector.origins.clear()
        await receive(dut, [[], [frame(length, 1)]])
        dut.done_egress.value = egress(2)
        await offer(dut, "done", [(frame(length, 1), None)])
        await ClockCycles(dut.clk, 20)
        assert [c.cycles[0] - c.origins[0] for c in (bus, sink)] == [4, 4], (bus.cycles, bus.origins)


@cocotb.test()
async def overload_at_ingress_drops_whole_frames_and_counts_them_at_the_channel(dut):
    """All channels send at the full rate of the bus, which is too much for it."""
    await prepare(dut)
    bus = Collector(dut, "in", info=dut.in_port, bad=dut.in_bad)
    lists = [[frame(60 + at * 97 % 900, c << 16 | at) for at in range(80)] for c in range(CHANNELS)]
    await receive(dut, lists)
    await ClockCycles(dut.clk, 400)
    _, counted = counters(dut)
    for c in range(CHANNELS):
        got = [data for port, data in bus.frames if port == c + 1]
        assert [lists[c][mark(data) & 0xFFFF] for data in got] == got
        marks = [mark(data) for data in got]
        assert marks == sorted(marks)
        assert counted[c]["rx_dropped"] > 10 and counted[c]["rx_dropped"] + len(got) == 80, counted[c]
        assert counted[c]["rx_frames"] == len(got) and counted[c]["rx_bytes"] == sum(map(len, got))
    busy = bus.cycles
    assert busy[-1] - busy[0] + 1 == len(busy), "the bus was idle during overload"


@cocotb.test()
async def a_slow_channel_blocks_no_other_and_drops_are_counted_there(dut):
    """Channel 1 takes a beat in 16 cycles, the others pause at random; the data plane never waits."""
    await prepare(dut)
    chance = random.Random(2)
    turn = iter(range(10**9))
    sinks = [
        Collector(dut, "tx", c, accept=(lambda: next(turn) % 16 == 0) if c == 1 else None) for c in range(CHANNELS)
    ]
    up = Collector(dut, "up", info=dut.up_egress)
    sent = []
    for at in range(400):
        port = chance.choice((1, 2, 2, 3, 4, 0, CHANNELS + 1, 255, None))
        word = egress(port or 0, kind=device.OUTPUT_CONTROLLER if port is None else device.OUTPUT_PORT, in_port=at & 7)
        sent.append((frame(chance.choice((14, 64, 65, 250, 1514)), at), word, port))

    def set_egress(word):
        dut.done_egress.value = word

    waits = 0

    async def watch():
        nonlocal waits
        while True:
            await RisingEdge(dut.clk)
            waits += int(dut.done_valid.value) and not int(dut.done_ready.value)

    cocotb.start_soon(watch())
    await offer(dut, "done", [(data, word) for data, word, _ in sent], set_egress)
    await ClockCycles(dut.clk, 1500)
    shell, counted = counters(dut)
    assert waits == 0, f"the data plane waited in {waits} cycles"
    for c, sink in enumerate(sinks):
        expected = [data for data, _, port in sent if port == c + 1]
        got = [data for _, data in sink.frames]
        if c == 1:
            marks = [mark(data) for data in got]
            assert marks == sorted(set(marks)) and all(sent[mark(data)][0] == data for data in got)
            assert counted[c]["tx_dropped"] > 20 and counted[c]["tx_dropped"] + len(got) == len(expected), counted[c]
        else:
            assert got == expected and counted[c]["tx_dropped"] == 0, c
        assert counted[c]["tx_frames"] == len(got) and counted[c]["tx_bytes"] == sum(map(len, got)), c
    assert up.frames == [(word, data) for data, word, port in sent if port is None]
    assert shell["no_channel"] == sum(port in (0, CHANNELS + 1, 255) for _, _, port in sent)
    assert shell["controller_full"] == 0


@cocotb.test()
async def a_control_plane_that_takes_nothing_loses_its_frames_only(dut):
    """Frames for the control plane are dropped whole and counted; those for a channel pass."""
    await prepare(dut)
    dut.up_ready.value = 0
    sink = Collector(dut, "tx", 0)
    up = Collector(dut, "up", info=dut.up_egress)
    both = []
    for at in range(60):
        both.append((frame(300, at), egress(1)))
        both.append((frame(300, 1000 + at), egress(kind=device.OUTPUT_CONTROLLER)))

    def set_egress(word):
        dut.done_egress.value = word

    await offer(dut, "done", both, set_egress)
    await ClockCycles(dut.clk, 10)
    assert len(sink.frames) == 60 and not up.frames
    dut.up_ready.value = 1
    await ClockCycles(dut.clk, 200)
    got = [mark(data) for _, data in up.frames]
    assert 5 <= len(got) < 60 and got == list(range(1000, 1000 + len(got)))
    assert counters(dut)[0]["controller_full"] == 60 - len(got)


@cocotb.test()
async def direct_packet_outs_and_frames_of_the_data_plane_share_the_egress(dut):
    """Both streams arrive complete and in order, with gaps in both."""
    await prepare(dut)
    chance = random.Random(3)
    sinks = [Collector(dut, "tx", c) for c in range(CHANNELS)]
    dut.out_direct.value = 1
    direct = [(frame(chance.choice((14, 64, 300)), at), chance.randrange(CHANNELS) + 1) for at in range(60)]
    others = [(frame(chance.choice((14, 64, 300)), 1000 + at), chance.randrange(CHANNELS) + 1) for at in range(60)]

    def set_port(port):
        dut.out_port.value = port

    def set_egress(port):
        dut.done_egress.value = egress(port)

    first, second = random.Random(4), random.Random(5)
    sending = cocotb.start_soon(offer(dut, "out", direct, set_port, lambda: first.random() < 0.4))
    await offer(dut, "done", others, set_egress, lambda: second.random() < 0.4)
    await sending
    await ClockCycles(dut.clk, 50)
    for c, sink in enumerate(sinks):
        got = [data for _, data in sink.frames]
        for part in (direct, others):
            expected = [data for data, port in part if port == c + 1]
            assert [data for data in got if data in expected] == expected
        assert len(got) == sum(port == c + 1 for _, port in direct + others)


@cocotb.test()
async def bad_and_giant_frames_are_marked_or_cut(dut):
    """An aborted frame and one with a hole leave marked; one longer than the FIFO leaves cut and marked."""
    await prepare(dut)
    bus = Collector(dut, "in", info=dut.in_port, bad=dut.in_bad)
    good = frame(200, 1)
    for kind in ("aborted", "hole", "giant"):
        await receive(dut, [[good]])
        data = frame({"giant": 64 * 200}.get(kind, 200), 2)
        for at, (word, keep, last) in enumerate(beats(data)):
            dut.rx_valid.value, dut.rx_last.value, dut.rx_data.value = 1, last, word
            dut.rx_keep.value = keep ^ 2 if kind == "hole" and at == 1 else keep
            dut.rx_bad.value = int(kind == "aborted" and last)
            await RisingEdge(dut.clk)
        dut.rx_bad.value = 0
    await receive(dut, [[good]])
    await ClockCycles(dut.clk, 300)
    assert bus.bad == [0, 1, 0, 1, 0, 1, 0]
    assert [data for (_, data), bad in zip(bus.frames, bus.bad) if not bad] == [good] * 4
    assert len(bus.frames[5][1]) == 63 * BUS_BYTES
