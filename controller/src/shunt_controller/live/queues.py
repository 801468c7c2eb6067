# SPDX-License-Identifier: Apache-2.0
"""Queues that the QIDs of Tag-and-Forward select and that ports lack. Their packets use queue 0 there, without an
error of the switch."""

from collections.abc import Collection, Mapping

Queues = Mapping[int, Collection[int]]
"""Queue numbers by port. Ports without a configured queue may be left out."""


def missing(queues: Mapping[int, Queues], ports: Mapping[int, Collection[int]], qids: Mapping[int, int]) -> list[str]:
    """Returns a sentence about each queue that a switch lacks. `queues` has the switches that have reported their
    queues, `ports` the ports with gates of each switch, and `qids` the QID of packets by their DSCP. QID 0 selects
    queue 0, which each port has."""
    dscps: dict[int, list[int]] = {}
    for dscp, qid in sorted(qids.items()):
        if qid:
            dscps.setdefault(qid, []).append(dscp)
    found = []
    for switch in sorted(queues.keys() & ports.keys()):
        for qid, selecting in sorted(dscps.items()):
            without = sorted(port for port in ports[switch] if qid not in queues[switch].get(port, ()))
            if without:
                found.append(
                    f"switch {switch:x} has no queue {qid} at {_listed('port', without)}; packets with {_listed('DSCP', selecting)} use queue 0 there"
                )
    return found


def _listed(name: str, numbers: list[int]) -> str:
    *first, last = map(str, numbers)
    if not first:
        return f"{name} {last}"
    return f"{name}{'s' if name == 'port' else ''} {', '.join(first)} and {last}"
