# SPDX-License-Identifier: Apache-2.0
"""Command ``plan polka``."""

import argparse
import time
from collections import Counter
from typing import Any

from shunt_controller.plan import command_keyflow, documents, freertr
from shunt_controller.plan.arithmetic import Polynomials
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.files import to_json
from shunt_controller.plan.network import Network
from shunt_controller.plan.tables import facts, table


def add(commands: Any) -> None:
    """Adds the command to a parser."""
    parser = commands.add_parser(
        "polka",
        help="plan IDs and keys that are polynomials over GF(2), also for freeRtr",
        description="Plans PolKA for a network, like `keyflow` but with polynomials over GF(2) as IDs. --freertr uses the polynomials, "
        "header and residues of freeRtr. --path prints the keys of one path of node indices.",
    )
    command_keyflow.add_options(parser)
    parser.add_argument(
        "--degree", type=int, default=0, help="degree of all polynomials, 16 for CRC-16 hardware (default: the lowest possible degrees)"
    )
    parser.add_argument("--freertr", action="store_true", help="plan for freeRtr: residues are indices of the next node")
    parser.add_argument(
        "--path", metavar="I,J,...", help="print freeRtr's keys of a path, given as the indices of the nodes after the first one"
    )
    parser.add_argument("--ttl", type=int, default=255, help="TTL of the header that --path prints (default: 255)")
    parser.add_argument("--ethertype", default="0x0800", help="EtherType of the payload in that header (default: 0x0800)")
    parser.set_defaults(run=run, name="plan polka")


def run(options: argparse.Namespace) -> None:
    """Makes the plan, writes it and prints a summary."""
    if options.path:
        _print_path(options)
    elif options.freertr:
        _plan_freertr(options)
    else:
        need(options.degree == 0 or 1 <= options.degree <= 16, f"--degree is 1 to 16, not {options.degree}")
        command_keyflow.run(options, Polynomials(options.degree))


def _number(said: str, what: str) -> int:
    try:
        return int(said, 0)
    except ValueError as error:
        raise PlanError(f"{said!r} is not {what}") from error


def _print_path(options: argparse.Namespace) -> None:
    path = [_number(part, "an index of a node") for part in options.path.split(",")]
    parts = freertr.cut(path)
    if len(parts) > 1:
        print("freeRtr's encoder accepts no single key for this path, so the key changes along the path:")
    rows = []
    for part in parts:
        key = freertr.encode(part)
        data = freertr.header(key, options.ttl, _number(options.ethertype, "an EtherType"))
        rows.append((",".join(map(str, part)), f"{key:032x}", data.hex(" ", 2)))
    print(table(("path", "key", f"header behind EtherType {freertr.ETHERTYPE:#06x}"), rows))
    print("\n" + table(("index", "polynomial"), [(index, f"{freertr.polynomial(index):#x}") for index in sorted(path)]))


def _plan_freertr(options: argparse.Namespace) -> None:
    begin = time.perf_counter()
    for name in ("width", "coded", "protect", "reserve", "extend", "renumber", "degree"):
        need(not getattr(options, name), f"--{name} cannot be combined with --freertr, which defines header and IDs")
    network = command_keyflow.network_of(options)
    routes = command_keyflow.routes_of(options, network)
    pairs = command_keyflow.pairs_of(options, routes) or routes.pairs()
    found = freertr.plan(routes, pairs)
    if options.json:
        documents.write(options.json, _document(network, found))
    counts = Counter(len(route.parts) for route in found)
    nodes = Counter(len(route.nodes) - 1 for route in found)
    late = sum(count for length, count in nodes.items() if length > freertr.NODES_MAX)
    high = sum(len(route.parts) > 1 and len(route.nodes) - 1 == freertr.NODES_MAX for route in found)
    print(
        facts(
            [
                ("network", f"{network.name}: {len(network.nodes)} nodes, {len(network.links)} links"),
                ("polynomials", f"of degree 16, indices 1 to {len(network.nodes)}"),
                ("routes with keys", len(found)),
                ("split, for more than 8 nodes", late),
                ("split, 8 nodes whose key has bit 127", high),
                ("routes by segments", ", ".join(f"{count} of {segments}" for segments, count in sorted(counts.items()))),
                ("time, s", round(time.perf_counter() - begin, 1)),
            ]
        )
    )


def _document(network: Network, routes: list[freertr.FreertrRoute]) -> dict[str, Any]:
    """Returns the plan as JSON (docs/planning.md)."""
    switches = [
        {
            "name": name,
            "index": freertr.index_of(node),
            "polynomial": f"{freertr.polynomial(freertr.index_of(node)):#x}",
            "next": {str(index): port for index, port in freertr.next_ports(network, node).items()},
        }
        for node, name in enumerate(network.nodes)
        if network.roles[node] != "host"
    ]
    return {
        "format": documents.FORMAT,
        "version": documents.VERSION,
        "kind": "polka-freertr",
        "ethertype": f"{freertr.ETHERTYPE:#06x}",
        "network": to_json(network),
        "switches": switches,
        "routes": [_route(network, route) for route in routes],
    }


def _route(network: Network, route: freertr.FreertrRoute) -> dict[str, Any]:
    names = [network.nodes[node] for node in route.nodes]
    segments = []
    start = 0
    for part, key in route.parts:
        path = names[start : start + len(part) + 1]
        first = network.index(path[0])
        segments.append(
            {"path": path, "out_port": network.neighbours[first][network.index(path[1])], "key": f"0x{key:032x}"}
        )
        start += len(part)
    return {"from": names[0], "to": names[-1], "segments": segments}
