# SPDX-License-Identifier: Apache-2.0
"""Test bench of the whole device: programmed by datagrams only, as the daemon does it."""

import os
import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

import datagram
import device
from bench import BUS_BYTES, action, beats, data, key, output, start
from datagram import frame, message, number, parse
from streams import BUS_BITS, Collector, offer

CHANNELS, PPUS, ENTRIES = (int(os.environ[name]) for name in ("CHANNELS", "PPUS", "ENTRIES"))
NAMES = device.COUNTER_NAMES + device.SHELL_COUNTER_NAMES + device.CONTROL_COUNTER_NAMES
CONTROLLER = action(output_kind=device.OUTPUT_CONTROLLER, last=1)


def packet(to, length=64, seed=0):
    """An Ethernet frame to the MAC address 02:00:00:00:00:`to`, with its seed in the payload."""
    head = bytes([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 1, 0]) + b"\x88\xb5" + number(seed, 4)
    return (head + random.Random(seed).randbytes(length))[:length]


def to_mac(last):
    """Value and mask of a key whose first slice is the end of the destination MAC address."""
    return key((last, 0xFF))


class Daemon:
    """The daemon's side of the protocol: one request after the other."""

    def __init__(self, dut, accept=None):
        self.dut, self.transaction = dut, 100
        self.replies = Collector(dut, "cpu_tx", accept=accept, origin="cpu_rx")
        self.packet_ins, self.taken = [], 0

    async def send(self, text, **fields):
        """Sends a datagram, padded to 60 bytes as Ethernet requires it."""
        made = frame(text, **fields)
        await offer(self.dut, "cpu_rx", [(made.ljust(60, b"\0"), None)], ready=False)

    def take(self):
        """Parses new frames; keeps Packet_ins. Returns the other messages."""
        others = []
        while self.taken < len(self.replies.frames):
            got = parse(self.replies.frames[self.taken][1])
            (self.packet_ins if got[0] == device.MESSAGE_PACKET_IN else others).append(got)
            self.taken += 1
        return others

    async def ask(self, code, body=b"", transaction=None):
        """Sends a request and returns type and body of the reply."""
        if transaction is None:
            self.transaction += 1
            transaction = self.transaction
        assert not self.take()
        await self.send(message(code, transaction, body))
        for _ in range(6000):
            await RisingEdge(self.dut.clk)
            others = self.take()
            if others:
                assert len(others) == 1 and others[0][1] == transaction, others
                return others[0][0], others[0][2]
        raise AssertionError(f"no reply to type {code}")

    async def mod(self, body, done=True, transaction=None):
        """Sends a Flow_mod and checks its acknowledgement."""
        got = await self.ask(device.MESSAGE_FLOW_MOD, body, transaction)
        assert got == (device.MESSAGE_FLOW_ACK, bytes([int(done), 0, 0, 0])), got

    async def entry(self, ppu, index):
        """Reads an entry: None, or value, mask, action and packets."""
        code, body = await self.ask(device.MESSAGE_FLOW_REQUEST, datagram.request(ppu, index))
        assert code == device.MESSAGE_FLOW_REPLY and body[0] == ppu and body[2:4] == number(index, 2)
        part = lambda at, count: int.from_bytes(body[at : at + count], "big")
        return (part(4, 17) >> 4, part(21, 17) >> 4, part(40, 20), part(60, 8)) if body[1] else None

    async def counters(self):
        """All counters by name, and those of the channels."""
        code, body = await self.ask(device.MESSAGE_STATS_REQUEST)
        values = [int.from_bytes(body[at : at + 8], "big") for at in range(0, len(body), 8)]
        assert code == device.MESSAGE_STATS_REPLY
        assert len(values) == len(NAMES) + CHANNELS * device.CHANNEL_COUNTERS
        found = dict(zip(NAMES, values))
        rest = values[len(NAMES) :]
        channels = [
            dict(zip(device.CHANNEL_COUNTER_NAMES, rest[c * device.CHANNEL_COUNTERS :])) for c in range(CHANNELS)
        ]
        return found, channels


