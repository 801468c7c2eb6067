# SPDX-License-Identifier: Apache-2.0
"""What cannot be planned."""


class PlanError(ValueError):
    """Says what was wrong, where, and what would be right; the text is for who asked."""


def need(is_so: bool, says: str) -> None:
    """Raises :class:`PlanError` unless something is so."""
    if not is_so:
        raise PlanError(says)
