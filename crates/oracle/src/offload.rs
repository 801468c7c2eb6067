// SPDX-License-Identifier: Apache-2.0
//! Converts frames whose checksum or segmentation is left to a device between the workers' and the
//! reference's representation.

use super::templates::{Shape, Template};
use fastrand::Rng;
use frame::{Frame, Gso, GsoKind, Meta, PartialChecksum};
use reference::{Cut, CutKind, OpenChecksum, Unfinished};
use wire::checksum;
use wire::layers::header;

/// Returns a frame in the state in which its sender hands it over.
pub(super) fn unfinished_frame(bytes: &[u8], unfinished: Unfinished) -> Frame {
    let mut frame = Frame::from_bytes(bytes);
    frame.meta.checksum = unfinished
        .checksum
        .map(|open| PartialChecksum { start: open.start as u16, offset: open.offset as u16 });
    frame.meta.gso = unfinished.cut.map(|cut| Gso {
        kind: match cut.kind {
            CutKind::Tcp4 => GsoKind::Tcp4,
            CutKind::Tcp6 => GsoKind::Tcp6,
            CutKind::Udp => GsoKind::Udp,
        },
        ecn: false,
        size: cut.size as u16,
        header_len: cut.header_len as u16,
    });
    frame
}

/// Returns the remaining work that a frame's metadata describes.
pub(super) fn unfinished_of(meta: &Meta) -> Unfinished {
    Unfinished {
        checksum: meta
            .checksum
            .map(|open| OpenChecksum { start: open.start.into(), offset: open.offset.into() }),
        cut: meta.gso.map(|gso| Cut {
            kind: match gso.kind {
                GsoKind::Tcp4 => CutKind::Tcp4,
                GsoKind::Tcp6 => CutKind::Tcp6,
                GsoKind::Udp => CutKind::Udp,
            },
            header_len: gso.header_len.into(),
            size: gso.size.into(),
        }),
    }
}

impl Template {
    /// Returns the template with a partial checksum and, in half of the cases, as a super-frame. Returns the
    /// template unchanged if neither is possible.
    pub fn left_to_device(mut self, rng: &mut Rng) -> Self {
        let layers = self.layers();
        let (has, l4) = (|bits| layers.present & bits != 0, usize::from(layers.l4));
        let other = header::MPLS | header::PBB;
        let whole = layers.l4_end as usize == self.bytes.len() && !layers.fragment;
        if self.shape != Shape::Whole
            || self.is_tagged()
            || has(other)
            || !has(header::TCP | header::UDP)
            || !whole
        {
            return self;
        }
        let (l3, is_tcp, len) = (usize::from(layers.l3), has(header::TCP), (self.bytes.len() - l4) as u32);
        let proto = if is_tcp { 6 } else { 17 };
        let pseudo = if has(header::IPV4) {
            let address = |at: usize| std::array::from_fn(|byte| self.bytes[l3 + at + byte]);
            checksum::pseudo_v4(address(12), address(16), proto, len)
        } else {
            let address = |at: usize| std::array::from_fn(|byte| self.bytes[l3 + at + byte]);
            checksum::pseudo_v6(address(8), address(24), proto, len)
        };
        let offset = if is_tcp { 16 } else { 6 };
        self.bytes[l4 + offset..l4 + offset + 2].copy_from_slice(&pseudo.to_be_bytes());
        let header_len = l4 + if is_tcp { usize::from(self.bytes[l4 + 12] >> 4) * 4 } else { 8 };
        let kind = match (is_tcp, has(header::IPV4)) {
            (true, true) => CutKind::Tcp4,
            (true, false) => CutKind::Tcp6,
            (false, _) => CutKind::Udp,
        };
        let payload = self.bytes.len() - header_len;
        let cut = (rng.bool() && payload > 1).then(|| Cut {
            kind,
            header_len,
            size: rng.usize(payload.div_ceil(40)..=payload),
        });
        if is_tcp && cut.is_some() {
            self.bytes[l4 + 13] |= [0, 1, 8, 0x80][rng.usize(0..4)];
        }
        self.unfinished = Unfinished { checksum: Some(OpenChecksum { start: l4, offset }), cut };
        self
    }
}
