// SPDX-License-Identifier: Apache-2.0
//! Checks the sections `mirror` of a datapath (docs/adr/0064).

use crate::file::{MirrorSection, PortReference};
use crate::mirror_settings::{ConfiguredMirror, MirrorFile, MirrorOutput};
use crate::mistakes::Mistakes;
use crate::settings::ConfiguredPort;
use crate::value::in_range;
use flow::mirror::{MIRRORS_MAX, VLAN_MAX};
use flow::{MirrorSelection, PortNo};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Maximum length of a mirror's name in bytes.
const NAME_BYTES: usize = 31;
/// Range of the number of bytes that a file keeps of each frame.
const SNAP_BYTES: RangeInclusive<i64> = 14..=262_144;
/// Range of the size of a file in bytes. The least value has space for the header of the file.
const FILE_BYTES: RangeInclusive<i64> = 65_536..=i64::MAX;
/// Maximum size of a file in bytes, unless it is configured.
const FILE_BYTES_USUAL: i64 = 100_000_000;

/// Checks the mirrors of the datapath at `key`. Returns the mirrors without mistakes. `is_complete` states
/// whether `ports` has all ports of the file.
pub(crate) fn mirrors(
    key: &str,
    list: &[MirrorSection],
    ports: &[ConfiguredPort],
    is_complete: bool,
    mistakes: &mut Mistakes,
) -> Vec<ConfiguredMirror> {
    if list.len() > MIRRORS_MAX {
        let problem = format!("there are {}; the maximum is {MIRRORS_MAX}", list.len());
        mistakes.wrong(format!("{key}.mirror"), problem);
        return Vec::new();
    }
    // With mistakes in the ports, a port that is not known may only be misspelt there.
    if !is_complete {
        return Vec::new();
    }
    let mut mirrors: Vec<(usize, ConfiguredMirror)> = Vec::with_capacity(list.len());
    for (n, section) in list.iter().enumerate() {
        let key = format!("{key}.mirror[{n}]");
        let Some(mirror) = mirror(&key, section, ports, mistakes) else { continue };
        if let Some((m, _)) = mirrors.iter().find(|(_, other)| other.name == mirror.name) {
            let problem =
                format!("\"{}\" is also that of mirror[{m}]; give each mirror a different name", mirror.name);
            mistakes.wrong(format!("{key}.name"), problem);
        }
        let same_file =
            |(_, other): &&(usize, ConfiguredMirror)| other.file().is_some() && other.file() == mirror.file();
        if let Some((m, _)) = mirrors.iter().find(same_file) {
            let problem = format!("is also that of mirror[{m}]; give each mirror a different file");
            mistakes.wrong(format!("{key}.file"), problem);
        }
        mirrors.push((n, mirror));
    }
    for (n, mirror) in &mirrors {
        let Some(output) = mirror.output_port() else { continue };
        if let Some((_, source)) = mirrors.iter().find(|(_, other)| other.is_source(output)) {
            let problem = format!(
                "port {output} is a source of the mirror \"{}\", so copies would be copied; use another port",
                source.name
            );
            mistakes.wrong(format!("{key}.mirror[{n}].output_port"), problem);
        }
    }
    mirrors.into_iter().map(|(_, mirror)| mirror).collect()
}

fn mirror(
    at: &str,
    section: &MirrorSection,
    ports: &[ConfiguredPort],
    mistakes: &mut Mistakes,
) -> Option<ConfiguredMirror> {
    let before = mistakes.len();
    let key = |name: &str| format!("{at}.{name}");
    let found = mistakes.needed(key("name"), section.name.clone(), "name = \"span\"");
    let found = found.filter(|text| mistakes.at(key("name"), name(text)).is_some());
    let mut sources = |name: &str, list: &[PortReference]| {
        let mut found: Vec<PortNo> = Vec::with_capacity(list.len());
        for (n, reference) in list.iter().enumerate() {
            let port = mistakes.at(format!("{at}.{name}[{n}]"), port_of(reference, ports));
            found.extend(port.filter(|port| !found.contains(port)));
        }
        found
    };
    let (ingress, egress) = (sources("ingress", &section.ingress), sources("egress", &section.egress));
    if section.ingress.is_empty() && section.egress.is_empty() {
        let problem = "is missing, and egress too; write ingress = [\"p1\"], egress = [\"p1\"] or both";
        mistakes.wrong(key("ingress"), problem);
    }
    let mut vlans = Vec::with_capacity(section.vlans.len());
    for (n, vlan) in section.vlans.iter().enumerate() {
        let vlan = mistakes.at(format!("{at}.vlans[{n}]"), in_range(*vlan, 0..=VLAN_MAX.into()));
        vlans.extend(vlan.map(|vlan| vlan as u16));
    }
    let output = output(at, section, ports, mistakes);
    let selection = MirrorSelection { ingress, egress, vlans };
    let mirror = ConfiguredMirror { name: found?, selection, output: output? };
    (mistakes.len() == before).then_some(mirror)
}

