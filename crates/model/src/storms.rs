// SPDX-License-Identifier: Apache-2.0
//! Ports that storm limits close, and that open again after a while.

use crate::changes::transaction::Transaction;
use dataplane::StormEvent;
use flow::bridge::FloodKind;
use flow::{Nanos, PortNo};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of notices that wait for the log.
const NOTICES_MAX: usize = 256;

/// A port was closed by a storm limit, or was opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormNotice {
    /// Number of the port.
    pub port: PortNo,
    /// Kind of packets that exceeded their limit, and the time in nanoseconds for which the port is closed.
    /// `None` if the port was opened again.
    pub closed: Option<(FloodKind, Nanos)>,
}

/// The ports that are closed.
#[derive(Debug, Default)]
pub(crate) struct Storms {
    /// Time at which each closed port opens.
    closed: BTreeMap<PortNo, Nanos>,
    notices: VecDeque<StormNotice>,
}

impl Storms {
    /// Closes a port, if its storm limits require it and it is open.
    pub fn close(&mut self, storm: StormEvent, transaction: &mut Transaction<'_>) {
        let StormEvent { port, kind } = storm;
        let rules = transaction.rules();
        let limits = rules.bridge.as_ref().map(|bridge| bridge.port(port).storm);
        // A worker may have reported the packet before the limits changed or the port was closed.
        let shut = limits.filter(|limits| limits.of(kind).is_some()).and_then(|limits| limits.shut);
        let is_open = rules.ports.get(&port).is_some_and(|port| !port.is_blocked);
        let Some(shut) = shut.filter(|_| is_open) else { return };
        transaction.change_port(port, |port| port.is_blocked = true);
        self.closed.insert(port, transaction.now.saturating_add(shut));
        self.note(StormNotice { port, closed: Some((kind, shut)) });
    }

    /// Opens the ports whose time has come.
    pub fn open_due(&mut self, transaction: &mut Transaction<'_>) {
        let now = transaction.now;
        let due: Vec<PortNo> =
            self.closed.iter().filter(|(_, at)| **at <= now).map(|(port, _)| *port).collect();
        due.into_iter().for_each(|port| self.open(port, transaction));
    }

    /// Opens a port if it is closed.
    pub fn open(&mut self, port: PortNo, transaction: &mut Transaction<'_>) {
        if self.closed.remove(&port).is_some() && transaction.rules().ports.contains_key(&port) {
            transaction.change_port(port, |port| port.is_blocked = false);
            self.note(StormNotice { port, closed: None });
        }
    }

    /// Notes that a port was opened by another change.
    pub fn opened(&mut self, port: PortNo) {
        if self.closed.remove(&port).is_some() {
            self.note(StormNotice { port, closed: None });
        }
    }

    /// Forgets a port that is removed.
    pub fn forget(&mut self, port: PortNo) {
        self.closed.remove(&port);
    }

    /// Returns the time at which the next port opens.
    pub fn next_opening(&self) -> Option<Nanos> {
        self.closed.values().min().copied()
    }

    /// Takes the next notice.
    pub fn take_notice(&mut self) -> Option<StormNotice> {
        self.notices.pop_front()
    }

    fn note(&mut self, notice: StormNotice) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }
}
