# SPDX-License-Identifier: Apache-2.0
"""An os-ken application that makes switches learn addresses.

    python lab/controllers/launch.py learning --idle-timeout 30

Packets without a matching flow are sent to the controller. The application learns the sender's port from each
of them. If the receiver's port has been learned, too, it adds a flow for the pair. The flow is removed after
it has been idle for some time.
"""

import logging
import time

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3

cfg.CONF.register_cli_opts(
    [
        cfg.IntOpt("idle-timeout", default=30, min=1, max=65535, help="seconds after which an idle flow is removed"),
        cfg.IntOpt("answer-delay-ms", default=0, min=0, help="milliseconds before each answer, for experiments"),
    ]
)

# Number of a packet's bytes that the controller receives: enough for learning. The switch holds the whole
# packet until the controller answers.
PACKET_IN_BYTES = 128
FLOW_PRIORITY = 10
MULTICAST = 0x01


class Learning(OSKenApp):
    """Learns addresses for each switch separately."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("learning")
        # Port of each address, for each switch.
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        """Resets a switch that connects, because the purpose of its earlier flows is unknown."""
        switch = event.msg.datapath
        ofp, parser = switch.ofproto, switch.ofproto_parser
        self.ports[switch.id] = {}
        self.delete(switch, parser.OFPMatch())
        miss = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, PACKET_IN_BYTES)]
        self.add(switch, 0, parser.OFPMatch(), miss)
        self.log.info("switch %d: connected, %d tables", switch.id, event.msg.n_tables)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        """Learns from a packet, then forwards the packet: with a new flow if possible, otherwise with a
        packet-out.
        """
        message = event.msg
        switch, in_port = message.datapath, message.match["in_port"]
        ofp, parser = switch.ofproto, switch.ofproto_parser
        header = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        self.learn(switch, header.src, in_port)
        # Packet-ins are handled one after the other, so the delay stands for a slow controller.
        time.sleep(cfg.CONF.answer_delay_ms / 1000)
        out_port = self.ports[switch.id].get(header.dst)
        if out_port == in_port:
            # The receiver is at the ingress port, so it has already received the packet.
            return
        if out_port is not None:
            match = parser.OFPMatch(in_port=in_port, eth_src=header.src, eth_dst=header.dst)
            actions = [parser.OFPActionOutput(out_port)]
            timeout_s = cfg.CONF.idle_timeout
            self.add(switch, FLOW_PRIORITY, match, actions, timeout_s, message.buffer_id)
            self.log.info("switch %d: flow %s -> %s to port %d", switch.id, header.src, header.dst, out_port)
            if message.buffer_id != ofp.OFP_NO_BUFFER:
                # The switch has forwarded the held packet with the new flow.
                return
        actions = [parser.OFPActionOutput(ofp.OFPP_FLOOD if out_port is None else out_port)]
        data = message.data if message.buffer_id == ofp.OFP_NO_BUFFER else None
        switch.send_msg(parser.OFPPacketOut(switch, message.buffer_id, in_port, actions, data))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed(self, event):
        """Handles a removed flow. If the flow was idle, forgets its sender, because the sender may reappear
        at another port."""
        message = event.msg
        switch, match = message.datapath, message.match
        sender, receiver = match.get("eth_src"), match.get("eth_dst")
        idle = message.reason == switch.ofproto.OFPRR_IDLE_TIMEOUT
        reason = "idle" if idle else "deleted"
        self.log.info(
            "switch %d: flow %s -> %s removed, %s, %d packets", switch.id, sender, receiver, reason, message.packet_count
        )
        if idle and sender and self.ports[switch.id].get(sender) == match.get("in_port"):
            del self.ports[switch.id][sender]

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status(self, event):
        """Forgets the addresses at a port that was removed or is down."""
        message = event.msg
        switch, ofp = message.datapath, message.datapath.ofproto
        port = message.desc.port_no
        if message.reason != ofp.OFPPR_DELETE and not message.desc.state & ofp.OFPPS_LINK_DOWN:
            return
        self.log.info("switch %d: port %d is down", switch.id, port)
        for address in [a for a, behind in self.ports[switch.id].items() if behind == port]:
            self.forget(switch, address)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def refused(self, event):
        """Logs an error of the switch."""
        self.log.error("switch %d: error %d/%d", event.msg.datapath.id, event.msg.type, event.msg.code)

    def learn(self, switch, address, port):
        """Learns that the sender of a packet is at the port that received it."""
        if int(address[:2], 16) & MULTICAST:
            return
        known = self.ports[switch.id].get(address)
        if known != port:
            if known is not None:
                self.forget(switch, address)
            self.ports[switch.id][address] = port
            self.log.info("switch %d: %s is behind port %d", switch.id, address, port)

    def forget(self, switch, address):
        """Forgets an address and deletes the flows to it."""
        del self.ports[switch.id][address]
        self.delete(switch, switch.ofproto_parser.OFPMatch(eth_dst=address))

    @staticmethod
    def add(switch, priority, match, actions, idle_timeout_s=0, buffer_id=None):
        """Adds a flow. A flow with an idle timeout is reported when it is removed."""
        ofp, parser = switch.ofproto, switch.ofproto_parser
        apply = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)
        switch.send_msg(
            parser.OFPFlowMod(
                switch,
                priority=priority,
                match=match,
                instructions=[apply],
                idle_timeout=idle_timeout_s,
                flags=ofp.OFPFF_SEND_FLOW_REM if idle_timeout_s else 0,
                buffer_id=ofp.OFP_NO_BUFFER if buffer_id is None else buffer_id,
            )
        )

    @staticmethod
    def delete(switch, match):
        """Deletes all flows within this match, in all tables."""
        ofp, parser = switch.ofproto, switch.ofproto_parser
        switch.send_msg(
            parser.OFPFlowMod(
                switch,
                command=ofp.OFPFC_DELETE,
                table_id=ofp.OFPTT_ALL,
                out_port=ofp.OFPP_ANY,
                out_group=ofp.OFPG_ANY,
                match=match,
            )
        )
