//! `cargo xtask test [--slowest] [CARGO OPTIONS] [-- TEST OPTIONS]`: runs all tests, reports what could not run here, and sums up.
//!
//! ```text
//!  programs::build ─► programs of pure code ─► programs that trace, or watch the machine: one after the other
//! ```
//!
//! Cargo's options select programs (`-p views --test golden`); what follows `--` goes to each of them. `--slowest` lists the twenty slowest
//! tests, with the comment `// Slow: …` that says why.
//!
//! The last line is always `N passed, M failed, K skipped`. A test that noted that it skipped (part of) its work counts
//! as skipped, not as passed, and so does a test that cargo ignored.
//!
//! Many tests watch other processes on a machine that may have other work to do. So a few tests that fail run a second time, alone; those
//! that pass then count as passed, and the line before the last names them as unsteady. Tests of what must not happen even by chance
//! ([`ONCE`]) have no second run.

use crate::programs::{self, Program};
use crate::skips::{self, Skips};
use crate::slowest;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

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
    let (lists_slowest, args) = match args.split_first() {
        Some((first, rest)) if first == "--slowest" => (true, rest),
        _ => (false, args),
    };
    let (options, arguments) = split(args);
    let skips = Skips::new()?;
    let ran = run_all(&programs::build(options)?, arguments, &skips, &[])?;
    if lists_slowest {
        print!("{}", slowest::list(&ran.times));
    }
    let mut outcome = ran.outcome(&skips)?;
    outcome.trouble = outcome.trouble.map(|t| format!("test: {t}"));
    outcome.finish()
}

/// What is for cargo, and what is for the test programs.
fn split(args: &[String]) -> (&[String], &[String]) {
    match args.iter().position(|a| a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

/// How the tests went.
pub struct Ran {
    /// The counts without the tests that noted a skip.
    pub tally: Tally,
    /// Why the run as a whole fails.
    pub trouble: Option<String>,
    /// How long each took, in seconds, by `PACKAGE/PROGRAM TEST`.
    pub times: BTreeMap<String, f64>,
    /// What tests that failed have printed.
    pub said: Said,
}

impl Ran {
    /// With the skips of the whole run and what failed tests have printed, which it prints, and the tiers that should have run: a log of
    /// which only the end is kept has all that is needed.
    pub fn outcome(self, skips: &Skips) -> Result<Outcome> {
        let noted = skips.read()?;
        print!("{}", skips::summary(&noted));
        print!("{}", self.said.lines.concat());
        let required = std::env::var(skips::REQUIRED).unwrap_or_default();
        let trouble = self.trouble.or_else(|| skips::missing(&required, &noted));
        Ok(Outcome { tally: self.tally.and_skipped(skips::tests(&noted).len()), trouble })
    }

    /// Both.
    pub fn and(mut self, later: Ran) -> Ran {
        self.times.extend(later.times);
        self.said.lines.extend(later.said.lines);
        Ran {
            tally: self.tally.and(later.tally),
            trouble: self.trouble.or(later.trouble),
            times: self.times,
            said: self.said,
        }
    }
}

/// Runs test programs; `skips` may hold lines of earlier steps already, `variables` go into their environment.
pub fn run_all(all: &[Program], arguments: &[String], skips: &Skips, variables: &[(&str, &OsStr)]) -> Result<Ran> {
    let before = skips.read()?;
    let lab = Lab { arguments, skips, variables };
    let mut ran = Shown::default();
    for program in all.iter().filter(|p| !traces(p)).chain(all.iter().filter(|p| traces(p))) {
        lab.run(program, &mut ran)?;
    }
    let mut fine = ran.failed.is_empty() && ran.died.is_empty();
    if !fine && ran.died.is_empty() && may_run_again(&ran.failed, ran.tally.failed) {
        println!("tests that run again: {}", names(&ran.failed));
        if lab.again(&ran.failed)? {
            (ran.tally.passed, ran.tally.failed, fine) = (ran.tally.passed + ran.tally.failed, 0, true);
        }
    }
    let noted = skips.read()?.difference(&before).cloned().collect();
    let mut tally = ran.tally.without(skips::tests(&noted).len());
    if !fine {
        // A program that died has no result line.
        tally.failed = tally.failed.max(1);
    }
    if fine && !ran.failed.is_empty() {
        println!("unsteady: {} failed, and passed alone: {}", ran.failed.len(), names(&ran.failed));
    }
    let trouble = match (fine, &ran.died[..]) {
        (true, _) => None,
        (false, []) => Some(format!("{} failed: {}", ran.failed.len(), names(&ran.failed))),
        (false, died) => Some(died.join("; ")),
    };
    Ok(Ran { tally, trouble, times: ran.times, said: ran.said })
}

/// The cargo that runs us.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The packages whose tests trace processes, or watch the machine: they run after all others, when nothing else runs.
const TRACE: [&str; 7] = ["cli", "collector", "engine", "kernel", "session", "sys", "unprivileged"];

/// Whether the tests of a program trace processes, or watch the machine.
pub fn traces(program: &Program) -> bool {
    TRACE.contains(&program.package.as_str())
}

/// A test that has failed.
#[derive(Clone)]
struct Failed {
    program: Program,
    test: String,
}

fn names(failed: &[Failed]) -> String {
    failed.iter().map(|f| f.test.as_str()).collect::<Vec<_>>().join(" ")
}

/// What the programs have shown so far.
#[derive(Default)]
struct Shown {
    tally: Tally,
    failed: Vec<Failed>,
    /// Programs that ended otherwise than with a result.
    died: Vec<String>,
    times: BTreeMap<String, f64>,
    said: Said,
}

/// The sections `---- TEST stdout ----` of what test programs print.
#[derive(Default)]
pub struct Said {
    lines: Vec<String>,
    /// How many more lines of the section at hand are kept.
    room: usize,
}

impl Said {
    /// The most lines of a test: an assertion, without its backtrace.
    const MOST: usize = 24;

    fn add(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" stdout ----\n") {
            self.room = Self::MOST;
        } else if ["failures:\n", "stack backtrace:\n"].contains(&line) || line.starts_with("test result: ") {
            self.room = 0;
        }
        if self.room > 0 {
            self.room -= 1;
            self.lines.push(line.into());
        }
    }
}

struct Lab<'a> {
    arguments: &'a [String],
    skips: &'a Skips,
    variables: &'a [(&'a str, &'a OsStr)],
}

