// SPDX-License-Identifier: Apache-2.0
//! Tests the rates of meters, and the effects of bands.

use super::frames::udp;
use super::with_instructions;
use crate::{MeterDebts, Metered};
use flow::meter::{Band, Meter, MeterBand};
use flow::{Action, DropReason, Instructions, MeterId, Nanos, Outcome, PortNo, TableId};
use std::collections::BTreeMap;

const MS: Nanos = Nanos::MILLISECOND;

fn meter(packets: bool, bands: &[(Band, u32, u32)]) -> MeterDebts {
    let bands = bands.iter().map(|&(band, rate, burst)| MeterBand { band, rate, burst }).collect();
    MeterDebts::new(&Meter { id: MeterId(1), packets, stats: true, burst: true, bands })
}

#[test]
fn a_band_passes_its_burst_and_then_its_rate() {
    let mut packets = meter(true, &[(Band::Drop, 100, 3)]);
    let passes: Vec<bool> =
        [0, 0, 0, 0, 9, 10, 10, 30, 30, 30].map(|ms| packets.charge(60, ms * MS).is_none()).into();
    assert_eq!(passes, [true, true, true, false, false, true, false, true, true, false]);
    assert_eq!((packets.total(), packets.bands()), ((10, 600), &[(4, 240)][..]));
    // A rate of 8 kbit/s is 1,000 bytes/s, or one packet of 100 bytes per 100 ms. Without a burst size, the
    // burst is 100 ms.
    let mut bits = meter(false, &[(Band::Drop, 8, 0)]);
    let passes: Vec<bool> = [0, 50, 99, 100, 200].map(|ms| bits.charge(100, ms * MS).is_none()).into();
    assert_eq!(passes, [true, false, false, true, true]);
    // A packet larger than the burst size still passes if the debt is 0.
    let passes: Vec<bool> = [400, 1_399, 1_400].map(|ms| bits.charge(1_000, ms * MS).is_none()).into();
    assert_eq!(passes, [true, false, true]);
}

#[test]
fn the_exceeded_band_of_highest_rate_applies_and_other_bands_are_charged() {
    let remark = Band::DscpRemark { precedence_level: 1 };
    let mut two = meter(true, &[(remark, 1, 1), (Band::Drop, 2, 2), (remark, 2, 2)]);
    let bands: Vec<Option<Band>> = (0..4).map(|_| two.charge(60, Nanos(0))).collect();
    assert_eq!(bands, [None, Some(remark), Some(Band::Drop), Some(Band::Drop)]);
    assert_eq!(two.bands(), [(1, 60), (2, 120), (0, 0)]);
}

#[test]
fn drop_bands_end_packets_and_remark_bands_raise_the_drop_precedence() {
    let metered =
        Instructions { meter: Some(MeterId(5)), ..Instructions::apply(vec![Action::output(PortNo(2))]) };
    let mut reference = with_instructions(metered);
    let mut frame = udp();
    let process = |reference: &mut crate::Reference, frame: &[u8], band: Option<Band>| {
        reference.exceed(band.map(|band| (TableId(0), band)).into_iter().collect::<BTreeMap<_, _>>());
        reference.process(PortNo(1), frame)
    };
    let dropped = process(&mut reference, &frame, Some(Band::Drop));
    assert_eq!(dropped.outcome, Outcome::Dropped(DropReason::MeterBand));
    assert_eq!(dropped.metered, [Metered { table: TableId(0), meter: MeterId(5), bytes: frame.len() }]);
    assert_eq!(
        process(&mut reference, &frame, None).outcome,
        Outcome::Forwarded,
        "`exceed` affects only the next packet"
    );
    // AF11 becomes AF12. AF43, a DSCP outside assured forwarding, and the ECN bits do not change.
    for (before, steps, after) in
        [(0x29, 1, 0x31), (0x28, 2, 0x38), (0x98, 2, 0x98), (0x2c, 1, 0x2c), (0xb8, 1, 0xb8)]
    {
        frame[15] = before;
        let band = Band::DscpRemark { precedence_level: steps };
        assert_eq!(process(&mut reference, &frame, Some(band)).sent[0].bytes[15], after, "{before:#x}");
    }
}
