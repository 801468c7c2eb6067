# SPDX-License-Identifier: Apache-2.0
"""Tests of plans of random networks. Packets are walked using only the document and the data plane that
docs/planning.md defines.

This walk is independent of the planner's: it was written from docs/planning.md, and works on names and JSON.
"""

import math
import random
from itertools import combinations, pairwise

import pytest
from shunt_controller.edges import Host
from shunt_controller.plan import fattree, gates, gf2, tagdocuments
from shunt_controller.plan.arithmetic import INTEGERS, POLYNOMIALS
from shunt_controller.plan.documents import document
from shunt_controller.plan.keyflow import plan
from shunt_controller.plan.network import Network, Wire, build
from shunt_controller.plan.protection import plan_protected
from shunt_controller.plan.routes import Trees
from shunt_controller.plan.treeroutes import TreeRoutes
from test_edges import Net
from test_fat_tree import arrive

SEEDS = range(12)
PORT_MAX = 900
TURNS_MAX = 600


def with_random_ports(name: str, roles: list[tuple[str, str]], links: list[tuple[str, str]], draw: random.Random) -> Network:
    """Returns a network whose nodes, links and link ends are in random order, with random port numbers."""
    ports = {node: draw.sample(range(1, PORT_MAX), 100) for node, _ in roles}
    wires = []
    for ends in draw.sample(links, len(links)):
        a, b = draw.sample(ends, 2)
        wires.append(Wire(a, b, ports[a].pop(), ports[b].pop()))
    return build(name, draw.sample(roles, len(roles)), wires)


def random_network(seed: int) -> Network:
    """Returns a connected graph: a random tree, long or bushy, with further links, some of them parallel."""
    draw = random.Random(seed)
    count = draw.randint(3, 26)
    nodes = [f"n{number}" for number in range(count)]
    reach = draw.choice([2, 5, count])
    links = [(nodes[at], nodes[draw.randrange(max(0, at - reach), at)]) for at in range(1, count)]
    links += [tuple(draw.sample(nodes, 2)) for _ in range(draw.randint(0, count))]
    return with_random_ports(f"random {seed}", [(node, "core") for node in nodes], links, draw)


def long_network(seed: int) -> Network:
    """Returns a row with a few chords, whose longest paths have keys that do not fit 64 bits."""
    draw = random.Random(seed)
    nodes = [f"n{number}" for number in range(45)]
    links = list(pairwise(nodes)) + [(nodes[at], nodes[at + 3]) for at in draw.sample(range(42), 8)]
    return with_random_ports(f"long {seed}", [(node, "core") for node in nodes], links, draw)


class Switches:
    """The banks and links of a document."""

    def __init__(self, data, epoch=0):
        self.banks = {}
        for switch in data["switches"]:
            self.banks[switch["name"]] = next((bank for bank in switch["banks"] if bank["epoch"] == epoch), None)
        (made,) = (made for made in data["plans"] if made["epoch"] == epoch)
        self.is_polynomial = made["arithmetic"] == "polynomial"
        self.peer = {}
        for link in data["network"]["links"]:
            a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
            self.peer |= {a: b, b: a}

    def between(self, a, b):
        """Returns the ends of the links between two switches."""
        return {end for end, other in self.peer.items() if {end[0], other[0]} == {a, b}}

    def around(self, name):
        """Returns the ends of a switch's links."""
        return {end for pair in self.peer.items() if name in (pair[0][0], pair[1][0]) for end in pair}

    def residue(self, key, modulus):
        return gf2.remainder(key, modulus) if self.is_polynomial else key % modulus

    def send(self, segment, down=frozenset(), dead=None):
        """Returns the switches that a segment's packet visits, and whether the tables of the last one receive
        it. `down` has ends of links, (name, port); `dead` is a switch."""
        visited, came = self.follow(segment, None, down, dead)
        return visited, came is not None

    def deliver(self, route, down=frozenset(), dead=None):
        """Returns whether a route's packet passes its waypoints and reaches its end."""
        came = None
        for segment in route["segments"]:
            visited, came = self.follow(segment, came, down, dead)
            if came is None or visited[-1] != segment["path"][-1]:
                return False
        return True

    def follow(self, segment, came, down, dead):
        """Returns the switches that a segment's packet visits, and its ingress port at the switch whose
        tables receive it; None if it is dropped. `came` is its ingress port at the first switch."""
        here, out = segment["path"][0], segment["out_port"]
        hops, visited = segment["hop_limit"], [segment["path"][0]]
        key = int(segment["key"], 16)
        if (here, out) in down:
            out = segment["backup_port"]
        if out == came and out not in segment.get("return_ports", []):
            return visited, None
        for _ in range(TURNS_MAX):
            if out is None or (here, out) in down:
                return visited, None
            here, came = self.peer[here, out]
            visited.append(here)
            if here == dead:
                return visited, None
            bank = self.banks[here]
            if bank is None:
                return visited, came
            label = self.residue(key, bank["id"])
            if label >= len(bank["labels"]):
                return visited, None
            out = bank["labels"][label]
            if out == "tables":
                return visited, came
            if hops == 0:
                return visited, None
            if (here, out) in down or out == came:
                out = bank["backups"].get(str(out))
            hops -= 1
        raise AssertionError("the packet loops")


