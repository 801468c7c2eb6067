// SPDX-License-Identifier: Apache-2.0
//! Tests of ovs-ofctl, command by command.

use crate::lab::{Lab, frame, until};
use std::process::Stdio;

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn the_switch_and_its_ports_are_shown() {
    let lab = Lab::start(1, 2, "");
    has(&lab.ofctl(&["show"]), &["dpid:0000000000000007", "n_tables:255", " 1(p1): addr:", "frags=normal"]);
    has(&lab.ofctl(&["dump-desc"]), &["Manufacturer: Shunt", "DP Description: datapath 7"]);
    has(&lab.ofctl(&["dump-ports-desc"]), &[" 1(p1): ", " 2(p2): ", "LIVE"]);
    has(&lab.ofctl(&["dump-ports"]), &["2 ports", "port  1: rx pkts=0", "port  2: "]);
    has(&lab.ofctl(&["dump-ports", "2"]), &["1 ports", "port  2: "]);
    has(&lab.ofctl(&["dump-tables"]), &["table 0:", "active=1", "tables 2...254: ditto"]);
    has(&lab.ofctl(&["dump-table-features"]), &["next tables: 1-254", "tables 1...253: ditto", "table 254:"]);
    has(&lab.ofctl(&["queue-stats"]), &["0 queues"]);
    has(&lab.ofctl(&["probe"]), &[]);
}

#[test]
fn entries_are_changed_with_and_without_strict() {
    let lab = Lab::start(1, 2, "");
    lab.ofctl(&["del-flows"]);
    assert_eq!(lab.flows(), [""; 0]);
    lab.ofctl(&["add-flow", "priority=5,tcp,actions=output:1"]);
    lab.ofctl(&["add-flow", "priority=6,tcp,tcp_dst=80,cookie=0x17,actions=output:2"]);
    lab.ofctl(&["add-flow", "table=3,udp,actions=drop"]);
    has(&lab.ofctl(&["dump-aggregate"]), &["flow_count=3"]);
    has(&lab.ofctl(&["dump-aggregate", "table=3"]), &["flow_count=1"]);
    lab.ofctl(&["--strict", "mod-flows", "priority=5,tcp,actions=output:2"]);
    has(
        &lab.flows().join("\n"),
        &["priority=5,tcp actions=output:2", "priority=6,tcp,tp_dst=80 actions=output:2"],
    );
    lab.ofctl(&["mod-flows", "tcp,actions=drop"]);
    let flows = lab.flows().join("\n");
    assert_eq!(flows.matches("actions=drop").count(), 3, "{flows}");
    has(&lab.ofctl(&["dump-flows", "cookie=0x10/0xf0"]), &["cookie=0x17"]);
    lab.ofctl(&["--strict", "del-flows", "priority=6,tcp"]);
    assert_eq!(lab.flows().len(), 3, "an entry with another match was deleted");
    lab.ofctl(&["--strict", "del-flows", "priority=5,tcp"]);
    assert_eq!(lab.flows().len(), 2);
    lab.ofctl(&["del-flows", "cookie=0x17/-1"]);
    has(&lab.flows().join("\n"), &["table=3, udp actions=drop"]);
    assert_eq!(lab.flows().len(), 1);
    let (good, text) = lab.try_ofctl(&["add-flow", "check_overlap,table=3,ip,actions=drop"]);
    assert!(!good);
    has(&text, &["OFPFMFC_OVERLAP"]);
}

