// SPDX-License-Identifier: Apache-2.0
//! Packets of controllers.

use super::{Context, Refusal};
use crate::data_plane::DataPlane;
use flow::operation;
use openflow::error;
use openflow::packet::PacketOut;

pub fn packet_out<D: DataPlane>(context: &mut Context<'_, D>, m: &PacketOut) -> Result<(), Refusal> {
    if let Some(id) = m.buffer_id {
        return Err(Refusal::new(error::BUFFER_UNKNOWN, format!("no packet is held under number {id:#x}")));
    }
    let packet =
        operation::PacketOut { in_port: m.in_port, actions: m.actions.clone(), bytes: m.data.clone() };
    context.model.packet_out(packet)?;
    Ok(())
}
