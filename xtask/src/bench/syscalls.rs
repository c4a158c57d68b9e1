//! `cargo xtask bench syscalls`: what tracing system calls by ptrace costs, next to strace and to no tracing at all.

use super::Options;
use super::measure::{Case, alternate};
use super::memory::peak_kib;
use super::report::{Figure, Group, figures, provenance};
use crate::lab::{self, Scratch, User};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// The bars count in megabytes of 10^6 bytes.
const MB: f64 = 1e6;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    let bench = Bench { trapline: lab::build_trapline()?, scratch: Scratch::new("bench")?, options };
    let groups = [
        bench.every_call()?,
        bench.only_openat()?,
        bench.start()?,
        bench.threads()?,
        bench.git()?,
        bench.python()?,
        bench.compiler()?,
    ];
    let tables: Vec<String> = groups.iter().map(Group::table).collect();
    let body = format!(
        "## System calls by ptrace\n\nMedians of {} runs in turn, wall clock. {}\n\n{}\n### Memory and size\n\n{}",
        options.runs,
        provenance(),
        tables.join("\n"),
        figures(&bench.figures()?),
    );
    println!("{body}");
    lab::write_section("bench syscalls", &body)
}

struct Bench<'a> {
    trapline: PathBuf,
    scratch: Scratch,
    options: &'a Options,
}

/// What is to be found in a trace.
#[derive(Clone)]
struct Expected {
    /// The calls that are counted.
    names: &'static [&'static str],
    at_least: u64,
    /// The trace contains no other calls.
    only: bool,
}

impl Bench<'_> {
    fn every_call(&self) -> Result<Group> {
        let count = self.options.count;
        let expected = Expected { names: &["read", "write"], at_least: 2 * count, only: false };
        let cases = self.cases(&dd(count), &expected, &[], &[]);
        self.group(format!("Every call of dd, {count} blocks"), cases, Some((0, 1.9)))
    }

    fn only_openat(&self) -> Result<Group> {
        let count = 10 * self.options.count;
        let expected = Expected { names: &["openat"], at_least: 3, only: true };
        let cases = self.cases(&dd(count), &expected, &["--seccomp-bpf", "-e", "trace=openat"], &["-e", "openat"]);
        self.group(format!("Only openat of dd, {count} blocks"), cases, Some((0, 1.25)))
    }

    /// From the start of the tracer to its end.
    fn start(&self) -> Result<Group> {
        let argv = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let trapline = self.trapline.to_string_lossy();
        let commands = [
            ("untraced", argv(&["true"])),
            ("strace", argv(&["strace", "-f", "-o", "/dev/null", "true"])),
            ("trapline", argv(&[&trapline, "trace", "-o", "/dev/null", "--", "true"])),
        ];
        let cases = commands.map(|(name, argv)| case(name, argv, Box::new(|| Ok(0))));
        self.group("Start and end: true".to_string(), cases.into(), Some((1, 1.5)))
    }

    fn threads(&self) -> Result<Group> {
        const ROUNDS: u64 = 1000;
        let program = lab::build_program("threads", self.scratch.path())?;
        let argv = vec![program.to_string_lossy().into_owned(), ROUNDS.to_string()];
        let expected = Expected { names: &["getppid", "nanosleep"], at_least: 8 * 2 * ROUNDS, only: false };
        self.group("8 threads, threads.c 1000".to_string(), self.cases(&argv, &expected, &[], &[]), None)
    }

    fn git(&self) -> Result<Group> {
        let repository = self.scratch.path().join("repository");
        fs::create_dir(&repository)?;
        // Old files, so that git has no reason to read them again and to write its index.
        let script = "git init -q && for d in $(seq 20); do mkdir $d; for f in $(seq 25); do echo $d $f > $d/$f; \
                      touch -d 2020-01-01 $d/$f; done; done && git add . && git commit -q -m first && git status";
        let mut setup = User::Same.command(&["sh", "-c", script]);
        setup.current_dir(&repository).envs(git_environment(&repository)).stdout(std::process::Stdio::null());
        lab::run(&mut setup)?;
        let argv = ["git", "-C", &repository.to_string_lossy(), "status"].map(String::from);
        let expected = Expected { names: &["newfstatat", "lstat", "openat"], at_least: 500, only: false };
        let mut cases = self.cases(&argv, &expected, &[], &[]);
        for case in &mut cases {
            case.env = git_environment(&repository);
        }
        self.group("git status, 500 files".to_string(), cases, Some((0, 2.0)))
    }

    fn python(&self) -> Result<Group> {
        let argv = ["python3", "-c", "import json"].map(String::from);
        let expected = Expected { names: &["openat", "newfstatat"], at_least: 10, only: false };
        self.group("python3 -c 'import json'".to_string(), self.cases(&argv, &expected, &[], &[]), Some((0, 1.4)))
    }

    fn compiler(&self) -> Result<Group> {
        let source = self.scratch.path().join("empty.c");
        fs::write(
            &source,
            "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts(getenv(\"PATH\")) < 0; }\n",
        )?;
        let object = self.scratch.path().join("empty.o");
        let argv = ["gcc", "-c", &source.to_string_lossy(), "-o", &object.to_string_lossy()].map(String::from);
        let expected = Expected { names: &["openat", "execve"], at_least: 10, only: false };
        self.group("gcc -c".to_string(), self.cases(&argv, &expected, &[], &[]), Some((0, 1.6)))
    }

    /// The command untraced, under strace and under trapline.
    fn cases(&self, argv: &[String], expected: &Expected, for_strace: &[&str], for_trapline: &[&str]) -> Vec<Case> {
        let [strace_out, out, stats] =
            ["strace.out", "trapline.out", "stats.json"].map(|name| self.scratch.path().join(name));
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let strace_head = words(&["strace", "-f", "-o", &strace_out.to_string_lossy()]);
        let trapline = [&self.trapline, &out, &stats].map(|path| path.to_string_lossy());
        let trapline_head =
            words(&[&trapline[0], "trace", "--backend", "ptrace", "-o", &trapline[1], "--stats", &trapline[2]]);
        let strace = [strace_head, words(for_strace), argv.to_vec()].concat();
        let traced = [trapline_head, words(for_trapline), words(&["--"]), argv.to_vec()].concat();
        let (strace_expected, expected) = (expected.clone(), expected.clone());
        vec![
            case("untraced", argv.to_vec(), Box::new(|| Ok(0))),
            case("strace", strace, Box::new(move || Ok(count(&strace_out, &strace_expected)?.counted))),
            case("trapline", traced, Box::new(move || count_with_stats(&out, &stats, &expected))),
        ]
    }

    fn group(&self, title: String, cases: Vec<Case>, bar: Option<(usize, f64)>) -> Result<Group> {
        eprintln!("{title}");
        let samples = alternate(&cases, self.options.runs)?;
        let [_, strace, trapline] = samples.as_slice() else { bail!("{title}: three cases were expected") };
        if strace.events != trapline.events {
            bail!("{title}: strace shows {} calls, trapline {}", strace.events, trapline.events);
        }
        Ok(Group { title, samples, bar })
    }

    fn figures(&self) -> Result<[Figure; 3]> {
        let expected = Expected { names: &[], at_least: 0, only: false };
        let cases = self.cases(&dd(self.options.count), &expected, &[], &[]);
        // The most of three runs: it is a peak that is asked for.
        let most = |case: &Case| -> Result<f64> {
            let peaks = (0..3).map(|_| peak_kib(case)).collect::<Result<Vec<u64>>>()?;
            Ok(peaks.into_iter().max().unwrap_or(0) as f64 * 1024.0 / MB)
        };
        let size = fs::metadata(&self.trapline)?.len() as f64 / MB;
        let name = "peak memory, front end and ptracer (VmHWM)".to_string();
        Ok([
            Figure { name: "peak memory, strace (VmHWM)".to_string(), value: most(&cases[1])?, unit: "MB", bar: None },
            Figure { name, value: most(&cases[2])?, unit: "MB", bar: Some(24.0) },
            Figure { name: "size of the binary".to_string(), value: size, unit: "MB", bar: Some(6.0) },
        ])
    }
}

