# SPDX-License-Identifier: Apache-2.0
"""Reads networks from files: GraphML in the form of the Internet Topology Zoo, and Shunt's JSON
(docs/planning.md)."""

import json
import pathlib
import stat
import warnings
from collections import Counter
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx

from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.network import Network, Wire, build

FILE_MAX_BYTES = 256 << 20
PLAN_MAX_BYTES = 1 << 30
"""Maximum file size in bytes. No plan that the planners write is larger, and simulations have the same
limit."""


def read(path: str, internal_only: bool = False) -> Network:
    """Reads the network in a file. The extension gives the format: ``.graphml`` or ``.json``."""
    file, data = pathlib.Path(path), content(path, FILE_MAX_BYTES)
    if file.suffix == ".graphml":
        return _graphml(file.stem, data, internal_only)
    if file.suffix == ".json":
        return of_json(file.stem, read_json(path, data))
    raise PlanError(f"{path} is neither .graphml nor .json")


def content(path: str, bytes_max: int) -> bytes:
    """Returns the content of a regular file. A pipe is refused, because it may never end."""
    try:
        status = pathlib.Path(path).stat()
        need(stat.S_ISREG(status.st_mode), f"{path} is not a regular file")
        need(status.st_size <= bytes_max, f"{path} has {status.st_size} bytes; at most {bytes_max} are supported")
        with pathlib.Path(path).open("rb") as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror or error}") from error
    need(len(data) <= bytes_max, f"{path} has more than {bytes_max} bytes, which is the maximum")
    return data


def load_json(path: str) -> Any:
    """Reads a JSON file, up to the maximum size of plans."""
    return read_json(path, content(path, PLAN_MAX_BYTES))


def read_json(path: str, data: bytes) -> Any:
    """Parses the bytes of a JSON file."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path} is not JSON: {error}") from error


def _graphml(name: str, data: bytes, internal_only: bool) -> Network:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = networkx.parse_graphml(data.decode("utf-8-sig"), force_multigraph=True)
    except (ParseError, networkx.NetworkXException, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise PlanError(f"{name}.graphml is not valid GraphML: {error}") from error
    notes = []
    if internal_only:
        outside = [node for node, data in graph.nodes(data=True) if str(data.get("Internal", 1)) in ("0", "False")]
        graph.remove_nodes_from(outside)
        if outside:
            notes.append(f"{len(outside)} external nodes were left out")
    return of_graph(name, graph, notes)


def of_graph(name: str, graph: Any, notes: list[str] | None = None) -> Network:
    """Converts a graph of networkx. Ports are numbered from 1 in the order of the nodes to which they lead.
    They therefore do not depend on the order of the links. Links from a node to itself are omitted, and
    parallel links are kept. In a directed graph, two links of opposite direction are one link."""
    said = list(notes or [])
    order = {node: index for index, node in enumerate(graph)}
    labels = Counter(str(data.get("label", "")) for _, data in graph.nodes(data=True))

    def called(node: Any) -> str:
        label = str(graph.nodes[node].get("label", ""))
        return str(node) if not label else label if labels[label] == 1 else f"{label} ({node})"

    loops = 0
    ways: Counter[tuple[Any, Any]] = Counter()
    for a, b in graph.edges():
        loops += a == b
        if a != b:
            ways[(a, b) if graph.is_directed() or order[a] < order[b] else (b, a)] += 1
    counts: Counter[tuple[Any, Any]] = Counter()
    for (a, b), count in ways.items():
        pair = (a, b) if order[a] < order[b] else (b, a)
        counts[pair] = max(counts[pair], count)
    if loops:
        said.append(f"{loops} links of a node to itself were left out")
    wires = []
    for a, b in sorted(counts, key=lambda pair: (order[pair[0]], order[pair[1]])):
        wires += [Wire(called(a), called(b))] * counts[a, b]
    roles = [(called(node), str(graph.nodes[node].get("role", "core"))) for node in graph]
    return build(name, roles, wires, said)


def of_json(name: str, data: Any) -> Network:
    """Parses ``{"name": .., "nodes": [NAME or {"name", "role"}], "links": [[A, B] or {"a", "b", "a_port",
    "b_port"}]}``."""
    need(isinstance(data, dict), f"{name}: a network is an object with nodes and links")
    _known(data, {"name", "nodes", "links"}, name)
    title = data.get("name", name)
    need(isinstance(title, str), f"{name}: the name of a network is a string")
    nodes = []
    for node in _list(data, "nodes", title):
        if isinstance(node, str):
            node = {"name": node}
        need(
            isinstance(node, dict) and isinstance(node.get("name"), str), f"{title}: {node!r} is not a node; a node has a name"
        )
        _known(node, {"name", "role"}, title)
        nodes.append((node["name"], str(node.get("role", "core"))))
    wires = []
    for link in _list(data, "links", title):
        if isinstance(link, list) and len(link) == 2:
            link = {"a": link[0], "b": link[1]}
        is_link = isinstance(link, dict) and isinstance(link.get("a"), str) and isinstance(link.get("b"), str)
        need(is_link, f"{title}: {link!r} is not a link; links are [A, B] or objects with a and b")
        _known(link, {"a", "b", "a_port", "b_port"}, title)
        ports = [link.get("a_port"), link.get("b_port")]
        need(all(port is None or type(port) is int for port in ports), f"{title}: ports of {link!r} are not numbers")
        wires.append(Wire(link["a"], link["b"], *ports))
    return build(title, nodes, wires)


def _list(data: dict[str, Any], key: str, title: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise PlanError(f"{title} has no list named {key}")
    return value


def _known(data: dict[str, Any], keys: set[str], title: str) -> None:
    unknown = sorted(set(data) - keys)
    need(not unknown, f"{title}: {', '.join(map(repr, unknown))} not known; known keys are {', '.join(sorted(keys))}")


def to_json(network: Network) -> dict[str, Any]:
    """Reverses :func:`of_json`, with all port numbers."""
    nodes: list[Any] = [
        name if role == "core" else {"name": name, "role": role}
        for name, role in zip(network.nodes, network.roles, strict=True)
    ]
    links = [
        {"a": network.nodes[link.a], "a_port": link.a_port, "b": network.nodes[link.b], "b_port": link.b_port}
        for link in network.links
    ]
    return {"name": network.name, "nodes": nodes, "links": links}
