//! How long views of function calls take, in ns per step: an entry or an exit.
//!
//! `cargo run --release -p views --example calls_speed [STEPS]`: steps of one thread, made before the clock starts, in a chunk that is read again
//! and again; calls of 1000 functions, up to 24 deep, each function called by a few others.

use std::time::Instant;
use views::calls::brief::{Brief, Screen};
use views::calls::cat::Cat;
use views::calls::contexts::Contexts;
use views::calls::json::Json;
use views::calls::stack::Stack;
use views::calls::totals::in_parallel;
use views::calls::tree::Tree;
use views::calls::tree::style::Style;
use views::calls::{CallView, Functions, Selection, Step, Thread, What};

const FUNCTIONS: u32 = 1000;
const CHUNK: usize = 1 << 16;
/// ns of a chunk.
const LENGTH: u64 = CHUNK as u64 * 25;

struct Names(Vec<String>);

impl Functions for Names {
    fn name(&self, number: u32) -> Option<&str> {
        self.0.get(number as usize).map(String::as_str)
    }

    fn module(&self, _number: u32) -> &str {
        "/usr/bin/app"
    }
}

/// Steps that begin and end without open calls.
fn chunk() -> Vec<Step> {
    let (mut steps, mut open, mut seed) = (Vec::new(), Vec::<u32>::new(), 1u64);
    for n in 0..CHUNK {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (seed >> 33) as u32;
        let time = n as u64 * 25;
        let rest = CHUNK - n;
        if open.is_empty() || (open.len() < 24 && rest > open.len() + 1 && random & 1 == 0) {
            let function = 1 + (open.last().copied().unwrap_or(0) * 7 + random % 5) % (FUNCTIONS - 1);
            open.push(function);
            steps.push(Step::entry(time, function));
        } else if let Some(function) = open.pop() {
            steps.push(Step::exit(time, function));
        }
    }
    steps
}

/// The chunk again and again, as one thread's steps.
fn steps(chunk: &[Step], n: usize) -> impl Iterator<Item = Step> + Send + '_ {
    let times = n / CHUNK;
    (0..times as u64).flat_map(move |k| chunk.iter().map(move |s| Step { time: s.time + k * LENGTH, ..*s }))
}

/// Records as a thread has written them: 8 bytes each, the time's lower half and the function's number with a bit.
fn records(chunk: &[Step]) -> Vec<(u32, u32)> {
    let word = |what| match what {
        What::Entry(f) => f << 1,
        What::Exit(f) => f << 1 | 1,
        _ => 0,
    };
    chunk.iter().map(|s| (s.time as u32, word(s.what))).collect()
}

fn decoded(records: &[(u32, u32)], n: usize) -> impl Iterator<Item = Step> + Send + '_ {
    let times = n / CHUNK;
    (0..times as u64).flat_map(move |k| {
        records.iter().map(move |(time, word)| {
            let time = u64::from(*time) + k * LENGTH;
            if word & 1 == 0 { Step::entry(time, word >> 1) } else { Step::exit(time, word >> 1) }
        })
    })
}

/// CPU time of this process, ns (utime and stime of proc(5), in ticks of 10 ms).
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse().ok())
        .collect();
    fields.iter().sum::<u64>() as f64 * 1e7
}

/// When something began: the clock, and CPU time.
fn begin() -> (Instant, f64) {
    (Instant::now(), cpu())
}

fn say(what: &str, (start, before): (Instant, f64), steps: usize, bytes: usize) {
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu() - before);
    println!("{what:<36} {:7.2} ns of CPU per step {seconds:8.3} s {bytes:>12} bytes", cpu / steps as f64);
}

fn main() {
    let n: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000_000);
    let n = n / CHUNK * CHUNK;
    let names =
        Names((0..=FUNCTIONS).map(|n| format!("app::module_{}::function_{n}(int, char const*)", n / 50)).collect());
    let chunk = chunk();
    let everything = Selection::default();

    let start = begin();
    let sum = steps(&chunk, n).fold(0, |sum: u64, s| sum.wrapping_add(s.time));
    say("nothing: the steps alone", start, n, (sum & 1) as usize);
    for workers in [1, 2] {
        let start = begin();
        let threads: Vec<_> = (0..workers).map(|_| steps(&chunk, n)).collect();
        let totals = in_parallel(threads, workers, 0, (&everything, &names), |steps, feed| feed.steps(steps));
        say(
            &format!("functions, {workers} worker(s)"),
            start,
            n * workers,
            totals.counts.doubts().map_or(0, |d| d.len()),
        );
    }
    let records = records(&chunk);
    let start = begin();
    let totals = in_parallel([decoded(&records, n)], 1, 0, (&everything, &names), |steps, feed| feed.steps(steps));
    say("functions, from records of 8 bytes", start, n, totals.counts.doubts().map_or(0, |d| d.len()));
    let start = begin();
    let selection = Selection { only: vec!["*function_1*".to_owned()], ..Selection::default() };
    let totals = in_parallel([steps(&chunk, n)], 1, 0, (&selection, &names), |steps, feed| feed.steps(steps));
    say("functions, selected", start, n, totals.counts.doubts().map_or(0, |d| d.len()));
    let start = begin();
    let (mut stack, mut contexts) = (Stack::new(), Contexts::default());
    steps(&chunk, n).for_each(|s| stack.step(s, &mut contexts));
    say("contexts (flame, folded, callgraph)", start, n, contexts.nodes.len());

    let few = n / 10 / CHUNK * CHUNK;
    let screen = Screen { rows: 40, hint: String::new() };
    let views: [(&str, Box<dyn CallView>); 5] = [
        ("brief", Box::new(Brief::new(Style::default(), everything.clone(), screen))),
        ("tree", Box::new(Tree::new(Style::default(), everything.clone()))),
        ("tree -t 100ns", Box::new(Tree::new(Style::default(), Selection { shortest: 100, ..everything.clone() }))),
        ("cat", Box::new(Cat::new(everything.clone()))),
        ("json", Box::new(Json::new(everything))),
    ];
    let thread = Thread { pid: 1, tid: 1, comm: "app" };
    for (what, mut view) in views {
        let start = begin();
        let (mut out, mut bytes) = (Vec::new(), 0);
        for step in steps(&chunk, few) {
            view.step(thread, step, &names, &mut out);
            if out.len() > 1 << 16 {
                bytes += out.len();
                out.clear();
            }
        }
        view.end(&names, &mut out);
        say(what, start, few, bytes + out.len());
    }
}
