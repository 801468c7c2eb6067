# SPDX-License-Identifier: Apache-2.0
"""Actions of stateless forwarding (KeyFlow, PolKA, Tag-and-Forward), and actions that edit packets without a
parser, for os-ken's lists of actions."""

import struct
from typing import Any, ClassVar

from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller import experimenter, fields
from shunt_controller.experimenter import need, read

_KEY_BYTES = (8, 16, 24, 32)
_KEY_HEAD = struct.Struct("!BBH2x")
_TTL = struct.Struct("!B5x16s")
_GATES = struct.Struct("!BxIH6x")
_DISTANCE = struct.Struct("!h4x")
_ADDED = struct.Struct("!HH2x16s")
_RANGE = struct.Struct("!HH2x")
_MODIFIED = struct.Struct("!BxHHi4x")
_COPIED = struct.Struct("!BBHHH6x")
_SUM = struct.Struct("!HHHH6x")
_CUT = struct.Struct("!BxH2x")
_MOVE_BYTES_MAX = 1536
_END_BITS_MAX = 12288


class Action(parser.OFPActionExperimenter):  # type: ignore[misc]
    """Base class of Shunt's actions."""

    subtype: ClassVar[int]

    def __init__(self) -> None:
        super().__init__(experimenter.EXPERIMENTER)
        self.len = len(self.packed()) if type(self).content is Action.content else None

    def content(self) -> bytes:
        """Returns the bytes after the subtype, without the padding."""
        return b""

    def packed(self) -> bytes:
        """Returns the complete action."""
        return experimenter.pack(self.subtype, self.content())

    def serialize(self, buf: Any, offset: int) -> None:
        """Writes the action at an offset. os-ken calls this method."""
        data = self.packed()
        self.len = len(data)
        experimenter.put(data, buf, offset)

    @classmethod
    def of_content(cls, content: bytes) -> "Action":
        """Reads the bytes after the subtype."""
        return cls()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.packed() == other.packed()

    __hash__ = None  # type: ignore[assignment]


