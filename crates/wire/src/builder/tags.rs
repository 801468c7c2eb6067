// SPDX-License-Identifier: Apache-2.0
//! Headers of stateless forwarding.

use super::{Next, PacketBuilder};
use crate::tf::{self, Form};
use crate::{keyflow, polka};

impl PacketBuilder {
    /// Appends a KeyFlow header: epoch (0 or 1), hop limit, and a key of 8, 16, 24 or 32 bytes.
    pub fn keyflow(mut self, epoch: u8, hop_limit: u8, key: &[u8]) -> Self {
        self.tell_ethertype(keyflow::ETHERTYPE);
        let first = keyflow::VERSION << 4 | (epoch & 1) << 3;
        let at = self.append(&[first, hop_limit, (key.len() / 8) as u8, 0, 0, 0, 0, 0]);
        self.append(key);
        self.next = Next::EtherType(at + 4);
        self
    }

    /// Appends a PolKA header in freeRtr's format.
    pub fn polka(mut self, ttl: u8, key: u128) -> Self {
        self.tell_ethertype(polka::ETHERTYPE);
        let at = self.append(&[0, ttl, 0, 0]);
        self.append(&key.to_be_bytes());
        self.next = Next::EtherType(at + 2);
        self
    }

    /// Appends a Tag-and-Forward tag.
    pub fn tf(mut self, form: Form, qid: u8, up: u32, down: u16) -> Self {
        self.tell_ethertype(match form {
            Form::Paper => tf::ETHERTYPE,
            Form::Wide => tf::ETHERTYPE_WIDE,
        });
        self.append(&form.pack(qid, up, down));
        self.next = Next::EtherType(self.append(&[0; 2]));
        self
    }
}
