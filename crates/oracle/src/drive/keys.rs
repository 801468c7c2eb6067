// SPDX-License-Identifier: Apache-2.0
//! Checks keys of the express path under random rules. Two packets must have equal keys if and only if they
//! arrive on the same port and are equal in every bit that the key plan examines. The key of a packet must
//! not rule out a rule that the packet matches.

use super::Driver;
use crate::key_coverage::KeyCoverage;
use crate::variants::Subject;
use actions::Shift;
use flow::{Field, FlowEntry, Nanos, PortNo, TableId};
use keys::{ExpressKey, ExpressPlan, KeyFit, KeyReader, Rewritten};
use reference::{ArrivingBits, ExaminedBits, ReferencePacket, Shifts};
use std::sync::Arc;
use wire::Depth;
use wire::layers::header;

/// Number of changes of the rules in a case.
const CHANGES: usize = 12;

/// Number of pairs that are compared after each change.
const PAIRS: usize = 40;

/// Time after which the control side has certainly removed bits that no rule examines from the key plan.
const REST_NS: Nanos = Nanos(1_100_000_000);

/// Number of periods of `REST_NS` after which all entries with timeouts have expired and the key plan is
/// exact.
const RESTS: usize = 8;

impl Driver {
    /// Runs a case that checks keys.
    pub fn run_keys(mut self) -> Result<KeyCoverage, String> {
        let mut coverage = KeyCoverage::default();
        self.first_rules()?;
        for _ in 0..CHANGES {
            self.update()?;
            self.control()?;
            if self.rng.bool() {
                self.check_exact_plan()?;
            }
            self.check_pairs(&mut coverage)?;
        }
        Ok(coverage)
    }

    /// Checks, after some time without changes, that the key plan examines exactly the bits that the rules
    /// examine.
    fn check_exact_plan(&mut self) -> Result<(), String> {
        for _ in 0..RESTS {
            self.now += REST_NS;
            self.control()?;
            self.settle()?;
        }
        let (planned, examined) = (ArrivingBits::of(&self.planned()), self.examined());
        let mut by_normal = examined.clone();
        // If any group outputs to NORMAL, the control side assumes that packets reach this group.
        if self.style.groups > 0 {
            by_normal.frame.extend(0..96);
            let has_settings = self.model.bridge().is_some();
            by_normal.others.add(Field::VlanVid, if has_settings { 0x1fff } else { 0xfff });
        }
        if planned == examined || planned == by_normal {
            Ok(())
        } else {
            Err(format!(
                "the plan differs from the bits that the rules examine\n  plan {planned:x?}\n  rules {examined:x?}"
            ))
        }
    }

    /// Returns the bits that the current plan examines.
    fn planned(&mut self) -> ExaminedBits {
        let plan = self.model.plane_mut().plane.express_plan();
        ExaminedBits(plan.examined().iter().copied().collect())
    }

    /// Returns the bits of arriving packets that rules examine, after the shifts that the plan permits.
    fn examined(&mut self) -> ArrivingBits {
        let permitted = self.model.plane_mut().plane.express_plan().permitted();
        self.shadow.examined_on_arrival(match permitted.shift {
            Shift::Nothing => Shifts::Ignored,
            Shift::Moves => Shifts::Bases,
            Shift::Resizes => Shifts::All,
        })
    }

    fn check_pairs(&mut self, coverage: &mut KeyCoverage) -> Result<(), String> {
        let (planned, examined) = (self.planned(), self.examined());
        if !ArrivingBits::of(&planned).includes(&examined) {
            return Err(format!("the plan {planned:x?} lacks bits that rules examine: {examined:x?}"));
        }
        let plan = self.model.plane_mut().plane.express_plan().clone();
        coverage.plans += 1;
        coverage.two_lines += usize::from(plan.fit() == KeyFit::TwoLines);
        let Some(reader) = plan.reader() else {
            coverage.too_long += 1;
            return Ok(());
        };
        for _ in 0..PAIRS {
            let (template, port) = self.packet_in_use();
            let bytes = self.templates[template].bytes.clone();
            if bytes.len() < port::MIN_FRAME_BYTES {
                continue;
            }
            // The templates lack some combinations of headers, so half of the pairs start from a variant.
            let mut one = Subject { port, bytes };
            if self.rng.bool() {
                one = one.variant(&mut self.rng, &planned);
            }
            let other = one.variant(&mut self.rng, &planned);
            check_pair(reader, &planned, [&one, &other], coverage)?;
            if let Some(entry) = self.any_entry() {
                check_rule(&plan, &entry, &one, coverage)?;
                let rewritten = self.rewritten(&one);
                check_rewritten(&plan, &entry, [&one, &rewritten])?;
            }
        }
        Ok(())
    }

    /// Returns a random entry of a random table. Packets may never reach this table.
    fn any_entry(&mut self) -> Option<Arc<FlowEntry>> {
        let tables: Vec<TableId> = self.style.tables.iter().map(|table| table.number).collect();
        let entries = self.shadow.entries(tables[self.rng.usize(0..tables.len())]);
        let entry = entries.get(self.rng.usize(0..entries.len().max(1)))?;
        Some(Arc::clone(entry))
    }

