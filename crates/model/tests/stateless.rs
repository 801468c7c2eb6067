// SPDX-License-Identifier: Apache-2.0
//! Changes of the stateless forwarder's configuration by requests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{add, mac, plain};
use flow::stateless::{
    Arithmetic, Bank, Label, NodeId, StatelessChange, StatelessConfig, StatelessError, StatelessSection,
};
use flow::{Nanos, Operation, PortNo, RuleVersion};
use model::{Change, ModelError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn bank(id: u32) -> Bank {
    let id = NodeId::new(Arithmetic::Integer, id).unwrap();
    Bank {
        id,
        labels: BTreeMap::from([(0, Label::Tables), (1, Label::Port(PortNo(2)))]),
        backups: BTreeMap::new(),
    }
}

fn set(sections: Vec<StatelessSection>) -> Change {
    Change::Stateless(StatelessChange::Set(sections))
}

#[test]
fn sections_are_replaced_one_by_one() {
    let mut m = plain();
    assert_eq!(m.stateless(), None);
    m.change(Nanos(0), set(vec![StatelessSection::Bank(1, Some(bank(5)))])).unwrap();
    m.change(
        Nanos(0),
        set(vec![
            StatelessSection::Trusted(BTreeSet::from([PortNo(2), PortNo(3)])),
            StatelessSection::Polka(Some(bank(7))),
        ]),
    )
    .unwrap();
    let expected = StatelessConfig {
        banks: [None, Some(bank(5))],
        polka: Some(bank(7)),
        trusted: BTreeSet::from([PortNo(2), PortNo(3)]),
        ..StatelessConfig::default()
    };
    assert_eq!(m.stateless().map(|stateless_config| &**stateless_config), Some(&expected));
    let mut copy = StatelessConfig::default();
    expected.sections().into_iter().for_each(|section| copy.set(section));
    assert_eq!(copy, expected, "the sections contain the whole configuration");
    let before = m.barrier();
    m.change(Nanos(0), set(vec![StatelessSection::Bank(1, Some(bank(5)))])).unwrap();
    assert_eq!(m.barrier(), before, "a change without effect submits no operation");
    m.change(Nanos(0), Change::Stateless(StatelessChange::Off)).unwrap();
    assert_eq!((m.stateless(), m.barrier()), (None, RuleVersion(before.0 + 1)));
}

#[test]
fn a_bundle_that_changes_the_configuration_twice_is_one_operation() {
    let mut m = plain();
    m.change(Nanos(0), set(vec![StatelessSection::Polka(Some(bank(7)))])).unwrap();
    let before = m.stateless().cloned();
    let version = m.barrier();
    let trusted = |port| set(vec![StatelessSection::Trusted(BTreeSet::from([port]))]);
    m.bundle(Nanos(0), (1..=1_000).map(PortNo).map(trusted).chain([Change::Flow(add(1, mac(1), PortNo(1)))]))
        .unwrap();
    assert_eq!(m.barrier(), RuleVersion(version.0 + 1));
    let operation = m.plane_mut().operations.last().cloned().unwrap();
    let swaps: Vec<_> = operation.parts().iter().filter(|o| matches!(o, Operation::Stateless(_))).collect();
    let [Operation::Stateless(Some(stateless_config))] = swaps[..] else { panic!("{swaps:?}") };
    assert_eq!(
        (stateless_config.trusted.clone(), stateless_config.polka.clone()),
        (BTreeSet::from([PortNo(1_000)]), Some(bank(7)))
    );
    assert_eq!(m.stateless(), Some(stateless_config));
    // A bundle that ends with the initial configuration does not change anything.
    let polka =
        || set(vec![StatelessSection::Polka(Some(bank(7))), StatelessSection::Trusted(BTreeSet::new())]);
    m.bundle(Nanos(0), [polka()]).unwrap();
    assert_eq!(m.stateless(), before.as_ref());
    let version = m.barrier();
    m.bundle(Nanos(0), [Change::Stateless(StatelessChange::Off), polka()]).unwrap();
    assert_eq!(m.barrier(), version);
}

#[test]
fn invalid_changes_have_no_effect() {
    let mut m = plain();
    let stateless_config = StatelessConfig { polka: Some(bank(5)), ..StatelessConfig::default() };
    m.set_stateless(Nanos(0), Some(Arc::new(stateless_config.clone()))).unwrap();
    let bad = || StatelessSection::MtuBytes(BTreeMap::from([(PortNo(1), 20)]));
    let refused = ModelError::Stateless(StatelessError::Mtu(PortNo(1), 20));
    assert_eq!(m.change(Nanos(0), set(vec![StatelessSection::Polka(None), bad()])).unwrap_err(), refused);
    assert_eq!(refused.openflow(), (0xffff, 1));
    let broken = StatelessConfig { mtu_bytes: BTreeMap::from([(PortNo(1), 20)]), ..stateless_config.clone() };
    assert_eq!(m.set_stateless(Nanos(0), Some(Arc::new(broken))).unwrap_err(), refused);
    // A failed bundle undoes its earlier changes.
    let bundle =
        [Change::Flow(add(1, mac(1), PortNo(1))), set(vec![StatelessSection::Polka(None)]), set(vec![bad()])];
    assert_eq!(m.bundle(Nanos(0), bundle).unwrap_err(), (2, refused));
    assert_eq!(
        (m.stateless().map(|stateless_config| &**stateless_config), m.flow_count()),
        (Some(&stateless_config), 0)
    );
}
