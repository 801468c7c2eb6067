#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A POF controller that forwards video conferences (SEADP) and messages of vehicles (WSM) with access lists.

The program has the three stages of these scenarios in the paper about the composite pipeline. The layouts are
those of docs/wire-formats.md:

  MM 0   Ethernet  destination MAC, EtherType                   continue by EtherType
  MM 1   seadp     whole form, over IPv6 with next header 0x99   permit: continue in LPM 0; deny: drop
  MM 2   short     short form, EtherType 0xff99                  permit: continue in EM 0; deny: drop
  MM 3   wsm       WAVE short messages, EtherType 0x88dc         permit: continue in EM 0; deny: drop
  LPM 0  routes    IPv6 destination                              destination MAC, output
  EM 0   hosts     destination MAC                               destination MAC if given, output

Fields (offset and length in bits, from byte 14):

  whole form  IPv6 next header 48,8  destination 192,128  ID header's next header 320,8 (1: SEADP)
              destination EID 512,128 and 640,32  destination port 688,16  version and type 704,8
  short form  next header 0,8  destination EID 96,64  destination port 176,16  version and type 192,8
  WSM         version 0,8 (2)  PSID 8,32  channel 56,8 (at this place after a PSID of 4 bytes)

In dialect 1.4.0.015, the goto from MM 0 moves the base offset to byte 14, and MOVE_PACKET_OFFSET moves it back
to the first byte. In dialect 1.2, all offsets count from the first byte.

Settings (JSON):

  {"macs":    ["02:00:00:00:00:00/28"],
   "seadp":   [{"action": "permit", "eid": "00112233445566778899aabbccddeeff00112233/64", "port": 5000,
                "type": "data"}, {"action": "permit", "eid": "0011223344556677"}, ...],
   "wsm":     [{"action": "permit", "psid": 32}, {"action": "permit", "psid": 2113664, "channel": 172}, ...],
   "routes":  [{"to": "2001:db8:2::/48", "port": 2, "mac": "02:00:00:00:00:02", "low_latency": true}, ...],
   "hosts":   [{"mac": "02:00:00:00:00:02", "port": 2, "low_latency": true}, ...],
   "default": "deny"}

