# SPDX-License-Identifier: Apache-2.0
"""Reports of events in the log. Repetitions of an event are suppressed for a time, and counted."""

import logging
import threading
import time


class Reports:
    """Writes each kind of event at most once per `every_s` seconds."""

    KINDS_MAX = 10_000
    """Maximum number of kinds that are remembered. Hosts can cause events of many kinds."""

    def __init__(self, log: logging.Logger, every_s: float = 60.0) -> None:
        self._log, self._every_s = log, every_s
        self._last: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def __call__(self, kind: str, text: str) -> None:
        """Writes a sentence about an event of this kind, unless one was written a short time ago."""
        now_s = time.monotonic()
        with self._lock:
            written_s, suppressed = self._last.get(kind, (-self._every_s, 0))
            if now_s - written_s < self._every_s:
                self._last[kind] = written_s, suppressed + 1
                return
            if len(self._last) >= self.KINDS_MAX:
                self._last.clear()
            self._last[kind] = now_s, 0
        self._log.info("%s%s", text, f" ({suppressed} times more before)" if suppressed else "")
