# SPDX-License-Identifier: Apache-2.0
"""Helpers of the cocotb test benches: clock, reset, frames on the bus, commands."""

import re
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

import device

BUS_BYTES = 64
CLOCK_NS = 10


def package_number(name):
    """A number that rtl/pkg/pipeline_pkg.sv defines."""
    text = (Path(__file__).parents[1] / "pkg" / "pipeline_pkg.sv").read_text()
    return int(re.search(rf"localparam int unsigned {name} = (\d+);", text)[1])


async def start(dut, **inputs):
    """Starts the clock, sets the inputs, and resets the module."""
    cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
    for name, value in inputs.items():
        getattr(dut, name).value = value
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)


def pack(layout, fields):
    """The fields as an integer, in the order of the layout; fields that are not given are 0."""
    word = 0
    for name, width in layout:
        value = fields.pop(name, 0)
        assert 0 <= value < 1 << width, (name, value)
        word = word << width | value
    assert not fields, fields
    return word


def action(**fields):
    """An action word as an integer; fields that are not given are 0."""
    return pack(device.ACTION_FIELDS, fields)


def output(port):
    """An action that sends to a port, without later PPUs."""
    return action(output_kind=device.OUTPUT_PORT, port=port, last=1)


def data(text):
    """Data bytes of an edit, left-aligned."""
    return int.from_bytes(text.ljust(device.EDIT_DATA_BYTES, b"\0"), "big")


def command(code, ppu, index=0, value=0, mask=0, word=0, slices=()):
    """A command_t as an integer. A slice is (base, offset, bytes)."""
    packed = 0
    slices = list(slices) + [(0, 0, 0)] * (device.KEY_SLICES - len(slices))
    for base, offset, count in slices:
        bits = sum(width for _, width in device.SLICE_FIELDS)
        packed = packed << bits | pack(device.SLICE_FIELDS, {"base": base, "offset": offset, "bytes": count})
    return pack(device.COMMAND_FIELDS, {
        "code": code, "ppu": ppu, "index": index, "value": value, "mask": mask, "action": word, "slices": packed,
    })


def key(*slices):
    """Value and mask of a key. A slice is None (not compared), or (value, mask) of its 4 bytes."""
    slices = list(slices) + [None] * (device.KEY_SLICES - len(slices))
    value = mask = 0
    for given in slices:
        slice_value, slice_mask = given or (0, 0)
        value, mask = value << 32 | slice_value, mask << 32 | slice_mask
    for given in slices:
        bit = int(given is not None)
        value, mask = value << 1 | bit, mask << 1 | bit
    return value, mask


async def execute(dut, packed):
    """Executes a command. Returns the number of cycles until `done`."""
    dut.command.value = packed
    dut.command_valid.value = 1
    await RisingEdge(dut.clk)
    while not dut.command_ready.value:
        await RisingEdge(dut.clk)
    dut.command_valid.value = 0
    cycles = 0
    while not dut.done.value:
        assert not dut.refused.value
        await RisingEdge(dut.clk)
        cycles += 1
    return cycles


def beats(frame):
    """Beats of a frame: data, keep, last."""
    for at in range(0, len(frame), BUS_BYTES):
        part = frame[at : at + BUS_BYTES]
        keep = (1 << len(part)) - 1
        yield int.from_bytes(part, "little"), keep, int(at + BUS_BYTES >= len(frame))


def padded(frame):
    """The frame as the data plane sends it: of at least 60 bytes."""
    return frame.ljust(60, b"\0")


async def send_beat(dut, word, keep, last, bad=0, port=9):
    """Sends one beat."""
    dut.in_valid.value, dut.in_data.value, dut.in_keep.value = 1, word, keep
    dut.in_last.value, dut.in_bad.value, dut.in_port.value = last, bad, port
    await RisingEdge(dut.clk)
    dut.in_valid.value = 0


async def send(dut, frames, port=9, idle=None):
    """Sends frames back to back, or with idle cycles where `idle()` is true. Returns the number of beats."""
    count = 0
    for frame in frames:
        for word, keep, last in beats(frame):
            while idle and idle():
                dut.in_valid.value = 0
                await RisingEdge(dut.clk)
            dut.in_valid.value = 1
            dut.in_data.value = word
            dut.in_keep.value = keep
            dut.in_last.value = last
            dut.in_bad.value = 0
            dut.in_port.value = port
            count += 1
            await RisingEdge(dut.clk)
    dut.in_valid.value = 0
    return count


class Sink:
    """Collects frames from the output, with the cycle of each beat."""

    def __init__(self, dut, ready=None):
        self.dut, self.ready = dut, ready
        self.frames, self.cycles, self.cycle = [], [], 0
        dut.out_ready.value = 1
        self.task = cocotb.start_soon(self._run())

    def stop(self):
        """Takes no more frames."""
        self.task.kill()

    async def _run(self):
        frame, word = b"", None
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            if self.dut.out_valid.value and self.dut.out_ready.value:
                self.cycles.append(self.cycle)
                count = int(self.dut.out_keep.value).bit_count()
                assert int(self.dut.out_keep.value) == (1 << count) - 1
                frame += int(self.dut.out_data.value).to_bytes(BUS_BYTES, "little")[:count]
                assert word in (None, int(self.dut.out_egress.value)), "the egress changed within a frame"
                word = int(self.dut.out_egress.value)
                if self.dut.out_last.value:
                    self.frames.append((word, frame))
                    frame, word = b"", None
                else:
                    assert count == BUS_BYTES
            if self.ready:
                self.dut.out_ready.value = int(self.ready())

    async def wait_for(self, count, cycles=2000):
        """Waits until `count` frames have arrived."""
        for _ in range(cycles):
            if len(self.frames) >= count:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"{len(self.frames)} of {count} frames arrived")


def egress(port=0, kind=device.OUTPUT_PORT, in_port=9, ppu=0):
    """An egress_t as an integer."""
    return pack(device.EGRESS_FIELDS, {"output_kind": kind, "port": port, "in_port": in_port, "ppu": ppu})
