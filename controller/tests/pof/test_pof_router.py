# SPDX-License-Identifier: Apache-2.0
"""The router of examples/pof, run by the interpreter on packets."""

import ipaddress
import random

import pytest
from frames import checksum, ethernet, ipv4, ipv6, mac, run, text, udp

from shunt_controller.pof import Dialect, ProgramError, TableRef, Target, TableType, instructions
from shunt_controller.pof.messages import FlowMod

import common  # isort: skip
import router  # isort: skip

OWN = {1: bytes.fromhex("0200000001fe"), 2: bytes.fromhex("0200000002fe"), 3: bytes.fromhex("0200000003fe")}
SETTINGS = {
    "ports": {
        "1": {"mac": text(OWN[1]), "address": "10.0.1.254"},
        "2": {"mac": text(OWN[2]), "address": "10.0.2.254"},
        "3": {"mac": text(OWN[3])},
    },
    "routes": [
        {"to": "10.0.0.0/8", "port": 3, "mac": text(mac(3))},
        {"to": "10.0.2.0/24", "port": 2, "mac": text(mac(2)), "low_latency": True},
        {"to": "0.0.0.0/0", "port": 1, "mac": text(mac(1))},
        {"to": "10.0.1.0/24", "port": 1, "mac": text(mac(1)), "low_latency": True},
        {"to": "2001:db8:2::/48", "port": 2, "mac": text(mac(2)), "low_latency": True},
        {"to": "2001:db8::/32", "port": 3, "mac": text(mac(3))},
    ],
    "access": [
        {"action": "permit", "to": "10.0.2.7/32", "protocol": 17, "to_port": 53, "low_latency": False},
        {"action": "deny", "from": "10.0.1.0/24", "protocol": 17, "to_port": 53},
        {"action": "deny", "to": "2001:db8:2::bad/128"},
    ],
}
BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)


def routed(frame: bytes, own: bytes, next_hop: bytes) -> bytes:
    """Returns the frame that a router sends, computed without the program."""
    head = bytearray(frame[14:])
    if frame[12:14] == b"\x08\x00":
        head[8] -= 1
        head[10:12] = b"\0\0"
        head[10:12] = checksum(bytes(head[:20])).to_bytes(2)
    else:
        head[7] -= 1
    return next_hop + own + frame[12:14] + bytes(head)


def packet(destination: str, ttl: int = 64, source: str = "10.0.1.1", port: int = 80, own: bytes = OWN[1], **more) -> bytes:
    return ethernet(own, mac(1), 0x0800, ipv4(source, destination, ttl, 17, udp(1024, port), **more))


def packet6(destination: str, hop_limit: int = 64, own: bytes = OWN[1]) -> bytes:
    source = ipaddress.IPv6Address("2001:db8:1::1").packed
    return ethernet(own, mac(1), 0x86DD, ipv6(source, ipaddress.IPv6Address(destination).packed, hop_limit, 17, udp(1, 2)))


ROUTED = [
    (packet("10.0.2.9"), 2, 2, True),
    (packet("10.0.2.7", port=53), 2, 2, False),
    (packet("10.0.3.9"), 3, 3, False),
    (packet("192.0.2.1", ttl=2), 1, 1, False),
    (packet("10.0.2.9", ttl=255), 2, 2, True),
    (packet6("2001:db8:2::9"), 2, 2, True),
    (packet6("2001:db8:3::9", hop_limit=2), 3, 3, False),
]


@BOTH
@pytest.mark.parametrize(("frame", "port", "host", "low_latency"), ROUTED)
def test_packets_are_routed(dialect, frame, port, host, low_latency):
    switch = run(router, SETTINGS, dialect)
    result = switch.run(frame, 1)
    assert result.sent == [(port, routed(frame, OWN[port], mac(host)))], result.dropped
    assert result.low_latency == low_latency
    assert result.to_controller == []
    assert len(result.hits) == 3


DROPPED = [
    (packet("10.0.2.9", ttl=1), "DROP"),
    (packet("10.0.2.9", ttl=0), "DROP"),
    (packet("10.0.2.9", port=53), "DROP"),
    (packet6("2001:db8:2::bad"), "DROP"),
    (packet6("2001:db8:2::9", hop_limit=1), "DROP"),
    (packet6("2001:db9::1"), "no entry in table LPM 1"),
    (packet("10.0.2.9", own=mac(7)), "no entry in table MM 0"),
    (ethernet(OWN[1], mac(1), 0x1234, bytes(60)), "no entry in table MM 0"),
    # A header with options.
    (ethernet(OWN[1], mac(1), 0x0800, b"\x46" + bytes(60)), "no entry in table MM 1"),
]


@BOTH
@pytest.mark.parametrize(("frame", "reason"), DROPPED)
def test_packets_are_dropped(dialect, frame, reason):
    result = run(router, SETTINGS, dialect).run(frame, 1)
    assert (result.sent, result.dropped) == ([], reason)


@BOTH
def test_a_rule_with_ports_ignores_later_fragments(dialect):
    frame = packet("10.0.2.9", port=53, fragment=100)
    assert run(router, SETTINGS, dialect).run(frame, 1).sent[0][0] == 2


def test_a_default_may_deny():
    settings = SETTINGS | {"default": "deny"}
    assert run(router, settings, Dialect.V1_4).run(packet("10.0.2.9"), 1).dropped == "DROP"
    assert run(router, settings, Dialect.V1_4).run(packet("10.0.2.7", port=53), 1).sent


