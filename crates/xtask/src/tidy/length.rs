// SPDX-License-Identifier: Apache-2.0
//! Checks the sizes of files. No source file may have more than 800 lines, the median must be below 200
//! lines, and no file may exceed 1 MB.

use std::fmt;

use super::Finding;
use crate::tree::File;

const LINES_MAX: usize = 800;
const MEDIAN_MAX: usize = 200;
const SIZE_MAX_BYTES: u64 = 1_000_000;
const SOURCE: &[&str] = &["rs", "py", "sv", "v", "c", "h", "sh"];

/// Lengths of hand-written (not generated) source files.
pub struct Sizes {
    median_lines: usize,
    longest_lines: usize,
}

impl Sizes {
    pub fn of(files: &[File]) -> Self {
        let mut lines: Vec<usize> = files.iter().filter_map(written_lines).collect();
        lines.sort_unstable();
        Self {
            median_lines: lines.get(lines.len() / 2).copied().unwrap_or(0),
            longest_lines: lines.last().copied().unwrap_or(0),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "median length {} lines, longest {}", self.median_lines, self.longest_lines)
    }
}

fn written_lines(file: &File) -> Option<usize> {
    let is_source = SOURCE.iter().any(|extension| file.has_extension(extension)) && !file.is_generated();
    file.text.as_ref().filter(|_| is_source).map(|text| text.lines().count())
}

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if let Some(lines) = written_lines(file).filter(|lines| *lines > LINES_MAX) {
            findings.push(Finding::new(
                file,
                0,
                format!("{lines} lines, but the limit is {LINES_MAX}; split it"),
            ));
        }
        if file.size > SIZE_MAX_BYTES {
            let says =
                format!("{} bytes; keep data over {SIZE_MAX_BYTES} bytes out of the repository", file.size);
            findings.push(Finding::new(file, 0, says));
        }
    }
    let median_lines = Sizes::of(files).median_lines;
    if median_lines >= MEDIAN_MAX {
        let says =
            format!("the median source file has {median_lines} lines; it must stay below {MEDIAN_MAX}");
        findings.push(Finding { path: ".".into(), line: 0, says });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, count: usize) -> File {
        File::planted(path, &"x\n".repeat(count))
    }

    #[test]
    fn a_file_over_800_lines_is_found_unless_generated() {
        let files =
            [lines("a.rs", 801), lines("b.rs", 800), lines("c.rs", 2), lines("d.rs", 2), lines("e.py", 1)];
        let found = check(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "a.rs");
        let generated = [
            lines("generated/a.rs", 900),
            File::planted("b.sv", &("// @generated\n".to_owned() + &"x\n".repeat(900))),
            lines("long.md", 900),
        ];
        assert_eq!(check(&generated), []);
    }

    #[test]
    fn a_high_median_is_found() {
        let found = check(&[lines("a.rs", 10), lines("b.rs", 200), lines("c.rs", 300)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].says.contains("median source file has 200 lines"));
    }

    #[test]
    fn a_file_over_1_mb_is_found_whatever_it_holds() {
        let file = File { path: "x.pcap".into(), text: None, size: 1_000_001 };
        assert_eq!(check(&[file]).len(), 1);
    }
}
