//! Spans that are no calls, in each view; and times at the ends of their range.

use events::dynamic::{self, Field, READ};
use events::encode::{self, Fixed};
use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN, Layout};
use events::names::NoNames;
use events::types::{Fmt, StrKind};
use events::{Event, Int, Schema, Type};
use views::json::Json;
use views::latency::{By, Latency};
use views::options::{Precision, Prefix, Stamp};
use views::record::Record;
use views::text::Text;
use views::{Options, View};

const MAX: u64 = u64::MAX;

/// A function with seven numbers and two things read from memory, which are its eighth and ninth field.
fn function() -> &'static Schema {
    let int = Type::Int(Int { size: 8, signed: true, fmt: Fmt::Dec });
    let mut fields: Vec<Field> = (0..7).map(|i| Field { name: format!("arg{i}"), ty: int }).collect();
    fields.push(Field { name: "what".into(), ty: Type::Str(StrKind::Text) });
    fields.push(Field { name: "data".into(), ty: Type::Bytes(READ) });
    dynamic::span("function:./app:work", &fields).unwrap()
}

/// A call of it, whose string was cut and whose other memory could not be read.
fn worked(fixed: Fixed) -> Vec<u8> {
    let schema = function();
    let fixed = Fixed { tid: 7, pid: 7, more_caps: 2 << 2 | 3 << 4, ..fixed };
    let mut out = Vec::new();
    encode::fixed(&mut out, schema, &Layout::of(schema), &fixed, &[0, 1, 2, 3, 4, 5, 6, 0x1000, 0x2000]);
    encode::str_tail(&mut out, b"step");
    encode::bytes_tail(&mut out, b"");
    out
}

fn show(view: &mut dyn View, fixed: Fixed) -> String {
    let mut out = Vec::new();
    view.event(&Event::parse(&worked(fixed)).unwrap(), &NoNames, &mut out);
    String::from_utf8(out).unwrap()
}

fn text(fixed: Fixed) -> String {
    let opts = Options {
        duration: Some(Precision::Us),
        stamp: Stamp::Epoch(Precision::Us),
        prefix: Prefix::WhenSeveral,
        ..Options::default()
    };
    show(&mut Text::new(opts), fixed)
}

const SPAN: Fixed = Fixed {
    time: 2_000_150_000,
    start: 2_000_100_000,
    cap: 0,
    more_caps: 0,
    tid: 0,
    pid: 0,
    ret: -2,
    cpu_in: 1,
    cpu_out: 0,
};

const ARGS: &str = "arg0=0, arg1=1, arg2=2, arg3=3, arg4=4, arg5=5, arg6=6, what=\"step\"..., data=0x2000";

#[test]
fn a_span_has_its_result_and_its_duration_as_text() {
    // A small negative number is the result of a function, and no error of the kernel.
    assert_eq!(text(SPAN), format!("2.000100 function:./app:work({ARGS}) = -2 <0.000050>\n"));
    let unknown = Fixed { cap: CAP_START_UNKNOWN, ..SPAN };
    assert_eq!(text(unknown), format!("2.000100 function:./app:work({ARGS}) = -2\n"));
    let ended = Fixed { cap: CAP_NO_RESULT, ..SPAN };
    assert_eq!(text(ended), format!("2.000100 function:./app:work({ARGS}) = ?\n"));
}