    /// Returns the packet with random MAC addresses and a random TTL, as if entries had rewritten it.
    fn rewritten(&mut self, packet: &Subject) -> Subject {
        let mut bytes = packet.bytes.clone();
        let macs = [crate::templates::mac(&mut self.rng), crate::templates::mac(&mut self.rng)].concat();
        bytes[..macs.len()].copy_from_slice(&macs);
        let layers = wire::locate(&bytes, Depth::L4);
        // Offsets of the TTL and the checksum in IPv4, or of the hop limit in IPv6.
        let changed: &[usize] = match layers.present {
            present if present & header::IPV4 != 0 => &[8, 10, 11],
            present if present & header::IPV6 != 0 => &[7],
            _ => &[],
        };
        changed.iter().for_each(|at| bytes[usize::from(layers.l3) + at] = self.rng.u8(..));
        Subject { port: packet.port, bytes }
    }
}

fn matches(entry: &FlowEntry, packet: &Subject) -> bool {
    let arriving = ReferencePacket::arriving(packet.port, &packet.bytes);
    entry.matching.fields().all(|condition| {
        let mut bits = ExaminedBits::default();
        bits.add(condition.field, condition.mask);
        bits.values_of(&arriving) == [Some(condition.value)]
    })
}

fn key_of(plan: &ExpressPlan, packet: &Subject) -> ExpressKey {
    let mut key = ExpressKey::default();
    plan.reader().iter().for_each(|reader| reader.key_of(&packet.bytes, packet.port, &mut key));
    key
}

/// Checks that the key of a packet does not rule out an entry that the packet matches.
fn check_rule(
    plan: &ExpressPlan,
    entry: &FlowEntry,
    packet: &Subject,
    coverage: &mut KeyCoverage,
) -> Result<(), String> {
    let may_match = plan.may_match(&entry.matching, &key_of(plan, packet), Rewritten::Nothing);
    let is_match = matches(entry, packet);
    coverage.rules += 1;
    coverage.rules_matched += usize::from(is_match);
    coverage.rules_unclear += usize::from(may_match && !is_match);
    if is_match && !may_match {
        return Err(format!("the key of {packet:02x?} says that it does not match {:?}", entry.matching));
    }
    Ok(())
}

/// Checks that the key of a packet does not rule out an entry that the packet matches after rewrites.
fn check_rewritten(plan: &ExpressPlan, entry: &FlowEntry, packets: [&Subject; 2]) -> Result<(), String> {
    let [packet, rewritten] = packets;
    let may_match = plan.may_match(&entry.matching, &key_of(plan, packet), Rewritten::MacsOrTtl);
    if matches(entry, rewritten) && !may_match {
        return Err(format!(
            "the key of {packet:02x?} says that the packet does not match {:?} as {rewritten:02x?}",
            entry.matching
        ));
    }
    Ok(())
}

/// Checks that two packets have equal keys if and only if they are equal in all bits of the plan.
fn check_pair(
    reader: &KeyReader,
    planned: &ExaminedBits,
    pair: [&Subject; 2],
    coverage: &mut KeyCoverage,
) -> Result<(), String> {
    let values = pair.map(|p| (p.port, planned.values_of(&ReferencePacket::arriving(p.port, &p.bytes))));
    let keys = pair.map(|packet| {
        let mut key = ExpressKey::default();
        reader.key_of(&packet.bytes, packet.port, &mut key);
        (reader.bytes(&key).to_vec(), reader.hash(&key))
    });
    let is_one_flow = values[0] == values[1];
    if is_one_flow != (keys[0].0 == keys[1].0) || is_one_flow != (keys[0].1 == keys[1].1) {
        return Err(format!(
            "two packets {} one flow, but have the keys\n  {keys:02x?}\n  packets {pair:02x?}\n  values {values:x?}\n  plan {planned:x?}",
            if is_one_flow { "belong to" } else { "do not belong to" }
        ));
    }
    note(pair, &values, coverage);
    Ok(())
}

/// Counts how the packets of a pair differ.
fn note(pair: [&Subject; 2], values: &[(PortNo, Vec<Option<u128>>); 2], coverage: &mut KeyCoverage) {
    let layers = pair.map(|packet| wire::locate(&packet.bytes, Depth::L4));
    let is_unlike = layers[0].present != layers[1].present || layers[0].l4 != layers[1].l4;
    let [(one_port, one), (other_port, other)] = values;
    let fields = || one.iter().zip(other);
    let bits: u32 = fields().map(|(one, other)| (one.unwrap_or(0) ^ other.unwrap_or(0)).count_ones()).sum();
    let has_same_fields = fields().all(|(one, other)| one.is_some() == other.is_some());
    let is_equal = bits == 0 && has_same_fields;
    let is_one_port = one_port == other_port;
    *coverage += KeyCoverage {
        pairs: 1,
        equal: usize::from(is_equal && is_one_port),
        unlike: usize::from(is_equal && is_one_port && is_unlike),
        by_port: usize::from(is_equal && !is_one_port),
        by_presence: usize::from(!has_same_fields && is_one_port),
        by_one_bit: usize::from(bits == 1 && has_same_fields && is_one_port),
        ..KeyCoverage::default()
    };
}
