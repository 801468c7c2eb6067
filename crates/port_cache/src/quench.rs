// SPDX-License-Identifier: Apache-2.0
//! Quenching of packet-ins: while the controller is asked about a flow, later packets of the flow wait and
//! send no packet-in. The controller is the searcher of these flows.

use crate::cache::PortCache;
use crate::queues::{AskResult, FlowKey, Ticket};
use flow::{HeldFlow, Nanos, PortNo, TableId};

/// Time in nanoseconds for which packets wait longer than the controller may answer, so that an answer in
/// time finds them although it must wait for other work.
const LATE_NS: Nanos = Nanos(10_000_000);

/// A set of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuenchedTables([u64; 4]);

impl QuenchedTables {
    /// Returns the set of these tables.
    #[must_use]
    pub fn of(tables: impl IntoIterator<Item = TableId>) -> Self {
        let mut all = Self::default();
        tables.into_iter().for_each(|table| all.0[table.index() / 64] |= 1 << (table.index() % 64));
        all
    }

    /// Returns whether the set has a table.
    #[must_use]
    pub fn has(&self, table: TableId) -> bool {
        self.0[table.index() / 64] >> (table.index() % 64) & 1 != 0
    }
}

/// Settings of quenched packet-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuenchConfig {
    /// Tables whose table-miss entries are quenched.
    pub tables: QuenchedTables,
    /// Time in nanoseconds within which the controller must answer. Soon after it, packets no longer wait.
    pub timeout_ns: Nanos,
}

/// What happens to a packet that leads to a packet-in which may be quenched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The packet-in is sent. Later packets of the flow wait for an answer until the given time.
    New(HeldFlow, Nanos),
    /// The controller was asked before, so the packet must wait.
    Before,
    /// There is no space for another question. The packet-in is sent, and later packets do not wait.
    Full,
}

impl<K: PartialEq + Copy + Default, P> PortCache<K, P> {
    /// Sets the number of the worker, which becomes part of the questions to the controller.
    #[must_use]
    pub fn for_worker(mut self, worker: u16) -> Self {
        self.worker = worker;
        self
    }

    /// Returns the tables with quenched packet-ins, if there are any.
    #[must_use]
    #[inline]
    pub fn quench(&self) -> Option<QuenchedTables> {
        self.quench.map(|quench| quench.tables)
    }

    /// Returns whether the controller is asked about any flow.
    #[must_use]
    #[inline]
    pub fn is_asking(&self) -> bool {
        self.queues.is_asking()
    }

    /// Begins a question to the controller about a flow, unless there is one already. `fence` is the present
    /// end of the backlog: packets of the flow that joined the backlog before it return to the queue. Packets
    /// of the flow for which there is no space are then dropped; see [`Self::take_full`].
    pub fn ask(&mut self, in_port: PortNo, (key, hash): (&K, u64), fence: u32) -> Asked {
        let (Some(port), Some(quench)) = (self.port(in_port), self.quench) else { return Asked::Full };
        let waits_ns = quench.timeout_ns.saturating_add(LATE_NS);
        match self.queues.ask(FlowKey { port, key, hash }, self.now, waits_ns, fence) {
            AskResult::New(Ticket { slot, generation }) => {
                self.queues.trim(slot, |packet| self.full.push(packet));
                let flow = HeldFlow { worker: self.worker, slot, generation };
                Asked::New(flow, self.now.saturating_add(quench.timeout_ns))
            }
            AskResult::Asked => Asked::Before,
            AskResult::Full => Asked::Full,
        }
    }

    /// Puts a packet of `bytes` bytes back into the queue of its flow, about which the controller was asked.
    /// `copy` is as for [`Self::offer`].
    ///
    /// # Errors
    /// Returns the packet if there is no space for it.
    pub fn give_back(
        &mut self,
        in_port: PortNo,
        (key, hash): (&K, u64),
        packet: P,
        bytes: u32,
        copy: impl FnOnce(P) -> Result<P, P>,
    ) -> Result<(), P> {
        let Some(port) = self.port(in_port) else { return Err(packet) };
        self.queues.give_back(FlowKey { port, key, hash }, packet, bytes, copy)
    }

    /// Ends a question that could not be sent.
    pub fn withdraw(&mut self, flow: HeldFlow) {
        self.queues.withdraw(Ticket { slot: flow.slot, generation: flow.generation });
    }

    /// Releases the packets that wait for the controller's answer to this question.
    pub fn answer(&mut self, flow: HeldFlow) {
        if flow.worker == self.worker {
            self.queues.answer(Ticket { slot: flow.slot, generation: flow.generation });
        }
    }

    /// Ends all questions, because no controller will answer them.
    pub fn end_questions(&mut self) {
        self.queues.end_all_questions();
    }

    /// As [`Self::answer`], for the flow with this key.
    pub fn answer_flow(&mut self, in_port: PortNo, key: &K, hash: u64) {
        if let Some(port) = self.port(in_port) {
            self.queues.answer_question(FlowKey { port, key, hash });
        }
    }

    /// Notes that rules have changed. `concerns` returns whether packets with a key may take another path
    /// because of the changes.
    pub fn note_rules(&mut self, concerns: impl FnMut(&K) -> bool) {
        self.queues.note_rules(concerns);
    }
}
