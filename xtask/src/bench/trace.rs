//! `cargo xtask bench trace`: what recording costs, how large a trace is, and how fast it is read, next to babeltrace2.

use super::Options;
use super::dd::{dd, stats, timed};
use super::measure::{Case, Samples, alternate};
use super::memory::peak_kib;
use super::report::{Figure, Group, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Blocks that dd copies, each with a read and a write.
const COUNT: u64 = 1_000_000;
/// Blocks for a large trace.
const LARGE: u64 = 10_000_000;
/// Runs of what takes long.
const FEW: usize = 5;
/// Rings for traces whose making is not what is measured.
const ROOMY: &[&str] = &["--buffer", "64M"];
/// How many times as long as trapline babeltrace2 takes at least for text.
const FASTER: f64 = 20.0;
/// Memory that a view may take, whatever the size of the trace, MB.
const ROOM: f64 = 64.0;
/// How many runs may lose events, because other processes had the CPUs, before that is an error.
const LOSSY: usize = 5;
const MB: f64 = 1e6;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("recording is measured with the kernel backend, as root");
    }
    let bench = Bench { trapline: lab::build_trapline()?, scratch: Scratch::new("bench-trace")?, runs: options.runs };
    let body = format!(
        "## Traces on disk\n\nMedians of {} runs in turn (what takes seconds: {FEW}). {} {}.\n\n{}",
        options.runs,
        provenance(),
        lab::said("babeltrace2", &["--version"]).lines().next().unwrap_or("no babeltrace2"),
        bench.sections()?.join("\n"),
    );
    println!("{body}");
    lab::write_section("bench trace", &body)
}

struct Bench {
    trapline: PathBuf,
    scratch: Scratch,
    runs: usize,
}

