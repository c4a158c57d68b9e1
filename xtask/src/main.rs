//! trapline's chores: `cargo xtask codegen | ci | compare-strace | bench | …`.

#![allow(missing_docs)]

mod bench;
mod codegen;
mod compare;
mod lab;

use anyhow::{Result, bail};
use std::path::PathBuf;

/// The workspace's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("codegen") => codegen::run(&root(), &args[1..]),
        Some("compare-strace") => compare::run(&args[1..]),
        Some("bench") => bench::run(&args[1..]),
        _ => bail!("usage: cargo xtask codegen [--check] | compare-strace … | bench …"),
    }
}
