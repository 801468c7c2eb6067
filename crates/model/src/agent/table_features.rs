// SPDX-License-Identifier: Apache-2.0
//! TABLE_FEATURES. All tables have the same capabilities. A request for fewer capabilities is granted, but
//! changes only the set of tables.

use super::context::Refusal;
use crate::TableSet;
use flow::{Field, Limits, TableId};
use openflow::error;
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::table_features_property::{Entries, OxmId, TableProperty, TypeId};

/// Supported instruction types (OFPIT_*): goto-table, write-metadata, write-actions, apply-actions,
/// clear-actions, meter.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// Supported action types (OFPAT_*): output, TTLs, VLAN and MPLS tags, queue, group, set-field, PBB tags.
pub const ACTIONS: [u16; 16] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// Returns the features of a table. Table-miss entries have the same properties as other entries.
pub fn of(table: TableId, max_entries: usize, pipeline: &TableSet) -> TableFeatures {
    let ids = |numbers: &[u16]| numbers.iter().map(|n| TypeId::standard(*n)).collect::<Vec<_>>();
    let matched = Field::NAMED.iter().map(|f| OxmId::of(*f, f.maskable())).collect();
    // ovs-ofctl refuses a wildcard with the mask bit set.
    let wildcards = Field::NAMED.iter().map(|f| OxmId::of(*f, false)).collect();
    let written = || -> Vec<OxmId> {
        Field::NAMED.iter().filter(|f| f.settable()).map(|f| OxmId::of(*f, false)).collect()
    };
    let behind = table.0.saturating_add(1)..Limits::TABLES as u8;
    let goto: Vec<u8> = behind.filter(|next| pipeline.contains(TableId(*next))).collect();
    // The last table does not support goto-table.
    let instructions = if goto.is_empty() { &INSTRUCTIONS[1..] } else { &INSTRUCTIONS[..] };
    TableFeatures {
        table,
        name: String::new(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries: u32::try_from(max_entries).unwrap_or(u32::MAX),
        properties: vec![
            TableProperty::Instructions(Entries::Ordinary, ids(instructions)),
            TableProperty::NextTables(Entries::Ordinary, goto),
            TableProperty::WriteActions(Entries::Ordinary, ids(&ACTIONS)),
            TableProperty::ApplyActions(Entries::Ordinary, ids(&ACTIONS)),
            TableProperty::Match(matched),
            TableProperty::Wildcards(wildcards),
            TableProperty::WriteSetField(Entries::Ordinary, written()),
            TableProperty::ApplySetField(Entries::Ordinary, written()),
        ],
    }
}

/// Checks that one part of a request asks for no more than tables support. `named` holds the tables of
/// earlier parts. Returns `named` with the tables of this part.
pub fn check(asked: &[TableFeatures], mut named: TableSet, limit: usize) -> Result<TableSet, Refusal> {
    for features in asked {
        let table = features.table;
        if table.index() >= Limits::TABLES || named.contains(table) {
            return Err(Refusal::new(
                error::TABLE_FEATURES_BAD_TABLE,
                format!("table {table} is listed twice or does not exist; tables are numbered 0 to 254"),
            ));
        }
        if features.max_entries as usize > limit {
            return Err(Refusal::new(
                error::TABLE_FEATURES_BAD_ARGUMENT,
                format!("table {table} cannot have {} entries; the maximum is {limit}", features.max_entries),
            ));
        }
        if let Some(problem) = features.properties.iter().find_map(|property| beyond(table, property)) {
            return Err(Refusal::new(error::TABLE_FEATURES_BAD_ARGUMENT, problem));
        }
        named.insert(table);
    }
    Ok(named)
}

/// Checks that a complete request names table 0. A request that names no table is a query.
pub fn check_whole(named: &TableSet) -> Result<(), Refusal> {
    if *named == TableSet::NONE || named.contains(TableId(0)) {
        return Ok(());
    }
    Err(Refusal::new(
        error::TABLE_FEATURES_BAD_TABLE,
        "table 0 cannot be left out: packets enter the pipeline there",
    ))
}

/// Describes the first item of a property that tables do not support.
fn beyond(table: TableId, property: &TableProperty) -> Option<String> {
    let unknown = |list: &[TypeId], known: &[u16], what: &str| {
        let other = list.iter().find(|id| id.experimenter.is_none() && !known.contains(&id.number))?;
        Some(format!("table {table} has no {what} of type {}", other.number))
    };
    // Masks and offsets of experimenter fields, such as Shunt's slices, are given in each entry and cannot be
    // checked here.
    let field = |list: &[OxmId], can: fn(Field, bool) -> bool, what: &str| {
        let other = list
            .iter()
            .find(|id| id.experimenter.is_none() && !id.field().is_some_and(|field| can(field, id.masked)))?;
        let mask = if other.masked { " with a mask" } else { "" };
        Some(format!("table {table} cannot {what} field {} of class {:#x}{mask}", other.number, other.class))
    };
    match property {
        TableProperty::Instructions(_, list) => unknown(list, &INSTRUCTIONS, "instruction"),
        TableProperty::WriteActions(_, list) | TableProperty::ApplyActions(_, list) => {
            unknown(list, &ACTIONS, "action")
        }
        TableProperty::NextTables(_, list) => {
            let other =
                list.iter().find(|next| **next <= table.0 || usize::from(**next) >= Limits::TABLES)?;
            Some(format!("table {table} cannot lead to table {other}"))
        }
        TableProperty::Match(list) => field(list, |field, masked| !masked || field.maskable(), "match on"),
        // Faucet repeats the fields of its matches here, with masks. For a wildcarded field, the mask has no
        // meaning.
        TableProperty::Wildcards(list) => field(list, |_, _| true, "leave out"),
        TableProperty::WriteSetField(_, list) | TableProperty::ApplySetField(_, list) => {
            field(list, |field, _| field.settable(), "set")
        }
        TableProperty::Experimenter(..) => None,
    }
}

#[cfg(test)]
mod tests;
