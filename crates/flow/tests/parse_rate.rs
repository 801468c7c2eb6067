// SPDX-License-Identifier: Apache-2.0
//! A million entries must load in 10 s altogether; parsing may take a fifth of it.

use flow::syntax::{ParseOptions, parse_flows};
use std::fmt::Write as _;
use std::time::Instant;

/// Lines a second, on one core, that loading a million entries in time asks of the parser.
const LINES_PER_S: f64 = 500_000.0;

#[test]
#[ignore = "measures: cargo test --release -p flow --test parse_rate -- --ignored --nocapture"]
fn simple_lines_parse_fast_enough() {
    const LINES: u32 = 1_000_000;
    let mut file = String::new();
    for n in 0..LINES {
        let (a, b, c) = (n >> 16, n >> 8 & 255, n & 255);
        writeln!(
            file,
            "table=0,priority=100,tcp,in_port={},nw_dst=10.{a}.{b}.{c},tp_dst={} actions=dec_ttl,output:{}",
            n % 8 + 1,
            n % 65_536,
            n % 48 + 1
        )
        .unwrap();
    }
    let start = Instant::now();
    let parsed = parse_flows(&file, ParseOptions::default()).filter(Result::is_ok).count();
    let rate = f64::from(LINES) / start.elapsed().as_secs_f64();
    println!("{rate:.0} lines/s");
    assert_eq!(parsed, LINES as usize);
    assert!(rate > LINES_PER_S, "{rate:.0} lines/s");
}
