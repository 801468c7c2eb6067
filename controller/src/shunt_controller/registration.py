# SPDX-License-Identifier: Apache-2.0
"""Registers the extensions with os-ken's parser of OpenFlow 1.3.

os-ken has a registry for instructions and actions. Its registry of match fields cannot be used for slices,
because the number of a field does not identify a slice. Therefore this module wraps the four functions by
which the parser reads and writes fields.
"""

from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofproto
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller import actions, experimenter, fields, instructions

_registered = False


def register() -> None:
    """Registers the extensions. A second call has no effect."""
    global _registered
    if _registered:
        return
    _registered = True
    parser.OFPInstruction.register_instruction_type([experimenter.TYPE])(instructions.Experimenter)
    parser.OFPAction.register_action_type(experimenter.TYPE, experimenter.HEADER.size)(actions.Experimenter)
    _wrap_fields()


def _wrap_fields() -> None:
    from_user, to_user = ofproto.oxm_from_user, ofproto.oxm_to_user
    parse, serialize = ofproto.oxm_parse, ofproto.oxm_serialize

    def our_from_user(name: str, value: Any) -> Any:
        return fields.from_user(name, value) if fields.is_ours(name) else from_user(name, value)

    def our_to_user(number: Any, value: Any, mask: Any) -> Any:
        if isinstance(number, fields.Number):
            return fields.to_user(number, value, mask)
        return to_user(number, value, mask)

    def our_parse(buf: bytes, offset: int) -> Any:
        return fields.parse(buf, offset) or parse(buf, offset)

    def our_serialize(number: Any, value: Any, mask: Any, buf: Any, offset: int) -> Any:
        if isinstance(number, fields.Number):
            return fields.serialize(number, value, mask, buf, offset)
        return serialize(number, value, mask, buf, offset)

    ofproto.oxm_from_user, ofproto.oxm_to_user = our_from_user, our_to_user
    ofproto.oxm_parse, ofproto.oxm_serialize = our_parse, our_serialize
