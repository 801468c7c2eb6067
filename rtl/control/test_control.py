# SPDX-License-Identifier: Apache-2.0
"""Test bench of the controller processing logic: filter, session, replies, Packet_in and Packet_out.

The table writer is a plain stub, so the bench also sees which commands were executed.
"""

import os
import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

import datagram
import device
from bench import action, beats, command, egress, key, output, start
from datagram import frame, message, number, parse
from streams import Collector, offer

PPUS, ENTRIES = int(os.environ["PPUS"]), int(os.environ["ENTRIES"])
LOWER, UPPER = int(os.environ["LOWER"]), int(os.environ["UPPER"])
HELLO, ECHO, FLOW_MOD = device.MESSAGE_HELLO, device.MESSAGE_ECHO_REQUEST, device.MESSAGE_FLOW_MOD
ACK, PACKET_OUT = device.MESSAGE_FLOW_ACK, device.MESSAGE_PACKET_OUT


def counters(dut):
    """Counters that are not 0, by name without `control_`."""
    word = int(dut.counters.value)
    found = {}
    for at, name in enumerate(device.CONTROL_COUNTER_NAMES):
        if word >> 64 * at & (1 << 64) - 1:
            found[name.removeprefix("control_")] = word >> 64 * at & (1 << 64) - 1
    return found


def balance(dut):
    """Checks that each frame has exactly one outcome."""
    found = counters(dut)
    outcomes = device.CONTROL_COUNTER_NAMES[1 : device.CONTROL_COUNTER_NAMES.index("control_packet_out") + 1]
    assert found["received"] == sum(found.get(name.removeprefix("control_"), 0) for name in outcomes), found


class Table:
    """Executes commands and reads in place of the table writer, each after a few cycles."""

    def __init__(self, dut, chance):
        self.dut, self.chance, self.commands, self.entries = dut, chance, [], {}
        cocotb.start_soon(self._commands())
        cocotb.start_soon(self._reads())

    async def _commands(self):
        dut = self.dut
        while True:
            dut.command_ready.value = 1
            await RisingEdge(dut.clk)
            if not dut.command_valid.value:
                continue
            dut.command_ready.value = 0
            word = int(dut.command.value)
            self.commands.append(word)
            await ClockCycles(dut.clk, self.chance.randrange(2, 50))
            total = sum(width for _, width in device.COMMAND_FIELDS)
            ppu, index = word >> total - 10 & 0xFF, word >> total - 26 & 0xFFFF
            signal = dut.done if ppu < PPUS and index < ENTRIES else dut.refused
            signal.value = 1
            await RisingEdge(dut.clk)
            signal.value = 0

    async def _reads(self):
        dut = self.dut
        while True:
            dut.read_ready.value = 1
            await RisingEdge(dut.clk)
            if not dut.read_valid.value:
                continue
            dut.read_ready.value = 0
            place = int(dut.read_ppu.value), int(dut.read_index.value)
            await ClockCycles(dut.clk, 2)
            signal = dut.reply_valid if place[0] < PPUS and place[1] < ENTRIES else dut.refused
            found = self.entries.get(place)
            dut.reply_exists.value = int(found is not None)
            names = ("reply_value", "reply_mask", "reply_action", "reply_packets")
            for name, value in zip(names, found or (0, 0, 0, 0)):
                getattr(dut, name).value = value
            signal.value = 1
            await RisingEdge(dut.clk)
            signal.value = 0


async def prepare(dut, accept=None):
    """Resets the module. Returns the collector of replies, and the table."""
    lower = sum((at + 5) << 64 * at for at in range(LOWER))
    upper = sum((at + (1 << 60)) << 64 * at for at in range(UPPER))
    await start(
        dut, addresses=datagram.addresses(), rx_valid=0, rx_data=0, rx_keep=0, rx_last=0, rx_bad=0, tx_ready=1,
        up_valid=0, up_data=0, up_keep=0, up_last=0, up_egress=0, out_ready=1, command_ready=0, done=0, refused=0,
        read_ready=0, reply_valid=0, reply_exists=0, reply_value=0, reply_mask=0, reply_action=0, reply_packets=0,
        lower_counters=lower, upper_counters=upper,
    )
    return Collector(dut, "tx", accept=accept), Table(dut, random.Random(1))


