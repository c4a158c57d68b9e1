//! Builds the tables of files and prints what they hold and how long it takes: `cargo run --release --example tables FILE…`.

use std::time::Instant;
use unwind::build::{Module, Space};

fn main() {
    let mut space = Space::new(1 << 14, 1 << 20);
    for path in std::env::args().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) => {
                eprintln!("{path}: {e}");
                continue;
            }
        };
        let mut best = u128::MAX;
        let mut built = None;
        for _ in 0..5 {
            let started = Instant::now();
            built = Some(Module::build(&bytes));
            best = best.min(started.elapsed().as_micros());
        }
        match built {
            Some(Ok(module)) => {
                let (c, t) = (module.counts(), module.tables());
                let started = Instant::now();
                let placed = space.add(&module, |_, rows| {
                    std::hint::black_box(rows);
                });
                println!(
                    "{path}: {best} us; functions {}, rows {} -> {}, pages {}, rules {}, unknown rows {} in {} functions, damaged {}, linkage tables {}; placed in {} us{}",
                    c.functions,
                    c.rows,
                    t.rows.len(),
                    t.pages.len(),
                    t.rules.len(),
                    c.unknown_rows,
                    c.unknown_functions,
                    c.damaged,
                    c.linkage_tables,
                    started.elapsed().as_micros(),
                    if placed.is_err() { ": full" } else { "" },
                );
            }
            Some(Err(e)) => println!("{path}: {e}"),
            None => {}
        }
    }
    println!("in all: rules {}, pages {}, chunks {}", space.rules().all().len(), space.pages().len(), space.chunks());
}
