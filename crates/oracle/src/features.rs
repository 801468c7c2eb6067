// SPDX-License-Identifier: Apache-2.0
//! Coverage of the features of the flow model. A packet covers features of the entries that it hits and of
//! the groups that it uses.

use super::coverage::Coverage;
use super::log::{Arrival, Lookup, tag};
use dataplane::FoundBy;
use flow::group::Bucket;
use flow::{
    Action, DropReason, Edit, EntryChange, EntryId, FlowEntry, GroupId, Instructions, Operation, Outcome,
    PortNo, SliceBase, TableId, port_no,
};
use reference::{Processed, Unfinished};
use std::collections::BTreeMap;

/// Set of features, as bits.
type Set = u32;

const METER: Set = 1;
const TABLE_10: Set = 1 << 1;
const TABLE_16: Set = 1 << 2;
const PRIORITY_HIGH: Set = 1 << 3;
const PRIORITY_0: Set = 1 << 4;
const PRIORITY_MOST: Set = 1 << 5;
const MATCH_ALL: Set = 1 << 6;
const POP_TO_MPLS: Set = 1 << 7;
const SET_QUEUE: Set = 1 << 8;
const GROUP: Set = 1 << 9;
/// A bucket selects an egress queue.
const BUCKET_QUEUE: Set = 1 << 10;
/// An entry sends packets to a group and then to further outputs.
const MORE_OUTPUTS: Set = 1 << 11;
const IPV6_HOST: Set = 1 << 12;
const MASKED_L4: Set = 1 << 13;
const LINEAR: Set = 1 << 14;
/// A frame without offloads needs a large buffer.
const LONG: Set = 1 << 15;
const FROM_ANY: Set = 1 << 16;
const FROM_LOCAL: Set = 1 << 17;
const FROM_0: Set = 1 << 18;
const FROM_CONTROLLER: Set = 1 << 19;
const FROM_PORT: Set = 1 << 20;
/// The packet ends within its first headers, so it has no tag.
const SHORT: Set = 1 << 21;
/// The packet's destination is a reserved multicast address.
const RESERVED: Set = 1 << 22;
/// NORMAL dropped the packet because its destination was a reserved multicast address.
const RESERVED_DROPPED: Set = 1 << 23;
/// A LUT record determined an entry that the packet hit.
const BY_LUT: Set = 1 << 24;
/// A path record determined the packet's entries.
const BY_RECORD: Set = 1 << 25;

const MOVE_BASE: Set = 1 << 26;
/// An entry after table 0 examines a slice that is counted from the base.
const MOVING_SLICE: Set = 1 << 27;
const RESIZE: Set = 1 << 28;
const EDIT_FIELD: Set = 1 << 29;
const CHECKSUM: Set = 1 << 30;
const CUT: Set = 1 << 31;

/// Counted combinations of features. A packet counts if it exercised all features of a combination.
const COUNTED: [(&str, Set); 34] = [
    ("moves of the base", MOVE_BASE),
    ("slices from a base that may have moved", MOVING_SLICE),
    ("inserted or deleted bytes", RESIZE),
    ("cuts of the front", CUT),
    ("cuts of the front by path record", CUT | BY_RECORD),
    ("increased or copied fields", EDIT_FIELD),
    ("calculated checksums", CHECKSUM),
    ("meters", METER),
    ("tables from 10 on", TABLE_10),
    ("tables from 16 on", TABLE_16),
    ("priorities from 32768 on", PRIORITY_HIGH),
    ("priority 0", PRIORITY_0),
    ("priority 65535", PRIORITY_MOST),
    ("low-latency match-all entries", MATCH_ALL),
    ("pop_mpls to MPLS", POP_TO_MPLS),
    ("set_queue", SET_QUEUE),
    ("groups", GROUP),
    ("queues of buckets before more outputs", BUCKET_QUEUE | MORE_OUTPUTS),
    ("hosts of IPv6", IPV6_HOST),
    ("masked L4 ports", MASKED_L4),
    ("linear tables", LINEAR),
    ("long frames without offloads", LONG),
    ("packet-outs from ANY", FROM_ANY),
    ("packet-outs from LOCAL", FROM_LOCAL),
    ("packet-outs from port 0", FROM_0),
    ("packet-outs from CONTROLLER", FROM_CONTROLLER),
    ("packet-outs from ports", FROM_PORT),
    ("short frames", SHORT),
    ("short frames by LUT", SHORT | BY_LUT),
    ("short frames by path record", SHORT | BY_RECORD),
    ("reserved destinations by LUT", RESERVED | BY_LUT),
    ("reserved destinations by path record", RESERVED | BY_RECORD),
    ("reserved destinations dropped after LUTs", RESERVED_DROPPED | BY_LUT),
    ("reserved destinations dropped after path records", RESERVED_DROPPED | BY_RECORD),
];