MM 0 accepts the destinations in `macs`. An EID of 40 hex digits belongs to the whole form, one of 16 digits to
the short form; `/N` compares its first N bits. The types of SEADP are request, data and signed. PSIDs are
numbers, which the messages contain in P-encoding with 1 to 4 bytes. A rule with a channel needs a PSID of 4
bytes (2113664 and above). The first matching rule decides. A packet is low-latency if all of its entries are:
MM 0 is, a rule is unless it has "low_latency": false, and routes and hosts are if they have
"low_latency": true.
"""

import string
from typing import Any

import common
from common import Settings, need

from shunt_controller import pof

IPV6, SEADP_SHORT, WSM = 0x86DD, 0xFF99, 0x88DC
DESTINATION, ETHERTYPE = pof.field(0, 48), pof.field(96, 16)
ETHERNET_BYTES = 14
ID_PROTOCOL, SEADP, WSM_VERSION = 0x99, 1, 2
# Type of SEADP, in the low 4 bits of its byte.
TYPES = {"request": 0x8, "data": 0x4, "signed": 0x2}
RULES_MAX = 10000
# Digits of an EID in hex, and the form of SEADP with this EID.
FORMS = {40: "whole", 16: "short"}


def p_encoded(psid: int) -> tuple[int, int]:
    """Returns a PSID as it is in a message, and its number of bytes.

    The first bits are 0, 10, 110 or 1110. The numbers of each length begin after those of the shorter one."""
    start = 0
    for count, (prefix, bits) in enumerate(((0, 7), (0b10, 14), (0b110, 21), (0b1110, 28)), 1):
        if psid < start + (1 << bits):
            return prefix << bits | psid - start, count
        start += 1 << bits
    raise common.SettingsError(f"PSID {psid}; the largest is {start - 1}")


def eid(text: Any) -> tuple[str, int, int]:
    """Returns the form of SEADP, and the EID as a number and a mask."""
    digits, _, length = str(text).partition("/")
    need(all(digit in string.hexdigits for digit in digits), f"EID `{digits}` is not hexadecimal")
    need(len(digits) in FORMS, f"EID `{digits}` has {len(digits)} digits; it needs 40 or 16")
    bits = 4 * len(digits)
    kept = common.number(length, 0, bits, "length of an EID") if length else bits
    mask = (1 << bits) - (1 << bits - kept)
    return FORMS[len(digits)], common.number(f"0x{digits}", 0, (1 << bits) - 1, "EID") & mask, mask


class Stages:
    """The tables of the program."""

    def __init__(self, program: pof.Program) -> None:
        self.program = program
        self.layer = pof.Layer(program.target, ETHERNET_BYTES)
        field, mm = self.layer.field, pof.TableType.MM
        self.whole_fields = [field(48, 8), field(320, 8), field(512, 128), field(640, 32), field(688, 16), field(704, 8)]
        self.short_fields = [field(0, 8), field(96, 64), field(176, 16), field(192, 8)]
        self.wsm_fields = [field(0, 8), field(8, 32), field(56, 8)]
        self.address = field(192, 128)

        def table(kind: pof.TableType, number: int, name: str, fields: list[pof.Field], size: int) -> pof.Table:
            return program.table(pof.TableRef(kind, number), name, fields, size)

        self.ethernet = table(mm, 0, "Ethernet", [DESTINATION, ETHERTYPE], 1000)
        self.whole = table(mm, 1, "seadp", self.whole_fields, RULES_MAX + 1)
        self.short = table(mm, 2, "short", self.short_fields, RULES_MAX + 1)
        self.wsm = table(mm, 3, "wsm", self.wsm_fields, RULES_MAX + 1)
        self.routes = table(pof.TableType.LPM, 0, "routes", [self.address], 100_000)
        self.hosts = table(pof.TableType.EM, 0, "hosts", [DESTINATION], 100_000)

    def add_rule(self, table: pof.Table, masks: list[tuple[int, int]], rule: Settings, priority: int) -> None:
        """Adds a rule of an access list: values and masks of the table's fields, and what to do."""
        matches = [pof.Match(field, value, mask) for field, (value, mask) in zip(table.fields, masks, strict=True)]
        permit = common.permits(rule["action"])
        steps: list[pof.Instruction]
        if not permit:
            steps = [pof.ApplyActions((pof.Drop(),))]
        elif table is self.whole:
            steps = [self.program.goto(self.routes)]
        else:
            steps = [*self.layer.back(), self.program.goto(self.hosts)]
        low_latency = permit and common.flag(rule, "low_latency", True)
        self.program.add(table, matches, steps, priority=priority, low_latency=low_latency)

    def add_seadp(self, rule: Settings, priority: int) -> None:
        """Adds a rule for SEADP."""
        form, value, mask = eid(rule["eid"])
        port, kind = (0, 0), (0, 0)
        if "port" in rule:
            port = common.number(rule["port"], 0, 65535, "port of SEADP"), 0xFFFF
        if "type" in rule:
            need(isinstance(rule["type"], str) and rule["type"] in TYPES, f"type `{rule['type']}`; types are {', '.join(TYPES)}")
            kind = TYPES[rule["type"]], 0x0F
        if form == "short":
            self.add_rule(self.short, [(SEADP, 0xFF), (value, mask), port, kind], rule, priority)
            return
        first, last = (value >> 32, mask >> 32), (value & 0xFFFFFFFF, mask & 0xFFFFFFFF)
        self.add_rule(self.whole, [(ID_PROTOCOL, 0xFF), (SEADP, 0xFF), first, last, port, kind], rule, priority)

    def add_wsm(self, rule: Settings, priority: int) -> None:
        """Adds a rule for WSM."""
        encoded, count = p_encoded(common.number(rule["psid"], 0, 1 << 32, "PSID"))
        shift = 8 * (4 - count)
        channel = (0, 0)
        if "channel" in rule:
            need(count == 4, f"PSID {rule['psid']} has {count} bytes; a rule with a channel needs one of 4 bytes")
            channel = common.number(rule["channel"], 0, 255, "channel"), 0xFF
        psid = encoded << shift, 0xFFFFFFFF >> shift << shift
        self.add_rule(self.wsm, [(WSM_VERSION, 0xFF), psid, channel], rule, priority)

    def add_leaf(self, table: pof.Table, match: pof.Match, priority: int, leaf: Settings, mac: int | None) -> None:
        """Adds a route or a host."""
        actions: list[pof.Action] = [] if mac is None else [pof.SetField.to(DESTINATION, mac)]
        actions.append(self.program.output(common.port(leaf["port"])))
        back = self.layer.back() if table is self.routes else ()
        steps = [*back, *pof.apply(actions, self.program.target)]
        low_latency = common.flag(leaf, "low_latency", False)
        self.program.add(table, [match], steps, priority=priority, low_latency=low_latency)