async def prepare(dut, accept=None):
    """Resets the device, says Hello, and selects the destination's end as the key of both PPUs."""
    await start(
        dut, addresses=datagram.addresses(), miss_output=device.OUTPUT_DISCARD, rx_valid=0, rx_data=0, rx_keep=0,
        rx_last=0, rx_bad=0, tx_ready=(1 << CHANNELS) - 1, cpu_rx_valid=0, cpu_rx_data=0, cpu_rx_keep=0,
        cpu_rx_last=0, cpu_rx_bad=0, cpu_tx_ready=1,
    )
    daemon = Daemon(dut, accept)
    got = await daemon.ask(device.MESSAGE_HELLO, bytes(4))
    assert got == (device.MESSAGE_HELLO, bytes([PPUS, 0]) + number(ENTRIES, 2))
    for ppu in range(PPUS):
        await daemon.mod(datagram.select(ppu, [(device.BASE_FRAME, 2, 4)]))
    return daemon, [Collector(dut, "tx", c) for c in range(CHANNELS)]


def elsewhere(chance, channel, ports):
    """One of the ports, but not that of the channel: frames do not leave by the port at which they arrived."""
    return chance.choice([port for port in ports if port != channel + 1])


def padded(item):
    """The frame as the data plane sends it."""
    return item.ljust(60, b"\0")


async def receive(dut, lists, idle=lambda channel: False):
    """Sends the frames of each channel, all channels at the same time."""
    lists = lists + [[]] * (CHANNELS - len(lists))
    queues = [[beat for item in frames for beat in beats(item)] for frames in lists]
    at = [0] * CHANNELS
    while any(at[c] < len(queues[c]) for c in range(CHANNELS)):
        valid = last = keep = word = 0
        for c in range(CHANNELS):
            if at[c] < len(queues[c]) and not idle(c):
                text, kept, ends = queues[c][at[c]]
                valid, last = valid | 1 << c, last | ends << c
                word, keep = word | text << c * BUS_BITS, keep | kept << c * BUS_BYTES
                at[c] += 1
        dut.rx_valid.value, dut.rx_last.value = valid, last
        dut.rx_data.value, dut.rx_keep.value = word, keep
        await RisingEdge(dut.clk)
    dut.rx_valid.value = 0


