// SPDX-License-Identifier: Apache-2.0
//! Packet-outs of the controller, compiled by the control thread.

use actions::ProgramStep;
use flow::{Action, PortNo, operation, port_no};

/// A compiled packet-out of the controller.
#[derive(Debug)]
pub struct CompiledPacketOut {
    pub(crate) in_port: PortNo,
    pub(crate) steps: Box<[ProgramStep]>,
    pub(crate) to_tables: bool,
    pub(crate) bytes: Vec<u8>,
}

impl CompiledPacketOut {
    /// Compiles a packet-out.
    #[must_use]
    pub fn compile(out: &operation::PacketOut) -> Self {
        let to_table = |action: &Action| matches!(action, Action::Output { port: port_no::TABLE, .. });
        let to_tables = out.actions.last().is_some_and(to_table);
        let actions = &out.actions[..out.actions.len() - usize::from(to_tables)];
        Self {
            in_port: out.in_port,
            steps: ProgramStep::applied(actions),
            to_tables,
            bytes: out.bytes.clone(),
        }
    }
}
