#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A POF controller that forwards packets of Named Data Networking (NDN) by the longest prefix of their names.

An NDN packet over Ethernet (EtherType 0x8624) is a tree of TLVs: type, length, value. A length below 253 is one
byte. The byte 253 announces a length of 2 bytes.

  byte 14    type of the packet: 5 Interest, 6 Data
  byte 15    its length: one byte (the name is at byte 16), or 253 and 2 bytes (the name is at byte 18)
  name       type 7, length in one byte, components
  component  type 8, length in one byte, bytes

The components of /edu/a are the bytes 08 03 65 64 75 08 01 61. As each component begins with its length, these
bytes are the beginning of a name if and only if /edu/a is a prefix of the name. So names are matched by an
LPM table on their bytes. A packet that ends before a field of a table may not match, so each table has as
many bytes of the name as the names that it handles have at least:

  MM 0    packet       EtherType, type, first byte of the length   base offset to the name (byte 16 or 18)
  MM 1    Interests    type and length of the name                 base offset to the components; table by length
  MM 2    Data         the same
  LPM 0.. bytes of names of Interests, one table for each length of a configured prefix      output
  LPM k.. bytes of names of Data, likewise                                                   output

Settings (JSON):

  {"routes": [{"name": "/edu/video", "port": 2, "consumers": 1, "low_latency": true}, ...]}

Interests for a prefix leave through `port`, Data through `consumers`, if given. Bytes in names may be written
as %XX. A packet is low-latency if its route is; all other entries are low-latency entries.

Which names are matched: those of up to 252 bytes, by prefixes of whole components of type 8 (no digests, no
typed components). A prefix has at most 128 bytes, and at most as many bits as RESOURCE_REPORT states for the
keys of LPM tables. The prefixes may have half as many different lengths as the switch has LPM tables.

What is missing of an NDN forwarder: a POF switch keeps no state per Interest, so there is no pending Interest
table. Data returns by prefix, Interests are not aggregated, nothing is cached, and hop limits do not change,
because they have no fixed place.
"""

import urllib.parse
from collections.abc import Iterator
from typing import Any, NamedTuple

import common
from common import Settings, need

from shunt_controller import pof

NDN, INTEREST, DATA, NAME, COMPONENT = 0x8624, 5, 6, 7, 8
ETHERTYPE, TYPE, LENGTH = pof.field(96, 16), pof.field(112, 8), pof.field(120, 8)
# Fields of the name, from its first byte.
NAME_TYPE, NAME_LENGTH = pof.field(0, 8), pof.field(8, 8)
SHORT_MAX, TWO_BYTES = 252, 253
PREFIX_BYTES_MAX, CHUNK_BYTES = 128, 16


class Route(NamedTuple):
    """A route: the bytes of its prefix, ports, mark."""

    prefix: bytes
    port: int
    consumers: int | None
    low_latency: bool


def encoded(name: Any) -> bytes:
    """Returns the bytes of the components of a name."""
    need(isinstance(name, str) and name.startswith("/"), f"name `{name}` does not begin with /")
    made = b""
    for part in name.strip("/").split("/") if name != "/" else []:
        value = urllib.parse.unquote_to_bytes(part)
        need(0 < len(value) <= SHORT_MAX, f"name `{name}` has a component of {len(value)} bytes")
        made += bytes((COMPONENT, len(value))) + value
    need(len(made) <= PREFIX_BYTES_MAX, f"name `{name}` has {len(made)} bytes; the maximum is {PREFIX_BYTES_MAX}")
    return made


def blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Returns values and masks of 8 bits that together cover the numbers from `first` to `last`."""
    while first <= last:
        size = first & -first or 1 << 8
        while first + size - 1 > last:
            size >>= 1
        yield first, 0xFF & ~(size - 1)
        first += size


