# SPDX-License-Identifier: Apache-2.0
"""Links between switches, from the LLDP frames that their ports have received. A link exists when frames have
passed in both directions. It ends when a port is down, or when frames no longer arrive. A link that fails
repeatedly is used again only after a hold time, which doubles with each failure."""

from collections.abc import Collection
from dataclasses import dataclass

from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Link, Port


@dataclass
class _Failures:
    """Recent failures of a link."""

    count: int
    last_s: float


class Links:
    """The links of a network. Each method takes the current time in seconds."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._from: dict[Port, tuple[Port, float]] = {}
        """For each port, the port whose frame it received last, and the time."""
        self._to: dict[Port, Port] = {}
        """The port that received the last frame of each port: the reverse of `_from`."""
        self._failures: dict[Link, _Failures] = {}
        self._links: set[Link] = set()

    @property
    def current(self) -> frozenset[Link]:
        """Links in use, as of the last call of :meth:`update`."""
        return frozenset(self._links)

    def heard(self, sender: Port, receiver: Port, now_s: float) -> None:
        """Records a frame of one port that another port has received."""
        if sender == receiver:
            return
        # A cable has two ends, so earlier frames between either port and a third one are outdated.
        if self._to.get(sender, receiver) != receiver:
            self._forget(self._to[sender])
        if receiver in self._from and self._from[receiver][0] != sender:
            self._forget(receiver)
        self._from[receiver], self._to[sender] = (sender, now_s), receiver

    def lost(self, port: Port) -> None:
        """Removes what is known about the link of a port, because the port is down or does not exist."""
        if port in self._from:
            self._forget(port)
        if port in self._to:
            self._forget(self._to[port])

    def _forget(self, receiver: Port) -> None:
        sender, _ = self._from.pop(receiver)
        del self._to[sender]

    def renew(self, switch: int, now_s: float) -> None:
        """Confirms the links of a switch that has connected again, until its frames can have arrived."""
        for port, (sender, _) in list(self._from.items()):
            if switch in (port.switch, sender.switch):
                self._from[port] = sender, now_s

    def update(self, now_s: float, absent: Collection[int] = ()) -> bool:
        """Adds and removes links. Returns whether a link changed. Switches that are `absent` have no connection,
        so their frames are not missed."""
        for port, (sender, heard_s) in list(self._from.items()):
            if now_s - heard_s >= self._timing.lifetime_s and port.switch not in absent and sender.switch not in absent:
                self._forget(port)
        # Port a has heard port b, and b has heard a.
        whole = {Link.of(port, sender) for port, (sender, _) in self._from.items() if self._to.get(port) == sender}
        ended = self._links - whole
        for link in ended:
            before = self._failures.get(link)
            calm = before is None or now_s - before.last_s >= self._timing.calm_s
            self._failures[link] = _Failures(1 if calm or before is None else before.count + 1, now_s)
        begun = {link for link in whole - self._links if now_s >= self._usable_s(link)}
        self._links = (self._links - ended) | begun
        for link, failures in list(self._failures.items()):
            if now_s - failures.last_s >= self._timing.calm_s:
                del self._failures[link]
        return bool(ended or begun)

    def _usable_s(self, link: Link) -> float:
        """Returns the time from which a link may be used."""
        failures = self._failures.get(link)
        if failures is None:
            return 0.0
        # The exponent is limited so that the product stays finite.
        hold_s = self._timing.hold_s * 2.0 ** min(failures.count - 1, 32)
        return failures.last_s + min(hold_s, self._timing.hold_max_s)

    def has_heard(self, port: Port) -> bool:
        """Returns whether frames from or to another switch have passed a port, even if its link is not in use."""
        return port in self._from or port in self._to
