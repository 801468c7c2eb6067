// SPDX-License-Identifier: Apache-2.0
//! Beats of the 512-bit bus.

/// Bytes of a beat.
pub const BEAT_BYTES: usize = 64;

/// A beat of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Bytes.
    pub data: [u8; BEAT_BYTES],
    /// Bit n: byte n belongs to the frame.
    pub keep: u64,
    /// Whether the frame ends.
    pub last: bool,
    /// Whether the frame is aborted.
    pub bad: bool,
}

/// Returns the number of beats of a frame of this length.
#[must_use]
pub fn beat_count(frame_bytes: usize) -> usize {
    frame_bytes.div_ceil(BEAT_BYTES).max(1)
}

/// Returns a beat of a frame, counted from 0; of an empty frame, a beat without bytes.
#[must_use]
pub fn beat(frame: &[u8], at: usize) -> Beat {
    let start = frame.len().min(at * BEAT_BYTES);
    let part = &frame[start..frame.len().min(start + BEAT_BYTES)];
    let mut data = [0; BEAT_BYTES];
    data[..part.len()].copy_from_slice(part);
    let keep = u64::MAX.checked_shr((BEAT_BYTES - part.len()) as u32).unwrap_or(0);
    Beat { data, keep, last: at + 1 >= beat_count(frame.len()), bad: false }
}

/// Returns the beats of a frame; of an empty frame, a beat without bytes.
#[must_use]
pub fn beats(frame: &[u8]) -> Vec<Beat> {
    (0..beat_count(frame.len())).map(|at| beat(frame, at)).collect()
}

impl Beat {
    /// Writes the bytes as words of the bus.
    pub(crate) fn write_words(&self, words: &mut [u32; 16]) {
        for (word, part) in words.iter_mut().zip(self.data.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*part);
        }
    }
}

/// Appends the bytes of a beat that leaves to its frame.
pub(crate) fn append(frame: &mut Vec<u8>, words: &[u32; 16], keep: u64) {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    frame.extend(bytes.take(keep.trailing_ones() as usize));
}
