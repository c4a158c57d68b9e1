//! trapline's chores: `cargo xtask check | ci | test | codegen | static | compare-strace | bench | …`.

#![allow(missing_docs)]

mod bench;
mod bloat;
mod browser;
mod bt_suite;
mod check_tables;
mod ci;
mod codegen;
mod compare;
mod deb;
mod edges;
mod lab;
mod miri;
mod package;
mod programs;
mod release;
mod skips;
mod slowest;
mod test;
mod vm;

use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask check [PACKAGE…] | ci | test [--slowest] [CARGO OPTIONS] [-- TEST OPTIONS] | \
    codegen [--check] | edges | check-tables | miri | dist | static [--smoke] | deb [--check] [PROGRAM] | bloat [BINARY] | package | compare-strace … | bench … | vm [KERNEL.deb] … | browser [DIR | --docs] | bt-suite …";

/// The workspace's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match chore(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            if !e.is::<test::Told>() {
                eprintln!("xtask: {e:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn chore(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else { bail!(USAGE) };
    match name.as_str() {
        "check" => ci::check(rest),
        "ci" => ci::run(rest),
        "test" => test::run(rest),
        "codegen" => codegen::run(&root(), rest),
        "edges" => edges::run(rest),
        "miri" => miri::run(rest),
        "check-tables" => check_tables::run(rest),
        "compare-strace" => compare::run(rest),
        "bench" => {
            without_library_path()?;
            bench::run(rest)
        }
        "vm" => vm::run(rest),
        "browser" => browser::run(rest),
        "bt-suite" => bt_suite::run(rest),
        "bloat" => bloat::run(rest),
        "dist" => release::dist(rest),
        "static" => release::run(rest),
        "deb" => deb::run(rest),
        "package" => package::run(rest),
        _ => bail!("no such chore '{name}': {USAGE}"),
    }
}

/// Begins anew without `LD_LIBRARY_PATH`, which `cargo run` sets: the loader of each program would look for its libraries in three directories
/// more, which are a hundred calls of `true` instead of thirty. A tracer that is slow for each call would look worse than it is.
fn without_library_path() -> Result<()> {
    const NAME: &str = "LD_LIBRARY_PATH";
    if std::env::var_os(NAME).is_none() {
        return Ok(());
    }
    let again = Command::new(std::env::current_exe()?).args(std::env::args_os().skip(1)).env_remove(NAME).exec();
    Err(again).context("cannot begin anew without LD_LIBRARY_PATH")
}
