# SPDX-License-Identifier: Apache-2.0
"""The messages of POF. The byte tables are in docs/pof.md."""

import dataclasses
import enum
from typing import ClassVar

from shunt_controller.pof.actions import ACTION, SLOT_BYTES, Action
from shunt_controller.pof.errors import Fault, error_name
from shunt_controller.pof.instructions import INSTRUCTION, Instruction
from shunt_controller.pof.instructions import STRIDES as INSTRUCTION_STRIDES
from shunt_controller.pof.layout import RAW, TEXT, Choice, Dialect, Listed, Nested, Structure, at, slots
from shunt_controller.pof.values import Field, Match, TableType

NO_BUFFER = 0xFFFFFFFF
"""Buffer ID of a packet that is not buffered."""

PACKET_BYTES_MAX = 2048
"""Maximum number of bytes of a packet in PACKET_IN and PACKET_OUT."""

LOW_LATENCY_EXTENSION = 1
"""Bit of RESOURCE_REPORT: the switch understands the low-latency flag of FLOW_MOD."""


class TableCommand(enum.IntEnum):
    """Command of TABLE_MOD."""

    ADD = 0
    MODIFY = 1
    DELETE = 2
    QUERY = 3
    QUERY_RESULT = 4


class FlowCommand(enum.IntEnum):
    """Command of FLOW_MOD."""

    ADD = 0
    MODIFY = 1
    MODIFY_STRICT = 2
    DELETE = 3
    DELETE_STRICT = 4
    QUERY = 5
    QUERY_RESULT = 6


class LowLatency(enum.IntEnum):
    """Low-latency flag of an entry."""

    UNSTATED = 0
    """The switch decides by its configuration."""
    LOW_LATENCY = 1
    NORMAL = 2


class ModCommand(enum.IntEnum):
    """Command of GROUP_MOD and METER_MOD."""

    ADD = 0
    MODIFY = 1
    DELETE = 2


class GroupType(enum.IntEnum):
    """Type of a group, with the numbers of OpenFlow 1.3."""

    ALL = 0
    SELECT = 1
    INDIRECT = 2
    FAST_FAILOVER = 3


class CounterCommand(enum.IntEnum):
    """Command of the counter messages."""

    ADD = 0
    DELETE = 1
    CLEAR = 2
    REQUEST = 3
    REPLY = 4


class PortReason(enum.IntEnum):
    """Reason of PORT_STATUS."""

    ADD = 0
    DELETE = 1
    MODIFY = 2


class PacketInReason(enum.IntEnum):
    """Reason of PACKET_IN."""

    NO_MATCH = 0
    ACTION = 1
    INVALID_TTL = 2


class Flag(enum.IntEnum):
    """A byte that is 0 or 1."""

    NO = 0
    YES = 1


_TABLE_TYPE = Choice(TableType, "table type")


@dataclasses.dataclass(frozen=True)
class Message(Structure):
    """Base class of messages."""

    TYPE: ClassVar[int]
    TAIL_MAX: ClassVar[int] = 0
    """Maximum number of bytes of a packet after the fixed part."""


@dataclasses.dataclass(frozen=True)
class Hello(Message):
    """First message of both sides."""

    NAME, TYPE, SIZES = "HELLO", 0, (0, 0)


@dataclasses.dataclass(frozen=True)
class Error(Message):
    """Refusal of a message."""

    NAME, TYPE, SIZES = "ERROR", 1, (264, 272)

    kind: int = at((0, 2), (0, 2))
    code: int = at((2, 2), (2, 2))
    device_id: int = at((4, 4), (4, 4))
    slot: int = at(None, (8, 2))
    text: str = at((8, 256), (16, 256), TEXT, "")

    def __str__(self) -> str:
        name = error_name(self.kind, self.code)
        return self.text if name in self.text else f"{self.text} ({name})"


@dataclasses.dataclass(frozen=True)
class EchoRequest(Message):
    """Requests an ECHO_REPLY."""

    NAME, TYPE, SIZES = "ECHO_REQUEST", 2, (0, 0)


@dataclasses.dataclass(frozen=True)
class EchoReply(Message):
    """Answers an ECHO_REQUEST."""

    NAME, TYPE, SIZES = "ECHO_REPLY", 3, (0, 0)


@dataclasses.dataclass(frozen=True)
class FeaturesRequest(Message):
    """Requests a FEATURES_REPLY."""

    NAME, TYPE, SIZES = "FEATURES_REQUEST", 5, (0, 0)


