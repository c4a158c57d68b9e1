//! `cargo xtask bench kernel`: what the kernel backend costs the command, a neighbour and the user, next to no tracing,
//! strace, perf trace and bpftrace.
//!
//! dd says itself how long it copied; that is the command's own time, without the tracer's start and end. A bar that is missed
//! is said so in the table; only a measurement that went wrong is an error.

use super::Options;
use super::dd::Run;
use super::dd::{Stats, dd, installed, on_path, stats, timed};
use super::floor;
use super::measure::{Case, Samples, alternate};
use super::report::{Figure, Group, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Blocks that dd copies, each with a read and a write.
const COUNT: u64 = 1_000_000;
/// The number of calls for a tracer that is too slow for that many; its time is scaled by the calls.
const FEWER: u64 = 100_000;
/// How often a run that drops events is repeated.
const LOSSY: usize = 3;
/// Runs of a slow tracer.
const SLOW_RUNS: usize = 3;
/// The bars count in megabytes of 10^6 bytes.
const MB: f64 = 1e6;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("the kernel backend is measured as root");
    }
    let bench = Bench { trapline: lab::build_trapline()?, scratch: Scratch::new("bench-kernel")?, runs: options.runs };
    let body = format!(
        "## System calls by eBPF\n\nMedians of {} runs in turn (strace and other slow tracers: {SLOW_RUNS}). {}\n\n{}",
        options.runs,
        provenance(),
        bench.sections()?.join("\n"),
    );
    println!("{body}");
    lab::write_section("bench kernel", &body)
}

struct Bench {
    trapline: PathBuf,
    scratch: Scratch,
    runs: usize,
}

/// Runs of one command.
#[derive(Default)]
struct Series {
    own: Vec<Duration>,
    wall: Vec<Duration>,
    events: u64,
}

impl Series {
    fn add(&mut self, run: Run, events: u64) {
        self.own.push(run.own);
        self.wall.push(run.wall);
        self.events = events;
    }

    fn own(&self, name: &str) -> Samples {
        Samples { name: name.to_string(), walls: self.own.clone(), events: self.events }
    }

    fn wall(&self, name: &str) -> Samples {
        Samples { name: name.to_string(), walls: self.wall.clone(), events: self.events }
    }
}

impl Bench {
    fn sections(&self) -> Result<Vec<String>> {
        let [mut alone, mut all, mut openat] = <[Series; 3]>::default();
        let made = self.calls_of_dd(COUNT)?;
        eprintln!("dd, {COUNT} blocks: {made} calls");
        // One round that does not count fills the caches.
        for round in 0..=self.runs {
            let runs = [
                (&mut alone, timed(&dd(COUNT))?, Stats { events: 0, dropped: 0 }),
                self.with_stats(&mut all, &[], Some(made))?,
                self.with_stats(&mut openat, &["-e", "openat"], None)?,
            ];
            for (series, run, stats) in runs {
                if round > 0 {
                    series.add(run, stats.events);
                }
            }
        }
        let (text, strace) = self.against_strace(&all, made)?;
        let own = |title: &str, series: &Series, name: &str, bar: f64| Group {
            title: title.to_string(),
            samples: vec![alone.own("untraced"), series.own(name)],
            bar: Some((0, bar)),
        };
        let every = own(&format!("dd's own time, {COUNT} blocks, all calls, text to a file"), &all, "all calls", 2.6);
        let some = own(&format!("dd's own time, {COUNT} blocks, `-e openat`"), &openat, "-e openat", 1.3);
        let exact =
            format!("\nEvents and drops add up to the {made} calls made in each run; 0 dropped in those that count.\n");
        Ok(vec![
            every.table() + &exact,
            text,
            some.table(),
            floor::tables(&self.trapline, self.scratch.path(), self.runs)?,
            self.start()?,
            self.neighbour()?,
            self.others(&all, &strace)?,
            format!("### Memory\n\n{}", figures(&self.memory()?)),
        ])
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_string_lossy().into_owned()
    }

    /// `trapline trace --backend kernel -o FILE --stats FILE OPTIONS --`
    fn traced(&self, backend: &str, options: &[&str], command: &[String]) -> Vec<String> {
        let trapline = self.trapline.to_string_lossy();
        let (out, stats) = (self.path("trapline.out"), self.path("stats.json"));
        let head = [&*trapline, "trace", "--backend", backend, "-o", &out, "--stats", &stats];
        head.iter().chain(options).chain(&["--"]).map(ToString::to_string).chain(command.to_vec()).collect()
    }

