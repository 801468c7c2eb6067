#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random programs, frames and the model's results for the test of the software device: vectors.py PROGRAMS
FRAMES SEED > FILE.

A line begins with its kind: `select PPU` and slices, `write PPU INDEX VALUE MASK ACTION`, `program` (all tables are
empty), or `frame PORT BYTES` and its fate.
"""

import os
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "datapath"))
os.environ.setdefault("PPUS", "3")
os.environ.setdefault("ENTRIES", "16")

import bench  # noqa: E402
import device  # noqa: E402
import model  # noqa: E402
import test_random  # noqa: E402

# Longer frames would only add payload.
LENGTH_MAX = 180
FATES = {device.OUTPUT_PORT: "port", device.OUTPUT_CONTROLLER: "controller"}


def main():
    """Writes the vectors."""
    programs, frames, seed = map(int, sys.argv[1:])
    chance = random.Random(seed)
    for _ in range(programs):
        port = chance.randrange(256)
        made = [test_random.random_frame(chance)[:LENGTH_MAX] for _ in range(frames)]
        program = test_random.random_program(chance, made[:40], port)
        print("program")
        for ppu, (slices, entries) in enumerate(program):
            print("select", ppu, " ".join(f"{base},{offset},{count}" for base, offset, count in slices))
            for index, (value, mask, fields) in sorted(entries.items()):
                bits = 8 * device.KEY_BYTES - device.KEY_BITS
                value, mask = (value & mask) << bits, mask << bits
                fields["metadata"] *= fields["write_metadata"]
                print(f"write {ppu} {index} {value:034x} {mask:034x} {bench.action(**fields):040x}")
        for frame in made:
            where, result = model.run(program, frame, port)
            fate = f"{FATES[where[0]]} {where[1]} {where[2]} {result.hex()}" if where else f"dropped {result}"
            print(f"frame {port} {frame.hex()} {fate}")


if __name__ == "__main__":
    main()
