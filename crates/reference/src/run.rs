// SPDX-License-Identifier: Apache-2.0
//! Processing of one packet: ports, tables, instructions, actions.

use crate::action_set::ActionSet;
use crate::meters::remark;
use crate::packet::ReferencePacket;
use crate::rules::COPY_BYTES_MIN;
use crate::set_field::set_field;
use crate::stateless::{StatelessOutcome, stateless};
use crate::{ControllerCopy, Flood, LearnedMac, Metered, Processed, RuleSource, Sent, edit, headers};
use flow::action::WHOLE_PACKET;
use flow::meter::Band;
use flow::stateless::TagTypes;
use flow::{
    Action, DropReason, EntryId, FlowEntry, GroupId, MeterId, Next, Outcome, PacketInReason, TableId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// State of the processing of one packet, and its results so far.
pub(crate) struct Run<'a> {
    pub rules: &'a dyn RuleSource,
    pub packet: ReferencePacket,
    pub sent: Vec<Sent>,
    pub packet_ins: Vec<ControllerCopy>,
    /// Drop reasons, in order.
    pub reasons: Vec<DropReason>,
    pub learn: Vec<LearnedMac>,
    /// Entries of learned addresses in which NORMAL found the source.
    pub refreshed: Vec<EntryId>,
    /// Number of copies whose VLAN tag NORMAL changed.
    pub retagged: usize,
    /// Floods that have a storm limit.
    pub floods: Vec<Flood>,
    /// For each of these floods, whether it exceeds the limit.
    pub exceeded_floods: Vec<bool>,
    /// Table whose entry's applied actions are executed.
    pub applying: Option<TableId>,
    /// Each lookup: table, entry hit, and the frame's length in bytes at the lookup.
    pub hits: Vec<(TableId, Option<EntryId>, usize)>,
    /// Each use of a group: its number, the buckets used, and the frame's length in bytes when it reached the
    /// group.
    pub group_hits: Vec<(GroupId, Vec<usize>, usize)>,
    /// Meters that the packet reached.
    pub metered: Vec<Metered>,
    /// Bands that the packet exceeds, by table.
    pub bands: BTreeMap<TableId, Band>,
    /// Table and drop reason, if the packet is dropped before its lookup in that table.
    pub end: Option<(TableId, DropReason)>,
    low_latency: bool,
    copied_bytes: usize,
}

impl<'a> Run<'a> {
    pub fn new(rules: &'a dyn RuleSource, packet: ReferencePacket) -> Self {
        Self {
            rules,
            packet,
            sent: Vec::new(),
            packet_ins: Vec::new(),
            reasons: Vec::new(),
            learn: Vec::new(),
            refreshed: Vec::new(),
            retagged: 0,
            floods: Vec::new(),
            exceeded_floods: Vec::new(),
            applying: None,
            hits: Vec::new(),
            group_hits: Vec::new(),
            metered: Vec::new(),
            bands: BTreeMap::new(),
            end: None,
            low_latency: true,
            copied_bytes: 0,
        }
    }

    /// Charges a copy of the packet to the copy budget, or fails if the budget is used up.
    pub fn take_room(&mut self) -> Result<(), DropReason> {
        self.copied_bytes = self.copied_bytes.saturating_add(self.packet.bytes.len().max(COPY_BYTES_MIN));
        if self.copied_bytes > self.rules.copy_bytes_max() { Err(DropReason::NoBuffer) } else { Ok(()) }
    }

    /// Processes a received packet. If a step fails, processing ends, and the error is recorded as a drop
    /// reason.
    pub fn process(&mut self) {
        if let Err(reason) = self.receive().and_then(|()| self.forward()) {
            self.reasons.push(reason);
        }
    }

