//! Scripts in, what they print out: run over events that are made here.

mod language;
mod shown;

use expect_test::{Expect, expect};
use lang::script::ir::{Leaf, What};
use lang::script::run::{Datum, Event, Host, Machine, Memory, Output};
use lang::script::time::Wall;
use lang::script::types::{Space, Type};
use lang::script::{Known, Parameters, Program, compile};
use proptest::prelude::*;
use std::collections::BTreeMap;
use views::script::{Frame, Goes, Names, Printer, json, text};

/// An event: values by their names, and a piece of memory at 0x1000.
#[derive(Default)]
struct Fake {
    numbers: BTreeMap<&'static str, i64>,
    texts: BTreeMap<&'static str, &'static [u8]>,
    memory: &'static [u8],
}

fn event(numbers: &[(&'static str, i64)], texts: &[(&'static str, &'static str)]) -> Fake {
    let texts = texts.iter().map(|(n, t)| (*n, t.as_bytes())).collect();
    Fake { numbers: numbers.iter().copied().collect(), texts, memory: b"" }
}

impl Event for Fake {
    fn leaf(&self, _: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        let number = |n: &str| self.numbers.get(n).map(|v| Datum::Int(*v));
        match &leaf.what {
            What::Value("kstack" | "ustack") | What::Kind("kstack" | "ustack", _) => Some(Datum::Of(1, 7)),
            What::Value(n) => number(n).or_else(|| self.texts.get(n).map(|t| Datum::Text(t, false))),
            What::Arg(n) => number(n),
            What::Number(n) => number(&format!("arg{n}")),
            What::TextOfNumber(1) => Some(Datum::Text(b"hello", false)),
            What::TextOf(n) => self.texts.get(n.as_str()).map(|t| Datum::Text(t, false)),
            _ => None,
        }
    }

    fn memory(&self, _: Space, address: u64, length: usize) -> Memory {
        match (self.memory, address.checked_sub(0x1000)) {
            (b"", _) => Memory::Unknown,
            (m, Some(at)) => {
                m.get(at as usize..at as usize + length).map_or(Memory::Fault, |b| Memory::Bytes(b.to_vec()))
            }
            _ => Memory::Fault,
        }
    }

    fn text(&self, _: Space, address: u64, most: usize) -> Memory {
        match (self.memory, address.checked_sub(0x1000)) {
            (b"", _) => Memory::Unknown,
            (m, Some(at)) if (at as usize) < m.len() => {
                Memory::Bytes(m[at as usize..].iter().copied().take_while(|b| *b != 0).take(most + 1).collect())
            }
            _ => Memory::Fault,
        }
    }

    fn pid(&self) -> u32 {
        7
    }
}

struct Symbols;

impl Names for Symbols {
    fn stack(&self, _: Space, _: u64, _: u32) -> Vec<Frame> {
        let named = |address, name: &str, offset| Frame { address, name: Some(name.into()), offset };
        vec![named(0x401010, "work", 16), Frame { address: 0x402000, ..Frame::default() }, named(0x403004, "main", 4)]
    }

    fn symbol(&self, _: Space, address: u64, _: u32) -> Option<String> {
        (address == 0x401000).then(|| "work".into())
    }

    fn user(&self, uid: u32) -> Option<String> {
        (uid == 0).then(|| "root".into())
    }
}

struct Paper<'p> {
    printer: Printer<'p>,
    json: bool,
    out: Vec<u8>,
    other: Vec<u8>,
}

impl Host for Paper<'_> {
    fn output(&mut self, output: Output<'_>) {
        let mut bytes = Vec::new();
        let print = if self.json { json::output } else { text::output };
        match print(&self.printer, &output, &mut bytes) {
            Goes::Out => self.out.extend(bytes),
            Goes::Err => self.other.extend(bytes),
            Goes::Command => self.out.extend([b"$ ", &bytes[..], b"\n"].concat()),
            Goes::File => self.out.extend([b"<", &bytes[..], b">\n"].concat()),
        }
    }

    fn wall(&mut self, nsecs: Option<u64>) -> Wall {
        let ns = nsecs.unwrap_or(1_000_000_000_000_000_000);
        Wall { seconds: (ns / 1_000_000_000) as i64, nanoseconds: (ns % 1_000_000_000) as u32, offset: 0 }
    }
}

fn world() -> Known {
    let open = vec![
        ("filename".into(), Type::Pointer(Box::new(Type::int(1, true)), Space::User)),
        ("flags".into(), Type::int(4, true)),
    ];
    Known { args: BTreeMap::from([("tracepoint:syscalls:sys_enter_open".into(), open)]), ..Known::default() }
}

fn compiled(script: &str) -> Program {
    let params = Parameters { positional: vec!["3".into(), "a b".into()], ..Parameters::default() };
    compile(script, &params, &world()).unwrap_or_else(|list| {
        panic!("{}", list.iter().map(|d| d.show("stdin", script)).collect::<Vec<_>>().join("\n"))
    })
}

