// SPDX-License-Identifier: Apache-2.0
//! Floods that exceed storm limits. The reference states which packets NORMAL floods, but has no clock. So
//! the checker replays a case with storm limits twice. After the first replay, the reference's limits charge
//! the floods in the order in which the workers executed them.

use crate::log::{Moment, Record, Walker};
use flow::bridge::{FloodKind, StormLimit};
use flow::{BridgeConfig, Operation, PortNo, TableId};
use reference::{Flood, Processed, StormDebt};
use std::collections::{BTreeMap, BTreeSet};

/// A packet, with its worker.
type Place = (usize, Walker);

/// A storm limit: ingress port, kind of packet, and version that set the limit. A limit that stays in later
/// versions keeps its debt.
type LimitId = (PortNo, u8, usize);

/// A flood that has a storm limit.
#[derive(Clone, Copy, Debug)]
struct Charge {
    moment: Moment,
    packet: Place,
    /// Position among the packet's floods.
    at: usize,
    id: LimitId,
    limit: StormLimit,
    /// Whether the port closes if the flood exceeds the limit.
    closes: bool,
}

/// Floods that have a storm limit, as the first replay finds them.
#[derive(Debug, Default)]
pub(super) struct Floods {
    /// Limits in force, each with the version that set it.
    limits: BTreeMap<(PortNo, u8), (usize, StormLimit)>,
    /// Ports that close if a flood exceeds a limit.
    closing: BTreeSet<PortNo>,
    charges: Vec<Charge>,
}

impl Floods {
    /// Notes the limits of an operation.
    pub fn apply(&mut self, version: usize, operation: &Operation) {
        for part in operation.parts() {
            let Operation::Bridge(config) = part else { continue };
            let ports = config.iter().flat_map(|config| &config.ports);
            let closing = ports.filter(|(_, settings)| settings.storm.shut.is_some());
            self.closing = closing.map(|(port, _)| *port).collect();
            let before = std::mem::take(&mut self.limits);
            for (key, limit) in config.iter().flat_map(|config| limits(config)) {
                let kept = before.get(&key).filter(|(_, kept)| *kept == limit).copied();
                self.limits.insert(key, kept.unwrap_or((version, limit)));
            }
        }
    }

    /// Notes the floods of a packet.
    ///
    /// # Errors
    /// Returns an error if the worker did not execute what the reference executed.
    pub fn note(
        &mut self,
        packet: Place,
        processed: &Processed,
        moment_of: impl Fn(Option<TableId>) -> Option<Moment>,
    ) -> Result<(), String> {
        for (at, Flood { port, kind, table }) in processed.floods.iter().enumerate() {
            let moment = moment_of(*table)
                .ok_or_else(|| format!("{packet:?} was never flooded from table {table:?}: {processed:?}"))?;
            let (made, limit) = self
                .limits
                .get(&(*port, *kind as u8))
                .ok_or_else(|| format!("port {port} has no limit of {kind:?}"))?;
            let id = (*port, *kind as u8, *made);
            let closes = self.closing.contains(port);
            self.charges.push(Charge { moment, packet, at, id, limit: *limit, closes });
        }
        Ok(())
    }

    /// Charges all floods in the order of the workers.
    pub fn charge(mut self) -> ExceededFloods {
        self.charges.sort_unstable_by_key(|charge| (charge.moment.place, charge.at));
        let mut debts: BTreeMap<LimitId, StormDebt> = BTreeMap::new();
        let mut exceeded = ExceededFloods::default();
        for Charge { moment, packet, at, id, limit, closes } in self.charges {
            let exceeds = debts.entry(id).or_insert_with(|| StormDebt::new(limit)).exceeds(moment.at);
            let of_packet = exceeded.packets.entry(packet).or_default();
            of_packet.resize(of_packet.len().max(at + 1), false);
            of_packet[at] = exceeds;
            exceeded.count += usize::from(exceeds);
            if exceeds && closes {
                exceeded.reports.push((id.0, id.1));
            }
        }
        exceeded
    }
}

fn limits(config: &BridgeConfig) -> impl Iterator<Item = ((PortNo, u8), StormLimit)> + '_ {
    config.ports.iter().flat_map(|(port, settings)| {
        [FloodKind::Broadcast, FloodKind::Multicast, FloodKind::UnknownUnicast]
            .into_iter()
            .filter_map(|kind| Some(((*port, kind as u8), settings.storm.of(kind)?)))
    })
}

/// Floods that exceed their limits.
#[derive(Debug, Default)]
pub(super) struct ExceededFloods {
    /// The floods of each packet that have a storm limit, in order: whether each one exceeds the limit.
    packets: BTreeMap<Place, Vec<bool>>,
    /// Number of floods that exceed their limits.
    pub count: usize,
    /// Ingress port and kind of each flood that must be reported, because it closes its port.
    reports: Vec<(PortNo, u8)>,
}

impl ExceededFloods {
    /// Returns, for each flood of a packet, whether it exceeds its limit.
    pub fn of(&self, packet: Place) -> Vec<bool> {
        self.packets.get(&packet).cloned().unwrap_or_default()
    }
}

/// Compares the workers' reports of floods that close their port. Reports may be missing only if space is
/// scarce.
pub(super) fn check_reported(record: &Record, exceeded: &ExceededFloods) -> Result<(), String> {
    let mut actual: Vec<_> = record.storms.iter().map(|storm| (storm.port, storm.kind as u8)).collect();
    let mut expected = exceeded.reports.clone();
    actual.sort_unstable();
    expected.sort_unstable();
    if !record.room.is_ample() {
        // If there was no space for a report, the next flood above the limit repeats it.
        let mut came = actual.iter().peekable();
        expected.retain(|report| came.next_if_eq(&report).is_some());
    }
    if expected == actual {
        Ok(())
    } else {
        Err(format!("reported storms {actual:?}, expected {expected:?}"))
    }
}

/// Returns whether ports have storm limits in a case.
pub(super) fn has_limits(record: &Record) -> bool {
    record.operations.iter().flat_map(Operation::parts).any(|part| match part {
        Operation::Bridge(Some(config)) => limits(config).next().is_some(),
        _ => false,
    })
}
