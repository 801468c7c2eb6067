# SPDX-License-Identifier: Apache-2.0
"""Messages assembled byte by byte from the tables of docs/pof.md, without the library's layouts.

A cell is an offset, a size in bytes, and a number or text. All other bytes are 0. Offsets in bodies begin
after the header of the message, in instructions after 8 bytes of their slot, in actions after 4 bytes.
"""

from typing import NamedTuple

from shunt_controller.pof import Dialect, Instruction, actions, instructions, messages
from shunt_controller.pof.messages import Message
from shunt_controller.pof.values import Field, Match

OLD, NEW = Dialect.V1_2, Dialect.V1_4
XID = 0x01020304
Cell = tuple[int, int, int | str | bytes]


class Vector(NamedTuple):
    """A message and its bytes."""

    dialect: Dialect
    data: bytes
    message: Message


def lay(size: int, *cells: Cell) -> bytes:
    """Returns bytes with the given cells. Cells must not overlap."""
    data, used = bytearray(size), set()
    for start, width, value in cells:
        places = range(start, start + width)
        assert not used & set(places) and places.stop <= size, (start, width)
        used |= set(places)
        if isinstance(value, int):
            value = value.to_bytes(width)
        elif isinstance(value, str):
            value = value.encode().ljust(width, b"\0")
        assert len(value) == width
        data[start : start + width] = value
    return bytes(data)


def whole(kind: int, body: bytes) -> bytes:
    """Returns a message: version 4, type, length with the header, transaction number."""
    return lay(8, (0, 1, 4), (1, 1, kind), (2, 2, 8 + len(body)), (4, 4, XID)) + body


def slot(size: int, kind: int, length: int, header: int, *cells: Cell) -> bytes:
    """Returns the slot of an action or instruction."""
    shifted = [(header + start, width, value) for start, width, value in cells]
    return lay(size, (0, 2, kind), (2, 2, length), *shifted)


PORT = messages.Port(
    number=0x0304,
    device_id=0x05060708,
    mac=bytes.fromhex("020000000009"),
    name="p9",
    config=0x11,
    state=0x12,
    current=0x13,
    advertised=0x14,
    supported=0x15,
    peer=0x16,
    speed_kbps=0x17,
    max_speed_kbps=0x18,
    forwarding=1,
)


def port(dialect: Dialect) -> bytes:
    """Returns the bytes of PORT."""
    number: Cell = (0, 4, 0x0304) if dialect is OLD else (2, 2, 0x0304)
    cells: list[Cell] = [number, (4, 4, 0x05060708), (8, 6, bytes.fromhex("020000000009")), (16, 64, "p9")]
    cells += [(80 + 4 * n, 4, 0x11 + n) for n in range(8)]
    return lay(120, *cells, (112, 1, 1))


def empty() -> list[Vector]:
    """Messages without a body."""
    made = []
    for kind, message in (
        (0, messages.Hello()),
        (2, messages.EchoRequest()),
        (3, messages.EchoReply()),
        (5, messages.FeaturesRequest()),
        (7, messages.GetConfigRequest()),
        (35, messages.QueryAllFin()),
    ):
        made += [Vector(d, whole(kind, b""), message) for d in (OLD, NEW) if (kind, d) != (35, OLD)]
    return made


