//! What a call costs next to two programs that do nothing: the least that any tracer by eBPF can cost. One table per CPU, because a
//! tracer may be slower on one of them than on the others: bpftrace is where its perf events are.

use super::dd::{dd, installed, on_path, stats, timed};
use super::measure::Samples;
use super::report::{Group, nanoseconds};
use crate::lab;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

/// Blocks that dd copies, each with a read and a write.
const COUNT: u64 = 500_000;
/// CPUs that are measured, at most.
const CPUS: usize = 2;
/// How often a run that drops events is repeated.
const LOSSY: usize = 3;

/// What is asked of trapline: a name, options in front of the command, whether events are to be counted, and how many times the time of
/// two empty programs it may take.
struct Asked {
    name: &'static str,
    options: &'static [&'static str],
    records: bool,
    bar: f64,
}

const ASKED: [Asked; 4] = [
    Asked { name: "trapline record", options: &["record", "-o", "DIR"], records: true, bar: 1.5 },
    Asked {
        name: "trapline record --no-duration",
        options: &["record", "--no-duration", "-o", "DIR"],
        records: true,
        bar: 1.3,
    },
    Asked { name: "trapline trace", options: &["trace", "-o", "FILE"], records: true, bar: 1.65 },
    Asked {
        name: "trapline record --where 'pid == 1'",
        options: &["record", "--where", "pid == 1", "-o", "DIR"],
        records: false,
        bar: 1.15,
    },
];

/// A row: its name, what runs, and the statistics that it leaves with the number of events that are to be in them.
struct Row {
    name: String,
    argv: Vec<String>,
    events: Option<bool>,
}

/// The tables. `dir`: for what tracers write.
pub fn tables(trapline: &Path, dir: &Path, runs: usize) -> Result<String> {
    let empty = lab::build_example("kernel", "empty_programs")?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(CPUS);
    (0..cpus).map(|cpu| table(trapline, &empty, dir, runs, cpu)).collect()
}

fn table(trapline: &Path, empty: &Path, dir: &Path, runs: usize, cpu: usize) -> Result<String> {
    let word = |path: &Path| path.to_string_lossy().into_owned();
    let (out, file, left) = (word(&dir.join("floor")), word(&dir.join("floor.out")), word(&dir.join("floor.json")));
    let pinned = [["taskset", "-c", &cpu.to_string()].map(String::from).to_vec(), dd(COUNT)].concat();
    let places = ["raw:sys_enter", "raw:sys_exit", "--"].map(String::from).to_vec();
    let row = |name: &str, argv: Vec<String>, events| Row { name: name.to_string(), argv, events };
    let mut rows = vec![
        row("untraced", pinned.clone(), None),
        row("two empty programs", [vec![word(empty)], places, pinned.clone()].concat(), None),
    ];
    let mut note = String::new();
    if installed("bpftrace") {
        let mut by_path = pinned.clone();
        by_path[0] = on_path("taskset")?;
        let script = "tracepoint:raw_syscalls:sys_exit /pid == cpid/ { @ = count(); }";
        let head = ["bpftrace", "-q", "-o", &file, "-e", script, "-c", &by_path.join(" ")];
        rows.push(row("bpftrace, count()", head.map(String::from).to_vec(), None));
    } else {
        note = "\nSkipped: bpftrace (package bpftrace is not installed).\n".to_string();
    }
    let first = rows.len();
    for asked in &ASKED {
        let options = asked.options.iter().map(|o| match *o {
            "DIR" => out.clone(),
            "FILE" => file.clone(),
            other => other.to_string(),
        });
        let own = ["--backend", "kernel", "--stats", &left, "--"].map(String::from);
        let argv = [word(trapline)].into_iter().chain(options).chain(own).chain(pinned.clone()).collect();
        rows.push(row(asked.name, argv, Some(asked.records)));
    }
    let mut samples: Vec<Samples> =
        rows.iter().map(|r| Samples { name: r.name.clone(), walls: Vec::new(), events: 0 }).collect();
    // One round that does not count fills the caches.
    for round in 0..=runs {
        for (row, sample) in rows.iter().zip(&mut samples) {
            let (time, events) = once(row, &out, &left)?;
            if round > 0 {
                sample.walls.push(time);
                sample.events = events;
            }
        }
    }
    let bars: String = ASKED
        .iter()
        .zip(&samples[first..])
        .map(|(asked, sample)| {
            let ratio = sample.ratio(&samples[1]);
            let met = if ratio <= asked.bar { "met" } else { "**missed**" };
            format!("Bar: {} at most {:.2} x {}: {ratio:.2}, {met}.\n", asked.name, asked.bar, samples[1].name)
        })
        .collect();
    let each = nanoseconds(&samples, 2 * COUNT);
    let title = format!("dd's own time next to empty programs, {COUNT} blocks, all calls, on CPU {cpu}");
    Ok(format!("{}\n{each}\n{bars}{note}\n", Group { title, samples, bar: None }.table()))
}

/// One run; a run that drops events, because other processes had the CPUs, is none.
fn once(row: &Row, out: &str, left: &str) -> Result<(std::time::Duration, u64)> {
    let mut again = LOSSY;
    loop {
        let _ = fs::remove_dir_all(out);
        let run = timed(&row.argv)?;
        let Some(records) = row.events else { return Ok((run.own, 0)) };
        let stats = stats(left)?;
        let enough = if records { stats.events + stats.dropped >= 2 * COUNT } else { stats.events == 0 };
        ensure!(enough, "{}: {} events and {} dropped of {COUNT} blocks", row.name, stats.events, stats.dropped);
        if stats.dropped == 0 {
            return Ok((run.own, stats.events));
        }
        ensure!(again > 0, "{}: {} events were dropped", row.name, stats.dropped);
        again -= 1;
    }
}
