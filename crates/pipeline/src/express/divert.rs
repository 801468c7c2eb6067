// SPDX-License-Identifier: Apache-2.0
//! Offers frames without a path record to the port cache, before they are admitted.

use super::budget::{FrameCache, RecordBudget};
use super::cache::{Express, Missed};
use super::leave::put_back;
use super::waiting::WaitingKeys;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{self, Packet};
use crate::slab::PacketSlot;
use engines::NONE;
use flow::PortNo;
use frame::Frame;
use keys::ExpressKey;
use wire::ethernet::ETHERNET_BYTES;

impl Express {
    /// Offers the frames of the burst that have no path to the port cache. `frames` are the frames that
    /// [`Self::pass_frames`] has left. Frames that do not wait stay, in order.
    pub(crate) fn divert<E: Egress>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        cache: &mut FrameCache,
        frames: &mut Vec<Frame>,
    ) {
        let in_port = PortNo(frames.first().map_or(0, |frame| frame.meta.in_port));
        if !self.acts || !context.receives(in_port) {
            return;
        }
        cache.begin(context.now);
        let kept = std::mem::take(&mut self.kept);
        let mut hits = 0;
        for (at, frame) in kept.iter().zip(frames.drain(..kept.len())) {
            let (key, hash) = (&self.burst.keys[*at], self.burst.hashes[*at]);
            // A path of the previous plan may lack bits of the key. Another packet of the burst may have the
            // same key, no path, and wait.
            let has_path = self.burst.places[*at] != NONE
                || self.previous_path(*at).is_some() && !cache.holds(in_port, key, hash);
            hits += usize::from(has_path);
            let stays = if has_path || frame.len() < ETHERNET_BYTES {
                Some(frame)
            } else {
                let bytes = frame.len() as u32;
                cache.offer(in_port, (key, hash), frame, bytes, |frame| context.egress.set_aside(frame))
            };
            if let Some(frame) = stays {
                self.kept.push(*at);
                self.rest.push(frame);
            }
        }
        cache.count_hits(in_port, hits);
        put_back(frames, &mut self.rest);
        // A pending flow counts as a record, so records of the port may have to go.
        let mut budget = RecordBudget::new(Some(cache), in_port);
        budget.evict(0, context.window, &mut self.store);
        self.counters.removed(budget.removed);
    }

    /// Notes in the port cache which packets of the burst leave without a record, and which of them join the
    /// backlog. Call it before records are made.
    pub(crate) fn overtake(
        &self,
        cache: &mut FrameCache,
        packets: &[Packet],
        in_port: PortNo,
        lanes_on: bool,
    ) {
        if !cache.has_flows() {
            return;
        }
        let waits = |missed: &Missed| lanes_on && packets[missed.slot.index()].path != packet::Path::Left;
        for at in self.kept.iter().filter(|at| self.burst.places[**at] == NONE) {
            let (key, hash) = (&self.burst.keys[*at], self.burst.hashes[*at]);
            if self.missed.iter().any(|missed| missed.at == *at && waits(missed)) {
                cache.await_record(in_port, key, hash);
            } else {
                cache.overtake(in_port, key, hash);
            }
        }
    }

    /// Notes in the port cache which packets of the backlog leave without a record. Call it before records
    /// are made.
    pub(super) fn overtake_waiting(
        &self,
        cache: &mut FrameCache,
        packets: &[Packet],
        burst: &[PacketSlot],
        waiting: &WaitingKeys,
    ) {
        if !cache.has_flows() {
            return;
        }
        for slot in burst {
            let packet = &packets[slot.index()];
            if packet.awaits_record {
                let key = waiting.key(*slot);
                cache.overtake(packet.data.ext.in_port(), &key, self.reader.hash(&key));
            }
        }
    }

    /// Notes in the port cache which packets of the burst have left without a possible record.
    pub(crate) fn note_negative(&mut self, cache: &mut FrameCache, in_port: PortNo) {
        let mut negative = std::mem::take(&mut self.negative);
        while negative != 0 {
            let at = negative.trailing_zeros() as usize;
            cache.set_negative(in_port, &self.burst.keys[at], self.burst.hashes[at]);
            negative &= negative - 1;
        }
    }

    /// Returns the key of a packet of the last burst that had no record, and the key's hash. No record will
    /// be made for the packet.
    pub(crate) fn take_missed(&mut self, slot: PacketSlot) -> Option<(ExpressKey, u64)> {
        let at = self.missed.iter().position(|missed| missed.slot == slot)?;
        let at = self.missed.remove(at).at;
        Some((self.burst.keys[at], self.burst.hashes[at]))
    }

    /// Returns the key of a packet of the backlog that had no record, and the key's hash. No record will be
    /// made for the packet.
    pub(crate) fn take_waiting(
        &self,
        packet: &mut Packet,
        slot: PacketSlot,
        waiting: &WaitingKeys,
    ) -> Option<(ExpressKey, u64)> {
        let key = std::mem::take(&mut packet.awaits_record).then(|| waiting.key(slot))?;
        Some((key, self.reader.hash(&key)))
    }

    /// Returns whether packets with this key may hit a rule that was added since a version of the rules.
    pub(crate) fn may_hit_added(&self, key: &ExpressKey, since: u64) -> bool {
        self.changes.may_concern(key, since)
    }

    /// Returns the version of the rules.
    pub(crate) fn rules_version(&self) -> u64 {
        self.changes.version()
    }

    /// Returns the key of a packet that arrives at a port, and the key's hash.
    pub(crate) fn key_of_bytes(&self, bytes: &[u8], in_port: PortNo) -> (ExpressKey, u64) {
        let mut key = ExpressKey::default();
        self.reader.key_of(bytes, in_port, &mut key);
        (key, self.reader.hash(&key))
    }

    /// Returns the key of a frame and its hash.
    pub(crate) fn key_of(&self, frame: &Frame) -> (ExpressKey, u64) {
        self.key_of_bytes(frame.bytes(), PortNo(frame.meta.in_port))
    }
}
