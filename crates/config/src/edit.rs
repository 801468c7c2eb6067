// SPDX-License-Identifier: Apache-2.0
//! Changes of ports and mirrors in the text of a configuration file. Comments and the order of the file are
//! kept.
//!
//! A change is made in the text, and the text is then checked like any other file. Begin with
//! [`PortEdit::apply`], which is a pure function, and [`write`], which replaces a file.

use actions::PacketInRate;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

mod mirror;
#[cfg(test)]
mod tests;

pub use mirror::{MirrorEdit, MirrorForm};

/// A change of a datapath's ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PortEdit {
    /// Adds a port.
    Add(PortForm),
    /// Removes the port with this number or name.
    Remove(String),
    /// Changes settings of a port.
    Set {
        /// Number or name of the port.
        port: String,
        /// The settings that change.
        to: PortForm,
    },
}

/// Settings of a port. `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortForm {
    /// Number of the port.
    pub number: Option<u32>,
    /// Name of the port.
    pub name: Option<String>,
    /// Driver of the port.
    pub driver: Option<String>,
    /// Device, in the notation of the driver.
    pub device: Option<String>,
    /// Numbers of the workers that serve the port.
    pub workers: Option<Vec<u32>>,
    /// Limit on outstanding bytes.
    pub outstanding_bytes: Option<u32>,
    /// Number of packets of the receive rings; 0 removes the setting.
    pub receive_ring: Option<u32>,
    /// Removes all settings of VLANs. The settings below are then set.
    pub no_vlans: bool,
    /// VLAN mode.
    pub vlan_mode: Option<String>,
    /// VLAN of an access or native port.
    pub tag: Option<u32>,
    /// VLANs of a trunk.
    pub trunks: Option<Vec<u32>>,
    /// All storm limits of the port.
    pub storm: Option<StormForm>,
    /// Maximum number of learned addresses; 0 removes the limit.
    pub mac_limit: Option<u32>,
    /// All egress queues of the port.
    pub queues: Option<Vec<QueueForm>>,
}

/// Storm limits of a port. Their meanings are those of the keys in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StormForm {
    /// Limit of broadcasts: packets per second, and packets at once.
    pub broadcast: Option<(u32, Option<u32>)>,
    /// Limit of multicasts.
    pub multicast: Option<(u32, Option<u32>)>,
    /// Limit of packets to unknown addresses.
    pub unknown_unicast: Option<(u32, Option<u32>)>,
    /// What happens above a limit.
    pub action: Option<String>,
    /// Time for which a port is closed.
    pub reopen: Option<String>,
}

/// Settings of an egress queue. Their meanings are those of the keys in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueForm {
    /// Number of the queue.
    pub id: u32,
    /// Guaranteed rate in kbit/s.
    pub min_rate_kbps: Option<u32>,
    /// Maximum rate in kbit/s.
    pub max_rate_kbps: Option<u32>,
    /// Priority.
    pub priority: Option<u32>,
    /// Capacity in frames per lane.
    pub limit_frames: Option<u32>,
}

impl PortEdit {
    /// Makes the change in the text of a file, for the datapath with this ID. The result is not checked.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the text is not TOML, if it has no such datapath or port, or if its ports are
    /// not written as `[[datapath.port]]`.
    pub fn apply(&self, text: &str, datapath: u64) -> Result<String, String> {
        let mut document = parse(text)?;
        let ports = tables(datapath_table(&mut document, datapath)?, "port", "[[datapath.port]]")?;
        match self {
            Self::Add(form) => {
                let mut port = Table::new();
                // An empty line goes before the section.
                port.decor_mut().set_prefix("\n");
                form.write(&mut port);
                ports.push(port);
            }
            Self::Remove(port) => drop(ports.remove(place(ports, port)?)),
            Self::Set { port, to } => {
                let at = place(ports, port)?;
                if let Some(table) = ports.get_mut(at) {
                    to.write(table);
                }
            }
        }
        Ok(document.to_string())
    }
}

impl PortForm {
    /// Writes the given settings into the section of a port.
    fn write(&self, table: &mut Table) {
        let Self { number, name, driver, device, workers, outstanding_bytes, receive_ring, queues, .. } =
            self;
        set(table, "number", number.map(i64::from));
        set(table, "name", name.as_deref());
        set(table, "driver", driver.as_deref());
        set(table, "device", device.as_deref());
        let list = |all: &Vec<u32>| all.iter().copied().map(i64::from).collect::<Array>();
        set(table, "workers", workers.as_ref().map(list));
        set(table, "outstanding_bytes", outstanding_bytes.map(i64::from));
        match receive_ring {
            Some(0) => drop(table.remove("receive_ring")),
            ring => set(table, "receive_ring", ring.map(i64::from)),
        }
        let Self { no_vlans, vlan_mode, tag, trunks, .. } = self;
        for key in ["vlan_mode", "tag", "trunks"].iter().filter(|_| *no_vlans) {
            table.remove(key);
        }
        set(table, "vlan_mode", vlan_mode.as_deref());
        set(table, "tag", tag.map(i64::from));
        set(table, "trunks", trunks.as_ref().map(list));
        if let Some(storm) = &self.storm {
            table.remove("storm");
            if *storm != StormForm::default() {
                table.insert("storm", Item::Table(storm.section()));
            }
        }
        match self.mac_limit {
            Some(0) => drop(table.remove("mac_limit")),
            limit => set(table, "mac_limit", limit.map(i64::from)),
        }
        let Some(queues) = queues else { return };
        table.remove("queue");
        if !queues.is_empty() {
            let sections: ArrayOfTables = queues.iter().map(QueueForm::section).collect();
            table.insert("queue", Item::ArrayOfTables(sections));
        }
    }
}