/// Everything that a script prints: begin, its other clauses for each event, end, and its maps; what went wrong behind it.
fn run_as(script: &str, events: &[Fake], json: bool) -> String {
    let program = compiled(script);
    let shown = program.clone();
    let printer = Printer { program: &shown, source: ("stdin", script), names: &Symbols, raw_strings: false };
    let mut paper = Paper { printer, json, out: Vec::new(), other: Vec::new() };
    let mut machine = Machine::new(program, 1);
    machine.limit_rounds(1000);
    let of = |name: &str| {
        let is = |c: &&lang::script::ir::Clause| c.points.iter().any(|p| p.provider.name == name);
        shown.clauses.iter().enumerate().filter(|(_, c)| is(c)).map(|(i, _)| i).collect::<Vec<_>>()
    };
    let (begin, end) = (of("begin"), of("end"));
    let nothing = event(&[("pid", 1)], &[("comm", "trapline"), ("probe", "begin")]);
    begin.iter().for_each(|c| machine.run(*c, &nothing, &mut paper));
    for e in events {
        for c in (0..shown.clauses.len()).filter(|c| !begin.contains(c) && !end.contains(c)) {
            machine.run(c, e, &mut paper);
        }
    }
    end.iter().for_each(|c| machine.run(*c, &nothing, &mut paper));
    paper.out.extend(b"\n\n");
    machine.print_maps(&mut paper);
    let mut out = String::from_utf8(paper.out).unwrap() + &String::from_utf8(paper.other).unwrap();
    for (fault, span, n) in machine.faults() {
        out.push_str(&format!("{fault:?} at '{}': {n}\n", span.of(script)));
    }
    for (i, c) in machine.counts().iter().enumerate().filter(|(_, c)| c.unknown > 0 || c.rejected > 0) {
        out.push_str(&format!("clause {i}: {c:?}\n"));
    }
    machine.refused().for_each(|(map, n)| out.push_str(&format!("@{map} refused {n}\n")));
    if machine.bad_reads() > 0 {
        out.push_str(&format!("bad reads: {}\n", machine.bad_reads()));
    }
    machine.exit().into_iter().for_each(|code| out.push_str(&format!("exit {code}\n")));
    out
}

fn run(script: &str, events: &[Fake]) -> String {
    run_as(script, events, false)
}

#[track_caller]
fn begin(body: &str, expected: Expect) {
    expected.assert_eq(&run(&format!("begin {{ {body} }}"), &[]));
}

