// SPDX-License-Identifier: Apache-2.0
//! The data of a packet that actions need: its bytes, registers and headers.

use flow::group::FlowHash;
use flow::{Ext, FieldBase, PortNo, QueueId, ext};
use frame::Frame;
use wire::layers::header;
use wire::{Depth, Layers};

/// Headers whose offset is in `Layers::l4`.
const L4_HEADERS: u32 = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;

/// The part of a packet that actions read and change.
#[derive(Debug)]
pub struct PacketData {
    /// Bytes of the packet. The frame is hollow after it has been taken out.
    pub frame: Frame,
    /// Extended header. It is parsed to the same depth as `layers`.
    pub ext: Ext,
    /// Headers found so far.
    pub layers: Layers,
    /// Egress queue of later outputs.
    pub queue: QueueId,
    /// Offset in bytes of the base of slices in the frame.
    pub base: u32,
}

impl PacketData {
    /// Returns data without a packet.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            frame: Frame::hollow(),
            ext: Ext::default(),
            layers: Layers::default(),
            queue: QueueId(0),
            base: 0,
        }
    }

    /// Sets up the data of a frame that arrives at a port.
    #[inline]
    pub fn admit(&mut self, frame: Frame, in_port: PortNo) {
        self.ext = Ext::arriving(in_port);
        self.frame = frame;
        self.layers = Layers::default();
        self.queue = QueueId(0);
        self.base = 0;
    }

    /// Sets headers that have been located already.
    #[inline]
    pub fn set_layers(&mut self, layers: &Layers) {
        self.layers = *layers;
        self.ext.set_layers(layers);
    }

    /// Takes the frame and leaves an empty placeholder ([`Frame::hollow`]).
    #[inline]
    pub fn take_frame(&mut self) -> Frame {
        std::mem::replace(&mut self.frame, Frame::hollow())
    }

    /// Parses headers until they are known at least to this depth.
    #[inline]
    pub fn locate(&mut self, depth: Depth) {
        if self.layers.depth < depth {
            self.locate_anew(depth);
        }
    }

    /// Returns the IP TTL or hop limit, or `None` if the packet is not IP.
    pub fn ttl(&mut self) -> Option<u8> {
        crate::ttl::nw(self)
    }

    #[inline(never)]
    fn locate_anew(&mut self, depth: Depth) {
        // Common packets are parsed to the greatest depth at once, so that no later table must parse them
        // again.
        let bytes = self.frame.bytes();
        if depth < Depth::L3 || !wire::locate_common(bytes, &mut self.layers) {
            wire::deepen(bytes, depth, &mut self.layers);
        }
        self.ext.set_layers(&self.layers);
    }

    /// Discards the parsed headers.
    #[inline]
    pub fn forget_layers(&mut self) {
        self.layers = Layers::default();
    }

    /// Returns whether the packet has all headers in `headers`, a mask of `wire::layers::header` bits. Parses
    /// the packet as far as needed.
    #[inline]
    pub fn has(&mut self, headers: u32) -> bool {
        let deep = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;
        let deep = deep | header::ND | header::ND_SLL | header::ND_TLL;
        self.locate(match headers {
            0 => Depth::None,
            header::VLAN => Depth::L2,
            _ if headers & deep != 0 => Depth::L4,
            _ => Depth::L3,
        });
        self.layers.present & headers == headers
    }

    /// Returns the offset of a base. It is meaningful only if the base's header is present.
    #[must_use]
    #[inline]
    pub fn base_start(&self, base: FieldBase) -> usize {
        match base {
            FieldBase::Frame | FieldBase::Ext => 0,
            FieldBase::L3 => usize::from(self.layers.l3),
            FieldBase::L4 => usize::from(self.layers.l4),
            FieldBase::NdSll => usize::from(self.layers.nd_sll),
            FieldBase::NdTll => usize::from(self.layers.nd_tll),
            FieldBase::Moving => self.base as usize,
        }
    }

    /// Returns the offset of a slice's base, or `None` if the packet ends before the slice does.
    #[must_use]
    #[inline]
    pub fn slice_start(&self, base: FieldBase, end_bits: u32) -> Option<usize> {
        let Layers { present, l3, l4, .. } = self.layers;
        SliceBounds { present, l3, l4, base: self.base, len: self.frame.len() }.slice_start(base, end_bits)
    }

    /// Returns the packet's hash, as [`FlowHash`] defines it.
    pub fn flow_hash(&mut self) -> u32 {
        self.locate(Depth::L4);
        let (bytes, layers) = (self.frame.bytes(), &self.layers);
        let part = |from: usize, len: usize| bytes.get(from..from + len).unwrap_or_default();
        let mut hash = FlowHash::default();
        hash.add(part(0, 12));
        hash.add(&layers.eth_type.to_be_bytes());
        let tagged = layers.present & header::VLAN != 0;
        hash.add(&if tagged { 0x1000 | (layers.vlan_tci & 0xfff) } else { 0 }.to_be_bytes());
        if layers.present & header::ARP != 0 {
            hash.add(part(usize::from(layers.l3) + 14, 4));
            hash.add(part(usize::from(layers.l3) + 24, 4));
        }
        if layers.present & header::IP != 0 {
            hash.add(&[layers.ip_proto]);
            let (at, len) = if layers.present & header::IPV4 != 0 { (12, 8) } else { (8, 32) };
            hash.add(part(usize::from(layers.l3) + at, len));
            let ported = header::TCP | header::UDP | header::SCTP;
            if layers.present & ported != 0 {
                hash.add(part(layers.l4.into(), 4));
            }
        }
        hash.finish()
    }
}

/// Data that decides whether a packet contains a slice.
#[derive(Clone, Copy, Debug)]
pub struct SliceBounds {
    /// Headers found, as bits of [`header`].
    pub present: u32,
    /// Offset of the L3 header, or 0 if there is none.
    pub l3: u16,
    /// Offset of the L4 header.
    pub l4: u16,
    /// Offset of the moving base, in bytes.
    pub base: u32,
    /// Length of the frame, in bytes.
    pub len: usize,
}

impl SliceBounds {
    /// Returns the offset of a slice's base, or `None` if the packet ends before the slice does. `end_bits`
    /// is the end of the slice, in bits from its base.
    #[must_use]
    #[inline]
    pub fn slice_start(&self, base: FieldBase, end_bits: u32) -> Option<usize> {
        let (there, start, len) = match base {
            FieldBase::L3 => (self.l3 != 0, self.l3.into(), self.len),
            FieldBase::L4 => (self.present & L4_HEADERS != 0, self.l4.into(), self.len),
            FieldBase::Moving => (true, self.base, self.len),
            FieldBase::Ext => (true, 0, ext::EXT_BYTES),
            FieldBase::Frame | FieldBase::NdSll | FieldBase::NdTll => (true, 0, self.len),
        };
        let start = start as usize;
        (there && (start * 8) as u64 + u64::from(end_bits) <= (len * 8) as u64).then_some(start)
    }
}
