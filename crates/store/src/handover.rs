// SPDX-License-Identifier: Apache-2.0
//! The whole state of a datapath as bytes, for a process that continues another one. The form is that of a
//! snapshot's file.

use crate::clock::{self, StoreClock};
use crate::decode;
use crate::encode::FrameEncoder;
use crate::format::{FileHeader, FileKind};
use crate::load::read_state;
use flow::Nanos;
use model::{KeptChange, KeptState, RestoredPart};

/// Number of the only transaction.
const SEQUENCE: u64 = 1;

/// Encodes a state, as [`model::Model::kept_state`] returns it. `now` is the datapath's time. Returns the
/// bytes, and the number of items that cannot be encoded and are left out.
#[must_use]
pub fn encode_handover(changes: &[KeptChange], datapath_id: u64, now: Nanos) -> (Vec<u8>, usize) {
    let header = FileHeader {
        kind: FileKind::Snapshot,
        datapath_id,
        first: SEQUENCE,
        boot_id: clock::boot_id(),
        base_mark: 0,
    };
    let mut out = header.encode().to_vec();
    let encoder = FrameEncoder { seed: header.seed(), clock: StoreClock::at(now) };
    let left_out = encoder.transaction(&mut out, SEQUENCE, now, changes);
    encoder.end_of_snapshot(&mut out, SEQUENCE);
    (out, left_out)
}

/// Decodes a state of [`encode_handover`]. `now` is the time of the new process's datapath. Returns the state
/// and the number of items that cannot be decoded, or `None` if the bytes are not a whole state of this
/// datapath.
#[must_use]
pub fn decode_handover(bytes: &[u8], datapath_id: u64, now: Nanos) -> Option<(KeptState, usize)> {
    let header = FileHeader::decode(bytes).ok().filter(|header| header.datapath_id == datapath_id)?;
    let mut state = read_state(bytes, &header)?;
    let entries = state.take_entries();
    let (mut kept, mut lost) = decode::decode(&state);
    let clock = StoreClock::at(now);
    let created = |at: i64| clock.before(clock.set_up().saturating_sub(at));
    let mut parts: Vec<RestoredPart> = Vec::new();
    decode::decode_parts(0, decode::parts(&entries), created, |part| {
        parts.push(part);
        true
    });
    lost += entries.len() - parts.iter().map(|part| part.entries.len()).sum::<usize>();
    kept.entries = parts.into();
    Some((kept, lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    #[test]
    fn a_state_is_the_same_after_the_handover_and_damage_is_noticed() {
        let mac = KeptChange::Mac { vid: 7, mac: [2, 0, 0, 0, 0, 1], port: PortNo(3) };
        let (bytes, left_out) = encode_handover(&[KeptChange::DropFragments(true), mac], 5, Nanos(1_000));
        assert_eq!(left_out, 0);
        let (state, lost) = decode_handover(&bytes, 5, Nanos(2_000)).unwrap();
        assert_eq!((lost, state.drop_fragments, state.entries.count), (0, true, 0));
        assert_eq!(state.macs, [(7, [2, 0, 0, 0, 0, 1], PortNo(3))]);
        assert!(decode_handover(&bytes, 6, Nanos(0)).is_none(), "another datapath");
        for length in 0..bytes.len() {
            assert!(decode_handover(&bytes[..length], 5, Nanos(0)).is_none(), "{length} bytes");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(decode_handover(&damaged, 5, Nanos(0)).is_none(), "byte {at}");
        }
    }
}
