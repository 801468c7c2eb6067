// SPDX-License-Identifier: Apache-2.0
//! Checks for words that bind the tree to one machine: local paths, and hosts of package registries.

use super::Finding;
use crate::tree::File;

/// Prefixes of paths that exist only on one machine or for one user.
const MACHINE_PATHS: &[&str] = &["/home/", "/root/", "/work/", "/farm/", "/Users/", "/mnt/"];

/// Hosts of package registries. The user's settings, not the project, must choose these hosts.
const REGISTRIES: &[&str] = &[
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "pypi.org",
    "files.pythonhosted.org",
    "proxy.golang.org",
    "deb.debian.org",
    "security.debian.org",
];

/// This file, which contains the forbidden words itself.
const SELF: &str = "crates/xtask/src/tidy/words.rs";

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path != SELF && file.name() != "Cargo.lock") {
        for (number, line) in file.text.as_deref().unwrap_or_default().lines().enumerate() {
            for path in MACHINE_PATHS.iter().filter(|path| names_path(line, path)) {
                let says = format!("`{path}` is a path of one machine; use one relative to the repository");
                findings.push(Finding::new(file, number + 1, says));
            }
            for host in REGISTRIES.iter().filter(|host| line.contains(*host)) {
                let says =
                    format!("`{host}` is a package registry; leave the choice to the user's client settings");
                findings.push(Finding::new(file, number + 1, says));
            }
        }
    }
    findings
}

/// Returns whether `line` contains `path` as the start of a longer path. The middle of `a/work/b` and a bare
/// `/root/` do not count.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}*~".contains(c))
            && after.is_some_and(|c| c.is_alphanumeric() || "._-".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        for line in ["open('/home/me/x')", "# see /work/x.md", "D=/root/.cargo"] {
            let found = check(&[File::planted("a.py", &format!("ok\n{line}\n"))]);
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(found[0].line, 2);
        }
    }

    #[test]
    fn relative_paths_and_system_paths_are_accepted() {
        for line in [
            "tests/work/x",
            "$dir/home/x",
            "{root}/work/x",
            "/run/shunt/s1.sock",
            "/proc/self",
            "as /root/ does",
        ] {
            assert_eq!(check(&[File::planted("a.sh", line)]), [], "{line}");
        }
    }

    #[test]
    fn registry_hosts_are_found_except_in_the_lock_file() {
        let line = "url = \"https://index.crates.io/x\"";
        assert_eq!(check(&[File::planted("a.toml", line)]).len(), 1);
        assert_eq!(check(&[File::planted("Cargo.lock", line)]), []);
    }
}