async def deliver(dut, *frames, idle=None):
    """Sends frames to the control plane's channel."""
    await offer(dut, "rx", [(item, None) for item in frames], idle=idle, ready=False)


def good_mods():
    """Bodies of Flow_mods of every kind, with the command each means."""
    value, mask = key((0x11223344, 0xFFFFFFFF), None, (5, 7))
    word = action(data=(1 << 96) - 2, base=2, offset=255, insert=12, remove=16, fix_ip=1, fix_l4=1, dec_ttl=1,
                  write_metadata=1, metadata=0xFFFF, output_kind=3, port=255, last=1)
    slices = [(0, 255, 4), (1, 12, 2), (2, 0, 0), (3, 7, 1)]
    return [
        (datagram.write(2, 15, value & mask, mask, word),
         {"code": device.COMMAND_WRITE, "ppu": 2, "index": 15, "value": value & mask, "mask": mask, "word": word}),
        (datagram.act(1, 3, word), {"code": device.COMMAND_ACT, "ppu": 1, "index": 3, "word": word}),
        (datagram.remove(0, 9), {"code": device.COMMAND_REMOVE, "ppu": 0, "index": 9}),
        (datagram.select(1, slices), {"code": device.COMMAND_SELECT, "ppu": 1, "slices": slices}),
    ]


# Fields that each command uses; the others may have any value.
USED = {
    device.COMMAND_WRITE: ("value", "mask", "action"), device.COMMAND_ACT: ("action",),
    device.COMMAND_REMOVE: (), device.COMMAND_SELECT: ("slices",),
}


def equal(got, **fields):
    """Whether a command_t has these fields, as far as the command uses them."""
    want, at = command(**fields), sum(width for _, width in device.COMMAND_FIELDS)
    for name, width in device.COMMAND_FIELDS:
        at -= width
        used = name in ("code", "ppu", "index") or name in USED[fields["code"]]
        if used and (got ^ want) >> at & (1 << width) - 1:
            return False
    return True


@cocotb.test()
async def requests_are_answered(dut):
    """Hello, Echo of all lengths, Flow_mods of all kinds, Flow_request and Stats, sent without a pause."""
    replies, table = await prepare(dut)
    value, mask = key((0xCAFE0000, 0xFFFF0000), (1, 3))
    table.entries[2, 7] = (value, mask, output(9), 0x0102030405060708)
    requests, expected = [(HELLO, bytes(4))], [(HELLO, bytes([PPUS, 0]) + number(ENTRIES, 2))]
    for size in (0, 1, 2, 13, 14, 15, 63, 64, 77, 78, 79, 300, 1543, 1544):
        data = random.Random(size).randbytes(size)
        requests.append((ECHO, data))
        expected.append((device.MESSAGE_ECHO_REPLY, data))
    for body, _ in good_mods():
        requests.append((FLOW_MOD, body))
        expected.append((ACK, b"\1\0\0\0"))
    for body in (datagram.remove(PPUS, 0), datagram.remove(0, ENTRIES)):
        requests.append((FLOW_MOD, body))
        expected.append((ACK, b"\0\0\0\0"))
    entry = datagram.key_bytes(value, mask) + number(output(9), 20) + number(0x0102030405060708, 8)
    requests.append((device.MESSAGE_FLOW_REQUEST, datagram.request(2, 7)))
    expected.append((device.MESSAGE_FLOW_REPLY, bytes([2, 1, 0, 7]) + entry))
    for place in ((1, 1), (PPUS, 0), (0, ENTRIES)):
        requests.append((device.MESSAGE_FLOW_REQUEST, datagram.request(*place)))
        expected.append((device.MESSAGE_FLOW_REPLY, bytes([place[0], 0]) + number(place[1], 2) + bytes(64)))
    for at, (code, body) in enumerate(requests):
        await deliver(dut, frame(message(code, 1000 + at, body), padding=bytes(at % 3 if len(body) < 100 else 0)))
        await replies.wait_for(at + 1)
    assert [parse(data) for _, data in replies.frames] == [(c, 1000 + at, b) for at, (c, b) in enumerate(expected)]
    wanted = [fields for _, fields in good_mods()]
    assert len(table.commands) == len(wanted) + 2
    assert all(equal(got, **fields) for got, fields in zip(table.commands, wanted))
    await deliver(dut, frame(message(device.MESSAGE_STATS_REQUEST, 5)))
    await replies.wait_for(len(requests) + 1)
    code, transaction, body = parse(replies.frames[-1][1])
    values = [int.from_bytes(body[at : at + 8], "big") for at in range(0, len(body), 8)]
    count = len(requests) + 1
    own = {"received": count, "flow_mod": len(wanted) + 2, "request": count - len(wanted) - 2}
    want = [own.get(name.removeprefix("control_"), 0) for name in device.CONTROL_COUNTER_NAMES]
    assert (code, transaction) == (device.MESSAGE_STATS_REPLY, 5)
    # The Stats_request itself is received, and is counted as answered when the reply begins.
    assert values == [5, 6, *want, *(at + (1 << 60) for at in range(UPPER))], values


