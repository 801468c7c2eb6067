// SPDX-License-Identifier: Apache-2.0
//! Compiles large tables as the control side does.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow::{EntryId, Field, FieldMatch, FlowEntry, Instructions, Match, TableId};
use shunt_bench::{Loop, whole};
use tables::rule_table::RuleChange;
use tables::{RuleTable, Table};

#[path = "../../../../crates/engines/tests/engines/packet.rs"]
pub mod packet;
#[path = "../../../../crates/engines/tests/engines/sets.rs"]
pub mod sets;

/// Keys per lookup.
pub const BURST: usize = 32;

/// A rule with its priority.
pub type Rule = (u16, Match);

fn data(name: &str, sample: &str) -> Result<String, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engines/tests/engines/data");
    Ok(match whole(name)? {
        Some(text) => text,
        None => shunt_bench::read_text(&folder.join(sample))?,
    })
}

/// Returns the rules of a `ClassBench` list by its file name, best first.
pub fn access_list(name: &str) -> Result<Vec<Rule>, Box<dyn Error>> {
    let text = data(&format!("classbench/{name}.rules.gz"), "acl1.rules")?;
    let list = sets::access_list(&text).into_iter().zip((0..=u16::MAX).rev());
    Ok(list.flat_map(|(matches, priority)| matches.into_iter().map(move |one| (priority, one))).collect())
}

/// Returns a whole routing table, `ipv4` or `ipv6`. Longer prefixes have higher priorities.
pub fn routes(name: &str) -> Result<Vec<Rule>, Box<dyn Error>> {
    let text = data(&format!("rib/{name}_full.txt.gz"), &format!("{name}.txt"))?;
    let length = |route: &Match| route.fields().last().map_or(0, |last| last.mask.count_ones() as u16);
    Ok(sets::routes(&text).into_iter().map(|route| (length(&route), route)).collect())
}

/// Returns rules for pairs of MAC addresses.
pub fn exact(count: u64) -> Result<Vec<Rule>, Box<dyn Error>> {
    let mac = |field, value: u64| FieldMatch::exact(field, (value & 0xffff_ffff_ffff).into());
    let pair = |n: u64| {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Match::new([mac(Field::EthDst, mixed >> 16), mac(Field::EthSrc, mixed.rotate_left(29) ^ n)])
    };
    (0..count).map(|n| Ok((9, pair(n)?))).collect()
}

/// Returns a flow entry without instructions.
pub fn entry(id: u32, (priority, matching): Rule) -> Arc<FlowEntry> {
    Arc::new(FlowEntry {
        id: EntryId(id),
        table: TableId(0),
        priority,
        matching,
        instructions: Instructions::default().into(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: flow::EntryFlags::default(),
        low_latency: false,
    })
}

/// Compiles the rules into a table.
pub fn compiled(rule_table: &mut RuleTable, rules: &[Arc<FlowEntry>]) -> Result<Table, Box<dyn Error>> {
    let changes: Vec<_> = rules.iter().map(|rule| RuleChange::Add(Arc::clone(rule))).collect();
    let mut view = Table::default();
    let updates = rule_table.change(&changes, changes.len(), 1)?;
    updates.into_iter().flatten().for_each(|mut update| view.apply(&mut update));
    Ok(view)
}

/// Returns a contender that looks up keys repeatedly.
pub fn lookups<'t>(table: &'t Table, keys: &'t [u64]) -> Loop<impl FnMut() -> u64 + 't> {
    let mut ids = [EntryId::NONE; BURST];
    // If all rules match every packet, keys have no words.
    let mut bursts = keys.chunks_exact((BURST * table.plan().words()).max(1)).cycle();
    let lookup = move || {
        table.lookup(bursts.next().unwrap_or_default(), black_box(&mut ids));
        BURST as u64
    };
    Loop::new(100, lookup).gap_limit(Duration::from_micros(200))
}
