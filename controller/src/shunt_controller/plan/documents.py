# SPDX-License-Identifier: Apache-2.0
"""KeyFlow plans as JSON (docs/planning.md), for `shunt`, simulations and later runs of the planner."""

import json
import pathlib
from typing import Any

from shunt_controller.plan.arithmetic import INTEGERS, POLYNOMIALS, Arithmetic
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.files import load_json, of_json, to_json
from shunt_controller.plan.keyflow import KeyPlan, KeyRoute, Segment
from shunt_controller.plan.keys import WIDTHS_BITS
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank

FORMAT = "shunt-plan"
VERSION = 1
_ARITHMETICS = {arithmetic.name: arithmetic for arithmetic in (INTEGERS, POLYNOMIALS)}
_CODED = ("all", "hops", "core")
_GUARDS = ("", "link", "node", "link+node")
ID_MAX = 0xFFFF_FFFF
"""Highest ID that a switch can be configured with."""
HOP_LIMIT_MAX = 255
TABLES = "tables"
"""Stands for the switch's own tables in a label map."""


def document(plan: KeyPlan, older: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns a plan as JSON. With `older`, the document of another epoch, the result describes a network
    with both epochs active."""
    network = plan.network
    banks: dict[str, list[Any]] = {name: [] for name in network.nodes}
    plans = []
    if older is not None:
        plans = [other for other in older["plans"] if other["epoch"] != plan.epoch]
        for switch in older["switches"]:
            kept = [bank for bank in switch["banks"] if bank["epoch"] != plan.epoch]
            need(
                not kept or switch["name"] in banks, f"{switch['name']} is used by the old plan but is not in the new network"
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
    # Most segments have no return ports.
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
    """Writes a document with one line per switch, link and route, so that it can be read and compared as
    text."""
    try:
        with pathlib.Path(path).open("w", encoding="utf-8") as file:
            file.write(_lines(data, "") + "\n")
    except OSError as error:
        raise PlanError(f"{path} cannot be written: {error.strerror or error}") from error


_OPEN = {"network", "nodes", "links", "switches", "plans", "routes", "hosts", "external"}
"""Keys whose values are written with one line per item."""


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
    """Reads a KeyFlow document."""
    data = load_json(path)
    is_ours = isinstance(data, dict) and data.get("format") == FORMAT and data.get("kind") == "keyflow"
    need(is_ours, f"{path} is not a KeyFlow plan: its format must be {FORMAT} and its kind keyflow")
    need(data.get("version") == VERSION, f"{path} has version {data.get('version')}; the supported version is {VERSION}")
    plans = data.get("plans")
    is_whole = isinstance(plans, list) and bool(plans) and all(isinstance(one, dict) for one in plans)
    need(is_whole, f"{path} is damaged: it has no plans")
    return dict(data)


def plan_of(path: str, data: dict[str, Any], at: int = -1) -> KeyPlan:
    """Returns the plan with this index in a document, by default the last one."""
    try:
        network = of_json(path, data["network"])
        made = data["plans"][at]
        epochs = [_whole("the epoch of a plan", one["epoch"]) for one in data["plans"]]
        need(set(epochs) <= {0, 1}, f"{path}: plans have the epochs {epochs}; epochs are 0 and 1")
        need(len(epochs) == len(set(epochs)), f"{path} has two plans of one epoch")
        need(made["coded"] in _CODED, f"{path}: coded is {made['coded']!r}; supported are {', '.join(_CODED)}")
        width_bits = _whole("width_bits of a plan", made["width_bits"])
        need(width_bits in WIDTHS_BITS, f"{path}: keys have {', '.join(map(str, WIDTHS_BITS))} bits, not {width_bits}")
        bank = _bank_of(network, data["switches"], epochs, epochs[at], _ARITHMETICS[made["arithmetic"]])
        routes = [
            KeyRoute(
                network.index(route["from"]),
                network.index(route["to"]),
                [_segment_of(network, segment, number, width_bits) for number, segment in enumerate(route["segments"])],
            )
            for route in made["routes"]
        ]
        for route in routes:
            need(
                bool(route.segments),
                f"{path}: the route from {network.nodes[route.source]} to {network.nodes[route.destination]} has no segments",
            )
        return KeyPlan(network, bank, made["coded"], width_bits, epochs[at], routes)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError(f"{path} is damaged: {type(error).__name__} {error}") from error


def _bank_of(network: Network, switches: list[dict[str, Any]], epochs: list[int], epoch: int, arithmetic: Arithmetic) -> Bank:
    """Returns the configuration of the switches for one epoch of a document."""
    bank = Bank([0] * len(network.nodes), [[] for _ in network.nodes], arithmetic=arithmetic)
    names = [switch["name"] for switch in switches]
    need(len(names) == len(set(names)), "a switch is listed twice")
    for switch in switches:
        name, node = switch["name"], network.index(switch["name"])
        its_epochs = [_whole(f"the epoch of a bank of {name}", one["epoch"]) for one in switch["banks"]]
        need(len(its_epochs) == len(set(its_epochs)), f"{name} has two banks of one epoch")
        unknown = set(its_epochs) - set(epochs)
        need(not unknown, f"{name} has a bank of the epoch {min(unknown, default=0)}, for which there is no plan")
        for one in switch["banks"]:
            if one["epoch"] == epoch:
                bank.ids[node] = _whole(f"the ID of {name}", one["id"])
                need(2 <= bank.ids[node] <= ID_MAX, f"{name} has the ID {bank.ids[node]}; IDs are 2 to {ID_MAX}")
                bank.labels[node] = [LOCAL if port == TABLES else _port(network, node, port) for port in one["labels"]]
                bank.backups[node] = {
                    _port(network, node, int(port)): _port(network, node, backup) for port, backup in one["backups"].items()
                }
    return bank


def _port(network: Network, node: int, value: Any) -> int:
    """Returns the value if it is a port with a link; raises an error otherwise."""
    port = _whole(f"a port of {network.nodes[node]}", value)
    need(port in network.ports[node], f"{network.nodes[node]} has no link at port {port}")
    return port


def _whole(what: str, value: Any) -> int:
    """Returns the value if it is an integer. A fraction or a string is refused, not converted."""
    need(type(value) is int, f"{what} is {value!r}, which is not an integer")
    return int(value)


def _segment_of(network: Network, data: dict[str, Any], number: int, width_bits: int) -> Segment:
    """Returns the segment of a route with this number, from 0."""
    nodes = [network.index(name) for name in data["path"]]
    said = f"a segment from {data['path'][:1]}"
    for here, there in zip(nodes, nodes[1:], strict=False):
        need(
            there in network.neighbours[here], f"{network.nodes[here]} and {network.nodes[there]}, consecutive nodes of a path, have no link"
        )
    guards = list(data["guards"])
    need(len(nodes) >= 2 and len(guards) == len(nodes) - 1, f"{said} must have at least one hop and one guard per hop")
    unknown = [guard for guard in guards if guard not in _GUARDS]
    need(not unknown, f"{said} has the guards {unknown}; supported are {', '.join(map(repr, _GUARDS))}")
    key, hop_limit = int(data["key"], 16), _whole(f"the hop limit of {said}", data["hop_limit"])
    need(key >= 0, f"{said} has the key {key}; keys are at least 0")
    need(key.bit_length() <= width_bits, f"{said} has a key of {key.bit_length()} bits, which does not fit {width_bits}")
    need(0 <= hop_limit <= HOP_LIMIT_MAX, f"{said} has the hop limit {hop_limit}; hop limits are 0 to {HOP_LIMIT_MAX}")
    out_port = _port(network, nodes[0], data["out_port"])
    backup_port = None if data["backup_port"] is None else _port(network, nodes[0], data["backup_port"])
    return_ports = [_whole(f"a return port of {said}", port) for port in data.get("return_ports", [])]
    need(not return_ports or number > 0, f"{said} has the return ports {return_ports}, but does not begin at a waypoint")
    unsent = sorted(set(return_ports) - {out_port, backup_port})
    need(not unsent, f"{said} has the return ports {unsent}, which are not among its output ports")
    return Segment(
        nodes,
        out_port,
        key,
        _whole(f"the bits of {said}", data["bits"]),
        hop_limit,
        backup_port,
        [network.index(name) for name in data["steering"]],
        guards,
        return_ports,
    )
