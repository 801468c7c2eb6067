# SPDX-License-Identifier: Apache-2.0
"""Match fields: slices of a packet, and the index of an entry of a linear table.

os-ken names a match field by a keyword. The keyword of a slice is ``slice(base,offset,length)``, as in flow
files. In Python::

    OFPMatch(**{slice_name("packet", 116, 4): 0})                 # a number, or (number, mask)
    OFPMatch(**{INDEX: 7})
    OFPActionSetField(**{slice_name("l3", 64, 8): 64})            # without a mask
"""

import re
import struct
from typing import Any, NamedTuple

from shunt_controller import experimenter
from shunt_controller.experimenter import ExtensionError, need

BASES = {"packet": 0, "metadata": 1, "l3": 2, "l4": 3, "base": 5}
"""Bases of slices, with their numbers."""
INDEX = "shunt_index"
"""Keyword of the index of an entry of a linear table; it must be the only field of its match."""

_CLASS = 0xFFFF
_INDEX_FIELD = 4
_BASE_NAMES = {number: name for name, number in BASES.items()}
_NAME = re.compile(r"slice\((\w+),(\d+),(\d+)\)")
_SLICE_BITS_MAX = 128


class Number(NamedTuple):
    """Takes the place of a field's number in os-ken, which sorts match fields by the first item."""

    oxm_type: int
    offset_bits: int
    length_bits: int

    @property
    def field(self) -> int:
        """Number of the field among Shunt's fields."""
        return self.oxm_type & 0x7F

    @property
    def value_bytes(self) -> int:
        """Number of bytes of the value on the wire."""
        return -(-self.length_bits // 8)

    @property
    def name(self) -> str:
        """Keyword of the field."""
        if self.field == _INDEX_FIELD:
            return INDEX
        return f"slice({_BASE_NAMES[self.field]},{self.offset_bits},{self.length_bits})"


def slice_name(base: str, offset_bits: int, length_bits: int) -> str:
    """Returns the keyword of a slice of 1 to 128 bits in ``packet``, ``metadata``, ``l3``, ``l4`` or
    ``base``."""
    return _number(f"slice({base},{offset_bits},{length_bits})").name


def is_ours(name: str) -> bool:
    """Returns whether a keyword is one of Shunt's fields."""
    return name == INDEX or name.startswith("slice(")


def _number(name: str) -> Number:
    if name == INDEX:
        return Number(_CLASS << 7 | _INDEX_FIELD, 0, 32)
    found = _NAME.fullmatch(name)
    if found is None or found[1] not in BASES:
        raise ExtensionError(f"{name} is not a slice(BASE,OFFSET,LENGTH); bases are {', '.join(BASES)}")
    offset_bits, length_bits = int(found[2]), int(found[3])
    need(1 <= length_bits <= _SLICE_BITS_MAX, f"a slice has 1 to {_SLICE_BITS_MAX} bits, not {length_bits}")
    need(offset_bits < 1 << 16, f"a slice's offset has 16 bits; {offset_bits} does not fit")
    return Number(_CLASS << 7 | BASES[found[1]], offset_bits, length_bits)


def from_user(name: str, user_value: Any) -> tuple[Number, bytes, bytes | None]:
    """Returns number, value and mask on the wire for a keyword and its value."""
    number = _number(name)
    value, mask = user_value if isinstance(user_value, (tuple, list)) else (user_value, None)
    for part in (value, mask):
        need(
            part is None or 0 <= part < 1 << number.length_bits,
            f"{name} has {number.length_bits} bits; {part!r} does not fit",
        )
    need(mask is None or name != INDEX, "an index has no mask")
    to_wire = number.value_bytes
    return number, int(value).to_bytes(to_wire), None if mask is None else int(mask).to_bytes(to_wire)


def to_user(number: Number, value: bytes, mask: bytes | None) -> tuple[str, Any]:
    """Reverses :func:`from_user`."""
    whole = int.from_bytes(value)
    return number.name, whole if mask is None else (whole, int.from_bytes(mask))


def serialize(number: Number, value: bytes, mask: bytes | None, buf: Any, offset: int) -> int:
    """Writes the field at an offset. Returns its length."""
    place = b"" if number.field == _INDEX_FIELD else struct.pack("!HH", number.offset_bits, number.length_bits)
    body = struct.pack("!I", experimenter.EXPERIMENTER) + place + value + (mask or b"")
    data = struct.pack("!I", number.oxm_type << 9 | (mask is not None) << 8 | len(body)) + body
    experimenter.put(data, buf, offset)
    return len(data)


def parse(buf: bytes, offset: int) -> tuple[Number, bytes, bytes | None, int] | None:
    """Returns number, value, mask and length of the field at an offset, or None if it is not a field of
    Shunt."""
    (header,) = struct.unpack_from("!I", buf, offset)
    body = bytes(buf[offset + 4 : offset + 4 + (header & 0xFF)])
    if header >> 16 != _CLASS or body[:4] != struct.pack("!I", experimenter.EXPERIMENTER):
        return None
    oxm_type, masked, rest = header >> 9, header >> 8 & 1, body[4:]
    if oxm_type & 0x7F == _INDEX_FIELD:
        number = Number(oxm_type, 0, 32)
    else:
        need(oxm_type & 0x7F in _BASE_NAMES and len(rest) > 4, f"match field {oxm_type & 0x7F} is not known")
        number = Number(oxm_type, *struct.unpack_from("!HH", rest))
        rest = rest[4:]
    size = number.value_bytes
    need(len(rest) == size * (1 + masked), f"{number.name} has {len(rest)} bytes of value and mask")
    return number, rest[:size], rest[size:] if masked else None, 4 + len(body)
