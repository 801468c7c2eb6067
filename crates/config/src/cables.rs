// SPDX-License-Identifier: Apache-2.0
//! Checks the cables of patch ports, which connect two ports of a file.

use crate::mistakes::Mistakes;
use crate::settings::Config;
use std::collections::BTreeMap;

/// Adds a mistake for each port whose cable connects two other ports, and a note for each port that is alone
/// on its cable. Each configuration comes with the position of its datapath among the `datapaths` of the
/// file.
pub(crate) fn check_cables(configs: &mut [(usize, Config)], datapaths: usize, mistakes: &mut Mistakes) {
    let mut cables: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, (_, config)) in configs.iter().enumerate() {
        for (n, port) in config.datapath.ports.iter().enumerate() {
            if port.driver == port::patch::NAME {
                cables.entry(port.device.clone()).or_default().push((at, n));
            }
        }
    }
    for (cable, ports) in cables {
        for (at, n) in ports.iter().skip(2) {
            let key = match configs.get(*at) {
                Some((place, _)) if datapaths > 1 => format!("datapath[{place}].port[{n}].device"),
                _ => format!("datapath.port[{n}].device"),
            };
            mistakes.wrong(key, format!("the cable \"{cable}\" connects two other ports; use another name"));
        }
        if let [(at, n)] = ports[..]
            && let Some((_, config)) = configs.get_mut(at)
        {
            let name = config.datapath.ports.get(n).map(|port| port.name.clone()).unwrap_or_default();
            config
                .notes
                .push(format!("port {name}: no other port has the cable \"{cable}\"; its link is down."));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn datapath(id: u32, cables: &[&str]) -> String {
        let mut text = format!("[[datapath]]\nid = {id}\ncontrol = \"/tmp/{id}.sock\"\n");
        for (n, cable) in (1..).zip(cables) {
            text += &format!(
                "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"patch\"\ndevice = \"{cable}\"\nworkers = [0]\n"
            );
        }
        text
    }

    #[test]
    fn a_cable_connects_two_ports() {
        let read = |first: &[&str], second: &[&str]| {
            Config::parse_all(&format!("[[worker]]\n{}{}", datapath(1, first), datapath(2, second)))
        };
        let configs = read(&["a", "b"], &["a", "b"]).unwrap();
        assert!(configs.iter().all(|config| config.notes.is_empty()));
        let configs = read(&["a", "a"], &["b"]).unwrap();
        let note = "port p1: no other port has the cable \"b\"; its link is down.";
        assert_eq!(configs[1].notes, [note]);
        let mistakes = read(&["a"], &["a", "b", "a"]).unwrap_err();
        let text = mistakes[0].to_string();
        assert!(text.starts_with("datapath[1].port[2].device: the cable \"a\" connects two other"), "{text}");
    }
}
