// SPDX-License-Identifier: Apache-2.0
//! Tests of loading, showing, dumping and clearing flows.

use crate::lab::{LONG, Lab, until};
use crate::{counters, frame};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};
use switch::control::{Changes, Client, ControlRequest, FlowForm, FlowPart, FlowRow};

fn load(client: &mut Client, text: &str) -> Result<Changes, String> {
    client
        .load(|take| {
            text.as_bytes().chunks(4_000).try_for_each(|piece| take(std::str::from_utf8(piece).unwrap()))
        })
        .map_err(|error| error.to_string())
}

fn lines(client: &mut Client, form: FlowForm) -> Vec<String> {
    let mut all = Vec::new();
    let done: Result<Value, _> = client.ask_parts(&ControlRequest::Flows { form }, |part: FlowPart| {
        if let FlowPart::Lines(lines) = part {
            all.extend(lines);
        }
        Ok(())
    });
    done.unwrap();
    all
}

fn rows(client: &mut Client) -> Vec<FlowRow> {
    let mut all = Vec::new();
    let done: Result<Value, _> =
        client.ask_parts(&ControlRequest::Flows { form: FlowForm::Rows }, |part: FlowPart| {
            if let FlowPart::Rows(rows) = part {
                all.extend(rows);
            }
            Ok(())
        });
    done.unwrap();
    all
}

fn exact(count: u32) -> String {
    let mut text = String::new();
    for n in 0..count {
        let [_, a, b, c] = n.to_be_bytes();
        writeln!(text, "priority=9,dl_dst=02:01:00:{a:02x}:{b:02x}:{c:02x},actions=output:{}", 1 + n % 3)
            .unwrap();
    }
    text
}

#[test]
fn loaded_flows_are_active_at_the_answer_and_count_packets() {
    let mut lab = Lab::start(2, 3, Some("# from the start\npriority=5,in_port=p1,actions=output:p3\n"));
    let mut client = lab.client();
    assert_eq!(lab.pass(1, &frame(1, 2), 3), frame(1, 2));
    for round in 0..50 {
        let (to, other) = if round % 2 == 0 { (2, 3) } else { (3, 2) };
        load(&mut client, &format!("priority=7,in_port=1,actions=output:{to}\n")).unwrap();
        assert_eq!(lab.pass(1, &frame(1, 2), to), frame(1, 2));
        assert!(lab.ports[other - 1].pop(0).is_none(), "round {round}");
    }
    let shown = lines(&mut client, FlowForm::Lines);
    assert_eq!(shown.len(), 3, "{shown:?}");
    let of = |text: &str| shown.iter().find(|line| line.contains(text)).unwrap();
    assert!(of("priority=5,").contains(" n_packets=1, n_bytes=60, "), "{shown:?}");
    assert!(of("priority=5,").ends_with("in_port=1 actions=output:3"), "{shown:?}");
    assert!(of("priority=7,").starts_with(" cookie=0x0, duration="), "{shown:?}");
    assert!(of("priority=0 ").ends_with("actions=NORMAL"), "{shown:?}");
    let rows = rows(&mut client);
    let row = rows.iter().find(|row| row.priority == 5).unwrap();
    assert_eq!(
        (row.packets, row.bytes, row.matching.as_str(), row.actions.as_str()),
        (1, 60, "in_port=1", "output:3")
    );
    let seen = counters(&lab);
    assert_eq!((seen.received, seen.forwarded), (51, 51));
}

#[test]
fn the_first_packets_meet_the_initial_flows() {
    const PORTS: usize = 32;
    const EACH: usize = 8;
    let mut text = String::new();
    for port in 1..=PORTS {
        writeln!(text, "priority=9,in_port={port},actions=output:{}", port % PORTS + 1).unwrap();
    }
    for workers in [1, 2] {
        let waiting = vec![frame(1, 2); EACH];
        let mut lab = Lab::start_under_traffic(workers, PORTS, Some(&text), &waiting);
        until("all have left", || counters(&lab).received == (PORTS * EACH) as u64);
        let seen = counters(&lab);
        assert_eq!((seen.forwarded, seen.copies), ((PORTS * EACH) as u64, (PORTS * EACH) as u64), "{seen:?}");
        for port in &mut lab.ports {
            let mut left = 0;
            until("the packets of the port have left", || {
                left += usize::from(port.pop(0).is_some());
                left == EACH
            });
            assert!(port.pop(0).is_none());
        }
    }
}

