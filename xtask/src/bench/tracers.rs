//! `cargo xtask bench tracers`: how soon functions of a running process are seen and how long it stands still for that; what a call costs
//! with tracers, next to `uftrace record`; and what is left of it all after the last of them.
//!
//! The targets read the clock all the time and say when they could not, and how much of that they only waited for a processor; what is left
//! is time in which they were stopped, or did trapline's work. A call's cost is what fib takes longer, in time
//! of the processor.

use super::Options;
use super::measure::Samples;
use super::report::{Figure, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The number whose calls are counted.
const N: u32 = 36;
/// Runs of what is compared with untraced runs at the end.
const LAST: usize = 21;
/// How long targets run untraced, for what the machine itself takes, and then how long they are traced.
const SPAN: Duration = Duration::from_millis(600);
/// The fewest functions that the large target must have.
const FUNCTIONS: u64 = 1400;
/// tests/programs/stops.c, for python3.
const STOPS: &str = "import os, signal, sys, time
over, gaps, now = [], [], time.perf_counter_ns
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
schedstat = os.open('/proc/thread-self/schedstat', os.O_RDONLY)
waited = lambda: int(os.pread(schedstat, 100, 0).split()[1])
before, last = waited(), now()
while not over:
    t = now()
    if t - last > 50000:
        w = waited()
        gaps.append((last, t, w - before))
        before, t = w, now()
    last = t
for gap in gaps: print(*gap)";

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(options.runs)?;
    let peer = if bench.uftrace { lab::said("uftrace", &["--version"]) } else { "no uftrace".into() };
    let all: Vec<Figure> = [bench.stops()?, bench.calls()?, bench.last()?].into_iter().flatten().collect();
    let body = format!(
        "## Attach and tracers\n\nMedians of {} runs in turn ({LAST} after the last tracer). {} {peer}.\n\n{}",
        options.runs,
        provenance(),
        figures(&all)
    );
    println!("{body}");
    lab::write_section("bench tracers", &body)
}

struct Bench {
    trapline: PathBuf,
    runs: usize,
    scratch: Scratch,
    uftrace: bool,
}

/// What a target says of its own standstills, ns of the monotonic clock.
struct Stops(Vec<(u64, u64, u64)>);

impl Stops {
    fn parse(text: &str) -> Result<Stops> {
        let numbers = |line: &str| -> Option<(u64, u64, u64)> {
            let mut words = line.split(' ').map(str::parse);
            Some((words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?))
        };
        let all = text.lines().map(|l| numbers(l).with_context(|| format!("no standstill: {l}")));
        Ok(Stops(all.collect::<Result<_>>()?))
    }

    /// The sum in a time, less what it has waited for a processor; and the longest, ms.
    fn within(&self, time: &Range<u64>) -> (f64, f64) {
        let inside = self.0.iter().filter(|(from, to, _)| *from < time.end && *to > time.start);
        let ms = |(from, to, waited): &(u64, u64, u64)| (to - from).saturating_sub(*waited) as f64 / 1e6;
        inside.map(ms).fold((0.0, 0.0), |(sum, longest), ms| (sum + ms, f64::max(longest, ms)))
    }
}

/// A program that runs, and says something when it is asked to end.
struct Target(Child);

impl Target {
    fn start(argv: &[String]) -> Result<Target> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
        let target = Target(command.spawn().with_context(|| format!("cannot run {argv:?}"))?);
        sleep(Duration::from_millis(200));
        Ok(target)
    }

    fn end(mut self) -> Result<String> {
        interrupt(&self.0, "TERM")?;
        let mut text = String::new();
        self.0.stdout.take().context("piped")?.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(child: &Child, signal: &str) -> Result<()> {
    lab::run(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]))
}

/// fibs.c, which computes what it is told to.
struct Fibs {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Fibs {
    fn start(argv: &[&str]) -> Result<Fibs> {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot run {argv:?}"))?;
        let out = BufReader::new(child.stdout.take().context("piped")?);
        Ok(Fibs { child, out })
    }

    /// fib of N: what it takes.
    fn once(&mut self) -> Result<Duration> {
        writeln!(self.child.stdin.as_mut().context("piped")?, "{N}")?;
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        let (_, ns) = line.trim().split_once(' ').with_context(|| format!("no time: {line}"))?;
        Ok(Duration::from_nanos(ns.parse()?))
    }

