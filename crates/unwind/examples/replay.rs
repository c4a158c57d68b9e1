//! How long a walk takes that remembers, on made stacks of 20 frames: `cargo run --release -p unwind --example replay [WORD]`, for
//! those with the word in their names.

use std::hint::black_box;
use std::time::Instant;
use unwind::replay::{Replay, Space};
use unwind::rule::{Kind, SavedBp};
use unwind::table::{Mapping, Page, Row, Tables};
use unwind::walk::{Caller, Registers, Target, Walk};
use unwind::{Frame, Rule};

const CODE: u64 = 0x40_0000;
const BASE: u64 = 0x7fff_0000_0000;
const DEPTH: usize = 20;
/// Bytes of code of a function.
const SIZE: usize = 256;
const FUNCTIONS: usize = 65536 / SIZE;

struct Process {
    words: Vec<u64>,
    rules: [Rule; 3],
    rows: Vec<Row>,
    pages: Vec<Page>,
    mapping: [Mapping; 1],
}

/// The memory as an agent has it: one load, and whether it is in the stack.
#[inline(always)]
fn reader(words: &[u64]) -> impl Fn(u64) -> Option<u64> {
    |address| words.get(address.wrapping_sub(BASE).rotate_right(3) as usize).copied()
}

impl Process {
    /// `pointers`: all functions have frame pointers.
    fn new(pages: usize, pointers: bool) -> Process {
        let rule = |kind, offset, bp| Rule::new(kind, offset, bp, 0).unwrap_or(Rule::UNKNOWN);
        let of_all =
            if pointers { rule(Kind::Bp, 16, SavedBp::Cfa(-16)) } else { rule(Kind::Sp, 48, SavedBp::Cfa(-16)) };
        let rules = [of_all, rule(Kind::Sp, 48, SavedBp::Same), Rule::END];
        // The first function is the outermost one; each third one leaves rbp alone.
        let row = |n: usize| {
            Row::new(
                (n % FUNCTIONS * SIZE) as u16,
                if n == 0 { 2 } else { u16::from(n.is_multiple_of(3) && !pointers) },
            )
        };
        Process {
            words: vec![0; 1 << 16],
            rules,
            rows: (0..pages * FUNCTIONS).map(row).collect(),
            pages: (0..pages).map(|n| Page { first: (n * FUNCTIONS) as u32, rows: FUNCTIONS as u32 }).collect(),
            mapping: [Mapping { start: CODE, end: CODE + (pages << 16) as u64, bias: CODE, first_page: 0, flags: 0 }],
        }
    }

    fn space(&self) -> Space<'_> {
        let tables = Tables { pages: &self.pages, rows: &self.rows, rules: &self.rules };
        Space { tables, mappings: &self.mapping, unmapped: None, generation: 1 }
    }

    /// Frames of 48 bytes below word `top`; `function` says which each one is, from the outermost inward. The innermost one's registers.
    fn stack(&mut self, top: usize, depth: usize, mut function: impl FnMut(usize) -> usize) -> Registers {
        let mut bp = 0;
        let mut pc = 0;
        for nth in 0..depth {
            let end = top - 6 * nth;
            (self.words[end - 1], self.words[end - 2]) = (pc, bp);
            bp = BASE + 8 * (end as u64 - 2);
            // A call somewhere in the function.
            let n = if nth == 0 { 0 } else { function(nth) };
            pc = CODE + (n * SIZE) as u64 + 5 + (n * 7 % 240) as u64;
        }
        Registers { pc, sp: BASE + 8 * (top - 6 * depth) as u64, bp }
    }
}

impl Target for &Process {
    fn read(&mut self, address: u64) -> Option<u64> {
        reader(&self.words)(address)
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        self.space().rule(address)
    }
}

/// Nanoseconds of a walk: the best of some rounds over `starts`, which all were walked before. `next` makes each one the process's stack.
fn measure(what: &str, mut process: Process, starts: usize, mut next: impl FnMut(&mut Process, usize) -> Registers) {
    if std::env::args().nth(1).is_some_and(|word| !what.contains(&word)) {
        return;
    }
    let mut replay = Box::new(Replay::EMPTY);
    let walk = |replay: &mut Replay, process: &Process, start| {
        replay.walk(&process.space(), black_box(start), reader(&process.words))
    };
    let (mut best, mut idle, mut depth) = (f64::MAX, f64::MAX, 0);
    let rounds = (6_000 / starts).max(1);
    for _ in 0..300 {
        let started = Instant::now();
        for _ in 0..rounds {
            for n in 0..starts {
                black_box(next(black_box(&mut process), n));
            }
        }
        idle = idle.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        for _ in 0..rounds {
            for n in 0..starts {
                let start = next(black_box(&mut process), n);
                black_box(walk(&mut replay, &process, start).hash);
            }
        }
        best = best.min(started.elapsed().as_secs_f64());
    }
    // And right.
    for n in 0..starts {
        let start = next(&mut process, n);
        walk(&mut replay, &process, start);
        let frames: Vec<Frame> = Walk::from(&process, Caller::returning(start), 512).collect();
        depth = frames.len();
        assert!(frames.iter().map(|f| f.0).eq(replay.frames().iter().copied()), "{what}");
    }
    println!("{what:52} {:7.1} ns, {depth} frames", (best - idle) * 1e9 / (rounds * starts) as f64);
}

fn main() {
    for pointers in [false, true] {
        println!("{}", if pointers { "with frame pointers" } else { "without frame pointers" });
        let new = |pages| Process::new(pages, pointers);
        let mut p = new(1);
        let same = p.stack(60_000, DEPTH, |n| n);
        measure("the same stack", p, 1, move |_, _| same);
        let mut p = new(1);
        let deep = p.stack(60_000, 200, |n| n % 255 + 1);
        measure("the same stack, deep", p, 1, move |_, _| deep);
        // The innermost 3 frames.
        measure("64 stacks, other 3 innermost frames", new(4), 64, |p, n| {
            p.stack(60_000, DEPTH, |nth| if nth < DEPTH - 3 { nth } else { nth + 8 * n + 32 })
        });
        measure("64 stacks, another frame in the middle", new(4), 64, |p, n| {
            p.stack(60_000, DEPTH, |nth| if nth != DEPTH - 8 { nth } else { nth + 8 * n + 32 })
        });
        // Other places, so that nothing coincides; 64 stacks of 19 functions each are 1216 addresses.
        let mut p = new(8);
        let other: Vec<Registers> =
            (0..64).map(|n| p.stack(60_000 - 900 * n, DEPTH, |nth| 1 + (n * 19 + nth) % 2000)).collect();
        measure("64 stacks, all frames", p, 64, move |_, n| other[n]);
        let mut p = new(1);
        let two: Vec<Registers> = (0..2).map(|n| p.stack(60_000 - 900 * n, DEPTH, |nth| nth)).collect();
        measure("2 stacks in turn, the same functions", p, 2, move |_, n| two[n]);
        let mut p = new(1);
        let deep = [600, 601].map(|depth| p.stack(60_000, depth, |n| n % 255 + 1));
        measure("600 and 601 frames in turn", p, 2, move |_, n| deep[n]);
    }
}