@dataclasses.dataclass(frozen=True)
class FeaturesReply(Message):
    """Describes the switch."""

    NAME, TYPE, SIZES = "FEATURES_REPLY", 6, (208, 208)

    device_id: int = at((0, 4), (0, 4))
    slot: int = at(None, (4, 2))
    ports: int = at((4, 2), (6, 2))
    tables: int = at((6, 2), (8, 2))
    capabilities: int = at((8, 4), (12, 4))
    vendor: str = at((16, 64), (16, 64), TEXT, "")
    forwarding_engine: str = at((80, 64), (80, 64), TEXT, "")
    lookup_engine: str = at((144, 64), (144, 64), TEXT, "")


@dataclasses.dataclass(frozen=True)
class GetConfigRequest(Message):
    """Requests a GET_CONFIG_REPLY, a RESOURCE_REPORT, and a PORT_STATUS for each port."""

    NAME, TYPE, SIZES = "GET_CONFIG_REQUEST", 7, (0, 0)


@dataclasses.dataclass(frozen=True)
class _Config(Message):
    SIZES = (4, 8)

    flags: int = at((0, 2), (4, 2))
    miss_send_length: int = at((2, 2), (6, 2))
    device_id: int = at(None, (0, 4))


@dataclasses.dataclass(frozen=True)
class GetConfigReply(_Config):
    """Configuration of the switch."""

    NAME, TYPE = "GET_CONFIG_REPLY", 8


@dataclasses.dataclass(frozen=True)
class SetConfig(_Config):
    """Changes the configuration of the switch."""

    NAME, TYPE = "SET_CONFIG", 9


@dataclasses.dataclass(frozen=True)
class PacketIn(Message):
    """A packet from the switch."""

    NAME, TYPE, SIZES, TAIL_MAX = "PACKET_IN", 10, (24, 24), PACKET_BYTES_MAX

    buffer_id: int = at((0, 4), (0, 4), default=NO_BUFFER)
    total_length: int = at((4, 2), (4, 2))
    reason: int = at((6, 1), (6, 1), Choice(PacketInReason, "packet-in reason"))
    table: int = at((7, 1), (7, 1))
    cookie: int = at((8, 8), (8, 8))
    device_id: int = at((16, 4), (16, 4))
    slot: int = at(None, (20, 2))
    port: int = at(None, (22, 2))
    data: bytes = b""

    def check(self, dialect: Dialect) -> None:
        """Raises Fault if there are more bytes than the packet has."""
        if len(self.data) > self.total_length:
            raise Fault(4, f"the packet has {len(self.data)} bytes, more than its length of {self.total_length} bytes")


@dataclasses.dataclass(frozen=True)
class Port(Structure):
    """Description of a port. Configuration, state and features have the bits of OpenFlow 1.3."""

    NAME, SIZES = "port", (120, 120)

    number: int = at((0, 4), (2, 2))
    device_id: int = at((4, 4), (4, 4))
    slot: int = at(None, (0, 2))
    mac: bytes = at((8, 6), (8, 6), RAW, bytes(6))
    name: str = at((16, 64), (16, 64), TEXT, "")
    config: int = at((80, 4), (80, 4))
    state: int = at((84, 4), (84, 4))
    current: int = at((88, 4), (88, 4))
    advertised: int = at((92, 4), (92, 4))
    supported: int = at((96, 4), (96, 4))
    peer: int = at((100, 4), (100, 4))
    speed_kbps: int = at((104, 4), (104, 4))
    max_speed_kbps: int = at((108, 4), (108, 4))
    forwarding: int = at((112, 1), (112, 1), Choice(Flag, "forwarding flag"))


@dataclasses.dataclass(frozen=True)
class _PortMessage(Message):
    SIZES = (128, 128)

    port: Port = at((8, 120), (8, 120), Nested(Port), Port)
    reason: int = at((0, 1), (0, 1), Choice(PortReason, "port-status reason"))


@dataclasses.dataclass(frozen=True)
class PortStatus(_PortMessage):
    """A port was added, removed or changed."""

    NAME, TYPE = "PORT_STATUS", 12


@dataclasses.dataclass(frozen=True)
class PortMod(_PortMessage):
    """Changes a port. Only the flag `forwarding` has an effect."""

    NAME, TYPE = "PORT_MOD", 17


@dataclasses.dataclass(frozen=True)
class TableResource(Structure):
    """Resources of the tables of one type."""

    NAME, SIZES = "resources of a table type", (16, 16)

    table_type: int = at((4, 1), (4, 1), _TABLE_TYPE)
    tables: int = at((5, 1), (5, 1))
    key_bits: int = at((6, 2), (6, 2))
    entries: int = at((8, 4), (8, 4))
    device_id: int = at((0, 4), (0, 4))