/// Checks where the copies go, and that only settings of this output are given.
fn output(
    at: &str,
    section: &MirrorSection,
    ports: &[ConfiguredPort],
    mistakes: &mut Mistakes,
) -> Option<MirrorOutput> {
    let key = |name: &str| format!("{at}.{name}");
    let (port, path) = match (&section.output_port, &section.file) {
        (Some(port), None) => (port, None),
        (Some(_), Some(_)) => {
            mistakes.wrong(key("file"), "a mirror has one output; omit file or output_port");
            return None;
        }
        (None, Some(path)) => (&PortReference::Number(0), Some(path)),
        (None, None) => {
            let problem = "is missing; write output_port = \"p3\", or file = \"/var/tmp/span.pcapng\"";
            mistakes.wrong(key("output_port"), problem);
            return None;
        }
    };
    let Some(path) = path else {
        let of_files = [
            ("snap_bytes", section.snap_bytes.is_some()),
            ("max_bytes", section.max_bytes.is_some()),
            ("max_packets", section.max_packets.is_some()),
        ];
        for (name, _) in of_files.iter().filter(|(_, is_given)| *is_given) {
            mistakes.wrong(key(name), "is a setting of files; omit it, or use file instead of output_port");
        }
        let port = mistakes.at(key("output_port"), port_of(port, ports))?;
        return Some(MirrorOutput::Port { port, other_traffic: section.other_traffic.unwrap_or(false) });
    };
    if section.other_traffic.is_some() {
        mistakes.wrong(key("other_traffic"), "is a setting of output ports; omit it");
    }
    if path.is_empty() {
        mistakes.wrong(key("file"), "is empty; name a file, such as \"/var/tmp/span.pcapng\"");
    }
    let mut number = |name: &str, value: Option<i64>, range: RangeInclusive<i64>, usual: i64| {
        mistakes.at(key(name), in_range(value.unwrap_or(usual), range))
    };
    let snap_bytes = number("snap_bytes", section.snap_bytes, SNAP_BYTES, *SNAP_BYTES.end());
    let max_bytes = number("max_bytes", section.max_bytes, FILE_BYTES, FILE_BYTES_USUAL);
    let max_packets = number("max_packets", section.max_packets, 1..=i64::MAX, i64::MAX);
    Some(MirrorOutput::File(MirrorFile {
        path: PathBuf::from(path),
        snap_bytes: snap_bytes? as usize,
        max_bytes: max_bytes?,
        max_packets: max_packets.filter(|_| section.max_packets.is_some()),
    }))
}

fn name(text: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(legal) {
        return Err(format!(
            "\"{text}\" is not a name; use 1 to {NAME_BYTES} of the characters a-z A-Z 0-9 _ - ."
        ));
    }
    Ok(())
}

