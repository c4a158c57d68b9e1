//! What Rust programs do: panics that are caught, cross threads or end the program, backtraces, threads, children, futures.
//!
//! `PROGRAM SCENARIO` prints what comes out of the scenario, and writes how often counting functions were called to `counts`.
//! `HAZARDS_ROUNDS` and `HAZARDS_FIFO` are as in `hazards.h`.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::fmt::Write as _;
use std::future::Future;
use std::hint::black_box;
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

static LEAF: AtomicU64 = AtomicU64::new(0);
static RISKY: AtomicU64 = AtomicU64::new(0);
static DEEP: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn leaf(n: u64) -> u64 {
    count(&LEAF);
    black_box(n) + 1
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn risky(n: u64) -> u64 {
    count(&RISKY);
    assert!(!n.is_multiple_of(3), "{n} is no good");
    leaf(n)
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        count(&DROPPED);
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn deep(depth: u64, n: u64) -> u64 {
    count(&DEEP);
    let _guard = Guard;
    if depth == 0 { risky(n) } else { black_box(deep(depth - 1, n)) + 1 }
}

fn caught(depth: u64, n: u64) -> u64 {
    panic::catch_unwind(|| deep(depth, n)).unwrap_or_else(|e| e.downcast_ref::<String>().map_or(0, |s| s.len() as u64))
}

fn quiet() {
    panic::set_hook(Box::new(|_| {}));
}

fn panics() {
    let sum: u64 = (0..90).map(|n| caught(n % 30, n)).sum();
    println!("panics {sum} {}", DROPPED.load(Ordering::Relaxed));
}

fn resumed_panics() {
    let mut sum = 0;
    for n in 0..40 {
        let outer = panic::catch_unwind(|| match panic::catch_unwind(|| deep(5, n)) {
            Ok(n) => n,
            Err(e) => panic::resume_unwind(e),
        });
        sum += outer.unwrap_or(1000);
    }
    println!("resumed_panics {sum}");
}

struct PanicsInside;

impl Drop for PanicsInside {
    fn drop(&mut self) {
        let _ = panic::catch_unwind(|| deep(2, 3));
    }
}

fn panics_while_unwinding() {
    for n in 0..60 {
        let _ = panic::catch_unwind(|| {
            let _one = PanicsInside;
            deep(3, n)
        });
    }
    println!("panics_while_unwinding {}", DROPPED.load(Ordering::Relaxed));
}

fn panics_of_threads() {
    let mut sum = 0;
    for n in 0..64 {
        sum += thread::spawn(move || deep(n % 9, n)).join().unwrap_or(500);
    }
    let total = Mutex::new(0);
    thread::scope(|scope| {
        for n in 0..64 {
            let total = &total;
            scope.spawn(move || *total.lock().unwrap() += caught(n % 5, n));
        }
    });
    println!("panics_of_threads {sum} {}", total.into_inner().unwrap());
}

/// Frames of this program's functions in a backtrace, in order: others' differ from build to build.
fn names(trace: &Backtrace) -> String {
    let mut out = String::new();
    for line in trace.to_string().lines() {
        let line = line.trim_start();
        if let Some((number, name)) = line.split_once(": ").filter(|(n, _)| n.parse::<u32>().is_ok()) {
            let _ = write!(out, "{number} {} ", name.rsplit("::").next().unwrap_or(name));
        }
    }
    out
}

#[inline(never)]
fn traces(depth: u64) -> Backtrace {
    if depth == 0 {
        return Backtrace::force_capture();
    }
    let trace = traces(depth - 1);
    black_box(&trace);
    trace
}

fn backtraces() {
    for depth in [0, 3, 20] {
        println!("backtraces {}", names(&traces(depth)));
    }
}

fn backtraces_of_panics() {
    thread_local!(static TEXT: Cell<String> = const { Cell::new(String::new()) });
    panic::set_hook(Box::new(|info| TEXT.set(format!("{info} {}", names(&Backtrace::force_capture())))));
    for n in [3, 6] {
        let _ = panic::catch_unwind(|| deep(n, n));
        println!("backtraces_of_panics {}", TEXT.take());
    }
    quiet();
}

struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        count(&self.0);
    }
}

async fn pauses(n: u64) -> u64 {
    let mut left = n % 4;
    std::future::poll_fn(|c: &mut Context<'_>| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        c.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    leaf(n)
}

fn futures() {
    let woken = Arc::new(Woken(AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut sum = 0;
    for n in 0..40 {
        let mut future = pin!(async move { pauses(n).await + pauses(n + 1).await + risky(n * 3 + 1) });
        loop {
            let polled = panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
            match polled {
                Ok(Poll::Ready(n)) => break sum += n,
                Ok(Poll::Pending) => {}
                Err(_) => break,
            }
        }
    }
    println!("futures {sum} {}", woken.0.load(Ordering::Relaxed));
}

fn channels() {
    let (to, from) = mpsc::channel();
    for n in 0..16 {
        let to = to.clone();
        thread::spawn(move || (0..50).for_each(|i| to.send(leaf(n * i)).unwrap()));
    }
    drop(to);
    println!("channels {}", from.iter().sum::<u64>());
}

fn children() {
    for n in 0..5 {
        let out = Command::new("echo").arg(leaf(n).to_string()).output().unwrap();
        print!("children {}", String::from_utf8_lossy(&out.stdout));
    }
    println!("children {:?}", Command::new("/does/not/exist").status().map_err(|e| e.kind()));
}

struct PanicsTwice;

impl Drop for PanicsTwice {
    fn drop(&mut self) {
        risky(3);
    }
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let all: [(&str, fn()); 12] = [
        ("panics", panics),
        ("resumed_panics", resumed_panics),
        ("panics_while_unwinding", panics_while_unwinding),
        ("panics_of_threads", panics_of_threads),
        ("backtraces", backtraces),
        ("backtraces_of_panics", backtraces_of_panics),
        ("futures", futures),
        ("channels", channels),
        ("children", children),
        ("Panic_message", || println!("{}", deep(3, 3))),
        ("Aborting_panic", || {
            let _twice = PanicsTwice;
            deep(2, 3);
        }),
        ("Unwinds_main", || panic::resume_unwind(Box::new(deep(2, 4)))),
    ];
    if name.starts_with(|c: char| c.is_ascii_uppercase()) {
        panic::set_hook(Box::new(|info| eprintln!("{info} {}", names(&Backtrace::force_capture()))));
    } else {
        quiet();
    }
    if let Some(fifo) = std::env::var_os("HAZARDS_FIFO") {
        assert_eq!(std::fs::read(fifo).unwrap(), []);
    }
    let rounds = std::env::var("HAZARDS_ROUNDS").map_or(1, |n| n.parse().unwrap());
    for _ in 0..rounds {
        for (scenario, run) in all {
            if scenario == name || name == "all" && scenario.starts_with(|c: char| c.is_ascii_lowercase()) {
                run();
            }
        }
    }
    let counts = [("leaf", &LEAF), ("risky", &RISKY), ("deep", &DEEP)];
    let lines = counts.iter().map(|(name, n)| format!("{name} {}\n", n.load(Ordering::Relaxed)));
    std::fs::write("counts", lines.filter(|l| !l.ends_with(" 0\n")).collect::<String>()).unwrap();
}
