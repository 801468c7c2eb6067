// SPDX-License-Identifier: Apache-2.0
//! Prints the tables of report files: `shunt-bench FILE.jsonl...`, or of all files in `target/report`. With
//! `--into PAGE` first, the tables replace those of a page, between the lines that start with [`BEGIN`] and
//! [`END`]; tables of other report files remain. Without files, all tables of the page are updated.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use shunt_bench::{markdown, read};

const FOLDER: &str = "target/report";

/// Start of the line before the tables of a page.
const BEGIN: &str = "<!-- figures";

/// Start of a table's title.
const TITLE: &str = "### ";

/// Start of the line after the tables.
const END: &str = "<!-- end of figures";

fn main() -> ExitCode {
    match run() {
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

fn run() -> Result<(), String> {
    let mut arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let page = if arguments.first().is_some_and(|first| first.as_os_str() == "--into") {
        arguments.remove(0);
        if arguments.is_empty() {
            return Err("--into needs a page: shunt-bench --into docs/figures.md".into());
        }
        Some(arguments.remove(0))
    } else {
        None
    };
    let mut paths = if arguments.is_empty() { all()? } else { arguments.clone() };
    let Some(page) = page else {
        return io::stdout().write_all(tables(&paths)?.as_bytes()).map_err(|error| error.to_string());
    };
    let in_page = |error: io::Error| format!("{}: {error}", page.display());
    let text = std::fs::read_to_string(&page).map_err(in_page)?;
    if arguments.is_empty() {
        let titles: Vec<&str> = sections(&text).map(|(title, _)| title).collect();
        paths.retain(|path| titles.contains(&&*title(path)));
    }
    let tables = tables(&paths)?;
    let text = put_between(&text, &tables).ok_or_else(|| {
        format!("{}: there must be a line that begins with `{BEGIN}`, and after it a line that begins with `{END}`", page.display())
    })?;
    std::fs::write(&page, text).map_err(in_page)
}

fn tables(paths: &[PathBuf]) -> Result<String, String> {
    let mut text = String::new();
    for path in paths {
        let figures = read(path).map_err(|error| error.to_string())?;
        text += &format!("{TITLE}{}\n\n{}\n", title(path), markdown(&figures).trim_end());
        text += "\n";
    }
    Ok(text)
}

/// Returns the title of a report file's table.
fn title(path: &Path) -> Cow<'_, str> {
    path.file_stem().unwrap_or_default().to_string_lossy()
}

/// Returns the page with `tables` between its two marker lines. Existing tables with other titles are kept.
fn put_between(page: &str, tables: &str) -> Option<String> {
    let begin = page.find(BEGIN)?;
    let from = begin + page[begin..].find('\n')? + 1;
    let to = from + page[from..].find(END)?;
    let mut all: BTreeMap<&str, &str> = sections(&page[from..to]).collect();
    all.extend(sections(tables));
    let made: String = all.iter().map(|(title, table)| format!("{TITLE}{title}\n\n{table}\n\n")).collect();
    Some(format!("{}\n{made}{}", &page[..from], &page[to..]))
}

/// Returns the tables with their titles.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = text.split(TITLE).skip(1).filter_map(|part| part.split_once('\n'));
    parts.map(|(title, table)| (title.trim(), table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_those_of_their_titles_between_the_lines() {
        let page = "a\n<!-- figures: made -->\n\n### t\n\nold\nolder\n\n### u\n\n| y |\n\n<!-- end of figures -->\nb\n";
        let made = put_between(page, "### t\n\n| x |\n").unwrap();
        let tables = "### t\n\n| x |\n\n### u\n\n| y |\n\n";
        assert_eq!(made, format!("a\n<!-- figures: made -->\n\n{tables}<!-- end of figures -->\nb\n"));
        assert_eq!(put_between(&made, "### t\n\n| x |\n").unwrap(), made);
        assert_eq!(put_between("<!-- figures -->", "t"), None);
    }
}
