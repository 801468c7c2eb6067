// SPDX-License-Identifier: Apache-2.0
//! Flows by examined bits. A flow consists of the packets of one receive queue that are equal in every
//! examined bit. Rules, LUTs and keys of the express path examine bits. An era is a period in which the
//! examined bits stay the same.
//!
//! The reference states which bits the rules examine. The workers' control side states which bits LUTs and
//! express keys examine; for a while, these may be more.

use super::Flow;
use crate::log::{Arrival, TAG_BYTES, tag};
use reference::{ExaminedBits, FlowValues, Reference, ReferencePacket};
use std::collections::{BTreeMap, BTreeSet};

/// Packets by era.
#[derive(Debug)]
pub(super) struct Eras {
    /// Examined bits of each era.
    bits: Vec<ExaminedBits>,
    /// For each recorded packet, its era and the values that lookups examined in changed headers. The values
    /// are `None` if no table handled the packet.
    packets: Vec<Option<(usize, Option<FlowValues>)>>,
    /// The driver's flows whose packets differ in examined bits, because these bits include test tags.
    unlike: BTreeSet<Flow>,
}

/// Identity of a flow in a view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// The driver's flow number, for packets that no table handled.
    Driver(u64),
    /// Values examined on arrival, and values examined in changed headers.
    Values(FlowValues, FlowValues),
}

/// The flows of one or several eras.
pub(super) struct FlowView {
    bits: ExaminedBits,
    flows: BTreeMap<usize, Flow>,
    merged: usize,
}

impl FlowView {
    /// Returns the flow of a packet, or `None` if the packet belongs to another era.
    pub fn flow_of(&self, number: usize) -> Option<Flow> {
        self.flows.get(&number).copied()
    }

    /// Returns the bits in which the packets of a flow are equal.
    pub fn bits(&self) -> &ExaminedBits {
        &self.bits
    }

    /// Returns the number of flows that consist of several of the driver's flows.
    pub fn merged(&self) -> usize {
        self.merged
    }
}

impl Eras {
    pub fn new(packets: usize) -> Self {
        Self { bits: Vec::new(), packets: vec![None; packets], unlike: BTreeSet::new() }
    }

    /// Starts a version of the rules. `lut_bits` are the bits that LUTs and express keys examine in this
    /// version.
    pub fn begin(&mut self, rules: &Reference, lut_bits: Option<&ExaminedBits>) {
        let mut bits = rules.examined();
        if let Some(lut_bits) = lut_bits {
            bits.merge(lut_bits);
        }
        if self.bits.last() != Some(&bits) {
            self.bits.push(bits);
        }
    }

    /// Records a packet of the current era.
    pub fn note(&mut self, number: usize, arrival: &Arrival, rules: &Reference) {
        let (Some(era), Some(bits)) = (self.bits.len().checked_sub(1), self.bits.last()) else { return };
        let exposed_of = |bytes: &[u8]| rules.exposed_values(arrival.port, (bytes, arrival.unfinished), bits);
        let arriving = |bytes: &[u8]| bits.values_of(&ReferencePacket::arriving(arrival.port, bytes));
        let exposed = exposed_of(&arrival.bytes);
        if tag(&arrival.bytes).is_some() {
            let mut other = arrival.bytes.clone();
            other.iter_mut().rev().take(TAG_BYTES).for_each(|byte| *byte = !*byte);
            let has_values = exposed.as_ref().is_some_and(|values| !values.is_empty());
            let is_exposed = has_values && exposed_of(&other) != exposed;
            if is_exposed || arriving(&other) != arriving(&arrival.bytes) {
                self.unlike.insert((arrival.worker, arrival.flow, arrival.port));
            }
        }
        self.packets[number] = Some((era, exposed));
    }

    /// Returns whether all packets of one of the driver's flows belong to one flow. They do not if a rule
    /// writes the length of an IPv4 header and a later table then examines the test tags as layer-4 ports.
    /// They do not either if express keys contain the test tags, because other packets reach a table with a
    /// base that has moved far.
    pub fn is_one_flow(&self, flow: Flow) -> bool {
        !self.unlike.contains(&flow)
    }

    /// Returns the number of packets of flows whose packets differ in examined bits.
    pub fn unlike(&self, arrivals: &[Arrival]) -> usize {
        let is_unlike = |arrival: &&Arrival| !self.is_one_flow((arrival.worker, arrival.flow, arrival.port));
        arrivals.iter().filter(is_unlike).count()
    }

    /// Returns the flows of each era, of any two neighbouring eras, and of all eras together. Packets of
    /// different eras belong to one flow if they are equal in every bit that any of these eras examines.
    pub fn views<'a>(&'a self, arrivals: &'a [Arrival]) -> impl Iterator<Item = FlowView> + 'a {
        let eras = self.bits.len();
        let mut spans: Vec<_> = (0..eras).map(|era| era..era + 1).collect();
        spans.extend((1..eras).map(|era| era - 1..era + 1));
        spans.push(0..eras);
        spans.into_iter().map(|span| self.view(span, arrivals))
    }

