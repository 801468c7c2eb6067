# SPDX-License-Identifier: Apache-2.0
"""Sections of the configuration of stateless forwarding (docs/openflow-extensions.md, "Stateless forwarding")."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, NamedTuple

from shunt_controller.experimenter import need, read

TABLES = 0xFFFFFFF9
"""Port number OFPP_TABLE: the value of a label that leads to the switch's own tables."""

_HEADER = struct.Struct("!HH")
_TYPES = struct.Struct("!HHHH")
_NUMBER = struct.Struct("!I")
_PAIR = struct.Struct("!II")
_BANK = struct.Struct("!BBBxII")
_GATES = struct.Struct("!B3xIIII")
_GATE = struct.Struct("!IIB3x")

_SECTION_BYTES_MAX = 0xFFFF - 24
"""Maximum number of bytes that the sections of a message have together."""


class _Single:
    """Base class of the sections that occur at most once in a configuration."""

    kind: ClassVar[int]

    @property
    def place(self) -> tuple[int, int]:
        """Returns the key of the section within a configuration. The sections of a message have distinct keys."""
        return self.kind, 0


@dataclass(frozen=True)
class Types(_Single):
    """EtherTypes of tagged packets."""

    keyflow: int = 0x88B5
    polka: int = 0x8842
    tf: int = 0xFF1F
    tf_wide: int = 0x88B6

    kind: ClassVar[int] = 1

    def content(self) -> bytes:
        all_of = (self.keyflow, self.polka, self.tf, self.tf_wide)
        need(all(0 <= one < 1 << 16 for one in all_of), "an EtherType must fit 16 bits")
        return _TYPES.pack(*all_of)

    @classmethod
    def of_content(cls, content: bytes) -> "Types":
        need(len(content) == _TYPES.size, f"EtherTypes in {len(content)} bytes, not {_TYPES.size}")
        return cls(*_TYPES.unpack(content))


@dataclass(frozen=True)
class Trusted(_Single):
    """Ports that lead to other switches. Tagged packets are accepted only at these ports."""

    ports: frozenset[int]

    kind: ClassVar[int] = 2

    def __init__(self, ports: Iterable[int]) -> None:
        object.__setattr__(self, "ports", frozenset(ports))

    def content(self) -> bytes:
        return b"".join(_NUMBER.pack(_number(port)) for port in sorted(self.ports))

    @classmethod
    def of_content(cls, content: bytes) -> "Trusted":
        return cls(port for (port,) in _all(_NUMBER, content))


@dataclass(frozen=True)
class Mtu(_Single):
    """Maximum number of bytes after the Ethernet header, by port. Other ports have no limit."""

    bytes_of: Mapping[int, int]

    kind: ClassVar[int] = 3

    def content(self) -> bytes:
        return _pairs(self.bytes_of)

    @classmethod
    def of_content(cls, content: bytes) -> "Mtu":
        return cls(dict(_pairs_of(content)))


@dataclass(frozen=True)
class Residues:
    """Residue configuration of a switch. `labels` map to ports or :data:`TABLES`; `backups` replace ports
    that are down."""

    id: int
    labels: Mapping[int, int]
    backups: Mapping[int, int] = field(default_factory=dict)
    polynomial: bool = False

    def content(self, epoch: int) -> bytes:
        """Returns the bytes of the bank with the epoch, in the format that both kinds of banks have."""
        need(2 <= self.id < 1 << 32, f"an ID is 2 to 0xffffffff, not {self.id}")
        head = _BANK.pack(epoch, self.polynomial, 1, self.id, len(self.labels))
        return head + _pairs(self.labels) + _pairs(self.backups)

    def plus(self, rest: "Residues") -> "Residues":
        """Adds the rest of a bank that was too long for one message."""
        need((rest.id, rest.polynomial) == (self.id, self.polynomial), f"the parts of a bank have different IDs, {self.id} and {rest.id}")
        labels, backups = {**self.labels, **rest.labels}, {**self.backups, **rest.backups}
        return Residues(self.id, labels, backups, self.polynomial)

    @staticmethod
    def of_content(content: bytes) -> tuple[int, "Residues | None"]:
        """Reads the epoch and the bank."""
        epoch, arithmetic, present, modulus, count = read(_BANK, content)
        need(arithmetic <= 1 and present <= 1, f"a bank with arithmetic {arithmetic}, present {present}")
        if not present:
            need(len(content) == _BANK.size, "a bank with present = 0 has content")
            return epoch, None
        pairs = _pairs_of(content[_BANK.size :])
        need(count <= len(pairs), f"{count} labels in {len(content)} bytes")
        return epoch, Residues(modulus, dict(pairs[:count]), dict(pairs[count:]), arithmetic == 1)


