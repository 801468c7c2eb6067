# SPDX-License-Identifier: Apache-2.0
"""The configuration of a switch as a value: stateless sections, groups and flow entries. Two configurations can
be compared, whether they were planned or read from a switch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shunt_controller.edges import Entry, Group
from shunt_controller.sections import Bank, Gates, Mtu, Polka, Section, Trusted

INGRESS = 1 << 16
"""Stage of entries that handle packets from hosts. It is the last one."""


class FlowId(NamedTuple):
    """What identifies an entry of a switch."""

    table: int
    priority: int
    match: tuple[tuple[str, str], ...]
    """Fields by name with their values as text, in ascending order."""


@dataclass(frozen=True)
class Flow:
    """An entry. Two entries are equal if they have the same effect."""

    id: FlowId
    body: tuple[Any, ...]
    """The instructions, in a form that can be compared (:func:`shunt_controller.live.wire.body`)."""
    idle_s: int = 0
    match: Mapping[str, Any] = field(default_factory=dict, compare=False)
    entry: Entry | None = field(default=None, compare=False)
    """The planned entry. None if the entry was read from a switch."""
    stage: int = field(default=0, compare=False)
    """When a new or changed entry is added: after the entries of all lower stages, on all switches."""
    added: tuple[int, bytes] | None = field(default=None, compare=False, repr=False)
    """The cookie and the message with which the entry was added first (:mod:`shunt_controller.live.wire`)."""


Place = tuple[int, int]
"""Kind of a section, and its epoch if it is a bank."""


@dataclass(frozen=True)
class State:
    """The configuration of a switch."""

    sections: Mapping[Place, Section] = field(default_factory=dict)
    """Sections by place. A bank or another section without content is left out."""
    groups: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    """Groups by number, in a form that can be compared."""
    flows: Mapping[FlowId, Flow] = field(default_factory=dict)
    planned: Mapping[int, Group] = field(default_factory=dict, compare=False)
    """The groups that were planned."""

    @property
    def is_empty(self) -> bool:
        """Whether the switch has no configuration."""
        return not (self.sections or self.groups or self.flows)


def present(section: Section) -> bool:
    """Returns whether a section has content."""
    empty = (isinstance(section, Bank | Polka) and section.residues is None) or (isinstance(section, Gates) and section.gates is None)
    return not (empty or (isinstance(section, Trusted) and not section.ports) or (isinstance(section, Mtu) and not section.bytes_of))


def flow_id(table: int, priority: int, match: Mapping[str, Any]) -> FlowId:
    """Returns the identification of an entry."""
    return FlowId(table, priority, tuple(sorted((name, str(value)) for name, value in match.items())))


def staged(actual: State, desired: State, stage: int) -> State:
    """Returns the actual configuration with everything of the desired one up to a stage, and with nothing
    removed. Packets of both configurations are forwarded."""
    sections = dict(actual.sections)
    for place, section in desired.sections.items():
        sections[place] = _both(sections.get(place), section)
    flows = {**actual.flows, **{key: flow for key, flow in desired.flows.items() if flow.stage <= stage}}
    return State(sections, {**actual.groups, **desired.groups}, flows, {**actual.planned, **desired.planned})


def _both(old: Section | None, new: Section) -> Section:
    """Joins two sections of the same place, so that packets of both are forwarded. A new bank of the same epoch
    has all labels of the old one, because labels are kept."""
    return Trusted(old.ports | new.ports) if isinstance(old, Trusted) and isinstance(new, Trusted) else new


def stages(states: Mapping[int, State]) -> list[int]:
    """Returns the stages of configurations in ascending order."""
    return sorted({0} | {flow.stage for state in states.values() for flow in state.flows.values()})