class Direction:
    """Tables for Interests or for Data."""

    def __init__(self, program: pof.Program, kind: int, routes: dict[bytes, tuple[int, bool]], first_table: int) -> None:
        self.program, self.routes = program, routes
        name = "Interests" if kind == INTEREST else "Data"
        number = 1 if kind == INTEREST else 2
        self.names = program.table(pof.TableRef(pof.TableType.MM, number), name, [NAME_TYPE, NAME_LENGTH], 1000)
        self.lengths = sorted({len(prefix) for prefix in routes} - {0})
        self.tables = []
        for place, length in enumerate(self.lengths):
            starts = range(0, length, CHUNK_BYTES)
            fields = [pof.field(8 * at, 8 * min(CHUNK_BYTES, length - at)) for at in starts]
            ref = pof.TableRef(pof.TableType.LPM, first_table + place)
            self.tables.append(program.table(ref, f"{name} {length}", fields, 100_000))

    def add_entries(self) -> None:
        """Adds the entries of all tables."""
        ends = [*self.lengths, SHORT_MAX + 1][1:]
        for table, length, end in zip(self.tables, self.lengths, ends, strict=True):
            self._add_lengths(length, end - 1, [self.program.goto(table, 2)], True)
            for prefix, (port, low_latency) in self.routes.items():
                if len(prefix) <= length:
                    matches = self._matches(table, prefix)
                    self.program.add(
                        table, matches, self._send(port), priority=8 * len(prefix), low_latency=low_latency
                    )
        if b"" in self.routes:
            port, low_latency = self.routes[b""]
            shortest = self.lengths[0] if self.lengths else SHORT_MAX + 1
            self._add_lengths(0, shortest - 1, self._send(port), low_latency)

    def _send(self, port: int) -> list[pof.Instruction]:
        return [*pof.apply([self.program.output(port)], self.program.target)]

    def _add_lengths(self, first: int, last: int, steps: list[pof.Instruction], low_latency: bool) -> None:
        for value, mask in blocks(first, last):
            matches = [pof.Match.exact(NAME_TYPE, NAME), pof.Match(NAME_LENGTH, value, mask)]
            self.program.add(self.names, matches, steps, priority=1, low_latency=low_latency)

    def _matches(self, table: pof.Table, prefix: bytes) -> list[pof.Match]:
        made = []
        for field in table.fields:
            start, size = field.offset // 8, field.length // 8
            part = prefix[start : start + size]
            made.append(pof.Match.prefix(field, int.from_bytes(part.ljust(size, b"\0")), 8 * len(part)))
        return made


def read_routes(settings: Settings) -> list[Route]:
    """Returns the routes."""
    common.check_keys(settings, "the file", "routes")
    made = []
    for item in common.listed(settings, "routes", "name port", "consumers low_latency"):
        consumers = common.port(item["consumers"]) if "consumers" in item else None
        low_latency = common.flag(item, "low_latency", False)
        made.append(Route(encoded(item["name"]), common.port(item["port"]), consumers, low_latency))
    need(len({route.prefix for route in made}) == len(made), "two routes have the same name")
    return made


def build(settings: Settings, target: pof.Target) -> pof.Program:
    """Returns the program for a switch."""
    routes = read_routes(settings)
    interests = {route.prefix: (route.port, route.low_latency) for route in routes}
    data = {route.prefix: (route.consumers, route.low_latency) for route in routes if route.consumers is not None}
    program = pof.Program(target)
    packet = program.table(pof.TableRef(pof.TableType.MM, 0), "packet", [ETHERTYPE, TYPE, LENGTH], 100)
    first = Direction(program, INTEREST, interests, 0)
    second = Direction(program, DATA, data, len(first.lengths))
    for kind, direction in ((INTEREST, first), (DATA, second)):
        is_packet = [pof.Match.exact(ETHERTYPE, NDN), pof.Match.exact(TYPE, kind)]

        def add(length: pof.Match, step: pof.Instruction, priority: int, matches: list[pof.Match] = is_packet) -> None:
            is_goto = isinstance(step, pof.GotoTable)
            program.add(packet, [*matches, length], [step], priority=priority, low_latency=is_goto)

        add(pof.Match.exact(LENGTH, TWO_BYTES), program.goto(direction.names, 18), 3)
        # 254 and 255 announce longer lengths, which no Ethernet frame needs.
        add(pof.Match.prefix(LENGTH, 0xFE, 7), pof.ApplyActions((pof.Drop(),)), 2)
        add(pof.Match.any(LENGTH), program.goto(direction.names, 16), 1)
        direction.add_entries()
    return program


if __name__ == "__main__":
    common.main(__doc__ or "", lambda settings: common.Installer(settings, build))
