// SPDX-License-Identifier: Apache-2.0
//! FEATURES_REPLY (section 7.3.1), switch configuration (7.3.2) and TABLE_MOD (7.3.3).

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::TableId;

/// Capability bits (OFPC_*).
pub mod capability {
    /// Flow statistics.
    pub const FLOW_STATS: u32 = 1;
    /// Table statistics.
    pub const TABLE_STATS: u32 = 1 << 1;
    /// Port statistics.
    pub const PORT_STATS: u32 = 1 << 2;
    /// Group statistics.
    pub const GROUP_STATS: u32 = 1 << 3;
    /// Reassembly of IP fragments.
    pub const IP_REASSEMBLY: u32 = 1 << 5;
    /// Queue statistics.
    pub const QUEUE_STATS: u32 = 1 << 6;
    /// Blocking of looping ports.
    pub const PORT_BLOCKED: u32 = 1 << 8;
}

/// Features of the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features {
    /// Datapath ID.
    pub datapath_id: u64,
    /// Number of packets that can be buffered for a controller.
    pub buffers: u32,
    /// Number of tables.
    pub tables: u8,
    /// Auxiliary connection ID, or 0 for the main connection.
    pub auxiliary_id: u8,
    /// Capabilities, as bits of [`capability`].
    pub capabilities: u32,
}

impl Features {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (datapath_id, buffers, tables, auxiliary_id) = (r.u64()?, r.u32()?, r.u8()?, r.u8()?);
        r.skip(2)?;
        let capabilities = r.u32()?;
        r.skip(4)?;
        Ok(Self { datapath_id, buffers, tables, auxiliary_id, capabilities })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.datapath_id);
        out.put_u32(self.buffers);
        out.put(&[self.tables, self.auxiliary_id, 0, 0]);
        out.put_u32(self.capabilities);
        out.zeros(4);
    }
}

/// Treatment of IP fragments (OFPC_FRAG_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragments {
    /// Fragments are forwarded like other packets.
    #[default]
    Normal,
    /// Fragments are dropped.
    Drop,
    /// Fragments are reassembled before they enter the pipeline.
    Reassemble,
}

/// Switch configuration, as read by GET_CONFIG and changed by SET_CONFIG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SwitchConfig {
    /// Treatment of IP fragments.
    pub fragments: Fragments,
    /// Maximum number of bytes of a packet that is sent to the controller without an output action. The value
    /// 0xffff requests the whole packet without buffering.
    pub miss_send_len: u16,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self { fragments: Fragments::Normal, miss_send_len: 128 }
    }
}

impl SwitchConfig {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let fragments = match r.u16()? {
            0 => Fragments::Normal,
            1 => Fragments::Drop,
            2 => Fragments::Reassemble,
            flags => {
                return error::SWITCH_CONFIG_BAD_FLAGS.says(format!(
                    "configuration flags {flags:#x}; 0, 1 and 2 select the treatment of fragments"
                ));
            }
        };
        Ok(Self { fragments, miss_send_len: r.u16()? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.fragments as u16);
        out.put_u16(self.miss_send_len);
    }
}

/// Request to change a table's configuration. In OpenFlow 1.3, it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableMod {
    /// Table number, or `None` for all tables.
    pub table: Option<TableId>,
    /// Reserved bits (OFPTC_*).
    pub config: u32,
}

impl TableMod {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let table = r.u8()?;
        r.skip(3)?;
        Ok(Self { table: table_or_all(table), config: r.u32()? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put(&[self.table.unwrap_or(ALL_TABLES).0, 0, 0, 0]);
        out.put_u32(self.config);
    }
}

/// Number that stands for all tables (OFPTT_ALL).
pub(crate) const ALL_TABLES: TableId = TableId(0xff);

pub(crate) fn table_or_all(table: u8) -> Option<TableId> {
    Some(TableId(table)).filter(|table| *table != ALL_TABLES)
}
