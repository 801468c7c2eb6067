// SPDX-License-Identifier: Apache-2.0
//! Keys of the packets in the backlog that have no record. Their records are made when they leave.

use crate::slab::PacketSlot;
use engines::pages::zeros;
use keys::{ExpressKey, LONG_WORDS};

/// Keys, indexed by the slots of their packets.
#[derive(Debug)]
pub(crate) struct WaitingKeys {
    words: Box<[u64]>,
}

impl WaitingKeys {
    /// Reserves space for the keys of `packets` packets. The operating system allocates each page when it is
    /// first used.
    pub fn new(packets: usize) -> Self {
        Self { words: zeros(packets * LONG_WORDS) }
    }

    /// Saves the key of the packet that is in this slot.
    pub fn save(&mut self, slot: PacketSlot, key: &ExpressKey) {
        let saved = self.words.chunks_exact_mut(LONG_WORDS).nth(slot.index());
        saved.into_iter().flatten().zip(key.words()).for_each(|(saved, word)| *saved = *word);
    }

    /// Returns the key saved last for a slot.
    pub fn key(&self, slot: PacketSlot) -> ExpressKey {
        let saved = self.words.chunks_exact(LONG_WORDS).nth(slot.index());
        ExpressKey::of_words(saved.unwrap_or_default())
    }
}
