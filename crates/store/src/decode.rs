// SPDX-License-Identifier: Apache-2.0
//! Decodes a state from the values of its items.

use crate::format::ByteFields;
use crate::items::port_config;
use crate::state::{EntryItem, FileState};
use flow::stateless::{Bank, StatelessConfig, StatelessSection};
use flow::validate::{ValidateError, validate_instructions};
use flow::{Instructions, Nanos, PortNo, TableId};
use hashbrown::HashMap;
use model::{EntryOrigin, KeptState, RestoredEntries, RestoredEntry, TableSet};
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

/// Decodes parts of flow entries. `created` converts a time of the files into one of the datapath. Ends early
/// if `take` returns `false`.
pub fn decode_parts<'s, 'a: 's>(
    parts: impl IntoIterator<Item = &'s [(u64, EntryItem<'a>)]>,
    created: impl Fn(i64) -> Nanos,
    mut take: impl FnMut(Vec<RestoredEntry>) -> bool,
) {
    let (mut decoder, mut known) = (FlowModDecoder::default(), KnownInstructions::default());
    for items in parts {
        let mut part = Vec::with_capacity(items.len());
        part.extend(items.iter().filter_map(|(serial, item)| {
            let origin =
                EntryOrigin { serial: *serial, created_ns: created(item.created), learned: item.is_learned };
            entry(item.message, origin, &mut decoder, &mut known)
        }));
        if !take(part) {
            return;
        }
    }
}

/// Decoded instructions by table and encoded form. Most entries have the instructions of others, which are
/// then decoded and checked only once by each thread.
#[derive(Default)]
struct KnownInstructions<'a>(HashMap<(TableId, &'a [u8]), CheckedInstructions>);

#[derive(Clone)]
struct CheckedInstructions {
    instructions: Arc<Instructions>,
    /// Low-latency mark among the instructions.
    explicit: Option<bool>,
    invalid: Option<Box<ValidateError>>,
}

impl<'a> KnownInstructions<'a> {
    /// Returns the instructions of an entry of this table, or `None` if they cannot be decoded.
    fn get(&mut self, table: TableId, bytes: &'a [u8]) -> Option<CheckedInstructions> {
        if let Some(known) = self.0.get(&(table, bytes)) {
            return Some(known.clone());
        }
        let (instructions, explicit) = decode_instructions(bytes).ok()?;
        let invalid = validate_instructions(table, &instructions).err().map(Box::new);
        let new = CheckedInstructions { instructions: Arc::new(instructions), explicit, invalid };
        self.0.insert((table, bytes), new.clone());
        Some(new)
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
    let CheckedInstructions { instructions, explicit, invalid } = known.get(flow.table?, instructions)?;
    let entry = Arc::new(flow.into_entry(|_| instructions)?);
    Some(RestoredEntry { entry, explicit, origin, invalid })
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
    use flow::{FlowMod, Next};
    use openflow::flow_mod::FlowModMessage;

    #[test]
    fn entries_are_decoded_in_parts_without_those_that_are_malformed() {
        let mut message = Vec::new();
        let flow = FlowMod { table: Some(TableId(0)), cookie: 7, ..FlowMod::default() };
        openflow::encode(&Message::FlowMod(FlowModMessage { flow, buffer_id: None }), 0, &mut message)
            .unwrap();
        let malformed = &message[..message.len() - 1];
        let items: Vec<_> = (0..1_100)
            .map(|serial| {
                let message = if serial == 600 { malformed } else { &message };
                (serial, EntryItem { created: 5, is_learned: serial == 3, message })
            })
            .collect();
        let mut taken_parts = Vec::new();
        let mut take = |part| {
            taken_parts.push(part);
            true
        };
        decode_parts(parts(&items), |created| Nanos(created as u64 + 1), &mut take);
        assert_eq!(taken_parts.iter().map(Vec::len).collect::<Vec<_>>(), [512, 511, 76]);
        let decoded: Vec<&RestoredEntry> = taken_parts.iter().flatten().collect();
        assert!(decoded.iter().all(|entry| entry.entry.cookie == 7));
        let origins = decoded.iter().map(|entry| entry.origin);
        assert!(origins.clone().map(|origin| origin.serial).eq((0..1_100).filter(|serial| *serial != 600)));
        let is_right = |origin: EntryOrigin| origin.learned == (origin.serial == 3);
        assert!(origins.clone().all(|origin| origin.created_ns == Nanos(6) && is_right(origin)));
        let mut taken = 0;
        decode_parts(
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
        let mut decoded = Vec::new();
        decode_parts(
            parts(&items),
            |_| Nanos(0),
            |part| {
                decoded.extend(part);
                true
            },
        );
        assert!(decoded.iter().all(|entry| *entry.entry.instructions == instructions));
        let invalid: Vec<bool> = decoded.iter().map(|entry| entry.invalid.is_some()).collect();
        assert_eq!(invalid, [false, true, false, false, true]);
        let explicit: Vec<_> = decoded.iter().map(|entry| entry.explicit).collect();
        assert_eq!(explicit, [Some(true), Some(true), Some(true), None, Some(true)]);
        let is_shared =
            |a: usize, b: usize| Arc::ptr_eq(&decoded[a].entry.instructions, &decoded[b].entry.instructions);
        assert!(is_shared(0, 2) && is_shared(1, 4) && !is_shared(0, 1));
    }
}
