// SPDX-License-Identifier: Apache-2.0
//! The flow file of a replay.

use crate::replay::ReplayError;
use flow::syntax::{ParseOptions, parse_flows};
use flow::{Action, Field, FlowMod, PortNo, port_no};
use std::collections::BTreeSet;
use std::path::Path;

/// Flows as they stand in a file.
pub(super) struct Flows {
    pub text: String,
    pub mods: Vec<FlowMod>,
}

impl Flows {
    pub fn read(path: &Path) -> Result<Self, ReplayError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ReplayError::ReadFlows { path: path.to_path_buf(), source })?;
        let mods = parse_flows(&text, ParseOptions::default())
            .collect::<Result<_, _>>()
            .map_err(|source| ReplayError::Syntax { path: path.to_path_buf(), source })?;
        Ok(Self { text, mods })
    }

    /// The line in which flow number `at` stands.
    pub fn line(&self, at: usize) -> usize {
        let is_flow = |line: &str| parse_flows(line, ParseOptions::default()).next().is_some();
        (1..).zip(self.text.lines()).filter(|(_, line)| is_flow(line)).nth(at).map_or(0, |(number, _)| number)
    }

    /// The ports that flows match or send to.
    pub fn ports(&self) -> BTreeSet<PortNo> {
        let mut ports = BTreeSet::new();
        for flow in &self.mods {
            let matched = flow.matching.get(Field::InPort).map(|condition| condition.value as PortNo);
            let actions = flow.instructions.apply.iter().chain(&flow.instructions.write);
            let sent = actions.filter_map(|action| match action {
                Action::Output { port, .. } => Some(*port),
                _ => None,
            });
            ports.extend(matched.into_iter().chain(sent).filter(|port| port_no::is_real(*port)));
        }
        ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_that_flows_name_and_lines_are_found() {
        let text = "# a comment\n\nin_port=4,ip actions=output:7,goto_table:1\n\
                    table=1 actions=output:CONTROLLER,write_actions(output:9) # 12\n";
        let mods = parse_flows(text, ParseOptions::default()).collect::<Result<_, _>>();
        let flows = Flows { text: text.into(), mods: mods.unwrap_or_default() };
        assert_eq!(flows.ports().into_iter().collect::<Vec<_>>(), [4, 7, 9]);
        assert_eq!((flows.line(0), flows.line(1)), (3, 4));
    }
}