def build(settings: Settings, target: pof.Target) -> pof.Program:
    """Returns the program for a switch."""
    common.check_keys(settings, "the file", "macs", "seadp wsm routes hosts default")
    program = pof.Program(target)
    stages = Stages(program)
    kinds = ((IPV6, stages.whole), (SEADP_SHORT, stages.short), (WSM, stages.wsm))
    need(isinstance(settings["macs"], list), "`macs` is not a list")
    for value, mask in map(common.mac_prefix, settings["macs"]):
        for ethertype, table in kinds:
            matches = [pof.Match(DESTINATION, value, mask), pof.Match.exact(ETHERTYPE, ethertype)]
            goto = program.goto(table, stages.layer.base)
            program.add(stages.ethernet, matches, [goto], priority=mask.bit_count(), low_latency=True)
    seadp = common.listed(settings, "seadp", "action eid", "port type low_latency")
    wsm = common.listed(settings, "wsm", "action psid", "channel low_latency")
    need(max(len(seadp), len(wsm)) <= RULES_MAX, f"an access list has more than {RULES_MAX} rules")
    for place, rule in enumerate(seadp):
        stages.add_seadp(rule, RULES_MAX - place)
    for place, rule in enumerate(wsm):
        stages.add_wsm(rule, RULES_MAX - place)
    default = {"action": settings.get("default", "deny")}
    # Also the default requires the values that identify the protocol.
    stages.add_rule(stages.whole, [(ID_PROTOCOL, 0xFF), (SEADP, 0xFF), *[(0, 0)] * 4], default, 0)
    stages.add_rule(stages.short, [(SEADP, 0xFF), *[(0, 0)] * 3], default, 0)
    stages.add_rule(stages.wsm, [(WSM_VERSION, 0xFF), *[(0, 0)] * 2], default, 0)
    for route in common.listed(settings, "routes", "to port mac", "low_latency"):
        net = common.network(route["to"])
        need(net.version == 6, f"route `{route['to']}` is not IPv6")
        match = pof.Match.prefix(stages.address, int(net.network_address), net.prefixlen)
        stages.add_leaf(stages.routes, match, net.prefixlen, route, common.mac(route["mac"]))
    for host in common.listed(settings, "hosts", "mac port", "next_hop low_latency"):
        match = pof.Match.exact(DESTINATION, common.mac(host["mac"]))
        next_hop = common.mac(host["next_hop"]) if "next_hop" in host else None
        stages.add_leaf(stages.hosts, match, 0, host, next_hop)
    return program


if __name__ == "__main__":
    common.main(__doc__ or "", lambda settings: common.Installer(settings, build))
