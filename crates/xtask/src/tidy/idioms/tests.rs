// SPDX-License-Identifier: Apache-2.0
//! Every forbidden idiom must be detected.

use super::*;

fn found(path: &str, text: &str) -> Vec<Finding> {
    check(&[File::planted(path, text)])
}

#[test]
fn every_idiom_is_found_in_each_of_its_crates() {
    for idiom in IDIOMS {
        for name in idiom.crates {
            let text = format!("fn a() {{\n    {} b);\n}}\n", idiom.needle);
            let found = found(&format!("crates/{name}/src/deep/a.rs"), &text);
            assert!(
                found.iter().any(|f| f.line == 2 && f.says.contains(idiom.needle)),
                "{} in {name}",
                idiom.needle
            );
        }
    }
}

#[test]
fn crates_that_do_not_forbid_an_idiom_may_use_it() {
    assert_eq!(found("crates/switch/src/a.rs", "use std::fs; fn a() { format!(); }"), []);
    assert_eq!(found("crates/pipeline/tests/a.rs", "use std::fs;"), []);
}

#[test]
fn comments_and_strings_are_ignored() {
    let text = "//! Never `unwrap(`s, no Mutex.\nconst A: &str = \"println!\"; // format!\nlet unlogged::x = libc_free;\n";
    assert_eq!(found("crates/pipeline/src/a.rs", text), []);
}

#[test]
fn grouped_imports_are_found() {
    let found =
        found("crates/tables/src/a.rs", "use std::{\n    fmt,\n    fs::{self, File},\n    mem,\n};\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].line, 3);
}

#[test]
fn test_modules_are_exempt_but_later_code_is_not() {
    let text = "#[cfg(test)]\nmod tests { fn a() { b.unwrap(); } }\nfn c() { d.unwrap(); }\n";
    let found = found("crates/tables/src/a.rs", text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].line, 3);
}

#[test]
fn test_modules_in_separate_files_are_exempt() {
    let of = |declaration: &str, module: &str| {
        let parent = File::planted("crates/engines/src/exact.rs", declaration);
        check(&[parent, File::planted(module, "fn a() { b.unwrap(); }\n")]).len()
    };
    assert_eq!(of("#[cfg(test)]\nmod tests;\n", "crates/engines/src/exact/tests.rs"), 0);
    assert_eq!(of("#[cfg(test)]\nmod tests;\n", "crates/engines/src/exact/tests/deep.rs"), 0);
    assert_eq!(of("mod tests;\n", "crates/engines/src/exact/tests.rs"), 1);
    assert_eq!(of("#[cfg(test)]\nmod tests;\n", "crates/engines/src/scan/tests.rs"), 1);
}

#[test]
fn control_side_files_may_allocate_but_not_lock() {
    let text = "// SPDX\n//! Compiles a table.\n//!\n//! Control side: runs where tables are built.\nuse std::collections::HashMap;\n";
    assert_eq!(found("crates/tables/src/compile.rs", text), []);
    assert_eq!(found("crates/tables/src/compile.rs", &format!("{text}use std::sync::Mutex;\n")).len(), 1);
    let late = "use std::collections::HashMap;\n//! Control side: too late to count\n";
    assert_eq!(found("crates/tables/src/compile.rs", late).len(), 1);
}

#[test]
fn unsafe_is_found_outside_its_places() {
    let text = "fn a() { unsafe { b() } }\n";
    for path in ["crates/worker/src/a.rs", "crates/frame/src/pool.rs", "crates/engines/src/exact.rs"] {
        assert_eq!(found(path, text).len(), 1, "{path}");
    }
    for path in ["crates/port/src/a.rs", "crates/frame/src/memory.rs", "crates/engines/src/prefetch.rs"] {
        assert_eq!(found(path, text), [], "{path}");
    }
    assert_eq!(found("crates/worker/src/lib.rs", "#![deny(unsafe_code)]\n"), []);
}
