# SPDX-License-Identifier: Apache-2.0
"""Cookies of flow entries. They name the application that has installed an entry, so that applications can
share a switch, and recognise their entries after a restart. The low 32 bits are free for the application."""

PREFIX = 0x5348
"""The highest 16 bits of the cookies of all applications of this package."""
MASK = 0xFFFF_FFFF_0000_0000
"""The bits that name the application."""


def cookie(application: int) -> int:
    """Returns the cookie of an application's entries."""
    return PREFIX << 48 | application << 32


DISCOVERY = cookie(1)
KEYFLOW = cookie(2)
TAG_AND_FORWARD = cookie(3)
LOW_LATENCY = cookie(4)


def is_of_another(value: int, own: int) -> bool:
    """Returns whether a cookie names another application of this package than `own` does. Entries with any
    other cookie are of no application that could still need them."""
    return value >> 48 == PREFIX and value & MASK != own
