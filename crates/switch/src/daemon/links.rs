// SPDX-License-Identifier: Apache-2.0
//! Reports changes of the ports' links to the model. The drivers and the kernel each report the state of a
//! link.

use crate::plane::Plane;
use dataplane::DataPlane;
use flow::{Nanos, PortNo};
use model::{Model, PortDesc};
use port::Link;
use port::links::WatchedLink;
use port::patch::PatchEnd;

/// The link of a port as last reported to the model.
pub struct Known {
    /// Port number.
    pub port: PortNo,
    /// Kernel interface of the port, if there is one.
    pub interface: Option<String>,
    /// Access to the port, if it is a patch port.
    pub patch_end: Option<PatchEnd>,
    /// State of the link.
    pub link: Link,
    /// Number of times that the link went down, as counted by the kernel ([`WatchedLink::downs`]).
    pub downs: u64,
}

/// Returns the description of a port with this link.
pub fn describe(number: PortNo, name: String, link: &Link) -> PortDesc {
    PortDesc {
        number,
        name,
        mac: link.mac.unwrap_or_default(),
        speed_kbps: link.speed_mbps.unwrap_or(0).saturating_mul(1_000),
        ..PortDesc::default()
    }
}

/// Merges the driver's and the kernel's report about a link. Only the driver reports the interface to which
/// its queue is bound, but the kernel reports changes earlier.
fn merged(driver: Link, kernel: Option<&WatchedLink>) -> Link {
    let Some(kernel) = kernel else { return driver };
    Link {
        up: kernel.up && kernel.index.is_some() && kernel.index == driver.index,
        speed_mbps: kernel.speed_mbps,
        mac: kernel.mac.or(driver.mac),
        ..driver
    }
}

/// Reports changed links to the model, and ports that are down or blocked to their peers. If a link went down
/// and came up again since the last call, it is reported twice: first as down, then as up.
pub fn carry(model: &mut Model<Plane>, now: Nanos, known: &mut [Known], watched: &[WatchedLink]) {
    let links = model.plane_mut().port_links();
    for known in known {
        if let (Some(end), Some(port)) = (&known.patch_end, model.port(known.port)) {
            end.set_peer_carrier(!port.config.down && !port.is_blocked);
            end.free_replaced();
        }
        let Some(driver) = links.get(&known.port) else { continue };
        let kernel = known.interface.as_ref().and_then(|name| watched.iter().find(|link| link.name == *name));
        let link = merged(*driver, kernel);
        let downs = kernel.map_or(0, |kernel| kernel.downs);
        let was_down_between = known.downs != downs && known.link.up && link.up;
        if known.link == link && !was_down_between {
            continue;
        }
        (known.link, known.downs) = (link, downs);
        if was_down_between {
            report(model, now, known.port, &Link { up: false, ..link });
        }
        report(model, now, known.port, &link);
    }
}

fn report(model: &mut Model<Plane>, now: Nanos, number: PortNo, link: &Link) {
    let Some(port) = model.port(number) else { return };
    let name = port.desc.name.clone();
    let desc = PortDesc { mac: link.mac.unwrap_or(port.desc.mac), ..describe(number, name, link) };
    if port.link_up != link.up {
        tracing::info!(port = desc.name, up = link.up, "link");
    }
    if set(model, now, desc, link.up).is_err() {
        tracing::error!(port = number.0, "a link changed at a port that the model does not have");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_report_counts_only_for_the_interface_of_the_driver() {
        let driver = Link { up: true, mtu: Some(1_500), index: Some(4), ..Link::default() };
        assert_eq!(merged(driver, None), driver);
        let kernel = |index, up| WatchedLink {
            index,
            up,
            speed_mbps: Some(10_000),
            mac: Some([2; 6]),
            ..WatchedLink::default()
        };
        let up = |driver, index, up| merged(driver, Some(&kernel(index, up))).up;
        assert!(up(driver, Some(4), true));
        // The driver has not reported the change yet, but the kernel has.
        assert!(up(Link { up: false, ..driver }, Some(4), true) && !up(driver, Some(4), false));
        // The kernel has another interface of the same name, or none.
        assert!(!up(driver, Some(5), true) && !up(driver, None, false));
        assert!(!up(Link { index: None, ..driver }, Some(4), true) && !up(Link::default(), None, true));
        let link = merged(driver, Some(&kernel(Some(4), true)));
        assert_eq!((link.speed_mbps, link.mac, link.mtu), (Some(10_000), Some([2; 6]), Some(1_500)));
    }
}
