# SPDX-License-Identifier: Apache-2.0
"""Structures of fixed size, described by the byte tables of docs/pof.md.

A structure is a dataclass. Each of its fields has a place in each dialect: an offset and a size in bytes, as
in the byte tables, or None if the dialect has no such field. :func:`at` states the places and the kind of
value. Numbers are big-endian. Bytes without a field are sent as 0 and are not examined.
"""

import dataclasses
import enum
from typing import Any, ClassVar, Self

from shunt_controller.pof.errors import EncodeError, Fault


class Dialect(enum.Enum):
    """A dialect of POF. No message names it, so the controller and the switch must be configured alike."""

    V1_2 = "1.2"
    V1_4 = "1.4.0.015"

    @property
    def column(self) -> int:
        """Column of the dialect in the byte tables."""
        return 0 if self is Dialect.V1_2 else 1


Place = tuple[int, int] | None
"""Offset and size in bytes."""


class Kind:
    """A kind of value with a fixed number of bytes."""

    def read(self, data: bytes, dialect: Dialect) -> Any:
        """Returns the value of its bytes."""
        raise NotImplementedError

    def write(self, value: Any, size: int, dialect: Dialect) -> bytes:
        """Returns the bytes of a value."""
        raise NotImplementedError


class Number(Kind):
    """A number without sign."""

    def read(self, data: bytes, dialect: Dialect) -> int:
        return int.from_bytes(data)

    def write(self, value: int, size: int, dialect: Dialect) -> bytes:
        if not isinstance(value, int) or not 0 <= value < 1 << 8 * size:
            raise EncodeError(f"{value!r} is not a number of {8 * size} bits")
        return value.to_bytes(size)


class Signed(Kind):
    """A number in two's complement."""

    def read(self, data: bytes, dialect: Dialect) -> int:
        return int.from_bytes(data, signed=True)

    def write(self, value: int, size: int, dialect: Dialect) -> bytes:
        if not isinstance(value, int) or not -1 << 8 * size - 1 <= value < 1 << 8 * size - 1:
            raise EncodeError(f"{value!r} is not a number of {8 * size} bits with sign")
        return value.to_bytes(size, signed=True)


class Raw(Kind):
    """Bytes."""

    def read(self, data: bytes, dialect: Dialect) -> bytes:
        return bytes(data)

    def write(self, value: bytes, size: int, dialect: Dialect) -> bytes:
        if len(value) != size:
            raise EncodeError(f"{len(value)} bytes, where {size} are needed")
        return bytes(value)


class Text(Kind):
    """Text in UTF-8, padded with NUL bytes. Longer text is cut, so that the last byte is NUL."""

    def read(self, data: bytes, dialect: Dialect) -> str:
        return bytes(data).split(b"\0", 1)[0].decode(errors="replace")

    def write(self, value: str, size: int, dialect: Dialect) -> bytes:
        cut = value.encode()[: size - 1].decode(errors="ignore").encode()
        return cut.ljust(size, b"\0")


class Choice(Kind):
    """A number of which few values are defined, as an enumeration."""

    def __init__(self, values: type[enum.IntEnum], what: str, new: tuple[int, ...] = ()) -> None:
        self.values = values
        self.what = what
        # Values that only dialect 1.4.0.015 has.
        self.new = new

    def _defined(self, value: int, dialect: Dialect) -> bool:
        return value in iter(self.values) and (value not in self.new or dialect is Dialect.V1_4)

    def read(self, data: bytes, dialect: Dialect) -> enum.IntEnum:
        number = int.from_bytes(data)
        if not self._defined(number, dialect):
            raise Fault(0, f"{self.what} {number} is not defined in dialect {dialect.value}")
        return self.values(number)

    def write(self, value: int, size: int, dialect: Dialect) -> bytes:
        if not self._defined(value, dialect):
            raise EncodeError(f"{self.what} {value!r} is not defined in dialect {dialect.value}")
        return int(value).to_bytes(size)


