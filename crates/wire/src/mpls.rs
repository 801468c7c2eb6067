// SPDX-License-Identifier: Apache-2.0
//! MPLS label stack entry (RFC 3032).

use crate::view::view;

view! {
    /// Entry of the label stack.
    Entry, "MPLS label stack entry", 4, |_| true;
    /// The whole entry: label (20 bits), traffic class (3), bottom of stack (1), TTL (8).
    0: word, set_word, u32;
    /// Time to live.
    3: ttl, set_ttl, u8;
}

impl<T: AsRef<[u8]>> Entry<T> {
    /// Returns the label, 20 bits.
    pub fn label(&self) -> u32 {
        self.word() >> 12
    }

    /// Returns the traffic class, 3 bits.
    pub fn tc(&self) -> u8 {
        (self.word() >> 9) as u8 & 7
    }

    /// Returns whether this is the last entry of the stack.
    pub fn bottom(&self) -> bool {
        self.word() & 0x100 != 0
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Entry<T> {
    /// Sets the label to the low 20 bits of `label`.
    pub fn set_label(&mut self, label: u32) {
        self.set_word(self.word() & 0xfff | label << 12);
    }

    /// Sets the traffic class to the low 3 bits of `tc`.
    pub fn set_tc(&mut self, tc: u8) {
        self.set_word(self.word() & !0xe00 | u32::from(tc & 7) << 9);
    }

    /// Sets or clears the bottom-of-stack bit.
    pub fn set_bottom(&mut self, bottom: bool) {
        self.set_word(self.word() & !0x100 | u32::from(bottom) << 8);
    }
}
