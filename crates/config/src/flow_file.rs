// SPDX-License-Identifier: Apache-2.0
//! Flow files: flows, groups and meters that are read in pieces and loaded as one bundle.

use dataplane::DataPlane;
use flow::syntax::{FileLine, ParseOptions, parse_line};
pub use flow::syntax::{LINE_BYTES, PIECE_BYTES, read_pieces};
use flow::{Limits, Nanos, PortNo};
use model::{Changed, Model, ModelConfig, PortDesc};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use worker::WorkerSet;

/// Maximum number of mistakes that are reported one by one.
const MISTAKES_SHOWN: usize = 20;

/// Port numbers by port name.
pub type PortNames = HashMap<String, PortNo>;

/// Returns the port numbers of a model by port name.
#[must_use]
pub fn port_names<D: DataPlane>(model: &Model<D>) -> PortNames {
    model.ports().map(|port| (port.desc.name.clone(), port.desc.number)).collect()
}

/// A flow file that is being read. Begin with [`FlowFile::read`] and [`FlowFile::apply`].
#[derive(Debug, Default)]
pub struct FlowFile {
    names: PortNames,
    /// Beginning of a line whose end has not been read yet.
    partial: String,
    /// Number of lines parsed.
    lines: u32,
    /// Flows, groups and meters read so far.
    asked: Vec<FileLine>,
    /// Line number of each element of `asked`.
    line_of: Vec<u32>,
    mistakes: Mistakes,
}

/// Mistakes in the lines of a file.
#[derive(Debug, Default)]
struct Mistakes {
    /// First `MISTAKES_SHOWN` mistakes.
    reported: Vec<String>,
    more: usize,
}

impl Mistakes {
    fn add(&mut self, sentence: impl FnOnce() -> String) {
        if self.reported.len() < MISTAKES_SHOWN {
            self.reported.push(sentence());
        } else {
            self.more += 1;
        }
    }

    fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }

    /// Returns an error if there are mistakes.
    fn refuse(&mut self) -> Result<(), FlowFileError> {
        let mut reported = std::mem::take(&mut self.reported);
        if self.more > 0 {
            reported.push(format!("... and {} more lines have errors", self.more));
        }
        if reported.is_empty() { Ok(()) } else { Err(FlowFileError(reported.join("\n"))) }
    }
}

/// Error for a refused flow file. Each line of the text is one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FlowFileError(String);

impl FlowFileError {
    /// Returns the error's lines, each of which begins with the file's name.
    #[must_use]
    pub fn of(&self, path: &Path) -> String {
        let lines: Vec<String> = self.0.lines().map(|line| format!("{}: {line}", path.display())).collect();
        lines.join("\n")
    }
}

impl FlowFile {
    /// Creates an empty flow file. Its lines may refer to ports by the names in `names`.
    #[must_use]
    pub fn new(names: PortNames) -> Self {
        Self { names, ..Self::default() }
    }