    fn view(&self, eras: std::ops::Range<usize>, arrivals: &[Arrival]) -> FlowView {
        let mut bits = ExaminedBits::default();
        self.bits[eras.clone()].iter().for_each(|era| bits.merge(era));
        let mut identities = BTreeMap::new();
        let mut flows = BTreeMap::new();
        let mut numbers: BTreeMap<Flow, BTreeSet<u64>> = BTreeMap::new();
        for (number, (packet, arrival)) in self.packets.iter().zip(arrivals).enumerate() {
            let Some((era, exposed)) = packet else { continue };
            if !eras.contains(era) {
                continue;
            }
            let identity = match exposed {
                None => Identity::Driver(arrival.flow),
                Some(exposed) => {
                    let arrived = ReferencePacket::arriving(arrival.port, &arrival.bytes);
                    Identity::Values(bits.values_of(&arrived), exposed.clone())
                }
            };
            let fresh = identities.len() as u64;
            let at = *identities.entry(identity).or_insert(fresh);
            let flow = (arrival.worker, at, arrival.port);
            numbers.entry(flow).or_default().insert(arrival.flow);
            flows.insert(number, flow);
        }
        let merged = numbers.values().filter(|numbers| numbers.len() > 1).count();
        FlowView { bits, flows, merged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::tag_of;
    use flow::operation::PortState;
    use flow::{
        Action, EntryChange, EntryFlags, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match, Next,
        Operation, PortNo, RuleVersion, Slice, SliceBase, TableId,
    };
    use reference::Unfinished;
    use std::sync::Arc;
    use wire::PacketBuilder;

    /// Returns rules that apply an action, go to table 1, and examine the destination port of UDP there.
    fn rules(apply: Vec<Action>) -> Reference {
        let entry = |table: u8, matching, instructions| {
            EntryChange::Add(Arc::new(FlowEntry {
                id: EntryId(table.into()),
                table: TableId(table),
                priority: 1,
                matching,
                instructions: Arc::new(instructions),
                idle_timeout_s: 0,
                hard_timeout_s: 0,
                cookie: 0,
                flags: EntryFlags::default(),
                low_latency: false,
            }))
        };
        let onward = Instructions { apply, next: Some(Next::Table(TableId(1))), ..Instructions::default() };
        let udp = [(Field::EthType, 0x0800), (Field::IpProto, 17), (Field::UdpDst, 80)];
        let exactly = |(field, value): (Field, u128)| FieldMatch { field, value, mask: field.full_mask() };
        let port = Match::new(udp.map(exactly)).unwrap();
        let changes = vec![entry(0, Match::any(), onward), entry(1, port, Instructions::default())];
        let mut rules = Reference::new();
        rules.apply(&Operation::Port(PortState::up(PortNo(1)))).unwrap();
        rules.apply(&Operation::Entries(changes)).unwrap();
        rules
    }

    /// Returns whether packets that differ only in their tags belong to one flow. Express keys examine
    /// `key_bits`.
    fn is_one_flow_by(rules: &Reference, key_bits: Option<&ExaminedBits>) -> bool {
        let mut eras = Eras::new(1);
        eras.begin(rules, key_bits);
        let udp = PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([10; 4], [11; 4]).udp(53, 80);
        let arrival = Arrival {
            port: PortNo(1),
            unfinished: Unfinished::default(),
            worker: 0,
            sequence: 0,
            flow: 7,
            bytes: udp.payload(&tag_of(0)).build(),
            acknowledged: RuleVersion(0),
        };
        eras.note(0, &arrival, rules);
        let is_one_flow = eras.is_one_flow((0, 7, PortNo(1)));
        assert_eq!(eras.unlike(&[arrival]), usize::from(!is_one_flow));
        is_one_flow
    }

    fn is_one_flow(rules: &Reference) -> bool {
        is_one_flow_by(rules, None)
    }

    #[test]
    fn a_key_that_contains_tags_splits_a_flow() {
        // The test tag begins after 14 bytes of Ethernet, 20 of IPv4 and 8 of UDP.
        for (first_byte, is_one) in [(41, true), (42, false), (49, false)] {
            let slice = Slice { base: SliceBase::Packet, offset_bits: 8 * first_byte, length_bits: 8 };
            let key_bits = ExaminedBits([(Field::Slice(slice), 0xff)].into_iter().collect());
            assert_eq!(is_one_flow_by(&rules(vec![]), Some(&key_bits)), is_one, "byte {first_byte}");
        }
    }

    #[test]
    fn a_written_header_length_that_exposes_tags_splits_a_flow() {
        let field = Field::Slice(Slice { base: SliceBase::L3, offset_bits: 0, length_bits: 8 });
        let write = |value| Action::set(field, value);
        assert!(is_one_flow(&rules(vec![])));
        assert!(is_one_flow(&rules(vec![write(0x45)])));
        assert!(
            !is_one_flow(&rules(vec![write(0x47)])),
            "the written length makes table 1 read the tag as ports"
        );
    }
}