@cocotb.test()
async def a_programmed_device_forwards_counts_and_is_read_back(dut):
    """Entries by Flow_mods; frames of all channels; hit counters, Stats and Flow_replies agree with them."""
    daemon, sinks = await prepare(dut)
    chance = random.Random(1)
    edit = action(data=data(b"\xaa\xbb"), offset=12, insert=2, remove=2, output_kind=device.OUTPUT_PORT, port=2, last=1)
    entries = {(0, 0): (*to_mac(1), output(1)), (0, 15): (*to_mac(2), edit), (1, 3): (*to_mac(3), output(3)),
               (1, 4): (*to_mac(4), CONTROLLER), (0, 7): (*to_mac(5), output(9))}
    for (ppu, index), (value, mask, word) in entries.items():
        await daemon.mod(datagram.write(ppu, index, value, mask, word))
    await daemon.mod(datagram.write(PPUS, 0, 0, 0, 0), done=False)
    sent = [[packet(elsewhere(chance, c, range(1, 7)), chance.choice((64, 65, 200, 1518)), c << 8 | at)
             for at in range(40)] for c in range(CHANNELS)]
    await receive(dut, sent, idle=lambda c: chance.random() < 0.85)
    await ClockCycles(dut.clk, 400)
    everything = [(c, item) for c in range(CHANNELS) for item in sent[c]]
    hits = {last: sum(item[5] == last for _, item in everything) for last in range(1, 7)}
    for c, sink in enumerate(sinks):
        want = [item for _, item in everything if item[5] == c + 1 <= 3]
        want = [item[:12] + b"\xaa\xbb" + item[14:] for item in want] if c == 1 else want
        assert sorted(item for _, item in sink.frames) == sorted(want), c
    found, channels = await daemon.counters()
    assert found["received"] == len(everything) and found["to_port"] == sum(hits[n] for n in (1, 2, 3, 5))
    assert found["to_controller"] == hits[4] and found["discarded"] == hits[6] and found["no_channel"] == hits[5]
    assert found["control_packet_in"] == hits[4] and found["no_room"] == 0
    assert len(daemon.packet_ins) == hits[4]
    for at, (_, transaction, body) in enumerate(daemon.packet_ins):
        assert transaction == at and body[1:8] == bytes([1]) + bytes(6)
        assert (body[0] - 1, body[8:]) in everything and body[8 + 5] == 4
    for c in range(CHANNELS):
        assert channels[c]["rx_frames"] == 40 and channels[c]["rx_bytes"] == sum(map(len, sent[c]))
        assert channels[c]["tx_frames"] == len(sinks[c].frames)
        assert channels[c]["rx_dropped"] == channels[c]["tx_dropped"] == 0
    for place, (value, mask, word) in entries.items():
        last = value >> 4 + 96 & 0xFF
        assert await daemon.entry(*place) == (value, mask, word, hits[last]), place
    assert await daemon.entry(1, 5) is None and await daemon.entry(PPUS, 0) is None
    # A new action keeps the count, a new entry begins at 0, a removed one does not exist.
    await daemon.mod(datagram.act(0, 0, output(2)))
    assert (await daemon.entry(0, 0))[2:] == (output(2), hits[1])
    await daemon.mod(datagram.write(0, 0, *to_mac(1), output(4)))
    assert (await daemon.entry(0, 0))[2:] == (output(4), 0)
    await daemon.mod(datagram.remove(0, 15))
    assert await daemon.entry(0, 15) is None
    before = len(sinks[3].frames)
    await receive(dut, [[packet(1, 64, at) for at in range(50)]])
    await ClockCycles(dut.clk, 100)
    assert len(sinks[3].frames) == before + 50 and (await daemon.entry(0, 0))[3] == 50


@cocotb.test()
async def a_flow_request_is_answered_in_time(dut):
    """Last beat of the request to first beat of the reply, also while the data plane is fully loaded."""
    daemon, _ = await prepare(dut)
    await daemon.mod(datagram.write(1, 3, *to_mac(1), CONTROLLER))
    await daemon.mod(datagram.write(0, 3, *to_mac(2), output(2)))
    slowest = {}
    for name, load in (("idle", []), ("loaded", [[packet(2, 64, at) for at in range(3000)]])):
        sending = cocotb.start_soon(receive(dut, load)) if load else None
        for _ in range(10):
            first = len(daemon.replies.cycles)
            assert (await daemon.entry(1, 3))[2] == CONTROLLER
            cycles = daemon.replies.cycles[first] - daemon.replies.origins[-1]
            slowest[name] = max(cycles, slowest.get(name, 0))
        if sending is not None:
            await sending
    dut._log.info("Flow_request to Flow_reply: %s cycles", slowest)
    assert max(slowest.values()) <= 200, slowest


@cocotb.test()
async def packet_outs_go_out_directly_or_through_the_pipeline(dut):
    """A direct Packet_out leaves unchanged; one through the PPUs is handled as if received at its port."""
    daemon, sinks = await prepare(dut)
    await daemon.mod(datagram.select(1, [(device.BASE_EXTENDED, 0, 4)]))
    await daemon.mod(datagram.write(1, 0, *key((3, 0xFFFFFFFF)), output(4)))
    ins, outs = [], [[] for _ in range(CHANNELS)]
    for at, length in enumerate((14, 60, 64, 70, 71, 128, 1000, 1518)):
        item = packet(9, length, at)
        daemon.transaction += 1
        port = at % 5
        await daemon.send(message(device.MESSAGE_PACKET_OUT, daemon.transaction, datagram.packet_out(port, False, item)))
        if 1 <= port <= CHANNELS:
            outs[port - 1].append(item)
        daemon.transaction += 1
        await daemon.send(message(device.MESSAGE_PACKET_OUT, daemon.transaction, datagram.packet_out(3, True, item)))
        outs[3].append(padded(item))
        ins.append(item)
    await ClockCycles(dut.clk, 300)
    for c, sink in enumerate(sinks):
        assert sorted(item for _, item in sink.frames) == sorted(outs[c]), c
    found, _ = await daemon.counters()
    assert found["control_packet_out"] == 16 and found["received"] == len(ins) and found["no_channel"] == 2
    assert (await daemon.entry(1, 0))[3] == len(ins)


