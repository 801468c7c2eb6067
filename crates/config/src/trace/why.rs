// SPDX-License-Identifier: Apache-2.0
//! Sentences of a trace that explain what happened to the packet.

use crate::trace::TracedPlane;
use dataplane::DataPlane;
use flow::stateless::{Arithmetic, Label};
use flow::{Action, DropReason, EntryId, FlowEntry, MeterId, Outcome, PortNo, TableId, port_no};
use model::trace::{Trace, Worked};
use model::{Model, Port, PortConfig};
use std::collections::BTreeMap;

/// Cache mode of each table on the fast-forwarding path. The path excludes all other tables.
pub type Ways = BTreeMap<TableId, &'static str>;

/// Returns a sentence about the outcome of the packet.
pub fn outcome<D: DataPlane>(model: &Model<D>, found: &Trace) -> String {
    let processed = &found.processed;
    match processed.outcome {
        Outcome::Forwarded => {
            let mut ports: Vec<PortNo> = Vec::new();
            for copy in &processed.sent {
                if !ports.contains(&copy.port) {
                    ports.push(copy.port);
                }
            }
            format!("it leaves by {}", list("port", &ports))
        }
        Outcome::Consumed => "it goes only to the controller".into(),
        Outcome::Dropped(reason) => dropped(model, found, reason),
    }
}

/// Returns the reason why a packet or a copy was dropped.
pub fn dropped<D: DataPlane>(model: &Model<D>, found: &Trace, reason: DropReason) -> String {
    let last = found.steps.last();
    match reason {
        DropReason::PortNotReceiving => match model.port(found.in_port) {
            None => format!("its ingress port {} does not exist", found.in_port),
            Some(port) => format!("{} {}", port_text(model, found.in_port), not_receiving(port)),
        },
        DropReason::TableMiss => match last {
            Some(step) if step.index.is_some() => format!(
                "table {} has no entry with the index {} that the packet was sent to",
                step.table,
                step.index.unwrap_or_default()
            ),
            Some(step) if step.entries == 0 => format!("table {} is empty", step.table),
            Some(step) => format!(
                "none of the {} in table {} matches it, and the table has no table-miss entry \
                 (priority=0 without a match)",
                entries(step.entries),
                step.table
            ),
            None => reason.meaning().into(),
        },
        DropReason::NoOutput => match last.and_then(|step| Some((step, step.entry.as_ref()?))) {
            Some((step, entry)) if entry.instructions.is_empty() => {
                format!("the entry that it hits in table {} drops it: actions=drop", step.table)
            }
            Some((step, _)) => format!(
                "no entry that it hits sends it anywhere: the last one, in table {}, has neither an output nor a \
                 next table, and its action set has no output",
                step.table
            ),
            None => reason.meaning().into(),
        },
        DropReason::PortDown | DropReason::NoSuchPort | DropReason::PortNotForwarding => {
            let failing = outputs(model, found).find(|port| fails(model, *port) == Some(reason));
            match (failing, reason) {
                (Some(port), DropReason::NoSuchPort) => {
                    format!("an action sends it to port {}, which does not exist", number(port))
                }
                (Some(port), DropReason::PortDown) => {
                    let state = model.port(port).map_or("is down", not_up);
                    format!("an action sends it to {}, which {state}", port_text(model, port))
                }
                (Some(port), _) if model.port(port).is_some_and(|port| port.reserved) => {
                    format!("an action sends it to {}, which is reserved for a mirror", port_text(model, port))
                }
                (Some(port), _) => {
                    format!(
                        "an action sends it to {}, which is set not to forward (NO_FWD)",
                        port_text(model, port)
                    )
                }
                (None, DropReason::PortDown) if found.steps.is_empty() => {
                    "the port that its key or tag leads to cannot be used (it is down, set not to forward, missing, or \
                     the ingress port), and there is no usable backup port"
                        .into()
                }
                (None, _) => reason.meaning().into(),
            }
        }
        DropReason::IngressPort => format!(
            "an action sends it to port {}, its ingress port; only output:IN_PORT can do that",
            found.in_port
        ),
        DropReason::Runt => format!("it has {} bytes, but an Ethernet header has 14", found.frame.len()),
        _ => sentence(reason.meaning()),
    }
}

/// Answer for a path of the workers, of a datapath whose packets a device forwards.
fn in_device() -> (bool, String) {
    (false, "a device forwards the packets of this datapath".into())
}

