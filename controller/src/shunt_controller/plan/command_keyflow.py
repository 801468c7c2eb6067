# SPDX-License-Identifier: Apache-2.0
"""Command ``plan keyflow``."""

import argparse
import random
import statistics
import time
from collections import Counter
from typing import Any

from shunt_controller.plan import documents
from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic
from shunt_controller.plan.demand import Coded
from shunt_controller.plan.errors import need
from shunt_controller.plan.fattree import find, make
from shunt_controller.plan.files import load_json, read
from shunt_controller.plan.keyflow import KeyPlan, plan, waypoints
from shunt_controller.plan.keys import WIDTHS_BITS, all_keys, widths
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank, grown
from shunt_controller.plan.protection import count_links, plan_protected
from shunt_controller.plan.refusals import Reason, refusals, write_refused
from shunt_controller.plan.routes import Listed, Routes, Trees
from shunt_controller.plan.tables import facts
from shunt_controller.plan.treeroutes import TreeRoutes

ROUTES_MAX = 20_000
"""Maximum number of routes that are written, unless a number is requested."""


def add(commands: Any) -> None:
    """Adds the command to a parser."""
    parser = commands.add_parser(
        "keyflow",
        help="plan IDs, label maps, keys and backups of a network",
        description="Plans KeyFlow for a network: an ID and a label map for each switch, and a key for each route. A route whose key does "
        "not fit is split at waypoints. Routes are one shortest path for each ordered pair of ends, or the routes of a file.",
    )
    add_options(parser)
    parser.set_defaults(run=run, name="plan keyflow")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `keyflow` and `polka` share."""
    parser.add_argument("graph", metavar="GRAPH", nargs="?", help="the network (.graphml, .json; docs/planning.md)")
    parser.add_argument("--width", type=int, choices=WIDTHS_BITS, help="bits of a key (default: 64, with --protect 128)")
    parser.add_argument(
        "--coded",
        choices=("all", "hops", "core"),
        help="whose residues are in a key: all nodes of a route, all but the first, or only those between its ends (default: core if "
        "there are edge switches, else hops)",
    )
    parser.add_argument(
        "--fat-tree", action="store_true", help="GRAPH is a fat tree: the IDs allow every shortest path between edge switches"
    )
    parser.add_argument("--k", type=int, help="plan a generated fat tree of this k")
    parser.add_argument("--routes", metavar="FILE", help="routes to plan: JSON, a list of lists of node names")
    parser.add_argument("--protect", action="store_true", help="plan backups and detours, so that single failures lose no packets")
    parser.add_argument(
        "--reserve",
        type=int,
        default=0,
        metavar="N",
        help="leave space for growth: N further labels at each switch, and IDs without common factors (default: 0)",
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--extend", metavar="PLAN", help="keep all IDs and labels of a plan, whose network has grown to GRAPH"
    )
    change.add_argument("--renumber", metavar="PLAN", help="plan again under the other epoch; the output has both banks")
    parser.add_argument(
        "--sample", type=int, metavar="N", help=f"make keys for only N pairs (default: all pairs, but at most {ROUTES_MAX})"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--largest", action="store_true", help="plan only the largest connected part")
    parser.add_argument("--internal", action="store_true", help="omit external nodes (Internal=0)")
    parser.add_argument("--json", metavar="OUT", help="write the plan to this file")
    parser.add_argument(
        "--refused", metavar="OUT", help="with --protect: write each hop that is not protected to this file, with the reason"
    )


def ends_of(network: Network) -> list[int]:
    """Returns the ends of routes: edge switches, or all switches if there are none."""
    edges = [node for node, role in enumerate(network.roles) if role == "edge"]
    return edges or [node for node, role in enumerate(network.roles) if role == "core"]


def listed(network: Network, path: str) -> Listed:
    """Reads the routes of a file."""
    data = load_json(path)
    is_list = isinstance(data, list) and bool(data) and all(isinstance(route, list) for route in data)
    need(is_list, f"{path}: routes must be a list of lists of node names")
    need(all(isinstance(name, str) for route in data for name in route), f"{path}: nodes of a route must be given by name")
    return Listed(network, [[network.index(name) for name in route] for route in data])


def network_of(options: argparse.Namespace) -> Network:
    """Returns the network of the given file, or the requested fat tree."""
    if options.k is not None:
        need(not options.graph, "give either a GRAPH or --k, not both")
        return make(options.k)
    need(options.graph, "give a GRAPH or --k")
    network = read(options.graph, options.internal)
    return network.largest_part() if options.largest else network


def routes_of(options: argparse.Namespace, network: Network) -> Routes:
    """Returns the listed routes, or the routes between all ends."""
    if options.routes:
        return listed(network, options.routes)
    if options.fat_tree or options.k is not None:
        return TreeRoutes(find(network))
    return Trees(network, ends_of(network))


def run(options: argparse.Namespace, arithmetic: Arithmetic = INTEGERS) -> None:
    """Makes the plan, writes it and prints a summary."""
    need(0 <= options.reserve <= 1024, f"--reserve is 0 to 1024, not {options.reserve}")
    need(options.protect or not options.refused, "--refused needs --protect")
    need(options.sample is None or options.sample > 0, "--sample must be at least 1")
    begin = time.perf_counter()
    network = network_of(options)
    coded: Coded = options.coded or ("core" if "edge" in network.roles else "hops")
    routes = routes_of(options, network)
    if isinstance(routes, TreeRoutes):
        coded = options.coded or "core"
    older, bank, epoch = _older(options, network, arithmetic)
    pairs = pairs_of(options, routes)
    planner = plan_protected if options.protect else plan
    width_bits = options.width or (128 if options.protect else 64)
    made = planner(routes, coded, width_bits, pairs, epoch, options.reserve, bank, arithmetic)
    print(facts([*_summary(made, routes), ("time, s", round(time.perf_counter() - begin, 1))]))
    if options.refused:
        write_refused(options.refused, made)
    if options.json:
        documents.write(options.json, documents.document(made, older))


def _older(
    options: argparse.Namespace, network: Network, arithmetic: Arithmetic
) -> tuple[dict[str, Any] | None, Bank | None, int]:
    """Returns the plan to renumber, the bank to extend, and the epoch of the new plan."""
    path = options.extend or options.renumber
    if not path:
        return None, None, 0
    data = documents.read_document(path)
    old = documents.plan_of(path, data)
    if options.renumber:
        return data, None, 1 - old.epoch
    bank = old.bank
    need(bank.arithmetic.name == arithmetic.name, f"{path} has {bank.arithmetic.name} IDs; give a plan of the same arithmetic")
    return None, grown(old.network, bank, network), old.epoch


def pairs_of(options: argparse.Namespace, routes: Routes) -> list[tuple[int, int]] | None:
    """Returns the pairs for which keys are made, or None for all pairs."""
    everything = routes.pairs()
    count = options.sample or ROUTES_MAX
    if len(everything) <= count:
        return None
    return sorted(random.Random(options.seed).sample(everything, count))


def _summary(made: KeyPlan, routes: Routes) -> list[tuple[str, object]]:
    network, bank = made.network, made.bank
    segments = [segment for route in made.routes for segment in route.segments]
    bits = [segment.bits for segment in segments]
    split = [route for route in made.routes if len(route.segments) > 1]
    at = waypoints(made)
    used = [value for value in bank.ids if value]
    rows: list[tuple[str, object]] = [
        ("network", f"{network.name}: {len(network.nodes)} nodes, {len(network.links)} links"),
        *(("left out", note) for note in network.notes),
        ("switches with an ID", f"{len(used)}, IDs {min(used, default=0)} to {max(used, default=0)}"),
        ("labels of a switch, at most", max(len(ports) for ports in bank.labels)),
        ("coded", {"all": "all nodes of a route", "hops": "all but the first", "core": "between the ends"}[made.coded]),
    ]
    if isinstance(routes, Trees):
        rows += _all_pairs(routes, made)
    if isinstance(routes, TreeRoutes):
        rows.append(("key of any path between edges, at most, bits", routes.width_max(bank)))
    rows += [
        ("routes with keys", len(made.routes)),
        ("key width, bits", made.width_bits),
        ("keys: mean, max, bits", f"{statistics.fmean(bits):.1f}, {max(bits)}"),
        ("routes split at waypoints", f"{len(split)}, segments at most {max(len(route.segments) for route in made.routes)}"),
        ("  waypoints, entries at most", f"{len(at)}, {max(map(len, at.values()), default=0)}"),
        ("hop limit, at most", max(segment.hop_limit for segment in segments)),
    ]
    return rows + (_protected(made) if any(bank.backups) else [])


def _all_pairs(trees: Trees, made: KeyPlan) -> list[tuple[str, object]]:
    """Returns facts about the keys of all pairs, without detours and without a maximum width."""
    begin = time.perf_counter()
    is_end = trees.is_end
    found = sorted(
        width
        for destination, nodes in widths(trees, made.bank.ids, made.coded, made.bank.arithmetic)
        for node, width in enumerate(nodes)
        if is_end[node] and node != destination
    )
    for _ in all_keys(trees, made.bank.ids, made.bank.label_of(), made.coded, made.bank.arithmetic):
        pass
    seconds = time.perf_counter() - begin
    fits = ", ".join(f"{100 * sum(width <= bits for width in found) / len(found):.1f} % in {bits}" for bits in WIDTHS_BITS)
    return [
        ("all pairs", f"{len(found)} keys, computed in {seconds:.1f} s"),
        ("  bits: mean, median, max", f"{statistics.fmean(found):.1f}, {found[len(found) // 2]}, {found[-1]}"),
        ("  fit", f"{fits} bits"),
    ]


def _protected(made: KeyPlan) -> list[tuple[str, object]]:
    links = count_links(made)
    hops = [guard for route in made.routes for segment in route.segments for guard in segment.guards]
    # Count the switches between the ends of each route. Waypoints are among them, but cannot be bypassed and
    # have no guards.
    nodes = sum(len(segment.nodes) - 1 for route in made.routes for segment in route.segments) - len(made.routes)
    others = links.used - links.to_leaves - links.other_bridges
    return [
        ("links protected, by all routes", f"{links.protected} of {links.used} ({percent(links.protected, links.used)})"),
        ("  without a detour", f"{links.to_leaves} that lead to leaves, {links.other_bridges} others"),
        ("  of links with a detour", f"{links.protected} of {others} ({percent(links.protected, others)})"),
        ("hops whose link may fail, %", 100 * sum("link" in guard for guard in hops) / len(hops)),
        ("hops whose next switch may fail, %", 100 * sum("node" in guard for guard in hops) / max(1, nodes)),
        *_refused(made),
    ]


def _refused(made: KeyPlan) -> list[tuple[str, object]]:
    """Returns the number of unprotected hops by reason."""
    counts = Counter((refusal.kind, refusal.reason) for refusal in refusals(made))
    rows: list[tuple[str, object]] = []
    for kind, title in (("link", "hops whose link may not fail"), ("node", "hops whose next switch may not fail")):
        rows.append((title, sum(count for (of, _), count in counts.items() if of == kind)))
        rows += [(f"  {reason}", counts[kind, reason]) for reason in Reason if counts[kind, reason]]
    return rows


def percent(part: int, whole: int) -> str:
    """Formats a share as a percentage."""
    return f"{100 * part / max(1, whole):.1f} %"
