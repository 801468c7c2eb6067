# SPDX-License-Identifier: Apache-2.0
"""Checks figures of the demo, read from stdin. Exits 1 with an explanation if a check fails.

iperf LABEL          one iperf3 -J run: prints throughput and loss; bytes and most UDP packets must arrive
counters             `shunt show counters --json`: received = forwarded + dropped by reason + consumed + held
flow MATCH PACKETS [MOST]
                     `shunt show flows`: the flow whose line has MATCH counted PACKETS, or PACKETS to MOST
"""

import json
import re
import sys

# On a busy machine, receiving hosts lose packets.
LOSS_LIMIT_PERCENT = 50


def iperf(label):
    end = json.load(sys.stdin)["end"]
    if "sum" in end:  # UDP
        total = end["sum"]
        lost = total["lost_percent"]
        print(f"  UDP {label}  {total['bits_per_second'] / 1e6:.0f} Mbit/s sent, {lost:.2f} % lost")
        if total["packets"] == 0 or lost >= LOSS_LIMIT_PERCENT:
            sys.exit(f"UDP {label}: {total['packets']} packets, {lost:.2f} % lost; {LOSS_LIMIT_PERCENT} % is the limit")
        return
    received = end["sum_received"]
    print(
        f"  TCP {label}  {received['bits_per_second'] / 1e6:.0f} Mbit/s received,"
        f" {end['sum_sent'].get('retransmits', 0)} retransmits"
    )
    if received["bytes"] == 0:
        sys.exit(f"TCP {label}: nothing arrived")


def counters():
    counted = json.load(sys.stdin)
    dropped = sum(counted["dropped"].values())
    parts = counted["forwarded"] + dropped + counted["consumed"] + counted["held"]
    equation = (
        f"received {counted['received']} = forwarded {counted['forwarded']} + dropped {dropped}"
        f" + consumed {counted['consumed']} + held {counted['held']}"
    )
    if counted["received"] == 0:
        sys.exit(f"  nothing was received: {equation}")
    if counted["received"] != parts:
        sys.exit(f"  does not add up, the right side is {parts}: {equation}")
    print(f"  adds up: {equation}")


def flow(match, packets, most=None):
    lines = [line for line in sys.stdin if match in line]
    if len(lines) != 1:
        sys.exit(f"{len(lines)} flows match {match}, not one")
    counted = re.search(r"n_packets=(\d+)", lines[0])
    if counted is None:
        sys.exit(f"no n_packets= in: {lines[0].strip()}")
    if most is not None:
        if not int(packets) <= int(counted[1]) <= int(most):
            sys.exit(f"the flow with {match} counted {counted[1]} packets, {most} were sent and {packets} arrived")
        print(f"  the flow with {match} counted {counted[1]} packets; {most} were sent, {packets} arrived")
        return
    if int(counted[1]) != int(packets):
        sys.exit(f"the flow with {match} counted {counted[1]} packets, {packets} were sent")
    print(f"  the flow with {match} counted {counted[1]} packets, as many as were sent")


if __name__ == "__main__":
    {"iperf": iperf, "counters": counters, "flow": flow}[sys.argv[1]](*sys.argv[2:])
