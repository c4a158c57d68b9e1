//! `cargo xtask miri`: Miri runs the tests of memory that two sides share, the ptracer's ring and those of programs. It finds what two threads do
//! without an order, in several orders of both, and reads and writes outside of what there is. What asks the kernel for more than memory is
//! beyond it.

use crate::skips;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// Parts of the tests' names. Those that repeat something thousands of times take Miri minutes.
const TESTS: [&str; 5] =
    ["two_threads_meet", "a_record_is", "no_more_is_copied", "records_across_the_end", "no_word_is"];
/// Orders of threads: each begins with another random number.
const ORDERS: &str = "-Zmiri-many-seeds=0..4";

pub fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask miri");
    check(None)
}

/// Runs them, or notes that there is no Miri.
pub fn check(skips: Option<&Path>) -> Result<()> {
    let why = "no Miri: rustup component add --toolchain nightly miri rust-src";
    match (is_there(), skips) {
        (true, _) => {}
        (false, Some(file)) => return skips::add(file, "miri", "miri", why),
        (false, None) => anyhow::bail!("{why}"),
    }
    let mut miri = nightly();
    miri.args(["miri", "test", "--quiet", "--locked", "-p", "sys", "--lib", "--target-dir", "target/miri", "--"]);
    let status = miri.args(TESTS).env("MIRIFLAGS", ORDERS).status().context("cannot start cargo")?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Cargo of the nightly toolchain, whatever toolchain this one is of.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(crate::root());
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(name);
    }
    command
}

fn is_there() -> bool {
    let mut version = nightly();
    version.args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|s| s.success())
}
