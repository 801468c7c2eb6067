// SPDX-License-Identifier: Apache-2.0
//! Flows by examined bits. A flow is the packets of one receive queue that are equal in every bit that a rule
//! in force, a LUT in use or the express path's key examines. The rules change, so the flows change, too: an
//! era is a period in which the examined bits stay the same.
//!
//! The reference states what the rules examine, independently of the code that forwards packets. The workers'
//! control side states what LUTs and express keys examine, which may be more than the rules for a while.

use super::Flow;
use crate::log::Arrival;
use reference::{ExaminedBits, FlowValues, Reference, ReferencePacket};
use std::collections::{BTreeMap, BTreeSet};

/// Packets by era.
#[derive(Debug)]
pub(super) struct Eras {
    /// Examined bits of each era.
    bits: Vec<ExaminedBits>,
    /// Era of each packet, and the values that changed headers exposed to lookups, or `None` if no table
    /// handled the packet.
    packets: Vec<Option<(usize, Option<FlowValues>)>>,
}

/// Identity of a flow in a view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// Packets that no table handled, by the driver's number.
    Driver(u64),
    /// Examined values on arrival, and those that changed headers exposed.
    Values(FlowValues, FlowValues),
}

/// The flows of one or several eras.
pub(super) struct FlowView {
    bits: ExaminedBits,
    flows: BTreeMap<usize, Flow>,
    merged: usize,
}

impl FlowView {
    /// Returns the flow of a packet, or `None` if the packet is of another era.
    pub fn flow_of(&self, number: usize) -> Option<Flow> {
        self.flows.get(&number).copied()
    }

    /// Returns the bits in which the packets of a flow are equal.
    pub fn bits(&self) -> &ExaminedBits {
        &self.bits
    }

    /// Returns the number of flows whose packets differ in other bits.
    pub fn merged(&self) -> usize {
        self.merged
    }
}

impl Eras {
    pub fn new(packets: usize) -> Self {
        Self { bits: Vec::new(), packets: vec![None; packets] }
    }

    /// Begins the packets of a version. `lut_bits` are the bits that LUTs examine in it.
    pub fn begin(&mut self, rules: &Reference, lut_bits: Option<&ExaminedBits>) {
        let mut bits = rules.examined();
        if let Some(lut_bits) = lut_bits {
            bits.merge(lut_bits);
        }
        if self.bits.last() != Some(&bits) {
            self.bits.push(bits);
        }
    }

    /// Notes a packet of the current era.
    pub fn note(&mut self, number: usize, arrival: &Arrival, rules: &Reference) {
        let (Some(era), Some(bits)) = (self.bits.len().checked_sub(1), self.bits.last()) else { return };
        let exposed = rules.exposed_values(arrival.port, (&arrival.bytes, arrival.unfinished), bits);
        self.packets[number] = Some((era, exposed));
    }

    /// Returns the flows of each era, of each two neighbouring eras, and of all eras together. Packets of
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