class Nested(Kind):
    """A structure within a structure."""

    def __init__(self, structure: "type[Structure]") -> None:
        self.structure = structure

    def read(self, data: bytes, dialect: Dialect) -> "Structure":
        return self.structure.read(data, dialect)

    def write(self, value: "Structure", size: int, dialect: Dialect) -> bytes:
        if not isinstance(value, self.structure):
            raise EncodeError(f"{value!r} is not a {self.structure.__name__}")
        return value.write(dialect)


@dataclasses.dataclass(frozen=True)
class Listed(Kind):
    """Slots of equal size. A field of the same structure, or the array's constant length, has the number of
    used slots."""

    item: Kind
    strides: tuple[int, int]
    count: tuple[Place, Place] | None
    """Places of the number of used slots. None if all slots are used."""
    what: str
    fixed: int = 0

    def read_slots(self, data: bytes, count: int, dialect: Dialect) -> tuple[Any, ...]:
        """Returns the values of the first slots."""
        stride = self.strides[dialect.column]
        items = []
        for start in range(0, count * stride, stride):
            try:
                items.append(self.item.read(data[start : start + stride], dialect))
            except Fault as fault:
                raise fault.within(start) from None
        return tuple(items)

    def write_slots(self, items: tuple[Any, ...], size: int, dialect: Dialect) -> bytes:
        """Returns the bytes of all slots. Unused slots are 0."""
        stride = self.strides[dialect.column]
        if len(items) > size // stride:
            raise EncodeError(f"{len(items)} {self.what}; dialect {dialect.value} has space for {size // stride}")
        data = b"".join(self.item.write(item, stride, dialect).ljust(stride, b"\0") for item in items)
        return data.ljust(size, b"\0")


NUMBER, SIGNED, RAW, TEXT = Number(), Signed(), Raw(), Text()


def at(old: Place, new: Place, kind: Kind = NUMBER, default: Any = 0, type_at: tuple[Place, Place] | None = None) -> Any:
    """Declares a field: its places in dialects 1.2 and 1.4.0.015, its kind and its default.

    `type_at` has the places of the type of an operand."""
    metadata = {"places": (old, new), "kind": kind, "type_at": type_at}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def slots(old: Place, new: Place, listed: Listed) -> Any:
    """Declares a list: the places of its slots, and the kind of its items."""
    return dataclasses.field(default=(), metadata={"places": (old, new), "kind": listed, "type_at": None})


@dataclasses.dataclass(frozen=True)
class Structure:
    """A structure with a fixed number of bytes in each dialect."""

    NAME: ClassVar[str] = ""
    SIZES: ClassVar[tuple[int | None, int | None]] = (None, None)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if isinstance(field.metadata.get("kind"), Listed):
                object.__setattr__(self, field.name, tuple(getattr(self, field.name)))

    @classmethod
    def size(cls, dialect: Dialect) -> int:
        """Returns the number of bytes in the dialect."""
        size = cls.SIZES[dialect.column]
        if size is None:
            raise EncodeError(f"dialect {dialect.value} has no {cls.NAME}")
        return size

    @classmethod
    def read(cls, data: bytes, dialect: Dialect) -> Self:
        """Returns the structure of its bytes."""
        values = {}
        for field in dataclasses.fields(cls):
            if "places" not in field.metadata:
                continue
            place = field.metadata["places"][dialect.column]
            if place is not None:
                values[field.name] = _read(field, place, data, dialect)
        made = cls(**values)
        made.check(dialect)
        return made

    def check(self, dialect: Dialect) -> None:
        """Raises Fault if the values contradict each other."""

    def write(self, dialect: Dialect) -> bytes:
        """Returns the bytes of the structure."""
        data = bytearray(self.size(dialect))
        for field in dataclasses.fields(self):
            if "places" in field.metadata:
                value = getattr(self, field.name)
                try:
                    _write(field, value, data, dialect)
                except EncodeError as error:
                    name = self.NAME or type(self).__name__
                    raise EncodeError(f"{name}, {field.name.replace('_', ' ')}: {error}") from None
        try:
            self.check(dialect)
        except Fault as fault:
            raise EncodeError(f"{self.NAME}: {fault.reason}") from None
        return bytes(data)