@BOTH
def test_random_routes_are_those_of_a_plain_list(dialect):
    rng = random.Random(23)
    nets = {ipaddress.ip_network((rng.randrange(1 << 32), n), strict=False) for n in range(33) for _ in range(4)}
    routes = [{"to": str(net), "port": rng.randrange(1, 4), "mac": text(mac(rng.randrange(256)))} for net in sorted(nets)]
    switch = run(router, {"ports": SETTINGS["ports"], "routes": routes}, dialect)
    for net in [*nets, *rng.sample(sorted(nets), 50)]:
        address = net.network_address + rng.randrange(min(net.num_addresses, 1 << 20))
        covering = [route for route in routes if address in ipaddress.ip_network(route["to"])]
        best = max(covering, key=lambda route: ipaddress.ip_network(route["to"]).prefixlen)
        frame = packet(str(address), ttl=rng.randrange(2, 256))
        expected = routed(frame, OWN[best["port"]], bytes.fromhex(best["mac"].replace(":", "")))
        assert switch.run(frame, 1).sent == [(best["port"], expected)]


@BOTH
def test_gotos_ascend_and_marks_are_those_of_the_settings(dialect):
    program = router.build(SETTINGS, Target(dialect))
    marks: dict[tuple[int, int], list[int]] = {}
    for flow in (message for message in program.messages() if isinstance(message, FlowMod)):
        for goto in flow.instructions:
            if isinstance(goto, instructions.GotoTable):
                assert goto.table > program.target.number(TableRef(TableType(flow.table_type), flow.table))
        marks.setdefault((int(flow.table_type), flow.table), []).append(int(flow.low_latency))
    # Unstated is 0, low-latency 1, normal 2. ARP is the last entry of MM 0.
    assert marks[0, 0] == [1] * 6 + [2]
    # The expired TTL, three rules (or one for IPv6), the default.
    assert marks[0, 1] == [2, 2, 2, 1]
    assert marks[0, 2] == [2, 2, 1]
    assert (marks[1, 0], marks[1, 1]) == ([2, 1, 2, 1], [1, 2])
    without = router.build(SETTINGS, Target(dialect, low_latency=False)).messages()
    assert {message.low_latency for message in without if isinstance(message, FlowMod)} == {0}


def test_base_offsets_move_only_in_the_new_dialect():
    for dialect, moves in ((Dialect.V1_2, 0), (Dialect.V1_4, 14)):
        program = router.build(SETTINGS, Target(dialect))
        gotos = [step for entry in program.entries for step in entry.instructions if isinstance(step, instructions.GotoTable)]
        assert {goto.packet_offset for goto in gotos if goto.table < 3} == {moves}


def test_arp_requests_are_answered():
    body = bytes.fromhex("0001080006040001") + mac(1) + bytes((10, 0, 1, 1)) + bytes(6)
    asked = ethernet(b"\xff" * 6, mac(1), 0x0806, body + bytes((10, 0, 1, 254)) + bytes(18))
    switch = run(router, SETTINGS, Dialect.V1_4)
    assert switch.run(asked, 1).to_controller == [(1, asked)]
    reply = bytes.fromhex("0001080006040002") + OWN[1] + bytes((10, 0, 1, 254)) + mac(1) + bytes((10, 0, 1, 1))
    own = int.from_bytes(OWN[1])
    assert router.arp_reply(asked, "10.0.1.254", own) == ethernet(mac(1), OWN[1], 0x0806, reply)
    assert router.arp_reply(asked, "10.0.1.253", own) is None
    assert router.arp_reply(asked[:40], "10.0.1.254", own) is None
    assert router.arp_reply(asked.replace(b"\x06\x04\0\x01", b"\x06\x04\0\x02"), "10.0.1.254", own) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"routes": [{"to": "10.0.0.0/33", "port": 1, "mac": text(mac(1))}]}, "10.0.0.0/33"),
        ({"routes": [{"to": "10.0.0.1/24", "port": 1, "mac": text(mac(1))}]}, "host bits set"),
        ({"routes": [{"to": "10.0.0.0/8", "port": 9, "mac": text(mac(1))}]}, "port 9, which is not in `ports`"),
        ({"routes": [{"to": "10.0.0.0/8", "port": 1, "mac": "02"}]}, "`02` is not a MAC address"),
        ({"routes": [{"to": "10.0.0.0/8", "port": 1}]}, "item 1 of `routes` lacks `mac`"),
        ({"ports": {"1": {"mac": text(mac(1)), "address": "10.0"}}}, "port 1: "),
        ({"ports": []}, "`ports` is not an object"),
        ({"ports": {"1": {"mac": text(mac(1))}, "0x1": {"mac": text(mac(2))}}}, "port 1 is listed twice"),
        ({"ports": {"1": {"mac": text(mac(1)), "address": 5}}}, "port 1: `5` is not an IPv4 address"),
        ({"routes": [{"to": 5, "port": 1, "mac": text(mac(1))}]}, "`5` is not an IP network"),
        ({"access": [{"action": "maybe"}]}, "actions are permit and deny"),
        ({"access": [{"action": "deny", "to_port": 1}]}, "needs the protocol 6"),
        ({"access": [{"action": "deny", "from": "10.0.0.0/8", "to": "2001:db8::/32"}]}, "IPv4 and IPv6"),
        ({"acces": []}, "unknown key `acces`"),
    ],
)
def test_invalid_settings_are_refused(change, problem):
    with pytest.raises(common.SettingsError, match=problem):
        router.build(SETTINGS | change, Target())


def test_equal_routes_are_refused():
    routes = [{"to": "10.0.0.0/8", "port": port, "mac": text(mac(port))} for port in (1, 2)]
    with pytest.raises(ProgramError, match=r"two entries of table routes4 \(LPM 0\) have the same match"):
        router.build(SETTINGS | {"routes": routes}, Target())


def test_a_switch_without_the_tables_is_refused():
    with pytest.raises(ProgramError, match="the switch has 1 LPM tables"):
        router.build(SETTINGS, Target(tables=(10, 1, 5, 20)))
