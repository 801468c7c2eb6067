# SPDX-License-Identifier: Apache-2.0
"""KeyFlow plans as JSON (docs/planning.md): what `shunt`, simulations and later runs of the planner read."""

import json
import pathlib
from typing import Any

from shunt_controller.plan.arithmetic import INTEGERS, POLYNOMIALS
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.files import load_json, of_json, to_json
from shunt_controller.plan.keyflow import KeyPlan, KeyRoute, Segment
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank

FORMAT = "shunt-plan"
VERSION = 1
_ARITHMETICS = {arithmetic.name: arithmetic for arithmetic in (INTEGERS, POLYNOMIALS)}
TABLES = "tables"
"""Stands for the switch's own tables in a label map."""


def document(plan: KeyPlan, older: dict[str, Any] | None = None) -> dict[str, Any]:
    """A plan. With `older`, the document of another epoch, that of a network in which both are in force."""
    network = plan.network
    banks: dict[str, list[Any]] = {name: [] for name in network.nodes}
    plans = []
    if older is not None:
        plans = [other for other in older["plans"] if other["epoch"] != plan.epoch]
        for switch in older["switches"]:
            kept = [bank for bank in switch["banks"] if bank["epoch"] != plan.epoch]
            need(
                not kept or switch["name"] in banks, f"{switch['name']} is in use in the old plan and not in the new network"
            )
            banks.get(switch["name"], []).extend(kept)
    for node, name in enumerate(network.nodes):
        if plan.bank.ids[node]:
            banks[name].append(_bank(plan, node))
    switches = [
        {"name": name, "banks": sorted(banks[name], key=lambda bank: int(bank["epoch"]))}
        for name, role in zip(network.nodes, network.roles, strict=True)
        if role != "host"
    ]
    plans.append(
        {
            "epoch": plan.epoch,
            "arithmetic": plan.bank.arithmetic.name,
            "coded": plan.coded,
            "width_bits": plan.width_bits,
            "routes": [_route(network, route) for route in plan.routes],
        }
    )
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "keyflow",
        "network": to_json(network),
        "switches": switches,
        "plans": plans,
    }


def _bank(plan: KeyPlan, node: int) -> dict[str, Any]:
    return {
        "epoch": plan.epoch,
        "id": plan.bank.ids[node],
        "labels": [port if port != LOCAL else TABLES for port in plan.bank.labels[node]],
        "backups": {str(port): backup for port, backup in sorted(plan.bank.backups[node].items())},
    }


def _route(network: Network, route: KeyRoute) -> dict[str, Any]:
    return {
        "from": network.nodes[route.source],
        "to": network.nodes[route.destination],
        "segments": [_segment(network, segment) for segment in route.segments],
    }


def _segment(network: Network, segment: Segment) -> dict[str, Any]:
    # Most segments have none.
    return_ports = {"return_ports": segment.return_ports} if segment.return_ports else {}
    return {
        "path": [network.nodes[node] for node in segment.nodes],
        "out_port": segment.out_port,
        "backup_port": segment.backup_port,
        **return_ports,
        "key": f"{segment.key:#x}",
        "bits": segment.bits,
        "hop_limit": segment.hop_limit,
        "steering": [network.nodes[node] for node in segment.steering],
        "guards": segment.guards,
    }


def write(path: str, data: dict[str, Any]) -> None:
    """Writes a document: one line for each switch, link and route, so that it can be read and compared by eye."""
    try:
        with pathlib.Path(path).open("w", encoding="utf-8") as file:
            file.write(_lines(data, "") + "\n")
    except OSError as error:
        raise PlanError(f"{path} cannot be written: {error.strerror or error}") from error


_OPEN = {"network", "nodes", "links", "switches", "plans", "routes", "hosts", "external"}
"""Keys whose values have a line for each item."""


def _lines(data: Any, indent: str) -> str:
    inner = indent + " "
    if isinstance(data, dict):
        items = [
            f"{json.dumps(key)}: " + (_lines(value, inner) if key in _OPEN and value else json.dumps(value))
            for key, value in data.items()
        ]
        first, last = "{}"
    else:
        items = [
            _lines(item, inner) if isinstance(item, dict) and _OPEN & item.keys() else json.dumps(item) for item in data
        ]
        first, last = "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{last}"


