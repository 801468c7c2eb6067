// SPDX-License-Identifier: Apache-2.0
//! Plans of the route planners (docs/planning.md), and the switch settings and routes that result from them.
//!
//! Begin with [`PathPlan::read`] and [`PathPlan::stages`].

mod entries;
#[cfg(test)]
pub mod examples;
mod freertr;
mod graph;
mod keyflow;
mod tags;

pub use entries::mac;
pub use graph::Graph;

use flow::MatchError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sim::network::{Hop, Layer, Setup};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

/// Maximum size of a plan's file in bytes.
const FILE_BYTES: u64 = 1 << 28;

/// A mistake in a plan, with its place in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlanError {
    place: String,
    problem: String,
}

impl Display for PathPlanError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => write!(f, "{}", self.problem),
            place => write!(f, "{place}: {}", self.problem),
        }
    }
}

impl From<MatchError> for PathPlanError {
    fn from(error: MatchError) -> Self {
        wrong("", error.to_string())
    }
}

fn wrong(place: impl Into<String>, problem: impl Into<String>) -> PathPlanError {
    PathPlanError { place: place.into(), problem: problem.into() }
}

/// Numberings of a plan that a run uses. A numbering consists of the switch IDs and keys of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numberings {
    /// Only the newest numbering.
    Newest,
    /// The older and the newer numbering. The network is renumbered during the run.
    Both,
}

/// A plan that has been read and checked.
#[derive(Debug)]
pub enum PathPlan {
    /// Keys with integer or polynomial arithmetic.
    KeyFlow(keyflow::KeyflowPlan),
    /// Tags of Tag-and-Forward in a fat tree.
    Tags(tags::TagPlan),
}

/// Indices of the source and the destination host in [`Graph::hosts`].
pub type Pair = (usize, usize);

/// Routes of the packets between a pair of hosts.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Planned paths, one for each numbering. The list is empty if the plan does not contain paths.
    pub routes: Vec<Vec<Hop>>,
    /// Maximum number of links that a packet may cross.
    pub hops_max: u32,
    /// Sizes in bits: of the largest key with the same IDs (KeyFlow), of the key itself (freeRtr), or of UP
    /// and DOWN together (tags).
    pub key_bits: Vec<u32>,
}

/// Settings of all switches, by the index of the switch.
pub type Setups = Vec<Setup>;

#[derive(Debug, Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
    kind: Option<String>,
}

impl PathPlan {
    /// Reads a plan from a file.
    pub fn open(path: &Path) -> Result<Self, PathPlanError> {
        let refuse = |error: std::io::Error| wrong("", format!("cannot read the plan: {error}"));
        // Only regular files are read, because a pipe or a device could deliver an unlimited amount of data.
        if !std::fs::metadata(path).map_err(refuse)?.is_file() {
            return Err(wrong("", "is not a regular file; name the file of a plan"));
        }
        let mut text = String::new();
        let file = File::open(path).map_err(refuse)?;
        file.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(refuse)?;
        if text.len() as u64 > FILE_BYTES {
            return Err(wrong("", format!("has more than {FILE_BYTES} bytes")));
        }
        Self::read(&text)
    }

    /// Parses a plan.
    pub fn read(text: &str) -> Result<Self, PathPlanError> {
        let head: Head = json(text)?;
        if head.format.as_deref() != Some("shunt-plan") {
            return Err(wrong("format", "is not \"shunt-plan\": this is not a plan"));
        }
        if head.version != Some(1) {
            return Err(wrong("version", "is not 1, the only supported version"));
        }
        match head.kind.as_deref() {
            Some("keyflow") => keyflow::KeyflowPlan::new(json(text)?).map(Self::KeyFlow),
            Some("polka-freertr") => freertr::plan(json(text)?).map(Self::KeyFlow),
            Some("tag-and-forward") => tags::TagPlan::new(json(text)?).map(Self::Tags),
            other => {
                let other = other.unwrap_or_default();
                Err(wrong(
                    "kind",
                    format!("\"{other}\" cannot be simulated; use keyflow, polka-freertr or tag-and-forward"),
                ))
            }
        }
    }

    /// Returns the kind of the plan, as named in the report.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::KeyFlow(plan) => plan.kind(),
            Self::Tags(_) => "tag-and-forward",
        }
    }

    /// Returns the network.
    pub fn graph(&self) -> &Graph {
        match self {
            Self::KeyFlow(plan) => &plan.graph,
            Self::Tags(plan) => &plan.graph,
        }
    }

    /// Returns the layer of a switch in a fat tree. Only tag plans have layers.
    pub fn layer(&self, node: usize) -> Option<Layer> {
        match self {
            Self::KeyFlow(_) => None,
            Self::Tags(plan) => plan.layer(node),
        }
    }

    /// Returns whether the plan has a second numbering, to which the network can change.
    pub fn renumbers(&self) -> bool {
        matches!(self, Self::KeyFlow(plan) if plan.plans.len() > 1)
    }

    /// Returns whether the plan has a route for the pair.
    pub fn has(&self, pair: Pair) -> bool {
        match self {
            Self::KeyFlow(plan) => plan.has(pair),
            Self::Tags(plan) => plan.has(pair),
        }
    }

    /// Limits the number of paths per pair. Only tag plans have several paths per pair.
    pub fn limit_paths(&mut self, most: usize) {
        if let Self::Tags(plan) = self {
            plan.paths_max = most;
        }
    }

    /// Returns the possible destination switches of each source switch. Pairs must still be checked with
    /// [`PathPlan::has`].
    pub fn targets(&self) -> BTreeMap<usize, Rc<[usize]>> {
        match self {
            Self::KeyFlow(plan) => plan.targets(),
            Self::Tags(plan) => plan.targets(),
        }
    }

    /// Returns the number of paths of a pair that has a route. Packets are distributed over the paths by
    /// their hashes.
    pub fn shares(&self, pair: Pair) -> usize {
        match self {
            Self::KeyFlow(_) => 1,
            Self::Tags(plan) => plan.shares(pair),
        }
    }

    /// Returns the route of the packets of `pair` that take path `share`. A KeyFlow plan returns the route in
    /// each of `numberings`.
    pub fn way(&self, pair: Pair, share: usize, numberings: Numberings) -> Way {
        match self {
            Self::KeyFlow(plan) => plan.way(pair, numberings),
            Self::Tags(plan) => plan.way(pair, share),
        }
    }

    /// Returns the switch settings for packets of these pairs, by stage. Stage 0 applies before the first
    /// packet. With both numberings, three stages follow: switches accept both numberings, packets get new
    /// keys, and switches drop the old numbering.
    pub fn stages(&self, pairs: &[Pair], numberings: Numberings) -> Result<Vec<Setups>, PathPlanError> {
        match self {
            Self::KeyFlow(plan) => plan.stages(pairs, numberings),
            Self::Tags(plan) => Ok(vec![plan.setups(pairs)?]),
        }
    }
}

/// Parses JSON. An error names the line.
fn json<T: DeserializeOwned>(text: &str) -> Result<T, PathPlanError> {
    serde_json::from_str(text).map_err(|error| wrong(String::new(), format!("is not a valid plan: {error}")))
}

#[cfg(test)]
mod tests;