/// Features of the rules after the operations that the checker has applied so far.
#[derive(Debug, Default)]
pub(super) struct Features {
    entries: BTreeMap<EntryId, Set>,
    groups: BTreeMap<GroupId, Set>,
}

impl Features {
    /// Applies an operation.
    pub fn apply(&mut self, operation: &Operation) {
        for part in operation.parts() {
            match part {
                Operation::Entries(changes) => changes.iter().for_each(|change| self.change(change)),
                Operation::Group(group) => {
                    let set = group.buckets.iter().fold(0, |set, bucket| set | of_bucket(bucket));
                    self.groups.insert(group.id, set | GROUP);
                }
                _ => {}
            }
        }
    }

    fn change(&mut self, change: &EntryChange) {
        match change {
            EntryChange::Add(entry) => {
                self.entries.insert(entry.id, of_match(entry) | of_instructions(&entry.instructions));
            }
            EntryChange::Modify { id, instructions, .. } => {
                let set = self.entries.entry(*id).or_default();
                *set = *set & BY_MATCH | of_instructions(instructions);
            }
            EntryChange::Remove { .. } => {}
        }
    }

    /// Counts the features that a packet exercised, or the drop reason if it was dropped.
    pub fn note(
        &self,
        arrival: &Arrival,
        lookups: &[Lookup],
        processed: &Processed,
        coverage: &mut Coverage,
    ) {
        let by = lookups.iter().map(of_lookup).fold(0, |set, one| set | one);
        let met = match processed.outcome {
            Outcome::Dropped(reason) => {
                *coverage.drops.entry(reason.name()).or_default() += 1;
                if reason == DropReason::ReservedMulticast { by | RESERVED_DROPPED } else { 0 }
            }
            Outcome::Forwarded | Outcome::Consumed => {
                let hits = processed.hits.iter().filter_map(|(_, id)| self.entries.get(&(*id)?));
                let used = processed.groups.iter().filter_map(|(id, _)| self.groups.get(id));
                hits.chain(used).fold(of_arrival(arrival) | by, |met, set| met | set)
            }
        };
        let is_of_other_vlan = processed.outcome == Outcome::Dropped(DropReason::WrongVlan);
        let is_retagged = processed.retagged > 0;
        for (name, is_met) in [
            ("frames of another VLAN", is_of_other_vlan),
            ("tags changed by NORMAL", is_retagged),
            ("tags changed by NORMAL after path records", is_retagged && by & BY_RECORD != 0),
        ] {
            *coverage.features.entry(name).or_default() += usize::from(is_met);
        }
        for (name, wanted) in COUNTED {
            if met & wanted == wanted {
                *coverage.features.entry(name).or_default() += 1;
            }
        }
    }
}

/// Features of an entry that a modify command cannot change.
const BY_MATCH: Set = TABLE_10
    | TABLE_16
    | PRIORITY_HIGH
    | PRIORITY_0
    | PRIORITY_MOST
    | MATCH_ALL
    | IPV6_HOST
    | MASKED_L4
    | LINEAR
    | MOVING_SLICE;

