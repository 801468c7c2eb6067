// SPDX-License-Identifier: Apache-2.0
//! Tests with flows written by hand. tests/data/ovs-flows.txt has flows with the output of ovs-ofctl, which
//! ovs-golden.sh generates. tests/data/own-flows.txt has flows in Shunt's own syntax.

use flow::entry::DEFAULT_PRIORITY;
use flow::syntax::{ParseOptions, format_flow, parse_flow, parse_flows};
use flow::{FlowMod, FlowModCommand, TableId};

const OVS: &str = include_str!("data/ovs-flows.txt");
const OWN: &str = include_str!("data/own-flows.txt");

fn parse(line: &str) -> Result<FlowMod, String> {
    parse_flow(line, FlowModCommand::Add, ParseOptions::default()).map_err(|e| format!("{line}\n  {e}"))
}

/// Formats an added flow as `ovs-ofctl parse-flows` prints it.
fn as_parse_flows(flow: &FlowMod) -> String {
    let mut text = String::new();
    let mut word = |w: String| text.push_str(&(w + " "));
    if let Some(table @ TableId(1..)) = flow.table {
        word(format!("table:{table}"));
    }
    let matching = flow.matching.to_string();
    match (flow.priority, matching.is_empty()) {
        (DEFAULT_PRIORITY, true) => {}
        (DEFAULT_PRIORITY, false) => word(matching),
        (priority, true) => word(format!("priority={priority}")),
        (priority, false) => word(format!("priority={priority},{matching}")),
    }
    for (name, value) in [
        ("cookie:0x", flow.cookie),
        ("idle:", flow.idle_timeout_s.into()),
        ("hard:", flow.hard_timeout_s.into()),
    ] {
        match value {
            0 => {}
            _ if name.ends_with('x') => word(format!("{name}{value:x}")),
            _ => word(format!("{name}{value}")),
        }
    }
    for (set, name) in [
        (flow.flags.send_flow_removed, "send_flow_rem"),
        (flow.flags.check_overlap, "check_overlap"),
        (flow.flags.reset_counts, "reset_counts"),
        (flow.flags.no_packet_counts, "no_packet_counts"),
        (flow.flags.no_byte_counts, "no_byte_counts"),
    ] {
        if set {
            word(name.to_owned());
        }
    }
    text + &format!("actions={}", flow.instructions)
}

#[test]
fn flows_print_like_ovs_ofctl_except_for_listed_differences() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    // Comments before a flow: whether its output differs on purpose, and Shunt's output.
    let (mut differs, mut noted) = (false, None);
    let mut lines = OVS.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with('#') || line.is_empty() {
            differs |= line.starts_with("# differs");
            noted = line.strip_prefix("# ours: ").or(noted);
            continue;
        }
        let theirs = lines.next().and_then(|l| l.strip_prefix("= ")).expect("an output line after each flow");
        let ours = as_parse_flows(&parse(line).unwrap());
        let differs = std::mem::take(&mut differs);
        if noted.take().unwrap_or(theirs) != ours || (ours != theirs) != differs {
            wrong.push(format!("{line}\n  ours:   {ours}\n  theirs: {theirs}"));
        }
        compared += 1;
    }
    assert!(compared >= 200, "{compared} flows");
    assert!(
        wrong.is_empty(),
        "differ without a note, or have a note without a difference:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn printed_flows_parse_to_the_same_flow() {
    let mut seen = std::collections::HashSet::new();
    for line in OVS.lines().chain(OWN.lines()) {
        if line.starts_with(['#', '=']) || line.is_empty() {
            continue;
        }
        let first = parse(line).unwrap();
        let printed = format_flow(&first);
        let second = parse(&printed).unwrap();
        assert_eq!(second, first, "{line}\n  {printed}");
        assert_eq!(format_flow(&second), printed);
        seen.insert(printed);
    }
    assert!(seen.len() >= 200, "{} different flows", seen.len());
}

#[test]
fn a_file_is_parsed_line_by_line_and_its_errors_are_located() {
    let file = "# comment\n\n in_port=1 actions=2 # behind\r\nflow add ip actions=drop\nmodify tcp actions=3\n\
                delete_strict priority=7,ip\nip,nw_dst=10.0.0.300 actions=2\ndelete\n";
    let got: Vec<_> = parse_flows(file, ParseOptions::default()).collect();
    let commands: Vec<_> = got.iter().flatten().map(|f| (f.command, f.table)).collect();
    assert_eq!(
        commands,
        [
            (FlowModCommand::Add, Some(TableId(0))),
            (FlowModCommand::Add, Some(TableId(0))),
            (FlowModCommand::Modify, Some(TableId(0))),
            (FlowModCommand::DeleteStrict, None),
            (FlowModCommand::Delete, None)
        ]
    );
    let error = got.into_iter().find_map(Result::err).unwrap();
    assert_eq!((error.line, error.column, error.text.as_str()), (Some(7), 11, "10.0.0.300"));
    assert_eq!(
        error.to_string(),
        "line 7, column 11: \"10.0.0.300\": is not an IPv4 address; write 10.0.0.1"
    );
}
