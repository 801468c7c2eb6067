// SPDX-License-Identifier: Apache-2.0
//! TABLE_FEATURES requests that come in parts. The parts of a request share its xid. Nothing is in force before the last
//! part, and a request of which one part was refused is refused as a whole.

use super::Refusal;
use super::table_features::{check, check_whole};
use crate::TableSet;
use openflow::error;
use openflow::multipart::table_features::TableFeatures;

/// The request whose last part has not come yet.
#[derive(Debug, Default)]
pub(super) struct Layout(Option<Pending>);

#[derive(Debug)]
struct Pending {
    xid: u32,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    /// The tables that they have named.
    Named(TableSet),
    Refused,
}

/// A part of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub xid: u32,
    pub tables: &'a [TableFeatures],
    /// Whether another part follows.
    pub more: bool,
}

impl Layout {
    /// Takes a part in. Returns the tables that the whole request names after its last part, and `None` before.
    ///
    /// # Errors
    ///
    /// When this part or an earlier one asks for what the tables cannot do, or when the whole request leaves out table 0.
    pub fn add(&mut self, part: Part<'_>, max_entries: usize) -> Result<Option<TableSet>, Refusal> {
        let parts = match self.0.take() {
            Some(Pending { xid, parts }) if xid == part.xid => parts,
            _ => Parts::Named(TableSet::NONE),
        };
        let named = match parts {
            Parts::Named(before) => check(part.tables, before, max_entries),
            Parts::Refused => Err(Refusal::new(
                error::TABLE_FEATURES_BAD_ARGUMENT,
                "an earlier part of this request was refused, so all of it is",
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

    /// Notes that a part was refused for its role or its format.
    pub fn refuse(&mut self, xid: u32, more: bool) {
        if more {
            self.0 = Some(Pending { xid, parts: Parts::Refused });
        } else if self.0.as_ref().is_some_and(|pending| pending.xid == xid) {
            self.0 = None;
        }
    }
}
