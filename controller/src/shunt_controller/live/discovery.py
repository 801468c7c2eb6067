# SPDX-License-Identifier: Apache-2.0
"""Discovery of a network: a state machine that gets the events of switches and the time, and gives LLDP frames
to send and the topology."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from shunt_controller.live.hosts import Hosts
from shunt_controller.live.links import Links
from shunt_controller.live.lldp import Probe
from shunt_controller.live.probes import Probes
from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Host, Port, Topology


@dataclass
class _Switch:
    """A switch."""

    connected_s: float
    ports: set[int] = field(default_factory=set)
    """Ports that are up."""
    gone_s: float | None = None
    """When the connection ended; None if it exists."""


class Discovery:
    """The state of discovery. `report` gets an identification of each event and a sentence about it."""

    def __init__(self, timing: Timing, nonce: Callable[[], bytes], report: Callable[[str, str], None]) -> None:
        self._timing, self._report = timing, report
        self._probes = Probes(timing, nonce)
        self._links = Links(timing)
        self._hosts = Hosts(timing, report)
        self._switches: dict[int, _Switch] = {}
        self._down_s: dict[Port, float] = {}
        """Ports with hosts that are down, and since when."""
        self._hosts_since_s: dict[Port, float] = {}
        """Ports at which hosts have sent packets since the port is up, and since when."""
        self._had_link: set[Port] = set()
        """Ports that have had a link since they are up."""
        self.refused = 0
        """Number of LLDP frames that were forged, or recorded and sent again."""

    def connected(self, switch: int, ports: Mapping[int, bool], now_s: float) -> None:
        """Records a switch that has connected, and for each of its ports whether it is up."""
        known = self._switches.setdefault(switch, _Switch(now_s))
        known.connected_s, known.gone_s = now_s, None
        for number in known.ports - {number for number, is_up in ports.items() if is_up}:
            self.port(Port(switch, number), False, now_s)
        for number, is_up in ports.items():
            self.port(Port(switch, number), is_up, now_s)
        self._links.renew(switch, now_s)

    def disconnected(self, switch: int, now_s: float) -> None:
        """Records that the connection of a switch has ended. The switch remains for a time, because it forwards
        packets without a controller. Its links remain as well, unless a port at the other end is down."""
        if switch in self._switches:
            self._switches[switch].gone_s = now_s
            for number in self._switches[switch].ports:
                self._probes.down(Port(switch, number))

    def port(self, port: Port, is_up: bool, now_s: float) -> None:
        """Records the state of a port. The link of a port that is down ends at once."""
        switch = self._switches.get(port.switch)
        if switch is None:
            return
        if is_up:
            switch.ports.add(port.number)
            self._probes.up(port, now_s)
            self._down_s.pop(port, None)
            return
        switch.ports.discard(port.number)
        self._forget(port)
        if port in self._hosts.ports():
            self._down_s.setdefault(port, now_s)

    def _forget(self, port: Port) -> None:
        """Forgets all of a port that is down, except its hosts."""
        self._probes.down(port)
        self._links.lost(port)
        self._hosts_since_s.pop(port, None)
        self._had_link.discard(port)

    def due(self, now_s: float) -> Iterator[Probe]:
        """Yields the LLDP frames that are to be sent now."""
        return self._probes.due(now_s)

    def received(self, probe: Probe | None, receiver: Port, now_s: float) -> None:
        """Records an LLDP frame that a switch has received. `probe` is None if its code is wrong."""
        if receiver.number not in self._ports_up(receiver.switch):
            return
        if probe is None or not self._probes.accept(probe) or probe.sender == receiver:
            self.refused += 1
            text = f"an LLDP frame at port {receiver.number} of switch {receiver.switch:x} is not of this controller, or a copy; it is ignored"
            self._report(f"forged {receiver}", text)
            return
        if receiver in self._hosts_since_s and not self._is_late(probe.sender.switch, receiver, now_s):
            # Hosts could pass LLDP frames on to each other, and so make a link.
            self.refused += 1
            text = (
                f"a host is at port {receiver.number} of switch {receiver.switch:x}, so an LLDP frame of switch {probe.sender.switch:x} there is "
                "ignored; if the port now leads to this switch, take it down and up again"
            )
            self._report(f"relayed {receiver}", text)
            return
        self._links.heard(probe.sender, receiver, now_s)

    def _is_late(self, switch: int, port: Port, now_s: float) -> bool:
        """Returns whether a switch has connected a short time ago, and after the first packet of a host at a
        port. Until then, the switch may have passed on packets of hosts, but no LLDP frames."""
        known = self._switches.get(switch)
        return known is not None and self._hosts_since_s[port] < known.connected_s and now_s - known.connected_s < self._timing.late_s

    def learn(self, mac: str, at: Port, addresses: Iterable[str], now_s: float) -> bool:
        """Records a packet of a host. Returns whether hosts changed. Packets at ports that lead, or may lead,
        to a switch are ignored."""
        if not self.is_edge(at, now_s):
            return False
        self._hosts_since_s.setdefault(at, now_s)
        return self._hosts.learn(mac, at, addresses, now_s)

    def restore(self, host: Host, now_s: float) -> bool:
        """Records a host that was known before the controller has restarted. Returns whether hosts changed."""
        at = host.at
        if at.number not in self._ports_up(at.switch) or self._links.has_heard(at):
            return False
        # Its entries show that the port did not lead to a switch that has connected only now.
        self._hosts_since_s[at] = math.inf
        is_elsewhere = self._hosts.place(host.mac) not in (None, at)
        return not is_elsewhere and self._hosts.learn(host.mac, at, host.addresses, now_s)

    def is_edge(self, port: Port, now_s: float) -> bool:
        """Returns whether a port leads to no switch. A port that has just come up may still lead to one, and so
        may a port that has had a link and has not been down since."""
        since_s = self._probes.up_since_s(port)
        is_settled = since_s is not None and now_s - since_s >= self._timing.edge_after_s
        return is_settled and port not in self._had_link and not self._links.has_heard(port)

    def update(self, now_s: float) -> bool:
        """Removes what is too old, and adds new links. Returns whether something changed."""
        changed = False
        for number, switch in list(self._switches.items()):
            if switch.gone_s is not None and now_s - switch.gone_s >= self._timing.absent_s:
                self._remove(number, switch)
                changed = True
        absent = {number for number, switch in self._switches.items() if switch.gone_s is not None}
        changed |= self._links.update(now_s, absent)
        self._had_link.update(end for link in self._links.current for end in link)
        for port, down_s in list(self._down_s.items()):
            if now_s - down_s >= self._timing.host_hold_s:
                del self._down_s[port]
                changed |= self._hosts.forget_at(port)
        for port in self._hosts.ports():
            if self._links.has_heard(port):
                self._hosts_since_s.pop(port, None)
                changed |= self._hosts.forget_at(port)
        return changed

    def _remove(self, number: int, switch: _Switch) -> None:
        for port in [Port(number, port) for port in switch.ports]:
            self._forget(port)
        for port in [port for port in self._hosts.ports() if port.switch == number]:
            self._hosts.forget_at(port)
            self._down_s.pop(port, None)
        del self._switches[number]

    def _ports_up(self, switch: int) -> set[int]:
        return self._switches[switch].ports if switch in self._switches else set()

    def is_connected(self, switch: int) -> bool:
        """Returns whether a switch has a connection."""
        return switch in self._switches and self._switches[switch].gone_s is None

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts in ascending order of their MAC addresses."""
        return self._hosts.current

    def topology(self) -> Topology:
        """Returns the network as of the last call of :meth:`update`."""
        switches = {number: frozenset(switch.ports) for number, switch in sorted(self._switches.items())}
        return Topology(switches, self._links.current, self._hosts.current)