#[test]
fn flow_files_are_loaded_alone_and_in_bundles() {
    let lab = Lab::start(1, 2, "");
    let lines: String = (0..300).map(|n| format!("tcp,tcp_dst={n},actions=output:1\n")).collect();
    lab.ofctl(&["add-flows", &lab.file("many", &lines)]);
    has(&lab.ofctl(&["dump-aggregate"]), &["flow_count=301"]);
    let few = lab.file("few", "tcp,tcp_dst=3,actions=output:1\nudp,actions=output:2\n");
    lab.ofctl(&["replace-flows", &few]);
    assert_eq!(lab.flows().len(), 2);
    assert_eq!(lab.ofctl(&["diff-flows", &few]), "");
    lab.ofctl(&["--bundle", "add-flows", &lab.file("many", &lines)]);
    assert_eq!(lab.flows().len(), 301);
    lab.ofctl(&["--bundle", "replace-flows", &few]);
    assert_eq!(lab.flows().len(), 2);
    let wrong = lab.file("wrong", "arp,actions=output:1\nicmp,actions=group:99\n");
    let (good, text) = lab.try_ofctl(&["--bundle", "add-flows", &wrong]);
    assert!(!good, "{text}");
    assert_eq!(lab.flows().len(), 2, "a part of the bundle was applied");
    let mixed = "group add group_id=1,type=all,bucket=output:1\nflow add icmp,actions=group:1\n\
                 group mod group_id=1,type=all,bucket=output:2\nflow delete udp\n";
    lab.ofctl(&["bundle", &lab.file("mixed", mixed)]);
    has(&lab.ofctl(&["--no-names", "dump-groups"]), &["group_id=1,type=all,bucket=actions=output:2"]);
    assert_eq!(lab.flows().len(), 2);
    let late = lab.file("late", "group delete group_id=1\nflow add arp,actions=group:1\n");
    let (good, text) = lab.try_ofctl(&["bundle", &late]);
    assert!(!good && text.contains("OFPBAC_BAD_OUT_GROUP"), "{text}");
    assert_eq!(lab.flows().len(), 2, "the group and its entry are still there");
    lab.ofctl(&["--bundle", "del-groups"]);
    assert_eq!(lab.flows().len(), 1);
}

#[test]
fn groups_and_meters_are_created() {
    let mut lab = Lab::start(1, 3, "");
    lab.ofctl(&["add-group", "group_id=1,type=all,bucket=output:2,bucket=output:3"]);
    lab.ofctl(&["add-group", "group_id=2,type=select,bucket=weight:2,output:2,bucket=weight:1,output:3"]);
    lab.ofctl(&["add-group", "group_id=3,type=fast_failover,bucket=watch_port:2,output:2"]);
    lab.ofctl(&["add-group", "group_id=4,type=indirect,bucket=output:2"]);
    let groups = lab.ofctl(&["--no-names", "dump-groups"]);
    has(
        &groups,
        &["group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3", "group_id=2,type=select"],
    );
    has(&groups, &["group_id=3,type=ff,bucket=watch_port:2,actions=output:2", "group_id=4,type=indirect"]);
    lab.ofctl(&["add-flow", "in_port=1,actions=group:1"]);
    lab.push(1, &frame(2, 1));
    assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 1), frame(2, 1)));
    has(
        &lab.ofctl(&["dump-group-stats", "group_id=1"]),
        &["ref_count=1,packet_count=1,byte_count=60,bucket0:packet_count=1"],
    );
    lab.ofctl(&["mod-group", "group_id=1,type=all,bucket=output:3"]);
    let (good, text) = lab.try_ofctl(&["add-group", "group_id=1,type=all,bucket=output:2"]);
    assert!(!good);
    has(&text, &["OFPGMFC_GROUP_EXISTS"]);
    lab.ofctl(&["del-groups", "group_id=1"]);
    assert_eq!(lab.flows().len(), 1, "the flow must be deleted with its group");
    lab.ofctl(&["del-groups"]);
    assert_eq!(lab.ofctl(&["dump-groups"]).lines().count(), 1);
    has(&lab.ofctl(&["dump-group-features"]), &["Types:  0xf", "Capabilities:  0xf"]);

    lab.ofctl(&["add-meter", "meter=1,pktps,burst,stats,band=type=drop,rate=5,burst_size=5"]);
    lab.ofctl(&["add-meter", "meter=2,kbps,band=type=dscp_remark,rate=9,prec_level=1"]);
    has(&lab.ofctl(&["dump-meters"]), &["meter=1 pktps burst stats", "rate=5 burst_size=5", "meter=2 kbps"]);
    lab.ofctl(&["add-flow", "in_port=1,actions=meter:1,output:2"]);
    lab.push(1, &frame(2, 1));
    lab.pop(2);
    has(
        &lab.ofctl(&["meter-stats", "meter=1"]),
        &["meter:1 flow_count:1 packet_in_count:1 byte_in_count:60"],
    );
    lab.ofctl(&["mod-meter", "meter=1,pktps,band=type=drop,rate=7"]);
    has(&lab.ofctl(&["meter-features"]), &["drop dscp_remark", "kbps pktps burst stats"]);
    lab.ofctl(&["del-meter", "meter=1"]);
    lab.ofctl(&["del-meters"]);
    assert_eq!(lab.ofctl(&["dump-meters"]).lines().count(), 1);
}

