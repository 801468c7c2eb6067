#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A POF controller that makes a switch a router for IPv4 and IPv6.

The program has the three stages of the server scenario in the paper about the composite pipeline:

  MM 0   Ethernet  destination MAC, EtherType      own address: continue by EtherType
  MM 1   list4     IPv4 access list                permit: continue; deny, or TTL 0 or 1: drop
  MM 2   list6     IPv6 access list                the same
  LPM 0  routes4   IPv4 destination                TTL - 1, checksum, MAC addresses, output
  LPM 1  routes6   IPv6 destination                hop limit - 1, MAC addresses, output

The switch has no parser. All tables name bits of these headers (offset and length in bits):

  Ethernet, from the first byte      destination 0,48  source 48,48  EtherType 96,16
  IPv4, from byte 14                 version and length 0,8  fragment offset 51,13  TTL 64,8  protocol 72,8
                                     checksum 80,16  source 96,32  destination 128,32
                                     ports of TCP and UDP 160,16  176,16
  IPv6, from byte 14                 version 0,4  next header 48,8  hop limit 56,8
                                     source 64,128  destination 192,128  ports 320,16  336,16

MODIFY_FIELD adds -1 to the TTL. CALCULATE_CHECKSUM then sums the 160 bits of the IPv4 header. In dialect
1.4.0.015, the goto from MM 0 moves the base offset to byte 14, and MOVE_PACKET_OFFSET moves it back before the
MAC addresses are written. In dialect 1.2, which cannot move it back, all offsets count from the first byte.

Settings (JSON):

  {"ports":   {"1": {"mac": "02:00:00:00:01:fe", "address": "10.0.1.254"}, ...},
   "routes":  [{"to": "10.0.2.0/24", "port": 2, "mac": "02:00:00:00:00:02", "low_latency": true}, ...],
   "access":  [{"action": "deny", "from": "10.0.1.0/24", "to": "10.0.2.2/32", "protocol": 17,
                "from_port": 53, "to_port": 53}, ...],
   "default": "permit"}

The first matching rule of `access` decides. A packet is low-latency if all of its entries are: MM 0 and rules
are, unless a rule has "low_latency": false, and a route is if it has "low_latency": true. The router answers
ARP requests for the addresses of its ports (dialect 1.4.0.015 only). It does not resolve addresses itself, and
does not answer IPv6 neighbour solicitations: IPv6 hosts need a static neighbour entry for the router.

