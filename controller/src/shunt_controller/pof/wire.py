# SPDX-License-Identifier: Apache-2.0
"""Messages from and to bytes.

A message begins with a header of 8 bytes: version 4, type, length of the message with this header (2 bytes),
transaction number (4 bytes).
"""

import dataclasses
import struct
from collections.abc import Iterator

from shunt_controller.pof.errors import DecodeError, EncodeError, Fault
from shunt_controller.pof.layout import Dialect
from shunt_controller.pof.messages import MESSAGES, FeaturesReply, Hello, Message, PacketIn, PacketOut, SetConfig

VERSION = 4
HEADER = struct.Struct("!BBHI")
"""Version, type, length, transaction number."""

OPENFLOW_FEATURES_BYTES = 32
"""Length of FEATURES_REPLY in OpenFlow 1.3, which has the same version and type as POF's."""


def encode(message: Message, xid: int, dialect: Dialect) -> bytes:
    """Returns the bytes of a message."""
    data: bytes = b""
    if isinstance(message, PacketIn | PacketOut):
        data = message.data
        if len(data) > message.TAIL_MAX:
            raise EncodeError(f"{message.NAME}: a packet of {len(data)} bytes; the maximum is {message.TAIL_MAX}")
    body = message.write(dialect) + data
    return HEADER.pack(VERSION, message.TYPE, HEADER.size + len(body), xid) + body


def message_name(number: int) -> str:
    """Returns the name of a message type."""
    return next((kind.NAME for kind in MESSAGES if kind.TYPE == number), f"message type {number}")


def _lengths(kind: type[Message], dialect: Dialect) -> range:
    size = kind.SIZES[dialect.column]
    return range(0) if size is None else range(HEADER.size + size, HEADER.size + size + kind.TAIL_MAX + 1)


def _kind(number: int, length: int, dialect: Dialect) -> type[Message]:
    """Returns the message with this type and length."""
    kinds = [kind for kind in MESSAGES if kind.TYPE == number and kind.SIZES[dialect.column] is not None]
    if not kinds:
        raise DecodeError(message_name(number), 1, f"dialect {dialect.value} has no message of type {number}")
    for kind in kinds:
        if length in _lengths(kind, dialect):
            return kind
    other = Dialect.V1_2 if dialect is Dialect.V1_4 else Dialect.V1_4
    hint = ""
    if any(length in _lengths(kind, other) for kind in MESSAGES if kind.TYPE == number):
        hint = f"; this is its length in dialect {other.value}, so check the dialect of both sides"
    if number == Hello.TYPE or (number, length) == (FeaturesReply.TYPE, OPENFLOW_FEATURES_BYTES):
        hint = f"; OpenFlow has a {kinds[0].NAME} of this length, so check that the switch is configured for POF"
    known = " or ".join(str(_lengths(kind, dialect).start) for kind in kinds)
    more = " or more" if kinds[0].TAIL_MAX else ""
    reason = f"the message has {length} bytes; in dialect {dialect.value} it has {known}{more}{hint}"
    raise DecodeError(kinds[0].NAME, 2, reason)


def _old_config(data: bytes, dialect: Dialect) -> bool:
    """Returns whether this is PCTRL's SET_CONFIG, which has the layout of dialect 1.2."""
    return dialect is Dialect.V1_4 and data[1] == SetConfig.TYPE and len(data) == HEADER.size + 4


def message_length(header: bytes, dialect: Dialect) -> int:
    """Returns the length that a header states, after checking version, type and length."""
    version, number, length, _ = HEADER.unpack(header)
    if version != VERSION:
        raise DecodeError(message_name(number), 0, f"version {version}; POF has version {VERSION}")
    if (number, length, dialect) != (SetConfig.TYPE, HEADER.size + 4, Dialect.V1_4):
        _kind(number, length, dialect)
    return int(length)


def decode(data: bytes, dialect: Dialect) -> tuple[Message, int]:
    """Returns a message and its transaction number. Raises DecodeError if the bytes are no such message."""
    if len(data) < HEADER.size:
        raise DecodeError("message", len(data), f"{len(data)} bytes; the header has {HEADER.size}")
    length = message_length(data[: HEADER.size], dialect)
    _, number, _, xid = HEADER.unpack_from(data)
    if length != len(data):
        raise DecodeError(message_name(number), 2, f"{len(data)} bytes, but the header states {length}")
    if _old_config(data, dialect):
        return SetConfig.read(data[HEADER.size :], Dialect.V1_2), xid
    kind = _kind(number, length, dialect)
    size = kind.size(dialect)
    body, tail = data[HEADER.size : HEADER.size + size], bytes(data[HEADER.size + size :])
    try:
        message = _with_tail(kind, body, tail, dialect)
    except Fault as fault:
        raise DecodeError(kind.NAME, HEADER.size + fault.offset, fault.reason) from None
    return message, xid


def _with_tail(kind: type[Message], body: bytes, tail: bytes, dialect: Dialect) -> Message:
    if kind is PacketIn:
        packet_in = PacketIn.read(body, dialect)
        packet_in = dataclasses.replace(packet_in, data=tail)
        packet_in.check(dialect)
        return packet_in
    if kind is PacketOut:
        # The check of the packet's length needs the tail, so the structure is read without its length first.
        unchecked = bytearray(body)
        unchecked[12:16] = bytes(4)
        made = dataclasses.replace(PacketOut.read(bytes(unchecked), dialect), length=int.from_bytes(body[12:16]))
        made = dataclasses.replace(made, data=tail)
        made.check(dialect)
        # Padding may follow the packet.
        return dataclasses.replace(made, data=tail[: made.length])
    return kind.read(body, dialect)


class Splitter:
    """Splits a stream of bytes into messages."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._waiting = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Message, int]]:
        """Takes received bytes. Iterate over the result for the messages that are now complete, with their
        transaction numbers."""
        self._waiting += data
        return self._complete()

    def _complete(self) -> Iterator[tuple[Message, int]]:
        while len(self._waiting) >= HEADER.size:
            length = message_length(bytes(self._waiting[: HEADER.size]), self.dialect)
            if len(self._waiting) < length:
                break
            whole = bytes(self._waiting[:length])
            del self._waiting[:length]
            yield decode(whole, self.dialect)
