# SPDX-License-Identifier: Apache-2.0
"""The basis of Tag-and-Forward's plans as a JSON value, for controllers that share a network
(:mod:`shunt_controller.redundancy.journal`): the order of ports, from which all gates follow."""

from collections.abc import Mapping
from typing import Any

from shunt_controller.live.topology import is_port_number, switch_name, switch_of
from shunt_controller.live.tree import Ports


def of_ports(ports: Ports) -> dict[str, Any]:
    """Returns the order of ports as a JSON value."""
    parts = {"servers": ports.servers, "outside": ports.outside}
    return {name: {switch_name(switch): list(own) for switch, own in sorted(part.items())} for name, part in parts.items()}


def ports_in(basis: Mapping[str, Any]) -> Ports:
    """Returns the order of ports of a JSON value. Raises ValueError if it has none that can be used."""
    try:
        servers, outside = ({switch_of(name): tuple(own) for name, own in basis[part].items()} for part in ("servers", "outside"))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"the stored ports are damaged: {type(error).__name__} {error}") from error
    for own in (*servers.values(), *outside.values()):
        if not all(is_port_number(port) for port in own) or len(set(own)) != len(own):
            raise ValueError("the stored ports of a switch are no port numbers, or not all different")
    return Ports(servers, outside)


def differing(stored: Ports, given: Ports) -> int | None:
    """Returns a switch whose gates do not begin with the stored order of ports: `given` has the ports of switches
    with gates, in the order of these gates. Returns None if there is none. A switch may still lack the last gates."""
    for whole, part in ((stored.servers, given.servers), (stored.outside, given.outside)):
        for switch, ports in sorted(part.items()):
            if whole.get(switch, ())[: len(ports)] != ports:
                return switch
    return None
