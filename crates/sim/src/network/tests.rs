// SPDX-License-Identifier: Apache-2.0
//! Tests of networks whose switches have ordinary entries. Four switches form a ring. Port 1 leads to the
//! next switch, port 2 to the previous one, and port 3 to a host.

use super::*;
use flow::group::{Bucket, Group, GroupType};
use flow::syntax::{ParseOptions, parse_flows};
use flow::{Action, GroupId, Nanos, PortNo, port_no};
use model::{Change, GroupCommand};
use wire::PacketBuilder;

const NODES: usize = 4;
const DELAY_NS: Nanos = Nanos(1_000);
const PACKETS: u32 = 100;

fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, host as u8]
}

fn flows(text: &str) -> Vec<Change> {
    parse_flows(text, ParseOptions::default()).map(|flow| flow.unwrap().into()).collect()
}

/// Returns the configuration of a switch. Packets for its own host use port 3. Other packets use port 1, or
/// port 2 (even as their ingress port) if port 1 is down. Packets that were turned back keep their new
/// direction.
fn setup(node: usize) -> Setup {
    let bucket = |watch, port| Bucket {
        watch_port: Some(watch),
        actions: vec![Action::output(port)],
        ..Bucket::default()
    };
    let group = |id, back| {
        let kind = GroupType::FastFailover;
        Change::Group(
            GroupCommand::Add,
            Group { id, kind, buckets: vec![bucket(PortNo(1), PortNo(1)), bucket(PortNo(2), back)] },
        )
    };
    let mut changes = vec![group(GroupId(1), PortNo(2)), group(GroupId(2), port_no::IN_PORT)];
    changes.extend(flows(&format!(
        "priority=2,dl_dst=02:00:00:00:00:0{node} actions=output:3
         priority=1,in_port=1 actions=output:2
         priority=1,in_port=2 actions=group:2
         priority=0 actions=group:1"
    )));
    Setup { changes, stateless: None }
}

fn flow(from: usize, to: usize) -> Flow {
    let packet = PacketBuilder::ethernet(mac(to), mac(from)).ethertype(0x88b7).pad_to(100).build();
    let hops = (to + NODES - from) % NODES;
    let hop = |n: usize| {
        let link = (from + n) % NODES;
        Hop { link, node: (link + 1) % NODES, link_guarded: true, node_guarded: n + 1 < hops }
    };
    Flow {
        from,
        to,
        template: packet.into(),
        payload_at: 14,
        first_ns: Nanos(17 * from as u64),
        interval_ns: Nanos(10_000),
        packets: PACKETS,
        times: None,
        hops_max: 2 * NODES as u32,
        routes: vec![(0..hops).map(hop).collect()],
    }
}

fn ring() -> Network {
    let node = |at| Node {
        name: format!("s{at}"),
        ports: vec![PortNo(1), PortNo(2), PortNo(3)],
        layer: None,
        setup: setup(at),
    };
    let link = |at| {
        let ends = [End { node: at, port: PortNo(1) }, End { node: (at + 1) % NODES, port: PortNo(2) }];
        NetworkLink { ends, delay_ns: DELAY_NS, rate_bps: None, queue_frames: 0 }
    };
    let host = |at| Host { name: format!("h{at}"), at: End { node: at, port: PortNo(3) } };
    let pairs = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
    Network {
        nodes: (0..NODES).map(node).collect(),
        links: (0..NODES).map(link).collect(),
        hosts: (0..NODES).map(host).collect(),
        flows: pairs.filter(|(from, to)| from != to).map(|(from, to)| flow(from, to)).collect(),
        acts: Vec::new(),
        detection_ns: Nanos(100_000),
        seed: 5,
        buffers: None,
    }
}

fn ends(report: &Report, exposure: Exposure) -> Ends {
    report.ends.get(&exposure).copied().unwrap_or_default()
}

#[test]
fn all_packets_arrive_once_by_the_paths_of_the_entries() {
    let report = run(&ring()).unwrap();
    assert_eq!((report.sent, report.delivered, report.lost()), (1_200, 1_200, 0));
    assert!(report.is_right());
    assert_eq!((report.hops.min, report.hops.max, report.hops.mean()), (1, 3, 2.0));
    // Flows over three links could also use the single link in the other direction.
    assert_eq!((report.detours.max, report.detours.sum), (2, 800));
    assert_eq!((report.paths, report.forwarded), (12, 1_200 * 3));
    assert_eq!(report.latency.mean_ns(), 2.0 * DELAY_NS.0 as f64);
    assert_eq!((report.added_bits.count, report.added_bits.max), (2_400, 0));
    assert_eq!(report.states, [InstanceState { entries: 4, groups: 2, ..InstanceState::default() }; NODES]);
    let end_ns = Nanos(51 + 99 * 10_000) + 3 * DELAY_NS;
    assert_eq!(report.end_ns, end_ns);
    // A failure after the arrival of the last packet changes nothing.
    let mut network = ring();
    network.acts = vec![(Nanos(7_000_000), Act::Link { link: 1, works: false })];
    let report = run(&network).unwrap();
    assert_eq!(report.end_ns, end_ns);
    assert_eq!(
        report.failures,
        [FailureReport { part: NetworkPlace::Link(1), from_ns: Nanos(7_000_000), met: 0, guarded: 0 }]
    );
}

