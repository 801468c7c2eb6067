// SPDX-License-Identifier: Apache-2.0
//! The command line. Exit codes: 0, 1 failure, 2 usage.

mod arguments;
mod commands;
mod print;
mod top;

use arguments::{Arguments, Command};
use clap::Parser;
use commands::Failure;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Command::Run(run) => commands::run(run, arguments.control.as_deref()),
        Command::Check(check) => commands::check(check),
        Command::Show(show) => commands::show(show, arguments.control.as_deref()),
        Command::Flows(flows) => commands::flows(flows, arguments.control.as_deref()),
        Command::Gates(gates) => commands::gates(gates, arguments.control.as_deref()),
        Command::Top(top) => commands::top(top, arguments.control.as_deref()),
        Command::Trace(trace) => commands::trace(trace, arguments.control.as_deref()),
        Command::Replay(replay) => commands::replay(replay),
        Command::Sim(sim) => commands::sim(sim),
    };
    match done {
        // Whoever reads our output may stop when they have seen enough.
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            // A file may have several mistakes, a line for each.
            for line in failure.to_string().lines() {
                let _ = writeln!(io::stderr(), "shunt: {line}");
            }
            ExitCode::FAILURE
        }
    }
}
