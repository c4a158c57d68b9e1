//! `cargo xtask ci`: everything that must hold before a change goes in, the tests last. `cargo xtask check`: its fast part.
//!
//! ```text
//!  format, tables, edges ─► one build of everything, linted ─┬─► another kernel, on one processor ──────────┬─► tests that trace
//!                                                            └─► documentation, package, tests of pure code ┘
//! ```
//!
//! bpftrace's suite runs before the tests that trace.
//!
//! Each step prints in one line how long it took. The first one that fails ends the run and names the command that
//! repeats it.

use crate::programs::{self, Program};
use crate::skips::{self, Skips};
use crate::test::{self, cargo};
use crate::{bt_suite, check_tables, codegen, edges, miri, package, root, slowest, vm};
use anyhow::{Context, Result, anyhow, ensure};
use std::process::Command;
use std::time::Instant;

pub fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask ci");
    println!("ci: processor features: {}", processor());
    let skips = Skips::new()?;
    texts()?;
    step("check-tables", "cargo xtask check-tables", || check_tables::check(Some(skips.path())))?;
    let built = step("build", "cargo xtask test", || programs::build(&[]))?;
    agent_lints()?;
    let (tracing, pure): (Vec<Program>, Vec<Program>) = built.iter().cloned().partition(test::traces);
    // The emulated machine has one thread: what is neither traced nor timed runs on the other processor.
    let (on_debian, beside) = std::thread::scope(|scope| {
        let on_debian = scope.spawn(|| step("vm", "cargo xtask vm --short", || vm::try_out(&built)));
        let beside = beside_the_machine(&pure, &skips);
        (on_debian.join().unwrap_or_else(|e| std::panic::resume_unwind(e)), beside)
    });
    let (on_debian, left_out) = on_debian?;
    let beside = beside?;
    step("bt-suite", "cargo xtask bt-suite --debian", || bt_suite::check(skips.path()))?;
    let ran = beside.and(tests("tracing", &tracing, &skips)?);
    for s in left_out {
        skips::add(skips.path(), &s.tier, &s.test, &s.why)?;
    }
    println!("the slowest tests:");
    print!("{}", slowest::list(&ran.times));
    let mut outcome = ran.outcome(&skips)?;
    outcome.tally = outcome.tally.and(on_debian);
    outcome.finish()
}

/// `cargo xtask check [PACKAGE…]`: format, lints, edges, and the tests of pure code, those of the packages where some are named.
pub fn check(args: &[String]) -> Result<()> {
    ensure!(args.iter().all(|a| !a.starts_with('-')), "usage: cargo xtask check [PACKAGE…]");
    texts()?;
    let packages: Vec<String> = args.iter().flat_map(|name| ["-p".to_string(), name.clone()]).collect();
    let built = step("build", "cargo xtask test", || programs::build(&packages))?;
    let pure: Vec<Program> =
        built.into_iter().filter(|p| !test::traces(p) && !SLOW.contains(&p.name.as_str())).collect();
    let skips = Skips::new()?;
    tests("test", &pure, &skips)?.outcome(&skips)?.finish()
}

/// Test programs of pure code that take longer than a few seconds: `check` leaves them to `ci`.
const SLOW: [&str; 7] = ["fuzz", "agent", "runs", "binaries", "hostile_frames", "symbolize", "browser"];

/// What is read, and not compiled.
fn texts() -> Result<()> {
    cargo_step("fmt", &[], "fmt --all --check")?;
    cargo_step("agent fmt", &[], &format!("fmt {AGENT} --check"))?;
    step("codegen", "cargo xtask codegen --check", || codegen::run(&root(), &["--check".into()]))?;
    step("edges", "cargo xtask edges", || edges::run(&[]))
}

/// The agent is not in the workspace: it is built otherwise.
const AGENT: &str = "--manifest-path crates/agent/Cargo.toml";

fn agent_lints() -> Result<()> {
    let clippy = format!("clippy {AGENT} --target-dir target/agent --quiet --offline --locked -- -D warnings");
    cargo_step("agent clippy", &[], &clippy)
}

/// What needs no machine of its own.
fn beside_the_machine(pure: &[Program], skips: &Skips) -> Result<test::Ran> {
    cargo_step("doc", &[("RUSTDOCFLAGS", "-D warnings")], "doc --quiet --no-deps --workspace")?;
    step("package", "cargo xtask package", || package::check(Some(skips.path())))?;
    step("miri", "cargo xtask miri", || miri::check(Some(skips.path())))?;
    tests("pure", pure, skips)
}

/// The tests close the run: their counts are its last line, whether they fail or not.
fn tests(name: &str, programs: &[Program], skips: &Skips) -> Result<test::Ran> {
    let start = Instant::now();
    let mut ran = test::run_all(programs, &[], skips, &[])?;
    say(name, start, ran.trouble.is_none());
    ran.trouble = ran.trouble.map(|t| format!("ci: {name}: {t}: repeat it with \"cargo xtask test\""));
    Ok(ran)
}

/// What the C library's choice of functions depends on, and which of it is hidden.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find(|l| l.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|l| l.split_once(':')).map_or("unknown", |(_, v)| v.trim()).to_string()
    };
    let flags = value("flags");
    let of_libc = ["avx", "avx2", "avx512f", "avx512vl", "erms", "fsrm", "rtm", "xsavec", "shstk"];
    let has: Vec<&str> = of_libc.into_iter().filter(|f| flags.split_whitespace().any(|g| g == *f)).collect();
    let hidden = std::env::var("GLIBC_TUNABLES").map(|t| format!("; GLIBC_TUNABLES={t}")).unwrap_or_default();
    format!("{}: {}{hidden}", value("model name"), has.join(" "))
}

fn cargo_step(name: &str, env: &[(&str, &str)], words: &str) -> Result<()> {
    let prefix: String = env.iter().map(|(k, v)| format!("{k}='{v}' ")).collect();
    step(name, &format!("{prefix}cargo {words}"), || {
        let mut command = Command::new(cargo());
        let status = command.args(words.split_whitespace()).envs(env.iter().copied()).current_dir(root()).status();
        let status = status.context("cannot start cargo")?;
        ensure!(status.success(), "{status}");
        Ok(())
    })
}

fn step<T>(name: &str, repeat: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
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
        let e = step("fmt", "cargo fmt", || Err::<(), _>(anyhow!("exit status: 1"))).unwrap_err();
        assert_eq!(e.to_string(), "ci: fmt: exit status: 1: repeat it with \"cargo fmt\"");
    }
}
