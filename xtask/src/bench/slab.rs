//! `cargo xtask bench slab`: what `trapline slab` adds to each object that is allocated and released, next to bpftrace doing the same,
//! and to programs that do nothing at the same places.

use super::Options;
use super::report::{Figure, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Opens and closes a file so often, and prints how much time of the processor one turn takes, ns.
const SOURCE: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1;
    double start = now();
    for (long i = 0; i < n; i++) close(open("/dev/null", O_RDONLY));
    printf("%.1f\n", (now() - start) / n);
    return 0;
}
"#;

/// Pairs in a run.
const PAIRS: u64 = 200_000;

/// bpftrace's program: what it can keep of an object, in three maps.
const SAME: &str = r#"
    BEGIN { printf("ready\n"); }
    tracepoint:kmem:kmem_cache_alloc /str(args->name) == "filp"/ { @time[args->ptr] = nsecs; @pid[args->ptr] = pid; @stack[args->ptr] = kstack(20); }
    tracepoint:kmem:kmem_cache_free /str(args->name) == "filp"/ { delete(@time[args->ptr]); delete(@pid[args->ptr]); delete(@stack[args->ptr]); }
"#;
/// Only the stack of each object, in one map.
const ONE_MAP: &str = r#"
    BEGIN { printf("ready\n"); }
    tracepoint:kmem:kmem_cache_alloc /str(args->name) == "filp"/ { @stack[args->ptr] = kstack(20); }
    tracepoint:kmem:kmem_cache_free /str(args->name) == "filp"/ { delete(@stack[args->ptr]); }
"#;
/// Programs that do nothing, at the places that trapline uses.
const EMPTY: &str = r#"
    BEGIN { printf("ready\n"); }
    tracepoint:kmem:kmem_cache_alloc, tracepoint:kmem:kmem_cache_free, tracepoint:kmem:kfree { $x = 1; }
"#;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("slabs are traced as root");
    }
    let scratch = Scratch::new("bench-slab")?;
    let (program, source) = (scratch.path().join("pairs"), scratch.path().join("pairs.c"));
    fs::write(&source, SOURCE)?;
    lab::run(Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(&source))?;
    let bench = Bench { trapline: lab::build_trapline()?, program };
    let mut cases: Vec<(&str, Vec<f64>)> = Vec::new();
    let all = [
        "untraced",
        "trapline slab",
        "bpftrace, one map of stacks",
        "bpftrace, the same values",
        "bpftrace, empty programs",
    ];
    cases.extend(all.map(|name| (name, Vec::new())));
    // One round that does not count fills the caches.
    for round in 0..=options.runs {
        for (nth, (name, times)) in cases.iter_mut().enumerate() {
            sleep(Duration::from_millis(50));
            let time = bench.once(nth).with_context(|| format!("{name}, round {round}"))?;
            if round > 0 {
                times.push(time);
            }
        }
    }
    let medians: Vec<f64> = cases.iter().map(|c| median(c.1.clone())).collect();
    let mut rows = vec![Figure { name: "untraced: open and close".into(), value: medians[0], unit: "ns", bar: None }];
    for ((name, _), median) in cases.iter().zip(&medians).skip(1) {
        rows.push(Figure { name: format!("{name} adds"), value: median - medians[0], unit: "ns", bar: None });
    }
    let times = |of: usize| (medians[1] - medians[0]) / (medians[of] - medians[0]);
    for (of, name) in [(2, "one map of stacks"), (3, "the same values"), (4, "empty programs")] {
        rows.push(Figure {
            name: format!("trapline adds, of what bpftrace adds with {name}"),
            value: times(of),
            unit: "x",
            bar: None,
        });
    }
    let body = format!(
        "## Slabs\n\n{}\n\nOne `open` and `close` of `/dev/null`, which allocates and releases an object of `filp` (and others, which are not \
         of the cache): {PAIRS} in a run, {} runs of each in turn, medians. Of each object trapline keeps process, thread, name, time, size, \
         user pc, inode of the program and the kernel stack; bpftrace ({}) its stack, or its stack, time and process.\n\n{}",
        provenance(),
        options.runs,
        lab::said("bpftrace", &["--version"]),
        figures(&rows)
    );
    println!("{body}");
    lab::write_section("bench slab", &body)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

struct Bench {
    trapline: PathBuf,
    program: PathBuf,
}

/// A bpftrace that is attached; it is ended with its value.
struct Peer(Child);

impl Peer {
    fn start(script: &str) -> Result<Peer> {
        let mut command = Command::new("bpftrace");
        command.args(["-B", "none", "-e", script]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("bpftrace")?;
        let out = child.stdout.take().context("its output")?;
        let peer = Peer(child);
        let mut lines = BufReader::new(out).lines();
        let ready = lines.by_ref().any(|line| line.is_ok_and(|l| l == "ready"));
        ensure!(ready, "bpftrace has not begun");
        // What it prints at its end is read, so that it does end.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(peer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    fn once(&self, case: usize) -> Result<f64> {
        match case {
            0 => self.time(),
            1 => {
                self.slab("start")?;
                let time = self.time();
                self.slab("clear")?;
                time
            }
            2 => self.beside(ONE_MAP),
            3 => self.beside(SAME),
            _ => self.beside(EMPTY),
        }
    }

    fn beside(&self, script: &str) -> Result<f64> {
        let _peer = Peer::start(script)?;
        self.time()
    }

    fn slab(&self, what: &str) -> Result<()> {
        lab::run(Command::new(&self.trapline).args(["slab", what, "filp"]).stderr(Stdio::null()))
    }

    fn time(&self) -> Result<f64> {
        time_of(&self.program)
    }
}

/// What a turn of the program takes, by its own clock of the processor.
fn time_of(program: &Path) -> Result<f64> {
    let out = Command::new(program).arg(PAIRS.to_string()).output()?;
    ensure!(out.status.success(), "{}: {}", program.display(), out.status);
    Ok(String::from_utf8_lossy(&out.stdout).trim().parse()?)
}
