# SPDX-License-Identifier: Apache-2.0
"""Random messages for hypothesis. Every field has all values that the dialect can express."""

import dataclasses
from typing import Any

from hypothesis import strategies as st

from shunt_controller.pof import Dialect, actions, instructions, layout, messages
from shunt_controller.pof.actions import ActionSlot
from shunt_controller.pof.instructions import InstructionSlot
from shunt_controller.pof.layout import Structure
from shunt_controller.pof.messages import MESSAGES, Message
from shunt_controller.pof.values import AlignedValue, Field, Match

XIDS = st.integers(0, (1 << 32) - 1)


def numbers(bits: int) -> st.SearchStrategy[int]:
    """Returns numbers of some bits, often at the limits."""
    most = (1 << bits) - 1
    return st.one_of(st.sampled_from([0, min(1, most), most]), st.integers(0, most))


def value(kind: layout.Kind, size: int, dialect: Dialect) -> st.SearchStrategy[Any]:
    """Returns the values of a kind that fit into some bytes."""
    match kind:
        case layout.Signed():
            return st.integers(-1 << 8 * size - 1, (1 << 8 * size - 1) - 1)
        case layout.Raw():
            return st.binary(min_size=size, max_size=size)
        case layout.Text():
            letters = st.characters(codec="utf-8", exclude_characters="\0")
            return st.text(letters, max_size=size // 4 - 1)
        case layout.Choice():
            listed = [number for number in kind.values if number not in kind.new or dialect is Dialect.V1_4]
            return st.sampled_from(listed)
        case layout.Operand():
            return st.one_of(numbers(32), fields()) if dialect is Dialect.V1_4 else numbers(32)
        case layout.Nested():
            return structure(kind.structure, dialect)
        case layout.Listed():
            most = kind.fixed or size // kind.strides[dialect.column]
            items = value(kind.item, kind.strides[dialect.column], dialect)
            return st.lists(items, min_size=kind.fixed, max_size=most).map(tuple)
        case ActionSlot():
            return st.one_of([structure(action, dialect) for action in actions.ACTIONS.values()])
        case InstructionSlot():
            known = [kind for kind in instructions.INSTRUCTIONS.values() if kind.SIZES[dialect.column] is not None]
            return st.one_of([structure(instruction, dialect) for instruction in known])
        case _:
            return numbers(8 * size)


def fields() -> st.SearchStrategy[Field]:
    """Returns fields of any offset and length."""
    return st.builds(Field, numbers(16), numbers(16), numbers(16))


def _matches() -> st.SearchStrategy[Match]:
    def with_length(length: int) -> st.SearchStrategy[Match]:
        field = st.builds(Field, numbers(16), numbers(16), st.just(length))
        return st.builds(Match, field, numbers(length), numbers(length))

    return st.integers(0, 128).flatmap(with_length)


def structure(kind: type[Structure], dialect: Dialect) -> st.SearchStrategy[Any]:
    """Returns all structures of a type."""
    if kind is Match:
        return _matches()
    given = {}
    for field in dataclasses.fields(kind):
        place = field.metadata.get("places", (None, None))[dialect.column]
        if place is not None:
            given[field.name] = value(field.metadata["kind"], place[1], dialect)
    if not issubclass(kind, AlignedValue):
        return st.builds(kind, **given)
    del given["length"]

    def with_length(length: int) -> st.SearchStrategy[Any]:
        return st.builds(kind, **given, length=st.just(length), value=numbers(length))

    return st.integers(0, 8 * kind.VALUE_AT[dialect.column][1]).flatmap(with_length)


def of_dialect(dialect: Dialect) -> st.SearchStrategy[Message]:
    """Returns messages of all types of a dialect."""
    return st.one_of([message(kind, dialect) for kind in MESSAGES if kind.SIZES[dialect.column] is not None])


def message(kind: type[Message], dialect: Dialect) -> st.SearchStrategy[Message]:
    """Returns messages of a type."""
    base = structure(kind, dialect)
    packet = st.binary(max_size=200)
    if kind is messages.PacketIn:
        return st.builds(
            lambda m, data, more: dataclasses.replace(m, data=data, total_length=len(data) + more), base, packet, numbers(8)
        )
    if kind is messages.PacketOut:
        return st.builds(lambda m, data: dataclasses.replace(m, data=data, length=len(data)), base, packet)
    return base
