// SPDX-License-Identifier: Apache-2.0
//! Compiles the RTL by Verilator if the feature `verilator` is enabled.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "verilator")]
    verilator::build()?;
    Ok(())
}

#[cfg(feature = "verilator")]
mod verilator {
    use std::error::Error;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Parameters of the simulated data plane, for the RTL and for the crate.
    const PARAMETERS: [(&str, u32); 2] = [("PPUS", 5), ("ENTRIES", 32)];

    pub fn build() -> Result<(), Box<dyn Error>> {
        println!("cargo::rerun-if-changed=cpp/shim.cpp");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        println!("cargo::rerun-if-changed={}", root.join("rtl/files.f").display());
        let sources: Vec<PathBuf> =
            fs::read_to_string(root.join("rtl/files.f"))?.lines().map(|line| root.join(line)).collect();
        for source in &sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        let out = PathBuf::from(std::env::var("OUT_DIR")?);
        let folder = out.join("verilated");
        let _ = fs::remove_dir_all(&folder);
        let mut command = Command::new("verilator");
        command
            .args(["--cc", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--prefix", "Vdatapath"])
            .args(["--output-split", "8000", "--output-split-cfuncs", "2000"])
            .args(["--top-module", "datapath", "-Wno-fatal", "-Werror-USERFATAL", "-Mdir"])
            .arg(&folder)
            .args(PARAMETERS.map(|(name, value)| format!("-G{name}={value}")))
            .arg(root.join("rtl/lint.vlt"))
            .args(&sources);
        let output = command.output().map_err(|error| {
            format!(
                "the feature `verilator` needs Verilator 5, which `scripts/setup.sh rtl` installs. {error}"
            )
        })?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        compile(&folder)?;
        let constants: String = PARAMETERS
            .iter()
            .map(|(name, value)| {
                format!(
                    "/// Parameter `{name}` of the simulated data plane.\npub const {name}: u16 = {value};\n"
                )
            })
            .collect();
        fs::write(out.join("parameters.rs"), constants)?;
        Ok(())
    }

    /// Compiles the C++ code. Code that runs only at the start is not optimised, because it is most of it.
    fn compile(folder: &Path) -> Result<(), Box<dyn Error>> {
        let root = Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]).output()?.stdout;
        let include = PathBuf::from(String::from_utf8(root)?.trim()).join("include");
        let (mut fast, mut slow) = (settings(folder, &include), settings(folder, &include));
        fast.opt_level(1).file("cpp/shim.cpp").file(include.join("verilated.cpp"));
        fast.file(include.join("verilated_threads.cpp"));
        slow.opt_level(0);
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with("__Slow.cpp") || name.ends_with("__Syms.cpp") {
                slow.file(path);
            } else if name.ends_with(".cpp") {
                fast.file(path);
            }
        }
        fast.try_compile("device_sim")?;
        slow.try_compile("device_sim_start")?;
        Ok(())
    }

    fn settings(folder: &Path, include: &Path) -> cc::Build {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .warnings(false)
            .debug(false)
            .include(folder)
            .include(include)
            .include(include.join("vltstd"));
        for option in ["VM_COVERAGE", "VM_SC", "VM_TRACE"] {
            build.define(option, "0");
        }
        build
    }
}
