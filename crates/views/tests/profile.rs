//! Golden tests of the views of profiles, and names that nobody would choose. `UPDATE_EXPECT=1` writes the goldens anew.

mod stacks;

use expect_test::{Expect, expect, expect_file};
use proptest::prelude::*;
use serde_json::Value;
use stacks::{add, later, usual};
use std::process::Command;
use views::profile::diff::Diff;
use views::profile::flame::Flame;
use views::profile::functions::{Sort, sorted};
use views::profile::table::{Table, redraw};
use views::profile::tree::Tree;
use views::profile::{By, Frame, Labels, Limits, Stacks, Unit, folded, json, pprof};
use views::stack::{self, Place};

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("views write UTF-8")
}

fn check(write: impl FnOnce(&mut Vec<u8>), want: Expect) {
    want.assert_eq(&text(write));
}

#[test]
fn table() {
    check(
        |o| Table { width: 80, ..Table::default() }.write(&usual(), o),
        expect![[r#"
        1000 samples, one every 10.1ms (10.1s in all), of 7 stacks

         self% total% self total module    function
        ------ ------ ---- ----- --------- ---------------------------------------------
        40.00% 40.00%  400   400 app       hash_insert
        20.00% 20.00%  200   200 app       render
        15.00% 15.00%  150   150 libc.so.6 malloc
        12.00% 12.00%  120   120 [kernel]  vfs_write
         9.00%  9.00%   90    90 app       std::vector<int,std::..nt>>::push_back(int&&)
         3.00% 58.00%   30   580 app       parse
         1.00%  1.00%   10    10 -         [unknown]
         0.00% 90.00%    0   900 app       _start
         0.00% 87.00%    0   870 app       main
         0.00% 12.00%    0   120 [kernel]  do_syscall_64
         0.00% 12.00%    0   120 [kernel]  ksys_write
         0.00% 12.00%    0   120 libc.so.6 write
         0.00%  9.00%    0    90 libc.so.6 start_thread
         0.00%  3.00%    0    30 libz.so.1 [libz.so.1]
    "#]],
    );
    check(
        |o| Table { sort: Sort::Total, rows: 3, width: 60 }.write(&usual(), o),
        expect![[r#"
        1000 samples, one every 10.1ms (10.1s in all), of 7 stacks

        self% total% self total module function
        ----- ------ ---- ----- ------ --------
        0.00% 90.00%    0   900 app    _start
        0.00% 87.00%    0   870 app    main
        3.00% 58.00%   30   580 app    parse
        11 more functions
    "#]],
    );
}

#[test]
fn a_table_of_times_and_one_of_nothing() {
    let mut s = Stacks::with_limits(Unit::Nanoseconds, Limits { stacks: 2, ..Limits::default() });
    check(
        |o| Table::default().write(&s, o),
        expect![[r#"
        0ns in 0 events, of 0 stacks
    "#]],
    );
    add(&mut s, "1500000 sh main@/bin/sh wait@/bin/sh\n 20 sh main@/bin/sh\n 5 sh main@/bin/sh other@/bin/sh");
    check(
        |o| Table::default().write(&s, o),
        expect![[r#"
            1.50ms in 3 events, of 2 stacks; 5ns did not fit and are not shown

              self%  total%   self  total module function
            ------- ------- ------ ------ ------ --------
            100.00% 100.00% 1.50ms 1.50ms sh     wait
              0.00% 100.00%   20ns 1.50ms sh     main
              0.00%   0.00%    0ns    0ns sh     other
        "#]],
    );
}

#[test]
fn a_table_has_the_requested_number_of_lines() {
    let table = Table { width: 80, ..Table::default() };
    for rows in 0..20 {
        let screen = table.screen(&usual(), rows);
        assert!(screen.len() <= rows && screen.iter().all(|l| l.len() <= 80), "{rows}: {screen:?}");
    }
    assert_eq!(table.screen(&usual(), 9).len(), 9);
    let drawn = text(|o| redraw(&["one".to_owned(), "two".to_owned()], o));
    assert_eq!(drawn, "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J");
}

#[test]
fn folded_stacks() {
    check(
        |o| folded::write(&usual(), By::Comm, o),
        expect![[r#"
        app;_start;[libz.so.1]_[g];parse 30
        app;_start;main;parse;hash_insert_[i] 400
        app;_start;main;parse;malloc 150
        app;_start;main;render 200
        app;_start;main;write;do_syscall_64_[k];ksys_write_[k];vfs_write_[k] 120
        worker;[unknown] 10
        worker;start_thread;std::vector<int,std::allocator<int>>::push_back(int&&) 90
    "#]],
    );
    let lines = |by| text(|o| folded::write(&usual(), by, o)).lines().last().map(str::to_owned).unwrap_or_default();
    assert!(lines(By::Thread).starts_with("worker-100/101;start_thread;"), "{}", lines(By::Thread));
    assert!(lines(By::Nothing).starts_with("start_thread;"), "{}", lines(By::Nothing));
}

#[test]
fn flame_graphs() {
    let flame = Flame { title: "app <&>".to_owned(), ..Flame::default() };
    expect_file!["golden/profile_flame.svg"].assert_eq(&text(|o| flame.write(&usual(), o)));
    let changed = text(|o| flame.write_difference(&usual(), &later(), o));
    let (frames, _) = changed.split_once("<g id=\"head\">").expect("a heading");
    let (_, frames) = frames.split_once("</style>\n").expect("a style");
    expect_file!["golden/profile_difference.txt"].assert_eq(frames);
}

#[test]
fn only_the_heaviest_frames_are_drawn_and_the_rest_is_counted() {
    let mut s = Stacks::new(Unit::Events);
    let lines: String = (0..12_000).map(|n| format!("{} c main f{n}\n", 1 + n / 4000)).collect();
    add(&mut s, &lines);
    let svg = text(|o| Flame::default().write(&s, o));
    // The whole, the group, main, and those of weight 2 and 3; all of those of weight 1 are left out.
    assert_eq!(svg.matches("<rect x=").count(), 3 + 8000 + 1);
    assert!(svg.contains("4000 frames, each at most 0.00% of the whole, are not drawn"));
}

#[test]
fn each_view_says_what_was_lost() {
    let with = |lost: Option<u64>| {
        let mut s = usual();
        s.set_lost(lost);
        all_views(&s)
    };
    let all = |lost: Option<u64>| {
        with(lost).into_iter().map(|(name, out)| (name, String::from_utf8_lossy(&out).into_owned()))
    };
    for (name, text) in all(Some(1308)) {
        match name {
            "json" => assert!(text.contains(r#""lost":1308,"#), "{text}"),
            "folded" => assert_eq!(text.lines().last().and_then(folded::parse_lost), Some(1308)),
            "folded diff" | "counts" => {}
            _ => assert!(text.contains("of 7 stacks; 1308 events were lost"), "{name}: {text}"),
        }
    }
    assert!(all(Some(1)).all(|(name, text)| name != "folded" || text.ends_with("\n[1 event was lost] 0\n")));
    // None, and not known.
    for (lost, number) in [(Some(0), "0"), (None, "null")] {
        for (name, text) in all(lost) {
            assert!(
                !text.contains("lost") || name == "json" && text.contains(&format!("\"lost\":{number},")),
                "{name}"
            );
        }
    }
    let others = ["[1 event was lost] 1", "[x events were lost] 0", "[3 events were lost];f 0", "main 0"];
    assert!(others.into_iter().all(|line| folded::parse_lost(line).is_none()));
}

#[test]
fn json_is_speedscope_s() {
    let out = text(|o| json::write(&usual(), By::Thread, o));
    let v: Value = serde_json::from_str(&out).expect("JSON");
    let pretty = serde_json::to_string_pretty(&v["trapline"]).expect("JSON");
    expect![[r#"
        {
          "first_ns": 0,
          "last_ns": 6000000,
          "lost": null,
          "not_held": {
            "samples": 0,
            "weight": 0
          },
          "period_ns": 10101010,
          "total": {
            "samples": 1000,
            "weight": 1000
          },
          "unit": "samples",
          "v": 2
        }"#]]
    .assert_eq(&pretty);
    let frames = v["shared"]["frames"].as_array().expect("frames");
    expect![[r#"
        {"file":"src/app.c","inlined":true,"line":21,"module":"/usr/bin/app","name":"hash_insert"}
        {"kernel":true,"name":"do_syscall_64"}"#]]
    .assert_eq(&format!("{}\n{}", frames[3], frames[7]));
    let profiles = v["profiles"].as_array().expect("profiles");
    let mut sum = 0;
    for p in profiles {
        let (samples, weights) = (p["samples"].as_array().expect("samples"), p["weights"].as_array().expect("weights"));
        assert_eq!((samples.len(), p["counts"].as_array().map(Vec::len)), (weights.len(), Some(weights.len())));
        let weight: u64 = weights.iter().filter_map(Value::as_u64).sum();
        assert_eq!(p["endValue"].as_u64(), Some(weight));
        let ids = samples.iter().filter_map(Value::as_array).flatten();
        assert!(ids.filter_map(Value::as_u64).all(|id| id < frames.len() as u64));
        sum += weight;
    }
    assert_eq!(sum, 1000);
    expect![[r#"{"comm":"app","counts":[400,200,30],"endValue":630,"name":"app-100/100","pid":100,"samples":[[0,1,2,3],[0,1,5],[0,10,2]],"startValue":0,"tid":100,"type":"sampled","unit":"none","weights":[400,200,30]}"#]].assert_eq(&profiles[0].to_string());
}

#[test]
fn differences() {
    let (before, after) = (usual(), later());
    let diff = Diff { before: &before, after: &after };
    check(
        |o| diff.table(usize::MAX, 80, o),
        expect![[r#"
        before: 1000 samples, one every 10.1ms (10.1s in all), of 7 stacks
        after: 1130 samples, one every 10.1ms (11.4s in all), of 6 stacks

         self% change total% change module    function
        ------ ------ ------ ------ --------- ------------------------------------------
         8.85% -31.15  8.85% -31.15 app       hash_insert
        35.40% +15.40 46.02% +26.02 app       render
        26.55% +11.55 26.55% +11.55 libc.so.6 malloc
        10.62% +10.62 10.62% +10.62 app       draw_text
         0.00%  -3.00 35.40% -22.60 app       parse
        10.62%  -1.38 10.62%  -1.38 [kernel]  vfs_write
         7.96%  -1.04  7.96%  -1.04 app       std::vector<int,std:..>>::push_back(int&&)
         0.00%  -1.00  0.00%  -1.00 -         [unknown]
         0.00%   0.00 92.04%  +5.04 app       main
         0.00%   0.00  0.00%  -3.00 libz.so.1 [libz.so.1]
         0.00%   0.00 92.04%  +2.04 app       _start
         0.00%   0.00 10.62%  -1.38 [kernel]  do_syscall_64
         0.00%   0.00 10.62%  -1.38 [kernel]  ksys_write
         0.00%   0.00 10.62%  -1.38 libc.so.6 write
         0.00%   0.00  7.96%  -1.04 libc.so.6 start_thread
    "#]],
    );
    check(
        |o| diff.folded(By::Nothing, false, o),
        expect![[r#"
        [unknown] 10 0
        _start;[libz.so.1]_[g];parse 30 0
        _start;main;parse;hash_insert_[i] 400 100
        _start;main;parse;malloc 150 300
        _start;main;render 200 400
        _start;main;render;draw_text 0 120
        _start;main;write;do_syscall_64_[k];ksys_write_[k];vfs_write_[k] 120 120
        start_thread;std::vector<int,std::allocator<int>>::push_back(int&&) 90 90
    "#]],
    );
    let scaled = text(|o| diff.folded(By::Nothing, true, o));
    assert!(scaled.contains("_start;main;render 226 400\n"), "{scaled}");
    check(
        |o| Diff { before: &before, after: &before }.table(9, 80, o),
        expect![[r#"
        before: 1000 samples, one every 10.1ms (10.1s in all), of 7 stacks
        after: 1000 samples, one every 10.1ms (10.1s in all), of 7 stacks
        No function has changed.
    "#]],
    );
}

#[test]
fn stacks_by_weight() {
    check(
        |o| stack::counts::write(&usual(), By::Comm, 3, o),
        expect![[r#"
        1000 samples, one every 10.1ms (10.1s in all), of 7 stacks

        400 samples (40.00%) app
         > /usr/bin/app(hash_insert) src/app.c:21 (inlined)
         > /usr/bin/app(parse) src/app.c:15
         > /usr/bin/app(main) src/app.c:14
         > /usr/bin/app(_start) src/app.c:16

        200 samples (20.00%) app
         > /usr/bin/app(render) src/app.c:16
         > /usr/bin/app(main) src/app.c:14
         > /usr/bin/app(_start) src/app.c:16

        150 samples (15.00%) app
         > /usr/lib/libc.so.6(malloc)
         > /usr/bin/app(parse) src/app.c:15
         > /usr/bin/app(main) src/app.c:14
         > /usr/bin/app(_start) src/app.c:16

        4 more stacks
    "#]],
    );
}

fn places() -> [Place<'static>; 5] {
    let f = |function, module| Frame { function, module, ..Frame::default() };
    let app = Frame { file: "src/app.c", line: 42, ..f("main", "/usr/bin/app") };
    [
        Place { frame: Frame { kernel: true, ..f("vfs_write", "") }, offset: Some(0x1c), address: Some(!0 << 31) },
        Place { frame: f("__write", "/usr/lib/libc.so.6"), offset: Some(0x10), address: Some(0xf8350) },
        Place { frame: Frame { inlined: true, function: "flush", ..app }, offset: None, address: Some(0x2ea2) },
        Place { frame: app, offset: Some(0x1d), address: Some(0x2ea2) },
        Place { frame: Frame { guessed: true, ..f("", "/usr/bin/app") }, offset: None, address: Some(0x60c4) },
    ]
}

#[test]
fn stacks_of_events() {
    let below = |sources| {
        move |o: &mut Vec<u8>| {
            o.extend_from_slice(b"write(1, \"hi\\n\", 3) = 3\n");
            stack::text(&places(), sources, o);
        }
    };
    check(
        below(false),
        expect![[r#"
        write(1, "hi\n", 3) = 3
         > [kernel](vfs_write+0x1c) [0xffffffff80000000]
         > /usr/lib/libc.so.6(__write+0x10) [0xf8350]
         > /usr/bin/app(flush) [0x2ea2] (inlined)
         > /usr/bin/app(main+0x1d) [0x2ea2]
         > /usr/bin/app() [0x60c4] (guessed)
    "#]],
    );
    check(
        below(true),
        expect![[r#"
        write(1, "hi\n", 3) = 3
         > [kernel](vfs_write+0x1c) [0xffffffff80000000]
         > /usr/lib/libc.so.6(__write+0x10) [0xf8350]
         > /usr/bin/app(flush) [0x2ea2] src/app.c:42 (inlined)
         > /usr/bin/app(main+0x1d) [0x2ea2] src/app.c:42
         > /usr/bin/app() [0x60c4] (guessed)
    "#]],
    );
    check(|o| stack::fold(&places(), o), expect!["[app]_[g];main;flush_[i];__write;vfs_write_[k]"]);
    let json = text(|o| stack::json(&places(), o));
    let v: Value = serde_json::from_str(&json).expect("JSON");
    let lines: Vec<String> = v.as_array().expect("an array").iter().map(Value::to_string).collect();
    expect![[r#"
        {"address":"0xffffffff80000000","function":"vfs_write","kernel":true,"offset":"0x1c"}
        {"address":"0xf8350","function":"__write","module":"/usr/lib/libc.so.6","offset":"0x10"}
        {"address":"0x2ea2","file":"src/app.c","function":"flush","inlined":true,"line":42,"module":"/usr/bin/app"}
        {"address":"0x2ea2","file":"src/app.c","function":"main","line":42,"module":"/usr/bin/app","offset":"0x1d"}
        {"address":"0x60c4","guessed":true,"module":"/usr/bin/app"}"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_line_of_a_stack_is_strace_s() {
    // As strace 6.1 prints it: ` > FILE(FUNCTION+0xOFFSET) [0xADDRESS]`, ` > FILE() [0xADDRESS]`.
    let place = |function| Place {
        frame: Frame { function, module: "/usr/bin/echo", ..Frame::default() },
        offset: Some(0x91),
        address: Some(0x27251),
    };
    assert_eq!(text(|o| stack::line(&place("main"), false, o)), " > /usr/bin/echo(main+0x91) [0x27251]\n");
    assert_eq!(text(|o| stack::line(&place(""), false, o)), " > /usr/bin/echo() [0x27251]\n");
}

#[test]
fn strace_prints_the_same_lines() {
    if !testkit::has("strace") {
        return testkit::skip("package:strace", "no strace");
    }
    let out = Command::new("strace").args(["-k", "-e", "trace=write", "echo", "hi"]).output().expect("strace");
    let said = String::from_utf8_lossy(&out.stderr);
    let lines: Vec<&str> = said.lines().filter(|l| l.starts_with(" > ")).collect();
    if lines.is_empty() {
        return testkit::skip("package:strace", "strace cannot trace here, or was built without stacks");
    }
    for line in lines {
        let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap_or_else(|e| panic!("{line}: {e}"));
        let (module, rest) = line[3..].rsplit_once('(').expect("a function");
        let (function, address) = rest.strip_suffix(']').and_then(|r| r.split_once(") [0x")).expect("an address");
        let (function, offset) = function.split_once("+0x").map_or((function, None), |(f, o)| (f, Some(number(o))));
        let frame = Frame { function, module, ..Frame::default() };
        let place = Place { frame, offset, address: Some(number(address)) };
        assert_eq!(text(|o| stack::line(&place, false, o)), format!("{line}\n"));
    }
}

/// Everything that the views make of a profile.
fn all_views(s: &Stacks) -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&'static str, Vec<u8>)> = Vec::new();
    let mut add = |name, write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        all.push((name, out));
    };
    add("table", &|o| Table { width: 80, ..Table::default() }.write(s, o));
    add("folded", &|o| folded::write(s, By::Thread, o));
    add("flame", &|o| Flame { title: "\u{1b}]]></title>".to_owned(), ..Flame::default() }.write(s, o));
    add("difference", &|o| Flame::default().write_difference(s, s, o));
    add("json", &|o| json::write(s, By::Process, o));
    add("pprof", &|o| pprof::write(s, i64::MIN, o));
    add("diff", &|o| Diff { before: s, after: s }.table(9, 80, o));
    add("folded diff", &|o| Diff { before: s, after: s }.folded(By::Comm, true, o));
    add("counts", &|o| stack::counts::write(s, By::Process, 9, o));
    all
}

/// Strings of characters that mean something somewhere.
fn hostile() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        '<',
        '>',
        '&',
        '"',
        '\'',
        ';',
        '\\',
        '\0',
        '\u{1b}',
        '\n',
        '\r',
        '\t',
        ' ',
        ']',
        '\u{9b}',
        '\u{202e}',
        '\u{7f}',
        '\u{ffff}',
        '\u{fffe}',
        '\u{2028}',
        'é',
        '漢',
        '\u{10ffff}',
        'a',
        '1',
        '(',
        '/',
        '-',
        '_',
        '[',
        '{',
    ]);
    prop::collection::vec(special, 0..12).prop_map(|c| c.into_iter().collect())
}

proptest! {
    #[test]
    fn no_name_breaks_a_view(
        names in prop::collection::vec((hostile(), hostile(), any::<[bool; 3]>()), 1..6),
        stacks in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 0..8), any::<u64>()), 0..8),
        comm in hostile(),
    ) {
        let mut s = Stacks::new(Unit::Bytes);
        let frames: Vec<_> = names.iter().map(|(function, module, [inlined, guessed, kernel])| {
            s.frame(&Frame { function, module, file: function, line: 1, inlined: *inlined, guessed: *guessed, kernel: *kernel })
        }).collect();
        let labels = s.labels(Labels { pid: 1, tid: 2, comm: &comm });
        for (indices, weight) in &stacks {
            let ids: Vec<_> = indices.iter().map(|i| frames[i.index(frames.len())]).collect();
            let id = s.stack(&ids);
            s.add(id, labels, *weight, *weight);
        }
        for (name, out) in all_views(&s) {
            if name == "pprof" {
                continue;
            }
            let text = String::from_utf8(out).expect("UTF-8");
            let is_bad = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2028}".contains(c);
            prop_assert!(!text.chars().any(is_bad), "{}: {:?}", name, text);
            match name {
                "json" => {
                    prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
                    prop_assert_eq!(text.matches('\n').count(), 1);
                }
                "folded" => prop_assert!(text.lines().all(|l| l.rsplit(' ').next().is_some_and(|n| n.parse::<u64>().is_ok()))),
                "flame" | "difference" => balanced(&text),
                "table" | "diff" | "counts" => prop_assert!(text.is_ascii()),
                _ => {}
            }
        }
        // As many parts as frames, and the group.
        for line in text(|o| folded::write(&s, By::Comm, o)).lines() {
            let parts = line.split(';').count();
            prop_assert!(stacks.iter().any(|(i, _)| i.len() + 1 == parts), "{}", line);
        }
    }
}

proptest! {
    #[test]
    fn views_agree_on_the_whole(
        samples in prop::collection::vec((prop::collection::vec(0..5usize, 0..6), 0..3u32, 0..1000u64), 0..40),
        stacks in 0..30usize,
    ) {
        let mut s = Stacks::with_limits(Unit::Events, Limits { stacks, ..Limits::default() });
        let names = ["a", "b", "c", "d", "e"].map(|function| s.frame(&Frame { function, ..Frame::default() }));
        for (frames, tid, weight) in &samples {
            let frames: Vec<_> = frames.iter().map(|&f| names[f]).collect();
            let (stack, labels) = (s.stack(&frames), s.labels(Labels { pid: 1, tid: *tid, comm: "c" }));
            s.add(stack, labels, *weight, 0);
        }
        let whole: u64 = samples.iter().map(|(_, _, weight)| weight).sum();
        prop_assert_eq!((s.total().weight, s.kept() + s.not_held().weight), (whole, whole));
        prop_assert_eq!(s.total().samples, samples.len() as u64);
        let last = |line: &str| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        for by in [By::Nothing, By::Comm, By::Process, By::Thread] {
            let folded: u64 = text(|o| folded::write(&s, by, o)).lines().map(last).sum();
            let v: Value = serde_json::from_str(&text(|o| json::write(&s, by, o))).expect("JSON");
            let ends = v["profiles"].as_array().expect("profiles").iter().filter_map(|p| p["endValue"].as_u64());
            prop_assert_eq!((folded, ends.sum::<u64>(), Tree::new(&s, by).nodes[0].total), (s.kept(), s.kept(), s.kept()));
        }
        let tree = Tree::new(&s, By::Thread);
        prop_assert_eq!(tree.nodes.iter().map(|n| n.own).sum::<u64>(), s.kept());
        for (i, n) in tree.nodes.iter().enumerate() {
            let inner: u64 = tree.nodes.iter().skip(1).filter(|c| c.parent as usize == i).map(|c| c.total).sum();
            prop_assert_eq!(n.total, n.own + inner);
        }
        for f in sorted(&s, Sort::Total) {
            let name = f.key.function;
            let with = |(frames, _, _): &&(Vec<usize>, u32, u64)| frames.iter().any(|&i| ["a", "b", "c", "d", "e"][i] == name);
            let most: u64 = samples.iter().filter(with).map(|(_, _, weight)| weight).sum();
            prop_assert!(f.own <= f.total && f.total <= most);
            prop_assert!(s.not_held().samples > 0 || f.total == most);
        }
    }
}

/// Every element of the drawing is closed, and none but those of the view are there.
fn balanced(svg: &str) {
    // XML has no such characters.
    assert!(!svg.contains(['\u{fffe}', '\u{ffff}']));
    let (drawing, script) = svg.split_once("<script>").expect("one script");
    assert!(script.ends_with("]]></script>\n</svg>\n") && script.matches("]]>").count() == 1);
    let mut open = Vec::new();
    for tag in drawing.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("an end of the tag");
        let name = tag.split([' ', '/']).find(|n| !n.is_empty()).unwrap_or_default();
        let known = ["?xml", "svg", "style", "g", "title", "rect", "text", "foreignObject", "input"];
        assert!(known.contains(&name), "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with(['/', '?']) {
            open.push(name);
        }
    }
    assert_eq!(open, ["svg"]);
}

#[test]
fn very_long_names_are_cut() {
    let long = "x<y>".repeat(100_000);
    let mut s = Stacks::new(Unit::Events);
    let f = s.frame(&Frame { function: &long, module: &long, file: &long, ..Frame::default() });
    let (stack, labels) = (s.stack(&[f, f, f]), s.labels(Labels { pid: 1, tid: 1, comm: &long }));
    s.add(stack, labels, 1, 0);
    for (name, out) in all_views(&s) {
        assert!(out.len() < 80_000, "{name}: {}", out.len());
    }
    let table = text(|o| Table { width: 80, ..Table::default() }.write(&s, o));
    assert!(table.lines().all(|l| l.len() <= 80), "{table}");
}