@cocotb.test()
async def malformed_and_spoofed_frames_are_dropped_with_their_reason(dut):
    """Each kind of damage is counted under its reason, executes nothing and is not answered."""
    replies, table = await prepare(dut)
    hello = message(HELLO, 1, bytes(4))
    await deliver(dut, frame(hello))
    await replies.wait_for(1)
    value, mask = key((1, 0xFF))
    mod = lambda body: frame(message(FLOW_MOD, 9, body))
    word = lambda **fields: datagram.act(0, 0, action(**fields))
    patch = lambda text, at, byte: text[:at] + bytes([byte]) + text[at + 1 :]
    good = frame(message(FLOW_MOD, 9, datagram.remove(0, 0)))
    wrong_addresses = {"to_mac": 0xFFFFFFFFFFFF, "to_ip": 0x0A000003, "to_port": 6633, "eth_type": 0x86DD,
                       "version": 0x46, "proto": 6, "fragment": 0x2000}
    wrong_sources = {"from_mac": 0x020000000D03, "from_ip": 0x0A000004, "from_port": 45679}
    cases = [("foreign", frame(hello, **{name: wrong})) for name, wrong in wrong_addresses.items()]
    cases += [("foreign", frame(hello, fragment=1)), ("foreign", bytes(42)), ("foreign", bytes(14))]
    cases += [("spoofed", frame(hello, **{name: wrong})) for name, wrong in wrong_sources.items()]
    cases += [("bad_frame", frame(b"")), ("bad_frame", frame(hello[:7]))]
    cases += [("bad_frame", frame(message(ECHO, 1, bytes(1600)))), ("bad_frame", frame(hello, padding=bytes(9000)))]
    cases += [("length", good[:-1]), ("length", frame(message(ECHO, 1, bytes(200)))[:-40])]
    cases += [("checksum", frame(hello, udp_checksum=0)), ("checksum", frame(hello, udp_checksum=0x1234)),
              ("checksum", frame(hello, ip_checksum=0x1234))]
    # Every byte of the datagram is covered by a checksum, so a changed byte is noticed.
    cases += [("checksum", patch(good, at, good[at] ^ 0x40)) for at in (15, 18, 22, 24, 40, 43, 46, 50, 53)]
    cases += [("length", frame(hello, ip_length=len(hello) + 27)), ("length", frame(hello, udp_length=19))]
    cases += [("length", frame(message(HELLO, 1, bytes(4), length=n))) for n in (0, 7, 11, 13, 0xFFFF)]
    cases += [("length", frame(message(code, 1, bytes(size)))) for code, size in (
        (HELLO, 3), (HELLO, 5), (device.MESSAGE_FLOW_REQUEST, 8), (device.MESSAGE_STATS_REQUEST, 1), (PACKET_OUT, 21))]
    cases += [("length", mod(body)) for body in (
        datagram.remove(0, 0) + b"\0", datagram.act(0, 0, 0)[:-1], datagram.write(0, 0, 0, 0, 0) + b"\0",
        datagram.select(0, []) + b"\0")]
    cases += [("version", frame(message(HELLO, 1, bytes(4), version=n))) for n in (0, 2, 255)]
    cases += [("type", frame(message(code, 1, bytes(4)))) for code in (2, 4, 6, 7, 10, 11, 255)]
    cases += [("value", mod(bytes([code, 0, 0, 0]))) for code in (4, 255)]
    cases += [("value", mod(body)) for body in (
        datagram.write(0, 0, value | 1 << 130, mask & ~(1 << 130), 0),
        patch(datagram.write(0, 0, 0, 0, 0), 4 + 33, 1), patch(datagram.write(0, 0, 0, 0, 0), 4 + 3, 1),
        patch(datagram.write(0, 0, 0, 0, 0), 4 + 34, 1), patch(datagram.write(0, 0, 0, 0, 0), 4 + 35, 1),
        word(base=3), word(insert=13), word(remove=17), word(metadata=1), word(reserved=1), word(reserved=1 << 12),
        datagram.select(0, [(4, 0, 0)]), datagram.select(0, [(0, 0, 5)]),
        datagram.select(0, [(0, 0, 0)] * 3 + [(0, 0, 255)]),
        patch(datagram.select(0, []), 7, 1), patch(datagram.select(0, []), 19, 1), patch(datagram.select(0, []), 3, 1))]
    cases += [("value", frame(message(HELLO, 2, b"\0\1\0\0"))), ("value", frame(message(5, 2, b"\0\1\0\0")))]
    cases += [("value", frame(message(PACKET_OUT, 2, head + bytes(14)))) for head in (
        b"\1\2" + bytes(6), b"\1\x80" + bytes(6), b"\1\0" + bytes(5) + b"\1", b"\1\0\1" + bytes(5))]
    want = {"received": 1, "request": 1}
    for reason, item in cases:
        await deliver(dut, item)
        await ClockCycles(dut.clk, 30)
        want["received"] += 1
        want[reason] = want.get(reason, 0) + 1
        assert counters(dut) == want, (reason, item.hex(), counters(dut), want)
    # Aborted, and with a hole in the middle.
    for kind in ("aborted", "hole"):
        for at, (data, keep, last) in enumerate(beats(frame(message(ECHO, 1, bytes(150))))):
            dut.rx_valid.value, dut.rx_data.value, dut.rx_last.value = 1, data, last
            dut.rx_keep.value = keep ^ 1 << 5 if kind == "hole" and at == 1 else keep
            dut.rx_bad.value = int(kind == "aborted" and last)
            await RisingEdge(dut.clk)
        dut.rx_valid.value = dut.rx_bad.value = 0
    await ClockCycles(dut.clk, 40)
    want["received"], want["bad_frame"] = want["received"] + 2, want["bad_frame"] + 2
    assert counters(dut) == want
    assert len(replies.frames) == 1 and not table.commands
    # The engine still works.
    await deliver(dut, good)
    await replies.wait_for(2)
    assert parse(replies.frames[1][1]) == (ACK, 9, b"\1\0\0\0")
    balance(dut)


