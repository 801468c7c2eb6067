# SPDX-License-Identifier: Apache-2.0
"""Command ``plan fat-tree``."""

import argparse
import time
from typing import Any

from shunt_controller.plan import documents, fattree, gates, tagdocuments, tags
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.files import read, to_json
from shunt_controller.plan.network import Network
from shunt_controller.plan.tables import facts
from shunt_controller.plan.wiring import Shape

ALL_MAX_K = 8
"""Largest k for which all tags are walked. Larger trees are checked by a sample of walks, unless all walks
are requested."""
SAMPLE_PAIRS = 500


def add(commands: Any) -> None:
    """Adds the command to a parser."""
    parser = commands.add_parser(
        "fat-tree",
        help="plan the gates of Tag-and-Forward for a fat tree",
        description="Recognizes a fat tree in a network, for any order of nodes and ports, and numbers its gates. The tree may be "
        "oversubscribed. If the network is not a fat tree, missing, extra and swapped cables are named. Tags are then walked through "
        "the tree.",
    )
    parser.add_argument(
        "graph", metavar="GRAPH", nargs="?", help="the network (.graphml, .json); without it, a tree of --k is generated"
    )
    parser.add_argument("--k", type=int, help="the k of the tree that GRAPH must have, or of a generated tree")
    parser.add_argument(
        "--external", type=int, default=0, metavar="N", help="external links of each core switch of a generated tree (default: 0)"
    )
    parser.add_argument("--wide", action="store_true", help="the wide header: UP 29 bits, DOWN 16 (the paper's: 32 and 13)")
    parser.add_argument(
        "--external-first",
        type=int,
        metavar="GATE",
        help="the first external gate (default: the lowest gate above all server gates that the numbering rule allows)",
    )
    parser.add_argument(
        "--walk", type=int, metavar="N", help=f"walk N pairs (default: all up to k = {ALL_MAX_K}, else {SAMPLE_PAIRS})"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the walked pairs (default: 1)")
    parser.add_argument("--json", metavar="OUT", help="write the plan to this file")
    parser.add_argument("--graph-json", metavar="OUT", help="write the network to this file")
    parser.set_defaults(run=run, name="plan fat-tree")


def tree_of(options: argparse.Namespace) -> fattree.FatTree:
    """Returns the tree of the given file, or of the requested size."""
    if options.graph:
        need(not options.external, "--external is for generated trees; GRAPH itself defines its external links")
        return fattree.find(read(options.graph), options.k)
    need(options.k is not None, "give a GRAPH or --k")
    return fattree.find(fattree.make(options.k, options.external))


def run(options: argparse.Namespace) -> None:
    """Plans the tree, walks it, writes the plan and prints a summary."""
    begin = time.perf_counter()
    need(options.walk is None or options.walk > 0, "--walk must be at least 1")
    tree = tree_of(options)
    numbering = gates.number(tree, gates.WIDE if options.wide else gates.PAPER, options.external_first)
    planned = time.perf_counter() - begin
    sample = options.walk or (None if tree.k <= ALL_MAX_K else SAMPLE_PAIRS)
    proof = tags.prove(numbering, sample, options.seed)
    if proof.failed:
        edge, target, tag, _ = proof.failed[0]
        raise PlanError(
            f"{len(proof.failed)} of {proof.walks} tags lead elsewhere, the first from {tree.network.nodes[edge]} with UP {tag.up} and DOWN "
            f"{tag.down} to gate {target.gate.gate}: this is a fault of the planner"
        )
    if options.graph_json:
        documents.write(options.graph_json, to_json(tree.network))
    if options.json:
        documents.write(options.json, tagdocuments.document(numbering))
    print(facts(_summary(tree.network, numbering, proof, sample, planned)))


def _size(tree: fattree.FatTree) -> str:
    """Returns the size of a tree."""
    return str(Shape(tree.k, len(tree.cores), tree.uplinks))


def _summary(
    network: Network, numbering: gates.Numbering, proof: tags.Proof, sample: int | None, planned_s: float
) -> list[tuple[str, object]]:
    tree = numbering.tree
    there = sum(place.node is not None for places in tree.servers.values() for place in places)
    outside = sum(len(places) for places in tree.outside.values())
    count = sum(len(switch.gates) for switch in numbering.switches.values())
    header = numbering.header
    rows: list[tuple[str, object]] = [
        (
            "network",
            f"{network.name}: {_size(tree)}, {len(numbering.switches)} switches, {there} servers of {len(tree.servers) * tree.places}, "
            f"{outside} links outside",
        ),
        ("header", f"{header.name}: UP {header.up_bits} bits, DOWN {header.down_bits} bits, 8 bytes"),
        ("gates", f"{count}, server gates {numbering.server_first} to {numbering.server_gate_max}"),
        ("external gates", f"{numbering.outside} a core, from {numbering.external_first} on"),
    ]
    for layer in ("edge", "aggregation", "core"):
        switch = next(switch for switch in numbering.switches.values() if switch.layer == layer)
        values = [f"down {switch.down_d}", *([f"up {switch.up_d}"] if switch.up_d else [])]
        values += [f"external {switch.external_d}"] * bool(switch.external_d)
        rows.append((f"d, {layer}", ", ".join(values)))
    planes = len(tree.cores)
    pairs = "all pairs" if sample is None else f"{sample} pairs"
    return [
        *rows,
        ("tags walked", f"{proof.walks} ({pairs}), all arrived, over {proof.switches_max} switches at most"),
        ("entries of an edge, pairs of (UP, DOWN)", f"{planes * tree.uplinks} for a server of another pod, {planes} within its own"),
        ("time to plan, s", round(planned_s, 1)),
    ]
