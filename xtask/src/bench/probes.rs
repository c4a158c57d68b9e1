//! `cargo xtask bench probes`: how soon the first event comes, and what a probe costs whoever reaches it: filtered out, counted,
//! recorded; next to empty programs and to bpftrace.
//!
//! tests/programs/site.c reaches a place so many times and says itself how long that took, so that the start and the end of a
//! tracer are in none of these times. Each run is checked: all events are there, none was dropped.

use super::Options;
use super::dd::{installed, on_path};
use super::kernel::peak_and_rings;
use super::measure::{Case, Samples};
use super::memory::peak_kib;
use super::report::{Figure, Group, figures, nanoseconds, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Times that a function is called. Reaching a uprobe takes an exception.
const CALLS: u64 = 100_000;
/// Hits of probes in the process.
const HITS: u64 = 2_000_000;
/// System calls, which are cheaper to trace.
const SYSCALLS: u64 = 1_000_000;
/// System calls that are recorded: as many as trapline's rings take while its reader is not on a processor.
const RECORDED: u64 = 300_000;
const MB: f64 = 1e6;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("probes are measured as root");
    }
    let scratch = Scratch::new("bench-probes")?;
    let bench = Bench {
        trapline: lab::build_trapline()?,
        before: options.before.clone(),
        empty: lab::build_example("kernel", "empty_programs")?,
        site: lab::build_program("site", scratch.path())?,
        bpftrace: installed("bpftrace"),
        runs: options.runs,
        scratch,
    };
    let peer = if bench.bpftrace { lab::said("bpftrace", &["--version"]) } else { "no bpftrace".to_string() };
    let body = format!(
        "## Probes\n\nMedians of {} runs in turn. {} {peer}.\n\n{}",
        options.runs,
        provenance(),
        bench.sections()?.join("\n"),
    );
    println!("{body}");
    lab::write_section("bench probes", &body)
}

struct Bench {
    trapline: PathBuf,
    /// Another trapline, that events are recorded with too.
    before: Option<PathBuf>,
    empty: PathBuf,
    site: PathBuf,
    bpftrace: bool,
    runs: usize,
    scratch: Scratch,
}

/// Reads what a command printed; returns the number of events.
type Check = Box<dyn Fn(&str) -> Result<u64>>;