@cocotb.test()
async def duplicates_late_and_stale_messages_do_no_harm(dut):
    """Duplicates are answered alike and not executed; late Flow_mods are refused; stale ones are dropped."""
    replies, table = await prepare(dut)
    begin = 0xFFFFFFF0
    seen = 0

    async def send(code, transaction, body, answered=True):
        nonlocal seen
        await deliver(dut, frame(message(code, transaction & 0xFFFFFFFF, body)))
        seen += answered
        await replies.wait_for(seen)
        await ClockCycles(dut.clk, 40)
        assert len(replies.frames) == seen, "an answer that was not expected"
        return parse(replies.frames[-1][1])[2] if answered else None

    done, failed = b"\1\0\0\0", bytes(4)
    mod = lambda index: datagram.remove(0, index)
    await send(FLOW_MOD, begin + 1, mod(1), answered=False)
    assert counters(dut)["stale"] == 1, "there is no session before a Hello"
    await send(HELLO, begin, bytes(4))
    for at in range(1, 40):
        # The numbers pass 0.
        assert await send(FLOW_MOD, begin + at, mod(at % ENTRIES if at % 5 else ENTRIES)) == (done if at % 5 else failed)
    executed = len(table.commands)
    for at in (1, 5, 20, 39):
        assert await send(FLOW_MOD, begin + at, mod(3)) == (done if at % 5 else failed), "another answer than before"
    await send(HELLO, begin, bytes(4))
    assert await send(FLOW_MOD, begin + 39, mod(3)) == done
    assert len(table.commands) == executed, "a duplicate was executed"
    # 45 was lost or is late, as 50 comes first. A Packet_out may come late, once.
    assert await send(FLOW_MOD, begin + 50, mod(1)) == done
    assert await send(FLOW_MOD, begin + 45, mod(1)) == failed
    assert await send(FLOW_MOD, begin + 45, mod(1)) == failed
    for transaction in (46, 46, 60, 48):
        await send(PACKET_OUT, begin + transaction, datagram.packet_out(1, False, bytes(20)), answered=False)
    await send(FLOW_MOD, begin + 60, mod(1), answered=False)
    assert len(table.commands) == executed + 1
    # 64 IDs back is the oldest one that is remembered.
    assert await send(FLOW_MOD, begin + 102, mod(1)) == done
    assert await send(FLOW_MOD, begin + 39, mod(1)) == done
    await send(FLOW_MOD, begin + 38, mod(1), answered=False)
    await send(FLOW_MOD, begin, mod(1), answered=False)
    await send(PACKET_OUT, begin - 1, datagram.packet_out(1, False, bytes(20)), answered=False)
    await send(FLOW_MOD, begin + 102 + (1 << 31), mod(1), answered=False)
    counted = counters(dut)
    assert {name: counted[name] for name in ("stale", "duplicate", "late", "flow_mod", "packet_out", "request")} == {
        "stale": 5, "duplicate": 8, "late": 2, "flow_mod": 41, "packet_out": 3, "request": 2}, counted
    # A new session forgets the old IDs.
    await send(HELLO, 7, bytes(4))
    assert await send(FLOW_MOD, 8, mod(1)) == done
    await send(FLOW_MOD, begin + 20, mod(1), answered=False)
    assert len(table.commands) == executed + 3
    balance(dut)


