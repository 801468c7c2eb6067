# SPDX-License-Identifier: Apache-2.0
"""What the tests share."""

import pathlib
from typing import NamedTuple

import pytest
from os_ken.ofproto import ofproto_protocol

import shunt_controller

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "openflow-extensions.md"

shunt_controller.register()


class Example(NamedTuple):
    """One of the page."""

    kind: str
    data: bytes
    says: str


@pytest.fixture
def datapath() -> ofproto_protocol.ProtocolDesc:
    """Stands for a switch that speaks OpenFlow 1.3."""
    return ofproto_protocol.ProtocolDesc(version=4)


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    """The examples of docs/openflow-extensions.md that a switch takes."""
    found = []
    for line in PAGE.read_text().splitlines():
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) == 3 and parts[0] in ("instruction", "match", "action") and not parts[2].startswith("OFP"):
            found.append(Example(parts[0], bytes.fromhex(parts[1]), parts[2]))
    return found
