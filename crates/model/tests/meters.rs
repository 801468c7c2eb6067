// SPDX-License-Identifier: Apache-2.0
//! Meter-mods: which of them are refused, which entries a deleted meter removes, and which operations the
//! data plane gets.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::meter::{Band, Meter, MeterBand};
use flow::{FlowMod, Instructions, MeterId, Nanos, Operation, PortNo};
use model::MeterCommand::{Add, Delete, DeleteAll, Modify};
use model::ModelError;

fn meter(id: MeterId, rates: &[u32]) -> Meter {
    let band = |rate: &u32| MeterBand { band: Band::Drop, rate: *rate, burst: 0 };
    Meter { id, packets: true, stats: true, burst: false, bands: rates.iter().map(band).collect() }
}

#[test]
fn meters_are_added_modified_and_deleted_with_their_entries() {
    let mut m = plain();
    let entry = || FlowMod {
        instructions: Instructions { meter: Some(MeterId(3)), ..Instructions::default() },
        ..add(1, mac(1), PortNo(0))
    };
    assert_eq!(m.flow_mod(Nanos(0), entry()).unwrap_err(), ModelError::NoSuchMeter(MeterId(3)));
    m.meter_mod(Nanos(0), Add, meter(MeterId(3), &[10])).unwrap();
    m.flow_mod(Nanos(0), entry()).unwrap();
    m.flow_mod(Nanos(0), add(1, mac(2), PortNo(1))).unwrap();
    m.meter_mod(Nanos(4), Modify, meter(MeterId(3), &[10, 20])).unwrap();
    let stats = m.meter(Nanos(9), MeterId(3)).unwrap();
    assert_eq!((stats.references, stats.duration_ns, stats.meter.bands.len()), (1, Nanos(9), 2));
    m.meter_mod(Nanos(9), Delete, meter(MeterId(3), &[])).unwrap();
    assert_eq!((m.meter_ids(), m.flow_count()), (vec![], 1), "the entries of the meter are deleted with it");
    m.meter_mod(Nanos(9), Delete, meter(MeterId(3), &[])).unwrap();
    m.meter_mod(Nanos(9), Add, meter(MeterId(4), &[1])).unwrap();
    m.meter_mod(Nanos(9), DeleteAll, meter(MeterId(0), &[])).unwrap();
    assert!(matches!(m.plane_mut().operations.last(), Some(Operation::RemoveMeter(MeterId(4)))));
}

#[test]
fn invalid_meters_are_refused_with_the_codes_of_openflow() {
    let mut m = plain();
    m.meter_mod(Nanos(0), Add, meter(MeterId(1), &[1])).unwrap();
    let mut refused = |command, meter: Meter| m.meter_mod(Nanos(0), command, meter).unwrap_err().openflow();
    assert_eq!(refused(Add, meter(MeterId(1), &[1])), (12, 1));
    assert_eq!(refused(Modify, meter(MeterId(2), &[1])), (12, 3));
    assert_eq!(refused(Add, meter(MeterId(0), &[1])), (12, 2));
    assert_eq!(refused(Add, meter(MeterId(0xffff_0001), &[1])), (12, 2));
    assert_eq!(refused(Add, meter(MeterId(2), &[0])), (12, 6));
    assert_eq!(refused(Add, meter(MeterId(2), &[1; 17])), (12, 11));
    let remark = |precedence_level| {
        let band = MeterBand { band: Band::DscpRemark { precedence_level }, rate: 1, burst: 0 };
        Meter { bands: vec![band], ..meter(MeterId(2), &[]) }
    };
    for level in [0, 3, 255] {
        assert_eq!(refused(Add, remark(level)), (12, 9), "{level}");
    }
}

#[test]
fn the_advertised_limit_of_meters_applies() {
    let mut m = plain();
    let most = flow::Limits::METERS as u32;
    for id in 1..=most {
        m.meter_mod(Nanos(0), Add, meter(MeterId(id), &[1])).unwrap();
    }
    assert_eq!(m.meter_mod(Nanos(0), Add, meter(MeterId(most + 1), &[1])).unwrap_err().openflow(), (12, 10));
    m.meter_mod(Nanos(0), Modify, meter(MeterId(most), &[2])).unwrap();
    m.meter_mod(Nanos(0), Delete, meter(MeterId(1), &[])).unwrap();
    m.meter_mod(Nanos(0), Add, meter(MeterId(most + 1), &[1])).unwrap();
}
