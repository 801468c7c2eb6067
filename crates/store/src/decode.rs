// SPDX-License-Identifier: Apache-2.0
//! Decodes a state from the values of its items.

use crate::format::ByteFields;
use crate::items::port_config;
use crate::state::{EntryItem, FileState};
use flow::stateless::{Bank, StatelessConfig, StatelessSection};
use flow::validate::validate_instructions;
use flow::{Nanos, PortNo, TableId};
use hashbrown::HashMap;
use model::{
    EntryOrigin, KeptState, RestoredEntries, RestoredEntry, RestoredInstructions, RestoredPart, TableSet,
};
use openflow::flow_mod::{FlowModDecoder, FlowModParts, decode_instructions};
use openflow::{HEADER_BYTES, Message};
use std::slice::Chunks;
use std::sync::Arc;

/// Number of entries in a part.
const PART_ENTRIES: usize = 512;

/// Divides flow entries into parts, each of which is decoded as a whole.
pub fn parts<'s, 'a>(items: &'s [(u64, EntryItem<'a>)]) -> Chunks<'s, (u64, EntryItem<'a>)> {
    items.chunks(PART_ENTRIES)
}

/// Decodes a state without its flow entries. Returns the number of items that cannot be decoded and are left
/// out.
pub fn decode(state: &FileState<'_>) -> (KeptState, usize) {
    let mut lost = 0;
    let mut count = |is_some: bool| lost += usize::from(!is_some);
    let mut groups = Vec::with_capacity(state.groups.len());
    for bytes in state.groups.values() {
        match openflow::decode(bytes) {
            Ok(Message::GroupMod(m)) => groups.push(m.group),
            _ => count(false),
        }
    }
    let mut meters = Vec::with_capacity(state.meters.len());
    for bytes in state.meters.values() {
        match openflow::decode(bytes) {
            Ok(Message::MeterMod(m)) => meters.push(m.meter),
            _ => count(false),
        }
    }
    let stateless = state.stateless.and_then(|bytes| {
        let decoded = stateless(bytes);
        count(decoded.is_some());
        decoded
    });
    let kept = KeptState {
        entries: RestoredEntries::default(),
        macs: state.macs.iter().map(|(&(vid, mac), &port)| (vid, mac, PortNo(port))).collect(),
        groups,
        meters,
        ports: state.ports.iter().map(|(&port, &bits)| (PortNo(port), port_config(bits))).collect(),
        stateless,
        tables: state.tables.map(tables),
        drop_fragments: state.drop_fragments,
        standalone: state.standalone,
    };
    (kept, lost)
}

/// Decodes parts of flow entries. `list` is the number of the list of instructions of these parts. `created`
/// converts a time of the files into one of the datapath. Ends early if `take` returns `false`.
pub fn decode_parts<'s, 'a: 's>(
    list: usize,
    parts: impl IntoIterator<Item = &'s [(u64, EntryItem<'a>)]>,
    created: impl Fn(i64) -> Nanos,
    mut take: impl FnMut(RestoredPart) -> bool,
) {
    let (mut decoder, mut known) = (FlowModDecoder::default(), KnownInstructions::default());
    for items in parts {
        let mut entries = Vec::with_capacity(items.len());
        entries.extend(items.iter().filter_map(|(serial, item)| {
            let origin =
                EntryOrigin { serial: *serial, created_ns: created(item.created), learned: item.is_learned };
            entry(item.message, origin, &mut decoder, &mut known)
        }));
        if !take(RestoredPart { list, instructions: std::mem::take(&mut known.new), entries }) {
            return;
        }
    }
}

/// Decoded instructions. Many entries have equal instructions, which each thread decodes and checks only
/// once.
#[derive(Default)]
struct KnownInstructions<'a> {
    /// Index in the list by table and encoded form.
    known: HashMap<(TableId, &'a [u8]), usize>,
    /// Instructions that no part has yet. They are the last ones of the list.
    new: Vec<RestoredInstructions>,
}

