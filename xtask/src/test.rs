//! `cargo xtask test [-- CARGO TEST ARGUMENTS]`: runs all tests, reports what could not run here, and sums up.
//!
//! The last line is always `N passed, M failed, K skipped`. A test that noted that it skipped (part of) its work counts
//! as skipped, not as passed, and so does a test that cargo ignored.
//!
//! Many tests watch other processes on a machine that may have other work to do. So a few tests that fail run a second time, alone; those
//! that pass then count as passed, and the line before the last names them as unsteady. Tests of what must not happen even by chance
//! ([`ONCE`]) have no second run.

use crate::skips::{self, Skips};
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

/// Counts of tests.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    /// Adds `test result: ok. 3 passed; 0 failed; 1 ignored; …`; other lines are ignored.
    pub fn add_result(&mut self, line: &str) {
        let Some((_, result)) = line.split_once("test result: ").and_then(|(_, r)| r.split_once(". ")) else { return };
        for part in result.split(';') {
            let Some((n, what)) = part.trim().split_once(' ') else { continue };
            let Ok(n) = n.parse::<usize>() else { continue };
            match what {
                "passed" => self.passed += n,
                "failed" => self.failed += n,
                "ignored" => self.skipped += n,
                _ => {}
            }
        }
    }

    /// The counts, where `n` tests have noted that they skipped their work.
    pub fn without(mut self, n: usize) -> Tally {
        self.passed = self.passed.saturating_sub(n);
        self
    }

    /// The counts, and `n` skipped tests.
    pub fn and_skipped(mut self, n: usize) -> Tally {
        self.skipped += n;
        self
    }

    /// The sum of both.
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// How a run went.
pub struct Outcome {
    pub tally: Tally,
    /// Why the run as a whole fails.
    pub trouble: Option<String>,
}

/// The error of a task that has already printed what went wrong.
#[derive(Debug)]
pub struct Told;

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Told {}

impl Outcome {
    /// The last two lines: what went wrong, and the counts.
    pub fn finish(self) -> Result<()> {
        if let Some(trouble) = &self.trouble {
            eprintln!("xtask: {trouble}");
        }
        println!("{}", self.tally);
        if self.trouble.is_some() { Err(Told.into()) } else { Ok(()) }
    }
}

pub fn run(args: &[String]) -> Result<()> {
    let args = if args.first().is_some_and(|a| a == "--") { &args[1..] } else { args };
    let mut outcome = outcome(args, &Skips::new()?)?;
    outcome.trouble = outcome.trouble.map(|t| format!("test: {t}"));
    outcome.finish()
}

/// Runs the tests; `skips` may hold lines of earlier steps already.
pub fn outcome(args: &[String], skips: &Skips) -> Result<Outcome> {
    outcome_with(args, skips, &[])
}

/// [`outcome`], with variables in the environment of the tests.
pub fn outcome_with(args: &[String], skips: &Skips, variables: &[(&str, &OsStr)]) -> Result<Outcome> {
    let before = skips.read()?;
    let start = |arguments: Vec<String>| {
        Command::new(cargo())
            .args(arguments)
            .current_dir(crate::root())
            .env(skips::VARIABLE, skips.path())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start cargo test")
    };
    let mut child = start(arguments(args).into_iter().map(String::from).collect())?;
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    if let Some(out) = child.stdout.take() {
        pass_through(out, &mut tally, &mut failed)?;
    }
    let mut status = child.wait()?;
    if !status.success() && may_run_again(&failed, tally.failed) {
        println!("tests that run again: {}", failed.join(" "));
        let mut again = Tally::default();
        let mut child = start(arguments_again(args, &failed))?;
        if let Some(out) = child.stdout.take() {
            pass_through(out, &mut again, &mut Vec::new())?;
        }
        let second = child.wait()?;
        // All of them ran: a name that cargo does not know passes without a test.
        if second.success() && again.passed == failed.len() {
            (status, tally.passed, tally.failed) = (second, tally.passed + tally.failed, 0);
        }
    }

    let all = skips.read()?;
    let by_tests = all.difference(&before).cloned().collect();
    tally = tally.without(skips::tests(&by_tests).len()).and_skipped(skips::tests(&all).len());
    if !status.success() {
        // A test program that died, or that did not compile, has no result line.
        tally.failed = tally.failed.max(1);
    }
    print!("{}", skips::summary(&all));
    if status.success() && !failed.is_empty() {
        println!("unsteady: {} failed, and passed alone: {}", failed.len(), failed.join(" "));
    }
    let required = std::env::var(skips::REQUIRED).unwrap_or_default();
    let trouble =
        if status.success() { skips::missing(&required, &all) } else { Some(format!("cargo test failed ({status})")) };
    Ok(Outcome { tally, trouble })
}

