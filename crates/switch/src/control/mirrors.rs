// SPDX-License-Identifier: Apache-2.0
//! The report about mirrors.

use crate::mirror::{Mirrors, RunningMirror};
use crate::plane::Plane;
use config::MirrorOutput;
use config::trace::TracedPlane;
use flow::PortNo;
use model::Model;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All mirrors of a datapath.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorsReport {
    /// Mirrors in the order of their addition.
    pub mirrors: Vec<MirrorRow>,
}

/// A mirror with its counters since it was added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorRow {
    /// Name of the mirror.
    pub name: String,
    /// Numbers of the ports whose received frames are copied.
    pub ingress: Vec<u32>,
    /// Numbers of the ports whose sent frames are copied.
    pub egress: Vec<u32>,
    /// VLAN IDs whose frames are copied; 0 stands for frames without a tag. Empty: all frames.
    pub vlans: Vec<u16>,
    /// Number of the output port, if the copies go to a port.
    pub output_port: Option<u32>,
    /// Whether the output port also forwards other traffic.
    pub other_traffic: bool,
    /// Path of the file, if the copies go to a file.
    pub file: Option<String>,
    /// `active` or `ended`.
    pub state: String,
    /// Why the mirror has ended, if it has.
    pub reason: Option<String>,
    /// Number of frames that were copied to the output.
    pub mirrored: u64,
    /// Number of bytes of these frames.
    pub mirrored_bytes: u64,
    /// Number of frames in the file.
    pub written: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Numbers of frames that were not copied, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// Returns the report about the mirrors of a datapath, or `None` if no workers forward.
pub fn mirrors(model: &mut Model<Plane>, mirrors: &Mirrors) -> Option<MirrorsReport> {
    let workers = model.plane_mut().workers()?;
    let row = |mirror: &RunningMirror| {
        let counts = workers.mirror_counts(mirror.id).unwrap_or_default();
        let numbers = |ports: &[PortNo]| ports.iter().map(|port| port.0).collect();
        let selection = &mirror.config.selection;
        let (output_port, other_traffic) = match mirror.config.output {
            MirrorOutput::Port { port, other_traffic } => (Some(port.0), other_traffic),
            MirrorOutput::File(_) => (None, false),
        };
        let capture = mirror.capture.as_ref();
        let reason = capture.and_then(|capture| capture.end());
        MirrorRow {
            name: mirror.config.name.clone(),
            ingress: numbers(&selection.ingress),
            egress: numbers(&selection.egress),
            vlans: selection.vlans.clone(),
            output_port,
            other_traffic,
            file: mirror.config.file().map(|path| path.display().to_string()),
            state: if reason.is_some() { "ended" } else { "active" }.to_owned(),
            reason,
            mirrored: counts.mirrored,
            mirrored_bytes: counts.mirrored_bytes,
            written: capture.map_or(0, |capture| capture.packets()),
            file_bytes: capture.map_or(0, |capture| capture.bytes()),
            dropped: counts.drops().map(|(name, count)| (name.to_owned(), count)).into(),
        }
    };
    Some(MirrorsReport { mirrors: mirrors.running().iter().map(row).collect() })
}
