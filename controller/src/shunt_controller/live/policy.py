# SPDX-License-Identifier: Apache-2.0
"""A policy that marks flow entries as low-latency or normal: a file of rules, and the mark of each entry.

::

    [[rule]]
    name = "voice"
    match = {eth_type = 0x0800, ip_proto = 17, ipv4_dst = "10.0.0.0/24"}
    mark = "low-latency"            # or "normal"
    table = 0                       # optional, also: switches = [1, 2], a list of datapath IDs

A rule applies to the entries that match only packets of the rule. The first rule that applies decides. YAML
files have the same content: a list named `rule`.
"""

import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.instructions import LowLatency

MARKS = {"low-latency": True, "normal": False}
RULES_MAX = 1000
NARROW = {
    "vlan_vid": 13, "vlan_pcp": 3, "ip_dscp": 6, "ip_ecn": 2, "ipv6_flabel": 20, "ipv6_exthdr": 9, "mpls_label": 20, "mpls_tc": 3, "mpls_bos": 1,
}  # fmt: skip
"""Lengths in bits of fields that are not a whole number of bytes."""
_KEYS = {"name", "match", "mark", "table", "switches"}


class PolicyError(ValueError):
    """A policy file cannot be used. The message states the line and the reason."""


class Field(NamedTuple):
    """Value and mask of a field, with equal lengths."""

    value: int
    mask: int


@dataclass(frozen=True)
class Rule:
    """A rule of a policy."""

    name: str
    match: Mapping[str, Field]
    mark: bool
    """True for low-latency."""
    table: int | None = None
    switches: frozenset[int] | None = None
    """Datapath IDs; None for all switches."""

    def covers(self, switch: int, table: int, match: Mapping[str, Field]) -> bool:
        """Returns whether an entry matches only packets of this rule."""
        if (self.table is not None and table != self.table) or (self.switches is not None and switch not in self.switches):
            return False
        return all(name in match and _within(match[name], field) for name, field in self.match.items())


def _within(narrow: Field, wide: Field) -> bool:
    return narrow.mask & wide.mask == wide.mask and narrow.value & wide.mask == wide.value


def first(rules: Iterable[Rule], switch: int, table: int, match: Mapping[str, Field]) -> Rule | None:
    """Returns the rule that decides about an entry."""
    return next((rule for rule in rules if rule.covers(switch, table, match)), None)


def fields(match: Iterable[tuple[str, Any]]) -> dict[str, Field]:
    """Returns the fields of a match, given by names and values of os-ken. Raises ValueError for a field
    that does not exist, or a value that it cannot have."""
    found = {}
    for name, given in match:
        try:
            _, data, mask = ofp.oxm_from_user(name, given)
        except Exception as error:  # noqa: BLE001 - os-ken raises various exceptions, such as KeyError and AddrFormatError.
            raise ValueError(f"{name} cannot be {given!r}") from error
        bits_max = NARROW.get(name, 8 * len(data))
        for number in given if isinstance(given, tuple) else (given,):
            if isinstance(number, int) and number >> bits_max:
                raise ValueError(f"{name} cannot be {given!r}, because it has {bits_max} bits")
        ones = (1 << 8 * len(data)) - 1
        bits = ones if mask is None else int.from_bytes(mask)
        found[name] = Field(int.from_bytes(data) & bits, bits)
    return found


def mark_of(instructions: Iterable[Any]) -> bool | None:
    """Returns the mark of an entry. None if it has none."""
    return next((one.low_latency for one in instructions if isinstance(one, LowLatency)), None)


def marked(instructions: Iterable[Any], mark: bool) -> list[Any]:
    """Returns instructions with another mark."""
    return [*(one for one in instructions if not isinstance(one, LowLatency)), LowLatency(mark)]