#[test]
fn the_first_page_has_no_memory() {
    begin(
        "$p = (int32 *)0; print(*$p); print($p[3]); print(*(uint8 *)4095); print(str((int8 *)8)); print(buf($p, 2));",
        expect![[r#"
            0
            0
            0




            bad reads: 5
        "#]],
    );
}

#[test]
fn buffers_have_the_requested_length() {
    begin(
        r#"printf("%r|%r|%rx|%rh|%r\n", buf("ok", 4), buf("long", 2), buf("a\0b", 3), buf("a", 2), buf("", 1)); @[buf("k", 2)] = 1;"#,
        expect![[r#"
            ok\x00\x00|lo|\x61\x00\x00|61 00|\x00


            @[k\x00]: 1
        "#]],
    );
}

#[test]
fn a_count_that_was_cleared_is_zero() {
    begin(
        "@ = count(); clear(@); @b = count(); delete(@b); @c[1] = count(); clear(@c); @d = sum(1); clear(@d); if (pid) { @e = count(); }",
        expect![[r#"


            @: 0
            @b: 0
            @e: 1
        "#]],
    );
}

#[test]
fn events_and_unknown_values() {
    let script = r#"tracepoint:syscalls:sys_enter_open /pid > 5 && args.filename != "/skip"/ { @[comm] = count(); @f[str(args.filename)] = sum(args.flags); printf("%s %s\n", comm, str(args.filename)); }
        interval:1s /pid == 6/ { @c[cpu]++; } end { @c[9] = 1; }"#;
    let open = |pid, name, flags| {
        event(&[("pid", pid), ("filename", 0x7000), ("flags", flags)], &[("comm", "cat"), ("filename", name)])
    };
    let events = [
        open(6, "/etc/hosts", 1),
        open(6, "/skip", 1),
        open(7, "/a\nb\u{1b}[31m", 2),
        open(3, "/low", 1),
        // Something that the predicate, or the body behind it, reads is not known.
        event(&[("pid", 6)], &[("comm", "cat")]),
        event(&[("pid", 6), ("cpu", 2)], &[]),
    ];
    expect![[r#"
        cat /etc/hosts
        cat /a\nb\033[31m


        @[cat]: 2
        @c[2]: 1
        @c[9]: 1
        @f[/etc/hosts]: 1
        @f[/a\nb\033[31m]: 2
        clause 0: Counts { done: 2, rejected: 2, unknown: 2 }
        clause 1: Counts { done: 1, rejected: 2, unknown: 3 }
    "#]]
    .assert_eq(&run(script, &events));
}

#[test]
fn memory() {
    let script = r#"struct in { char name[4]; int n; }; struct out { struct in a; uint8 bits : 3, more : 5; int16 *p; struct in list[2]; };
        uprobe:/bin/x:f { $o = (struct out *)arg0; print($o->a.n); print(str($o->a.name)); print($o->bits); print($o->more); print(*$o->p); print($o->list[1].n); print(*$o); @s = $o->a; print(@s.n); @a[$o->a.name] = 1;
        print(str(arg1)); print(str(arg1, 3)); print(buf(arg1, 2)); print($o->list); print(*(uint8 *)0); print(str(0)); $p = (int16 *)arg1; print($p + 1); print($p[1]); printf("%s\n", $o->a.name); }"#;
    static BYTES: &[u8] = b"abc\0\x05\0\0\0\x2b\0\0\0\0\0\0\0\x2a\x10\0\0\0\0\0\0x\0\0\0\x01\0\0\0y\0\0\0\xff\xff\xff\xff\0\0\xfe\xffhello\0";
    let mut e = event(&[("arg0", 0x1000), ("arg1", 0x102c)], &[]);
    e.memory = BYTES;
    expect![[r#"
        5
        abc
        3
        5
        -2
        -1
        { .a = { .name = abc, .n = 5 }, .bits = 3, .more = 5, .p = 0x102a, .list = [{ .name = x, .n = 1 },{ .name = y, .n = -1 }] }
        5
        hello
        he
        he
        [{ .name = x, .n = 1 },{ .name = y, .n = -1 }]
        0

        0x102e
        27756
        abc


        @a[abc]: 1
        @s: { .name = abc, .n = 5 }
        clause 0: Counts { done: 1, rejected: 0, unknown: 1 }
        bad reads: 2
    "#]]
    .assert_eq(&run(script, &[e, event(&[("arg0", 0x5000), ("arg1", 0x5001)], &[])]));
}

#[test]
fn stacks_and_symbols() {
    let script = r#"profile:hz:99 { @[ustack(2), comm] = count(); print(kstack(perf)); print(ustack(raw, 1)); printf("%s|%s\n", ustack(1), usym(0x401000)); print(username); }"#;
    expect![[r#"

                401010 work+16
                402000 0x402000
                403004 main+4


                401010


                work+16
        |work
        root


        @[
                work+16
                0x402000
        , x]: 1
    "#]]
    .assert_eq(&run(script, &[event(&[("username", 0)], &[("comm", "x")])]));
}

#[test]
fn full_maps() {
    let script = "let @m = hash(2); begin { for $i : 0..5 { @m[$i] = $i; } @m[1] = 7; }";
    expect![[r#"


        @m[0]: 0
        @m[1]: 7
        @m refused 3
    "#]]
    .assert_eq(&run(script, &[]));
}

#[test]
fn what_d_collects() {
    begin(
        r#"@sd = stddev(-3); @sd = stddev(3); @one = stddev(9);
           for $i : 0..4 { @ll = llquantize($i * 40, 10, 1, 2, 10, $i); @h = hist($i, 0, 3); @l = lhist($i, 0, 4, 2, 5); @no = hist($i, 0, -1); }
           print((int64)@sd);"#,
        expect![[r#"
            3


            @h:
            [0]                    3 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1]                    3 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [2, 4)                 6 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @l:
            [0, 2)                10 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2, 4)                10 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @ll:
            [40, 50)               1 |@@@@@@@@@@@@@@@@@                                   |
            [50, 60)               0 |                                                    |
            [60, 70)               0 |                                                    |
            [70, 80)               0 |                                                    |
            [80, 90)               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@                  |
            [90, 100)              0 |                                                    |
            [100, 200)             3 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @no:

            @one: 0
            @sd: 3
        "#]],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// No format and no value makes printing panic, and a field is as wide as it says.
    #[test]
    fn any_format(flags in "[-+ #0]{0,3}", width in 0u32..30, rest in "(\\.[0-9]{0,2})?(hh|h|ll|l|j|z)?[diuxXoc]", v in any::<i64>()) {
        let v = if v == i64::MIN { 1 } else { v };
        let shown = run(&format!("begin {{ printf(\"<%{flags}{width}{rest}>\", {v}); }}"), &[]);
        let field = shown.strip_prefix('<').and_then(|s| s.strip_suffix(">\n\n")).unwrap();
        prop_assert!(field.len() >= width as usize, "{shown:?}");
        prop_assert!(!field.contains(char::is_control));
    }
}