fn of_arrival(arrival: &Arrival) -> Set {
    let long = arrival.bytes.len() > port::SMALL_FRAME_BYTES && arrival.unfinished == Unfinished::default();
    let from = match arrival.port {
        _ if !arrival.is_injected() => 0,
        port_no::ANY => FROM_ANY,
        port_no::LOCAL => FROM_LOCAL,
        port_no::CONTROLLER => FROM_CONTROLLER,
        PortNo(0) => FROM_0,
        _ => FROM_PORT,
    };
    let short = if tag(&arrival.bytes).is_none() { SHORT } else { 0 };
    let is_reserved = matches!(arrival.bytes[..], [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f, ..]);
    from | short | if long { LONG } else { 0 } | if is_reserved { RESERVED } else { 0 }
}

fn of_lookup(lookup: &Lookup) -> Set {
    match lookup.by {
        FoundBy::Lut | FoundBy::Verified | FoundBy::Inherited => BY_LUT,
        FoundBy::Express => BY_RECORD,
        FoundBy::Table | FoundBy::Known | FoundBy::Index | FoundBy::Shared => 0,
    }
}

fn of_match(entry: &FlowEntry) -> Set {
    use flow::Field as F;
    let ports = [F::TcpSrc, F::TcpDst, F::UdpSrc, F::UdpDst, F::SctpSrc, F::SctpDst];
    let mut set = 0;
    let mut put = |is: bool, feature: Set| set |= if is { feature } else { 0 };
    put(entry.table >= TableId(10), TABLE_10);
    put(entry.table >= TableId(16), TABLE_16);
    put(entry.priority >= 32_768, PRIORITY_HIGH);
    put(entry.priority == 0, PRIORITY_0);
    put(entry.priority == u16::MAX, PRIORITY_MOST);
    put(entry.matching.is_any() && entry.low_latency, MATCH_ALL);
    put(entry.matching.index().is_some(), LINEAR);
    for condition in entry.matching.fields() {
        let is_moving = matches!(condition.field, F::Slice(slice) if slice.base == SliceBase::Moving);
        put(is_moving && entry.table > TableId(0), MOVING_SLICE);
        put(matches!(condition.field, F::Ipv6Src | F::Ipv6Dst) && condition.is_exact(), IPV6_HOST);
        put(ports.contains(&condition.field) && !condition.is_exact(), MASKED_L4);
    }
    set
}

fn of_instructions(instructions: &Instructions) -> Set {
    let actions = instructions.apply.iter().chain(&instructions.write);
    let meter = if instructions.meter.is_some() { METER } else { 0 };
    let outputs = |action: &Action| matches!(action, Action::Output { .. });
    let group = instructions.apply.iter().position(|action| matches!(action, Action::Group(_)));
    let more = group.is_some_and(|at| instructions.apply[at..].iter().any(outputs));
    actions.map(of_action).fold(meter | if more { MORE_OUTPUTS } else { 0 }, |set, one| set | one)
}

fn of_bucket(bucket: &Bucket) -> Set {
    let set = bucket.actions.iter().map(of_action).fold(0, |set, one| set | one);
    set | if set & SET_QUEUE != 0 { BUCKET_QUEUE } else { 0 }
}

fn of_action(action: &Action) -> Set {
    match action {
        Action::PopMpls(0x8847 | 0x8848) => POP_TO_MPLS,
        Action::SetQueue(_) => SET_QUEUE,
        Action::Edit(Edit::MoveBase(_)) => MOVE_BASE,
        Action::Edit(Edit::CutFront { .. }) => CUT,
        Action::Edit(Edit::AddField { .. } | Edit::DeleteField(_)) => RESIZE,
        Action::Edit(Edit::ModifyField { .. } | Edit::CopyField { .. }) => EDIT_FIELD,
        Action::Edit(Edit::CalculateChecksum { .. }) => CHECKSUM,
        _ => 0,
    }
}
