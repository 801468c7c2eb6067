# SPDX-License-Identifier: Apache-2.0
"""LLDP frames by which a controller discovers links. Each names the port that sends it, and has a nonce and an
authentication code (HMAC-SHA256), so that hosts cannot forge frames of other ports."""

import hmac
import struct
from typing import NamedTuple

from os_ken.lib.packet import ethernet, lldp, packet

from shunt_controller.live.topology import Port

ETHERTYPE = 0x88CC
NONCE_BYTES = 8
CODE_BYTES = 16
_SOURCE = "02:53:48:4e:00:01"
"""Source address of all frames. It is locally administered."""
_OUI = b"\x02SH"
"""Identifies the TLV with nonce and code. It is not an assigned OUI: its first byte is locally administered."""
_PORT = struct.Struct("!QI")
_NUMBER = struct.Struct("!I")
_CHASSIS = struct.Struct("!Q")


class Probe(NamedTuple):
    """The content of a frame that this controller has sent."""

    sender: Port
    nonce: bytes


def build(probe: Probe, key: bytes, ttl_s: int) -> bytes:
    """Returns the frame that a port is to send. `key` authenticates it; `ttl_s` is LLDP's time to live."""
    tlvs = [
        lldp.ChassisID(subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=_CHASSIS.pack(probe.sender.switch)),
        lldp.PortID(subtype=lldp.PortID.SUB_LOCALLY_ASSIGNED, port_id=_NUMBER.pack(probe.sender.number)),
        lldp.TTL(ttl=ttl_s),
        lldp.OrganizationallySpecific(oui=_OUI, subtype=1, info=probe.nonce + _code(probe, key)),
        lldp.End(),
    ]
    frame = packet.Packet()
    frame.add_protocol(ethernet.ethernet(lldp.LLDP_MAC_NEAREST_BRIDGE, _SOURCE, ETHERTYPE))
    frame.add_protocol(lldp.lldp(tlvs))
    frame.serialize()
    return bytes(frame.data)


def read(data: bytes, key: bytes) -> Probe | None:
    """Returns the content of a frame that was built with this key. Returns None for any other frame."""
    try:
        found = packet.Packet(data).get_protocol(lldp.lldp)
        chassis, port, own = found.tlvs[0], found.tlvs[1], found.tlvs[3]
        sender = Port(*_CHASSIS.unpack(chassis.chassis_id), *_NUMBER.unpack(port.port_id))
        nonce, code = own.info[:NONCE_BYTES], own.info[NONCE_BYTES:]
    except Exception:  # noqa: BLE001 - os-ken's parsers raise various exceptions for malformed packets.
        return None
    probe = Probe(sender, bytes(nonce))
    return probe if hmac.compare_digest(_code(probe, key), bytes(code)) else None


def _code(probe: Probe, key: bytes) -> bytes:
    return hmac.digest(key, _PORT.pack(*probe.sender) + probe.nonce, "sha256")[:CODE_BYTES]
