#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Shunt with Open vSwitch with DPDK and dpdk-testpmd, on one forwarding core: `make bench-peers`.

Both sides of a row read the same capture through the same driver, and run at the same time. While one
forwards, the other is paused. Figures are written to target/report/peers.jsonl. bench/README.md describes the
method.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import os
import random
import sys
import tempfile
import time

from machine import FORWARDING_CPU, ROOT, Failed, Pages, check, end_in_order
from macswap import Macswap
from openvswitch import CACHES, OpenVswitch
from rows import LEARNED, MACSWAP, ROUTED, before, by_records, full, named
from shunt import Shunt
from testpmd import Testpmd
from traffic import from_stations, write

sys.path.insert(0, os.path.join(ROOT, "lab"))
# pylint: disable-next=wrong-import-position
from report import Report

REPORT = os.path.join(ROOT, "target/report/peers.jsonl")
LOCK = os.path.join(ROOT, "target/peers.lock")
# Number of 2 MiB pages for the packet buffers of two programs: about 200,000 buffers for Shunt or testpmd,
# 262,144 for Open vSwitch.
HUGEPAGES = 1024
# Number of 2 MiB pages if both programs are Shunt, which has buffers for two ports.
TWO_SHUNTS_HUGEPAGES = 1536
# Buffers in addition to the capture's packets, for packets in flight and for each program's reserve.
SPARE_BUFFERS = 32_768
LEARN_S, TRIAL_S, TRIALS = 4.0, 0.5, 2
# Settings of Open vSwitch to try: `NEW_CHOICES` if every packet is a new flow; `FEW_CHOICE`, in addition to
# the others, if there are many flows. With `few flows`, only some flows enter the datapath, because adding a
# flow may cost more than it saves.
NEW_CHOICES = ["no cache", "EMC", "no cache, few flows"]
FEW_CHOICE, MANY_FLOWS = "SMC, few flows", 100_000
FILL_CHOICE = "SMC"
WARM_UP_S, WINDOW_S = 0.15, 0.4
# Warm-up and window are so short that Open vSwitch receives no packet of the capture twice.
NEW_WARM_UP_S, NEW_WINDOW_S = 0.05, 0.25
# Minimum share of its CPU that a thread must get in a window, and maximum number of attempts per pair.
SHARE_LEAST, PAIR_TRIES = 0.6, 3
# Each side sends a share of the packets that it receives. Maximum difference between the two shares.
SHARE_OFF = 0.02
# If every packet is a new flow, Open vSwitch forwards only a few thousand packets per window, so the two
# shares may differ more.
NEW_SHARE_OFF, SHARE_WINDOW_S = 0.05, 1.0


class NewFlows(OpenVswitch):
    """Open vSwitch that forgets all flows at the start of each window, and receives no packet twice within a
    window."""

    def settle(self):
        self.lift_limit()
        self.forget()


class Steady(OpenVswitch):
    """Open vSwitch that keeps all flows."""

    def settle(self):
        self.lift_limit()


def speeds(peer, names, windows):
    """Returns the speed of Open vSwitch with each of the named settings, in Mpps."""
    found = {}
    for name in names:
        peer.go_on()
        peer.choose(name)
        time.sleep(TRIAL_S)
        found[name] = max(peer.window(*windows).mpps for _ in range(TRIALS))
        print("    Open vSwitch, %s: %.3g Mpps" % (name, found[name]), flush=True)
    peer.go_on()
    return found


