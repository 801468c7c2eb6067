# SPDX-License-Identifier: Apache-2.0
"""Queues that ports lack."""

from shunt_controller.live.queues import missing


def test_each_queue_that_a_port_lacks_is_named():
    queues = {0x1A: {1: {0, 5}, 2: {5}, 3: {3}}, 0x1B: {1: {3, 5}, 2: {3, 5}}, 0x1C: {}}
    ports = {0x1A: {1, 2, 3, 4}, 0x1B: {1, 2}, 0x1C: {7}, 0x1D: {1}}
    assert missing(queues, ports, {46: 5, 40: 5, 26: 3}) == [
        "switch 1a has no queue 3 at ports 1, 2 and 4; packets with DSCP 26 use queue 0 there",
        "switch 1a has no queue 5 at ports 3 and 4; packets with DSCP 40 and 46 use queue 0 there",
        "switch 1c has no queue 3 at port 7; packets with DSCP 26 use queue 0 there",
        "switch 1c has no queue 5 at port 7; packets with DSCP 40 and 46 use queue 0 there",
    ]


def test_only_selected_queues_of_ports_with_gates_are_needed():
    assert missing({1: {1: {5}, 2: set()}}, {1: {1}}, {46: 5, 0: 0}) == []
    assert missing({1: {}}, {1: {1}}, {}) == [] and missing({1: {}}, {1: {1}}, {46: 0}) == []
    # A switch that has not reported its queues is not known to lack any.
    assert missing({}, {1: {1}}, {46: 5}) == []
