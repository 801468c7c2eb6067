// SPDX-License-Identifier: Apache-2.0
//! The committed definitions are those that the generator makes.

use std::fs;
use std::path::Path;

use device::generate::{PYTHON_PATH, SYSTEM_VERILOG_PATH, python, system_verilog};

#[test]
fn the_committed_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, text) in [(SYSTEM_VERILOG_PATH, system_verilog()), (PYTHON_PATH, python())] {
        let committed = fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(committed == text, "{path} is out of date; run `cargo run -p device --bin generate`");
    }
}
