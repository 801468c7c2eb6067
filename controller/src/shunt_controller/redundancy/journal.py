# SPDX-License-Identifier: Apache-2.0
"""What is stored about the plan of a network, and when. Switches are changed in two steps, and each begins when
the store has a record of it:

1. The record has the basis of the plan in force, and the basis of the next plan. Switches then get what the
   next plan adds. Packets of both plans are forwarded.
2. The record has the basis of the next plan only. Switches then lose what only the plan before needed.

Before step 1, while the store has not confirmed the record, the planner may repair the plan in force.

The basis of a plan consists of what is chosen once and kept: IDs, labels and epoch for KeyFlow, the order of
ports for Tag-and-Forward. Routes, keys and entries follow from it and from the topology. A controller that
takes over in step 1 completes the next plan, or returns to the plan in force if the next one no longer suits the
network. In step 2 it completes the next plan.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, Protocol

from shunt_controller.live.rollout import Rollout
from shunt_controller.live.topology import SWITCH_MAX, Host, Port, is_port_number

FORMAT, VERSION = "shunt-redundancy", 1
RECORD_BYTES_MAX = 1 << 20
"""Length up to which hosts are stored in a record. etcd accepts requests of 1.5 MiB."""
HOSTS_S = 3.0
"""Minimum time between two records that differ in hosts only."""
MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}")
Basis = Mapping[str, Any]
"""The basis of a plan, as a JSON value."""


@dataclass(frozen=True)
class Entry:
    """The record of a plan."""

    kind: str
    """Name of the application."""
    current: Basis | None = None
    """Basis of the plan in force."""
    next: Basis | None = None
    """Basis of the plan that switches are given; None in step 2, and if there is no such plan."""
    hosts: tuple[Host, ...] = ()

    def encoded(self) -> bytes:
        """Returns the record as JSON."""
        hosts = [_value_of(host) for host in self.hosts]
        value = {"format": FORMAT, "version": VERSION, "kind": self.kind, "current": self.current, "next": self.next, "hosts": hosts}
        return _json(value)

    def fitting(self) -> "Entry":
        """Returns the record with as many of its hosts as fit in RECORD_BYTES_MAX, the first ones."""
        left = RECORD_BYTES_MAX - len(replace(self, hosts=()).encoded())
        for count, host in enumerate(self.hosts):
            left -= len(_json(_value_of(host))) + 1
            if left < 0:
                return replace(self, hosts=self.hosts[:count])
        return self

    @classmethod
    def decoded(cls, data: bytes, kind: str) -> "Entry":
        """Returns the record of an application. Raises ValueError with the reason if the data is none."""
        try:
            value = json.loads(data)
            is_one = value["format"] == FORMAT and value["version"] == VERSION and value["kind"] == kind
            bases = value["current"], value["next"]
            hosts = tuple(_host(one) for one in value["hosts"])
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ValueError(f"it is damaged: {type(error).__name__} {error}") from error
        if not is_one or not all(basis is None or isinstance(basis, dict) for basis in bases):
            raise ValueError(f"it has format {value['format']}, version {value['version']} and kind {value['kind']}")
        return cls(kind, *bases, hosts)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _value_of(host: Host) -> dict[str, Any]:
    return {"mac": host.mac, "switch": host.at.switch, "port": host.at.number, "addresses": list(host.addresses)}


def _host(value: Any) -> Host:
    mac, switch, port, addresses = value["mac"], value["switch"], value["port"], value["addresses"]
    if type(mac) is not str or not MAC.fullmatch(mac):
        raise ValueError("the MAC address of a host is malformed")
    if type(switch) is not int or not 0 <= switch <= SWITCH_MAX or not is_port_number(port):
        raise ValueError(f"host {mac} is at no port of a switch")
    if type(addresses) is not list or not all(_is_address(one) for one in addresses):
        raise ValueError(f"an IP address of host {mac} is malformed")
    return Host(mac, Port(switch, port), tuple(addresses))


def _is_address(text: Any) -> bool:
    try:
        return type(text) is str and "%" not in text and bool(ip_address(text))
    except ValueError:
        return False


class Planned(Protocol):
    """A planner whose plans have a basis."""

    rollout: Rollout

    def basis(self) -> Basis | None:
        """Returns the basis of the plan, or None without a plan."""

    @property
    def waits(self) -> bool:
        """Whether the desired configurations are still of a plan that was stored before."""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of the network."""


