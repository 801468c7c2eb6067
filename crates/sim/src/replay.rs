// SPDX-License-Identifier: Apache-2.0
//! Replay: a capture goes through a switch, and captures come out. The time is the capture's, so timeouts and MAC
//! ageing happen as they would have, and the same input gives the same output, byte by byte, with any engine.

mod engine;
mod error;
mod flows;
mod input;
mod options;
mod output;
mod plain;
mod queue;
mod session;
mod summary;
mod workers;

pub use error::ReplayError;
pub use options::{Engine, Options, PortCache};
pub use plain::PlainPlane;
pub use summary::{PortSummary, Summary};

use engine::Forwarder;
use flow::PortNo;
use flows::Flows;
use output::Outputs;
use session::Session;
use std::collections::BTreeSet;

/// Sends the packets of a capture through a switch with these flows, and writes `port-N.pcap` for each port that the
/// flows name or packets come in by, and `controller.pcap`, into the folder. A packet keeps its time stamp; packets
/// leave a port in the order in which they came in. A capture that ends within a packet is replayed up to there, and
/// the summary tells.
///
/// # Errors
/// A capture that is none or not of Ethernet, flows that are refused, options that this build does not have; nothing
/// is written then. Output that cannot be written.
pub fn replay(options: &Options) -> Result<Summary, ReplayError> {
    options.check()?;
    let flows = Flows::read(&options.flows)?;
    let survey = input::survey(options)?;
    let mut ports = flows.ports();
    ports.extend(&survey.ports);
    ports.insert(options.port_of(0));
    match options.engine {
        Engine::Worker => {
            let (plane, forwarder) = workers::Workers::build(&ports, options.ffp);
            run(Session::new(plane, forwarder, options, &survey), options, flows, &ports)
        }
        Engine::Reference => {
            let session = Session::new(PlainPlane::new(), plain::Plain, options, &survey);
            run(session, options, flows, &ports)
        }
    }
}

fn run<F: Forwarder>(
    mut session: Session<F>,
    options: &Options,
    flows: Flows,
    ports: &BTreeSet<PortNo>,
) -> Result<Summary, ReplayError> {
    session.set_up(options, flows, ports)?;
    let mut outputs = Outputs::create(&options.out, ports)?;
    let summary = session.run(options, &mut outputs)?;
    outputs.finish()?;
    Ok(summary)
}
