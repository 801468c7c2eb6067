// SPDX-License-Identifier: Apache-2.0
//! Ports: description (section 7.2.1), PORT_STATUS (7.4.3) and PORT_MOD (7.3.4.3).

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::PortNo;

/// Configuration bits of a port (OFPPC_*).
pub mod config {
    /// Administratively down.
    pub const PORT_DOWN: u32 = 1;
    /// Drop packets received on the port.
    pub const NO_RECV: u32 = 1 << 2;
    /// Drop packets sent to the port.
    pub const NO_FWD: u32 = 1 << 5;
    /// Send no packet-ins for packets received on the port.
    pub const NO_PACKET_IN: u32 = 1 << 6;
    /// All bits that OpenFlow 1.3 defines.
    pub const ALL: u32 = PORT_DOWN | NO_RECV | NO_FWD | NO_PACKET_IN;
}

/// State bits of a port (OFPPS_*).
pub mod state {
    /// The link is down.
    pub const LINK_DOWN: u32 = 1;
    /// The port is blocked.
    pub const BLOCKED: u32 = 1 << 1;
    /// The port is live for fast-failover groups.
    pub const LIVE: u32 = 1 << 2;
}

/// Length in bytes of a port's name. The last byte is 0.
const NAME_BYTES: usize = 16;

/// Port description (`ofp_port`, 64 bytes). Features are OFPPF_* bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortDescription {
    /// Port number.
    pub number: PortNo,
    /// MAC address.
    pub mac: [u8; 6],
    /// Name of the port. At most 15 bytes of it are encoded.
    pub name: String,
    /// Configuration, as bits of [`config`].
    pub config: u32,
    /// State, as bits of [`state`].
    pub state: u32,
    /// Features in use.
    pub current: u32,
    /// Features that the port advertises.
    pub advertised: u32,
    /// Features that the port supports.
    pub supported: u32,
    /// Features that the link partner advertises.
    pub peer: u32,
    /// Current bit rate in kbit/s.
    pub speed_kbps: u32,
    /// Highest bit rate in kbit/s.
    pub max_speed_kbps: u32,
}

impl PortDescription {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u32()?;
        r.skip(4)?;
        let mac = r.array()?;
        r.skip(2)?;
        Ok(Self {
            number: PortNo(number),
            mac,
            name: r.text::<NAME_BYTES>()?,
            config: r.u32()?,
            state: r.u32()?,
            current: r.u32()?,
            advertised: r.u32()?,
            supported: r.u32()?,
            peer: r.u32()?,
            speed_kbps: r.u32()?,
            max_speed_kbps: r.u32()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.number.0);
        out.zeros(4);
        out.put(&self.mac);
        out.zeros(2);
        out.put_text(&self.name, NAME_BYTES);
        let numbers = [self.config, self.state, self.current, self.advertised, self.supported, self.peer];
        for number in numbers.into_iter().chain([self.speed_kbps, self.max_speed_kbps]) {
            out.put_u32(number);
        }
    }
}

/// Reason for a PORT_STATUS message (OFPPR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortStatusReason {
    /// The port was added.
    Add,
    /// The port was removed.
    Delete,
    /// The port's state or configuration changed.
    Modify,
}

/// Notification that a port was added, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortStatus {
    /// Reason for the notification.
    pub reason: PortStatusReason,
    /// The port after the change.
    pub port: PortDescription,
}

impl PortStatus {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let reason = match r.u8()? {
            0 => PortStatusReason::Add,
            1 => PortStatusReason::Delete,
            2 => PortStatusReason::Modify,
            reason => {
                return error::BAD_TYPE.says(format!("port-status reason {reason}; reasons are 0 to 2"));
            }
        };
        r.skip(7)?;
        Ok(Self { reason, port: PortDescription::decode(r)? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.reason as u8);
        out.zeros(7);
        self.port.encode(out);
    }
}

/// Request to change a port's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortModMessage {
    /// Port number.
    pub port: PortNo,
    /// MAC address, which must equal the port's address.
    pub mac: [u8; 6],
    /// New configuration, as bits of [`config`].
    pub config: u32,
    /// Configuration bits to change.
    pub mask: u32,
    /// Features to advertise. 0 leaves them unchanged.
    pub advertise: u32,
}

impl PortModMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let port = r.u32()?;
        r.skip(4)?;
        let mac = r.array()?;
        r.skip(2)?;
        let (config, mask, advertise) = (r.u32()?, r.u32()?, r.u32()?);
        r.skip(4)?;
        Ok(Self { port: PortNo(port), mac, config, mask, advertise })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.port.0);
        out.zeros(4);
        out.put(&self.mac);
        out.zeros(2);
        out.put_u32(self.config);
        out.put_u32(self.mask);
        out.put_u32(self.advertise);
        out.zeros(4);
    }
}
