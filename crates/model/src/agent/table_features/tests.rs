// SPDX-License-Identifier: Apache-2.0
//! TABLE_FEATURES requests of Faucet, and requests that exceed the capabilities of tables.

use super::check_whole;
use crate::TableSet;
use crate::agent::context::Refusal;
use dataplane::TableCapabilities;
use flow::{Field, TableId};
use openflow::error::{self, ErrorCode};
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::table_features_property::Entries::{Miss, Ordinary};
use openflow::multipart::table_features_property::{OxmId, TableProperty, TypeId};

const LIMIT: usize = 1_000;

fn of(table: TableId, limit: usize, pipeline: &TableSet) -> TableFeatures {
    super::of(table, limit, pipeline, &TableCapabilities::all())
}

fn check(asked: &[TableFeatures], named: TableSet, limit: usize) -> Result<TableSet, Refusal> {
    super::check(asked, named, limit, &TableCapabilities::all())
}

/// Returns a field as Faucet encodes it, with length 0.
fn named(field: Field, masked: bool) -> OxmId {
    OxmId { length: 0, ..OxmId::of(field, masked) }
}

fn table(table: TableId, properties: Vec<TableProperty>) -> TableFeatures {
    TableFeatures {
        table,
        name: "eth_src".into(),
        metadata_match: 0,
        metadata_write: 0,
        config: 3,
        max_entries: 32,
        properties,
    }
}

fn like_faucet(number: u8) -> TableFeatures {
    let fields = vec![named(Field::EthDst, true), named(Field::VlanVid, false), named(Field::InPort, false)];
    table(
        TableId(number),
        vec![
            TableProperty::Match(fields.clone()),
            TableProperty::Wildcards(fields),
            TableProperty::NextTables(Ordinary, vec![3, 4]),
            TableProperty::Instructions(Ordinary, vec![TypeId::standard(1), TypeId::standard(4)]),
            TableProperty::ApplySetField(
                Ordinary,
                vec![named(Field::VlanVid, false), named(Field::EthDst, false)],
            ),
            TableProperty::ApplyActions(Ordinary, [0, 17, 18, 22, 25].map(TypeId::standard).to_vec()),
            TableProperty::NextTables(Miss, vec![3]),
            TableProperty::Instructions(Miss, vec![TypeId::standard(1)]),
            TableProperty::WriteActions(Ordinary, vec![]),
        ],
    )
}

fn refused(asked: &[TableFeatures]) -> ErrorCode {
    check(asked, TableSet::NONE, LIMIT).unwrap_err().code
}

fn refuses(property: TableProperty) {
    let asked = table(TableId(2), vec![property.clone()]);
    assert_eq!(refused(&[asked]), error::TABLE_FEATURES_BAD_ARGUMENT, "{property:?}");
}

#[test]
fn requests_for_fewer_capabilities_are_granted() {
    check(&[like_faucet(1), like_faucet(2)], TableSet::NONE, LIMIT).unwrap();
    check(&[], TableSet::NONE, LIMIT).unwrap();
}

#[test]
fn reported_table_features_can_be_requested() {
    let all: Vec<TableFeatures> =
        (0..=254).map(|number| of(TableId(number), LIMIT, &TableSet::ALL)).collect();
    check(&all, TableSet::NONE, LIMIT).unwrap();
}

#[test]
fn each_table_must_exist_and_occur_once() {
    assert_eq!(refused(&[like_faucet(1), like_faucet(1)]), error::TABLE_FEATURES_BAD_TABLE);
    assert_eq!(refused(&[like_faucet(255)]), error::TABLE_FEATURES_BAD_TABLE);
}

#[test]
fn the_number_of_entries_is_limited() {
    let asked = TableFeatures { max_entries: 1_001, ..like_faucet(1) };
    assert_eq!(refused(&[asked]), error::TABLE_FEATURES_BAD_ARGUMENT);
}

#[test]
fn unsupported_capabilities_are_refused() {
    // in_port can be neither masked nor set. Actions 13 and 28, instruction 7 and field 40 do not exist.
    refuses(TableProperty::Match(vec![named(Field::InPort, true)]));
    refuses(TableProperty::ApplySetField(Ordinary, vec![named(Field::InPort, false)]));
    refuses(TableProperty::WriteSetField(Ordinary, vec![named(Field::Ipv6Exthdr, false)]));
    refuses(TableProperty::WriteActions(Ordinary, vec![TypeId::standard(13)]));
    refuses(TableProperty::ApplyActions(Miss, vec![TypeId::standard(28)]));
    refuses(TableProperty::Instructions(Ordinary, vec![TypeId::standard(7)]));
    let unknown = OxmId { number: 40, ..named(Field::InPort, false) };
    refuses(TableProperty::Match(vec![unknown]));
    refuses(TableProperty::Wildcards(vec![unknown]));
    // A goto-table to an earlier table, to the same table, and to a table that does not exist.
    for next in [1, 2, 255] {
        refuses(TableProperty::NextTables(Ordinary, vec![next]));
    }
}