#[test]
fn a_span_has_start_and_end_as_json() {
    let json = |fixed| -> serde_json::Value {
        serde_json::from_str(&show(&mut Json::new(Options::default()), fixed)).unwrap()
    };
    let v = json(SPAN);
    assert_eq!((&v["type"], &v["name"]), (&"probe".into(), &"function:./app:work".into()));
    assert_eq!((&v["start_ns"], &v["end_ns"]), (&2_000_100_000u64.into(), &2_000_150_000u64.into()));
    assert_eq!((&v["cpu"], &v["cpu_exit"], &v["ret"]), (&1.into(), &0.into(), &(-2).into()));
    assert_eq!((v.get("time_ns"), v.get("errno"), v.get("unfinished")), (None, None, None));
    assert_eq!(v["args"]["what"], serde_json::json!({"data": "step", "truncated": true}));
    let v = json(Fixed { cap: CAP_NO_RESULT | CAP_START_UNKNOWN, ..SPAN });
    assert!(v["start_ns"].is_null() && v["ret"].is_null() && v["unfinished"] == true, "{v}");
    let v = json(Fixed { start: MAX - 1, time: MAX, ..SPAN });
    assert_eq!((v["start_ns"].as_u64(), v["end_ns"].as_u64()), (Some(MAX - 1), Some(MAX)));
}

#[test]
fn a_span_has_its_start_and_its_result_in_the_record() {
    let line = |fixed| show(&mut Record::new(), fixed);
    let (known, unknown) = (line(SPAN), line(Fixed { cap: CAP_NO_RESULT | CAP_START_UNKNOWN, ..SPAN }));
    assert!(known.starts_with("P 2000150000 7 7 function:./app:work arg0=0 arg1=1 "), "{known}");
    assert!(known.ends_with(" what=\"step\" data=- start=2000100000 result=-2\n"), "{known}");
    assert!(unknown.ends_with(" start=- result=-\n"), "{unknown}");
}

#[test]
fn spans_are_in_the_table_of_latencies() {
    for by in [By::Call, By::Thread] {
        let mut table = Latency::new(by);
        for fixed in [SPAN, Fixed { start: 0, time: MAX, ..SPAN }, Fixed { cap: CAP_NO_RESULT, ..SPAN }] {
            assert_eq!(show(&mut table, fixed), "");
        }
        let v = table.to_json();
        let row = &v["rows"][0];
        assert_eq!((&row["calls"], &row["errors"], &v["unfinished"]), (&2.into(), &0.into(), &1.into()));
        assert_eq!((row["min_ns"].as_u64(), row["max_ns"].as_u64()), (Some(50_000), Some(MAX)));
        // A sum that 64 bits cannot hold stays at what they can.
        assert_eq!(row["total_ns"].as_u64(), Some(MAX));
        if by == By::Call {
            assert_eq!(row["name"], "function:./app:work");
        }
    }
}

#[test]
fn text_shows_the_largest_times_and_durations() {
    assert!(text(Fixed { start: 0, time: MAX, ..SPAN }).ends_with("= -2 <18446744073.709551>\n"));
    assert!(text(Fixed { start: MAX, time: MAX, ..SPAN }).starts_with("18446744073.709551 function"));
    for offset in [i64::MAX, i64::MIN] {
        let (stamp, relative) = (Stamp::Clock(Precision::Us), Some(Precision::Ns));
        let opts = Options { stamp, relative, realtime_offset: offset, utc_offset: offset, ..Options::default() };
        let line = show(&mut Text::new(opts), Fixed { start: MAX, time: MAX, ..SPAN });
        assert!(line.contains(" function:./app:work("), "{line}");
    }
}

#[test]
fn the_summary_has_all_digits_of_a_duration() {
    let (schema, columns) =
        (events::registry::by_name("getpid").unwrap(), views::summary::Column::parse("total-time,name"));
    let mut view = views::summary::Summary::new(views::summary::Sort::Time).columns(columns.unwrap());
    let mut bytes = Vec::new();
    // More than the 53 bits of a double, by one microsecond.
    let fixed = Fixed { start: 0, time: (1 << 63) + 1_000, ..Fixed::default() };
    encode::fixed(&mut bytes, schema, &Layout::of(schema), &fixed, &[]);
    let mut out = Vec::new();
    view.event(&Event::parse(&bytes).unwrap(), &NoNames, &mut out);
    view.end(&mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("9223372036.854777 getpid"), "{out}");
}
