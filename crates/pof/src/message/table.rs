// SPDX-License-Identifier: Apache-2.0
//! RESOURCE_REPORT, TABLE_MOD and FLOW_MOD.

use crate::error;
use crate::instruction::PofInstruction;
use crate::layout::{self, Slot, choice, record};
use crate::value::{PofCounterId, PofField, PofMatch, PofText};

choice! {
    /// Type of a table. A table is named by its type and its number within the type. GOTO_TABLE and
    /// packet-ins have one number instead, in which tables of lower types come first.
    pub enum PofTableType: "table type", else error::TABLE_MOD_BAD_TABLE_TYPE {
        /// Values with masks.
        Mask = 0,
        /// Longest prefix.
        LongestPrefix = 1,
        /// Exact match.
        Exact = 2,
        /// Entries are addressed by their index.
        Linear = 3,
    }
}

record! {
    /// Resources of the tables of one type.
    #[derive(Copy)]
    pub struct TableResource: "resources of a table type" [16 16] {
        /// Number that the controller knows the switch by.
        device_id: u32 = (0 4) (0 4),
        /// Table type.
        table_type: PofTableType = (4 1) (4 1),
        /// Number of tables.
        tables: u8 = (5 1) (5 1),
        /// Maximum length of a key in bits.
        key_bits: u16 = (6 2) (6 2),
        /// Maximum number of entries.
        entries: u32 = (8 4) (8 4),
    }
}

impl Slot for TableResource {
    const STRIDES: [usize; 2] = [16, 16];
}

/// Extensions in RESOURCE_REPORT.
pub mod extension {
    /// The switch understands the low-latency flag of FLOW_MOD.
    pub const LOW_LATENCY: u8 = 1;
}

record! {
    /// Body of RESOURCE_REPORT.
    pub struct ResourceReport: "RESOURCE_REPORT" [80 80] {
        /// Type of the resources. 0 stands for tables, the only type.
        resource: u8 = (0 1) (0 1),
        /// Bits of [`extension`]. The byte is padding in the public headers, so other switches send 0 and
        /// other controllers do not examine it.
        extensions: u8 = (1 1) (1 1),
        /// Slot of the switch.
        slot: u16 = (-) (2 2),
        /// Number of counters.
        counters: u32 = (4 4) (4 4),
        /// Number of meters.
        meters: u32 = (8 4) (8 4),
        /// Number of groups.
        groups: u32 = (12 4) (12 4),
        /// Resources of each table type.
        tables: [TableResource; 4] = (16 64) (16 64),
    }
}

choice! {
    /// Command of TABLE_MOD.
    pub enum TableCommand: "table command", else error::TABLE_MOD_BAD_COMMAND {
        /// Create the table.
        Add = 0,
        /// Change the table. Public switches refuse it.
        Modify = 1,
        /// Delete the table, which must be empty.
        Delete = 2,
        /// Request the table.
        Query = 3 only V1_4,
        /// The requested table, from the switch.
        QueryResult = 4 only V1_4,
    }
}

record! {
    /// Body of TABLE_MOD.
    pub struct PofTableMod: "TABLE_MOD" [144 144] {
        /// Command.
        command: TableCommand = (0 1) (0 1),
        /// Number of the table within its type.
        table: u8 = (1 1) (1 1),
        /// Type of the table.
        table_type: PofTableType = (2 1) (2 1),
        /// Maximum number of entries.
        entries: u32 = (4 4) (4 4),
        /// Length of the key in bits, the sum of the fields' lengths.
        key_bits: u16 = (8 2) (8 2),
        /// Slot of the switch.
        slot: u16 = (-) (10 2),
        /// Name of the table.
        name: PofText<64> = (16 64) (16 64),
    }
    lists {
        /// Fields of the key, in order.
        fields: PofField = count (3 1) (3 1), slots (80 64) (80 64), else error::TABLE_MOD_BAD_KEY_LEN,
    }
}

choice! {
    /// Command of FLOW_MOD.
    pub enum FlowCommand: "flow command", else error::FLOW_MOD_BAD_COMMAND {
        /// Add the entry.
        Add = 0,
        /// Change the entry.
        Modify = 1,
        /// Change the entry. Public switches refuse it.
        ModifyStrict = 2,
        /// Delete the entry.
        Delete = 3,
        /// Delete the entry. Public switches refuse it.
        DeleteStrict = 4,
        /// Request the entry.
        Query = 5 only V1_4,
        /// The requested entry, from the switch.
        QueryResult = 6 only V1_4,
    }
}

choice! {
    /// Low-latency flag of an entry, in a byte that is padding in the public headers. Other controllers send
    /// 0, and other switches do not examine it.
    pub enum LowLatencyFlag: "low-latency flag", else error::FLOW_MOD_BAD_FLAGS {
        /// The controller does not state it. The switch decides by its configuration.
        Unstated = 0,
        /// The entry is a low-latency entry.
        LowLatency = 1,
        /// The entry is a normal entry.
        Normal = 2,
    }
}

record! {
    /// Body of FLOW_MOD. An entry is named by table type, table and index. The controller chooses the index.
    pub struct PofFlowMod: "FLOW_MOD" [1192 2184] {
        /// Command.
        command: FlowCommand = (0 1) (0 1),
        /// Low-latency flag, an extension.
        low_latency: LowLatencyFlag = (3 1) (3 1),
        /// Counter of the entry, which is created with the entry.
        counter: PofCounterId = (4 4) (4 4),
        /// Cookie.
        cookie: u64 = (8 8) (8 8),
        /// Mask of the cookie.
        cookie_mask: u64 = (16 8) (16 8),
        /// Number of the table within its type.
        table: u8 = (24 1) (24 1),
        /// Type of the table.
        table_type: PofTableType = (25 1) (25 1) else error::FLOW_MOD_BAD_TABLE_TYPE,
        /// Idle timeout in seconds. 0 means none.
        idle_timeout_s: u16 = (26 2) (26 2),
        /// Hard timeout in seconds. 0 means none.
        hard_timeout_s: u16 = (28 2) (28 2),
        /// Priority.
        priority: u16 = (30 2) (30 2),
        /// Index of the entry in its table.
        index: u32 = (32 4) (32 4),
        /// Slot of the switch.
        slot: u16 = (-) (36 2),
    }
    lists {
        /// Conditions, in the order of the table's fields.
        matches: PofMatch = count (1 1) (1 1), slots (40 320) (40 320), else error::MATCH_BAD_LEN,
        /// Instructions, in order.
        instructions: PofInstruction = count (2 1) (2 1), slots (360 832) (360 1824), else error::INSTRUCTION_BAD_LEN,
    }
}
