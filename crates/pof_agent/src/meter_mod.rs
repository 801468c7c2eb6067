// SPDX-License-Identifier: Apache-2.0
//! METER_MOD. A meter drops packets above its rate.

use crate::refusal::PofRefusal;
use crate::slot;
use crate::work::{Asked, Then};
use flow::meter::{Band, Meter, MeterBand};
use model::{Change, MeterCommand};
use pof::message::resource::{PofMeterCommand, PofMeterMod};

/// Checks a METER_MOD and returns its changes.
pub fn meter_mod(m: &PofMeterMod) -> Result<Asked, PofRefusal> {
    slot::check(m.slot)?;
    let command = match m.command {
        PofMeterCommand::Add => MeterCommand::Add,
        PofMeterCommand::Modify => MeterCommand::Modify,
        PofMeterCommand::Delete => MeterCommand::Delete,
    };
    let band = MeterBand { band: Band::Drop, rate: m.rate_kbps, burst: 0 };
    let meter = Meter { id: m.meter, packets: false, stats: true, burst: false, bands: vec![band] };
    Ok((vec![Change::Meter(command, meter)], Then::Nothing))
}
