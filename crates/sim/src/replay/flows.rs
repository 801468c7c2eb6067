// SPDX-License-Identifier: Apache-2.0
//! The flow file of a replay.

use crate::replay::ReplayError;
use flow::syntax::{FileLine, ParseOptions, SyntaxError, parse_line, read_pieces};
use flow::{Limits, PortNo};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Size in bytes of the pieces in which a flow file is parsed.
const PIECE_BYTES: usize = 64 * 1_024;

/// Contents of a flow file.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Flows, groups and meters.
    pub lines: Vec<FileLine>,
    /// Line number of each element of `lines`.
    pub line_of: Vec<u32>,
}

impl Flows {
    pub fn read(path: &Path) -> Result<Self, ReplayError> {
        let mut flows = Self::default();
        let mut wrong = None;
        let mut lines = 0;
        let read = File::open(path).and_then(|file| {
            read_pieces(BufReader::new(file), PIECE_BYTES, |piece| {
                flows.take(piece, &mut lines).map_err(|error| {
                    wrong = Some(error);
                    io::Error::from(io::ErrorKind::InvalidData)
                })?;
                if flows.lines.len() > Limits::ENTRIES {
                    let sentence =
                        format!("has more than {} flows, the maximum of a switch", Limits::ENTRIES);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
                }
                Ok(())
            })
        });
        match (wrong, read) {
            (Some(source), _) => Err(ReplayError::Syntax { path: path.to_path_buf(), source }),
            (None, Err(source)) => Err(ReplayError::ReadFlows { path: path.to_path_buf(), source }),
            (None, Ok(())) => Ok(flows),
        }
    }

    /// Parses complete lines. `lines` counts the lines parsed so far.
    fn take(&mut self, piece: &str, lines: &mut u32) -> Result<(), SyntaxError> {
        for line in piece.lines() {
            *lines = lines.saturating_add(1);
            if let Some(parsed) = parse_line(line, *lines, ParseOptions::default()) {
                self.lines.push(parsed?);
                self.line_of.push(*lines);
            }
        }
        Ok(())
    }

    /// Returns the ports that flows match or to which they send.
    pub fn ports(&self) -> BTreeSet<PortNo> {
        self.lines.iter().flat_map(FileLine::ports).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_that_flows_name_and_lines_are_found() {
        let mut flows = Flows::default();
        let mut lines = 0;
        for piece in [
            "# a comment\n\nin_port=4,ip actions=output:7,goto_table:1\n",
            "table=1 actions=output:CONTROLLER,write_actions(output:9) # 12\n",
            "meter meter=1 bands=type=drop rate=3\ngroup group_id=1,type=ff,bucket=watch_port:5,output:6\n",
        ] {
            flows.take(piece, &mut lines).unwrap();
        }
        assert_eq!(flows.ports().into_iter().collect::<Vec<_>>(), [4, 5, 6, 7, 9].map(PortNo));
        assert_eq!(flows.line_of, [3, 4, 5, 6]);
        assert_eq!(flows.take("actions=drop\nnonsense\n", &mut lines).unwrap_err().line, Some(8));
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = Flows::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero: cannot read the flows: line 1: is too long"), "{error}");
    }
}
