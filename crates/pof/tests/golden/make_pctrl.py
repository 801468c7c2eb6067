#!/usr/bin/env python2.7
# SPDX-License-Identifier: Apache-2.0
"""Prints messages that the controller PCTRL packs, as a name and hex digits per line.

PCTRL speaks dialect 1.4.0.015. It needs Python 2.7: make_pctrl.py FOLDER_OF_PCTRL > OUTPUT
Runs of zero bytes in pctrl.txt are written as `0*N`.
"""

import binascii
import sys

sys.path.insert(0, sys.argv[1])

import pox.core  # noqa: E402

pox.core.initialize()

import pox.openflow.libpof_02 as pof  # noqa: E402


def emit(name, message):
    sys.stdout.write("%s %s\n" % (name, binascii.hexlify(message.pack()).decode()))


def make(kind, **fields):
    made = getattr(pof, "ofp_" + kind)()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def field(number, offset, length):
    return make("match20", field_id=number, offset=offset, length=length)


def matching(number, offset, length, value, mask):
    return make("matchx", field_id=number, offset=offset, length=length, value=value, mask=mask)


def flow_mod(name, instructions):
    message = make("flow_mod", command=0, counter_id=7, cookie=0x1122, table_id=1, table_type=2, priority=9, index=4)
    message.match_list = [matching(5, 0, 48, "010203040506", "ff" * 6)]
    message.match_field_num = 1
    message.instruction_list = instructions
    message.instruction_num = len(instructions)
    emit("flow_" + name, message)


def actions(name, *listed):
    flow_mod(name, [make("instruction_apply_actions", action_num=len(listed), action_list=list(listed))])


FIELD, METADATA = field(3, 96, 32), field(-1, 16, 16)

for plain in ("hello", "features_request", "get_config_request", "set_config", "echo_request"):
    emit(plain, make(plain))
table_mod = make("table_mod")
table_mod.flow_table = make("flow_table", command=0, table_id=1, table_type=2, table_size=100, key_length=48)
table_mod.flow_table.table_name = "first"
table_mod.flow_table.match_field_list = [field(5, 0, 48)]
table_mod.flow_table.match_field_num = 1
emit("table_mod", table_mod)

goto = make("instruction_goto_table", next_table_id=25, match_field_num=1, packet_offset=14, match_list=[FIELD])
flow_mod("goto", [goto])
direct = {"next_table_id": 30, "packet_offset": 14}
flow_mod(
    "direct",
    [
        make("instruction_goto_direct_table", index_type=0, index_value=77, **direct),
        make("instruction_goto_direct_table", index_type=1, index_field=FIELD, **direct),
    ],
)
flow_mod("meter", [make("instruction_meter", meter_id=9)])
flow_mod("wmd", [make("instruction_write_metadata", metadata_offset=32, write_length=16, value="0908")])
copy = {"metadata_offset": 32, "packet_offset": 96, "write_length": 48}
flow_mod("wmdp", [make("instruction_write_metadata_from_packet", **copy)])
jump = {"field1": FIELD, "field2_value": 5, "offset1_direction": 1}
offsets = {"offset1_value": 1, "offset2_value": 2, "offset3_value": 3}
jump.update(offsets)
jump.update({"field2_value_type": 0, "offset1_value_type": 0, "offset2_value_type": 0, "offset3_value_type": 0})
flow_mod("jmp", [make("instruction_conditional_jmp", **jump)])
calculate = {"calc_type": 1, "src_value_type": 0, "src_value": 3, "des_field": FIELD}
flow_mod("calc", [make("instruction_calculate_field", **calculate)])

output = {"port_id": 0x00010002, "packet_offset": 3, "metadata_offset": 4, "metadata_length": 8}
by_field = make("action_output", port_id_value_type=1, port_id_field=METADATA)
actions("out", make("action_output", **output), by_field)
actions("set", make("action_set_field", field_setting=matching(2, 96, 32, "0a000001", "ff" * 4)))
actions("setmeta", make("action_set_field_from_metadata", field_setting=FIELD, metadata_offset=16))
actions("mod", make("action_modify_field", match_field=FIELD, increment=5))
added = {"field_id": 4, "field_position": 96, "field_length": 32, "field_value": "01020304"}
actions("add", make("action_add_field", **added))
actions(
    "del",
    make("action_delete_field", tag_position=96, tag_length_value_type=0, tag_length_value=32),
    make("action_delete_field", tag_position=96, tag_length_value_type=1, tag_length_field=FIELD),
)
checksum = {"checksum_pos_type": 0, "calc_pos_type": 1, "checksum_position": 80, "checksum_length": 16}
actions("sum", make("action_calculate_checksum", calc_start_position=0, calc_length=160, **checksum))
actions(
    "grp",
    make("action_group", group_id=5),
    make("action_drop", reason=2),
    make("action_packetin", reason=1),
    make("action_counter", counter_id=8),
)

emit("meter_mod", make("meter_mod", command=0, slot_id=1, rate=70000, meter_id=3))
for name, command in (("counter_mod", 0), ("counter_request", 3)):
    message = make(name)
    message.counter = make("counter", command=command, counter_id=6)
    emit(name, message)
packet_out = make("packet_out", data="abcdef", in_port=1)
packet_out.actions = [make("action_output", port_id=2)]
emit("packet_out", packet_out)