@cocotb.test()
async def packet_ins_and_packet_outs_are_moved_byte_for_byte(dut):
    """Frames of all lengths in both directions, with random pauses of every stream, while Echos are answered."""
    chance = random.Random(4)
    replies, _ = await prepare(dut, accept=lambda: chance.random() < 0.6)
    outs = Collector(dut, "out", accept=lambda: chance.random() < 0.6, info=dut.out_port)
    await deliver(dut, frame(message(HELLO, 0, bytes(4))))
    lengths = [14, 60, 63, 64, 65, 69, 70, 71, 127, 128, 133, 134, 135, 1000, 1535, 1536]
    lengths += [chance.randrange(14, 1537) for _ in range(30)]
    ups, downs = [], []
    for at, length in enumerate(lengths):
        ups.append((chance.randbytes(length), egress(at * 7 & 255, device.OUTPUT_CONTROLLER, at, at * 5 & 255)))
        downs.append((chance.randbytes(length), at, at % 3 == 0))
    # A Packet_in cannot hold these.
    for length in (1537, 1600, 5000, 9216):
        ups.insert(chance.randrange(len(ups)), (chance.randbytes(length), 0))

    def set_egress(word):
        dut.up_egress.value = word

    sending = cocotb.start_soon(offer(dut, "up", ups, set_egress, lambda: chance.random() < 0.3))
    directs = []
    echoes = 0
    for at, (data, port, pipeline) in enumerate(downs):
        await deliver(dut, frame(message(PACKET_OUT, at + 1, datagram.packet_out(port, pipeline, data))),
                      idle=lambda: chance.random() < 0.3)
        if at % 4 == 0:
            await deliver(dut, frame(message(ECHO, at, b"x" * at)))
            echoes += 1
        await outs.wait_for(at + 1)
        directs.append(int(dut.out_direct.value))
    await sending
    held = [(word, data) for data, word in ups if len(data) <= 1536]
    await replies.wait_for(1 + echoes + len(held), 20000)
    assert outs.frames == [(port, data) for data, port, _ in downs]
    got = [parse(data) for _, data in replies.frames]
    ins = [(transaction, body) for code, transaction, body in got if code == device.MESSAGE_PACKET_IN]
    heads = [bytes([word >> 8 & 255, word & 255, word >> 16 & 255]) + bytes(5) for word, _ in held]
    assert ins == [(at, head + data) for at, (head, (_, data)) in enumerate(zip(heads, held))]
    assert sum(code == device.MESSAGE_ECHO_REPLY for code, _, _ in got) == echoes
    counted = counters(dut)
    assert counted["too_long"] == 4 and counted["packet_in"] == len(held) and counted["packet_out"] == len(downs)
    balance(dut)


