// SPDX-License-Identifier: Apache-2.0
//! RESOURCE_REPORT, TABLE_MOD and the head and matches of FLOW_MOD.

use super::{Cell, NEW, OLD, Vector, assemble, insert, vector, with_text};
use pof::message::table::{
    FlowCommand, LowLatencyFlag, PofFlowMod, PofTableMod, PofTableType, ResourceReport, TableCommand,
    TableResource, extension,
};
use pof::value::{METADATA_FIELD, PofCounterId, PofField, PofMatch};
use pof::{PofDialect, PofMessage};

pub fn vectors() -> Vec<Vector> {
    [resources(), table_mods(), flow_mods(), flow_commands()].into_iter().flatten().collect()
}

fn resources() -> Vec<Vector> {
    let types = [PofTableType::Mask, PofTableType::LongestPrefix, PofTableType::Exact, PofTableType::Linear];
    let tables = [0u8, 1, 2, 3].map(|n| TableResource {
        device_id: 0x0102_0300 + u32::from(n),
        table_type: types[usize::from(n)],
        tables: 10 + n,
        key_bits: 0x0500 + u16::from(n),
        entries: 0x0607_0800 + u32::from(n),
    });
    let message = |slot| {
        PofMessage::ResourceReport(ResourceReport {
            resource: 0,
            extensions: extension::LOW_LATENCY,
            slot,
            counters: 0x1112_1314,
            meters: 0x2122_2324,
            groups: 0x3132_3334,
            tables,
        })
    };
    let mut cells: Vec<Cell> =
        vec![(1, 1, 1), (4, 4, 0x1112_1314), (8, 4, 0x2122_2324), (12, 4, 0x3132_3334)];
    for n in 0..4 {
        let (at, more) = (16 + 16 * n, n as u128);
        cells.extend([
            (at, 4, 0x0102_0300 + more),
            (at + 4, 1, more),
            (at + 5, 1, 10 + more),
            (at + 6, 2, 0x0500 + more),
            (at + 8, 4, 0x0607_0800 + more),
        ]);
    }
    let new = [&cells[..], &[(2, 2, 0x4142)]].concat();
    vec![
        vector(OLD, 13, assemble(80, &cells), message(0)),
        vector(NEW, 13, assemble(80, &new), message(0x4142)),
    ]
}

fn table_mods() -> Vec<Vector> {
    let field = |n: u16| PofField { id: 0x0100 + n, offset_bits: 0x0200 + n, length_bits: 0x0300 + n };
    let message = |slot, command, fields| {
        PofMessage::TableMod(PofTableMod {
            command,
            table: 9,
            table_type: PofTableType::LongestPrefix,
            entries: 0x0102_0304,
            key_bits: 0x0506,
            slot,
            name: "routes".into(),
            fields,
        })
    };
    let cells = |command, fields: u128| {
        let mut cells: Vec<Cell> =
            vec![(0, 1, command), (1, 1, 9), (2, 1, 1), (3, 1, fields), (4, 4, 0x0102_0304), (8, 2, 0x0506)];
        for n in 0..fields as usize {
            let (at, n) = (80 + 8 * n, n as u128);
            cells.extend([(at, 2, 0x0100 + n), (at + 2, 2, 0x0200 + n), (at + 4, 2, 0x0300 + n)]);
        }
        cells
    };
    let mut made = Vec::new();
    for (number, command) in [(0, TableCommand::Add), (1, TableCommand::Modify), (2, TableCommand::Delete)] {
        let body = with_text(assemble(144, &cells(number, 8)), &[(16, "routes")]);
        made.push(vector(OLD, 18, body, message(0, command, (0..8).map(field).collect())));
    }
    for (number, command) in
        [(2, TableCommand::Delete), (3, TableCommand::Query), (4, TableCommand::QueryResult)]
    {
        let new = [&cells(number, 1)[..], &[(10, 2, 0x0708)]].concat();
        let body = with_text(assemble(144, &new), &[(16, "routes")]);
        made.push(vector(NEW, 18, body, message(0x0708, command, vec![field(0)])));
    }
    made
}

/// Returns the body of a FLOW_MOD in which everything but the instructions is set, and the message.
pub fn flow_mod(dialect: PofDialect, matches: u16) -> (Vec<u8>, PofFlowMod) {
    let size = if dialect == OLD { 1192 } else { 2184 };
    let mut cells: Vec<Cell> = vec![
        (1, 1, matches.into()),
        (3, 1, 1),
        (4, 4, 0x0102_0304),
        (8, 8, 0x1112_1314_1516_1718),
        (16, 8, 0x2122_2324_2526_2728),
        (24, 1, 19),
        (25, 1, 3),
        (26, 2, 0x3132),
        (28, 2, 0x4142),
        (30, 2, 0x5152),
        (32, 4, 0x6162_6364),
    ];
    if dialect == NEW {
        cells.push((36, 2, 0x7172));
    }
    let mut message = PofFlowMod {
        command: FlowCommand::Add,
        low_latency: LowLatencyFlag::LowLatency,
        counter: PofCounterId(0x0102_0304),
        cookie: 0x1112_1314_1516_1718,
        cookie_mask: 0x2122_2324_2526_2728,
        table: 19,
        table_type: PofTableType::Linear,
        idle_timeout_s: 0x3132,
        hard_timeout_s: 0x4142,
        priority: 0x5152,
        index: 0x6162_6364,
        slot: if dialect == NEW { 0x7172 } else { 0 },
        matches: Vec::new(),
        instructions: Vec::new(),
    };
    for n in 0..matches {
        let at = 40 + 40 * usize::from(n);
        let (value, mask) = (0x0102_0304_0506_0708_090a_0b0c_0d0e_0f00 + u128::from(n), !u128::from(n));
        let id = if n == 0 { METADATA_FIELD } else { n };
        cells.extend([
            (at, 2, id.into()),
            (at + 2, 2, 0x0200 + u128::from(n)),
            (at + 4, 2, 128 - u128::from(n)),
            (at + 8, 16, value),
            (at + 24, 16, mask),
        ]);
        let field = PofField { id, offset_bits: 0x0200 + n, length_bits: 128 - n };
        message.matches.push(PofMatch { field, value, mask });
    }
    (assemble(size, &cells), message)
}

fn flow_mods() -> Vec<Vector> {
    let mut made = Vec::new();
    for dialect in [OLD, NEW] {
        for matches in [0, 1, 8] {
            let (body, message) = flow_mod(dialect, matches);
            made.push(vector(dialect, 15, body, PofMessage::FlowMod(message)));
        }
    }
    made
}

fn flow_commands() -> Vec<Vector> {
    let mut made = Vec::new();
    for (number, command) in [
        (0, FlowCommand::Add),
        (1, FlowCommand::Modify),
        (2, FlowCommand::ModifyStrict),
        (3, FlowCommand::Delete),
        (4, FlowCommand::DeleteStrict),
        (5, FlowCommand::Query),
        (6, FlowCommand::QueryResult),
    ] {
        for (dialect, flag, low_latency) in
            [(OLD, 0, LowLatencyFlag::Unstated), (NEW, 2, LowLatencyFlag::Normal)]
        {
            if number > 4 && dialect == OLD {
                continue;
            }
            let (mut body, message) = flow_mod(dialect, 1);
            insert(&mut body, 0, &[number]);
            insert(&mut body, 3, &[flag]);
            let message = PofFlowMod { command, low_latency, ..message };
            made.push(vector(dialect, 15, body, PofMessage::FlowMod(message)));
        }
    }
    made
}
