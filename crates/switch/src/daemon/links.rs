// SPDX-License-Identifier: Apache-2.0
//! Carries what drivers know of their links into the model.

use flow::{Nanos, PortNo};
use model::{DataPlane, Model, PortDesc};
use port::Link;
use worker::WorkerSet;

/// A port's description with what its link tells.
pub fn describe(number: PortNo, name: String, link: &Link) -> PortDesc {
    PortDesc {
        number,
        name,
        mac: link.mac.unwrap_or_default(),
        speed_kbps: link.speed_mbps.unwrap_or(0).saturating_mul(1_000),
        ..PortDesc::default()
    }
}

/// Tells the model what changed. `seen` are the links as it knows them.
pub fn carry(model: &mut Model<WorkerSet>, now: Nanos, seen: &mut Vec<(PortNo, Link)>) {
    let links = model.plane_mut().port_links();
    for (number, known) in seen {
        let Some(link) = links.get(number).filter(|link| *link != known) else { continue };
        *known = *link;
        let Some(port) = model.port(*number) else { continue };
        let desc = PortDesc {
            mac: link.mac.unwrap_or(port.desc.mac),
            ..describe(*number, port.desc.name.clone(), link)
        };
        let was_up = port.link_up;
        if was_up != link.up {
            tracing::info!(port = desc.name, up = link.up, "link");
        }
        if set(model, now, desc, link.up).is_err() {
            tracing::error!(port = *number, "a link changed of a port that the model does not have");
        }
    }
}

fn set<D: DataPlane>(
    model: &mut Model<D>,
    now: Nanos,
    desc: PortDesc,
    up: bool,
) -> Result<(), model::ModelError> {
    let number = desc.number;
    model.set_port_desc(now, desc)?;
    model.set_link(now, number, up)
}
