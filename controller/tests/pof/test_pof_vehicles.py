# SPDX-License-Identifier: Apache-2.0
"""SEADP and WSM forwarding of examples/pof, run by the interpreter on packets of docs/wire-formats.md."""

import ipaddress

import pytest
from frames import ethernet, ipv6, mac, run, text

from shunt_controller.pof import Dialect, Target

import common  # isort: skip
import vehicles  # isort: skip

EID = bytes.fromhex("00112233445566778899aabbccddeeff00112233")
SHORT_EID = bytes.fromhex("0011223344556677")
SETTINGS = {
    "macs": ["02:00:00:00:00:00/28"],
    "seadp": [
        {"action": "deny", "eid": EID.hex() + "/64", "port": 5001},
        {"action": "permit", "eid": EID.hex(), "port": 5000, "type": "data"},
        {"action": "permit", "eid": EID.hex() + "/64", "type": "request", "low_latency": False},
        {"action": "permit", "eid": SHORT_EID.hex(), "port": 5000},
    ],
    "wsm": [
        {"action": "permit", "psid": 0x20},
        {"action": "permit", "psid": 0x80 + 5, "low_latency": False},
        {"action": "deny", "psid": 0x204080 + 7, "channel": 174},
        {"action": "permit", "psid": 0x204080 + 7},
    ],
    "routes": [
        {"to": "2001:db8:2::/48", "port": 2, "mac": text(mac(0x22)), "low_latency": True},
        {"to": "::/0", "port": 3, "mac": text(mac(0x33))},
    ],
    "hosts": [
        {"mac": text(mac(2)), "port": 2, "low_latency": True},
        {"mac": text(mac(3)), "port": 3, "next_hop": text(mac(0x33)), "low_latency": True},
    ],
}
BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)


def seadp(port: int, kind: int) -> bytes:
    """Returns a SEADP header of 20 bytes."""
    return b"\x13\x88" + port.to_bytes(2) + bytes((0x10 | kind, 20, 0x80, 0)) + bytes(12)


def whole(port: int, kind: int, eid: bytes = EID, destination: str = "2001:db8:2::1", protocol: int = 0x99, first: int = 1) -> bytes:
    """Returns a frame of the whole form."""
    ident = bytes((first, 44, 0, 9)) + b"\xe5" * 20 + eid
    addresses = ipaddress.IPv6Address("2001:db8::1").packed, ipaddress.IPv6Address(destination).packed
    frame = ethernet(mac(0xFE), mac(1), 0x86DD, ipv6(*addresses, 64, protocol, ident + seadp(port, kind) + b"chunk"))
    assert (frame[78:98], frame[100:102], frame[102] & 0xF) == (eid, port.to_bytes(2), kind)
    return frame


def short(port: int, kind: int, destination: bytes = mac(2), eid: bytes = SHORT_EID) -> bytes:
    """Returns a frame of the short form."""
    frame = ethernet(destination, mac(1), 0xFF99, bytes((1, 20, 0, 9)) + b"\xe5" * 8 + eid + seadp(port, kind) + bytes(6))
    assert (len(frame), frame[26:34], frame[36:38]) == (60, eid, port.to_bytes(2))
    return frame


def wsm(psid: bytes, channel: int = 172, destination: bytes = mac(2), version: int = 2) -> bytes:
    """Returns a WAVE short message."""
    rest = bytes((15, 1, channel, 16, 1, 12, 4, 1, 20, 0x80, 0, 20)) + b"Z" * 20
    return ethernet(destination, mac(1), 0x88DC, bytes((version,)) + psid + rest)


FORWARDED = [
    (whole(5000, 4), 2, 0x22, True),
    (whole(77, 8, eid=EID[:8] + bytes(12)), 2, 0x22, False),
    (whole(5000, 4, destination="2001:db9::1"), 3, 0x33, False),
    (short(5000, 4), 2, 2, True),
    (short(5000, 8, destination=mac(3)), 3, 0x33, True),
    (wsm(b"\x20"), 2, 2, True),
    (wsm(b"\x80\x05", destination=mac(3)), 3, 0x33, False),
    (wsm(b"\xe0\0\0\x07"), 2, 2, True),
]


