// SPDX-License-Identifier: Apache-2.0
//! Flow files: read in pieces, put into force as one bundle.

pub use flow::syntax::{LINE_BYTES, read_pieces};
use flow::syntax::{ParseOptions, parse_flows};
use flow::{FlowMod, Nanos, PortNo};
use model::{Changed, DataPlane, Model};
use std::collections::{BTreeSet, HashMap};

/// Mistakes that are told one by one.
const MISTAKES_TOLD: usize = 10;

/// Port numbers by name.
pub type PortNames = HashMap<String, PortNo>;

/// A flow file while it comes in.
#[derive(Debug, Default)]
pub struct FlowFile {
    names: PortNames,
    /// A line whose end has not come yet.
    partial: String,
    /// Lines parsed.
    lines: u32,
    mods: Vec<FlowMod>,
    /// The line of each flow-mod.
    line_of: Vec<u32>,
    mistakes: Vec<String>,
    more_mistakes: usize,
}

/// Why a flow file was refused: one sentence a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FlowFileError(String);

impl FlowFile {
    /// An empty file whose flows may call ports by these names.
    #[must_use]
    pub fn new(names: PortNames) -> Self {
        Self { names, ..Self::default() }
    }

    /// Takes the next piece of text, which may end anywhere.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            if self.partial.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.push_str(line);
                self.line(&whole);
            }
            rest = after;
        }
        // A line that is too long already need not be kept whole to be refused.
        if self.partial.len() <= LINE_BYTES {
            self.partial.push_str(rest);
        }
    }

    /// Flows read so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mods.len()
    }

    /// True if no flow was read so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mods.is_empty()
    }

    /// The ports that the flows read so far match or send to.
    #[must_use]
    pub fn ports(&self) -> BTreeSet<PortNo> {
        self.mods.iter().flat_map(FlowMod::ports).collect()
    }

    /// Puts all flows into force in one operation, or none.
    ///
    /// # Errors
    /// The mistakes in the text by their lines, or the first flow that the model refuses.
    pub fn apply<D: DataPlane>(mut self, model: &mut Model<D>, now: Nanos) -> Result<Changed, FlowFileError> {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line(&last);
        }
        if self.more_mistakes > 0 {
            self.mistakes.push(format!("... and {} more lines are wrong", self.more_mistakes));
        }
        if !self.mistakes.is_empty() {
            return Err(FlowFileError(self.mistakes.join("\n")));
        }
        let line_of = self.line_of;
        model.bundle(now, self.mods).map_err(|(at, error)| {
            FlowFileError(format!("line {}: {error}", line_of.get(at).copied().unwrap_or_default()))
        })
    }

    fn line(&mut self, line: &str) {
        self.lines = self.lines.saturating_add(1);
        if line.len() > LINE_BYTES {
            let number = self.lines;
            self.mistake(|| format!("line {number}: is longer than {LINE_BYTES} bytes; a flow is one line"));
            return;
        }
        let names = &self.names;
        let by_name = |name: &str| names.get(name).copied();
        let parsed = parse_flows(line, ParseOptions { port_names: &by_name }).next();
        match parsed {
            None => {}
            // After a mistake nothing comes into force; the rest is only looked through.
            Some(Ok(_)) if !self.mistakes.is_empty() => {}
            Some(Ok(mut flow)) => {
                // There may be millions of them until all are read.
                flow.instructions.apply.shrink_to_fit();
                flow.instructions.write.shrink_to_fit();
                self.mods.push(flow);
                self.line_of.push(self.lines);
            }
            Some(Err(mut error)) => {
                error.line = Some(self.lines);
                self.mistake(|| error.to_string());
            }
        }
    }

    fn mistake(&mut self, sentence: impl FnOnce() -> String) {
        self.mods = Vec::new();
        self.line_of = Vec::new();
        if self.mistakes.len() < MISTAKES_TOLD {
            self.mistakes.push(sentence());
        } else {
            self.more_mistakes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_may_end_anywhere_and_lines_keep_their_numbers() {
        let text = "# flows\nin_port=p7,actions=output:2\n\nin_port=3,actions=output:p7\nnonsense\n";
        for cut in 0..text.len() {
            let mut file = FlowFile::new(PortNames::from([("p7".to_owned(), 7)]));
            file.push(&text[..cut]);
            file.push(&text[cut..]);
            assert_eq!((file.lines, file.mistakes.len()), (5, 1), "{cut}");
            assert!(file.mistakes[0].starts_with("line 5, column 1: \"nonsense\""), "{}", file.mistakes[0]);
            assert!(file.is_empty());
        }
    }

    #[test]
    fn mistakes_are_told_up_to_a_number() {
        let mut file = FlowFile::default();
        file.push(&"in_port=1,actions=drop\n".repeat(3));
        assert_eq!(file.len(), 3);
        file.push(&"wrong\n".repeat(30));
        assert_eq!((file.mistakes.len(), file.more_mistakes), (MISTAKES_TOLD, 20));
    }

    #[test]
    fn a_line_without_end_does_not_grow_for_ever() {
        let mut file = FlowFile::default();
        for _ in 0..100 {
            file.push(&"x".repeat(10_000));
        }
        assert!(file.partial.len() < 2 * LINE_BYTES);
        file.push("\n");
        assert!(file.mistakes[0].starts_with("line 1: is longer than"), "{:?}", file.mistakes);
    }
}