@cocotb.test()
async def latencies_are_the_documented_ones(dut):
    """Cycles from the last beat in to the first beat out."""
    await prepare(dut)
    replies, ins = Collector(dut, "tx", origin="rx"), Collector(dut, "tx", origin="up")
    found = {}
    for name, code, body in (("echo", ECHO, bytes(4)), ("hello", HELLO, bytes(4)), ("stats", 9, b""),
                             ("flow_request", 5, datagram.request(0, 0))):
        first = len(replies.cycles)
        await deliver(dut, frame(message(code, 1, body)))
        await replies.wait_for(len(replies.frames) + 1)
        found[name] = replies.cycles[first] - replies.origins[-1]
    for length in (64, 640):
        first = len(ins.cycles)
        await offer(dut, "up", [(bytes(length), None)])
        await ins.wait_for(len(ins.frames) + 1)
        found[f"packet_in {length}"] = ins.cycles[first] - ins.origins[-1]
    dut._log.info("latencies: %s", found)
    words = LOWER + UPPER + len(device.CONTROL_COUNTER_NAMES)
    assert found == {
        "echo": 13, "hello": 28, "stats": 27 + words, "flow_request": 40, "packet_in 64": 9, "packet_in 640": 9,
    }


@cocotb.test()
async def a_full_message_buffer_drops_whole_messages(dut):
    """Replies are not taken, so messages fill the buffer; what was not dropped is answered later."""
    replies, _ = await prepare(dut)
    dut.tx_ready.value = 0
    sent = 120
    await deliver(dut, *(frame(message(ECHO, at, b"e" * (at % 90))) for at in range(sent)))
    await ClockCycles(dut.clk, 100)
    dropped = counters(dut)["no_room"]
    assert 20 < dropped < sent
    dut.tx_ready.value = 1
    await replies.wait_for(sent - dropped)
    await ClockCycles(dut.clk, 100)
    got = [parse(data) for _, data in replies.frames]
    assert len(got) == sent - dropped
    assert all(body == b"e" * (transaction % 90) for _, transaction, body in got)
    counted = counters(dut)
    assert counted == {"received": sent, "no_room": dropped, "request": sent - dropped}
