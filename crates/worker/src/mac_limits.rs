// SPDX-License-Identifier: Apache-2.0
//! Finds the ports that have reached their limits of learned addresses.

use flow::operation::MAC_TABLE;
use flow::{Action, BridgeConfig, EntryChange, EntryId, PortNo};
use pipeline::{FullPorts, RefusalReports, Update};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Limit of a port.
#[derive(Debug)]
struct PortLimit {
    limit: u32,
    /// Stays while the port has a limit, so that a port reports no more often if it is full again and again.
    reports: RefusalReports,
}

/// Counts of learned addresses, and their limits.
#[derive(Debug, Default)]
pub(crate) struct MacLimits {
    limits: BTreeMap<PortNo, PortLimit>,
    /// Number of addresses that are learned at each port.
    learned: BTreeMap<PortNo, u32>,
    /// Port of each entry of a learned address.
    entries: HashMap<EntryId, PortNo>,
    /// Full ports, as the workers know them.
    full: Vec<PortNo>,
    /// Whether counts or limits have changed.
    has_changed: bool,
}

impl MacLimits {
    /// Sets the limits of all ports.
    pub fn set(&mut self, config: Option<&BridgeConfig>) {
        let mut before = std::mem::take(&mut self.limits);
        for (port, settings) in config.iter().flat_map(|config| &config.ports) {
            if let Some(limit) = settings.mac_limit {
                let before = before.remove(port).map(|before| before.reports);
                let reports = before.unwrap_or_else(RefusalReports::each_second);
                self.limits.insert(*port, PortLimit { limit, reports });
            }
        }
        self.has_changed = true;
    }

    /// Counts added and removed entries of learned addresses.
    pub fn note(&mut self, changes: &[EntryChange]) {
        for change in changes {
            match change {
                EntryChange::Add(entry) if entry.table == MAC_TABLE => {
                    if let Some(Action::Output { port, .. }) = entry.instructions.apply.first() {
                        self.entries.insert(entry.id, *port);
                        *self.learned.entry(*port).or_default() += 1;
                        self.has_changed = true;
                    }
                }
                EntryChange::Remove { id, table } if *table == MAC_TABLE => {
                    if let Some(port) = self.entries.remove(id) {
                        self.count_gone(port);
                    }
                }
                // The model never moves a learned address to another port by a modification.
                EntryChange::Add(_) | EntryChange::Modify { .. } | EntryChange::Remove { .. } => {}
            }
        }
    }

    fn count_gone(&mut self, port: PortNo) {
        if let Some(count) = self.learned.get_mut(&port) {
            *count -= 1;
            if *count == 0 {
                self.learned.remove(&port);
            }
        }
        self.has_changed = true;
    }

    /// Appends the list of full ports to each worker's updates, if it has changed. The first `workers`
    /// workers forward packets. The others are search workers, which report nothing.
    pub fn updates(&mut self, workers: usize, parts: &mut [Vec<Update>]) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        let is_full = |(port, limit): &(&PortNo, &PortLimit)| {
            self.learned.get(port).is_some_and(|learned| *learned >= limit.limit)
        };
        let full: Vec<(PortNo, RefusalReports)> =
            self.limits.iter().filter(is_full).map(|(port, limit)| (*port, limit.reports.clone())).collect();
        let numbers = || full.iter().map(|(port, _)| *port);
        if self.full.iter().copied().eq(numbers()) {
            return;
        }
        self.full = numbers().collect();
        let never = numbers().map(|port| (port, RefusalReports::NEVER)).collect();
        let for_search_workers = Arc::new(FullPorts::new(never));
        let for_workers = Arc::new(FullPorts::new(full));
        for (number, parts) in parts.iter_mut().enumerate() {
            let full = if number < workers { &for_workers } else { &for_search_workers };
            parts.push(Update::SwapFullPorts(Arc::clone(full)));
        }
    }
}