Not forwarded: IPv4 packets with options, because the number of summed bits is constant. Rules with ports do
not apply to later fragments, or after IPv6 extension headers. Other rules do not examine the ports: Shunt
matches them with packets that end before the ports, which other switches may drop.
"""

import contextlib
import ipaddress
from typing import Any

import common
from common import Settings, need

from shunt_controller import pof

IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
DESTINATION, SOURCE, ETHERTYPE = pof.field(0, 48), pof.field(48, 48), pof.field(96, 16)
ETHERNET_BYTES = 14
# Priorities of the access lists. Rules are between the expired TTL and the default.
EXPIRED, DEFAULT = 60000, 0
RULES_MAX = 10000


def rules(settings: Settings) -> list[Settings]:
    """Returns the access list."""
    keys = "from to protocol from_port to_port low_latency"
    made = common.listed(settings, "access", "action", keys)
    need(len(made) <= RULES_MAX, f"{len(made)} rules; the maximum is {RULES_MAX}")
    for rule in made:
        ends = [common.network(rule[key]) for key in ("from", "to") if key in rule]
        need(len({end.version for end in ends}) <= 1, "a rule has addresses of IPv4 and IPv6")
        rule["versions"] = {end.version for end in ends} or {4, 6}
        has_port = "from_port" in rule or "to_port" in rule
        need(not has_port or rule.get("protocol") in (6, 17), "a rule with ports needs the protocol 6 (TCP) or 17 (UDP)")
    return made


class Family:
    """Places of the fields of IPv4 or IPv6, and the program's tables for them."""

    def __init__(self, program: pof.Program, version: int) -> None:
        self.program, self.version = program, version
        self.layer = pof.Layer(program.target, ETHERNET_BYTES)
        field = self.layer.field
        if version == 4:
            # The header must have no options. Ports are only in the first fragment.
            self.fixed, self.fixed_value, self.fragment = field(0, 8), 0x45, field(51, 13)
            self.ttl, self.protocol, self.source, self.destination = field(64, 8), field(72, 8), field(96, 32), field(128, 32)
            self.ports = field(160, 16), field(176, 16)
        else:
            self.fixed, self.fixed_value, self.fragment = field(0, 4), 6, None
            self.protocol, self.ttl, self.source, self.destination = field(48, 8), field(56, 8), field(64, 128), field(192, 128)
            self.ports = field(320, 16), field(336, 16)
        fragment = [self.fragment] if self.fragment else []
        fields = [self.fixed, *fragment, self.ttl, self.protocol, self.source, self.destination, *self.ports]
        number = 0 if version == 4 else 1
        self.access = program.table(pof.TableRef(pof.TableType.MM, 1 + number), f"list{version}", fields, RULES_MAX + 2)
        self.routes = program.table(
            pof.TableRef(pof.TableType.LPM, number), f"routes{version}", [self.destination], 100_000
        )

    def matches(self, conditions: dict[pof.Field, pof.Match]) -> list[pof.Match]:
        """Returns conditions on the fields of the access list."""
        conditions = {self.fixed: pof.Match.exact(self.fixed, self.fixed_value), **conditions}
        return [conditions.get(field, pof.Match.any(field)) for field in self.access.fields]

    def add_access(self, listed: list[Settings], default: bool) -> None:
        """Adds the entries of the access list."""
        # TTL 0 or 1.
        expired = {self.ttl: pof.Match.prefix(self.ttl, 0, 7)}
        self._add(self.matches(expired), False, EXPIRED, False)
        for place, rule in enumerate(rule for rule in listed if self.version in rule["versions"]):
            conditions = self._conditions(rule)
            permit = common.permits(rule["action"])
            low_latency = permit and common.flag(rule, "low_latency", True)
            self._add(self.matches(conditions), permit, EXPIRED - 1 - place, low_latency)
        self._add(self.matches({}), default, DEFAULT, default)

    def _add(self, matches: list[pof.Match], permit: bool, priority: int, low_latency: bool) -> None:
        drop = pof.ApplyActions((pof.Drop(),))
        instruction = self.program.goto(self.routes) if permit else drop
        self.program.add(self.access, matches, [instruction], priority=priority, low_latency=low_latency)

    def _conditions(self, rule: Settings) -> dict[pof.Field, pof.Match]:
        made = {}
        for key, field in (("from", self.source), ("to", self.destination)):
            if key in rule:
                net = common.network(rule[key])
                made[field] = pof.Match.prefix(field, int(net.network_address), net.prefixlen)
        if "protocol" in rule:
            made[self.protocol] = pof.Match.exact(self.protocol, common.number(rule["protocol"], 0, 255, "protocol"))
        for key, field in zip(("from_port", "to_port"), self.ports, strict=True):
            if key in rule:
                made[field] = pof.Match.exact(field, common.number(rule[key], 0, 65535, key))
                if self.fragment:
                    made[self.fragment] = pof.Match.exact(self.fragment, 0)
        return made

    def add_route(self, route: Settings, own_mac: int) -> None:
        """Adds the entry of a route."""
        net, target = common.network(route["to"]), self.program.target
        change: list[pof.Action] = [pof.ModifyField(self.ttl, -1)]
        if self.version == 4:
            bit = self.layer.bit
            change.append(pof.CalculateChecksum(bit(80), 16, bit(0), 160))
        send: list[pof.Action] = [
            pof.SetField.to(DESTINATION, common.mac(route["mac"])),
            pof.SetField.to(SOURCE, own_mac),
            self.program.output(common.port(route["port"])),
        ]
        if back := self.layer.back():
            steps = [*pof.apply(change, target), *back, *pof.apply(send, target)]
        else:
            steps = [*pof.apply(change + send, target)]
        match = pof.Match.prefix(self.destination, int(net.network_address), net.prefixlen)
        low_latency = common.flag(route, "low_latency", False)
        self.program.add(self.routes, [match], steps, priority=net.prefixlen, low_latency=low_latency)


