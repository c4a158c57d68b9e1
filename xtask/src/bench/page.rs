//! `cargo xtask bench page`: `report --as html` of large traces: what the file weighs, what writing it takes, and how it is in a browser.

use super::Options;
use super::chromium::{self, Seen};
use super::measure::{Case, alternate};
use super::memory::peak_kib;
use super::report::{Figure, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs of what takes seconds.
const FEW: usize = 5;
const MB: f64 = 1e6;

/// What is recorded, and what its page may take.
struct Load {
    name: &'static str,
    /// Arguments of tests/programs/page_load.c.
    program: &'static [&'static str],
    probes: &'static [&'static str],
    /// The least number of events.
    events: u64,
    /// MB, s to write, MB to write, ms to the picture, ms of a zoom step, MB of the page.
    bars: [Option<f64>; 6],
}

const LOADS: [Load; 2] = [
    Load {
        name: "2 M calls, 750 threads",
        program: &["calls", "750", "2000000"],
        probes: &["syscall:*"],
        events: 2_000_000,
        bars: [Some(15.0), Some(5.0), Some(200.0), Some(1500.0), Some(16.0), None],
    },
    Load {
        name: "5 M mixed events",
        program: &["mixed", "1000000"],
        probes: &["syscall:*", "function:step", "heap:malloc,heap:free", "profile:hz:999 ustack"],
        events: 5_000_000,
        bars: [None, None, None, Some(3000.0), Some(16.0), Some(600.0)],
    },
];

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("the loads are recorded with the kernel backend, as root");
    }
    let browser = chromium::version().context("no chromium-headless-shell and no chromium")?;
    let bench = Bench { trapline: lab::build_trapline()?, scratch: Scratch::new("bench-page")?, runs: options.runs };
    let mut all = Vec::new();
    for load in &LOADS {
        all.extend(bench.load(load)?);
    }
    let load = fs::read_to_string("/proc/loadavg")?;
    let body = format!(
        "## Pages of millions of events\n\n`report --as html`: medians of {} runs, of writing {FEW}. {} {browser}, without a GPU, in a window of 1400 by 900. \
         A zoom step is what drawing takes by the page's clock, the slowest of 80, from the whole trace to a millionth and back; memory is the \
         most of the renderer's process, with the browser's program in it. Load of the machine (one minute): {}.\n\n{}",
        options.runs,
        provenance(),
        load.split(' ').next().unwrap_or_default(),
        figures(&all)
    );
    println!("{body}");
    lab::write_section("bench page", &body)
}

struct Bench {
    trapline: PathBuf,
    scratch: Scratch,
    runs: usize,
}

impl Bench {
    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_string_lossy().into_owned()
    }

    fn load(&self, load: &Load) -> Result<Vec<Figure>> {
        let (events, trace, page) = (self.record(load)?, self.path("trace"), self.path("page.html"));
        let argv = [&*self.trapline.to_string_lossy(), "report", "-q", &trace, "--as", &format!("html={page}")];
        let case = Case {
            name: "html".into(),
            argv: argv.map(String::from).to_vec(),
            env: Vec::new(),
            check: Box::new(|| Ok(0)),
        };
        let written = alternate(std::slice::from_ref(&case), FEW)?[0].median().as_secs_f64();
        let peak = peak_kib(&case)? as f64 * 1024.0 / MB;
        let size = fs::metadata(&page)?.len() as f64;
        let seen = (0..self.runs)
            .map(|_| chromium::open(page.as_ref(), self.scratch.path()))
            .collect::<Result<Vec<Seen>>>()?;
        let of = |what: fn(&Seen) -> f64| {
            let mut all: Vec<f64> = seen.iter().map(what).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        // The machine may be busy: a step is as long as in the run in which it was shortest. Each run begins with a new browser.
        let best = |nth: usize| seen.iter().filter_map(|s| s.steps.get(nth)).copied().fold(f64::INFINITY, f64::min);
        let slowest = (0..seen.iter().map(|s| s.steps.len()).min().unwrap_or(0)).map(best).fold(0.0, f64::max);
        let names = [
            "size of the file",
            "writing it",
            "memory of the writer",
            "from navigation to the picture",
            "slowest zoom step, each of its best run",
            "memory of the page",
        ];
        let values = [size / MB, written, peak, of(|s| s.ready), slowest, of(|s| s.memory)];
        let units = ["MB", "s", "MB", "ms", "ms", "MB"];
        let figure = |name: &str, value, unit, bar| Figure { name: format!("{}: {name}", load.name), value, unit, bar };
        let mut all = vec![figure("events", events as f64, "", None)];
        all.extend((0..values.len()).map(|n| figure(names[n], values[n], units[n], load.bars[n])));
        all.push(figure("bytes for each event", size / events as f64, "B", None));
        let of_run = of(|s| s.steps.iter().copied().fold(0.0, f64::max));
        all.push(figure("slowest zoom step of the median run", of_run, "ms", None));
        all.push(figure("mean zoom step", of(|s| s.steps.iter().sum::<f64>() / s.steps.len() as f64), "ms", None));
        Ok(all)
    }

    /// Records a load into the trace; the number of events, of which none may be lost.
    fn record(&self, load: &Load) -> Result<u64> {
        let (program, stats) = (lab::build_program("page_load", self.scratch.path())?, self.path("stats.json"));
        let mut record = Command::new(&self.trapline);
        record.args(["record", "-q", "--force", "--buffer", "64M", "--stats", &stats, "-o", &self.path("trace")]);
        load.probes.iter().for_each(|probe| {
            record.args(["-e", probe]);
        });
        lab::run(record.arg("--").arg(program).args(load.program))?;
        let stats: Value = serde_json::from_slice(&fs::read(&stats)?)?;
        let events = stats["events"].as_u64().context("events")?;
        ensure!(stats["dropped"] == 0, "{} events were dropped", stats["dropped"]);
        ensure!(events >= load.events, "{events} events of at least {}", load.events);
        Ok(events)
    }
}
