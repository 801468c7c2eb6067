// SPDX-License-Identifier: Apache-2.0
//! Capabilities of tables (section 7.3.5.5). ovs-ofctl accepts a reply only if it lists at least one table,
//! and if every table has the eight properties for ordinary entries.

use super::kind;
use super::parts::private::Coded;
use super::table_features_property::TableProperty;
use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::TableId;

/// Length in bytes of a table's name. The last byte is 0.
const NAME_BYTES: usize = 32;

/// Capabilities of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableFeatures {
    /// Table number.
    pub table: TableId,
    /// Name of the table. At most 31 bytes of it are encoded.
    pub name: String,
    /// Bits of the metadata register that entries can match.
    pub metadata_match: u64,
    /// Bits of the metadata register that entries can write.
    pub metadata_write: u64,
    /// Reserved bits (OFPTC_*).
    pub config: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
    /// Further capabilities.
    pub properties: Vec<TableProperty>,
}

impl Coded for TableFeatures {
    const KIND: u16 = kind::TABLE_FEATURES;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = error::TABLE_FEATURES_BAD_LEN;
        let length = match r.peek_u16(0) {
            Ok(length) => usize::from(length),
            Err(_) => return code.says("a table's features are cut short"),
        };
        let mut part = r.part(length, "a table's features", code)?;
        let r = &mut part;
        r.skip(2)?;
        let table = TableId(r.u8()?);
        r.skip(5)?;
        Ok(Self {
            table,
            name: r.text::<NAME_BYTES>()?,
            metadata_match: r.u64()?,
            metadata_write: r.u64()?,
            config: r.u32()?,
            max_entries: r.u32()?,
            properties: TableProperty::decode_list(r)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.zeros(2);
        out.put_u8(self.table.0);
        out.zeros(5);
        out.put_text(&self.name, NAME_BYTES);
        out.put_u64(self.metadata_match);
        out.put_u64(self.metadata_write);
        out.put_u32(self.config);
        out.put_u32(self.max_entries);
        self.properties.iter().for_each(|property| property.encode(out));
        out.patch_length(start, start);
    }
}
