# SPDX-License-Identifier: Apache-2.0
"""The basis of KeyFlow's plans as a JSON value, for controllers that share a network
(:mod:`shunt_controller.redundancy.journal`)."""

from collections.abc import Collection, Mapping
from math import gcd
from typing import Any

from shunt_controller.live.identifiers import Identifiers, extended
from shunt_controller.live.state import State
from shunt_controller.live.topology import Topology, is_port_number, switch_name, switch_of
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError
from shunt_controller.sections import TABLES, Bank

ID_MAX = (1 << 32) - 1
"""Maximum ID that a switch can be given."""


def of_identifiers(identifiers: Identifiers) -> dict[str, Any]:
    """Returns IDs and labels as a JSON value."""
    switches = {switch_name(switch): {"id": value, "labels": list(identifiers.labels[switch])} for switch, value in sorted(identifiers.ids.items())}
    return {"epoch": identifiers.epoch, "switches": switches}


def identifiers_of(basis: Mapping[str, Any]) -> Identifiers:
    """Returns the IDs and labels of a JSON value. Raises ValueError if it has none that can be used."""
    try:
        epoch, switches = basis["epoch"], basis["switches"]
        ids = {switch_of(name): one["id"] for name, one in switches.items()}
        labels = {switch_of(name): tuple(one["labels"]) for name, one in switches.items()}
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"the stored IDs are damaged: {type(error).__name__} {error}") from error
    if type(epoch) is not int or epoch not in (0, 1) or not all(type(value) is int and 1 < value <= ID_MAX for value in ids.values()):
        raise ValueError("the stored epoch or an ID is not possible")
    if not all(is_port_number(port) or (type(port) is int and port == LOCAL) for ports in labels.values() for port in ports):
        raise ValueError("a stored label is no port")
    product = 1
    for value in ids.values():
        if gcd(product, value) != 1:
            raise ValueError(f"the stored ID {value} and another one have a common factor")
        product *= value
    return Identifiers(epoch, ids, labels)


def agree(identifiers: Identifiers, states: Mapping[int, State]) -> bool:
    """Returns whether no switch has another ID or label for the epoch. One may have fewer labels or more."""
    for switch, state in states.items():
        bank = state.sections.get((Bank.kind, identifiers.epoch))
        residues = bank.residues if isinstance(bank, Bank) else None
        if residues is None:
            continue
        labels = {label: TABLES if port == LOCAL else port for label, port in enumerate(identifiers.labels.get(switch, ()))}
        both = labels.keys() & residues.labels.keys()
        if residues.id != identifiers.ids.get(switch) or any(labels[label] != residues.labels[label] for label in both):
            return False
    return True


def suffice(identifiers: Identifiers, topology: Topology, lanes: Collection[int], reserve: int) -> bool:
    """Returns whether the network can be planned without choosing all IDs again."""
    try:
        extended(identifiers, topology, lanes, reserve)
    except PlanError:
        return False
    return True
