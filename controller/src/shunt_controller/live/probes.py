# SPDX-License-Identifier: Apache-2.0
"""The schedule of LLDP frames, and the nonces in them. A nonce is accepted once, and only while it is the last
one of its port. A recorded frame that is sent again is therefore refused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shunt_controller.live.lldp import Probe
from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Port


@dataclass
class _Schedule:
    """The frames of a port."""

    up_s: float
    sent: int
    next_s: float
    nonces: tuple[bytes, ...] = ()
    """Nonces that have been sent and not received, at most the last two, because a frame may be on its way
    while the next one is sent."""


class Probes:
    """LLDP frames of all ports that are up. `nonce` returns a new random nonce."""

    def __init__(self, timing: Timing, nonce: Callable[[], bytes]) -> None:
        self._timing, self._nonce = timing, nonce
        self._ports: dict[Port, _Schedule] = {}

    def up(self, port: Port, now_s: float) -> None:
        """Begins to send frames by a port. Does nothing if it has begun already."""
        self._ports.setdefault(port, _Schedule(now_s, 0, now_s + self._timing.first_s[0]))

    def down(self, port: Port) -> None:
        """Ends the frames of a port."""
        self._ports.pop(port, None)

    def due(self, now_s: float) -> Iterator[Probe]:
        """Yields the frames that are to be sent now."""
        for port, schedule in self._ports.items():
            if schedule.next_s > now_s:
                continue
            schedule.sent += 1
            first_s = self._timing.first_s
            if schedule.sent < len(first_s):
                schedule.next_s = schedule.up_s + first_s[schedule.sent]
            else:
                schedule.next_s = now_s + self._timing.period_s
            nonce = self._nonce()
            schedule.nonces = (*schedule.nonces[-1:], nonce)
            yield Probe(port, nonce)

    def accept(self, probe: Probe) -> bool:
        """Returns whether a received frame is one that has been sent lately and is received for the first
        time."""
        schedule = self._ports.get(probe.sender)
        if schedule is None or probe.nonce not in schedule.nonces:
            return False
        schedule.nonces = tuple(nonce for nonce in schedule.nonces if nonce != probe.nonce)
        return True

    def up_since_s(self, port: Port) -> float | None:
        """Returns the time at which a port came up, or None if it is down."""
        return self._ports[port].up_s if port in self._ports else None