impl Lab<'_> {
    fn command(&self, program: &Program) -> Command {
        let mut command = Command::new(&program.path);
        // The test harness reports times where this is set; a rustc that a test runs stays a stable one by this value.
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "-1");
        command.current_dir(&program.dir).env(skips::VARIABLE, self.skips.path());
        if traces(program) {
            // These wait for each other's stops, timers and processes a third of the time: two for each processor, and one more. With four on
            // two processors, a tenth of their time is idle.
            let most = std::thread::available_parallelism().map_or(1, usize::from) * 2 + 1;
            command.env("RUST_TEST_THREADS", most.to_string());
        }
        command.envs(self.variables.iter().copied()).stdin(Stdio::null());
        command
    }

    fn run(&self, program: &Program, ran: &mut Shown) -> Result<()> {
        let name = format!("{}/{}", program.package, program.name);
        println!("running {name}");
        let (mut tally, mut any_failed) = (Tally::default(), false);
        let status = lines(self.command(program).args(self.arguments), |line| {
            show(line)?;
            let line = String::from_utf8_lossy(line);
            tally.add_result(&line);
            ran.said.add(&line);
            if let Some((test, took)) = timed(&line) {
                ran.times.insert(format!("{name} {test}"), took);
            }
            if let Some(test) = failed_test(&line) {
                any_failed = true;
                ran.failed.push(Failed { program: program.clone(), test: test.into() });
            }
            Ok(())
        })?;
        if !status.success() && !any_failed {
            ran.died.push(format!("{name}: {status}"));
        }
        ran.tally = ran.tally.and(tally);
        Ok(())
    }

    /// Whether these tests pass when they run a second time, alone, one after the other.
    fn again(&self, failed: &[Failed]) -> Result<bool> {
        for f in failed {
            let mut tally = Tally::default();
            let mut command = self.command(&f.program);
            let status = lines(command.args(["--exact", "--test-threads=1", &f.test]), |line| {
                tally.add_result(&String::from_utf8_lossy(line));
                show(line)
            })?;
            // It ran: a name that the program does not know passes without a test.
            if !status.success() || tally.passed != 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Prints a line, as it is.
fn show(line: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(line)?;
    Ok(out.flush()?)
}

/// Runs a command, and hands on the lines of its output, with their ends.
fn lines(command: &mut Command, mut line: impl FnMut(&[u8]) -> Result<()>) -> Result<ExitStatus> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
    let mut out = BufReader::new(child.stdout.take().context("it has no stdout")?);
    let mut bytes = Vec::new();
    while out.read_until(b'\n', &mut bytes)? > 0 {
        line(&bytes)?;
        bytes.clear();
    }
    drop(out);
    Ok(child.wait()?)
}

/// Tests that must pass whenever they run: a traced program that behaves differently, or an event that is neither recorded nor counted,
/// is no less of a bug when it takes luck to see it.
const ONCE: [&str; 6] =
    ["hazards::", "attached_hazards::", "attached_often::toggles", "accounting::", "whole::", "injected::results"];

/// The most tests that run a second time: when more fail, it is not by chance.
const AGAIN: usize = 4;

/// Whether tests that have failed get a second run. `all`: how many have failed, by the result lines.
fn may_run_again(failed: &[Failed], all: usize) -> bool {
    let by_chance = |f: &Failed| !ONCE.iter().any(|once| f.test.starts_with(once));
    (1..=AGAIN).contains(&failed.len()) && failed.len() == all && failed.iter().all(by_chance)
}

/// The test that a line says has failed: `test output::a_full_disk ... FAILED <1.002s>`.
fn failed_test(line: &str) -> Option<&str> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    (result.split_whitespace().next() == Some("FAILED")).then_some(name)
}

