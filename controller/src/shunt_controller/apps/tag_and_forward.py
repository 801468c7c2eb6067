# SPDX-License-Identifier: Apache-2.0
"""Tag-and-Forward for a fat tree that is discovered: gates for all switches, and tags for packets between
hosts.

    shunt-controller run tag-and-forward

The application waits until the network is a fat tree, and reports the cables that differ from one. It reads
the configuration of each switch that connects and changes only what differs. After its own restart, packets
are therefore forwarded as before.
"""

import time
from typing import Any

from os_ken import cfg

from shunt_controller.apps.cookies import TAG_AND_FORWARD
from shunt_controller.apps.planned import PlannedApp
from shunt_controller.live.queues import missing
from shunt_controller.live.state import State
from shunt_controller.live.tagforward import Settings, TagForward
from shunt_controller.sections import Gates, Trusted

cfg.CONF.register_cli_opts(
    [
        cfg.BoolOpt("wide", default=False, help="use tags of the wide format, which trees with k above 24 need"),
        cfg.ListOpt("qid", default=[], help="QID of IP packets by DSCP, for example 46=5,26=3 (default: 0 for all packets)"),
    ]
)

class TagAndForward(PlannedApp):
    """Runs :class:`shunt_controller.live.tagforward.TagForward`."""

    NAME = "tag-and-forward"
    COOKIE = TAG_AND_FORWARD
    SECTIONS = (Trusted.kind, Gates.kind)
    state: TagForward

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._planned_s: float | None = None
        self.queue_problems: list[str] = []
        """Sentences about queues that QIDs select and that switches lack."""

    def planner(self) -> TagForward:
        """Returns the planner with the settings from the command line."""
        return TagForward(settings(), self.report)

    def _reset(self) -> None:
        super()._reset()
        self._planned_s = None
        self.queue_problems = []

    def is_complete(self, now_s: float) -> bool:
        """Waits until it is known what switches have and where links are."""
        return self.is_read() and self.is_settled(now_s)

    def planned(self, now_s: float) -> None:
        """Tries refused configurations again."""
        self._planned_s = time.monotonic()
        self._check_queues()
        for number in self.switches.refusing:
            self.switches.retry(number)

    def _known(self, number: int, state: State) -> None:
        super()._known(number, state)
        self._check_queues()

    def _check_queues(self) -> None:
        """Reports queues that QIDs select and that switches lack."""
        if not any(self.state.settings.qids.values()):
            return
        queues = {number: switch.queues for number, switch in self.switches.connected.items() if switch.queues is not None}
        self.queue_problems = missing(queues, self.state.ports(), self.state.settings.qids)
        for problem in self.queue_problems:
            self.report(f"queue {problem}", problem)

    def rolled_out(self) -> None:
        """Logs once that the switches have what was planned."""
        if self._planned_s is None or not self.state.rollout.is_added:
            return
        tree, numbering = self.state.tree, self.state.numbering
        gates = sum(len(switch.gates) for switch in numbering.switches.values()) if numbering else 0
        duration_ms = 1000 * (time.monotonic() - self._planned_s)
        count = len(self.state.rollout.actual)
        self.log.info("all %d switches are as planned after %.1f ms: k = %d, %d gates", count, duration_ms, tree.k if tree else 0, gates)
        self._planned_s = None

    def status(self) -> dict[str, Any]:
        """Returns the plan for the status page (docs/controllers.md)."""
        tree, numbering = self.state.tree, self.state.numbering
        layers = {}
        if numbering is not None:
            names = numbering.tree.network.nodes
            layers = {
                names[node]: {
                    "layer": one.layer,
                    "gates": [[gate.port, gate.gate, gate.flag] for _, gate in sorted(one.by_port.items())],
                    "down_d": one.down_d,
                    "up_d": one.up_d,
                    "external_d": one.external_d,
                }
                for node, one in numbering.switches.items()
            }
        states = {f"{number:016x}": state for number, state in self.switch_states().items()}
        switches = {name: {**state, **layers.get(name, {})} for name, state in states.items()}
        return {"kind": "tag-and-forward", "problems": self.state.problems + self.mtu_problems + self.queue_problems, "k": tree.k if tree else None, "switches": switches}


def settings() -> Settings:
    """Returns the settings from the command line."""
    qids = {}
    for text in cfg.CONF.qid:
        dscp, _, qid = text.partition("=")
        if not (dscp.isdecimal() and qid.isdecimal() and int(dscp) < 64 and int(qid) < 8):
            raise SystemExit(f"run: --qid has the item {text!r}; items are DSCP=QID, with DSCP 0 to 63 and QID 0 to 7")
        qids[int(dscp)] = int(qid)
    return Settings(cfg.CONF.wide, qids)
