// SPDX-License-Identifier: Apache-2.0
//! Any text as flows: a flow that is accepted prints as text that parses to the same flow; a refusal says what and where.
#![no_main]

use flow::Command;
use flow::syntax::{ParseOptions, format_flow, parse_flow, parse_flows};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for (parsed, line) in parse_flows(text, ParseOptions::default()).zip(1usize..) {
        match parsed {
            Ok(flow) => {
                let printed = format_flow(&flow);
                match parse_flow(&printed, Command::Add, ParseOptions::default()) {
                    Ok(again) => assert_eq!(again, flow, "printed as {printed}"),
                    Err(error) => panic!("printed as {printed}, which is refused: {error}"),
                }
            }
            Err(error) => {
                assert!(!error.problem.is_empty());
                assert!(error.line.is_some_and(|number| number as usize >= line));
                assert!(error.column >= 1 && error.column as usize <= text.len() + 1, "{error}");
            }
        }
    }
});
