// SPDX-License-Identifier: Apache-2.0
//! Parses random text as flows, groups and meters. An accepted line must be printed as text that parses to
//! the same value. A refusal must have a description and a location.
#![no_main]

use flow::FlowModCommand;
use flow::syntax::{ParseOptions, format_flow, format_line, parse_flow, parse_flows, parse_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for parsed in text.lines().filter_map(|line| parse_line(line, 1, ParseOptions::default())) {
        let Ok(line) = parsed else { continue };
        let printed = format_line(&line);
        match parse_line(&printed, 1, ParseOptions::default()) {
            Some(Ok(again)) => assert_eq!(again, line, "printed as {printed}"),
            other => panic!("printed as {printed}, which is read as {other:?}"),
        }
    }
    for (parsed, line) in parse_flows(text, ParseOptions::default()).zip(1usize..) {
        match parsed {
            Ok(flow) => {
                let printed = format_flow(&flow);
                match parse_flow(&printed, FlowModCommand::Add, ParseOptions::default()) {
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
