//! No text makes a script's parser, checker or executor panic, recurse without bound or run long, and what they say of a text fits it.

use lang::script::ir::Leaf;
use lang::script::run::{Datum, Event, Host, Machine, Memory, Output};
use lang::script::time::Wall;
use lang::script::types::{Space, Type};
use lang::script::{Known, Parameters, Program, compile};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// What a script reads: numbers and texts that are not kind.
struct Odd(u64);

impl Event for Odd {
    fn leaf(&self, index: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        match leaf.ty {
            Type::Str(_) => {
                Some(Datum::Text(&[b'a', 0, 0xff, 0x1b][..(self.0 % 5) as usize], self.0.is_multiple_of(2)))
            }
            Type::Stack(..) => Some(Datum::Of(self.0, 1)),
            _ if index == 7 => None,
            _ => Some(Datum::Int(self.0.rotate_left(index as u32) as i64)),
        }
    }

    fn memory(&self, _: Space, address: u64, length: usize) -> Memory {
        if address.is_multiple_of(3) { Memory::Fault } else { Memory::Bytes(vec![0xa5; length.min(1 << 16)]) }
    }

    fn text(&self, _: Space, _: u64, most: usize) -> Memory {
        Memory::Bytes(vec![b'x'; most + 1])
    }
}

struct Silent;

