// SPDX-License-Identifier: Apache-2.0
//! Prints the tables of report files: `shunt-bench FILE.jsonl...`, or all of `target/report`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use shunt_bench::{markdown, read};

const FOLDER: &str = "target/report";

fn main() -> ExitCode {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let printed = (if named.is_empty() { all() } else { Ok(named) }).and_then(|paths| print(&paths));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(io::stderr(), "shunt-bench: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(FOLDER)
        .map_err(|error| format!("{FOLDER}: {error}; `make bench` writes reports there"))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    Ok(paths)
}

fn print(paths: &[PathBuf]) -> Result<(), String> {
    for path in paths {
        let figures = read(path).map_err(|error| error.to_string())?;
        let title = path.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(io::stdout(), "### {title}\n\n{}", markdown(&figures)).map_err(|error| error.to_string())?;
    }
    Ok(())
}
