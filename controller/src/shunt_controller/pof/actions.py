# SPDX-License-Identifier: Apache-2.0
"""Actions: slots of 48 bytes with a type (2 bytes), a length (2 bytes) and a structure.

Receivers do not examine the length. It is the size of type, length and structure.
"""

import dataclasses
import enum
from typing import ClassVar

from shunt_controller.pof.errors import EncodeError, Fault
from shunt_controller.pof.layout import OPERAND, SIGNED, Choice, Dialect, Kind, Nested, Structure, at
from shunt_controller.pof.values import AlignedValue, Field, Match

SLOT_BYTES = 48
_HEADER_BYTES = 4


class Location(enum.IntEnum):
    """Where bits are."""

    PACKET = 0
    METADATA = 1


@dataclasses.dataclass(frozen=True)
class Action(Structure):
    """Base class of actions."""

    TYPE: ClassVar[int]


@dataclasses.dataclass(frozen=True)
class Output(Action):
    """Sends the packet to a port. A switch may refuse a packet offset and metadata.

    In dialect 1.4.0.015, the high 16 bits of the port are the slot."""

    NAME, TYPE, SIZES = "OUTPUT", 0, (16, 16)

    port: int | Field = at((0, 4), (8, 8), OPERAND, type_at=(None, (0, 1)))
    metadata_offset: int = at((4, 2), (2, 2))
    metadata_length: int = at((6, 2), (4, 2))
    packet_offset: int = at((8, 2), (6, 2))


@dataclasses.dataclass(frozen=True)
class SetField(Action):
    """Sets a field to value and mask. Bits outside of the mask become 0."""

    NAME, TYPE, SIZES = "SET_FIELD", 1, (40, 40)

    setting: Match = at((0, 40), (0, 40), Nested(Match), Match)

    @classmethod
    def to(cls, field: Field, value: int) -> "SetField":
        """Returns the action that sets the whole field to a value."""
        return cls(Match.exact(field, value))


@dataclasses.dataclass(frozen=True)
class SetFieldFromMetadata(Action):
    """Sets a field of the packet to bits of the metadata."""

    NAME, TYPE, SIZES = "SET_FIELD_FROM_METADATA", 2, (16, 16)

    field: Field = at((0, 8), (0, 8), Nested(Field), Field)
    metadata_offset: int = at((8, 2), (8, 2))


@dataclasses.dataclass(frozen=True)
class ModifyField(Action):
    """Adds a number to a field of at most 32 bits. The result wraps."""

    NAME, TYPE, SIZES = "MODIFY_FIELD", 3, (16, 16)

    field: Field = at((0, 8), (0, 8), Nested(Field), Field)
    increment: int = at((8, 4), (8, 4), SIGNED)


@dataclasses.dataclass(frozen=True)
class AddField(AlignedValue, Action):
    """Inserts bits at an offset. The value has at most 64 bits in dialect 1.2, and 128 in 1.4.0.015."""

    NAME, TYPE, SIZES = "ADD_FIELD", 4, (16, 24)
    VALUE_AT = ((8, 8), (8, 16))

    offset: int = at((2, 2), (2, 2))
    length: int = at((4, 4), (4, 4))
    value: int = 0
    id: int = at((0, 2), (0, 2))

    def check(self, dialect: Dialect) -> None:
        """Raises Fault if the value is longer than its place."""
        most = 8 * self.VALUE_AT[dialect.column][1]
        if self.length > most:
            raise Fault(4, f"ADD_FIELD of {self.length} bits; dialect {dialect.value} has space for {most}")


@dataclasses.dataclass(frozen=True)
class DeleteField(Action):
    """Removes bits from an offset on."""

    NAME, TYPE, SIZES = "DELETE_FIELD", 5, (8, 16)

    offset: int = at((0, 2), (0, 2))
    length: int | Field = at((4, 4), (8, 8), OPERAND, type_at=(None, (2, 1)))


_LOCATION = Choice(Location, "location")


@dataclasses.dataclass(frozen=True)
class CalculateChecksum(Action):
    """Writes the inverted ones' complement sum of bits, in words of the checksum's length. The checksum's own
    bits count as 0."""

    NAME, TYPE, SIZES = "CALCULATE_CHECKSUM", 6, (8, 16)

    checksum_offset: int = at((0, 2), (2, 2))
    checksum_length: int = at((2, 2), (4, 2))
    sum_offset: int = at((4, 2), (6, 2))
    sum_length: int = at((6, 2), (8, 2))
    checksum_location: int = at(None, (0, 1), _LOCATION)
    sum_location: int = at(None, (1, 1), _LOCATION)


@dataclasses.dataclass(frozen=True)
class Group(Action):
    """Runs a group."""

    NAME, TYPE, SIZES = "GROUP", 7, (8, 8)

    group: int = at((0, 4), (0, 4))


@dataclasses.dataclass(frozen=True)
class Drop(Action):
    """Drops the packet. The reason has no effect."""

    NAME, TYPE, SIZES = "DROP", 8, (8, 8)

    reason: int = at((0, 4), (0, 4))


@dataclasses.dataclass(frozen=True)
class ToController(Action):
    """Sends the whole packet to the controller, in a PACKET_IN."""

    NAME, TYPE, SIZES = "PACKET_IN action", 9, (8, 8)

    reason: int = at((0, 4), (0, 4))


@dataclasses.dataclass(frozen=True)
class Counter(Action):
    """Counts the packet."""

    NAME, TYPE, SIZES = "COUNTER", 10, (8, 8)

    counter: int = at((0, 4), (0, 4))


ACTIONS: dict[int, type[Action]] = {
    action.TYPE: action
    for action in (
        Output,
        SetField,
        SetFieldFromMetadata,
        ModifyField,
        AddField,
        DeleteField,
        CalculateChecksum,
        Group,
        Drop,
        ToController,
        Counter,
    )
}


class ActionSlot(Kind):
    """A slot with an action."""

    def read(self, data: bytes, dialect: Dialect) -> Action:
        number = int.from_bytes(data[:2])
        action = ACTIONS.get(number)
        if action is None:
            raise Fault(0, f"unknown action {number}")
        try:
            return action.read(data[_HEADER_BYTES : _HEADER_BYTES + action.size(dialect)], dialect)
        except Fault as fault:
            raise fault.within(_HEADER_BYTES) from None

    def write(self, value: Action, size: int, dialect: Dialect) -> bytes:
        if not isinstance(value, Action):
            raise EncodeError(f"{value!r} is not an action")
        body = value.write(dialect)
        return value.TYPE.to_bytes(2) + (_HEADER_BYTES + len(body)).to_bytes(2) + body


ACTION = ActionSlot()