#[test]
fn a_load_is_atomic_and_reports_the_line_of_a_mistake() {
    let lab = Lab::start(1, 2, None);
    let mut client = lab.client();
    let before = lines(&mut client, FlowForm::File);
    let error =
        load(&mut client, "in_port=1,actions=output:2\n\nin_prot=2,actions=drop\nnw_dst=1,actions=\n")
            .unwrap_err();
    let reported: Vec<_> = error.lines().collect();
    assert!(reported[0].starts_with("line 3, column 1: ") && reported[0].contains("in_port"), "{error}");
    assert!(reported.len() == 2 && reported[1].starts_with("line 4, "), "{error}");
    let error =
        load(&mut client, "in_port=1,actions=drop\n# x\ncheck_overlap,in_port=1,actions=drop\n").unwrap_err();
    assert!(error.starts_with("line 3: ") && error.contains("overlap"), "{error}");
    assert_eq!(lines(&mut client, FlowForm::File), before);
    // The connection still works.
    let changes = load(&mut client, "in_port=1,actions=drop\nmodify in_port=1,actions=output:2").unwrap();
    assert_eq!((changes.added, changes.modified, changes.removed), (1, 1, 0));
}

#[test]
fn a_dump_loads_to_the_same_flows_and_clear_leaves_the_default() {
    let lab = Lab::start(1, 2, None);
    let mut client = lab.client();
    let text = "table=3,priority=7,idle_timeout=60,low_latency,tcp,nw_dst=10.0.0.0/8,actions=dec_ttl,output:2\n\
                cookie=0x12,send_flow_rem,arp,actions=write_actions(output:1),goto_table:3\n";
    load(&mut client, text).unwrap();
    let dumped = lines(&mut client, FlowForm::File);
    assert_eq!(dumped.len(), 3);
    let changes: Changes = client.ask(&ControlRequest::Clear).unwrap();
    assert_eq!((changes.added, changes.removed), (1, 3));
    let cleared = lines(&mut client, FlowForm::File);
    assert_eq!(cleared, ["priority=0 actions=NORMAL"]);
    load(&mut client, &dumped.join("\n")).unwrap();
    assert_eq!(lines(&mut client, FlowForm::File), dumped);
}

/// A file with meters, groups of every type that refer to each other, and flows that together have every
/// action, instruction and option.
const EVERYTHING: &str = "\
meter meter=1 kbps burst stats bands=type=drop rate=1000 burst_size=100
meter meter=7 pktps bands=type=dscp_remark rate=10 prec_level=2,type=drop rate=20
group group_id=9,type=indirect,bucket=set_queue:3,output:2
group group_id=1,type=select,bucket=weight:3,actions=push_vlan:0x8100,set_field:4099->vlan_vid,group:9,bucket=output:1
group group_id=5,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:1,actions=group:1,bucket=watch_port:2,actions=drop
group group_id=2,type=all,bucket=group:5,bucket=dec_ttl,output:IN_PORT
group group_id=4,type=all
cookie=0x12,idle_timeout=60,hard_timeout=600,send_flow_rem,check_overlap,reset_counts,no_packet_counts,no_byte_counts,priority=7,tcp,tp_dst=80,actions=meter:1,group:2
low_latency,priority=8,ip,nw_dst=10.0.0.0/8,actions=meter:7,set_queue:3,output:2,CONTROLLER:64
low_latency=false,priority=9,in_port=p2,actions=NORMAL
priority=10,mpls,actions=set_mpls_ttl:3,dec_mpls_ttl,copy_ttl_in,copy_ttl_out,push_mpls:0x8848,pop_mpls:0x0800,output:1
priority=11,ip,actions=set_field:9->nw_ttl,dec_ttl,FLOOD,ALL
priority=12,dl_vlan=5,actions=pop_vlan,push_vlan:0x88a8,push_pbb:0x88e7,pop_pbb,output:1
priority=13,ip,actions=set_field:10.1.2.0/255.255.255.0->ip_dst,set_field:0x1/0x3->slice(l3,0,8),output:1
priority=14,in_port=1,actions=push_key(key=0x0102030405060708,width=64,hops=5,epoch=1),pop_key,output:2
priority=15,in_port=1,actions=push_polka(key=0x12345,ttl=9),output:2
priority=16,in_port=1,actions=push_tf(3,0x11,0x1),push_tf_wide(1,0x5,0x6),pop_tf,output:2
priority=17,in_port=2,actions=output:1,clear_actions,write_actions(output:2,group:9),write_metadata:0x5/0xff,goto_table:3
priority=18,slice(base,0,8)=0x7,actions=move_base(14),add_field(0,16,0x7),delete_field(0,16),output:1
priority=19,in_port=2,actions=modify_field:-1->slice(base,8,8),copy_field:slice(l3,0,8)->slice(base,0,8),calculate_checksum(16,16,0,64),output:1
table=3,priority=0,metadata=0x5/0xff,actions=drop
table=254,arp,slice(packet,96,16)=0x806,actions=output:1
table=4,index=6,actions=goto_direct(5,2)
";

