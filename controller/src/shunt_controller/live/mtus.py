# SPDX-License-Identifier: Apache-2.0
"""Links whose MTU is too low for packets with a key or a tag. Switches report the limits of ports that they have
been configured with; other ports have no known limit."""

from collections.abc import Mapping

from shunt_controller.live.topology import Topology


def too_low(topology: Topology, mtus: Mapping[int, Mapping[int, int]], host_mtu: int, header_bytes: int) -> list[str]:
    """Returns a sentence about each port to another switch that drops the longest packets of hosts. `mtus` has
    the limits by switch and port, and `host_mtu` is the MTU of hosts, both in bytes after the Ethernet header."""
    least = host_mtu + header_bytes
    return [
        f"port {port.number} of switch {port.switch:x} has an MTU of {mtus[port.switch][port.number]} bytes and drops longer packets; "
        f"packets of hosts with an MTU of {host_mtu} bytes are up to {least} bytes long there"
        for port in sorted(topology.peers)
        if mtus.get(port.switch, {}).get(port.number, least) < least
    ]
