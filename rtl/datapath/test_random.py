# SPDX-License-Identifier: Apache-2.0
"""Random frames and random programs against the model, byte for byte and in order.

RTL_PROGRAMS and RTL_FRAMES are the numbers of programs and of frames per program, RTL_SEED is their seed.
"""

import itertools
import os
import random
from collections import Counter

import cocotb
from cocotb.triggers import ClockCycles

import device
import model
from bench import Sink, action, command, egress, execute, package_number, send
from test_datapath import ENTRIES, PPUS, counters, prepare

PROGRAMS = int(os.environ.get("RTL_PROGRAMS", "20"))
FRAMES = int(os.environ.get("RTL_FRAMES", "90"))
SEED = int(os.environ.get("RTL_SEED", "1"))
# Bits of a key that one memory of the TCAM compares.
CHUNK_BITS = package_number("CHUNK_BITS")
CHUNKS = -(-device.KEY_BITS // CHUNK_BITS)
# Parts of the TCAM: a chunk, and the parity of an entry's index, because two entries share memory cells.
PARTS = [(chunk, parity) for chunk in range(CHUNKS) for parity in (0, 1)]


class Searches:
    """Counts searches, so that the test can require that they show something."""

    def __init__(self):
        self.hits = Counter()  # by the index of the entry, None for a miss
        self.shown = Counter()  # by part: frames whose result would differ if the part accepted every key
        self.near = set()  # parts that alone keep the current frame from hitting an entry

    def note(self, key, entries, hit):
        """Counts a search."""
        self.hits[hit] += 1
        for index, (value, mask, _) in entries.items():
            differing = (key ^ value) & mask
            chunk = ((differing & -differing).bit_length() - 1) // CHUNK_BITS
            if differing and differing >> (chunk + 1) * CHUNK_BITS == 0 and (hit is None or index < hit):
                self.near.add((chunk, index % 2))

    def rarest(self):
        """Chunks for entries of even and of odd index; the least shown chunks come first."""
        orders = (sorted(range(CHUNKS), key=lambda chunk: self.shown[chunk, parity]) for parity in (0, 1))
        return [itertools.cycle(order) for order in orders]

    def run(self, program, frame, port):
        """Returns the model's result of a frame."""
        self.near = set()
        result = model.run(program, frame, port, self.note)
        self.shown.update(part for part in self.near if model.run(without(part, program), frame, port) != result)
        return result


def without(part, program):
    """The program if this part of the TCAM accepts every key."""
    chunk, parity = part
    compared = ~((1 << CHUNK_BITS) - 1 << chunk * CHUNK_BITS)
    return [
        (slices, {
            index: (value, mask & compared if index % 2 == parity else mask, fields)
            for index, (value, mask, fields) in entries.items()
        })
        for slices, entries in program
    ]


def ip(chance, payload):
    """An IPv4 or IPv6 packet, often with wrong lengths."""
    proto = chance.choice((1, 6, 17, 58, 132, 99, 0, 44))
    ttl = chance.choice((0, 1, 2, 64, 255))
    if chance.random() < 0.6:
        words = chance.choice((5, 5, 5, 6, 15, 4))
        length = chance.choice((len(payload) + 20, 20, 1, 0xFFFF, 60))
        fragment = chance.choice((0, 0, 0, 0x4000, 1, 0x2000))
        head = bytes([chance.choice((4, 4, 4, 5)) << 4 | words, chance.randrange(256)]) + length.to_bytes(2, "big")
        head += bytes(2) + fragment.to_bytes(2, "big") + bytes([ttl, proto]) + chance.randbytes(10)
        return b"\x08\x00" + head + payload
    length = chance.choice((len(payload), 0, 0xFFFF, 12))
    head = (6 << 28 | chance.getrandbits(28)).to_bytes(4, "big") + length.to_bytes(2, "big") + bytes([proto, ttl])
    return b"\x86\xdd" + head + chance.randbytes(32) + payload


def random_frame(chance):
    """A frame of 14 to 1518 bytes."""
    tags = b"".join(
        chance.choice((b"\x81\x00", b"\x88\xa8", b"\x91\x00")) + chance.randbytes(2)
        for _ in range(chance.choice((0, 0, 1, 2, 3)))
    )
    payload = chance.randbytes(chance.choice((0, 20, 46, 60, 200, 1400)))
    if chance.random() < 0.3:
        # A UDP checksum of 0, if the packet is a UDP packet.
        payload = payload[:6] + bytes(2) + payload[8:]
    body = ip(chance, payload) if chance.random() < 0.8 else chance.randbytes(2) + payload
    macs = bytes([2, 0, 0, 0, 0, chance.randrange(4), 2, 0, 0, 0, 0, chance.randrange(4)])
    made = macs + tags + body
    if chance.random() < 0.3:
        made = made[: chance.randrange(14, 140)]
    return made[:1518].ljust(14, b"\0")


def random_slice(chance):
    """A slice of a key."""
    base = chance.randrange(4)
    offset = chance.choice((0, 8, 12, 24, 25, 26, 28)) if base == device.BASE_EXTENDED else chance.choice(
        (0, 1, 2, 5, 8, 11, 12, 13, 16, 30, 63, 110, 126)
    )
    return base, offset, chance.choice((0, 1, 2, 3, 4, 4))


def random_action(chance, port):
    """Fields of an action word."""
    fields = {"data": chance.getrandbits(96), "base": chance.choice((0, 0, 1, 1, 1, 2))}
    kind = chance.choice((0, 1, 1, 2, 2, 3, 4, 5, 5, 6))
    # Packets that are not IP are dropped.
    ttl = int(chance.random() < 0.7)
    if kind == 0:
        fields.update(insert=chance.randrange(13), remove=chance.randrange(13), offset=chance.choice((0, 1, 12, 17, 40)))
    elif kind == 1:
        # A change within the header, with checksums.
        count = chance.randrange(1, 13)
        fields.update(insert=count, remove=count, offset=chance.choice((0, 1, 2, 12, 14)))
        if fields["base"] == device.EDIT_BASE_L3:
            fields.update(fix_ip=chance.randrange(2), fix_l4=chance.randrange(2))
        elif fields["base"] == device.EDIT_BASE_L4:
            fields.update(fix_l4=1, insert=chance.randrange(1, 3))
            fields.update(remove=fields["insert"], offset=chance.choice((0, 1, 2)))
    elif kind == 2:
        # Both MAC addresses and the TTL.
        fields.update(base=0, insert=12, remove=12, dec_ttl=ttl)
    elif kind == 3:
        fields.update(base=0, offset=12, dec_ttl=ttl)
        fields.update(chance.choice(({"insert": 4}, {"remove": 4}, {"insert": 3})))
    elif kind == 4:
        # Any edit, also over borders of headers.
        fields.update(insert=chance.randrange(13), remove=chance.randrange(17))
        fields.update(offset=chance.choice((chance.randrange(24), chance.randrange(150))))
        fields.update(fix_ip=chance.randrange(2), fix_l4=chance.randrange(2), dec_ttl=ttl)
    elif kind == 6:
        # An edit at, over or beside the TTL.
        fields.update(base=device.EDIT_BASE_L3, offset=chance.randrange(4, 10), insert=chance.randrange(5))
        fields.update(remove=chance.randrange(1, 5), dec_ttl=1)
    fields.update(write_metadata=chance.randrange(2), metadata=chance.getrandbits(16))
    fields.update(output_kind=chance.choice((0, 0, 1, 2, 2, 2, 3)), port=chance.choice((chance.randrange(256), port)))
    fields.update(to_ingress=int(chance.random() < 0.1))
    fields.update(last=int(chance.random() < 0.2))
    return fields


def near_miss(chance, value, mask, chunk):
    """The key with one compared bit changed, in this chunk: its frame misses it in this chunk only."""
    low = chunk * CHUNK_BITS
    bit = chance.randrange(low, min(low + CHUNK_BITS, device.KEY_BITS))
    return value ^ 1 << bit, mask | 1 << bit


def random_program(chance, frames, port, chunks):
    """Slices and entries for every PPU; keys are made from the frames, so that many frames hit.

    In half of the tables, each entry compares a whole slice that differs between frames, so that many frames
    miss. In the others, some entry matches almost any frame. Six of ten keys are missed by their frame, each
    in the next one of the chunks.
    """
    program = []
    for _ in range(PPUS):
        is_narrow = chance.random() < 0.5
        slices = [random_slice(chance) for _ in range(device.KEY_SLICES)]
        if is_narrow:
            # The last bytes of the MAC addresses, or bytes that are random in most frames.
            slices[-1] = chance.choice(((1, 5, 1), (1, 11, 1), (1, 12, 2), (1, 8, 4), (2, 13, 4)))
        entries = {}
        for index in chance.sample(range(ENTRIES), chance.randrange(4, ENTRIES + 1)):
            mask = 0
            for _ in range(device.KEY_SLICES):
                mask = mask << 32 | chance.choice((0, 0, 0xFF, 0xFFFFFFFF, 0xFF000000, chance.getrandbits(32)))
            if is_narrow:
                mask |= 0xFFFFFFFF
            mask = mask << device.KEY_SLICES | chance.choice((0, 0, chance.getrandbits(device.KEY_SLICES)))
            value = model.Packet(chance.choice(frames), port).key(slices)
            fields = random_action(chance, port)
            if chance.random() < 0.6:
                value, mask = near_miss(chance, value, mask, next(chunks[index % 2]))
                # A wrong hit must be seen, so it sends to another port than the ingress port.
                fields.update(output_kind=device.OUTPUT_PORT, port=port ^ chance.randrange(1, 256))
            entries[index] = (value, mask, fields)
        program.append((slices, entries))
    return program


async def install(dut, program):
    """Replaces the whole program."""
    for ppu, (slices, entries) in enumerate(program):
        await execute(dut, command(device.COMMAND_SELECT, ppu, slices=slices))
        for index in range(ENTRIES):
            if index in entries:
                value, mask, fields = entries[index]
                await execute(dut, command(device.COMMAND_WRITE, ppu, index, value, mask, action(**fields)))
            else:
                await execute(dut, command(device.COMMAND_REMOVE, ppu, index))


@cocotb.test()
async def random_programs_equal_the_model(dut):
    """Every frame leaves as the model says, or is dropped and counted for the model's reason."""
    # Two sequences, so that cycles do not change programs.
    chance, pause = random.Random(SEED), random.Random(SEED + 1)
    await prepare(dut)
    sent = {"bad_edit": 0, "ttl_expired": 0, "discarded": 0, "port": 0}
    searches = Searches()
    for number in range(PROGRAMS):
        port = chance.randrange(256)
        frames = [random_frame(chance) for _ in range(FRAMES)]
        program = random_program(chance, frames[:40], port, searches.rarest())
        await install(dut, program)
        expected = []
        for frame in frames:
            where, result = searches.run(program, frame, port)
            if where:
                expected.append((egress(where[1], where[0], port, where[2]), result))
            else:
                sent[result] += 1
        slow = number % 3 == 2
        sink = Sink(dut, ready=(lambda: pause.random() < 0.7) if slow else None)
        await send(dut, frames, port, idle=lambda: pause.random() < (0.6 if slow else 0.3))
        await ClockCycles(dut.clk, 1500)
        for at, (got, want) in enumerate(zip(sink.frames, expected)):
            assert got == want, f"program {number}, frame {at} out:\ngot  {got}\nwant {want}"
        assert len(sink.frames) == len(expected), (number, len(sink.frames), len(expected))
        sink.stop()
        sent["port"] += len(expected)
    counted = counters(dut)
    dut._log.info("%d frames in %d programs: %s", PROGRAMS * FRAMES, PROGRAMS, sent)
    assert counted["received"] == PROGRAMS * FRAMES and counted["no_room"] == 0, counted
    assert {name: counted[name] for name in ("bad_edit", "ttl_expired", "discarded")} == {
        name: sent[name] for name in ("bad_edit", "ttl_expired", "discarded")
    }
    # A test without hits, misses or drops would show nothing.
    assert all(count > PROGRAMS // 2 for count in sent.values()), sent
    count, misses = sum(searches.hits.values()), searches.hits[None]
    shown = [searches.shown[part] for part in PARTS]
    dut._log.info(
        "%d searches: %d misses, hits of %d indices; each part of the TCAM shown by %d to %d frames", count, misses,
        len(searches.hits) - 1, min(shown), max(shown),
    )
    assert count // 10 < misses < count * 9 // 10 and len(searches.hits) > ENTRIES // 2, searches.hits
    assert min(shown) > 0, searches.shown
