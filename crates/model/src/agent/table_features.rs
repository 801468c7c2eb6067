// SPDX-License-Identifier: Apache-2.0
//! TABLE_FEATURES. All tables of a data plane have the same capabilities; the last one has no goto-table. A
//! request for fewer capabilities is granted, but changes only the set of tables.

use super::context::Refusal;
use crate::TableSet;
use dataplane::TableCapabilities;
use flow::{Field, TableId};
use openflow::error;
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::table_features_property::{Entries, OxmId, TableProperty, TypeId};

/// Returns the features of a table. Table-miss entries have the same properties as other entries.
pub fn of(
    table: TableId,
    max_entries: usize,
    pipeline: &TableSet,
    capabilities: &TableCapabilities,
) -> TableFeatures {
    let ids = |numbers: &[u16]| numbers.iter().map(|n| TypeId::standard(*n)).collect::<Vec<_>>();
    let matched = capabilities.matched.iter().map(|(field, masked)| OxmId::of(*field, *masked)).collect();
    // ovs-ofctl refuses a wildcard with the mask bit set.
    let wildcards = capabilities.matched.iter().map(|(field, _)| OxmId::of(*field, false)).collect();
    let set = || capabilities.set.iter().map(|field| OxmId::of(*field, false)).collect::<Vec<_>>();
    let behind = table.0.saturating_add(1)..capabilities.tables;
    let goto: Vec<u8> = behind.filter(|next| pipeline.contains(TableId(*next))).collect();
    let instructions = ids(&capabilities.instructions_of(goto.is_empty()));
    TableFeatures {
        table,
        name: String::new(),
        metadata_match: capabilities.metadata,
        metadata_write: capabilities.metadata,
        config: 0,
        max_entries: u32::try_from(max_entries).unwrap_or(u32::MAX).min(capabilities.entries),
        properties: vec![
            TableProperty::Instructions(Entries::Ordinary, instructions),
            TableProperty::NextTables(Entries::Ordinary, goto),
            TableProperty::WriteActions(Entries::Ordinary, ids(&capabilities.actions)),
            TableProperty::ApplyActions(Entries::Ordinary, ids(&capabilities.actions)),
            TableProperty::Match(matched),
            TableProperty::Wildcards(wildcards),
            TableProperty::WriteSetField(Entries::Ordinary, set()),
            TableProperty::ApplySetField(Entries::Ordinary, set()),
        ],
    }
}

/// Checks that one part of a request asks for no more than tables support. `named` holds the tables of
/// earlier parts. Returns `named` with the tables of this part.
pub fn check(
    asked: &[TableFeatures],
    mut named: TableSet,
    limit: usize,
    capabilities: &TableCapabilities,
) -> Result<TableSet, Refusal> {
    let limit = limit.min(capabilities.entries as usize);
    for features in asked {
        let table = features.table;
        if !capabilities.has(table) || named.contains(table) {
            return Err(Refusal::new(
                error::TABLE_FEATURES_BAD_TABLE,
                format!(
                    "table {table} is listed twice or does not exist; tables are numbered 0 to {}",
                    capabilities.tables.saturating_sub(1)
                ),
            ));
        }
        if features.max_entries as usize > limit {
            return Err(Refusal::new(
                error::TABLE_FEATURES_BAD_ARGUMENT,
                format!("table {table} cannot have {} entries; the maximum is {limit}", features.max_entries),
            ));
        }
        if let Some(problem) =
            features.properties.iter().find_map(|property| beyond(table, property, capabilities))
        {
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
fn beyond(table: TableId, property: &TableProperty, able: &TableCapabilities) -> Option<String> {
    let unknown = |list: &[TypeId], known: &[u16], what: &str| {
        let other = list.iter().find(|id| id.experimenter.is_none() && !known.contains(&id.number))?;
        Some(format!("table {table} has no {what} of type {}", other.number))
    };
    // Masks and offsets of experimenter fields, such as Shunt's slices, are given in each entry and cannot be
    // checked here.
    let field = |list: &[OxmId], can: &dyn Fn(Field, bool) -> bool, what: &str| {
        let other = list
            .iter()
            .find(|id| id.experimenter.is_none() && !id.field().is_some_and(|field| can(field, id.masked)))?;
        let mask = if other.masked { " with a mask" } else { "" };
        Some(format!("table {table} cannot {what} field {} of class {:#x}{mask}", other.number, other.class))
    };
    match property {
        TableProperty::Instructions(_, list) => unknown(list, &able.instructions, "instruction"),
        TableProperty::WriteActions(_, list) | TableProperty::ApplyActions(_, list) => {
            unknown(list, &able.actions, "action")
        }
        TableProperty::NextTables(_, list) => {
            let other = list.iter().find(|next| **next <= table.0 || **next >= able.tables)?;
            Some(format!("table {table} cannot lead to table {other}"))
        }
        TableProperty::Match(list) => {
            let can = |field, masked: bool| able.matched.iter().any(|it| it.0 == field && (it.1 || !masked));
            field(list, &can, "match on")
        }
        // Faucet repeats the fields of its matches here, with masks. For a wildcarded field, the mask has no
        // meaning.
        TableProperty::Wildcards(list) => field(list, &|_, _| true, "leave out"),
        TableProperty::WriteSetField(_, list) | TableProperty::ApplySetField(_, list) => {
            field(list, &|field, _| able.set.contains(&field), "set")
        }
        TableProperty::Experimenter(..) => None,
    }
}

#[cfg(test)]
mod tests;
