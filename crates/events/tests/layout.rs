//! The layout of every class, and the identity of encoding and decoding, for every schema there is.

use events::encode::{self, Fixed};
use events::layout::{Layout, Shape};
use events::types::{Fmt, Type};
use events::{Class, Event, Int, Schema, generated as g};
use proptest::prelude::*;

#[test]
fn a_read_is_as_small_as_it_can_be() {
    // ts id cap tid pid | fd | start | ret | buf | count | cpu cpu
    let l = Layout::of(&g::C_READ);
    assert_eq!((l.args[0], l.start, l.ret, l.args[1], l.args[2]), ((20, 4), 24, 32, (40, 8), (48, 8)));
    assert_eq!((l.cpu, l.fixed), ((56, 58), 60));
    assert_eq!(l.tails.len(), 1);
}

#[test]
fn fields_are_naturally_aligned_and_do_not_overlap() {
    for s in g::SCHEMAS {
        let l = Layout::of(s);
        let mut used = vec![false; l.fixed];
        let mut claim = |at: usize, n: usize| {
            assert!(at.is_multiple_of(n.min(8)), "{}: field at {at} of {n} bytes", s.name);
            for b in &mut used[at..at + n] {
                assert!(!*b, "{}: two fields at {at}", s.name);
                *b = true;
            }
        };
        claim(0, 8);
        claim(8, 2);
        claim(10, 2);
        claim(12, 4);
        claim(16, 4);
        if s.class == Class::Syscall {
            claim(l.start, 8);
            claim(l.ret, 8);
            claim(l.cpu.0, 2);
            claim(l.cpu.1, 2);
        }
        for i in 0..s.args.len() {
            claim(l.args[i].0.into(), l.args[i].1.into());
        }
        assert!(l.tails.len() <= events::schema::MAX_ARGS, "{}: too many tails", s.name);
    }
}

#[test]
fn ids_are_indexes_and_numbers_lead_back() {
    for (i, s) in g::SCHEMAS.iter().enumerate() {
        assert_eq!(usize::from(s.id), i);
        if let Some(nr) = s.x86_64 {
            assert_eq!(events::registry::by_number(nr.into()).map(|s| s.name), Some(s.name));
        }
    }
    assert_eq!(events::registry::by_number(u64::MAX), None);
    assert!(events::registry::syscalls().count() > 380);
}

fn tail(shape: Shape, bytes: &[u8], out: &mut Vec<u8>) {
    match shape {
        Shape::Str => encode::str_tail(out, bytes),
        Shape::Bytes => encode::bytes_tail(out, bytes),
        Shape::One(n) => {
            let elem: Vec<u8> = bytes.iter().copied().cycle().take(n.into()).collect();
            encode::one_tail(out, (!bytes.is_empty()).then_some(&elem[..]));
        }
        Shape::Many(n) => encode::many_tail(out, bytes, n.into()),
        _ => encode::empty_tail(out, shape),
    }
}

fn build(s: &'static Schema, f: &Fixed, args: &[u64], bytes: &[u8]) -> Vec<u8> {
    let l = Layout::of(s);
    let mut out = Vec::new();
    encode::fixed(&mut out, s, &l, f, args);
    for t in &l.tails {
        tail(t.shape, bytes, &mut out);
    }
    out
}

fn expected(s: &Schema, i: usize, v: u64) -> u64 {
    match s.args[i].ty {
        Type::Int(int) if int.size <= 4 => {
            // Narrow arguments take four bytes; the type says how they are widened.
            Int { size: int.size, signed: int.signed, fmt: Fmt::Dec }.fit(v & 0xffff_ffff)
        }
        _ => v,
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        which in 0..g::SCHEMAS.len(), time: u64, tid: u32, pid: u32, start: u64, ret: i64, cpu in 0u16..100,
        cap: u16, args in prop::array::uniform12(any::<u64>()), bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let s = g::SCHEMAS[which];
        let f = Fixed { time, cap, tid, pid, start, ret, cpu_in: cpu, ..Fixed::default() };
        let mut raw = build(s, &f, &args, &bytes);
        let len = raw.len();
        raw.extend_from_slice(b"the next event");
        let ev = Event::parse(&raw).unwrap();
        prop_assert_eq!(ev.bytes.len(), len);
        prop_assert_eq!((ev.time(), ev.caps(), ev.tid(), ev.pid()), (time, cap, tid, pid));
        if s.class == Class::Syscall {
            prop_assert_eq!((ev.start(), ev.ret(), ev.cpus()), (start, ret, (Some(cpu), None)));
        }
        for (i, v) in args.iter().enumerate().take(s.args.len()) {
            prop_assert_eq!(ev.arg(i), expected(s, i, *v));
        }
    }

    #[test]
    fn a_truncated_event_is_malformed(which in 0..g::SCHEMAS.len(), cut in 0.0..1.0f64) {
        let raw = build(g::SCHEMAS[which], &Fixed::default(), &[0; 12], b"abc");
        let n = (raw.len() as f64 * cut) as usize;
        prop_assert!(Event::parse(&raw[..n]).is_err());
    }

    #[test]
    fn any_bytes_are_an_event_or_malformed(mut raw in prop::collection::vec(any::<u8>(), 0..600), id: u16) {
        if raw.len() > 10 {
            raw[8..10].copy_from_slice(&(id % g::SCHEMAS.len() as u16).to_le_bytes());
        }
        let _ = Event::parse(&raw);
    }
}
