// SPDX-License-Identifier: Apache-2.0
//! Sentences about changes, for users.

use super::{ConfigChange, EndpointChange};
use crate::Endpoint;
use crate::mirror_settings::{ConfiguredMirror, MirrorOutput};
use crate::settings::ConfiguredPort;
use std::fmt;

impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddPort(port) => write!(f, "port {} is added{}", Named(port), device(port)),
            Self::RemovePort(port) => write!(f, "port {} is removed", Named(port)),
            Self::ReopenPort { before, after } => {
                let device = device(after);
                write!(f, "port {} is removed and added again under its number{device}", Named(before))
            }
            Self::RenamePort { number, before, after } => {
                write!(f, "port {number} ({before}) has the name {after}")
            }
            Self::SetQueues(port) => match port.queues.len() {
                0 => write!(f, "port {} has no egress queues", Named(port)),
                1 => write!(f, "port {} has 1 egress queue", Named(port)),
                count => write!(f, "port {} has {count} egress queues", Named(port)),
            },
            Self::SetBridge(port) => write!(f, "port {}: {}", Named(port), port.bridge),
            Self::SetOutstanding(port) if port.outstanding_bytes == usize::MAX => {
                write!(f, "port {} has no limit on outstanding bytes", Named(port))
            }
            Self::SetOutstanding(port) => {
                write!(f, "port {} has at most {} outstanding bytes", Named(port), port.outstanding_bytes)
            }
            Self::Controllers(change) => {
                write!(f, "{} controllers: {}", change.protocol, Endpoints(change))
            }
            Self::Listen(change) => {
                write!(f, "addresses for {} connections: {}", change.protocol, Endpoints(change))
            }
            Self::Tls => f.write_str("new TLS connections use the certificates of other files"),
            Self::FailMode(true) => f.write_str("the fail mode is standalone"),
            Self::FailMode(false) => f.write_str("the fail mode is secure"),
            Self::PacketInRates => f.write_str("the rate limits of packet-ins are changed"),
            Self::LowLatencyCookie => f.write_str("the cookie of low-latency flows is changed"),
            Self::Learning => f.write_str("the learning of low-latency flows is changed"),
            Self::Stateless => f.write_str("stateless forwarding is changed"),
            Self::AddMirror(mirror) => write!(f, "mirror {} is added, {}", mirror.name, output(mirror)),
            Self::RemoveMirror(name) => write!(f, "mirror {name} is removed"),
            Self::ChangeMirror(mirror) => {
                write!(f, "mirror {} is changed and begins again, {}", mirror.name, output(mirror))
            }
            Self::SocketAccess(access) => write!(f, "the control socket has {access}"),
            Self::FlowFile => f.write_str("another flow file is loaded at the next start"),
        }
    }
}

/// Number and name of a port.
struct Named<'a>(&'a ConfiguredPort);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.number, self.0.name)
    }
}

/// Returns the driver and device of a port, as the end of a sentence.
fn device(port: &ConfiguredPort) -> String {
    if port.driver.is_empty() {
        return ", without a device".to_owned();
    }
    format!(", {} {}", port.driver, port.device)
}

/// Returns where the copies of a mirror go, as the end of a sentence.
fn output(mirror: &ConfiguredMirror) -> String {
    match &mirror.output {
        MirrorOutput::Port { port, .. } => format!("to port {port}"),
        MirrorOutput::File(file) => format!("to {}", file.path.display()),
    }
}

struct Endpoints<'a>(&'a EndpointChange);

impl fmt::Display for Endpoints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |endpoints: &[Endpoint]| endpoints.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(" ");
        let EndpointChange { added, removed, .. } = self.0;
        match (added.is_empty(), removed.is_empty()) {
            (false, false) => write!(f, "{} added, {} removed", list(added), list(removed)),
            (false, true) => write!(f, "{} added", list(added)),
            (true, _) => write!(f, "{} removed", list(removed)),
        }
    }
}
