//! `cargo xtask bench flat`: whether a call costs as much with many threads as with one.
//!
//! tests/programs/callers.c makes the same number of calls with any number of threads, and says itself how much processor time its threads
//! have needed for them: that does not depend on how many processors there are, nor on who else has them.

use super::Options;
use super::dd::stats;
use super::report::provenance;
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const THREADS: [u64; 5] = [1, 4, 16, 64, 256];
/// Calls of all threads together.
const CALLS: u64 = 512_000;
/// How many times the cost with one thread a call may cost with the most.
const BAR: f64 = 1.2;
/// How often a run that drops events is repeated.
const LOSSY: usize = 5;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("the kernel backend is measured as root");
    }
    let scratch = Scratch::new("bench-flat")?;
    let bench =
        Bench { trapline: lab::build_trapline()?, callers: lab::build_program("callers", scratch.path())?, scratch };
    let body = format!(
        "## Cost by threads\n\nMedians of {} runs in turn. {}\n\n{}",
        options.runs,
        provenance(),
        bench.table(options.runs)?
    );
    println!("{body}");
    lab::write_section("bench flat", &body)
}

struct Bench {
    trapline: PathBuf,
    callers: PathBuf,
    scratch: Scratch,
}

impl Bench {
    fn table(&self, runs: usize) -> Result<String> {
        let mut times = THREADS.map(|_| [Vec::new(), Vec::new()]);
        // One round that does not count fills the caches.
        for round in 0..=runs {
            for (threads, times) in THREADS.iter().zip(&mut times) {
                for (recorded, times) in [false, true].into_iter().zip(times) {
                    sleep(Duration::from_millis(50));
                    let ns = self.once(*threads, recorded)?;
                    if round > 0 {
                        times.push(ns);
                    }
                }
            }
        }
        let each = times.map(|[alone, recorded]| [median(alone), median(recorded)]);
        Ok(format!(
            "Processor time of a call, `getppid`, {CALLS} calls by all threads together, with `record` of all calls; no event is dropped.\n\n{}",
            rows(&each)
        ))
    }

    /// Processor time of a call, ns; a run that drops events, because other processes had the CPUs, is none.
    fn once(&self, threads: u64, recorded: bool) -> Result<f64> {
        let program = [self.callers.as_os_str().to_owned()].into_iter();
        let program = program.chain([threads.to_string(), (CALLS / threads).to_string(), "cpu".into()].map(Into::into));
        let (dir, numbers) = (self.scratch.path().join("trace"), self.scratch.path().join("stats.json"));
        for _ in 0..=LOSSY {
            let mut command = Command::new(if recorded { self.trapline.as_os_str() } else { "env".as_ref() });
            if recorded {
                let _ = fs::remove_dir_all(&dir);
                command.args(["record", "-q", "--backend", "kernel", "--stats"]).arg(&numbers).arg("-o").arg(&dir);
            }
            let out = command.args(program.clone()).stdin(Stdio::null()).output()?;
            let said = String::from_utf8_lossy(&out.stdout);
            ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
            if recorded {
                let stats = stats(&numbers.to_string_lossy())?;
                ensure!(stats.events + stats.dropped >= CALLS, "{} events, {} dropped", stats.events, stats.dropped);
                if stats.dropped > 0 {
                    continue;
                }
            }
            let ns = said.lines().find_map(|l| l.strip_prefix("cpu_ns ")).context("callers says no time")?;
            return Ok(ns.parse::<f64>()? / CALLS as f64);
        }
        bail!("{threads} threads: events are dropped each time")
    }
}

/// The table of what a call takes without and with trapline, ns, by the number of threads.
fn rows(each: &[[f64; 2]]) -> String {
    let mut out = "| threads | untraced | recorded | added | x one thread |\n|---:|---:|---:|---:|---:|\n".to_string();
    let added = |[alone, recorded]: [f64; 2]| recorded - alone;
    let one = each.first().map_or(0.0, |e| added(*e));
    for (threads, of) in THREADS.iter().zip(each) {
        let ratio = added(*of) / one;
        out += &format!("| {threads} | {:.0} ns | {:.0} ns | {:.0} ns | {ratio:.2} |\n", of[0], of[1], added(*of));
    }
    let ratio = each.last().map_or(0.0, |e| added(*e)) / one;
    let met = if ratio <= BAR { "met" } else { "**missed**" };
    let most = THREADS[THREADS.len() - 1];
    out + &format!("\nBar: added with {most} threads at most {BAR:.2} x one thread: {ratio:.2}, {met}.\n")
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn the_most_threads_are_compared_with_one() {
        let with = |last| rows(&[[100.0, 300.0], [100.0, 310.0], [100.0, 300.0], [100.0, 300.0], [110.0, last]]);
        assert!(with(350.0).ends_with("one thread: 1.20, met.\n"));
        assert!(with(352.0).ends_with("one thread: 1.21, **missed**.\n"));
        assert!(with(350.0).contains("| 4 | 100 ns | 310 ns | 210 ns | 1.05 |\n"));
    }
}