/// Returns whether the fast-forwarding path alone can forward the packet, and the reason.
pub fn fast<P: TracedPlane>(model: &mut Model<P>, found: &Trace, ways: &Ways) -> (bool, String) {
    let Some(plane) = model.plane_mut().workers() else { return in_device() };
    if plane.lut_entries() == 0 {
        return (false, "the path is off (datapath.ffp.enabled)".into());
    }
    let mut luts: Vec<TableId> = Vec::new();
    for step in &found.steps {
        let Some(way) = ways.get(&step.table) else {
            return (
                false,
                format!("it leaves the path at table {}, which has no low-latency entry", step.table),
            );
        };
        match &step.entry {
            None => return (false, format!("it leaves the path at table {}, which it misses", step.table)),
            Some(entry) if !entry.low_latency => {
                let table = step.table;
                return (false, format!("it leaves the path at table {table}, where it hits a normal entry"));
            }
            Some(_) if step.index.is_some() && *way == "lut" => {
                return (
                    false,
                    format!("it leaves the path at table {}, which it enters by index", step.table),
                );
            }
            Some(_) if *way == "lut" => luts.push(step.table),
            Some(_) => {}
        }
    }
    match (found.steps.is_empty(), luts.is_empty()) {
        (true, _) if found.processed.outcome == Outcome::Forwarded => {
            (false, "stateless forwarding sends it, before any table".into())
        }
        (true, _) => (false, "it does not reach the tables".into()),
        (false, true) => (true, "all its tables are shared by the path".into()),
        (false, false) => {
            (true, format!("once its values have records in the LUTs of {}", list("table", &luts)))
        }
    }
}

/// Returns whether a path record can forward the packet, and the reason.
pub fn express<P: TracedPlane>(model: &mut Model<P>, found: &Trace) -> (bool, String) {
    let Some(plane) = model.plane_mut().workers() else { return in_device() };
    if plane.express_records() == 0 {
        return (false, "the path is off (datapath.express.enabled)".into());
    }
    if plane.express_plan().reader().is_none() {
        return (false, "its key would be too long for a record".into());
    }
    if found.steps.is_empty() {
        return (false, "it does not reach the tables".into());
    }
    let entries: Vec<Option<EntryId>> =
        found.steps.iter().map(|step| Some(step.entry.as_ref()?.id)).collect();
    let tables: Vec<TableId> = found.steps.iter().map(|step| step.table).collect();
    if plane.has_path_record(&entries) {
        (true, format!("once its flow has a record, which names the entries of {}", list("table", &tables)))
    } else {
        (false, "its key does not determine which entries it hits".into())
    }
}

/// Returns whether the packet waits in the port cache while its flow has no path record, and the reason.
/// `express` is whether a path record can forward the packet.
pub fn port_cache<P: TracedPlane>(model: &mut Model<P>, found: &Trace, express: bool) -> (bool, String) {
    let Some(plane) = model.plane_mut().workers() else { return in_device() };
    if plane.port_cache().is_none() {
        return (false, "the cache is off (datapath.port_cache.mode)".into());
    }
    if plane.express_plan().reader().is_none() || found.steps.is_empty() {
        return (false, "it has no key of a path record".into());
    }
    if express {
        (true, "it waits until its flow has a record, and later packets of the flow wait behind it".into())
    } else {
        (
            true,
            "it waits for the first search; its flow gets no record, so later packets pass for a while"
                .into(),
        )
    }
}

/// Returns notes on what the switch would learn, and on what a trace cannot determine.
pub fn notes<D: DataPlane>(model: &Model<D>, found: &Trace) -> Vec<String> {
    let mut notes = Vec::from_iter(model.worked(found).map(worked));
    for learned in &found.processed.learn {
        let mac: Vec<String> =
            learned.mac.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect();
        let vlan = if learned.vid == 0 { String::new() } else { format!(" in VLAN {}", learned.vid) };
        notes.push(format!(
            "from a real packet, NORMAL would learn that {}{vlan} is at port {}",
            mac.join(":"),
            learned.port
        ));
    }
    for meter in meters(found) {
        notes.push(format!(
            "meter {meter} passes every traced packet unchanged; real packets above its rate are dropped or remarked"
        ));
    }
    notes
}

