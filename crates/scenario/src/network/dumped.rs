// SPDX-License-Identifier: Apache-2.0
//! State of running switches, as `shunt flows dump` and `shunt show stateless --json` print it.

use super::plan::{Graph, Setups};
use config::Mistake;
use config::flow_file::FlowFile;
use config::mistakes::wrong;
use config::stateless_form::StatelessForm;
use serde::Deserialize;
use sim::network::Setup;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of the file with the stateless sections of a switch, in bytes.
const SECTIONS_BYTES: u64 = 1 << 26;

/// What `shunt show stateless --json` prints. The counters are not read.
#[derive(Deserialize)]
struct Shown {
    lane: Option<StatelessForm>,
}

/// Reads the state of all switches of a network from a folder. The file `NAME.flows` has the meters, groups
/// and flows of switch NAME, and `NAME.json` its stateless sections. Without `NAME.json`, it has none.
/// In file names, `%2F` stands for a slash, and `%25` for a percent sign.
pub fn setups(folder: &Path, graph: &Graph) -> Result<Setups, Mistake> {
    graph.switches.iter().map(|name| setup(folder, name)).collect()
}

/// Returns the name of a switch as part of a file's name.
fn file_name(switch: &str) -> String {
    switch.replace('%', "%25").replace('/', "%2F")
}

fn setup(folder: &Path, name: &str) -> Result<Setup, Mistake> {
    let refuse = |problem: String| wrong("network.state", problem);
    let name = file_name(name);
    let flows = folder.join(format!("{name}.flows"));
    let file = FlowFile::open(&flows)
        .map_err(|error| refuse(format!("{}: cannot read the flows: {error}", flows.display())))?;
    let lines = file.into_lines().map_err(|error| refuse(error.of(&flows)))?;
    let sections = folder.join(format!("{name}.json"));
    let stateless = match fs::metadata(&sections) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(refuse(format!("{}: {error}", sections.display()))),
        Ok(about) if about.len() > SECTIONS_BYTES => {
            return Err(refuse(format!("{}: has more than {SECTIONS_BYTES} bytes", sections.display())));
        }
        Ok(_) => {
            let of_file = |problem: String| refuse(format!("{}: {problem}", sections.display()));
            let text = fs::read_to_string(&sections).map_err(|error| of_file(error.to_string()))?;
            let shown: Shown = serde_json::from_str(&text).map_err(|error| {
                of_file(format!("is not what shunt show stateless --json prints: {error}"))
            })?;
            let read = shown.lane.map(|form| form.read()).transpose();
            read.map_err(|(key, problem)| of_file(format!("lane.{key}: {problem}")))?
        }
    };
    Ok(Setup { changes: lines.into_iter().map(Into::into).collect(), stateless: stateless.map(Arc::new) })
}

#[cfg(test)]
mod tests {
    use super::super::plan::examples::plan;
    use super::super::plan::{Numberings, PathPlan};
    use super::super::{NetworkOutcome, NetworkScenario};
    use super::*;
    use crate::scenario::{Overrides, Scenario, parse};
    use flow::syntax::{FileLine, RecordCommand, format_flow, format_line};
    use model::{Change, GroupCommand};
    use std::path::PathBuf;

    /// A folder with a plan, and with the state that it configures in each switch.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    impl Folder {
        fn new(of_plan: &str, test: &str) -> Self {
            Self::of(&plan(of_plan).to_string(), test)
        }