impl<'a> KnownInstructions<'a> {
    /// Returns the index of the instructions of an entry of this table, or `None` if they cannot be decoded.
    fn get(&mut self, table: TableId, bytes: &'a [u8]) -> Option<usize> {
        if let Some(index) = self.known.get(&(table, bytes)) {
            return Some(*index);
        }
        let (instructions, explicit) = decode_instructions(bytes).ok()?;
        let invalid = validate_instructions(table, &instructions).err();
        let instructions = Arc::new(instructions);
        self.new.push(RestoredInstructions { table, instructions, explicit, invalid });
        let index = self.known.len();
        self.known.insert((table, bytes), index);
        Some(index)
    }
}

/// Decodes the FLOW_MOD of an entry. Decoding checks the match; the instructions are checked here.
fn entry<'a>(
    message: &'a [u8],
    origin: EntryOrigin,
    decoder: &mut FlowModDecoder,
    known: &mut KnownInstructions<'a>,
) -> Option<RestoredEntry> {
    let FlowModParts { flow, instructions } = decoder.decode(message).ok()?;
    Some(RestoredEntry {
        priority: flow.priority,
        matching: flow.matching,
        instructions: known.get(flow.table?, instructions)?,
        idle_timeout_s: flow.idle_timeout_s,
        hard_timeout_s: flow.hard_timeout_s,
        cookie: flow.cookie,
        flags: flow.flags,
        origin,
    })
}

fn tables(bits: [u8; 32]) -> TableSet {
    let mut tables = TableSet::NONE;
    for table in TableId::all().filter(|table| bits[table.index() / 8] >> (table.index() % 8) & 1 == 1) {
        tables.insert(table);
    }
    tables
}

/// Decodes the replies of a stateless configuration.
fn stateless(bytes: &[u8]) -> Option<Option<Arc<StatelessConfig>>> {
    let mut fields = ByteFields(bytes);
    let mut config = StatelessConfig::default();
    let mut last: Option<StatelessSection> = None;
    while !fields.0.is_empty() {
        let head = fields.0.get(..HEADER_BYTES)?;
        let message = fields.bytes(usize::from(u16::from_be_bytes([head[2], head[3]])).max(HEADER_BYTES))?;
        let Ok(Message::StatelessReply(reply)) = openflow::decode(message) else { return None };
        let Some(sections) = reply.sections else { return fields.end(None) };
        for section in sections {
            let section = match last.take() {
                Some(before) => continued(before, section),
                None => section,
            };
            config.set(section.clone());
            last = Some(section);
        }
    }
    Some(Some(Arc::new(config)))
}

