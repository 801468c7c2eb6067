#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A POF controller that carries packets through a network in a header of its own, which no parser knows.

Edge switches insert the header, switches in between match on it, and edge switches remove it. It has 8 bytes
and stands between the MAC addresses and the EtherType of the packet:

  byte 12    EtherType of the header: 0xff9b by default (not assigned)
  byte 14    version 4 bits (1), class 4 bits
  byte 15    hops that are left
  byte 16    circuit, 4 bytes
  byte 20    EtherType of the packet, and the rest of the packet

  MM 0  first     ingress port, EtherType      a port of `ingress`: directly to an entry of DT 0; else, with the
                                               header's EtherType: base offset to byte 14, continue in MM 1
  MM 1  version   version, hops                version 1 and hops above 0: continue in EM 0
  EM 0  circuits  circuit                      in between: hops - 1, output; at the egress: DELETE_FIELD, output
  DT 0  insert    no fields, one entry per ingress    ADD_FIELD of 64 bits at bit 96, output

Shunt pads a frame that DELETE_FIELD makes shorter than 60 bytes, the minimum of Ethernet.

Bits 16 to 23 of POF's metadata are the ingress port. In dialect 1.2, which cannot move the base offset back,
all offsets count from the first byte.

Settings (JSON), for all switches or by device ID ("switches": {"1": {...}, "2": {...}}):

  {"ethertype": "0xff9b",
   "ingress": [{"port": 1, "circuit": 7, "class": 3, "hops": 16, "output": 2, "low_latency": true}, ...],
   "transit": [{"circuit": 7, "output": 3, "low_latency": true}, ...],
   "egress":  [{"circuit": 9, "output": 1, "low_latency": true}, ...]}

`ingress` takes all packets of a port (1 to 255), also those that have such a header: hosts at these ports cannot
choose a circuit. A circuit is either in `transit` or in `egress`
of a switch. A packet is low-latency if its ingress or circuit is; all other entries are low-latency entries,
except the one that drops packets whose hops are used up.
"""

from typing import Any

import common
from common import Settings, need

from shunt_controller import pof

ETHERTYPE_DEFAULT = 0xFF9B
ETHERTYPE = pof.field(96, 16)
INGRESS_PORT = pof.metadata(16, 8)
INSERT_BIT, HEADER_BITS = 96, 64
HEADER_BYTE = 14
VERSION, HOPS_DEFAULT = 1, 16


def header(ethertype: int, kind: int, hops: int, circuit: int) -> int:
    """Returns the header as a number of 64 bits."""
    return ethertype << 48 | VERSION << 44 | kind << 40 | hops << 32 | circuit


def circuit_of(item: Settings) -> int:
    """Returns the circuit of an item."""
    return common.number(item["circuit"], 0, 0xFFFFFFFF, "circuit")


def build(settings: Settings, target: pof.Target) -> pof.Program:
    """Returns the program for a switch."""
    common.check_keys(settings, "the settings of a switch", "", "ethertype ingress transit egress")
    ethertype = common.number(settings.get("ethertype", ETHERTYPE_DEFAULT), 0x600, 0xFFFF, "EtherType")
    program = pof.Program(target)
    layer = pof.Layer(target, HEADER_BYTE)
    version, hops, circuit = layer.field(0, 4), layer.field(8, 8), layer.field(16, 32)

    def table(kind: pof.TableType, number: int, name: str, fields: list[pof.Field]) -> pof.Table:
        return program.table(pof.TableRef(kind, number), name, fields, 10_000)

    first = table(pof.TableType.MM, 0, "first", [INGRESS_PORT, ETHERTYPE])
    versions = table(pof.TableType.MM, 1, "version", [version, hops])
    circuits = table(pof.TableType.EM, 0, "circuits", [circuit])
    insert = table(pof.TableType.DT, 0, "insert", [])

    is_header = [pof.Match.any(INGRESS_PORT), pof.Match.exact(ETHERTYPE, ethertype)]
    program.add(first, is_header, [program.goto(versions, layer.base)], priority=1, low_latency=True)
    used_up = [pof.Match.any(version), pof.Match.exact(hops, 0)]
    program.add(versions, used_up, [pof.ApplyActions((pof.Drop(),))], priority=2, low_latency=False)
    known = [pof.Match.exact(version, VERSION), pof.Match.any(hops)]
    program.add(versions, known, [program.goto(circuits)], priority=1, low_latency=True)

    for item in common.listed(settings, "ingress", "port circuit output", "class hops low_latency"):
        kind = common.number(item.get("class", 0), 0, 15, "class")
        left = common.number(item.get("hops", HOPS_DEFAULT), 1, 255, "hops")
        value = header(ethertype, kind, left, circuit_of(item))
        low_latency = common.flag(item, "low_latency", False)
        actions = [pof.AddField(INSERT_BIT, HEADER_BITS, value), program.output(common.port(item["output"]))]
        entry = program.add(insert, [], pof.apply(actions, target), low_latency=low_latency)
        from_port = [pof.Match.exact(INGRESS_PORT, common.ingress_port(item["port"])), pof.Match.any(ETHERTYPE)]
        program.add(first, from_port, [program.goto_direct(insert, entry.index)], priority=2, low_latency=True)

    used: set[int] = set()
    for role in ("transit", "egress"):
        for item in common.listed(settings, role, "circuit output", "low_latency"):
            number, output = circuit_of(item), program.output(common.port(item["output"]))
            need(number not in used, f"circuit {number} is listed twice")
            used.add(number)
            steps: list[Any]
            if role == "transit":
                steps = [*pof.apply([pof.ModifyField(hops, -1), output], target)]
            else:
                steps = [*layer.back(), *pof.apply([pof.DeleteField(INSERT_BIT, HEADER_BITS), output], target)]
            low_latency = common.flag(item, "low_latency", False)
            program.add(circuits, [pof.Match.exact(circuit, number)], steps, low_latency=low_latency)
    return program


class Encapsulation(common.Installer):
    """Installs the program of each switch."""

    def __init__(self, settings: Settings) -> None:
        self.by_switch: dict[int, Settings] | None = None
        if "switches" in settings:
            common.check_keys(settings, "the file", "switches")
            need(isinstance(settings["switches"], dict), "`switches` is not an object")
            self.by_switch = {}
            for number, item in settings["switches"].items():
                self.by_switch[common.number(number, 0, 0xFFFFFFFF, "device ID")] = item
                build(item, pof.Target())
            settings = {}
        super().__init__(settings, build)

    def settings_of(self, switch: pof.Switch) -> Settings:
        """Returns the settings for a switch."""
        if self.by_switch is None:
            return self.settings
        number = switch.features.device_id
        need(number in self.by_switch, f"device {number} is not in `switches`")
        return self.by_switch[number]


if __name__ == "__main__":
    common.main(__doc__ or "", Encapsulation)