def parse(text: str, is_yaml: bool = False) -> tuple[Rule, ...]:
    """Returns the rules of a file. Raises PolicyError."""
    data, lines = _yaml(text) if is_yaml else _toml(text)
    if not isinstance(data, dict) or not isinstance(data.get("rule", []), list):
        raise PolicyError("line 1: a policy consists of rules: [[rule]] in TOML, or a list named rule in YAML")
    unknown = sorted(map(str, data.keys() - {"rule"}))
    if unknown:
        raise PolicyError(f"line 1: {unknown[0]!r} is not part of a policy, which consists of a list named rule")
    given = data.get("rule", [])
    if len(given) > RULES_MAX:
        raise PolicyError(f"line 1: the policy has {len(given)} rules; at most {RULES_MAX} are supported")
    found = []
    for number, one in enumerate(given):
        line = lines[number] if number < len(lines) else 1
        try:
            found.append(_rule(one, number + 1))
        except ValueError as error:
            name = f" ({one['name']})" if isinstance(one, dict) and isinstance(one.get("name"), str) else ""
            raise PolicyError(f"line {line}: rule {number + 1}{name}: {error}") from error
    return tuple(found)


def _toml(text: str) -> tuple[Any, list[int]]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        last = text.count("\n") + 1
        reason = str(error).split(" (at ")[0]
        raise PolicyError(f"line {place[1] if place else last}: {reason[:1].lower()}{reason[1:]}") from error
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    return data, lines


def _yaml(text: str) -> tuple[Any, list[int]]:
    try:
        import yaml  # noqa: PLC0415 - the package is optional.
    except ImportError as error:
        raise PolicyError("YAML needs the package PyYAML: pip install 'shunt-controller[yaml]'; or use a TOML file") from error
    try:
        data, node = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise PolicyError(f"line {mark.line + 1 if mark else 1}: {getattr(error, 'problem', None) or 'this is not YAML'}") from error
    lines = []
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == "rule" and isinstance(value, yaml.SequenceNode):
                lines = [item.start_mark.line + 1 for item in value.value]
    return data if data is not None else {}, lines


def _rule(one: Any, number: int) -> Rule:
    _need(isinstance(one, dict), "a rule is a table with match and mark")
    unknown = sorted(map(str, one.keys() - _KEYS))
    _need(not unknown, f"{', '.join(unknown)} is unknown; a rule has {', '.join(sorted(_KEYS))}")
    match, mark, table, switches = one.get("match"), one.get("mark"), one.get("table"), one.get("switches")
    _need(isinstance(match, dict), "match must be a table of fields, such as {eth_type = 0x0800}")
    _need(isinstance(mark, str) and mark in MARKS, f"mark is {mark!r}; it must be {' or '.join(MARKS)}")
    _need(table is None or (type(table) is int and 0 <= table <= 254), f"table is {table!r}; tables are 0 to 254")
    are_ids = isinstance(switches, list) and all(type(number) is int and 0 <= number < 1 << 64 for number in switches)
    _need(switches is None or are_ids, "switches must be a list of datapath IDs")
    name = one.get("name", f"rule {number}")
    _need(isinstance(name, str), "name must be a text")
    found = fields((str(field), _value(str(field), value)) for field, value in dict(match or {}).items())
    return Rule(name, found, MARKS[str(mark)], table, None if switches is None else frozenset(switches))


def _value(name: str, value: Any) -> Any:
    """Returns a value as os-ken expects it. Texts may have a mask or a prefix length after a slash."""
    _need(type(value) in (int, str), f"{name} is {value!r}; values are numbers or texts")
    if type(value) is int:
        _need(value >= 0, f"{name} is {value}; numbers must not be negative")
        return value
    base, slash, mask = value.partition("/")
    if not slash:
        return int(base, 0) if re.fullmatch(r"0x[0-9a-fA-F]+|\d+", base) else base
    if mask.isdecimal() and name.startswith(("ipv4", "ipv6", "arp_spa", "arp_tpa")):
        try:
            network = ipaddress.ip_network(value, strict=False)
        except ValueError as error:
            raise ValueError(f"{name} is {value!r}, which is not a network") from error
        return str(network.network_address), str(network.netmask)
    numbers = all(re.fullmatch(r"0x[0-9a-fA-F]+|\d+", part) for part in (base, mask))
    return (int(base, 0), int(mask, 0)) if numbers else (base, mask)


def _need(is_so: bool, says: str) -> None:
    if not is_so:
        raise ValueError(says)
