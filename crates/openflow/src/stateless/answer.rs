// SPDX-License-Identifier: Apache-2.0
//! Encodes a stateless configuration as several messages, because a bank may not fit into one message.

use super::StatelessReply;
use super::section::{self, BANK_HEAD_BYTES};
use crate::header::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use flow::stateless::{Bank, StatelessConfig, StatelessSection};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Length in bytes of a reply before its sections: header, experimenter, type, flags and padding.
const HEAD_BYTES: usize = HEADER_BYTES + 16;
/// Space for sections in a message, in bytes. Each section is padded to 8 bytes.
const ROOM_BYTES: usize = (MESSAGE_BYTES_MAX - HEAD_BYTES) / 8 * 8;
/// Maximum number of labels and backups of a bank that is alone in its message. Each label or backup has 8
/// bytes.
const PAIRS: usize = (ROOM_BYTES - section::HEADER_BYTES - BANK_HEAD_BYTES) / 8;

/// Iterator over the messages of a reply. Each section is contained in one message, except a bank of more
/// than 8,186 labels and backups.
#[derive(Debug)]
pub struct StatelessReplies {
    stateless_config: Option<Arc<StatelessConfig>>,
    /// Position at which the next message begins.
    at: Place,
    is_done: bool,
}

/// Position in a reply: the index of the section, and the number of a bank's labels and backups sent so far.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    section: usize,
    reported: usize,
}

impl StatelessReplies {
    /// Creates a reply for this configuration. `None` stands for disabled stateless forwarding.
    #[must_use]
    pub fn new(stateless_config: Option<Arc<StatelessConfig>>) -> Self {
        Self { stateless_config, at: Place::default(), is_done: false }
    }
}

impl Iterator for StatelessReplies {
    type Item = StatelessReply;

    fn next(&mut self) -> Option<StatelessReply> {
        if self.is_done {
            return None;
        }
        let Some(stateless_config) = self.stateless_config.as_deref() else {
            self.is_done = true;
            return Some(StatelessReply { more: false, sections: None });
        };
        let (mut sections, mut bytes) = (Vec::new(), Vec::new());
        loop {
            let Some((section, next)) = section_at(stateless_config, self.at) else {
                self.is_done = true;
                break;
            };
            section::encode(&section, &mut bytes);
            if bytes.len() > ROOM_BYTES {
                break;
            }
            sections.push(section);
            self.at = next;
        }
        Some(StatelessReply { more: !self.is_done, sections: Some(sections) })
    }
}

/// Returns the section at a position, cut to the length of one message, and the position after it.
fn section_at(stateless_config: &StatelessConfig, at: Place) -> Option<(StatelessSection, Place)> {
    let behind = Place { section: at.section + 1, reported: 0 };
    let bank = |bank: &Option<Bank>| match bank {
        Some(bank) => {
            let (piece, reported) = piece(bank, at.reported);
            let is_last = reported == bank.labels.len() + bank.backups.len();
            (Some(piece), if is_last { behind } else { Place { reported, ..at } })
        }
        None => (None, behind),
    };
    Some(match at.section {
        0 => (StatelessSection::Types(stateless_config.types), behind),
        1 => (StatelessSection::Trusted(stateless_config.trusted.clone()), behind),
        2 => (StatelessSection::MtuBytes(stateless_config.mtu_bytes.clone()), behind),
        3 | 4 => {
            let epoch = at.section - 3;
            let (piece, next) = bank(&stateless_config.banks[epoch]);
            (StatelessSection::Bank(epoch as u8, piece), next)
        }
        5 => {
            let (piece, next) = bank(&stateless_config.polka);
            (StatelessSection::Polka(piece), next)
        }
        6 => (StatelessSection::Gates(stateless_config.gates.clone()), behind),
        _ => return None,
    })
}

/// Returns the part of a bank after the first `reported` labels and backups, as far as it fits into one
/// message. Also returns the number of labels and backups up to and including this part.
fn piece(bank: &Bank, reported: usize) -> (Bank, usize) {
    let labels = bank.labels.iter().skip(reported).take(PAIRS).map(|(label, target)| (*label, *target));
    let labels: BTreeMap<_, _> = labels.collect();
    let backups = bank.backups.iter().skip(reported.saturating_sub(bank.labels.len()));
    let backups: BTreeMap<_, _> =
        backups.take(PAIRS - labels.len()).map(|(port, backup)| (*port, *backup)).collect();
    let reported = reported + labels.len() + backups.len();
    (Bank { id: bank.id, labels, backups }, reported)
}
