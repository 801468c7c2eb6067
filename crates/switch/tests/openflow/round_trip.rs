// SPDX-License-Identifier: Apache-2.0
//! Tests that ovs-ofctl reads back the flows that it wrote. The flows come from the golden file of the flow
//! syntax.

use crate::lab::Lab;
use flow::syntax::{ParseOptions, format_flow, parse_flow};
use flow::{FlowMod, FlowModCommand, GroupId, MeterId};

const FLOWS: &str = include_str!("../../../flow/tests/data/ovs-flows.txt");

fn parse(line: &str) -> FlowMod {
    parse_flow(line, FlowModCommand::Add, ParseOptions::default())
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Returns the lines that ovs-ofctl accepts with the same meaning as Shunt.
fn lines() -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut differs = false;
    let mut lines = FLOWS.lines().peekable();
    while let Some(line) = lines.next() {
        match lines.next_if(|next| next.starts_with("= ")) {
            // A note `# differs` precedes a flow that ovs-ofctl treats differently. A line `# ours: ` after
            // the note has the text that Shunt prints.
            None => differs = line.starts_with("# differs") || differs && line.starts_with("# ours: "),
            Some(printed) => {
                if !std::mem::take(&mut differs) && printed != "= refused" {
                    found.push(line);
                }
            }
        }
    }
    found
}

#[test]
fn written_flows_are_read_back() {
    let lab = Lab::start(1, 4, "");
    let mut groups: Vec<GroupId> = Vec::new();
    let mut meters: Vec<MeterId> = Vec::new();
    let (mut same, mut refused) = (0, Vec::new());
    for line in lines() {
        let flow = parse(line);
        for action in flow.instructions.apply.iter().chain(&flow.instructions.write) {
            if let flow::Action::Group(group) = action
                && !groups.contains(group)
            {
                groups.push(*group);
                lab.ofctl(&[
                    "--no-names",
                    "add-group",
                    &format!("group_id={group},type=indirect,bucket=drop"),
                ]);
            }
        }
        if let Some(meter) = flow.instructions.meter
            && !meters.contains(&meter)
        {
            meters.push(meter);
            lab.ofctl(&["add-meter", &format!("meter={meter},kbps,band=type=drop,rate=1")]);
        }
        lab.ofctl(&["--no-names", "del-flows"]);
        let (good, text) = lab.try_ofctl(&["--no-names", "add-flow", line]);
        if !good {
            refused.push(format!("{line}: {}", text.lines().next().unwrap_or_default()));
            continue;
        }
        let read = lab.flows();
        assert_eq!(read.len(), 1, "{line}");
        assert_eq!(format_flow(&parse(&read[0])), format_flow(&flow), "{line}\n{}", read[0]);
        same += 1;
    }
    // ovs-ofctl does not support PBB. For "dl_dst=*" it sends a match on packet_type, which is in OpenFlow
    // 1.5 only.
    let known = |text: &&String| text.contains("pbb") || text.starts_with("dl_dst=* ");
    let unknown: Vec<_> = refused.iter().filter(|text| !known(text)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    println!("{same} flows are read back as they were written, {} are refused", refused.len());
    assert!(same >= 150, "{same}");
}
