# SPDX-License-Identifier: Apache-2.0
"""AXI4-Streams of the test benches: collectors and senders for one stream of an array of them."""

import cocotb
from cocotb.triggers import RisingEdge

from bench import BUS_BYTES, beats

BUS_BITS = BUS_BYTES * 8


class Collector:
    """Collects frames from an output, with the cycle of each beat. `element` selects a stream of an array.

    `accept` drives the ready signal. `info` is a signal whose value is kept with each frame. `origin` is the
    prefix of an input, whose last beats are kept as cycles in `origins`.
    """

    def __init__(self, dut, prefix, element=0, accept=None, info=None, bad=None, origin=None):
        self.origin, self.origins = origin, []
        self.dut, self.element, self.accept, self.info, self.bad_signal = dut, element, accept, info, bad
        self.frames, self.cycles, self.ends, self.bad, self.cycle = [], [], [], [], 0
        self.signals = {name: getattr(dut, f"{prefix}_{name}") for name in ("valid", "data", "keep", "last")}
        self.ready = None if bad is not None else getattr(dut, f"{prefix}_ready")
        cocotb.start_soon(self._run())

    def _bit(self, name):
        return int(self.signals[name].value) >> self.element & 1

    async def _run(self):
        collected = b""
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            if self.origin and int(getattr(self.dut, f"{self.origin}_valid").value) & int(
                getattr(self.dut, f"{self.origin}_last").value
            ):
                self.origins.append(self.cycle)
            if self._bit("valid") and (self.ready is None or int(self.ready.value) >> self.element & 1):
                keep = int(self.signals["keep"].value) >> self.element * BUS_BYTES & (1 << BUS_BYTES) - 1
                data = int(self.signals["data"].value) >> self.element * BUS_BITS & (1 << BUS_BITS) - 1
                assert keep & (keep + 1) == 0 and keep & 1
                collected += data.to_bytes(BUS_BYTES, "little")[: keep.bit_count()]
                self.cycles.append(self.cycle)
                if self._bit("last"):
                    self.frames.append((int(self.info.value) if self.info is not None else None, collected))
                    self.ends.append(self.cycle)
                    self.bad.append(int(self.bad_signal.value) if self.bad_signal is not None else 0)
                    collected = b""
                elif self.bad_signal is None:
                    assert keep.bit_count() == BUS_BYTES
            if self.accept:
                word = int(self.ready.value) & ~(1 << self.element) | int(self.accept()) << self.element
                self.ready.value = word

    async def wait_for(self, count, cycles=4000, what=""):
        """Waits until `count` frames have arrived. `what` explains a failure."""
        for _ in range(cycles):
            if len(self.frames) >= count:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"{len(self.frames)} of {count} frames arrived {what}")


async def offer(dut, prefix, frames, inform=None, idle=None, ready=True):
    """Sends (frame, information) to an input; `inform` sets the information before a frame."""
    get = lambda name: getattr(dut, f"{prefix}_{name}")
    for data, word in frames:
        if inform:
            inform(word)
        for value, keep, last in beats(data):
            while idle and idle():
                get("valid").value = 0
                await RisingEdge(dut.clk)
            get("valid").value, get("data").value = 1, value
            get("keep").value, get("last").value = keep, last
            await RisingEdge(dut.clk)
            while ready and not get("ready").value:
                await RisingEdge(dut.clk)
    get("valid").value = 0
