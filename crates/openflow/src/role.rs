// SPDX-License-Identifier: Apache-2.0
//! Roles of controllers (sections 6.3.4, 7.3.9), and filters of asynchronous messages (7.3.10).

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use crate::flow_mod::FlowRemovedReason;
use crate::packet::PacketInCode;
use crate::port::PortStatusReason;

/// Role of a controller (OFPCR_ROLE_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// The request does not change the role.
    NoChange,
    /// Full access, which several controllers may have.
    #[default]
    Equal,
    /// Full access. At most one controller has this role.
    Master,
    /// Read-only access.
    Slave,
}

/// A request for a role, or a reply with the current role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoleMessage {
    /// Requested or current role.
    pub role: Role,
    /// Number of the master election to which the request belongs.
    pub generation_id: u64,
}

impl RoleMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let role = match r.u32()? {
            0 => Role::NoChange,
            1 => Role::Equal,
            2 => Role::Master,
            3 => Role::Slave,
            role => return error::ROLE_BAD_ROLE.says(format!("role {role}; roles are 0 to 3")),
        };
        r.skip(4)?;
        Ok(Self { role, generation_id: r.u64()? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.role as u32);
        out.zeros(4);
        out.put_u64(self.generation_id);
    }
}

/// Number of the newest master election that the switch has seen from any controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation(Option<u64>);

impl Generation {
    /// Returns the number. Before the first election, all its bits are set.
    #[must_use]
    pub fn id(self) -> u64 {
        self.0.unwrap_or(u64::MAX)
    }

    /// Processes a role request. Election numbers wrap around.
    ///
    /// # Errors
    /// Returns OFPRRFC_STALE if a request for master or slave belongs to an older election.
    pub fn accept(&mut self, request: &RoleMessage) -> Result<(), DecodeError> {
        if !matches!(request.role, Role::Master | Role::Slave) {
            return Ok(());
        }
        let id = request.generation_id;
        if let Some(newest) = self.0
            && (id.wrapping_sub(newest) as i64) < 0
        {
            return error::ROLE_STALE
                .says(format!("generation {id:#x} is older than {newest:#x}, which was requested already"));
        }
        self.0 = Some(id);
        Ok(())
    }
}

/// Kind of an asynchronous message, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncKind {
    /// Packet-in message.
    PacketIn(PacketInCode),
    /// Port-status message.
    PortStatus(PortStatusReason),
    /// Flow-removed message.
    FlowRemoved(FlowRemovedReason),
}

/// Filter of a controller's asynchronous messages. Bit `n` enables reason `n`. The first mask applies to the
/// roles master and equal, the second to the role slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsyncConfig {
    /// Enabled reasons of packet-ins.
    pub packet_in: [u32; 2],
    /// Enabled reasons of port-status messages.
    pub port_status: [u32; 2],
    /// Enabled reasons of flow-removed messages.
    pub flow_removed: [u32; 2],
}

impl Default for AsyncConfig {
    /// Returns the defaults of the standard: slaves get port-status messages only, and no role gets packets
    /// with an invalid TTL.
    fn default() -> Self {
        Self { packet_in: [0b11, 0], port_status: [0b111, 0b111], flow_removed: [0b1111, 0] }
    }
}

impl AsyncConfig {
    /// Returns whether a controller in this role receives this message.
    #[must_use]
    pub fn allows(&self, role: Role, kind: AsyncKind) -> bool {
        let column = usize::from(role == Role::Slave);
        let (masks, reason) = match kind {
            AsyncKind::PacketIn(reason) => (self.packet_in, reason as u8),
            AsyncKind::PortStatus(reason) => (self.port_status, reason as u8),
            AsyncKind::FlowRemoved(reason) => (self.flow_removed, reason as u8),
        };
        masks[column] >> reason & 1 == 1
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            packet_in: [r.u32()?, r.u32()?],
            port_status: [r.u32()?, r.u32()?],
            flow_removed: [r.u32()?, r.u32()?],
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for mask in [self.packet_in, self.port_status, self.flow_removed].concat() {
            out.put_u32(mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_elections_are_stale_even_after_a_wrap() {
        let mut generation = Generation::default();
        let mut ask =
            |role, generation_id| generation.accept(&RoleMessage { role, generation_id }).map_err(|e| e.code);
        assert_eq!(ask(Role::Master, u64::MAX), Ok(()));
        assert_eq!(ask(Role::Slave, 1), Ok(()));
        assert_eq!(ask(Role::Master, u64::MAX), Err(error::ROLE_STALE));
        assert_eq!(ask(Role::Equal, 0), Ok(()));
        assert_eq!(ask(Role::Master, 0), Err(error::ROLE_STALE));
        assert_eq!(ask(Role::Master, 1), Ok(()));
        assert_eq!(generation.id(), 1);
    }

    #[test]
    fn slaves_get_only_port_status_unless_they_request_more() {
        let mut config = AsyncConfig::default();
        let packet = AsyncKind::PacketIn(PacketInCode::Action);
        let port = AsyncKind::PortStatus(PortStatusReason::Delete);
        assert!(config.allows(Role::Equal, packet) && config.allows(Role::Master, packet));
        assert!(!config.allows(Role::Slave, packet) && config.allows(Role::Slave, port));
        assert!(!config.allows(Role::Master, AsyncKind::PacketIn(PacketInCode::InvalidTtl)));
        assert!(config.allows(Role::Master, AsyncKind::FlowRemoved(FlowRemovedReason::GroupDelete)));
        config.packet_in = [0, 2];
        assert!(!config.allows(Role::Master, packet) && config.allows(Role::Slave, packet));
    }
}
