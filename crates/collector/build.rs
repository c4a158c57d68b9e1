//! Builds the agent, which runs in traced processes, and leaves its file for `include_bytes!`.
//!
//! It is a package of its own with a target directory of its own, because it is built otherwise than everything else: without the
//! standard library, optimised, for the machine's ordinary loader even if trapline is linked statically.
//!
//! ```text
//!  agent/ (links to ../agent, ../abi, ../unwind; files in a packaged crate) ─► OUT_DIR/agent-sources/… ─► cargo ─► OUT_DIR/agent.so
//! ```
//!
//! The sources are copied, because a crate that is packaged has only what lies below its own directory, and no second package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The platform that the agent is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What is copied, and where to.
const FILES: [(&str, &str); 7] = [
    ("agent/agent.toml", "agent/Cargo.toml"),
    ("agent/agent.lock", "agent/Cargo.lock"),
    ("agent/agent-build.rs", "agent/build.rs"),
    ("agent/src", "agent/src"),
    ("agent/unwind.toml", "agent/unwind/Cargo.toml"),
    ("agent/abi", "abi/src"),
    ("agent/unwind", "unwind/src"),
];
/// The manifest of `abi` outside of the workspace.
const ABI: &str = "[package]\nname = \"abi\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let sources = out.join("agent-sources");
    let _ = fs::remove_dir_all(&sources);
    for (from, to) in FILES {
        copy(Path::new(from), &sources.join(to));
    }
    fs::write(sources.join("abi/Cargo.toml"), ABI).expect("the directory was made");
    println!("cargo::rerun-if-changed=build.rs");
    let target = out.join("agent-target");
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo sets it"));
    cargo.args(["build", "--release", "--offline", "--locked", "--quiet", "--target", TARGET, "--manifest-path"]);
    cargo.arg(sources.join("agent/Cargo.toml")).arg("--target-dir").arg(&target);
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
    fs::copy(&file, out.join("agent.so")).expect("the agent was built");
}

/// Copies a file, or a directory with all that is in it, and has cargo watch it.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        println!("cargo::rerun-if-changed={}", from.display());
        let entries = fs::read_dir(from).expect("a directory");
        return entries.flatten().for_each(|e| copy(&e.path(), &to.join(e.file_name())));
    }
    println!("cargo::rerun-if-changed={}", from.display());
    fs::create_dir_all(to.parent().expect("it has a directory")).expect("it can be made");
    fs::copy(from, to).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
}