def setup() -> list[Vector]:
    """Messages of the handshake, ports and errors."""
    features: list[Cell] = [(16, 64, "vendor"), (80, 64, "forwarding"), (144, 64, "lookup")]
    old_features = lay(208, (0, 4, 0x0A0B0C0D), (4, 2, 3), (6, 2, 45), (8, 4, 0x0F), *features)
    new_features = lay(208, (0, 4, 0x0A0B0C0D), (4, 2, 9), (6, 2, 3), (8, 2, 45), (12, 4, 0x0F), *features)
    names = {"vendor": "vendor", "forwarding_engine": "forwarding", "lookup_engine": "lookup"}
    reply = messages.FeaturesReply(0x0A0B0C0D, 0, 3, 45, 0x0F, **names)
    made = [
        Vector(OLD, whole(1, lay(264, (0, 2, 5), (2, 2, 8), (4, 4, 77), (8, 256, "no"))), messages.Error(5, 8, 77, 0, "no")),
        Vector(
            NEW,
            whole(1, lay(272, (0, 2, 5), (2, 2, 8), (4, 4, 77), (8, 2, 9), (16, 256, "no"))),
            messages.Error(5, 8, 77, 9, "no"),
        ),
        Vector(OLD, whole(6, old_features), reply),
        Vector(NEW, whole(6, new_features), messages.FeaturesReply(0x0A0B0C0D, 9, 3, 45, 0x0F, **names)),
    ]
    for kind, config in ((8, messages.GetConfigReply), (9, messages.SetConfig)):
        made.append(Vector(OLD, whole(kind, lay(4, (0, 2, 1), (2, 2, 0x80))), config(1, 0x80)))
        made.append(Vector(NEW, whole(kind, lay(8, (0, 4, 77), (4, 2, 1), (6, 2, 0x80))), config(1, 0x80, 77)))
    for kind, status in ((12, messages.PortStatus), (17, messages.PortMod)):
        for dialect in (OLD, NEW):
            body = lay(128, (0, 1, 2), (8, 120, port(dialect)))
            made.append(Vector(dialect, whole(kind, body), status(PORT, 2)))
    return made


def resources() -> list[Vector]:
    """RESOURCE_REPORT, meters and counters."""
    rows: list[Cell] = []
    tables = []
    for n, count in enumerate((10, 11, 5, 20)):
        at = 16 + 16 * n
        rows += [(at, 4, 77), (at + 4, 1, n), (at + 5, 1, count), (at + 6, 2, 160 + n), (at + 8, 4, 1000 + n)]
        tables.append(messages.TableResource(n, count, 160 + n, 1000 + n, 77))
    numbers: list[Cell] = [(0, 1, 0), (1, 1, 1), (4, 4, 512), (8, 4, 256), (12, 4, 128)]
    made = [
        Vector(OLD, whole(13, lay(80, *numbers, *rows)), messages.ResourceReport(0, 1, 0, 512, 256, 128, tables)),
        Vector(
            NEW, whole(13, lay(80, *numbers, (2, 2, 9), *rows)), messages.ResourceReport(0, 1, 9, 512, 256, 128, tables)
        ),
        Vector(OLD, whole(30, lay(8, (0, 1, 1), (2, 2, 7000), (4, 4, 5))), messages.MeterMod(1, 5, 7000)),
        Vector(
            NEW, whole(30, lay(16, (0, 1, 1), (2, 2, 9), (4, 4, 5), (8, 4, 70000))), messages.MeterMod(1, 5, 70000, 9)
        ),
    ]
    kinds = ((31, messages.CounterMod, 2), (32, messages.CounterRequest, 3), (33, messages.CounterReply, 4))
    for kind, counter, command in kinds:
        cells: list[Cell] = [(0, 1, command), (4, 4, 6), (8, 8, 1 << 40)]
        made.append(Vector(OLD, whole(kind, lay(16, *cells)), counter(command, 6, 1 << 40)))
        new = lay(24, *cells, (2, 2, 9), (16, 8, 1 << 50))
        made.append(Vector(NEW, whole(kind, new), counter(command, 6, 1 << 40, 1 << 50, 9)))
    return made