impl Bench {
    fn sections(&self) -> Result<Vec<String>> {
        let record = self.record()?;
        let size = self.bytes_per_event()?;
        let (reading, same) = self.reading()?;
        let window = self.window()?;
        let numbers = figures(&[vec![size], self.peaks()?].concat());
        Ok(vec![record, reading, same, window, format!("### Size and memory\n\n{numbers}")])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Records dd into a new trace; dd's own time, and the number of events. Nothing may be dropped.
    fn recorded(&self, dir: &str, count: u64) -> Result<(Duration, u64)> {
        let (own, events, dropped) = self.record_with(dir, count, ROOMY)?;
        ensure!(dropped == 0, "{dropped} events were dropped");
        Ok((own, events))
    }

    /// Records dd into a new trace; dd's own time, and the numbers of events recorded and dropped.
    fn record_with(&self, dir: &str, count: u64, options: &[&str]) -> Result<(Duration, u64, u64)> {
        let (trace, numbers) = (self.path(dir), self.path("stats.json"));
        let _ = fs::remove_dir_all(&trace);
        let words = |p: &Path| p.to_string_lossy().into_owned();
        let mut argv = vec![words(&self.trapline)];
        argv.extend(["record", "--backend", "kernel", "--stats"].map(String::from));
        argv.extend([words(&numbers), "-o".into(), words(&trace)]);
        argv.extend(options.iter().chain(&["--"]).map(ToString::to_string));
        argv.extend(dd(count));
        let run = timed(&argv)?;
        let stats = stats(&words(&numbers))?;
        let seen = stats.events + stats.dropped;
        ensure!(seen >= 2 * count, "{seen} events of more than {} calls", 2 * count);
        Ok((run.own, stats.events, stats.dropped))
    }

    fn record(&self) -> Result<String> {
        let series = |name: &str| Samples { name: name.into(), walls: Vec::new(), events: 0 };
        let (mut alone, mut kept) = (series("untraced"), series("record"));
        let mut lossy = 0;
        for round in 0..=self.runs {
            let own = timed(&dd(COUNT))?.own;
            let (recorded, events) = self.recorded_whole(&mut lossy)?;
            ensure!(round == 0 || events == kept.events, "{events} events, {} before", kept.events);
            kept.events = events;
            if round > 0 {
                alone.walls.push(own);
                kept.walls.push(recorded);
            }
        }
        let title = format!("dd's own time, {COUNT} blocks, all calls recorded");
        let group = Group { title, samples: vec![alone, kept], bar: Some((0, 2.4)) };
        let repeated =
            if lossy > 0 { format!(" {lossy} runs that dropped events were repeated.") } else { String::new() };
        Ok(format!("{}\nThe same number of events in each run, 0 dropped.{repeated}\n", group.table()))
    }

    /// With the rings that trapline takes by itself. A run that loses events is counted and repeated.
    fn recorded_whole(&self, lossy: &mut usize) -> Result<(Duration, u64)> {
        loop {
            let (own, events, dropped) = self.record_with("dd", COUNT, &[])?;
            if dropped == 0 {
                return Ok((own, events));
            }
            *lossy += 1;
            ensure!(*lossy <= LOSSY, "{dropped} events were dropped, the {lossy}th run with drops");
        }
    }

    /// What a million more events add to the files, less the byte of payload that each has.
    fn bytes_per_event(&self) -> Result<Figure> {
        let (_, more) = self.recorded("dd", COUNT)?;
        let large = packets(&self.path("dd"))?;
        let (_, fewer) = self.recorded("half", COUNT / 2)?;
        let small = packets(&self.path("half"))?;
        let value = (large - small) as f64 / (more - fewer) as f64 - 1.0;
        Ok(Figure { name: "bytes per read or write, payload aside".into(), value, unit: "B", bar: Some(64.0) })
    }

    /// All events as text, by trapline and by babeltrace2.
    fn reading(&self) -> Result<(String, String)> {
        let dir = self.path("dd");
        let (_, events) = self.recorded("dd", COUNT)?;
        let trapline = self.trapline.to_string_lossy().into_owned();
        let trace = dir.to_string_lossy().into_owned();
        let case = |name: &str, script: String| Case {
            name: name.into(),
            argv: vec!["sh".into(), "-c".into(), script],
            env: Vec::new(),
            check: Box::new(|| Ok(0)),
        };
        // Into a file of its own, which goes before the other one is measured: hundreds of megabytes of what babeltrace2 has written
        // would otherwise be on their way to the disk in trapline's time.
        let out = self.path("text").to_string_lossy().into_owned();
        let into = |name: &str, command: String| {
            let (file, out) = (self.path("text"), out.clone());
            let check = Box::new(move || {
                let lines = fs::read(&file)?.iter().filter(|b| **b == b'\n').count() as u64;
                fs::remove_file(&file)?;
                Ok(lines)
            });
            Case { check, ..case(name, format!("{command} > {out}")) }
        };
        let cases = [
            into("babeltrace2", format!("babeltrace2 {trace}")),
            into("trapline report", format!("{trapline} report {trace}")),
        ];
        let samples = alternate(&cases, FEW)?;
        let times = samples[0].ratio(&samples[1]);
        let table = Group { title: format!("Text of {events} events"), samples, bar: None }.table();
        let verdict = if times >= FASTER { "met" } else { "**missed**" };
        let text = format!("{table}\nBar: babeltrace2 at least {FASTER} x trapline: {times:.1}, {verdict}.\n");
        Ok((text, self.same(&trace)?))
    }

    /// What babeltrace2 prints about the trace.
    fn same(&self, trace: &str) -> Result<String> {
        let numbers: serde_json::Value = serde_json::from_str(&fs::read_to_string(self.path("stats.json"))?)?;
        let number = |name: &str| numbers[name].as_u64().unwrap_or(0);
        let all = number("events") + number("bookkeeping");
        let out = Command::new("babeltrace2").arg(trace).output().context("cannot run babeltrace2")?;
        let lines = out.stdout.iter().filter(|b| **b == b'\n').count() as u64;
        ensure!(out.status.success() && out.stderr.is_empty(), "babeltrace2: {}", String::from_utf8_lossy(&out.stderr));
        ensure!(lines == all, "babeltrace2 shows {lines} events of {all}");
        Ok(format!("babeltrace2 on that trace: exit 0, nothing on stderr, {lines} events of {all}: met.\n"))
    }

    /// Peak memory of views of the large trace that [`Bench::window`] has recorded.
    fn peaks(&self) -> Result<Vec<Figure>> {
        let (trapline, trace) = (self.trapline.to_string_lossy(), self.path("large"));
        let (gigabytes, trace) = (packets(&trace)? as f64 / 1e9, trace.to_string_lossy());
        let of = |options: &[&str]| {
            let words = [&["report"], options].concat().join(" ");
            let argv = [&[&*trapline, "report"], options, &[&*trace]].concat();
            let argv = argv.into_iter().map(String::from).collect();
            let case = Case { name: words.clone(), argv, env: Vec::new(), check: Box::new(|| Ok(0)) };
            let value = peak_kib(&case)? as f64 * 1024.0 / MB;
            Ok(Figure { name: format!("peak of {words}, {gigabytes:.1} GB"), value, unit: "MB", bar: Some(ROOM) })
        };
        [&[][..], &["-c"], &["--latency"]].into_iter().map(of).collect()
    }

    /// One percent of a large trace.
    fn window(&self) -> Result<String> {
        let (own, events) = self.recorded("large", LARGE)?;
        let trapline = self.trapline.to_string_lossy().into_owned();
        let trace = self.path("large").to_string_lossy().into_owned();
        let (from, to) = (own.as_secs_f64() * 0.5, own.as_secs_f64() * 0.51);
        let case = |name: &str, options: String| Case {
            name: name.into(),
            argv: vec!["sh".into(), "-c".into(), format!("{trapline} report {options} {trace} > /dev/null")],
            env: Vec::new(),
            check: Box::new(|| Ok(0)),
        };
        let cases = [case("all", String::new()), case("1 % in the middle", format!("--from +{from:.6} --to +{to:.6}"))];
        let samples = alternate(&cases, FEW)?;
        let share = samples[1].ratio(&samples[0]) * 100.0;
        let table = Group { title: format!("A window of a trace of {events} events"), samples, bar: None }.table();
        let verdict = if share <= 5.0 { "met" } else { "**missed**" };
        Ok(format!("{table}\nBar: the window at most 5 % of the whole: {share:.1} %, {verdict}.\n"))
    }
}

/// Bytes of a trace's packets.
fn packets(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != "metadata" {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}
