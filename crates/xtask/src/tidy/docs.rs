// SPDX-License-Identifier: Apache-2.0
//! Checks that documentation matches the code: drop reasons, keys of flows and actions must be documented,
//! and paths in documentation must exist.

use super::Finding;
use crate::tree::File;

/// Names that a page must contain in backquotes.
struct List {
    source: &'static str,
    page: &'static str,
    what: &'static str,
    names: fn(&str) -> Vec<String>,
}

const LISTS: &[List] = &[
    List {
        source: "crates/flow/src/outcome.rs",
        page: "docs/counters.md",
        what: "drop reason",
        names: |text| text.lines().filter_map(reason).collect(),
    },
    List {
        source: "crates/port/src/statistics.rs",
        page: "docs/counters.md",
        what: "reason of a port",
        names: |text| {
            text.lines().filter(|line| line.trim().starts_with("(Self::")).flat_map(quoted).collect()
        },
    },
    List {
        source: "crates/flow/src/syntax/key_names.rs",
        page: "docs/flow-syntax.md",
        what: "key of a flow",
        names: |text| text.lines().filter(|line| line.contains(" => Key::")).flat_map(quoted).collect(),
    },
    List {
        source: "crates/flow/src/syntax/action_names.rs",
        page: "docs/flow-syntax.md",
        what: "action",
        names: |text| text.lines().filter(|line| line.starts_with("    \"")).flat_map(quoted).collect(),
    },
];

/// Pages in which paths to source files are checked.
const GUIDES: &[&str] = &["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "docs/"];

const ARCHITECTURE: &str = "ARCHITECTURE.md";

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = LISTS.iter().flat_map(|list| missing_names(files, list)).collect();
    findings.extend(missing_crates(files));
    let guides = files.iter().filter(|file| file.has_extension("md"));
    for page in guides.filter(|page| GUIDES.iter().any(|guide| page.path.starts_with(guide))) {
        findings.extend(dead_paths(files, page));
    }
    findings
}

fn text_of<'a>(files: &'a [File], path: &str) -> Option<(&'a File, &'a str)> {
    let file = files.iter().find(|file| file.path == path)?;
    Some((file, file.text.as_deref().unwrap_or_default()))
}

fn missing_names(files: &[File], list: &List) -> Vec<Finding> {
    let (Some((source, code)), Some((_, page))) = (text_of(files, list.source), text_of(files, list.page))
    else {
        return Vec::new();
    };
    let names = (list.names)(code);
    if names.is_empty() {
        let says =
            format!("no {} is found here; update the search in crates/xtask/src/tidy/docs.rs", list.what);
        return vec![Finding::new(source, 0, says)];
    }
    let says =
        |name: &String| format!("the {} `{name}` is not in {}; describe it there", list.what, list.page);
    names
        .iter()
        .filter(|name| !names_word(page, name))
        .map(|name| Finding::new(source, 0, says(name)))
        .collect()
}

fn missing_crates(files: &[File]) -> Vec<Finding> {
    let Some((page, text)) = text_of(files, ARCHITECTURE) else { return Vec::new() };
    let names = files.iter().filter_map(|file| {
        file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
    });
    let absent = names.filter(|name| !text.contains(&format!("| `{name}` |")));
    absent
        .map(|name| Finding::new(page, 0, format!("the crate `{name}` is not in the table of crates")))
        .collect()
}

/// Returns paths with `/src/`, and paths below `crates/`, that do not exist.
fn dead_paths(files: &[File], page: &File) -> Vec<Finding> {
    let in_path = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let exists = |path: &str| {
        let folder = format!("{path}/");
        files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    };
    let mut findings = Vec::new();
    for (number, line) in page.text.as_deref().unwrap_or_default().lines().enumerate() {
        for word in line.split(|c| !in_path(c)) {
            let path = word.trim_start_matches("../").trim_end_matches(['.', '/']);
            let is_source = path.starts_with("crates/") || (path.contains("/src/") && path.ends_with(".rs"));
            if is_source && !path.contains('*') && !exists(path) && !exists(&format!("crates/{path}")) {
                findings.push(Finding::new(
                    page,
                    number + 1,
                    format!("`{path}` does not exist; name an existing path"),
                ));
            }
        }
    }
    findings
}

/// Returns the name in a line such as `Runt = "runt";`.
fn reason(line: &str) -> Option<String> {
    let (_, value) = line.trim().split_once(" = \"")?;
    value.strip_suffix("\";").map(str::to_owned)
}

fn quoted(line: &str) -> Vec<String> {
    line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns whether `text` contains `name` in back quotes as a separate word.
fn names_word(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.flat_map(|code| code.split(|c| !word(c))).any(|found| found == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOME: &str = "crates/flow/src/outcome.rs";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::planted(path, text)).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_reason_that_no_page_describes_is_found() {
        let code = "reasons! {\n    /// Short.\n    Runt = \"runt\";\n    Miss = \"table_miss\";\n}\n";
        let page = ("docs/counters.md", "| `runt` | short |\n| `table_misses` |, table_miss\n");
        let found = found(&[(OUTCOME, code), page]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`table_miss`"), "{found:?}");
    }

    #[test]
    fn a_list_that_is_no_longer_recognised_is_found() {
        assert_eq!(found(&[(OUTCOME, "nothing"), ("docs/counters.md", "`runt`")]).len(), 1);
    }

    #[test]
    fn every_name_of_a_key_must_be_documented() {
        let code = "    \"dl_dst\" | \"eth_dst\" => Key::Field(Field::EthDst);\n    \"ip\" => Key::Protocol(1, None);\n";
        let page = ("docs/flow-syntax.md", "`dl_dst`, `ip`\n");
        let found = found(&[("crates/flow/src/syntax/key_names.rs", code), page]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`eth_dst`"), "{found:?}");
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let manifests = [("crates/wire/Cargo.toml", ""), ("crates/flow/Cargo.toml", "")];
        let page = (ARCHITECTURE, "`flow` is there\n| `wire` | headers |\n");
        assert_eq!(found(&[manifests[0], manifests[1], page]).len(), 1);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_found() {
        let page = "see [x](../crates/flow/src/outcome.rs), `flow/src/outcome.rs`, crates/flow/src/, crates/*/src.\n\
                    `crates/flow/src/gone.rs` and flow/src/gone.rs\n";
        let found = found(&[(OUTCOME, "Runt = \"runt\";"), ("docs/adr/0001-x.md", page)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|f| f.starts_with("docs/adr/0001-x.md:2: ")), "{found:?}");
    }
}
