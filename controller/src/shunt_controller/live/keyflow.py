# SPDX-License-Identifier: Apache-2.0
"""KeyFlow in a running network: from the topology and the packets that hosts ask for to the configurations of
switches."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from shunt_controller.live.basis import agree, identifiers_of, of_identifiers, suffice
from shunt_controller.live.identifiers import Identifiers, extended, labelled, renumbered, suffices
from shunt_controller.live.keyentries import Wanted, configurations
from shunt_controller.live.keyroutes import Known, Routes, plan
from shunt_controller.live.rollout import Rollout
from shunt_controller.live.state import State
from shunt_controller.live.stored import usable
from shunt_controller.live.topology import Host, Topology
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.sections import TABLES, Bank, Residues

HEADER_BYTES = 8
"""Length of the KeyFlow header without its key."""
KNOWN_PER_PAIR, KNOWN_MIN = 4, 1000
"""Routes that are remembered for later plans: at most this many per pair, and this many in addition."""


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
        self._known_routes: Known = {}
        self._known_for: tuple[object, ...] = ()
        """The IDs, lanes and key width for which the known routes are valid."""
        self._conflict = ""
        """Why the IDs that switches had cannot be used; empty if they can."""
        self._is_conflicting = False
        """Whether there was such a conflict when the IDs were chosen last."""
        self._basis: tuple[Identifiers, dict[str, Any]] | None = None
        self.is_stored: Callable[[Mapping[str, Any]], bool] = lambda basis: True
        """Returns whether a basis is stored, so that switches may be given its plan. Without a store, each may."""
        self._next: Identifiers | None = None
        """IDs and labels of a plan that waits for the store. Meanwhile, :attr:`identifiers` remain in use."""

    @property
    def header_bytes(self) -> int:
        """Length of the header that is added to packets."""
        return HEADER_BYTES + self.settings.width_bits // 8

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
        if switch not in self.identifiers.ids:
            # The switch may have connected late after a restart of the controller.
            adopted = _adopted(self.identifiers, switch, state)
            if not _common_factor(adopted.ids):
                self.identifiers = adopted
        self.rollout.known(switch, state)
        if self.settings.is_reactive:
            for flow in state.flows.values():
                if flow.idle_s and set(flow.match) == {"eth_dst"}:
                    self.wanted.add(Wanted(switch, str(flow.match["eth_dst"])))

    def restore(self) -> None:
        """Takes over the IDs and labels that switches have since before the controller was started."""
        found: dict[int, Identifiers] = {}
        for epoch in (0, 1):
            found[epoch] = Identifiers(epoch)
            for switch, state in self.rollout.actual.items():
                found[epoch] = _adopted(found[epoch], switch, state)
        self.identifiers = max(found.values(), key=lambda one: (len(one.ids), -one.epoch))
        unusable = [_unusable(self.identifiers.epoch, switch, state) for switch, state in sorted(self.rollout.actual.items())]
        self._conflict, self.is_stale = next(filter(None, unusable), "") or _common_factor(self.identifiers.ids), True

    def adopt(self, bases: Iterable[Mapping[str, Any]]) -> None:
        """Takes over one of some stored bases, as far as switches agree with them: the first that suits the network,
        or else the one with labels for the most links. Called after :meth:`restore`, whose IDs remain if there is
        none."""
        lanes = self.lanes & self.topology.switches.keys()
        agreeing = []
        for found in usable(bases, identifiers_of, self._report):
            if not agree(found, self.rollout.actual):
                self._report(f"unsuitable {found.epoch}", f"the stored plan of epoch {found.epoch} is not used: switches have other IDs or labels")
            elif suffice(found, self.topology, lanes, self.settings.reserve):
                agreeing = [found]
                break
            else:
                agreeing.append(found)
        if agreeing:
            best = max(agreeing, key=lambda one: len(labelled(one, self.topology, lanes).links))
            self.identifiers, self._conflict, self.is_stale = best, "", True

    def basis(self) -> dict[str, Any] | None:
        """Returns the basis of the plan, or None without a plan."""
        if not self.rollout.desired:
            return None
        identifiers = self._next or self.identifiers
        if self._basis is None or self._basis[0] is not identifiers:
            self._basis = identifiers, of_identifiers(identifiers)
        return self._basis[1]

    @property
    def waits(self) -> bool:
        """Whether :meth:`basis` is that of a plan that waits for the store. The desired configurations are then of
        the plan before, with repairs as far as it has labels for the links."""
        return self._next is not None

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of the network."""
        return self.topology.hosts

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
        if self._next is not None and self.is_stored(self.basis() or {}):
            self.is_stale = True
        if not self.is_stale:
            return False
        lanes, topology = self.lanes & self.topology.switches.keys(), self.topology
        unnumbered: set[int] = set()
        try:
            identifiers = self._identify(lanes)
            if identifiers is None:
                self._next = None
                if self.rollout.desired or self._conflict:
                    return False
                # A controller before this one was giving all switches new IDs. Its plan is completed without the
                # links that need yet other IDs, so that the epoch for these becomes free.
                topology = labelled(self.identifiers, topology, lanes)
                identifiers = extended(self.identifiers, topology, lanes, self.settings.reserve)
            elif self._must_wait(identifiers):
                # Until the plan is stored, the network is repaired without links and switches that need it.
                self._next, identifiers = identifiers, self.identifiers
                topology, unnumbered = labelled(identifiers, topology, lanes), lanes - identifiers.ids.keys()
                lanes = lanes - unnumbered
            else:
                self._next = None
            self.is_stale = topology is not self.topology and self._next is None
            at = {host.mac: host.at.switch for host in self.topology.hosts}
            wanted = self._all_wanted(at)
            pairs = {(one.switch, at[one.mac]) for one in wanted if one.mac in at and at[one.mac] != one.switch}
            valid_for = identifiers, lanes, self.settings.width_bits
            if valid_for != self._known_for or len(self._known_routes) > KNOWN_PER_PAIR * len(pairs) + KNOWN_MIN:
                self._known_routes, self._known_for = {}, valid_for
            known, protect = self._known_routes, self.settings.protect
            routes = plan(topology, identifiers, lanes, pairs, self.settings.width_bits, protect, known)
            idle_s = self.settings.idle_s if self.settings.is_reactive else 0
            made = configurations(topology, identifiers, lanes, routes, wanted, self.settings.width_bits, idle_s)
        except PlanError as error:
            self.is_stale = False
            self._report(f"plan {error}", f"the network stays as it is, because it cannot be planned: {error}")
            return False
        for (source, destination), reason in sorted(routes.refused.items()):
            self._report(f"refused {source} {destination} {reason}", f"no route leads from switch {source:x} to {destination:x}: {reason}")
        if self.settings.protect and lanes != self.topology.switches.keys():
            self._report("unprotected", "parts of the network with switches without stateless forwarding are not protected")
        self.identifiers, self.routes = identifiers, routes
        self.rollout.want({switch: state for switch, state in made.items() if switch not in unnumbered})
        return True

    def _must_wait(self, identifiers: Identifiers) -> bool:
        """Returns whether IDs and labels must be stored before switches are given them, while switches have others
        that are stored."""
        if identifiers is self.identifiers or self._is_conflicting or not self.rollout.desired:
            return False
        return self.is_stored(of_identifiers(self.identifiers)) and not self.is_stored(of_identifiers(identifiers))

    def _all_wanted(self, at: Mapping[str, int]) -> set[Wanted]:
        if self.settings.is_reactive:
            return self.wanted
        return {Wanted(switch, mac) for switch in set(at.values()) for mac in at if at[mac] != switch}

    def _identify(self, lanes: set[int]) -> Identifiers | None:
        """Returns the IDs and labels. Returns None if they have to be chosen again, but the other epoch is still
        in use."""
        old, reserve = self.identifiers, self.settings.reserve
        self._is_conflicting = bool(self._conflict)
        try:
            need(not self._conflict, self._conflict)
            waiting = None if suffices(old, self.topology, lanes) else self._next
            if waiting is not None and suffice(waiting, self.topology, lanes, reserve):
                return extended(waiting, self.topology, lanes, reserve)
            return extended(old, self.topology, lanes, reserve)
        except PlanError as error:
            place = Bank.kind, 1 - old.epoch
            if any(place in state.sections for state in self.rollout.actual.values()):
                return None
            self._report(f"renumber {error}", f"all switches get new IDs, under epoch {1 - old.epoch}: {error}")
            self._conflict = ""
            return renumbered(old, self.topology, lanes, reserve)


