# SPDX-License-Identifier: Apache-2.0
"""The encapsulation of examples/pof, run by the interpreter over three switches."""

import json
import random

import pytest
from frames import ethernet, ipv4, mac, run, udp

from shunt_controller.pof import Dialect, ProgramError, Target

import common  # isort: skip
import encapsulate  # isort: skip

BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
# Hosts 1 and 2 at switches 1 and 3. Circuit 7 leads from 1 to 3, circuit 8 back.
FIRST = {
    "ingress": [
        {"port": 1, "circuit": 7, "class": 3, "hops": 16, "output": 2, "low_latency": True},
        {"port": 3, "circuit": 9, "output": 2},
    ],
    "egress": [{"circuit": 8, "output": 1, "low_latency": True}],
}
MIDDLE = {"transit": [{"circuit": 7, "output": 2, "low_latency": True}, {"circuit": 8, "output": 1}]}
LAST = {
    "ingress": [{"port": 1, "circuit": 8, "hops": 1, "output": 2, "low_latency": True}],
    "egress": [{"circuit": 7, "output": 1, "low_latency": True}],
}
FRAME = ethernet(mac(2), mac(1), 0x0800, ipv4("10.0.0.1", "10.0.0.2", 64, 17, udp(1, 2)))


@BOTH
def test_the_header_is_inserted_matched_and_removed(dialect):
    switches = [run(encapsulate, settings, dialect) for settings in (FIRST, MIDDLE, LAST)]
    sent = switches[0].run(FRAME, 1)
    inserted = FRAME[:12] + bytes.fromhex("ff9b 13 10 00000007") + FRAME[12:]
    assert sent.sent == [(2, inserted)]
    passed = switches[1].run(inserted, 1)
    changed = inserted[:15] + b"\x0f" + inserted[16:]
    assert passed.sent == [(2, changed)]
    received = switches[2].run(changed, 2)
    assert received.sent == [(1, FRAME)]
    assert sent.low_latency
    assert passed.low_latency
    assert received.low_latency


@BOTH
def test_any_packet_survives_the_way(dialect):
    rng = random.Random(3)
    first, middle, last = (run(encapsulate, settings, dialect) for settings in (FIRST, MIDDLE, LAST))
    for _ in range(200):
        frame = rng.randbytes(rng.choice([14, 15, 60, 61, 1500]))
        # A packet with such a header gets another one, which hides it.
        frame = frame[:12] + rng.choice([b"\x08\x00", b"\xff\x9b"]) + frame[14:]
        ((port, data),) = first.run(frame, 1).sent
        ((_, data),) = middle.run(data, port).sent
        assert last.run(data, 2).sent == [(1, frame)]


@BOTH
def test_hops_end_a_loop(dialect):
    middle, last = run(encapsulate, MIDDLE, dialect), run(encapsulate, LAST, dialect)
    ((_, data),) = last.run(FRAME, 1).sent
    assert data[14:16] == b"\x10\x01"
    ((_, data),) = middle.run(data, 2).sent
    assert data[15] == 0
    result = middle.run(data, 2)
    assert (result.sent, result.dropped, result.low_latency) == ([], "DROP", False)


HEADERS = [
    ("ff9b 13 10 000000ff", "no entry in table EM 0"),
    ("ff9b 23 10 00000007", "no entry in table MM 1"),
    # The frame ends after the version, or in the circuit.
    ("ff9b 13", "no entry in table EM 0"),
    ("ff9b 13 10 0000", "no entry in table EM 0"),
]


@BOTH
@pytest.mark.parametrize(("header", "reason"), HEADERS)
def test_other_headers_are_dropped(dialect, header, reason):
    frame = FRAME[:12] + bytes.fromhex(header)
    result = run(encapsulate, FIRST, dialect).run(frame + FRAME[12:] if len(frame) == 20 else frame, 2)
    assert (result.sent, result.dropped) == ([], reason)


@BOTH
def test_packets_from_other_ports_are_dropped(dialect):
    switch = run(encapsulate, FIRST, dialect)
    assert switch.run(FRAME, 2).dropped == "no entry in table MM 0"
    # Defaults: class 0, 16 hops, not low-latency.
    result = switch.run(FRAME, 3)
    assert result.sent == [(2, FRAME[:12] + bytes.fromhex("ff9b 10 10 00000009") + FRAME[12:])]
    assert not result.low_latency


def test_equal_ingress_ports_are_refused():
    item = {"port": 1, "circuit": 7, "output": 2}
    with pytest.raises(ProgramError, match=r"two entries of table first \(MM 0\) have the same match and priority 2"):
        encapsulate.build({"ingress": [item, item | {"circuit": 8}]}, Target())


def test_settings_by_device():
    settings = {"switches": {"1": FIRST, "0x2": MIDDLE}}
    application = encapsulate.Encapsulation(json.loads(json.dumps(settings)))

    class Connected:
        class features:
            device_id = 2

    assert application.settings_of(Connected) == MIDDLE
    Connected.features.device_id = 3
    with pytest.raises(common.SettingsError, match="device 3 is not in `switches`"):
        application.settings_of(Connected)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"transit": [{"circuit": 7, "output": 1}], "egress": [{"circuit": 7, "output": 1}]}, "circuit 7 is listed twice"),
        ({"ingress": [{"port": 1, "circuit": 1 << 32, "output": 1}]}, "circuit 4294967296"),
        ({"ingress": [{"port": 1, "circuit": 1, "output": 1, "class": 16}]}, "class 16"),
        ({"ingress": [{"port": 256, "circuit": 1, "output": 1}]}, "ingress port 256"),
        ({"transit": [{"circuit": 1, "output": 65536}]}, "port 65536"),
        ({"transit": [{"circuit": 1, "output": 1.9}]}, "port `1.9` is not a whole number"),
        ({"transit": [{"circuit": 1, "output": None}]}, "port `None` is not a whole number"),
        ({"ethertype": 5}, "EtherType 5"),
        ({"transit": {}}, "`transit` is not a list"),
        ({"transit": [{"circuit": 7, "output": True}]}, "port `True` is not a whole number"),
    ],
)
def test_invalid_settings_are_refused(settings, problem):
    with pytest.raises(common.SettingsError, match=problem):
        encapsulate.build(settings, Target())
