// SPDX-License-Identifier: Apache-2.0
//! Adds, modifies and deletes meters while packets use them.

use super::Driver;
use flow::MeterId;
use model::MeterCommand;

impl Driver {
    pub(super) fn change_meter(&mut self) -> Result<(), String> {
        let subject = self.subject(|processed| !processed.hits.is_empty());
        let missing =
            (1..=self.style.meters).map(MeterId).find(|id| self.model.meter(self.now, *id).is_none());
        let missing = missing.filter(|_| self.rng.u8(0..8) > 0);
        let id = missing.unwrap_or_else(|| MeterId(self.rng.u32(1..=self.style.meters)));
        let there = self.model.meter(self.now, id).is_some();
        let command = match self.rng.u8(0..4) {
            _ if !there => MeterCommand::Add,
            0 => MeterCommand::Delete,
            _ => MeterCommand::Modify,
        };
        let meter = self.style.meter(&mut self.rng, id);
        self.model.meter_mod(self.now, command, meter).map_err(|error| error.to_string())?;
        let changes = &mut self.record.changes;
        *match command {
            MeterCommand::Add | MeterCommand::AddOrModify => &mut changes.meters_added,
            MeterCommand::Modify => &mut changes.meters_modified,
            MeterCommand::Delete | MeterCommand::DeleteAll => &mut changes.meters_deleted,
        } += 1;
        self.account_if_live(&subject)
    }
}
