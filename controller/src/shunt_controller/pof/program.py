# SPDX-License-Identifier: Apache-2.0
"""Programs: tables and entries, checked before they are sent.

TABLE_MOD and FLOW_MOD name a table by its type and its number within the type. GOTO_TABLE,
GOTO_DIRECT_TABLE and PACKET_IN have a global number instead: the number within the type, plus the numbers of
tables of all lower types (order MM, LPM, EM, DT), which RESOURCE_REPORT states. With 10, 10, 5 and 20 tables,
LPM table 0 has the global number 10, and DT table 0 has 25. A goto may only lead to a higher global number.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from shunt_controller.pof.actions import Action, Output
from shunt_controller.pof.errors import PofError
from shunt_controller.pof.instructions import (
    ApplyActions,
    Direction,
    GotoDirectTable,
    GotoTable,
    Instruction,
    MovePacketOffset,
)
from shunt_controller.pof.layout import Dialect
from shunt_controller.pof.messages import FlowCommand, FlowMod, LowLatency, Message, ResourceReport, TableCommand, TableMod
from shunt_controller.pof.values import Field, Match, TableType


class ProgramError(PofError):
    """A program that no switch can run, or not this one."""


class TableRef(NamedTuple):
    """A table: its type, and its number within the type."""

    type: TableType
    number: int

    def __str__(self) -> str:
        return f"{self.type.name} {self.number}"


@dataclasses.dataclass(frozen=True)
class Target:
    """What a program must know of the switch."""

    dialect: Dialect = Dialect.V1_4
    tables: tuple[int, ...] = (10, 10, 5, 20)
    """Numbers of tables of each type."""
    slot: int = 0
    low_latency: bool = True
    """Whether the switch understands the low-latency flag."""
    key_bits: tuple[int, ...] = (1024, 1024, 1024, 1024)
    """Maximum length of a key of each type."""

    @classmethod
    def of(cls, report: ResourceReport, dialect: Dialect) -> "Target":
        """Returns what a RESOURCE_REPORT states."""
        rows = sorted(report.tables, key=lambda row: row.table_type)
        if [row.table_type for row in rows] != list(TableType):
            raise ProgramError("RESOURCE_REPORT does not have one row for each table type")
        counts, bits = tuple(row.tables for row in rows), tuple(row.key_bits for row in rows)
        return cls(dialect, counts, report.slot, report.has_low_latency, bits)

    def number(self, table: TableRef) -> int:
        """Returns the global number of a table."""
        if not 0 <= table.number < self.tables[table.type]:
            raise ProgramError(f"the switch has {self.tables[table.type]} {table.type.name} tables, so {table} is missing")
        return sum(self.tables[: table.type]) + table.number

    def table(self, number: int) -> TableRef:
        """Returns the table with a global number."""
        for kind in TableType:
            if number < self.tables[kind]:
                return TableRef(kind, number)
            number -= self.tables[kind]
        raise ProgramError(f"the switch has {sum(self.tables)} tables")

    def port(self, number: int) -> int:
        """Returns a port as OUTPUT names it: in dialect 1.4.0.015, the slot is in the high 16 bits."""
        if not 0 < number < 1 << 16:
            raise ProgramError(f"port {number}; ports have numbers from 1 to 65535")
        return self.slot << 16 | number if self.dialect is Dialect.V1_4 else number


@dataclasses.dataclass(frozen=True)
class Table:
    """A table."""

    ref: TableRef
    name: str
    fields: tuple[Field, ...]
    size: int

    def message(self, target: Target, command: TableCommand = TableCommand.ADD) -> TableMod:
        """Returns the TABLE_MOD with a command for this table."""
        bits = sum(field.length for field in self.fields)
        return TableMod(
            command, self.ref.type, self.ref.number, self.size, bits, self.name, self.fields, target_slot(target)
        )


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry. Its table and its index name it."""

    table: TableRef
    index: int
    matches: tuple[Match, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    priority: int = 0
    low_latency: bool | None = None
    """None: the switch decides by its configuration."""
    counter: int = 0
    cookie: int = 0
    idle_timeout_s: int = 0
    hard_timeout_s: int = 0

    def message(self, target: Target, command: FlowCommand = FlowCommand.ADD) -> FlowMod:
        """Returns the FLOW_MOD with a command for this entry. The low-latency flag is only used if the switch
        has announced it."""
        flags = {None: LowLatency.UNSTATED, True: LowLatency.LOW_LATENCY, False: LowLatency.NORMAL}
        return FlowMod(
            command=command,
            table_type=self.table.type,
            table=self.table.number,
            index=self.index,
            priority=self.priority,
            matches=self.matches,
            instructions=self.instructions,
            low_latency=flags[self.low_latency] if target.low_latency else LowLatency.UNSTATED,
            counter=self.counter,
            cookie=self.cookie,
            idle_timeout_s=self.idle_timeout_s,
            hard_timeout_s=self.hard_timeout_s,
            slot=target_slot(target),
        )


def target_slot(target: Target) -> int:
    """Returns the slot in messages. Dialect 1.2 has no slots."""
    return target.slot if target.dialect is Dialect.V1_4 else 0


class Program:
    """Tables and entries for one switch. Each entry is checked when it is added."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.tables: list[Table] = []
        self.entries: list[Entry] = []
        self._next: dict[TableRef, int] = {}
        self._keys: set[tuple[TableRef, int, tuple[tuple[int, int], ...]]] = set()

    def table(self, ref: TableRef, name: str, fields: Sequence[Field], size: int = 1000) -> Table:
        """Adds a table. A linear table has no fields."""
        number, bits = self.target.number(ref), sum(field.length for field in fields)
        if any(table.ref == ref for table in self.tables):
            raise ProgramError(f"two tables have the number {ref} ({number})")
        if bits > self.target.key_bits[ref.type]:
            most = self.target.key_bits[ref.type]
            raise ProgramError(f"table {name} ({ref}) has a key of {bits} bits; the switch supports {most}")
        table = Table(ref, name, tuple(fields), size)
        self.tables.append(table)
        return table

    def add(
        self,
        table: Table,
        matches: Sequence[Match],
        instructions: Sequence[Instruction],
        *,
        priority: int = 0,
        low_latency: bool | None = None,
        counter: int = 0,
    ) -> Entry:
        """Adds an entry with the next index of its table."""
        index = self._next.get(table.ref, 0)
        if index >= table.size:
            raise ProgramError(f"table {table.name} ({table.ref}) has space for {table.size} entries")
        if tuple(match.field for match in matches) != table.fields:
            raise ProgramError(f"an entry of table {table.name} ({table.ref}) has other fields than the table")
        self._check_gotos(table, instructions)
        key = (table.ref, priority, tuple((match.value & match.mask, match.mask) for match in matches))
        if matches and key in self._keys:
            raise ProgramError(f"two entries of table {table.name} ({table.ref}) have the same match and priority {priority}")
        self._keys.add(key)
        entry = Entry(table.ref, index, tuple(matches), tuple(instructions), priority, low_latency, counter)
        self._next[table.ref] = index + 1
        self.entries.append(entry)
        return entry

    def _check_gotos(self, table: Table, instructions: Sequence[Instruction]) -> None:
        known = {self.target.number(other.ref) for other in self.tables}
        for goto in instructions:
            if not isinstance(goto, GotoTable | GotoDirectTable):
                continue
            if goto.table <= self.target.number(table.ref):
                raise ProgramError(f"table {table.ref} has a goto to {self.target.table(goto.table)}, which is not after it")
            if goto.table not in known:
                raise ProgramError(f"table {table.ref} has a goto to {self.target.table(goto.table)}, which is missing")

    def goto(self, table: Table, packet_offset: int = 0) -> GotoTable:
        """Returns the instruction that continues in a table after moving the base offset."""
        return GotoTable(self.target.number(table.ref), packet_offset, table.fields)

    def goto_direct(self, table: Table, index: int, packet_offset: int = 0) -> GotoDirectTable:
        """Returns the instruction that continues with an entry of a linear table."""
        return GotoDirectTable(self.target.number(table.ref), index, packet_offset)

    def output(self, port: int) -> Output:
        """Returns the action that sends the packet to a port."""
        return Output(self.target.port(port))

    def messages(self) -> list[Message]:
        """Returns the messages that install the program: all tables, then the entries. The tables at the end
        of the program get their entries first, so that no packet enters a part without entries."""
        order = sorted(self.entries, key=lambda entry: (-self.target.number(entry.table), entry.index))
        made: list[Message] = [table.message(self.target) for table in self.tables]
        return made + [entry.message(self.target) for entry in order]

    def deletions(self) -> list[Message]:
        """Returns the messages that delete the program: the entries, those of the first tables first, then all
        tables."""
        order = sorted(self.entries, key=lambda entry: (self.target.number(entry.table), entry.index))
        made: list[Message] = [entry.message(self.target, FlowCommand.DELETE) for entry in order]
        return made + [table.message(self.target, TableCommand.DELETE) for table in self.tables]


class Layer:
    """Header at a constant offset in the frame, which an entry moves the base offset to, if the dialect can
    also move it back (1.4.0.015). In dialect 1.2, the base offset stays at the first byte of the frame."""

    def __init__(self, target: Target, offset_bytes: int) -> None:
        self.base = offset_bytes if target.dialect is Dialect.V1_4 else 0
        """Packet offset of the goto that leads to this layer from the first byte of the frame."""
        self._shift = 8 * (offset_bytes - self.base)

    def field(self, offset: int, length: int) -> Field:
        """Returns a field of the header. Offset and length are in bits."""
        return Field(0, offset + self._shift, length)

    def bit(self, offset: int) -> int:
        """Returns the offset of a bit of the header from the base offset."""
        return offset + self._shift

    def back(self) -> tuple[Instruction, ...]:
        """Returns the instructions that move the base offset back to the first byte of the frame."""
        return (MovePacketOffset(Direction.BACKWARD, self.base),) if self.base else ()


def apply(actions: Sequence[Action], target: Target) -> tuple[ApplyActions, ...]:
    """Returns as few instructions as possible that run the actions: one has space for 4 actions in dialect
    1.2, and for 6 in 1.4.0.015."""
    space = 6 if target.dialect is Dialect.V1_4 else 4
    return tuple(ApplyActions(tuple(actions[at : at + space])) for at in range(0, len(actions), space))
