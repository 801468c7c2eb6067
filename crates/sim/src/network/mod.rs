// SPDX-License-Identifier: Apache-2.0
//! Networks of switches in virtual time.
//!
//! Each switch is the switch: a model over a worker whose ports lead into the network. Links have a delay and perhaps a rate, with
//! a bounded queue before them; hosts send packets that are told apart by their bytes, and look at all that arrives. Links
//! and switches fail and are repaired, and are configured anew, at given times: both ends of a link learn of that some time
//! later. Switches take no time themselves. The same network and seed give the same report.

mod events;
mod instance;
mod outages;
mod packets;
mod port;
mod report;
mod run;
mod spec;
mod wires;

pub use instance::State;
pub use outages::Exposure;
pub use report::{Ends, Failure, Figures, Place, Report};
pub use run::{NetworkError, run};
pub use spec::{Act, End, Flow, Hop, Host, Link, Network, Node, Setup};

#[cfg(test)]
mod tests;
