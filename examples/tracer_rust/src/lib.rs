//! A tracer that counts the calls of functions by their numbers.
//!
//! ```text
//! cargo build --release --manifest-path examples/tracer_rust/Cargo.toml
//! LD_PRELOAD=examples/tracer_rust/target/release/libtracer_example.so PROGRAM &
//! trapline tracer enable -p PID calls
//! ```
//!
//! It prints the sum when the program ends.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracer::{Callbacks, Function};

/// Functions that are told apart.
const FUNCTIONS: usize = 1024;

struct Calls([AtomicU64; FUNCTIONS]);

static CALLS: Calls = Calls([const { AtomicU64::new(0) }; FUNCTIONS]);

/// The tracer itself has nothing: what it counts is in a static, so that the end can print it.
struct Counter;

impl Callbacks for Counter {
    fn enter(&self, function: &Function, _: *const (), _: u32) {
        if let Some(calls) = CALLS.0.get(function.number as usize) {
            calls.fetch_add(1, Relaxed);
        }
    }
}

tracer::tracer!("calls", Counter, Counter);

extern "C" fn end() {
    let sum: u64 = CALLS.0.iter().map(|c| c.load(Relaxed)).sum();
    if sum > 0 {
        eprintln!("calls: {sum}");
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