/// A place that filters are compared at.
struct Held {
    title: &'static str,
    /// Where the empty programs go.
    places: Vec<String>,
    mode: &'static str,
    n: u64,
    /// Filters, and the options that ask for them.
    filters: [(&'static str, Vec<String>); 2],
}

/// A command that prints how long something took, and what its output must be.
struct Timed {
    name: String,
    argv: Vec<String>,
    check: Check,
}

impl Bench {
    fn sections(&self) -> Result<Vec<String>> {
        let mut sections = self.first_event()?;
        sections.extend(self.filtered_out()?);
        sections.push(self.recorded(
            "uprobe with 3 arguments",
            &format!("uprobe:{}:three", self.word(&self.site)),
            ("function", CALLS),
            Some(1.1),
        )?);
        let tracepoint = "tracepoint:syscalls:sys_enter_getppid";
        sections.push(self.recorded("tracepoint", tracepoint, ("call", RECORDED), None)?);
        sections.push(self.in_process("static probe", "static", "usdt:SITE:site:turn", Some(45.0))?);
        sections.push(self.in_process("function, its entry", "function", "uprobe:SITE:three", None)?);
        sections.push(self.in_process("function, its return", "function", "uretprobe:SITE:three", None)?);
        sections.push(format!("### Memory\n\n{}", figures(&self.memory()?)));
        if !self.bpftrace {
            sections.push("Skipped: bpftrace (package bpftrace is not installed).\n".to_string());
        }
        Ok(sections)
    }

    fn word(&self, path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    fn path(&self, name: &str) -> String {
        self.word(&self.scratch.path().join(name))
    }

    /// `trapline record --backend kernel --force -o DIR --stats FILE OPTIONS -- COMMAND`
    fn record(&self, options: &[&str], command: &[String]) -> Vec<String> {
        self.record_with(&self.trapline, options, command)
    }

    fn record_with(&self, trapline: &Path, options: &[&str], command: &[String]) -> Vec<String> {
        let (dir, stats) = (self.path("trace"), self.path("stats.json"));
        let head = [&*self.word(trapline), "record", "--backend", "kernel", "--force", "-o", &dir, "--stats", &stats];
        head.iter().chain(options).chain(&["--"]).map(ToString::to_string).chain(command.to_vec()).collect()
    }

    /// `bpftrace -q -e SCRIPT -c COMMAND`
    fn script(script: &str, command: &[String]) -> Vec<String> {
        let command = command.join(" ");
        ["bpftrace", "-q", "-e", script, "-c", &command].map(String::from).to_vec()
    }

    fn site(&self, mode: &str, n: u64) -> Vec<String> {
        vec![self.word(&self.site), mode.to_string(), n.to_string()]
    }

    /// From the tracer's exec to the first openat of the command that it has started.
    fn first_event(&self) -> Result<Vec<String>> {
        let command = [on_path("true")?];
        let now = [self.word(&self.site), "now".to_string()];
        let trapline = [now.to_vec(), self.record(&["-e", "syscall:openat"], &command)].concat();
        let script = "tracepoint:syscalls:sys_enter_openat /pid == cpid/ { printf(\"first %llu\\n\", nsecs); }";
        let peer = [now.to_vec(), Self::script(script, &command)].concat();
        let series = |name: &str| Samples { name: name.to_string(), walls: Vec::new(), events: 1 };
        let (mut from_main, mut from_exec) = (series("trapline, from main"), series("trapline, from exec"));
        let mut other = series("bpftrace, from exec");
        for round in 0..=self.runs {
            let begun = number_after(&printed(&trapline)?, "now_ns")?;
            let main = self.stats()?["first_event_ns"].as_u64().context("no first_event_ns in the statistics")?;
            let exec = self.first_of_trace()?.checked_sub(begun).context("an event from before the tracer")?;
            ensure!(main <= exec, "{main} ns from main to the first event, {exec} ns from exec");
            let theirs = match self.bpftrace {
                true => {
                    let text = printed(&peer)?;
                    let first = number_after(&text, "first")?;
                    first.checked_sub(number_after(&text, "now_ns")?).context("an event from before the tracer")?
                }
                false => 0,
            };
            if round > 0 {
                for (series, ns) in [(&mut from_main, main), (&mut from_exec, exec), (&mut other, theirs)] {
                    series.walls.push(Duration::from_nanos(ns));
                }
            }
        }
        let mut text = "`record -e syscall:openat -o DIR -- true`, next to bpftrace with a printf of `nsecs` at \
                        `tracepoint:syscalls:sys_enter_openat /pid == cpid/`. Both times are those of the event, by the monotonic clock; it \
                        is read before the exec of the tracer. `from main` is what --stats says (`first_event_ns`).\n"
            .to_string();
        let mut samples = Vec::new();
        if self.bpftrace {
            let times = other.ratio(&from_main);
            let met = if times >= 15.0 { "met" } else { "**missed**" };
            text += &format!("\nBar: trapline (from main) at least 15 x sooner than bpftrace: {times:.1}, {met}.\n");
            samples.push(other);
        }
        samples.extend([from_exec, from_main]);
        Ok(vec![Group { title: "First event".to_string(), samples, bar: None }.table() + "\n" + &text])
    }

    /// The time of the first openat in the trace, ns of the monotonic clock.
    fn first_of_trace(&self) -> Result<u64> {
        let argv = [&*self.word(&self.trapline), "report", &self.path("trace"), "--as", "json"].map(String::from);
        let text = printed(&argv)?;
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let starts = events.filter(|event| event["name"] == "openat").filter_map(|event| event["start_ns"].as_u64());
        starts.min().context("no openat in the trace")
    }

    fn stats(&self) -> Result<Value> {
        let text = fs::read_to_string(self.path("stats.json")).context("trapline left no statistics")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Events that filters reject, next to empty programs at the same places, attached in the same way.
    fn filtered_out(&self) -> Result<Vec<String>> {
        let mut sections = vec![
            "### Filtered out\n\nsite.c's own time, each event at its place held back by a filter, next to a program `r0 = 0; exit` \
             attached in the same way. Each run's counters say that all events were filtered out. Calls have programs at entry and \
             return; the empty ones are two as well.\n"
                .to_string(),
        ];
        for held in self.places() {
            sections.push(self.filter_group(held)?);
        }
        Ok(sections)
    }

    fn places(&self) -> Vec<Held> {
        let uprobe = format!("uprobe:{}:three", self.word(&self.site));
        let (enter, exit) = ("tracepoint:syscalls:sys_enter_getppid", "tracepoint:syscalls:sys_exit_getppid");
        let raw = "tracepoint:raw_syscalls:sys_enter";
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let with = |probe: &str, filter: &str| words(&["-e", &format!("{probe} /{filter}/")]);
        let call = |filter: &str| words(&["-e", "syscall:getppid", "--where", filter]);
        let own = "pid == 1";
        let filters = |probe: &str, name, filter: &str| [(own, with(probe, own)), (name, with(probe, filter))];
        let calls = |title, places: &[&str], filters| {
            let (mode, n) = ("call", SYSCALLS);
            Held { title, places: words(places), mode, n, filters }
        };
        vec![
            Held {
                title: "a uprobe",
                places: words(&[&uprobe]),
                mode: "function",
                n: CALLS,
                filters: filters(&uprobe, "arg2 == 12345", "args.arg2 == 12345"),
            },
            calls("a tracepoint", &[enter], filters(enter, "uid == 12345", "uid == 12345")),
            calls("the tracepoint of all calls", &[raw], filters(raw, "args.id == 12345", "args.id == 12345")),
            calls(
                "a call, by its own tracepoints",
                &[enter, exit],
                [(own, call(own)), ("retval == -12345", call("retval == -12345"))],
            ),
            calls(
                "all calls",
                &["raw:sys_enter", "raw:sys_exit"],
                [(own, words(&["--where", own])), ("retval == -12345", words(&["--where", "retval == -12345"]))],
            ),
        ]
    }

    fn filter_group(&self, held: Held) -> Result<String> {
        let Held { title, places, mode, n, filters } = held;
        let site = self.site(mode, n);
        let empty = [vec![self.word(&self.empty)], places, vec!["--".to_string()], site.clone()].concat();
        let none: fn(&str) -> Result<u64> = |_| Ok(0);
        let mut cases = vec![
            Timed { name: "nothing".to_string(), argv: site.clone(), check: Box::new(none) },
            Timed { name: "empty".to_string(), argv: empty, check: Box::new(none) },
        ];
        for (filter, options) in filters {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let stats = self.path("stats.json");
            let check = move |_: &str| filtered(&stats, n);
            cases.push(Timed {
                name: format!("`{filter}`"),
                argv: self.record(&options, &site),
                check: Box::new(check),
            });
        }
        let samples = in_turn(&cases, self.runs)?;
        let per_hit = nanoseconds(&samples, n);
        let verdicts: String = samples[2..]
            .iter()
            .map(|filter| {
                let ratio = filter.ratio(&samples[1]);
                let met = if ratio <= 1.15 { "met" } else { "**missed**" };
                format!("Bar: {} at most 1.15 x empty: {ratio:.2}, {met}.\n", filter.name)
            })
            .collect();
        let group = Group { title: format!("Filtered out at {title}, {n} times"), samples, bar: None };
        Ok(format!("{}\n{per_hit}\n{verdicts}", group.table()))
    }

    /// A probe whose events are all recorded, next to an empty program and a count of bpftrace at the same place. `bar`: how many times
    /// bpftrace's time it may take.
    fn recorded(&self, title: &str, probe: &str, (mode, n): (&str, u64), bar: Option<f64>) -> Result<String> {
        let site = self.site(mode, n);
        let none: fn(&str) -> Result<u64> = |_| Ok(0);
        let empty = [vec![self.word(&self.empty), probe.to_string(), "--".to_string()], site.clone()].concat();
        let mut cases = vec![
            Timed { name: "untraced".to_string(), argv: site.clone(), check: Box::new(none) },
            Timed { name: "empty".to_string(), argv: empty, check: Box::new(none) },
        ];
        if self.bpftrace {
            // A place of the whole machine may be reached by others meanwhile; the function is nobody else's.
            let shared = probe.starts_with("tracepoint:");
            let counted = move |text: &str| {
                let count = number_after(text, "@:")?;
                ensure!(count >= n && (shared || count == n), "bpftrace counts {count} of {n}");
                Ok(n)
            };
            cases.push(Timed {
                name: "bpftrace, count()".to_string(),
                argv: Self::script(&format!("{probe} {{ @ = count(); }}"), &site),
                check: Box::new(counted),
            });
        }
        let before = self.before.iter().map(|b| ("before, recorded", b));
        for (name, trapline) in before.chain([("trapline, recorded", &self.trapline)]) {
            let stats = self.path("stats.json");
            cases.push(Timed {
                name: name.to_string(),
                argv: self.record_with(trapline, &["-e", probe], &site),
                check: Box::new(move |_: &str| all_recorded(&stats, n)),
            });
        }
        let samples = in_turn(&cases, self.runs)?;
        let per_hit = nanoseconds(&samples, n);
        let above = match (&self.before, &samples[..]) {
            (Some(_), [_, empty, .., before, after]) => above_empty(empty, before, after, n),
            _ => String::new(),
        };
        let bar = bar.filter(|_| self.bpftrace).map(|bar| (2, bar));
        let group = Group { title: format!("Recorded: {title}, {n} times, site.c's own time"), samples, bar };
        Ok(format!("{}\n{per_hit}{above}\nAll {n} recorded in each run, 0 dropped.\n", group.table()))
    }

    /// A probe whose hits are recorded by a jump in the process, next to the kernel's breakpoint. `bar`: ns above untraced.
    fn in_process(&self, title: &str, mode: &str, probe: &str, bar: Option<f64>) -> Result<String> {
        let probe = probe.replace("SITE", &self.word(&self.site));
        let none: fn(&str) -> Result<u64> = |_| Ok(0);
        let (dir, stats) = (self.path("trace"), self.path("stats.json"));
        let words = ["record", "--backend", "agent", "--force", "-o", &dir, "--stats", &stats, "--buffer", "256M"];
        let mut argv = [vec![self.word(&self.trapline)], words.map(String::from).to_vec()].concat();
        argv.extend(["-e".to_string(), probe.clone(), "--".to_string()]);
        let all = move |stats: &str, n| all_recorded(stats, n);
        let cases = [
            Timed { name: "untraced".into(), argv: self.site(mode, HITS), check: Box::new(none) },
            Timed {
                name: "in the process, recorded".into(),
                argv: [argv, self.site(mode, HITS)].concat(),
                check: {
                    let stats = stats.clone();
                    Box::new(move |_: &str| all(&stats, HITS))
                },
            },
        ];
        let samples = in_turn(&cases, self.runs)?;
        let kernel = [Timed {
            name: "in the kernel, recorded".into(),
            argv: self.record(&["-e", &probe], &self.site(mode, CALLS)),
            check: Box::new(move |_: &str| all(&stats, CALLS)),
        }];
        let of_kernel = in_turn(&kernel, self.runs)?;
        let ns = |s: &Samples, n: u64| s.median().as_secs_f64() * 1e9 / n as f64;
        let above = ns(&samples[1], HITS) - ns(&samples[0], HITS);
        let verdict = bar.map_or(String::new(), |bar| {
            let met = if above <= bar { "met" } else { "**missed**" };
            format!("Bar: at most {bar:.0} ns above untraced: {above:.1}, {met}.\n")
        });
        Ok(format!(
            "### In the process: {title}\n\n| | ns a hit |\n|---|---:|\n| untraced | {:.1} |\n| in the process, recorded | {:.1} |\n| in the kernel, recorded | {:.0} |\n\nAll {HITS} recorded in each run, 0 dropped. {verdict}",
            ns(&samples[0], HITS),
            ns(&samples[1], HITS),
            ns(&of_kernel[0], CALLS),
        ))
    }

    fn memory(&self) -> Result<Vec<Figure>> {
        let uprobe = format!("uprobe:{}:three", self.word(&self.site));
        let workloads = [
            // Not so short that its rings are gone before they are looked at.
            ("openat of sleep", vec!["-e", "syscall:openat"], vec![on_path("sleep")?, "0.05".into()], Some(20.0)),
            ("the uprobe recorded", vec!["-e", &uprobe], self.site("function", CALLS), None),
        ];
        let bytes = |kib: u64| kib as f64 * 1024.0 / MB;
        let figure = |name: String, kib: u64, bar| Figure { name, value: bytes(kib), unit: "MB", bar };
        let mut all = Vec::new();
        for (name, options, command, bar) in workloads {
            let argv = self.record(&options, &command);
            // The most of three runs: it is a peak that is asked for.
            let mut most = (0, 0);
            for _ in 0..3 {
                most = most.max(peak_and_rings(&argv)?);
            }
            let (peak, rings) = most;
            all.push(figure(format!("trapline, peak less the rings, {name} (VmHWM)"), peak.saturating_sub(rings), bar));
            all.push(figure(format!("trapline, mapped rings, {name}"), rings, None));
        }
        if self.bpftrace {
            let script = format!("{uprobe} {{ @ = count(); }}");
            let argv = Self::script(&script, &self.site("function", CALLS));
            let case = Case { name: "bpftrace".to_string(), argv, env: Vec::new(), check: Box::new(|| Ok(0)) };
            all.push(figure("bpftrace, peak, the uprobe counted (VmHWM)".to_string(), peak_kib(&case)?, None));
        }
        Ok(all)
    }
}

/// Checks that `n` events or more were filtered out, and none of them was recorded or lost.
fn filtered(stats: &str, n: u64) -> Result<u64> {
    let text = fs::read_to_string(stats).context("trapline left no statistics")?;
    let stats: Value = serde_json::from_str(&text)?;
    let probes = stats["probes"].as_object().context("no probes in the statistics")?;
    let sum = |name: &str| probes.values().filter_map(|probe| probe[name].as_u64()).sum::<u64>();
    let (filtered, lost) = (sum("filtered"), sum("dropped") + stats["missed"].as_u64().unwrap_or(0));
    ensure!(filtered >= n && lost == 0, "{filtered} of {n} filtered out, {lost} lost: {text}");
    Ok(n)
}

/// What recording `n` events costs above an empty program, before and after a change: by the best run of each, because a uprobe's exception
/// takes many times what its program does, and other work on the machine more than that.
fn above_empty(empty: &Samples, before: &Samples, after: &Samples, n: u64) -> String {
    const BAR: f64 = 0.8;
    let above = |s: &Samples| (s.min().as_secs_f64() - empty.min().as_secs_f64()) * 1e9 / n as f64;
    let (before, after) = (above(before), above(after));
    let head = format!("\nBest runs, above empty: before {before:.0} ns, now {after:.0} ns each time.");
    if before <= 0.0 {
        return format!("{head} The run was too noisy to compare them.\n");
    }
    let met = if after / before <= BAR { "met" } else { "**missed**" };
    format!("{head}\n\nBar: above empty at most {BAR:.2} x what it was before: {:.2}, {met}.\n", after / before)
}

/// Checks that `n` events were recorded, and none was lost.
fn all_recorded(stats: &str, n: u64) -> Result<u64> {
    let text = fs::read_to_string(stats).context("trapline left no statistics")?;
    let stats: Value = serde_json::from_str(&text)?;
    let [events, dropped, missed] = ["events", "dropped", "missed"].map(|name| stats[name].as_u64().unwrap_or(0));
    ensure!(
        events == n && dropped + missed == 0,
        "{events} of {n} recorded, {dropped} dropped, {missed} missed: {text}"
    );
    Ok(events)
}

/// The number after a word.
fn number_after(text: &str, word: &str) -> Result<u64> {
    let mut words = text.split_whitespace().skip_while(|w| *w != word).skip(1);
    words.next().and_then(|number| number.parse().ok()).with_context(|| format!("no '{word}' and a number in: {text}"))
}

/// What a command prints. It must succeed.
fn printed(argv: &[String]) -> Result<String> {
    sleep(Duration::from_millis(20));
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs all cases in turn; their times are those that site.c prints. One round that does not count fills the caches.
fn in_turn(cases: &[Timed], runs: usize) -> Result<Vec<Samples>> {
    let mut samples: Vec<Samples> =
        cases.iter().map(|case| Samples { name: case.name.clone(), walls: Vec::new(), events: 0 }).collect();
    for round in 0..=runs {
        for (case, samples) in cases.iter().zip(&mut samples) {
            let said = || -> Result<(u64, u64)> {
                let text = printed(&case.argv)?;
                Ok((number_after(&text, "loop_ns")?, (case.check)(&text)?))
            };
            let (ns, events) = said().with_context(|| format!("{}, round {round}: {:?}", case.name, case.argv))?;
            samples.events = events;
            if round > 0 {
                samples.walls.push(Duration::from_nanos(ns));
            }
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::{above_empty, all_recorded, filtered, number_after};
    use crate::bench::measure::Samples;
    use crate::lab::Scratch;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn costs_are_compared_above_an_empty_program() {
        let of = |ms: &[u64]| Samples {
            name: String::new(),
            walls: ms.iter().copied().map(Duration::from_millis).collect(),
            events: 0,
        };
        let (empty, before) = (of(&[100, 900]), of(&[200, 300]));
        let with = |after| above_empty(&empty, &before, &of(&[after, 400]), 1_000_000);
        assert!(with(180).ends_with("before: 0.80, met.\n"));
        assert!(with(190).contains("before 100 ns, now 90 ns each") && with(190).ends_with("0.90, **missed**.\n"));
        assert!(above_empty(&before, &empty, &before, 1).ends_with("too noisy to compare them.\n"));
    }

    #[test]
    fn numbers_behind_words() {
        let text = "now_ns 17\nfirst 5\nfirst 6\n\n@: 200\n";
        assert_eq!(number_after(text, "first").unwrap(), 5);
        assert_eq!(number_after(text, "@:").unwrap(), 200);
        assert!(number_after(text, "loop_ns").is_err());
    }

    #[test]
    fn counters_that_do_not_add_up_are_errors() {
        let scratch = Scratch::new("bench-probes-test").unwrap();
        let path = scratch.path().join("stats").to_string_lossy().into_owned();
        let with = |text: &str| fs::write(&path, text).unwrap();
        with(r#"{"events":5,"dropped":0,"missed":0,"probes":{"a":{"filtered":3,"dropped":0},"b":{"filtered":4}}}"#);
        assert_eq!(filtered(&path, 7).unwrap(), 7);
        assert!(filtered(&path, 8).is_err());
        assert_eq!(all_recorded(&path, 5).unwrap(), 5);
        assert!(all_recorded(&path, 6).is_err());
        with(r#"{"events":5,"dropped":1,"missed":0,"probes":{"a":{"filtered":9,"dropped":1}}}"#);
        assert!(all_recorded(&path, 5).is_err() && filtered(&path, 5).is_err());
    }
}