class PushKey(Action):
    """Pushes a KeyFlow header with this key (64, 128, 192 or 256 bits), hop limit and epoch."""

    subtype = 1

    def __init__(self, key: int, width_bits: int, hops: int, epoch: int = 0) -> None:
        need(width_bits // 8 in _KEY_BYTES and width_bits % 8 == 0, f"keys have 64, 128, 192 or 256 bits, not {width_bits}")
        need(0 <= key < 1 << width_bits, f"the key {key:#x} does not fit {width_bits} bits")
        need(0 <= hops <= 255, f"a hop limit is 0 to 255, not {hops}")
        need(epoch in (0, 1), f"an epoch is 0 or 1, not {epoch}")
        self.key, self.width_bits, self.hops, self.epoch = key, width_bits, hops, epoch
        super().__init__()

    def content(self) -> bytes:
        length = self.width_bits // 8
        return _KEY_HEAD.pack(self.hops, self.epoch, length) + self.key.to_bytes(length)

    @classmethod
    def of_content(cls, content: bytes) -> "PushKey":
        hops, epoch, length = read(_KEY_HEAD, content)
        key = content[6 : 6 + length]
        need(len(key) == length, f"a key of {length} bytes has only {len(key)} bytes")
        return cls(int.from_bytes(key), 8 * length, hops, epoch)


class PushPolka(Action):
    """Pushes freeRtr's PolKA header with this key (128 bits) and TTL."""

    subtype = 6

    def __init__(self, key: int, ttl: int) -> None:
        need(0 <= key < 1 << 128, f"the key {key:#x} does not fit 128 bits")
        need(0 <= ttl <= 255, f"a TTL is 0 to 255, not {ttl}")
        self.key, self.ttl = key, ttl
        super().__init__()

    def content(self) -> bytes:
        return _TTL.pack(self.ttl, self.key.to_bytes(16))

    @classmethod
    def of_content(cls, content: bytes) -> "PushPolka":
        ttl, key = read(_TTL, content)
        return cls(int.from_bytes(key), ttl)


class PopKey(Action):
    """Pops the KeyFlow or PolKA header."""

    subtype = 2


class PushTf(Action):
    """Pushes a Tag-and-Forward header: queue (3 bits), upward gate (32 bits), downward gate (13 bits)."""

    subtype = 3
    up_bits: ClassVar[int] = 32
    down_bits: ClassVar[int] = 13

    def __init__(self, qid: int, up: int, down: int) -> None:
        for name, value, bits in (("qid", qid, 3), ("up", up, self.up_bits), ("down", down, self.down_bits)):
            need(0 <= value < 1 << bits, f"{name} has {bits} bits; {value:#x} does not fit")
        self.qid, self.up, self.down = qid, up, down
        super().__init__()

    def content(self) -> bytes:
        return _GATES.pack(self.qid, self.up, self.down)

    @classmethod
    def of_content(cls, content: bytes) -> "PushTf":
        return cls(*read(_GATES, content))


class PushTfWide(PushTf):
    """Pushes a wide Tag-and-Forward header: queue (3 bits), upward gate (29 bits), downward gate (16 bits)."""

    subtype = 4
    up_bits = 29
    down_bits = 16


class PopTf(Action):
    """Pops a Tag-and-Forward header of either width."""

    subtype = 5


def _need_range(offset_bits: int, length_bits: int, unit_bits: int = 8) -> None:
    whole = offset_bits % unit_bits == 0 and length_bits % unit_bits == 0 and length_bits > 0 and offset_bits >= 0
    need(whole, f"bits {offset_bits} to {offset_bits + length_bits} are not a range of whole units of {unit_bits} bits")
    need(offset_bits + length_bits <= _END_BITS_MAX, f"a range ends by bit {_END_BITS_MAX}")


def _base_number(base: str) -> int:
    need(base in fields.BASES, f"{base} is not a base; bases are {', '.join(fields.BASES)}")
    return fields.BASES[base]


def _base_name(number: int) -> str:
    names = [name for name, known in fields.BASES.items() if known == number]
    need(bool(names), f"{number} is not the number of a base")
    return names[0]


class MoveBase(Action):
    """Moves the packet's base by a number of bytes; a negative number moves it towards the start."""

    subtype = 7

    def __init__(self, distance_bytes: int) -> None:
        need(abs(distance_bytes) <= _MOVE_BYTES_MAX, f"a base moves by at most {_MOVE_BYTES_MAX} bytes")
        self.distance_bytes = distance_bytes
        super().__init__()

    def content(self) -> bytes:
        return _DISTANCE.pack(self.distance_bytes)

    @classmethod
    def of_content(cls, content: bytes) -> "MoveBase":
        return cls(*read(_DISTANCE, content))


class AddField(Action):
    """Inserts whole bytes with this value; the offset counts from the packet's base."""

    subtype = 8

    def __init__(self, offset_bits: int, length_bits: int, value: int) -> None:
        _need_range(offset_bits, length_bits)
        need(length_bits <= 128 and 0 <= value < 1 << length_bits, f"{value:#x} does not fit {length_bits} bits")
        self.offset_bits, self.length_bits, self.value = offset_bits, length_bits, value
        super().__init__()

    def content(self) -> bytes:
        return _ADDED.pack(self.offset_bits, self.length_bits, self.value.to_bytes(16))

    @classmethod
    def of_content(cls, content: bytes) -> "AddField":
        offset_bits, length_bits, value = read(_ADDED, content)
        return cls(offset_bits, length_bits, int.from_bytes(value))


class DeleteField(Action):
    """Removes whole bytes; the offset counts from the packet's base."""

    subtype = 9

    def __init__(self, offset_bits: int, length_bits: int) -> None:
        _need_range(offset_bits, length_bits)
        self.offset_bits, self.length_bits = offset_bits, length_bits
        super().__init__()

    def content(self) -> bytes:
        return _RANGE.pack(self.offset_bits, self.length_bits)

    @classmethod
    def of_content(cls, content: bytes) -> "DeleteField":
        return cls(*read(_RANGE, content))


class ModifyField(Action):
    """Adds a number to a slice of at most 32 bits; the result wraps."""

    subtype = 10

    def __init__(self, base: str, offset_bits: int, length_bits: int, increment: int) -> None:
        _need_range(offset_bits, length_bits, 1)
        need(length_bits <= 32, f"a modified slice has at most 32 bits, not {length_bits}")
        need(-(1 << 31) <= increment < 1 << 31, f"the increment {increment} has more than 32 bits")
        self.base_number, self.offset_bits, self.length_bits = _base_number(base), offset_bits, length_bits
        self.increment = increment
        super().__init__()

    def content(self) -> bytes:
        return _MODIFIED.pack(self.base_number, self.offset_bits, self.length_bits, self.increment)

    @classmethod
    def of_content(cls, content: bytes) -> "ModifyField":
        base, offset_bits, length_bits, increment = read(_MODIFIED, content)
        return cls(_base_name(base), offset_bits, length_bits, increment)


class CopyField(Action):
    """Copies a slice to another slice of the same length. A source and a target are a base and an offset."""

    subtype = 11

    def __init__(self, source: tuple[str, int], target: tuple[str, int], length_bits: int) -> None:
        for _, offset_bits in (source, target):
            _need_range(offset_bits, length_bits, 1)
        need(length_bits <= 128, f"a copied slice has at most 128 bits, not {length_bits}")
        self.source, self.target, self.length_bits = source, target, length_bits
        self.base_numbers = _base_number(source[0]), _base_number(target[0])
        super().__init__()

    def content(self) -> bytes:
        return _COPIED.pack(*self.base_numbers, self.source[1], self.target[1], self.length_bits)

    @classmethod
    def of_content(cls, content: bytes) -> "CopyField":
        source, target, source_bits, target_bits, length_bits = read(_COPIED, content)
        return cls((_base_name(source), source_bits), (_base_name(target), target_bits), length_bits)


class CalculateChecksum(Action):
    """Writes the one's complement checksum of some bytes to a field of 8, 16 or 32 bits. All offsets count from
    the packet's base."""

    subtype = 12

    def __init__(self, offset_bits: int, length_bits: int, start_bits: int, covered_bits: int) -> None:
        _need_range(offset_bits, length_bits)
        _need_range(start_bits, covered_bits)
        need(length_bits in (8, 16, 32), f"a checksum has 8, 16 or 32 bits, not {length_bits}")
        self.numbers = offset_bits, length_bits, start_bits, covered_bits
        super().__init__()

    def content(self) -> bytes:
        return _SUM.pack(*self.numbers)

    @classmethod
    def of_content(cls, content: bytes) -> "CalculateChecksum":
        return cls(*read(_SUM, content))


class CutFront(Action):
    """Removes all bytes before a place, which is counted from the base "packet" or "base". The packet's base is
    then its first byte."""

    subtype = 13

    def __init__(self, base: str, count_bytes: int) -> None:
        need(base in ("packet", "base"), f"{base} is not packet or base")
        need(0 <= count_bytes <= _MOVE_BYTES_MAX, f"at most {_MOVE_BYTES_MAX} bytes are cut, not {count_bytes}")
        self.base_number, self.count_bytes = _base_number(base), count_bytes
        super().__init__()

    def content(self) -> bytes:
        return _CUT.pack(self.base_number, self.count_bytes)

    @classmethod
    def of_content(cls, content: bytes) -> "CutFront":
        base, count_bytes = read(_CUT, content)
        return cls(_base_name(base), count_bytes)


EDITS = (MoveBase, AddField, DeleteField, ModifyField, CopyField, CalculateChecksum, CutFront)
"""Actions that edit packets. They are allowed in apply-actions and packet-outs."""

KNOWN: dict[int, type[Action]] = {
    c.subtype: c for c in (PushKey, PushPolka, PopKey, PushTf, PushTfWide, PopTf, *EDITS)
}


class Experimenter(parser.OFPActionExperimenter):  # type: ignore[misc]
    """Parser that os-ken calls for actions of type OFPAT_EXPERIMENTER. Passes actions of other experimenters
    to os-ken."""

    @classmethod
    def parser(cls, buf: bytes, offset: int) -> Any:
        """Returns the action at an offset."""
        experimenter_id, data = experimenter.unpack(buf, offset)
        known = KNOWN.get(int.from_bytes(data[:2])) if experimenter_id == experimenter.EXPERIMENTER else None
        if known is None:
            return parser.OFPActionExperimenter.parser(buf, offset)
        action = known.of_content(data[2:])
        action.len = experimenter.HEADER.size + len(data)
        return action
