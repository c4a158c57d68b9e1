//! What the views of a heap look like. `UPDATE_EXPECT=1` writes the texts anew; docs/HEAP.md quotes them.

use expect_test::{Expect, expect};
use serde_json::Value;
use views::heap::{Diff, Frames, Kind, Model, Of, Options, Rows, Who, Write};
use views::heap::{growth, json, leaks, peak, profile, temporary, totals};
use views::profile::Frame;

const MS: u64 = 1_000_000;
const ME: Who = Who { process: 0, tid: 1 };

/// Frames of each stack, innermost first: `FUNCTION MODULE FILE:LINE`.
const STACKS: [&[&str]; 7] = [
    &[],
    &["insert /usr/bin/app src/map.c:42", "load /usr/bin/app src/app.c:120", "main /usr/bin/app src/app.c:17"],
    &["copy /usr/bin/app src/text.c:9", "inlined! parse /usr/bin/app src/text.c:30", "main /usr/bin/app src/app.c:21"],
    &["cache /usr/bin/app src/cache.c:77", "main /usr/bin/app src/app.c:23"],
    &["[anon] /usr/lib/libz.so.1", "main /usr/bin/app src/app.c:30"],
    &["arena /usr/bin/app src/arena.c:5", "main /usr/bin/app src/app.c:16"],
    // The stack of another process: at other addresses, otherwise that of number 1.
    &["insert /usr/bin/app src/map.c:42", "load /usr/bin/app src/app.c:120", "main /usr/bin/app src/app.c:17"],
];

struct Names;

