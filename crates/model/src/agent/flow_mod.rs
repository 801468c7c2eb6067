// SPDX-License-Identifier: Apache-2.0
//! Flow-mods of controllers. A flow-mod may name a buffered packet, which is then sent through the tables.

use super::buffers::Buffered;
use super::context::{Context, Refusal};
use super::shared::Shared;
use dataplane::DataPlane;
use flow::operation::PacketOut;
use flow::{Action, FlowModCommand, Nanos, port_no};
use openflow::error;
use openflow::flow_mod::FlowModMessage;

/// Returns the buffer ID in a flow-mod. Refuses the flow-mod if no packet is buffered under this ID.
pub fn known_buffer(m: &FlowModMessage, shared: &mut Shared, now: Nanos) -> Result<Option<u32>, Refusal> {
    match buffer(m) {
        Some(id) if !shared.buffers.holds(now, id) => Err(unknown(id)),
        buffer => Ok(buffer),
    }
}

/// Sends a buffered packet through the tables.
pub fn release<D: DataPlane>(buffer: Option<u32>, shared: &mut Shared, context: &mut Context<'_, D>) {
    let Some(id) = buffer else { return };
    let Some(packet) = shared.buffers.get(context.now, id) else { return };
    let Buffered { in_port, bytes, releases } = packet.clone();
    let releases = releases.into();
    let actions = vec![Action::output(port_no::TABLE)];
    // If the ingress port no longer exists, the packet stays buffered until its time is over.
    if context.model.packet_out(PacketOut { in_port, actions, bytes, releases }).is_ok() {
        shared.buffers.take(context.now, id);
    }
}

/// Returns the buffer ID in a flow-mod. A delete command has none.
pub fn buffer(m: &FlowModMessage) -> Option<u32> {
    m.buffer_id.filter(|_| !matches!(m.flow.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict))
}

pub fn unknown(id: u32) -> Refusal {
    Refusal::new(
        error::BUFFER_UNKNOWN,
        format!(
            "there is no packet with buffer ID {id:#x}; it was used or dropped before, or the ID is wrong"
        ),
    )
}
