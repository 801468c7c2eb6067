# SPDX-License-Identifier: Apache-2.0
"""A library for controllers of POF (docs/pof.md). It needs only Python's standard library.

::

    import asyncio
    from shunt_controller import pof

    class Hub(pof.Application):
        async def connected(self, switch):
            program = pof.Program(switch.target)
            first = program.table(pof.TableRef(pof.TableType.MM, 0), "first", [pof.metadata(16, 8)])
            for port, other in ((1, 2), (2, 1)):
                match = pof.Match.exact(pof.metadata(16, 8), port)
                program.add(first, [match], pof.apply([program.output(other)], switch.target), low_latency=True)
            await switch.install(program)

    async def main():
        async with pof.Controller(Hub()) as controller:
            await controller.forever()

    asyncio.run(main())
"""

from shunt_controller.pof.actions import (
    Action,
    AddField,
    CalculateChecksum,
    Counter,
    DeleteField,
    Drop,
    Group,
    Location,
    ModifyField,
    Output,
    SetField,
    SetFieldFromMetadata,
    ToController,
)
from shunt_controller.pof.controller import Application, Controller, Switch
from shunt_controller.pof.errors import BusyError, ClosedError, DecodeError, EncodeError, PofError, RefusedError, error_name
from shunt_controller.pof.instructions import (
    ApplyActions,
    CalculateField,
    Calculation,
    ConditionalJump,
    Direction,
    GotoDirectTable,
    GotoTable,
    Instruction,
    Meter,
    MovePacketOffset,
    WriteMetadata,
    WriteMetadataFromPacket,
)
from shunt_controller.pof.layout import Dialect
from shunt_controller.pof.program import Entry, Layer, Program, ProgramError, Table, TableRef, Target, apply
from shunt_controller.pof.values import METADATA_USER, Field, Match, TableType, field, metadata
from shunt_controller.pof.wire import Splitter, decode, encode

__all__ = [
    "METADATA_USER",
    "Action",
    "AddField",
    "Application",
    "ApplyActions",
    "BusyError",
    "CalculateChecksum",
    "CalculateField",
    "Calculation",
    "ClosedError",
    "ConditionalJump",
    "Controller",
    "Counter",
    "DecodeError",
    "DeleteField",
    "Dialect",
    "Direction",
    "Drop",
    "EncodeError",
    "Entry",
    "Field",
    "GotoDirectTable",
    "GotoTable",
    "Group",
    "Instruction",
    "Layer",
    "Location",
    "Match",
    "Meter",
    "ModifyField",
    "MovePacketOffset",
    "Output",
    "PofError",
    "Program",
    "ProgramError",
    "RefusedError",
    "SetField",
    "SetFieldFromMetadata",
    "Splitter",
    "Switch",
    "Table",
    "TableRef",
    "TableType",
    "Target",
    "ToController",
    "WriteMetadata",
    "WriteMetadataFromPacket",
    "apply",
    "decode",
    "encode",
    "error_name",
    "field",
    "metadata",
]
