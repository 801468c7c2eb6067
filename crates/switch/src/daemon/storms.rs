// SPDX-License-Identifier: Apache-2.0
//! Log lines about ports that storm limits close.

use crate::plane::Plane;
use flow::bridge::FloodKind;
use model::Model;

/// Writes the notices of the model to the log.
pub fn log_notices(model: &mut Model<Plane>) {
    while let Some(notice) = model.next_storm_notice() {
        let name = model.port(notice.port).map_or_else(String::new, |port| port.desc.name.clone());
        let number = notice.port;
        let Some((kind, time)) = notice.closed else {
            tracing::warn!("port {number} ({name}) is open again after a storm");
            continue;
        };
        let kind = match kind {
            FloodKind::Broadcast => "broadcasts",
            FloodKind::Multicast => "multicasts",
            FloodKind::UnknownUnicast => "packets to unknown addresses",
        };
        let time_ms = time.0 / 1_000_000;
        tracing::warn!("port {number} ({name}) is closed for {time_ms} ms: it received too many {kind}");
    }
}
