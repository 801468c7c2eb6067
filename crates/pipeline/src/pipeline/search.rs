// SPDX-License-Identifier: Apache-2.0
//! Searches by a search worker: what it does with a packet, and what the other worker does with its answer.

use super::Pipeline;
use crate::egress::Egress;
use crate::express::{FrameCache, RecordBudget};
use crate::probe::{Probe, ProbeStep};
use crate::run_tables::{Waiting, run_tables};
use flow::Nanos;
use frame::Frame;
use keys::FoundPath;
use port_cache::Ticket;

impl Pipeline {
    /// Finds the path of a packet through the tables. The entries' instructions run, so the caller must give
    /// an `egress` that sends nothing, and this pipeline must have no meters. Returns `None` if the packet
    /// reaches no table.
    pub fn search<E: Egress>(&mut self, frame: Frame, now: Nanos, egress: &mut E) -> Option<FoundPath> {
        let Self { rules, counters, ffp, slab, lanes, keys, outputs, .. } = self;
        let mut context = rules.context(egress, outputs, counters, lanes.window(), now);
        context.notes_hops = true;
        let burst = slab.burst(1);
        let packets = &mut slab.packets[..];
        let probe = &mut ();
        context.admit_burst(packets, &burst, std::iter::once(frame), probe);
        run_tables(&mut context, ffp, packets, &burst, Waiting::Anywhere, keys, probe);
        let packet = packets.get(burst.first()?.index())?;
        let found = FoundPath { hops: packet.hops, stations: packet.stations };
        Some(found).filter(|found| found.hops.list().is_known())
    }

    /// Returns the port cache, unless it is off.
    pub fn port_cache(&mut self) -> Option<&mut FrameCache> {
        self.port_cache.as_deref_mut()
    }

    /// Takes an answer of the search worker: makes a record of the path, and releases the packets that wait
    /// for the answer. `found` is `None` if the packet has no path, and `is_outdated` is whether the search
    /// worker had other rules than this pipeline.
    pub fn take_answer<E: Egress, P: Probe>(
        &mut self,
        (ticket, found): (Ticket, Option<&FoundPath>),
        is_outdated: bool,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) {
        let Self { rules, counters, express, port_cache: Some(cache), lanes, outputs, .. } = self else {
            return;
        };
        cache.begin(now);
        let Some((in_port, key, hash)) = cache.end_search(ticket, is_outdated) else { return };
        if let (Some(express), Some(found), false) = (express, found, is_outdated) {
            let context = rules.context(egress, outputs, counters, lanes.window(), now);
            let mut budget = RecordBudget::new(Some(cache), in_port);
            express.learn_found(&context, (&key, hash), found, &mut budget);
            probe.mark(ProbeStep::Learn, 1);
        }
    }
}
