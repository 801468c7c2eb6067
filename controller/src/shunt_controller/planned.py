# SPDX-License-Identifier: Apache-2.0
"""Configuration of stateless forwarding in the switches of a plan (docs/planning.md, "JSON"): the sections of
each switch, by its name.

::

    plan = read_plan("plan.json")
    datapath.send_msg(StatelessMod(datapath, sections_of(plan)["s1"]))

A plan contains neither EtherTypes nor MTUs, and it configures only one of the protocols. EtherTypes, MTUs and
the other protocols stay unchanged.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from shunt_controller.experimenter import ExtensionError
from shunt_controller.plan.documents import FORMAT, TABLES, VERSION
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.files import load_json, of_json
from shunt_controller.plan.gates import ASSISTS, EXTERNAL, SERVER
from shunt_controller.sections import TABLES as TO_TABLES
from shunt_controller.sections import Bank, Flag, Gate, GateMap, Gates, Polka, Residues, Section, Trusted, pack

_Made = TypeVar("_Made")
_FLAGS = {"": Flag.NONE, SERVER: Flag.SERVER, EXTERNAL: Flag.EXTERNAL, ASSISTS: Flag.ASSISTS}


def read_plan(path: str) -> dict[str, Any]:
    """Reads a plan of any kind from a file that ``shunt-controller plan`` wrote."""
    data = load_json(path)
    need(isinstance(data, dict) and data.get("format") == FORMAT, f"{path} is not a plan: its format must be {FORMAT}")
    need(data.get("version") == VERSION, f"{path} has version {data.get('version')}; the supported version is {VERSION}")
    kind = data.get("kind")
    need(isinstance(kind, str) and kind in _KINDS, f"{path} is a plan of kind {kind}; supported kinds are {', '.join(_KINDS)}")
    return dict(data)


def sections_of(plan: dict[str, Any]) -> dict[str, list[Section]]:
    """Returns the sections of each switch, by its name. The sections of a switch fit one message."""
    found = guarded(plan, lambda: _KINDS[plan["kind"]](plan, trusted(plan)))
    for name, sections in found.items():
        try:
            pack(sections)
        except (ExtensionError, struct.error) as error:
            raise PlanError(f"the sections of {name} do not fit the wire format: {error}") from error
    return found


def guarded(plan: dict[str, Any], made: Callable[[], _Made]) -> _Made:
    """Returns the result of `made`; raises PlanError with an explanation if the plan is malformed."""
    try:
        return made()
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, PlanError):
            raise
        name = plan.get("network", {}).get("name") if isinstance(plan.get("network"), dict) else None
        raise PlanError(f"the plan of {name or 'a network'} is damaged: {type(error).__name__} {error}") from error


def whole(value: Any) -> int:
    """Returns the value if it is an integer."""
    need(type(value) is int, f"{value!r} is not an integer")
    return int(value)


def trusted(plan: dict[str, Any]) -> dict[str, Trusted]:
    """Returns the ports with links to other switches. A node is a switch if it has a configuration, because
    servers may lack a role."""
    network = of_json("the plan", plan["network"])
    found: dict[str, set[int]] = {switch["name"]: set() for switch in plan["switches"]}
    need(len(found) == len(plan["switches"]), "the plan lists a switch twice")
    for link in network.links:
        a, b = network.nodes[link.a], network.nodes[link.b]
        if a in found and b in found:
            found[a].add(link.a_port)
            found[b].add(link.b_port)
    return {name: Trusted(ports) for name, ports in found.items()}


def _keyflow(plan: dict[str, Any], trusted: dict[str, Trusted]) -> dict[str, list[Section]]:
    polynomial = {one["epoch"]: one["arithmetic"] == "polynomial" for one in plan["plans"]}
    found: dict[str, list[Section]] = {}
    for switch in plan["switches"]:
        banks: dict[int, Residues | None] = {0: None, 1: None}
        for bank in switch["banks"]:
            epoch, name = bank["epoch"], switch["name"]
            need(epoch in polynomial, f"{name} has a bank of epoch {epoch}, for which the plan has no keys")
            need(banks.get(epoch) is None, f"{name} has two banks of epoch {epoch}")
            labels = {label: TO_TABLES if port == TABLES else whole(port) for label, port in enumerate(bank["labels"])}
            backups = {int(port): whole(backup) for port, backup in bank["backups"].items()}
            banks[epoch] = Residues(whole(bank["id"]), labels, backups, polynomial[epoch])
        found[switch["name"]] = [trusted[switch["name"]], *(Bank(epoch, bank) for epoch, bank in banks.items())]
    return found


def _polka(plan: dict[str, Any], trusted: dict[str, Trusted]) -> dict[str, list[Section]]:
    found: dict[str, list[Section]] = {}
    for switch in plan["switches"]:
        # Index 0 marks the end of a path.
        labels = {0: TO_TABLES, **{int(index): whole(port) for index, port in switch["next"].items()}}
        residues = Residues(int(switch["polynomial"], 16), labels, polynomial=True)
        found[switch["name"]] = [trusted[switch["name"]], Polka(residues)]
    return found


def _tags(plan: dict[str, Any], trusted: dict[str, Trusted]) -> dict[str, list[Section]]:
    found: dict[str, list[Section]] = {}
    for switch in plan["switches"]:
        ports = {whole(port): Gate(whole(gate), _FLAGS[flag]) for port, gate, flag, _ in switch["gates"]}
        need(len(ports) == len(switch["gates"]), f"{switch['name']} has two gates at a port")
        down_d, up_d, external_d = (whole(switch[key]) for key in ("down_d", "up_d", "external_d"))
        gates = GateMap(down_d, up_d, external_d, whole(plan["server_gate_max"]), ports)
        found[switch["name"]] = [trusted[switch["name"]], Gates(gates)]
    return found


_KINDS: dict[str, Callable[[dict[str, Any], dict[str, Trusted]], dict[str, list[Section]]]] = {
    "keyflow": _keyflow,
    "polka-freertr": _polka,
    "tag-and-forward": _tags,
}
