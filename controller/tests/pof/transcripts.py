# SPDX-License-Identifier: Apache-2.0
"""Reads messages and sessions of crates/pof/tests, and recorded sessions of controller/tests/pof.

They have hex digits, `0*N` for N zero bytes, and `"text"`."""

import pathlib
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).parents[3]
CRATE = ROOT / "crates/pof/tests"


def to_bytes(words: Iterable[str]) -> bytes:
    """Returns the bytes that words stand for."""
    data = b""
    for word in words:
        if word.startswith('"'):
            data += word.strip('"').encode()
        elif word.startswith("0*"):
            data += bytes(int(word[2:]))
        else:
            data += bytes.fromhex(word)
    return data


def golden() -> dict[str, bytes]:
    """Returns the messages that the controller PCTRL packs, by name. They are of dialect 1.4.0.015."""
    lines = (CRATE / "golden/pctrl.txt").read_text().splitlines()
    words = [line.split() for line in lines if not line.startswith("#")]
    return {name: to_bytes(rest) for name, *rest in words}


def session(dialect: str) -> list[tuple[bool, bytes]]:
    """Returns the messages of a session that was written by hand."""
    return messages_of(CRATE / f"session/{dialect}.session")


def messages_of(path: pathlib.Path) -> list[tuple[bool, bytes]]:
    """Returns the messages of a session: whether the controller sends it, and its bytes."""
    messages: list[tuple[bool, bytes]] = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if words[0] in "<>":
            messages.append((words.pop(0) == ">", b""))
        messages[-1] = (messages[-1][0], messages[-1][1] + to_bytes(words))
    return messages
