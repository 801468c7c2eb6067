// SPDX-License-Identifier: Apache-2.0
//! Scheduled changes of a network: failures, repairs, and a renumbering.

use super::file::{FailureSection, Renumber};
use super::plan::{Graph, Setups};
use config::Mistake;
use config::mistakes::{at, wrong};
use config::value::duration;
use flow::{Nanos, PortNo};
use sim::network::{Act, End};

/// Latest time of a change, in ns: one hour after the start.
const LATEST_NS: Nanos = Nanos(3_600_000_000_000);

/// Part of a network that can fail, with its index.
#[derive(Clone, Copy)]
enum Part {
    Link(usize),
    Node(usize),
}

/// Parses the time in `text`, the value of a required key. Returns nanoseconds.
fn needed_time(key: &str, text: Option<&String>) -> Result<Nanos, Mistake> {
    time(key, text.ok_or_else(|| wrong(key, "is missing; write at = \"10ms\""))?)
}

fn time(key: &str, text: &str) -> Result<Nanos, Mistake> {
    let refuse = |ns| {
        if ns <= LATEST_NS { Ok(ns) } else { Err(format!("\"{text}\" is too long; use at most \"1h\"")) }
    };
    at(key, duration(text).and_then(refuse))
}

/// Returns the failures and repairs that entry `n` of the failure list describes, with their times in ns.
pub fn failure(
    n: usize,
    failure: &FailureSection,
    graph: &Graph,
    detection_ns: Nanos,
) -> Result<Vec<(Nanos, Act)>, Mistake> {
    let key = |name: &str| format!("network.failure[{n}].{name}");
    let first_ns = needed_time(&key("at"), failure.at.as_ref())?;
    let lasting_ns = failure.lasting.as_ref().map(|text| time(&key("lasting"), text)).transpose()?;
    let node = |name: &str, of: &str| {
        graph.place(name).ok_or_else(|| wrong(key(of), format!("\"{name}\" is not a switch of the plan")))
    };
    let parts: Vec<Part> = match (&failure.link, &failure.node, failure.each.as_deref()) {
        (Some([a, b]), None, None) => {
            let ends = [node(a, "link")?, node(b, "link")?];
            link_between(graph, ends, [a, b], failure.port, &key)?.into_iter().collect()
        }
        (None, Some(name), None) => vec![Part::Node(node(name, "node")?)],
        (None, None, Some("link")) => (0..graph.links.len()).map(Part::Link).collect(),
        (None, None, Some("node")) => (0..graph.switches.len()).map(Part::Node).collect(),
        (None, None, Some(other)) => {
            return Err(wrong(key("each"), format!("\"{other}\" is unknown; use \"link\" or \"node\"")));
        }
        _ => return Err(wrong(format!("network.failure[{n}]"), "needs exactly one of link, node and each")),
    };
    if failure.port.is_some() && failure.link.is_none() {
        return Err(wrong(key("port"), "has no effect without link; leave it out"));
    }
    let every_ns = interval(failure, lasting_ns, detection_ns, &key)?;
    let mut acts = Vec::with_capacity(2 * parts.len());
    for (place, part) in parts.into_iter().enumerate() {
        let from_ns = first_ns + place as u64 * every_ns;
        let act = |works| match part {
            Part::Link(link) => Act::Link { link, works },
            Part::Node(node) => Act::Node { node, works },
        };
        acts.push((from_ns, act(false)));
        acts.extend(lasting_ns.map(|lasting_ns| (from_ns + lasting_ns, act(true))));
    }
    Ok(acts)
}

/// Returns the link between two switches. If there are several links, `port` selects the one at this port of
/// the first switch.
fn link_between(
    graph: &Graph,
    ends: [usize; 2],
    [a, b]: [&String; 2],
    port: Option<i64>,
    key: &dyn Fn(&str) -> String,
) -> Result<Option<Part>, Mistake> {
    // Ports of the first switch that lead to the second one.
    let joins = |port: &&PortNo| {
        graph.peer(End { node: ends[0], port: **port }).is_some_and(|peer| peer.node == ends[1])
    };
    let ports: Vec<PortNo> = graph.trusted[ends[0]].iter().filter(joins).copied().collect();
    let listed = ports.iter().map(PortNo::to_string).collect::<Vec<_>>().join(" and ");
    let port = match (port, &ports[..]) {
        (_, []) => return Err(wrong(key("link"), format!("there is no link between {a} and {b}"))),
        (None, [one]) => *one,
        (None, _) => {
            let problem = format!("is missing: links to {b} are at the ports {listed} of {a}");
            return Err(wrong(key("port"), problem));
        }
        (Some(asked), _) => {
            let port = ports.iter().copied().find(|port| i64::from(port.0) == asked);
            port.ok_or_else(|| {
                wrong(
                    key("port"),
                    format!("{asked} of {a} has no link to {b}; use a port with a link, {listed}"),
                )
            })?
        }
    };
    Ok(graph.link_at.get(&End { node: ends[0], port }).map(|link| Part::Link(*link)))
}

/// Returns the time between two failures of an `each` list, in ns. Returns 0 if there is no such list.
fn interval(
    failure: &FailureSection,
    lasting_ns: Option<Nanos>,
    detection_ns: Nanos,
    key: &dyn Fn(&str) -> String,
) -> Result<Nanos, Mistake> {
    if failure.each.is_none() {
        return match failure.every {
            Some(_) => Err(wrong(key("every"), "has no effect without each; leave it out")),
            None => Ok(Nanos::ZERO),
        };
    }
    let Some(lasting_ns) = lasting_ns else {
        return Err(wrong(
            key("lasting"),
            "is missing: each part must be repaired before the next one fails",
        ));
    };
    let every_ns = match &failure.every {
        Some(text) => time(&key("every"), text)?,
        None => 2 * lasting_ns,
    };
    let least_ns = lasting_ns + detection_ns;
    if every_ns <= least_ns {
        let problem =
            format!("is {every_ns} ns; a repair is detected {least_ns} ns after the failure, so use more");
        return Err(wrong(key("every"), problem));
    }
    Ok(every_ns)
}

/// Returns the steps of a renumbering, with their times in ns. In each step, every switch changes at a random
/// time within the step's spread.
pub fn renumber(section: &Renumber, stages: Vec<Setups>, seed: u64) -> Result<Vec<(Nanos, Act)>, Mistake> {
    let key = |name: &str| format!("network.renumber.{name}");
    let first_ns = needed_time(&key("at"), section.at.as_ref())?;
    let step_ns = time(&key("step"), section.step.as_deref().unwrap_or("10ms"))?;
    let spread_ns = section.spread.as_ref().map_or(Ok(step_ns / 2), |text| time(&key("spread"), text))?;
    if spread_ns >= step_ns {
        let problem = format!(
            "is {spread_ns} ns; use less than step ({step_ns} ns), so that no step begins before the previous one ends"
        );
        return Err(wrong(key("spread"), problem));
    }
    let mut random = fastrand::Rng::with_seed(seed.rotate_left(32));
    let mut acts = Vec::new();
    for (number, setups) in stages.into_iter().enumerate() {
        for (node, setup) in setups.into_iter().enumerate() {
            if setup.changes.is_empty() && setup.stateless.is_none() {
                continue;
            }
            let at_ns = first_ns + number as u64 * step_ns + Nanos(random.u64(0..=spread_ns.0));
            acts.push((at_ns, Act::Configure { node, setup }));
        }
    }
    Ok(acts)
}
