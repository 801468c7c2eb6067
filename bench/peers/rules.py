# SPDX-License-Identifier: Apache-2.0
"""Rule sets of 2,012 flows in three tables, generated from a seed.

Table 0 accepts packets to eight router MAC addresses and drops multicast. Table 1 is an access list of 1,000
rules, of which the first match applies; a tenth of them deny. Table 2 has 1,000 prefixes, of which the
longest match applies. The hard access list has more than 300 combinations of masks, the easy one at most
eight.
"""

import dataclasses
import ipaddress
import random

SEED = 20261122
RULES = 1000
HOSTS = 200
MACS = ["02:00:00:00:01:%02x" % number for number in range(8)]
SERVICES = [22, 25, 53, 80, 110, 143, 443, 993, 1521, 3306, 5060, 8080]
TCP, UDP = 6, 17
FULL = 0xFFFF
ETHERNET_BYTES = 14


@dataclasses.dataclass(frozen=True)
class Family:
    """IPv4 or IPv6: weights of prefix lengths, and the ranges that addresses are drawn from."""

    version: int
    bits: int
    routed: tuple
    sources: tuple
    # `routes` and `source_lengths` map prefix lengths to weights. `longer` maps the number of bits by which a
    # destination prefix exceeds the length of its route to a weight; `None` stands for a host.
    routes: dict
    source_lengths: dict
    longer: dict

    def inside(self, draw, prefix):
        """Draws an address within a prefix."""
        value, length = prefix
        return value | draw.getrandbits(self.bits - length) if length < self.bits else value

    def cut(self, address, length):
        """Returns the prefix of an address."""
        return (address >> (self.bits - length) << (self.bits - length), length)

    def text(self, prefix):
        """Formats a prefix in the flow syntax."""
        kind = ipaddress.IPv6Address if self.version == 6 else ipaddress.IPv4Address
        return "%s/%d" % (kind(prefix[0]), prefix[1])


