// SPDX-License-Identifier: Apache-2.0
//! Builds the C shim of the DPDK driver if the feature `dpdk` is enabled.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk::build()?;
    Ok(())
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::error::Error;
    use std::path::PathBuf;

    const VERSION: &str = "22.11";

    pub fn build() -> Result<(), Box<dyn Error>> {
        println!("cargo::rerun-if-changed=src/dpdk/shim.c");
        println!("cargo::rerun-if-changed=src/dpdk/shim.h");
        println!("cargo::rerun-if-changed=src/dpdk/odd.c");
        println!("cargo::rerun-if-changed=src/dpdk/odd.h");
        let found = pkg_config::Config::new().atleast_version(VERSION).probe("libdpdk").map_err(|error| {
            format!("DPDK {VERSION} or later is needed to build with the feature `dpdk`; on Debian: apt-get install \
                     libdpdk-dev libclang-dev pkg-config. {error}")
        })?;
        cc::Build::new()
            .file("src/dpdk/shim.c")
            .file("src/dpdk/odd.c")
            .includes(&found.include_paths)
            // DPDK's build configuration, on which its inline functions depend.
            .flag("-include")
            .flag("rte_config.h")
            .flag_if_supported("-msse4.2")
            .flag("-Wno-unused-parameter")
            .define("FRAME_MEMORY", &*frame::layout::MEMORY.to_string())
            .define("FRAME_OFFSET", &*frame::layout::OFFSET.to_string())
            .define("FRAME_LEN", &*frame::layout::LEN.to_string())
            .define("FRAME_POOL", &*frame::layout::POOL.to_string())
            .define("FRAME_PRIVATE", &*frame::layout::PRIVATE.to_string())
            .define("FRAME_HEADROOM", &*frame::HEADROOM_BYTES.to_string())
            .warnings(true)
            .compile("shim");
        let folder = PathBuf::from(std::env::var("OUT_DIR")?);
        let shim = bindgen::Builder::default()
            .header("src/dpdk/shim.h")
            .allowlist_item("shim_.*|SHIM_.*")
            .derive_default(true)
            .generate()?;
        shim.write_to_file(folder.join("shim.rs"))?;
        let odd = bindgen::Builder::default()
            .header("src/dpdk/odd.h")
            .allowlist_item("odd_.*")
            .rustified_enum("odd_kind")
            .generate()?;
        odd.write_to_file(folder.join("odd.rs"))?;
        Ok(())
    }
}
