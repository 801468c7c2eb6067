// SPDX-License-Identifier: Apache-2.0
//! Changes of mirrors in the text of a configuration file.

use super::{datapath_table, parse, set, tables};
use serde::{Deserialize, Serialize};
use toml_edit::{Array, ArrayOfTables, Item, Table};

/// A change of a datapath's mirrors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MirrorEdit {
    /// Adds a mirror.
    Add(MirrorForm),
    /// Removes the mirror with this name.
    Remove(String),
}

/// Settings of a mirror. Their meanings are those of the keys in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MirrorForm {
    /// Name of the mirror.
    pub name: String,
    /// Numbers or names of the ports whose received frames are copied.
    pub ingress: Vec<String>,
    /// Numbers or names of the ports whose sent frames are copied.
    pub egress: Vec<String>,
    /// VLAN IDs; empty for all frames.
    pub vlans: Vec<u16>,
    /// Number or name of the output port.
    pub output_port: Option<String>,
    /// Whether the output port also forwards other traffic.
    pub other_traffic: Option<bool>,
    /// Path of the file.
    pub file: Option<String>,
    /// Number of bytes that are kept of each frame.
    pub snap_bytes: Option<u32>,
    /// Maximum size of the file in bytes.
    pub max_bytes: Option<u64>,
    /// Maximum number of frames in the file.
    pub max_packets: Option<u64>,
}

impl MirrorEdit {
    /// Makes the change in the text of a file, for the datapath with this ID. The result is not checked.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the text is not TOML, if it has no such datapath or mirror, or if its mirrors
    /// are not written as `[[datapath.mirror]]`.
    pub fn apply(&self, text: &str, datapath: u64) -> Result<String, String> {
        let mut document = parse(text)?;
        let mirrors = tables(datapath_table(&mut document, datapath)?, "mirror", "[[datapath.mirror]]")?;
        match self {
            Self::Add(form) => mirrors.push(form.section()),
            Self::Remove(name) => drop(mirrors.remove(place(mirrors, name)?)),
        }
        Ok(document.to_string())
    }
}

impl MirrorForm {
    fn section(&self) -> Table {
        let mut table = Table::new();
        // An empty line goes before the section.
        table.decor_mut().set_prefix("\n");
        set(&mut table, "name", Some(self.name.as_str()));
        for (key, ports) in [("ingress", &self.ingress), ("egress", &self.egress)] {
            let list: Array = ports.iter().map(|port| reference(port)).collect();
            set(&mut table, key, (!ports.is_empty()).then_some(list));
        }
        let vlans: Array = self.vlans.iter().map(|vlan| i64::from(*vlan)).collect();
        set(&mut table, "vlans", (!self.vlans.is_empty()).then_some(vlans));
        set(&mut table, "output_port", self.output_port.as_deref().map(reference));
        set(&mut table, "other_traffic", self.other_traffic);
        set(&mut table, "file", self.file.as_deref());
        set(&mut table, "snap_bytes", self.snap_bytes.map(i64::from));
        // A number above the range of TOML is refused by the check of the text.
        let number = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        set(&mut table, "max_bytes", number(self.max_bytes));
        set(&mut table, "max_packets", number(self.max_packets));
        table
    }
}

/// Returns the number of a port as a number, and its name as a string.
fn reference(port: &str) -> toml_edit::Value {
    port.parse::<i64>().map_or_else(|_| port.into(), Into::into)
}

/// Returns the position of the mirror with this name.
fn place(mirrors: &ArrayOfTables, name: &str) -> Result<usize, String> {
    let name_of = |table: &Table| table.get("name").and_then(Item::as_str).unwrap_or_default().to_owned();
    mirrors.iter().position(|table| name_of(table) == name).ok_or_else(|| {
        let all: Vec<String> = mirrors.iter().map(name_of).collect();
        let all = if all.is_empty() {
            "there are none".to_owned()
        } else {
            format!("there are {}", all.join(", "))
        };
        format!("no mirror has the name \"{name}\"; {all}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const TEXT: &str = "# room 7\n[[worker]]\n[[datapath]]\nid = 3\n[[datapath.port]]\nnumber = 1\nname = \"p1\"\n\
                        driver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n[[datapath.port]]\nnumber = 2\nname = \"p2\"\n\
                        driver = \"mem\"\ndevice = \"null\"\nworkers = [0] # to the core\n";

    #[test]
    fn a_mirror_is_added_and_removed_and_all_else_stays() {
        let form = MirrorForm {
            name: "span".into(),
            ingress: vec!["p1".into(), "2".into()],
            vlans: vec![0, 10],
            file: Some("/x/span".into()),
            max_packets: Some(9),
            ..MirrorForm::default()
        };
        let text = MirrorEdit::Add(form.clone()).apply(TEXT, 3).unwrap();
        let config = Config::parse(&text).unwrap();
        let mirror = &config.datapath.mirrors[0];
        assert_eq!((mirror.name.as_str(), mirror.selection.ingress.len()), ("span", 2));
        let to_port =
            MirrorForm { name: "two".into(), output_port: Some("2".into()), ..MirrorForm::default() };
        let to_port = MirrorForm { egress: vec!["p1".into()], other_traffic: Some(true), ..to_port };
        let two = MirrorEdit::Add(to_port).apply(TEXT, 3).unwrap();
        assert_eq!(Config::parse(&two).unwrap().datapath.mirrors[0].reserved_port(), None);
        assert_eq!(MirrorEdit::Remove("span".into()).apply(&text, 3).unwrap(), TEXT);
        let error = MirrorEdit::Remove("spam".into()).apply(&text, 3).unwrap_err();
        assert_eq!(error, "no mirror has the name \"spam\"; there are span");
        let error = MirrorEdit::Add(form).apply(TEXT, 4).unwrap_err();
        assert!(error.contains("no datapath 4"), "{error}");
    }
}