@cocotb.test()
async def a_daemon_that_restarts_finds_the_state_and_old_datagrams_do_no_harm(dut):
    """Replayed, reordered, truncated and spoofed datagrams change nothing while frames are forwarded."""
    daemon, sinks = await prepare(dut)
    first = daemon.transaction + 1
    await daemon.mod(datagram.write(0, 1, *to_mac(1), output(1)))
    await daemon.mod(datagram.write(0, 1, *to_mac(1), output(2)))
    stream = [packet(1, 64 + at % 200, at) for at in range(400)]
    sending = cocotb.start_soon(receive(dut, [stream], idle=lambda c: chance.random() < 0.5))
    chance = random.Random(5)
    old = datagram.write(0, 1, *to_mac(1), output(1))
    # A duplicate of the first Flow_mod, which the second one replaced.
    await daemon.mod(old, transaction=first)
    good = frame(message(device.MESSAGE_FLOW_MOD, 500, old))
    for at in (30, 60, 100, len(good) - 1):
        await offer(dut, "cpu_rx", [(good[:at], None)], ready=False)
    await daemon.send(message(device.MESSAGE_FLOW_MOD, 500, old), from_ip=0x0A000063)
    await daemon.send(message(device.MESSAGE_FLOW_MOD, 500, old), udp_checksum=0x7777)
    # Reordered: 601 comes first, so 600 is refused.
    await daemon.mod(datagram.act(0, 1, output(3)), transaction=601)
    await daemon.mod(old, done=False, transaction=600)
    # Restart: a new session with lower numbers.
    daemon.transaction = 7
    assert (await daemon.ask(device.MESSAGE_HELLO, bytes(4)))[0] == device.MESSAGE_HELLO
    await daemon.send(message(device.MESSAGE_FLOW_MOD, 3, old))
    assert (await daemon.entry(0, 1))[:3] == (*to_mac(1), output(3))
    await sending
    await ClockCycles(dut.clk, 200)
    got = [item for sink in sinks for _, item in sink.frames]
    assert sorted(got) == sorted(stream), "a frame was lost or changed"
    assert not sinks[0].frames and sinks[1].frames and sinks[2].frames
    assert (await daemon.entry(0, 1))[3] == len(stream)
    found, _ = await daemon.counters()
    want = {"control_duplicate": 1, "control_late": 1, "control_stale": 1, "control_spoofed": 1, "control_checksum": 1}
    assert {name: found[name] for name in want} == want
    assert found["control_length"] == 3 and found["control_bad_frame"] + found["control_foreign"] == 1


