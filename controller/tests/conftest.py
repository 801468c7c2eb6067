# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the tests share."""

import pytest
from os_ken.ofproto import ofproto_protocol
from page import Example, read_examples

import shunt_controller

shunt_controller.register()


@pytest.fixture
def datapath() -> ofproto_protocol.ProtocolDesc:
    """Returns a stand-in for a switch with OpenFlow 1.3."""
    return ofproto_protocol.ProtocolDesc(version=4)


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    """Returns the examples of instructions, matches and actions."""
    return read_examples({"instruction", "match", "action"})
