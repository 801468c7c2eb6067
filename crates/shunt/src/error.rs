// SPDX-License-Identifier: Apache-2.0
//! Errors of commands.

use config::ConfigError;
use config::packet::PacketError;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use switch::control::ClientError;
use switch::daemon::DaemonError;

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The reader of the output closed the pipe.
    #[error("the output was closed")]
    ClosedPipe,
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    #[error("cannot start the thread that writes the log: {0}")]
    Log(io::Error),
    #[error("cannot start the process that starts new programs: {0}")]
    Launcher(io::Error),
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{}: there are several datapaths; select one with --control: {sockets}", path.display())]
    Several { path: PathBuf, sockets: String },
    #[error("{}: there are several datapaths, each with a separate control socket; leave out --control", .0.display())]
    ControlOfSeveral(PathBuf),
    #[error("{0}")]
    Gate(String),
    #[error("{}: {reason}", path.display())]
    Edit { path: PathBuf, reason: String },
    #[error(
        "the running switch is changed, but {}: cannot write the configuration: {source}; repeat the \
         change in the file, or the next reload undoes it", path.display()
    )]
    NotWritten { path: PathBuf, source: io::Error },
    #[error("{}: cannot write man pages and completions: {source}", folder.display())]
    Generate { folder: PathBuf, source: io::Error },
    #[error("{0}")]
    Daemon(#[from] DaemonError),
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{}: cannot open the flow file: {source}", path.display())]
    OpenFlows { path: PathBuf, source: io::Error },
    #[error("{}", source.to_string().lines().map(|line| format!("{}: {line}", path.display())).collect::<Vec<_>>().join("\n"))]
    Load { path: PathBuf, source: ClientError },
    #[error(
        "{0} of {1} packets were not forwarded by the rules; this is a fault of the switch, not of the flows"
    )]
    Faults(u64, u64),
    #[error("{0}")]
    Trace(#[from] config::trace::TraceError),
    #[error("{0}")]
    Packet(#[from] PacketError),
    #[error("{0}")]
    Replay(#[from] sim::replay::ReplayError),
    #[error("{0}")]
    Scenario(#[from] scenario::ScenarioError),
    #[error(
        "packets were misdelivered, changed, duplicated, sent over too many hops, or lost without a failure that explains it; see above"
    )]
    WrongNetwork,
    #[error("network.require is not met: {0}")]
    Missed(String),
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Output(error),
        }
    }
}
