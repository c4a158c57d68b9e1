//! No event, however hostile, makes a view panic, write invalid JSON or let a control character through.
//!
//! Two sources: bytes that are random but for the class id, and events of every class with random arguments and tails.

use events::event::Cap;
use events::layout::{CAP_NO_RESULT, Shape};
use events::names::{FdName, Names};
use events::schema::{Class, MAX_ARGS, Schema};
use events::{Event, Type, encode};
use proptest::prelude::*;
use views::json::Json;
use views::latency::{By, Latency};
use views::options::{FdNames, Xlat};
use views::parquet::{About, Parquet};
use views::record::Record;
use views::summary::{Sort, Summary};
use views::text::Text;
use views::trace_stats::{Trace, TraceStats};
use views::{Options, View};

/// Knows a name for every descriptor, and none that one would want.
struct Evil(FdName);

impl Names for Evil {
    fn fd(&self, _: u32, fd: i32) -> Option<&FdName> {
        (fd % 2 == 0).then_some(&self.0)
    }
    fn comm(&self, pid: u32) -> Option<&[u8]> {
        (pid.is_multiple_of(2)).then_some(b"\x1b]0;\xff\"\\")
    }
}

/// Decisions from a list of bytes; zeros when it is used up.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }
    fn below(&mut self, n: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % n.max(1)
    }
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte()).collect()
    }
    fn word(&mut self) -> u64 {
        const CORNERS: [u64; 10] = [0, 1, 2, 3, 17, 0x7fff_ffff, 0x8000_0000, u32::MAX as u64, u64::MAX, 1 << 53];
        match self.below(3) {
            0 => CORNERS[self.below(CORNERS.len())],
            1 => self.byte().into(),
            _ => self.bytes(8).iter().fold(0, |v, b| v << 8 | u64::from(*b)),
        }
    }
    /// A value for argument `i` that makes switches take one of their rows more often than chance would.
    fn argument(&mut self, schema: &Schema, i: usize) -> u64 {
        let selected = schema.args.iter().find_map(|a| match a.ty {
            Type::Switch { table, on, on2, .. } if usize::from(on) == i => Some((table, on2.map_or(0, |_| 32))),
            Type::Switch { table, on2: Some(on2), .. } if usize::from(on2) == i => Some((table, 0)),
            _ => None,
        });
        match selected {
            Some((table, shift)) if !table.cases.is_empty() && self.byte() != 0 => {
                table.cases[self.below(table.cases.len())].key >> shift & 0xffff_ffff
            }
            _ => self.word(),
        }
    }
}

fn event(dice: &mut Dice<'_>) -> Vec<u8> {
    let schemas = events::generated::SCHEMAS;
    event_of(schemas[dice.below(schemas.len())], dice)
}

fn event_of(schema: &Schema, dice: &mut Dice<'_>) -> Vec<u8> {
    let layout = events::registry::layout(schema.id).expect("a generated schema has a layout");
    let mut args = [0; MAX_ARGS];
    for (i, v) in args.iter_mut().enumerate().take(schema.args.len()) {
        *v = dice.argument(schema, i);
    }
    let f = encode::Fixed {
        time: dice.word(),
        cap: dice.word() as u16,
        tid: dice.word() as u32,
        pid: dice.word() as u32,
        start: dice.word(),
        ret: dice.word() as i64,
        cpu_in: dice.word() as u16,
        cpu_out: dice.word() as u16,
        ..encode::Fixed::default()
    };
    let mut out = Vec::new();
    encode::fixed(&mut out, schema, layout, &f, &args[..schema.args.len()]);
    for spec in &layout.tails {
        if schema.class == Class::Process && schema.name == "inflight" && dice.byte() > 40 {
            let contained = event(dice);
            encode::bytes_tail(&mut out, &contained);
        } else {
            tail(&mut out, spec.shape, dice);
        }
    }
    out
}

fn tail(out: &mut Vec<u8>, shape: Shape, dice: &mut Dice<'_>) {
    let n = dice.below(40);
    match shape {
        Shape::Str => encode::str_tail(out, &dice.bytes(n)),
        Shape::Bytes => encode::bytes_tail(out, &dice.bytes(4 * n)),
        Shape::One(size) => {
            let element = dice.bytes(size.into());
            encode::one_tail(out, (n > 2).then_some(&element[..]));
        }
        Shape::Many(size) => encode::many_tail(out, &dice.bytes(usize::from(size) * (n % 4)), size.into()),
        Shape::Strv => {
            out.extend(dice.bytes(2));
            out.extend((n as u16 % 4).to_le_bytes());
            for _ in 0..n % 4 {
                out.extend(dice.bytes(9));
                let len = dice.below(9);
                encode::str_tail(out, &dice.bytes(len));
            }
        }
        Shape::Iov => iov(out, dice),
        Shape::Msg => {
            out.extend((n as u16 % 3).to_le_bytes());
            for _ in 0..n % 3 {
                out.extend(dice.bytes(56 + 5));
                encode::bytes_tail(out, &dice.bytes(n));
                iov(out, dice);
                let control = dice.below(60);
                encode::bytes_tail(out, &dice.bytes(control));
            }
        }
    }
}

