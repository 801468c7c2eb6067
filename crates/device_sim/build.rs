// SPDX-License-Identifier: Apache-2.0
//! Compiles top modules of the RTL by Verilator: `datapath` and `device`, each with the feature of its name.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(any(feature = "datapath", feature = "device"))]
    verilator::build()?;
    Ok(())
}

#[cfg(any(feature = "datapath", feature = "device"))]
mod verilator {
    use std::error::Error;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// A top module that is simulated.
    struct Top {
        /// Name of the module, of the feature, and of the shim in `cpp`.
        name: &'static str,
        /// Parameters for the RTL.
        parameters: &'static [(&'static str, u32)],
    }

    const PPUS: (&str, u32) = ("PPUS", 5);
    const ENTRIES: (&str, u32) = ("ENTRIES", 32);
    const CHANNELS: (&str, u32) = ("CHANNELS", 4);

    const TOPS: &[Top] = &[
        #[cfg(feature = "datapath")]
        Top { name: "datapath", parameters: &[PPUS, ENTRIES] },
        #[cfg(feature = "device")]
        Top { name: "device", parameters: &[PPUS, ENTRIES, CHANNELS] },
    ];

    pub fn build() -> Result<(), Box<dyn Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        println!("cargo::rerun-if-changed={}", root.join("rtl/files.f").display());
        println!("cargo::rerun-if-changed={}", root.join("rtl/lint.vlt").display());
        let sources: Vec<PathBuf> =
            fs::read_to_string(root.join("rtl/files.f"))?.lines().map(|line| root.join(line)).collect();
        for source in &sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        let out = PathBuf::from(std::env::var("OUT_DIR")?);
        for top in TOPS {
            println!("cargo::rerun-if-changed=cpp/{}.cpp", top.name);
        }
        if !is_clippy() {
            let mut folders = Vec::new();
            for top in TOPS {
                let folder = out.join(top.name);
                verilate(top, &folder, &root, &sources)?;
                folders.push(folder);
            }
            compile(&folders)?;
        }
        let parameters = [PPUS, ENTRIES, CHANNELS];
        let constants: String = parameters
            .iter()
            .map(|(name, value)| {
                format!("/// Parameter `{name}` of the simulated RTL.\npub const {name}: u16 = {value};\n")
            })
            .collect();
        fs::write(out.join("parameters.rs"), constants)?;
        Ok(())
    }

    /// Returns whether cargo runs this script for clippy, which links nothing. Cargo runs it again
    /// for a build.
    fn is_clippy() -> bool {
        let wrapper = std::env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
        wrapper.is_some_and(|path| path.file_stem().is_some_and(|name| name == "clippy-driver"))
    }

    /// Translates a module to C++. The code is split into few large files, because each file includes a
    /// header that takes a second to compile.
    fn verilate(top: &Top, folder: &Path, root: &Path, sources: &[PathBuf]) -> Result<(), Box<dyn Error>> {
        let _ = fs::remove_dir_all(folder);
        let mut command = Command::new("verilator");
        command
            .args(["--cc", "-O3", "--x-assign", "fast", "--x-initial", "unique"])
            .args(["--prefix", &format!("V{}", top.name), "--top-module", top.name])
            .args(["--output-split", "100000", "--output-split-cfuncs", "2000"])
            .args(["-Wno-fatal", "-Werror-USERFATAL", "-Mdir"])
            .arg(folder)
            .args(top.parameters.iter().map(|(name, value)| format!("-G{name}={value}")))
            .arg(root.join("rtl/lint.vlt"))
            .args(sources);
        let output = command.output().map_err(|error| {
            format!(
                "the feature `{}` needs Verilator 5, which `scripts/setup.sh rtl` installs. {error}",
                top.name
            )
        })?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(())
    }

    /// Compiles the C++ code. Code that runs only at the start is not optimised, because it is most of it.
    /// The rest is optimised for speed in release builds, and for quick compilation otherwise.
    fn compile(folders: &[PathBuf]) -> Result<(), Box<dyn Error>> {
        let root = Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]).output()?.stdout;
        let include = PathBuf::from(String::from_utf8(root)?.trim()).join("include");
        let (mut fast, mut slow) = (settings(folders, &include), settings(folders, &include));
        let release = std::env::var("PROFILE")? == "release";
        fast.opt_level(if release { 2 } else { 1 });
        fast.files(TOPS.iter().map(|top| format!("cpp/{}.cpp", top.name)));
        fast.file(include.join("verilated.cpp")).file(include.join("verilated_threads.cpp"));
        slow.opt_level(0);
        for entry in folders.iter().map(fs::read_dir).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
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

    fn settings(folders: &[PathBuf], include: &Path) -> cc::Build {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .warnings(false)
            .debug(false)
            .includes(folders)
            .include(include)
            .include(include.join("vltstd"));
        for option in ["VM_COVERAGE", "VM_SC", "VM_TRACE"] {
            build.define(option, "0");
        }
        build
    }
}