class Journal:
    """Decides when the steps of an application's plans may begin. `submit` begins to store a record. The caller
    then calls :meth:`stored` when it is stored; a later record replaces one that is not."""

    def __init__(self, kind: str, submit: Callable[[Entry], None]) -> None:
        self._submit = submit
        self._stored = Entry(kind)
        self._submitted: Entry | None = None
        self._before: tuple[Host, ...] = ()
        """The hosts of the controller before, at switches that are not known yet. They remain in the record."""
        self._joined: tuple[tuple[tuple[Host, ...], tuple[Host, ...]], tuple[Host, ...]] | None = None
        """The inputs of :meth:`_hosts` and its result, which is used while they are the same objects."""
        self._hosts_s = float("-inf")
        """When hosts were stored last."""

    @property
    def is_waiting(self) -> bool:
        """Whether a record is not stored yet."""
        return self._submitted is not None

    def restore(self, entry: Entry) -> None:
        """Takes the record of the controller that was the master before."""
        self._stored, self._submitted, self._before = entry, None, entry.hosts

    def is_stored(self, basis: Basis) -> bool:
        """Returns whether the record has a basis, so that switches may be given its plan."""
        return basis in (self._stored.current, self._stored.next)

    def hosts_at(self, switch: int) -> tuple[Host, ...]:
        """Returns the hosts at a switch that the controller before had, until :meth:`known` is called."""
        return tuple(host for host in self._before if host.at.switch == switch)

    def known(self, switch: int) -> None:
        """Records that the hosts at a switch are those that the planner has."""
        self._before = tuple(host for host in self._before if host.at.switch != switch)

    def _hosts(self, planner: Planned) -> tuple[Host, ...]:
        if not self._before:
            return planner.hosts
        of = self._before, planner.hosts
        if self._joined is None or any(one is not other for one, other in zip(self._joined[0], of, strict=True)):
            given = {host.mac: host for hosts in of for host in hosts}
            self._joined = of, tuple(host for _, host in sorted(given.items()))
        return self._joined[1]

    def stored(self, entry: Entry) -> None:
        """Records that the store has a record."""
        self._stored = entry
        if self._submitted == entry:
            self._submitted = None

    def may_change(self, planner: Planned, now_s: float) -> bool:
        """Returns whether switches may be changed now, and sets whether something may be removed."""
        basis, rollout, stored, hosts = planner.basis(), planner.rollout, self._stored, self._hosts(planner)
        if basis is None:
            return True
        if basis != (stored.current if stored.next is None else stored.next):
            # A plan that is not in force yet is replaced; packets with its keys may still be in the network.
            rollout.may_remove = False
            self._store(replace(stored, next=basis, hosts=hosts), now_s)
            return planner.waits
        if planner.waits:
            # The plan is stored, and the planner has not planned with it yet.
            rollout.may_remove = False
            return True
        # etcd keeps each version for a time, so hosts alone are not stored more often.
        has_new_hosts = stored.hosts != hosts and now_s - self._hosts_s >= HOSTS_S
        if stored.next is None:
            rollout.may_remove = True
            if has_new_hosts:
                self._store(replace(stored, hosts=hosts), now_s)
            return True
        rollout.may_remove = False
        is_added = rollout.desired and rollout.is_added
        entry = replace(stored, current=basis, next=None) if is_added else stored
        if is_added or has_new_hosts:
            self._store(replace(entry, hosts=hosts), now_s)
        return True

    def _store(self, entry: Entry, now_s: float) -> None:
        if entry != self._submitted:
            self._submitted, self._hosts_s = entry, now_s
            self._submit(entry)
