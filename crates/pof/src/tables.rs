// SPDX-License-Identifier: Apache-2.0
//! Tests of the layout tables, and of the byte tables in `docs/pof.md`, which are made from them.

use std::fmt::Write;

use crate::action::PofAction;
use crate::dialect::PofDialect;
use crate::instruction::PofInstruction;
use crate::layout::{Place, Slot, Table};
use crate::message::port::PofPort;
use crate::message::resource::PofBucket;
use crate::message::table::TableResource;
use crate::message::{KINDS, Sender};
use crate::value::{PofField, PofMatch};

const PAGE: &str = include_str!("../../../docs/pof.md");

/// Structures that are parts of others.
const PARTS: [Table; 5] = [
    Table::of::<PofField>(0),
    Table::of::<PofMatch>(0),
    Table::of::<PofPort>(0),
    Table::of::<TableResource>(0),
    Table::of::<PofBucket>(0),
];

fn all() -> impl Iterator<Item = Table> {
    let messages = KINDS.iter().filter_map(|kind| kind.table);
    messages
        .chain(PARTS)
        .chain(PofAction::TABLES.1.iter().copied())
        .chain(PofInstruction::TABLES.1.iter().copied())
}

#[test]
fn fields_are_inside_their_structure_and_do_not_overlap() {
    for table in all() {
        for dialect in PofDialect::ALL {
            let column = dialect.column();
            let mut places: Vec<Place> = table.rows.iter().filter_map(|row| row.places[column]).collect();
            let Some(size) = table.sizes[column] else {
                assert!(places.is_empty(), "{} is not part of dialect {dialect}", table.name);
                continue;
            };
            places.sort_by_key(|place| place.at);
            let mut end = 0;
            for place in places {
                assert!(place.bytes > 0 && place.at >= end, "{} in {dialect}: {place:?}", table.name);
                end = place.at + place.bytes;
            }
            assert!(end <= size, "{} in {dialect} ends at {end}", table.name);
        }
    }
}

#[test]
fn records_fit_into_their_slots() {
    let slots = [
        (PofAction::TABLES, <PofAction as Slot>::STRIDES),
        (PofInstruction::TABLES, <PofInstruction as Slot>::STRIDES),
    ];
    for ((header, tables), strides) in slots {
        for table in tables {
            for dialect in PofDialect::ALL {
                let size = table.sizes[dialect.column()].unwrap_or(0);
                assert!(header + size <= strides[dialect.column()], "{}", table.name);
            }
        }
    }
}

/// Returns a part of the page as Markdown: a heading, the sizes, and a row per field.
fn section(table: &Table, heading: &str, page: &mut String) {
    let size = |dialect: PofDialect| match table.sizes[dialect.column()] {
        Some(size) => format!("{size} bytes"),
        None => "absent".into(),
    };
    let [old, new] = PofDialect::ALL.map(size);
    writeln!(page, "#### {heading}\n\n| field | 1.2: {old} | 1.4.0.015: {new} |\n|---|---|---|").unwrap();
    let mut rows = table.rows.to_vec();
    rows.sort_by_key(|row| row.places.iter().flatten().map(|place| place.at).max());
    for row in rows.iter().filter(|row| row.places != [None, None]) {
        let [old, new] =
            row.places.map(|place| place.map_or("-".into(), |p| format!("{}, {}", p.at, p.bytes)));
        writeln!(page, "| {} | {old} | {new} |", row.name.replace('_', " ")).unwrap();
    }
    page.push('\n');
}

fn message_list(page: &mut String) {
    page.push_str("### Message types\n\n| type | message | from | 1.2: bytes | 1.4.0.015: bytes |\n|---|---|---|---|---|\n");
    let mut kinds = KINDS.to_vec();
    kinds.sort_by_key(|kind| kind.number);
    for kind in kinds {
        let from = match kind.sender {
            Sender::Controller => "controller",
            Sender::Switch => "switch",
            Sender::Both => "both",
        };
        let [old, new] = kind.sizes.map(|size| match (size, kind.tail_max) {
            (None, _) => "absent".into(),
            (Some(size), 0) => format!("{}", 8 + size),
            (Some(size), tail) => format!("{} to {}", 8 + size, 8 + size + tail),
        });
        writeln!(page, "| {} | {} | {from} | {old} | {new} |", kind.number, kind.name).unwrap();
    }
    page.push('\n');
}

/// Returns the generated part of `docs/pof.md`.
fn page() -> String {
    let mut page = String::new();
    message_list(&mut page);
    page.push_str("### Bodies of messages\n\n");
    let mut done = Vec::new();
    for kind in KINDS {
        if let Some(table) = kind.table.filter(|table| !done.contains(&table.name)) {
            done.push(table.name);
            section(&table, table.name, &mut page);
        }
    }
    page.push_str("### Parts of messages\n\n");
    for table in &PARTS {
        section(table, table.name, &mut page);
    }
    for (title, (header, tables)) in
        [("Instructions", PofInstruction::TABLES), ("Actions", PofAction::TABLES)]
    {
        writeln!(page, "### {title}\n\nOffsets begin after the slot's header of {header} bytes.\n").unwrap();
        for table in tables.iter().filter(|table| table.name != "field with value") {
            section(table, &format!("{} ({})", table.name, table.number), &mut page);
        }
    }
    page
}

#[test]
fn the_byte_tables_of_the_page_are_those_of_the_codec() {
    let (begin, end) = ("<!-- byte tables: begin -->\n\n", "<!-- byte tables: end -->");
    let (_, rest) = PAGE.split_once(begin).unwrap();
    let (tables, _) = rest.split_once(end).unwrap();
    let made = page();
    let differs = tables.lines().zip(made.lines()).find(|(page, made)| page != made);
    if std::env::var_os("WRITE_TABLES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pof.md");
        std::fs::write(path, PAGE.replace(&format!("{begin}{tables}"), &format!("{begin}{made}"))).unwrap();
    }
    assert_eq!(differs, None, "write the page anew: WRITE_TABLES=1 cargo test -p pof byte_tables");
    assert_eq!(tables.lines().count(), made.lines().count());
}