def segments_of(data):
    """Yields each segment of each route, with its route."""
    for route in data["plans"][0]["routes"]:
        for at, segment in enumerate(route["segments"]):
            yield route, segment, at + 1 == len(route["segments"])


def are_coprime(values, is_polynomial):
    if is_polynomial:
        return all(gf2.inverse(a, b) for a, b in combinations(values, 2))
    return all(math.gcd(a, b) == 1 for a, b in combinations(values, 2))


def bits_of(moduli, is_polynomial):
    """Returns the length of the largest key of these IDs."""
    return sum(map(gf2.degree, moduli)) if is_polynomial else (math.prod(moduli) - 1).bit_length()


def check_keys(data):
    """Checks that keys lead hop by hop along their routes, have coprime IDs, and have the stated length."""
    switches = Switches(data)
    made = data["plans"][0]
    names = {switch["name"] for switch in data["switches"]}
    # Switches that routes cross need labels, as do the ends of routes. Different ports have different labels.
    for name, bank in switches.banks.items():
        if bank is not None:
            room = 1 << bank["id"].bit_length() - 1 if switches.is_polynomial else bank["id"]
            assert len(bank["labels"]) <= room and len(set(bank["labels"])) == len(bank["labels"]), name
            assert all(port == "tables" or (name, port) in switches.peer for port in bank["labels"])
    for route, segment, is_last in segments_of(data):
        assert switches.send(segment) == (segment["path"], True)
        inside = segment["path"] if made["coded"] == "all" else segment["path"][1:]
        if made["coded"] == "core" and is_last:
            inside = inside[:-1]
        inside = [*inside, *(name for name in segment["steering"] if name not in inside)]
        assert set(inside) <= names
        moduli = [switches.banks[name]["id"] for name in inside]
        own = max(bits_of(moduli, switches.is_polynomial), int(segment["key"], 16).bit_length())
        if any(segment["guards"]) and own != segment["bits"]:
            # Packets may bounce back to the first switch, so the key may have a residue for it, too.
            moduli.append(switches.banks[segment["path"][0]]["id"])
        assert are_coprime(moduli, switches.is_polynomial), (route["from"], route["to"], moduli)
        # The key may be larger than the smallest key with the same residues.
        bits = max(bits_of(moduli, switches.is_polynomial), int(segment["key"], 16).bit_length())
        assert segment["bits"] == bits <= made["width_bits"]
    for route in made["routes"]:
        ends = [route["from"], *(segment["path"][-1] for segment in route["segments"])]
        assert ends[-1] == route["to"] and ends[:-1] == [segment["path"][0] for segment in route["segments"]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("arithmetic", [INTEGERS, POLYNOMIALS], ids=lambda arithmetic: arithmetic.name)
@pytest.mark.parametrize("coded", ["all", "hops"])
def test_keys_of_random_networks_lead_along_their_routes(seed, arithmetic, coded):
    network = random_network(seed)
    data = document(plan(Trees(network), coded, 128, arithmetic=arithmetic))
    assert len(data["plans"][0]["routes"]) == len(network.nodes) * (len(network.nodes) - 1)
    check_keys(data)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_keys_between_waypoints_lead_along_their_routes(seed):
    network = long_network(seed)
    trees = Trees(network)
    data = document(plan(trees, "hops", 64, trees.pairs()[::7]))
    assert max(len(route["segments"]) for route in data["plans"][0]["routes"]) >= 2
    check_keys(data)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width_bits", [64, 256])
def test_protected_hops_of_random_networks_lose_nothing(seed, width_bits):
    network = random_network(seed + 100)
    data = document(plan_protected(Trees(network), "hops", width_bits))
    check_keys(data)
    switches = Switches(data)
    links = claims = 0
    for _, segment, _ in segments_of(data):
        out = segment["out_port"]
        assert len(segment["guards"]) == len(segment["path"]) - 1
        for hop, (node, following) in enumerate(pairwise(segment["path"])):
            if hop:
                bank = switches.banks[node]
                out = bank["labels"][switches.residue(int(segment["key"], 16), bank["id"])]
            assert switches.peer[node, out][0] == following
            guard = segment["guards"][hop].split("+")
            backup = switches.banks[node]["backups"].get(str(out)) if hop else segment["backup_port"]
            links += 1
            if "link" in guard:
                claims += 1
                assert backup is not None and backup != out
                visited, has_come = switches.send(segment, {(node, out), switches.peer[node, out]})
                assert has_come and visited[-1] == segment["path"][-1], (segment, hop)
            if "node" in guard:
                assert backup is not None and following != segment["path"][-1]
                ends = {end for pair in switches.peer.items() if following in (pair[0][0], pair[1][0]) for end in pair}
                visited, has_come = switches.send(segment, ends, following)
                assert has_come and visited[-1] == segment["path"][-1], (segment, hop)
    if width_bits == 256:
        assert claims >= 0.9 * hops_with_a_way_round(network, data), (claims, links)


def hops_with_a_way_round(network: Network, data) -> int:
    """Returns the number of hops whose link has a detour. These hops could be protected."""

    def reaches(a, b, without):
        seen, rest = {a}, [a]
        while rest:
            here = rest.pop()
            for link in network.links:
                ends = (link.a, link.b)
                if link != without and here in ends:
                    other = ends[1 - ends.index(here)]
                    if other not in seen:
                        seen.add(other)
                        rest.append(other)
        return b in seen

    safe = {frozenset((link.a, link.b)) for link in network.links if reaches(link.a, link.b, link)}
    return sum(
        frozenset(map(network.index, hop)) in safe for _, segment, _ in segments_of(data) for hop in pairwise(segment["path"])
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_hosts_of_random_networks_reach_each_other(seed):
    draw = random.Random(seed)
    network = long_network(seed) if seed < 3 else random_network(seed + 200)
    ends = sorted(draw.sample(range(len(network.nodes)), min(len(network.nodes), draw.randint(2, 6))))
    pairs = [(a, b) for a in ends for b in ends if a != b]
    made = plan(Trees(network), "hops", 64, pairs) if seed % 2 else plan_protected(Trees(network), "hops", 64, pairs)
    data = document(made)
    hosts = [Host(f"10.0.0.{at}", network.nodes[node], PORT_MAX + at) for at, node in enumerate(ends, 1)]
    net = Net(data, hosts)
    for source in hosts:
        for target in hosts:
            assert net.send(source, target.address) == ((target.switch, target.port), None)
    ways = {segment["path"][0] for route in data["plans"][0]["routes"] for segment in route["segments"]}
    assert {name for name, own in net.entries.items() if own} == ways


def wired_at_random(k: int, seed: int, outside: int = 0) -> Network:
    """Returns a fat tree whose parts are in random order, with random port numbers."""
    tree = fattree.make(k, outside)
    draw = random.Random(seed)
    name = dict(zip(tree.nodes, (f"x{number}" for number in draw.sample(range(1000), len(tree.nodes))), strict=True))
    links = [(name[tree.nodes[link.a]], name[tree.nodes[link.b]]) for link in tree.links]
    # Servers are the nodes with one link; no role marks them.
    return with_random_ports(f"tree {seed}", [(name[node], "core") for node in tree.nodes], links, draw)


@pytest.mark.parametrize(("k", "seed", "outside"), [(4, seed, seed % 3) for seed in range(6)] + [(6, 6, 0), (6, 7, 1)])
def test_tags_of_trees_wired_at_random_arrive(k, seed, outside):
    network = wired_at_random(k, seed, outside)
    numbering = gates.number(fattree.find(network))
    data = tagdocuments.document(numbering)
    switches = {switch["name"]: switch for switch in data["switches"]}
    servers = {name for name in network.nodes if name not in switches}
    assert len(switches) == 5 * k * k // 4 and len(servers) == k**3 // 4 + outside * k * k // 4
    for switch in switches.values():
        numbers = [gate for _, gate, _, _ in switch["gates"]]
        assert len(set(numbers)) == len(numbers) and len({port for port, *_ in switch["gates"]}) == len(numbers)
    draw = random.Random(seed)
    sources = [name for name, switch in switches.items() if switch["layer"] == "edge"]
    for name in sources if k == 4 else draw.sample(sources, 5):
        for host in data["hosts"]:
            if host["switch"] == name:
                continue
            near = switches[host["switch"]]["pod"] == switches[name]["pod"]
            for port, row in zip(switches[name]["uplinks"], [[0]] * (k // 2) if near else data["ups"], strict=True):
                for up in row:
                    found = arrive(network, switches, data["server_gate_max"], name, port, up, host["gate"])
                    assert found == (host["switch"], host["port"])
    # Repeat the check with packets from host to host that follow the generated entries. `net.flow` selects
    # each bucket of a group in turn.
    places = draw.sample(data["hosts"], 6)
    hosts = [Host(f"10.0.0.{at}", place["switch"], place["port"]) for at, place in enumerate(places, 1)]
    net = Net(data, hosts)
    net.links = {end: other for end, other in net.links.items() if end[0] in switches and other[0] in switches}
    for source in hosts:
        for target in hosts:
            for net.flow in range((k // 2) ** 2):
                assert net.send(source, target.address) == ((target.switch, target.port), None)


@pytest.mark.parametrize(("k", "seed"), [(4, 1), (4, 2), (6, 3)])
def test_keys_of_trees_wired_at_random_arrive(k, seed):
    routes = TreeRoutes(fattree.find(wired_at_random(k, seed)))
    data = document(plan(routes, "core", 64))
    assert len(data["plans"][0]["routes"]) == (k * k // 2) * (k * k // 2 - 1)
    check_keys(data)
