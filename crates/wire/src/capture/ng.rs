// SPDX-License-Identifier: Apache-2.0
//! Blocks of pcapng: interfaces and packets. Other blocks are skipped.

use pcap_file::Endianness;

use super::{CapturedPacket, ETHERNET, PACKET_LEN_MAX};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete packet block of the first drafts.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPTION_END: u16 = 0;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

const NS_PER_SECOND: u128 = 1_000_000_000;

/// Reason why a block cannot be used.
pub(super) enum BlockError {
    /// The bytes of the block are invalid.
    Content(String),
    /// The interface's link type is not Ethernet.
    LinkType(u32),
}

/// Current section: its byte order and its interfaces.
pub(super) struct Section {
    is_big_endian: bool,
    interfaces: Vec<Interface>,
}

struct Interface {
    /// Time stamp units per second.
    units_per_second: u128,
    /// Offset of the time stamps in seconds.
    offset_s: i64,
    /// Maximum number of bytes kept of a packet, or 0 for no limit.
    snapshot_len: usize,
}

impl Section {
    pub(super) fn new(endianness: Endianness) -> Self {
        Self { is_big_endian: endianness.is_big(), interfaces: Vec::new() }
    }

    /// Processes one block, and returns its packet if there is one. The caller determines whether the packet
    /// is truncated.
    pub(super) fn block<'a>(
        &mut self,
        kind: u32,
        body: &'a [u8],
    ) -> Result<Option<CapturedPacket<'a>>, BlockError> {
        match kind {
            SECTION_HEADER => {
                self.is_big_endian = body.first() == Some(&0x1a);
                self.interfaces.clear();
                Ok(None)
            }
            INTERFACE_DESCRIPTION => {
                let interface = self.interface(body)?;
                self.interfaces.push(interface);
                Ok(None)
            }
            ENHANCED_PACKET | PACKET => self.packet(kind, body).map(Some),
            SIMPLE_PACKET => self.simple_packet(body).map(Some),
            _ => Ok(None),
        }
    }

    fn interface(&self, body: &[u8]) -> Result<Interface, BlockError> {
        let link_type = u32::from(self.u16(body, 0)?);
        if link_type != ETHERNET {
            return Err(BlockError::LinkType(link_type));
        }
        let snapshot_len = self.u32(body, 4)? as usize;
        // The resolution is microseconds, unless an option sets another one.
        let mut interface = Interface { units_per_second: 1_000_000, offset_s: 0, snapshot_len };
        let mut at = 8;
        while let (Ok(code), Ok(len)) = (self.u16(body, at), self.u16(body, at + 2)) {
            let len = usize::from(len);
            let Some(value) = body.get(at + 4..at + 4 + len) else { break };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_TIME_RESOLUTION, &[resolution]) => {
                    let exponent = u32::from(resolution & 0x7f);
                    let base: u128 = if resolution & 0x80 != 0 { 2 } else { 10 };
                    interface.units_per_second = base.checked_pow(exponent).ok_or_else(|| {
                        content(format!(
                            "its interface has a time resolution of {base}^-{exponent} seconds, which is too fine"
                        ))
                    })?;
                }
                (OPTION_TIME_OFFSET, _) if len == 8 => {
                    let (a, b) = (u64::from(self.u32(body, at + 4)?), u64::from(self.u32(body, at + 8)?));
                    interface.offset_s = if self.is_big_endian { a << 32 | b } else { b << 32 | a } as i64;
                }
                _ => {}
            }
            at += 4 + len.next_multiple_of(4);
        }
        Ok(interface)
    }

    /// Decodes an enhanced packet block, or an obsolete packet block, which has a 16-bit interface number and
    /// a drop count.
    fn packet<'a>(&self, kind: u32, body: &'a [u8]) -> Result<CapturedPacket<'a>, BlockError> {
        let number = if kind == ENHANCED_PACKET { self.u32(body, 0)? } else { u32::from(self.u16(body, 0)?) };
        let interface = self.known_interface(number)?;
        let units = u128::from(self.u32(body, 4)?) << 32 | u128::from(self.u32(body, 8)?);
        let captured_len = self.u32(body, 12)? as usize;
        let bytes = body.get(20..).and_then(|rest| rest.get(..captured_len)).ok_or_else(|| {
            content(format!(
                "its length is {captured_len} bytes, but its block has space for {}",
                body.len().saturating_sub(20)
            ))
        })?;
        Ok(CapturedPacket {
            timestamp_ns: interface.timestamp_ns(units),
            interface: number,
            original_len: self.u32(body, 16)?,
            truncated: false,
            bytes,
        })
    }

    /// Decodes a simple packet block. The block has no time stamp and belongs to the first interface. The
    /// length of its packet is limited by the snapshot length and by the block.
    fn simple_packet<'a>(&self, body: &'a [u8]) -> Result<CapturedPacket<'a>, BlockError> {
        let interface = self.known_interface(0)?;
        let original_len = self.u32(body, 0)?;
        let limit = if interface.snapshot_len == 0 { PACKET_LEN_MAX } else { interface.snapshot_len };
        let captured_len = limit.min(original_len as usize);
        let bytes = body.get(4..).and_then(|rest| rest.get(..captured_len)).ok_or_else(|| {
            content(format!(
                "its length is {captured_len} bytes, but its block has space for {}",
                body.len() - 4
            ))
        })?;
        Ok(CapturedPacket { timestamp_ns: 0, interface: 0, original_len, truncated: false, bytes })
    }

    fn known_interface(&self, number: u32) -> Result<&Interface, BlockError> {
        self.interfaces.get(number as usize).ok_or_else(|| {
            content(format!(
                "it belongs to interface {number}, but the number of interfaces described before it is {}",
                self.interfaces.len()
            ))
        })
    }

    fn u16(&self, body: &[u8], at: usize) -> Result<u16, BlockError> {
        let bytes = body.get(at..).and_then(|rest| rest.first_chunk()).ok_or_else(cut_short)?;
        Ok(if self.is_big_endian { u16::from_be_bytes(*bytes) } else { u16::from_le_bytes(*bytes) })
    }

    fn u32(&self, body: &[u8], at: usize) -> Result<u32, BlockError> {
        let bytes = body.get(at..).and_then(|rest| rest.first_chunk()).ok_or_else(cut_short)?;
        Ok(if self.is_big_endian { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) })
    }
}

impl Interface {
    /// Returns nanoseconds since 1970. Times before 1970 or after the year 2554 are limited to this range.
    fn timestamp_ns(&self, units: u128) -> u64 {
        let second = units / self.units_per_second;
        // The product fits into 128 bits, because the fraction is below 2^64, as `units` is.
        let fraction_ns = units % self.units_per_second * NS_PER_SECOND / self.units_per_second;
        let second = second as i128 + i128::from(self.offset_s);
        let ns = second * NS_PER_SECOND as i128 + fraction_ns as i128;
        ns.clamp(0, i128::from(u64::MAX)) as u64
    }
}

fn content(reason: String) -> BlockError {
    BlockError::Content(reason)
}

fn cut_short() -> BlockError {
    content("its block is too short for its kind".to_owned())
}
