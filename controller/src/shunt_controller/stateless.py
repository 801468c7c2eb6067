# SPDX-License-Identifier: Apache-2.0
"""Messages that configure and report the stateless forwarding of a switch (docs/openflow-extensions.md,
"Stateless forwarding").

::

    datapath.send_msg(StatelessMod(datapath, [Trusted({1, 2}), Bank(0, Residues(5, {0: TABLES, 1: 2}))]))
    datapath.send_msg(StatelessRequest(datapath))

    @set_ev_cls(ofp_event.EventOFPExperimenter, MAIN_DISPATCHER)
    def received(self, event):
        reply = StatelessReply.of(event.msg)         # None for any other message
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller import sections as codec
from shunt_controller.experimenter import EXPERIMENTER, ExtensionError, need, read
from shunt_controller.sections import Bank, Polka, Section

_FLAGS = struct.Struct("!I4x")
_OFF = 1
_MORE = 2
_MOD, _REQUEST, _REPLY = 1, 2, 3


class StatelessMod(parser.OFPExperimenter):  # type: ignore[misc]
    """Replaces each of these sections as a whole, and leaves all other sections unchanged. None turns
    stateless forwarding off."""

    def __init__(self, datapath: Any, sections: Sequence[Section] | None) -> None:
        flags, packed = (_OFF, b"") if sections is None else (0, codec.pack(sections))
        self.sections = sections
        super().__init__(datapath, EXPERIMENTER, _MOD, _FLAGS.pack(flags) + packed)


class StatelessRequest(parser.OFPExperimenter):  # type: ignore[misc]
    """Requests all sections."""

    def __init__(self, datapath: Any) -> None:
        super().__init__(datapath, EXPERIMENTER, _REQUEST, b"")


class StatelessReply(NamedTuple):
    """Sections of a switch. If `more` is set, further sections are in other messages of the same transaction
    (`xid`)."""

    xid: int
    more: bool
    sections: list[Section] | None
    """Sections, or None if stateless forwarding is off."""

    @classmethod
    def of(cls, message: Any) -> "StatelessReply | None":
        """Reads an experimenter message. Returns None if it is not a StatelessReply."""
        if (message.experimenter, message.exp_type) != (EXPERIMENTER, _REPLY):
            return None
        data = bytes(message.data)
        (flags,) = read(_FLAGS, data)
        need(not flags & ~(_OFF | _MORE), f"a stateless_reply has the unknown flags {flags:#x}")
        rest = data[_FLAGS.size :]
        need(not flags & _OFF or not rest, "a stateless_reply with the flag OFF has sections")
        return cls(message.xid, bool(flags & _MORE), None if flags & _OFF else codec.unpack(rest))


def joined(replies: Iterable[StatelessReply]) -> list[Section] | None:
    """Returns all sections of a reply's messages, each once. Returns None if stateless forwarding is off."""
    found: dict[tuple[int, int], Section] = {}
    for reply in replies:
        if reply.sections is None:
            return None
        for section in reply.sections:
            before = found.get(section.place)
            found[section.place] = section if before is None else _both(before, section)
    return list(found.values())


def _both(first: Section, rest: Section) -> Section:
    """Joins two parts of a bank that was too long for one message."""
    if isinstance(first, Bank) and isinstance(rest, Bank) and first.residues and rest.residues:
        return Bank(first.epoch, first.residues.plus(rest.residues))
    if isinstance(first, Polka) and isinstance(rest, Polka) and first.residues and rest.residues:
        return Polka(first.residues.plus(rest.residues))
    raise ExtensionError(f"a reply has two sections of type {first.kind}")