/// Describes the label or gate that the stateless forwarder computed.
fn worked(worked: Worked) -> String {
    match worked {
        Worked::Label(id, label, what) => {
            let arithmetic = match id.arithmetic() {
                Arithmetic::Integer => format!("ID {}", id.modulus()),
                Arithmetic::Polynomial => format!("polynomial {:#x}", id.modulus()),
            };
            let what = match what {
                None => "which is not configured".into(),
                Some(Label::Tables) => "this switch's tables".into(),
                Some(Label::Port(port)) => format!("port {}", number(port)),
            };
            format!("its key modulo the {arithmetic} is the label {label}: {what}")
        }
        Worked::Gate(gate, port) => {
            let port = port.map_or("no port has it".into(), |port| format!("that of port {}", number(port)));
            format!("its tag leads to the gate {gate}: {port}")
        }
    }
}

/// Returns the meters that the packet passes.
pub fn meters(found: &Trace) -> impl Iterator<Item = MeterId> + '_ {
    found.steps.iter().filter_map(|step| step.entry.as_ref()?.instructions.meter)
}

/// Returns the ports to which the hit entries output, directly or through groups.
fn outputs<'a, D: DataPlane>(model: &'a Model<D>, found: &'a Trace) -> impl Iterator<Item = PortNo> + 'a {
    let hit = found.steps.iter().filter_map(|step| step.entry.as_deref());
    let of_entry = |entry: &'a FlowEntry| entry.instructions.apply.iter().chain(&entry.instructions.write);
    let groups =
        found.processed.groups.iter().filter_map(|(id, used)| Some((model.group_numbered(*id)?, used)));
    let of_groups = groups.flat_map(|(group, used)| {
        used.iter().filter_map(|at| group.buckets.get(*at)).flat_map(|bucket| &bucket.actions)
    });
    hit.flat_map(of_entry).chain(of_groups).filter_map(|action| match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    })
}

/// Returns the reason why output to a port fails, or `None` if it succeeds.
fn fails<D: DataPlane>(model: &Model<D>, port: PortNo) -> Option<DropReason> {
    match port {
        port_no::IN_PORT | port_no::ALL | port_no::FLOOD | port_no::NORMAL | port_no::CONTROLLER => {
            return None;
        }
        _ => {}
    }
    match model.port(port) {
        None => Some(DropReason::NoSuchPort),
        Some(port) if !port.is_up() => Some(DropReason::PortDown),
        Some(port) if port.no_fwd() => Some(DropReason::PortNotForwarding),
        Some(_) => None,
    }
}

/// Returns why a port drops the packets that it receives, as the end of a sentence.
fn not_receiving(port: &Port) -> &'static str {
    match port {
        Port { reserved: true, .. } => "is reserved for a mirror",
        Port { config: PortConfig { no_recv: true, .. }, .. } => "is set not to receive (NO_RECV)",
        _ => not_up(port),
    }
}

/// Returns why a port is not up, as the end of a sentence.
fn not_up(port: &Port) -> &'static str {
    match port {
        Port { config: PortConfig { down: true, .. }, .. } => "is set down (PORT_DOWN)",
        Port { is_blocked: true, .. } => "is closed by its storm limit (BLOCKED)",
        _ => "has no link",
    }
}

fn port_text<D: DataPlane>(model: &Model<D>, port: PortNo) -> String {
    match model.port(port) {
        Some(known) => format!("port {port} ({})", known.desc.name),
        None => format!("port {port}"),
    }
}

fn number(port: PortNo) -> String {
    port_no::reserved_name(port).map_or_else(|| port.to_string(), str::to_owned)
}

fn entries(count: usize) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// Prepares a text to continue a sentence: removes its full stop, and makes its first letter lower case.
fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    match (chars.next(), text.chars().nth(1)) {
        // Names of actions and ports stay in upper case.
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// Formats a list such as "port 1", "ports 1 and 2" or "ports 1, 2 and 3".
fn list(thing: &str, numbers: &[impl ToString]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        None => format!("no {thing}"),
        Some((one, [])) => format!("{thing} {one}"),
        Some((last, others)) => format!("{thing}s {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_that_stops_a_port_is_named() {
        let closed = Port { is_blocked: true, link_up: true, ..Port::default() };
        let down = PortConfig { down: true, ..PortConfig::default() };
        let no_recv = PortConfig { no_recv: true, ..PortConfig::default() };
        for (port, expected) in [
            (Port { link_up: false, ..Port::default() }, "has no link"),
            (closed.clone(), "is closed by its storm limit (BLOCKED)"),
            (Port { config: down, ..closed.clone() }, "is set down (PORT_DOWN)"),
            (Port { config: no_recv, ..closed.clone() }, "is set not to receive (NO_RECV)"),
            (Port { reserved: true, ..closed }, "is reserved for a mirror"),
        ] {
            assert_eq!(not_receiving(&port), expected);
        }
    }
}
