// SPDX-License-Identifier: Apache-2.0
//! Summary of a replay.

use crate::replay::{Options, ReplayEngine};
use config::PortCacheMode;
use dataplane::{DropCounts, Totals};
use flow::{Nanos, PortNo};
use model::FlowStats;
use port_cache::MissFigures;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Numbers of packets of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSummary {
    /// Packets received on the port.
    pub received: u64,
    /// Copies sent by the port.
    pub sent: u64,
}

/// Numbers of packets of a replay. `packets` equals `forwarded` + `consumed` + dropped packets + `oversized`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Engine that forwarded the packets.
    pub engine: ReplayEngine,
    /// Whether the fast-forwarding path was requested.
    pub ffp: bool,
    /// Whether the express path was requested.
    pub express: bool,
    /// Mode of the port caches.
    pub port_cache: PortCacheMode,
    /// Packets in the capture.
    pub packets: u64,
    /// Number of packets that were captured only in part. The captured part was replayed.
    pub truncated: u64,
    /// Number of packets longer than any frame buffer, which were skipped.
    pub oversized: u64,
    /// Time from the first packet to the last, in nanoseconds.
    pub span_ns: Nanos,
    /// Packets of which at least one copy was sent to a port.
    pub forwarded: u64,
    /// Packets sent to the controller only.
    pub consumed: u64,
    /// Packets that stayed on the fast-forwarding path.
    pub fast: u64,
    /// Packets that a path record forwarded.
    pub path_records: u64,
    /// Counters of the port caches.
    pub misses: MissFigures,
    /// Copies sent to ports.
    pub copies: u64,
    /// Packets sent to the controller.
    pub packet_ins: u64,
    /// Numbers of dropped packets by reason, without reasons that did not occur.
    pub dropped: Vec<(&'static str, u64)>,
    /// Numbers of dropped copies by reason, for packets that were not dropped as a whole. Reasons that did
    /// not occur are omitted.
    pub copies_dropped: Vec<(&'static str, u64)>,
    /// Counts per port.
    pub ports: BTreeMap<PortNo, PortSummary>,
    /// Flow entries at the end, with their counters.
    pub flows: Vec<FlowStats>,
    /// Number of learned MAC addresses at the end.
    pub macs: usize,
    /// Description of the damage of the capture after the last packet, if there is any.
    pub damage: Option<String>,
}

impl ReplaySummary {
    pub(super) fn new(options: &Options, damage: Option<String>) -> Self {
        let Options { engine, ffp, port_cache, .. } = *options;
        let express = options.has_records();
        Self { engine, ffp, express, port_cache, damage, ..Self::default() }
    }

    pub(super) fn take_totals(&mut self, totals: &Totals) {
        self.forwarded = totals.forwarded;
        self.consumed = totals.consumed;
        self.copies = totals.copies;
        self.fast = totals.fast;
        self.path_records = totals.express;
        self.dropped = by_name(&totals.dropped);
        self.copies_dropped = by_name(&totals.copies_dropped);
    }

    /// Returns the number of dropped packets.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }
}

fn by_name(counts: &DropCounts) -> Vec<(&'static str, u64)> {
    let counted = counts.by_reason().filter(|(_, count)| *count != 0);
    counted.map(|(reason, count)| (reason.name(), count)).collect()
}

impl Display for ReplaySummary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.span_ns / Nanos::SECOND, self.span_ns % Nanos::SECOND);
        writeln!(f, "engine          {}", self.engine.name())?;
        writeln!(f, "packets         {} in {seconds}.{ns:09} s of the capture", self.packets)?;
        if self.truncated != 0 {
            writeln!(f, "  truncated     {} (replayed as far as captured)", self.truncated)?;
        }
        writeln!(f, "forwarded       {} in {} copies", self.forwarded, self.copies)?;
        writeln!(f, "consumed        {} (controller only)", self.consumed)?;
        writeln!(f, "dropped         {}", self.dropped_packets() + self.oversized)?;
        for (name, count) in &self.dropped {
            writeln!(f, "  {name:<22} {count}")?;
        }
        if self.oversized != 0 {
            writeln!(f, "  {:<22} {}", "oversized", self.oversized)?;
        }
        if !self.copies_dropped.is_empty() {
            writeln!(f, "dropped copies of packets that were sent elsewhere")?;
            for (name, count) in &self.copies_dropped {
                writeln!(f, "  {name:<22} {count}")?;
            }
        }
        writeln!(f, "packet-ins      {}", self.packet_ins)?;
        for (number, port) in &self.ports {
            writeln!(f, "port {number:<10} {} received, {} sent", port.received, port.sent)?;
        }
        let hit = self.flows.iter().filter(|flow| flow.packets != 0).count();
        writeln!(
            f,
            "entries         {} at the end, {hit} of them hit; {} learned MACs",
            self.flows.len(),
            self.macs
        )?;
        match (self.ffp, self.engine) {
            (true, ReplayEngine::Worker) => writeln!(f, "FFP hits        {}", self.fast)?,
            (true, _) => writeln!(f, "FFP hits        the reference has no fast-forwarding path")?,
            (false, _) => writeln!(f, "FFP hits        off")?,
        }
        match (self.express, self.engine) {
            (true, ReplayEngine::Worker) => writeln!(f, "express hits    {}", self.path_records)?,
            (true, _) => writeln!(f, "express hits    the reference has no express path")?,
            (false, _) => writeln!(f, "express hits    off")?,
        }
        match (self.port_cache, self.engine) {
            (PortCacheMode::Off, _) => writeln!(f, "port cache      off")?,
            (_, ReplayEngine::Reference) => writeln!(f, "port cache      the reference has none")?,
            (mode, _) => {
                let MissFigures { searched, merged, passed, uncached, dropped, .. } = self.misses;
                writeln!(
                    f,
                    "port cache      {mode}: {searched} searches, {merged} merged, {passed} passed, {uncached} uncached, {dropped} dropped"
                )?;
            }
        }
        match &self.damage {
            Some(damage) => writeln!(f, "the capture ends early: {damage}"),
            None => Ok(()),
        }
    }
}
