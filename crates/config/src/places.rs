// SPDX-License-Identifier: Apache-2.0
//! Tree of a TOML file, and the positions of its keys and values in the text.

use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Position in a text, as line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPlace {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl TextPlace {
    /// Returns the place of the byte at `offset`.
    pub fn of(text: &[u8], offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // UTF-8 continuation bytes have the form 10xxxxxx.
        let is_first = |byte: &&u8| **byte & 0xc0 != 0x80;
        Self {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: before[line_start..].iter().filter(is_first).count() + 1,
        }
    }
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A step from a table or list to one of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Path from the root of a file to a key or value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPath(Vec<Step>);

/// Tree of a TOML file.
pub type Tree<'t> = Spanned<DeTable<'t>>;

impl KeyPath {
    /// Returns the path to the key or value with this span. If there is none, returns the path to the
    /// innermost value that contains the first byte of the span.
    pub fn to(tree: &Tree<'_>, span: &Range<usize>) -> Self {
        let exact = |at: &Range<usize>| at == span;
        let around = |at: &Range<usize>| at.contains(&span.start);
        let mut way = Vec::new();
        if !search(tree.get_ref(), &exact, &mut way) && !search(tree.get_ref(), &around, &mut way) {
            way.clear();
        }
        Self(way)
    }

    /// Returns the keys of the path without indices, such as `datapath.port.workers`, and its last key.
    pub fn keys(&self) -> (String, &str) {
        let names: Vec<&str> = self.0.iter().filter_map(Step::name).collect();
        (names.join("."), names.last().copied().unwrap_or_default())
    }

    /// Returns the path up to the last key, in the notation of
    /// [`Mistake::key`](crate::mistakes::Mistake::key). A single datapath has no index.
    pub fn path(&self, tree: &Tree<'_>) -> String {
        path_of(&self.0[..self.to_last_key()], tree)
    }

    /// Returns the path of a missing `key` in the table at this path.
    pub fn path_within(&self, tree: &Tree<'_>, key: &str) -> String {
        let path = path_of(&self.0, tree);
        if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
    }

    /// Removes the last key of the path from the tree. Returns `false` if the key does not exist.
    pub fn remove(&self, tree: &mut Tree<'_>) -> bool {
        remove_from(tree.get_mut(), &self.0[..self.to_last_key()])
    }

    /// Returns the number of steps up to and including the last key.
    fn to_last_key(&self) -> usize {
        self.0.iter().rposition(|step| matches!(step, Step::Key(_))).map_or(0, |at| at + 1)
    }
}

impl Step {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Key(name) => Some(name),
            Self::Index(_) => None,
        }
    }
}

fn path_of(steps: &[Step], tree: &Tree<'_>) -> String {
    let only = only_datapath(tree);
    let mut path = String::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Key(name) if path.is_empty() => path.push_str(name),
            Step::Key(name) => path = format!("{path}.{name}"),
            Step::Index(_) if at == 1 && only && path == "datapath" => {}
            Step::Index(index) => path = format!("{path}[{index}]"),
        }
    }
    path
}

fn only_datapath(tree: &Tree<'_>) -> bool {
    let datapath = tree.get_ref().get("datapath");
    datapath.is_some_and(|value| value.get_ref().as_array().is_some_and(|list| list.len() == 1))
}

/// Removes the key at the end of `steps` from the table. The last step must be a key.
fn remove_from(table: &mut DeTable<'_>, steps: &[Step]) -> bool {
    match steps.split_first() {
        Some((Step::Key(name), [])) => table.remove(name.as_str()).is_some(),
        Some((Step::Key(name), rest)) => {
            table.get_mut(name.as_str()).is_some_and(|value| remove_within(value.get_mut(), rest))
        }
        _ => false,
    }
}

fn remove_within(value: &mut DeValue<'_>, steps: &[Step]) -> bool {
    match (value, steps.split_first()) {
        (DeValue::Array(list), Some((Step::Index(index), rest))) => {
            list.get_mut(*index).is_some_and(|element| remove_within(element.get_mut(), rest))
        }
        (DeValue::Table(table), _) => remove_from(table, steps),
        _ => false,
    }
}

/// Searches a table depth-first for a span that `is_right` accepts. Stores the path of this span in `way`.
fn search(table: &DeTable<'_>, is_right: &dyn Fn(&Range<usize>) -> bool, way: &mut Vec<Step>) -> bool {
    for (key, value) in table.iter() {
        way.push(Step::Key(key.get_ref().to_string()));
        // The value is searched first, because the innermost match is wanted.
        if search_value(value, is_right, way) || is_right(&key.span()) {
            return true;
        }
        way.pop();
    }
    false
}