impl StormForm {
    /// Maximum rate of a limit, in packets per second.
    pub const RATE_MAX: u32 = PacketInRate::RATE_MAX;
    /// Maximum burst of a limit, in packets.
    pub const BURST_MAX: u32 = PacketInRate::BURST_MAX;

    fn section(&self) -> Table {
        let mut table = Table::new();
        for (key, limit) in [
            ("broadcast", self.broadcast),
            ("multicast", self.multicast),
            ("unknown_unicast", self.unknown_unicast),
        ] {
            let Some((rate, burst)) = limit else { continue };
            let mut numbers = InlineTable::new();
            numbers.insert("rate", i64::from(rate).into());
            burst.into_iter().for_each(|burst| drop(numbers.insert("burst", i64::from(burst).into())));
            table.insert(key, value(numbers));
        }
        set(&mut table, "action", self.action.as_deref());
        set(&mut table, "reopen", self.reopen.as_deref());
        table
    }
}

impl QueueForm {
    fn section(&self) -> Table {
        let mut table = Table::new();
        set(&mut table, "id", Some(i64::from(self.id)));
        for (key, number) in [
            ("min_rate_kbps", self.min_rate_kbps),
            ("max_rate_kbps", self.max_rate_kbps),
            ("priority", self.priority),
            ("limit_frames", self.limit_frames),
        ] {
            set(&mut table, key, number.map(i64::from));
        }
        table
    }
}

/// Sets a key, and keeps the comment behind its value.
fn set(table: &mut Table, key: &str, new: Option<impl Into<Value>>) {
    let Some(new) = new else { return };
    let mut new: Value = new.into();
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => drop(table.insert(key, value(new))),
    }
}

/// Parses the text of a file.
fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error| format!("the configuration is not TOML: {error}"))
}

/// Returns the section of the datapath with this ID.
fn datapath_table(document: &mut DocumentMut, datapath: u64) -> Result<&mut Table, String> {
    let datapaths = tables(document.as_table_mut(), "datapath", "[[datapath]]")?;
    let is_wanted = |table: &&mut Table| table.get("id").and_then(Item::as_integer) == Some(datapath as i64);
    let table = datapaths.iter_mut().find(is_wanted);
    table.ok_or_else(|| format!("the configuration has no datapath {datapath}"))
}

/// Returns the list of sections at `key`, which is created if it is missing.
fn tables<'t>(table: &'t mut Table, key: &str, section: &str) -> Result<&'t mut ArrayOfTables, String> {
    let item = table.entry(key).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    item.as_array_of_tables_mut().ok_or_else(|| {
        format!("the configuration does not write `{key}` as sections {section}; rewrite it, or edit the file by hand")
    })
}

/// Returns the position of the port with this number or name.
fn place(ports: &ArrayOfTables, port: &str) -> Result<usize, String> {
    let number = port.parse::<i64>().ok();
    let is_wanted = |table: &Table| {
        let is_named = table.get("name").and_then(Item::as_str) == Some(port);
        is_named || number.is_some() && table.get("number").and_then(Item::as_integer) == number
    };
    ports.iter().position(is_wanted).ok_or_else(|| {
        let all: Vec<String> = ports.iter().map(named).collect();
        let all = if all.is_empty() {
            "there are none".to_owned()
        } else {
            format!("there are {}", all.join(", "))
        };
        format!("no port has the number or name \"{port}\"; {all}")
    })
}

/// Returns the number and name of a port.
fn named(port: &Table) -> String {
    let number = port.get("number").and_then(Item::as_integer).unwrap_or_default();
    format!("{number} ({})", port.get("name").and_then(Item::as_str).unwrap_or_default())
}

/// Replaces a file as a whole: writes a temporary file beside it, flushes it to the disk and renames it.
/// Owner and mode stay the same. A symbolic link stays a link to the file.
///
/// # Errors
///
/// Returns the error of the system. The file is then as it was.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let replaced = replace(&path, &temporary, text);
    if replaced.is_err() {
        // The rename was not made, or the file is not there.
        let _ = fs::remove_file(&temporary);
        return replaced;
    }
    // The rename is on the disk only after the folder is.
    File::open(folder)?.sync_all()
}

fn replace(path: &Path, temporary: &Path, text: &str) -> io::Result<()> {
    let before = fs::metadata(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(text.as_bytes())?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
        fchown(&file, Some(before.uid()), Some(before.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))?;
    file.sync_all()?;
    fs::rename(temporary, path)
}
