#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reloads a running switch again and again with random differences, some of which must be refused.

    reload_differences.py SHUNT CONFIG COUNT SEED

CONFIG is the configuration of a running switch with the ports 1 and 2, which never change. Port 3, whose device
is p3, comes and goes. After each reload, the switch must have exactly the ports and queues of the file. After a
refused reload, it must be as before.
"""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Lines that need a restart or are wrong, each with a part of the message that must be printed.
REFUSED = [
    ("[datapath.express]\nrecords = 64\n", "datapath.express: cannot change while the switch runs"),
    ("[datapath.lanes]\nhold = 1\n", "datapath.lanes: cannot change while the switch runs"),
    ("[datapath.ffp]\nlut_entries = 64\n", "datapath.ffp: cannot change while the switch runs"),
    ("[datapath.lanes]\nhald = 1\n", "hald"),
    ("[datapath.low_latency]\ncookie = 7\n", "cookie"),
]
ABSENT = '[[datapath.port]]\nnumber = 9\nname = "p9"\ndriver = "af_packet"\ndevice = "nosuch0"\nworkers = [0]\n'


@dataclass
class Settings:
    """Settings that change from one reload to the next."""

    has_port: bool = False
    number: int = 3
    name: str = "p3"
    driver: str = "af_packet"
    workers: list[int] = field(default_factory=lambda: [0])
    queues: list[int] = field(default_factory=list)
    outstanding: int | None = None
    ring: int | None = None
    before: str = ""

    def change(self, dice: random.Random) -> None:
        """Changes one or several settings."""
        for _ in range(dice.choice([1, 1, 2, 4])):
            match dice.randrange(11):
                case 0 | 1 | 2:
                    self.has_port = not self.has_port
                case 3:
                    self.number = dice.choice([3, 4, 70])
                case 4:
                    self.name = dice.choice(["p3", "other"])
                case 5:
                    self.driver = dice.choice(["af_packet", "mem"])
                case 6:
                    self.queues = dice.choice([[], [0], [1, 2], [7]])
                case 7:
                    self.outstanding = dice.choice([None, 0, 9216])
                case 8:
                    self.workers = dice.choice([[0], [1], [0, 1]])
                case 9:
                    self.ring = dice.choice([None, 256, 8192])
                case 10:
                    self.before = dice.choice(
                        [
                            "",
                            "[datapath.low_latency]\ncookie = \"0x7/0xff\"\n",
                            "[datapath.low_latency]\nlearn = { enabled = true }\n",
                            "[datapath.openflow.packet_in]\nno_match = { rate = 100, burst = 10 }\n",
                            "[datapath.stateless]\ntrusted = [1]\n",
                        ]
                    )

    def port(self) -> str:
        """Returns the section of the port, or nothing."""
        if not self.has_port:
            return ""
        device = "p3" if self.driver == "af_packet" else "null"
        lines = [
            "[[datapath.port]]",
            f"number = {self.number}",
            f'name = "{self.name}"',
            f'driver = "{self.driver}"',
            f'device = "{device}"',
            f"workers = {self.workers}",
        ]
        if self.outstanding is not None:
            lines.append(f"outstanding_bytes = {self.outstanding}")
        if self.ring is not None and self.driver == "af_packet":
            lines.append(f"receive_ring = {self.ring}")
        for queue in self.queues:
            lines += ["[[datapath.port.queue]]", f"id = {queue}", "max_rate_kbps = 100000"]
        return "\n".join(lines) + "\n"

    def expected(self) -> dict[int, tuple[str, list[int]]]:
        """Returns the name and the queues of each port by its number."""
        ports: dict[int, tuple[str, list[int]]] = {1: ("p1", []), 2: ("p2", [])}
        if self.has_port:
            queues = sorted({0, *self.queues}) if self.queues else []
            ports[self.number] = (self.name, queues)
        return ports


class Switch:
    """A running switch with its configuration file."""

    def __init__(self, shunt: str, config: Path) -> None:
        self.shunt = shunt
        self.config = config
        text = config.read_text()
        at = text.index("[[datapath.port]]")
        self.head, self.ports = text[:at], text[at:]

    def write(self, before: str, after: str) -> None:
        """Writes the configuration with further sections."""
        self.config.write_text(self.head + before + self.ports + after)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on the switch."""
        command = [self.shunt, *words, "-c", str(self.config)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def reload(self) -> subprocess.CompletedProcess[str]:
        """Reloads the configuration. A file with errors has no control socket, so its path is given."""
        socket = self.config.parent / "control.sock"
        command = [self.shunt, "--control", str(socket), "reload"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def shown(self) -> dict[int, tuple[str, list[int]]]:
        """Returns the name and the queues of each port by its number."""
        socket = self.config.parent / "control.sock"
        command = [self.shunt, "--control", str(socket), "show", "ports", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        ports: list[dict[str, Any]] = json.loads(done.stdout)["ports"]
        return {port["number"]: (port["name"], [one["queue"] for one in port["queues"]]) for port in ports}


def main(arguments: list[str]) -> None:
    """Makes all reloads, and ends at the first wrong result."""
    shunt, config, count, seed = arguments
    switch, dice, settings = Switch(shunt, Path(config)), random.Random(int(seed)), Settings()
    applied = refused = 0
    for number in range(int(count)):
        if dice.random() < 0.2:
            # The difference also has a change that could be applied.
            other = dice.choice([*REFUSED, None])
            section, part = other or (ABSENT, 'no network device "nosuch0"')
            flipped = Settings(has_port=not settings.has_port, number=80, name="new", driver="mem")
            before, after = (section, "") if other else ("", section)
            switch.write(before, after + flipped.port())
            done = switch.reload()
            if done.returncode != 1 or part not in done.stderr:
                sys.exit(f"reload {number} was not refused because of {part}: {done.stdout}{done.stderr}")
            refused += 1
        else:
            settings.change(dice)
            switch.write(settings.before, settings.port())
            done = switch.reload()
            if done.returncode != 0:
                sys.exit(f"reload {number} failed: {done.stderr}\n{switch.config.read_text()}")
            applied += 1
        if switch.shown() != settings.expected():
            sys.exit(f"after reload {number}: {switch.shown()}, expected {settings.expected()}")
    settings.has_port, settings.before = False, ""
    switch.write("", "")
    done = switch.reload()
    if done.returncode != 0 or switch.reload().stdout != "nothing changed\n":
        sys.exit(f"the first configuration was not restored: {done.stdout}{done.stderr}")
    print(f"{applied} reloads applied, {refused} refused")


if __name__ == "__main__":
    main(sys.argv[1:])
