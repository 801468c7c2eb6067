// SPDX-License-Identifier: Apache-2.0
//! Replays a capture through a switch and writes captures of the output. The clock follows the time stamps of
//! the capture. The same input gives the same output bytes with every engine.

mod engine;
mod error;
mod input;
mod options;
mod output;
mod plain;
mod queue;
mod session;
mod summary;
mod workers;

pub use error::ReplayError;
pub use options::{Options, ReplayEngine};
pub use plain::PlainPlane;
pub use summary::{PortSummary, ReplaySummary};

use config::flow_file::FlowFile;
use engine::Forwarder;
use flow::PortNo;
use output::Outputs;
use session::Session;
use std::collections::BTreeSet;
use std::path::Path;

/// Sends the packets of a capture through a switch with these flows. Writes `controller.pcap` and, for each
/// port that flows or packets use, `port-N.pcap` to the folder. A packet keeps its time stamp; packets leave
/// a port in the order of their arrival. If a capture ends within a packet, the packets before it are
/// replayed, and the summary reports the damage.
///
/// # Errors
/// Returns an error if the capture is unreadable or is not an Ethernet capture, if flows are refused, or if
/// options are not supported. Nothing is written in these cases. Also returns an error if the output cannot
/// be written.
pub fn replay(options: &Options) -> Result<ReplaySummary, ReplayError> {
    options.check()?;
    let flows = read_flows(&options.flows)?;
    let survey = input::survey(options)?;
    let mut ports = flows.ports();
    ports.extend(&survey.ports);
    ports.insert(options.port_of(0));
    match options.engine {
        ReplayEngine::Worker => {
            let (plane, forwarder) = workers::Workers::build(&ports, options);
            run(Session::new(plane, forwarder, options, &survey), options, flows, &ports)
        }
        ReplayEngine::Reference => {
            let session = Session::new(PlainPlane::new(), plain::Plain, options, &survey);
            run(session, options, flows, &ports)
        }
    }
}

fn read_flows(path: &Path) -> Result<FlowFile, ReplayError> {
    let mut flows =
        FlowFile::open(path).map_err(|source| ReplayError::ReadFlows { path: path.into(), source })?;
    flows.finish().map_err(|mistakes| ReplayError::Flows { path: path.into(), mistakes })?;
    Ok(flows)
}

fn run<F: Forwarder>(
    mut session: Session<F>,
    options: &Options,
    flows: FlowFile,
    ports: &BTreeSet<PortNo>,
) -> Result<ReplaySummary, ReplayError> {
    session.set_up(options, flows, ports)?;
    let mut outputs = Outputs::create(&options.out, ports)?;
    let summary = session.run(options, &mut outputs)?;
    outputs.finish()?;
    Ok(summary)
}