#[test]
fn packets_are_sent_and_ports_are_configured() {
    let mut lab = Lab::start(1, 2, "");
    let hex: String = frame(9, 8).iter().map(|byte| format!("{byte:02x}")).collect();
    lab.ofctl(&["packet-out", &format!("in_port=controller packet={hex} actions=output:2")]);
    assert_eq!(lab.pop(2), frame(9, 8));
    lab.ofctl(&["add-flow", "in_port=1,actions=output:2"]);
    lab.ofctl(&["packet-out", &format!("in_port=1 packet={hex} actions=table")]);
    assert_eq!(lab.pop(2), frame(9, 8));
    // Without an ingress port, a packet-out that is flooded leaves through all ports.
    lab.ofctl(&["add-flow", "priority=1,actions=flood"]);
    for none in ["none", "any", "local", "controller", "0"] {
        lab.ofctl(&["packet-out", none, "output:2", &hex]);
        assert_eq!(lab.pop(2), frame(9, 8), "{none}");
        for action in ["all", "normal", "table"] {
            lab.ofctl(&["packet-out", &format!("in_port={none} packet={hex} actions={action}")]);
            assert_eq!((lab.pop(1), lab.pop(2)), (frame(9, 8), frame(9, 8)), "{none} {action}");
        }
    }
    assert!(!lab.ofctl(&["dump-ports", "1"]).contains("rx pkts=1,"), "a packet-out is not received");
    for (words, error) in [
        (&["packet-out", "9", "output:2", &hex][..], "OFPBRC_BAD_PORT"),
        (&["packet-out", "none", "local", &hex], "OFPBAC_BAD_OUT_PORT"),
        (&["add-flow", "actions=local"], "OFPBAC_BAD_OUT_PORT"),
        (&["add-flow", "actions=write_actions(local)"], "OFPBAC_BAD_OUT_PORT"),
        (&["add-group", "group_id=1,type=all,bucket=actions=local"], "OFPBAC_BAD_OUT_PORT"),
    ] {
        let (good, text) = lab.try_ofctl(words);
        assert!(!good && text.contains(error), "{words:?}: {text}");
    }
    lab.ofctl(&["mod-port", "p2", "no-forward"]);
    has(&lab.ofctl(&["dump-ports-desc"]), &["NO_FWD"]);
    lab.ofctl(&["mod-port", "2", "down"]);
    has(&lab.ofctl(&["dump-ports-desc"]), &["PORT_DOWN NO_FWD"]);
    lab.ofctl(&["mod-port", "2", "up"]);
    lab.ofctl(&["mod-port", "2", "forward"]);
    assert!(!lab.ofctl(&["dump-ports-desc"]).contains("PORT_DOWN"));
    lab.push(1, &frame(2, 1));
    assert_eq!(lab.pop(2), frame(2, 1));
    until("the port has counted the packet", || {
        lab.ofctl(&["dump-ports", "1"]).contains("rx pkts=1, bytes=60")
    });
}