impl Host for Silent {
    fn output(&mut self, _: Output<'_>) {}

    fn wall(&mut self, nsecs: Option<u64>) -> Wall {
        Wall { seconds: nsecs.unwrap_or(u64::MAX) as i64, nanoseconds: 0, offset: -1 }
    }
}

/// All clauses, for a few events.
fn run(program: Program) {
    let clauses = program.clauses.len().min(50);
    let mut machine = Machine::new(program, 0);
    machine.limit_rounds(2000);
    for n in [0, 1, u64::MAX, 0x8000_0000_0000_0000] {
        (0..clauses).for_each(|c| machine.run(c, &Odd(n), &mut Silent));
    }
    machine.print_maps(&mut Silent);
}

/// Far more than any of these texts takes, even on a machine with other things to do.
const LONG: Duration = Duration::from_secs(20);

fn try_it(text: &str) {
    let positional = vec!["1".into(), "abc".into(), "\0\u{1b}\"".into(), "-".repeat(30)];
    let params = Parameters {
        positional,
        named: vec![("a".into(), "x".into())],
        config: vec![],
        may_run: false,
        failures: 2,
        only: None,
    };
    let start = Instant::now();
    let messages = match compile(text, &params, &Known::default()) {
        Ok(p) => {
            let warnings = p.warnings.clone();
            run(p);
            warnings
        }
        Err(list) => list,
    };
    assert!(start.elapsed() < LONG, "{:?} for {} bytes", start.elapsed(), text.len());
    assert!(messages.len() <= 20);
    for m in messages {
        let fits = |s: lang::Span| {
            s.start <= s.end && s.end <= text.len() && text.is_char_boundary(s.start) && text.is_char_boundary(s.end)
        };
        assert!(m.code.in_scripts().is_some() && fits(m.span), "{m:?} of {text:?}");
        assert!(m.second.as_ref().is_none_or(|s| fits(s.0)), "{m:?} of {text:?}");
        let shown = m.show("stdin", text);
        assert!(!shown.replace('\n', "").contains(char::is_control), "{shown:?}");
    }
}

#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "begin", "end", "interval:s:1", "tracepoint:a:b", "uprobe:/x:y", "kprobe:*", "{", "}", "(", ")", "[", "]", "/", ";", ",", ":", ".",
    "..", "->", "$x", "$y", "@", "@m", "@n", "$1", "$#", "args", "args.x", "arg0", "pid", "comm", "nsecs", "retval", "1", "0", "5ms",
    "18446744073709551615", "\"a\"", "\"%d %s\"", "'c'", "true", "+", "-", "*", "&", "|", "<<", "==", "!=", "<", "&&", "||", "!", "~", "?",
    "=", "+=", "++", "--", "if", "else", "while", "unroll", "for", "break", "continue", "return", "let", "macro", "f", "struct s", "enum e",
    "(int8)", "(struct s *)", "sizeof(", "offsetof(struct s, x)", "typeof(", "count()", "hist(", "lhist(1,0,9,1)", "printf(", "print(", "str(",
    "delete(", "clear(@m)", "exit()", "buf(", "config = {", "max_strlen", "#define A", "#define B A A", "A", "B", "#if", "#ifdef A", "#else",
    "#endif", "#include <x>", "\n", "//", "/*", "*/", "\t", "ü", "\u{0}", "$", "'", "\"", "\\",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in "\\PC{0,80}") {
        try_it(&text);
        try_it(&format!("begin {{ {text} }}"));
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        try_it(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..50), glue in prop::sample::select(vec!["", " "])) {
        let soup = tokens.join(glue);
        try_it(&soup);
        try_it(&format!("begin {{ {soup} }} end {{ $x = 1; {soup} }}"));
    }

    /// One change to a script that is well formed.
    #[test]
    fn nearly_right(at in 0usize..420, token in prop::sample::select(TOKENS), cut in 0usize..6) {
        let text = "#define N 3\nstruct s { int x : 3; char name[8]; };\nmacro f($a, @b, c) { $a = c; @b[$a] = count(); $a }
            config = { max_strlen = 64 }\nbegin, interval:s:1 /pid == N && comm != \"a\"/ { $x = 1; @t[$x, comm] = (1, \"b\"); for ($kv : @t) { print($kv.0.1); }
            if ($x > 2) { printf(\"%d %s\\n\", $x, comm); } else { f($x, @c, 5); } $s = (struct s *)nsecs; @h = hist($s->x, 2); unroll(3) { $x++; } @t[1, \"x\"].0; }";
        let at = (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let end = (at..=(at + cut).min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(at);
        try_it(&format!("{}{token}{}", &text[..at], &text[end..]));
    }
}

#[test]
fn one_token_many_times() {
    for token in TOKENS {
        for glue in ["", " ", " || ", "("] {
            try_it(&vec![*token; 400].join(glue));
            try_it(&format!("begin {{ {} }}", vec![*token; 400].join(glue)));
        }
    }
}

#[test]
fn deep_and_long() {
    for (open, close) in [
        ("(", ")"),
        ("{ ", " }"),
        ("-", ""),
        ("*", ""),
        ("if (1) { ", "}"),
        ("print(", ")"),
        ("@[", "]"),
        ("(int8)", ""),
        ("sizeof(", ")"),
        ("1 ? 1 : ", ""),
        ("{1+", "}"),
        ("(typeof(1+", "))2"),
    ] {
        for n in [30, 70, 300, 50_000] {
            try_it(&format!("begin {{ {}1{} }}", open.repeat(n), close.repeat(n)));
        }
    }
    try_it(&format!("begin {{ $x = 1{}; }}", "+1".repeat(100_000)));
    try_it(&format!("begin {{ $x = $1{}; }}", ".x".repeat(100_000)));
    try_it(&format!("struct a {} {} begin {{ }}", "{ struct { ".repeat(200), "} x; };".repeat(200)));
    try_it(&format!("begin {{ if (1) {{ }} {} }}", "else if (1) { }".repeat(10_000)));
    try_it(&"begin { }".repeat(20_000));
    try_it(&"x".repeat(1 << 20));
    try_it(&"é".repeat(1 << 20));
}

#[test]
fn what_grows() {
    // Macros of C, and of the language, that double each time.
    let defines: String = (1..40).map(|i| format!("#define A{i} A{} + A{}\n", i - 1, i - 1)).collect();
    try_it(&format!("#define A0 1\n{defines}begin {{ print(A39); }}"));
    let macros: String = (1..40).map(|i| format!("macro m{i}(e) {{ m{}(e) + m{}(e) }}\n", i - 1, i - 1)).collect();
    try_it(&format!("macro m0(e) {{ e }}\n{macros}begin {{ print(m39(1)); }}"));
    let nested: String =
        (0..31).map(|i| format!("macro n{}(e) {{ n{i}({}e{}) }}\n", i + 1, "-(".repeat(20), ")".repeat(20))).collect();
    try_it(&format!("macro n0(e) {{ e }}\n{nested}begin {{ print(n31(1)); }}"));
    // A chain of maps, each of the type of the next.
    let chain: String = (0..3000).map(|i| format!("@a{i} = @a{};", i + 1)).collect();
    try_it(&format!("begin {{ {chain} @a3000 = 1; }}"));
    let variables: String = (1..3000).map(|i| format!("$a{i} = $a{};", i - 1)).collect();
    try_it(&format!("begin {{ $a0 = 1; {variables} @ = $a2999; }}"));
    // Types that grow.
    try_it("begin { @t = (@t, @t); @t = (1, 2); }");
    for grown in ["($a0, 1)", "($a0, $a0)", "(typeof($a0) *)1", "(typeof($a0)[1])5"] {
        let growing: String =
            (1..3000).map(|i| format!("$a{i} = {};", grown.replace("$a0", &format!("$a{}", i - 1)))).collect();
        try_it(&format!("begin {{ $a0 = 1; {growing} print($a2999); }}"));
    }
    let structs: String = (1..5000).map(|i| format!("struct s{i} {{ struct s{} x; }};", i - 1)).collect();
    try_it(&format!("struct s0 {{ int x; }};{structs} begin {{ print(*(struct s4999 *)1); }}"));
    let typedefs: String = (1..5000).map(|i| format!("typedef t{} t{i}[1];", i - 1)).collect();
    try_it(&format!("typedef int t0;{typedefs} begin {{ print((t4999)1); }}"));
}

#[test]
fn a_thousand_assignments() {
    let text: String = (0..1000).map(|i| format!("$v{i} = {i}; @m{i} = $v{i} + 1;")).collect();
    let program = compile(&format!("begin {{ {text} }}"), &Parameters::default(), &Known::default()).unwrap();
    assert_eq!((program.maps.len(), program.clauses[0].vars.len()), (1000, 1000));
}
