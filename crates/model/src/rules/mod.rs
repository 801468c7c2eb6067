// SPDX-License-Identifier: Apache-2.0
//! The rules: the state that controllers program.
//!
//! Requests change [`Rules`] through a `Transaction` (`crate::changes`), which logs how to undo each step.
//!
//! Begin with [`Rules`], then [`store`] (all entries by ID) and [`table`] (the index of one table).

pub(crate) mod carried;
pub(crate) mod groups;
mod order;
pub(crate) mod records;
mod sharing;
pub(crate) mod slot;
pub(crate) mod store;
mod table;
mod table_set;
pub(crate) mod users;

pub use slot::{EntryOrigin, Mark};
pub use table_set::TableSet;

use crate::error::ModelError;
use crate::port::Port;
use carried::CarriedCounts;
use flow::meter::Meter;
use flow::stateless::StatelessConfig;
use flow::{Action, BridgeConfig, Instructions, MeterId, PortNo};
use groups::Groups;
use records::Records;
use sharing::Sharing;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Store;

/// The state that controllers program.
#[derive(Debug)]
pub(crate) struct Rules {
    pub store: Store,
    pub sharing: Sharing,
    /// Counts of replaced entries, which are added to the counters of the entries that replaced them.
    pub carried: CarriedCounts,
    pub groups: Groups,
    pub meters: Records<MeterId, Meter>,
    pub ports: BTreeMap<PortNo, Port>,
    pub stateless: Option<Arc<StatelessConfig>>,
    /// Settings of the ports for NORMAL, unless all ports have the default settings.
    pub bridge: Option<Arc<BridgeConfig>>,
    /// Tables of the pipeline.
    pub pipeline_tables: TableSet,
}

impl Rules {
    /// Returns rules without entries, groups, meters and ports, with a pipeline of `tables` tables.
    pub fn new(tables: u8) -> Self {
        Self {
            store: Store::new(),
            sharing: Sharing::default(),
            carried: CarriedCounts::default(),
            groups: Groups::default(),
            meters: Records::new(),
            ports: BTreeMap::new(),
            stateless: None,
            bridge: None,
            pipeline_tables: TableSet::first(tables),
        }
    }

    /// Refuses instructions that use a missing group or meter.
    pub fn check_references(&self, instructions: &Instructions) -> Result<(), ModelError> {
        if let Some(meter) = instructions.meter.filter(|meter| !self.meters.contains_key(meter)) {
            return Err(ModelError::NoSuchMeter(meter));
        }
        for action in instructions.apply.iter().chain(&instructions.write) {
            if let Action::Group(group) = action
                && self.groups.get(*group).is_none()
            {
                return Err(ModelError::NoSuchGroup(*group));
            }
        }
        Ok(())
    }
}
