// SPDX-License-Identifier: Apache-2.0
//! Checks the licence header, which must be in the first line of every source file, or in the second line
//! after `#!`.

use super::Finding;
use crate::tree::File;

const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0";
const SOURCE: &[&str] = &["rs", "py", "sv", "v", "c", "h", "sh", "toml", "mk", "yml", "yaml"];

pub fn check(files: &[File]) -> Vec<Finding> {
    let lacks = |file: &&File| {
        let text = file.text.as_deref().unwrap_or_default();
        let is_script = text.starts_with("#!/");
        let is_source = SOURCE.iter().any(|extension| file.has_extension(extension));
        let line = text.lines().nth(usize::from(is_script)).unwrap_or_default();
        // An empty file, such as the marker of a Python package, needs no licence.
        (is_source || is_script || file.name() == "Makefile") && !text.is_empty() && !says_licence(line)
    };
    let found = |file| Finding::new(file, 1, format!("the first line is not a comment with `{LICENCE}`"));
    files.iter().filter(lacks).map(found).collect()
}

fn says_licence(line: &str) -> bool {
    let line = line.trim();
    ["// ", "# ", "/* "]
        .iter()
        .filter_map(|mark| line.strip_prefix(mark))
        .any(|rest| rest.starts_with(LICENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_licence_is_found() {
        for (path, text) in [
            ("a.rs", "//! Docs\n"),
            ("b.py", "#!/usr/bin/env python3\nimport os\n"),
            ("run", "#!/bin/sh\ntrue\n"),
            ("Makefile", "all:\n"),
            ("c.rs", "//! Docs\n// SPDX-License-Identifier: Apache-2.0\n"),
            ("d.rs", "// SPDX-License-Identifier: MIT\n"),
        ] {
            assert_eq!(check(&[File::planted(path, text)]).len(), 1, "{path}");
        }
    }

    #[test]
    fn a_licence_in_its_place_is_accepted() {
        for (path, text) in [
            ("a.rs", "// SPDX-License-Identifier: Apache-2.0\nfn a() {}\n"),
            ("b.sh", "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n"),
            ("README.md", "# Title\n"),
            ("package/__init__.py", ""),
        ] {
            assert_eq!(check(&[File::planted(path, text)]), [], "{path}");
        }
    }
}