    /// Reads a file whose flows refer to ports by number only.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FlowFile::read`], with [`Limits::ENTRIES`] as the limit.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = Self::default();
        file.read(BufReader::new(File::open(path)?), Limits::ENTRIES)?;
        Ok(file)
    }

    /// Parses the whole text of a file.
    ///
    /// # Errors
    ///
    /// Returns an error of the reader, or an error if the file is not text or has more than `limit` flows,
    /// groups and meters.
    pub fn read(&mut self, reader: impl BufRead, limit: usize) -> io::Result<()> {
        read_pieces(reader, PIECE_BYTES, |piece| {
            self.push(piece);
            self.check_len(limit)
        })?;
        self.end_line();
        self.check_len(limit)
    }

    fn check_len(&self, limit: usize) -> io::Result<()> {
        if self.len() <= limit {
            return Ok(());
        }
        let sentence =
            format!("has more than {limit} flows, groups and meters; a switch holds at most {limit} flows");
        Err(io::Error::new(io::ErrorKind::InvalidData, sentence))
    }

    /// Parses the next piece of text, which may end within a line.
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
        // A line that is too long is refused, so the rest of it is not kept.
        if self.partial.len() <= LINE_BYTES {
            self.partial.push_str(rest);
        }
    }

    /// Returns the number of flows, groups and meters read so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    /// Returns whether no flow, group or meter has been read so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Returns the ports that outputs, matches and buckets name.
    #[must_use]
    pub fn ports(&self) -> BTreeSet<PortNo> {
        self.asked.iter().flat_map(FileLine::ports).collect()
    }

    /// Returns the flows, groups and meters.
    ///
    /// # Errors
    ///
    /// Returns the mistakes in the text with their line numbers.
    pub fn into_lines(mut self) -> Result<Vec<FileLine>, FlowFileError> {
        self.finish()?;
        Ok(self.asked)
    }

    /// Loads the whole file in one operation, or loads nothing.
    ///
    /// # Errors
    ///
    /// Returns the mistakes in the text with their line numbers, or the first line that the model refuses.
    pub fn apply<D: DataPlane>(mut self, model: &mut Model<D>, now: Nanos) -> Result<Changed, FlowFileError> {
        self.finish()?;
        let line_of = self.line_of;
        model.bundle(now, self.asked).map_err(|(at, error)| {
            FlowFileError(format!("line {}: {error}", line_of.get(at).copied().unwrap_or_default()))
        })
    }

    /// Loads the whole file into a new model without workers. Its ports are up.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FlowFile::apply`], or the port that the model refuses.
    pub fn into_model(
        self,
        config: ModelConfig,
        ports: impl IntoIterator<Item = PortNo>,
    ) -> Result<Model<WorkerSet>, FlowFileError> {
        let mut model = Model::new(config, worker::without_workers(), Nanos(0));
        for number in ports {
            let desc = PortDesc { number, name: format!("port-{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).map_err(|error| FlowFileError(error.to_string()))?;
        }
        self.apply(&mut model, Nanos(0))?;
        Ok(model)
    }

    /// Checks the whole file. The model must not be used afterwards.
    ///
    /// # Errors
    ///
    /// Returns the mistakes in the text with their line numbers, or all lines that the model refuses. A line
    /// that depends on a refused line is also refused.
    pub fn check<D: DataPlane>(mut self, model: &mut Model<D>, now: Nanos) -> Result<Changed, FlowFileError> {
        self.finish()?;
        let again = self.asked.clone();
        let (at, refused) = match model.bundle(now, self.asked) {
            Ok(changed) => return Ok(changed),
            Err(refused) => refused,
        };
        let line = self.line_of.get(at).copied().unwrap_or_default();
        for (asked, line) in again.into_iter().zip(self.line_of) {
            if let Err(error) = model.change(now, asked.into()) {
                self.mistakes.add(|| format!("line {line}: {error}"));
            }
        }
        if self.mistakes.is_empty() {
            // Each line was accepted alone, so only the bundle as a whole is refused.
            self.mistakes.add(|| format!("line {line}: {refused}"));
        }
        self.mistakes.refuse().map(|()| Changed::default())
    }

    /// Parses the last line.
    ///
    /// # Errors
    ///
    /// Returns the mistakes in the text with their line numbers.
    pub fn finish(&mut self) -> Result<(), FlowFileError> {
        self.end_line();
        self.mistakes.refuse()
    }

    /// Parses the line that has no line feed yet.
    fn end_line(&mut self) {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line(&last);
        }
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
        match parse_line(line, self.lines, ParseOptions { port_names: &by_name }) {
            None => {}
            // After a mistake, the rest of the file is parsed only to find further mistakes.
            Some(Ok(_)) if !self.mistakes.is_empty() => {}
            Some(Ok(mut asked)) => {
                if let FileLine::Flow(flow) = &mut asked {
                    // A file may have millions of flows.
                    flow.instructions.apply.shrink_to_fit();
                    flow.instructions.write.shrink_to_fit();
                }
                self.asked.push(asked);
                self.line_of.push(self.lines);
            }
            Some(Err(error)) => self.mistake(|| error.to_string()),
        }
    }

    fn mistake(&mut self, sentence: impl FnOnce() -> String) {
        self.asked = Vec::new();
        self.line_of = Vec::new();
        self.mistakes.add(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{GroupId, MeterId};

    #[test]
    fn pieces_may_end_anywhere_and_lines_keep_their_numbers() {
        let text = "# flows\nin_port=p7,actions=output:2\n\nin_port=3,actions=output:p7\nnonsense\n";
        for cut in 0..text.len() {
            let mut file = FlowFile::new(PortNames::from([("p7".to_owned(), PortNo(7))]));
            file.push(&text[..cut]);
            file.push(&text[cut..]);
            assert_eq!((file.lines, file.mistakes.reported.len()), (5, 1), "{cut}");
            assert!(
                file.mistakes.reported[0].starts_with("line 5, column 1: \"nonsense\""),
                "{}",
                file.mistakes.reported[0]
            );
            assert!(file.is_empty());
        }
    }

    #[test]
    fn a_file_is_read_to_its_last_line_and_names_its_ports() {
        let text = "# a comment\n\nin_port=4,ip actions=output:7,goto_table:1\n\
                    table=1 actions=output:CONTROLLER,write_actions(output:9) # 12\n\
                    meter meter=1 bands=type=drop rate=3\n\
                    group group_id=1,type=ff,bucket=watch_port:5,output:6";
        let mut file = FlowFile::default();
        file.read(text.as_bytes(), 4).unwrap();
        assert_eq!(file.ports().into_iter().collect::<Vec<_>>(), [4, 5, 6, 7, 9].map(PortNo));
        assert_eq!(file.line_of, [3, 4, 5, 6]);
        file.finish().unwrap();
        let error = FlowFile::default().read(text.as_bytes(), 3).unwrap_err().to_string();
        assert!(error.starts_with("has more than 3 flows"), "{error}");
        let error = FlowFile::open(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("line 1: is too long"), "{error}");
    }

    #[test]
    fn mistakes_are_reported_up_to_a_limit() {
        let mut file = FlowFile::default();
        file.push(&"in_port=1,actions=drop\n".repeat(3));
        assert_eq!(file.len(), 3);
        file.push(&"wrong\n".repeat(40));
        assert_eq!((file.mistakes.reported.len(), file.mistakes.more), (MISTAKES_SHOWN, 20));
    }

    #[test]
    fn a_check_reports_every_line_that_the_model_refuses() {
        let text = "meter meter=1 bands=type=drop rate=9\ngroup group_id=1,type=all,bucket=group:2\n\
                    in_port=1,actions=meter:1,group:3\nin_port=2,actions=meter:2,output:1\nin_port=3,actions=output:1\n";
        let model = || Model::new(ModelConfig::default(), worker::without_workers(), Nanos(0));
        let file = |text: &str| {
            let mut file = FlowFile::default();
            file.push(text);
            file
        };
        let reported = file(text).check(&mut model(), Nanos(0)).unwrap_err().to_string();
        let lines: Vec<&str> = reported.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(lines, ["line 2", "line 3", "line 4"], "{reported}");
        let right = text.replace("group:2", "output:2").replace("group:3", "group:1").replace("meter:2,", "");
        assert_eq!(file(&right).check(&mut model(), Nanos(0)).unwrap().added, 3);
        let mut loaded = model();
        assert_eq!(file(&right).apply(&mut loaded, Nanos(0)).unwrap().added, 3);
        assert_eq!((loaded.group_ids(), loaded.meter_ids()), (vec![GroupId(1)], vec![MeterId(1)]));
    }

    #[test]
    fn an_endless_line_uses_bounded_memory() {
        let mut file = FlowFile::default();
        for _ in 0..100 {
            file.push(&"x".repeat(10_000));
        }
        assert!(file.partial.len() < 2 * LINE_BYTES);
        file.push("\n");
        assert!(
            file.mistakes.reported[0].starts_with("line 1: is longer than"),
            "{:?}",
            file.mistakes.reported
        );
    }
}