/// Returns the port of this number or name, which must have a device.
fn port_of(reference: &PortReference, ports: &[ConfiguredPort]) -> Result<PortNo, String> {
    let is_wanted = |port: &&ConfiguredPort| match reference {
        PortReference::Number(number) => i64::from(port.number.0) == *number,
        PortReference::Name(name) => port.name == *name,
    };
    let port = ports.iter().find(is_wanted).ok_or_else(|| {
        let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
        format!("no port has the number or name {reference}; the ports are: {known}")
    })?;
    if port.workers.is_empty() {
        return Err(format!("port {} carries no packets, because it has no device", port.name));
    }
    Ok(port.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// Reads a datapath with three ports that have devices, one that has none, and these mirrors.
    fn read(mirrors: &str) -> Result<Vec<ConfiguredMirror>, String> {
        let mut text = "control = \"/tmp/s.sock\"\n[[worker]]\n[[datapath]]\nid = 1\n".to_owned();
        for n in 1..=4 {
            text += &format!("[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\n");
            text += if n == 4 {
                "driver = \"none\"\n"
            } else {
                "driver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n"
            };
        }
        let config = Config::parse(&(text + mirrors));
        let lines = |all: Vec<crate::Mistake>| all.iter().map(|mistake| format!("{mistake}\n")).collect();
        config.map(|config| config.datapath.mirrors).map_err(lines)
    }

    #[test]
    fn mirrors_have_sources_and_an_output() {
        assert_eq!(read(""), Ok(Vec::new()));
        let found = read(
            "[[datapath.mirror]]\nname = \"a\"\ningress = [\"p1\", 2, 1]\nvlans = [0, 10]\noutput_port = 3\n\
             [[datapath.mirror]]\nname = \"b\"\negress = [\"p2\"]\nfile = \"/x/b\"\n\
             snap_bytes = 64\nmax_packets = 9\n",
        );
        let (a, b) = match found.as_deref() {
            Ok([a, b]) => (a, b),
            other => panic!("{other:?}"),
        };
        let ports = |list: &[u32]| list.iter().copied().map(PortNo).collect::<Vec<_>>();
        let selection = MirrorSelection { ingress: ports(&[1, 2]), egress: ports(&[]), vlans: vec![0, 10] };
        assert_eq!((a.selection.clone(), a.reserved_port()), (selection, Some(PortNo(3))));
        let file =
            MirrorFile { path: "/x/b".into(), snap_bytes: 64, max_bytes: 100_000_000, max_packets: Some(9) };
        assert_eq!((&b.output, b.reserved_port()), (&MirrorOutput::File(file), None));
        let shared = read(
            "[[datapath.mirror]]\nname = \"a\"\ningress = [1]\noutput_port = \"p3\"\nother_traffic = true\n",
        );
        assert_eq!(shared.map(|list| list[0].reserved_port()), Ok(None));
    }

    #[test]
    fn mistakes_name_their_keys_and_what_would_be_right() {
        let sources = "name = \"a\"\ningress = [1]\n";
        for (section, part) in [
            ("ingress = [1]\noutput_port = 3", "mirror[0].name: is missing"),
            ("name = \"a b\"\ningress = [1]\noutput_port = 3", "\"a b\" is not a name"),
            ("name = \"a\"\noutput_port = 3", "ingress: is missing, and egress too"),
            (
                "name = \"a\"\ningress = [\"p9\"]\noutput_port = 3",
                "ingress[0]: no port has the number or name \"p9\"",
            ),
            ("name = \"a\"\negress = [4]\noutput_port = 3", "egress[0]: port p4 carries no packets"),
            (
                "name = \"a\"\ningress = [1]\nvlans = [4096]\noutput_port = 3",
                "vlans[0]: 4096 is out of range",
            ),
            (sources, "output_port: is missing"),
            (&format!("{sources}output_port = 3\nfile = \"x\""), "file: a mirror has one output"),
            (&format!("{sources}output_port = 1"), "a source of the mirror \"a\""),
            (&format!("{sources}output_port = 3\nmax_bytes = 100000"), "max_bytes: is a setting of files"),
            (&format!("{sources}file = \"\""), "file: is empty"),
            (&format!("{sources}file = \"x\"\nsnap_bytes = 13"), "snap_bytes: 13 is out of range"),
            (&format!("{sources}file = \"x\"\nmax_bytes = 9"), "max_bytes: 9 is out of range"),
            (
                &format!("{sources}file = \"x\"\nother_traffic = true"),
                "other_traffic: is a setting of output",
            ),
        ] {
            let found = read(&format!("[[datapath.mirror]]\n{section}\n")).unwrap_err();
            assert!(found.contains(part), "{section}: {found}");
        }
        let twice = |name: &str| {
            let section = format!("[[datapath.mirror]]\n{sources}file = \"x\"\n");
            read(&(section.clone() + &section.replace("\"a\"", name))).unwrap_err()
        };
        assert!(twice("\"a\"").contains("mirror[1].name: \"a\" is also that of mirror[0]"));
        assert!(twice("\"b\"").contains("mirror[1].file: is also that of mirror[0]"));
    }
}
