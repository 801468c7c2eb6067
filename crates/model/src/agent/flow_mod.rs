// SPDX-License-Identifier: Apache-2.0
//! Flow-mods of controllers.

use super::{Context, Refusal};
use crate::data_plane::DataPlane;
use flow::Command;
use openflow::error;
use openflow::flow_mod::FlowMod;

pub fn flow_mod<D: DataPlane>(context: &mut Context<'_, D>, m: &FlowMod) -> Result<(), Refusal> {
    check_buffer(m)?;
    context.model.flow_mod(context.now, m.flow.clone())?;
    Ok(())
}

/// No packet is held for controllers, so every number of one is wrong. Deletes do not look at it.
pub fn check_buffer(m: &FlowMod) -> Result<(), Refusal> {
    match m.buffer_id {
        Some(id) if !matches!(m.flow.command, Command::Delete | Command::DeleteStrict) => {
            Err(Refusal::new(error::BUFFER_UNKNOWN, format!("no packet is held under number {id:#x}")))
        }
        _ => Ok(()),
    }
}
