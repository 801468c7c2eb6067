# SPDX-License-Identifier: Apache-2.0
"""Writes results of the data planes of the planners (plan/walk.py and plan/tags.py in controller/). A test
compares the reference with these results.

Run it from the root of the repository, with networkx and os-ken: PYTHONPATH=controller/src python3
crates/reference/tests/stateless/make.py

Nodes and ports are numbers. The first two lines of each file explain the columns of the other lines.
"""

import pathlib
import random

from shunt_controller.plan import fattree, files, gates, tags
from shunt_controller.plan.arithmetic import INTEGERS, POLYNOMIALS
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.keyflow import Segment
from shunt_controller.plan.network import Network
from shunt_controller.plan.protection import plan_protected
from shunt_controller.plan.routes import Trees
from shunt_controller.plan.walk import Failure, Walk, by_key

HERE = pathlib.Path(__file__).parent
BACKBONE = pathlib.Path("controller/tests/plan/samples/backbone.json")
BARE = 3
"""Node that loses its backups, so that it drops packets."""
WALKS = 70
STEPS = 90


def links(network: Network) -> list[str]:
    """Returns both ends of each link."""
    return [
        f"link {node} {port} {peer.node} {peer.port}"
        for node, ports in enumerate(network.ports)
        for port, peer in sorted(ports.items())
        if (node, port) < (peer.node, peer.port)
    ]


def keys() -> list[str]:
    """Returns walks with keys, some with a failure in the network, or with a wrong hop limit or key."""
    lines = [
        "# link node port node port | bank node id labels backups",
        "# walk down source port key hops outcome node forwarded visited",
    ]
    network = files.of_json("backbone", files.read_json(str(BACKBONE), BACKBONE.read_bytes()))
    for arithmetic in (INTEGERS, POLYNOMIALS):
        made = plan_protected(Trees(network), "hops", 256, arithmetic=arithmetic)
        bank = made.bank
        bank.backups[BARE] = {}
        lines += [f"arithmetic {arithmetic.name}", *links(made.network)]
        for node, value in enumerate(bank.ids):
            if value:
                labels = ",".join("tables" if port == LOCAL else str(port) for port in bank.labels[node])
                backups = ",".join(f"{port}:{backup}" for port, backup in sorted(bank.backups[node].items()))
                lines.append(f"bank {node} {value} {labels} {backups or '-'}")
        draw = random.Random(1)
        segments = [segment for route in made.routes for segment in route.segments]
        for _ in range(WALKS):
            segment = draw.choice(segments)
            failure = failed(draw, made.network, segment)
            hops = segment.hop_limit if draw.random() < 0.8 else draw.randrange(3)
            key = segment.key if draw.random() < 0.9 else draw.getrandbits(64)
            end = Walk(made.network, bank.backups, failure).run(segment.nodes[0], segment.out_port, by_key(bank, key), hops)
            down = "-" if failure is None else f"{failure.node}" + (f":{failure.port}" if failure.port else "")
            lines.append(
                f"walk {down} {segment.nodes[0]} {segment.out_port} {key:x} {hops} {end.reason or 'tables'} {end.node} {end.forwarded} "
                + ",".join(map(str, end.visited))
            )
    return lines


def failed(draw: random.Random, network: Network, segment: Segment) -> Failure | None:
    """Returns either no failure, or the failure of a link or node on the path. The first switch never
    fails."""
    hop = draw.randrange(len(segment.nodes) - 1)
    node, following = segment.nodes[hop], segment.nodes[hop + 1]
    chance = draw.random()
    if chance < 0.3:
        return None
    if chance < 0.8:
        return Failure(node, network.neighbours[node][following])
    return Failure(following)


def gate_steps() -> list[str]:
    """Returns walks in the k = 4 tree with two external links at each core, and single steps with tags that
    may be invalid."""
    lines = [
        "# link node port node port | gates node down-d up-d external-d server-gate-max port:gate:flag..",
        "# walk source port up down visited gate | step node in-port up down gate",
    ]
    numbering = gates.number(fattree.find(fattree.make(4, 2)))
    tree = numbering.tree
    lines += links(tree.network)
    for node, switch in numbering.switches.items():
        ports = " ".join(f"{port}:{gate.gate}:{gate.flag or '-'}" for port, gate in sorted(switch.by_port.items()))
        steps = f"{switch.down_d} {switch.up_d} {switch.external_d} {numbering.server_gate_max}"
        lines.append(f"gates {node} {steps} {ports}")
    draw = random.Random(2)
    pod_of = tree.pod_of()
    choices = [(edge, tag) for edge, target in tags.pairs(numbering) for tag in tags.tags(numbering, edge, target, pod_of)]
    for edge, tag in draw.sample(choices, WALKS):
        arrival = tags.walk(numbering, edge, tag)
        assert arrival.gate
        visited = ",".join(map(str, arrival.visited))
        lines.append(f"walk {edge} {tag.out_port} {tag.up} {tag.down} {visited} {arrival.gate.gate}")
    for _ in range(STEPS):
        switch = numbering.switches[draw.choice(list(numbering.switches))]
        port = draw.choice(list(switch.by_port))
        up, down = (draw.choice([0, draw.randrange(60), draw.getrandbits(bits)]) for bits in (32, 13))
        gate = tags.forward(switch, numbering.server_gate_max, switch.by_port[port], up, down)
        lines.append(f"step {switch.node} {port} {up} {down} {gate.gate if gate else tags.NO_GATE}")
    return lines


for name, lines in (("keys.txt", keys()), ("gates.txt", gate_steps())):
    (HERE / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
