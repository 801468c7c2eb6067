# SPDX-License-Identifier: Apache-2.0
"""Errors of the planners."""


class PlanError(ValueError):
    """A request cannot be planned. The message is for the user. It states the problem, its location and a
    remedy."""


def need(is_so: bool, says: str) -> None:
    """Raises :class:`PlanError` unless the condition holds."""
    if not is_so:
        raise PlanError(says)
