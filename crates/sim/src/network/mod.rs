// SPDX-License-Identifier: Apache-2.0
//! Networks of switches in virtual time.
//!
//! Each switch runs the real code of a model and a worker. Links have a delay and an optional rate with a
//! bounded queue. Hosts send packets with distinct contents and check every packet that arrives. At given
//! times, links and switches fail or are repaired, and switches are reconfigured. Both ends of a link detect
//! a change after a delay. Switches forward without delay, unless packets wait in a port cache (`buffered`).
//! Begin with `spec` for the inputs, `run` for the
//! event loop and `report` for the results.

mod buffered;
mod ecmp;
mod events;
mod exposure;
mod fat_tree;
mod instance;
mod link_state;
mod outages;
mod packets;
mod port;
mod report;
mod run;
mod spec;

pub use ecmp::{ALL_BUCKETS, EcmpError, HostAddress, distances, ecmp};
pub use exposure::Exposure;
pub use fat_tree::{TreeLinks, fat_tree};
pub use instance::InstanceState;
pub use report::{BufferReport, Ends, FailureReport, LayerReport, NetworkFigures, NetworkPlace, Report};
pub use run::{NetworkError, run};
pub use spec::{
    Act, End, Flow, Hop, Host, Layer, Network, NetworkLink, Node, Setup, SwitchBuffers, UNSERVED_MAX,
};

#[cfg(test)]
mod buffered_tests;
#[cfg(test)]
mod tests;
