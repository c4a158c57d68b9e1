//! `cargo xtask bench losses`: whether the events of a process that ends are complete, next to what bpftrace counts at the same time;
//! what is dropped where many threads keep the processors busy; and what one call costs where tracefs is not mounted.

use super::Options;
use super::dd::{dd, installed, stats, timed};
use super::measure::Samples;
use super::report::{Figure, Group, figures, provenance};
use crate::lab::{self, Scratch};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pages that a process still has when it ends.
const PAGES: u64 = 20_000;
/// Ends of processes that are compared.
const ENDS: usize = 10;
/// Threads, and the calls of each.
const THREADS: u64 = 64;
const CALLS: u64 = 125_000;
/// Sessions with these threads.
const SESSIONS: usize = 5;
/// Blocks that dd copies, each with a read and a write.
const BLOCKS: u64 = 1_000_000;

/// Measures everything and writes the section of bench/RESULTS.md.
pub fn run(options: &Options) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        bail!("losses are measured with the kernel backend, as root");
    }
    let scratch = Scratch::new("bench-losses")?;
    let bench = Bench {
        trapline: lab::build_trapline()?,
        pages: lab::build_program("pages", scratch.path())?,
        callers: lab::build_program("callers", scratch.path())?,
        runs: options.runs,
        scratch,
    };
    let sections = [bench.ends()?, bench.busy()?, bench.without_tracefs()?];
    let body = format!("## Losses\n\n{}\n\n{}", provenance(), sections.join("\n"));
    println!("{body}");
    lab::write_section("bench losses", &body)
}