IPV6 = Family(
    version=6,
    bits=128,
    routed=(0x2001 << 112, 16),
    sources=(0x2400 << 112, 16),
    routes={32: 15, 36: 5, 40: 8, 44: 8, 48: 47, 56: 5, 64: 12},
    source_lengths={0: 15, 32: 15, 48: 25, 56: 10, 64: 20, 128: 15},
    longer={0: 50, 16: 25, None: 25},
)
IPV4 = Family(
    version=4,
    bits=32,
    routed=(0, 0),
    sources=(10 << 24, 8),
    routes={12: 1, 14: 2, 16: 10, 18: 4, 19: 6, 20: 8, 21: 7, 22: 10, 23: 8, 24: 44},
    source_lengths={0: 15, 8: 10, 16: 25, 24: 30, 32: 20},
    longer={0: 50, 4: 25, None: 25},
)
FAMILIES = {6: IPV6, 4: IPV4}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule of the access list. Prefixes are (value, length), ports are (value, mask), and protocol 0 stands
    for any protocol."""

    source: tuple
    destination: tuple
    protocol: int
    source_port: tuple
    destination_port: tuple
    allows: bool = True

    def masks(self):
        """Returns the masks of the fields that the rule examines."""
        ports = (self.source_port[1], self.destination_port[1])
        return (self.source[1], self.destination[1], bool(self.protocol), *ports)


class RuleSet:
    """Routes and access list of an address family, in the hard or the easy form."""

    def __init__(self, family, hard, seed=SEED):
        self.family, self.hard = family, hard
        self.draw = random.Random("%d/%d/%s" % (seed, family.version, hard))
        self.routes = self._routes()
        self.rules = self._rules()

    def _weighted(self, choices):
        return self.draw.choices(list(choices), list(choices.values()))[0]

    def _routes(self):
        routes = {}
        while len(routes) < RULES:
            address = self.family.inside(self.draw, self.family.routed)
            if self.family.version == 6 or 1 <= address >> 24 < 224:
                routes[self.family.cut(address, self._weighted(self.family.routes))] = None
        return list(routes)

    def _rules(self):
        hosts = [self.family.inside(self.draw, self.family.sources) for _ in range(HOSTS)]
        rules = {}
        while len(rules) < RULES:
            rule = self._hard_rule(hosts) if self.hard else self._easy_rule(hosts)
            if rule.source[1] or rule.destination[1]:
                rules.setdefault(rule, self.draw.random() >= 0.1)
        return [dataclasses.replace(rule, allows=allows) for rule, allows in rules.items()]

    def _hard_rule(self, hosts):
        source = self.family.cut(self.draw.choice(hosts), self._weighted(self.family.source_lengths))
        route = self.draw.choice(self.routes)
        destination = (0, 0)
        if self.draw.random() >= 0.1:
            longer = self._weighted(self.family.longer)
            bits = self.family.bits
            length = bits if longer is None else min(bits, route[1] + longer)
            destination = self.family.cut(self.family.inside(self.draw, route), length)
        protocol = self._weighted({TCP: 60, UDP: 30, 0: 10})
        ports = self._ports() if protocol else ((0, 0), (0, 0))
        return Rule(source, destination, protocol, *ports)

    def _ports(self):
        source, destination = (0, 0), (0, 0)
        kind = self._weighted({"any": 20, "exact": 60, "masked": 20})
        if kind == "exact":
            destination = (self._service(), FULL)
        elif kind == "masked":
            mask = self.draw.choice([0xFF00, 0xFC00, 0xFFF0])
            destination = (self.draw.getrandbits(16) & mask, mask)
        if self.draw.random() < 0.1:
            mask = self.draw.choice([0xFC00, 0xFF00])
            source = (self.draw.getrandbits(16) & mask, mask)
        return source, destination

    def _easy_rule(self, hosts):
        six = self.family.version == 6
        source = self.family.cut(self.draw.choice(hosts), self.draw.choice((48, 64) if six else (24, 32)))
        inside = self.family.inside(self.draw, self.draw.choice(self.routes))
        destination = self.family.cut(inside, self.draw.choice((64, 128) if six else (24, 32)))
        port = (self._service(), FULL) if self.draw.random() < 0.7 else (0, 0)
        return Rule(source, destination, self.draw.choice((TCP, TCP, UDP)), (0, 0), port)

    def _service(self):
        return self.draw.choice(SERVICES + [self.draw.randrange(1024, 65536)])

    def combinations(self):
        """Returns the number of combinations of masks in the access list."""
        return len({rule.masks() for rule in self.rules})

    def lines(self, rewrites, ours=False):
        """Returns the flows. With `ours`, port masks are slices, because OpenFlow 1.3 cannot mask ports."""
        version = self.family.version
        address = "ipv6" if version == 6 else "nw"
        kind = "0x86dd" if version == 6 else "0x0800"
        yield from ("table=0,priority=100,dl_dst=%s,dl_type=%s,actions=goto_table:1" % (mac, kind) for mac in MACS)
        yield "table=0,priority=50,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop"
        yield "table=0,priority=1,actions=drop"
        for number, rule in enumerate(self.rules):
            parts = ["table=1", "priority=%d" % (2000 - number), self._protocol(rule.protocol)]
            for end, prefix in (("src", rule.source), ("dst", rule.destination)):
                if prefix[1]:
                    parts.append("%s_%s=%s" % (address, end, self.family.text(prefix)))
            for end, offset, port in (("src", 0, rule.source_port), ("dst", 16, rule.destination_port)):
                if port[1] == FULL:
                    parts.append("tp_%s=%d" % (end, port[0]))
                elif port[1]:
                    field = "slice(l4,%d,16)" % offset if ours else "tp_" + end
                    parts.append("%s=%#x/%#x" % (field, *port))
            parts.append("actions=" + ("goto_table:2" if rule.allows else "drop"))
            yield ",".join(parts)
        yield "table=1,priority=1,actions=goto_table:2"
        for number, route in enumerate(self.routes):
            parts = ["table=2", "priority=%d" % (1000 + route[1]), self._protocol(0)]
            parts += ["%s_dst=%s" % (address, self.family.text(route)), "actions="]
            yield ",".join(parts) + (rewrite(number) if rewrites else "") + "output:2"
        yield "table=2,priority=1,actions=drop"

    def pof_lines(self):
        """Returns the same router as a POF program: the flows into which Shunt translates its entries.

        No entry uses a parser. The goto of table 0 moves the base to the IP header, from which all further
        slices are counted. An entry names all fields of its table, some with an empty mask. Entries of table 0
        drop packets that a parser would refuse: IPv4 packets with options, and IP packets of another version.
        """
        six = self.family.version == 6
        fixed, protocol, ttl = ("0,4", "48,8", "56,8") if six else ("0,8", "72,8", "64,8")
        bits = self.family.bits
        ends = [(64, bits), (192, bits), (320, 16), (336, 16)] if six else [(96, 32), (128, 32), (160, 16), (176, 16)]
        ends = ["slice(base,%d,%d)" % end for end in ends]
        for mac in MACS:
            match = "slice(base,0,48)=%s,slice(base,96,16)=%s" % ("0x" + mac.replace(":", ""), "0x86dd" if six else "0x0800")
            yield "table=0,priority=100,%s,actions=move_base(%d),goto_table:1" % (match, ETHERNET_BYTES)
        for place, rule in enumerate(self.rules):
            values = [self._masked(rule.source), self._masked(rule.destination), rule.source_port, rule.destination_port]
            parts = ["table=1", "priority=%d" % (2000 - place)]
            parts.append("slice(base,%s)=%#x" % (fixed, 6 if six else 0x45))
            parts.append("slice(base,%s)=%#x/%#x" % (protocol, rule.protocol, 0xFF if rule.protocol else 0))
            parts += ["%s=%#x/%#x" % (end, *value) for end, value in zip(ends, values)]
            yield ",".join(parts) + ",actions=" + ("goto_table:2" if rule.allows else "drop")
        yield "table=1,priority=1,slice(base,%s)=%#x,actions=goto_table:2" % (fixed, 6 if six else 0x45)
        for place, route in enumerate(self.routes):
            match = "table=2,priority=%d,%s=%#x/%#x" % (1000 + route[1], ends[1], *self._masked(route))
            hop, own = "0x02aa0000%04x" % place, "0x02bb00000001"
            actions = ["modify_field:-1->slice(base,%s)" % ttl]
            actions += [] if six else ["calculate_checksum(80,16,0,160)"]
            actions += ["move_base(-%d)" % ETHERNET_BYTES, "set_field:%s->slice(base,0,48)" % hop]
            actions += ["set_field:%s->slice(base,48,48)" % own, "output:2"]
            yield match + ",actions=" + ",".join(actions)

    def _masked(self, prefix):
        """Returns the value and the mask of a prefix."""
        return prefix[0], ((1 << prefix[1]) - 1) << (self.family.bits - prefix[1])

    def _protocol(self, protocol):
        six = self.family.version == 6
        return {TCP: "tcp", UDP: "udp", 0: "ipv" if six else "ip"}[protocol] + ("6" if six else "")


def rewrite(number):
    """Returns the actions with which a router rewrites a packet before output."""
    hop = "02:aa:00:00:%02x:%02x" % (number >> 8, number & 255)
    return "set_field:%s->eth_dst,set_field:02:bb:00:00:00:01->eth_src,dec_ttl," % hop


class MacTable:
    """Forwarding by destination MAC address, with one station per flow. The table is static, or the switch
    learns it."""

    def __init__(self, stations, learned=False):
        self.learned = learned
        self.stations = ["02:00:00:%02x:%02x:%02x" % (n >> 16, n >> 8 & 255, n & 255) for n in range(1, stations + 1)]

    def lines(self, _rewrites=False, ours=False):
        """Returns the flows."""
        del ours
        if self.learned:
            yield "table=0,priority=1,actions=NORMAL"
            return
        yield from ("table=0,priority=100,dl_dst=%s,actions=output:2" % mac for mac in self.stations)
