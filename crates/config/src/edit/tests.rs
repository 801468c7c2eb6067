// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::Config;

const TEXT: &str = "# the switch of room 7
control = \"/tmp/s.sock\"   # its socket
[[worker]]
[[worker]]

[[datapath]]
id = 3
# the uplink
[[datapath.port]]
number = 1
name = \"up\"     # to the core
driver = \"mem\"
device = \"null\" # later: veth1
workers = [0]
[[datapath.port]]
number = 2
name = \"p2\"
driver = \"mem\"
device = \"null\"
workers = [0, 1]
[[datapath.port.queue]]
id = 1   # video
# after the port
[datapath.lanes]
normal = 100

[[datapath]]
id = 4
control = \"/tmp/t.sock\"
[[datapath.port]]
number = 1
name = \"up\"
driver = \"mem\"
device = \"null\"
workers = [1]
";

fn checked(edit: &PortEdit, datapath: u64) -> String {
    let text = edit.apply(TEXT, datapath).unwrap();
    Config::parse_all(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
    text
}

fn mem(number: u32, name: &str) -> PortForm {
    PortForm {
        number: Some(number),
        name: Some(name.into()),
        driver: Some("mem".into()),
        device: Some("null".into()),
        workers: Some(vec![1]),
        ..PortForm::default()
    }
}

/// Returns the numbers of the ports of each datapath.
fn numbers(text: &str) -> Vec<Vec<u32>> {
    let configs = Config::parse_all(text).unwrap();
    configs.iter().map(|config| config.datapath.ports.iter().map(|port| port.number.0).collect()).collect()
}

#[test]
fn a_port_is_added_to_its_datapath_and_all_else_stays() {
    let text = checked(&PortEdit::Add(mem(9, "p9")), 3);
    assert_eq!(numbers(&text), [vec![1, 2, 9], vec![1]]);
    let added = "\n[[datapath.port]]\nnumber = 9\nname = \"p9\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [1]\n";
    assert!(text.contains(added), "{text}");
    assert_eq!(text.replacen(added, "", 1), TEXT);
    assert_eq!(numbers(&checked(&PortEdit::Add(mem(9, "p9")), 4)), [vec![1, 2], vec![1, 9]]);
    // The first port of a datapath.
    let empty = "[[worker]]\n[[datapath]]\nid = 1\n";
    let text = PortEdit::Add(PortForm { workers: Some(vec![0]), ..mem(1, "p1") }).apply(empty, 1).unwrap();
    assert_eq!(numbers(&text), [[1]]);
}

#[test]
fn a_port_is_removed_by_its_number_or_name() {
    for port in ["1", "up"] {
        let text = checked(&PortEdit::Remove(port.into()), 3);
        assert_eq!(numbers(&text), [vec![2], vec![1]]);
        assert!(text.starts_with("# the switch of room 7\n") && text.contains("# video"), "{text}");
    }
    assert_eq!(numbers(&checked(&PortEdit::Remove("up".into()), 4)), [vec![1, 2], vec![]]);
}

#[test]
fn only_the_given_settings_of_a_port_change() {
    let to = PortForm { device: Some("null".into()), workers: Some(vec![1, 0]), ..PortForm::default() };
    let text = checked(&PortEdit::Set { port: "up".into(), to }, 3);
    assert_eq!(text, TEXT.replacen("workers = [0]\n", "workers = [1, 0]\n", 1));
    let to = PortForm { name: Some("core".into()), ..PortForm::default() };
    let text = checked(&PortEdit::Set { port: "1".into(), to }, 3);
    assert_eq!(
        text,
        TEXT.replacen("name = \"up\"     # to the core", "name = \"core\"     # to the core", 1)
    );
}

#[test]
fn a_receive_ring_is_set_and_removed() {
    let to = |ring: u32| PortForm {
        driver: Some("af_packet".into()),
        receive_ring: Some(ring),
        ..PortForm::default()
    };
    let set = PortEdit::Set { port: "up".into(), to: to(512) }.apply(TEXT, 3).unwrap();
    assert!(set.contains("receive_ring = 512\n"), "{set}");
    let removed = PortEdit::Set { port: "up".into(), to: to(0) }.apply(&set, 3).unwrap();
    assert!(!removed.contains("receive_ring"), "{removed}");
    assert_eq!(PortEdit::Set { port: "up".into(), to: to(0) }.apply(&removed, 3).unwrap(), removed);
}

#[test]
fn queues_are_replaced_as_a_whole() {
    let queue = QueueForm { id: 5, max_rate_kbps: Some(1_000), priority: Some(2), ..QueueForm::default() };
    let queues = |queues: Vec<QueueForm>| PortForm { queues: Some(queues), ..PortForm::default() };
    let ids = |text: &str| -> Vec<u32> {
        let ports = &Config::parse_all(text).unwrap()[0].datapath.ports;
        ports[1].queues.iter().map(|queue| queue.id.0).collect()
    };
    let two = vec![queue, QueueForm { id: 0, ..queue }];
    let text = checked(&PortEdit::Set { port: "2".into(), to: queues(two) }, 3);
    let mut found = ids(&text);
    found.sort_unstable();
    assert_eq!(found, [0, 5]);
    let text = checked(&PortEdit::Set { port: "2".into(), to: queues(Vec::new()) }, 3);
    assert!(ids(&text).is_empty());
}

#[test]
fn settings_for_normal_are_set_and_removed() {
    let of_port = |text: &str| Config::parse_all(text).unwrap()[0].datapath.ports[1].bridge.clone();
    let storm = StormForm {
        broadcast: Some((100, Some(20))),
        multicast: Some((50, None)),
        action: Some("shut".into()),
        reopen: Some("30s".into()),
        ..StormForm::default()
    };
    let to = PortForm {
        vlan_mode: Some("native-untagged".into()),
        tag: Some(10),
        trunks: Some(vec![20, 30]),
        storm: Some(storm),
        mac_limit: Some(5),
        ..PortForm::default()
    };
    let text = checked(&PortEdit::Set { port: "2".into(), to }, 3);
    let expected = "VLAN mode native-untagged 10, VLANs 20,30; broadcasts limited to 100/s, burst 20; \
                    multicasts limited to 50/s, burst 50; closes for 30000 ms above a limit; \
                    at most 5 learned addresses";
    assert_eq!(of_port(&text).to_string(), expected);
    let to = PortForm {
        no_vlans: true,
        storm: Some(StormForm::default()),
        mac_limit: Some(0),
        ..PortForm::default()
    };
    let text = PortEdit::Set { port: "2".into(), to }.apply(&text, 3).unwrap();
    assert_eq!(of_port(&text), flow::BridgePort::default());
    assert_eq!(of_port(&text).to_string(), "VLAN mode trunk, all VLANs; no storm limits");
    assert!(!text.contains("storm") && !text.contains("tag") && !text.contains("mac_limit"), "{text}");
}

#[test]
fn what_cannot_be_edited_is_refused_with_a_reason() {
    for (text, datapath, port, part) in [
        (TEXT, 5, "1", "no datapath 5"),
        (TEXT, 3, "7", "no port has the number or name \"7\"; there are 1 (up), 2 (p2)"),
        ("[[datapath]]\nid = 1\n", 1, "7", "there are none"),
        ("datapath = [{ id = 1 }]\n", 1, "7", "does not write `datapath` as sections [[datapath]]"),
        ("[[datapath]]\nid = 1\nport = [{ number = 7 }]\n", 1, "7", "[[datapath.port]]"),
        ("[[datapath]\n", 1, "7", "is not TOML"),
    ] {
        let error = PortEdit::Remove(port.into()).apply(text, datapath).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_file_is_replaced_as_a_whole_with_its_mode() {
    let folder = std::env::temp_dir().join(format!("shunt-edit-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (path, link) = (folder.join("s.toml"), folder.join("link.toml"));
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("s.toml", &link).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    write(&link, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.mode() & 0o777, 0o640);
    assert_ne!(after.ino(), inode);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "no temporary file is left");
    assert!(write(&folder.join("none.toml"), "new").is_err());
    fs::remove_dir_all(&folder).unwrap();
}