class Contest:
    """A row with both sides running."""

    def __init__(self, row, folder, stack, options):
        self.row, self.peer_words, without_ours = row, "", options.peers_only
        self.windows = (NEW_WARM_UP_S, NEW_WINDOW_S) if row.popularity == "new" else (WARM_UP_S, WINDOW_S)
        capture, flows = os.path.join(folder, "in.pcap"), os.path.join(folder, "flows")
        packets = row.packets()
        write(capture, packets)
        with open(flows, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in row.rules().lines(row.rewrites))
        buffers = len(packets) + SPARE_BUFFERS
        self.ours = None
        if not without_ours:
            self.ours = stack.enter_context(self._ours(folder, capture, buffers))
            time.sleep(LEARN_S)
            self._hold_to_stations()
            self.ours.pause()
        if row.before:
            wanted = dataclasses.replace(row.ours, records=None)
            self.peer = stack.enter_context(self._other_shunt(folder, capture, buffers, wanted, options.before))
            self.peer_words = "against %s" % options.before
        elif row.peer:
            self.peer = stack.enter_context(self._other_shunt(folder, capture, buffers, row.peer))
            how = "by OpenFlow, " if row.pof else "with "
            self.peer_words = "against Shunt " + how + row.peer.words()
        elif row.kind != ROUTED:
            self.peer = stack.enter_context(Testpmd(folder, capture, buffers))
            self.peer_words = "against testpmd macswap"
        else:
            self.peer = stack.enter_context(self._open_vswitch(folder, flows, capture))
        self.peer.pause()

    def _ours(self, folder, capture, buffers):
        row = self.row
        if row.kind == MACSWAP:
            return Macswap(folder, capture, buffers)
        once = None
        if row.kind == LEARNED:
            once = os.path.join(folder, "stations.pcap")
            # Shunt limits how fast it learns, so every station sends many packets.
            write(once, from_stations(row.rules()) * 100)
        return Shunt(folder, row.our_lines(), capture, row.ours, buffers, once=once)

    def _other_shunt(self, folder, capture, buffers, wanted, program=None):
        """Returns Shunt as the peer, with other settings or as another build."""
        folder = os.path.join(folder, "peer")
        os.mkdir(folder)
        lines = list(self.row.rules().lines(self.row.rewrites, ours=True))
        return Shunt(folder, lines, capture, wanted, buffers, program=program)

    def _hold_to_stations(self):
        """Raises Failed if Shunt has not learned all stations, because it would flood."""
        if self.row.kind == LEARNED and self.ours.learned() < self.row.flows:
            raise Failed("%s: Shunt has learned %d MACs" % (self.row.name, self.ours.learned()))

    def _open_vswitch(self, folder, flows, capture):
        row = self.row
        kind = NewFlows if row.popularity == "new" else Steady
        peer = kind(folder, flows, capture, tuned=not row.ours.defaults)
        with contextlib.ExitStack() as undo:
            undo.callback(peer.stop)
            if row.ours.defaults:
                time.sleep(LEARN_S)
                self.peer_words = "against Open vSwitch as its package has it"
            else:
                self.peer_words = "against Open vSwitch, " + self._at_its_best(peer)
            undo.pop_all()
        return peer

    def _at_its_best(self, peer):
        """Selects the fastest setting of Open vSwitch for this row. Returns its description."""
        row = self.row
        if row.popularity == "new":
            found = speeds(peer, NEW_CHOICES, self.windows)
        else:
            # The setting `FEW_CHOICE` removes flows from the datapath, so it is tried before all flows are
            # added.
            found = speeds(peer, [FEW_CHOICE], self.windows) if row.flows >= MANY_FLOWS else {}
            peer.choose(FILL_CHOICE)
            print("    Open vSwitch has %d flows in its datapath" % peer.fill(), flush=True)
            found.update(speeds(peer, CACHES, self.windows))
        chosen = max(found, key=found.get)
        peer.choose(chosen)
        return chosen if row.popularity == "new" else "%s (%d flows in its datapath)" % (chosen, peer.flows())

    def sides(self):
        """Returns both sides, or only the peer."""
        return [side for side in (self.ours, self.peer) if side]

    def pairs(self, count, lot):
        """Measures pairs of windows in random order. Repeats pairs in which a thread had too little CPU time.
        """
        found = []
        for _ in range(PAIR_TRIES * count):
            sides = self.sides()
            lot.shuffle(sides)
            pair = {side: side.window(*self.windows) for side in sides}
            if min(window.share for window in pair.values()) >= SHARE_LEAST:
                found.append([pair[side] for side in self.sides()])
            if len(found) == count:
                return found
        raise Failed("%s: something else keeps CPU %d busy" % (self.row.name, FORWARDING_CPU))

    def our_words(self):
        """Returns the description of Shunt's side, with the share of packets in a window that a path record
        forwarded, or that stayed on the fast-forwarding path in all tables."""
        if self.row.kind == MACSWAP:
            return "MAC addresses swapped"
        before, after = self.ours.look(WARM_UP_S, WINDOW_S, self.ours.fast)
        share = (after[1] - before[1]) / (after[0] - before[0])
        way = "by path records" if self.row.ours.records else "over the path"
        return "%s (%.0f %% of packets %s)" % (self.row.ours.words(), 100 * share, way)

    def hold_to_all_packets(self):
        """Raises Failed if Shunt has lost packets, because a loss would make it look faster."""
        if self.ours and self.row.kind != MACSWAP:
            before, after = self.ours.look(WARM_UP_S, WINDOW_S, self.ours.lost)
            if before != after:
                raise Failed("%s: Shunt loses packets: %s" % (self.row.name, after))

    def hold_shares_together(self):
        """Raises Failed if one side drops packets that the other sends. Returns the share of packets sent."""
        shares = [side.sent_share(self.windows[0], SHARE_WINDOW_S) for side in self.sides()]
        if max(shares) - min(shares) > (NEW_SHARE_OFF if self.row.popularity == "new" else SHARE_OFF):
            raise Failed("%s: one side sends %.3f of its packets, the other %.3f" % (self.row.name, *shares))
        return shares[0]