def _cut(data: bytes, place: tuple[int, int]) -> bytes:
    return data[place[0] : place[0] + place[1]]


def _read(field: "dataclasses.Field[Any]", place: tuple[int, int], data: bytes, dialect: Dialect) -> Any:
    kind = field.metadata["kind"]
    if isinstance(kind, Listed):
        return _read_list(kind, place, data, dialect)
    if isinstance(kind, Operand):
        type_place = field.metadata["type_at"][dialect.column]
        number = int.from_bytes(_cut(data, type_place)) if type_place else 0
        if number > 1:
            raise Fault(type_place[0], f"operand `{field.name}` has type {number}; types are 0 (number) and 1 (field)")
        kind = kind.by_type(number)
    try:
        return kind.read(_cut(data, place), dialect)
    except Fault as fault:
        raise fault.within(place[0]) from None


def _read_list(kind: Listed, place: tuple[int, int], data: bytes, dialect: Dialect) -> tuple[Any, ...]:
    count, most = kind.fixed, place[1] // kind.strides[dialect.column]
    if kind.count is not None:
        count_place = kind.count[dialect.column]
        assert count_place is not None
        count = int.from_bytes(_cut(data, count_place))
        if count > most:
            raise Fault(count_place[0], f"{count} {kind.what}; dialect {dialect.value} has space for {most}")
    try:
        return kind.read_slots(_cut(data, place), count, dialect)
    except Fault as fault:
        raise fault.within(place[0]) from None


def _write(field: "dataclasses.Field[Any]", value: Any, data: bytearray, dialect: Dialect) -> None:
    kind, place = field.metadata["kind"], field.metadata["places"][dialect.column]
    if place is None:
        default = field.default if field.default is not dataclasses.MISSING else None
        if value != default:
            raise EncodeError(f"dialect {dialect.value} has no such field")
        return
    start, size = place
    if isinstance(kind, Listed):
        data[start : start + size] = kind.write_slots(value, size, dialect)
        if kind.count is not None:
            count_place = kind.count[dialect.column]
            assert count_place is not None
            data[count_place[0] : count_place[0] + count_place[1]] = len(value).to_bytes(count_place[1])
        elif len(value) != kind.fixed:
            raise EncodeError(f"{len(value)} {kind.what}, where {kind.fixed} are needed")
        return
    if isinstance(kind, Operand):
        number = kind.type_of(value)
        type_place = field.metadata["type_at"][dialect.column]
        if number and type_place is None:
            raise EncodeError(f"operands are numbers in dialect {dialect.value}")
        if type_place is not None:
            data[type_place[0]] = number
        kind = kind.by_type(number)
        size = 4 if number == 0 else 8
    data[start : start + size] = kind.write(value, size, dialect)


class Operand(Kind):
    """A number of 4 bytes, or a field of 8 bytes that contains the number. A byte elsewhere in the structure
    has the type: 0 for a number, 1 for a field."""

    field: ClassVar[type[Structure]]
    """Structure of a field, set by the module that defines it."""

    def by_type(self, number: int) -> Kind:
        """Returns the kind of an operand of this type."""
        return Nested(self.field) if number else _FIRST_FOUR

    def type_of(self, value: Any) -> int:
        """Returns the type of an operand."""
        return 1 if isinstance(value, self.field) else 0


class _FirstFour(Number):
    """A number in the first 4 bytes."""

    def read(self, data: bytes, dialect: Dialect) -> int:
        return int.from_bytes(data[:4])


_FIRST_FOUR = _FirstFour()
OPERAND = Operand()
