// SPDX-License-Identifier: Apache-2.0
//! A whole lane in as many messages as it takes: a bank may have more labels than a message has room for.

use super::LaneReply;
use super::section::{self, BANK_HEAD_BYTES};
use crate::header::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use flow::stateless::{Bank, Section, Stateless};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a reply before its sections: header, experimenter and type, flags and zeros.
const HEAD_BYTES: usize = HEADER_BYTES + 16;
/// Bytes of sections that a message has room for: each is padded to 8.
const ROOM_BYTES: usize = (MESSAGE_BYTES_MAX - HEAD_BYTES) / 8 * 8;
/// Labels and backups of a bank that is alone in its message: 8 bytes each.
const PAIRS: usize = (ROOM_BYTES - section::HEADER_BYTES - BANK_HEAD_BYTES) / 8;

/// The messages of a reply, made one by one. Each section comes whole, but for banks of more than 8,186 labels and
/// backups, which no lane_mod can have set.
#[derive(Debug)]
pub struct LaneAnswer {
    lane: Option<Arc<Stateless>>,
    /// Where it goes on.
    at: Place,
    is_done: bool,
}

/// A section, and how many labels and backups of a bank were told already.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    section: usize,
    told: usize,
}

impl LaneAnswer {
    /// The reply that tells this lane, or that there is none.
    #[must_use]
    pub fn new(lane: Option<Arc<Stateless>>) -> Self {
        Self { lane, at: Place::default(), is_done: false }
    }
}

impl Iterator for LaneAnswer {
    type Item = LaneReply;

    fn next(&mut self) -> Option<LaneReply> {
        if self.is_done {
            return None;
        }
        let Some(lane) = self.lane.as_deref() else {
            self.is_done = true;
            return Some(LaneReply { more: false, sections: None });
        };
        let (mut sections, mut bytes) = (Vec::new(), Vec::new());
        loop {
            let Some((section, next)) = section_at(lane, self.at) else {
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
        Some(LaneReply { more: !self.is_done, sections: Some(sections) })
    }
}

/// What stands at a place, short enough for a message of its own, and where it goes on.
fn section_at(lane: &Stateless, at: Place) -> Option<(Section, Place)> {
    let behind = Place { section: at.section + 1, told: 0 };
    let bank = |bank: &Option<Bank>| match bank {
        Some(bank) => {
            let (piece, told) = piece(bank, at.told);
            let is_last = told == bank.labels.len() + bank.backups.len();
            (Some(piece), if is_last { behind } else { Place { told, ..at } })
        }
        None => (None, behind),
    };
    Some(match at.section {
        0 => (Section::Types(lane.types), behind),
        1 => (Section::Trusted(lane.trusted.clone()), behind),
        2 => (Section::MtuBytes(lane.mtu_bytes.clone()), behind),
        3 | 4 => {
            let epoch = at.section - 3;
            let (piece, next) = bank(&lane.banks[epoch]);
            (Section::Bank(epoch as u8, piece), next)
        }
        5 => {
            let (piece, next) = bank(&lane.polka);
            (Section::Polka(piece), next)
        }
        6 => (Section::Gates(lane.gates.clone()), behind),
        _ => return None,
    })
}

/// What a message has room for of a bank, behind so many labels and backups; and how many are told then.
fn piece(bank: &Bank, told: usize) -> (Bank, usize) {
    let labels = bank.labels.iter().skip(told).take(PAIRS).map(|(label, target)| (*label, *target));
    let labels: BTreeMap<_, _> = labels.collect();
    let backups = bank.backups.iter().skip(told.saturating_sub(bank.labels.len()));
    let backups: BTreeMap<_, _> =
        backups.take(PAIRS - labels.len()).map(|(port, backup)| (*port, *backup)).collect();
    let told = told + labels.len() + backups.len();
    (Bank { id: bank.id, labels, backups }, told)
}
