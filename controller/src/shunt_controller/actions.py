# SPDX-License-Identifier: Apache-2.0
"""Actions of stateless forwarding (KeyFlow, PolKA, Tag-and-Forward) for os-ken's lists of actions."""

import struct
from typing import Any, ClassVar

from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller import experimenter
from shunt_controller.experimenter import need, read

_KEY_BYTES = (8, 16, 24, 32)
_KEY_HEAD = struct.Struct("!BBH2x")
_TTL = struct.Struct("!B5x16s")
_GATES = struct.Struct("!BxIH6x")


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


KNOWN: dict[int, type[Action]] = {c.subtype: c for c in (PushKey, PushPolka, PopKey, PushTf, PushTfWide, PopTf)}


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
