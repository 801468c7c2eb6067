// SPDX-License-Identifier: Apache-2.0
//! Counters of a worker's packets and tables. The worker adds to them once per burst, and for each drop.

use crate::counters::Totals;
use flow::{DropReason, TableId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of drop reasons.
pub const REASONS: usize = DropReason::ALL.len();

/// Number of tables: 255 of the controller, and the table of learned MAC addresses.
pub const TABLES: usize = 256;

fn add(counter: &AtomicU64, by: u64) {
    if by != 0 {
        counter.store(counter.load(Relaxed) + by, Relaxed);
    }
}

/// Counters of one burst, kept without atomics. Drops are rare, and are counted in [`Counters`] at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct BurstCounters {
    /// Packets received from ports, and packet-outs of the controller.
    pub received: u64,
    /// Packets of which at least one copy or the frame itself was sent to a port.
    pub forwarded: u64,
    /// Packets sent to the controller only.
    pub consumed: u64,
    /// Packets that passed the whole fast-forwarding path.
    pub fast: u64,
    /// Packets with a path record, which need no table lookup.
    pub express: u64,
    /// Packets that the stateless forwarder sent or dropped.
    pub stateless: u64,
    /// Number of times that a low-latency packet waited for earlier packets of its flow.
    pub held_back: u64,
    /// Frames given to ports.
    pub copies: u64,
    /// Whether any packet or copy was dropped for lack of space.
    pub scarce: bool,
}

/// Lookup counters of a table.
#[derive(Debug, Default)]
pub struct TableCells {
    lookups: AtomicU64,
    matches: AtomicU64,
}

/// Counters of a worker. The worker is the only writer, so plain loads and stores suffice.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters {
    received: AtomicU64,
    forwarded: AtomicU64,
    consumed: AtomicU64,
    fast: AtomicU64,
    express: AtomicU64,
    stateless: AtomicU64,
    held_back: AtomicU64,
    copies: AtomicU64,
    held: AtomicU64,
    dropped: [AtomicU64; REASONS],
    copies_dropped: [AtomicU64; REASONS],
    tables: Box<[TableCells]>,
}

impl Default for Counters {
    fn default() -> Self {
        let mut tables = Vec::with_capacity(TABLES);
        tables.resize_with(TABLES, TableCells::default);
        Self {
            received: AtomicU64::default(),
            forwarded: AtomicU64::default(),
            consumed: AtomicU64::default(),
            fast: AtomicU64::default(),
            express: AtomicU64::default(),
            stateless: AtomicU64::default(),
            held_back: AtomicU64::default(),
            copies: AtomicU64::default(),
            held: AtomicU64::default(),
            dropped: [const { AtomicU64::new(0) }; REASONS],
            copies_dropped: [const { AtomicU64::new(0) }; REASONS],
            tables: tables.into_boxed_slice(),
        }
    }
}

impl Counters {
    /// Adds the counters of a burst.
    pub fn add(&self, burst_counters: &BurstCounters) {
        add(&self.received, burst_counters.received);
        add(&self.forwarded, burst_counters.forwarded);
        add(&self.consumed, burst_counters.consumed);
        add(&self.fast, burst_counters.fast);
        add(&self.express, burst_counters.express);
        add(&self.stateless, burst_counters.stateless);
        add(&self.held_back, burst_counters.held_back);
        add(&self.copies, burst_counters.copies);
    }

    /// Adds a burst's lookups in a table.
    #[inline]
    pub fn add_table(&self, table: TableId, lookups: u64, matches: u64) {
        let cells = &self.tables[table.index()];
        add(&cells.lookups, lookups);
        add(&cells.matches, matches);
    }

    /// Takes back a lookup that found an entry, because the packet will be processed again.
    pub fn uncount_table(&self, table: TableId) {
        let cells = &self.tables[table.index()];
        for cell in [&cells.lookups, &cells.matches] {
            cell.store(cell.load(Relaxed).saturating_sub(1), Relaxed);
        }
    }

    /// Sets the number of waiting packets.
    pub fn set_held(&self, packets: u64) {
        self.held.store(packets, Relaxed);
    }

    /// Counts a packet of which no copy was sent.
    pub fn add_dropped(&self, reason: DropReason) {
        add(&self.dropped[reason as usize], 1);
    }

    /// Counts dropped copies of packets that are not themselves counted as dropped.
    pub fn add_copies_dropped(&self, reason: DropReason, copies: u64) {
        add(&self.copies_dropped[reason as usize], copies);
    }

    /// Adds all counters but those of tables to `totals`.
    pub fn add_to(&self, totals: &mut Totals) {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        totals.received += load(&self.received);
        totals.forwarded += load(&self.forwarded);
        totals.consumed += load(&self.consumed);
        totals.fast += load(&self.fast);
        totals.express += load(&self.express);
        totals.stateless += load(&self.stateless);
        totals.held_back += load(&self.held_back);
        totals.held += load(&self.held);
        totals.copies += load(&self.copies);
        totals.dropped += std::array::from_fn(|at| load(&self.dropped[at])).into();
        totals.copies_dropped += std::array::from_fn(|at| load(&self.copies_dropped[at])).into();
    }

    /// Returns the numbers of lookups and matches of a table.
    #[must_use]
    pub fn table(&self, table: TableId) -> (u64, u64) {
        let cells = &self.tables[table.index()];
        (cells.lookups.load(Relaxed), cells.matches.load(Relaxed))
    }
}
