// SPDX-License-Identifier: Apache-2.0
//! A packet's header on its way through the PPUs (`header_t` of the RTL).

use crate::action::{ActionWord, EDIT_DATA_BYTES, EditBase, OutputKind};
use crate::emulator::NO_PPU;
use crate::key::{KEY_BYTES, KEY_SLICES, KeySlice, SLICE_BYTES, SelectorBase};
use crate::layout::{EXTENDED_BYTES, FRAME_BYTE, FRAME_BYTES, RAW_BYTES};

/// Bits of [`PacketHeader::present`], in the order of [`crate::layout::PRESENT`].
mod present {
    pub const ETHERNET: u8 = 1;
    pub const VLAN: u8 = 1 << 1;
    pub const IPV4: u8 = 1 << 2;
    pub const IPV6: u8 = 1 << 3;
    pub const TCP: u8 = 1 << 4;
    pub const UDP: u8 = 1 << 5;
    pub const ICMP: u8 = 1 << 6;
    pub const SCTP: u8 = 1 << 7;
}

/// Minimum length of an Ethernet frame without FCS.
const FRAME_BYTES_MIN: usize = 60;

/// Reason why a PPU drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceDrop {
    /// The packet does not fit the action.
    BadEdit,
    /// The TTL is 0 or 1.
    Ttl,
}

/// Header of a packet, and its state between PPUs.
#[derive(Clone, Debug)]
pub struct PacketHeader {
    frame: [u8; FRAME_BYTES],
    /// Bytes of the frame in `frame`.
    pub copied: u8,
    payload: Vec<u8>,
    in_port: u8,
    frame_bytes: u16,
    /// Metadata register.
    pub metadata: u16,
    eth_type: u16,
    vlan: u16,
    tos: u8,
    proto: u8,
    present: u8,
    l3: u8,
    l4: u8,
    /// Output so far.
    pub output: OutputKind,
    /// Port of the output.
    pub port: u8,
    /// PPU that set the output.
    pub ppu: u8,
    /// Whether later PPUs leave the packet as it is.
    pub done: bool,
    /// Reason of a drop.
    pub drop: Option<DeviceDrop>,
    ip_change: u16,
    l4_change: u16,
}

