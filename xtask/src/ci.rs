//! `cargo xtask ci`: everything that must hold before a change goes in, the tests last.
//!
//! Each step prints in one line how long it took. The first one that fails ends the run and names the command that
//! repeats it.

use crate::skips::Skips;
use crate::test::{Outcome, Tally, cargo};
use crate::{check_tables, codegen, edges, package, release, root, test, vm};
use anyhow::{Context, Result, anyhow, ensure};
use std::process::Command;
use std::time::Instant;

pub fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask ci");
    let skips = Skips::new()?;
    cargo_step("fmt", None, "fmt --all --check")?;
    step("codegen", "cargo xtask codegen --check", || codegen::run(&root(), &["--check".into()]))?;
    cargo_step("clippy", None, "clippy --quiet --locked --workspace --all-targets -- -D warnings")?;
    // Not in the workspace: it is built otherwise.
    let agent = "--manifest-path crates/agent/Cargo.toml";
    cargo_step("agent fmt", None, &format!("fmt {agent} --check"))?;
    cargo_step(
        "agent clippy",
        None,
        &format!("clippy {agent} --target-dir target/agent --quiet --offline --locked -- -D warnings"),
    )?;
    cargo_step("doc", Some(("RUSTDOCFLAGS", "-D warnings")), "doc --quiet --no-deps --workspace")?;
    step("edges", "cargo xtask edges", || edges::run(&[]))?;
    step("check-tables", "cargo xtask check-tables", || check_tables::check(Some(skips.path())))?;
    step("static", "cargo xtask static --smoke", || release::try_out(&release::build()?))?;
    step("package", "cargo xtask package", || package::run(&[]))?;
    let mut on_debian = Tally::default();
    step("vm", "cargo xtask vm --short", || {
        on_debian = vm::try_out(skips.path())?;
        Ok(())
    })?;
    let mut outcome = tests(&skips)?;
    outcome.tally = outcome.tally.and(on_debian);
    outcome.finish()
}

/// The tests close the run: their counts are its last line, whether they fail or not.
fn tests(skips: &Skips) -> Result<Outcome> {
    let start = Instant::now();
    let mut outcome = test::outcome(&[], skips)?;
    say("test", start, outcome.trouble.is_none());
    outcome.trouble = outcome.trouble.map(|t| format!("ci: test: {t}: repeat it with \"cargo xtask test\""));
    Ok(outcome)
}

fn cargo_step(name: &str, env: Option<(&str, &str)>, words: &str) -> Result<()> {
    let prefix = env.map(|(k, v)| format!("{k}='{v}' ")).unwrap_or_default();
    step(name, &format!("{prefix}cargo {words}"), || {
        let mut command = Command::new(cargo());
        let status = command.args(words.split_whitespace()).envs(env).current_dir(root()).status();
        let status = status.context("cannot start cargo")?;
        ensure!(status.success(), "{status}");
        Ok(())
    })
}

fn step(name: &str, repeat: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    let done = work();
    say(name, start, done.is_ok());
    done.map_err(|e| anyhow!("ci: {name}: {e:#}: repeat it with \"{repeat}\""))
}

fn say(name: &str, start: Instant, fine: bool) {
    let word = if fine { "ok" } else { "FAILED" };
    println!("ci: {name:<12} {word:<6} {:7.1} s", start.elapsed().as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_fresh() {
        if let Err(e) = codegen::run(&root(), &["--check".into()]) {
            panic!("{e:#} and commit what it writes");
        }
    }

    #[test]
    fn a_step_that_fails_names_its_repetition() {
        let e = step("fmt", "cargo fmt", || Err(anyhow!("exit status: 1"))).unwrap_err();
        assert_eq!(e.to_string(), "ci: fmt: exit status: 1: repeat it with \"cargo fmt\"");
    }
}
