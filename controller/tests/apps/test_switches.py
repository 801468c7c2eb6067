# SPDX-License-Identifier: Apache-2.0
"""How the configuration of a switch is read, without a network."""

import itertools
import logging
from typing import Any

import pytest
from os_ken.base.app_manager import AppManager  # noqa: F401 - os-ken's modules import each other; this one is first.
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps.switches import Switches


class Datapath:
    """A connection that records the transaction IDs of requests."""

    id, ofproto, ofproto_parser = 7, ofp, parser

    def __init__(self) -> None:
        self._xids = itertools.count(100)
        self.sent = b""

    def set_xid(self, message: Any) -> None:
        """Gives a message the next transaction ID."""
        message.set_xid(next(self._xids))

    def send(self, data: bytes) -> None:
        """Records sent bytes."""
        self.sent += data


@pytest.fixture
def reading() -> tuple[Datapath, Switches, list[Any]]:
    """Returns a switch whose configuration is being read, and the list of what becomes known."""
    datapath, known = Datapath(), []
    switches = Switches(1 << 32, (), logging.getLogger(), lambda number, state: known.append((number, state)), lambda number: None)
    switches.begin(datapath)
    return datapath, switches, known


def answer(datapath: Datapath, switches: Switches, message: Any, request: int) -> None:
    """Delivers an answer to the request with this transaction ID."""
    message.datapath = datapath
    message.set_xid(request)
    switches.received(message)


def xid_of(datapath: Datapath, kind: int) -> int:
    """Returns the transaction ID of the request of this type."""
    rest = datapath.sent
    while rest:
        if rest[1] == kind:
            return int.from_bytes(rest[4:8], "big")
        rest = rest[int.from_bytes(rest[2:4], "big") :]
    raise AssertionError(f"no request of type {kind}")


def test_queues_are_read_from_all_ports(reading):
    datapath, switches, known = reading
    request = xid_of(datapath, ofp.OFPT_QUEUE_GET_CONFIG_REQUEST)
    queues = [parser.OFPPacketQueue(queue, port, []) for queue, port in ((0, 1), (5, 1), (5, 3))]
    answer(datapath, switches, parser.OFPQueueGetConfigReply(datapath, queues, ofp.OFPP_ANY), request)
    assert not known
    answer(datapath, switches, parser.OFPBarrierReply(datapath), xid_of(datapath, ofp.OFPT_BARRIER_REQUEST))
    assert [number for number, _ in known] == [7]
    assert switches.connected[7].queues == {1: {0, 5}, 3: {5}}


def test_a_switch_that_refuses_to_report_its_queues_is_read_all_the_same(reading):
    datapath, switches, known = reading
    refused = parser.OFPErrorMsg(datapath, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_TYPE, b"")
    answer(datapath, switches, refused, xid_of(datapath, ofp.OFPT_QUEUE_GET_CONFIG_REQUEST))
    answer(datapath, switches, parser.OFPBarrierReply(datapath), xid_of(datapath, ofp.OFPT_BARRIER_REQUEST))
    assert len(known) == 1 and switches.connected[7].queues is None
    # Without an answer to the request for its sections, it has no stateless forwarding.
    assert switches.connected[7].has_lane is False
