// SPDX-License-Identifier: Apache-2.0
//! Checks the form of the documentation pages: length, links, decision records, and the rows of
//! docs/where.md.

use super::Finding;
use crate::tree::File;

/// Pages that must stay short, with their maximum numbers of words. Words are separated by white space.
const WORDS_MAX: &[(&str, usize)] = &[("README.md", 1_200), ("ARCHITECTURE.md", 1_500)];

/// Prefix of the paths of decision records.
const DECISIONS: &str = "docs/adr/0";
const DECISION_WORDS_MAX: usize = 400;

/// Beginnings of the lines that every decision record must have.
const DECISION_LINES: &[&str] = &["- Status: ", "- Date: "];

/// The page whose rows each name one path.
const WHERE: &str = "docs/where.md";

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in files.iter().filter(|file| file.has_extension("md")) {
        findings.extend(too_long(page));
        findings.extend(decision(page));
        findings.extend(dead_links(files, page));
        if page.path == WHERE {
            findings.extend(rows(files, page));
        }
    }
    findings
}

fn text(file: &File) -> &str {
    file.text.as_deref().unwrap_or_default()
}

fn too_long(page: &File) -> Option<Finding> {
    let listed = WORDS_MAX.iter().find(|(path, _)| *path == page.path).map(|(_, most)| *most);
    let most = listed.or_else(|| page.path.starts_with(DECISIONS).then_some(DECISION_WORDS_MAX))?;
    let words = text(page).split_whitespace().count();
    let says = format!("{words} words, but the limit is {most}; shorten it");
    (words > most).then(|| Finding::new(page, 0, says))
}

fn decision(page: &File) -> Vec<Finding> {
    if !page.path.starts_with(DECISIONS) {
        return Vec::new();
    }
    let has = |start: &str| text(page).lines().any(|line| line.starts_with(start));
    let missing = DECISION_LINES.iter().filter(|start| !has(start));
    missing
        .map(|start| Finding::new(page, 0, format!("a decision record needs a line `{}`", start.trim_end())))
        .collect()
}

/// Returns the links to missing files and headings. Links with a scheme, such as `https:`, are not followed.
fn dead_links(files: &[File], page: &File) -> Vec<Finding> {
    let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (number, line) in prose(text(page)) {
        for target in links(line).filter(|target| !target.contains(':')) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { page.path.clone() } else { joined(folder, path) };
            let found = files.iter().find(|file| file.path == path);
            let below = format!("{path}/");
            let says = match found {
                Some(file) if !heading.is_empty() && !headings(text(file)).any(|slug| slug == heading) => {
                    format!("`{path}` has no heading `#{heading}`")
                }
                None if !files.iter().any(|file| file.path.starts_with(&below)) => {
                    format!("the link leads to `{path}`, which does not exist")
                }
                _ => continue,
            };
            findings.push(Finding::new(page, number, says));
        }
    }
    findings
}

/// Returns the lines outside of code blocks, with their numbers, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!fence && !in_code).then_some((at + 1, line))
    })
}

/// Returns the targets of the links in a line. Links in backquotes are omitted.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, open)| {
        let in_code = line[..at].matches('`').count() % 2 == 1 && line[at..].contains('`');
        let rest = &line[at + open.len()..];
        rest.split_once(')').map(|(target, _)| target).filter(|_| !in_code)
    })
}

/// Returns `path`, interpreted relative to `folder`, without `.` and `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the anchors that GitHub generates for a page's headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        Some(kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect())
    })
}

/// Checks that each row names at most one path, and that the file at this path contains the items that the
/// row names after the path.
fn rows(files: &[File], page: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(text(page)).filter(|(_, line)| line.starts_with('|')) {
        let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let mut paths = quoted.iter().enumerate().filter(|(_, word)| word.starts_with("crates/"));
        let Some((at, path)) = paths.next() else { continue };
        if paths.next().is_some() {
            findings.push(Finding::new(page, number, "the row names two paths; split it"));
        }
        let Some(file) = files.iter().find(|file| file.path == *path) else { continue };
        for item in &quoted[at + 1..] {
            let name = item.rsplit("::").next().unwrap_or(item);
            if !text(file).contains(name) {
                findings.push(Finding::new(page, number, format!("`{path}` has no `{item}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::planted(path, text)).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_page_with_too_many_words_is_found() {
        assert_eq!(
            found(&[("README.md", &"word ".repeat(1_201)), ("docs/x.md", &"word ".repeat(1_201))]).len(),
            1
        );
        assert!(found(&[("README.md", &"word ".repeat(1_200))]).is_empty());
    }

    #[test]
    fn a_decision_without_a_date_or_of_too_many_words_is_found() {
        let whole = "# 0001: X\n\n- Status: accepted\n- Date: 2026-01-01\n";
        assert!(found(&[("docs/adr/0001-x.md", whole)]).is_empty());
        assert_eq!(found(&[("docs/adr/0001-x.md", "# 0001: X\n\n- Status: accepted\n")]).len(), 1);
        assert_eq!(found(&[("docs/adr/0001-x.md", &(whole.to_owned() + &"word ".repeat(400)))]).len(), 1);
        assert!(found(&[("docs/adr/README.md", "no date")]).is_empty());
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let other = ("docs/b.md", "# Of `x`: A & b-c\n\n```\n# not one\n```\n");
        let page = "[1](b.md) [2](b.md#of-x-a--b-c) [3](../docs/) [4](https://x.org/y) `[5](c.md)`\n\
                    [6](c.md)\n[7](b.md#not-one)\n[8](#none)\n```\n[9](c.md)\n```\n";
        let found = found(&[other, ("docs/a.md", page)]);
        assert_eq!(found.len(), 3, "{found:?}");
        for (line, finding) in (2..).zip(&found) {
            assert!(finding.starts_with(&format!("docs/a.md:{line}: ")), "{found:?}");
        }
    }

    #[test]
    fn a_row_with_two_paths_or_a_missing_item_is_found() {
        let code = ("crates/a/src/b.rs", "impl Egress { fn send() {} }");
        let row = "| sends | `crates/a/src/b.rs`: `Egress::send` |\n";
        assert!(found(&[code, (WHERE, row)]).is_empty());
        let missing = "| receives | `crates/a/src/b.rs`: `Egress::receive` |\n";
        let two = "| sends | `crates/a/src/b.rs`, `crates/a/src/c.rs` |\n";
        assert_eq!(found(&[code, (WHERE, missing)]).len(), 1);
        assert!(found(&[code, (WHERE, two)])[0].contains("two paths"));
    }
}
