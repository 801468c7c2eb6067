// SPDX-License-Identifier: Apache-2.0
//! Traces, which explain how the rules of a switch or of a flow file process a packet.
//!
//! [`model::trace`] runs a packet through the tables. This module formats the result as text. It must not
//! send, count or learn anything. Begin with [`TraceForm`] and [`from_file`].

mod form;
mod offline;
mod plane;
mod report;
mod why;

pub use form::{GroupForm, NearMissForm, Output, PacketInForm, Rule, TableForm, TraceForm};
pub use offline::{TraceError, from_file};
pub use plane::{DEVICE, TracedPlane};
pub use report::{describe, report, rule};

use crate::flow_file::port_names;
use crate::packet::{PacketError, PacketForm};
use model::Model;

/// Traces a synthetic packet through a model.
///
/// # Errors
///
/// Returns an error if the packet cannot be built.
pub fn trace_synthesized<P: TracedPlane>(
    model: &mut Model<P>,
    packet: &PacketForm,
) -> Result<TraceForm, PacketError> {
    let (in_port, frame) = packet.frame(&port_names(model))?;
    let trace = model.trace(in_port, &frame);
    Ok(report(model, &trace))
}