def packets() -> list[Vector]:
    """PACKET_IN, PACKET_OUT, and the messages of slots."""
    data = bytes(range(20))
    cells: list[Cell] = [(0, 4, 0xFFFFFFFF), (4, 2, 64), (6, 1, 1), (7, 1, 25), (8, 8, 0x99), (16, 4, 77)]
    common = {"total_length": 64, "reason": 1, "table": 25, "cookie": 0x99, "device_id": 77, "data": data}
    output = slot(48, 0, 20, 4, (2, 2, 5), (4, 2, 6), (6, 2, 7), (8, 4, 0x00090002))
    out = lay(304, (0, 4, 0xFFFFFFFF), (4, 4, 3), (8, 1, 1), (12, 4, 20), (16, 48, output))
    action = actions.Output(0x00090002, 5, 6, 7)
    return [
        Vector(OLD, whole(10, lay(24, *cells) + data), messages.PacketIn(**common)),
        Vector(NEW, whole(10, lay(24, *cells, (20, 2, 9), (22, 2, 4)) + data), messages.PacketIn(**common, slot=9, port=4)),
        Vector(NEW, whole(14, out + data), messages.PacketOut(0xFFFFFFFF, 3, 20, [action], data)),
        Vector(NEW, whole(34, lay(8, (0, 2, 0xFFFF))), messages.QueryAllRequest(0xFFFF)),
        Vector(NEW, whole(101, lay(8, (0, 2, 9), (2, 1, 1))), messages.SlotConfig(9, 1)),
        Vector(NEW, whole(102, lay(8, (0, 2, 9), (2, 1, 1), (3, 1, 1))), messages.SlotStatus(9, 1, 1)),
    ]


def tables() -> list[Vector]:
    """TABLE_MOD."""
    cells: list[Cell] = [(0, 1, 2), (1, 1, 3), (2, 1, 1), (3, 1, 2), (4, 4, 1 << 20), (8, 2, 56), (16, 64, "fib")]
    cells += [(80, 2, 0xFFFF), (82, 2, 16), (84, 2, 8), (88, 2, 5), (90, 2, 0x102), (92, 2, 48)]
    fields = [Field(0xFFFF, 16, 8), Field(5, 0x102, 48)]
    message = messages.TableMod(2, 1, 3, 1 << 20, 56, "fib", fields)
    new = messages.TableMod(3, 1, 3, 1 << 20, 56, "fib", fields, 9)
    return [
        Vector(OLD, whole(18, lay(144, *cells)), message),
        Vector(NEW, whole(18, lay(144, (0, 1, 3), *cells[1:], (10, 2, 9))), new),
    ]


# Conditions: 48 bits of the packet, and 128 bits of the metadata.
_LONG = 0x0102030405060708090A0B0C0D0E0F10
MATCHES = (Match(Field(1, 8, 48), 0x020000000009, 0xFFFFFFFFFFFE), Match(Field(0xFFFF, 32, 128), _LONG, (1 << 128) - 1))
_MATCH_CELLS: list[Cell] = [
    (40, 2, 1), (42, 2, 8), (44, 2, 48), (48, 6, 0x020000000009), (64, 6, 0xFFFFFFFFFFFE),
    (80, 2, 0xFFFF), (82, 2, 32), (84, 2, 128), (88, 16, _LONG), (104, 16, b"\xff" * 16),
]  # fmt: skip


def flow(dialect: Dialect, slots: list[bytes], listed: list[Instruction], command: int = 1) -> Vector:
    """Returns a FLOW_MOD with instructions."""
    stride, size = (208, 1192) if dialect is OLD else (304, 2184)
    cells: list[Cell] = [
        (0, 1, command), (1, 1, 2), (2, 1, len(slots)), (3, 1, 1), (4, 4, 0x21222324), (8, 8, 0x3132333435363738),
        (16, 8, 0x4142434445464748), (24, 1, 4), (25, 1, 2), (26, 2, 600), (28, 2, 601), (30, 2, 0x5152), (32, 4, 99999),
    ]  # fmt: skip
    if dialect is NEW:
        cells.append((36, 2, 9))
    cells += [(360 + stride * n, stride, data.ljust(stride, b"\0")) for n, data in enumerate(slots)]
    message = messages.FlowMod(
        command, 2, 4, 99999, 0x5152, MATCHES, listed, 1, 0x21222324, 0x3132333435363738, 0x4142434445464748,
        600, 601, 9 if dialect is NEW else 0,
    )  # fmt: skip
    return Vector(dialect, whole(15, lay(size, *cells, *_MATCH_CELLS)), message)


