// SPDX-License-Identifier: Apache-2.0
//! Decodes a state from the values of its items.

use crate::format::ByteFields;
use crate::items::port_config;
use crate::state::{EntryItem, FileState};
use flow::stateless::{Bank, StatelessConfig, StatelessSection};
use flow::{Nanos, PortNo, TableId};
use model::{KeptState, RestoredEntry, TableSet};
use openflow::{HEADER_BYTES, Message};
use std::sync::Arc;
use std::thread;

/// Number of entries above which several threads decode them.
const PARALLEL_MIN: usize = 8_192;

/// Decodes a state. `created` converts a time of the files into one of the datapath. Returns the number of
/// items that cannot be decoded and are left out.
pub fn decode(state: &FileState<'_>, created: impl Fn(i64) -> Nanos + Sync) -> (KeptState, usize) {
    let (entries, mut lost) = entries(&state.entries_in_order(), &created);
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
        entries,
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

/// Number of entries that are decoded into one vector. Many small vectors are never moved, and their memory
/// is used again while they are consumed.
const PART_ENTRIES: usize = 512;

/// Decodes the entries, in several threads if there are many.
fn entries(
    items: &[(u64, EntryItem<'_>)],
    created: &(impl Fn(i64) -> Nanos + Sync),
) -> (Vec<Vec<RestoredEntry>>, usize) {
    let decode_all = |items: &[(u64, EntryItem<'_>)]| -> Vec<Vec<RestoredEntry>> {
        let parts = items.chunks(PART_ENTRIES).map(|items| {
            let mut part = Vec::with_capacity(items.len());
            part.extend(items.iter().filter_map(|(serial, item)| entry(*serial, item, created)));
            part
        });
        parts.collect()
    };
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parts = if items.len() < PARALLEL_MIN { 1 } else { cpus.min(8) };
    let mut decoded = Vec::new();
    thread::scope(|scope| {
        let mut chunks = items.chunks(items.len().div_ceil(parts).max(1));
        let first = chunks.next().unwrap_or_default();
        let others: Vec<_> = chunks
            .map(|chunk| (chunk, thread::Builder::new().spawn_scoped(scope, move || decode_all(chunk))))
            .collect();
        decoded.extend(decode_all(first));
        for (chunk, thread) in others {
            // If the system refuses a thread, or the thread ends early, decode here.
            let done = thread.ok().and_then(|thread| thread.join().ok());
            decoded.extend(done.unwrap_or_else(|| decode_all(chunk)));
        }
    });
    let lost = items.len() - decoded.iter().map(Vec::len).sum::<usize>();
    (decoded, lost)
}

fn entry(serial: u64, item: &EntryItem<'_>, created: &impl Fn(i64) -> Nanos) -> Option<RestoredEntry> {
    let Ok(Message::FlowMod(m)) = openflow::decode(item.message) else { return None };
    Some(RestoredEntry { flow: m.flow, serial, created_ns: created(item.created), learned: item.is_learned })
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
