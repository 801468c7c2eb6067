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
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return show_usage(&error),
    };
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
    let code = end(done);
    // The last lines of `shunt run`; other commands have no log.
    switch::log::flush();
    code
}

fn end(done: Result<(), Failure>) -> ExitCode {
    match done {
        // Whoever reads our output may stop when they have seen enough.
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            // Makes room for the message. With the flush at the end, the wait is twice the limit at most.
            switch::log::flush();
            // A file may have several mistakes, a line for each.
            for line in failure.to_string().lines() {
                switch::log::say(&format!("shunt: {line}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// Prints help, the version, or what is wrong with the arguments.
fn show_usage(message: &clap::Error) -> ExitCode {
    if message.use_stderr() {
        // The exit code says the rest if stderr is closed.
        let _ = message.print();
        return ExitCode::from(2);
    }
    end(message.print().and_then(|()| io::stdout().flush()).map_err(Failure::from))
}
