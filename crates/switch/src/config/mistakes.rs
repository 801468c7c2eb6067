// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a file, all of it.

use super::places::{Place, Tree, offset_of};
use std::fmt;
use std::path::{Path, PathBuf};

/// Mistakes that are shown one by one.
const SHOWN: usize = 20;

/// What is wrong in a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where, if that is known.
    pub place: Option<Place>,
    /// Path of the key, such as `datapath.port[2].workers`; empty where it is unknown.
    pub key: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

/// Mistakes while a file is checked. What is wrong with one key does not keep others from being checked.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Adds one. Of a key that is known to be wrong nothing else is said.
    pub fn add(&mut self, mistake: Mistake) {
        if mistake.key.is_empty() || !self.0.iter().any(|other| other.key == mistake.key) {
            self.0.push(mistake);
        }
    }

    /// The value of what was checked, or none and a mistake.
    pub fn take<T>(&mut self, checked: Result<T, Mistake>) -> Option<T> {
        checked.map_err(|mistake| self.add(mistake)).ok()
    }

    /// A key's value, or none and a mistake.
    pub fn at<T>(&mut self, key: impl Into<String>, value: Result<T, String>) -> Option<T> {
        self.take(at(key, value))
    }

    /// Says what is wrong with a key.
    pub fn wrong(&mut self, key: impl Into<String>, problem: impl Into<String>) {
        self.add(wrong(key, problem));
    }

    /// A key that must be there, or none and a mistake with what would be right.
    pub fn needed<T>(&mut self, key: impl Into<String>, value: Option<T>, example: &str) -> Option<T> {
        self.at(key, value.ok_or_else(|| format!("is missing; write {example}")))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All, in the order of the text; those without a place come last.
    pub fn in_order(mut self, text: &str, tree: &Tree<'_>) -> Vec<Mistake> {
        for mistake in self.0.iter_mut().filter(|mistake| mistake.place.is_none()) {
            let offset = offset_of(tree, &mistake.key);
            mistake.place = offset.map(|offset| Place::of(text.as_bytes(), offset));
        }
        self.0.sort_by_key(|mistake| (mistake.place.is_none(), mistake.place));
        self.0
    }
}

/// A key's value, or what is wrong with it.
pub(crate) fn at<T>(key: impl Into<String>, value: Result<T, String>) -> Result<T, Mistake> {
    value.map_err(|problem| wrong(key, problem))
}

/// What is wrong with a key.
pub(crate) fn wrong(key: impl Into<String>, problem: impl Into<String>) -> Mistake {
    Mistake { place: None, key: key.into(), problem: problem.into() }
}

/// The mistakes of a file; prints a line each: `FILE:LINE:COLUMN: KEY: what is wrong, and what would be right`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMistakes {
    path: PathBuf,
    list: Vec<Mistake>,
}

impl std::error::Error for FileMistakes {}

impl FileMistakes {
    /// Those of the file at `path`; there must be at least one.
    pub fn new(path: &Path, list: Vec<Mistake>) -> Self {
        Self { path: path.into(), list }
    }

    /// All of them, in the order of the text.
    #[must_use]
    pub fn list(&self) -> &[Mistake] {
        &self.list
    }
}

impl fmt::Display for FileMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        for (n, mistake) in self.list.iter().take(SHOWN).enumerate() {
            let end = if n == 0 { "" } else { "\n" };
            match mistake.place {
                Some(place) => write!(f, "{end}{path}:{place}: {mistake}")?,
                None => write!(f, "{end}{path}: {mistake}")?,
            }
        }
        match self.list.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            1 => write!(f, "\n{path}: 1 more mistake is not shown"),
            more => write!(f, "\n{path}: {more} more mistakes are not shown"),
        }
    }
}
