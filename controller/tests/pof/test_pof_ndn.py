# SPDX-License-Identifier: Apache-2.0
"""The NDN router of examples/pof, run by the interpreter on packets of all lengths."""

import random

import pytest
from frames import ethernet, mac, run

from shunt_controller.pof import Dialect, ProgramError, Target

import common  # isort: skip
import ndn  # isort: skip

BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
SETTINGS = {
    "routes": [
        {"name": "/edu", "port": 2, "consumers": 1, "low_latency": True},
        {"name": "/edu/video", "port": 3, "consumers": 4, "low_latency": True},
        {"name": "/edu/video/a-longer-component", "port": 5},
        {"name": "/%65du/a%2fb", "port": 6},
    ]
}


def tlv(kind: int, value: bytes) -> bytes:
    """Returns a TLV with a length of 1 or 3 bytes."""
    length = bytes((len(value),)) if len(value) < 253 else b"\xfd" + len(value).to_bytes(2)
    return bytes((kind,)) + length + value


def packet(kind: int, *components: bytes, more: bytes = b"\x0a\x04abcd") -> bytes:
    """Returns an Interest (5) or Data (6), with what follows the name."""
    name = tlv(7, b"".join(tlv(8, component) for component in components))
    return ethernet(bytes.fromhex("01005e0017aa"), mac(1), 0x8624, tlv(kind, name + more))


NAMES = [
    (5, (b"edu",), 2, True),
    (5, (b"edu", b"x"), 2, True),
    (5, (b"edu", b"video"), 3, True),
    (5, (b"edu", b"video", b"\x00"), 3, True),
    (5, (b"edu", b"videos"), 2, True),
    (5, (b"edu", b"vide"), 2, True),
    (5, (b"edu", b"video", b"a-longer-component"), 5, False),
    (5, (b"edu", b"video", b"a-longer-component", b"seg=1"), 5, False),
    (5, (b"edu", b"video", b"a-longer-componenT"), 3, True),
    (5, (b"edu", b"a/b"), 6, False),
    (6, (b"edu",), 1, True),
    (6, (b"edu", b"video", b"a-longer-component"), 4, True),
    (5, (b"edu", b"x" * 200), 2, True),
]


@BOTH
@pytest.mark.parametrize("size", [0, 6, 200, 250, 1000])
@pytest.mark.parametrize(("kind", "name", "port", "low_latency"), NAMES)
def test_names_are_matched_by_their_longest_prefix(dialect, size, kind, name, port, low_latency):
    frame = packet(kind, *name, more=bytes(size))
    result = run(ndn, SETTINGS, dialect).run(frame, 1)
    assert result.sent == [(port, frame)], result.dropped
    assert result.low_latency == low_latency


DROPPED = [
    packet(5, b"com"),
    packet(5, b"ed"),
    packet(5, b"edut"),
    packet(5),
    packet(7, b"edu"),
    # A name of more than 252 bytes, a length of 5 bytes, another EtherType, a truncated packet.
    packet(5, b"edu", b"x" * 252),
    ethernet(mac(2), mac(1), 0x8624, b"\x05\xfe\0\0\0\x09" + tlv(7, tlv(8, b"edu"))),
    packet(5, b"edu").replace(b"\x86\x24", b"\x86\x25"),
    packet(5, b"edu", more=b"")[:-1],
]


@BOTH
@pytest.mark.parametrize("frame", DROPPED)
def test_other_packets_are_dropped(dialect, frame):
    assert run(ndn, SETTINGS, dialect).run(frame, 1).sent == []


@BOTH
def test_the_root_matches_all_names(dialect):
    settings = {"routes": [*SETTINGS["routes"], {"name": "/", "port": 9, "consumers": 8}]}
    switch = run(ndn, settings, dialect)
    for name, port in (((), 9), ((b"a",), 9), ((b"com", b"x" * 100), 9), ((b"edu",), 2)):
        frame = packet(5, *name, more=b"")
        assert switch.run(frame, 1).sent == [(port, frame)]
    only = run(ndn, {"routes": [{"name": "/", "port": 9}]}, dialect)
    assert only.run(packet(5, b"x" * 100), 1).sent[0][0] == 9


@BOTH
def test_random_names_agree_with_a_plain_list(dialect):
    rng = random.Random(7)
    words = [b"a", b"b", b"ab", b"abc"]

    def name() -> tuple[bytes, ...]:
        return tuple(rng.choice(words) for _ in range(rng.randrange(1, 5)))

    routes: dict[tuple[bytes, ...], int] = {}
    while len({len(ndn.encoded("/" + b"/".join(one).decode())) for one in routes} | {0}) < 6:
        routes[name()] = rng.randrange(1, 200)
    settings = {"routes": [{"name": "/" + b"/".join(one).decode(), "port": port} for one, port in routes.items()]}
    lengths = {len(ndn.encoded(route["name"])) for route in settings["routes"]}
    assert 3 <= len(lengths) <= 10
    switch = run(ndn, settings, dialect)
    reached = set()
    for _ in range(500):
        asked = name()
        prefixes = [one for one in routes if asked[: len(one)] == one]
        expected = [(routes[max(prefixes, key=len)], packet(5, *asked))] if prefixes else []
        assert switch.run(packet(5, *asked), 1).sent == expected
        reached.add(len(max(prefixes, key=len)) if prefixes else 0)
    assert len(reached) >= 3


def test_blocks_cover_exactly_their_numbers():
    for first in range(0, 253, 7):
        for last in range(first, 253, 3):
            covered = [n for value, mask in ndn.blocks(first, last) for n in range(256) if n & mask == value]
            assert sorted(covered) == list(range(first, last + 1))
            assert all(value & ~mask == 0 for value, mask in ndn.blocks(first, last))


@pytest.mark.parametrize(
    ("name", "problem"),
    [("edu", "does not begin with /"), ("/a//b", "a component of 0 bytes"), ("/" + "a" * 253, "253 bytes"), ("/" + "a" * 127, "129 bytes")],
)
def test_invalid_names_are_refused(name, problem):
    with pytest.raises(common.SettingsError, match=problem):
        ndn.build({"routes": [{"name": name, "port": 1}]}, Target())


def test_limits_of_the_switch_are_reported():
    routes = [{"name": "/" + "a" * n, "port": 1, "consumers": 2} for n in range(1, 7)]
    with pytest.raises(ProgramError, match="the switch has 10 LPM tables"):
        ndn.build({"routes": routes}, Target())
    with pytest.raises(ProgramError, match="a key of 160 bits; the switch supports 128"):
        ndn.build({"routes": [{"name": "/" + "a" * 18, "port": 1}]}, Target(key_bits=(128,) * 4))
    with pytest.raises(common.SettingsError, match="two routes have the same name"):
        ndn.build({"routes": [{"name": "/a", "port": 1}, {"name": "/%61/", "port": 2}]}, Target())
