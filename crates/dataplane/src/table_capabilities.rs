// SPDX-License-Identifier: Apache-2.0
//! What the tables of a data plane can do, as TABLE_FEATURES reports it.

use flow::{Field, Limits, TableId};

/// Instruction type of goto-table (OFPIT_GOTO_TABLE).
const GOTO_TABLE: u16 = 1;
/// Instruction types (OFPIT_*): goto-table, write-metadata, write-actions, apply-actions, clear-actions,
/// meter.
const INSTRUCTIONS: [u16; 6] = [GOTO_TABLE, 2, 3, 4, 5, 6];
/// Action types (OFPAT_*): output, TTLs, VLAN and MPLS tags, queue, group, set-field, PBB tags.
const ACTIONS: [u16; 16] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// Capabilities of the tables of a data plane.
///
/// A data plane with [`DataPlane::check`](crate::DataPlane::check) may still refuse combinations of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCapabilities {
    /// What the data plane is, for the description of the switch.
    pub hardware: &'static str,
    /// Number of tables, 1 to 255. The first is table 0.
    pub tables: u8,
    /// Maximum number of entries of a table.
    pub entries: u32,
    /// Bits of the metadata register that entries can match and write.
    pub metadata: u64,
    /// Instruction types (OFPIT_*), in ascending order.
    pub instructions: Vec<u16>,
    /// Action types (OFPAT_*), in ascending order.
    pub actions: Vec<u16>,
    /// Fields that entries can match, each with whether a mask is possible.
    pub matched: Vec<(Field, bool)>,
    /// Fields that actions can set.
    pub set: Vec<Field>,
    /// Whether the data plane has groups, meters and egress queues.
    pub groups_meters_queues: bool,
}

impl TableCapabilities {
    /// Returns everything that entries can express.
    #[must_use]
    pub fn all() -> Self {
        Self {
            hardware: "software switch",
            tables: Limits::TABLES as u8,
            entries: u32::MAX,
            metadata: u64::MAX,
            instructions: INSTRUCTIONS.to_vec(),
            actions: ACTIONS.to_vec(),
            matched: Field::NAMED.iter().map(|field| (*field, field.maskable())).collect(),
            set: Field::NAMED.iter().copied().filter(|field| field.settable()).collect(),
            groups_meters_queues: true,
        }
    }

    /// Returns whether the data plane has a table.
    #[must_use]
    pub fn has(&self, table: TableId) -> bool {
        table.0 < self.tables
    }

    /// Returns the instructions of a table. The last one has no goto-table.
    #[must_use]
    pub fn instructions_of(&self, is_last: bool) -> Vec<u16> {
        let all = self.instructions.iter().copied();
        all.filter(|instruction| !(is_last && *instruction == GOTO_TABLE)).collect()
    }
}
