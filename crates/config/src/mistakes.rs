// SPDX-License-Identifier: Apache-2.0
//! Mistakes in a file, each with its place and key.

use crate::places::{TextPlace, Tree, offset_of};
use std::fmt;
use std::path::{Path, PathBuf};

/// Maximum number of mistakes that are printed one by one.
const SHOWN: usize = 20;

/// A mistake in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Place in the text, if known.
    pub place: Option<TextPlace>,
    /// Path of the key, such as `datapath.port[2].workers`. It is empty if the key is unknown.
    pub key: String,
    /// Description of the mistake and how to fix it.
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

/// Mistakes found while a file is checked.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Adds a mistake. Only the first mistake of each key is kept.
    pub fn add(&mut self, mistake: Mistake) {
        if mistake.key.is_empty() || !self.0.iter().any(|other| other.key == mistake.key) {
            self.0.push(mistake);
        }
    }

    /// Returns the value in `checked`. If there is a mistake instead, adds it and returns `None`.
    pub fn take<T>(&mut self, checked: Result<T, Mistake>) -> Option<T> {
        checked.map_err(|mistake| self.add(mistake)).ok()
    }

    /// Returns a key's value, or adds a mistake for the key and returns `None`.
    pub fn at<T>(&mut self, key: impl Into<String>, value: Result<T, String>) -> Option<T> {
        self.take(at(key, value))
    }

    /// Adds a mistake for a key.
    pub fn wrong(&mut self, key: impl Into<String>, problem: impl Into<String>) {
        self.add(wrong(key, problem));
    }

    /// Returns the value of a required key. If the key is missing, adds a mistake that shows `example`.
    pub fn needed<T>(&mut self, key: impl Into<String>, value: Option<T>, example: &str) -> Option<T> {
        self.at(key, value.ok_or_else(|| format!("is missing; write {example}")))
    }

    /// Returns whether there are no mistakes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of mistakes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all mistakes in the order of the text. Mistakes without a place come last.
    pub(crate) fn in_order(mut self, text: &str, tree: &Tree<'_>) -> Vec<Mistake> {
        for mistake in self.0.iter_mut().filter(|mistake| mistake.place.is_none()) {
            let offset = offset_of(tree, &mistake.key);
            mistake.place = offset.map(|offset| TextPlace::of(text.as_bytes(), offset));
        }
        self.0.sort_by_key(|mistake| (mistake.place.is_none(), mistake.place));
        self.0
    }
}

/// Returns a key's value, or converts the error text to a mistake for this key.
///
/// # Errors
///
/// Returns the mistake.
pub fn at<T>(key: impl Into<String>, value: Result<T, String>) -> Result<T, Mistake> {
    value.map_err(|problem| wrong(key, problem))
}

/// Returns a mistake in a key or its value.
pub fn wrong(key: impl Into<String>, problem: impl Into<String>) -> Mistake {
    Mistake { place: None, key: key.into(), problem: problem.into() }
}

/// Mistakes of a file.
///
/// Each mistake is printed as one line: `FILE:LINE:COLUMN: KEY: PROBLEM; REMEDY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMistakes {
    path: PathBuf,
    list: Vec<Mistake>,
}

impl std::error::Error for FileMistakes {}

impl FileMistakes {
    /// Creates the list of mistakes of the file at `path`. The list must not be empty.
    #[must_use]
    pub fn new(path: &Path, list: Vec<Mistake>) -> Self {
        Self { path: path.into(), list }
    }

    /// Returns all mistakes in the order of the text.
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
