# SPDX-License-Identifier: Apache-2.0
"""An os-ken application that loads a plan into the switches that connect: stateless sections, and entries of
edge switches.

    export PYTHONPATH=controller/src:controller/examples
    python lab/controllers/launch.py load_plan --plan plan.json --hosts hosts.json

`plan.json` is the output of `shunt-controller plan` (docs/planning.md). `hosts.json` states where IPv4
addresses are:

    {"hosts": [{"address": "10.0.0.1", "switch": "a", "port": 2}], "datapaths": {"a": 1, "b": 2}}

Without `datapaths`, the first switch of the plan has the datapath ID 1, the next one 2, and so on. With
`datapaths`, each switch must be listed. If the hosts do not fit the plan, the application reports the reason
at the start and loads nothing. It lists pairs of switches without a route. A switch gets its whole part in
one bundle, which replaces its entries and groups. A packet therefore hits either the old or the new entries.
"""

import logging
import queue
import threading

import shunt_controller as shunt
from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3
from shunt_controller.bundles import Packer, bundled, packed
from shunt_controller.edges import entries
from shunt_controller.places import listed, names, read_places, unreached
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.planned import read_plan, sections_of
from shunt_controller.stateless import joined

cfg.CONF.register_cli_opts(
    [
        cfg.StrOpt("plan", help="the plan: a JSON file that shunt-controller plan wrote"),
        cfg.StrOpt("hosts", help="a JSON file with the locations of hosts"),
    ]
)

BUNDLE = 1

shunt.register()


class LoadPlan(OSKenApp):
    """Sends each switch its part of the plan when it connects, then requests its stateless sections."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("load_plan")
        try:
            need(cfg.CONF.plan and cfg.CONF.hosts, "--plan and --hosts are required")
            plan, places = read_plan(cfg.CONF.plan), read_places(cfg.CONF.hosts)
            self.sections, self.entries = sections_of(plan), entries(plan, places.hosts)
            self.names = names(plan, places.datapaths)
        except PlanError as error:
            raise SystemExit(f"load_plan: {error}") from error
        pairs = [f"{a} to {b}" for a, b in unreached(plan, places.hosts)]
        if pairs:
            self.log.warning("no route leads from %s: hosts there do not reach each other", listed(pairs))
        self.packer = Packer()
        # Switches that have connected and are not loaded.
        self.connections = queue.SimpleQueue()
        # Datapaths that have confirmed their bundle.
        self.committed = set()
        # Messages of incomplete replies, by transaction.
        self.replies = {}

    def start(self):
        """Starts the thread that loads switches. Called by os-ken."""
        super().start()
        threading.Thread(target=self.load_all, name="load_plan", daemon=True).start()

    def load_all(self):
        """Loads the switches that connect, one after another. Handlers of events must return at once: os-ken
        stops reading from switches, also their echo replies, while too many events wait."""
        while True:
            try:
                self.load(self.connections.get())
            except Exception:
                self.log.exception("a switch was not loaded")

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        """Handles a switch that has connected."""
        switch = event.msg.datapath
        if self.names.get(switch.id) not in self.sections:
            self.log.warning("datapath %d is not a switch of the plan", switch.id)
            return
        self.committed.discard(switch.id)
        self.connections.put(switch)

    def load(self, switch):
        """Sends a switch its part of the plan."""
        name, ofp, parser = self.names[switch.id], switch.ofproto, switch.ofproto_parser
        anything = {"out_port": ofp.OFPP_ANY, "out_group": ofp.OFPG_ANY}
        all_of_it = [
            packed(parser.OFPFlowMod(switch, table_id=ofp.OFPTT_ALL, command=ofp.OFPFC_DELETE, **anything)),
            packed(parser.OFPGroupMod(switch, ofp.OFPGC_DELETE, 0, ofp.OFPG_ALL, [])),
            packed(shunt.StatelessMod(switch, self.sections[name])),
            *self.packer.entries(self.entries[name]),
        ]
        switch.send(bundled(BUNDLE, all_of_it))
        switch.send_msg(parser.OFPBarrierRequest(switch))
        switch.send_msg(shunt.StatelessRequest(switch))
        self.log.info("%s: %d messages", name, len(all_of_it))

    @set_ev_cls(ofp_event.EventONFBundleCtrlMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def answered(self, event):
        """Handles the answer to a bundle. If the bundle is refused, none of it is active, and an error
        arrives instead of the answer."""
        if (event.msg.bundle_id, event.msg.type) == (BUNDLE, ofproto_v1_3.ONF_BCT_COMMIT_REPLY):
            self.committed.add(event.msg.datapath.id)

    @set_ev_cls(ofp_event.EventOFPExperimenter, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def sections_received(self, event):
        """Handles the stateless sections of a switch, which are requested after the bundle."""
        reply, number = shunt.StatelessReply.of(event.msg), event.msg.datapath.id
        if reply is None:
            return
        key = number, reply.xid
        self.replies.setdefault(key, []).append(reply)
        if not reply.more:
            has = {section.place: section for section in joined(self.replies.pop(key)) or []}
            name = self.names[number]
            as_planned = number in self.committed and all(has.get(section.place) == section for section in self.sections[name])
            self.log.info("%s is %s", name, "as planned" if as_planned else "not as planned")

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def refused(self, event):
        """Logs an error of the switch."""
        name = self.names.get(event.msg.datapath.id)
        self.log.error("%s reports error %d/%d", name, event.msg.type, getattr(event.msg, "code", None) or 0)
