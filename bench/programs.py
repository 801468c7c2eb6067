#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the names of the benchmarks in bench/src/bin that need no optional feature, one on each line.

`make bench` runs them. The others need devices and arguments, and are run by bench/peers.
"""

import tomllib
from pathlib import Path

BENCH = Path(__file__).resolve().parent


def main() -> None:
    manifest = tomllib.loads((BENCH / "Cargo.toml").read_text())
    featured = {program["name"] for program in manifest.get("bin", []) if program.get("required-features")}
    for name in sorted(path.stem for path in (BENCH / "src" / "bin").glob("*.rs")):
        if name not in featured:
            print(name)


if __name__ == "__main__":
    main()
