// SPDX-License-Identifier: Apache-2.0
//! Conversion of meters between OpenFlow messages and the model.

use super::context::{Context, Refusal};
use crate::changes::{Change, MeterCommand};
use crate::queries::MeterStats;
use dataplane::TableCapabilities;
use dataplane::{DataPlane, TrafficCount};
use flow::{Limits, MeterId};
use openflow::error;
use openflow::group::GroupChange as Do;
use openflow::meter::{ALL, MeterMod};
use openflow::multipart::group_stats::Counts;
use openflow::multipart::meter_stats::{MeterFeatures, MeterStatsEntry};

/// Supported band types. Bit `n` stands for type `n`: drop (1) and DSCP remark (2).
const BAND_TYPES: u32 = 1 << 1 | 1 << 2;
/// Meter capabilities OFPMF_*: kbit/s, packets/s, bursts, statistics.
const CAPABILITIES: u32 = 1 | 2 | 4 | 8;

pub fn change(m: &MeterMod) -> Change {
    let command = match m.command {
        Do::Add => MeterCommand::Add,
        Do::Modify => MeterCommand::Modify,
        Do::Delete if m.meter.id == ALL => MeterCommand::DeleteAll,
        Do::Delete => MeterCommand::Delete,
    };
    Change::Meter(command, m.meter.clone())
}

/// Refuses a query for a meter that does not exist.
pub fn known<D: DataPlane>(context: &Context<'_, D>, number: MeterId) -> Result<(), Refusal> {
    if number == ALL || context.model.meter_numbered(number).is_some() {
        return Ok(());
    }
    Err(Refusal::new(error::METER_UNKNOWN, format!("meter {number} does not exist")))
}

pub fn features(able: &TableCapabilities) -> MeterFeatures {
    if !able.groups_meters_queues {
        return MeterFeatures::default();
    }
    MeterFeatures {
        max_meters: Limits::METERS as u32,
        band_types: BAND_TYPES,
        capabilities: CAPABILITIES,
        max_bands: u8::try_from(Limits::METER_BANDS).unwrap_or(u8::MAX),
        max_color: 0,
    }
}

pub fn stats(stats: &MeterStats) -> MeterStatsEntry {
    let counts = |count: TrafficCount| Counts { packets: count.packets, bytes: count.bytes };
    MeterStatsEntry {
        meter: stats.meter.id,
        flows: u32::try_from(stats.references).unwrap_or(u32::MAX),
        input: counts(stats.counters.total),
        duration_ns: stats.duration_ns,
        bands: stats.counters.bands.iter().copied().map(counts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_the_numbers_of_the_specification() {
        let features = features(&TableCapabilities::all());
        // OFPMBT_DROP is 1 and OFPMBT_DSCP_REMARK is 2. Bits 0 to 3 of the capabilities are kbit/s,
        // packets/s, bursts and statistics.
        assert_eq!((features.band_types, features.capabilities), (0b110, 0b1111));
        assert_eq!((features.max_meters as usize, features.max_color), (Limits::METERS, 0));
        assert_eq!(usize::from(features.max_bands), Limits::METER_BANDS);
    }
}
