// SPDX-License-Identifier: Apache-2.0
//! Why a request was refused, with OpenFlow 1.3's numbers for it (7.4.4, "Error Message").

use flow::PortNo;

/// OFPET_BAD_ACTION.
const BAD_ACTION: u16 = 2;
/// OFPET_BAD_INSTRUCTION.
const BAD_INSTRUCTION: u16 = 3;
/// OFPET_FLOW_MOD_FAILED.
const FLOW_MOD_FAILED: u16 = 5;
/// OFPET_PORT_MOD_FAILED.
const PORT_MOD_FAILED: u16 = 7;

/// Why a request was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A table that controllers do not have (OFPFMFC_BAD_TABLE_ID).
    #[error("table {0} does not exist; tables are 0 to 254")]
    NoSuchTable(u8),
    /// All tables, for a command that takes one (OFPFMFC_BAD_TABLE_ID).
    #[error("all tables (0xff) were named, which only a delete may do; name one table, 0 to 254")]
    NotAllTables,
    /// No room for another entry (OFPFMFC_TABLE_FULL).
    #[error("{in_use} entries are in use and {limit} is the limit; delete entries or raise the limit")]
    TableFull {
        /// Entries that live or wait for their removal.
        in_use: usize,
        /// The limit that they met.
        limit: usize,
    },
    /// Another entry of the same priority overlaps (OFPFMFC_OVERLAP).
    #[error(
        "an entry of table {table} with priority {priority} overlaps this one; change one's match or priority, or \
         leave check_overlap out"
    )]
    Overlap {
        /// The table.
        table: u8,
        /// The priority of both.
        priority: u16,
    },
    /// Goes on at an earlier table or its own (OFPBIC_BAD_TABLE_ID).
    #[error("an entry of table {table} cannot go to table {next}; it must go to a later one, at most 254")]
    GotoBackwards {
        /// The entry's table.
        table: u8,
        /// Where it was to go.
        next: u8,
    },
    /// Too many actions in a list (OFPBAC_TOO_MANY).
    #[error("{count} actions in one list; the limit is {}", flow::Limits::ACTIONS_PER_LIST)]
    TooManyActions {
        /// How many there were.
        count: usize,
    },
    /// A port that is not there (OFPPMFC_BAD_PORT).
    #[error("port {0} does not exist")]
    NoSuchPort(PortNo),
    /// A number that no port can have.
    #[error("{0:#x} is no port number; ports are 1 to {max:#x}", max = flow::port_no::MAX)]
    BadPortNumber(PortNo),
    /// A port that is there already.
    #[error("port {0} exists already; give each port a number of its own")]
    PortExists(PortNo),
    /// Too many ports.
    #[error("{} ports exist already, the most a datapath has", flow::Limits::PORTS)]
    TooManyPorts,
}

impl ModelError {
    /// The error's type and code in OpenFlow 1.3.
    #[must_use]
    pub fn openflow(&self) -> (u16, u16) {
        match self {
            Self::TableFull { .. } => (FLOW_MOD_FAILED, 1),
            Self::NoSuchTable(_) | Self::NotAllTables => (FLOW_MOD_FAILED, 2),
            Self::Overlap { .. } => (FLOW_MOD_FAILED, 3),
            Self::GotoBackwards { .. } => (BAD_INSTRUCTION, 2),
            Self::TooManyActions { .. } => (BAD_ACTION, 7),
            Self::NoSuchPort(_) | Self::BadPortNumber(_) | Self::PortExists(_) | Self::TooManyPorts => {
                (PORT_MOD_FAILED, 0)
            }
        }
    }
}