def simple_instructions() -> list[Vector]:
    """Every instruction except APPLY_ACTIONS."""
    stride = {OLD: 208, NEW: 304}
    field, field_bytes = Field(3, 96, 32), bytes.fromhex("0003006000200000")
    goto = instructions.GotoTable(25, 14, [field, Field(0xFFFF, 16, 8)])
    goto_cells: list[Cell] = [(0, 1, 25), (1, 1, 2), (2, 2, 14), (8, 8, field_bytes), (16, 6, 0xFFFF00100008)]
    copy = instructions.WriteMetadataFromPacket(32, 96, 48)
    copy_cells: list[Cell] = [(0, 2, 32), (2, 2, 96), (4, 2, 48)]
    made = []
    for dialect in (OLD, NEW):
        size = stride[dialect]
        slots = [slot(size, 1, 80, 8, *goto_cells), slot(size, 6, 16, 8, (0, 4, 9)), slot(size, 7, 16, 8, *copy_cells)]
        made.append(flow(dialect, slots, [goto, instructions.Meter(9), copy]))
    old = [
        slot(208, 2, 16, 8, (0, 2, 32), (2, 2, 20), (4, 4, 0xABCDE)),
        slot(208, 8, 16, 8, (0, 1, 30), (2, 2, 14), (4, 4, 77)),
    ]
    made.append(flow(OLD, old, [instructions.WriteMetadata(32, 20, 0xABCDE), instructions.GotoDirectTable(30, 77, 14)]))
    jump: list[Cell] = [
        (0, 1, 1), (1, 1, 1), (2, 1, 0), (3, 1, 0), (4, 1, 1), (5, 1, 1), (6, 1, 0),
        (8, 8, field_bytes), (16, 8, field_bytes), (24, 4, 1), (32, 8, field_bytes), (40, 4, 3),
    ]  # fmt: skip
    new = [
        slot(304, 2, 32, 8, (0, 2, 32), (2, 2, 20), (4, 3, 0xABCDE0)),
        slot(304, 8, 24, 8, (0, 1, 30), (2, 2, 14), (8, 4, 77)),
        slot(304, 9, 56, 8, *jump),
        slot(304, 10, 32, 8, (0, 2, 4), (2, 1, 1), (8, 8, field_bytes), (16, 8, field_bytes)),
        slot(304, 11, 24, 8, (0, 1, 1), (8, 4, 14)),
        slot(304, 11, 24, 8, (1, 1, 1), (8, 8, field_bytes)),
    ]
    listed = [
        instructions.WriteMetadata(32, 20, 0xABCDE),
        instructions.GotoDirectTable(30, 77, 14),
        instructions.ConditionalJump(field, field, 1, field, 3, 1, 0, 1),
        instructions.CalculateField(4, field, field),
        instructions.MovePacketOffset(1, 14),
        instructions.MovePacketOffset(0, field),
    ]
    made.append(flow(NEW, new, listed, command=6))
    by_field = slot(304, 8, 24, 8, (0, 1, 30), (1, 1, 1), (8, 8, field_bytes))
    made.append(flow(NEW, [by_field], [instructions.GotoDirectTable(30, field)]))
    return made


