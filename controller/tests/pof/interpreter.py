# SPDX-License-Identifier: Apache-2.0
"""A plain interpreter of POF programs. It takes the bytes of TABLE_MOD and FLOW_MOD messages, and runs
packets through them as the public switches do.

A packet starts in table MM 0 with the base offset 0. The fields of an entry are compared one after another;
the entry with the highest priority wins, of equal ones the one with the lower index. A packet that ends
before a field does not match, unless the mask is 0. Without a match, the packet is dropped. An entry's
instructions run in order. Offsets in the packet count from the base offset.

Unlike Shunt, no action adjusts a checksum, except CALCULATE_CHECKSUM. Shunt pads frames that DELETE_FIELD makes
shorter than 60 bytes, the minimum of Ethernet; `pad_bytes` does the same.
"""

import dataclasses
from collections.abc import Iterable

from shunt_controller.pof import Dialect, actions, decode, instructions
from shunt_controller.pof.instructions import Calculation
from shunt_controller.pof.messages import FlowCommand, FlowMod, LowLatency, TableCommand, TableMod
from shunt_controller.pof.values import METADATA, Field, TableType

METADATA_BITS = 1024
TABLES = (10, 10, 5, 20)
Key = tuple[int, int]


class InvalidError(Exception):
    """A message or packet that a switch refuses."""


def need(condition: bool, problem: str) -> None:
    """Raises InvalidError unless the condition holds."""
    if not condition:
        raise InvalidError(problem)