@dataclasses.dataclass(frozen=True)
class ResourceReport(Message):
    """Resources of the switch."""

    NAME, TYPE, SIZES = "RESOURCE_REPORT", 13, (80, 80)

    resource: int = at((0, 1), (0, 1))
    extensions: int = at((1, 1), (1, 1))
    slot: int = at(None, (2, 2))
    counters: int = at((4, 4), (4, 4))
    meters: int = at((8, 4), (8, 4))
    groups: int = at((12, 4), (12, 4))
    tables: tuple[TableResource, ...] = slots(
        (16, 64), (16, 64), Listed(Nested(TableResource), (16, 16), None, "table types", fixed=4)
    )

    @property
    def has_low_latency(self) -> bool:
        """Whether the switch understands the low-latency flag."""
        return bool(self.extensions & LOW_LATENCY_EXTENSION)


@dataclasses.dataclass(frozen=True)
class PacketOut(Message):
    """A packet that the switch handles by the given actions."""

    NAME, TYPE, SIZES, TAIL_MAX = "PACKET_OUT", 14, (None, 304), PACKET_BYTES_MAX

    buffer_id: int = at(None, (0, 4), default=NO_BUFFER)
    in_port: int = at(None, (4, 4))
    length: int = at(None, (12, 4))
    actions: tuple[Action, ...] = slots(
        None, (16, 288), Listed(ACTION, (SLOT_BYTES, SLOT_BYTES), (None, (8, 1)), "actions")
    )
    data: bytes = b""

    def check(self, dialect: Dialect) -> None:
        """Raises Fault if the packet is shorter than stated."""
        if len(self.data) < self.length:
            raise Fault(12, f"the packet has {self.length} bytes, but only {len(self.data)} follow")


@dataclasses.dataclass(frozen=True)
class FlowMod(Message):
    """Adds, changes or deletes an entry, which is named by table type, table and index."""

    NAME, TYPE, SIZES = "FLOW_MOD", 15, (1192, 2184)

    command: int = at((0, 1), (0, 1), Choice(FlowCommand, "flow command", new=(5, 6)))
    table_type: int = at((25, 1), (25, 1), _TABLE_TYPE)
    table: int = at((24, 1), (24, 1))
    index: int = at((32, 4), (32, 4))
    priority: int = at((30, 2), (30, 2))
    matches: tuple[Match, ...] = slots(
        (40, 320), (40, 320), Listed(Nested(Match), (40, 40), ((1, 1), (1, 1)), "conditions")
    )
    instructions: tuple[Instruction, ...] = slots(
        (360, 832), (360, 1824), Listed(INSTRUCTION, INSTRUCTION_STRIDES, ((2, 1), (2, 1)), "instructions")
    )
    low_latency: int = at((3, 1), (3, 1), Choice(LowLatency, "low-latency flag"))
    counter: int = at((4, 4), (4, 4))
    cookie: int = at((8, 8), (8, 8))
    cookie_mask: int = at((16, 8), (16, 8))
    idle_timeout_s: int = at((26, 2), (26, 2))
    hard_timeout_s: int = at((28, 2), (28, 2))
    slot: int = at(None, (36, 2))


_GROUP_COMMAND, _GROUP_TYPE = Choice(ModCommand, "group command"), Choice(GroupType, "group type")


@dataclasses.dataclass(frozen=True)
class GroupMod(Message):
    """Adds, changes or deletes a group with one list of actions."""

    NAME, TYPE, SIZES = "GROUP_MOD", 16, (208, 208)

    command: int = at((0, 1), (0, 1), _GROUP_COMMAND)
    group_type: int = at((1, 1), (1, 1), _GROUP_TYPE)
    group: int = at((4, 4), (4, 4))
    actions: tuple[Action, ...] = slots(
        (16, 192), (16, 192), Listed(ACTION, (SLOT_BYTES, SLOT_BYTES), ((2, 1), (2, 1)), "actions")
    )
    counter: int = at((8, 4), (8, 4))
    slot: int = at(None, (12, 2))


@dataclasses.dataclass(frozen=True)
class Bucket(Structure):
    """Bucket of a group."""

    NAME, SIZES = "bucket", (None, 304)

    actions: tuple[Action, ...] = slots(
        None, (16, 288), Listed(ACTION, (SLOT_BYTES, SLOT_BYTES), (None, (0, 2)), "actions")
    )
    weight: int = at(None, (2, 2))
    watch_slot: int = at(None, (4, 2))
    watch_port: int = at(None, (6, 1))
    watch_group: int = at(None, (8, 4))