/// The cargo that runs us.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Everything is tested, and to the end, unless the arguments choose packages.
fn arguments(args: &[String]) -> Vec<&str> {
    let own: Vec<&str> = args.iter().map(String::as_str).take_while(|a| *a != "--").collect();
    let mut all = vec!["test"];
    if !own.iter().any(|a| a.starts_with("-p") || a.starts_with("--package") || matches!(*a, "--workspace" | "--all")) {
        all.push("--workspace");
    }
    if !own.contains(&"--no-fail-fast") {
        all.push("--no-fail-fast");
    }
    all.extend(args.iter().map(String::as_str));
    all
}

/// Tests that must pass whenever they run: a traced program that behaves differently, or an event that is neither recorded nor counted,
/// is no less of a bug when it takes luck to see it.
const ONCE: [&str; 5] = ["hazards::", "attached_hazards::", "accounting::", "whole::", "injected::results"];

/// The most tests that run a second time: when more fail, it is not by chance.
const AGAIN: usize = 4;

/// Whether tests that have failed get a second run. `all`: how many have failed, by the result lines.
fn may_run_again(failed: &[String], all: usize) -> bool {
    let by_chance = |name: &String| !ONCE.iter().any(|once| name.starts_with(once));
    (1..=AGAIN).contains(&failed.len()) && failed.len() == all && failed.iter().all(by_chance)
}

/// The arguments for a second run: these tests alone, one after the other.
fn arguments_again(args: &[String], failed: &[String]) -> Vec<String> {
    let own: Vec<String> = args.iter().take_while(|a| *a != "--").cloned().collect();
    let mut all: Vec<String> = arguments(&own).into_iter().map(String::from).collect();
    all.extend(["--", "--exact", "--test-threads=1"].map(String::from));
    all.extend(failed.iter().cloned());
    all
}

/// The test that a line says has failed: `test output::a_full_disk ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    (result.trim_end() == "FAILED").then_some(name)
}

/// Shows what cargo prints as it comes, adds up its result lines, and notes which tests have failed.
fn pass_through(out: impl Read, tally: &mut Tally, failed: &mut Vec<String>) -> Result<()> {
    let mut out = BufReader::new(out);
    let mut line = Vec::new();
    while out.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        let text = String::from_utf8_lossy(&line);
        tally.add_result(&text);
        failed.extend(failed_test(&text).map(String::from));
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests\n",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s\n",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
        ] {
            tally.add_result(line);
        }
        assert_eq!(tally.to_string(), "13 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn few_tests_that_fail_by_chance_run_again() {
        assert_eq!(failed_test("test output::a_full_disk ... FAILED\n"), Some("output::a_full_disk"));
        assert_eq!(failed_test("test output::a_full_disk ... ok\n"), None);
        let names = |s: &str| s.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert!(may_run_again(&names("output::a b"), 2));
        // A program that died has no line for the test that killed it.
        assert!(!may_run_again(&names("output::a"), 2) && !may_run_again(&[], 0));
        assert!(!may_run_again(&names("output::a hazards::ways_to_compile::os"), 2));
        assert!(!may_run_again(&names("a b c d e"), 5));
        assert_eq!(
            arguments_again(&names("-p trapline -- --nocapture"), &names("a b")).join(" "),
            "test --no-fail-fast -p trapline -- --exact --test-threads=1 a b"
        );
    }

    #[test]
    fn packages_that_are_named_replace_the_workspace() {
        let words = |s: &str| s.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(arguments(&[]).join(" "), "test --workspace --no-fail-fast");
        assert_eq!(arguments(&words("-p events -- x")).join(" "), "test --no-fail-fast -p events -- x");
        assert_eq!(arguments(&words("-- -p x")).join(" "), "test --workspace --no-fail-fast -- -p x");
    }
}