class Bits:
    """Bits that can be read and written at any offset."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def has(self, offset: int, length: int) -> bool:
        """Returns whether the bits exist."""
        return 0 <= offset and offset + length <= 8 * len(self.data)

    def read(self, offset: int, length: int) -> int:
        """Returns bits as a number."""
        need(self.has(offset, length), f"{length} bits at {offset} are outside of {len(self.data)} bytes")
        return int.from_bytes(self.data) >> 8 * len(self.data) - offset - length & (1 << length) - 1

    def write(self, offset: int, length: int, value: int) -> None:
        """Replaces bits by a number."""
        need(self.has(offset, length), f"{length} bits at {offset} are outside of {len(self.data)} bytes")
        shift = 8 * len(self.data) - offset - length
        kept = int.from_bytes(self.data) & ~((1 << length) - 1 << shift)
        self.data = bytearray((kept | value << shift).to_bytes(len(self.data)))


@dataclasses.dataclass
class Packet:
    """A packet in the switch."""

    bits: Bits
    metadata: Bits
    base: int = 0
    """Base offset in bytes."""

    def part(self, field: Field) -> tuple[Bits, int]:
        """Returns the bytes that contain a field, and its offset in them in bits."""
        if field.id == METADATA:
            return self.metadata, field.offset
        return self.bits, 8 * self.base + field.offset

    def read(self, field: Field) -> int:
        """Returns the value of a field."""
        bits, offset = self.part(field)
        return bits.read(offset, field.length)

    def write(self, field: Field, value: int) -> None:
        """Writes the value of a field."""
        bits, offset = self.part(field)
        bits.write(offset, field.length, value & (1 << field.length) - 1)

    def value(self, operand: int | Field) -> int:
        """Returns the number that an operand stands for."""
        return self.read(operand) if isinstance(operand, Field) else operand


@dataclasses.dataclass
class Outcome:
    """What happened to a packet."""

    sent: list[tuple[int, bytes]] = dataclasses.field(default_factory=list)
    """Ports and packets."""
    to_controller: list[tuple[int, bytes]] = dataclasses.field(default_factory=list)
    """Reasons and packets."""
    hits: list[FlowMod] = dataclasses.field(default_factory=list)
    dropped: str = ""

    @property
    def low_latency(self) -> bool:
        """Whether all entries that the packet hit are low-latency entries."""
        return bool(self.hits) and all(hit.low_latency == LowLatency.LOW_LATENCY for hit in self.hits)


class Switch:
    """Tables and entries."""

    def __init__(
        self, dialect: Dialect = Dialect.V1_4, tables: tuple[int, ...] = TABLES, pad_bytes: int = 0
    ) -> None:
        self.dialect = dialect
        self.pad_bytes = pad_bytes
        self.counts = tables
        self.tables: dict[Key, TableMod] = {}
        self.entries: dict[Key, dict[int, FlowMod]] = {}
        self.counters: dict[int, int] = {}

    def number(self, key: Key) -> int:
        """Returns the global number of a table."""
        return sum(self.counts[: key[0]]) + key[1]

    def key(self, number: int) -> Key:
        """Returns type and number of a table."""
        for kind, count in enumerate(self.counts):
            if number < count:
                return kind, number
            number -= count
        raise InvalidError("no such table")

    def receive(self, data: bytes) -> None:
        """Handles a message of the controller."""
        message, _ = decode(data, self.dialect)
        match message:
            case TableMod():
                self._table_mod(message)
            case FlowMod():
                self._flow_mod(message)
            case _:
                raise InvalidError(f"unexpected {message.NAME}")

    def receive_all(self, listed: Iterable[bytes]) -> None:
        """Handles messages of the controller."""
        for data in listed:
            self.receive(data)

    def _table_mod(self, message: TableMod) -> None:
        key = (int(message.table_type), message.table)
        if message.command == TableCommand.DELETE:
            need(key in self.tables and not self.entries[key], "the table is missing or not empty")
            del self.tables[key], self.entries[key]
            return
        need(message.command == TableCommand.ADD, "not an ADD")
        need(key not in self.tables, "the table exists")
        need(message.table < self.counts[message.table_type], "no such table")
        need(message.key_bits == sum(field.length for field in message.fields), "wrong length of the key")
        need(message.entries > 0, "a table without space")
        need((message.table_type == TableType.DT) == (not message.fields), "only linear tables have no fields")
        self.tables[key], self.entries[key] = message, {}

    def _flow_mod(self, message: FlowMod) -> None:
        key = (int(message.table_type), message.table)
        need(key in self.tables, "the table is missing")
        entries, table = self.entries[key], self.tables[key]
        if message.command == FlowCommand.DELETE:
            need(message.index in entries, "the entry is missing")
            del entries[message.index]
            return
        need(message.index < table.entries, "the index is beyond the size of the table")
        need((message.index in entries) == (message.command == FlowCommand.MODIFY), "wrong command for this index")
        need(tuple(match.field for match in message.matches) == table.fields, "other fields than the table's")
        for match in message.matches:
            need(match.value & ~match.mask == 0, "value outside of the mask")
        self._check_masks(message)
        self._check_instructions(key, message)
        same = [(other.priority, other.matches) for other in entries.values() if other.index != message.index]
        need(table.table_type == TableType.DT or (message.priority, message.matches) not in same, "two equal entries")
        entries[message.index] = message

    def _check_masks(self, message: FlowMod) -> None:
        whole = "".join(f"{match.mask:0{match.field.length}b}" for match in message.matches)
        if message.table_type == TableType.EM:
            need("0" not in whole, "a mask in an exact table")
        if message.table_type == TableType.LPM:
            need("01" not in whole, "not a prefix")
            need(message.priority == whole.count("1"), "the priority of a prefix is its length")

    def _check_instructions(self, key: Key, message: FlowMod) -> None:
        ends = False
        for instruction in message.instructions:
            need(not ends, "an instruction after the end")
            match instruction:
                case instructions.GotoTable():
                    need(instruction.table > self.number(key), "a goto to an earlier table")
                    target = self.tables.get(self.key(instruction.table))
                    need(target is not None, "a goto to a missing table")
                    need(target is not None and instruction.fields == target.fields, "a goto with other fields")
                    ends = True
                case instructions.GotoDirectTable():
                    need(instruction.table > self.number(key), "a goto to an earlier table")
                    need(self.key(instruction.table)[0] == TableType.DT, "a direct goto to another type")
                    ends = True
                case instructions.ApplyActions():
                    for action in instruction.actions:
                        need(not ends, "an action after DROP")
                        self._check_action(action)
                        ends = isinstance(action, actions.Drop)

    def _check_action(self, action: actions.Action) -> None:
        match action:
            case actions.AddField():
                need(action.offset % 8 == 0 and action.length % 8 == 0, "an insert of parts of bytes")
                need(0 < action.length <= 128, "an insert of 1 to 16 bytes")
            case actions.DeleteField():
                need(isinstance(action.length, int), "a length from a field")
                need(action.offset % 8 == 0 and int(action.length) % 8 == 0, "a removal of parts of bytes")  # type: ignore[call-overload]
            case actions.Output():
                need((action.packet_offset, action.metadata_length) == (0, 0), "an output with offsets")
            case actions.ModifyField():
                need(1 <= action.field.length <= 32, "a change of 1 to 32 bits")

    # Packets.

    def run(self, data: bytes, port: int) -> Outcome:
        """Runs a packet through the tables."""
        metadata = Bits(bytes(METADATA_BITS // 8))
        metadata.write(0, 16, len(data))
        metadata.write(16, 8, port)
        packet, outcome = Packet(Bits(data), metadata), Outcome()
        key, index = (int(TableType.MM), 0), None
        while key is not None:
            entry = self._lookup(key, index, packet)
            if entry is None:
                outcome.dropped = f"no entry in table {TableType(key[0]).name} {key[1]}"
                break
            outcome.hits.append(entry)
            self.counters[entry.counter] = self.counters.get(entry.counter, 0) + 1
            try:
                key, index = self._execute(entry, packet, outcome)
            except InvalidError as error:
                outcome.dropped = str(error)
                break
        return outcome

    def _lookup(self, key: Key, index: int | None, packet: Packet) -> FlowMod | None:
        entries = self.entries.get(key, {})
        if index is not None:
            return entries.get(index)
        found = None
        for number in sorted(entries):
            entry = entries[number]
            if self._matches(entry, packet) and (found is None or entry.priority > found.priority):
                found = entry
        return found

    def _matches(self, entry: FlowMod, packet: Packet) -> bool:
        for match in entry.matches:
            if match.mask == 0:
                continue
            bits, offset = packet.part(match.field)
            if not bits.has(offset, match.field.length):
                return False
            if bits.read(offset, match.field.length) & match.mask != match.value & match.mask:
                return False
        return True

    def _execute(self, entry: FlowMod, packet: Packet, outcome: Outcome) -> tuple[Key | None, int | None]:
        """Runs an entry. Returns the next table, and the index of the entry there if it is given."""
        for instruction in entry.instructions:
            match instruction:
                case instructions.GotoTable():
                    self._move(packet, instruction.packet_offset)
                    return self.key(instruction.table), None
                case instructions.GotoDirectTable():
                    self._move(packet, instruction.packet_offset)
                    return self.key(instruction.table), packet.value(instruction.index)
                case instructions.WriteMetadata():
                    packet.metadata.write(instruction.offset, instruction.length, instruction.value)
                case instructions.WriteMetadataFromPacket():
                    value = packet.read(Field(0, instruction.packet_offset, instruction.length))
                    packet.metadata.write(instruction.metadata_offset, instruction.length, value)
                case instructions.MovePacketOffset():
                    sign = 1 if instruction.direction == instructions.Direction.FORWARD else -1
                    self._move(packet, sign * packet.value(instruction.bytes))
                case instructions.CalculateField():
                    self._calculate(instruction, packet)
                case instructions.ApplyActions():
                    for action in instruction.actions:
                        if self._act(action, packet, outcome):
                            return None, None
                case instructions.Meter():
                    pass
                case _:
                    raise InvalidError(f"{instruction.NAME} is not supported")
        return None, None

    def _move(self, packet: Packet, count: int) -> None:
        packet.base += count
        need(0 <= packet.base <= len(packet.bits.data), "the base offset is outside of the packet")

    def _calculate(self, instruction: instructions.CalculateField, packet: Packet) -> None:
        old, operand = packet.read(instruction.field), packet.value(instruction.operand)
        results = {Calculation.ADD: old + operand, Calculation.SUBTRACT: old - operand, Calculation.AND: old & operand}
        results |= {Calculation.OR: old | operand, Calculation.XOR: old ^ operand}
        packet.write(instruction.field, results[Calculation(instruction.calculation)])

    def _act(self, action: actions.Action, packet: Packet, outcome: Outcome) -> bool:
        """Runs an action. Returns whether the packet ends."""
        data = packet.bits.data
        match action:
            case actions.Output():
                outcome.sent.append((packet.value(action.port), bytes(data)))
            case actions.SetField():
                packet.write(action.setting.field, action.setting.value & action.setting.mask)
            case actions.SetFieldFromMetadata():
                packet.write(action.field, packet.metadata.read(action.metadata_offset, action.field.length))
            case actions.ModifyField():
                packet.write(action.field, packet.read(action.field) + action.increment)
            case actions.AddField():
                start = packet.base + action.offset // 8
                need(start <= len(data), "an insert beyond the end of the packet")
                data[start:start] = action.value.to_bytes(action.length // 8)
            case actions.DeleteField():
                start, count = packet.base + action.offset // 8, packet.value(action.length) // 8
                need(start + count <= len(data), "a removal beyond the end of the packet")
                del data[start : start + count]
                data.extend(bytes(max(self.pad_bytes - len(data), 0)))
            case actions.CalculateChecksum():
                self._checksum(action, packet)
            case actions.Drop():
                outcome.dropped = "DROP"
                return True
            case actions.ToController():
                outcome.to_controller.append((action.reason, bytes(data)))
            case actions.Counter():
                self.counters[action.counter] = self.counters.get(action.counter, 0) + 1
            case _:
                raise InvalidError(f"{action.NAME} is not supported")
        return False

    def _checksum(self, action: actions.CalculateChecksum, packet: Packet) -> None:
        field = Field(0, action.checksum_offset, action.checksum_length)
        packet.write(field, 0)
        total, word = 0, action.checksum_length
        covered = packet.read(Field(0, action.sum_offset, action.sum_length)).to_bytes(action.sum_length // 8)
        for at in range(0, len(covered), word // 8):
            total += int.from_bytes(covered[at : at + word // 8].ljust(word // 8, b"\0"))
        while total >> word:
            total = (total & (1 << word) - 1) + (total >> word)
        packet.write(field, ~total)
