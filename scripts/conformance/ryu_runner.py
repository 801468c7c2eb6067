# SPDX-License-Identifier: Apache-2.0
"""Runs case files of the Ryu switch test tool in os-ken, and writes each result as a JSON line.

ryu_runner.py LIST RESULTS [--as-it-is]

LIST has one path of a case file per line. The suite listens on 127.0.0.1:6653 for the switch under test
(datapath 1) and for the switch that sends and receives its packets (datapath 2). A line of RESULTS is
{"file", "test", "ok", "detail", "seconds"}. `detail` is the suite's description of the failure.

This program only sets the order of cases and records results. The suite defines the cases and their verdicts.
Two parts are replaced, unless --as-it-is is given:

- The sender of the throughput cases. The suite's sender sends a fixed number of packets per tick and does not
  catch up after a late tick. On a small machine it sends too few packets for any switch to pass. The
  replacement sends by the clock.
- os-ken's SCTP checksum. Since Python 3, it is computed over the text form of the packet's bytes, so the
  cases that set an SCTP port expect a wrong CRC.
"""

import json
import logging
import os
import sys
import time

os.environ.setdefault("OSKEN_HUB_TYPE", "eventlet")
from os_ken.lib import hub  # noqa: E402

hub.patch(thread=True)

from os_ken import cfg, log  # noqa: E402

log.early_init_log(logging.WARNING)

from os_ken.base.app_manager import AppManager  # noqa: E402

# The suite contains packets as Python expressions over these packet modules.
from os_ken.lib.packet import arp, icmp, icmpv6, ipv4, ipv6, mpls, pbb, sctp, tcp, udp, vlan  # noqa: E402, F401

import os_ken.controller.controller  # noqa: E402, F401  (its options are the listener's)
from os_ken.tests.switch import tester  # noqa: E402

SUITE = "os_ken.tests.switch.tester"
CASES = os.path.join(os.path.dirname(tester.__file__), "of13")
SENDING_STEP_S = tester.CONTINUOUS_THREAD_INTVL / 2
# Limits the burst of a sender that has fallen behind, so that it does not flood the switch.
BURST_MAX = 200


def sctp_checksum(data):
    """Returns CRC32c (RFC 9260, appendix A) as the number that os-ken packs in network byte order."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return int.from_bytes((crc ^ 0xFFFFFFFF).to_bytes(4, "little"), "big")


class LastMessage(logging.Handler):
    """Keeps the last message of the suite. After a failed case, this message states the reason."""

    text = ""

    def emit(self, record):
        self.text = record.getMessage().strip()


class Recorder(tester.OfTester):
    """The suite's application, changed to run the given list and to record each case."""

    case_files = []
    results = None
    as_it_is = False

    def _set_logger(self):
        super()._set_logger()
        self.logger.setLevel(logging.INFO)
        self.last_message = LastMessage()
        self.logger.addHandler(self.last_message)

    def _test_sequential_execute(self, test_dir):
        for path in self.case_files:
            case_file = tester.TestFile(path, self.logger)
            for number, case in enumerate(case_file.tests):
                self.record(path, case, case_file.description if number == 0 else None)
                hub.sleep(self.interval)
        self.results.close()
        os._exit(0)

    def record(self, path, case, heading):
        begin = time.monotonic()
        try:
            ok = self._test_execute(case, heading) == tester.TEST_OK
            detail = "" if ok else self.last_message.text
        except Exception as error:  # an assertion of the suite: an unexpected answer of the switch
            ok, detail = False, f"{type(error).__name__}: {error}"
            self.waiter = None
        line = {
            "file": os.path.relpath(path, CASES),
            "test": case.description,
            "ok": ok,
            "detail": detail,
            "seconds": round(time.monotonic() - begin, 2),
        }
        self.results.write(json.dumps(line) + "\n")
        self.results.flush()

    def _send_packet_thread(self, arg):
        if self.as_it_is:
            super()._send_packet_thread(arg)
            return
        per_second = arg["packet_counter_inc"] / tester.CONTINUOUS_THREAD_INTVL
        begin, sent = time.monotonic(), 0
        try:
            same = None if arg["randomize"] else self.packet_out(arg["packet_binary"])
            while self.ingress_event is not None and not self.ingress_event._cond:
                due = min(int((time.monotonic() - begin) * per_second) - sent, BURST_MAX)
                if due > 0:
                    messages = same * due if same else b"".join(self.random_packet_out(arg) for _ in range(due))
                    self.tester_sw.dp.send(messages)
                    sent += due
                hub.sleep(SENDING_STEP_S)
        except Exception as error:
            self.thread_msg = error
            self.ingress_event.set()

    def packet_out(self, data):
        """Returns the bytes of the packet-out with which the other switch sends a packet."""
        datapath = self.tester_sw.dp
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        message = parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=ofproto.OFP_NO_BUFFER,
            in_port=ofproto.OFPP_CONTROLLER,
            actions=[parser.OFPActionOutput(self.tester_send_port)],
            data=data,
        )
        datapath.set_xid(message)
        message.serialize()
        return bytes(message.buf)

    def random_packet_out(self, arg):
        packet = eval("/".join(arg["packet_text"]), vars(tester))
        packet.serialize()
        return self.packet_out(packet.data)


def main():
    arguments = sys.argv[1:]
    Recorder.as_it_is = "--as-it-is" in arguments
    if not Recorder.as_it_is:
        sctp.sctp._checksum = lambda _, data: sctp_checksum(data)
    case_list, results = [argument for argument in arguments if not argument.startswith("--")]
    with open(case_list, encoding="utf-8") as lines:
        Recorder.case_files = lines.read().splitlines()
    Recorder.results = open(results, "w", encoding="utf-8")

    cfg.CONF(
        args=[
            "--ofp-listen-host=127.0.0.1",
            "--ofp-tcp-listen-port=6653",
            "--test-switch-target-version=openflow13",
            "--test-switch-tester-version=openflow13",
        ],
        project="os_ken",
        version="shunt",
    )
    manager = AppManager.get_instance()
    manager.load_apps([SUITE, "os_ken.controller.ofp_handler"])
    manager.applications_cls[SUITE] = Recorder
    hub.joinall(manager.instantiate_apps(**manager.create_contexts()))


if __name__ == "__main__":
    main()