def _adopted(identifiers: Identifiers, switch: int, state: State) -> Identifiers:
    """Adds the ID and the labels that a switch has for the epoch, if they are usable."""
    residues = _residues(identifiers.epoch, state)
    if residues is None or _unusable(identifiers.epoch, switch, state):
        return identifiers
    labels = tuple(LOCAL if port == TABLES else port for _, port in sorted(residues.labels.items()))
    return Identifiers(identifiers.epoch, {**identifiers.ids, switch: residues.id}, {**identifiers.labels, switch: labels})


def _residues(epoch: int, state: State) -> Residues | None:
    bank = state.sections.get((Bank.kind, epoch))
    return bank.residues if isinstance(bank, Bank) else None


def _unusable(epoch: int, switch: int, state: State) -> str:
    """Returns why the labels that a switch has cannot be used. Returns an empty string if they can."""
    residues = _residues(epoch, state)
    if residues is None:
        return ""
    if residues.polynomial:
        return f"the ID of switch {switch:x}, {residues.id:#x}, is a polynomial"
    gaps = sorted(set(range(max(residues.labels, default=-1) + 1)) - residues.labels.keys())
    return f"switch {switch:x} has the label {gaps[0]} without a port" if gaps else ""


def _common_factor(ids: Mapping[int, int]) -> str:
    """Returns a sentence about two IDs with a common factor. Returns an empty string if there are none."""
    product = 1
    for switch, value in sorted(ids.items()):
        if gcd(product, value) != 1:
            other = next(one for one in sorted(ids) if gcd(ids[one], value) != 1)
            return f"the IDs of switches {other:x} and {switch:x}, {ids[other]} and {value}, have a common factor"
        product *= value
    return ""