    /// What it says at its end.
    fn end(&mut self) -> Result<String> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.out.read_to_string(&mut text)?;
        ensure!(self.child.wait()?.success(), "fibs has failed: {text}");
        Ok(text)
    }
}

impl Drop for Fibs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bench {
    fn new(runs: usize) -> Result<Bench> {
        let scratch = Scratch::new("bench-tracers")?;
        let bench = Bench {
            trapline: lab::build_trapline()?,
            runs,
            uftrace: Command::new("uftrace").arg("--version").output().is_ok(),
            scratch,
        };
        let source = |name: &str| crate::root().join("tests/programs").join(name);
        let fib = |name: &str, flags: &[&str]| {
            let flags = [&["-O1", "-fno-optimize-sibling-calls"], flags].concat();
            lab::run(Command::new("gcc").args(flags).arg("-o").arg(bench.path(name)).arg(source("fibs.c")))
        };
        fib("fibs", &[])?;
        fib("fibs-pg", &["-pg"])?;
        lab::build_program("stops", bench.scratch.path())?;
        lab::build_program("site", bench.scratch.path())?;
        let headers = crate::root().join("crates/tracer/include");
        let mut library = Command::new("gcc");
        library.args(["-O2", "-shared", "-fPIC", "-I"]).arg(headers).arg("-o").arg(bench.path("counting.so"));
        lab::run(library.arg(source("counting_tracer.c")))?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_string_lossy().into_owned()
    }

    /// The monotonic clock, ns.
    fn now(&self) -> Result<u64> {
        number(&lab::said(&self.path("site"), &["now", "true"]), "now_ns")
    }

    /// `trapline tracer …`; when it began and when it had ended.
    fn tracer(&self, pid: u32, order: &str, more: &[&str]) -> Result<(Range<u64>, String)> {
        let (pid, from) = (pid.to_string(), self.now()?);
        let out = Command::new(&self.trapline).args(["tracer", order, "-p", &pid]).args(more).output()?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure!(out.status.success() && said.is_empty(), "tracer {order} {more:?}: {said}");
        Ok((from..self.now()?, String::from_utf8_lossy(&out.stdout).into_owned()))
    }

    /// How long targets stand still.
    fn stops(&self) -> Result<Vec<Figure>> {
        let python = ["/usr/bin/python3", "python3"].into_iter().find(|p| lab::said(p, &["-V"]) != "unknown");
        let mut all = Vec::new();
        if let Some(python) = python {
            let argv = [python, "-c", STOPS].map(String::from);
            all.extend(self.stops_of("python3", &argv, FUNCTIONS, (Some(300.0), Some(20.0)))?);
        }
        let argv = [self.path("stops"), "16".to_string()];
        all.extend(self.stops_of("16 threads", &argv, 500, (None, None))?);
        Ok(all)
    }

    fn stops_of(
        &self,
        name: &str,
        argv: &[String],
        functions: u64,
        (soon, still): (Option<f64>, Option<f64>),
    ) -> Result<Vec<Figure>> {
        const WHAT: [&str; 5] = ["untraced", "attach", "detach", "tracer enable count", "tracer disable count"];
        let mut first = Vec::new();
        let mut stops: [Vec<(f64, f64)>; WHAT.len()] = Default::default();
        for round in 0..=self.runs {
            let target = Target::start(argv)?;
            let pid = target.0.id();
            let untraced = self.now()?..{
                sleep(SPAN);
                self.now()?
            };
            let (attach, detach, event) = self.recorded(pid, functions)?;
            has_its_own_text(pid)?;
            let (enable, _) = self.tracer(pid, "enable", &["count"])?;
            sleep(Duration::from_millis(50));
            let (disable, _) = self.tracer(pid, "disable", &["count"])?;
            has_its_own_text(pid)?;
            let said = Stops::parse(&target.end()?)?;
            if round > 0 {
                first.push(event.saturating_sub(attach.start) as f64 / 1e6);
                for (to, time) in stops.iter_mut().zip([untraced, attach, detach, enable, disable]) {
                    to.push(said.within(&time));
                }
            }
        }
        let mut all = vec![Figure {
            name: format!("{name}, attach: first event, from the start of trapline"),
            value: median(first),
            unit: "ms",
            bar: soon,
        }];
        for (what, times) in WHAT.iter().zip(stops) {
            let (sums, longest): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
            let bar = still.filter(|_| *what == "attach");
            all.push(Figure { name: format!("{name}, {what}: time stopped"), value: median(sums), unit: "ms", bar });
            let value = median(longest);
            all.push(Figure { name: format!("{name}, {what}: longest stop"), value, unit: "ms", bar: None });
        }
        Ok(all)
    }