#[test]
fn the_same_network_gives_the_same_report() {
    let mut network = ring();
    network.acts = vec![(Nanos(200_000), Act::Node { node: 2, works: false })];
    let outcome = |network: &Network| format!("{:?}", run(network).unwrap());
    assert_eq!(outcome(&network), outcome(&network));
}

#[test]
fn a_failed_link_loses_packets_until_detection() {
    let mut network = ring();
    network.acts = vec![(Nanos(200_500), Act::Link { link: 1, works: false })];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    // 6 of the 12 flows cross the link, and some of their packets were on the link when it failed.
    let lost = report.lost[&("link_down", NetworkPlace::Link(1))];
    assert!((60..66).contains(&lost) && lost == report.lost(), "{report:?}");
    assert_eq!(ends(&report, Exposure::Undetected).lost, lost);
    let guarded = ends(&report, Exposure::Guarded);
    assert!(guarded.delivered > 400 && guarded.lost == 0, "{report:?}");
    assert!(ends(&report, Exposure::OffPath).delivered > 400);
    // The longest path leads to switch 2 and back around the whole ring.
    assert_eq!(report.hops.max, 5);
}

#[test]
fn packets_on_an_interrupted_link_are_lost_even_if_it_recovers_at_once() {
    let mut network = ring();
    network.links[0].delay_ns = Nanos(500_000);
    let act = |works| Act::Link { link: 0, works };
    network.acts = vec![(Nanos(300_000), act(false)), (Nanos(300_001), act(true))];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert_eq!(report.lost.keys().copied().collect::<Vec<_>>(), [("link_down", NetworkPlace::Link(0))]);
    // About 30 packets of each of the 6 flows were on the link when it was interrupted.
    assert!((175..=185).contains(&report.lost()), "{report:?}");
    // The second interruption does not affect packets that the first one has lost.
    network.acts.extend([(Nanos(350_000), act(false)), (Nanos(350_001), act(true))]);
    let report = run(&network).unwrap();
    let lost = [Exposure::Undetected, Exposure::Several].map(|exposure| ends(&report, exposure).lost);
    assert!((175..=185).contains(&lost[0]) && lost[1] > 25, "{lost:?}");
    assert_eq!(lost[0] + lost[1], report.lost());
}

#[test]
fn a_failure_detected_at_the_arrival_of_a_packet_applies_to_it() {
    let mut network = ring();
    // Packets that host 0 sends at 200,000 ns are between switches 0 and 1 when link 1 fails. They reach
    // switch 1 when the failure is detected.
    network.detection_ns = DELAY_NS / 2;
    network.acts = vec![(Nanos(200_000) + DELAY_NS / 2, Act::Link { link: 1, works: false })];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert!(ends(&report, Exposure::Guarded).delivered > 400, "{report:?}");
}

#[test]
fn the_ends_of_a_flapping_link_detect_every_change_in_order() {
    let mut network = ring();
    // The entries have no backup, so packets for the failed link are lost.
    network.nodes[1].setup.changes =
        flows("priority=2,dl_dst=02:00:00:00:00:01 actions=output:3\npriority=0 actions=output:1");
    network.flows.iter_mut().flat_map(|flow| flow.routes.iter_mut().flatten()).for_each(|hop| {
        (hop.link_guarded, hop.node_guarded) = (false, false);
    });
    let act = |works| Act::Link { link: 1, works };
    network.acts = vec![
        (Nanos(200_500), act(false)),
        (Nanos(290_500), act(true)),
        (Nanos(350_500), act(false)),
        (Nanos(500_500), act(true)),
    ];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert!(report.lost.keys().any(|(reason, _)| *reason == "port_down"), "{report:?}");
}

#[test]
fn a_repaired_link_is_used_again() {
    let mut network = ring();
    let act = |works| Act::Link { link: 1, works };
    network.acts = vec![(Nanos(200_500), act(false)), (Nanos(500_500), act(true))];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert!((60..66).contains(&report.lost()), "{report:?}");
    let none = ends(&report, Exposure::None);
    assert!(none.delivered > 700 && none.lost == 0, "{report:?}");
}

#[test]
fn a_failed_switch_loses_the_packets_of_its_host() {
    let mut network = ring();
    let act = |works| Act::Node { node: 2, works };
    network.acts = vec![(Nanos(200_500), act(false)), (Nanos(600_500), act(true))];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert!(report.lost[&("node_down", NetworkPlace::Node(2))] > 100, "{report:?}");
    let end = ends(&report, Exposure::End);
    assert_eq!((end.delivered, ends(&report, Exposure::Guarded).lost), (0, 0));
    assert!(ends(&report, Exposure::Guarded).delivered > 20);
    assert!(ends(&report, Exposure::None).delivered > 500);
}

