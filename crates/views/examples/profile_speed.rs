//! How long a profile of a million samples takes: aggregation, then each view.
//!
//! `cargo run --release -p views --example profile_speed [SAMPLES]`: samples of 33 frames, of 20,000 distinct stacks, as text of
//! `perf script` where PERF_SCRIPT names a file for it.

use std::io::Write;
use std::time::Instant;
use views::profile::flame::Flame;
use views::profile::table::Table;
use views::profile::{By, Frame, FrameId, Labels, Stacks, Unit, folded, json, pprof};

const STACKS: usize = 20_000;
const DEPTH: usize = 33;

fn main() {
    let samples: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let stacks: Vec<Vec<usize>> = (0..STACKS).map(stack).collect();
    let names: Vec<String> = (0..6000).map(|n| format!("app::module_{}::function_{n}", n / 50)).collect();
    if let Some(file) = std::env::var_os("PERF_SCRIPT") {
        script(std::fs::File::create(file).expect("a file"), samples, &stacks, &names);
    }
    let start = Instant::now();
    let mut profile = Stacks::new(Unit::Samples { period: 1_000_000 });
    let mut frames: Vec<FrameId> = Vec::new();
    let labels = profile.labels(Labels { pid: 1, tid: 1, comm: "app" });
    for n in 0..samples {
        // As a caller that remembers nothing: every frame of every sample by its names.
        frames.clear();
        frames.extend(
            stacks[pick(n)]
                .iter()
                .map(|&f| profile.frame(&Frame { function: &names[f], module: "/usr/bin/app", ..Frame::default() })),
        );
        let stack = profile.stack(&frames);
        profile.add(stack, labels, 1, n as u64);
    }
    say("aggregated, frames by name", start, profile.len());
    let start = Instant::now();
    let mut profile = Stacks::new(Unit::Samples { period: 1_000_000 });
    let labels = profile.labels(Labels { pid: 1, tid: 1, comm: "app" });
    let ids: Vec<FrameId> = names
        .iter()
        .map(|n| profile.frame(&Frame { function: n, module: "/usr/bin/app", ..Frame::default() }))
        .collect();
    for n in 0..samples {
        frames.clear();
        frames.extend(stacks[pick(n)].iter().map(|&f| ids[f]));
        let stack = profile.stack(&frames);
        profile.add(stack, labels, 1, n as u64);
    }
    say("aggregated, frames by number", start, profile.len());
    type Write<'a> = &'a dyn Fn(&mut Vec<u8>);
    let views: [(&str, Write<'_>); 5] = [
        ("table", &|o| Table::default().write(&profile, o)),
        ("folded", &|o| folded::write(&profile, By::Comm, o)),
        ("flame", &|o| Flame::default().write(&profile, o)),
        ("pprof", &|o| pprof::write(&profile, 0, o)),
        ("json", &|o| json::write(&profile, By::Comm, o)),
    ];
    for (name, write) in views {
        let start = Instant::now();
        let mut out = Vec::new();
        write(&mut out);
        say(name, start, out.len());
        if let Some(dir) = std::env::var_os("OUT") {
            std::fs::write(std::path::Path::new(&dir).join(name), &out).expect("a file");
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default());
}

fn say(what: &str, start: Instant, size: usize) {
    println!("{what:<30} {:8.3} s {size:>10}", start.elapsed().as_secs_f64());
}

/// Stack `n`, innermost first: the outer frames are shared, the inner ones are not.
fn stack(n: usize) -> Vec<usize> {
    (0..DEPTH)
        .map(|depth| {
            let outer = DEPTH - 1 - depth;
            let variants = 1 << (outer / 2).min(15);
            (outer * 181 + n % variants % 180) % 6000
        })
        .collect()
}

fn pick(n: usize) -> usize {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % STACKS
}

fn script(file: std::fs::File, samples: usize, stacks: &[Vec<usize>], names: &[String]) {
    let mut out = std::io::BufWriter::new(file);
    for n in 0..samples {
        let _ = writeln!(out, "app     1 {n}.000000:     1000000 cycles:");
        for f in &stacks[pick(n)] {
            let _ = writeln!(out, "\t    55d0c0{f:06x} {}+0x10 (/usr/bin/app)", names[*f]);
        }
        let _ = writeln!(out);
    }
}
