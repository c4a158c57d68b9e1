//! `heap --sample`: estimates are right, and every sampled block goes with its free.

use crate::heap_accounts::{Sum, functions, sum_of};
use crate::lab::{self, each_user};
use serde_json::Value;

/// What tests/programs/heap_sampled.c leaves, and allocates, of blocks of this size.
const KNOWN: [(&str, u64, u64, u64); 4] = [
    ("small", 48, 200_000, 400_000),
    ("mid", 3000, 20_000, 80_000),
    ("large", 100_000, 4_000, 8_000),
    ("grown", 700, 120_000, 240_000),
];

/// An estimate may be off by a tenth: there are more than 4000 samples of each, so that this is six standard deviations.
#[track_caller]
fn is_about(what: &str, found: u64, known: u64) {
    assert!(found.abs_diff(known) * 10 <= known, "{what}: {found}, not about {known}");
}

fn estimates(json: &Value, function: &str, size: u64, key: &str) -> Sum {
    let stacks = json["stacks"].as_array().expect("stacks");
    // Of grown, the block before it was enlarged is another one of its stacks: they differ in the line.
    let of = |s: &&Value| functions(s).contains(&function);
    let sums = stacks.iter().filter(of).map(|s| sum_of(&s[key]));
    let near = |s: &Sum| s.blocks > 0 && s.bytes.div_ceil(s.blocks).abs_diff(size) * 20 <= size;
    sums.filter(near)
        .fold(Sum { blocks: 0, bytes: 0 }, |a, s| Sum { blocks: a.blocks + s.blocks, bytes: a.bytes + s.bytes })
}

#[test]
fn estimates_are_about_right() {
    let Some(program) = testkit::compiled("heap_sampled", "heap_sampled.c", &["-g", "-O1", "-pthread"]) else { return };
    each_user(|user| {
        let dir = lab::scratch();
        let (json, text) =
            (format!("json={}", dir.join("json").display()), format!("leaks={}", dir.join("text").display()));
        let args = ["heap", "--sample", "2K", "--as", &json, "--as", &text, "--", &program];
        let out = lab::run(&mut lab::trapline(user, &args));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let text = std::fs::read_to_string(dir.join("text")).expect("a view");
        assert!(text.lines().next().is_some_and(|l| l.ends_with("estimates: one sample for 2.00KiB")), "{text}");
        let json: Value = serde_json::from_slice(&std::fs::read(dir.join("json")).expect("a view")).expect("JSON");
        assert_eq!(json["sample"], 2048);
        for key in ["unknown_frees", "missed_frees", "lost"] {
            assert_eq!(json[key], 0, "{key}");
        }
        for (function, size, left, allocated) in KNOWN {
            for (key, known) in [("outstanding", left), ("total", allocated)] {
                let found = estimates(&json, function, size, key);
                is_about(&format!("{function} {key}"), found.blocks, known);
                is_about(&format!("{function} {key} bytes"), found.bytes, known * size);
            }
        }
    });
}

#[test]
fn all_that_is_sampled_is_freed() {
    let Some(program) = testkit::compiled("heap_sampled_all", "heap_sampled.c", &["-g", "-O1", "-pthread"]) else {
        return;
    };
    each_user(|user| {
        // Nearly all are: what is left is exact, but for the smallest.
        let args = ["heap", "-q", "--sample", "8", "--as", "json", "--", &program];
        let out = lab::run(&mut lab::trapline(user, &args));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let json: Value = serde_json::from_str(&out.out()).expect("JSON");
        for (function, size, left, allocated) in &KNOWN[1..] {
            let outstanding = estimates(&json, function, *size, "outstanding");
            assert_eq!(outstanding, Sum { blocks: *left, bytes: left * size }, "{function}");
            assert_eq!(estimates(&json, function, *size, "total").blocks, *allocated, "{function}");
        }
        assert_eq!((&json["unknown_frees"], &json["missed_frees"]), (&Value::from(0), &Value::from(0)));
    });
}