impl Frames for Names {
    fn frames(&self, stack: u32, each: &mut dyn FnMut(Frame<'_>)) {
        for text in STACKS.get(stack as usize).copied().unwrap_or_default() {
            let (inlined, text) = text.strip_prefix("inlined! ").map_or((false, *text), |text| (true, text));
            let mut words = text.split(' ');
            let function = words.next().filter(|f| *f != "[anon]").unwrap_or_default();
            let module = words.next().unwrap_or_default();
            let (file, line) = words.next().and_then(|place| place.split_once(':')).unwrap_or_default();
            each(Frame { function, module, file, line: line.parse().unwrap_or(0), inlined, ..Frame::default() });
        }
    }
}

/// One second of a program: a leak of `leak` bytes a ms, a cache that is filled in 600 ms, temporary copies, a mapping.
fn model(leak: u64) -> Model {
    let mut m = Model::new();
    m.alloc(ME, 0, Kind::Mmap, 0x7000_0000, 1 << 20, 5);
    m.alloc(ME, 0, Kind::Mmap, 0x7800_0000, 1 << 16, 5);
    m.unmap(0, MS, 0x7000_0000, 1 << 18);
    for n in 0..1000 {
        let time = n * MS;
        m.alloc(ME, time, Kind::Malloc, 0x10_0000 + n * 4096, leak, 1);
        m.alloc(ME, time + 10, Kind::Malloc, 0x20, 77, 2);
        m.free(ME, time + 20, 0x20);
        if n < 600 {
            m.alloc(ME, time + 30, Kind::Malloc, 0x2000_0000 + n * 4096, 400, 3);
        }
    }
    m.alloc(ME, 990 * MS, Kind::Malloc, 0x40, 100_000, 4);
    m.free(Who { tid: 2, ..ME }, 995 * MS, 0x40);
    m.end(0, 1000 * MS);
    m
}

const ALL: [(&str, Write); 9] = [
    ("leaks", leaks::write),
    ("peak", peak::write),
    ("totals", totals::write),
    ("temporary", temporary::write),
    ("growth", growth::write),
    ("flame", profile::flame),
    ("pprof", profile::pprof),
    ("folded", profile::folded),
    ("json", json::write),
];

fn text(view: &str, model: &Model, options: &Options, min_age: u64) -> String {
    let write = ALL.iter().find(|(name, _)| *name == view).expect("a view").1;
    let mut out = Vec::new();
    write(&Rows::new(model, &Names, min_age), options, 0, &mut out);
    String::from_utf8(out).expect("views write UTF-8")
}

fn options() -> Options {
    Options { name: "app".into(), ..Options::default() }
}

fn check(view: &str, model: &Model, want: Expect) {
    want.assert_eq(&text(view, model, &options(), 0));
}

#[test]
fn leaks() {
    check(
        "leaks",
        &model(24),
        expect![[r#"
        app: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB

        234KiB in 600 blocks (90.91%), oldest 999ms
         > /usr/bin/app(cache) src/cache.c:77
         > /usr/bin/app(main) src/app.c:23

        23.4KiB in 1000 blocks (9.09%), oldest 999ms
         > /usr/bin/app(insert) src/map.c:42
         > /usr/bin/app(load) src/app.c:120
         > /usr/bin/app(main) src/app.c:17

        By mmap:

        832KiB in 2 mappings (100.00%), oldest 1.00s
         > /usr/bin/app(arena) src/arena.c:5
         > /usr/bin/app(main) src/app.c:16
    "#]],
    );
}

#[test]
fn leaks_of_an_age_and_the_first_of_them() {
    let options = Options { top: 1, ..options() };
    expect![[r#"
        app: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
        at least 500ms old: 207KiB in 1002 blocks, 832KiB in 2 mappings

        196KiB in 501 blocks (94.34%), oldest 999ms
         > /usr/bin/app(cache) src/cache.c:77
         > /usr/bin/app(main) src/app.c:23

        1 more stack: 11.7KiB in 501 blocks

        By mmap:

        832KiB in 2 mappings (100.00%), oldest 1.00s
         > /usr/bin/app(arena) src/arena.c:5
         > /usr/bin/app(main) src/app.c:16
    "#]]
    .assert_eq(&text("leaks", &model(24), &options, 500 * MS));
}

#[test]
fn peak() {
    check(
        "peak",
        &model(24),
        expect![[r#"
        app: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
        at 999ms: 355KiB in 1601 blocks

        234KiB in 600 blocks (65.93%), own peak 234KiB
         > /usr/bin/app(cache) src/cache.c:77
         > /usr/bin/app(main) src/app.c:23

        97.7KiB in 1 block (27.47%), own peak 97.7KiB
         > /usr/lib/libz.so.1()
         > /usr/bin/app(main) src/app.c:30

        23.4KiB in 1000 blocks (6.59%), own peak 23.4KiB
         > /usr/bin/app(insert) src/map.c:42
         > /usr/bin/app(load) src/app.c:120
         > /usr/bin/app(main) src/app.c:17
    "#]],
    );
}

#[test]
fn totals() {
    check(
        "totals",
        &model(24),
        expect![[r#"
        app: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
        2601 allocations of 169B on average, 1000 temporary (38.45%)

        1000 allocations (38.45%), 75.2KiB, 1000 temporary
         > /usr/bin/app(copy) src/text.c:9
         > /usr/bin/app(parse) src/text.c:30 (inlined)
         > /usr/bin/app(main) src/app.c:21

        1000 allocations (38.45%), 23.4KiB
         > /usr/bin/app(insert) src/map.c:42
         > /usr/bin/app(load) src/app.c:120
         > /usr/bin/app(main) src/app.c:17

        600 allocations (23.07%), 234KiB
         > /usr/bin/app(cache) src/cache.c:77
         > /usr/bin/app(main) src/app.c:23

        1 allocation (0.04%), 97.7KiB
         > /usr/lib/libz.so.1()
         > /usr/bin/app(main) src/app.c:30

        By mmap:

        1.06MiB in 2 mappings (100.00%)
         > /usr/bin/app(arena) src/arena.c:5
         > /usr/bin/app(main) src/app.c:16
    "#]],
    );
}

#[test]
fn temporary() {
    check(
        "temporary",
        &model(24),
        expect![[r#"
        app: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
        1000 temporary of 2601 allocations (38.45%)

        1000 temporary of 1000 allocations (100.00%), 77B on average
         > /usr/bin/app(copy) src/text.c:9
         > /usr/bin/app(parse) src/text.c:30 (inlined)
         > /usr/bin/app(main) src/app.c:21
    "#]],
    );
}

#[test]
fn growth() {
    check(
        "growth",
        &model(24),
        expect![[r#"
            app: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
            mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
            levels off; mmap: no growth; 1 stack grows steadily

              time   bytes blocks   mmap of the peak
            ------ ------- ------ ------ ----------------------------
               0ns      0B      0     0B
            62.9ms 26.1KiB    126 832KiB @@
             126ms 52.2KiB    252 832KiB @@@@@
             189ms 78.3KiB    378 832KiB @@@@@@@@
             252ms  104KiB    504 832KiB @@@@@@@@@@@
             315ms  130KiB    630 832KiB @@@@@@@@@@@@@@
             377ms  157KiB    756 832KiB @@@@@@@@@@@@@@@@@
             440ms  183KiB    882 832KiB @@@@@@@@@@@@@@@@@@@@
             503ms  209KiB   1008 832KiB @@@@@@@@@@@@@@@@@@@@@@@
             566ms  235KiB   1134 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@
             629ms  249KiB   1230 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@@@
             692ms  251KiB   1293 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@@@
             755ms  252KiB   1355 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@@@
             818ms  254KiB   1418 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@@@
             881ms  255KiB   1481 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@@@
             944ms  256KiB   1544 832KiB @@@@@@@@@@@@@@@@@@@@@@@@@@@@

            +143KiB, levels off: 234KiB in 600 blocks
             > /usr/bin/app(cache) src/cache.c:77
             > /usr/bin/app(main) src/app.c:23

            +15.0KiB, grows steadily (23.5KiB/s at the end): 23.4KiB in 1000 blocks
             > /usr/bin/app(insert) src/map.c:42
             > /usr/bin/app(load) src/app.c:120
             > /usr/bin/app(main) src/app.c:17
        "#]],
    );
}

#[test]
fn a_heap_of_nothing_and_one_that_is_too_short() {
    let mut m = Model::new();
    check(
        "leaks",
        &m,
        expect![[r#"
        app: 0B in 0 blocks outstanding of 0 allocations, 0B; peak 0B at 0ns
    "#]],
    );
    m.alloc(ME, 5, Kind::Malloc, 16, 1, 0);
    check(
        "growth",
        &m,
        expect![[r#"
            app: 1B in 1 block outstanding of 1 allocation, 1B; peak 1B at 0ns
            too short to tell

            time bytes blocks of the peak
            ---- ----- ------ -----------
             0ns    0B      0
        "#]],
    );
    for (view, _) in ALL {
        text(view, &Model::new(), &options(), 0);
    }
}

#[test]
fn inexact_numbers_are_named() {
    let mut m = Model::new();
    m.alloc(ME, 0, Kind::Malloc, 16, 10, 1);
    m.reset(5);
    m.free(ME, 6, 16);
    m.free(ME, 7, 32);
    m.alloc(ME, 8, Kind::Malloc, 16, 10, 1);
    m.alloc(ME, 9, Kind::Malloc, 16, 20, 1);
    m.lost(3);
    m.fork(0, 1, 10);
    // The child's stack has the same frames: one row.
    m.alloc(Who { process: 1, tid: 5 }, 11, Kind::Malloc, 64, 5, 6);
    check(
        "leaks",
        &m,
        expect![[r#"
        app: 25B in 2 blocks outstanding of 3 allocations, 35B; peak 25B at 6ns
        3 events lost: numbers are too high or too low by up to that
        1 free not seen: the address was allocated again
        1 free of blocks whose allocation was not seen
        1 free of blocks from before the reset
        20B in 1 block that forks have copied, not in these numbers

        25B in 2 blocks (100.00%), oldest 2ns
         > /usr/bin/app(insert) src/map.c:42
         > /usr/bin/app(load) src/app.c:120
         > /usr/bin/app(main) src/app.c:17
    "#]],
    );
}

#[test]
fn differences() {
    let (before, after) = (Rows::new(&model(24), &Names, 0), Rows::new(&model(56), &Names, 0));
    let mut out = Vec::new();
    Diff { before: &before, after: &after }.write(&options(), &mut out);
    expect![[r#"
        before: 258KiB in 1600 blocks outstanding of 2601 allocations, 431KiB; peak 355KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
        after: 289KiB in 1600 blocks outstanding of 2601 allocations, 462KiB; peak 387KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB

        +31.2KiB (23.4KiB -> 54.7KiB), 0 blocks (1000 -> 1000)
         > /usr/bin/app(insert) src/map.c:42
         > /usr/bin/app(load) src/app.c:120
         > /usr/bin/app(main) src/app.c:17
    "#]]
    .assert_eq(&String::from_utf8_lossy(&out));
    out.clear();
    Diff { before: &after, after: &Rows::new(&Model::new(), &Names, 0) }
        .write(&Options { top: 1, of: Of::Total, ..options() }, &mut out);
    expect![[r#"
        before: 289KiB in 1600 blocks outstanding of 2601 allocations, 462KiB; peak 387KiB at 999ms
        mmap: 832KiB in 2 mappings outstanding of 2, 1.06MiB
        after: 0B in 0 blocks outstanding of 0 allocations, 0B; peak 0B at 0ns

        -54.7KiB (54.7KiB -> 0B), -1000 blocks (1000 -> 0)
         > /usr/bin/app(insert) src/map.c:42
         > /usr/bin/app(load) src/app.c:120
         > /usr/bin/app(main) src/app.c:17

        3 more stacks: -407KiB, -1601 blocks

        By mmap:

        -1.06MiB (1.06MiB -> 0B), -2 mappings (2 -> 0)
         > /usr/bin/app(arena) src/arena.c:5
         > /usr/bin/app(main) src/app.c:16
    "#]]
    .assert_eq(&String::from_utf8_lossy(&out));
    out.clear();
    Diff { before: &after, after: &after }.write(&options(), &mut out);
    assert!(out.ends_with(b"\n\nNo stack has changed.\n"));
}

#[test]
fn folded() {
    check(
        "folded",
        &model(24),
        expect![[r#"
        malloc;main;cache 240000
        malloc;main;load;insert 24000
        mmap;main;arena 851968
    "#]],
    );
    let of_peak = Options { of: Of::Peak, ..options() };
    expect![[r#"
        main;[libz.so.1] 100000
        main;cache 240000
        main;load;insert 24000
    "#]]
    .assert_eq(&text("folded", &model(24), &of_peak, 0));
}

#[test]
fn pictures_and_files_of_other_programs_have_the_same_bytes() {
    let svg = text("flame", &model(24), &options(), 0);
    assert!(svg.contains("app: memory, outstanding") && svg.contains("insert"), "{svg}");
    let mut pprof = Vec::new();
    profile::pprof(&Rows::new(&model(24), &Names, 0), &options(), 0, &mut pprof);
    for name in ["insert", "inuse_objects", "inuse_space", "bytes", "arena", "in 1602 blocks"] {
        assert!(pprof.windows(name.len()).any(|w| w == name.as_bytes()), "{name}");
    }
}

#[test]
fn json() {
    let all: Value = serde_json::from_str(&text("json", &model(24), &options(), 500 * MS)).expect("JSON");
    let mut short = all.clone();
    let points = short["series"]["points"].take();
    assert_eq!(points[0], serde_json::json!([0, 0, 0, 0]));
    assert!((512..=1024).contains(&points.as_array().expect("points").len()));
    let stacks = short["stacks"].take();
    expect![[r#"
        {
          "at_peak": {
            "blocks": 1601,
            "bytes": 364000
          },
          "copies": {
            "blocks": 0,
            "bytes": 0
          },
          "end_ns": 1000000000,
          "frees_of_before": 0,
          "frees_of_copies": 0,
          "growth": {
            "bytes": 150224,
            "verdict": "levels-off"
          },
          "live": {
            "blocks": 0,
            "bytes": 0
          },
          "lost": 0,
          "mapped_growth": {
            "bytes": 0,
            "verdict": "no-growth"
          },
          "mapped_live": {
            "blocks": 0,
            "bytes": 0
          },
          "mapped_old": {
            "blocks": 2,
            "bytes": 851968
          },
          "mapped_outstanding": {
            "blocks": 2,
            "bytes": 851968
          },
          "mapped_total": {
            "blocks": 2,
            "bytes": 1114112
          },
          "min_age_ns": 500000000,
          "missed_frees": 0,
          "name": "app",
          "old": {
            "blocks": 1002,
            "bytes": 212424
          },
          "outstanding": {
            "blocks": 1600,
            "bytes": 264000
          },
          "peak": 364000,
          "peak_ns": 999000020,
          "sample": 0,
          "series": {
            "points": null,
            "stack_step_ns": 33554432,
            "step_ns": 1048576
          },
          "stacks": null,
          "start_ns": 0,
          "temporary": 1000,
          "total": {
            "blocks": 2601,
            "bytes": 441000
          },
          "unknown_frees": 0,
          "v": 1
        }
    "#]]
    .assert_eq(&format!("{short:#}\n"));
    let mut first = stacks[0].clone();
    assert!((16..=32).contains(&first["points"].take().as_array().expect("points").len()));
    expect![[r#"
        {
          "at_peak": {
            "blocks": 1000,
            "bytes": 24000
          },
          "copies": {
            "blocks": 0,
            "bytes": 0
          },
          "frames": [
            {
              "file": "src/map.c",
              "function": "insert",
              "line": 42,
              "module": "/usr/bin/app"
            },
            {
              "file": "src/app.c",
              "function": "load",
              "line": 120,
              "module": "/usr/bin/app"
            },
            {
              "file": "src/app.c",
              "function": "main",
              "line": 17,
              "module": "/usr/bin/app"
            }
          ],
          "growth": {
            "bytes": 15312,
            "bytes_per_second": 24050,
            "verdict": "grows-steadily"
          },
          "live": {
            "blocks": 0,
            "bytes": 0
          },
          "mapped_live": {
            "blocks": 0,
            "bytes": 0
          },
          "mapped_old": {
            "blocks": 0,
            "bytes": 0
          },
          "mapped_oldest_ns": 0,
          "mapped_outstanding": {
            "blocks": 0,
            "bytes": 0
          },
          "mapped_total": {
            "blocks": 0,
            "bytes": 0
          },
          "old": {
            "blocks": 501,
            "bytes": 12024
          },
          "oldest_ns": 999000000,
          "outstanding": {
            "blocks": 1000,
            "bytes": 24000
          },
          "peak": 24000,
          "points": null,
          "temporary": 0,
          "total": {
            "blocks": 1000,
            "bytes": 24000
          }
        }
    "#]]
    .assert_eq(&format!("{first:#}\n"));
    // All stacks together are the whole.
    for of in ["outstanding", "total", "at_peak", "old", "mapped_total", "mapped_outstanding"] {
        for what in ["bytes", "blocks"] {
            let sum: u64 = stacks.as_array().expect("stacks").iter().filter_map(|s| s[of][what].as_u64()).sum();
            assert_eq!(all[of][what], sum, "{of} {what}");
        }
    }
}

#[test]
fn names_cannot_harm_a_terminal() {
    struct Evil;
    impl Frames for Evil {
        fn frames(&self, _: u32, each: &mut dyn FnMut(Frame<'_>)) {
            let bad = "\x1b[2J\n\u{202e}\u{9b}";
            each(Frame { function: bad, module: bad, file: bad, line: 1, ..Frame::default() });
        }
    }
    let rows = Rows::new(&model(24), &Evil, 0);
    let options = Options { name: "\x1b[31mapp\n".into(), ..options() };
    for (name, write) in ALL {
        let mut out = Vec::new();
        write(&rows, &options, 0, &mut out);
        if name != "pprof" {
            let text = String::from_utf8(out).expect("UTF-8");
            let bad = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(bad), "{name}: {text}");
            assert!(text.contains("2J"), "{name}");
        }
    }
    let mut out = Vec::new();
    Diff { before: &rows, after: &Rows::new(&Model::new(), &Evil, 0) }.write(&options, &mut out);
    assert!(out.iter().all(|c| matches!(c, b'\n' | b' '..=b'~')));
}