    /// Processes a packet-out by executing its actions in order. An output to TABLE passes the packet through
    /// the tables.
    pub fn packet_out(&mut self, actions: &[Action]) {
        if self.packet.bytes.len() < 14 {
            self.reasons.push(DropReason::Runt);
            return;
        }
        let sender = FlowEntry {
            id: EntryId::NONE,
            table: TableId(0),
            priority: 1,
            matching: flow::Match::any(),
            instructions: Arc::default(),
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            cookie: 0,
            flags: flow::EntryFlags::default(),
            low_latency: true,
        };
        let done = actions.iter().try_for_each(|action| match action {
            Action::Output { port: flow::port_no::TABLE, .. } => self.walk_tables(),
            action => self.execute(action, &sender),
        });
        if let Err(reason) = done {
            self.reasons.push(reason);
        }
    }

    /// Returns the result. If there is no copy, the last drop reason becomes the outcome.
    pub fn finish(mut self) -> Processed {
        let outcome = if !self.sent.is_empty() {
            Outcome::Forwarded
        } else if !self.packet_ins.is_empty() {
            Outcome::Consumed
        } else {
            Outcome::Dropped(self.reasons.pop().unwrap_or(DropReason::NoOutput))
        };
        let copy_drops = self.reasons;
        Processed {
            sent: self.sent,
            packet_ins: self.packet_ins,
            outcome,
            copy_drops,
            hits: self.hits.iter().map(|(table, id, _)| (*table, *id)).collect(),
            groups: self.group_hits.into_iter().map(|(id, buckets, _)| (id, buckets)).collect(),
            metered: self.metered,
            learn: self.learn,
            refreshed: self.refreshed,
            floods: self.floods,
            retagged: self.retagged,
            low_latency: self.low_latency,
        }
    }

    fn receive(&self) -> Result<(), DropReason> {
        if self.packet.bytes.len() < 14 {
            return Err(DropReason::Runt);
        }
        match self.rules.port(self.packet.in_port) {
            Some(port) if port.up && !port.no_recv => {}
            _ => return Err(DropReason::PortNotReceiving),
        }
        Ok(())
    }

    /// Forwards the packet by stateless forwarding or through the tables.
    fn forward(&mut self) -> Result<(), DropReason> {
        let rules = self.rules;
        if let Some(stateless_config) = rules.stateless() {
            let ports = rules.ports().into_iter().map(|port| (port.number, port)).collect();
            match stateless(stateless_config, &ports, self.packet.in_port, &self.packet.bytes) {
                StatelessOutcome::Tables => {}
                StatelessOutcome::Sent(sent) => {
                    self.sent.push(sent);
                    return Ok(());
                }
                StatelessOutcome::Dropped(reason) => return Err(reason),
            }
        }
        if self.rules.settings().drop_fragments && self.packet.headers.ip.is_some_and(|ip| ip.fragment) {
            return Err(DropReason::Fragment);
        }
        self.walk_tables()
    }

    fn walk_tables(&mut self) -> Result<(), DropReason> {
        let mut set = ActionSet::default();
        let mut next = Next::Table(TableId(0));
        loop {
            let table = next.table();
            if let Some((_, reason)) = self.end.filter(|(end, _)| *end == table) {
                return Err(reason);
            }
            let hit = match next {
                Next::Table(table) => self.rules.lookup(table, &self.packet),
                Next::Direct { table, index } => self.rules.at_index(table, index, &self.packet),
            };
            self.hits.push((table, hit.as_ref().map(|entry| entry.id), self.packet.bytes.len()));
            self.low_latency &= hit.as_ref().is_some_and(|entry| entry.low_latency);
            let entry = hit.ok_or(DropReason::TableMiss)?;
            let instructions = &entry.instructions;
            if let Some(meter) = instructions.meter {
                self.low_latency &= instructions.next.is_none() || !self.rules.remarks(meter);
                self.meter(table, meter)?;
            }
            self.applying = Some(table);
            for action in &instructions.apply {
                self.execute(action, &entry)?;
            }
            self.applying = None;
            if instructions.clear {
                set.clear();
            }
            for action in &instructions.write {
                set.write(action)?;
            }
            if let Some((value, mask)) = instructions.metadata {
                self.packet.metadata = (self.packet.metadata & !mask) | (value & mask);
            }
            match instructions.next {
                Some(goto) => next = goto,
                None => return self.execute_set(&set, &entry),
            }
        }
    }