def build(settings: Settings, target: pof.Target) -> pof.Program:
    """Returns the program for a switch."""
    common.check_keys(settings, "the file", "ports routes", "access default")
    ports = read_ports(settings)
    default = common.permits(settings.get("default", "permit"))
    program = pof.Program(target)
    first = program.table(pof.TableRef(pof.TableType.MM, 0), "Ethernet", [DESTINATION, ETHERTYPE], 1000)
    families = {version: Family(program, version) for version in (4, 6)}
    for own in sorted({common.mac(item["mac"]) for item in ports.values()}):
        for ethertype, family in ((IPV4, families[4]), (IPV6, families[6])):
            matches = [pof.Match.exact(DESTINATION, own), pof.Match.exact(ETHERTYPE, ethertype)]
            goto = program.goto(family.access, family.layer.base)
            program.add(first, matches, [goto], priority=20, low_latency=True)
    arp = [pof.Match.any(DESTINATION), pof.Match.exact(ETHERTYPE, ARP)]
    program.add(first, arp, [pof.ApplyActions((pof.ToController(1),))], priority=10, low_latency=False)
    access = rules(settings)
    for family in families.values():
        family.add_access(access, default)
    for route in common.listed(settings, "routes", "to port mac", "low_latency"):
        port = common.port(route["port"])
        need(port in ports, f"a route leads to port {port}, which is not in `ports`")
        families[common.network(route["to"]).version].add_route(route, common.mac(ports[port]["mac"]))
    return program


def read_ports(settings: Settings) -> dict[int, Settings]:
    """Returns the settings of the ports by number."""
    need(isinstance(settings["ports"], dict), "`ports` is not an object")
    ports: dict[int, Settings] = {}
    for key, value in settings["ports"].items():
        number = common.port(key)
        need(number not in ports, f"port {number} is listed twice")
        ports[number] = check_port(key, value)
    return ports


def check_port(key: str, value: Any) -> Settings:
    """Returns the settings of a port after checking them."""
    item = common.check_keys(value, f"port {key}", "mac", "address")
    if "address" in item:
        need(isinstance(item["address"], str), f"port {key}: `{item['address']}` is not an IPv4 address")
        try:
            ipaddress.IPv4Address(item["address"])
        except ValueError as error:
            raise common.SettingsError(f"port {key}: {error}") from None
    return item


def arp_reply(request: bytes, address: str, own_mac: int) -> bytes | None:
    """Returns the answer to an ARP request for an address, or None if the packet is no such request.

    ARP, from byte 14: hardware type and protocol 0,32, lengths 32,16, operation 48,16, sender 64,80 (MAC and
    IPv4 address), target 144,80."""
    body = request[ETHERNET_BYTES:]
    asked = bytes.fromhex("0001080006040001")
    if len(body) < 28 or request[12:14] != ARP.to_bytes(2) or body[:8] != asked:
        return None
    if body[24:28] != ipaddress.IPv4Address(address).packed:
        return None
    own, sender = own_mac.to_bytes(6), body[8:18]
    answer = bytes.fromhex("0001080006040002") + own + body[24:28] + sender
    return sender[:6] + own + ARP.to_bytes(2) + answer


class Router(common.Installer):
    """Installs the program, and answers ARP requests."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, build)
        self.ports = read_ports(settings)

    def packet_in(self, switch: pof.Switch, message: Any) -> None:
        """Answers an ARP request."""
        item = self.ports.get(message.port)
        if not item or "address" not in item or switch.dialect is pof.Dialect.V1_2:
            return
        reply = arp_reply(message.data, item["address"], common.mac(item["mac"]))
        if reply:
            # Hosts repeat requests, so an answer may be dropped.
            with contextlib.suppress(pof.BusyError):
                switch.packet_out(reply, [pof.Output(switch.target.port(message.port))])


if __name__ == "__main__":
    common.main(__doc__ or "", Router)
