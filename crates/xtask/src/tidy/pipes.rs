// SPDX-License-Identifier: Apache-2.0
//! Checks that no shell script pipes into a `grep` that stops reading at the first match. The writer may then
//! end by SIGPIPE, which `set -o pipefail` reports as a failure, although the text was found.

use super::Finding;
use crate::tree::File;

pub fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.has_extension("sh")).flat_map(check_one).collect()
}

fn check_one(file: &File) -> Vec<Finding> {
    let lines = file.text.as_deref().unwrap_or_default().lines();
    (1..)
        .zip(lines)
        .filter(|(_, line)| line.split('|').skip(1).any(is_quiet_grep))
        .map(|(number, _)| {
            Finding::new(file, number, "`grep -q` may end the writer of its pipe; use `grep ... >/dev/null`")
        })
        .collect()
}

/// Returns whether a command of a pipe is a `grep` with the option `-q`, alone or among other letters.
fn is_quiet_grep(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let is_short_option = |word: &&str| word.starts_with('-') && !word.starts_with("--");
    words.next() == Some("grep")
        && words
            .take_while(|word| word.starts_with('-'))
            .filter(is_short_option)
            .any(|word| word.contains('q'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_into_a_quiet_grep_are_found_and_no_others() {
        let text = "ping -c 1 h2 | grep -q ttl || fail\n\
                    sort a | uniq | grep -Fxq 40\n\
                    grep -q ttl log || fail\n\
                    ping h2 | grep ttl >/dev/null\n\
                    list | grep -e x -- -q\n";
        let lines: Vec<usize> =
            check(&[File::planted("a.sh", text)]).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2]);
        assert_eq!(check(&[File::planted("a.rs", text)]), []);
    }
}