    /// A run under the kernel backend. All calls that dd makes have to be there or counted as dropped; a run that drops any, because
    /// other processes had the CPUs, is not a sample.
    fn with_stats<'a>(
        &self,
        series: &'a mut Series,
        options: &[&str],
        made: Option<u64>,
    ) -> Result<(&'a mut Series, Run, Stats)> {
        let mut again = LOSSY;
        let (run, stats) = loop {
            let run = timed(&self.traced("kernel", options, &dd(COUNT)))?;
            let stats = stats(&self.path("stats.json"))?;
            if let Some(made) = made
                && stats.events + stats.dropped != made
            {
                bail!("{} events and {} dropped, but {made} calls were made", stats.events, stats.dropped);
            }
            if stats.dropped == 0 {
                break (run, stats);
            }
            eprintln!("{} events were dropped: repeated", stats.dropped);
            again = again.checked_sub(1).with_context(|| format!("{} events were dropped", stats.dropped))?;
        };
        Ok((series, run, stats))
    }

    /// How many calls dd makes for so many blocks: what the ptrace backend sees of 1000 blocks, and two for each further one.
    fn calls_of_dd(&self, count: u64) -> Result<u64> {
        const SMALL: u64 = 1000;
        timed(&self.traced("ptrace", &[], &dd(SMALL)))?;
        let stats = stats(&self.path("stats.json"))?;
        if stats.dropped != 0 {
            bail!("{} of {} events were dropped by the ptrace backend", stats.dropped, stats.events);
        }
        Ok(stats.events + 2 * (count - SMALL))
    }

    /// The whole command against `strace -f -o`, whose time for fewer blocks is scaled by the calls.
    fn against_strace(&self, all: &Series, made: u64) -> Result<(String, Samples)> {
        let out = self.path("strace.out");
        let fewer = self.calls_of_dd(FEWER)?;
        let argv = [["strace", "-f", "-o", &out].map(String::from).to_vec(), dd(FEWER)].concat();
        let scale = made as f64 / fewer as f64;
        let mut walls = Vec::new();
        for _ in 0..SLOW_RUNS {
            let run = timed(&argv)?;
            let lines = fs::read_to_string(&out)?.lines().filter(|line| line.contains('(')).count() as u64;
            if lines != fewer {
                bail!("strace shows {lines} calls of {fewer}");
            }
            walls.push(run.wall.mul_f64(scale));
        }
        let strace = Samples { name: "strace".to_string(), walls, events: made };
        let all = all.wall("trapline");
        let times = strace.ratio(&all);
        let title = format!("Whole command, {COUNT} blocks, all calls, text to a file");
        let group = Group { title, samples: vec![strace, all], bar: None };
        let text = format!(
            "{}\nstrace: measured with {FEWER} blocks, scaled by the calls ({scale:.3}).\n\n\
             Bar: strace at least 30 x trapline: {times:.1}, {}.\n",
            group.table(),
            if times >= 30.0 { "met" } else { "**missed**" },
        );
        let mut samples = group.samples;
        Ok((text, samples.swap_remove(0)))
    }

    /// From the start of the tracer to its end. With few calls selected, another process closes tracepoints for a tenth of a second
    /// after the end, which slows down whatever runs then: that is measured by itself.
    fn start(&self) -> Result<String> {
        let trapline = self.trapline.to_string_lossy();
        let kernel = [&*trapline, "trace", "--backend", "kernel", "-o", "/dev/null", "true"];
        let openat = [&*trapline, "trace", "--backend", "kernel", "-e", "openat", "-o", "/dev/null", "true"];
        let strace = ["strace", "-f", "-o", "/dev/null", "true"];
        let case = |name: &str, argv: &[&str]| Case {
            name: name.to_string(),
            argv: argv.iter().map(ToString::to_string).collect(),
            env: Vec::new(),
            check: Box::new(|| Ok(0)),
        };
        let all = [case("untraced", &["true"]), case("strace", &strace), case("kernel", &kernel)];
        let samples = alternate(&all, self.runs)?;
        let all = Group { title: "Start and end: true".to_string(), samples, bar: Some((1, 1.2)) }.table();
        let samples = alternate(&[case("untraced", &["true"]), case("kernel, -e openat", &openat)], self.runs)?;
        let one = Group { title: "Start and end with one call: true".to_string(), samples, bar: None }.table();
        Ok([all, one, self.first_event()?].join("\n"))
    }

    /// From trapline's main to the first event of the command, as `--stats` has it.
    fn first_event(&self) -> Result<String> {
        let selections: [(&str, &[&str]); 2] = [("all calls", &[]), ("`-e openat`", &["-e", "openat"])];
        let mut all = selections.map(|(name, _)| Samples { name: name.to_string(), walls: Vec::new(), events: 0 });
        for round in 0..=self.runs {
            for ((_, options), samples) in selections.iter().zip(&mut all) {
                // The links of single calls are closed by a process that outlives trapline.
                sleep(Duration::from_millis(200));
                let argv = self.traced("kernel", options, &["true".to_string()]);
                lab::run(Command::new(&argv[0]).args(&argv[1..]).stderr(Stdio::null()))?;
                let text = fs::read_to_string(self.path("stats.json"))?;
                let stats: serde_json::Value = serde_json::from_str(&text)?;
                let first = stats["first_event_ns"].as_u64().with_context(|| format!("no first event: {text}"))?;
                if round > 0 {
                    samples.walls.push(Duration::from_nanos(first));
                }
            }
        }
        let rows = all.map(|samples| Figure {
            name: format!("from main to the first event of `true`, {}", samples.name),
            value: samples.median().as_secs_f64() * 1e3,
            unit: "ms",
            bar: Some(8.0),
        });
        Ok(format!("### First event\n\n{}", figures(&rows)))
    }

    /// An untraced dd, while a sleep is traced.
    fn neighbour(&self) -> Result<String> {
        let options: [(&str, Option<&[&str]>); 3] =
            [("nothing is traced", None), ("-e openat", Some(&["-e", "openat"])), ("all calls", Some(&[]))];
        let mut series = <[Series; 3]>::default();
        for round in 0..=self.runs {
            for ((_, options), series) in options.iter().zip(&mut series) {
                let tracer = options.map(|options| self.traced_sleep(options)).transpose()?;
                let run = timed(&dd(COUNT))?;
                drop(tracer);
                if round > 0 {
                    series.add(run, 0);
                }
            }
        }
        let samples = options.iter().zip(&series).map(|((name, _), series)| series.own(name)).collect();
        let title = format!("An untraced neighbour's own time: dd, {COUNT} blocks, while a sleep is traced");
        Ok(Group { title, samples, bar: None }.table())
    }

    fn traced_sleep(&self, options: &[&str]) -> Result<Tracer> {
        let out = self.path("trapline.out");
        let _ = fs::remove_file(&out);
        let argv = self.traced("kernel", options, &["sleep".to_string(), "1000".to_string()]);
        let tracer =
            Tracer(Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let started = Instant::now();
        while fs::metadata(&out).map_or(0, |file| file.len()) == 0 {
            if started.elapsed() > Duration::from_secs(10) {
                bail!("{argv:?}: no event of sleep");
            }
            sleep(Duration::from_millis(5));
        }
        // The rest of sleep's start.
        sleep(Duration::from_millis(100));
        Ok(tracer)
    }

    /// perf trace and bpftrace, where they are installed.
    fn others(&self, all: &Series, strace: &Samples) -> Result<String> {
        let mut rows = vec![strace.clone_as("strace -f -o (scaled)")];
        let mut notes = String::new();
        let out = self.path("other.out");
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut by_path = dd(COUNT);
        by_path[0] = on_path("dd")?;
        let by_path = by_path.join(" ");
        let script = "tracepoint:raw_syscalls:sys_exit /pid == cpid/ { printf(\"%d %d\\n\", args->id, args->ret) }";
        let tools = [
            ("perf trace", "linux-perf", [words(&["perf", "trace", "-o", &out, "--"]), dd(COUNT)].concat()),
            ("bpftrace", "bpftrace", words(&["bpftrace", "-q", "-o", &out, "-e", script, "-c", &by_path])),
        ];
        for (name, package, argv) in tools {
            if !installed(&argv[0]) {
                notes += &format!("\nSkipped: {name} (package {package} is not installed).\n");
                continue;
            }
            let mut series = Series::default();
            let mut lost = 0;
            for _ in 0..SLOW_RUNS {
                let run = match timed(&argv) {
                    Ok(run) => run,
                    Err(e) => {
                        notes += &format!("\nSkipped: {name} ({}).\n", format!("{e:#}").lines().next().unwrap_or(""));
                        break;
                    }
                };
                let text = String::from_utf8_lossy(&fs::read(&out)?).into_owned();
                let shown = text.lines().filter(|line| !line.is_empty() && !lossy(line).0).count() as u64;
                lost = text.lines().chain(run.stderr.lines()).map(|line| lossy(line).1).sum();
                series.add(run, shown);
            }
            if !series.wall.is_empty() {
                notes += &format!(
                    "\n{name}: {} lines and {lost} events lost, by its own account, of {} calls in the last run.\n",
                    series.events, all.events
                );
                rows.push(series.wall(name));
            }
        }
        rows.push(all.wall("trapline, kernel"));
        let title = format!("Other tracers: whole command, {COUNT} blocks, all calls to a file");
        Ok(Group { title, samples: rows, bar: None }.table() + &notes)
    }

    /// The peak of trapline's process without the pages of the rings, which are mapped twice each.
    fn memory(&self) -> Result<Vec<Figure>> {
        // Short, but not so short that its rings are gone before they are looked at.
        let pause = ["sleep", "0.05"].map(String::from).to_vec();
        let workloads = [("sleep 0.05", pause), ("dd, all calls", dd(COUNT))];
        let mut figures = Vec::new();
        for (name, command) in workloads {
            let argv = self.traced("kernel", &[], &command);
            let (mut peak, mut rings) = (0, 0);
            // The most of three runs: it is a peak that is asked for.
            for _ in 0..3 {
                let (p, r) = peak_and_rings(&argv)?;
                (peak, rings) = (peak.max(p.saturating_sub(r)), r);
            }
            let bar = Some(24.0);
            let bytes = |kib: u64| kib as f64 * 1024.0 / MB;
            figures.push(Figure {
                name: format!("peak less the rings, {name} (VmHWM)"),
                value: bytes(peak),
                unit: "MB",
                bar,
            });
            figures.push(Figure { name: format!("mapped rings, {name}"), value: bytes(rings), unit: "MB", bar: None });
        }
        Ok(figures)
    }
}