/// Adds the part of a bank to the parts before it.
fn continued(before: StatelessSection, part: StatelessSection) -> StatelessSection {
    let join = |mut bank: Bank, part: Bank| {
        bank.labels.extend(part.labels);
        bank.backups.extend(part.backups);
        Some(bank)
    };
    match (before, part) {
        (StatelessSection::Bank(epoch, Some(bank)), StatelessSection::Bank(same, Some(part)))
            if epoch == same =>
        {
            StatelessSection::Bank(epoch, join(bank, part))
        }
        (StatelessSection::Polka(Some(bank)), StatelessSection::Polka(Some(part))) => {
            StatelessSection::Polka(join(bank, part))
        }
        (_, part) => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{FlowMod, Instructions, Next};
    use openflow::flow_mod::FlowModMessage;

    #[test]
    fn entries_are_decoded_in_parts_without_those_that_are_malformed() {
        let encoded = |next| {
            let instructions =
                Instructions { next: Some(Next::Table(TableId(next))), ..Instructions::default() };
            let flow = FlowMod { table: Some(TableId(0)), cookie: 7, instructions, ..FlowMod::default() };
            let mut message = Vec::new();
            openflow::encode(&Message::FlowMod(FlowModMessage { flow, buffer_id: None }), 0, &mut message)
                .unwrap();
            message
        };
        let (message, later) = (encoded(1), encoded(2));
        let malformed = &message[..message.len() - 1];
        let items: Vec<_> = (0..1_100)
            .map(|serial| {
                let message = match serial {
                    600 => malformed,
                    700.. => &later,
                    _ => &message,
                };
                (serial, EntryItem { created: 5, is_learned: serial == 3, message })
            })
            .collect();
        let mut taken_parts = Vec::new();
        let mut take = |part: RestoredPart| {
            taken_parts.push(part);
            true
        };
        decode_parts(3, parts(&items), |created| Nanos(created as u64 + 1), &mut take);
        assert_eq!(taken_parts.iter().map(|part| part.entries.len()).collect::<Vec<_>>(), [512, 511, 76]);
        assert_eq!(taken_parts.iter().map(|part| part.instructions.len()).collect::<Vec<_>>(), [1, 1, 0]);
        assert!(taken_parts.iter().all(|part| part.list == 3));
        let decoded: Vec<&RestoredEntry> = taken_parts.iter().flat_map(|part| &part.entries).collect();
        assert!(decoded.iter().all(|entry| entry.cookie == 7));
        let is_later = |entry: &RestoredEntry| entry.origin.serial >= 700;
        assert!(decoded.iter().all(|entry| entry.instructions == usize::from(is_later(entry))));
        let origins = decoded.iter().map(|entry| entry.origin);
        assert!(origins.clone().map(|origin| origin.serial).eq((0..1_100).filter(|serial| *serial != 600)));
        let is_right = |origin: EntryOrigin| origin.learned == (origin.serial == 3);
        assert!(origins.clone().all(|origin| origin.created_ns == Nanos(6) && is_right(origin)));
        let mut taken = 0;
        decode_parts(
            0,
            parts(&items),
            |_| Nanos(0),
            |_| {
                taken += 1;
                taken < 2
            },
        );
        assert_eq!(taken, 2);
    }

    /// The goto to table 3 is valid in table 1, but not in table 5.
    #[test]
    fn equal_instructions_are_shared_and_checked_for_each_table() {
        let instructions = Instructions { next: Some(Next::Table(TableId(3))), ..Instructions::default() };
        let messages: Vec<Vec<u8>> =
            [(1, Some(true)), (5, Some(true)), (1, Some(true)), (1, None), (5, Some(true))]
                .into_iter()
                .map(|(table, low_latency)| {
                    let instructions = instructions.clone();
                    let flow = FlowMod {
                        table: Some(TableId(table)),
                        instructions,
                        low_latency,
                        ..FlowMod::default()
                    };
                    let mut message = Vec::new();
                    let sent = Message::FlowMod(FlowModMessage { flow, buffer_id: None });
                    openflow::encode(&sent, 0, &mut message).unwrap();
                    message
                })
                .collect();
        let item = |message| EntryItem { created: 0, is_learned: false, message };
        let items: Vec<_> = (0..).zip(messages.iter().map(|message| item(&message[..]))).collect();
        let (mut list, mut entries) = (Vec::new(), Vec::new());
        decode_parts(
            0,
            parts(&items),
            |_| Nanos(0),
            |part| {
                list.extend(part.instructions);
                entries.extend(part.entries);
                true
            },
        );
        assert_eq!(entries.iter().map(|entry| entry.instructions).collect::<Vec<_>>(), [0, 1, 0, 2, 1]);
        assert_eq!(list.iter().map(|known| known.table.0).collect::<Vec<_>>(), [1, 5, 1]);
        assert!(list.iter().all(|known| *known.instructions == instructions));
        let invalid: Vec<bool> = list.iter().map(|known| known.invalid.is_some()).collect();
        assert_eq!(invalid, [false, true, false]);
        assert_eq!(
            list.iter().map(|known| known.explicit).collect::<Vec<_>>(),
            [Some(true), Some(true), None]
        );
    }
}
