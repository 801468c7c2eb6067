# SPDX-License-Identifier: Apache-2.0
"""An os-ken application that sets the gates of a fat tree again and again, and measures the time.

bench/gates.py runs it. It is `shunt-controller run tag-and-forward` with a topology that is given instead of
discovered, because the switches have ports without links. Each run begins with switches without state. After
each run, the configuration of all switches is read back and compared with the plan.
"""

import json
import time
from typing import Any

from os_ken import cfg
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps.discovery import EventTopology
from shunt_controller.apps.tag_and_forward import TagAndForward
from shunt_controller.live.topology import Link, Port, Topology
from shunt_controller.plan import fattree
from shunt_controller.sections import Gates, Trusted
from shunt_controller.stateless import StatelessMod

cfg.CONF.register_cli_opts(
    [
        cfg.IntOpt("k", default=4, help="k of the fat tree"),
        cfg.IntOpt("outside", default=2, help="ports to the outside at each core switch"),
        cfg.IntOpt("runs", default=100, help="number of runs"),
    ]
)


def tree(k: int, outside: int) -> Topology:
    """Returns the topology of a fat tree without hosts. Switches have the datapath IDs 1, 2 and so on."""
    network = fattree.make(k, outside)
    number = {node: at for at, node in enumerate((node for node, role in enumerate(network.roles) if role != "host"), 1)}
    links = (
        Link.of(Port(number[one.a], one.a_port), Port(number[one.b], one.b_port))
        for one in network.links
        if one.a in number and one.b in number
    )
    return Topology({at: frozenset(network.ports[node]) for node, at in number.items()}, frozenset(links))


class GateRounds(TagAndForward):
    """Measures the runs and prints a line of JSON for each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._given = tree(cfg.CONF.k, cfg.CONF.outside)
        self._phase, self._run_number = "connecting", 0
        self._begin_s = self._plan_s = self._set_s = 0.0

    def _step(self, now_s: float) -> None:
        super()._step(now_s)
        rollout = self.state.rollout
        if self._phase == "connecting" and self._has_begun and len(rollout.actual) == len(self._given.switches):
            self._clear()
        elif self._phase == "clearing" and len(rollout.actual) == len(self._given.switches):
            if not all(state.is_empty for state in rollout.actual.values()):
                raise RuntimeError("a switch was not cleared")
            self._phase, self._begin_s = "setting", time.monotonic()
            self.state.set_topology(self._given)
            super()._step(now_s)
        elif self._phase == "reading" and len(rollout.actual) == len(self._given.switches):
            self._report()

    def topology_changed(self, event: EventTopology) -> None:
        """Ignores discovered topologies: without the decorator of the base class, os-ken does not call this."""

    def planned(self, now_s: float) -> None:
        """Records the time of the plan."""
        super().planned(now_s)
        self._plan_s = time.monotonic()

    def rolled_out(self) -> None:
        """Ends a run when all switches have confirmed their configuration."""
        super().rolled_out()
        if self._phase == "setting" and self.state.rollout.desired and self.state.rollout.is_added:
            self._set_s, self._phase = time.monotonic(), "reading"
            self.state.rollout.actual.clear()
            for number in self.switches.connected:
                self.switches.read(number)

    def _clear(self) -> None:
        """Removes the configuration of all switches, and begins to read them."""
        self._phase, self.state = "clearing", self.planner()
        for switch in self.switches.connected.values():
            datapath, anything = switch.datapath, {"out_port": ofp.OFPP_ANY, "out_group": ofp.OFPG_ANY}
            datapath.send_msg(parser.OFPFlowMod(datapath, table_id=ofp.OFPTT_ALL, command=ofp.OFPFC_DELETE, **anything))
            datapath.send_msg(parser.OFPGroupMod(datapath, ofp.OFPGC_DELETE, 0, ofp.OFPG_ALL, []))
            datapath.send_msg(StatelessMod(datapath, [Trusted(()), Gates(None)]))
            self.switches.read(datapath.id)

    def _report(self) -> None:
        rollout = self.state.rollout
        if rollout.actual != rollout.desired:
            raise RuntimeError("the configuration of a switch differs from the plan")
        sections = [state.sections[Gates.kind, 0] for state in rollout.actual.values()]
        gates = sum(len(section.gates.ports) for section in sections if isinstance(section, Gates) and section.gates)
        self._run_number += 1
        found = {
            "run": self._run_number,
            "switches": len(rollout.actual),
            "gates": gates,
            "entries": sum(len(state.flows) for state in rollout.actual.values()),
            "plan_ms": round(1000 * (self._plan_s - self._begin_s), 3),
            "set_ms": round(1000 * (self._set_s - self._plan_s), 3),
        }
        print(json.dumps(found), flush=True)
        self._phase = "done"
        if self._run_number < cfg.CONF.runs:
            self._clear()