/// Returns the name of an action. The match is exhaustive, so the test fails until `EVERYTHING` has a flow
/// with each new action.
fn name(action: &flow::Action) -> &'static str {
    use flow::Action;
    match action {
        Action::Output { .. } => "output",
        Action::Group(_) => "group",
        Action::SetQueue(_) => "set_queue",
        Action::SetMplsTtl(_) => "set_mpls_ttl",
        Action::DecMplsTtl => "dec_mpls_ttl",
        Action::SetNwTtl(_) => "set_nw_ttl",
        Action::DecNwTtl => "dec_nw_ttl",
        Action::CopyTtlOut => "copy_ttl_out",
        Action::CopyTtlIn => "copy_ttl_in",
        Action::PushVlan(_) => "push_vlan",
        Action::PopVlan => "pop_vlan",
        Action::PushMpls(_) => "push_mpls",
        Action::PopMpls(_) => "pop_mpls",
        Action::PushPbb(_) => "push_pbb",
        Action::PopPbb => "pop_pbb",
        Action::SetField(_) => "set_field",
        Action::PushKey(_) => "push_key",
        Action::PushPolka(_) => "push_polka",
        Action::PopKey => "pop_key",
        Action::PushTf(_) => "push_tf",
        Action::PushTfWide(_) => "push_tf_wide",
        Action::PopTf => "pop_tf",
        Action::Edit(edit) => edit.name(),
    }
}

