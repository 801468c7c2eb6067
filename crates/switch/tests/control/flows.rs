// SPDX-License-Identifier: Apache-2.0
//! Loading, showing, dumping and clearing flows.

use crate::lab::{LONG, Lab, until};
use crate::{counters, frame};
use serde_json::Value;
use std::fmt::Write;
use std::time::{Duration, Instant};
use switch::control::{Changes, Client, FlowForm, FlowPart, FlowRow, Request};

fn load(client: &mut Client, text: &str) -> Result<Changes, String> {
    client
        .load(|take| {
            text.as_bytes().chunks(4_000).try_for_each(|piece| take(std::str::from_utf8(piece).unwrap()))
        })
        .map_err(|error| error.to_string())
}

fn lines(client: &mut Client, form: FlowForm) -> Vec<String> {
    let mut all = Vec::new();
    let done: Result<Value, _> = client.ask_parts(&Request::Flows { form }, |part: FlowPart| {
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
        client.ask_parts(&Request::Flows { form: FlowForm::Rows }, |part: FlowPart| {
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
fn loaded_flows_are_in_force_at_the_answer_and_count() {
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
fn the_first_packets_are_judged_by_the_flows_of_the_start() {
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
            until("its packets have left", || {
                left += usize::from(port.pop(0).is_some());
                left == EACH
            });
            assert!(port.pop(0).is_none());
        }
    }
}

#[test]
fn a_load_is_all_or_nothing_and_says_what_is_wrong_in_which_line() {
    let lab = Lab::start(1, 2, None);
    let mut client = lab.client();
    let before = lines(&mut client, FlowForm::File);
    let error =
        load(&mut client, "in_port=1,actions=output:2\n\nin_prot=2,actions=drop\nnw_dst=1,actions=\n")
            .unwrap_err();
    let told: Vec<_> = error.lines().collect();
    assert!(told[0].starts_with("line 3, column 1: ") && told[0].contains("in_port"), "{error}");
    assert!(told.len() == 2 && told[1].starts_with("line 4, "), "{error}");
    let error =
        load(&mut client, "in_port=1,actions=drop\n# x\ncheck_overlap,in_port=1,actions=drop\n").unwrap_err();
    assert!(error.starts_with("line 3: ") && error.contains("overlap"), "{error}");
    assert_eq!(lines(&mut client, FlowForm::File), before);
    // The connection is as good as before.
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
    let changes: Changes = client.ask(&Request::Clear).unwrap();
    assert_eq!((changes.added, changes.removed), (1, 3));
    let cleared = lines(&mut client, FlowForm::File);
    assert_eq!(cleared, ["priority=0 actions=NORMAL"]);
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
    // A client that does not read its long answer keeps nobody waiting, and is served when it reads.
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
