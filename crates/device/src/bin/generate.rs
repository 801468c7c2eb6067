// SPDX-License-Identifier: Apache-2.0
//! Writes the generated definitions into `rtl/`.

use std::path::Path;
use std::{fs, io};

use device::generate::{PYTHON_PATH, SYSTEM_VERILOG_PATH, python, system_verilog};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(root.join(SYSTEM_VERILOG_PATH), system_verilog())?;
    fs::write(root.join(PYTHON_PATH), python())
}
