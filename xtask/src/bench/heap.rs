//! `cargo xtask bench heap`: what `trapline heap` adds to an allocation, next to heaptrack, where both count the same ones.
//!
//! A loop of malloc and free tells its own time, so starts and ends are in none of its figures; it is as long as the case needs to be
//! measured. Whole programs are measured from start to end. Allocations of all runs are checked.

use super::Options;
use super::measure::{Case, Samples, alternate};
use super::report::{Figure, Group, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What python3 does: about 2.1 million allocations.
const SCRIPT: &str = "import json\n\
    d = [{'id': i, 'name': 'item %d' % i, 'tags': ['a%d' % (i % 7), 'b'], 'v': i * 0.5} for i in range(21000)]\n\
    for n in range(3): d = json.loads(json.dumps(d))\n\
    print(len(d))";

/// What cc1plus compiles.
const SOURCE: &str = "#include <map>\n#include <regex>\n#include <string>\n\
    int f(const std::string &s, std::map<std::string, int> &m) { return m[s]++; }\n";

/// The most that trapline may add, of what heaptrack adds: by the same stack, and by many.
const BAR_SAME: f64 = 0.06;
const BAR_DISTINCT: f64 = 0.25;
/// How often the time of an untraced program a traced one may take.
const BAR_PROGRAM: f64 = 2.4;

/// Where programs of the machine are: whoever runs the bench may have a python3 of his own.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    let has_heaptrack = Command::new("heaptrack").arg("--version").output().is_ok();
    let bench = Bench::new(options.runs, has_heaptrack)?;
    let mut all = bench.loops("same", [30_000_000, 5_000_000, 1_000_000], BAR_SAME)?;
    all.extend(bench.loops("distinct", [10_000_000, 2_000_000, 1_000_000], BAR_DISTINCT)?);
    let (python, in_python) = bench.python()?;
    let (compiler, in_compiler) = bench.compiler()?;
    all.extend([in_python, in_compiler].into_iter().flatten());
    let peer = if has_heaptrack { lab::said("heaptrack", &["--version"]) } else { "no heaptrack".into() };
    let body = format!(
        "## Heap\n\nMedians of {} runs in turn. The loop calls malloc and free 20 frames deep, without frame pointers: by one stack, and by \
         100,000 in turn. Added is what is beyond untraced. {} {peer}.\n\n{}\n{}\n{}",
        options.runs,
        provenance(),
        figures(&all),
        python.table(),
        compiler.table(),
    );
    println!("{body}");
    lab::write_section("bench heap", &body)
}

struct Bench {
    trapline: PathBuf,
    runs: usize,
    heaptrack: bool,
    scratch: Scratch,
}

/// Who watches a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Nobody,
    Trapline,
    Heaptrack,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Nobody => "untraced",
            Tool::Trapline => "trapline heap",
            Tool::Heaptrack => "heaptrack",
        }
    }
}

/// What the loop says at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    ns: u64,
    allocations: u64,
}

impl Loop {
    fn parse(text: &str) -> Option<Loop> {
        let line = text.lines().find(|l| l.starts_with("ns "))?;
        let mut words = line.split(' ').skip(1).step_by(2).map(str::parse);
        Some(Loop { ns: words.next()?.ok()?, allocations: words.next()?.ok()? })
    }
}

impl Bench {
    fn new(runs: usize, heaptrack: bool) -> Result<Bench> {
        let bench = Bench { trapline: lab::build_trapline()?, runs, heaptrack, scratch: Scratch::new("bench-heap")? };
        let source = crate::root().join("tests/programs/heap_bench.c");
        let flags = ["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o"];
        lab::run(Command::new("gcc").args(flags).arg(bench.path("heap_bench")).arg(source))?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_string_lossy().into_owned()
    }

