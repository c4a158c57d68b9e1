//! `cargo xtask bench functions`: what a traced call costs, next to uftrace and to two reads of the time stamp counter; what tracing all
//! functions of python3 costs; what an agent costs that traces nothing; how fast a table of functions is made.
//!
//! A call's cost is the time of a run with many calls, less that of one with few, less the same of the untraced program: starts and ends
//! are in none of the figures. Event counts of all runs are checked.

use super::Options;
use super::measure::{Case, Samples, alternate};
use super::report::{Figure, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The number whose calls are traced, and a small one for start and end.
const N: u32 = 36;
const FEW: u32 = 1;
/// What python3 does: objects of every kind, sorted and written.
const SCRIPT: &str = "import json\n\
    d = [{'id': i, 'key': (i * 7919) % 200003, 'name': 'item %d' % i} for i in range(200000)]\n\
    d.sort(key=lambda e: e['key'])\n\
    print(len(json.dumps(d)))";

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    let scratch = Scratch::new("bench-functions")?;
    let has_uftrace = Command::new("uftrace").arg("--version").output().is_ok();
    let bench = Bench { trapline: lab::build_trapline()?, runs: options.runs, scratch };
    let peer = if has_uftrace { lab::said("uftrace", &["--version"]) } else { "no uftrace".into() };
    let (calls, view) = bench.calls(has_uftrace)?;
    let all = [calls, bench.python()?, bench.nothing()?, view].into_iter().flatten().collect::<Vec<_>>();
    let body = format!(
        "## Functions\n\nMedians of {} runs in turn, by the agent backend, records kept on disk, `--on-full block`. {} {peer}.\n\n{}",
        options.runs,
        provenance(),
        figures(&all)
    );
    println!("{body}");
    lab::write_section("bench functions", &body)
}

/// How many calls fib(n) makes.
pub fn calls_of(n: u32) -> u64 {
    let (mut a, mut b) = (1u64, 1);
    (1..n).for_each(|_| (a, b) = (b, a + b + 1));
    if n == 0 { 1 } else { b }
}

struct Bench {
    trapline: PathBuf,
    runs: usize,
    scratch: Scratch,
}

