//! How long the model of a heap takes for a malloc and its free.
//!
//! `cargo run --release -p views --example heap_speed [PAIRS]`: with few blocks outstanding, and with a million; of which any is
//! freed, each as probably, or one of the last thousand. `expect`: with [`Model::expect`] for batches of 32 events. Then the views of a
//! million blocks of 20,000 stacks of 33 frames.

use std::time::Instant;
use views::heap::{Frames, Intern, Kind, Model, Options, Rows, Who, Write};
use views::heap::{growth, json, leaks, peak, profile, temporary, totals};
use views::profile::Frame;

const BATCH: usize = 32;

/// An event: thread, address freed and allocated, stack.
type Pair = (u32, u64, u32);

fn main() {
    let pairs: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000_000);
    for (live, recent, threads) in [
        (1, 1, 1),
        (1000, 1000, 1),
        (1000, 1000, 8),
        (100_000, 100_000, 1),
        (1_000_000, 1000, 1),
        (1_000_000, 1_000_000, 1),
        (1_000_000, 1_000_000, 8),
    ] {
        let all = events(pairs, live, recent, threads);
        for expect in [false, true] {
            let each = run(&all, live, expect);
            let how = if expect { "expect" } else { "" };
            println!(
                "{live:>8} blocks outstanding, one of {recent:>7} freed, {threads} threads: {each:6.1} ns a pair {how}"
            );
        }
    }
    views();
    let mut intern = Intern::new();
    let start = Instant::now();
    let mut sum = 0u64;
    let mut random = 1;
    for _ in 0..pairs as u64 {
        sum += u64::from(intern.id(0, (next(&mut random) % 3000).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
    println!("a stack's number: {:.1} ns ({sum})", start.elapsed().as_nanos() as f64 / pairs as f64);
}

/// Stacks of 33 frames of 6000 functions.
struct Names(Vec<String>);

impl Frames for Names {
    fn frames(&self, stack: u32, each: &mut dyn FnMut(Frame<'_>)) {
        for depth in 0..33 {
            let variants = 1 << ((32 - depth) / 2).min(15);
            let function = (32 - depth) * 181 + stack as usize % variants % 180;
            each(Frame { function: &self.0[function % self.0.len()], module: "/usr/bin/app", ..Frame::default() });
        }
    }
}

fn views() {
    let names = Names((0..6000).map(|n| format!("app::module_{}::function_{n}", n / 50)).collect());
    let mut model = Model::new();
    let before = resident();
    for n in 0..1_000_000 {
        model.alloc(Who { process: 0, tid: 1 }, n as u64 * 1000, Kind::Malloc, address(n), 40, n as u32 % 20_000);
    }
    println!("a million blocks of 20,000 stacks: {} kB", resident() - before);
    let start = Instant::now();
    let rows = Rows::new(&model, &names, 0);
    println!("{:<10} {:8.3} s {:>10} rows", "rows", start.elapsed().as_secs_f64(), rows.all().len());
    let all: [(&str, Write); 9] = [
        ("leaks", leaks::write),
        ("peak", peak::write),
        ("totals", totals::write),
        ("temporary", temporary::write),
        ("growth", growth::write),
        ("flame", profile::flame),
        ("pprof", profile::pprof),
        ("folded", profile::folded),
        ("json", json::write),
    ];
    for (name, write) in all {
        let (start, mut out) = (Instant::now(), Vec::new());
        write(&rows, &Options::default(), 0, &mut out);
        println!("{name:<10} {:8.3} s {:>10} bytes", start.elapsed().as_secs_f64(), out.len());
    }
    let start = Instant::now();
    model.fork(0, 1, 0);
    println!("{:<10} {:8.3} s", "fork", start.elapsed().as_secs_f64());
    let start = Instant::now();
    model.end(1, 0);
    model.end(0, 0);
    println!("{:<10} {:8.3} s", "two ends", start.elapsed().as_secs_f64());
}

/// kB of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 20
}

fn address(n: usize) -> u64 {
    0x7f00_0000_0000 + n as u64 * 48
}

fn events(pairs: usize, live: usize, recent: usize, threads: u32) -> Vec<Pair> {
    let mut random = 0x1234_5678_9abc_def0u64;
    let mut blocks: Vec<usize> = (0..live).collect();
    let mut tid = 1;
    let event = |n| {
        let at = next(&mut random) as usize % recent;
        let other = next(&mut random) as usize % recent;
        blocks.swap(at, other);
        if n % 4 == 0 {
            tid = 1 + next(&mut random) as u32 % threads;
        }
        (tid, address(blocks[at]), next(&mut random) as u32 % 5000)
    };
    (0..pairs).map(event).collect()
}

fn run(all: &[Pair], live: usize, expect: bool) -> f64 {
    let mut model = Model::new();
    for n in 0..live {
        let who = Who { process: 0, tid: 1 };
        model.alloc(who, n as u64, Kind::Malloc, address(n), 40, n as u32 % 5000);
    }
    let start = Instant::now();
    let mut time = 0;
    for batch in all.chunks(BATCH / 2) {
        if expect {
            let mut addresses = [0; BATCH / 2];
            addresses.iter_mut().zip(batch).for_each(|(to, from)| *to = from.1);
            model.expect(0, &addresses[..batch.len()]);
        }
        for &(tid, address, stack) in batch {
            let who = Who { process: 0, tid };
            time += 200;
            model.free(who, time, address);
            model.alloc(who, time + 100, Kind::Malloc, address, 40, stack);
        }
    }
    let each = start.elapsed().as_nanos() as f64 / all.len() as f64;
    assert_eq!(model.summary().numbers.live.blocks, live as u64);
    each
}