/// The test of a line, and how long it took: `test output::a_full_disk ... ok <1.002s>`.
fn timed(line: &str) -> Option<(&str, f64)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, took) = result.trim_end().strip_suffix("s>")?.rsplit_once('<')?;
    Some((name.trim_end_matches(" - should panic"), took.parse().ok()?))
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
    fn what_failed_tests_print_is_kept() {
        let mut said = Said::default();
        let section = "---- a::b stdout ----\nthread 'a::b' panicked at a.rs:1:1:\nno\n\n";
        let text = format!(
            "test a::b ... FAILED\n\nfailures:\n\n{section}\nfailures:\n    a::b\n\ntest result: FAILED. 0 passed\n"
        );
        text.split_inclusive('\n').for_each(|l| said.add(l));
        assert_eq!(said.lines.concat(), format!("{section}\n"));
        said.add("---- c stdout ----\n");
        (0..100).for_each(|_| said.add("more\n"));
        assert_eq!(said.lines.len(), 5 + Said::MOST);
    }

    #[test]
    fn few_tests_that_fail_by_chance_run_again() {
        assert_eq!(failed_test("test output::a_full_disk ... FAILED <0.3s>\n"), Some("output::a_full_disk"));
        assert_eq!(failed_test("test output::a_full_disk ... FAILED\n"), Some("output::a_full_disk"));
        assert_eq!(failed_test("test output::a_full_disk ... ok <0.3s>\n"), None);
        let program = Program { package: "cli".into(), name: "e2e".into(), path: "/e2e".into(), dir: "/".into() };
        let failed = |s: &str| -> Vec<Failed> {
            s.split_whitespace().map(|test| Failed { program: program.clone(), test: test.into() }).collect()
        };
        assert!(may_run_again(&failed("output::a b"), 2));
        // A program that died has no line for the test that killed it.
        assert!(!may_run_again(&failed("output::a"), 2) && !may_run_again(&failed(""), 0));
        assert!(!may_run_again(&failed("output::a hazards::ways_to_compile::os"), 2));
        assert!(!may_run_again(&failed("a b c d e"), 5));
    }

    #[test]
    fn times_are_read() {
        assert_eq!(timed("test a::b ... ok <0.250s>\n"), Some(("a::b", 0.25)));
        assert_eq!(timed("test a::b ... ok\n"), None);
    }

    #[test]
    fn options_of_cargo_and_of_the_programs_are_told_apart() {
        let words = |s: &str| s.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(split(&words("-p events -- x")), (&words("-p events")[..], &words("x")[..]));
        assert_eq!(split(&words("-- -p x")), (&words("")[..], &words("-p x")[..]));
        assert!(split(&[]).0.is_empty());
    }
}
