// SPDX-License-Identifier: Apache-2.0
//! Packet-outs of controllers. They contain the packet's bytes or refer to a buffered packet.

use super::context::{Context, Refusal};
use super::flow_mod;
use super::shared::Shared;
use dataplane::DataPlane;
use flow::operation::{self, Releases};
use openflow::packet::PacketOutMessage;

pub fn packet_out<D: DataPlane>(
    context: &mut Context<'_, D>,
    shared: &mut Shared,
    m: &PacketOutMessage,
) -> Result<(), Refusal> {
    let (bytes, releases) = match m.buffer_id {
        None => (m.data.clone(), Releases::SameFlow),
        Some(id) => match shared.buffers.get(context.now, id) {
            Some(packet) => (packet.bytes.clone(), packet.releases.into()),
            None => return Err(flow_mod::unknown(id)),
        },
    };
    // A refused packet-out does not use up the buffer.
    context.model.packet_out(operation::PacketOut {
        in_port: m.in_port,
        actions: m.actions.clone(),
        bytes,
        releases,
    })?;
    if let Some(id) = m.buffer_id {
        shared.buffers.take(context.now, id);
    }
    Ok(())
}