def _action_slots(dialect: Dialect) -> list[tuple[bytes, actions.Action]]:
    field, field_bytes = Field(3, 96, 32), bytes.fromhex("0003006000200000")
    setting = Match(Field(2, 8, 24), 0x010203, 0xFFFF00)
    made = [
        (slot(48, 1, 44, 4, (0, 6, 0x000200080018), (8, 3, 0x010203), (24, 3, 0xFFFF00)), actions.SetField(setting)),
        (slot(48, 2, 20, 4, (0, 8, field_bytes), (8, 2, 64)), actions.SetFieldFromMetadata(field, 64)),
        (slot(48, 3, 20, 4, (0, 8, field_bytes), (8, 4, 0xFFFFFFFE)), actions.ModifyField(field, -2)),
        (slot(48, 7, 12, 4, (0, 4, 5)), actions.Group(5)),
        (slot(48, 8, 12, 4, (0, 4, 6)), actions.Drop(6)),
        (slot(48, 9, 12, 4, (0, 4, 1)), actions.ToController(1)),
        (slot(48, 10, 12, 4, (0, 4, 8)), actions.Counter(8)),
    ]
    add = actions.AddField(96, 20, 0xABCDE, 4)
    if dialect is OLD:
        made += [
            (slot(48, 0, 20, 4, (0, 4, 2), (4, 2, 5), (6, 2, 6), (8, 2, 7)), actions.Output(2, 5, 6, 7)),
            (slot(48, 4, 20, 4, (0, 2, 4), (2, 2, 96), (4, 4, 20), (8, 8, 0xABCDE)), add),
            (slot(48, 5, 12, 4, (0, 2, 96), (4, 4, 32)), actions.DeleteField(96, 32)),
            (slot(48, 6, 12, 4, (0, 2, 80), (2, 2, 16), (4, 2, 8), (6, 2, 160)), actions.CalculateChecksum(80, 16, 8, 160)),
        ]
        return made
    new_sum: list[Cell] = [(1, 1, 1), (2, 2, 80), (4, 2, 16), (6, 2, 8), (8, 2, 160)]
    made += [
        (slot(48, 0, 20, 4, (0, 1, 1), (8, 8, field_bytes)), actions.Output(field)),
        (slot(48, 4, 28, 4, (0, 2, 4), (2, 2, 96), (4, 4, 20), (8, 3, 0xABCDE0)), add),
        (slot(48, 5, 20, 4, (0, 2, 96), (8, 4, 32)), actions.DeleteField(96, 32)),
        (slot(48, 5, 20, 4, (0, 2, 96), (2, 1, 1), (8, 8, field_bytes)), actions.DeleteField(96, field)),
        (slot(48, 6, 20, 4, *new_sum), actions.CalculateChecksum(80, 16, 8, 160, 0, 1)),
    ]
    return made


def applied_actions() -> list[Vector]:
    """Every action, in slots of APPLY_ACTIONS."""
    made = []
    for dialect, most, size, length in ((OLD, 4, 208, 208), (NEW, 6, 304, 304)):
        given = _action_slots(dialect)
        for start in range(0, len(given), most):
            part = given[start : start + most]
            cells: list[Cell] = [(8 + 48 * n, 48, data) for n, (data, _) in enumerate(part)]
            data = slot(size, 4, length, 8, (0, 1, len(part)), *cells)
            made.append(flow(dialect, [data], [instructions.ApplyActions([action for _, action in part])]))
    return made


def groups() -> list[Vector]:
    """GROUP_MOD in both forms."""
    drop = slot(48, 8, 12, 4, (0, 4, 6))
    counted = slot(48, 10, 12, 4, (0, 4, 8))
    cells: list[Cell] = [(0, 1, 1), (1, 1, 3), (2, 1, 2), (4, 4, 5), (8, 4, 6), (16, 48, counted), (64, 48, drop)]
    listed = [actions.Counter(8), actions.Drop(6)]
    first = lay(304, (0, 2, 2), (2, 2, 7), (4, 2, 9), (6, 1, 4), (8, 4, 11), (16, 48, counted), (64, 48, drop))
    second = lay(304, (0, 2, 1), (16, 48, drop))
    bucket_cells: list[Cell] = [(0, 1, 1), (1, 1, 3), (2, 1, 2), (4, 4, 5), (8, 4, 6), (12, 2, 9)]
    body = lay(1840, *bucket_cells, (16, 304, first), (320, 304, second))
    buckets = [messages.Bucket(listed, 7, 9, 4, 11), messages.Bucket([actions.Drop(6)])]
    return [
        Vector(OLD, whole(16, lay(208, *cells)), messages.GroupMod(1, 3, 5, listed, 6)),
        Vector(NEW, whole(16, lay(208, *cells, (12, 2, 9))), messages.GroupMod(1, 3, 5, listed, 6, 9)),
        Vector(NEW, whole(16, body), messages.BucketGroupMod(1, 3, 5, buckets, 6, 9)),
    ]


def vectors() -> list[Vector]:
    """Returns all messages."""
    parts = (empty, setup, resources, packets, tables, simple_instructions, applied_actions, groups)
    return [vector for part in parts for vector in part()]
