# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes, and bundles of them, which a switch executes as a whole or not at all.

os-ken needs about 0.1 ms to serialise an entry, and a controller thread to send each message. Applications that
configure many switches therefore serialise equal messages once, and send a bundle with one call::

    packer = Packer()
    datapath.send(bundled(1, [packed(StatelessMod(datapath, sections)), *packer.entries(entries)]))

All of these messages have the transaction ID :data:`XID`, also in errors."""

import struct
from collections.abc import Sequence
from typing import Any

from os_ken.ofproto import ofproto_common, ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.edges import Entry, flow_message, group_message, groups

XID = 0x53484E00
"""Transaction ID of all messages of a bundle."""
PROTOCOL = ofproto_protocol.ProtocolDesc(version=ofp.OFP_VERSION)
"""Takes the place of a datapath in messages that are sent to several switches."""

_FLAGS = ofp.ONF_BF_ATOMIC | ofp.ONF_BF_ORDERED
_CONTROL = struct.Struct("!BBHIIIIHH")
_ADD = struct.Struct("!BBHIIII2xH")


def packed(message: Any) -> bytes:
    """Returns the bytes of a message of os-ken."""
    message.set_xid(XID)
    message.serialize()
    return bytes(message.buf)


def bundled(bundle: int, made: Sequence[bytes]) -> bytes:
    """Returns the messages that open a bundle, add other messages to it, and commit it. `bundle` is the number
    of the bundle."""
    parts = [_control(bundle, ofp.ONF_BCT_OPEN_REQUEST)]
    for message in made:
        parts.append(_ADD.pack(*_header(_ADD.size + len(message), ofp.ONF_ET_BUNDLE_ADD_MESSAGE), bundle, _FLAGS))
        parts.append(message)
    parts.append(_control(bundle, ofp.ONF_BCT_COMMIT_REQUEST))
    return b"".join(parts)


def _control(bundle: int, kind: int) -> bytes:
    return _CONTROL.pack(*_header(_CONTROL.size, ofp.ONF_ET_BUNDLE_CONTROL), bundle, kind, _FLAGS)


def _header(length: int, kind: int) -> tuple[int, int, int, int, int, int]:
    """Returns the header of a message of ONF's extensions."""
    return ofp.OFP_VERSION, ofp.OFPT_EXPERIMENTER, length, XID, ofproto_common.ONF_EXPERIMENTER_ID, kind


class Packer:
    """Serialises entries and groups of several switches. If switches have the same object, it is serialised
    once."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, bytes]] = {}

    def entries(self, made: Sequence[Entry]) -> list[bytes]:
        """Returns group-mods and flow-mods that add these entries, groups first."""
        found = [self._packed(group, group_message) for group in groups("a switch", made).values()]
        return found + [self._packed(entry, flow_message) for entry in made]

    def _packed(self, item: Any, message: Any) -> bytes:
        # Keep the item as well: Python could give its identity to another object otherwise.
        kept = self._kept.get(id(item))
        if kept is None:
            kept = self._kept[id(item)] = item, packed(message(PROTOCOL, item))
        return kept[1]
