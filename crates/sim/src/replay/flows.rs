// SPDX-License-Identifier: Apache-2.0
//! The flow file of a replay.

use crate::replay::ReplayError;
use flow::syntax::{ParseOptions, SyntaxError, parse_flows, read_pieces};
use flow::{FlowMod, Limits, PortNo};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Bytes of a flow file that are parsed at a time.
const PIECE_BYTES: usize = 64 * 1_024;

/// Flows as they stand in a file.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub mods: Vec<FlowMod>,
    /// The line of each flow-mod.
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
                if flows.mods.len() > Limits::ENTRIES {
                    let sentence =
                        format!("has more than {} flows, the most a switch holds", Limits::ENTRIES);
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

    /// Takes whole lines; `lines` came before.
    fn take(&mut self, piece: &str, lines: &mut u32) -> Result<(), SyntaxError> {
        for line in piece.lines() {
            *lines = lines.saturating_add(1);
            match parse_flows(line, ParseOptions::default()).next() {
                None => {}
                Some(Ok(flow)) => {
                    self.mods.push(flow);
                    self.line_of.push(*lines);
                }
                Some(Err(error)) => return Err(SyntaxError { line: Some(*lines), ..error }),
            }
        }
        Ok(())
    }

    /// The ports that flows match or send to.
    pub fn ports(&self) -> BTreeSet<PortNo> {
        self.mods.iter().flat_map(FlowMod::ports).collect()
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
        ] {
            flows.take(piece, &mut lines).unwrap();
        }
        assert_eq!(flows.ports().into_iter().collect::<Vec<_>>(), [4, 7, 9]);
        assert_eq!(flows.line_of, [3, 4]);
        assert_eq!(flows.take("actions=drop\nnonsense\n", &mut lines).unwrap_err().line, Some(6));
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = Flows::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero: cannot read the flows: line 1: is too long"), "{error}");
    }
}
