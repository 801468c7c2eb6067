# SPDX-License-Identifier: Apache-2.0
"""Instructions: slots with a type (2 bytes), a length (2 bytes), 4 unused bytes and a structure. An entry's
instructions run in order.

Receivers do not examine the length. It is the size of type, length, unused bytes and structure.
"""

import dataclasses
import enum
from typing import ClassVar

from shunt_controller.pof.actions import ACTION, SLOT_BYTES, Action
from shunt_controller.pof.errors import EncodeError, Fault
from shunt_controller.pof.layout import OPERAND, Choice, Dialect, Kind, Listed, Nested, Structure, at, slots
from shunt_controller.pof.values import AlignedValue, Field

STRIDES = (208, 304)
"""Sizes of a slot in bytes."""

_HEADER_BYTES = 8


class Direction(enum.IntEnum):
    """Direction of a jump or a move."""

    FORWARD = 0
    BACKWARD = 1


class Calculation(enum.IntEnum):
    """Calculation on numbers of at most 32 bits."""

    ADD = 0
    SUBTRACT = 1
    SHIFT_LEFT = 2
    SHIFT_RIGHT = 3
    AND = 4
    OR = 5
    XOR = 6
    NOR = 7


_DIRECTION = Choice(Direction, "direction")


@dataclasses.dataclass(frozen=True)
class Instruction(Structure):
    """Base class of instructions."""

    TYPE: ClassVar[int]


@dataclasses.dataclass(frozen=True)
class GotoTable(Instruction):
    """Continues in another table, given by its global number. The packet offset in bytes is added to the base
    offset."""

    NAME, TYPE, SIZES = "GOTO_TABLE", 1, (72, 72)

    table: int = at((0, 1), (0, 1))
    packet_offset: int = at((2, 2), (2, 2))
    fields: tuple[Field, ...] = slots(
        (8, 64), (8, 64), Listed(Nested(Field), (8, 8), ((1, 1), (1, 1)), "fields of the next table")
    )


@dataclasses.dataclass(frozen=True)
class WriteMetadata(AlignedValue, Instruction):
    """Writes a value to the metadata. The value has at most 32 bits in dialect 1.2, and 128 in 1.4.0.015."""

    NAME, TYPE, SIZES = "WRITE_METADATA", 2, (8, 24)
    VALUE_AT = ((4, 4), (4, 16))

    offset: int = at((0, 2), (0, 2))
    length: int = at((2, 2), (2, 2))
    value: int = 0

    def check(self, dialect: Dialect) -> None:
        """Raises Fault if the value is longer than its place."""
        most = 8 * self.VALUE_AT[dialect.column][1]
        if self.length > most:
            raise Fault(2, f"WRITE_METADATA of {self.length} bits; dialect {dialect.value} has space for {most}")


@dataclasses.dataclass(frozen=True)
class ApplyActions(Instruction):
    """Runs actions."""

    NAME, TYPE, SIZES = "APPLY_ACTIONS", 4, (200, 296)

    actions: tuple[Action, ...] = slots(
        (8, 192), (8, 288), Listed(ACTION, (SLOT_BYTES, SLOT_BYTES), ((0, 1), (0, 1)), "actions")
    )


@dataclasses.dataclass(frozen=True)
class Meter(Instruction):
    """Sends the packet through a meter."""

    NAME, TYPE, SIZES = "METER", 6, (8, 8)

    meter: int = at((0, 4), (0, 4))


@dataclasses.dataclass(frozen=True)
class WriteMetadataFromPacket(Instruction):
    """Copies bits of the packet to the metadata."""

    NAME, TYPE, SIZES = "WRITE_METADATA_FROM_PACKET", 7, (8, 8)

    metadata_offset: int = at((0, 2), (0, 2))
    packet_offset: int = at((2, 2), (2, 2))
    length: int = at((4, 2), (4, 2))


@dataclasses.dataclass(frozen=True)
class GotoDirectTable(Instruction):
    """Continues with an entry of a linear table, given by its index."""

    NAME, TYPE, SIZES = "GOTO_DIRECT_TABLE", 8, (8, 16)

    table: int = at((0, 1), (0, 1))
    index: int | Field = at((4, 4), (8, 8), OPERAND, type_at=(None, (1, 1)))
    packet_offset: int = at((2, 2), (2, 2))


@dataclasses.dataclass(frozen=True)
class ConditionalJump(Instruction):
    """Compares a field with an operand, and jumps over instructions."""

    NAME, TYPE, SIZES = "CONDITIONAL_JMP", 9, (None, 48)

    field: Field = at(None, (8, 8), Nested(Field), Field)
    operand: int | Field = at(None, (16, 8), OPERAND, type_at=(None, (0, 1)))
    less: int | Field = at(None, (24, 8), OPERAND, type_at=(None, (2, 1)))
    equal: int | Field = at(None, (32, 8), OPERAND, type_at=(None, (4, 1)))
    greater: int | Field = at(None, (40, 8), OPERAND, type_at=(None, (6, 1)))
    less_direction: int = at(None, (1, 1), _DIRECTION)
    equal_direction: int = at(None, (3, 1), _DIRECTION)
    greater_direction: int = at(None, (5, 1), _DIRECTION)


@dataclasses.dataclass(frozen=True)
class CalculateField(Instruction):
    """Replaces a field by the result of a calculation with this field and an operand."""

    NAME, TYPE, SIZES = "CALCULATE_FIELD", 10, (None, 24)

    calculation: int = at(None, (0, 2), Choice(Calculation, "calculation"))
    field: Field = at(None, (8, 8), Nested(Field), Field)
    operand: int | Field = at(None, (16, 8), OPERAND, type_at=(None, (2, 1)))


@dataclasses.dataclass(frozen=True)
class MovePacketOffset(Instruction):
    """Moves the base offset by a number of bytes."""

    NAME, TYPE, SIZES = "MOVE_PACKET_OFFSET", 11, (None, 16)

    direction: int = at(None, (0, 1), _DIRECTION)
    bytes: int | Field = at(None, (8, 8), OPERAND, type_at=(None, (1, 1)))


INSTRUCTIONS: dict[int, type[Instruction]] = {
    instruction.TYPE: instruction
    for instruction in (
        GotoTable,
        WriteMetadata,
        ApplyActions,
        Meter,
        WriteMetadataFromPacket,
        GotoDirectTable,
        ConditionalJump,
        CalculateField,
        MovePacketOffset,
    )
}


class InstructionSlot(Kind):
    """A slot with an instruction."""

    def read(self, data: bytes, dialect: Dialect) -> Instruction:
        number = int.from_bytes(data[:2])
        instruction = INSTRUCTIONS.get(number)
        if instruction is None or instruction.SIZES[dialect.column] is None:
            raise Fault(0, f"dialect {dialect.value} has no instruction {number}")
        try:
            return instruction.read(data[_HEADER_BYTES : _HEADER_BYTES + instruction.size(dialect)], dialect)
        except Fault as fault:
            raise fault.within(_HEADER_BYTES) from None

    def write(self, value: Instruction, size: int, dialect: Dialect) -> bytes:
        if not isinstance(value, Instruction):
            raise EncodeError(f"{value!r} is not an instruction")
        body = value.write(dialect)
        return value.TYPE.to_bytes(2) + (_HEADER_BYTES + len(body)).to_bytes(2) + bytes(4) + body


INSTRUCTION = InstructionSlot()
