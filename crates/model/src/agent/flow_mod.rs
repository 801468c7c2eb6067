// SPDX-License-Identifier: Apache-2.0
//! Flow-mods of controllers. One may name a held packet, which then goes through the tables.

use super::{Context, Refusal, Shared};
use crate::data_plane::DataPlane;
use flow::operation::PacketOut;
use flow::{Action, Command, port_no};
use openflow::error;
use openflow::flow_mod::FlowMod;

pub fn flow_mod<D: DataPlane>(
    context: &mut Context<'_, D>,
    shared: &mut Shared,
    m: &FlowMod,
) -> Result<(), Refusal> {
    let buffer = buffer(m);
    if let Some(id) = buffer
        && !shared.buffers.holds(context.now, id)
    {
        return Err(unknown(id));
    }
    context.model.flow_mod(context.now, m.flow.clone())?;
    if let Some((in_port, bytes)) = buffer.and_then(|id| shared.buffers.take(context.now, id)) {
        let actions = vec![Action::output(port_no::TABLE)];
        // It is refused only if its port is gone: then nobody waits for the packet any more.
        let _ = context.model.packet_out(PacketOut { in_port, actions, bytes });
    }
    Ok(())
}

/// The held packet that it names. Deletes name none.
pub fn buffer(m: &FlowMod) -> Option<u32> {
    m.buffer_id.filter(|_| !matches!(m.flow.command, Command::Delete | Command::DeleteStrict))
}

pub fn unknown(id: u32) -> Refusal {
    Refusal::new(error::BUFFER_UNKNOWN, format!("no packet is held under number {id:#x}, or no longer"))
}
