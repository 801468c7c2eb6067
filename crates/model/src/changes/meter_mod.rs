// SPDX-License-Identifier: Apache-2.0
//! Meter-mods.

use super::transaction::Transaction;
use crate::async_messages::RemovedReason;
use crate::error::ModelError;
use flow::meter::{Band, Meter};
use flow::validate::METER_MAX;
use flow::{FlowEntry, Limits, MeterId};

/// Command of a meter-mod (OFPMC_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterCommand {
    /// Add a meter.
    Add,
    /// Replace the meter with this number. Its counters start at 0.
    Modify,
    /// Add a meter, or replace the meter with this number.
    AddOrModify,
    /// Delete a meter and the entries that use it. A missing meter is not an error.
    Delete,
    /// Delete all meters and the entries that use any of them.
    DeleteAll,
}

pub(super) fn apply(
    transaction: &mut Transaction<'_>,
    command: MeterCommand,
    meter: Meter,
) -> Result<(), ModelError> {
    let meters = &transaction.rules().meters;
    let there = meters.contains_key(&meter.id);
    match command {
        MeterCommand::Add if there => return Err(ModelError::MeterExists(meter.id)),
        MeterCommand::Add | MeterCommand::AddOrModify if !there && meters.len() >= Limits::METERS => {
            return Err(ModelError::TooManyMeters);
        }
        MeterCommand::Modify if !there => return Err(ModelError::NoSuchMeter(meter.id)),
        MeterCommand::Add | MeterCommand::AddOrModify | MeterCommand::Modify => {
            check(&meter)?;
            transaction.set_meter(meter);
        }
        MeterCommand::Delete => delete(transaction, meter.id),
        MeterCommand::DeleteAll => {
            // One scan removes the entries of all meters, instead of one scan per meter.
            let users = meters.values().map(|record| record.users).sum();
            let ids: Vec<MeterId> = meters.keys().copied().collect();
            let uses = |entry: &FlowEntry| entry.instructions.meter.is_some();
            transaction.remove_where(Some(users), uses, Some(RemovedReason::Delete));
            for id in ids {
                delete(transaction, id);
            }
        }
    }
    Ok(())
}

fn delete(transaction: &mut Transaction<'_>, id: MeterId) {
    let Some(users) = transaction.rules().meters.get(&id).map(|record| record.users) else { return };
    let uses = |entry: &FlowEntry| entry.instructions.meter == Some(id);
    transaction.remove_where(Some(users), uses, Some(RemovedReason::Delete));
    transaction.remove_meter(id);
}

fn check(meter: &Meter) -> Result<(), ModelError> {
    let id = meter.id;
    if !(MeterId(1)..=METER_MAX).contains(&id) {
        return Err(ModelError::InvalidMeter {
            meter: id,
            why: "its number is reserved; use 1 to 0xffff0000",
        });
    }
    if meter.bands.len() > Limits::METER_BANDS {
        return Err(ModelError::TooManyBands { meter: id, bands: meter.bands.len() });
    }
    if meter.bands.iter().any(|band| band.rate == 0) {
        return Err(ModelError::ZeroRate(id));
    }
    // RFC 2597 has three drop precedences, so a packet's precedence can be raised by at most two.
    for band in &meter.bands {
        if let Band::DscpRemark { precedence_level: level @ (0 | 3..) } = band.band {
            return Err(ModelError::BadPrecedence { meter: id, level });
        }
    }
    Ok(())
}