@dataclasses.dataclass(frozen=True)
class BucketGroupMod(Message):
    """Adds, changes or deletes a group with buckets, a variant of dialect 1.4.0.015."""

    NAME, TYPE, SIZES = "GROUP_MOD with buckets", 16, (None, 1840)

    command: int = at(None, (0, 1), _GROUP_COMMAND)
    group_type: int = at(None, (1, 1), _GROUP_TYPE)
    group: int = at(None, (4, 4))
    buckets: tuple[Bucket, ...] = slots(
        None, (16, 1824), Listed(Nested(Bucket), (304, 304), (None, (2, 1)), "buckets")
    )
    counter: int = at(None, (8, 4))
    slot: int = at(None, (12, 2))


@dataclasses.dataclass(frozen=True)
class TableMod(Message):
    """Adds or deletes a table, which is named by its type and its number within the type."""

    NAME, TYPE, SIZES = "TABLE_MOD", 18, (144, 144)

    command: int = at((0, 1), (0, 1), Choice(TableCommand, "table command", new=(3, 4)))
    table_type: int = at((2, 1), (2, 1), _TABLE_TYPE)
    table: int = at((1, 1), (1, 1))
    entries: int = at((4, 4), (4, 4))
    key_bits: int = at((8, 2), (8, 2))
    name: str = at((16, 64), (16, 64), TEXT, "")
    fields: tuple[Field, ...] = slots(
        (80, 64), (80, 64), Listed(Nested(Field), (8, 8), ((3, 1), (3, 1)), "fields of a key")
    )
    slot: int = at(None, (10, 2))


@dataclasses.dataclass(frozen=True)
class MeterMod(Message):
    """Adds, changes or deletes a meter."""

    NAME, TYPE, SIZES = "METER_MOD", 30, (8, 16)

    command: int = at((0, 1), (0, 1), Choice(ModCommand, "meter command"))
    meter: int = at((4, 4), (4, 4))
    rate_kbps: int = at((2, 2), (8, 4))
    slot: int = at(None, (2, 2))


@dataclasses.dataclass(frozen=True)
class _CounterMessage(Message):
    SIZES = (16, 24)

    command: int = at((0, 1), (0, 1), Choice(CounterCommand, "counter command"))
    counter: int = at((4, 4), (4, 4))
    packets: int = at((8, 8), (8, 8))
    bytes: int = at(None, (16, 8))
    slot: int = at(None, (2, 2))


@dataclasses.dataclass(frozen=True)
class CounterMod(_CounterMessage):
    """Adds, deletes or clears a counter."""

    NAME, TYPE = "COUNTER_MOD", 31


@dataclasses.dataclass(frozen=True)
class CounterRequest(_CounterMessage):
    """Requests a counter."""

    NAME, TYPE = "COUNTER_REQUEST", 32


@dataclasses.dataclass(frozen=True)
class CounterReply(_CounterMessage):
    """The requested counter."""

    NAME, TYPE = "COUNTER_REPLY", 33


@dataclasses.dataclass(frozen=True)
class QueryAllRequest(Message):
    """Requests all tables and entries. Slot 0xffff stands for all slots."""

    NAME, TYPE, SIZES = "QUERYALL_REQUEST", 34, (None, 8)

    slot: int = at(None, (0, 2))


@dataclasses.dataclass(frozen=True)
class QueryAllFin(Message):
    """End of the answers to a QUERYALL_REQUEST."""

    NAME, TYPE, SIZES = "QUERYALL_FIN", 35, (None, 0)


@dataclasses.dataclass(frozen=True)
class SlotConfig(Message):
    """Enables or disables a slot."""

    NAME, TYPE, SIZES = "SLOT_CONFIG", 101, (None, 8)

    slot: int = at(None, (0, 2))
    forwarding: int = at(None, (2, 1), Choice(Flag, "forwarding flag of a slot"))


@dataclasses.dataclass(frozen=True)
class SlotStatus(Message):
    """State of a slot."""

    NAME, TYPE, SIZES = "SLOT_STATUS", 102, (None, 8)

    slot: int = at(None, (0, 2))
    state: int = at(None, (2, 1), Choice(Flag, "slot state"))
    resend: int = at(None, (3, 1), Choice(Flag, "resend flag"))


MESSAGES: tuple[type[Message], ...] = (
    Hello,
    Error,
    EchoRequest,
    EchoReply,
    FeaturesRequest,
    FeaturesReply,
    GetConfigRequest,
    GetConfigReply,
    SetConfig,
    PacketIn,
    PortStatus,
    ResourceReport,
    PacketOut,
    FlowMod,
    GroupMod,
    BucketGroupMod,
    PortMod,
    TableMod,
    MeterMod,
    CounterMod,
    CounterRequest,
    CounterReply,
    QueryAllRequest,
    QueryAllFin,
    SlotConfig,
    SlotStatus,
)
"""All messages. Two messages with the same type differ in size."""
