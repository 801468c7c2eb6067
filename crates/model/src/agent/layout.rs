// SPDX-License-Identifier: Apache-2.0
//! TABLE_FEATURES requests in several parts with the same transaction ID. A request takes effect with its
//! last part, and is refused if one part is refused.

use super::context::Refusal;
use super::table_features::{check, check_whole};
use crate::TableSet;
use dataplane::TableCapabilities;
use openflow::error;
use openflow::multipart::table_features::TableFeatures;

/// A request whose last part has not been received yet.
#[derive(Debug, Default)]
pub(super) struct Layout(Option<Pending>);

#[derive(Debug)]
struct Pending {
    xid: u32,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    /// Tables named by the parts received so far.
    Named(TableSet),
    Refused,
}

/// One part of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub xid: u32,
    pub tables: &'a [TableFeatures],
    /// Whether another part follows.
    pub more: bool,
}

impl Layout {
    /// Adds a part. After the last part, returns the set of tables that the request names.
    ///
    /// # Errors
    /// Returns an error if this part or an earlier one requests more than tables support, or if the complete
    /// request omits table 0.
    pub fn add(
        &mut self,
        part: Part<'_>,
        max_entries: usize,
        capabilities: &TableCapabilities,
    ) -> Result<Option<TableSet>, Refusal> {
        let parts = match self.0.take() {
            Some(Pending { xid, parts }) if xid == part.xid => parts,
            _ => Parts::Named(TableSet::NONE),
        };
        let named = match parts {
            Parts::Named(before) => check(part.tables, before, max_entries, capabilities),
            Parts::Refused => Err(Refusal::new(
                error::TABLE_FEATURES_BAD_ARGUMENT,
                "an earlier part of this request was refused, so the whole request is",
            )),
        };
        if part.more {
            let parts = named.as_ref().map_or(Parts::Refused, |named| Parts::Named(*named));
            self.0 = Some(Pending { xid: part.xid, parts });
            return named.map(|_| None);
        }
        let named = named?;
        check_whole(&named)?;
        Ok(Some(named))
    }

    /// Records that a part was refused because of the channel's role or the part's format.
    pub fn refuse(&mut self, xid: u32, more: bool) {
        if more {
            self.0 = Some(Pending { xid, parts: Parts::Refused });
        } else if self.0.as_ref().is_some_and(|pending| pending.xid == xid) {
            self.0 = None;
        }
    }
}