fn search_value(
    value: &Spanned<DeValue<'_>>,
    is_right: &dyn Fn(&Range<usize>) -> bool,
    way: &mut Vec<Step>,
) -> bool {
    let within = match value.get_ref() {
        DeValue::Table(table) => search(table, is_right, way),
        DeValue::Array(list) => list.iter().enumerate().any(|(index, element)| {
            way.push(Step::Index(index));
            let found = search_value(element, is_right, way);
            if !found {
                way.pop();
            }
            found
        }),
        _ => false,
    };
    within || is_right(&value.span())
}

/// Returns the byte offset of the value at a path such as `datapath.port[2].workers`, or of the innermost
/// existing part of the path. A list of tables without an index means its first table.
pub fn offset_of(tree: &Tree<'_>, path: &str) -> Option<usize> {
    let mut table = Some(tree.get_ref());
    let mut found = None;
    for part in path.split('.') {
        let (name, numbers) = part.split_once('[').unwrap_or((part, ""));
        let Some((key, value)) = table?.get_key_value(name) else { return found };
        let mut value = value;
        // The value of a table without its own header has an empty span.
        found = Some(if value.span().is_empty() { key.span().start } else { value.span().start });
        for number in numbers.split(['[', ']']).filter_map(|number| number.parse::<usize>().ok()) {
            let Some(element) = value.get_ref().as_array().and_then(|list| list.get(number)) else {
                return found;
            };
            value = element;
            found = Some(value.span().start);
        }
        let first = value.get_ref().as_array().and_then(|list| list.first());
        table = value.get_ref().as_table().or_else(|| first.and_then(|first| first.get_ref().as_table()));
        if table.is_none() {
            return found;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1 # \u{e4}\n[[datapath]]\nid = 7\nx = \"\u{e4}\" \n[datapath.lanes]\nquiet = \"1s\"\n\
                        [[datapath.port]]\nworkers = [0, 1]\n[[datapath.port]]\nlearn = { window = 3 }\n";

    fn at(path: &str) -> Option<(usize, usize)> {
        let tree = DeTable::parse(TEXT).unwrap();
        offset_of(&tree, path)
            .map(|offset| TextPlace::of(TEXT.as_bytes(), offset))
            .map(|at| (at.line, at.column))
    }

    #[test]
    fn paths_lead_to_places() {
        for (path, place) in [
            ("a", Some((1, 5))),
            ("datapath", Some((2, 1))),
            ("datapath[0].id", Some((3, 6))),
            ("datapath.lanes", Some((5, 1))),
            ("datapath.lanes.quiet", Some((6, 9))),
            ("datapath.lanes.hold", Some((5, 1))),
            ("datapath.port[0].workers", Some((8, 11))),
            ("datapath.port[0].workers[1]", Some((8, 15))),
            ("datapath.port[0].workers[2]", Some((8, 11))),
            ("datapath.port[1]", Some((9, 1))),
            ("datapath.port[1].name", Some((9, 1))),
            ("datapath.port[1].learn.window", Some((10, 20))),
            ("datapath.port[2].name", Some((7, 1))),
            ("worker", None),
        ] {
            assert_eq!(at(path), place, "{path}");
        }
        assert_eq!(
            TextPlace::of(TEXT.as_bytes(), TEXT.find("\" \n").unwrap()),
            TextPlace { line: 4, column: 7 }
        );
    }

    #[test]
    fn spans_lead_to_keys_which_can_be_removed() {
        let mut tree = DeTable::parse(TEXT).unwrap();
        let span = |part: &str| {
            let from = TEXT.find(part).unwrap();
            from..from + part.len()
        };
        for (part, path) in [
            ("quiet", "datapath.lanes.quiet"),
            ("\"1s\"", "datapath.lanes.quiet"),
            ("1]", "datapath.port[0].workers"),
            ("3", "datapath.port[1].learn.window"),
            ("workers", "datapath.port[0].workers"),
        ] {
            let way = KeyPath::to(&tree, &span(part));
            assert_eq!(way.path(&tree), path, "{part}");
        }
        let way = KeyPath::to(&tree, &span("3"));
        assert_eq!(way.keys(), ("datapath.port.learn.window".to_owned(), "window"));
        assert!(way.remove(&mut tree) && !way.remove(&mut tree));
        assert_eq!(
            offset_of(&tree, "datapath.port[1].learn.window"),
            offset_of(&tree, "datapath.port[1].learn")
        );
        assert_eq!(KeyPath::to(&tree, &(TEXT.len()..TEXT.len())).path(&tree), "");
        let port = KeyPath::to(&tree, &offset_of(&tree, "datapath.port[1]").map(|at| at..at + 17).unwrap());
        assert_eq!(port.path_within(&tree, "name"), "datapath.port[1].name");
    }
}