@BOTH
@pytest.mark.parametrize(("frame", "port", "next_hop", "low_latency"), FORWARDED)
def test_permitted_packets_are_forwarded(dialect, frame, port, next_hop, low_latency):
    result = run(vehicles, SETTINGS, dialect).run(frame, 1)
    assert result.sent == [(port, mac(next_hop) + frame[6:])], result.dropped
    assert result.low_latency == low_latency
    assert len(result.hits) == 3


DROPPED = [
    (whole(5001, 4), "DROP"),
    (whole(5000, 2), "DROP"),
    (whole(5000, 4, eid=EID[:19] + b"\x34"), "DROP"),
    # Not SEADP: another protocol after IPv6, or after the ID header.
    (whole(5000, 4, protocol=17), "no entry in table MM 1"),
    (whole(5000, 4, first=6), "no entry in table MM 1"),
    (short(5001, 4), "DROP"),
    (short(5000, 4, destination=mac(9)), "no entry in table EM 0"),
    (wsm(b"\x21"), "DROP"),
    (wsm(b"\x80\x06"), "DROP"),
    (wsm(b"\xe0\0\0\x07", channel=174), "DROP"),
    (wsm(b"\x20", version=3), "no entry in table MM 3"),
    (wsm(b"\x20", destination=bytes.fromhex("030000000002")), "no entry in table MM 0"),
]


@BOTH
@pytest.mark.parametrize(("frame", "reason"), DROPPED)
def test_other_packets_are_dropped(dialect, frame, reason):
    result = run(vehicles, SETTINGS, dialect).run(frame, 1)
    assert (result.sent, result.dropped) == ([], reason)


def test_a_default_may_permit():
    switch = run(vehicles, SETTINGS | {"default": "permit"}, Dialect.V1_4)
    assert switch.run(wsm(b"\x21"), 1).sent
    assert not switch.run(wsm(b"\x20", version=3), 1).sent


def test_psids_are_encoded_as_in_ieee_1609_3():
    # Limits of each length, as the standard lists them.
    for psid, data in (
        (0x00, "00"),
        (0x7F, "7f"),
        (0x80, "8000"),
        (0x407F, "bfff"),
        (0x4080, "c00000"),
        (0x20407F, "dfffff"),
        (0x204080, "e0000000"),
        (0x1020407F, "efffffff"),
    ):
        assert vehicles.p_encoded(psid) == (int(data, 16), len(data) // 2)
    with pytest.raises(common.SettingsError, match="the largest is 270549119"):
        vehicles.p_encoded(0x10204080)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"seadp": [{"action": "permit", "eid": "00"}]}, "2 digits; it needs 40 or 16"),
        ({"seadp": [{"action": "permit", "eid": SHORT_EID.hex() + "/65"}]}, "length of an EID 65"),
        ({"seadp": [{"action": "permit", "eid": SHORT_EID.hex(), "type": "x"}]}, "types are request, data, signed"),
        ({"wsm": [{"action": "permit", "psid": 1, "channel": 172}]}, "needs one of 4 bytes"),
        ({"routes": [{"to": "10.0.0.0/8", "port": 1, "mac": text(mac(1))}]}, "is not IPv6"),
        ({"macs": ["02:00:00:00:00:00/49"]}, "prefix length of a MAC address 49"),
        ({"seadp": [{"action": "permit", "eid": SHORT_EID.hex(), "type": ["data"]}]}, "types are request, data, signed"),
        ({"seadp": [{"action": "permit", "eid": "0_11223344556677"}]}, "is not hexadecimal"),
        ({"macs": ["+2:00:00:00:00:00"]}, "is not a MAC address"),
        ({"macs": [5]}, "is not a MAC address"),
        ({"macs": "02:00:00:00:00:00"}, "`macs` is not a list"),
    ],
)
def test_invalid_settings_are_refused(change, problem):
    with pytest.raises(common.SettingsError, match=problem):
        vehicles.build(SETTINGS | change, Target())
