# SPDX-License-Identifier: Apache-2.0
"""Common format of all extensions: type 0xffff, length, experimenter ID, subtype, content, zeros to a
multiple of 8 bytes."""

import struct
from typing import Any

EXPERIMENTER = 0xFF53484E
"""Shunt's experimenter ID (private use)."""

TYPE = 0xFFFF
"""OFPIT_EXPERIMENTER and OFPAT_EXPERIMENTER."""

HEADER = struct.Struct("!HHI")
"""Type, length, experimenter ID."""

SUBTYPE = struct.Struct("!H")


class ExtensionError(ValueError):
    """The bytes or arguments are not valid for any extension."""


def pack(subtype: int, content: bytes) -> bytes:
    """Returns a complete instruction or action of Shunt."""
    length = -(-(HEADER.size + SUBTYPE.size + len(content)) // 8) * 8
    head = HEADER.pack(TYPE, length, EXPERIMENTER) + SUBTYPE.pack(subtype)
    return (head + content).ljust(length, b"\0")


def unpack(buf: bytes, offset: int) -> tuple[int, bytes]:
    """Returns the experimenter ID of the structure at an offset, and the rest of the structure."""
    kind, length, experimenter = read(HEADER, buf[offset:])
    if kind != TYPE or length < HEADER.size or len(buf) < offset + length:
        raise ExtensionError(f"a structure of type {kind:#x} has the length {length}, but {len(buf) - offset} bytes are left")
    return experimenter, bytes(buf[offset + HEADER.size : offset + length])


def read(layout: struct.Struct, data: bytes) -> tuple[Any, ...]:
    """Unpacks the values at the beginning of received bytes."""
    need(len(data) >= layout.size, f"{len(data)} bytes are too short; {layout.size} are needed")
    return layout.unpack_from(data)


def put(data: bytes, buf: Any, offset: int) -> None:
    """Writes bytes as os-ken's serializers do: into a bytearray that is extended if necessary."""
    if len(buf) < offset:
        buf += bytearray(offset - len(buf))
    buf[offset : offset + len(data)] = data


def need(condition: bool, problem: str) -> None:
    """Raises ExtensionError unless the condition holds."""
    if not condition:
        raise ExtensionError(problem)
