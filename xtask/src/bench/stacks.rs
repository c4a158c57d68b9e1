//! `cargo xtask bench stacks`: how many stacks are whole, what a frame costs, and how large and how fast profiles are, next to perf.

use super::Options;
use super::dd::installed;
use super::report::{Figure, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program of 33 frames without frame pointers, whose leaf and ten shares take known parts of the time.
const SOURCE: &str = r#"
#include <stdlib.h>
volatile long sink; volatile int depth = 30;
#define SHARE(N) __attribute__((noinline, noclone)) void share##N(long n) { for (volatile long i = 0; i < n * N; i++) sink += i; }
SHARE(1) SHARE(2) SHARE(3) SHARE(4) SHARE(5) SHARE(6) SHARE(7) SHARE(8) SHARE(9) SHARE(10)
__attribute__((noinline, noclone)) int deep(int n, long work) {
    if (n == 0) {
        share1(work); share2(work); share3(work); share4(work); share5(work);
        share6(work); share7(work); share8(work); share9(work); share10(work);
        return 0;
    }
    int r = deep(n - 1, work); sink += r; return r + 1;
}
int main(int argc, char **argv) { if (argc > 2) depth = atoi(argv[2]); for (long i = atol(argv[1]); i > 0; i--) deep(depth, 60000); return argc > 9; }
"#;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("stacks are measured with the kernel backend, as root");
    }
    let scratch = Scratch::new("bench-stacks")?;
    let program = scratch.path().join("shares");
    fs::write(scratch.path().join("shares.c"), SOURCE)?;
    let source = scratch.path().join("shares.c");
    let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o"];
    lab::run(Command::new("gcc").args(flags).arg(&program).arg(&source))?;
    let bench = Bench { trapline: lab::build_trapline()?, program, runs: options.runs, scratch };
    let sections = [bench.whole()?, bench.frame()?, bench.shares()?, bench.cost()?, bench.drawings()?];
    let body = format!("## Stacks and profiles\n\n{}\n\n{}", provenance(), sections.join("\n"));
    println!("{body}");
    lab::write_section("bench stacks", &body)
}

struct Bench {
    trapline: PathBuf,
    program: PathBuf,
    runs: usize,
    scratch: Scratch,
}

/// Time of the processors that a command and its children took, and its own time.
fn cpu_of(command: &mut Command) -> Result<(f64, Duration)> {
    let before = children_cpu()?;
    let start = Instant::now();
    let status =
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().with_context(|| format!("{command:?}"))?;
    let wall = start.elapsed();
    ensure!(status.success(), "{command:?}: {status}");
    Ok((children_cpu()? - before, wall))
}

