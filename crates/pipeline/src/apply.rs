// SPDX-License-Identifier: Apache-2.0
//! Application of an operation to the rules, between two bursts.

use crate::context::Rules;
use crate::ffp::Ffp;
use crate::update::Update;

impl Rules {
    /// Applies a part of an operation. Replaced objects are left in `update`.
    pub fn apply(&mut self, ffp: &mut Ffp, update: &mut Update) {
        match update {
            Update::Table(number, change) => {
                if let Some((table, _)) = self.tables[number.index()].as_deref_mut() {
                    table.apply(change);
                }
            }
            Update::SwapTable(number, slot) => {
                std::mem::swap(&mut self.tables[number.index()], slot);
                self.depth = ffp.depth(&self.tables);
            }
            Update::SwapFastMode(number, mode) => {
                ffp.swap(*number, mode);
                self.depth = ffp.depth(&self.tables);
            }
            Update::Clean(number, coherence, clean) => {
                let view = self.tables[number.index()].as_deref().map(|(table, _)| table);
                ffp.clean(*number, *coherence, clean, view);
            }
            Update::ListMax(number, rules) => ffp.set_list_max(*number, *rules),
            Update::Program(id, program) => {
                if let Some(place) = self.programs.get_mut(*id as usize) {
                    std::mem::swap(place, program);
                }
            }
            Update::SwapPrograms(programs) => std::mem::swap(&mut self.programs, programs),
            Update::Entry(id, program) => {
                if let Some(cell) = self.cells.get(*id) {
                    cell.set_program(*program);
                }
            }
            Update::ResetCounts(id) => {
                if let Some(cell) = self.cells.get(*id) {
                    cell.reset();
                }
            }
            Update::Settings(settings) => self.settings = *settings,
            Update::SwapCells(cells) => std::mem::swap(&mut self.cells, cells),
            Update::SwapPorts(ports) => std::mem::swap(&mut self.ports, ports),
            Update::SwapGroups(groups) => std::mem::swap(&mut self.groups, groups),
            Update::SwapMeters(meters) => std::mem::swap(&mut self.meters, meters),
            Update::SwapStateless(new) => std::mem::swap(&mut self.stateless, new),
            Update::SwapBridge(new) => std::mem::swap(&mut self.bridge, new),
            Update::SwapFullPorts(new) => std::mem::swap(&mut self.full_ports, new),
            // The worker or the pipeline handles these parts.
            Update::PacketOut(_)
            | Update::EndWaits(_)
            | Update::Lanes { .. }
            | Update::Record(_)
            | Update::SwapExpress(_)
            | Update::EndPrevious(_)
            | Update::CoarseKeys(_)
            | Update::PathChanges(_) => {}
        }
    }
}
