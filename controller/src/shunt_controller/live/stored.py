# SPDX-License-Identifier: Apache-2.0
"""Bases of plans as a controller before this one has stored them (:mod:`shunt_controller.redundancy.journal`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

Decoded = TypeVar("Decoded")


def usable(bases: Iterable[Mapping[str, Any]], decode: Callable[[Mapping[str, Any]], Decoded], report: Callable[[str, str], None]) -> Iterator[Decoded]:
    """Decodes stored bases. Those that are damaged are reported and left out."""
    for basis in bases:
        try:
            yield decode(basis)
        except ValueError as error:
            report(f"stored {error}", f"a stored plan is not used: {error}")
