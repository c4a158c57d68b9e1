//! What tracers are told, and in which order.

use crate::tracers::{Job, Step, called, count, steps};

const BOTH: &[&str] = &["one", "two"];

fn enable(names: &'static [&'static str], functions: &'static [&'static str]) -> Job {
    Box::new(move |s: &mut Step| names.iter().for_each(|n| assert_eq!(s.enable(&called(n, functions)).error, 0, "{n}")))
}

fn disable(names: &'static [&'static str]) -> Job {
    Box::new(move |s: &mut Step| names.iter().for_each(|n| assert_eq!(s.disable(n).error, 0, "{n}")))
}

#[test]
fn tracers_are_called_in_order_and_left_in_reverse() {
    let lines = steps(
        "agent_tracers_order",
        &["calls"],
        vec![enable(&["a", "b", "c"], BOTH), disable(&["b"]), enable(&["b"], &["two"]), disable(&["a", "b", "c"])],
    );
    let Some(lines) = lines else { return };
    assert_eq!(lines[0], "a+one b+one c+one a+two b+two c+two c-two b-two a-two c-one b-one a-one");
    assert_eq!(lines[1], "a+one c+one a+two c+two c-two a-two c-one a-one");
    // It has come last now.
    assert_eq!(lines[2], "a+one c+one a+two c+two b+two b-two c-two a-two c-one a-one");
    assert_eq!(lines[3], "");
}

#[test]
fn a_callback_may_be_missing() {
    let lines = steps(
        "agent_tracers_order",
        &["calls"],
        vec![enable(&["enters", "a", "exits"], BOTH), disable(&["a"]), disable(&["enters"]), disable(&["exits"])],
    );
    let Some(lines) = lines else { return };
    assert_eq!(lines[0], "enters+one a+one enters+two a+two exits-two a-two exits-one a-one");
    assert_eq!(lines[1], "enters+one enters+two exits-two exits-one");
    assert_eq!(lines[2], "exits-two exits-one");
    assert_eq!(lines[3], "");
}

/// Requests inside of a call. One that was enabled there is not told of the end of that call, unless it has no beginning to be told of.
#[test]
fn ends_without_a_beginning_are_those_of_tracers_that_have_none() {
    let functions: &[&str] = &["outer", "inner"];
    let lines = steps(
        "agent_tracers_order",
        &["open"],
        vec![
            enable(&["a"], functions),
            // Inside of outer: b comes, and exits, which has only ends.
            enable(&["b", "exits"], functions),
            // Inside of the next call of outer: both go, and b comes again, perhaps to the same place.
            Box::new(|s: &mut Step| {
                assert_eq!(s.disable("b").error, 0);
                assert_eq!(s.disable("exits").error, 0);
                assert_eq!(s.disable("a").error, 0);
                assert_eq!(s.enable(&called("b", &["outer", "inner"])).error, 0);
            }),
        ],
    );
    let Some(lines) = lines else { return };
    assert_eq!(lines[0], "a+outer a+inner a-inner a+inner b+inner exits-inner b-inner a-inner exits-outer a-outer");
    assert_eq!(lines[1], "a+outer b+outer a+inner b+inner exits-inner b-inner a-inner b+inner b-inner");
}

/// The tracer `calls` calls `one`, which calls `two`, at both ends.
#[test]
fn what_a_tracer_calls_is_not_traced() {
    let lines = steps(
        "agent_tracers_order",
        &["calls"],
        vec![
            enable(&["a", "calls"], BOTH),
            Box::new(|s: &mut Step| {
                let known = s.tracer("a");
                assert_eq!((known.nested, known.missed), (8, 0), "two calls at each end of two");
                assert_eq!(s.enable(&count(true, BOTH)).error, 0);
            }),
            Box::new(|s: &mut Step| {
                let calls: Vec<(String, u64)> = s.counted().into_iter().map(|r| (r.0, r.1)).collect();
                assert_eq!(calls, [("one".to_string(), 1), ("two".to_string(), 1)]);
            }),
        ],
    );
    let Some(lines) = lines else { return };
    let told = "a+one calls+one a+two calls+two calls-two a-two calls-one a-one";
    assert!(lines.iter().all(|l| l == told), "{lines:?}");
}

#[test]
fn recursion_may_be_deep() {
    const LEVELS: u64 = 100_000;
    let lines = steps(
        "agent_tracers_order",
        &["deep"],
        vec![
            enable(&["deep"], &["descend"]),
            Box::new(|s: &mut Step| {
                assert_eq!((s.tracer("deep").missed, s.tracer("deep").nested), (0, 0));
                assert_eq!(s.enable(&count(true, &["descend"])).error, 0);
            }),
            Box::new(|s: &mut Step| {
                assert_eq!(s.counted().iter().map(|r| r.1).collect::<Vec<_>>(), [LEVELS]);
                assert_eq!(s.disable("deep").error, 0);
            }),
            Box::new(|s: &mut Step| assert_eq!(s.counted()[0].1, 2 * LEVELS)),
        ],
    );
    let Some(lines) = lines else { return };
    let told = format!("{LEVELS} {LEVELS} {LEVELS} 0 0");
    let untold = format!("{LEVELS} 0 0 0 0");
    assert_eq!(lines, [told.clone(), told, untold.clone(), untold]);
}

/// `count` alone has a stub of its own, whose calls end there: the next ones are those that others are told of (docs/TRACERS.md).
#[test]
fn calls_that_count_alone_has_seen_begin_have_no_end_for_others() {
    for timed in [false, true] {
        let lines = steps(
            "agent_tracers_order",
            &["open"],
            vec![
                Box::new(move |s: &mut Step| assert_eq!(s.enable(&count(timed, &["outer", "inner"])).error, 0)),
                enable(&["exits"], &["outer", "inner"]),
                Box::new(|s: &mut Step| {
                    let calls: Vec<(String, u64)> = s.counted().into_iter().map(|r| (r.0, r.1)).collect();
                    assert_eq!(calls, [("inner".to_string(), 3), ("outer".to_string(), 2)]);
                }),
            ],
        );
        let Some(lines) = lines else { return };
        assert_eq!(lines, ["exits-inner", "exits-inner exits-inner exits-outer"], "{timed}");
    }
}
