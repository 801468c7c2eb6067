// SPDX-License-Identifier: Apache-2.0
//! Ports that storm limits close. The driver computes from the reports of the workers which ports must be
//! closed after each poll of the control thread. The checker compares the reports with the floods that exceed
//! their limits.

use super::Driver;
use crate::log::Closing;
use dataplane::StormEvent;
use flow::{BridgeConfig, Nanos, PortNo};
use model::StormNotice;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Ports that must be closed.
#[derive(Debug, Default)]
pub(super) struct ClosedPorts {
    /// Settings in force.
    bridge: BridgeConfig,
    /// Time at which each closed port must open.
    opens: BTreeMap<PortNo, Nanos>,
    /// Ports that were closed since the last check.
    closed: Vec<PortNo>,
    /// Notices that the model must have made since the last check.
    notices: Vec<StormNotice>,
    /// Number of reports that were taken into account.
    reports: usize,
}

impl ClosedPorts {
    /// Replaces the settings. A closed port whose storm limits change must open.
    pub fn set_bridge(&mut self, bridge: &BridgeConfig) {
        let before = std::mem::replace(&mut self.bridge, bridge.clone());
        let is_changed = |port: &PortNo| before.port(*port).storm != bridge.port(*port).storm;
        let changed: Vec<PortNo> = self.opens.keys().copied().filter(is_changed).collect();
        changed.into_iter().for_each(|port| self.open(port));
    }

    /// Forgets a port that is removed.
    pub fn forget(&mut self, port: PortNo) {
        self.opens.remove(&port);
    }

    /// Applies the reports of a poll. A port closes at its first report, and opens after the time in its
    /// settings.
    fn poll(&mut self, now: Nanos, reports: &[StormEvent], exists: impl Fn(PortNo) -> bool) {
        for StormEvent { port, kind } in reports.iter().copied() {
            let limits = self.bridge.port(port).storm;
            let Some(shut) = limits.shut.filter(|_| limits.of(kind).is_some()) else { continue };
            if exists(port) && !self.opens.contains_key(&port) {
                self.opens.insert(port, now + shut);
                self.closed.push(port);
                self.notices.push(StormNotice { port, closed: Some((kind, shut)) });
            }
        }
        let due: Vec<PortNo> =
            self.opens.iter().filter(|(_, at)| **at <= now).map(|(port, _)| *port).collect();
        due.into_iter().for_each(|port| self.open(port));
    }

    fn open(&mut self, port: PortNo) {
        self.opens.remove(&port);
        self.notices.push(StormNotice { port, closed: None });
    }
}

impl Driver {
    /// Updates the expected state of ports by the storm reports of the last poll.
    pub(super) fn follow_storms(&mut self) {
        let reports = self.model.plane_mut().storms[self.closed.reports..].to_vec();
        self.closed.reports += reports.len();
        let model = &self.model;
        self.closed.poll(self.now, &reports, |port| model.port(port).is_some());
    }

    /// Checks which ports are closed. A closed port is down for the workers, and has no learned addresses.
    /// `versions` are those of the operations that the control thread has submitted in its turn.
    pub(super) fn check_closed(&mut self, versions: RangeInclusive<usize>) -> Result<(), String> {
        let mut notices = Vec::new();
        while let Some(notice) = self.model.next_storm_notice() {
            notices.push(notice);
        }
        let expected = std::mem::take(&mut self.closed.notices);
        if notices != expected {
            return Err(format!("notices of storms {notices:?}, expected {expected:?}"));
        }
        self.record.reopened += notices.iter().filter(|notice| notice.closed.is_none()).count();
        let closed = self.closed.closed.drain(..);
        self.record.closings.extend(closed.map(|port| Closing { port, versions: versions.clone() }));
        for number in self.style.port_numbers() {
            let Some(port) = self.model.port(number) else { continue };
            let is_closed = self.closed.opens.contains_key(&number);
            let is_up = port.link_up && !port.config.down && !is_closed;
            let state = self.shadow.ports().get(&number).map(|state| state.up);
            if port.is_blocked != is_closed || state != Some(is_up) {
                return Err(format!("{port:?} and its state {state:?}, expected closed: {is_closed}"));
            }
        }
        if self.closed.opens.is_empty() {
            return Ok(());
        }
        let macs = self.model.macs(self.now);
        match macs.iter().find(|mac| self.closed.opens.contains_key(&mac.port)) {
            Some(mac) => Err(format!("a closed port has a learned address: {mac:?}")),
            None => Ok(()),
        }
    }
}
