// SPDX-License-Identifier: Apache-2.0
//! Program that maps the labels of a key to its best rule by table lookups.

use super::simd::{Kernel, Paged};

/// Maximum number of labels held while a key is looked up.
const HELD_MAX: usize = 8;

/// A step of the program. `into` is the index of a held label.
#[derive(Debug)]
enum Step {
    /// Reads the label of a source.
    Read { source: u8, into: u8 },
    /// Joins the label at `into` with the next held label. The index into the table is one of them times
    /// `scale`, plus the other.
    Join { into: u8, swapped: bool, scale: u32, table: Paged },
}

/// Program from a key's labels to its best rule.
#[derive(Debug)]
pub(super) struct Ends {
    steps: Vec<Step>,
}

impl Ends {
    /// Compiles the tree of joins. Returns `None` if it would hold more than [`HELD_MAX`] labels.
    pub fn new(root: Node) -> Option<Self> {
        let mut steps = Vec::new();
        if usize::from(root.held()) > HELD_MAX {
            return None;
        }
        root.steps(0, &mut steps);
        Some(Self { steps })
    }

    /// Returns for each key of a group the index of its best rule's bit in the vectors, or the number of
    /// rules without a match. `read` stores the labels of a source.
    #[inline(always)]
    pub fn find<K: Kernel, const G: usize>(&self, kernel: K, read: impl Fn(u8, &mut [u32; G])) -> [u32; G] {
        let mut held = [[0; G]; HELD_MAX];
        for step in &self.steps {
            match step {
                Step::Read { source, into } => read(*source, &mut held[usize::from(*into) % HELD_MAX]),
                Step::Join { into, swapped, scale, table } => {
                    let into = usize::from(*into) % HELD_MAX;
                    let (mut number, mut fellow) = (held[into], held[(into + 1) % HELD_MAX]);
                    if *swapped {
                        (number, fellow) = (fellow, number);
                    }
                    kernel.join(table, *scale, &mut number, &fellow);
                    held[into] = number;
                }
            }
        }
        held[0]
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        let table = |step: &Step| if let Step::Join { table, .. } = step { table.bytes() } else { 0 };
        self.steps.iter().map(|step| size_of::<Step>() + table(step)).sum()
    }
}

/// Origin of a label.
pub(super) enum Node {
    Source(u8),
    /// Join of two labels. The index into the table is the first label times the number, plus the second
    /// label.
    Join(Box<(Node, Node)>, u32, Paged),
}

impl Node {
    pub fn join(first: Self, second: Self, scale: u32, table: Paged) -> Self {
        Self::Join(Box::new((first, second)), scale, table)
    }

    /// Returns the number of labels held while the label is computed.
    fn held(&self) -> u8 {
        match self {
            Self::Source(_) => 1,
            Self::Join(both, ..) => match (both.0.held(), both.1.held()) {
                (a, b) if a == b => a + 1,
                (a, b) => a.max(b),
            },
        }
    }

    /// Appends the steps that compute the label. The operand that needs more held labels comes first.
    fn steps(self, into: u8, steps: &mut Vec<Step>) {
        match self {
            Self::Source(source) => steps.push(Step::Read { source, into }),
            Self::Join(both, scale, table) => {
                let (mut first, mut second) = *both;
                let swapped = first.held() < second.held();
                if swapped {
                    (first, second) = (second, first);
                }
                first.steps(into, steps);
                second.steps(into + 1, steps);
                steps.push(Step::Join { into, swapped, scale, table });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::Portable;
    use super::*;

    fn table(entries: impl Iterator<Item = u16>) -> Paged {
        let items: Vec<u16> = entries.collect();
        let len = items.len();
        Paged::new(Vec::new(), items, 0, len).unwrap()
    }

    /// Returns a complete tree of joins of the given height.
    fn full(height: u32) -> Node {
        if height == 0 {
            return Node::Source(0);
        }
        Node::join(full(height - 1), full(height - 1), 1, table([0].into_iter()))
    }

    #[test]
    fn at_most_eight_labels_are_held() {
        assert!(Ends::new(full(7)).is_some());
        assert!(Ends::new(full(8)).is_none());
        // A chain of any length holds two labels.
        let chain = (0..100)
            .fold(Node::Source(0), |node, _| Node::join(Node::Source(1), node, 1, table([0].into_iter())));
        assert_eq!(chain.held(), 2);
    }

    #[test]
    fn the_index_of_a_join_is_the_first_label_times_the_scale_plus_the_second() {
        // Labels below 10 are joined into a decimal number, whichever operand needs more held labels.
        let digits =
            |first: Node, second: Node, scale: u32| Node::join(first, second, scale, table(0..1_000));
        let source = Node::Source;
        let left = digits(digits(source(3), source(1), 10), source(4), 10);
        let right = digits(source(3), digits(source(1), source(4), 10), 100);
        for node in [left, right] {
            let ends = Ends::new(node).unwrap();
            let found = ends.find::<_, 8>(Portable, |source, labels| {
                *labels = std::array::from_fn(|key| (u32::from(source) + key as u32) % 10);
            });
            assert_eq!(found, [314, 425, 536, 647, 758, 869, 970, 81]);
        }
    }

    #[test]
    fn a_program_reports_its_memory_size() {
        // Two labels are read and joined. The table has one entry and two unused ones.
        assert_eq!(Ends::new(full(1)).unwrap().bytes(), 3 * size_of::<Step>() + 3 * 2);
    }
}
