# SPDX-License-Identifier: Apache-2.0
"""An os-ken application that marks flows as low-latency or normal. It uses the package in controller/.

    PYTHONPATH=controller/src python lab/controllers/launch.py marking --word-file FILE

FILE contains `yes`, `no` or `nothing`. After each change, the UDP flow from port 1 to port 2 is added again
with this word, and the switch is asked for its flows.
"""

import logging
import pathlib

import shunt_controller as shunt
from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_3

cfg.CONF.register_cli_opts([cfg.StrOpt("word-file", default="word", help="the file that contains yes, no or nothing")])

PRIORITY = 20
# Without traffic, the flow is removed after this time.
IDLE_TIMEOUT_S = 500
POLL_S = 0.05
WORDS = {"yes": [shunt.LowLatency(True)], "no": [shunt.LowLatency(False)], "nothing": []}

shunt.register()


class Marking(OSKenApp):
    """Applies the word in the file to the switch that connected last."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("marking")
        self.switch = None
        hub.spawn(self.follow)

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        """Remembers the switch that has connected."""
        self.switch = event.msg.datapath

    def follow(self):
        """Polls the file for changes."""
        said = None
        while True:
            hub.sleep(POLL_S)
            try:
                word = pathlib.Path(cfg.CONF.word_file).read_text().strip()
            except OSError:
                continue
            if self.switch is not None and word in WORDS and word != said:
                said = word
                self.say(self.switch, word)

    @staticmethod
    def say(switch, word):
        """Adds the flow with this word, and requests flow statistics to read it back."""
        ofp, parser = switch.ofproto, switch.ofproto_parser
        match = parser.OFPMatch(in_port=1, eth_type=0x800, ip_proto=17)
        apply = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [parser.OFPActionOutput(2)])
        instructions = [apply, *WORDS[word]]
        timeout = {"idle_timeout": IDLE_TIMEOUT_S}
        switch.send_msg(parser.OFPFlowMod(switch, priority=PRIORITY, match=match, instructions=instructions, **timeout))
        switch.send_msg(parser.OFPBarrierRequest(switch))
        switch.send_msg(parser.OFPFlowStatsRequest(switch, match=match))

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def reported(self, event):
        """Logs the word that the switch reports for the flow."""
        for flow in event.msg.body:
            if flow.priority == PRIORITY:
                words = [i for i in flow.instructions if isinstance(i, shunt.LowLatency)]
                self.log.info("the switch reports %s", next(word for word, said in WORDS.items() if said == words))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def refused(self, event):
        """Logs an error of the switch."""
        self.log.error("error %d/%d", event.msg.type, event.msg.code)