def read_document(path: str) -> dict[str, Any]:
    """A KeyFlow document that was written before."""
    data = load_json(path)
    is_ours = isinstance(data, dict) and data.get("format") == FORMAT and data.get("kind") == "keyflow"
    need(is_ours, f"{path} is no KeyFlow plan (format {FORMAT}, kind keyflow)")
    need(data.get("version") == VERSION, f"{path} has version {data.get('version')}; {VERSION} is known")
    plans = data.get("plans")
    is_whole = isinstance(plans, list) and bool(plans) and all(isinstance(one, dict) for one in plans)
    need(is_whole, f"{path} is damaged: it has no plans")
    return dict(data)


def plan_of(path: str, data: dict[str, Any], at: int = -1) -> KeyPlan:
    """One of the plans in a document, the last one by default."""
    try:
        network = of_json(path, data["network"])
        made = data["plans"][at]
        need(made["epoch"] in (0, 1), f"{path}: a plan has the epoch {made['epoch']}")
        bank = Bank([0] * len(network.nodes), [[] for _ in network.nodes], arithmetic=_ARITHMETICS[made["arithmetic"]])
        for switch in data["switches"]:
            for one in switch["banks"]:
                need(one["epoch"] in (0, 1), f"{path}: a bank of {switch['name']} has the epoch {one['epoch']}")
                if one["epoch"] == made["epoch"]:
                    node = network.index(switch["name"])
                    bank.ids[node] = int(one["id"])
                    bank.labels[node] = [LOCAL if port == TABLES else int(port) for port in one["labels"]]
                    bank.backups[node] = {int(port): int(backup) for port, backup in one["backups"].items()}
        _need_sound(network, bank)
        routes = [
            KeyRoute(
                network.index(route["from"]),
                network.index(route["to"]),
                [_segment_of(network, segment) for segment in route["segments"]],
            )
            for route in made["routes"]
        ]
        return KeyPlan(network, bank, made["coded"], int(made["width_bits"]), int(made["epoch"]), routes)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError(f"{path} is damaged: {type(error).__name__} {error}") from error


def _need_sound(network: Network, bank: Bank) -> None:
    """Raises unless a bank's IDs are some, and its ports are there."""
    for node, name in enumerate(network.nodes):
        value = bank.ids[node]
        need(value == 0 or value >= 2, f"{name} has the ID {value}; IDs are 2 and more")
        ports = {*bank.labels[node], *bank.backups[node], *bank.backups[node].values()} - {LOCAL}
        missing = sorted(ports - set(network.ports[node]))
        need(not missing, f"{name} has labels or backups for the ports {missing}, which have no link")


def _segment_of(network: Network, data: dict[str, Any]) -> Segment:
    nodes = [network.index(name) for name in data["path"]]
    backup_port = data["backup_port"]
    for here, there in zip(nodes, nodes[1:], strict=False):
        need(
            there in network.neighbours[here], f"{network.nodes[here]} and {network.nodes[there]}, of one path, have no link"
        )
    guards = [str(guard) for guard in data["guards"]]
    key = int(data["key"], 16)
    need(key >= 0, f"a segment from {data['path'][:1]} has the key {key}; keys are 0 and more")
    need(
        len(nodes) >= 2 and len(guards) == len(nodes) - 1 and data["out_port"] in network.ports[nodes[0]],
        f"a segment from {data['path'][:1]} has no hops, no port {data['out_port']} to leave by, or guards for others",
    )
    backup_port = None if backup_port is None else int(backup_port)
    return_ports = [int(port) for port in data.get("return_ports", [])]
    unknown = sorted(set(return_ports) - {data["out_port"], backup_port})
    need(not unknown, f"a segment from {data['path'][:1]} has the return ports {unknown}, by which it does not send")
    return Segment(
        nodes,
        int(data["out_port"]),
        key,
        int(data["bits"]),
        int(data["hop_limit"]),
        backup_port,
        [network.index(name) for name in data["steering"]],
        guards,
        return_ports,
    )
