# SPDX-License-Identifier: Apache-2.0
"""Frames for tests, and programs of the applications in the interpreter."""

import pathlib
import sys
from typing import Any

import interpreter

from shunt_controller.pof import Dialect, Program, Target, encode

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/pof"
sys.path.insert(0, str(EXAMPLES))


def mac(number: int) -> bytes:
    """Returns the MAC address of a host."""
    return bytes((2, 0, 0, 0, 0, number))


def text(address: bytes) -> str:
    """Returns a MAC address as text."""
    return address.hex(":")


def ethernet(destination: bytes, source: bytes, ethertype: int, payload: bytes) -> bytes:
    """Returns a frame."""
    return destination + source + ethertype.to_bytes(2) + payload


def checksum(data: bytes) -> int:
    """Returns the checksum of an IPv4 header, computed word by word."""
    total = sum(data[at] << 8 | data[at + 1] for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = total % 0x10000 + total // 0x10000
    return 0xFFFF - total


def ipv4(source: str, destination: str, ttl: int, protocol: int, payload: bytes, fragment: int = 0) -> bytes:
    """Returns an IPv4 packet."""
    addresses = b"".join(bytes(int(part) for part in address.split(".")) for address in (source, destination))
    length = (20 + len(payload)).to_bytes(2)
    head = b"\x45\x10" + length + b"\x12\x34" + fragment.to_bytes(2) + bytes((ttl, protocol)) + b"\0\0" + addresses
    return head[:10] + checksum(head).to_bytes(2) + head[12:] + payload


def ipv6(source: bytes, destination: bytes, hop_limit: int, next_header: int, payload: bytes) -> bytes:
    """Returns an IPv6 packet."""
    return b"\x60\x01\x02\x03" + len(payload).to_bytes(2) + bytes((next_header, hop_limit)) + source + destination + payload


def udp(source: int, destination: int, payload: bytes = b"payload") -> bytes:
    """Returns a UDP datagram without checksum."""
    return source.to_bytes(2) + destination.to_bytes(2) + (8 + len(payload)).to_bytes(2) + b"\0\0" + payload


def install(program: Program) -> interpreter.Switch:
    """Returns an interpreter with a program, which it has received as bytes."""
    target = program.target
    switch = interpreter.Switch(target.dialect, target.tables)
    for number, message in enumerate(program.messages()):
        switch.receive(encode(message, number, target.dialect))
    return switch


def run(module: Any, settings: dict[str, Any], dialect: Dialect, **target: Any) -> interpreter.Switch:
    """Returns an interpreter with the program that an application builds from its settings."""
    return install(module.build(settings, Target(dialect, **target)))
