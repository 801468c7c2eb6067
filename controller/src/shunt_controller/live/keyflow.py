# SPDX-License-Identifier: Apache-2.0
"""KeyFlow in a running network: from the topology and the packets that hosts ask for to the configurations of
switches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shunt_controller.live.identifiers import Identifiers, extended, renumbered
from shunt_controller.live.keyentries import Wanted, configurations
from shunt_controller.live.keyroutes import Routes, plan
from shunt_controller.live.rollout import Rollout
from shunt_controller.live.state import State
from shunt_controller.live.topology import Topology
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError
from shunt_controller.sections import TABLES, Bank


@dataclass(frozen=True)
class Settings:
    """Settings of KeyFlow."""

    is_reactive: bool = False
    """Whether keys are installed only for packets that have arrived; otherwise for all pairs of places."""
    width_bits: int = 64
    protect: bool = False
    """Whether keys have detours around failures."""
    reserve: int = 4
    """Number of further links of a switch for which its ID leaves room."""
    idle_s: int = 60
    """Time after which an entry of a reactive network is removed if it is not used."""


class KeyFlow:
    """The plan of a network. `report` gets an identification of each event and a sentence about it."""

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        self.settings, self._report = settings, report
        self.topology = Topology()
        self.identifiers = Identifiers(0)
        self.lanes: set[int] = set()
        """Switches with stateless forwarding, also if they are not connected at the moment."""
        self.routes = Routes()
        self.rollout = Rollout()
        self.wanted: set[Wanted] = set()
        """In a reactive network, the packets that have been asked for."""
        self.is_stale = False
        """Whether something has changed since the last plan."""

    def set_topology(self, topology: Topology) -> None:
        """Sets the topology."""
        if topology != self.topology:
            self.topology, self.is_stale = topology, True
            macs = {host.mac for host in topology.hosts}
            self.wanted = {one for one in self.wanted if one.mac in macs and one.switch in topology.switches}

    def known(self, switch: int, state: State, has_lane: bool) -> None:
        """Records the configuration that a switch has."""
        was = switch in self.lanes
        (self.lanes.add if has_lane else self.lanes.discard)(switch)
        self.is_stale |= was != has_lane
        self.rollout.known(switch, state)
        if self.settings.is_reactive:
            for flow in state.flows.values():
                if flow.idle_s and set(flow.match) == {"eth_dst"}:
                    self.wanted.add(Wanted(switch, str(flow.match["eth_dst"])))

    def restore(self) -> None:
        """Takes over the IDs and labels that switches have since before the controller was started."""
        found: dict[int, dict[int, Bank]] = {0: {}, 1: {}}
        for switch, state in self.rollout.actual.items():
            for section in state.sections.values():
                if isinstance(section, Bank):
                    found[section.epoch][switch] = section
        epoch = max(found, key=lambda one: (len(found[one]), -one))
        ids, labels = {}, {}
        for switch, bank in found[epoch].items():
            residues = bank.residues
            if residues and not residues.polynomial and sorted(residues.labels) == list(range(len(residues.labels))):
                ids[switch] = residues.id
                labels[switch] = tuple(LOCAL if port == TABLES else port for _, port in sorted(residues.labels.items()))
        self.identifiers, self.is_stale = Identifiers(epoch, ids, labels), True

    def ask(self, switch: int, mac: str) -> bool:
        """Records that a packet to a host has entered the network at a switch. Returns whether this is new and
        of a reactive network."""
        wanted = Wanted(switch, mac)
        if not self.settings.is_reactive or wanted in self.wanted:
            return False
        self.wanted.add(wanted)
        self.is_stale = True
        return True

    def idle(self, switch: int, mac: str) -> None:
        """Records that an entry of a reactive network was removed because it was not used."""
        self.wanted.discard(Wanted(switch, mac))
        self.is_stale = True

    def update(self) -> bool:
        """Plans if something has changed. Returns whether there is a new plan. If there is none because of a
        problem, the network stays as it is."""
        if not self.is_stale:
            return False
        lanes = self.lanes & self.topology.switches.keys()
        try:
            identifiers = self._identify(lanes)
            if identifiers is None:
                return False
            self.is_stale = False
            at = {host.mac: host.at.switch for host in self.topology.hosts}
            wanted = self._all_wanted(at)
            pairs = {(one.switch, at[one.mac]) for one in wanted if one.mac in at and at[one.mac] != one.switch}
            routes = plan(self.topology, identifiers, lanes, pairs, self.settings.width_bits, self.settings.protect)
            idle_s = self.settings.idle_s if self.settings.is_reactive else 0
            made = configurations(self.topology, identifiers, lanes, routes, wanted, self.settings.width_bits, idle_s)
        except PlanError as error:
            self.is_stale = False
            self._report(f"plan {error}", f"the network stays as it is, because it cannot be planned: {error}")
            return False
        for (source, destination), reason in sorted(routes.refused.items()):
            self._report(f"refused {source} {destination} {reason}", f"no route leads from switch {source:x} to {destination:x}: {reason}")
        if self.settings.protect and lanes != self.topology.switches.keys():
            self._report("unprotected", "parts of the network with switches without stateless forwarding are not protected")
        self.identifiers, self.routes = identifiers, routes
        self.rollout.want(made)
        return True

    def _all_wanted(self, at: Mapping[str, int]) -> set[Wanted]:
        if self.settings.is_reactive:
            return self.wanted
        return {Wanted(switch, mac) for switch in set(at.values()) for mac in at if at[mac] != switch}

    def _identify(self, lanes: set[int]) -> Identifiers | None:
        """Returns the IDs and labels. Returns None if they have to be chosen again, but the other epoch is still
        in use."""
        old, reserve = self.identifiers, self.settings.reserve
        try:
            return extended(old, self.topology, lanes, reserve)
        except PlanError as error:
            place = Bank.kind, 1 - old.epoch
            if any(place in state.sections for state in self.rollout.actual.values()):
                return None
            self._report(f"renumber {error}", f"all switches get new IDs, under epoch {1 - old.epoch}: {error}")
            return renumbered(old, self.topology, lanes, reserve)
