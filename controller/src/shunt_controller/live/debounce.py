# SPDX-License-Identifier: Apache-2.0
"""Collects changes that come in quick succession, so that they are handled together."""


class Debounce:
    """Decides when changes are due: after `quiet_s` without a further change, but at most `most_s` after the
    first one. All times are in seconds."""

    def __init__(self, quiet_s: float, most_s: float) -> None:
        self._quiet_s, self._most_s = quiet_s, most_s
        self._first_s: float | None = None
        self._last_s = 0.0
        self._urgent = False

    def change(self, now_s: float, urgent: bool = False) -> None:
        """Records a change. An urgent change is due at once, with all others."""
        self._first_s = now_s if self._first_s is None else self._first_s
        self._last_s = now_s
        self._urgent |= urgent

    def due(self, now_s: float) -> bool:
        """Returns whether there are changes that are due. They are not due again."""
        if self._first_s is None:
            return False
        is_due = self._urgent or now_s - self._last_s >= self._quiet_s or now_s - self._first_s >= self._most_s
        if is_due:
            self._first_s, self._urgent = None, False
        return is_due