#[test]
fn a_request_in_parts_names_each_table_once_and_table_0() {
    let first = check(&[like_faucet(0), like_faucet(1)], TableSet::NONE, LIMIT).unwrap();
    let both = check(&[like_faucet(2)], first, LIMIT).unwrap();
    let named = |set: &TableSet| (0..=255).filter(|table| set.contains(TableId(*table))).collect::<Vec<_>>();
    assert_eq!((named(&first), named(&both)), (vec![0, 1], vec![0, 1, 2]));
    assert_eq!(check(&[like_faucet(2)], both, LIMIT).unwrap_err().code, error::TABLE_FEATURES_BAD_TABLE);
    check_whole(&both).unwrap();
    check_whole(&TableSet::NONE).unwrap();
    let without_0 = check(&[like_faucet(2)], TableSet::NONE, LIMIT).unwrap();
    assert_eq!(check_whole(&without_0).unwrap_err().code, error::TABLE_FEATURES_BAD_TABLE);
    let TableProperty::NextTables(_, next) = &of(TableId(1), LIMIT, &both).properties[1] else {
        panic!("the second property has another type")
    };
    assert_eq!(next, &[2]);
}

/// A data plane with fewer capabilities reports only those, and refuses requests for others.
#[test]
fn a_data_plane_with_two_tables_reports_and_grants_no_more() {
    let two = TableCapabilities {
        tables: 2,
        entries: 30,
        metadata: 0xff,
        instructions: vec![1, 4],
        actions: vec![0, 25],
        matched: vec![(Field::EthDst, true), (Field::VlanVid, false)],
        set: vec![Field::EthSrc],
        ..TableCapabilities::all()
    };
    let pipeline = TableSet::ALL;
    let [first, last] = [0, 1].map(|table| super::of(TableId(table), LIMIT, &pipeline, &two));
    assert_eq!((first.max_entries, first.metadata_match, first.metadata_write), (30, 0xff, 0xff));
    let ids = |numbers: &[u16]| numbers.iter().map(|number| TypeId::standard(*number)).collect::<Vec<_>>();
    assert_eq!(first.properties[0], TableProperty::Instructions(Ordinary, ids(&[1, 4])));
    assert_eq!(last.properties[0], TableProperty::Instructions(Ordinary, ids(&[4])));
    assert_eq!(first.properties[1], TableProperty::NextTables(Ordinary, vec![1]));
    assert_eq!(last.properties[1], TableProperty::NextTables(Ordinary, vec![]));
    assert_eq!(first.properties[2], TableProperty::WriteActions(Ordinary, ids(&[0, 25])));
    assert_eq!(
        first.properties[6],
        TableProperty::WriteSetField(Ordinary, vec![OxmId::of(Field::EthSrc, false)])
    );
    let matched = vec![OxmId::of(Field::EthDst, true), OxmId::of(Field::VlanVid, false)];
    assert_eq!(first.properties[4], TableProperty::Match(matched));
    // What it reports can be requested.
    super::check(&[first, last], TableSet::NONE, LIMIT, &two).unwrap();

    let refused =
        |asked: TableFeatures| super::check(&[asked], TableSet::NONE, LIMIT, &two).unwrap_err().code;
    let with = |property| table(TableId(1), vec![property]);
    let small = |features: TableFeatures| TableFeatures { max_entries: 30, ..features };
    let beyond = [
        table(TableId(1), vec![]),
        small(with(TableProperty::Instructions(Ordinary, ids(&[6])))),
        small(with(TableProperty::ApplyActions(Ordinary, ids(&[22])))),
        small(with(TableProperty::Match(vec![OxmId::of(Field::InPort, false)]))),
        small(with(TableProperty::Match(vec![OxmId::of(Field::VlanVid, true)]))),
        small(with(TableProperty::ApplySetField(Ordinary, vec![OxmId::of(Field::EthDst, false)]))),
        small(table(TableId(0), vec![TableProperty::NextTables(Ordinary, vec![2])])),
    ];
    for asked in beyond {
        assert_eq!(refused(asked.clone()), error::TABLE_FEATURES_BAD_ARGUMENT, "{asked:?}");
    }
    assert_eq!(refused(small(table(TableId(2), vec![]))), error::TABLE_FEATURES_BAD_TABLE);
}
