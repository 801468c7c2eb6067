// SPDX-License-Identifier: Apache-2.0
//! PACKET_IN (section 7.4.1) and PACKET_OUT (7.3.7).

use crate::action;
use crate::bytes::{Put, Reader, unless};
use crate::error::{self, DecodeError};
use crate::matching;
use flow::{Action, Match, PortNo, TableId, port_no};

/// Buffer number of a packet that is not buffered (OFP_NO_BUFFER).
pub(crate) const NO_BUFFER: u32 = 0xffff_ffff;

/// Reason why a packet is sent to the controller (OFPR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketInCode {
    /// The packet was sent by a table-miss entry.
    NoMatch,
    /// The packet was sent by an output action of another entry.
    Action,
    /// The packet's TTL was invalid.
    InvalidTtl,
}

impl From<flow::PacketInReason> for PacketInCode {
    fn from(reason: flow::PacketInReason) -> Self {
        match reason {
            flow::PacketInReason::NoMatch => Self::NoMatch,
            flow::PacketInReason::InvalidTtl => Self::InvalidTtl,
            flow::PacketInReason::Action => Self::Action,
        }
    }
}

/// Packet sent to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketInMessage {
    /// Buffer of the packet, if it is buffered.
    pub buffer_id: Option<u32>,
    /// Length of the packet in bytes. `data` may contain only its beginning.
    pub total_len: u16,
    /// Reason for the packet-in.
    pub reason: PacketInCode,
    /// Table of the entry that sent the packet.
    pub table: TableId,
    /// Cookie of this entry. All bits are set if the cookie is unknown.
    pub cookie: u64,
    /// Match fields that are not part of the packet's bytes: ingress port, metadata and tunnel ID.
    pub matching: Match,
    /// Bytes of the packet, possibly truncated.
    pub data: Vec<u8>,
}

impl PacketInMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (buffer_id, total_len) = (unless(NO_BUFFER, r.u32()?), r.u16()?);
        let reason = match r.u8()? {
            0 => PacketInCode::NoMatch,
            1 => PacketInCode::Action,
            2 => PacketInCode::InvalidTtl,
            reason => return error::BAD_TYPE.says(format!("packet-in reason {reason}; reasons are 0 to 2")),
        };
        let (table, cookie) = (r.u8()?, r.u64()?);
        let matching = matching::decode_unchecked(r)?;
        r.skip(2)?;
        Ok(Self {
            buffer_id,
            total_len,
            reason,
            table: TableId(table),
            cookie,
            matching,
            data: r.rest().to_vec(),
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.buffer_id.unwrap_or(NO_BUFFER));
        out.put_u16(self.total_len);
        out.put(&[self.reason as u8, self.table.0]);
        out.put_u64(self.cookie);
        matching::encode(&self.matching, out);
        out.zeros(2);
        out.put(&self.data);
    }
}

/// Packet to send. The caller must check its actions with `flow::validate::validate_actions`. An output to
/// `port_no::TABLE` passes the packet to the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOutMessage {
    /// Buffered packet to send, or `None` to send the packet in `data`.
    pub buffer_id: Option<u32>,
    /// Ingress port with which the packet is processed. CONTROLLER, LOCAL, ANY and 0 stand for no port.
    pub in_port: PortNo,
    /// Actions applied to the packet.
    pub actions: Vec<Action>,
    /// Bytes of the packet.
    pub data: Vec<u8>,
}

impl PacketOutMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (buffer_id, in_port) = (unless(NO_BUFFER, r.u32()?), r.u32()?);
        let length = usize::from(r.u16()?);
        r.skip(6)?;
        if !port_no::is_real(PortNo(in_port)) && !port_no::is_none(PortNo(in_port)) {
            return error::BAD_PORT.says(format!(
                "packet-out from port {in_port:#x}; use a port of the switch, CONTROLLER (0xfffffffd), LOCAL, ANY or 0"
            ));
        }
        let mut list = r.part(length, "the list of actions", error::BAD_LEN)?;
        let actions = action::decode_list(&mut list)?;
        Ok(Self { buffer_id, in_port: PortNo(in_port), actions, data: r.rest().to_vec() })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.buffer_id.unwrap_or(NO_BUFFER));
        out.put_u32(self.in_port.0);
        let length_at = out.len();
        out.zeros(8);
        let start = out.len();
        action::encode_list(&self.actions, out);
        out.patch_length(length_at, start);
        out.put(&self.data);
    }
}