@cocotb.test()
async def overload_drops_frames_at_known_places_and_corrupts_none(dut):
    """All channels send at the bus rate to a slow channel, another one, and the slow control plane."""
    chance = random.Random(6)
    daemon, sinks = await prepare(dut, accept=lambda: chance.random() < 0.1)
    await daemon.mod(datagram.write(0, 0, *to_mac(1), output(1)))
    await daemon.mod(datagram.write(0, 1, *to_mac(2), output(2)))
    await daemon.mod(datagram.write(1, 0, *to_mac(3), CONTROLLER))
    sinks[0].accept = lambda: chance.random() < 0.2
    # Port 3 is the control plane.
    sent = [[packet(elsewhere(chance, c if c < 2 else CHANNELS, (1, 1, 2, 3)), chance.randrange(60, 1519), c << 12 | at)
             for at in range(150)] for c in range(CHANNELS)]
    await receive(dut, sent)
    await ClockCycles(dut.clk, 3000)
    found, channels = await daemon.counters()
    known = {item for frames in sent for item in frames}
    seed = lambda item: int.from_bytes(item[14:18], "big")
    ups = [body[8:] for _, _, body in daemon.packet_ins]
    for last, got in ((1, [f for _, f in sinks[0].frames]), (2, [f for _, f in sinks[1].frames]), (3, ups)):
        assert got and all(item in known and item[5] == last for item in got), "a corrupted or misplaced frame"
        for c in range(CHANNELS):
            order = [seed(item) for item in got if seed(item) >> 12 == c]
            assert order == sorted(set(order)), "a channel's frames changed their order"
    total = sum(map(len, sent))
    dropped = sum(c["rx_dropped"] for c in channels)
    assert dropped > 50 and total == found["received"] + dropped
    assert found["received"] == found["to_port"] + found["to_controller"] + found["no_room"]
    assert found["no_room"] == 0, "the data plane waited"
    assert channels[0]["tx_dropped"] > 10 and channels[1]["tx_dropped"] == 0
    assert found["to_port"] == len(sinks[0].frames) + len(sinks[1].frames) + channels[0]["tx_dropped"]
    assert found["controller_full"] > 0
    assert found["to_controller"] == len(ups) + found["controller_full"], (found, len(ups))


@cocotb.test()
async def a_frame_passes_the_device_in_the_documented_time(dut):
    """Latency from channel to channel for 64 bytes."""
    daemon, _ = await prepare(dut)
    await daemon.mod(datagram.write(0, 0, *to_mac(1), output(2)))
    sink = Collector(dut, "tx", 1, origin="rx")
    await receive(dut, [[packet(1)]])
    await sink.wait_for(1)
    latency = sink.cycles[0] - sink.origins[0]
    dut._log.info("latency %d cycles with %d PPUs", latency, PPUS)
    assert latency == 24 + 12 * PPUS, latency


@cocotb.test()
async def back_pressure_in_random_patterns_changes_no_frame(dut):
    """Each channel pauses in its own pattern; no FIFO overflows; everything arrives, in order."""
    chance = random.Random(8)
    daemon, sinks = await prepare(dut, accept=lambda: chance.random() < 0.7)
    for c in range(CHANNELS - 1):
        await daemon.mod(datagram.write(c % PPUS, c, *to_mac(c + 1), output(c + 1)))
    await daemon.mod(datagram.write(0, 9, *to_mac(CHANNELS), CONTROLLER))
    patterns = (lambda: chance.random() < 0.5, lambda: chance.random() < 0.9, None, None)
    stop = iter(range(10**9))
    for sink, accept in zip(sinks, patterns):
        sink.accept = accept
    # Long runs without a pause, and long pauses.
    sinks[2].accept = lambda: next(stop) // 37 % 3 != 0
    lengths = (18, 60, 63, 64, 65, 128, 129, 700, 1518)
    # The last port is the control plane.
    sent = [[packet(elsewhere(chance, c if c < CHANNELS - 1 else CHANNELS, range(1, CHANNELS + 1)),
                    chance.choice(lengths), c << 12 | at) for at in range(60)] for c in range(CHANNELS)]
    await receive(dut, sent, idle=lambda c: chance.random() < 0.96)
    await ClockCycles(dut.clk, 1000)
    found, channels = await daemon.counters()
    assert found["no_room"] == found["controller_full"] == 0
    assert not any(c["rx_dropped"] or c["tx_dropped"] for c in channels)
    seed = lambda item: int.from_bytes(item[14:18], "big")
    outs = [[f for _, f in sink.frames] for sink in sinks[:-1]] + [[body[8:] for _, _, body in daemon.packet_ins]]
    for at, got in enumerate(outs):
        for c in range(CHANNELS):
            want = [padded(item) for item in sent[c] if item[5] == at + 1]
            assert [item for item in got if seed(item) >> 12 == c] == want, (at, c)
        assert len(got) == sum(item[5] == at + 1 for frames in sent for item in frames)
