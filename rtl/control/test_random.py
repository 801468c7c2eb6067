# SPDX-License-Identifier: Apache-2.0
"""Random messages, many of them damaged, against the model of the protocol.

RTL_MESSAGES is their number, RTL_SEED their seed.
"""

import os
import random

import cocotb
from cocotb.triggers import ClockCycles

import device
import protocol
from datagram import checksum, frame, message, number, packet_out, parse, request
from test_control import ENTRIES, PPUS, counters, deliver, good_mods, prepare

MESSAGES = int(os.environ.get("RTL_MESSAGES", "1500"))
SEED = int(os.environ.get("RTL_SEED", "1"))


def fixed(text):
    """The frame with right checksums, if it is long enough to have them."""
    if len(text) < 42:
        return text
    text = text[:24] + bytes(2) + text[26:]
    text = text[:24] + number(checksum(text[14:34]), 2) + text[26:]
    end = 14 + int.from_bytes(text[16:18], "big")
    covered = text[26:40] + bytes(2) + text[42:end]
    found = checksum(covered + bytes(len(covered) % 2) + number(17, 2) + text[38:40]) or 0xFFFF
    return text[:40] + number(found, 2) + text[42:]


def random_message(chance, newest):
    """A message with an ID near the newest one."""
    transaction = (newest + chance.choice((1, 1, 1, 1, 2, 5, 0, -1, -3, -20, -63, -64, -65, 100, 1 << 31))) % (1 << 32)
    kind = chance.randrange(10)
    if kind < 4:
        body = bytearray(chance.choice(good_mods())[0])
        if body[0] != device.COMMAND_SELECT:
            body[1:4] = bytes([chance.randrange(PPUS + 1), 0, chance.choice((0, 3, ENTRIES - 1, ENTRIES))])
        return message(device.MESSAGE_FLOW_MOD, transaction, bytes(body))
    if kind < 6:
        data = chance.randbytes(chance.choice((14, 60, 64, 200)))
        return message(device.MESSAGE_PACKET_OUT, transaction, packet_out(1, chance.random() < 0.5, data))
    if kind < 7:
        return message(device.MESSAGE_FLOW_REQUEST, transaction, request(chance.randrange(PPUS), chance.randrange(ENTRIES)))
    if kind < 9:
        return message(device.MESSAGE_ECHO_REQUEST, transaction, chance.randbytes(chance.choice((0, 1, 14, 15, 100))))
    if chance.random() < 0.3:
        return message(device.MESSAGE_HELLO, transaction, bytes(4))
    return message(device.MESSAGE_STATS_REQUEST, transaction)


def damaged(chance, text):
    """The frame with up to three changed, removed or added bytes, often with right checksums."""
    made = bytearray(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(made)) if chance.random() < 0.5 else chance.randrange(min(len(made), 70))
        kind = chance.random()
        if kind < 0.8:
            made[at] = chance.choice((made[at] ^ 1 << chance.randrange(8), 0, 1, 4, 0xFF))
        elif kind < 0.9:
            del made[at:]
            made += bytes(1 - min(len(made), 1))
        else:
            made += bytes(chance.choice((1, 4, 64)))
    made = bytes(made)
    return fixed(made) if chance.random() < 0.8 else made


@cocotb.test()
async def random_messages_have_the_outcome_of_the_model(dut):
    """Outcome of each frame, and each reply."""
    chance = random.Random(SEED)
    replies, _ = await prepare(dut)
    model = protocol.Device(PPUS, ENTRIES)
    want, taken = {}, 0
    for _ in range(MESSAGES):
        newest = model.newest if model.newest is not None else 0xFFFFFFE0
        text = frame(random_message(chance, newest)).ljust(60, b"\0")
        if chance.random() < 0.5:
            text = damaged(chance, text)
        outcome, reply = model.handle(text)
        want["received"] = want.get("received", 0) + 1
        want[outcome] = want.get(outcome, 0) + 1
        await deliver(dut, text)
        if reply:
            await replies.wait_for(taken + 1, what=text.hex())
            got = parse(replies.frames[taken][1])
            taken += 1
            expected = reply if reply[0] != device.MESSAGE_STATS_REPLY else (*reply[:2], got[2])
            assert got == expected, (text.hex(), got, expected)
        else:
            await ClockCycles(dut.clk, 30)
        assert counters(dut) == want, (outcome, text.hex(), counters(dut), want)
        assert len(replies.frames) == taken, text.hex()
    dut._log.info("outcomes: %s", want)
    kinds = ("foreign", "spoofed", "checksum", "length", "version", "type", "value", "stale", "duplicate", "late",
             "flow_mod", "request", "packet_out")
    # A test without one of these outcomes would show less.
    assert all(want.get(kind, 0) > MESSAGES // 1000 for kind in kinds), want
