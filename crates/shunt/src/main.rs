// SPDX-License-Identifier: Apache-2.0
//! The command `shunt`: parses the arguments, runs one command and prints its result.
//!
//! The crate is only the user interface of the crates `switch`, `config`, `scenario` and `sim`. It must not
//! forward packets, check files or decide rules. Begin with [`arguments`], which lists all commands, then
//! read [`commands`].
//!
//! Exit codes: 0 for success, 1 for a failure, 2 for wrong usage.

mod arguments;
mod commands;
mod error;
mod generate;
mod print;
mod reload;
mod top;

use arguments::{Arguments, Command};
use clap::Parser;
use error::CommandError;
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
        Command::Reload(reload) => reload::reload(reload, arguments.control.as_deref()),
        Command::Upgrade(upgrade) => reload::upgrade(upgrade, arguments.control.as_deref()),
        Command::Launcher { arguments } => return switch::upgrade::serve_launcher(arguments),
        Command::Port(port) => reload::port(port, arguments.control.as_deref()),
        Command::Mirror(mirror) => reload::mirror(mirror, arguments.control.as_deref()),
        Command::Show(show) => commands::show(show, arguments.control.as_deref()),
        Command::Flows(flows) => commands::flows(flows, arguments.control.as_deref()),
        Command::Gates(gates) => commands::gates(gates, arguments.control.as_deref()),
        Command::Log(log) => commands::log(log, arguments.control.as_deref()),
        Command::Top(top) => commands::top(top, arguments.control.as_deref()),
        Command::Trace(trace) => commands::trace(trace, arguments.control.as_deref()),
        Command::Replay(replay) => commands::replay(replay),
        Command::Sim(sim) => commands::sim(sim),
        Command::Generate { folder } => generate::generate(folder),
    };
    let code = end(done);
    // Writes the last log lines of `shunt run`. Other commands do not log.
    switch::log::flush();
    code
}

fn end(done: Result<(), CommandError>) -> ExitCode {
    match done {
        // A reader such as `head` may close the output early. This is not a failure.
        Ok(()) | Err(CommandError::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            // Waits until queued log lines are written, so that the queue has space for the message.
            switch::log::flush();
            // A file may have several mistakes, one line each.
            for line in failure.to_string().lines() {
                switch::log::say(&format!("shunt: {line}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// Prints help, the version, or the error in the arguments.
fn show_usage(message: &clap::Error) -> ExitCode {
    if message.use_stderr() {
        // If stderr is closed, the exit code still reports the error.
        let _ = message.print();
        return ExitCode::from(2);
    }
    end(message.print().and_then(|()| io::stdout().flush()).map_err(CommandError::from))
}
