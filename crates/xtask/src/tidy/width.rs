// SPDX-License-Identifier: Apache-2.0
//! Checks that comments and Markdown, which rustfmt does not wrap, are at most as wide as code.

use super::Finding;
use crate::tree::File;

/// Maximum number of columns of a line, as in rustfmt.toml.
const COLUMNS_MAX: usize = 110;

/// A line that contains a word of at least this many columns, such as a link, may be wider.
const WORD_COLUMNS: usize = 60;

pub fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| !file.is_generated()).flat_map(check_one).collect()
}

fn check_one(file: &File) -> Vec<Finding> {
    let text = file.text.as_deref().unwrap_or_default();
    let wide: Vec<usize> = if file.has_extension("rs") {
        numbered(text).filter(|(_, line)| is_comment(line) && is_wide(line)).map(first).collect()
    } else if file.has_extension("md") {
        prose(text).filter(|(_, line)| is_wide(line)).map(first).collect()
    } else {
        return Vec::new();
    };
    let says = || format!("wider than {COLUMNS_MAX} columns; break the line");
    wide.into_iter().map(|line| Finding::new(file, line, says())).collect()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

fn first((number, _): (usize, &str)) -> usize {
    number
}

/// Returns whether the line is a comment that is not a row of a table.
fn is_comment(line: &str) -> bool {
    let start = line.trim_start();
    start.starts_with("//") && !start.trim_start_matches(['/', '!', ' ']).starts_with('|')
}

fn is_wide(line: &str) -> bool {
    let columns = |text: &str| text.chars().count();
    columns(line) > COLUMNS_MAX && !line.split_whitespace().any(|word| columns(word) >= WORD_COLUMNS)
}

/// Returns the lines of a Markdown page that can be broken: no tables, no code blocks, no headings.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    numbered(text).filter(move |(_, line)| {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence && !start.starts_with('|') && !start.starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&[File::planted(path, text)]).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn wide_comments_are_found_and_wide_code_is_left_to_rustfmt() {
        let (fits, wide) = ("ab ".repeat(35), "ab ".repeat(37));
        let text = format!("// {fits}\n    /// {wide}\nlet x = \"{wide}\";\n//! {wide}\n//! | {wide} |\n");
        assert_eq!(lines("a.rs", &text), [2, 4]);
        assert_eq!(lines("a.py", &text), [0; 0]);
    }

    #[test]
    fn wide_paragraphs_are_found_but_no_tables_code_or_links() {
        let wide = "word ".repeat(25);
        let link = format!("see [the page](https://example.org/{})", "a".repeat(90));
        let text = format!("{wide}\n| {wide} |\n```\n{wide}\n```\n- {wide}\n{link}\n# {wide}\n{wide}");
        assert_eq!(lines("a.md", &text), [1, 6, 9]);
    }

    #[test]
    fn columns_are_counted_and_not_bytes() {
        assert_eq!(lines("a.rs", &format!("// {}\n", "ä ".repeat(53))), [0; 0]);
    }
}
