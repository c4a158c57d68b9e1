//! Diagnostics, meaning, needs.

mod verdicts;

use super::*;
use crate::filter::ir::{Arg, Cmp, How, Int, Text};
use events::encode::{self, Fixed};
use events::generated::{C_CLOSE, C_EXIT_GROUP, C_KILL, C_OPENAT, C_READ, P_EXIT};
use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN, Layout, NO_CPU};
use events::types::Type;
use events::{Cap, Class, registry};
use expect_test::{Expect, expect};

fn mistake(text: &str, schema: &Schema, params: &[String]) -> Diagnostic {
    match parse(text, params).and_then(|p| p.check(schema)) {
        Ok(f) => panic!("{text}: {f:?}"),
        Err(e) => e,
    }
}

fn says(text: &str, expected: Expect) {
    expected.assert_eq(&mistake(text, &C_OPENAT, &[]).block("--where", text));
}

#[test]
fn a_line_and_a_block() {
    let text = "pid == args.flgs";
    let e = mistake(text, &C_OPENAT, &[]);
    let line = e.line("--where", text);
    assert_eq!(line, "trapline: --where: F0003 unknown field 'args.flgs' at 1:8 (did you mean args.flags?)");
    says(
        text,
        expect![[r#"
            trapline: --where: F0003 unknown field 'args.flgs' at 1:8
              |
            1 | pid == args.flgs
              |        ^^^^^^^^^
              = did you mean args.flags?"#]],
    );
}

#[test]
fn lines_and_columns_count_characters() {
    says(
        "comm == \"größe\" &&\n\t\"ü\" == \u{1b}pid",
        expect![[r#"
            trapline: --where: F0001 unexpected character '\u{1b}' at 2:9
              |
            2 |  "ü" == �pid
              |         ^"#]],
    );
}

/// Code and message, a line each.
fn lines(schema: &Schema, texts: &[&str]) -> String {
    texts
        .iter()
        .map(|t| format!("{t}\n    {}\n", mistake(t, schema, &[]).line("", t).replace("trapline: : ", "")))
        .collect()
}

#[test]
fn words() {
    let texts = [
        "pid = 1",
        "pid == 'x'",
        "pid === 1",
        "",
        "  // nothing",
        "/pid == 1/",
        "pid ==",
        "(pid == 1",
        "pid == 1)",
        "pid 1",
        "pid == 089",
        "pid == 0x",
        "pid == 1kb",
        "pid == 99999999999999999999",
        "dur > 9999999999999s",
        "\"abc",
        "comm == \"a\\q\"",
        "comm == \"\\777\"",
        "comm == \"a\\0b\"",
        "/* x",
        "@x == 1",
        "$x == 1",
        "$1 == 1",
        "pid++",
        "pid == 1; tid == 2",
        "pid == 1 and tid == 2",
        "args",
        "args. == 1",
        "args[0]",
    ];
    expect![[r#"
        pid = 1
            F0006 expected an operator, found '=' at 1:5 (did you mean ==?)
        pid == 'x'
            F0001 unexpected character ''' at 1:8 (write strings in double quotes)
        pid === 1
            F0006 expected a value, found '=' at 1:7 (did you mean ==?)

            F0006 an empty filter at 1:1 (for instance: pid == 1)
          // nothing
            F0006 an empty filter at 1:13 (for instance: pid == 1)
        /pid == 1/
            F0006 unexpected '/' at 1:1 (write the filter without slashes here)
        pid ==
            F0006 expected a value, found the end at 1:7
        (pid == 1
            F0006 expected ')', found the end at 1:10
        pid == 1)
            F0006 expected an operator, found ')' at 1:9
        pid 1
            F0006 expected an operator, found '1' at 1:5
        pid == 089
            F0002 not a number: '089' at 1:8
        pid == 0x
            F0002 not a number: '0x' at 1:8
        pid == 1kb
            F0002 not a number: '1kb' at 1:8 (units are ns us ms s m h d, and k M G (1024 each))
        pid == 99999999999999999999
            F0002 too large a number: '99999999999999999999' at 1:8
        dur > 9999999999999s
            F0002 too large a number: '9999999999999s' at 1:7
        "abc
            F0002 an unterminated string at 1:1 (it ends with ")
        comm == "a\q"
            F0002 an unknown escape at 1:11 (known are \n \t \r \" \\ \xHH \OOO)
        comm == "\777"
            F0002 an escape that is not a byte at 1:10
        comm == "a\0b"
            F0002 a string with a NUL inside at 1:9 (C strings end there)
        /* x
            F0006 an unterminated comment at 1:1
        @x == 1
            F0015 expected a value, found '@' at 1:1 (filters have no maps)
        $x == 1
            F0015 expected a value, found '$' at 1:1 (filters have no variables but the parameters $1, $2, …)
        $1 == 1
            F0010 parameter $1 was not given at 1:1 (there are none)
        pid++
            F0015 expected an operator, found '++' at 1:4 (filters change nothing)
        pid == 1; tid == 2
            F0015 expected an operator, found ';' at 1:9 (a filter is one expression)
        pid == 1 and tid == 2
            F0006 expected an operator, found 'and' at 1:10 (write &&, ||, !)
        args
            F0006 'args' without a name at 1:1 (write args.NAME)
        args. == 1
            F0006 expected the name of an argument, found '==' at 1:7
        args[0]
            F0015 expected an operator, found '[' at 1:5 (filters have no maps)
    "#]]
    .assert_eq(&lines(&C_OPENAT, &texts));
}

#[test]
fn names_and_types() {
    let texts = [
        "args.flgs & O_CREAT",
        "args.fd == 1",
        "flags & O_CREAT",
        "args.flags & O_CREATE",
        "retval == -ENOENTT",
        "pidd == 1",
        "frobnicate == 1",
        "comm == pid",
        "comm == 12",
        "comm == cat",
        "comm",
        "comm < \"a\"",
        "comm == args.filename",
        "-comm == 1",
        "comm + 1 == 2",
        "args.flags == \"x\"",
        "\"x\" == args.flags",
        "startwith(comm, \"a\")",
        "strlen(comm) == 1",
        "startswith(comm)",
        "startswith(comm, comm)",
        "strncmp(comm, \"a\") == 0",
        "strncmp(comm, \"a\", pid) == 0",
        "str(pid) == \"a\"",
        "comm == \"sixteen-bytes-xx\"",
        "1 / 0 == 1",
        "pid % (2 - 2) == 1",
        "1 << 64 == 1",
        "args.flags & O_CREAT == O_CREAT",
        "1 < pid < 3",
        "pid == (comm == \"a\" ? \"b\" : \"c\")",
    ];
    expect![[r#"
        args.flgs & O_CREAT
            F0003 unknown field 'args.flgs' at 1:1 (did you mean args.flags?)
        args.fd == 1
            F0003 unknown field 'args.fd' at 1:1 (did you mean args.dfd?)
        flags & O_CREAT
            F0007 unknown name 'flags' at 1:1 (did you mean args.flags?)
        args.flags & O_CREATE
            F0007 unknown name 'O_CREATE' at 1:14 (did you mean O_CREAT?)
        retval == -ENOENTT
            F0007 unknown name 'ENOENTT' at 1:12 (did you mean ENOENT?)
        pidd == 1
            F0007 unknown name 'pidd' at 1:1 (did you mean pid?)
        frobnicate == 1
            F0007 unknown name 'frobnicate' at 1:1 (write strings in double quotes, arguments as args.NAME)
        comm == pid
            F0009 'comm' is a string, 'pid' a number at 1:1
        comm == 12
            F0009 'comm' is a string, '12' a number at 1:1 (write "12")
        comm == cat
            F0007 unknown name 'cat' at 1:9 (write strings in double quotes, arguments as args.NAME)
        comm
            F0009 a string is neither true nor false at 1:1 (compare it with ==)
        comm < "a"
            F0009 strings have no order at 1:1 (they know ==, != and functions such as startswith(s, "…"))
        comm == args.filename
            F0009 two strings of which neither is a constant at 1:1 (one of the two must be a constant)
        -comm == 1
            F0009 a string where a number is expected at 1:2
        comm + 1 == 2
            F0009 '+' takes numbers, not strings at 1:1
        args.flags == "x"
            F0009 '"x"' is a string, 'args.flags' a number at 1:15 (only string arguments are read from memory; other arguments are numbers)
        "x" == args.flags
            F0009 '"x"' is a string, 'args.flags' a number at 1:1 (only string arguments are read from memory; other arguments are numbers)
        startwith(comm, "a")
            F0011 unknown function 'startwith' at 1:1 (did you mean startswith?)
        strlen(comm) == 1
            F0011 unknown function 'strlen' at 1:1 (there are startswith, endswith, contains, glob, strncmp, str)
        startswith(comm)
            F0011 wrong arguments at 1:1 (startswith(string, "constant"))
        startswith(comm, comm)
            F0009 not a constant at 1:18
        strncmp(comm, "a") == 0
            F0011 wrong arguments at 1:1 (strncmp(string, "constant", number))
        strncmp(comm, "a", pid) == 0
            F0011 wrong arguments at 1:1 (strncmp(string, "constant", number))
        str(pid) == "a"
            F0009 not a string at 1:5 (only arguments that are strings can be read)
        comm == "sixteen-bytes-xx"
            F0013 the name of a thread has at most 15 bytes, this one 16 at 1:1
        1 / 0 == 1
            F0013 division by zero at 1:5
        pid % (2 - 2) == 1
            F0013 division by zero at 1:7
        1 << 64 == 1
            F0013 a shift by a number that is not 0 to 63 at 1:6
        args.flags & O_CREAT == O_CREAT
            F0014 '&' is applied to the result of '==' at 1:14 (write (a & b) == c, or add parentheses if this is meant)
        1 < pid < 3
            F0014 '<' is applied to the result of '<' at 1:1 (write a < b && b < c, or add parentheses if this is meant)
        pid == (comm == "a" ? "b" : "c")
            F0009 a string where a number is expected at 1:23
    "#]].assert_eq(&lines(&C_OPENAT, &texts));
}

#[test]
fn not_every_probe_has_every_value() {
    expect![[r#"
        retval == 0
            F0012 process:exit is not a call and has no 'retval' at 1:1
        dur > 1ms
            F0012 process:exit is not a call and has no 'dur' at 1:1
        cpu == 0
            F0012 process:exit is not a call and has no 'cpu' at 1:1
    "#]]
    .assert_eq(&lines(&P_EXIT, &["retval == 0", "dur > 1ms", "cpu == 0"]));
    expect![[r#"
        retval == 0
            F0012 syscall:exit_group never returns at 1:1
    "#]]
    .assert_eq(&lines(&C_EXIT_GROUP, &["retval == 0"]));
    let several = |text: &str, schemas: &[&Schema]| {
        parse(text, &[]).unwrap().check_all(schemas).map(|f| f.len()).map_err(|e| e.line("--where", text))
    };
    assert_eq!(several("args.fd == 1", &[&C_READ, &C_CLOSE]), Ok(2));
    expect!["trapline: --where: F0004 syscall:openat has no 'args.fd' at 1:1 (2 have it: select those only, with -e)"]
        .assert_eq(&several("args.fd == 1", &[&C_READ, &C_OPENAT, &C_CLOSE]).unwrap_err());
    expect!["trapline: --where: F0004 syscall:kill and 1 more have no 'args.fd' at 1:1 (1 has it: select those only, with -e)"].assert_eq(&several("args.fd == 1", &[&C_KILL, &C_OPENAT, &C_CLOSE]).unwrap_err());
    expect!["trapline: --where: F0003 unknown field 'args.fdd' at 1:1 (did you mean args.fd?)"]
        .assert_eq(&several("args.fdd == 1", &[&C_READ, &C_CLOSE]).unwrap_err());
    expect![
        "trapline: --where: F0004 syscall:read has no 'args.filename' at 1:17 (1 has it: select those only, with -e)"
    ]
    .assert_eq(&several("args.fd == 1 && args.filename == \"x\"", &[&C_READ, &C_OPENAT]).unwrap_err());
    expect!["trapline: --where: F0004 process:exit has no 'retval' at 1:1 (1 has it: select those only, with -e)"]
        .assert_eq(&several("retval == 1", &[&C_READ, &P_EXIT]).unwrap_err());
}

#[test]
fn a_type_that_differs_names_its_probe() {
    // A string here, an address there.
    let (chdir, write) = (registry::by_name("chdir").unwrap(), registry::by_name("write").unwrap());
    let string = chdir.args.iter().find(|a| matches!(a.ty, Type::Str(_))).unwrap().name;
    let text = format!("comm == \"x\" && probe != \"y\" && args.{string} == \"/\"");
    assert_eq!(parse(&text, &[]).unwrap().check_all(&[chdir, write]).unwrap_err().code, Code::NotInProbe);
    let named = |name: &'static str| {
        let of = |string: bool| {
            registry::syscalls().find(|s| s.arg(name).is_some_and(|i| matches!(s.args[i].ty, Type::Str(_)) == string))
        };
        Some((of(true)?, of(false)?))
    };
    let names = registry::syscalls().flat_map(|s| s.args).map(|a| a.name);
    let (name, (a, b)) = names.filter_map(|n| Some((n, named(n)?))).next().unwrap();
    let text = format!("args.{name} == \"x\"");
    let e = parse(&text, &[]).unwrap().check_all(&[a, b]).unwrap_err();
    assert_eq!((e.code, e.message.starts_with(&format!("syscall:{}: ", b.name))), (Code::Type, true), "{e:?}");
}

#[test]
fn too_much() {
    let deep = "(".repeat(70) + "1" + &")".repeat(70);
    let chain = "1".to_owned() + &" + pid".repeat(200);
    let long = "pid == 1 || ".repeat(2000) + "pid == 2";
    let string = format!("args.filename == \"{}\"", "x".repeat(300));
    for text in [deep, chain, long, "-".repeat(5000), "!".repeat(100) + "1", string] {
        assert!([Code::TooLarge, Code::NotAFilter].contains(&mistake(&text, &C_OPENAT, &[]).code), "{text}");
    }
    let many = "pid == 1 || ".repeat(1000) + "pid == 2";
    assert_eq!(parse(&many, &[]).unwrap().check(&C_OPENAT).unwrap().parts().len(), 1);
}

#[test]
fn parameters() {
    let params: Vec<String> = ["12", "/etc/passwd", "-3", "1ms", "7"].map(String::from).to_vec();
    let check = |text: &str| parse(text, &params).and_then(|p| p.check(&C_OPENAT)).map(|f| f.parts()[0].cond.clone());
    assert_eq!(check("pid == $1"), check("pid == 12"));
    assert_eq!(check("retval == $3"), check("retval == -3"));
    assert_eq!(check("dur > $4"), check("dur > 1000000"));
    assert_eq!(check("args.filename == $2"), check("args.filename == \"/etc/passwd\""));
    assert_eq!(check("comm == str($5)"), check("comm == \"7\""));
    assert_eq!(check("comm == $5").unwrap_err().code, Code::Type);
    assert_eq!(check("pid == $0").unwrap_err().hint.as_deref(), Some("the first parameter is $1"));
    assert_eq!(check("pid == $9").unwrap_err().hint.as_deref(), Some("the last one is $5"));
    assert_eq!(check("pid == $99999999999999999999").unwrap_err().code, Code::Literal);
}

fn cond(text: &str) -> Cond {
    parse(text, &[]).unwrap().check(&C_OPENAT).unwrap().parts()[0].cond.clone()
}

#[test]
fn names_take_the_type_of_their_neighbour() {
    // O_RDWR is 2 among the flags of open; alone it must be the same everywhere, or an error.
    assert_eq!(cond("(args.flags & O_ACCMODE) == O_RDWR"), cond("(args.flags & 3) == 2"));
    assert_eq!(cond("args.flags & (O_CREAT | O_EXCL)"), cond("args.flags & 0xc0"));
    assert_eq!(cond("O_CREAT & args.flags"), cond("args.flags & 0x40"));
    assert_eq!(cond("args.dfd == AT_FDCWD"), cond("args.dfd == -100"));
    assert_eq!(cond("retval == -EAGAIN"), cond("retval == -11"));
    let kill = parse("args.sig == SIGKILL", &[]).unwrap().check(&C_KILL).unwrap();
    let Cond::Compare(Cmp::Eq, Int::Value(Value::Arg(Arg { index: 1, .. })), Int::Const(9)) = kill.parts()[0].cond
    else {
        panic!("{kill:?}")
    };
}

#[test]
fn every_flag_of_every_argument_can_be_named() {
    use events::types::Fmt;
    for schema in registry::syscalls() {
        for arg in schema.args {
            let Type::Int(int) = arg.ty else { continue };
            let (Fmt::Flags(table) | Fmt::Enum(table)) = int.fmt else { continue };
            for e in table.entries().filter(|e| e.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
                let text = format!("args.{} == {}", arg.name, e.name);
                let filter =
                    parse(&text, &[]).unwrap().check(schema).unwrap_or_else(|d| panic!("{}", d.block("", &text)));
                let Cond::Compare(_, _, Int::Const(v)) = filter.parts()[0].cond else { panic!("{text}") };
                assert_eq!(v as u64, int.fit(e.value), "{} {text}", schema.name);
            }
        }
    }
}

#[test]
fn precedence_and_constants() {
    let value = |text: &str| {
        let Cond::Compare(Cmp::Eq, _, Int::Const(v)) = cond(&format!("pid == ({text})")) else { panic!("{text}") };
        v
    };
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("1 - 2 - 3", -4),
        ("2 | 1 ^ 3 & 2", 3),
        ("1 << 2 + 1", 8),
        ("-8 >> 1", 0x7fff_ffff_ffff_fffc),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 / -2", -3),
        ("1 ? 2 : 0 ? 3 : 4", 2),
        ("0 ? 2 : 0 ? 3 : 4", 4),
        ("!5 + !0", 1),
        ("~0", -1),
        ("1 || 0 && 0", 1),
        ("3 > 2 && 2 > 1", 1),
        ("010 + 0x1f + 1_000 + 1e3", 2039),
        ("1s + 1ms + 1us + 1ns", 1_001_001_001),
        ("1m + 1h + 1d", 90_060_000_000_000),
        ("1k + 1K + 1M + 1G", 2048 + (1 << 20) + (1 << 30)),
        ("5u + 5ul + 5ULL", 15),
        ("0xffffffffffffffff", -1),
        ("-9223372036854775808 / -1 + 0", i64::MIN),
        ("(int8)0xff", -1),
        ("(uint16)-1", 65535),
        ("(int32)0x80000000", -0x8000_0000),
        ("true + true + false", 2),
        ("NULL", 0),
        ("/* a */ 1 // b", 1),
    ] {
        let text = format!("{text}\n");
        assert_eq!(value(&text), expected, "{text}");
    }
}

#[test]
fn probe_is_a_constant() {
    let of = |text: &str, schema: &Schema| parse(text, &[]).unwrap().check(schema).unwrap().constant();
    assert_eq!(of("probe == \"syscall:openat\"", &C_OPENAT), Some(true));
    assert_eq!(of("probe != \"syscall:openat\"", &C_OPENAT), Some(false));
    assert_eq!(of("startswith(probe, \"syscall:\")", &C_CLOSE), Some(true));
    assert_eq!(of("strncmp(probe, \"process:exitx\", 12) == 0", &P_EXIT), Some(true));
    assert_eq!(of("pid == 1 && probe == \"x\"", &C_CLOSE), Some(false));
    assert_eq!(of("pid == 1 || probe == \"x\"", &C_CLOSE), None);
    assert_eq!(of("pid == 1 || probe == \"syscall:close\"", &C_CLOSE), Some(true));
}

#[test]
fn what_a_cut_string_decides_is_what_the_whole_one_does() {
    let strings = ["", "a", "ab", "/etc/passwd", "aab", "abab", "passwd", "/etc"];
    let constants = ["a", "b", "ab", "/etc*", "*wd", "a?*", "*a*", "?b", "passwd", "/etc/passwd", "*", "b*b"];
    for how in [How::Is, How::Starts, How::Ends, How::Contains, How::Glob] {
        for constant in constants {
            let t = Text { subject: Subject::Comm, constant: constant.into(), how };
            for s in strings {
                for n in 0..s.len() {
                    let cut = t.holds_cut(&s.as_bytes()[..n]);
                    assert!(cut.is_none_or(|c| c == t.holds(s.as_bytes())), "{how:?} {constant} {s} {n}: {cut:?}");
                }
            }
        }
    }
    let text = |how, constant: &str| Text { subject: Subject::Comm, constant: constant.into(), how };
    assert_eq!(text(How::Contains, "tc").holds_cut(b"/etc"), Some(true));
    assert_eq!(text(How::Glob, "/etc/*").holds_cut(b"/etc/p"), Some(true));
    assert_eq!(text(How::Glob, "/usr/*b").holds_cut(b"/etc/p"), Some(false));
    assert_eq!(text(How::Ends, "wd").holds_cut(b"/etc/passwd"), None, "more may follow");
}

#[test]
fn strings_are_searched() {
    let event = openat(FIXED, "/etc/passwd", Cap::Whole, 0);
    let is = |text: &str| verdict(text, &event, &CONTEXT);
    for passes in [
        "endswith(args.filename, \"wd\") && endswith(args.filename, \"\") && endswith(comm, \"at\")",
        "contains(args.filename, \"c/p\") && strcontains(comm, \"a\") && contains(comm, \"\")",
        "glob(args.filename, \"/*/pass??\") && glob(comm, \"cat\") && glob(comm, \"**\")",
        "glob(probe, \"syscall:open*\") && contains(\"abc\", \"b\") && !endswith(\"abc\", \"b\")",
    ] {
        assert_eq!(is(passes), Verdict::Pass, "{passes}");
    }
    for fails in ["endswith(args.filename, \"pass\")", "contains(comm, \"cats\")", "glob(comm, \"ca\")"] {
        assert_eq!(is(fails), Verdict::Rejected(0), "{fails}");
    }
    let f = |text: &str| parse(text, &[]).unwrap().check(&C_OPENAT).unwrap();
    assert!(f("pid == 1 && glob(comm, \"a\")").needs().search && !f("startswith(comm, \"a\")").needs().search);
    assert_eq!(f("contains(args.filename, \"a\")").needs().strings[0].bytes, crate::filter::ir::SEARCHED);
    let cut = openat(FIXED, "/etc/pas", Cap::Cut, 0);
    assert_eq!(verdict("endswith(args.filename, \"wd\")", &cut, &CONTEXT), Verdict::Unknown(Missing::Text(1)));
}

#[test]
fn needs_and_order() {
    let f = |text: &str| parse(text, &[]).unwrap().check(&C_OPENAT).unwrap();
    let filter = f("args.filename == \"/etc/passwd\" && (comm == \"cat\" && retval < 0) && args.flags == 0");
    assert_eq!(
        filter.parts().iter().map(|p| p.text.as_str()).collect::<Vec<_>>(),
        ["args.filename == \"/etc/passwd\"", "comm == \"cat\"", "retval < 0", "args.flags == 0",]
    );
    assert_eq!(filter.order(), [2, 3, 1, 0]);
    let n = filter.needs();
    assert_eq!((n.comm, n.retval, n.start, n.uid, n.args, n.at_entry()), (true, true, false, false, 0b110, false));
    assert_eq!(n.strings, [NeededString { arg: 1, bytes: 12, at_exit: false }]);
    assert!(f("pid == 1 && uid == 0 && startswith(args.filename, \"/etc\")").needs().at_entry());
    assert!(f("dur > 1ms").needs().start);
    let readlink = registry::by_name("getcwd").unwrap();
    let buf = readlink.args.iter().find(|a| matches!(a.ty, Type::Str(_)));
    if let Some(buf) = buf {
        let text = format!("args.{} == \"/\"", buf.name);
        assert!(!parse(&text, &[]).unwrap().check(readlink).unwrap().needs().at_entry());
    }
}

/// An openat of `filename`, read so far as `cap` says.
fn openat(fixed: Fixed, filename: &str, cap: Cap, flags: u64) -> Vec<u8> {
    let layout = Layout::of(&C_OPENAT);
    let fixed = Fixed { cap: fixed.cap | u16::from(cap.bits()) << 2, ..fixed };
    let mut bytes = Vec::new();
    encode::fixed(&mut bytes, &C_OPENAT, &layout, &fixed, &[-100i64 as u64, 0x1000, flags, 0o644]);
    encode::str_tail(&mut bytes, filename.as_bytes());
    bytes
}

fn verdict(text: &str, bytes: &[u8], context: &Context<'_>) -> Verdict {
    let filter = parse(text, &[]).unwrap().check(&C_OPENAT).unwrap();
    filter.matches(&Event::parse(bytes).unwrap(), context)
}

const FIXED: Fixed =
    Fixed { time: 5_000, cap: 0, more_caps: 0, tid: 12, pid: 11, start: 2_000, ret: -2, cpu_in: 3, cpu_out: NO_CPU };
const CONTEXT: Context<'static> = Context { comm: Some(b"cat\0rest"), uid: Some(1000), gid: Some(0), cpu: None };
