# SPDX-License-Identifier: Apache-2.0
"""An os-ken application that adds flows between known hosts, for experiments with the time to set up a path.

    python lab/controllers/launch.py flows --port-of 02:00:00:00:00:01=1,02:00:00:00:00:02=2 --idle-timeout 1

Each switch forwards packets to a host by the same port. When a switch sends a packet without a flow, it gets a
flow and the packet back. With --whole-path, all switches get the flows of both directions instead, so that no
other switch asks.
"""

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

cfg.CONF.register_cli_opts(
    [
        cfg.ListOpt("port-of", default=[], help="MAC address and port of each host, such as 02:00:00:00:00:01=1"),
        cfg.IntOpt("idle-timeout", default=30, min=1, max=65535, help="seconds after which an idle flow is removed"),
        cfg.BoolOpt("whole-path", default=False, help="add the flows of all switches at once"),
    ]
)

PRIORITY = 10


class Flows(OSKenApp):
    """Adds flows to switches that ask."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}
        for item in cfg.CONF.port_of:
            mac, _, port = item.partition("=")
            if len(mac) != 17 or not port.isdecimal():
                raise SystemExit("flows: --port-of has the item %r; items are MAC=PORT" % item)
            self.ports[mac] = int(port)
        self.switches = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        """Adds the entry that sends packets without a flow to the controller."""
        switch = event.msg.datapath
        self.switches[switch.id] = switch
        parser, ofp = switch.ofproto_parser, switch.ofproto
        miss = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, miss)]
        switch.send_msg(parser.OFPFlowMod(switch, priority=0, match=parser.OFPMatch(), instructions=apply))

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def ended(self, event):
        """Forgets a switch whose connection has ended."""
        if self.switches.get(event.datapath.id) is event.datapath:
            del self.switches[event.datapath.id]

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        """Adds flows for a packet, and sends it back."""
        message = event.msg
        switch, data = message.datapath, message.data
        receiver, sender = (":".join("%02x" % byte for byte in data[at : at + 6]) for at in (0, 6))
        if receiver not in self.ports or sender not in self.ports:
            return
        for other in list(self.switches.values()) if cfg.CONF.whole_path else [switch]:
            self.add(other, sender, receiver)
            if cfg.CONF.whole_path:
                self.add(other, receiver, sender)
        parser, ofp = switch.ofproto_parser, switch.ofproto
        actions = [parser.OFPActionOutput(self.ports[receiver])]
        switch.send_msg(parser.OFPPacketOut(switch, ofp.OFP_NO_BUFFER, message.match["in_port"], actions, data))

    def add(self, switch, sender, receiver):
        """Adds the flow from one host to another."""
        parser, ofp = switch.ofproto_parser, switch.ofproto
        apply = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [parser.OFPActionOutput(self.ports[receiver])])
        switch.send_msg(
            parser.OFPFlowMod(
                switch,
                priority=PRIORITY,
                match=parser.OFPMatch(eth_src=sender, eth_dst=receiver),
                instructions=[apply],
                idle_timeout=cfg.CONF.idle_timeout,
            )
        )
