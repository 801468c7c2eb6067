// SPDX-License-Identifier: Apache-2.0
//! PACKET_OUT: sends a packet of the controller. The switch has no packet buffers for POF.

use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::translate::{self, counter_group};
use dataplane::DataPlane;
use flow::PortNo;
use flow::operation::{PacketOut, Releases};
use model::agent::Context;
use pof::error;
use pof::message::packet::{NO_BUFFER, PofPacketOut};

/// Code of a PACKET_OUT that names a buffer (POFBRC_BUFFER_UNKNOWN).
const BUFFER_UNKNOWN: pof::PofErrorCode = pof::PofErrorCode::new(1, 8);

/// Executes a PACKET_OUT.
pub fn packet_out<D: DataPlane>(
    m: &PofPacketOut,
    shared: &Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    if m.buffer_id != NO_BUFFER {
        let problem = format!("the switch has no packet with buffer ID {:#x}; send the packet", m.buffer_id);
        return Err(PofRefusal::new(BUFFER_UNKNOWN, problem));
    }
    let dialect = shared.config.dialect;
    let (actions, counters) = translate::actions(&m.actions, dialect)?;
    for counter in counters {
        let group = counter_group(counter)?;
        if context.model.group_numbered(group).is_none() {
            let problem = format!("no entry has the action COUNTER with counter {}", counter.0);
            return Err(PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem));
        }
    }
    let in_port = in_port(m.in_port, shared)?;
    let releases = Releases::SameFlow;
    Ok(context.model.packet_out(PacketOut { in_port, actions, bytes: m.data.clone(), releases })?)
}

fn in_port(number: u32, shared: &Shared) -> Result<PortNo, PofRefusal> {
    let wrong = |refusal: PofRefusal| PofRefusal { code: error::BAD_PORT, ..refusal };
    translate::port(number, shared.config.dialect).map_err(wrong)
}
