// SPDX-License-Identifier: Apache-2.0
//! METER_MOD (section 7.3.4.4) and the bands of meters.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use crate::group::GroupChange;
use flow::MeterId;
use flow::meter::{Band, Meter, MeterBand};

/// OFPM_SLOWPATH: meter for packets on the slow path.
pub const SLOWPATH: MeterId = MeterId(0xffff_fffd);
/// OFPM_CONTROLLER: meter for packets to the controller.
pub const CONTROLLER: MeterId = MeterId(0xffff_fffe);
/// Number that stands for all meters in deletes and statistics requests (OFPM_ALL).
pub const ALL: MeterId = MeterId(0xffff_ffff);

const KBPS: u16 = 1;
const PKTPS: u16 = 1 << 1;
const BURST: u16 = 1 << 2;
const STATS: u16 = 1 << 3;

const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;
const BAND_BYTES: u16 = 16;

/// Change of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// Command of the request.
    pub command: GroupChange,
    /// The meter. A delete uses only its number, which may be [`ALL`].
    pub meter: Meter,
}

impl MeterMod {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let command = GroupChange::decode(r.u16()?, error::METER_BAD_COMMAND)?;
        let meter = decode_meter(r)?;
        let id = meter.id;
        let virtual_meter =
            matches!(id, SLOWPATH | CONTROLLER) || id == ALL && command == GroupChange::Delete;
        if id == MeterId(0) || id > flow::validate::METER_MAX && !virtual_meter {
            return error::METER_INVALID
                .says(format!("meter {id:#x} cannot exist; meters are numbered 1 to 0xffff0000"));
        }
        Ok(Self { command, meter })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.command as u16);
        encode_meter(&self.meter, out);
    }
}

/// Decodes flags, number and bands, which extend to the end of the message.
pub(crate) fn decode_meter(r: &mut Reader<'_>) -> Result<Meter, DecodeError> {
    let flags = r.u16()?;
    if flags >> 4 != 0 || flags & (KBPS | PKTPS) == KBPS | PKTPS {
        return error::METER_BAD_FLAGS.says(format!(
            "meter flags {flags:#x}; bits 0 to 3 are known, of which kbps and pktps exclude each other"
        ));
    }
    let id = MeterId(r.u32()?);
    let mut bands = Vec::new();
    while !r.is_empty() {
        bands.push(decode_band(r)?);
    }
    let bit = |bit| flags & bit != 0;
    Ok(Meter { id, packets: bit(PKTPS), stats: bit(STATS), burst: bit(BURST), bands })
}

fn decode_band(r: &mut Reader<'_>) -> Result<MeterBand, DecodeError> {
    let (kind, length) = (r.u16()?, r.u16()?);
    if !matches!(kind, DROP | DSCP_REMARK) {
        return error::METER_BAD_BAND
            .says(format!("meter band type {kind:#x}; 1 (drop) and 2 (dscp) are known"));
    }
    if length != BAND_BYTES {
        return error::BAD_LEN.says(format!("a meter band has {length} bytes; it must have 16"));
    }
    let (rate, burst) = (r.u32()?, r.u32()?);
    let precedence_level = r.u8()?;
    r.skip(3)?;
    let band = if kind == DROP { Band::Drop } else { Band::DscpRemark { precedence_level } };
    Ok(MeterBand { band, rate, burst })
}

pub(crate) fn encode_meter(meter: &Meter, out: &mut Vec<u8>) {
    let bit = |set: bool, bit| if set { bit } else { 0 };
    out.put_u16(
        bit(!meter.packets, KBPS)
            | bit(meter.packets, PKTPS)
            | bit(meter.burst, BURST)
            | bit(meter.stats, STATS),
    );
    out.put_u32(meter.id.0);
    for band in &meter.bands {
        let (kind, precedence_level) = match band.band {
            Band::Drop => (DROP, 0),
            Band::DscpRemark { precedence_level } => (DSCP_REMARK, precedence_level),
        };
        out.put_u16(kind);
        out.put_u16(BAND_BYTES);
        out.put_u32(band.rate);
        out.put_u32(band.burst);
        out.put(&[precedence_level, 0, 0, 0]);
    }
}