impl Samples {
    fn clone_as(&self, name: &str) -> Samples {
        Samples { name: name.to_string(), walls: self.walls.clone(), events: self.events }
    }
}

/// A tracer that waits for a sleep; both end with this value.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        // trapline passes the signal on to its command and ends with it.
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(5) {
            if let Ok(Some(_)) = self.0.try_wait() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number of lost events that a line reports, if any: perf's `LOST 12 events!`, bpftrace's `Lost 12 events`.
fn lossy(line: &str) -> (bool, u64) {
    let mut words = line.split_whitespace();
    if !words.next().is_some_and(|word| word.eq_ignore_ascii_case("lost")) {
        return (false, 0);
    }
    (true, words.next().and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Runs trapline once: its VmHWM and what of it are the rings, in KiB. The kernel keeps the peak and the rings are mapped from
/// the start, so that it does not matter when we look, only that we look near the end too.
pub fn peak_and_rings(argv: &[String]) -> Result<(u64, u64)> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let proc = PathBuf::from(format!("/proc/{}", child.id()));
    let (mut peak, mut rings) = (0, 0);
    let status = loop {
        peak = peak.max(kib_of(&proc.join("status"), "VmHWM:").unwrap_or(0));
        rings = rings.max(ring_pages(&proc.join("smaps")).unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(3));
    };
    if !status.success() || peak == 0 || rings == 0 {
        bail!("{command:?}: {status}, peak {peak} KiB, rings {rings} KiB");
    }
    Ok((peak, rings))
}

fn kib_of(path: &Path, field: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    kib(text.lines().find_map(|line| line.strip_prefix(field))?)
}

fn kib(value: &str) -> Option<u64> {
    value.trim().strip_suffix(" kB")?.parse().ok()
}

/// The resident pages of mappings of BPF maps.
fn ring_pages(smaps: &Path) -> Option<u64> {
    Some(rings_in(&fs::read_to_string(smaps).ok()?))
}

fn rings_in(smaps: &str) -> u64 {
    let (mut inside, mut sum) = (false, 0);
    for line in smaps.lines() {
        if let Some(rss) = line.strip_prefix("Rss:") {
            sum += if inside { kib(rss).unwrap_or(0) } else { 0 };
        } else if line.split_whitespace().next().is_some_and(|word| word.contains('-')) {
            inside = line.ends_with("anon_inode:bpf-map");
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{lossy, rings_in};
    use crate::bench::dd::copied;
    use std::time::Duration;

    #[test]
    fn what_tools_say() {
        let dd = "1+0 records in\n1+0 records out\n1000000 bytes (1.0 MB, 977 KiB) copied, 0.25 s, 4.5 MB/s\n";
        assert_eq!(copied(dd), Some(Duration::from_millis(250)));
        assert_eq!(copied("dd: failed"), None);
        assert_eq!(lossy("LOST 2421 events!"), (true, 2421));
        assert_eq!(lossy("Lost 7 events"), (true, 7));
        assert_eq!(lossy("0.1 read()"), (false, 0));
    }

    #[test]
    fn only_the_rings_count() {
        let smaps = "7f00-7f01 r--s 0 00:10 1 anon_inode:bpf-map\nSize: 8 kB\nRss:   8 kB\nVmFlags: rd sh\n\
                     7f02-7f03 rw-p 0 00:00 0 [heap]\nRss:  100 kB\n7f04-7f05 rw-s 0 00:10 1 anon_inode:bpf-map\nRss: 4 kB\n";
        assert_eq!(rings_in(smaps), 12);
    }
}
