// SPDX-License-Identifier: Apache-2.0
//! Operations of the controller, and the tables that they change: one 5-tuple table, eight such tables, an
//! access list, and routes.

use crate::cost::CostError;
use crate::cost::rig::udp_frame;
use fastrand::Rng;
use flow::syntax::{ParseOptions, parse_flows};
use flow::{Action, FlowMod, FlowModCommand, Instructions, PortNo, TableId};
use frame::Frame;

/// Number of distinct packets, drawn from all flows.
const FRAMES: u32 = 4_096;
/// Number of changes per bundle, small enough for workers to apply the changes one by one.
const BUNDLE: usize = 60;
/// Number of tables that one bundle changes.
const TABLES: u32 = 8;
/// Maximum number of rules in the access list.
const ACCESS_RULES_MAX: u32 = 10_000;
/// Number of rules per prefix, each with another priority, in the last script of [`routes`].
const CHAIN: u32 = 500;

/// Operations on tables, and the initial contents of the tables.
pub(super) struct Script {
    pub name: &'static str,
    /// Initial flow-mods.
    pub setup: Vec<FlowMod>,
    /// Operations: each a single flow-mod, or a bundle of several.
    pub operations: Vec<Vec<FlowMod>>,
    /// Whether the operations can be repeated.
    pub repeats: bool,
}

/// Scripts that are run with the same packets.
pub(super) struct Family {
    pub frames: Vec<Frame>,
    pub scripts: Vec<Script>,
}

/// Functions that generate each family for a given number of flows.
pub(super) const FAMILIES: [fn(u32) -> Result<Family, CostError>; 4] =
    [one_table, eight_tables, access_list, routes];

fn parsed(text: &str) -> Result<FlowMod, CostError> {
    Ok(parse_flows(text, ParseOptions::default()).next().transpose()?.unwrap_or_default())
}

/// Returns the same flows with another command. Their action is an output to `port`.
fn each(command: FlowModCommand, flows: &[FlowMod], port: PortNo) -> Vec<FlowMod> {
    let instructions = Instructions::apply(vec![Action::output(port)]);
    flows.iter().map(|m| FlowMod { command, instructions: instructions.clone(), ..m.clone() }).collect()
}

fn singles(mods: Vec<FlowMod>) -> Vec<Vec<FlowMod>> {
    mods.into_iter().map(|m| vec![m]).collect()
}

fn bundles(mods: &[FlowMod], size: usize) -> Vec<Vec<FlowMod>> {
    mods.chunks(size).map(<[_]>::to_vec).collect()
}

fn of_all(command: FlowModCommand, port: PortNo) -> FlowMod {
    let instructions = Instructions::apply(vec![Action::output(port)]);
    FlowMod { command, table: Some(TableId(0)), instructions, ..FlowMod::default() }
}

fn script(name: &'static str, setup: &[FlowMod], operations: Vec<Vec<FlowMod>>) -> Script {
    Script { name, setup: setup.to_vec(), operations, repeats: false }
}

fn host(n: u32) -> [u8; 4] {
    let [_, b, c, d] = n.to_be_bytes();
    [10, b, c, d]
}

fn dotted([a, b, c, d]: [u8; 4]) -> String {
    format!("{a}.{b}.{c}.{d}")
}

/// Returns frames that hit flows, evenly spread over all flows.
fn frames(flows: u32, mut frame: impl FnMut(u32) -> Frame) -> Vec<Frame> {
    (0..FRAMES).map(|n| frame((u64::from(n) * u64::from(flows) / u64::from(FRAMES)) as u32)).collect()
}

/// Returns a flow of UDP port 53 in a table. Its packets continue to the next table; the last table sends
/// them to port 2.
fn five_tuple(table: u32, tables: u32, n: u32) -> Result<FlowMod, CostError> {
    let then = if table + 1 == tables { "output:2".into() } else { format!("goto_table:{}", table + 1) };
    let from = dotted(host(n));
    parsed(&format!(
        "table={table},udp,nw_src={from},nw_dst=192.168.0.1,tp_src=1000,tp_dst=53 actions={then}"
    ))
}

fn five_tuple_frames(flows: u32) -> Vec<Frame> {
    frames(flows, |n| udp_frame(host(n), [192, 168, 0, 1], 1_000))
}

/// Scripts that change one table by single flow-mods, and by one bundle with all changes.
fn one_table(count: u32) -> Result<Family, CostError> {
    let flows: Vec<FlowMod> = (0..count).map(|n| five_tuple(0, 1, n)).collect::<Result<_, _>>()?;
    let mut replaced = vec![of_all(FlowModCommand::Delete, PortNo(1))];
    replaced.extend_from_slice(&flows);
    let all = Script {
        repeats: true,
        ..script("a modify of all", &flows, vec![vec![of_all(FlowModCommand::Modify, PortNo(2))]])
    };
    let bundle =
        Script { repeats: true, ..script("a replacement of all in a bundle", &flows, vec![replaced]) };
    let scripts = vec![
        script("adds", &[], singles(flows.clone())),
        script("strict modifies", &flows, singles(each(FlowModCommand::ModifyStrict, &flows, PortNo(1)))),
        all,
        bundle,
        script("strict deletes", &flows, singles(each(FlowModCommand::DeleteStrict, &flows, PortNo(1)))),
    ];
    Ok(Family { frames: five_tuple_frames(count), scripts })
}