fn iov(out: &mut Vec<u8>, dice: &mut Dice<'_>) {
    let n = dice.below(4);
    out.extend((n as u16).to_le_bytes());
    for _ in 0..n {
        out.extend(dice.bytes(17));
        let len = dice.below(20);
        encode::bytes_tail(out, &dice.bytes(len));
    }
}

fn options(bits: u8) -> Options {
    Options {
        verbose: bits & 1 != 0,
        numbers: bits & 2 != 0,
        comm: bits & 4 != 0,
        xlat: if bits & 8 != 0 { Xlat::Raw } else { Xlat::Abbrev },
        fd_names: [FdNames::NONE, FdNames::PATH, FdNames::FULL, FdNames::FULL][usize::from(bits >> 4 & 3)],
        ..Options::default()
    }
}

/// What all views owe to any event.
fn check(bytes: &[u8], bits: u8) {
    let Ok(ev) = Event::parse(bytes) else { return };
    let names = &Evil(FdName { path: b"a\x1b\xff\n".to_vec(), detail: b"<\x9b>".to_vec() });
    let text = shown(&mut Json::new(options(bits)), &ev, names);
    let text = text.as_str();
    assert_eq!(text.find('\n'), Some(text.len() - 1), "one line: {text}");
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!((&value["v"], &value["pid"]), (&1.into(), &ev.pid().into()));

    let text = shown(&mut Record::new(), &ev, names);
    assert!(text.is_ascii() && text.ends_with('\n'), "{text}");
    assert!(text.lines().all(|l| matches!(l.get(..2), Some("E " | "D " | "X " | "P "))), "{text}");
    shown(&mut Text::new(options(bits)), &ev, names);
    shown(&mut Summary::new(Sort::Avg), &ev, names);
    let by = [By::Call, By::Thread, By::Path, By::Fd][usize::from(bits >> 6)];
    let mut view = Latency::new(by).histograms(true);
    let text = shown(&mut view, &ev, names);
    assert!(text.is_ascii() && text.lines().all(|l| l.len() <= 100), "{text}");
    let counted = ev.is_syscall() && ev.caps() & CAP_NO_RESULT == 0;
    assert_eq!(view.to_json()["total"]["calls"], u64::from(counted));
    let mut stats = TraceStats::new(Trace { realtime_offset: Some(ev.ret()), ..Trace::default() });
    assert!(shown(&mut stats, &ev, names).is_ascii());
    assert_eq!(stats.to_json()["probes"][0]["bytes"], ev.bytes.len());
    tables(&[&ev], names);
}

/// Rows of the tables. With all events of a test, they are packed too, which takes long.
fn tables(events: &[&Event<'_>], names: &dyn Names) -> Parquet {
    let first = events.first().map_or((0, 0), |ev| (ev.start(), ev.ret()));
    let about = About { begin: first.0, realtime_offset: first.1, ..About::default() };
    let (mut view, mut out) = (Parquet::new(about, TraceStats::new(Trace::default())), Vec::new());
    for ev in events {
        view.see(ev);
        view.event(ev, names, &mut out);
    }
    assert!(out.is_empty());
    view
}

/// The event and the end, as text without control characters.
fn shown(view: &mut dyn View, ev: &Event<'_>, names: &dyn Names) -> String {
    let mut out = Vec::new();
    view.event(ev, names, &mut out);
    view.end(&mut out);
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(!text.lines().any(|l| l.chars().any(char::is_control)), "{text}");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(id in 0..events::generated::SCHEMAS.len() as u16, mut b in prop::collection::vec(any::<u8>(), 24..200),
                    zeros in 0usize..400, bits: u8) {
        b[8..10].copy_from_slice(&id.to_le_bytes());
        b.resize(b.len() + zeros, 0);
        check(&b, bits);
    }

    #[test]
    fn random_events(entropy in prop::collection::vec(any::<u8>(), 0..600), bits: u8) {
        check(&event(&mut Dice(entropy.iter())), bits);
    }
}

/// Every class, with each capture state for all of its arguments and memory of each of a few bytes.
#[test]
fn every_class() {
    let mut all = Vec::new();
    for schema in events::generated::SCHEMAS {
        for fill in [0u8, 1, 2, 3, 0x41, 0x80, 0xff] {
            for cap in [Cap::None, Cap::Whole, Cap::Cut, Cap::Fault] {
                let entropy = vec![fill; 4000];
                let mut b = event_of(schema, &mut Dice(entropy.iter()));
                let caps = (0..6).fold(0, |c, i| c | u16::from(cap.bits()) << (2 * i));
                b[events::layout::CAP..events::layout::CAP + 2].copy_from_slice(&caps.to_le_bytes());
                check(&b, fill);
                check(&b, !fill);
                all.push(b);
            }
        }
    }
    let all: Vec<Event<'_>> = all.iter().filter_map(|b| Event::parse(b).ok()).collect();
    let names = &Evil(FdName { path: b"a\x1b\xff\n".to_vec(), detail: b"<\x9b>".to_vec() });
    let mut view = tables(&all.iter().collect::<Vec<_>>(), names);
    view.end(&mut Vec::new());
    let mut files = 0;
    view.take(|table, bytes| {
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
        files += 1;
    });
    assert_eq!(files, views::parquet::schema::ALL.len());
}
