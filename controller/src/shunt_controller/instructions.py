# SPDX-License-Identifier: Apache-2.0
"""Instructions for the list of an OFPFlowMod. An OFPFlowStats is parsed to the same classes."""

import struct
from typing import Any, ClassVar

from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller import experimenter
from shunt_controller.experimenter import need

_BYTES = 16


class Instruction(parser.OFPInstruction):  # type: ignore[misc]
    """Base class of Shunt's instructions, which have 16 bytes."""

    subtype: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.type = experimenter.TYPE
        self.len = _BYTES

    def content(self) -> bytes:
        """Returns the bytes after the subtype, without the padding."""
        raise NotImplementedError

    def serialize(self, buf: Any, offset: int) -> None:
        """Writes the instruction at an offset. os-ken calls this method."""
        experimenter.put(experimenter.pack(self.subtype, self.content()), buf, offset)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class LowLatency(Instruction):
    """Marks the entry as low-latency: packets that hit only such entries take the fast-forwarding path.

    ``LowLatency(False)`` marks the entry as normal, even if its cookie or its traffic would make it
    low-latency.
    """

    subtype = 2

    def __init__(self, low_latency: bool = True) -> None:
        super().__init__()
        self.low_latency = bool(low_latency)

    def content(self) -> bytes:
        return struct.pack("!B5x", self.low_latency)

    @classmethod
    def of_content(cls, content: bytes) -> "LowLatency":
        """Reads the bytes after the subtype."""
        (value,) = struct.unpack("!B5x", content)
        need(value <= 1, f"low_latency is 0 or 1, not {value}")
        return cls(value == 1)


class GotoDirect(Instruction):
    """Continues with the entry of a linear table that has this index, without a lookup."""

    subtype = 1

    def __init__(self, table_id: int, index: int) -> None:
        super().__init__()
        need(0 <= table_id <= 254, f"tables are 0 to 254, not {table_id}")
        need(0 <= index < 1 << 32, f"an index has 32 bits; {index} does not fit")
        self.table_id = table_id
        self.index = index

    def content(self) -> bytes:
        return struct.pack("!BxI", self.table_id, self.index)

    @classmethod
    def of_content(cls, content: bytes) -> "GotoDirect":
        """Reads the bytes after the subtype."""
        return cls(*struct.unpack("!BxI", content))


class Unknown(parser.OFPInstruction):  # type: ignore[misc]
    """An instruction of another experimenter, or an instruction of Shunt that this version does not support.
    It is kept unchanged."""

    def __init__(self, experimenter_id: int, data: bytes) -> None:
        super().__init__()
        self.type = experimenter.TYPE
        self.len = experimenter.HEADER.size + len(data)
        self.experimenter = experimenter_id
        self.data = data

    def serialize(self, buf: Any, offset: int) -> None:
        """Writes the instruction at an offset. os-ken calls this method."""
        head = experimenter.HEADER.pack(self.type, self.len, self.experimenter)
        experimenter.put(head + self.data, buf, offset)


KNOWN: dict[int, type[LowLatency] | type[GotoDirect]] = {c.subtype: c for c in (LowLatency, GotoDirect)}


class Experimenter(parser.OFPInstruction):  # type: ignore[misc]
    """Parser that os-ken calls for instructions of type OFPIT_EXPERIMENTER."""

    @classmethod
    def parser(cls, buf: bytes, offset: int) -> Instruction | Unknown:
        """Returns the instruction at an offset."""
        experimenter_id, data = experimenter.unpack(buf, offset)
        if experimenter_id == experimenter.EXPERIMENTER and len(data) == _BYTES - experimenter.HEADER.size:
            known = KNOWN.get(int.from_bytes(data[:2]))
            if known is not None:
                return known.of_content(data[2:])
        return Unknown(experimenter_id, data)
