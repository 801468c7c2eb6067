// SPDX-License-Identifier: Apache-2.0
//! Statistics of meters (section 7.3.5.12), their descriptions (7.3.5.13), and capabilities (7.3.5.14).

use super::group_stats::Counts;
use super::kind;
use super::parts::private::Coded;
use crate::bytes::{Put, Reader, duration, put_duration};
use crate::error::{self, DecodeError};
use crate::meter::{decode_meter, encode_meter};
use flow::meter::Meter;
use flow::{MeterId, Nanos};

/// Statistics of a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MeterStatsEntry {
    /// Meter number.
    pub meter: MeterId,
    /// Number of entries that use the meter.
    pub flows: u32,
    /// Packets and bytes that the meter processed.
    pub input: Counts,
    /// Time since the meter was added.
    pub duration_ns: Nanos,
    /// Packets and bytes to which each band was applied.
    pub bands: Vec<Counts>,
}

impl Coded for MeterStatsEntry {
    const KIND: u16 = kind::METER;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(r.peek_u16(4)?);
        let mut part = r.part(length, "a meter's statistics", error::BAD_LEN)?;
        let r = &mut part;
        let meter = MeterId(r.u32()?);
        r.skip(8)?;
        Ok(Self {
            meter,
            flows: r.u32()?,
            input: Counts::decode(r)?,
            duration_ns: duration(r)?,
            bands: Counts::decode_list(r)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(self.meter.0);
        out.zeros(8);
        out.put_u32(self.flows);
        self.input.encode(out);
        put_duration(out, self.duration_ns);
        self.bands.iter().for_each(|band| band.encode(out));
        out.patch_length(start + 4, start);
    }
}

impl Coded for Meter {
    const KIND: u16 = kind::METER_CONFIG;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(r.peek_u16(0)?);
        let mut part = r.part(length, "a meter", error::BAD_LEN)?;
        part.skip(2)?;
        decode_meter(&mut part)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.zeros(2);
        encode_meter(self, out);
        out.patch_length(start, start);
    }
}

/// Capabilities and limits of meters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MeterFeatures {
    /// Maximum number of meters.
    pub max_meters: u32,
    /// Supported band types, as a bitmap. Bit `n` stands for type `n` (1 is drop, 2 is DSCP remark).
    pub band_types: u32,
    /// Capabilities (OFPMF_*): 1 for kbit/s, 2 for packets/s, 4 for bursts, 8 for statistics.
    pub capabilities: u32,
    /// Maximum number of bands per meter.
    pub max_bands: u8,
    /// Maximum colour value.
    pub max_color: u8,
}

impl MeterFeatures {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let features = Self {
            max_meters: r.u32()?,
            band_types: r.u32()?,
            capabilities: r.u32()?,
            max_bands: r.u8()?,
            max_color: r.u8()?,
        };
        r.skip(2)?;
        Ok(features)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.max_meters);
        out.put_u32(self.band_types);
        out.put_u32(self.capabilities);
        out.put(&[self.max_bands, self.max_color, 0, 0]);
    }
}