/// Scripts in which each bundle changes all of eight tables, and each packet passes all eight.
fn eight_tables(count: u32) -> Result<Family, CostError> {
    let each_table = count / TABLES;
    let mut flows = Vec::new();
    for first in (0..each_table).step_by(BUNDLE) {
        for table in 0..TABLES {
            for n in first..each_table.min(first + BUNDLE as u32) {
                flows.push(five_tuple(table, TABLES, n)?);
            }
        }
    }
    let size = BUNDLE * TABLES as usize;
    let removed = bundles(&each(FlowModCommand::DeleteStrict, &flows, PortNo(1)), size);
    let scripts = vec![
        script("8 tables, bundles of 60 adds to each", &[], bundles(&flows, size)),
        script("8 tables, bundles of 60 deletes from each", &flows, removed),
    ];
    Ok(Family { frames: five_tuple_frames(each_table), scripts })
}

/// Scripts for an access list, whose rules have many masks and priorities.
fn access_list(count: u32) -> Result<Family, CostError> {
    let mut rng = Rng::with_seed(1);
    let count = count.min(ACCESS_RULES_MAX);
    let (mut flows, mut hits) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let lengths = [0, 8, 12, 16, 20, 24, 28, 32];
        let (from, to) = (host(rng.u32(..)), host(rng.u32(..)));
        let (from_bits, to_bits) = (lengths[rng.usize(1..8)], lengths[rng.usize(4..8)]);
        let port = ["", ",tp_dst=53", ",tp_dst=80", ",tp_src=1000,tp_dst=53"][rng.usize(..4)];
        let priority = rng.u16(1..60_000);
        let (text_from, text_to) = (dotted(from), dotted(to));
        flows.push(parsed(&format!(
            "priority={priority},udp,nw_src={text_from}/{from_bits},nw_dst={text_to}/{to_bits}{port} actions=output:2"
        ))?);
        hits.push((from, to));
    }
    let frames = frames(count, |n| udp_frame(hits[n as usize].0, hits[n as usize].1, 1_000));
    Ok(Family {
        frames,
        scripts: in_bundles(
            &flows,
            ["access list, adds", "access list, bundles of 60 adds", "access list, bundles of 60 deletes"],
        ),
    })
}

/// Returns three scripts. Two add the second half of the flows to a table that holds the first half, one by
/// one and in bundles. The third deletes the first half from a table that holds all flows, in bundles.
fn in_bundles(flows: &[FlowMod], [singly, adds, deletes]: [&'static str; 3]) -> Vec<Script> {
    let (first, second) = flows.split_at(flows.len() / 2);
    vec![
        script(singly, first, singles(second.to_vec())),
        script(adds, first, bundles(second, BUNDLE)),
        script(deletes, flows, bundles(&each(FlowModCommand::DeleteStrict, first, PortNo(1)), BUNDLE)),
    ]
}

/// Scripts for routes. Nested prefixes are added, and are deleted beginning with the longest. In the last
/// script, each prefix has many rules, which are deleted beginning with the highest priority.
fn routes(count: u32) -> Result<Family, CostError> {
    const LENGTHS: u32 = 16;
    let nests = count.div_ceil(LENGTHS);
    let network = |nest: u32| host(nest.wrapping_mul(0x9E37_79B1) >> 8);
    let mut nested = Vec::new();
    for length in (17..17 + LENGTHS).rev() {
        for nest in 0..nests {
            let net = dotted(network(nest));
            nested.push(parsed(&format!("priority={length},ip,nw_dst={net}/{length} actions=output:2"))?);
        }
    }
    let mut scripts =
        in_bundles(&nested, ["routes, adds", "routes, bundles of 60 adds", "routes, bundles of 60 deletes"]);
    // The prefixes have two lengths, so that the table has two masks.
    let prefixes = count.div_ceil(CHAIN);
    let mut chained = Vec::new();
    for place in 0..CHAIN {
        for n in 0..prefixes {
            let (net, length, priority) =
                (dotted(network(n * nests / prefixes)), 24 - n % 2, 1 + CHAIN - place);
            chained.push(parsed(&format!("priority={priority},ip,nw_dst={net}/{length} actions=output:2"))?);
        }
    }
    let half = &chained[..chained.len() / 2];
    let deletes = bundles(&each(FlowModCommand::DeleteStrict, half, PortNo(1)), BUNDLE);
    scripts.push(script("routes, 500 rules of each prefix, bundles of 60 deletes", &chained, deletes));
    let frames = frames(nests, |nest| {
        // Half of the packets hit prefixes that have many rules.
        let nest = if nest % 2 == 0 { nest } else { nest * prefixes / nests * nests / prefixes };
        udp_frame([10, 0, 0, 1], network(nest), 1_000)
    });
    Ok(Family { frames, scripts })
}
