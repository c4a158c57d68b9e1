//! `cargo xtask bench profiles`: the hot paths of the clone's profile (`release`) beside those of the shipped one (`dist`).
//!
//! Whole commands, in turn: recording and showing a million calls of dd, showing them from a trace, calls of fib, allocations,
//! a profile. The numbers of events are checked. Beside them the sizes of both binaries, and whether there is room below their bars.

use super::Options;
use super::dd::{self, dd};
use super::measure::{Case, Check, alternate};
use super::report::{Figure, Group, figures, provenance};
use crate::lab::{self, Scratch};
use crate::release;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// How often the time of `dist` the clone's profile may take.
const BAR: f64 = 1.05;
/// The most bytes of each binary, MB.
const BAR_DIST: f64 = 8.5;
const BAR_RELEASE: f64 = 12.0;

/// A hot path: its name, its arguments, and whether it writes a trace.
struct Hot<'a> {
    name: &'a str,
    argv: Vec<&'a str>,
    /// Whether each run has the same events: a profile has not.
    counted: bool,
    records: bool,
}

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    let binaries = [("dist", release::build_dist()?), ("release", lab::build_trapline()?)];
    let scratch = Scratch::new("profiles")?;
    let dir = scratch.path();
    let fib = lab::build_program("fib", dir)?;
    let heap = name(&lab::build_program("heap_bench", dir)?)?;
    let (fib, trace) = (name(&fib)?, name(&dir.join("recorded"))?);
    let dd = dd(options.count * 5);
    let dd: Vec<&str> = dd.iter().map(String::as_str).collect();
    let mut record = lab::User::Same
        .command(&[&[name(&binaries[0].1)?.as_str(), "record", "-q", "-o", &trace, "--"], &dd[..]].concat());
    lab::run(record.stderr(std::process::Stdio::null()))?;
    let path = |name, argv: &[&'static str]| Hot { name, argv: argv.to_vec(), counted: true, records: false };
    let paths = [
        (Hot { records: true, ..path("record of dd", &["record"]) }, dd.clone()),
        (path("trace of dd", &["trace", "-o", "/dev/null"]), dd.clone()),
        (path("report to text", &["report"]), vec![trace.as_str()]),
        (path("report -c", &["report", "-c"]), vec![trace.as_str()]),
        (path("report --as json", &["report", "--as", "json"]), vec![trace.as_str()]),
        (path("graph of fib", &["graph", "--on-full", "block", "--as", "functions"]), vec![fib.as_str(), "32"]),
        (path("heap, 100,000 stacks", &["heap", "--as", "totals"]), vec![heap.as_str(), "distinct", "2000000"]),
        (Hot { counted: false, ..path("profile of fib", &["profile"]) }, vec![fib.as_str(), "38"]),
    ];
    let mut tables = String::new();
    for (path, command) in &paths {
        let cases: Vec<Case> = binaries
            .iter()
            .map(|(profile, binary)| case(profile, binary, path, command, dir))
            .collect::<Result<_>>()?;
        let samples = alternate(&cases, options.runs).with_context(|| path.name.to_string())?;
        tables += &Group { title: path.name.to_string(), samples, bar: Some((0, BAR)) }.table();
        tables.push('\n');
    }
    let size = |(profile, binary): &(&str, PathBuf), bar| -> Result<Figure> {
        let value = fs::metadata(binary)?.len() as f64 / 1e6;
        Ok(Figure { name: format!("binary of {profile}"), value, unit: "MB", bar: Some(bar) })
    };
    let sizes = [size(&binaries[0], BAR_DIST)?, size(&binaries[1], BAR_RELEASE)?];
    let body = format!(
        "## Profiles\n\nMedians of {} runs in turn: the profile that a clone builds (`release`) beside the shipped one (`dist`). {}\n\n{}\n{tables}",
        options.runs,
        provenance(),
        figures(&sizes),
    );
    println!("{body}");
    lab::write_section("bench profiles", &body)
}

fn name(path: &Path) -> Result<String> {
    Ok(path.to_str().context("a path that is not UTF-8")?.to_string())
}

fn case(profile: &str, binary: &Path, path: &Hot<'_>, command: &[&str], dir: &Path) -> Result<Case> {
    let stats = name(&dir.join(format!("stats-{profile}")))?;
    let out = name(&dir.join(format!("trace-{profile}")))?;
    let mut argv = vec![name(binary)?];
    argv.extend(path.argv.iter().map(|s| s.to_string()));
    argv.push("-q".into());
    let live = path.argv[0] != "report";
    if live {
        argv.extend(["--stats".to_string(), stats.clone()]);
    }
    if path.records {
        argv.extend(["--force".to_string(), "-o".to_string(), out]);
    }
    if live {
        argv.push("--".into());
    }
    argv.extend(command.iter().map(|s| s.to_string()));
    let check: Check = if live && path.counted {
        Box::new(move || dd::stats(&stats).map(|s| s.events + s.dropped))
    } else {
        Box::new(|| Ok(0))
    };
    Ok(Case { name: profile.to_string(), argv, env: Vec::new(), check })
}
