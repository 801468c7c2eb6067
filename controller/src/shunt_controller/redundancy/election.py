# SPDX-License-Identifier: Apache-2.0
"""Election of the master among several controllers: a state machine that gets the time and the answers of a
store, and gives requests to the store.

The store has one record: which controller is the master, in which term, and a number that the master advances.
A standby takes over when the record has not changed for the duration of a lease. It measures this time by its
own clock, so clocks need not agree. Each write depends on the revision that was read, so one controller at most
succeeds, and a deposed master cannot write. Terms only grow. They are the generation IDs of OpenFlow, by which
switches refuse older masters.

If the store does not answer, a master remains master as long as all switches confirm its role, because then
no switch has another master. If a switch does not confirm the role, the master gives up.
"""

import json
from dataclasses import dataclass, replace

TERM_MAX = (1 << 63) - 1
GENERATION_MAX = 1 << 62
"""Maximum generation ID of a switch that decides about the next term. A higher one would leave no room for further
terms, and no controller of this package has chosen it."""
NO_GENERATION = (1 << 64) - 1
"""What a switch reports that has no generation ID."""
LOOK_MAX_S = 0.15
"""Maximum time between two readings by a standby, however long the lease is."""


@dataclass(frozen=True)
class Timing:
    """Times of an election in seconds."""

    lease_s: float = 1.2
    """Time without changes of the record after which another controller takes over."""
    renew_s: float = 0.25
    """Time between two changes by the master."""
    look_s: float = 0.15
    """Time between two readings by a standby."""

    @classmethod
    def of(cls, lease_s: float) -> "Timing":
        """Returns the times for the duration of a lease."""
        return cls(lease_s, lease_s / 5, min(lease_s / 8, LOOK_MAX_S))


@dataclass(frozen=True)
class Record:
    """The record of the store."""

    holder: str
    """Identification of the master; empty if it has given up."""
    term: int
    beat: int = 0

    def encoded(self) -> bytes:
        """Returns the record as JSON."""
        return json.dumps({"holder": self.holder, "term": self.term, "beat": self.beat}).encode()

    @classmethod
    def decoded(cls, data: bytes | None) -> "Record | None":
        """Returns the record, or None if the data is none."""
        try:
            value = json.loads(data or b"")
            holder, term, beat = value["holder"], value["term"], value["beat"]
        except (ValueError, TypeError, LookupError, RecursionError):
            return None
        if type(holder) is not str or type(term) is not int or type(beat) is not int or not 0 <= term <= TERM_MAX:
            return None
        return cls(holder, term, beat)


@dataclass(frozen=True)
class Read:
    """A request to read the record."""


@dataclass(frozen=True)
class Write:
    """A request to write the record if its revision is still the given one."""

    record: Record
    revision: int


class Election:
    """The part of one controller. The caller alternates between :meth:`request` and one of the methods that take
    the answer: :meth:`found`, :meth:`written` and :meth:`failed`."""

    def __init__(self, holder: str, timing: Timing) -> None:
        self.holder, self.timing = holder, timing
        self.record: Record | None = None
        """The record as it was read or written last."""
        self.revision = 0
        self.term = 0
        """The term in which this controller is or was the master; 0 if it never was."""
        self.is_master = False
        self.generation = 0
        """The highest generation ID that switches have reported."""
        self._since_s = 0.0
        """Time since which the record has not changed, as far as this controller knows."""
        self._looked_s = float("-inf")
        self._asked_s = float("-inf")
        self._renewed_s = float("-inf")
        """When the last write that succeeded was begun."""
        self._confirmed_s = float("-inf")
        """Time of the last request for the role that all switches have confirmed."""
        self._gives_up = False
        self.is_known = False
        """Whether the record is as it was read or written last, as far as this controller knows."""

    def request(self, now_s: float) -> Read | Write | None:
        """Returns the request to send to the store now, or None."""
        if self.is_master and now_s >= self._sure_until_s:
            self.is_master = False
        period_s = self.timing.renew_s if self.is_master else self.timing.look_s
        # If the record names another master, this controller has no mastership to give up.
        self._gives_up = self._gives_up and (self._is_own or not self.is_known)
        if now_s - self._asked_s < period_s and not (self._gives_up and self.is_known):
            return None
        self._asked_s = now_s
        if not self.is_known:
            return Read()
        if self._gives_up:
            return self._next("")
        is_kept = self.is_master and (self.record is None or self._is_own)
        return self._next(self.holder) if is_kept or self._is_free(now_s) else Read()

    def _next(self, holder: str) -> Write:
        before, beat = (self.record.term, self.record.beat) if self.record else (0, 0)
        if before == TERM_MAX:
            # No term follows it, so no controller of this package has chosen it.
            before = 0
        term = max(before, self.term, self.generation if self.generation > self.term else 0)
        is_new = holder and not (self.is_master and self.generation <= self.term)
        return Write(Record(holder, min(term + 1, TERM_MAX) if is_new else term, beat + 1), self.revision)

    def _is_free(self, now_s: float) -> bool:
        """Returns whether it is known that the record has no master."""
        if now_s - self._looked_s > 2 * self.timing.renew_s:
            return False
        unchanged_s = self._looked_s - self._since_s
        return self.record is None or not self.record.holder or self._is_own or unchanged_s >= self.timing.lease_s

    @property
    def _is_own(self) -> bool:
        return self.record is not None and self.record.holder == self.holder

    @property
    def _sure_until_s(self) -> float:
        return max(self._renewed_s, self._confirmed_s) + self.timing.lease_s

    def found(self, record: Record | None, revision: int, now_s: float) -> None:
        """Takes the answer to a reading."""
        # While the store does not answer, the master cannot change the record. This time does not count.
        is_late = now_s - self._looked_s > 2 * self.timing.renew_s
        if revision != self.revision or is_late:
            self._since_s = now_s
        self.is_known, self.record, self.revision, self._looked_s = True, record, revision, now_s
        if record is not None and not (self._is_own and record.term >= self.term):
            self.is_master = False

    def written(self, request: Write, is_done: bool, revision: int, record: Record | None, now_s: float) -> None:
        """Takes the answer to a write: the new revision if it was done, otherwise the record and its revision."""
        if not is_done:
            self.found(record, revision, now_s)
            return
        self.record, self.revision, self._since_s, self._looked_s = request.record, revision, now_s, now_s
        self.is_master = request.record.holder == self.holder
        if self.is_master:
            self.term, self._renewed_s = request.record.term, self._asked_s

    def failed(self) -> None:
        """Takes the failure of a request. It is unknown whether a write was done, so the record is read next."""
        self.is_known = False

    def seen(self, generation: int) -> None:
        """Records a generation ID that a switch has reported. The next term is higher, unless the ID is above
        GENERATION_MAX."""
        if generation <= GENERATION_MAX:
            self.generation = max(self.generation, generation)

    def needs_confirmation(self, now_s: float) -> bool:
        """Returns whether switches must confirm the role, because the lease was not renewed in time."""
        return self.is_master and now_s - self._renewed_s > 2 * self.timing.renew_s

    def confirmed(self, asked_s: float) -> None:
        """Records that all switches have confirmed the role. They were asked at the given time."""
        self._confirmed_s = max(self._confirmed_s, asked_s)

    def give_up(self) -> None:
        """Ends the mastership, so that another controller can take over at once."""
        self.is_master, self._gives_up = False, True
        self._asked_s = float("-inf")
