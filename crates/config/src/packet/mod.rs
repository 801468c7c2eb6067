// SPDX-License-Identifier: Apache-2.0
//! Packets that are given as text: fields in flow syntax, hexadecimal bytes, or a packet of a capture.
//!
//! Begin with [`PacketForm::frame`]. Scenarios build many packets from one [`Template`].

mod capture;
mod error;
pub(crate) mod hexadecimal;
mod synthesize;

pub use capture::packet_of;
pub use error::PacketError;
pub use synthesize::{Masks, Template};

use crate::flow_file::PortNames;
use flow::PortNo;
use serde::{Deserialize, Serialize};

const IN_PORT: PortNo = PortNo(1);

/// A synthetic packet, given by either fields or bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketForm {
    /// Fields in flow syntax, such as `in_port=1,tcp,nw_src=10.0.0.1`, and `nw_ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<String>,
    /// Bytes of the frame in hexadecimal, from the destination MAC on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// Ingress port. The default is the port in `fields` or, if `fields` has none, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_port: Option<PortNo>,
}

impl PacketForm {
    /// Builds the frame of the packet, and returns it with its ingress port.
    ///
    /// # Errors
    ///
    /// Returns an error if neither or both of `fields` and `hex` are given, if the text cannot be parsed, or
    /// if two different ingress ports are given.
    pub fn frame(&self, names: &PortNames) -> Result<(PortNo, Vec<u8>), PacketError> {
        let (port, frame) = match (&self.fields, &self.hex) {
            (Some(fields), None) => {
                let made = synthesize::synthesize(fields, &|name| names.get(name).copied())?;
                (made.in_port, made.frame)
            }
            (None, Some(hex)) => (None, hexadecimal::parse(hex)?),
            _ => return Err(PacketError::NoPacket),
        };
        if let (Some(one), Some(other)) = (port, self.in_port)
            && one != other
        {
            return Err(PacketError::TwoPorts(one, other));
        }
        let port = port.or(self.in_port).unwrap_or(IN_PORT);
        if !flow::port_no::is_real(port) {
            return Err(PacketError::InPort(port));
        }
        Ok((port, frame))
    }
}
