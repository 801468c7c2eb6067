// SPDX-License-Identifier: Apache-2.0
//! Packet-outs of the controller, compiled by the control thread.

use crate::program::ProgramStep;
use flow::operation::{self, Releases};
use flow::{Action, PortNo, port_no};

/// A compiled packet-out of the controller.
#[derive(Debug)]
pub struct CompiledPacketOut {
    /// Ingress port with which the packet is processed.
    pub in_port: PortNo,
    /// Steps of the actions, without an output to the tables.
    pub steps: Box<[ProgramStep]>,
    /// Whether the packet passes the tables after the actions.
    pub to_tables: bool,
    /// Bytes of the frame.
    pub bytes: Vec<u8>,
    /// Waiting packets that this one releases.
    pub releases: Releases,
    /// Whether the packet is sent. If not, the packet-out only releases the packets that `releases` names.
    pub sends: bool,
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
            releases: out.releases,
            sends: true,
        }
    }

    /// Returns the packet-out for another worker, which does not send it, but releases packets that wait for
    /// it.
    #[must_use]
    pub fn only_answer(out: &operation::PacketOut) -> Self {
        Self {
            in_port: out.in_port,
            steps: Box::default(),
            to_tables: false,
            bytes: out.bytes.clone(),
            releases: out.releases,
            sends: false,
        }
    }
}