    /// Records the functions of a process for a while: the times of attach and detach, and that of the first event.
    fn recorded(&self, pid: u32, functions: u64) -> Result<(Range<u64>, Range<u64>, u64)> {
        let (dir, stats, pid) = (self.path("trace"), self.path("stats.json"), pid.to_string());
        let trapline = self.trapline.to_string_lossy().into_owned();
        let mut command = Command::new(self.path("site"));
        command.args(["now", &trapline, "record", "-q", "--force", "-e", "function:*", "-p", &pid, "-o", &dir]);
        command.args(["--stats", &stats]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        sleep(SPAN);
        let middle = self.now()?;
        interrupt(&child, "INT")?;
        let (mut out, mut err) = (String::new(), String::new());
        child.stdout.take().context("piped")?.read_to_string(&mut out)?;
        child.stderr.take().context("piped")?.read_to_string(&mut err)?;
        child.wait()?;
        let end = self.now()?;
        let stats: Value = serde_json::from_slice(&fs::read(&stats).with_context(|| err.clone())?)?;
        ensure!(stats["events"].as_u64().is_some_and(|n| n > 0), "no events: {stats} {err}");
        // An event for each function, and a few for the process and its thread.
        let known = stats["bookkeeping"].as_u64().unwrap_or(0);
        ensure!(known >= functions, "{known} functions, not {functions}");
        Ok((number(&out, "now_ns")?..middle, middle..end, self.first(&dir)?))
    }

    /// When the first call of a trace began or ended, ns of the monotonic clock.
    fn first(&self, dir: &str) -> Result<u64> {
        let mut command = Command::new(&self.trapline);
        command.args(["report", "-q", "--as", "json", dir]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("piped")?).lines().map_while(Result::ok);
        let events = lines.by_ref().filter_map(|l| serde_json::from_str::<Value>(&l).ok());
        let is_call = |e: &Value| e["name"].as_str().is_some_and(|n| n.starts_with("function:e"));
        let first = events.filter(is_call).find_map(|e| e["time_ns"].as_u64());
        let _ = child.kill();
        child.wait()?;
        first.context("no call in the trace")
    }

    /// What a call costs with tracers.
    fn calls(&self) -> Result<Vec<Figure>> {
        const WHAT: [&str; 5] = ["untraced", "count", "count --no-time", "a tracer in C", "uftrace record, -pg"];
        let calls = super::functions::calls_of(N);
        let mut samples = WHAT.map(|name| Samples { name: name.into(), walls: Vec::new(), events: calls });
        for round in 0..=self.runs {
            let mut times = vec![Fibs::start(&[&self.path("fibs")])?.once()?];
            let mut fibs = Fibs::start(&[&self.path("fibs")])?;
            let pid = fibs.child.id();
            for options in [&["count", "-F", "fib"][..], &["count", "--no-time", "-F", "fib"]] {
                self.tracer(pid, "enable", options)?;
                times.push(fibs.once()?);
                let (_, shown) = self.tracer(pid, "print", &["count"])?;
                let line = shown.lines().find(|l| l.ends_with(" fib")).with_context(|| shown.clone())?;
                // Of the last columns, calls come first without times, and before the average with them.
                let from_end = if options.contains(&"--no-time") { 2 } else { 3 };
                let counted = line.split_ascii_whitespace().nth_back(from_end).context("a count")?;
                let counted: u64 = counted.parse().with_context(|| line.to_string())?;
                ensure!(counted == calls, "{counted} calls counted, not {calls}");
                self.tracer(pid, "disable", &["count"])?;
            }
            self.tracer(pid, "enable", &[&self.path("counting.so"), "-F", "fib"])?;
            times.push(fibs.once()?);
            self.tracer(pid, "disable", &["counting"])?;
            has_its_own_text(pid)?;
            let said = fibs.end()?;
            ensure!(said.trim() == format!("counted {calls} {calls}"), "{said}, not {calls}");
            if self.uftrace {
                times.push(self.uftraced(calls)?);
            }
            if round > 0 {
                samples.iter_mut().zip(times).for_each(|(s, t)| s.walls.push(t));
            }
        }
        let added =
            |n: usize| (samples[n].median().as_secs_f64() - samples[0].median().as_secs_f64()) * 1e9 / calls as f64;
        let bars = [None, None, None, Some(60.0), None];
        let mut all: Vec<Figure> = (1..WHAT.len())
            .filter(|n| !samples[*n].walls.is_empty())
            .map(|n| {
                let name = format!("a call of fib({N}) above untraced, {}", WHAT[n]);
                Figure { name, value: added(n), unit: "ns", bar: bars[n] }
            })
            .collect();
        if self.uftrace {
            for (n, bar) in [(1, 0.3), (2, 0.15)] {
                let name = format!("{}, as a multiple of uftrace", WHAT[n]);
                all.push(Figure { name, value: added(n) / added(4), unit: "x", bar: Some(bar) });
            }
        }
        Ok(all)
    }

    /// fib, recorded by uftrace.
    fn uftraced(&self, calls: u64) -> Result<Duration> {
        let dir = self.path("uftrace");
        let mut fibs = Fibs::start(&["uftrace", "record", "-d", &dir, &self.path("fibs-pg")])?;
        let time = fibs.once()?;
        fibs.end()?;
        let out = Command::new("uftrace").args(["report", "-d", &dir, "-f", "call", "-F", "fib"]).output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let line = text.lines().find(|l| l.trim_end().ends_with(" fib")).with_context(|| text.clone())?;
        let seen: u64 = line.split_ascii_whitespace().next().context("a count")?.parse()?;
        // In some runs it lacks a call or two, and does not say so.
        ensure!(seen <= calls && calls - seen <= calls / 1_000_000, "{seen} calls, not {calls}");
        Ok(time)
    }

    /// What is left of tracers after the last of them.
    fn last(&self) -> Result<Vec<Figure>> {
        let program = self.path("fibs");
        let (mut untraced, mut left) = (Fibs::start(&[&program])?, Fibs::start(&[&program])?);
        let pid = left.child.id();
        let library = self.path("counting.so");
        for (options, name) in [(&["count"][..], "count"), (&[&*library], "counting")] {
            self.tracer(pid, "enable", options)?;
            left.once()?;
            self.tracer(pid, "disable", &[name])?;
        }
        has_its_own_text(pid)?;
        let mut samples = ["", ""].map(|name| Samples { name: name.into(), walls: Vec::new(), events: 0 });
        for round in 0..=LAST {
            for (samples, fibs) in samples.iter_mut().zip([&mut untraced, &mut left]) {
                let time = fibs.once()?;
                samples.walls.extend((round > 0).then_some(time));
            }
        }
        let [untraced, left] = samples;
        let name =
            format!("fib({N}) after the last tracer, of untraced; the text of all modules is that of their files");
        Ok(vec![Figure { name, value: left.ratio(&untraced), unit: "x", bar: Some(1.02) }])
    }
}

/// Checks that all code of files is what the files have.
fn has_its_own_text(pid: u32) -> Result<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    for line in maps.lines().filter(|l| l.contains(" r-xp ") && l.contains(" /") && !l.contains("memfd")) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let hex = |s: &str| u64::from_str_radix(s, 16).with_context(|| line.to_string());
        let [range, _, offset, _, _, path] = words[..] else { bail!("{line}") };
        let (from, to) = range.split_once('-').with_context(|| line.to_string())?;
        let (from, to, offset) = (hex(from)?, hex(to)?, hex(offset)? as usize);
        let (file, mut there) = (fs::read(path)?, vec![0; (to - from) as usize]);
        memory.read_exact_at(&mut there, from)?;
        let own = file.get(offset..file.len().min(offset + there.len())).context("a shorter file")?;
        ensure!(there.starts_with(own), "{line}: other bytes than the file's");
    }
    Ok(())
}

/// The number after a word.
fn number(text: &str, word: &str) -> Result<u64> {
    let after = text.split_whitespace().skip_while(|w| *w != word).nth(1);
    after.and_then(|n| n.parse().ok()).with_context(|| format!("no {word} in: {text}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_waited_for_a_processor_is_no_stop() {
        let stops = Stops::parse("1000000 3000000 500000\n9000000 9900000 0\n20000000 21000000 2000000\n").unwrap();
        assert_eq!(stops.within(&(0..10_000_000)), (2.4, 1.5));
        assert_eq!(stops.within(&(2_000_000..2_000_001)), (1.5, 1.5));
        assert_eq!(stops.within(&(15_000_000..30_000_000)), (0.0, 0.0));
        assert!(Stops::parse("1 2").is_err());
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