    fn tools(&self) -> &'static [Tool] {
        let all = &[Tool::Nobody, Tool::Trapline, Tool::Heaptrack];
        if self.heaptrack { all } else { &all[..2] }
    }

    /// The command, watched by a tool.
    fn argv(&self, tool: Tool, command: &[&str]) -> Vec<String> {
        let (trapline, view) = (self.trapline.to_string_lossy(), format!("json={}", self.path("heap.json")));
        let data = self.path("heaptrack");
        let before: &[&str] = match tool {
            Tool::Nobody => &[],
            Tool::Trapline => &[&trapline, "heap", "-q", "--as", &view, "--"],
            Tool::Heaptrack => &["heaptrack", "-o", &data],
        };
        before.iter().chain(command).map(ToString::to_string).collect()
    }

    /// The loop: what an allocation and its free take, added by each tool.
    fn loops(&self, way: &str, rounds: [u64; 3], bar: f64) -> Result<Vec<Figure>> {
        let mut times = vec![Vec::new(); self.tools().len()];
        // One round that does not count fills the caches.
        for round in 0..=self.runs {
            for ((tool, rounds), times) in self.tools().iter().zip(rounds).zip(&mut times) {
                sleep(Duration::from_millis(50));
                let said = self.once(*tool, way, rounds).with_context(|| format!("{}, round {round}", tool.name()))?;
                if round > 0 {
                    times.push(said.ns as f64 / rounds as f64);
                }
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        let stacks = if way == "same" { "one stack" } else { "100,000 stacks" };
        let figure = |name: &str, value, unit, bar| Figure {
            name: format!("malloc and free by {stacks}, {name}"),
            value,
            unit,
            bar,
        };
        let mut all = vec![figure("untraced", medians[0], "ns", None)];
        for (tool, median) in self.tools().iter().zip(&medians).skip(1) {
            all.push(figure(&format!("added by {}", tool.name()), median - medians[0], "ns", None));
        }
        if let [untraced, trapline, heaptrack] = medians[..] {
            let ratio = (trapline - untraced) / (heaptrack - untraced);
            all.push(figure("added by trapline, of what heaptrack adds", ratio, "x", Some(bar)));
        }
        Ok(all)
    }

    fn once(&self, tool: Tool, way: &str, rounds: u64) -> Result<Loop> {
        let argv = self.argv(tool, &[&self.path("heap_bench"), way, &rounds.to_string()]);
        let out = Command::new(&argv[0]).args(&argv[1..]).env("PATH", PATH).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure!(out.status.success(), "{argv:?}: {} {text} {complaints}", out.status);
        let said = Loop::parse(&text).with_context(|| text.clone())?;
        ensure!(said.allocations == rounds, "{said:?}, not {rounds} rounds");
        let seen = match tool {
            Tool::Nobody => rounds,
            Tool::Trapline => allocations_of(Path::new(&self.path("heap.json")))?,
            Tool::Heaptrack => number_after(&complaints, "allocations:").with_context(|| complaints.clone())?,
        };
        // Beside the loop's, the few of libc: its buffer for what is printed.
        ensure!((rounds..rounds + 10).contains(&seen), "{} has seen {seen} allocations, not {rounds}", tool.name());
        Ok(said)
    }

    fn python(&self) -> Result<(Group, Vec<Figure>)> {
        let env = [("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")];
        self.program("python3 loads and dumps JSON, PYTHONMALLOC=malloc", &["python3", "-S", "-B", "-c", SCRIPT], &env)
    }

    fn compiler(&self) -> Result<(Group, Vec<Figure>)> {
        let (source, preprocessed) = (self.path("source.cc"), self.path("source.ii"));
        fs::write(&source, SOURCE)?;
        lab::run(Command::new("g++").args(["-std=c++17", "-E", &source, "-o", &preprocessed]))?;
        let compiler = lab::said("g++", &["-print-prog-name=cc1plus"]);
        let command = [&*compiler, "-quiet", "-fpreprocessed", "-std=c++17", &preprocessed, "-o", "/dev/null"];
        self.program("cc1plus parses <regex> and <map>", &command, &[])
    }

    /// A whole program: a table, and what the tools add.
    fn program(&self, title: &str, command: &[&str], env: &[(&str, &str)]) -> Result<(Group, Vec<Figure>)> {
        let env: Vec<(String, String)> =
            env.iter().chain(&[("PATH", PATH)]).map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let case = |tool: Tool| {
            let json = PathBuf::from(self.path("heap.json"));
            let check: super::measure::Check = match tool {
                Tool::Trapline => {
                    // Counts of programs vary by a few from run to run: the first run's is shown.
                    let first = Cell::new(None);
                    Box::new(move || {
                        let (n, wanted) = (allocations_of(&json)?, first.get());
                        let wanted = wanted.unwrap_or(n);
                        ensure!(n.abs_diff(wanted) <= wanted / 1000, "{n} allocations, {wanted} before");
                        first.set(Some(wanted));
                        Ok(wanted)
                    })
                }
                _ => Box::new(|| Ok(0)),
            };
            Case { name: tool.name().into(), argv: self.argv(tool, command), env: env.clone(), check }
        };
        // Groups compare their last with others: trapline comes last.
        let order = match self.tools() {
            [_, _, _] => vec![Tool::Nobody, Tool::Heaptrack, Tool::Trapline],
            _ => vec![Tool::Nobody, Tool::Trapline],
        };
        let samples = alternate(&order.iter().map(|t| case(*t)).collect::<Vec<_>>(), self.runs)?;
        let added = |s: &Samples| s.median().as_secs_f64() - samples[0].median().as_secs_f64();
        let mut figures = Vec::new();
        if let [_, heaptrack, trapline] = &samples[..] {
            let value = added(trapline) / added(heaptrack);
            let name = format!("{title}: added by trapline, of what heaptrack adds");
            figures.push(Figure { name, value, unit: "x", bar: None });
        }
        Ok((Group { title: title.into(), samples, bar: Some((0, BAR_PROGRAM)) }, figures))
    }
}

/// How many allocations trapline has counted; none of them may be lost.
fn allocations_of(json: &Path) -> Result<u64> {
    let json: Value = serde_json::from_slice(&fs::read(json)?)?;
    let summary = &json;
    ensure!(summary["lost"].as_u64() == Some(0), "lost: {summary}");
    summary["total"]["blocks"].as_u64().with_context(|| summary.to_string())
}

/// The number that follows a word.
fn number_after(text: &str, word: &str) -> Option<u64> {
    text.split_whitespace().skip_while(|w| *w != word).nth(1)?.parse().ok()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_is_read() {
        let said = Loop::parse("heaptrack output\nns 1234 allocations 56\n");
        assert_eq!(said, Some(Loop { ns: 1234, allocations: 56 }));
        assert_eq!(Loop::parse("ns x allocations 56"), None);
        let text = "heaptrack stats:\n\tallocations:          \t1000002\n\tleaked allocations:   \t1\n";
        assert_eq!(number_after(text, "allocations:"), Some(1_000_002));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