def measure(row, options, report, lot):
    """Measures a row and writes its figure."""
    print("%s" % row.name, flush=True)
    with tempfile.TemporaryDirectory(prefix="shunt-peers-") as folder, contextlib.ExitStack() as stack:
        contest = Contest(row, folder, stack, options)
        found = contest.pairs(options.pairs, lot)
        contest.hold_to_all_packets()
        sent = contest.hold_shares_together()
        print("    %.1f %% of packets are sent, the rest is dropped by rules" % (100 * sent), flush=True)
        values = list(zip(*([window.mpps for window in pair] for pair in found)))
        if options.peers_only:
            print("    %s: %.3g Mpps" % (contest.peer_words, sorted(values[0])[len(values[0]) // 2]), flush=True)
            return
        case = "%s, %s" % (contest.our_words(), contest.peer_words)
        report.forget([row.name])
        report.against(row.name, case, "Mpps/CPU-s", *values, at_least=row.bar)


def selected(options):
    """Returns the rows that the options select. `--row` is not applied yet."""
    if options.before:
        rows = before()
    else:
        rows = full() if options.full else named()
    if not options.express:
        return rows

    def switched(row):
        records = by_records(row.flows).records if options.express == "on" else 0
        # In a row with default settings, the number of path records cannot be changed.
        is_set = row.kind != MACSWAP and not row.ours.defaults
        if not is_set or row.ours.records == records:
            return row
        # The target applies only to the original settings of the row.
        return dataclasses.replace(row, ours=dataclasses.replace(row.ours, records=records), bar=None)

    return list({row.name: row for row in map(switched, rows)}.values())


def main():
    """Measures all selected rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--full", action="store_true", help="measure all combinations of settings")
    parser.add_argument("--row", default="", help="measure only rows whose names contain this text")
    parser.add_argument("--pairs", type=int, default=15, help="pairs of windows per row (15)")
    parser.add_argument("--express", choices=("on", "off"), help="switch Shunt's path records on or off in all rows")
    parser.add_argument("--before", metavar="PROGRAM", help="measure only the rows that compare with this build of `shunt`")
    parser.add_argument("--peers-only", action="store_true", help="measure only the peers and print their speeds")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    options = parser.parse_args()
    rows = [row for row in selected(options) if options.row in row.name]
    if options.list:
        print("\n".join(row.name for row in rows))
        return
    os.makedirs(os.path.dirname(LOCK), exist_ok=True)
    report, lot = Report(REPORT), random.Random(1)
    try:
        check()
        end_in_order()
        with open(LOCK, "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for row in rows:
                with Pages(TWO_SHUNTS_HUGEPAGES if row.before or row.peer else HUGEPAGES):
                    measure(row, options, report, lot)
    except BlockingIOError:
        sys.exit("bench/peers: another run is under way")
    except Failed as failed:
        sys.exit("bench/peers: %s" % failed)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
