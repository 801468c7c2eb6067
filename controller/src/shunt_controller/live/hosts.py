# SPDX-License-Identifier: Apache-2.0
"""Hosts and their locations, learned from packets that enter the network at ports without a link."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Host, Port


@dataclass
class _Known:
    """A host, and what decides whether it may move."""

    at: Port
    addresses: set[str] = field(default_factory=set)
    moves_s: deque[float] = field(default_factory=deque)


class Hosts:
    """The hosts of a network by MAC address. `report` gets a sentence for each event that an operator should
    know of: the first argument identifies the event, so that repetitions can be suppressed."""

    def __init__(self, timing: Timing, report: Callable[[str, str], None]) -> None:
        self._timing, self._report = timing, report
        self._known: dict[str, _Known] = {}
        self._count: dict[Port, int] = {}

    @property
    def current(self) -> tuple[Host, ...]:
        """All hosts in ascending order of their MAC addresses."""
        return tuple(Host(mac, known.at, tuple(sorted(known.addresses))) for mac, known in sorted(self._known.items()))

    def learn(self, mac: str, at: Port, addresses: Iterable[str], now_s: float) -> bool:
        """Records that a host has sent a packet at a port, with these IP addresses. Returns whether something
        changed."""
        known, changed = self._known.get(mac), False
        if known is None:
            if self._count.get(at, 0) >= self._timing.hosts_per_port:
                self._report(f"full {at}", f"{_place(at)} has {self._timing.hosts_per_port} hosts; {mac} and others there are ignored")
                return False
            known, changed = self._known.setdefault(mac, _Known(at)), True
            self._count[at] = self._count.get(at, 0) + 1
            self._report(f"new {mac}", f"host {mac} is at {_place(at)}")
        elif known.at != at:
            changed = self._move(mac, known, at, now_s)
        # Another port may not add addresses to a host that has not moved there.
        if known.at == at:
            for address in addresses:
                changed |= self._assign(mac, known, address)
        return changed

    def _move(self, mac: str, known: _Known, to: Port, now_s: float) -> bool:
        moves_s = known.moves_s
        while moves_s and now_s - moves_s[0] >= self._timing.moves_s:
            moves_s.popleft()
        if len(moves_s) >= self._timing.moves_max:
            text = f"host {mac} is seen at {_place(known.at)} and at {_place(to)} in turns; it stays at the former for now"
            self._report(f"in turns {mac}", text)
            return False
        if self._count.get(to, 0) >= self._timing.hosts_per_port:
            self._report(f"full {to}", f"{_place(to)} has {self._timing.hosts_per_port} hosts; {mac} and others there are ignored")
            return False
        moves_s.append(now_s)
        self._report(f"moved {mac} {to}", f"host {mac} has moved from {_place(known.at)} to {_place(to)}")
        self._leave(known.at)
        known.at = to
        self._count[to] = self._count.get(to, 0) + 1
        return True

    def _assign(self, mac: str, known: _Known, address: str) -> bool:
        if address in known.addresses:
            return False
        if len(known.addresses) >= self._timing.addresses_per_host:
            self._report(f"addresses {mac}", f"host {mac} has {len(known.addresses)} IP addresses; further ones are ignored")
            return False
        for other, its in sorted(self._known.items()):
            if address in its.addresses:
                text = f"{address} is used by two hosts, {other} at {_place(its.at)} and {mac} at {_place(known.at)}"
                self._report(f"twice {address}", text)
        known.addresses.add(address)
        return True

    def forget_at(self, port: Port) -> bool:
        """Removes the hosts at a port. Returns whether there were any."""
        found = [mac for mac, known in self._known.items() if known.at == port]
        for mac in found:
            del self._known[mac]
        self._count.pop(port, None)
        return bool(found)

    def place(self, mac: str) -> Port | None:
        """Returns the port of a host, or None if the host is not known."""
        known = self._known.get(mac)
        return known.at if known else None

    def ports(self) -> frozenset[Port]:
        """Returns the ports at which there are hosts."""
        return frozenset(self._count)

    def _leave(self, port: Port) -> None:
        self._count[port] -= 1
        if not self._count[port]:
            del self._count[port]


def _place(port: Port) -> str:
    return f"port {port.number} of switch {port.switch:x}"
