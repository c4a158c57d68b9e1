//! A recording beside other tracers, on the same functions.

use crate::check_nesting;
use crate::collector::{Run, Wish};
use crate::tracers::{ALL, Job, ROUND, Wanted, called, calls, steps_of};
use abi::stub::Variant;

/// count, with time, in lists.
fn count() -> Wanted {
    Wanted { options: [1, 0, 0, 0, 0, 0, 0, 0], ..called("count", ALL) }
}

fn recorded(variant: Variant, steps: Vec<Job>) -> Option<Run> {
    let functions: fn(&str, &str) -> bool = |file, name| file.contains("/trapline-tests-") && ALL.contains(&name);
    steps_of("agent_tracers", &[], Wish { functions, variant, ..Wish::default() }, steps)
}

/// Every call of this many rounds has its records, and results are what they are.
#[track_caller]
fn is_whole(run: &Run, rounds: u64) {
    for (name, calls) in ROUND {
        assert_eq!(run.count(name), (rounds * calls, rounds * calls), "{name}");
    }
    assert_eq!(run.dropped(), 0);
    assert!(check_nesting(run).values().all(|open| *open == 0));
    let text = run.text();
    let sums: Vec<&str> = text.lines().skip(1).map(|l| l.split(' ').next().expect("a sum")).collect();
    assert!(sums.len() as u64 == rounds && sums.iter().all(|s| *s == sums[0]), "{text}");
}

#[test]
fn other_tracers_come_and_go() {
    for variant in [Variant::Paired, Variant::Timed] {
        let run = recorded(
            variant,
            vec![
                Box::new(|s| {
                    assert_eq!((s.tracer("graph").place, s.tracer("count").place), (1, 0));
                    assert!(s.tracer("graph").reported > 0, "its collector is known");
                    let reply = s.enable(&count());
                    assert_eq!((reply.error, reply.patched, reply.failed), (0, 7, 0), "{reply:?}");
                    assert_eq!((s.tracer("graph").place, s.tracer("count").place), (1, 2));
                }),
                Box::new(|s| {
                    assert_eq!(calls(&s.counted()), ROUND);
                    // A tracer of the program takes the thread's chunk away while it runs.
                    assert_eq!(s.enable(&called("mine", &["leaf", "middle"])).error, 0);
                }),
                Box::new(|s| {
                    assert_eq!(calls(&s.counted()), ROUND.map(|(n, c)| (n, 2 * c)));
                    // Those that only the recording is on lead to its own stubs again.
                    assert_eq!(s.disable("count").patched, 5);
                }),
                Box::new(|s| assert_eq!(s.disable("mine").patched, 2)),
                Box::new(|s| assert_eq!(s.tracer("graph").place, 1)),
            ],
        );
        let Some(run) = run else { return };
        is_whole(&run, 5);
    }
}

#[test]
fn a_recording_is_no_tracer_of_requests() {
    let run = recorded(
        Variant::Paired,
        vec![Box::new(|s| {
            use abi::tracer::Refused;
            assert_eq!(s.enable(&called("graph", ALL)).error, Refused::Already as u32);
            assert_eq!(s.disable("graph").error, Refused::Wrong as u32);
        })],
    );
    if let Some(run) = run {
        is_whole(&run, 1);
    }
}

/// Not a test: prints what a call of fib costs, in ns, recorded, and recorded and counted. `cargo test -p patch --test agent -- --ignored
/// --nocapture graph_cost`
#[test]
#[ignore = "measures"]
fn graph_cost() {
    const FIB: &[&str] = &["fib"];
    let functions: fn(&str, &str) -> bool = |file, name| file.contains("/trapline-tests-") && name == "fib";
    let with = |counted: bool| -> f64 {
        let step: Job = Box::new(move |s| {
            if counted {
                assert_eq!(s.enable(&called("count", FIB)).patched, 1);
            }
        });
        let wish = Wish { functions, block: false, ..Wish::default() };
        let run = steps_of("agent_tracers_cost", &[], wish, vec![step]).expect("a compiler");
        run.text().lines().nth(1).and_then(|l| l.parse().ok()).expect("a number")
    };
    for counted in [false, true] {
        let least = (0..5).map(|_| with(counted)).fold(f64::MAX, f64::min);
        println!("recorded, {}: {least:.1}", if counted { "and counted" } else { "alone" });
    }
}
