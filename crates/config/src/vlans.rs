// SPDX-License-Identifier: Apache-2.0
//! Checks of the VLANs of ports.

use crate::file::PortSection;
use crate::mistakes::Mistakes;
use crate::value::in_range;
use flow::bridge::{PortVlans, TrunkVlans};
use std::collections::BTreeSet;

/// Highest VLAN ID in a file. The standard reserves 4095.
const VID_MAX: i64 = 4_094;

/// Checks the VLANs of the port at `at`. As in Open vSwitch, a port with a tag and without a mode is an
/// access port, and a port without both is a trunk.
pub fn vlans(at: &str, port: &PortSection, mistakes: &mut Mistakes) -> Option<PortVlans> {
    let key = |name: &str| format!("{at}.{name}");
    let vid = |vid: i64| in_range(vid, 0..=VID_MAX).map(|vid| vid as u16);
    let mode = port.vlan_mode.as_deref().unwrap_or(if port.tag.is_some() { "access" } else { "trunk" });
    let tag = port.tag.map(|tag| mistakes.at(key("tag"), vid(tag)));
    let trunks = trunks(&key("trunks"), port.trunks.as_deref(), mistakes);
    match mode {
        "access" if port.trunks.is_some() => mistakes.wrong(
            key("trunks"),
            "an access port carries only the VLAN of its tag; omit it, or use vlan_mode = \"native-untagged\"",
        ),
        "access" | "native-tagged" | "native-untagged" => {}
        "trunk" if port.tag.is_some() => mistakes.wrong(
            key("tag"),
            "a trunk has no VLAN of its own; omit it, or use vlan_mode = \"native-untagged\"",
        ),
        "trunk" => {}
        other => mistakes.wrong(
            key("vlan_mode"),
            format!(
                "there is no mode \"{other}\"; use \"access\", \"trunk\", \"native-tagged\" or \"native-untagged\""
            ),
        ),
    }
    if mode == "trunk" {
        return Some(PortVlans::Trunk(trunks?));
    }
    let native = mistakes.needed(key("tag"), tag, "tag = 10")??;
    match mode {
        "access" => Some(PortVlans::Access(native)),
        "native-tagged" => Some(PortVlans::NativeTagged { native, trunks: trunks? }),
        "native-untagged" => Some(PortVlans::NativeUntagged { native, trunks: trunks? }),
        _ => None,
    }
}

fn trunks(key: &str, list: Option<&[i64]>, mistakes: &mut Mistakes) -> Option<TrunkVlans> {
    let Some(list) = list else { return Some(TrunkVlans::All) };
    if list.is_empty() {
        mistakes.wrong(key, "is empty; omit it to carry all VLANs, or name a VLAN, such as [10]");
        return None;
    }
    let vids = list.iter().map(|vid| in_range(*vid, 0..=VID_MAX).map(|vid| vid as u16));
    let vids: Result<BTreeSet<u16>, String> = vids.collect();
    mistakes.at(key, vids).map(TrunkVlans::Only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// Reads a file with one port that has these settings.
    fn read(settings: &str) -> Result<PortVlans, String> {
        let text = format!(
            "control = \"/tmp/a.sock\"\n[[worker]]\n[[datapath]]\nid = 1\n[[datapath.port]]\nnumber = 1\n\
             name = \"p1\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n{settings}"
        );
        match Config::parse(&text) {
            Ok(config) => Ok(config.datapath.ports[0].bridge.vlans.clone()),
            Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        }
    }

    fn only(vids: &[u16]) -> TrunkVlans {
        TrunkVlans::Only(vids.iter().copied().collect())
    }

    #[test]
    fn a_mode_may_be_omitted() {
        assert_eq!(read(""), Ok(PortVlans::default()));
        assert_eq!(read("tag = 10"), Ok(PortVlans::Access(10)));
        assert_eq!(read("trunks = [20, 10]"), Ok(PortVlans::Trunk(only(&[10, 20]))));
    }

    #[test]
    fn a_native_port_has_a_tag_and_trunks() {
        let untagged = PortVlans::NativeUntagged { native: 1, trunks: TrunkVlans::All };
        assert_eq!(read("vlan_mode = \"native-untagged\"\ntag = 1"), Ok(untagged));
        let tagged = PortVlans::NativeTagged { native: 4_094, trunks: only(&[0, 7]) };
        assert_eq!(read("vlan_mode = \"native-tagged\"\ntag = 4094\ntrunks = [7, 0]"), Ok(tagged));
    }

    #[test]
    fn mistakes_are_described() {
        for (text, expected) in [
            ("tag = 4095", ".tag: 4095 is out of range; use 0 to 4094"),
            ("tag = -1", ".tag: -1 is out of range"),
            ("trunks = [1, 5000]", ".trunks: 5000 is out of range"),
            ("trunks = []", ".trunks: is empty"),
            ("tag = 1\ntrunks = [2]", ".trunks: an access port carries only the VLAN of its tag"),
            ("vlan_mode = \"trunk\"\ntag = 1", ".tag: a trunk has no VLAN of its own"),
            ("vlan_mode = \"access\"", ".tag: is missing; write tag = 10"),
            ("vlan_mode = \"dot1q-tunnel\"", ".vlan_mode: there is no mode \"dot1q-tunnel\""),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
