# SPDX-License-Identifier: Apache-2.0
"""Links whose MTU is too low for the longest packets of hosts."""

import pytest
from model import network

from shunt_controller.live.keyflow import KeyFlow
from shunt_controller.live.keyflow import Settings as KeySettings
from shunt_controller.live.mtus import too_low
from shunt_controller.live.tagforward import Settings, TagForward


def test_only_ports_of_links_with_a_limit_below_the_longest_packet_are_named():
    topology = network([(1, 2), (2, 3)], [1, 3])
    mtus = {1: {1: 1515, 101: 600}, 2: {1: 1516, 2: 9000}, 9: {1: 68}}
    (text,) = too_low(topology, mtus, 1500, 16)
    assert text == (
        "port 1 of switch 1 has an MTU of 1515 bytes and drops longer packets; "
        "packets of hosts with an MTU of 1500 bytes are up to 1516 bytes long there"
    )
    assert too_low(topology, mtus, 1499, 16) == [] and too_low(topology, {}, 9000, 40) == []


@pytest.mark.parametrize(("width", "bytes_"), [(64, 16), (128, 24), (256, 40)])
def test_headers_have_the_length_of_the_wire_format(width, bytes_):
    assert KeyFlow(KeySettings(width_bits=width), lambda kind, text: None).header_bytes == bytes_
    assert TagForward(Settings(), lambda kind, text: None).header_bytes == 8