/// Adds two numbers in one's complement.
fn add_ones(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// Whether a change in one's complement is not 0.
fn changes(change: u16) -> bool {
    change != 0 && change != 0xffff
}

fn is_tag(eth_type: u16) -> bool {
    matches!(eth_type, 0x8100 | 0x88a8 | 0x9100)
}

impl PacketHeader {
    /// Copies and parses the first bytes of a frame of at least 14 bytes. (splitter, parser)
    #[must_use]
    pub fn parse(in_port: u8, frame: &[u8]) -> Self {
        let (head, payload) = frame.split_at(frame.len().min(RAW_BYTES));
        let mut copy = [0; FRAME_BYTES];
        copy[..head.len()].copy_from_slice(head);
        let mut header = Self {
            frame: copy,
            copied: head.len() as u8,
            payload: payload.to_vec(),
            in_port,
            frame_bytes: frame.len() as u16,
            metadata: 0,
            eth_type: 0,
            vlan: 0,
            tos: 0,
            proto: 0,
            present: present::ETHERNET,
            l3: 14,
            l4: 0,
            output: OutputKind::Keep,
            port: 0,
            ppu: NO_PPU,
            done: false,
            drop: None,
            ip_change: 0,
            l4_change: 0,
        };
        if is_tag(header.word(12)) && header.copied >= 18 {
            header.l3 = if is_tag(header.word(16)) && header.copied >= 22 { 22 } else { 18 };
        }
        let inner = header.word(header.l3 - 2);
        header.eth_type = if inner < 0x0600 { 0x05ff } else { inner };
        header.find_tag();
        header.parse_ip();
        header
    }

    /// 16 bits of the copied part; 0 behind its end.
    fn word(&self, at: u8) -> u16 {
        let byte = |at: usize| u16::from(self.frame.get(at).copied().unwrap_or(0));
        byte(at.into()) << 8 | byte(usize::from(at) + 1)
    }

    /// Sets the VLAN word and its presence bit from the outermost tag.
    fn find_tag(&mut self) {
        let tagged = self.copied >= 18 && is_tag(self.word(12));
        self.vlan = if tagged { self.word(14) & 0xefff | 0x1000 } else { 0 };
        self.present &= !present::VLAN;
        self.present |= if tagged { present::VLAN } else { 0 };
    }

    /// Stages 3 and 4 of the parser.
    fn parse_ip(&mut self) {
        let l3 = self.l3;
        let first = self.frame[usize::from(l3)];
        let room = self.frame_bytes.wrapping_sub(l3.into());
        let is_type4 = self.eth_type == 0x0800;
        let header_bytes = if is_type4 { (first & 15) * 4 } else { 40 };
        let total4 = self.word(l3 + 2);
        let v4 = is_type4
            && room >= 20
            && first >> 4 == 4
            && header_bytes >= 20
            && room >= header_bytes.into()
            && total4 >= header_bytes.into();
        let v6 = self.eth_type == 0x86dd && room >= 40 && first >> 4 == 6;
        let total = if v4 { total4 } else { self.word(l3 + 4).saturating_add(40) };
        let l4_bytes = room.min(total).wrapping_sub(header_bytes.into());
        let has_upper = v6 || v4 && self.word(l3 + 6) & 0x1fff == 0;
        if v4 {
            self.present |= present::IPV4;
            (self.tos, self.proto) = (self.word(l3) as u8, self.word(l3 + 8) as u8);
        } else if v6 {
            self.present |= present::IPV6;
            (self.tos, self.proto) = ((self.word(l3) >> 4) as u8, self.frame[usize::from(l3) + 6]);
        }
        let upper = match self.proto {
            6 if l4_bytes >= 20 => present::TCP,
            17 if l4_bytes >= 8 => present::UDP,
            132 if l4_bytes >= 12 => present::SCTP,
            proto if l4_bytes >= 4 && proto == (if v6 { 58 } else { 1 }) => present::ICMP,
            _ => 0,
        };
        if has_upper && upper != 0 {
            self.present |= upper;
            self.l4 = l3 + header_bytes;
        }
    }

    /// The extended header. The timestamp is 0.
    fn extended(&self) -> [u8; EXTENDED_BYTES] {
        let mut bytes = [0; EXTENDED_BYTES];
        (bytes[3], bytes[7]) = (self.in_port, self.in_port);
        bytes[14..16].copy_from_slice(&self.metadata.to_be_bytes());
        bytes[24..26].copy_from_slice(&self.eth_type.to_be_bytes());
        bytes[26..28].copy_from_slice(&self.vlan.to_be_bytes());
        (bytes[28], bytes[29]) = (self.tos, self.proto);
        (bytes[32], bytes[33], bytes[34]) = (self.present, self.l3, self.l4);
        bytes[38..40].copy_from_slice(&self.frame_bytes.to_be_bytes());
        bytes[FRAME_BYTE..].copy_from_slice(&self.frame);
        bytes
    }

    /// Returns the key of these slices. (selector)
    #[must_use]
    pub fn key(&self, slices: &[KeySlice; KEY_SLICES]) -> [u8; KEY_BYTES] {
        let extended = self.extended();
        let mut key = [0; KEY_BYTES];
        for (number, slice) in slices.iter().enumerate() {
            let base = match slice.base {
                SelectorBase::Extended => 0,
                SelectorBase::Frame => FRAME_BYTE,
                SelectorBase::L3 => FRAME_BYTE + usize::from(self.l3),
                SelectorBase::L4 => FRAME_BYTE + usize::from(self.l4),
            };
            let (at, count) = (base + usize::from(slice.offset), usize::from(slice.bytes));
            let inside = at + count <= FRAME_BYTE + usize::from(self.copied);
            if count == 0 || inside && (slice.base != SelectorBase::L4 || self.l4 != 0) {
                let found = extended.get(at..at + count).unwrap_or_default();
                key[number * SLICE_BYTES..][..found.len()].copy_from_slice(found);
                key[KEY_BYTES - 1] |= 0x80 >> number;
            }
        }
        key
    }

    /// Executes an action word of a PPU. (action_unit)
    pub fn act(&mut self, ppu: u8, action: &ActionWord) {
        let base = match action.base {
            EditBase::Frame => 0,
            EditBase::L3 => u16::from(self.l3),
            EditBase::L4 => u16::from(self.l4),
        };
        let at = base + u16::from(action.offset);
        let edits = action.insert != 0 || action.remove != 0;
        let is_ip = self.present & (present::IPV4 | present::IPV6) != 0;
        if edits && !self.fits(at, action) || action.dec_ttl && !is_ip {
            (self.drop, self.done) = (Some(DeviceDrop::BadEdit), true);
            return;
        }
        if let Some(metadata) = action.metadata {
            self.metadata = metadata;
        }
        if action.output != OutputKind::Keep {
            self.set_output(ppu, action);
        }
        self.done = action.last || action.output == OutputKind::Discard;
        let ttl = action.dec_ttl;
        let at = at as u8;
        let mut ttl_at = self.l3.wrapping_add(if self.present & present::IPV4 != 0 { 8 } else { 7 });
        let old_ttl = self.frame.get(usize::from(ttl_at)).copied().unwrap_or(0);
        if edits {
            let moved = action.insert.wrapping_sub(action.remove);
            if ttl_at > at {
                ttl_at = ttl_at.wrapping_add(moved);
            }
            self.edit(at, moved, action);
        }
        if ttl && old_ttl <= 1 {
            (self.drop, self.done) = (Some(DeviceDrop::Ttl), true);
        }
        if ttl {
            if let Some(byte) = self.frame.get_mut(usize::from(ttl_at)) {
                *byte = old_ttl.wrapping_sub(1);
            }
            if self.present & present::IPV4 != 0 {
                self.ip_change = add_ones(self.ip_change, 0xfeff);
            }
        }
        self.find_tag();
    }

    /// Whether an edit at this byte is possible.
    fn fits(&self, at: u16, action: &ActionWord) -> bool {
        let (insert, remove) = (u16::from(action.insert), u16::from(action.remove));
        let (copied, l3, l4) = (u16::from(self.copied), u16::from(self.l3), u16::from(self.l4));
        let is_ip = self.present & (present::IPV4 | present::IPV6) != 0;
        let ttl = l3 + if self.present & present::IPV4 != 0 { 8 } else { 7 };
        let cuts = |header: u16| at < header && at + remove > header;
        let touches_ttl = action.dec_ttl && is_ip && (at == ttl || cuts(ttl));
        // Behind IPv6 extension headers, the parser does not find the checksum that would have to change.
        let hidden = action.fix_l4
            && self.present & present::IPV6 != 0
            && matches!(self.proto, 0 | 43 | 44 | 51 | 60 | 135);
        at + remove <= copied
            && usize::from(copied + insert - remove) <= FRAME_BYTES
            && (action.base != EditBase::L4 || l4 != 0)
            && !(is_ip && cuts(l3))
            && !(l4 != 0 && cuts(l4))
            && !touches_ttl
            && !hidden
    }

    fn set_output(&mut self, ppu: u8, action: &ActionWord) {
        let to_port = action.output == OutputKind::Port;
        let hairpin = to_port && !action.to_ingress && action.port == self.in_port;
        self.output = if hairpin { OutputKind::Discard } else { action.output };
        self.port = if action.to_ingress { self.in_port } else { action.port };
        self.ppu = ppu;
    }

    /// Replaces bytes, and sums up the changes of checksums.
    fn edit(&mut self, at: u8, moved: u8, action: &ActionWord) {
        let old = self.frame;
        let start = usize::from(at);
        let (insert, remove) = (usize::from(action.insert), usize::from(action.remove));
        for place in start..FRAME_BYTES {
            self.frame[place] = match place - start {
                offset if offset < insert => action.data[offset],
                offset => old.get(start + remove + (offset - insert)).copied().unwrap_or(0),
            };
        }
        self.copied = self.copied.wrapping_add(moved);
        if at < self.l3 {
            self.l3 = self.l3.wrapping_add(moved);
        }
        if self.l4 != 0 && at < self.l4 {
            self.l4 = self.l4.wrapping_add(moved);
        }
        let byte = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
        let mut sum = 0_u32;
        for word in 0..EDIT_DATA_BYTES / 2 {
            let [new, was] = [&action.data[..insert], &old[start..FRAME_BYTES.min(start + insert)]]
                .map(|bytes| u16::from_be_bytes([byte(bytes, 2 * word), byte(bytes, 2 * word + 1)]));
            sum += u32::from(new) + u32::from(!was);
        }
        let mut change = add_ones(sum as u16, (sum >> 16) as u16);
        if (at ^ self.l3) & 1 != 0 {
            change = change.swap_bytes();
        }
        if action.fix_ip {
            self.ip_change = add_ones(self.ip_change, change);
        }
        if action.fix_l4 {
            self.l4_change = add_ones(self.l4_change, change);
        }
    }

    /// Adjusts the checksums, and returns the frame, padded to 60 bytes. (checksum_fixer, deparser)
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let has = |bit: u8| self.present & bit != 0;
        let (udp, ip_at) = (has(present::UDP), self.l3.wrapping_add(10));
        let place = if has(present::TCP) {
            16
        } else if udp {
            6
        } else {
            2
        };
        let l4_at = self.l4.wrapping_add(place);
        let fixes = has(present::TCP) || udp || has(present::ICMP) && has(present::IPV6);
        let fits = |at: u8| u16::from(at) + 2 <= u16::from(self.copied);
        let fix_ip = changes(self.ip_change) && has(present::IPV4) && fits(ip_at);
        let old = self.word(l4_at);
        let fix_l4 = changes(self.l4_change) && self.l4 != 0 && fixes && fits(l4_at) && !(udp && old == 0);
        if fix_ip {
            self.put(ip_at, !add_ones(!self.word(ip_at), self.ip_change));
        }
        if fix_l4 {
            let new = !add_ones(!old, self.l4_change);
            self.put(l4_at, if udp && new == 0 { 0xffff } else { new });
        }
        let mut frame = [&self.frame[..usize::from(self.copied)], &self.payload].concat();
        frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        frame
    }

    fn put(&mut self, at: u8, value: u16) {
        self.frame[usize::from(at)..][..2].copy_from_slice(&value.to_be_bytes());
    }
}