#[test]
fn a_dump_of_everything_loads_into_a_fresh_switch_and_dumps_equal() {
    const ACTIONS: usize = 28;
    let parsed = |line: &str| {
        flow::syntax::parse_line(line, 1, flow::syntax::ParseOptions::default()).unwrap().unwrap()
    };
    let first = Lab::start(1, 2, None);
    let mut client = first.client();
    load(&mut client, EVERYTHING).unwrap();
    let dumped = lines(&mut client, FlowForm::File);
    assert_eq!(dumped.len(), EVERYTHING.lines().count() + 1, "{dumped:#?}");
    // Each dumped line equals the loaded line, but groups and meters get the command `add_or_mod`.
    let asked: BTreeSet<String> = EVERYTHING
        .replace("in_port=p2", "in_port=2")
        .replace("group group_id", "group add_or_mod group_id")
        .replace("meter meter", "meter add_or_mod meter")
        .lines()
        .chain(["priority=0 actions=NORMAL"])
        .map(|line| flow::syntax::format_line(&parsed(line)))
        .collect();
    assert_eq!(dumped.iter().cloned().collect::<BTreeSet<_>>(), asked);
    let mut seen = BTreeSet::new();
    for line in &dumped {
        let actions: Vec<flow::Action> = match parsed(line) {
            flow::syntax::FileLine::Flow(m) => [&m.instructions.apply[..], &m.instructions.write].concat(),
            flow::syntax::FileLine::Group(_, group) => {
                group.buckets.iter().flat_map(|bucket| bucket.actions.clone()).collect()
            }
            flow::syntax::FileLine::Meter(..) => Vec::new(),
        };
        seen.extend(actions.iter().map(name));
    }
    assert_eq!(seen.len(), ACTIONS, "{seen:?}");

    // Use the dump as the initial flow file, then load it. Loading it again changes nothing.
    let text = dumped.join("\n");
    let fresh = Lab::start(2, 2, Some(&text));
    assert_eq!(lines(&mut fresh.client(), FlowForm::File), dumped);
    let fresh = Lab::start(1, 2, None);
    let mut client = fresh.client();
    load(&mut client, &text).unwrap();
    assert_eq!(lines(&mut client, FlowForm::File), dumped);
    // Leave out the flow with check_overlap, because its existing copy would overlap it.
    let again: Vec<&str> = text.lines().filter(|line| !line.contains("check_overlap")).collect();
    assert_eq!(again.len(), dumped.len() - 1);
    load(&mut client, &again.join("\n")).unwrap();
    assert_eq!(lines(&mut client, FlowForm::File).len(), dumped.len());
    // A missing group is reported with its line, and nothing is loaded.
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("group_id=9,")).collect();
    let bare = Lab::start(1, 2, None);
    let mut client = bare.client();
    let error = load(&mut client, &without.join("\n")).unwrap_err();
    assert!(error.starts_with("line ") && error.contains("group 9"), "{error}");
    assert_eq!(lines(&mut client, FlowForm::File), ["priority=0 actions=NORMAL"]);
}

#[test]
fn many_groups_are_dumped_in_an_order_that_loads() {
    const GROUPS: u32 = 1_500;
    let lab = Lab::start(1, 2, None);
    let mut client = lab.client();
    // Groups form chains of eight: each group except the first of its chain refers to the group added before
    // it. IDs descend.
    let mut text = String::new();
    for n in 0..GROUPS {
        let id = GROUPS - n;
        let to = if n % 8 == 0 { "output:1".to_owned() } else { format!("group:{}", id + 1) };
        writeln!(text, "group group_id={id},type=indirect,bucket={to}").unwrap();
    }
    load(&mut client, &text).unwrap();
    let dumped = lines(&mut client, FlowForm::File);
    assert_eq!(dumped.len(), GROUPS as usize + 1);
    let fresh = Lab::start(1, 2, None);
    let mut client = fresh.client();
    load(&mut client, &dumped.join("\n")).unwrap();
    assert_eq!(lines(&mut client, FlowForm::File), dumped);
}

#[test]
fn many_flows_load_and_stream_while_others_are_served() {
    const FLOWS: u32 = 50_000;
    let mut lab = Lab::start(1, 3, None);
    let mut client = lab.client();
    let start = Instant::now();
    let changes = load(&mut client, &exact(FLOWS)).unwrap();
    let took = start.elapsed();
    assert_eq!(changes.added, FLOWS as usize);
    assert!(took < LONG, "{took:?}");
    // A client that does not read a long answer must not delay other clients, and gets the rest when it
    // reads.
    let mut slow = lab.raw();
    slow.send(b"{\"id\":1,\"request\":\"flows\",\"form\":\"rows\"}\n");
    for n in 0..100_u8 {
        let to = [2, 1, 0, 0, 0, n];
        let mut bytes = frame(9, 0);
        bytes[..6].copy_from_slice(&to);
        let port = 1 + usize::from(n) % 3;
        lab.pass(port % 3 + 1, &bytes, port);
        let start = Instant::now();
        assert_eq!(counters(&lab).received, u64::from(n) + 1);
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    let mut seen = 0;
    loop {
        let line: Value = serde_json::from_str(&slow.line()).unwrap();
        match line["part"]["rows"].as_array() {
            Some(rows) => seen += rows.len(),
            None => break assert!(line["done"].is_object(), "{line}"),
        }
    }
    assert_eq!(seen, FLOWS as usize + 1);
}