impl Bench {
    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_string_lossy().into_owned()
    }

    /// tests/programs/fib.c, built so.
    fn fib(&self, name: &str, flags: &[&str]) -> Result<String> {
        let (source, program) = (crate::root().join("tests/programs/fib.c"), self.path(name));
        lab::run(
            Command::new("gcc")
                .args(["-O1", "-fno-optimize-sibling-calls"])
                .args(flags)
                .arg("-o")
                .arg(&program)
                .arg(source),
        )?;
        Ok(program)
    }

    fn plain(name: &str, argv: &[&str]) -> Case {
        let argv = argv.iter().map(ToString::to_string).collect();
        Case { name: name.into(), argv, env: Vec::new(), check: Box::new(|| Ok(0)) }
    }

    /// `trapline record -e function:PATTERN -o DIR -- COMMAND`, with as many events as said, or any number, and none lost.
    fn traced(&self, name: &str, pattern: &str, dir: &str, command: &[&str], events: Option<u64>) -> Case {
        let (dir, stats) = (self.path(dir), self.path(&format!("{dir}.json")));
        let (trapline, pattern) = (self.trapline.to_string_lossy().into_owned(), format!("function:{pattern}"));
        let head = [
            &*trapline,
            "record",
            "-q",
            "-e",
            &pattern,
            "--on-full",
            "block",
            "--force",
            "-o",
            &dir,
            "--stats",
            &stats,
            "--",
        ];
        let argv = head.iter().chain(command).map(ToString::to_string).collect();
        let check = Box::new(move || {
            let stats: Value = serde_json::from_slice(&fs::read(&stats)?)?;
            let (seen, dropped) = (stats["events"].as_u64().context("events")?, stats["dropped"].as_u64());
            ensure!(dropped == Some(0), "{dropped:?} dropped");
            ensure!(events.is_none_or(|n| n == seen), "{seen} events, not {events:?}");
            // The number of calls of a program may vary from run to run.
            Ok(events.unwrap_or(1))
        });
        Case { name: name.into(), argv, env: Vec::new(), check }
    }

    /// `trapline run -e SCRIPT -c COMMAND`: what it counts, in all lines of what it prints, is so much, and nothing is lost.
    fn script(&self, name: &str, text: &str, file: &str, (program, n): (&str, &str), calls: u64) -> Case {
        let (trapline, out) = (self.trapline.to_string_lossy().into_owned(), self.path(file));
        let command = format!("{program} {n}");
        let argv = [&*trapline, "run", "-q", "--on-full", "block", "-o", &out, "-e", text, "-c", &command];
        let argv = argv.map(String::from).to_vec();
        let check = Box::new(move || {
            let text = fs::read_to_string(&out)?;
            let number = |line: &str| match line.split_once("]: ") {
                Some((_, n)) => n.parse::<u64>().ok(),
                None => line.split_once(" |")?.0.split_ascii_whitespace().last()?.parse().ok(),
            };
            let seen: u64 = text.lines().filter_map(number).sum();
            ensure!(seen == calls, "{seen} calls, not {calls}: {text}");
            Ok(calls)
        });
        Case { name: name.into(), argv, env: Vec::new(), check }
    }

    fn uftrace(&self, name: &str, program: &str, n: &str, calls: u64) -> Case {
        let dir = self.path(&format!("uftrace-{n}"));
        let argv = ["uftrace", "record", "-d", &dir, program, n].map(String::from).to_vec();
        let check = Box::new(move || {
            let info = Command::new("uftrace").args(["report", "-d", &dir, "-f", "call", "-F", "fib"]).output()?;
            let text = String::from_utf8_lossy(&info.stdout).into_owned();
            let line = text.lines().find(|l| l.trim_end().ends_with(" fib")).with_context(|| text.clone())?;
            let seen: u64 = line.split_ascii_whitespace().next().context("a count")?.parse()?;
            // In some runs it lacks a call or two, and does not say so.
            ensure!(seen <= calls && calls - seen <= calls / 1_000_000, "{seen} calls, not {calls}");
            Ok(calls)
        });
        Case { name: name.into(), argv, env: Vec::new(), check }
    }

    /// What a call costs, and how fast a table of them is made.
    fn calls(&self, has_uftrace: bool) -> Result<(Vec<Figure>, Vec<Figure>)> {
        let (plain, stamps, pg) =
            (self.fib("fib", &[])?, self.fib("stamps", &["-DSTAMPS"])?, self.fib("fib-pg", &["-pg"])?);
        let (many, few) = (N.to_string(), FEW.to_string());
        let (calls, small) = (calls_of(N), calls_of(FEW));
        // main is a function too.
        let events = |calls: u64| Some(2 * (calls + 1));
        let mut cases = vec![
            Bench::plain("untraced", &[&plain, &many]),
            Bench::plain("untraced, few", &[&plain, &few]),
            Bench::plain("two stamps", &[&stamps, &many]),
            Bench::plain("two stamps, few", &[&stamps, &few]),
            self.traced("trapline", "*", "many", &[&plain, &many], events(calls)),
            self.traced("trapline, few", "*", "few", &[&plain, &few], events(small)),
        ];
        let scripts = [
            ("count()", "function:fib { @[func] = count(); }", None),
            ("hist(dur)", "function:fib:return { @ = hist(dur); }", Some(25.0)),
        ];
        for (what, text, _) in scripts {
            let file = |n: &str| format!("script-{what}-{n}");
            cases.push(self.script(what, text, &file("many"), (&plain, &many), calls));
            cases.push(self.script(&format!("{what}, few"), text, &file("few"), (&plain, &few), small));
        }
        let peer = cases.len();
        if has_uftrace {
            cases.push(self.uftrace("uftrace", &pg, &many, calls));
            cases.push(self.uftrace("uftrace, few", &pg, &few, small));
        }
        let samples = alternate(&cases, self.runs)?;
        let span = |n: usize| seconds(&samples[n]) - seconds(&samples[n + 1]);
        let added = |n: usize| (span(n) - span(0)) * 1e9 / (calls - small) as f64;
        let mut all = vec![
            figure(format!("a call of fib({N}), records on disk, above untraced"), added(4), "ns", None),
            figure("two time stamps, above untraced".into(), added(2), "ns", None),
            figure("trapline, as a multiple of two stamps".into(), added(4) / added(2), "x", Some(2.0)),
        ];
        if has_uftrace {
            all.push(figure("uftrace record, -pg".into(), added(peer), "ns", None));
            all.push(figure("trapline, as a multiple of uftrace".into(), added(4) / added(peer), "x", Some(0.35)));
        }
        for (nth, (what, _, bar)) in scripts.into_iter().enumerate() {
            let name = format!("a call of fib({N}) that a script's {what} collects, above untraced");
            all.push(figure(name, added(6 + 2 * nth), "ns", bar));
        }
        Ok((all, vec![self.table(calls)?]))
    }

    /// What the view `functions` takes for each event, all processors together.
    fn table(&self, calls: u64) -> Result<Figure> {
        let dir = self.path("many");
        let mut best = f64::MAX;
        for _ in 0..3 {
            let before = children();
            let out = Command::new(&self.trapline).args(["report", "-q", "--as", "functions", &dir]).output()?;
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            ensure!(out.status.success() && text.contains(&format!(" {calls} ")), "{text}");
            best = best.min(children() - before);
        }
        let events = 2 * (calls + 1);
        let name = format!("view functions of {} M events, time of processors for each", events / 1_000_000);
        Ok(figure(name, best * 1e9 / events as f64, "ns", Some(10.0)))
    }

    fn python(&self) -> Result<Vec<Figure>> {
        let command = ["python3", "-c", SCRIPT];
        let cases = [Bench::plain("untraced", &command), self.traced("trapline", "*", "python", &command, None)];
        let samples = alternate(&cases, self.runs)?;
        let name = "python3 sorts and dumps 200,000 dicts, all functions, above untraced".to_string();
        Ok(vec![figure(name, samples[1].ratio(&samples[0]), "x", Some(2.2))])
    }

    fn nothing(&self) -> Result<Vec<Figure>> {
        let program = self.fib("fib-long", &[])?;
        let (many, few) = ([&*program, "42"], [&*program, "1"]);
        let cases = [
            Bench::plain("untraced", &many),
            Bench::plain("untraced, few", &few),
            self.traced("trapline", "no_such_function", "nothing", &many, Some(0)),
            self.traced("trapline, few", "no_such_function", "nothing-few", &few, Some(0)),
        ];
        let samples = alternate(&cases, self.runs)?;
        let span = |n: usize| seconds(&samples[n]) - seconds(&samples[n + 1]);
        let name = "fib(42) with an agent that traces nothing, of untraced".to_string();
        Ok(vec![figure(name, span(2) / span(0), "x", Some(1.02))])
    }
}

fn figure(name: String, value: f64, unit: &'static str, bar: Option<f64>) -> Figure {
    Figure { name, value, unit, bar }
}

fn seconds(s: &Samples) -> f64 {
    s.median().as_secs_f64()
}

/// User and system time of the children that were waited for, s.
fn children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    // cutime and cstime (proc(5)), in ticks of 10 ms.
    let ticks = |n: usize| fields.get(n).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / 100.0
}

#[cfg(test)]
mod tests {
    #[test]
    fn calls_of_small_numbers() {
        let all: Vec<u64> = (0..7).map(super::calls_of).collect();
        assert_eq!(all, [1, 1, 3, 5, 9, 15, 25]);
    }
}
