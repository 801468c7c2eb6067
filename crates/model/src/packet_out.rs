// SPDX-License-Identifier: Apache-2.0
//! Packet-outs. A packet-out has its place in the order of operations, so it is forwarded by the rules
//! requested before it.

use crate::flow_mod::executable;
use crate::{Model, ModelError};
use dataplane::DataPlane;
use flow::operation::PacketOut;
use flow::validate::{ValidateError, validate_actions};
use flow::{Action, Instructions, Operation, port_no};
use std::sync::Arc;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;

impl<D: DataPlane> Model<D> {
    /// Sends a packet of a controller.
    ///
    /// # Errors
    /// Returns an error if the ingress port does not exist, the packet is too short, or an action is invalid.
    pub fn packet_out(&mut self, packet: PacketOut) -> Result<(), ModelError> {
        let from = packet.in_port;
        if !port_no::is_none(from) && !self.ports.contains_key(&from) {
            return Err(ModelError::BadInPort(from));
        }
        if packet.bytes.len() < ETHERNET_BYTES {
            return Err(ModelError::BadPacket(packet.bytes.len()));
        }
        let to_table = |action: &Action| matches!(action, Action::Output { port: port_no::TABLE, .. });
        let actions = match packet.actions.split_last() {
            Some((last, before)) if to_table(last) => before,
            _ => &packet.actions,
        };
        if actions.iter().any(to_table) {
            return Err(ValidateError::OutPort(port_no::TABLE).into());
        }
        validate_actions(actions)?;
        executable(&Instructions::apply(actions.to_vec()), &self.groups, &self.meters)?;
        self.version = self.plane.submit(Operation::PacketOut(Arc::new(packet)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_openflows_numbers() {
        assert_eq!(ModelError::BadInPort(9).openflow(), (1, 11));
        assert_eq!(ModelError::BadPacket(3).openflow(), (1, 12));
    }
}
