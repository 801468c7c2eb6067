# SPDX-License-Identifier: Apache-2.0
"""Computes the longest waits of packets and requests, with and without the time in which other programs had
the cores."""

# Threads on which each kind of packet or request depends: one of the test, and one of the switch.
CONCERNED = {
    "receiver": ("sender", "switch worker"),
    "control": ("control", "switch shunt"),
    "openflow": ("openflow", "switch shunt"),
}
NAMES = {"receiver": "forwarding", "control": "control request", "openflow": "OpenFlow echo"}


def overlap(wait, begin, end):
    return max(0, min(wait[1], end) - max(wait[0], begin))


def preempted_ns(seen, part, begin, end):
    """Returns the time in [begin, end] for which a relevant thread waited for a core, or for which no core
    was available."""
    waited = 0
    for name, waits in seen["delays"]["waits"].items():
        if name.startswith(CONCERNED[part]):
            waited += sum(min(wait[2], overlap(wait, begin, end)) for wait in waits)
    witnesses = [seen[name]["waits"] for name in seen if name.startswith("witness ")]
    stood = max((sum(overlap(wait, begin, end) for wait in waits) for waits in witnesses), default=0)
    return min(end - begin, max(waited, stood))


def judge(seen):
    """Returns the longest waits in ms."""
    figures = {}
    for part, name in NAMES.items():
        waits = seen[part]["waits"]
        raw = max((end - begin for begin, end in waits), default=0)
        aside = max((end - begin - preempted_ns(seen, part, begin, end) for begin, end in waits), default=0)
        figures[f"longest {name}, ms"] = round(raw / 1e6, 1)
        figures[f"longest {name}, ms, preemption set aside"] = round(aside / 1e6, 1)
        figures[f"{name}s over 50 ms"] = sum(end - begin > 50_000_000 for begin, end in waits)
    return figures