/// Seconds that children which were waited for have taken (`/proc/self/stat`, fields 16 and 17).
fn children_cpu() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> = rest.split_whitespace().skip(13).take(2).filter_map(|f| f.parse().ok()).collect();
    let ticks: f64 = lab::said("getconf", &["CLK_TCK"]).parse()?;
    Ok(fields.iter().sum::<f64>() / ticks)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn size_of(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|e| size_of(&e.path())).sum()
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn shares_command(&self, rounds: u64) -> Vec<String> {
        vec![self.program.display().to_string(), rounds.to_string()]
    }

    /// `trapline profile` of a command, into a trace; its statistics.
    fn profile(&self, hz: u32, command: &[String]) -> Result<(Value, PathBuf)> {
        let (dir, numbers) = (self.path("trace"), self.path("stats.json"));
        let _ = fs::remove_dir_all(&dir);
        let mut c = Command::new(&self.trapline);
        c.args(["profile", "-q", "-F", &hz.to_string(), "--buffer", "16M", "-o"])
            .arg(&dir)
            .arg("--stats")
            .arg(&numbers);
        lab::run(c.arg("--").args(command).current_dir(self.scratch.path()).stdout(Stdio::null()))?;
        Ok((serde_json::from_str(&fs::read_to_string(&numbers)?)?, dir))
    }

    /// `perf record` of a command with copies of 16 KiB of the stack; the file.
    fn perf(&self, hz: u32, how: &str, command: &[String]) -> Result<PathBuf> {
        let file = self.path("perf.data");
        let mut c = Command::new("perf");
        c.args(["record", "-q", "-m", "16M", "-e", "cpu-clock", "-F", &hz.to_string(), "--call-graph", how, "-o"]);
        lab::run(c.arg(&file).arg("--").args(command).current_dir(self.scratch.path()).stdout(Stdio::null()))?;
        Ok(file)
    }

    /// Of how many samples of perf the outermost frame is one that programs begin with, in percent.
    fn perf_whole(&self, file: &Path) -> Result<f64> {
        let out = Command::new("perf").args(["script", "--no-inline", "-F", "comm,ip,sym", "-i"]).arg(file).output()?;
        let text = String::from_utf8_lossy(&out.stdout);
        let begins =
            ["_start", "__libc_start_main", "__libc_start_call_main", "main", "clone3", "start_thread", "__clone"];
        let (mut all, mut whole) = (0u64, 0u64);
        for sample in text.split("\n\n").filter(|s| s.lines().count() > 1) {
            all += 1;
            let last = sample.lines().last().and_then(|l| l.split_whitespace().nth(1)).unwrap_or_default();
            whole += u64::from(begins.iter().any(|b| last.starts_with(b)));
        }
        Ok(whole as f64 * 100.0 / all.max(1) as f64)
    }

    fn whole(&self) -> Result<String> {
        let text = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
        let (rust, cpp) = (self.path("big.rs"), self.path("big.cpp"));
        let functions = (0..300).map(|n| {
            format!("pub fn f{n}(x: &mut Vec<String>) -> usize {{ x.iter_mut().map(|s| {{ s.push_str(\"{n}\"); s.len() }}).sum::<usize>() + x.iter().filter(|s| s.contains(\"{n}\")).count() }}\n")
        });
        fs::write(&rust, functions.collect::<String>())?;
        let classes = (0..60).map(|n| {
            format!("std::string g{n}(std::string s) {{ std::map<std::string, std::vector<int>> m; m[s].push_back({n}); std::regex r(\"a{n}+\"); return std::regex_replace(s, r, std::to_string(m.size())); }}\n")
        });
        fs::write(
            &cpp,
            format!(
                "#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n{}",
                classes.collect::<String>()
            ),
        )?;
        let python = "def f(n):\n    return sum(range(200)) if n == 0 else f(n - 1)\nfor i in range(60000): f(20)\n";
        let rustc = lab::said("rustup", &["which", "rustc"]);
        let rustc = if rustc.is_empty() { "rustc".to_string() } else { rustc };
        let openssl = |what| text(&["openssl", "speed", "-seconds", "1", what]);
        let programs = [
            ("C, -O2, 33 frames", self.shares_command(400)),
            ("python3", text(&["/usr/bin/python3", "-c", python])),
            ("rustc", vec![rustc, "--crate-type=lib".into(), "-O".into(), rust.display().to_string()]),
            ("cc1plus", text(&["g++", "-O2", "-c", "big.cpp", "-o", "/dev/null"])),
            ("openssl speed rsa2048", openssl("rsa2048")),
            ("openssl speed ecdhp256", openssl("ecdhp256")),
            ("openssl speed aes-128-cbc", openssl("aes-128-cbc")),
            ("openssl speed sha256", openssl("sha256")),
            (
                "a shell loop that starts pythons",
                text(&["sh", "-c", "for i in $(seq 100); do /usr/bin/python3 -c pass; done"]),
            ),
        ];
        let mut rows = String::new();
        for (name, command) in programs {
            let (stats, _) = self.profile(997, &command)?;
            let ended = stats["stacks"]["ended"].as_object().cloned().unwrap_or_default();
            let n = |v: &Value| v.as_u64().unwrap_or(0);
            let all: u64 = ended.values().map(n).sum();
            let without = |key: &str| key.contains("has no user stack") || key.contains("no registers of a user space");
            let none: u64 = ended.iter().filter(|(k, _)| without(k)).map(|(_, v)| n(v)).sum();
            let whole = ended.get("the outermost frame was reached").map_or(0, n);
            let percent = whole as f64 * 100.0 / (all - none).max(1) as f64;
            let bar = if name.starts_with("a shell") { 95.0 } else { 99.5 };
            let verdict = if percent >= bar { "met" } else { "**missed**" };
            let peer = match installed("perf") {
                true => format!("{:.1} %", self.perf_whole(&self.perf(997, "dwarf,16384", &command)?)?),
                false => "-".into(),
            };
            rows += &format!("| {name} | {all} | {none} | {percent:.2} % | {bar} % | {verdict} | {peer} |\n");
        }
        Ok(format!(
            "### Stacks that reach the outermost frame\n\n997 Hz. Samples while a process executes a program, or has ended, have no user \
             stack. perf copies 16 KiB of the stack.\n\n| | samples | without a user stack | whole | bar | | perf, dwarf |\n\
             |---|---:|---:|---:|---:|---|---:|\n{rows}"
        ))
    }

    /// What a frame costs: the time of a probe's program that takes a stack, less that of the same program at the same place that takes none,
    /// by frames; and how much more a stack takes that is deeper.
    fn frame(&self) -> Result<String> {
        const DEEPER: u64 = 70;
        let each = |captures: &str, depth: u64| -> Result<f64> {
            let numbers = self.path("stats.json");
            let probe = format!("uprobe:{}:share1{captures}", self.program.display());
            let mut c = Command::new(&self.trapline);
            c.args(["record", "-q", "--cost", "-e", &probe, "--as", "record=/dev/null", "--stats"]).arg(&numbers);
            let command = [self.shares_command(300), vec![depth.to_string()]].concat();
            lab::run(c.arg("--").args(command).stdout(Stdio::null()))?;
            let stats: Value = serde_json::from_str(&fs::read_to_string(&numbers)?)?;
            let programs = stats["cost"]["programs"].as_array().cloned().unwrap_or_default();
            let of = programs.iter().find(|p| p["name"].as_str().is_some_and(|n| n.contains("share1")));
            let of = of.context("the cost of the probe's program")?;
            Ok(of["ns"].as_f64().unwrap_or(0.0) / of["runs"].as_f64().unwrap_or(1.0).max(1.0))
        };
        let (mut with, mut without, mut deeper) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.runs {
            with.push(each(" ustack", 30)?);
            without.push(each("", 30)?);
            deeper.push(each(" ustack", 30 + DEEPER)?);
        }
        let [with, without, deeper] = [with, without, deeper].map(median);
        // share1, deep 31 times, main, __libc_start_call_main, __libc_start_main, _start
        let frames = 36.0;
        let per_frame = Figure {
            name: format!("per frame ({with:.0} ns with a stack of {frames} frames, {without:.0} ns without)"),
            value: (with - without) / frames,
            unit: "ns",
            bar: Some(120.0),
        };
        let further = Figure {
            name: format!("each of {DEEPER} further frames ({deeper:.0} ns)"),
            value: (deeper - with) / DEEPER as f64,
            unit: "ns",
            bar: None,
        };
        Ok(format!("### The cost of a frame\n\n{}", figures(&[per_frame, further])))
    }

    /// The self share of ten functions, next to perf.
    fn shares(&self) -> Result<String> {
        if !installed("perf") {
            return Ok("### Shares\n\nSkipped: perf is not installed.\n".into());
        }
        let command = self.shares_command(500);
        let (_, dir) = self.profile(997, &command)?;
        let out = Command::new(&self.trapline).args(["report", "-q", "--as", "folded"]).arg(&dir).output()?;
        let mut own: HashMap<String, f64> = HashMap::new();
        let mut all = 0.0;
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            let (stack, n) = line.rsplit_once(' ').unwrap_or((line, "0"));
            let n: f64 = n.parse().unwrap_or(0.0);
            all += n;
            *own.entry(stack.rsplit(';').next().unwrap_or_default().into()).or_default() += n;
        }
        let file = self.perf(997, "dwarf,16384", &command)?;
        let out = Command::new("perf")
            .args(["report", "--no-inline", "--no-children", "-g", "none", "--stdio", "-F", "overhead,sym", "-i"])
            .arg(&file)
            .output()?;
        let theirs: HashMap<String, f64> = String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter_map(|l| {
                let mut words = l.split_whitespace();
                let share = words.next()?.strip_suffix('%')?.parse().ok()?;
                Some((words.next_back()?.to_string(), share))
            })
            .collect();
        let (mut rows, mut worst) = (String::new(), 0.0f64);
        for n in (1..=10).rev() {
            let name = format!("share{n}");
            let ours = own.get(&name).copied().unwrap_or(0.0) * 100.0 / all.max(1.0);
            let perf = theirs.get(&name).copied().unwrap_or(0.0);
            worst = worst.max((ours - perf).abs());
            rows += &format!("| {name} | {ours:.2} % | {perf:.2} % |\n");
        }
        let verdict = if worst <= 2.0 { "met" } else { "**missed**" };
        Ok(format!(
            "### Shares of ten functions\n\n| | trapline | perf, dwarf |\n|---|---:|---:|\n{rows}\nBar: within 2 points each: {worst:.2}, {verdict}.\n"
        ))
    }

    /// CPU above an empty program on the same clock, the tracer's own included; bytes of a sample.
    fn cost(&self) -> Result<String> {
        const HZ: u32 = 9997;
        if !installed("perf") || !installed("bpftrace") {
            return Ok("### Cost\n\nSkipped: perf or bpftrace is not installed.\n".into());
        }
        let command = self.shares_command(300);
        let (mut plain, mut empty, mut own, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut bytes, mut perf_bytes) = (0.0, 0.0);
        for _ in 0..self.runs {
            plain.push(cpu_of(Command::new(&command[0]).arg(&command[1]))?.0);
            let mut c = Command::new("bpftrace");
            c.args(["-q", "-e", &format!("profile:hz:{HZ} /pid == 0/ {{ @ = 1; }}"), "-c", &command.join(" ")]);
            empty.push(cpu_of(&mut c)?.0);
            let (dir, numbers) = (self.path("trace"), self.path("stats.json"));
            let _ = fs::remove_dir_all(&dir);
            let mut c = Command::new(&self.trapline);
            c.args(["profile", "-q", "-F", &HZ.to_string(), "-o"]).arg(&dir).arg("--stats").arg(&numbers).arg("--");
            own.push(cpu_of(c.args(&command))?.0);
            let stats: Value = serde_json::from_str(&fs::read_to_string(&numbers)?)?;
            let streams =
                fs::read_dir(&dir)?.flatten().filter(|e| !e.file_name().to_string_lossy().starts_with(['m', '.']));
            bytes = streams.map(|e| size_of(&e.path())).sum::<u64>() as f64
                / stats["events"].as_f64().unwrap_or(1.0).max(1.0);
            let file = self.path("perf.data");
            let mut c = Command::new("perf");
            c.args([
                "record",
                "-q",
                "-m",
                "16M",
                "-e",
                "cpu-clock",
                "-F",
                &HZ.to_string(),
                "--call-graph",
                "dwarf,16384",
                "-o",
            ]);
            theirs.push(cpu_of(c.arg(&file).arg("--").args(&command))?.0);
            perf_bytes = size_of(&file) as f64;
        }
        let out = Command::new("perf").args(["script", "-F", "comm", "-i"]).arg(self.path("perf.data")).output()?;
        perf_bytes /= String::from_utf8_lossy(&out.stdout).lines().count().max(1) as f64;
        let [plain, empty, own, theirs] = [plain, empty, own, theirs].map(median);
        let of = |name: String, value, bar| Figure { name, value, unit: "x", bar: Some(bar) };
        let rows = [
            of(
                format!(
                    "CPU above bpftrace's empty program: {:.3} s of {:.3} s (program alone {plain:.3} s, with the empty one {empty:.3} s, trapline {own:.3} s, perf {theirs:.3} s)",
                    own - empty,
                    theirs - empty
                ),
                (own - empty) / (theirs - empty),
                0.5,
            ),
            of(format!("bytes of a sample: {bytes:.0} of {perf_bytes:.0}"), bytes / perf_bytes, 0.02),
            Figure { name: "CPU, of that with the empty program".into(), value: own / empty, unit: "x", bar: None },
        ];
        Ok(format!("### The cost of a profile, next to perf with copies of 16 KiB ({HZ} Hz)\n\n{}", figures(&rows)))
    }

    /// Symbolising and drawing traces, next to `perf script` and folding: of a short run, where most of it is to find names, and of a million
    /// samples.
    fn drawings(&self) -> Result<String> {
        const MILLION: f64 = 1e6;
        if !installed("perf") {
            return Ok("### Drawing\n\nSkipped: perf is not installed.\n".into());
        }
        let several = "\"$1\" \"$2\" & \"$1\" \"$2\" & wait";
        // 30 samples a round, or fewer on a faster machine.
        let mut rounds = MILLION as u64 / 2 / 20;
        let rows = loop {
            let both = ["sh", "-c", several, "sh"].map(String::from).into_iter().chain(self.shares_command(rounds));
            let (figure, least) = self.drawing(&both.collect::<Vec<_>>())?;
            if least >= MILLION {
                break [self.drawing(&self.shares_command(1500))?.0, Figure { bar: Some(0.2), ..figure }];
            }
            rounds = (rounds as f64 * 1.2 * MILLION / least.max(1000.0)) as u64;
        };
        Ok(format!("### Symbolising and drawing, next to `perf script` and folding by awk\n\n{}", figures(&rows)))
    }

    /// The time for a sample of a command, next to the peer's, and how many samples either of them drew at least.
    fn drawing(&self, command: &[String]) -> Result<(Figure, f64)> {
        let (stats, dir) = self.profile(9997, command)?;
        let samples = stats["events"].as_f64().unwrap_or(1.0).max(1.0);
        // Frame pointers are the cheapest stacks that perf has: there is nothing to unwind.
        let file = self.perf(9997, "fp", command)?;
        let (mut own, mut theirs, mut lines) = (Vec::new(), Vec::new(), 1.0);
        let svg = format!("flame={}", self.path("flame.svg").display());
        for _ in 0..self.runs.min(5) {
            let mut c = Command::new(&self.trapline);
            own.push(cpu_of(c.args(["report", "-q", "--as", &svg]).arg(&dir))?.1.as_secs_f64());
            let fold = "perf script --no-inline -F comm,ip,sym -i \"$1\" | awk '/^[^ \\t]/ { comm = $1; stack = \"\" } /^[ \\t]/ { stack = $2 \";\" stack } \
                        /^$/ { n[comm \";\" stack]++ } END { for (s in n) print s, n[s] }' > \"$2\"";
            let mut c = Command::new("sh");
            c.args(["-c", fold, "sh"]).arg(&file).arg(self.path("folded"));
            theirs.push(cpu_of(&mut c)?.1.as_secs_f64());
            lines = folded(&fs::read_to_string(self.path("folded"))?).max(1.0);
        }
        let out = Command::new(&self.trapline).args(["report", "-q", "--as", "folded"]).arg(&dir).output()?;
        let drawn = folded(&String::from_utf8_lossy(&out.stdout));
        ensure!(drawn == samples, "{drawn} of {samples} samples are drawn");
        let (own, theirs) = (median(own) / samples, median(theirs) / lines);
        let name = format!(
            "time of 1 M samples: {:.2} s of {:.2} s, from {samples:.0} and {lines:.0}",
            own * 1e6,
            theirs * 1e6
        );
        Ok((Figure { name, value: own / theirs, unit: "x", bar: None }, samples.min(lines)))
    }
}

/// How many samples lines of folded stacks stand for.
fn folded(lines: &str) -> f64 {
    lines.lines().filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
