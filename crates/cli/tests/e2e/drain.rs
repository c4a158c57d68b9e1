//! The reader of the rings has its share of the processor, however many threads make events.

use crate::alone::alone;
use crate::babeltrace;
use crate::kernel::possible;
use crate::lab::{self, User};
use crate::record::{number, record};

/// 64 threads that call getppid as fast as they can.
#[test]
fn many_busy_threads_do_not_starve_the_reader() {
    if !possible() {
        return;
    }
    let Some(callers) = lab::program("callers") else { return };
    let _alone = alone();
    const THREADS: &str = "64";
    let run = |options: &[&str]| {
        let options = [&["--backend", "kernel", "-e", "getppid"], options].concat();
        let r = record(User::Me, &options, &[&callers, THREADS, "20000"]);
        assert_eq!((r.outcome.code(), r.outcome.out().trim()), (0, "1280000"), "{}", r.outcome.stderr);
        let seen = r.events() + number(&r.stats, "dropped") + number(&r.stats, "bookkeeping_dropped");
        assert!(seen >= 1_280_000, "{}", r.stats);
        r
    };
    // At an equal share two of three are lost; what else runs may take a processor away for longer than a buffer lasts, now and then.
    let lost: Vec<u64> = (0..3).map(|_| number(&run(&[]).stats, "dropped")).take_while(|n| *n > 0).collect();
    assert!(lost.len() < 3, "{lost:?} of 1280000 events were dropped");
}

#[test]
fn what_a_larger_buffer_had_held_is_said() {
    if !possible() {
        return;
    }
    let Some(callers) = lab::program("callers") else { return };
    let _alone = alone();
    let run = |buffer: &str| {
        record(User::Me, &["--backend", "kernel", "-e", "getppid", "--buffer", buffer], &[&callers, "16", "20000"])
    };
    let small = run("4K");
    assert!(number(&small.stats, "dropped") > 0, "nothing was dropped, the test shows nothing");
    let said = small.outcome.stderr.as_str();
    let hint = said.split("(--buffer ").nth(1).and_then(|s| s.split(" would have held them)").next()).expect(said);
    let large = run(hint);
    assert_eq!(number(&large.stats, "dropped"), 0, "{hint}: {}", large.outcome.stderr);
    assert!(!large.outcome.stderr.contains("would have held"), "{}", large.outcome.stderr);
    if let Some(found) = babeltrace::counts(User::Me, &large.trace) {
        assert_eq!(found, (large.events(), 0));
    }
}
