# SPDX-License-Identifier: Apache-2.0
"""KeyFlow for a network that is discovered: keys for all pairs of places with hosts, or with ``--mode reactive``
for the packets that arrive.

    shunt-controller run keyflow

The application reads the configuration of each switch that connects and changes only what differs. After its own
restart, packets are therefore forwarded as before.
"""

from collections.abc import Callable
from typing import Any

from os_ken import cfg
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.apps.cookies import KEYFLOW
from shunt_controller.apps.hostpackets import Packet
from shunt_controller.apps.planned import SETTLE_MOST_S, PlannedApp
from shunt_controller.live.keyflow import KeyFlow as State
from shunt_controller.live.keyflow import Settings
from shunt_controller.live.state import flow_id
from shunt_controller.live.topology import Host
from shunt_controller.plan.keys import WIDTHS_BITS
from shunt_controller.redundancy.journal import Basis
from shunt_controller.sections import Bank, Trusted

cfg.CONF.register_cli_opts(
    [
        cfg.StrOpt("mode", default="proactive", choices=["proactive", "reactive"], help="when keys are installed"),
        cfg.IntOpt("width", choices=list(WIDTHS_BITS), help="bits of a key (default: 64, with --protect 128)"),
        cfg.BoolOpt("protect", default=False, help="give keys detours around failures"),
        cfg.IntOpt("reserve", default=4, min=0, max=1024, help="further links of a switch for which its ID leaves room"),
        cfg.IntOpt("idle-timeout", default=60, min=1, max=65535, help="seconds until an unused entry is removed, if reactive"),
    ]
)

class KeyFlow(PlannedApp):
    """Runs :class:`shunt_controller.live.keyflow.KeyFlow`."""

    NAME = "keyflow"
    COOKIE = KEYFLOW
    SECTIONS = (Trusted.kind, Bank.kind)
    state: State

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._was_settled = True

    def planner(self) -> State:
        """Returns the planner with the settings from the command line."""
        return State(settings(), self.report)

    def _reset(self) -> None:
        super()._reset()
        self._was_settled = True

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed(self, event: Any) -> None:
        """Handles an entry that was removed."""
        self.call(self._removed, event.msg)

    def is_complete(self, now_s: float) -> bool:
        """Waits until it is known what switches have and where links are."""
        return (self.is_read() or now_s - self.connected_s >= SETTLE_MOST_S) and self.is_settled(now_s)

    def planned(self, now_s: float) -> None:
        """Logs the new plan."""
        self._was_settled = False
        routes, identifiers = self.state.routes, self.state.identifiers
        self.log.info("planned %d routes, %d switches with IDs, epoch %d", len(routes.routes), len(identifiers.ids), identifiers.epoch)

    def use_store(self, is_stored: Callable[[Basis], bool]) -> None:
        """Lets the planner repair the plan in force while another one is not stored."""
        self.state.is_stored = is_stored

    def rolled_out(self) -> None:
        """Logs once that the switches are as planned."""
        if self.state.rollout.is_settled and not self._was_settled:
            self._was_settled = True
            self.log.info("all %d switches are as planned", len(self.state.rollout.actual))

    def relays(self, packet: Packet, to: Host) -> bool:
        """Records that the packet needs a key. Returns whether there is a route."""
        # Both directions get entries at once, because most packets are answered.
        self.state.ask(packet.at.switch, to.mac)
        if any(host.mac == packet.facts.src for host in self.state.topology.hosts):
            self.state.ask(to.at.switch, packet.facts.src)
        return (packet.at.switch, to.at.switch) not in self.state.routes.refused

    def status(self) -> dict[str, Any]:
        """Returns the plan for the status page (docs/controllers.md)."""
        identifiers, routes = self.state.identifiers, self.state.routes
        switches = {
            f"{number:016x}": {**state, "id": identifiers.ids.get(number)} for number, state in self.switch_states().items()
        }
        refused = [f"no route leads from switch {a:x} to {b:x}: {reason}" for (a, b), reason in sorted(routes.refused.items())]
        return {"kind": "keyflow", "problems": refused + self.mtu_problems, "epoch": identifiers.epoch, "routes": len(routes.routes), "switches": switches}

    def _removed(self, message: Any) -> None:
        if message.cookie == KEYFLOW and message.reason == ofp.OFPRR_IDLE_TIMEOUT and "eth_dst" in message.match:
            self.state.idle(message.datapath.id, str(message.match["eth_dst"]))
            flow = flow_id(message.table_id, message.priority, dict(message.match.items()))
            self.state.rollout.removed(message.datapath.id, flow)


def settings() -> Settings:
    """Returns the settings from the command line."""
    conf = cfg.CONF
    width_bits = conf.width or (128 if conf.protect else 64)
    return Settings(conf.mode == "reactive", width_bits, conf.protect, conf.reserve, conf.idle_timeout)
