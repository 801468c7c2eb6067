# SPDX-License-Identifier: Apache-2.0
"""An os-ken application that offers OpenFlow 1.3 over HTTP.

    python lab/controllers/launch.py rest --http-port 8080
    curl http://127.0.0.1:8080/switches/1/flows

Every client that can connect can control the switches, so the server listens on the loopback address only.
rest_http.py defines the requests, and rest_forms.py the JSON forms of flows, groups and meters.
"""

import logging
import threading

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

import rest_forms
import rest_http
from rest_switch import Switch

cfg.CONF.register_cli_opts([cfg.IntOpt("http-port", default=8080, help="HTTP port on the loopback address")])

ANSWERS = """Aggregate Desc Flow GroupDesc GroupFeatures Group MeterConfig MeterFeatures Meter PortDesc Port Queue
Table TableFeatures""".split()
ANSWERS = ["EventOFP%sStatsReply" % name for name in ANSWERS]
ANSWERS += ["EventOFP%s" % name for name in "BarrierReply EchoReply ErrorMsg GetAsyncReply GetConfigReply".split()]
ANSWERS += ["EventOFPQueueGetConfigReply", "EventOFPRoleReply"]
REMOVED = {ofp.OFPRR_IDLE_TIMEOUT: "idle", ofp.OFPRR_HARD_TIMEOUT: "hard", ofp.OFPRR_DELETE: "delete"}
REMOVED[ofp.OFPRR_GROUP_DELETE] = "group delete"
SENT = {ofp.OFPR_NO_MATCH: "miss", ofp.OFPR_ACTION: "action", ofp.OFPR_INVALID_TTL: "ttl"}
PORT_CHANGES = {ofp.OFPPR_ADD: "add", ofp.OFPPR_DELETE: "delete", ofp.OFPPR_MODIFY: "modify"}


class Rest(OSKenApp):
    """Keeps the connected switches by their number."""

    OFP_VERSIONS = [ofp.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("rest")
        self.switches = {}

    def start(self):
        """Serves HTTP in separate threads."""
        server = rest_http.server(cfg.CONF.http_port, self.switches)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.log.info("HTTP on port %d", server.server_address[1])
        return super().start()

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        """Adds a switch that connects or reconnects."""
        datapath = event.msg.datapath
        switch = Switch(datapath)
        switch.features = {
            "id": datapath.id,
            "buffers": event.msg.n_buffers,
            "tables": event.msg.n_tables,
            "capabilities": event.msg.capabilities,
        }
        self.switches[datapath.id] = switch
        self.log.info("switch %d: connected", datapath.id)

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def disconnected(self, event):
        """Removes a switch, unless it has reconnected on another connection."""
        switch = self.switches.get(event.datapath.id)
        if switch is not None and switch.datapath is event.datapath:
            del self.switches[event.datapath.id]
            self.log.info("switch %d: disconnected", event.datapath.id)

    @set_ev_cls([getattr(ofp_event, name) for name in ANSWERS], MAIN_DISPATCHER)
    def answered(self, event):
        """Passes an answer to the thread that waits for it."""
        switch = self.switch(event)
        if switch is not None:
            switch.answered(event.msg)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        """Records a packet-in."""
        message = event.msg
        self.note(
            event,
            event="packet_in",
            reason=SENT[message.reason],
            table=message.table_id,
            cookie=message.cookie,
            match=rest_forms.match_form(message.match),
            buffer=None if message.buffer_id == ofp.OFP_NO_BUFFER else message.buffer_id,
            length=message.total_len,
            data=message.data.hex(),
        )

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed(self, event):
        """Records a removed flow."""
        message = event.msg
        self.note(
            event,
            event="flow_removed",
            reason=REMOVED[message.reason],
            table=message.table_id,
            priority=message.priority,
            cookie=message.cookie,
            match=rest_forms.match_form(message.match),
            packets=message.packet_count,
            bytes=message.byte_count,
        )

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status(self, event):
        """Records a changed port."""
        message = event.msg
        self.note(event, event="port", change=PORT_CHANGES[message.reason], port=rest_forms.plain(message.desc))

    def note(self, source, **event):
        """Stores an event for clients that request events."""
        switch = self.switch(source)
        if switch is not None:
            switch.event(**event)

    def switch(self, event):
        """Returns the switch that sent an event, or None if it is not connected."""
        return self.switches.get(event.msg.datapath.id)
