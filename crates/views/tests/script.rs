//! Scripts in, what they print out: run over events that are made here.

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
fn values() {
    begin(
        r#"print(1); print(-1); print(18446744073709551615); print("a"); print('a'); print(1 == 1); print((1, "b", (2, false)));
           print((uint8)300); print((int8)200); print((void *)50); @ = 5; @x["a", 1] = 2; @x["b", 2] = 1; @y[1, (2, 3)] = 1;"#,
        expect![[r#"
            1
            -1
            18446744073709551615
            a
            97
            true
            (1, b, (2, false))
            44
            -56
            0x32


            @: 5
            @x[b, 2]: 1
            @x[a, 1]: 2
            @y[1, (2, 3)]: 1
        "#]],
    );
}

#[test]
fn formats() {
    begin(
        r#"printf("%5s|%-5s|%.2s|%5.1s|\n", "abc", "ab", "abcd", "xyz"); printf("%5d|%-5d|%05d|%+d|% d|%.3d\n", -3, -3, -3, 3, 3, 3);
           printf("%x|%X|%#x|%o|%p|%p|%c|%u\n", 255, 255, 255, 8, 255, 0, 65, -1); printf("%ld %llu %hd %hhd %lu %lx\n", -1, -1, 65537, 257, 3, -1);
           printf("%d %u\n", (uint64)1099511627776, (int8)-1); printf("%r|%rx|%rh\n", buf("ab\n", 3), buf("ab", 2), buf("ab", 2));
           printf("%s %d %s%%\n", true, true, (string)"x"); errorf("bad %d", 5); warnf("hm"); cat("/proc/%d/maps", 12); time(); time("%F\n");
           printf("%s\n", strftime("%H:%M:%S.%f", 1500000)); printf("no newline");"#,
        expect![[r#"
              abc|ab   |ab|    x|
               -3|-3   |-0003|+3| 3|003
            ff|FF|0xff|10|0xff|(nil)|A|4294967295
            -1 18446744073709551615 1 1 3 ffffffffffffffff
            1099511627776 4294967295
            ab\x0a|\x61\x62|61 62
            true 1 x%
            </proc/12/maps>
            01:46:40
            2001-09-09
            00:00:00.001500
            no newline

            stdin:4:61-80: ERROR: bad 5
            stdin:4:82-93: WARNING: hm
        "#]],
    );
}

#[test]
fn order_of_maps() {
    begin(
        r#"@a["x", 1] = 1; @a["x", 2] = 1; @a["a", 3] = 0; @b[1] = "z"; @b[0] = "y"; @c = ("a", (1, "b")); @d = count(); @e[1] = count(); @e[3] = count();
           @e[3] = count(); @f[1] = min(3); @f[2] = min(-4); @f[3] = min(7); @g[1] = avg(3); @g[2] = avg(-4); @h[1] = stats(5); @h[2] = stats(1); @h[2] = stats(3);
           @i[-3, "a"] = "v"; @i[1, "b"] = "v"; @i[1, "a"] = "v"; @s["x"] = sum(5); @s["y"] = sum(2); @s["z"] = sum(9); print(@s, 2); print(@s, 2, 2); print(@s["y"]);
           @m = max(-1); @m = max(-5); @n = min(5); print(@unset); print(@unsets); @k[1] = 1; clear(@k); print(@k); if (0) { @unset = 1; @unsets = "a"; } zero(@e);"#,
        expect![[r#"
            @s[x]: 5
            @s[z]: 9
            @s[x]: 2
            @s[z]: 4
            @s[y]: 2
            @unset: 0
            @unsets: 


            @a[a, 3]: 0
            @a[x, 1]: 1
            @a[x, 2]: 1
            @b[0]: y
            @b[1]: z
            @c: (a, (1, b))
            @d: 1
            @e[1]: 0
            @e[3]: 0
            @f[1]: 3
            @f[3]: 7
            @f[2]: -4
            @g[2]: -4
            @g[1]: 3
            @h[2]: { .count = 2, .average = 2, .total = 4 }
            @h[1]: { .count = 1, .average = 5, .total = 5 }
            @i[-3, a]: v
            @i[1, a]: v
            @i[1, b]: v
            @m: -1
            @n: 5
            @s[y]: 2
            @s[x]: 5
            @s[z]: 9
        "#]],
    );
}

#[test]
fn charts() {
    begin(
        "@h = hist(-5); @h = hist(0); @h = hist(1); @h = hist(5); @h = hist(5); @h = hist(1023); @h = hist(1025); @big = hist(1 << 40); @big = hist(1 << 41);
         @fine = hist(4, 2); @fine = hist(5, 2); @fine = hist(9, 2); @fine = hist(12, 2); @fine = hist(4096, 2); @k[\"a\"] = hist(1); @k[\"b\"] = hist(1); @k[\"b\"] = hist(2);
         @l = lhist(-1, 0, 10, 5); @l = lhist(0, 0, 10, 5); @l = lhist(10, 0, 10, 5); @kilo = lhist(5000, 0, 10240, 1024); @kilo = lhist(2000, 0, 10240, 1024); print(@k, 1); print(@h, 0, 2); print(@l, 0, 2);",
        expect![[r#"
            @k[b]:
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2, 4)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @h:
            (..., 0)               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [0]                    0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1]                    0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [2, 4)                 0 |                                                    |
            [4, 8)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [8, 16)                0 |                                                    |
            [16, 32)               0 |                                                    |
            [32, 64)               0 |                                                    |
            [64, 128)              0 |                                                    |
            [128, 256)             0 |                                                    |
            [256, 512)             0 |                                                    |
            [512, 1K)              0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1K, 2K)               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |

            @l:
            (..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [0, 5)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [5, 10)                0 |                                                    |
            [10, ...)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|



            @big:
            [1T, 2T)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2T, 4T)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @fine:
            [4]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [5]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [6]                    0 |                                                    |
            [7]                    0 |                                                    |
            [8, 10)                1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [10, 12)               0 |                                                    |
            [12, 14)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [14, 16)               0 |                                                    |
            [16, 20)               0 |                                                    |
            [20, 24)               0 |                                                    |
            [24, 28)               0 |                                                    |
            [28, 32)               0 |                                                    |
            [32, 40)               0 |                                                    |
            [40, 48)               0 |                                                    |
            [48, 56)               0 |                                                    |
            [56, 64)               0 |                                                    |
            [64, 80)               0 |                                                    |
            [80, 96)               0 |                                                    |
            [96, 112)              0 |                                                    |
            [112, 128)             0 |                                                    |
            [128, 160)             0 |                                                    |
            [160, 192)             0 |                                                    |
            [192, 224)             0 |                                                    |
            [224, 256)             0 |                                                    |
            [256, 320)             0 |                                                    |
            [320, 384)             0 |                                                    |
            [384, 448)             0 |                                                    |
            [448, 512)             0 |                                                    |
            [512, 640)             0 |                                                    |
            [640, 768)             0 |                                                    |
            [768, 896)             0 |                                                    |
            [896, 1024)            0 |                                                    |
            [1024, 1280)           0 |                                                    |
            [1280, 1536)           0 |                                                    |
            [1536, 1792)           0 |                                                    |
            [1792, 2048)           0 |                                                    |
            [2048, 2560)           0 |                                                    |
            [2560, 3072)           0 |                                                    |
            [3072, 3584)           0 |                                                    |
            [3584, 4K)             0 |                                                    |
            [4K, 5K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @h:
            (..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [0]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [2, 4)                 0 |                                                    |
            [4, 8)                 2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [8, 16)                0 |                                                    |
            [16, 32)               0 |                                                    |
            [32, 64)               0 |                                                    |
            [64, 128)              0 |                                                    |
            [128, 256)             0 |                                                    |
            [256, 512)             0 |                                                    |
            [512, 1K)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1K, 2K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |

            @k[a]:
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @k[b]:
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2, 4)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @kilo:
            [1K, 2K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2K, 3K)               0 |                                                    |
            [3K, 4K)               0 |                                                    |
            [4K, 5K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @l:
            (..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [0, 5)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [5, 10)                0 |                                                    |
            [10, ...)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

        "#]],
    );
}

#[test]
fn as_json() {
    let script = r#"begin { @ = 5; @b["x", 1] = 2; @c = hist(5); @c = hist(-5); @d = lhist(5, 0, 10, 2); @d = lhist(50, 0, 10, 2); @e = stats(3); @f = avg(3); @g[1] = stats(2); @h[1, 2] = hist(3);
        printf("%d \"q\"\n", -1); print((1, "a", (2, true))); time("%Y\n"); @t = (1, "x"); print(@); @u = (uint64)-1; print("\n"); }"#;
    expect![[r#"
        {"type": "printf", "data": "-1 \"q\"\n"}
        {"type": "value", "data": [1,"a",[2,true]]}
        {"type": "time", "data": "2001\n"}
        {"type": "map", "data": {"@": 5}}
        {"type": "value", "data": "\n"}


        {"type": "map", "data": {"@": 5}}
        {"type": "map", "data": {"@b": {"x,1": 2}}}
        {"type": "hist", "data": {"@c": [{"max": -1, "count": 1}, {"min": 0, "max": 0, "count": 0}, {"min": 1, "max": 1, "count": 0}, {"min": 2, "max": 3, "count": 0}, {"min": 4, "max": 7, "count": 1}]}}
        {"type": "hist", "data": {"@d": [{"min": 4, "max": 5, "count": 1}, {"min": 6, "max": 7, "count": 0}, {"min": 8, "max": 9, "count": 0}, {"min": 10, "count": 1}]}}
        {"type": "stats", "data": {"@e": {"count": 1, "average": 3, "total": 3}}}
        {"type": "stats", "data": {"@f": 3}}
        {"type": "stats", "data": {"@g": {"1": {"count": 1, "average": 2, "total": 2}}}}
        {"type": "hist", "data": {"@h": {"1,2": [{"min": 2, "max": 3, "count": 1}]}}}
        {"type": "map", "data": {"@t": [1,"x"]}}
        {"type": "map", "data": {"@u": 18446744073709551615}}
    "#]].assert_eq(&run_as(script, &[], true));
}

#[test]
fn numbers() {
    begin(
        "$zero = 0; print(5 / $zero); print(5 % $zero); print(-7 / 2); print(-7 % 2); print((uint64)-7 / 2 > 5); print(1 << 65); print(-8 >> 1); print(~0); print(-5 < (uint8)3);
         print((uint64)-1 > 5); print(0x7fffffffffffffff + 1); $x = (uint8)255; $x++; print($x); let $y: uint8 = 255; $y++; print($y); @c--; @c--; @o |= 6; @o &= 3; @o <<= 2; print(10ms);
         print(3 ?: 4); print(0 ?: 4); print($zero ? 1 : 2); print($zero++ + ++$zero); print(1 && $zero || 0); print(!5); print($1 + $#);",
        expect![[r#"
            1
            1
            -3
            -1
            true
            2
            9223372036854775804
            -1
            true
            true
            -9223372036854775808
            256
            0
            10000000
            3
            4
            2
            2
            true
            false
            5


            @c: -2
            @o: 8
            DivisionByZero at '5 / $zero': 1
            DivisionByZero at '5 % $zero': 1
        "#]],
    );
}

#[test]
fn pointers_count_by_what_they_are_of() {
    begin(
        "@a = (int32 *)32; @a++; $b = (int64 *)32; ++$b; $b++; $b--; @c = (int8 *)32; --@c; print($b); print(@a++); print(@a);",
        expect![[r#"
            0x28
            0x24
            @a: 0x28


            @a: 0x28
            @c: 0x1f
        "#]],
    );
    begin(
        "@a = (uint16 **)32; @a++; print(@a); $t = (int16 *)4; $t += 3; $t--; print($t);",
        expect![[r#"
        @a: 0x28
        0x8


        @a: 0x28
    "#]],
    );
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
fn structures_are_objects_in_json() {
    let script = "struct s { int m; struct { int x[2]; bool b } in; char c[4]; int lo : 3, hi : 5; };
        uprobe:/x:f { $s = *(struct s *)arg0; print($s); @[$s.m] = ($s.in, $s.c); }";
    let memory = b"\x02\0\0\0\x03\0\0\0\xff\xff\xff\xff\x01\0\0\0abc\0\x0f\0\0\0";
    let e = || Fake { memory, ..event(&[("arg0", 0x1000)], &[]) };
    expect![[r#"
        { .m = 2, .in = { .x = [3,-1], .b = true }, .c = abc, .lo = -1, .hi = 1 }


        @[2]: ({ .x = [3,-1], .b = true }, abc)
    "#]]
    .assert_eq(&run(script, &[e()]));
    expect![[r#"
        {"type": "value", "data": { "m": 2, "in": { "x": [3,-1], "b": true }, "c": "abc", "lo": -1, "hi": 1 }}


        {"type": "map", "data": {"@": {"2": [{ "x": [3,-1], "b": true },"abc"]}}}
    "#]]
    .assert_eq(&run_as(script, &[e()], true));
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
fn loops() {
    begin(
        r#"for $i : 0..5 { if ($i == 1) { continue; } if ($i == 4) { break; } printf("%d ", $i); } $n = 3; while ($n > 0) { printf("%d ", $n); $n--; } unroll(3) { printf("u"); }
           @m["a"] = 1; @m["b"] = 2; for ($kv : @m) { print($kv); @m["c"] = 3; } @p[1, 2] = count(); for ($kv : @p) { print($kv.0.1); } while (1) { @rounds++; }"#,
        expect![[r#"
            0 2 3 3 2 1 uuu(a, 1)
            (b, 2)
            2


            @m[a]: 1
            @m[b]: 2
            @m[c]: 3
            @p[1, 2]: 1
            @rounds: 986
            TooManyRounds at 'while': 1
        "#]],
    );
    begin(
        r#"print({ $a = 1; $a + 1 }); $b = { if (1) { return; } 5 }; print("never");"#,
        expect![[r#"
        2


    "#]],
    );
    begin(
        "print(1); exit(3); print(2); } interval:1s { print(3); } end { print(4);",
        expect![[r#"
        1
        4


        exit 3
    "#]],
    );
}

#[test]
fn functions() {
    begin(
        r#"print(strlen("abc")); print(strncmp("abcd", "abxx", 2)); print(strncmp("a", "b", 5) != 0); print(strcontains("hello", "ell")); print(strstr("hello", "lo")); print(strstr("a", "b"));
           print(startswith("hello", "he")); print(str_concat("a", "b")); print(bswap((uint16)0x1234)); print(bswap((uint64)1)); print(ntop(0x0100007f)); print(ntop(pton("::1"))); print(ntop(pton("10.0.0.1")));
           print(macaddr((uint8[6])0x665544332211)); print(strerror(2)); print(strerror(9999)); print(signal_name(9)); print(syscall_name(0)); print(memcmp("abc", "abd", 3)); print(memcmp("abc", "abd", 2));
           print(sizeof(uint32)); print((int8[])"ab"); print((uint16[2])0x20001); print(buf("a\x01")); print(len(@m)); @m[1] = 1; print(delete(@m, 1)); print(delete(@m, 1)); print(has_key(@m, 1));
           @t[1] = (1, "x"); if (find(@t, 1, $v)) { print($v.1); } print(find(@t, 2, $v)); print(str($2)); print(str("abcdef", 4)); print(getopt("no", 5)); print(ksym(0x401000)); print(usym(0x401001)); join(("a", "b"), "+");
           $r = rand; print($r != rand);"#,
        expect![[r#"
            3
            0
            true
            true
            3
            -1
            true
            ab
            13330
            72057594037927936
            127.0.0.1
            ::1
            10.0.0.1
            11:22:33:44:55:66
            No such file or directory
            Unknown error 9999
            SIGKILL
            read
            -1
            0
            4
            ab
            [1,2]
            a\x01
            0
            true
            false
            false
            x
            false
            a b
            abc
            5
            work
            0x401001
            a+b
            true


            @t[1]: (1, x)
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
fn arrays_of_strings() {
    static BYTES: &[u8] = b"\x18\x10\0\0\0\0\0\0\x1b\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0ls\0-l\0";
    let mut e = event(&[("arg0", 0x1000)], &[]);
    e.memory = BYTES;
    let script = r#"uprobe:/bin/x:f { join((char **)arg0); join((char **)arg0, "|"); }"#;
    expect![[r#"
        ls -l
        ls|-l


    "#]]
    .assert_eq(&run(script, &[e]));
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
fn strings_of_the_target_are_escaped_and_marked() {
    let script = "config = { max_strlen = 8 } begin { print(str_concat(\"12345\", \"6789\")); printf(\"\\033[1m%s|%s\\n\", \"\\033[0m\", comm); print(comm); print(\"\\033[0m\"); }";
    expect![[r#"
        12345678..
        [1m[0m|trapline
        trapline
        [0m


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

#[test]
fn maps_side_by_side() {
    let maps = r#"@n["a", 1] = count(); @n["a", 1] = count(); @n["b", 2] = count(); @t["b", 2] = avg(7); @t["c", 3] = avg(5);"#;
    begin(
        &format!(r#"{maps} printa(@n, @t); printa("%s/%d is %@d and %@d\n", @n, @t); clear(@n); clear(@t);"#),
        expect![[r#"
            c                                               3                0                5
            b                                               2                1                7
            a                                               1                2                0
            c/3 is 0 and 5
            b/2 is 1 and 7
            a/1 is 2 and 0


        "#]],
    );
    begin(
        r#"printa(@one, @two); @one = count(); @two = sum(4); printa("%@u of %@u\n", @one, @two); clear(@one); clear(@two); printa(@one); clear(@one)"#,
        expect![[r#"
            1 of 4
                           0


            @one: 0
        "#]],
    );
}

#[test]
fn output_waits_for_the_outcome() {
    begin(
        r#"$a = speculation(); $b = speculation(); @m[1] = 2;
           speculate($a); printf("first of %d\n", $a); print(@m); print((1, "x")); time("%Y\n");
           speculate($b); print("unwanted"); discard($b); print("at once");
           commit($a); commit($a);
           speculate($b); print("too late"); commit($b);
           print(speculation());"#,
        expect![[r#"
            at once
            first of 1
            @m[1]: 2
            (1, x)
            2001
            3


            @m[1]: 2
        "#]],
    );
    // What nobody commits is not printed; the next run prints again.
    let script =
        "tracepoint:syscalls:sys_enter_open { print(args.flags); speculate(speculation()); print(args.flags); }";
    let flags = |n| event(&[("flags", n)], &[]);
    assert_eq!(run(script, &[flags(1), flags(2)]), "1\n2\n\n\n");
}

#[test]
fn variables_of_threads() {
    let script = "tracepoint:syscalls:sys_enter_open { self->n++; self->s = (self->n, args.flags); printf(\"%d %d %d\\n\", tid, self->n, self->s.1);
        if (self->n == 2) { self->n = 0; } @[tid] = self->n; }";
    let of = |tid, n| event(&[("tid", tid), ("flags", n)], &[]);
    let printed = run(script, &[of(1, 5), of(2, 6), of(1, 7), of(1, 8)]);
    expect![[r#"
        1 1 5
        2 1 6
        1 2 7
        1 1 8


        @[1]: 1
        @[2]: 1
    "#]]
    .assert_eq(&printed);
}

#[test]
fn macros_run() {
    let script =
        "macro add($x, e) { $x += e; } macro twice(e) { e + e } macro note(@m, k) { let $k = k; @m[$k] = count(); }
        begin { $k = 1; add($k, 5); print(twice($k + 1)); note(@seen, $k); print($k); }";
    expect![[r#"
        14
        6


        @seen[6]: 1
    "#]]
    .assert_eq(&run(script, &[]));
}

#[test]
fn maps_are_not_printed_where_settings_say_so() {
    assert_eq!(run("config = { print_maps_on_exit = false } begin { @ = 1; }", &[]), "\n\n");
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
