//! What filters decide of events.

use super::*;

#[test]
fn verdicts() {
    let event = openat(FIXED, "/etc/passwd", Cap::Whole, 0x241);
    for (text, expected) in [
        ("pid == 11 && tid == 12 && uid == 1000 && gid == 0 && cpu == 3", Verdict::Pass),
        ("nsecs == 5000 && dur == 3us && retval == -ENOENT", Verdict::Pass),
        ("comm == \"cat\" && comm != \"ca\" && comm != \"cats\"", Verdict::Pass),
        ("args->flags == (O_WRONLY|O_CREAT|O_TRUNC) && args.dfd == AT_FDCWD && args.mode == 0644", Verdict::Pass),
        ("startswith(args.filename, \"/etc/\") && strncmp(args.filename, \"/etcetera\", 4) == 0", Verdict::Pass),
        ("\"/etc/passwd\" == str(args.filename)", Verdict::Pass),
        ("args.filename == \"/etc\" || args.filename == \"/etc/passwd\"", Verdict::Pass),
        ("args.filename != \"/etc/passwd\" && pid == 11 && retval == 0", Verdict::Rejected(2)),
        ("args.filename != \"/etc/passwd\" && pid == 11", Verdict::Rejected(0)),
        ("!(pid == 11)", Verdict::Rejected(0)),
        ("retval", Verdict::Pass),
        ("retval > 0 ? false : true", Verdict::Pass),
    ] {
        assert_eq!(verdict(text, &event, &CONTEXT), expected, "{text}");
    }
}

#[test]
fn what_is_not_known_does_not_pass() {
    use Missing::*;
    use Verdict::*;
    let of = |text: &str, cap: u16, cpu: u16, context: &Context<'_>| {
        verdict(text, &openat(Fixed { cap, cpu_in: cpu, ..FIXED }, "/etc", Cap::Whole, 0), context)
    };
    let none = Context::default();
    assert_eq!(of("pid == 11 || retval == 0", CAP_NO_RESULT, 0, &none), Unknown(Retval));
    assert_eq!(of("pid == 11", CAP_NO_RESULT, 0, &none), Pass);
    assert_eq!(of("dur >= 0", CAP_START_UNKNOWN, 0, &none), Unknown(Start));
    assert_eq!(of("cpu >= 0", 0, NO_CPU, &none), Unknown(Cpu));
    assert_eq!(of("uid == 0", 0, 0, &none), Unknown(Uid));
    assert_eq!(of("gid == 0", 0, 0, &none), Unknown(Gid));
    assert_eq!(of("comm == \"\"", 0, 0, &none), Unknown(Comm));
    let close = parse("pid == 11", &[]).unwrap().check(&C_CLOSE).unwrap();
    let bytes = openat(FIXED, "/etc", Cap::Whole, 0);
    assert_eq!(close.matches(&Event::parse(&bytes).unwrap(), &none), Unknown(Probe));
}

#[test]
fn strings_that_are_cut_or_lost() {
    let of = |text: &str, cap: Cap| verdict(text, &openat(FIXED, "/etc/pa", cap, 0), &CONTEXT);
    let (unknown, no) = (Verdict::Unknown(Missing::Text(1)), Verdict::Rejected(0));
    assert_eq!(of("args.filename == \"/etc/passwd\"", Cap::Cut), unknown);
    assert_eq!(of("args.filename == \"/etc/pa\"", Cap::Cut), no);
    assert_eq!(of("args.filename == \"/etc/shadow\"", Cap::Cut), no);
    assert_eq!(of("startswith(args.filename, \"/etc/pa\")", Cap::Cut), Verdict::Pass);
    assert_eq!(of("startswith(args.filename, \"/etc/pass\")", Cap::Cut), unknown);
    assert_eq!(of("startswith(args.filename, \"/usr/lib/x\")", Cap::Cut), no);
    for text in ["args.filename == \"/etc/pa\"", "args.filename != \"/etc/pa\"", "args.filename == \"\""] {
        assert_eq!(of(text, Cap::Fault), unknown, "{text}");
    }
    assert_eq!(of("args.filename == \"/etc/pa\"", Cap::None), no);
    assert_eq!(of("args.filename == \"\"", Cap::None), Verdict::Pass);
}

#[test]
fn calls_and_processes() {
    assert_eq!((C_OPENAT.class, P_EXIT.class), (Class::Syscall, Class::Process));
    let f = parse("pid == 1 && nsecs > 0 && comm == \"x\"", &[]).unwrap().check(&P_EXIT).unwrap();
    assert!(f.needs().nsecs && f.needs().comm);
}

