// SPDX-License-Identifier: Apache-2.0
//! Meters as a controller sees them.

use crate::store::Life;
use crate::{DataPlane, MeterCounters, Model, ModelError};
use flow::meter::{Band, Meter};
use flow::validate::METER_MAX;
use flow::{Limits, Nanos, Operation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a meter-mod does (OFPMC_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterCommand {
    /// Add a meter.
    Add,
    /// Replace a meter by another of its number; it counts from 0.
    Modify,
    /// Delete a meter, the entries that use it with it. No error if there is none.
    Delete,
    /// Delete all meters and the entries that use any.
    DeleteAll,
}

/// A meter and when it was added.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub meter: Arc<Meter>,
    pub since: Nanos,
}

/// All meters by number.
pub(crate) type Meters = BTreeMap<u32, Record>;

/// A meter with what it has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats {
    /// The meter, as it was asked for.
    pub meter: Arc<Meter>,
    /// How long it is there.
    pub duration_ns: Nanos,
    /// Entries that use it.
    pub references: usize,
    /// What it has counted.
    pub counters: MeterCounters,
}

impl<D: DataPlane> Model<D> {
    /// Does one meter-mod. For deletes only the number of `meter` counts.
    ///
    /// # Errors
    /// What OpenFlow 1.3 refuses (OFPET_METER_MOD_FAILED); nothing is changed then.
    pub fn meter_mod(&mut self, now: Nanos, command: MeterCommand, meter: Meter) -> Result<(), ModelError> {
        match command {
            MeterCommand::Add if self.meters.contains_key(&meter.id) => {
                Err(ModelError::MeterExists(meter.id))
            }
            MeterCommand::Modify if !self.meters.contains_key(&meter.id) => {
                Err(ModelError::NoSuchMeter(meter.id))
            }
            MeterCommand::Add | MeterCommand::Modify => self.set_meter(now, meter),
            MeterCommand::Delete => {
                self.delete_meter(now, meter.id);
                Ok(())
            }
            MeterCommand::DeleteAll => {
                for id in self.meter_ids() {
                    self.delete_meter(now, id);
                }
                Ok(())
            }
        }
    }

    fn set_meter(&mut self, now: Nanos, meter: Meter) -> Result<(), ModelError> {
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
        if meter.bands.iter().any(|band| band.band == Band::DscpRemark { precedence_level: 0 }) {
            return Err(ModelError::InvalidMeter {
                meter: id,
                why: "a remark band raises the precedence by 1 or more",
            });
        }
        let since = self.meters.get(&id).map_or(now, |old| old.since);
        let meter = Arc::new(meter);
        self.meters.insert(id, Record { meter: Arc::clone(&meter), since });
        self.version = self.plane.submit(Operation::Meter(meter));
        Ok(())
    }

    fn delete_meter(&mut self, now: Nanos, id: u32) {
        if self.meters.remove(&id).is_none() {
            return;
        }
        self.delete_entries(now, |entry| entry.instructions.meter == Some(id));
        self.version = self.plane.submit(Operation::RemoveMeter(id));
    }

    /// A meter's numbers and counters.
    pub fn meter(&mut self, now: Nanos, id: u32) -> Option<MeterStats> {
        let record = self.meters.get(&id)?.clone();
        let live = self.store.slots().iter().filter(|slot| slot.life == Life::Live);
        let users = live.filter_map(|slot| slot.entry.as_ref()).filter(|e| e.instructions.meter == Some(id));
        Some(MeterStats {
            references: users.count(),
            duration_ns: now.saturating_sub(record.since),
            counters: self.plane.meter_counters(id).unwrap_or_default(),
            meter: record.meter,
        })
    }

    /// The numbers of all meters.
    #[must_use]
    pub fn meter_ids(&self) -> Vec<u32> {
        self.meters.keys().copied().collect()
    }
}
