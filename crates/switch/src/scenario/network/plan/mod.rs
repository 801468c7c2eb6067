// SPDX-License-Identifier: Apache-2.0
//! Plans as the planners write them (docs/planning.md), and what they mean for a network: how its switches are configured, and
//! what may be sent through it.

mod entries;
mod freertr;
mod graph;
mod keyflow;
mod tags;

pub use entries::mac;
pub use graph::Graph;

use flow::MatchError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sim::network::{Hop, Setup};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

/// Bytes of a file at most: more than any network that can be simulated needs.
const FILE_BYTES: u64 = 1 << 28;

/// What is wrong with a plan, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    place: String,
    problem: String,
}

impl Display for PlanError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => write!(f, "{}", self.problem),
            place => write!(f, "{place}: {}", self.problem),
        }
    }
}

impl From<MatchError> for PlanError {
    fn from(error: MatchError) -> Self {
        wrong("", error.to_string())
    }
}

fn wrong(place: impl Into<String>, problem: impl Into<String>) -> PlanError {
    PlanError { place: place.into(), problem: problem.into() }
}

/// A plan that was read and checked.
#[derive(Debug)]
pub enum Plan {
    /// Keys, by integers or polynomials.
    KeyFlow(keyflow::Plan),
    /// Tags of a fat tree.
    Tags(tags::Plan),
}

/// From one host to another, by places in the graph's list.
pub type Pair = (usize, usize);

/// How packets of a pair go.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Planned paths, one for each numbering; none if the plan does not tell.
    pub routes: Vec<Vec<Hop>>,
    /// Links that a packet may cross.
    pub hops_max: u32,
    /// Bits of the keys that it carries: of each the most that a key with the same IDs has, of freeRtr's what it has itself. Of a tag those of its UP and DOWN.
    pub key_bits: Vec<u32>,
}

/// What switches are configured with, by switch.
pub type Setups = Vec<Setup>;

#[derive(Debug, Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
    kind: Option<String>,
}

impl Plan {
    /// Reads a plan's file.
    pub fn open(path: &Path) -> Result<Self, PlanError> {
        let told = |error: std::io::Error| wrong("", format!("can not read the plan: {error}"));
        // A pipe may never end, and a device never be empty.
        if !std::fs::metadata(path).map_err(told)?.is_file() {
            return Err(wrong("", "is no regular file; name one that has a plan"));
        }
        let mut text = String::new();
        let file = File::open(path).map_err(told)?;
        file.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(told)?;
        if text.len() as u64 > FILE_BYTES {
            return Err(wrong("", format!("has more than {FILE_BYTES} bytes")));
        }
        Self::read(&text)
    }

    /// Reads a plan.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let head: Head = json(text)?;
        if head.format.as_deref() != Some("shunt-plan") {
            return Err(wrong("format", "is not \"shunt-plan\": this is no plan"));
        }
        if head.version != Some(1) {
            return Err(wrong("version", "is not 1, the only one that is known"));
        }
        match head.kind.as_deref() {
            Some("keyflow") => keyflow::Plan::new(json(text)?).map(Self::KeyFlow),
            Some("polka-freertr") => freertr::plan(json(text)?).map(Self::KeyFlow),
            Some("tag-and-forward") => tags::Plan::new(json(text)?).map(Self::Tags),
            other => {
                let other = other.unwrap_or_default();
                Err(wrong(
                    "kind",
                    format!("\"{other}\" is not simulated; keyflow, polka-freertr and tag-and-forward are"),
                ))
            }
        }
    }

    /// Its name in the report.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::KeyFlow(plan) => plan.kind(),
            Self::Tags(_) => "tag-and-forward",
        }
    }

    /// The network.
    pub fn graph(&self) -> &Graph {
        match self {
            Self::KeyFlow(plan) => &plan.graph,
            Self::Tags(plan) => &plan.graph,
        }
    }

    /// Whether it has a numbering to change to.
    pub fn renumbers(&self) -> bool {
        matches!(self, Self::KeyFlow(plan) if plan.plans.len() > 1)
    }

    /// Whether the pair's packets have a way.
    pub fn has(&self, pair: Pair) -> bool {
        match self {
            Self::KeyFlow(plan) => plan.has(pair),
            Self::Tags(plan) => plan.has(pair),
        }
    }

    /// Uses no more than so many paths of a pair.
    pub fn limit_paths(&mut self, most: usize) {
        if let Self::Tags(plan) = self {
            plan.paths_max = most;
        }
    }

    /// The switches that there is a way to, by that where it begins.
    pub fn targets(&self) -> BTreeMap<usize, Rc<[usize]>> {
        match self {
            Self::KeyFlow(plan) => plan.targets(),
            Self::Tags(plan) => plan.targets(),
        }
    }

    /// Paths that the pair's packets choose among, each taken by those of which the hash falls into its share; 1 if there is no
    /// choice.
    pub fn shares(&self, pair: Pair) -> usize {
        match self {
            Self::KeyFlow(_) => 1,
            Self::Tags(plan) => plan.shares(pair),
        }
    }

    /// How the pair's packets of a share go. `renumbered`: at first by the older numbering, and then by the other.
    pub fn way(&self, pair: Pair, share: usize, renumbered: bool) -> Way {
        match self {
            Self::KeyFlow(plan) => plan.way(pair, renumbered),
            Self::Tags(plan) => plan.way(pair, share),
        }
    }

    /// What switches are configured with for packets of these pairs: before the first packet, and if it is renumbered, in
    /// the three steps of that: both numberings are known, packets are led by the new one, the old one is forgotten.
    pub fn stages(&self, pairs: &[Pair], renumbered: bool) -> Result<Vec<Setups>, PlanError> {
        match self {
            Self::KeyFlow(plan) => plan.stages(pairs, renumbered),
            Self::Tags(plan) => Ok(vec![plan.setups(pairs)?]),
        }
    }
}

/// A document; what is wrong with it is told with its line.
fn json<T: DeserializeOwned>(text: &str) -> Result<T, PlanError> {
    serde_json::from_str(text).map_err(|error| wrong(String::new(), format!("is no such plan: {error}")))
}

#[cfg(test)]
mod tests;