        fn of(text: &str, test: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("shunt-dumped-{}-{test}", std::process::id()));
            fs::create_dir_all(folder.join("state")).unwrap();
            let made = Self(folder);
            fs::write(made.0.join("plan.json"), text).unwrap();
            let plan = PathPlan::read(text).unwrap();
            let hosts = 0..plan.graph().hosts.len();
            let pairs: Vec<_> = hosts.clone().flat_map(|a| hosts.clone().map(move |b| (a, b))).collect();
            let pairs: Vec<_> =
                pairs.into_iter().filter(|pair| pair.0 != pair.1 && plan.has(*pair)).collect();
            let setups = plan.stages(&pairs, Numberings::Newest).unwrap().remove(0);
            for (name, setup) in plan.graph().switches.iter().zip(setups) {
                let lines: Vec<_> = setup.changes.iter().map(|change| line(change) + "\n").collect();
                fs::write(made.file(name, "flows"), lines.concat()).unwrap();
                let lane = setup.stateless.map(|config| StatelessForm::from(&*config));
                let shown = serde_json::json!({"lane": lane, "received": 0, "taken": 0, "dropped": {}});
                fs::write(made.file(name, "json"), shown.to_string()).unwrap();
            }
            made
        }

        fn file(&self, switch: &str, kind: &str) -> PathBuf {
            self.0.join(format!("state/{}.{kind}", file_name(switch)))
        }

        fn read(&self, rest: &str) -> Result<NetworkScenario, String> {
            let text = format!("[network]\nplan = \"plan.json\"\nstate = \"state\"\n{rest}");
            match parse(&self.0.join("scenario.toml"), &text, &Overrides::default()) {
                Ok(Scenario::Network(scenario)) => Ok(*scenario),
                Ok(Scenario::Switch(_)) => panic!("expected a scenario of a network"),
                Err(all) => Err(all.iter().map(|mistake| format!("{mistake}\n")).collect()),
            }
        }

        fn run(&self) -> NetworkOutcome {
            self.read("").unwrap().run().unwrap()
        }
    }

    /// Returns a change as `shunt flows dump` prints it.
    fn line(change: &Change) -> String {
        match change {
            Change::Flow(flow) => format_flow(flow),
            Change::Group(GroupCommand::Add, group) => {
                format_line(&FileLine::Group(RecordCommand::AddOrModify, group.clone()))
            }
            other => panic!("a plan has no such change: {other:?}"),
        }
    }

    #[test]
    fn the_state_of_switches_delivers_as_the_plan_that_was_loaded_into_them() {
        for of_plan in ["tree.json", "abilene.json"] {
            let folder = Folder::new(of_plan, of_plan);
            let outcome = folder.run();
            assert!(outcome.sent > 100 && outcome.lost == 0, "{of_plan}: {outcome:?}");
        }
    }

    /// The state counts, and not the plan.
    #[test]
    fn a_switch_without_its_state_loses_packets() {
        let folder = Folder::new("tree.json", "lost");
        fs::remove_file(folder.file("as1", "json")).unwrap();
        let without_sections = folder.run();
        assert!(without_sections.lost > 0 && without_sections.delivered > 0, "{without_sections:?}");
        let folder = Folder::new("tree.json", "flows");
        fs::write(folder.file("es1", "flows"), "").unwrap();
        assert!(folder.run().lost > 0);
    }

    #[test]
    fn names_of_switches_may_contain_slashes() {
        assert_eq!(file_name("Southfield/Detroit 100%"), "Southfield%2FDetroit 100%25");
        let folder = Folder::of(&plan("tree.json").to_string().replace("\"es1\"", "\"e/s1\""), "slash");
        assert!(folder.file("e/s1", "flows").exists());
        let outcome = folder.run();
        assert!(outcome.sent > 100 && outcome.lost == 0, "{outcome:?}");
    }

    #[test]
    fn wrong_state_is_refused_with_its_file() {
        let folder = Folder::new("tree.json", "wrong");
        let refused = |rest: &str, parts: &[&str]| {
            let text = folder.read(rest).unwrap_err();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        };
        refused("forwarding = \"entries\"\n", &["network.state", "needs the forwarding of the plan"]);
        let good = fs::read_to_string(folder.file("es1", "flows")).unwrap();
        fs::write(folder.file("es1", "flows"), "in_port=1,actions=fly\n").unwrap();
        refused("", &["network.state", "es1.flows: line 1"]);
        fs::write(folder.file("es1", "flows"), good).unwrap();
        fs::write(folder.file("cs1", "json"), "{\"lane\": 7}").unwrap();
        refused("", &["cs1.json: is not what shunt show stateless --json prints"]);
        fs::write(folder.file("cs1", "json"), "{\"lane\": {\"trusted\": [0]}}").unwrap();
        refused("", &["cs1.json: lane.trusted"]);
        fs::remove_file(folder.file("cs1", "json")).unwrap();
        fs::remove_file(folder.file("as1", "flows")).unwrap();
        refused("", &["as1.flows: cannot read the flows"]);
    }
}
