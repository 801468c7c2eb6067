# SPDX-License-Identifier: Apache-2.0
"""Reads the examples of docs/openflow-extensions.md."""

import pathlib
from typing import NamedTuple

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "openflow-extensions.md"


class Example(NamedTuple):
    """An example of docs/openflow-extensions.md."""

    kind: str
    data: bytes
    says: str


def read_examples(kinds: set[str]) -> list[Example]:
    """Returns the examples of these kinds that a switch accepts."""
    found = []
    for line in PAGE.read_text().splitlines():
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) == 3 and parts[0] in kinds and not parts[2].startswith("OFP"):
            found.append(Example(parts[0], bytes.fromhex(parts[1]), parts[2]))
    return found
