// SPDX-License-Identifier: Apache-2.0
//! Encodes changes as items of frames. Flows, groups, meters and stateless configurations are OpenFlow 1.3
//! messages with Shunt's extensions.

use crate::clock::StoreClock;
use crate::format::{FRAME_FULL_BYTES, FrameKind, ITEM_MAX, begin_frame, end_frame};
use crate::items::{ItemKind, port_bits};
use flow::stateless::StatelessConfig;
use flow::{Nanos, TableId};
use model::{KeptChange, TableSet};
use openflow::flow_mod::FlowModMessage;
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::stateless::StatelessReplies;
use openflow::{Message, TooLong};
use std::sync::Arc;

/// Encodes transactions and parts of snapshots as frames.
#[derive(Clone, Copy, Debug)]
pub struct FrameEncoder {
    /// Start value of the checksums of the file.
    pub seed: u32,
    pub clock: StoreClock,
}

impl FrameEncoder {
    /// Appends a transaction or part. Returns the number of changes that cannot be encoded and are left out.
    pub fn transaction(&self, out: &mut Vec<u8>, sequence: u64, now: Nanos, changes: &[KeptChange]) -> usize {
        let mut left_out = 0;
        let mut kind = FrameKind { is_first: true, ..FrameKind::default() };
        let mut at = begin_frame(out);
        out.extend(self.clock.monotonic(now).to_le_bytes());
        out.extend(self.clock.wall_ms().to_le_bytes());
        for change in changes {
            if out.len() - at > FRAME_FULL_BYTES {
                end_frame(out, at, self.seed, sequence, kind);
                kind.is_first = false;
                at = begin_frame(out);
            }
            left_out += usize::from(self.item(out, change).is_err());
        }
        kind.is_last = true;
        end_frame(out, at, self.seed, sequence, kind);
        left_out
    }

    /// Appends the frame that ends a snapshot, which may include transactions up to `sequence`.
    pub fn end_of_snapshot(&self, out: &mut Vec<u8>, sequence: u64) {
        let at = begin_frame(out);
        let kind = FrameKind { is_end: true, ..FrameKind::default() };
        end_frame(out, at, self.seed, sequence, kind);
    }

    fn item(&self, out: &mut Vec<u8>, change: &KeptChange) -> Result<(), TooLong> {
        let start = out.len();
        out.extend([0; 4]);
        let done = self.body(out, change);
        let length = out.len() - start - 4;
        let item = match done {
            Ok(item) if length <= ITEM_MAX => item,
            Ok(_) => {
                out.truncate(start);
                return Err(TooLong(length));
            }
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        };
        out[start..start + 4].copy_from_slice(&((item as u32) << 24 | length as u32).to_le_bytes());
        Ok(())
    }

    fn body(&self, out: &mut Vec<u8>, change: &KeptChange) -> Result<ItemKind, TooLong> {
        Ok(match change {
            KeptChange::Entry(kept) => {
                out.extend(kept.serial.to_le_bytes());
                out.extend(self.clock.monotonic(kept.created_ns).to_le_bytes());
                out.push(kept.mark.learned.into());
                put(out, &Message::FlowMod(FlowModMessage { flow: kept.flow_mod(), buffer_id: None }))?;
                ItemKind::Entry
            }
            KeptChange::EntryGone(serial) => {
                out.extend(serial.to_le_bytes());
                ItemKind::EntryGone
            }
            KeptChange::Mac { vid, mac, port } => {
                out.extend(vid.to_le_bytes());
                out.extend(mac);
                out.extend(port.0.to_le_bytes());
                ItemKind::Mac
            }
            KeptChange::MacGone { vid, mac } => {
                out.extend(vid.to_le_bytes());
                out.extend(mac);
                ItemKind::MacGone
            }
            KeptChange::Group(group) => {
                out.extend(group.id.0.to_le_bytes());
                put(
                    out,
                    &Message::GroupMod(GroupMod {
                        command: GroupChange::Add,
                        group: flow::group::Group::clone(group),
                    }),
                )?;
                ItemKind::Group
            }
            KeptChange::GroupGone(id) => {
                out.extend(id.0.to_le_bytes());
                ItemKind::GroupGone
            }
            KeptChange::Meter(meter) => {
                out.extend(meter.id.0.to_le_bytes());
                let meter = flow::meter::Meter::clone(meter);
                put(out, &Message::MeterMod(MeterMod { command: GroupChange::Add, meter }))?;
                ItemKind::Meter
            }
            KeptChange::MeterGone(id) => {
                out.extend(id.0.to_le_bytes());
                ItemKind::MeterGone
            }
            KeptChange::Port(number, config) => {
                out.extend(number.0.to_le_bytes());
                out.push(port_bits(*config));
                ItemKind::Port
            }
            KeptChange::Stateless(config) => {
                for reply in StatelessReplies::new(config.clone()) {
                    put(out, &Message::StatelessReply(reply))?;
                }
                ItemKind::Stateless
            }
            KeptChange::Tables(tables) => {
                out.extend(table_bits(*tables));
                ItemKind::Tables
            }
            KeptChange::DropFragments(drop) => {
                out.push((*drop).into());
                ItemKind::DropFragments
            }
            KeptChange::Standalone(standalone) => {
                out.push((*standalone).into());
                ItemKind::Standalone
            }
        })
    }
}

/// Returns a checksum of the configuration of the stateless forwarder.
pub fn mark_of(config: Option<Arc<StatelessConfig>>) -> u32 {
    let mut bytes = Vec::new();
    for reply in StatelessReplies::new(config) {
        // A reply fits into a message.
        let _ = put(&mut bytes, &Message::StatelessReply(reply));
    }
    crc32c::crc32c(&bytes)
}

fn put(out: &mut Vec<u8>, message: &Message) -> Result<(), TooLong> {
    openflow::encode(message, 0, out)
}

fn table_bits(tables: TableSet) -> [u8; 32] {
    let mut bits = [0; 32];
    for table in TableId::all().filter(|table| tables.contains(*table)) {
        bits[table.index() / 8] |= 1 << (table.index() % 8);
    }
    bits
}
