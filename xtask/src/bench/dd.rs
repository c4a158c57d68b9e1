//! Runs of dd, which says itself how long it copied, and what tracers leave behind.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One run of dd, under a tracer or not.
pub struct Run {
    /// The time of the copy that dd reports.
    pub own: Duration,
    /// From the start of the tracer to its end.
    pub wall: Duration,
    pub stderr: String,
}

/// The counters of `--stats`.
pub struct Stats {
    pub events: u64,
    pub dropped: u64,
}

pub fn dd(count: u64) -> Vec<String> {
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &format!("count={count}")].map(String::from).to_vec()
}

/// Runs a command in which a dd runs, and takes both times.
pub fn timed(argv: &[String]) -> Result<Run> {
    sleep(Duration::from_millis(50));
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let wall = start.elapsed();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{command:?}: {}\n{stderr}", output.status);
    }
    let own = copied(&stderr).with_context(|| format!("{command:?}: dd does not say how long it took: {stderr}"))?;
    Ok(Run { own, wall, stderr })
}

/// The time in dd's last line: `1000 bytes (1.0 kB, 1000 B) copied, 0.00123 s, 812 kB/s`.
pub fn copied(stderr: &str) -> Option<Duration> {
    let line = stderr.lines().find_map(|line| line.split_once(" copied, "))?.1;
    Duration::try_from_secs_f64(line.split_once(" s,")?.0.trim().parse().ok()?).ok()
}

/// Where a program is in `PATH`.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

pub fn installed(program: &str) -> bool {
    found(program).is_some()
}

/// The command's path as text: bpftrace refuses a command that is in several directories of `PATH`.
pub fn on_path(program: &str) -> Result<String> {
    let file = found(program).with_context(|| format!("there is no {program}"))?;
    Ok(file.to_string_lossy().into_owned())
}

pub fn stats(path: &str) -> Result<Stats> {
    let text = fs::read_to_string(path).with_context(|| format!("no statistics in {path}"))?;
    let stats: serde_json::Value = serde_json::from_str(&text)?;
    let number = |name: &str| stats[name].as_u64().with_context(|| format!("no {name} in the statistics: {text}"));
    Ok(Stats { events: number("events")?, dropped: number("dropped")? })
}
