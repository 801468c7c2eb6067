# SPDX-License-Identifier: Apache-2.0
"""Limits of rates."""


class Buckets:
    """A token bucket for each key: at most `burst` events at once, and `per_s` events per second."""

    KEYS_MAX = 10_000

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s, self._burst = per_s, burst
        self._tokens: dict[object, tuple[float, float]] = {}
        self.refused = 0
        """Number of events that were not allowed."""

    def allows(self, key: object, now_s: float) -> bool:
        """Counts an event. Returns whether it is allowed."""
        if len(self._tokens) >= self.KEYS_MAX:
            self._tokens.clear()
        tokens, before_s = self._tokens.get(key, (self._burst, now_s))
        tokens = min(self._burst, tokens + (now_s - before_s) * self._per_s)
        is_allowed = tokens >= 1.0
        self._tokens[key] = tokens - is_allowed, now_s
        self.refused += not is_allowed
        return is_allowed
