// SPDX-License-Identifier: Apache-2.0
//! Meters as controllers see them.

use crate::async_messages::RemovedReason;
use crate::change::Change;
use crate::records::{Record, Records};
use crate::stage::{Staged, Step};
use crate::{Model, ModelError};
use dataplane::{DataPlane, MeterCounters};
use flow::meter::{Band, Meter};
use flow::validate::METER_MAX;
use flow::{Limits, Nanos, Operation};
use std::sync::Arc;

/// Command of a meter-mod (OFPMC_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterCommand {
    /// Add a meter.
    Add,
    /// Replace the meter of this number; its counters start at 0.
    Modify,
    /// Add a meter, or replace the meter of this number.
    AddOrModify,
    /// Delete a meter and the entries that use it. Not an error if there is no such meter.
    Delete,
    /// Delete all meters and the entries that use any of them.
    DeleteAll,
}

/// All meters by number.
pub(crate) type Meters = Records<Meter>;

/// A meter with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats {
    /// Definition of the meter, as requested.
    pub meter: Arc<Meter>,
    /// Time since the meter was added, in nanoseconds.
    pub duration_ns: Nanos,
    /// Number of entries that use the meter.
    pub references: usize,
    /// Counters of the meter.
    pub counters: MeterCounters,
}

impl<D: DataPlane> Model<D> {
    /// Applies one meter-mod. A delete uses only the number of `meter`.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the meter-mod (OFPET_METER_MOD_FAILED). Nothing is
    /// changed then.
    pub fn meter_mod(&mut self, now: Nanos, command: MeterCommand, meter: Meter) -> Result<(), ModelError> {
        self.change(now, Change::Meter(command, meter)).map(|_| ())
    }

    pub(crate) fn stage_meter_mod(
        &mut self,
        now: Nanos,
        command: MeterCommand,
        meter: Meter,
        staged: &mut Staged,
    ) -> Result<(), ModelError> {
        let there = self.meters.contains_key(&meter.id);
        match command {
            MeterCommand::Add if there => return Err(ModelError::MeterExists(meter.id)),
            MeterCommand::Add | MeterCommand::AddOrModify
                if !there && self.meters.len() >= Limits::METERS =>
            {
                return Err(ModelError::TooManyMeters);
            }
            MeterCommand::Modify if !there => return Err(ModelError::NoSuchMeter(meter.id)),
            MeterCommand::Add | MeterCommand::AddOrModify | MeterCommand::Modify => {
                check(&meter)?;
                self.stage_meter(now, meter, staged);
            }
            MeterCommand::Delete => self.stage_meter_delete(meter.id, staged),
            MeterCommand::DeleteAll => {
                // One scan removes the entries of all meters, because a scan visits every entry of the
                // switch.
                let users = self.meters.values().map(|record| record.users).sum();
                let uses = |entry: &flow::FlowEntry| entry.instructions.meter.is_some();
                self.stage_remove_users(users, uses, RemovedReason::Delete, staged);
                for id in self.meter_ids() {
                    self.stage_meter_delete(id, staged);
                }
            }
        }
        Ok(())
    }

    fn stage_meter(&mut self, now: Nanos, meter: Meter, staged: &mut Staged) {
        let id = meter.id;
        let what = Arc::new(meter);
        let (since, users) = self.meters.get(&id).map_or((now, 0), |old| (old.since, old.users));
        let old = self.meters.insert(id, Record { what: Arc::clone(&what), since, users });
        staged.log.push(Step::Meter(id, old));
        staged.others.push(Operation::Meter(what));
    }

    fn stage_meter_delete(&mut self, id: u32, staged: &mut Staged) {
        let Some(users) = self.meters.get(&id).map(|record| record.users) else { return };
        let uses = |entry: &flow::FlowEntry| entry.instructions.meter == Some(id);
        self.stage_remove_users(users, uses, RemovedReason::Delete, staged);
        staged.log.push(Step::Meter(id, self.meters.remove(&id)));
        staged.others.push(Operation::RemoveMeter(id));
    }

    /// Returns a meter with its counters.
    pub fn meter(&mut self, now: Nanos, id: u32) -> Option<MeterStats> {
        let record = self.meters.get(&id)?;
        Some(MeterStats {
            references: record.users,
            duration_ns: now.saturating_sub(record.since),
            counters: self.plane.meter_counters(id).unwrap_or_default(),
            meter: Arc::clone(&record.what),
        })
    }

    /// Returns the numbers of all meters.
    #[must_use]
    pub fn meter_ids(&self) -> Vec<u32> {
        self.meters.keys().copied().collect()
    }
}

fn check(meter: &Meter) -> Result<(), ModelError> {
    let id = meter.id;
    if !(1..=METER_MAX).contains(&id) {
        return Err(ModelError::InvalidMeter {
            meter: id,
            why: "its number is reserved; take 1 to 0xffff0000",
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