    /// Passes the packet through a meter. The packet is dropped if it exceeds a drop band.
    fn meter(&mut self, table: TableId, meter: MeterId) -> Result<(), DropReason> {
        self.metered.push(Metered { table, meter, bytes: self.packet.bytes.len() });
        match self.bands.get(&table) {
            Some(Band::Drop) => Err(DropReason::MeterBand),
            Some(Band::DscpRemark { precedence_level }) => remark(&mut self.packet, *precedence_level),
            None => Ok(()),
        }
    }

    /// Executes the action set. `last` is the last entry that was hit.
    fn execute_set(&mut self, set: &ActionSet, last: &FlowEntry) -> Result<(), DropReason> {
        for action in set.in_order() {
            self.execute(&action, last)?;
        }
        // A failed output has recorded its own reason.
        let untried = self.sent.is_empty() && self.packet_ins.is_empty() && self.reasons.is_empty();
        if set.ends_nowhere() && untried {
            return Err(DropReason::NoOutput);
        }
        Ok(())
    }

    /// Executes one action of `entry`. An error ends the processing. A failed output is not an error.
    pub(crate) fn execute(&mut self, action: &Action, entry: &FlowEntry) -> Result<(), DropReason> {
        let packet = &mut self.packet;
        let tag_types =
            self.rules.stateless().map_or_else(TagTypes::default, |stateless_config| stateless_config.types);
        match action {
            Action::Output { port, max_len } => {
                self.output(*port, *max_len, entry);
                Ok(())
            }
            Action::Group(group) => {
                self.group(*group, entry);
                Ok(())
            }
            Action::SetQueue(queue) => {
                packet.queue = *queue;
                Ok(())
            }
            Action::SetMplsTtl(ttl) => headers::set_mpls_ttl(packet, *ttl),
            Action::DecMplsTtl => {
                let done = headers::dec_mpls_ttl(packet);
                self.decremented(done, entry)
            }
            Action::SetNwTtl(ttl) => headers::set_nw_ttl(packet, *ttl),
            Action::DecNwTtl => {
                let done = headers::dec_nw_ttl(packet);
                self.decremented(done, entry)
            }
            Action::CopyTtlOut => {
                headers::copy_ttl_out(packet);
                Ok(())
            }
            Action::CopyTtlIn => {
                headers::copy_ttl_in(packet);
                Ok(())
            }
            Action::PushVlan(tpid) => headers::push_vlan(packet, *tpid),
            Action::PopVlan => headers::pop_vlan(packet),
            Action::PushMpls(eth_type) => headers::push_mpls(packet, *eth_type),
            Action::PopMpls(eth_type) => headers::pop_mpls(packet, *eth_type),
            Action::SetField(set) => set_field(packet, set),
            Action::PushPbb(eth_type) => headers::push_pbb(packet, *eth_type),
            Action::PopPbb => headers::pop_pbb(packet),
            Action::PushKey(header) => headers::push_key(packet, header, &tag_types),
            Action::PushPolka(header) => headers::push_polka(packet, header, &tag_types),
            Action::PopKey => headers::pop_key(packet, &tag_types),
            Action::PushTf(header) => headers::push_tf(packet, header, 32, tag_types.tf),
            Action::PushTfWide(header) => headers::push_tf(packet, header, 29, tag_types.tf_wide),
            Action::PopTf => headers::pop_tf(packet, &tag_types),
            Action::Edit(edit) => edit::edit(packet, *edit),
        }
    }

    /// If `done` states that the TTL was too small, drops the packet, and sends a packet-in if the settings
    /// require a report.
    fn decremented(&mut self, done: Result<(), DropReason>, entry: &FlowEntry) -> Result<(), DropReason> {
        if done == Err(DropReason::TtlExpired)
            && self.rules.settings().report_invalid_ttl
            && let Err(reason) = self.packet_in(WHOLE_PACKET, PacketInReason::InvalidTtl, entry)
        {
            self.reasons.push(reason);
        }
        done
    }
}
