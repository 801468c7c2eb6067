// SPDX-License-Identifier: Apache-2.0
//! The oracle: random tables, packets and updates through real workers, held against the reference by the law.
//!
//! One case is a function of its seed. The driver pushes packets into in-memory ports, changes rules through the
//! model, and turns workers and control thread in random order, all in one thread and in virtual time. Workers log the
//! order they took ([`log`]). The judge builds the serial order from the logs, checks it against the driver's own list
//! of arrivals, runs the reference through it, and compares packets on each port, order within each flow, packet-ins,
//! what was learned, and the counters of entries, tables, groups, ports and egress queues. It judges when entries timed
//! out, and what flow-removed notices say. In a part of the cases something is scarce ([`room`]): then every loss is judged by
//! accounting.

mod drive;
mod judge;
mod log;
mod room;
mod rules;
mod templates;
mod views;

use pipeline::{LaneLimits, LutFigures};
use std::collections::BTreeMap;
use std::fmt;
use worker::{Consistency, Quanta};

/// Sizes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Packets sent.
    pub packets: usize,
    /// Workers, each with a queue of every port.
    pub workers: usize,
    /// Records of each LUT of the fast-forwarding path; 0: without the path.
    pub lut_entries: usize,
    /// How their records are kept right.
    pub consistency: Consistency,
    /// What may wait in a worker.
    pub lanes: LaneLimits,
    /// How much of it is worked off at once.
    pub quanta: Quanta,
}

/// What a case exercised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Packets judged.
    pub packets: usize,
    /// Packets that two or more entries of a table matched at once, in some table.
    pub overlapping: usize,
    /// Flow-mods, bundles and port changes made on purpose.
    pub updates: usize,
    /// Of these, how many changed what becomes of a packet of a flow in use.
    pub live_updates: usize,
    /// Operations in all, with learning, expiry and set-up.
    pub operations: usize,
    /// Entries that timed out.
    pub expired: usize,
    /// Entries and learned addresses whose expiry was judged.
    pub timed_out: usize,
    /// Flow-removed notices compared.
    pub removed: usize,
    /// Packets, copies and packet-ins lost for lack of room, by name.
    pub losses: BTreeMap<&'static str, u64>,
    /// Packets dropped because a backlog had no room.
    pub refused: usize,
    /// Times that a low-latency packet was held back for earlier ones of its flow.
    pub held_back: u64,
    /// Packets forwarded, consumed and dropped.
    pub outcomes: [usize; 3],
    /// Packets to the controller.
    pub packet_ins: usize,
    /// Packets that went through more than one table.
    pub multi_table: usize,
    /// Packets that reached groups, each group counted.
    pub group_uses: u64,
    /// Packets that the imagined view of a trace was compared for.
    pub traced: usize,
    /// Packets whose recorded ways were compared with their traces.
    pub judged: usize,
    /// Counters compared.
    pub counters: usize,
    /// Lookups that each engine served.
    pub lookups: BTreeMap<&'static str, u64>,
    /// Packets of cases with the fast-forwarding path.
    pub offered: usize,
    /// Of these, such that went all the way over it.
    pub fast: u64,
    /// Packets that the stateless lane took.
    pub stateless: u64,
    /// What the fast-forwarding path's LUTs did.
    pub luts: LutFigures,
}

impl Coverage {
    /// Adds another case's.
    pub fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.overlapping += other.overlapping;
        self.updates += other.updates;
        self.live_updates += other.live_updates;
        self.operations += other.operations;
        self.expired += other.expired;
        self.timed_out += other.timed_out;
        self.removed += other.removed;
        for (name, count) in &other.losses {
            *self.losses.entry(name).or_default() += count;
        }
        self.refused += other.refused;
        self.held_back += other.held_back;
        for (sum, count) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += count;
        }
        self.packet_ins += other.packet_ins;
        self.multi_table += other.multi_table;
        self.group_uses += other.group_uses;
        self.traced += other.traced;
        self.judged += other.judged;
        self.counters += other.counters;
        for (engine, lookups) in &other.lookups {
            *self.lookups.entry(engine).or_default() += lookups;
        }
        self.offered += other.offered;
        self.fast += other.fast;
        self.stateless += other.stateless;
        self.luts.add(&other.luts);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let [forwarded, consumed, dropped] = self.outcomes;
        writeln!(f, "packets {}", self.packets)?;
        writeln!(f, "  matched by overlapping rules {:.1} %", share(self.overlapping, self.packets))?;
        writeln!(f, "  through more than one table {:.1} %", share(self.multi_table, self.packets))?;
        writeln!(
            f,
            "  forwarded {:.1} %, consumed {:.1} %, dropped {:.1} %, packet-ins {}",
            share(forwarded, self.packets),
            share(consumed, self.packets),
            share(dropped, self.packets),
            self.packet_ins
        )?;
        writeln!(
            f,
            "  without room in a backlog {:.1} %, held back for order {:.1} %",
            share(self.refused, self.packets),
            share(self.held_back as usize, self.packets)
        )?;
        let lookups: u64 = self.lookups.values().sum();
        write!(f, "  lookups {lookups}")?;
        for (engine, served) in &self.lookups {
            write!(f, ", {engine} {:.1} %", share(*served as usize, lookups as usize))?;
        }
        writeln!(f)?;
        writeln!(f, "  lost for lack of room {:?}", self.losses)?;
        writeln!(f, "  uses of groups {}", self.group_uses)?;
        writeln!(
            f,
            "updates {}, of which {:.1} % changed a live verdict; operations {}, expired entries {}, expiries judged {}, \
             flow-removed notices {}",
            self.updates,
            share(self.live_updates, self.updates),
            self.operations,
            self.expired,
            self.timed_out,
            self.removed
        )?;
        let luts = &self.luts;
        writeln!(
            f,
            "stateless lane: {:.1} %\nfast-forwarding path: {:.1} % of {} packets all the way; hits of LUTs {}, known normal {}, misses {}, \
             records verified {}, {} of them by what changed, cleaned {}, evicted {}",
            share(self.stateless as usize, self.packets),
            share(self.fast as usize, self.offered),
            self.offered,
            luts.hits,
            luts.normal_hits,
            luts.misses,
            luts.verified,
            luts.walked,
            luts.cleaned,
            luts.evicted
        )?;
        write!(
            f,
            "traces compared: {} of imagined packets, {} of recorded ones; counters compared {}",
            self.traced, self.judged, self.counters
        )
    }
}

/// A breach of the law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, {workers} worker(s): {what}")]
pub struct Breach {
    /// The case.
    pub seed: u64,
    /// Its workers.
    pub workers: usize,
    /// What was found.
    pub what: String,
}

/// Runs one case.
///
/// # Errors
/// The first breach of the law.
pub fn run_case(seed: u64, options: Options) -> Result<Coverage, Breach> {
    let breach = |what| Breach { seed, workers: options.workers, what };
    let record = drive::Driver::new(seed, options).run().map_err(breach)?;
    let coverage = judge::judge(record).map_err(breach)?;
    let offered = if options.lut_entries == 0 { 0 } else { coverage.packets };
    Ok(Coverage { offered, ..coverage })
}