fn case(name: &str, argv: Vec<String>, check: super::measure::Check) -> Case {
    Case { name: name.to_string(), argv, env: Vec::new(), check }
}

fn dd(count: u64) -> Vec<String> {
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &format!("count={count}")].map(String::from).to_vec()
}

fn git_environment(home: &Path) -> Vec<(String, String)> {
    let home = home.to_string_lossy().into_owned();
    let name = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    let names = name.map(|variable| (variable.to_string(), "bench@example.org".to_string()));
    [("HOME".to_string(), home)].into_iter().chain(names).collect()
}

/// What a trace contains.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    calls: u64,
    /// Signals, stops, exits.
    process: u64,
    /// Those calls that were asked for.
    counted: u64,
}

fn count(path: &Path, expected: &Expected) -> Result<Counts> {
    let text = fs::read(path).with_context(|| format!("no trace in {}", path.display()))?;
    let counts = count_text(&String::from_utf8_lossy(&text), expected.names);
    if counts.counted < expected.at_least {
        bail!("{} calls of {:?}, at least {} were made", counts.counted, expected.names, expected.at_least);
    }
    if expected.only && counts.counted != counts.calls {
        bail!("{} calls, only {} of {:?}", counts.calls, counts.counted, expected.names);
    }
    Ok(counts)
}

/// Each call counts once: strace's second halves and trapline's lines for what is still running do not.
fn count_text(text: &str, names: &[&str]) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        if rest.starts_with("--- ") || rest.starts_with("+++ ") {
            counts.process += 1;
        } else if !rest.starts_with("<... ")
            && !rest.ends_with("<in flight>")
            && !rest.ends_with("<in flight since attach>")
        {
            counts.calls += 1;
            let name = rest.split('(').next().unwrap_or_default();
            counts.counted += u64::from(names.contains(&name));
        }
    }
    counts
}

/// The trace and the statistics have to agree, and nothing may be lost.
fn count_with_stats(out: &Path, stats: &Path, expected: &Expected) -> Result<u64> {
    let counts = count(out, expected)?;
    let text = fs::read_to_string(stats).with_context(|| format!("no statistics in {}", stats.display()))?;
    let stats: serde_json::Value = serde_json::from_str(&text)?;
    let number = |name: &str| stats[name].as_u64().with_context(|| format!("no {name} in the statistics: {text}"));
    let (events, dropped) = (number("events")?, number("dropped")?);
    // Whether signals and exits are events or bookkeeping is trapline's affair; every call is an event.
    if !(counts.calls..=counts.calls + counts.process).contains(&events) {
        bail!("{events} events, but the trace has {} calls and {} signals and exits", counts.calls, counts.process);
    }
    if dropped != 0 {
        bail!("{dropped} events were dropped");
    }
    Ok(counts.counted)
}

#[cfg(test)]
mod tests {
    use super::{Counts, count_text};

    #[test]
    fn each_call_counts_once() {
        let trace = "1 read(0, <unfinished ...>\n2 write(1, \"a\", 1) = 1\n1 <... read resumed>\"\", 1) = 0\n\
                     1 read(0,  <in flight>\n1 close(0) = 0\n1 +++ exited with 0 +++\n";
        assert_eq!(count_text(trace, &["read", "write"]), Counts { calls: 3, process: 1, counted: 2 });
    }
}