struct Bench {
    trapline: PathBuf,
    pages: PathBuf,
    callers: PathBuf,
    runs: usize,
    scratch: Scratch,
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// `trapline record -q OPTIONS --stats FILE -o DIR PROGRAM ARGUMENTS`; events and drops.
    fn record(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Result<(u64, u64)> {
        let (dir, numbers) = (self.path("trace"), self.path("stats.json"));
        let _ = fs::remove_dir_all(&dir);
        let mut command = Command::new(&self.trapline);
        command.args(["record", "-q", "--backend", "kernel"]).args(options).arg("--stats").arg(&numbers);
        lab::run(command.arg("-o").arg(&dir).arg(program).args(arguments).stdout(Stdio::null()))?;
        let stats = stats(&numbers.to_string_lossy())?;
        Ok((stats.events, stats.dropped))
    }

    /// Pages freed by a process that ends: trapline's events, and what bpftrace counts of the same process.
    fn ends(&self) -> Result<String> {
        const TITLE: &str = "### A process that ends";
        if !installed("bpftrace") {
            return Ok(format!("{TITLE}\n\nSkipped: bpftrace is not installed.\n"));
        }
        let mut rows = String::new();
        let mut worst: f64 = 0.0;
        for end in 1..=ENDS {
            let peer = Peer::start(&self.path("bpftrace.out"))?;
            let options = ["-e", "tracepoint:kmem:mm_page_free"];
            let (events, dropped) = self.record(&options, &self.pages, &[&PAGES.to_string()])?;
            let theirs = peer.end()?;
            ensure!(theirs >= PAGES, "bpftrace counts {theirs} of {PAGES} pages");
            ensure!(dropped == 0, "{dropped} events were dropped");
            let apart = events.abs_diff(theirs) as f64 * 100.0 / theirs as f64;
            worst = worst.max(apart);
            rows += &format!("| {end} | {events} | {theirs} | {apart:.2} % |\n");
        }
        let verdict = if worst <= 0.5 { "met" } else { "**missed**" };
        Ok(format!(
            "{TITLE}\n\n`kmem:mm_page_free` of a process that frees {PAGES} pages by ending; bpftrace counts at the same \
             time, by the name of the process.\n\n| | trapline, recorded | bpftrace | apart |\n|---|---:|---:|---:|\n{rows}\n\
             Bar: within 0.5 % of bpftrace each time: {worst:.2} %, {verdict}.\n",
        ))
    }

    /// Threads that make calls as fast as they can, with the rings that trapline takes by itself.
    fn busy(&self) -> Result<String> {
        let made = THREADS * CALLS;
        let mut sessions = Vec::new();
        for n in 1..=SESSIONS {
            let arguments = [THREADS.to_string(), CALLS.to_string()];
            let (events, dropped) =
                self.record(&["-e", "getppid"], &self.callers, &arguments.each_ref().map(|s| &**s))?;
            ensure!(events + dropped == made, "{events} events and {dropped} dropped of {made}");
            let name = format!("dropped of {made} calls by {THREADS} threads, session {n}");
            sessions.push(Figure { name, value: dropped as f64, unit: "events", bar: Some(0.0) });
        }
        Ok(format!("### Many busy threads\n\n{}", figures(&sessions)))
    }

    /// dd with one call traced, in a mount namespace without tracefs.
    fn without_tracefs(&self) -> Result<String> {
        let inside = |command: &[String]| {
            let script = "umount -q /sys/kernel/tracing; umount -q -l /sys/kernel/debug; \
                          test ! -e /sys/kernel/tracing/events || exit 77; exec \"$@\"";
            let words = ["unshare", "-m", "sh", "-c", script, "sh"].map(String::from);
            [&words[..], command].concat()
        };
        let numbers = self.path("stats.json").to_string_lossy().into_owned();
        let trapline = self.trapline.to_string_lossy().into_owned();
        let options = ["trace", "--backend", "kernel", "-e", "openat", "-o", "/dev/null", "--stats", &numbers, "--"];
        let traced = [vec![trapline], options.map(String::from).to_vec(), dd(BLOCKS)].concat();
        let series = |name: &str| Samples { name: name.into(), walls: Vec::new(), events: 0 };
        let (mut alone, mut openat) = (series("untraced"), series("-e openat"));
        for round in 0..=self.runs {
            let (bare, own) = (timed(&inside(&dd(BLOCKS)))?.own, timed(&inside(&traced))?.own);
            let seen = stats(&numbers)?;
            ensure!(seen.events > 0 && seen.dropped == 0, "{} events, {} dropped", seen.events, seen.dropped);
            openat.events = seen.events;
            if round > 0 {
                alone.walls.push(bare);
                openat.walls.push(own);
            }
        }
        let title = format!("Without a mount of tracefs: dd's own time, {BLOCKS} blocks, `-e openat`");
        Ok(Group { title, samples: vec![alone, openat], bar: Some((0, 1.3)) }.table())
    }
}

/// A bpftrace that counts the pages which processes called `pages` free.
struct Peer {
    child: Child,
    out: PathBuf,
}

impl Peer {
    /// Starts it, and waits until it counts.
    fn start(out: &Path) -> Result<Peer> {
        let script = "tracepoint:kmem:mm_page_free /comm == \"pages\"/ { @ = count(); }";
        let _ = fs::remove_file(out);
        let mut command = Command::new("bpftrace");
        command.arg("-o").arg(out).args(["-e", script]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().context("cannot run bpftrace")?;
        let peer = Peer { child, out: out.into() };
        let started = Instant::now();
        while !fs::read_to_string(out).is_ok_and(|text| text.contains("Attaching")) {
            ensure!(started.elapsed() < Duration::from_secs(30), "bpftrace does not start");
            sleep(Duration::from_millis(20));
        }
        // It says no more until it ends. Were it late, it would count less than there is, which is an error.
        sleep(Duration::from_secs(1));
        Ok(peer)
    }

    /// Ends it; what it has counted.
    fn end(mut self) -> Result<u64> {
        sleep(Duration::from_millis(100));
        // A signal that comes just before it waits does not wake it.
        for _ in 0..50 {
            lab::run(Command::new("kill").args(["-INT", &self.child.id().to_string()]))?;
            sleep(Duration::from_millis(200));
            if self.child.try_wait()?.is_some() {
                break;
            }
        }
        let text = fs::read_to_string(&self.out)?;
        let number = text.lines().find_map(|line| line.strip_prefix("@: "));
        number.and_then(|n| n.trim().parse().ok()).with_context(|| format!("bpftrace counted nothing: {text}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
