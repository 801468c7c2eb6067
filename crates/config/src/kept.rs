// SPDX-License-Identifier: Apache-2.0
//! Checks the section `store` of a datapath.

use crate::file::StoreSection;
use crate::mistakes::Mistakes;
use std::path::PathBuf;

/// Where and how a datapath keeps its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRules {
    /// Folder of the store.
    pub path: PathBuf,
    /// When changes are made durable.
    pub durable: Durable,
}

/// When changes are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durable {
    /// Whenever the kernel writes them.
    Off,
    /// Within 50 ms.
    #[default]
    Interval,
    /// Before a barrier is answered.
    Barrier,
}

/// Checks the section `store` of the datapath at `key`. `is_pof` states whether it has controllers of POF.
pub(crate) fn kept_rules(
    key: &str,
    section: Option<StoreSection>,
    is_pof: bool,
    mistakes: &mut Mistakes,
) -> Option<KeptRules> {
    let section = section?;
    let example = "path = \"/var/lib/shunt/s1\"";
    let path = mistakes.needed(format!("{key}.store.path"), section.path.as_deref(), example);
    if path == Some("") {
        let problem = format!("is empty; name a folder, for example {example}");
        mistakes.wrong(format!("{key}.store.path"), problem);
    }
    if is_pof {
        let problem = "tables of POF controllers cannot be kept; omit store or pof";
        mistakes.wrong(format!("{key}.store"), problem);
    }
    let durable = match section.durable.as_deref() {
        None | Some("interval") => Durable::Interval,
        Some("off") => Durable::Off,
        Some("barrier") => Durable::Barrier,
        Some(other) => {
            let problem = format!("\"{other}\" is unknown; use \"off\", \"interval\" or \"barrier\"");
            mistakes.wrong(format!("{key}.store.durable"), problem);
            Durable::Interval
        }
    };
    Some(KeptRules { path: path?.into(), durable })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn read(rest: &str) -> Result<Option<KeptRules>, String> {
        let text = format!("control = \"/tmp/s.sock\"\n[[worker]]\n[[datapath]]\nid = 1\n{rest}\n");
        let config = Config::parse(&text);
        config.map(|config| config.datapath.kept_rules).map_err(|all| format!("{}", all[0]))
    }

    #[test]
    fn a_store_has_a_folder_and_a_durability() {
        assert_eq!(read(""), Ok(None));
        for (text, durable) in [
            ("", Durable::Interval),
            ("durable = \"interval\"", Durable::Interval),
            ("durable = \"off\"", Durable::Off),
            ("durable = \"barrier\"", Durable::Barrier),
        ] {
            let expected = KeptRules { path: "/x/s1".into(), durable };
            assert_eq!(read(&format!("[datapath.store]\npath = \"/x/s1\"\n{text}")), Ok(Some(expected)));
        }
    }

    #[test]
    fn mistakes_name_their_keys() {
        for (text, expected) in [
            ("[datapath.store]", "datapath.store.path"),
            ("[datapath.store]\npath = \"\"", "datapath.store.path: is empty"),
            (
                "[datapath.store]\npath = \"/x\"\ndurable = \"maybe\"",
                "datapath.store.durable: \"maybe\" is unknown",
            ),
            ("[datapath.store]\npath = \"/x\"\n[datapath.pof]", "datapath.store: tables of POF"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn datapaths_do_not_share_a_folder() {
        let one = |id: u8, path: &str| {
            format!("[[datapath]]\nid = {id}\ncontrol = \"/tmp/{id}\"\n[datapath.store]\npath = \"{path}\"\n")
        };
        let all =
            |second: &str| Config::parse_all(&format!("[[worker]]\n{}{}", one(1, "/x/a"), one(2, second)));
        assert!(all("/x/b").is_ok());
        let found = all("/x/a/").unwrap_err();
        assert!(format!("{}", found[0]).contains("datapath[1].store.path"), "{}", found[0]);
    }
}
