# SPDX-License-Identifier: Apache-2.0
"""Sends requests to a switch, and matches its answers with the requests by transaction ID."""

import collections
import threading

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

ANSWER_S = 10
EVENTS_KEPT = 1000


class SwitchError(Exception):
    """The switch refused a message. Contains type and code of its ERROR."""

    def __init__(self, message):
        self.type, self.code = message.type, message.code
        self.type_name = ofp.ofp_error_type_to_str(message.type)
        self.code_name = ofp.ofp_error_code_to_str(message.type, message.code)
        super().__init__("%s %s" % (self.type_name, self.code_name))


class NoAnswer(Exception):
    """The switch did not answer in time."""


class Exchange:
    """Messages that were sent together. Only the last message has an answer."""

    def __init__(self, last):
        self.last = last
        self.parts = []
        self.error = None
        self.done = threading.Event()


class Switch:
    """A datapath. Its methods may be called from any thread."""

    def __init__(self, datapath):
        self.datapath = datapath
        self.features = None
        self.lock = threading.Lock()
        self.open = {}
        self.happened = threading.Condition()
        self.events = collections.deque(maxlen=EVENTS_KEPT)
        self.event_number = 0

    def ask(self, *messages):
        """Sends messages. Only the last message has an answer. Returns the bodies of all parts of the answer
        in a list. An answer without parts is returned as a list that contains the message itself. Raises
        SwitchError for the first refused message."""
        with self.lock:
            numbers = [self.datapath.set_xid(message) for message in messages]
            exchange = Exchange(numbers[-1])
            self.open.update((number, exchange) for number in numbers)
        try:
            for message in messages:
                self.datapath.send_msg(message)
            if not exchange.done.wait(ANSWER_S):
                raise NoAnswer("switch %d has not answered for %d seconds" % (self.datapath.id, ANSWER_S))
        finally:
            with self.lock:
                for number in numbers:
                    self.open.pop(number, None)
        if exchange.error:
            raise SwitchError(exchange.error)
        return exchange.parts

    def change(self, *messages):
        """Sends changes and waits until they are active."""
        self.ask(*messages, parser.OFPBarrierRequest(self.datapath))

    def answered(self, message):
        """Handles an answer or an error from the switch."""
        with self.lock:
            exchange = self.open.get(message.xid)
        if exchange is None:
            return
        if isinstance(message, parser.OFPErrorMsg):
            exchange.error = exchange.error or message
            # If a change was refused, the answer to its barrier is still to come.
            if message.xid == exchange.last:
                exchange.done.set()
            return
        if message.xid != exchange.last:
            return
        if not isinstance(message, parser.OFPMultipartReply):
            exchange.parts.append(message)
        elif isinstance(message.body, list):
            exchange.parts.extend(message.body)
        else:
            exchange.parts.append(message.body)
        if not getattr(message, "flags", 0) & ofp.OFPMPF_REPLY_MORE or not isinstance(message, parser.OFPMultipartReply):
            exchange.done.set()

    def event(self, **event):
        """Stores an event with an increasing number."""
        with self.happened:
            self.event_number += 1
            self.events.append({"number": self.event_number, **event})
            self.happened.notify_all()

    def events_after(self, number, wait_s):
        """Returns events with a higher number; waits up to `wait_s` for the first one."""
        with self.happened:
            self.happened.wait_for(lambda: self.event_number > number, wait_s)
            return [event for event in self.events if event["number"] > number]
