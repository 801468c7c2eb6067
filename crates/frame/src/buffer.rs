// SPDX-License-Identifier: Apache-2.0
//! Memory for one frame, in whole cache lines: a frame of 64 bytes then lies in one line, not in two.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

/// Bytes that begin with a cache line and fill the last one.
#[derive(Debug, Default)]
pub struct Buffer {
    lines: Box<[Line]>,
}

impl Buffer {
    /// At least so many bytes, all 0.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { lines: vec![Line([0; LINE_BYTES]); bytes.div_ceil(LINE_BYTES)].into_boxed_slice() }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: lines lie one behind the other and are bytes only: they are as large as they are aligned.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE_BYTES) }
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the lines are borrowed as long as the bytes.
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LINE_BYTES)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole() {
        let mut buffer = Buffer::new(65);
        assert_eq!((buffer.len(), buffer.as_ptr() as usize % LINE_BYTES), (2 * LINE_BYTES, 0));
        buffer[127] = 7;
        assert_eq!((buffer[126], buffer[127]), (0, 7));
        assert!(Buffer::default().is_empty());
    }
}