#[test]
fn probes_other_than_calls_have_what_they_carry() {
    use events::dynamic::{Field, class};
    use events::types::{Fmt, StrKind};
    let int = Type::Int(events::Int { size: 4, signed: true, fmt: Fmt::Dec });
    let field = |name: &str, ty| Field { name: name.into(), ty };
    let many = (0..20).map(|i| field(&format!("f{i}"), int)).collect::<Vec<_>>();
    let back = class("uretprobe:/a:b", &[field("retval", int), field("what", Type::Str(StrKind::Text))]).unwrap();
    let entry = class("uprobe:/a:b", &many).unwrap();
    let check = |text: &str, s: &Schema| parse(text, &[]).and_then(|p| p.check(s));
    // The result of a function is one of its arguments.
    let f = check("retval == 3 && cpu == 1 && args.what == \"x\"", back).unwrap();
    assert_eq!((f.needs().args, f.needs().retval, f.needs().cpu), (0b11, false, true));
    assert_eq!(check("args.f19 == 1", entry).unwrap().needs().args, 1 << 19);
    for text in ["retval == 3", "dur > 1"] {
        assert_eq!(check(text, entry).unwrap_err().code, Code::NotAvailable, "{text}");
    }
}

#[test]
fn a_span_of_any_probe_has_a_duration_a_result_and_a_processor() {
    use events::dynamic::{Field, class, span};
    let int = Type::Int(events::Int { size: 8, signed: true, fmt: events::types::Fmt::Dec });
    let fields = [Field { name: "n".into(), ty: int }];
    let s = span("function:/a:b", &fields).unwrap();
    let check = |text: &str| parse(text, &[]).unwrap().check(s).unwrap();
    let event = |fixed: Fixed| {
        let mut bytes = Vec::new();
        encode::fixed(&mut bytes, s, &Layout::of(s), &fixed, &[7]);
        bytes
    };
    let known = Fixed { time: u64::MAX, start: 1, ret: i64::MIN, cpu_in: 3, cpu_out: 4, ..Fixed::default() };
    let verdict = |text: &str, fixed: Fixed| {
        let bytes = event(fixed);
        check(text).matches(&Event::parse(&bytes).unwrap(), &Context::default())
    };
    let min = "retval == -9223372036854775807 - 1";
    for text in ["dur == -2", "nsecs == -1", min, "cpu == 3 && args.n == 7", "dur >> 1 == 0x7fffffffffffffff"] {
        assert_eq!(verdict(text, known), Verdict::Pass, "{text}");
    }
    assert_eq!(verdict("dur > 5ms", Fixed { start: 1, time: 5_000_002, ..known }), Verdict::Pass);
    assert_eq!(verdict("dur > 5ms", Fixed { start: 2, time: 5_000_002, ..known }), Verdict::Rejected(0));
    let unknown = Fixed { cap: CAP_START_UNKNOWN | CAP_NO_RESULT, ..known };
    assert_eq!(verdict("dur > 0", unknown), Verdict::Unknown(Missing::Start));
    assert_eq!(verdict(min, unknown), Verdict::Unknown(Missing::Retval));
    // Points have neither.
    let point = class("function:/a:b", &fields).unwrap();
    for text in ["dur > 0", "retval == 0"] {
        assert_eq!(parse(text, &[]).unwrap().check(point).unwrap_err().code, Code::NotAvailable, "{text}");
    }
}

/// Of a function's argument only the filter knows that it is the address of a string.
#[test]
fn str_reads_what_a_number_of_a_probe_leads_to() {
    let int = Type::Int(events::types::Int { size: 8, signed: true, fmt: events::types::Fmt::Dec });
    let field = |name: &str| events::dynamic::Field { name: name.into(), ty: int };
    let s = events::dynamic::class("uprobe:/bin/x:y", &[field("n"), field("retval")]).unwrap();
    let typed = |text: &str| parse(text, &[]).unwrap().check(s).unwrap();
    let f = typed("str(args.n) == \"abc\" && args.n != 0");
    assert_eq!(f.needs().strings, [NeededString { arg: 0, bytes: 4, at_exit: false }]);
    assert_eq!(typed("startswith(str(retval), \"a\")").needs().args, 2);
    // The event has the number only.
    let mut bytes = Vec::new();
    let fixed = Fixed { time: 1, tid: 2, pid: 1, ..Fixed::default() };
    encode::fixed(&mut bytes, s, &Layout::of(s), &fixed, &[7, 8]);
    assert_eq!(f.matches(&Event::parse(&bytes).unwrap(), &Context::default()), Verdict::Unknown(Missing::Text(0)));
    // Under another name, and what is said of it.
    let other = |name: &str| (name == "arg0").then(|| "n".to_string());
    let parsed = parse("str(args.arg0) == \"abc\" && args.arg1 == 0", &[]).unwrap();
    let e = parsed.renamed(&other).check(s).unwrap_err();
    assert_eq!((e.code, e.span.of(&parsed.text)), (Code::UnknownField, "args.arg1"));
    assert!(parse("str(args.arg0) == \"abc\"", &[]).unwrap().renamed(&other).check(s).is_ok());
    // Of calls it is known what is a string.
    assert_eq!(mistake("str(args.fd) == \"a\"", &C_READ, &[]).code, Code::Type);
    for wrong in ["str(args.n + 1) == \"a\"", "str(pid) == \"a\"", "str(1) == \"a\""] {
        assert_eq!(mistake(wrong, s, &[]).code, Code::Type, "{wrong}");
    }
}