@dataclass(frozen=True)
class Bank:
    """KeyFlow's bank of an epoch. `residues` is None if the epoch has no bank."""

    epoch: int
    residues: Residues | None

    kind: ClassVar[int] = 4

    @property
    def place(self) -> tuple[int, int]:
        return self.kind, self.epoch

    def content(self) -> bytes:
        need(self.epoch in (0, 1), f"an epoch is 0 or 1, not {self.epoch}")
        return self.residues.content(self.epoch) if self.residues else _BANK.pack(self.epoch, 0, 0, 0, 0)

    @classmethod
    def of_content(cls, content: bytes) -> "Bank":
        return cls(*Residues.of_content(content))


@dataclass(frozen=True)
class Polka(_Single):
    """freeRtr's PolKA, whose labels are indices of next nodes. `residues` is None if it is not configured."""

    residues: Residues | None

    kind: ClassVar[int] = 5

    def content(self) -> bytes:
        return self.residues.content(0) if self.residues else _BANK.pack(0, 0, 0, 0, 0)

    @classmethod
    def of_content(cls, content: bytes) -> "Polka":
        return cls(Residues.of_content(content)[1])


class Flag(IntEnum):
    """Property of a gate."""

    NONE = 0
    SERVER = 1
    EXTERNAL = 2
    ASSISTS = 3


class Gate(NamedTuple):
    """Gate of a port."""

    number: int
    flag: Flag = Flag.NONE


@dataclass(frozen=True)
class GateMap:
    """Gates of a switch by port, with the parameters for computing the output gate. If a difference d is 0,
    there are no gates of that kind."""

    down_d: int
    up_d: int
    external_d: int
    server_gate_max: int
    ports: Mapping[int, Gate]


@dataclass(frozen=True)
class Gates(_Single):
    """The gates of Tag-and-Forward. `gates` is None if Tag-and-Forward is not configured."""

    gates: GateMap | None

    kind: ClassVar[int] = 6

    def content(self) -> bytes:
        if self.gates is None:
            return _GATES.pack(0, 0, 0, 0, 0)
        own = self.gates
        numbers = [_number(n) for n in (own.down_d, own.up_d, own.external_d, own.server_gate_max)]
        rows = (_GATE.pack(_number(port), _number(gate.number), gate.flag) for port, gate in sorted(own.ports.items()))
        return _GATES.pack(1, *numbers) + b"".join(rows)

    @classmethod
    def of_content(cls, content: bytes) -> "Gates":
        present, down_d, up_d, external_d, server_gate_max = read(_GATES, content)
        rows = list(_all(_GATE, content[_GATES.size :]))
        need(present <= 1 and (present or not rows), f"a gates section has present = {present} and {len(rows)} gates")
        need(all(flag <= Flag.ASSISTS for _, _, flag in rows), "a gate has an unknown flag")
        gates = {port: Gate(number, Flag(flag)) for port, number, flag in rows}
        return cls(GateMap(down_d, up_d, external_d, server_gate_max, gates) if present else None)


Section = Types | Trusted | Mtu | Bank | Polka | Gates
"""A section of any type."""

KNOWN: dict[int, type[Section]] = {cls.kind: cls for cls in (Types, Trusted, Mtu, Bank, Polka, Gates)}


def pack(sections: Sequence[Section]) -> bytes:
    """Returns the bytes of all sections of a message."""
    places = [section.place for section in sections]
    need(len(set(places)) == len(places), "a message has a section twice")
    packed = b""
    for section in sections:
        content = section.content()
        length = _HEADER.size + len(content)
        need(length <= _SECTION_BYTES_MAX, f"a section of {length} bytes does not fit a message")
        packed += _padded(_HEADER.pack(section.kind, length) + content)
    need(len(packed) <= _SECTION_BYTES_MAX, f"sections of {len(packed)} bytes do not fit a message; send some of them in another message")
    return packed


def unpack(data: bytes) -> list[Section]:
    """Reads the sections of a message."""
    sections: list[Section] = []
    while data:
        kind, length = read(_HEADER, data)
        need(kind in KNOWN, f"the section type {kind} is unknown")
        need(_HEADER.size <= length <= len(data), f"a section of {length} bytes has only {len(data)} bytes left in the message")
        sections.append(KNOWN[kind].of_content(data[_HEADER.size : length]))
        data = data[-(-length // 8) * 8 :]
    return sections


def _padded(data: bytes) -> bytes:
    return data.ljust(-(-len(data) // 8) * 8, b"\0")


def _number(value: int) -> int:
    need(0 <= value < 1 << 32, f"{value} does not fit 32 bits")
    return value


def _pairs(pairs: Mapping[int, int]) -> bytes:
    return b"".join(_PAIR.pack(_number(key), _number(value)) for key, value in sorted(pairs.items()))


def _pairs_of(content: bytes) -> list[tuple[int, int]]:
    return [(key, value) for key, value in _all(_PAIR, content)]


def _all(layout: struct.Struct, content: bytes) -> Iterable[tuple[int, ...]]:
    need(len(content) % layout.size == 0, f"{len(content)} bytes are not a multiple of {layout.size}")
    return layout.iter_unpack(content)