/// Replaces entries of a switch before the first packet is sent.
fn planted(node: usize, text: &str) -> Report {
    let mut network = ring();
    network.nodes[node].setup.changes.extend(flows(text));
    let report = run(&network).unwrap();
    assert!(!report.is_right(), "{report:?}");
    assert_eq!(report.sent, report.delivered + report.lost());
    report
}

#[test]
fn wrong_deliveries_are_reported() {
    let report = planted(1, "priority=9,dl_dst=02:00:00:00:00:03 actions=output:3");
    assert_eq!((report.misdelivered, report.lost[&("misdelivered", NetworkPlace::Host(1))]), (100, 100));
    // Packets of host 1 itself are not sent back to the port on which they arrived.
    assert_eq!(report.lost[&("ingress_port", NetworkPlace::Node(1))], 100);
}

#[test]
fn changed_packets_are_reported() {
    let report = planted(
        1,
        "priority=9,in_port=2,dl_dst=02:00:00:00:00:03 actions=set_field:02:00:00:00:00:09->eth_src,output:1",
    );
    assert_eq!((report.damaged, report.delivered), (100, 1_100));
}

#[test]
fn duplicates_are_reported() {
    let report = planted(1, "priority=9,dl_dst=02:00:00:00:00:03,actions=output:1,output:2");
    assert!(report.duplicated > 0, "{report:?}");
}

#[test]
fn loops_are_reported_and_end() {
    let mut network = ring();
    network.flows.truncate(1);
    network.flows[0].packets = 2;
    network.nodes[1].setup.changes.extend(flows("priority=9 actions=output:1"));
    let report = run(&network).unwrap();
    assert_eq!((report.strayed, report.delivered, report.lost()), (2, 0, 2), "{report:?}");
    assert!(report.lost.keys().all(|(reason, _)| *reason == "endless"));
}

#[test]
fn losses_for_lack_of_a_backup_are_reported() {
    let mut network = ring();
    network.acts = vec![(Nanos(200_500), Act::Link { link: 1, works: false })];
    network.nodes[1].setup.changes =
        flows("priority=2,dl_dst=02:00:00:00:00:01 actions=output:3\npriority=0 actions=output:1");
    let report = run(&network).unwrap();
    assert!(!report.is_right());
    assert_eq!(report.lost_wrongly(), report.lost[&("port_down", NetworkPlace::Node(1))]);
}

#[test]
fn a_configuration_is_changed_under_load() {
    let mut network = ring();
    let setup = Setup {
        changes: flows("priority=8,in_port=3,dl_dst=02:00:00:00:00:01 actions=output:2"),
        stateless: None,
    };
    network.acts = vec![(Nanos(500_000), Act::Configure { node: 2, setup })];
    let report = run(&network).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert_eq!((report.paths, report.delivered), (13, 1_200));
    assert_eq!(report.states[2].entries, 5);
}

#[test]
fn excess_packets_of_a_link_wait_or_are_lost_as_queue_full() {
    let mut network = ring();
    // Transmission of a packet takes 20 us, and up to three flows send a packet every 10 us.
    network.links.iter_mut().for_each(|link| (link.rate_bps, link.queue_frames) = (Some(50_000_000), 4));
    let report = run(&network).unwrap();
    assert!(report.is_right(), "losses for lack of space are no errors: {report:?}");
    assert!(report.lost() > 0 && report.lost.keys().all(|(reason, _)| *reason == "link_queue_full"));
    assert_eq!(ends(&report, Exposure::None).crowded_out, report.lost());
    assert!(report.latency.max_ns() > 3e4, "{report:?}");
}

#[test]
fn references_to_missing_parts_are_refused() {
    let refused = |change: fn(&mut Network)| {
        let mut network = ring();
        change(&mut network);
        run(&network).unwrap_err().to_string()
    };
    assert_eq!(refused(|n| n.flows[1].to = 9), "flow 1 refers to a missing host, link or switch");
    assert_eq!(
        refused(|n| n.acts.push((Nanos(0), Act::Link { link: 9, works: true }))),
        "act 0 refers to a missing host, link or switch"
    );
    assert_eq!(refused(|n| n.hosts[0].at.port = PortNo(9)), "port 9 of s0: the switch has no such port");
    assert_eq!(
        refused(|n| n.hosts[0].at.port = PortNo(1)),
        "port 1 of s0: two links or hosts use this port; give each a separate port"
    );
    let why = refused(|n| n.nodes[3].setup.changes.extend(flows("actions=group:7")));
    assert!(why.starts_with("s3: "), "{why}");
}
