# SPDX-License-Identifier: Apache-2.0
"""Tag-and-Forward in a running network: from the topology to the configurations of switches."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shunt_controller.live.rollout import Rollout
from shunt_controller.live.state import State
from shunt_controller.live.stored import usable
from shunt_controller.live.tagbasis import differing, of_ports, ports_in
from shunt_controller.live.tagentries import Tags
from shunt_controller.live.topology import Host, Link, Topology, switch_of
from shunt_controller.live.takeover import taken_over
from shunt_controller.live.tree import Ports, links_of, ports_of, problems, recognized
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.fattree import FatTree, listed
from shunt_controller.plan.gates import PAPER, WIDE, Numbering, number
from shunt_controller.sections import Flag, Gates

TAG_BYTES = 8
"""Length of a tag of both formats."""


@dataclass(frozen=True)
class Settings:
    """Settings of Tag-and-Forward."""

    is_wide: bool = False
    """Whether tags have the wide format, which larger trees need."""
    qids: Mapping[int, int] = field(default_factory=dict)
    """QID of IP packets by their DSCP. Other packets have QID 0."""


class TagForward:
    """The plan of a network. `report` gets an identification of each event and a sentence about it."""

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        self.settings, self._report = settings, report
        self.topology = Topology()
        self.lanes: dict[int, bool] = {}
        """Whether switches have stateless forwarding, also if they are not connected at the moment."""
        self.rollout = Rollout()
        self.tree: FatTree | None = None
        self.numbering: Numbering | None = None
        self.problems: list[str] = []
        """What keeps the network from being the fat tree that is numbered, or any fat tree."""
        self.is_stale = False
        """Whether something has changed since the last plan."""
        self._ports = Ports()
        self._basis: tuple[Ports, dict[str, Any]] | None = None
        self._known: dict[int, frozenset[int]] = {}
        self._tags: Tags | None = None
        self._links: frozenset[Link] = frozenset()
        self._had: dict[int, State] = {}
        """The configurations that switches had when they connected, until there is a tree."""

    @property
    def header_bytes(self) -> int:
        """Length of the tag that is added to packets."""
        return TAG_BYTES

    def set_topology(self, topology: Topology) -> None:
        """Sets the topology."""
        if topology != self.topology:
            self.topology, self.is_stale = topology, True
            for switch, ports in topology.switches.items():
                self._known[switch] = self._known.get(switch, frozenset()) | ports

    def known(self, switch: int, state: State, has_lane: bool) -> None:
        """Records the configuration that a switch has."""
        self.is_stale |= self.lanes.get(switch) != has_lane
        self.lanes[switch] = has_lane
        self.rollout.known(switch, state)
        if self.tree is None:
            self._had[switch] = state

    def restore(self) -> None:
        """Takes over the ports of servers and to the outside, in the order of the gates that switches have
        since before the controller was started."""
        servers, outside = {}, {}
        for switch, state in self.rollout.actual.items():
            section = state.sections.get((Gates.kind, 0))
            if not isinstance(section, Gates) or section.gates is None:
                continue
            gates = sorted((gate.number, gate.flag, port) for port, gate in section.gates.ports.items())
            servers[switch] = tuple(port for _, flag, port in gates if flag == Flag.SERVER)
            outside[switch] = tuple(port for _, flag, port in gates if flag == Flag.EXTERNAL)
            self._known[switch] = self._known.get(switch, frozenset()) | {*servers[switch], *outside[switch]}
        self._ports, self.is_stale = Ports(servers, outside), True

    def adopt(self, bases: Iterable[Mapping[str, Any]]) -> None:
        """Takes over the first of some stored bases that the gates of switches agree with. Called after
        :meth:`restore`, whose order of ports remains if there is none."""
        for found in usable(bases, ports_in, self._report):
            switch = differing(found, self._ports)
            if switch is not None:
                self._report(f"unsuitable {switch}", f"a stored plan is not used: switch {switch:x} has gates at other ports, or in another order")
                continue
            self._ports, self.is_stale = found, True
            for part in (self._ports.servers, self._ports.outside):
                for switch, ports in part.items():
                    self._known[switch] = self._known.get(switch, frozenset()) | {*ports}
            return

    def basis(self) -> dict[str, Any] | None:
        """Returns the basis of the plan, or None without a plan."""
        if self._basis is None or self._basis[0] is not self._ports:
            self._basis = self._ports, of_ports(self._ports)
        return self._basis[1] if self.rollout.desired else None

    @property
    def waits(self) -> bool:
        """False: a plan that waits for the store is not preceded by repairs."""
        return False

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of the network."""
        return self.topology.hosts

    def ports(self) -> dict[int, set[int]]:
        """Returns the ports with gates of each switch that exist."""
        if self.numbering is None:
            return {}
        names = self.numbering.tree.network.nodes
        return {
            number: set(one.by_port) & self._known.get(number, frozenset())
            for number, one in ((switch_of(names[node]), one) for node, one in self.numbering.switches.items())
        }

    def update(self) -> bool:
        """Plans if something has changed. Returns whether there is a new plan. If there is none because of a
        problem, the network stays as it is."""
        if not self.is_stale:
            return False
        self.is_stale = False
        try:
            self._recognize()
            if self._tags is None or self.tree is None:
                return False
            # A port that the tree has only reserved so far may have come up, and then has its gate.
            ports = ports_of(self.tree, self._known)
            if ports != self._ports:
                self._ports = ports
            alive = self._links & self.topology.links
            made = self._tags.configurations(self.topology.hosts, alive)
        except PlanError as error:
            self.problems = [str(error)]
            self._report(f"plan {error}", f"the network stays as it is, because it cannot be planned: {error}")
            return False
        if made == self.rollout.desired:
            return False
        self.rollout.want(made)
        return True

    def _recognize(self) -> None:
        """Recognizes the tree again if there are other switches, links or ports than before. Links that have
        failed do not change the tree."""
        if self.tree is not None and self.topology.links < self._links:
            self.problems = self._failed(self._links)
            return
        tree = recognized(self.topology, self._ports)
        without = sorted(switch for switch in self.topology.switches if self.lanes.get(switch) is False)
        header = WIDE if self.settings.is_wide else PAPER
        if tree is None and self.tree is None:
            tree = taken_over(self.topology, self._had, self._ports, header)
        if tree is None or without:
            self.problems = [f"switch {switch:x} has no stateless forwarding" for switch in without] or problems(self.topology)
            stays = "the network stays as it is, because it is no fat tree" if self.tree else "waiting for a fat tree"
            self._report_problems("tree", stays)
            return
        links = links_of(tree)
        self.problems = self._failed(links)
        if self.problems:
            self._report_problems("failed", "the tree is taken over from the gates of the switches")
        if self.tree is not None and (tree.servers, tree.outside, links) == (self.tree.servers, self.tree.outside, self._links):
            return
        numbering = number(tree, header)
        self.tree, self.numbering, self._links = tree, numbering, links
        self._had = {}
        self._tags = Tags(numbering, self._known, self.settings.qids)

    def _failed(self, links: frozenset[Link]) -> list[str]:
        """Returns a sentence about each of these links that does not work."""
        return [f"{_link(link)} does not work" for link in sorted(links - self.topology.links)]

    def _report_problems(self, kind: str, what: str) -> None:
        text = listed(self.problems)
        self._report(f"{kind} {text}", f"{what}: {text}")


def _link(link: Link) -> str:
    a, b = link
    return f"the link from port {a.number} of switch {a.switch:x} to port {b.number} of switch {b.switch:x}"
