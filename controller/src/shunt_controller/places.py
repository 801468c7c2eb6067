# SPDX-License-Identifier: Apache-2.0
"""Reads the places of hosts and the datapath IDs of switches from a file, and checks them against the plan.

::

    {"hosts": [{"address": "10.0.0.1", "switch": "a", "port": 2}], "datapaths": {"a": 1, "b": 2}}
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shunt_controller.plan.errors import need
from shunt_controller.plan.files import load_json
from shunt_controller.plan.network import PORT_MAX
from shunt_controller.planned import guarded, trusted

DATAPATH_MAX = (1 << 64) - 1
NAMED_MAX = 5
"""Maximum number of names that a message lists."""


class Host(NamedTuple):
    """Place of an IPv4 address."""

    address: str
    switch: str
    port: int


class Places(NamedTuple):
    """The content of a file of places: hosts, and datapath IDs."""

    hosts: list[Host]
    datapaths: dict[str, int]
    """Datapath ID of each switch, by name. If empty, switches are numbered from 1 in the order of the
    plan."""


def read_places(path: str) -> Places:
    """Reads the places in a file."""
    data = load_json(path)
    hosts = data.get("hosts") if isinstance(data, dict) else None
    need(isinstance(hosts, list), f"{path} has no list named hosts")
    for at, host in enumerate(hosts or []):
        keys = {"address": str, "switch": str, "port": int}
        is_host = isinstance(host, dict) and all(type(host.get(key)) is kind for key, kind in keys.items())
        need(is_host, f"{path}: hosts[{at}] is not a host; hosts have an address, a switch and the number of a port")
    datapaths = data.get("datapaths", {})
    is_map = isinstance(datapaths, dict) and all(type(number) is int for number in datapaths.values())
    need(is_map, f"{path}: datapaths must be an object that maps names to integers")
    return Places([Host(host["address"], host["switch"], host["port"]) for host in hosts or []], datapaths)


def check_hosts(plan: dict[str, Any], hosts: Iterable[Host]) -> None:
    """Raises an error unless each host has a unique address, and a port that does not lead to another
    switch."""
    to_switches = trusted(plan)
    seen: dict[str, Host] = {}
    for host in hosts:
        address, where = host.address, f"{host.address} is at port {host.port} of {host.switch}"
        need(_is_address(address), f"{address!r}, at {host.switch}, is not an IPv4 address of a host")
        need(host.switch in to_switches, f"{address} is at {host.switch}, which is not a switch of the plan")
        need(0 < host.port <= PORT_MAX, f"{where}; ports are 1 to {PORT_MAX:#x}")
        need(host.port not in to_switches[host.switch].ports, f"{where}, which leads to another switch")
        before = seen.setdefault(address, host)
        need(before is host, f"{address} is at two places, {_place(before)} and {_place(host)}")


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_multicast or address.is_unspecified or int(address) == 0xFFFF_FFFF)


def _place(host: Host) -> str:
    return f"port {host.port} of {host.switch}"


def names(plan: dict[str, Any], datapaths: Mapping[str, int]) -> dict[int, str]:
    """Returns the switches of a plan by datapath ID: the given IDs, or 1, 2, ... in the order of the plan."""
    switches = guarded(plan, lambda: [str(switch["name"]) for switch in plan["switches"]])
    if not datapaths:
        return dict(enumerate(switches, start=1))
    unknown, missing = sorted(datapaths.keys() - set(switches)), [name for name in switches if name not in datapaths]
    need(not unknown, f"datapaths names switches that the plan lacks: {listed(unknown)}")
    need(not missing, f"datapaths lacks these switches of the plan: {listed(missing)}")
    found: dict[int, str] = {}
    for name, number in datapaths.items():
        need(0 <= number <= DATAPATH_MAX, f"the datapath ID of {name} is {number}; datapath IDs have 64 bits")
        before = found.setdefault(number, name)
        need(before == name, f"{before} and {name} have the same datapath ID, {number}")
    return found


def unreached(plan: dict[str, Any], hosts: Sequence[Host]) -> list[tuple[str, str]]:
    """Returns the pairs of switches that have hosts, but no route between them in a plan with keys. Their
    hosts cannot reach each other. Routes may be missing because they were listed explicitly, or because there
    are more pairs than `plan` writes."""
    if plan.get("kind") == "tag-and-forward":
        return []
    routes = guarded(plan, lambda: {(route["from"], route["to"]) for route in plan.get("plans", [plan])[-1]["routes"]})
    at = list(dict.fromkeys(host.switch for host in hosts))
    return [(a, b) for a in at for b in at if a != b and (a, b) not in routes]


def listed(words: Sequence[str]) -> str:
    """Joins words with commas. A long list is abbreviated."""
    rest = len(words) - NAMED_MAX
    return ", ".join(words[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
