# SPDX-License-Identifier: Apache-2.0
"""Fields of the packet and of the metadata, conditions, and table types.

Offsets and lengths of fields are in bits. Offsets in the packet count from its base offset, which begins at
the first byte of the packet and is moved by instructions.
"""

import dataclasses
import enum
from typing import Self

from shunt_controller.pof.errors import EncodeError, Fault
from shunt_controller.pof.layout import NUMBER, Dialect, Operand, Structure, at

METADATA = 0xFFFF
"""ID of fields in the metadata. Any other ID is only a name of a field in the packet."""

FIELD_BITS_MAX = 128
"""Maximum length of a field with a value."""

METADATA_PORT = (16, 8)
"""Offset and length in bits of the ingress port in the metadata."""

METADATA_USER = 32
"""Offset in bits at which the programs' own metadata begins."""


class TableType(enum.IntEnum):
    """Type of a table."""

    MM = 0
    """Values with masks."""
    LPM = 1
    """Longest prefix."""
    EM = 2
    """Exact match."""
    DT = 3
    """Linear table: entries are addressed by their index."""


@dataclasses.dataclass(frozen=True)
class Field(Structure):
    """Consecutive bits of the packet or of the metadata."""

    NAME = "field"
    SIZES = (8, 8)

    id: int = at((0, 2), (0, 2))
    offset: int = at((2, 2), (2, 2))
    length: int = at((4, 2), (4, 2))


Operand.field = Field


def field(offset: int, length: int, id: int = 0) -> Field:
    """Returns a field of the packet. Offset and length are in bits."""
    return Field(id, offset, length)


def metadata(offset: int, length: int) -> Field:
    """Returns a field of the metadata. Offset and length are in bits."""
    return Field(METADATA, offset, length)


@dataclasses.dataclass(frozen=True)
class Match(Structure):
    """A condition: the bits of the field equal those of the value wherever the mask has ones.

    Value and mask are numbers with as many bits as the field. In the message, they are left-aligned in 16
    bytes. SET_FIELD has the same structure: it writes value and mask, and 0 outside of the mask."""

    NAME = "field with value"
    SIZES = (40, 40)

    field: Field = dataclasses.field(default_factory=Field)
    value: int = 0
    mask: int = 0

    @classmethod
    def exact(cls, field: Field, value: int) -> Self:
        """Returns the condition that the field has this value."""
        return cls(field, value, (1 << field.length) - 1)

    @classmethod
    def prefix(cls, field: Field, value: int, bits: int) -> Self:
        """Returns the condition that the first bits of the field are those of the value."""
        mask = (1 << field.length) - (1 << field.length - bits)
        return cls(field, value & mask, mask)

    @classmethod
    def any(cls, field: Field) -> Self:
        """Returns the condition that every value fulfils."""
        return cls(field, 0, 0)

    @classmethod
    def read(cls, data: bytes, dialect: Dialect) -> Self:
        """Returns the condition of its bytes."""
        field = Field.read(data[:8], dialect)
        if field.length > FIELD_BITS_MAX:
            raise Fault(4, f"a field with a value has {field.length} bits; the maximum is {FIELD_BITS_MAX}")
        shift = FIELD_BITS_MAX - field.length
        return cls(field, int.from_bytes(data[8:24]) >> shift, int.from_bytes(data[24:40]) >> shift)

    def write(self, dialect: Dialect) -> bytes:
        """Returns the bytes of the condition."""
        length = self.field.length
        if length > FIELD_BITS_MAX:
            raise EncodeError(f"a field with a value has {length} bits; the maximum is {FIELD_BITS_MAX}")
        for name, number in (("value", self.value), ("mask", self.mask)):
            if not 0 <= number < 1 << length:
                raise EncodeError(f"{name} {number:#x} does not fit into a field of {length} bits")
        shift = FIELD_BITS_MAX - length
        return self.field.write(dialect) + (self.value << shift).to_bytes(16) + (self.mask << shift).to_bytes(16)


def read_aligned(data: bytes, bits: int, dialect: Dialect) -> int:
    """Returns a value of WRITE_METADATA or ADD_FIELD: right-aligned in dialect 1.2, left-aligned in
    1.4.0.015. Bits outside of the value are not examined."""
    number = int.from_bytes(data)
    if dialect is Dialect.V1_2:
        return number & ((1 << bits) - 1)
    return number >> max(8 * len(data) - bits, 0)


def write_aligned(value: int, bits: int, size: int, dialect: Dialect) -> bytes:
    """Returns the bytes of a value of WRITE_METADATA or ADD_FIELD."""
    if bits > 8 * size:
        raise EncodeError(f"a value of {bits} bits; dialect {dialect.value} has space for {8 * size}")
    if not 0 <= value < 1 << bits:
        raise EncodeError(f"value {value:#x} does not fit into {bits} bits")
    shift = 0 if dialect is Dialect.V1_2 else 8 * size - bits
    return NUMBER.write(value << shift, size, dialect)


@dataclasses.dataclass(frozen=True)
class AlignedValue(Structure):
    """Base of structures whose value is as long as their field `length` says."""

    VALUE_AT = ((0, 0), (0, 0))
    """Places of the value in both dialects."""

    @classmethod
    def read(cls, data: bytes, dialect: Dialect) -> Self:
        """Returns the structure of its bytes."""
        made = super().read(data, dialect)
        start, size = cls.VALUE_AT[dialect.column]
        bits = getattr(made, "length")  # noqa: B009
        return dataclasses.replace(made, value=read_aligned(data[start : start + size], bits, dialect))

    def write(self, dialect: Dialect) -> bytes:
        """Returns the bytes of the structure."""
        data = bytearray(super().write(dialect))
        start, size = self.VALUE_AT[dialect.column]
        try:
            value = write_aligned(self.value, self.length, size, dialect)  # type: ignore[attr-defined]
        except EncodeError as error:
            raise EncodeError(f"{self.NAME}: {error}") from None
        data[start : start + size] = value
        return bytes(data)
