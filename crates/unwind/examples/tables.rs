//! Builds the tables of files and prints what they hold and how much time of a processor it takes: `cargo run --release --example tables FILE…`.

use unwind::build::{Module, Space};

/// Time of a processor that this thread has had, µs (the first field of schedstat is in ns).
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or_default() / 1000
}

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
        let mut best = u64::MAX;
        let mut built = None;
        for _ in 0..5 {
            let started = cpu();
            built = Some(Module::build(&bytes));
            best = best.min(cpu() - started);
        }
        match built {
            Some(Ok(module)) => {
                let (c, t) = (module.counts(), module.tables());
                let started = cpu();
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
                    cpu() - started,
                    if placed.is_err() { ": full" } else { "" },
                );
            }
            Some(Err(e)) => println!("{path}: {e}"),
            None => {}
        }
    }
    println!("in all: rules {}, pages {}, chunks {}", space.rules().all().len(), space.pages().len(), space.chunks());
}
