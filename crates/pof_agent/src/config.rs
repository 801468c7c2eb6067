// SPDX-License-Identifier: Apache-2.0
//! Configuration of the agent, and its limits.

use crate::layout::TableLayout;
use pof::PofDialect;

/// Treatment of packets that hit no entry of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Miss {
    /// The packet is dropped.
    #[default]
    Drop,
    /// The packet is sent to the controllers.
    Controller,
}

/// Configuration of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Dialect of all channels.
    pub dialect: PofDialect,
    /// Number of tables of each type.
    pub layout: TableLayout,
    /// Number by which controllers know the switch.
    pub device_id: u32,
    /// Treatment of packets that hit no entry.
    pub miss: Miss,
}

/// Maximum length of a table's key in bits: eight fields of 128 bits.
pub const KEY_BITS_MAX: u16 = 1_024;
/// Maximum number of counters.
pub const COUNTERS_MAX: usize = 1 << 20;