#[test]
fn a_monitor_reports_packets_and_ports() {
    let mut lab = Lab::start(1, 2, "");
    let log = lab.file("monitor", "");
    let out = std::fs::File::create(&log).unwrap();
    let mut monitor = lab
        .tool("ovs-ofctl")
        .args(["-O", "OpenFlow13", "monitor", &format!("tcp:{}", lab.address), "65534"])
        .stdout(Stdio::null())
        .stderr(out)
        .spawn()
        .unwrap();
    lab.ofctl(&["add-flow", "in_port=1,actions=controller"]);
    // The monitor may still be connecting when the first packets arrive.
    until("the monitor reports a packet", || {
        lab.push(1, &frame(2, 1));
        std::fs::read_to_string(&log).unwrap().contains("OFPT_PACKET_IN (OF1.3)")
    });
    lab.ofctl(&["mod-port", "2", "down"]);
    until("the monitor reports a port", || {
        std::fs::read_to_string(&log).unwrap().contains("OFPT_PORT_STATUS (OF1.3)")
    });
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    has(&text, &["total_len=60 in_port=1 (via action) data_len=60 (unbuffered)", "MOD: 2(p2)", "PORT_DOWN"]);
}

#[test]
fn a_client_of_another_version_gets_the_standard_answer() {
    let lab = Lab::start(1, 1, "");
    let output = lab
        .tool("ovs-ofctl")
        .args(["--timeout=30", "show", &format!("tcp:{}", lab.address)])
        .output()
        .unwrap();
    assert!(!output.status.success());
    has(&String::from_utf8(output.stderr).unwrap(), &["version negotiation failed"]);
    // The log contains a warning that suggests a remedy.
    let reported = ["WARN", "the peer speaks OpenFlow 1.0", "use -O OpenFlow13"];
    until("the log reports the version", || lab.log.lines(&reported).len() == 1);
    lab.ofctl(&["probe"]);
}

#[test]
fn queue_settings_and_counters_are_read() {
    let queues = "[[datapath.port.queue]]\nid = 1\nmin_rate_kbps = 1000\n[[datapath.port.queue]]\nid = 7\npriority = 7\n";
    let lab = Lab::start_queued(1, 2, queues);
    for port in [&["queue-get-config"][..], &["queue-get-config", "2"]] {
        has(&lab.ofctl(port), &["queue 0", "queue 1", "queue 7"]);
    }
    assert!(!lab.ofctl(&["queue-get-config", "1"]).contains("queue 0"), "port 1 has no queues");
    has(&lab.ofctl(&["queue-stats"]), &["3 queues", "port 2 queue 7: bytes=0, pkts=0, errors=0"]);
    has(&lab.ofctl(&["show"]), &["QUEUE_STATS"]);
    let packet = "ffffffffffff020000000001880100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
    for action in ["set_queue:7,output:2", "set_queue:3,output:2", "set_queue:1,output:1"] {
        lab.ofctl(&["packet-out", &format!("in_port=controller packet={packet} actions={action}")]);
    }
    until("the packets have left", || {
        let stats = lab.ofctl(&["queue-stats", "2"]);
        ["queue 0: bytes=60, pkts=1,", "queue 1: bytes=0, pkts=0,", "queue 7: bytes=60, pkts=1,"]
            .iter()
            .all(|part| stats.contains(part))
    });
    has(&lab.ofctl(&["queue-stats", "2", "7"]), &["1 queues"]);
    for (words, error) in [
        (&["queue-stats", "9"][..], "OFPQOFC_BAD_PORT"),
        (&["queue-stats", "2", "3"], "OFPQOFC_BAD_QUEUE"),
        (&["queue-stats", "1", "1"], "OFPQOFC_BAD_QUEUE"),
        (&["queue-get-config", "9"], "OFPQOFC_BAD_PORT"),
    ] {
        let (_, text) = lab.try_ofctl(words);
        assert!(text.contains(error), "{words:?}: {text}");
    }
    // Ports may have different queues, so an unknown queue number is accepted. Only OFPQ_ALL is refused.
    lab.ofctl(&["add-flow", "actions=set_queue:100,output:2"]);
    let (good, text) = lab.try_ofctl(&["add-flow", "actions=set_queue:0xffffffff,output:2"]);
    assert!(!good && text.contains("OFPBAC_BAD_QUEUE"), "{text}");
}
