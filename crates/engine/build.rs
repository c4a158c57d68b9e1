//! Builds the agent, which runs in traced processes, and leaves its file for `include_bytes!`.
//!
//! It is a package of its own with a target directory of its own, because it is built otherwise than everything else: without the
//! standard library, optimised, for the machine's ordinary loader even if trapline is linked statically.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The platform that the agent is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let agent = Path::new("../agent");
    for watched in
        ["../agent/src", "../agent/build.rs", "../agent/Cargo.toml", "../agent/Cargo.lock", "../abi/src", "build.rs"]
    {
        println!("cargo::rerun-if-changed={watched}");
    }
    let target = out.join("agent-target");
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo sets it"));
    cargo.args(["build", "--release", "--offline", "--locked", "--quiet", "--target", TARGET, "--manifest-path"]);
    cargo.arg(agent.join("Cargo.toml")).arg("--target-dir").arg(&target);
    // What is meant for the crate that is being built is not meant for the agent.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_for_this_crate = name.starts_with("CARGO_") && name != "CARGO_HOME" || name.starts_with("RUSTC_W");
        if is_for_this_crate || ["RUSTFLAGS", "RUSTDOCFLAGS", "OUT_DIR", "TARGET"].contains(&name.as_str()) {
            cargo.env_remove(name);
        }
    }
    let built = cargo.status().expect("cargo runs");
    assert!(built.success(), "the agent cannot be built");
    let file = target.join(TARGET).join("release/libagent.so");
    std::fs::copy(&file, out.join("agent.so")).expect("the agent was built");
}
