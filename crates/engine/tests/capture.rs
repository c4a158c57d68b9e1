//! Capturing from a fake memory: what is read, how much, and what becomes of bad pointers.

use engine::capture::{Call, Limits, Memory, tails};
use events::encode::{self, Fixed};
use events::event::{Cap, Event};
use events::registry::by_name;
use std::collections::BTreeMap;

/// Memory made of pieces; everything else is unmapped.
#[derive(Default)]
struct Fake(BTreeMap<u64, Vec<u8>>);

impl Fake {
    fn with(mut self, addr: u64, bytes: &[u8]) -> Fake {
        self.0.insert(addr, bytes.to_vec());
        self
    }
}

impl Memory for Fake {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        let Some((base, piece)) = self.0.range(..=addr).next_back() else { return 0 };
        let from = (addr - base) as usize;
        let Some(rest) = piece.get(from..) else { return 0 };
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        n
    }
}

/// The event of a call over a memory, with strings of at most `string` bytes.
fn event(name: &str, args: &[u64], ret: i64, mem: &mut Fake, string: usize) -> Vec<u8> {
    let schema = by_name(name).unwrap();
    let layout = events::registry::layout(schema.id).unwrap();
    let limits = Limits { string, text: 0, verbose: false, keep: Default::default() };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let caps = tails(&Call { schema, layout, args, result: None }, mem, limits, 0, &mut before);
    let cap = tails(&Call { schema, layout, args, result: Some(ret) }, mem, limits, caps, &mut after);
    let mut out = Vec::new();
    encode::fixed(&mut out, schema, layout, &Fixed { cap, ret, ..Fixed::default() }, args);
    out.extend(before);
    out.extend(after);
    out
}

#[test]
fn a_path_is_read_whole_and_a_bad_one_is_a_fault() {
    let long = [b'x'; 300];
    let mut mem = Fake::default().with(0x1000, &[&long[..], b"\0rest"].concat());
    let raw = event("openat", &[-100i64 as u64, 0x1000, 0, 0], 3, &mut mem, 32);
    let ev = Event::parse(&raw).unwrap();
    assert_eq!((ev.cap(1), ev.bytes_of("filename")), (Cap::Whole, &long[..]));
    let raw = event("openat", &[-100i64 as u64, 0x9000, 0, 0], -14, &mut mem, 32);
    assert_eq!(Event::parse(&raw).unwrap().cap(1), Cap::Fault);
    let raw = event("openat", &[-100i64 as u64, 0, 0, 0], -14, &mut mem, 32);
    assert_eq!(Event::parse(&raw).unwrap().cap(1), Cap::None);
}

#[test]
fn a_string_that_ends_at_the_end_of_memory_is_whole() {
    let mut mem = Fake::default().with(0x1ffc, b"abc\0");
    let raw = event("chdir", &[0x1ffc], 0, &mut mem, 32);
    assert_eq!(Event::parse(&raw).unwrap().bytes_of("filename"), b"abc");
    let mut mem = Fake::default().with(0x1ffd, b"abc");
    let raw = event("chdir", &[0x1ffd], -14, &mut mem, 32);
    assert_eq!(Event::parse(&raw).unwrap().cap(0), Cap::Fault);
}

#[test]
fn the_text_of_a_message_is_behind_its_type() {
    let mut mem = Fake::default().with(0x1000, b"\x02\0\0\0\0\0\0\0hello");
    let mut sent = |at: u64, n: u64, string: usize| {
        let raw = event("msgsnd", &[7, at, n, 0], 0, &mut mem, string);
        let ev = Event::parse(&raw).unwrap();
        (ev.cap(1), ev.bytes_of("msgp").get(8..).map(<[u8]>::to_vec))
    };
    assert_eq!(sent(0x1000, 5, 32), (Cap::Whole, Some(b"hello".to_vec())));
    assert_eq!(sent(0x1000, 0, 32), (Cap::Whole, Some(vec![])));
    assert_eq!(sent(0x1000, 5, 3), (Cap::Cut, Some(b"hel".to_vec())));
    // A text that is not shown is not one that cannot be read.
    assert_eq!(sent(0x1000, 5, 0), (Cap::Cut, Some(b"h".to_vec())));
    assert_eq!(sent(0x1000, 6, 32), (Cap::Cut, Some(vec![])));
    assert_eq!((sent(0x1006, 6, 32), sent(0x9000, 5, 32)), ((Cap::Fault, None), (Cap::Fault, None)));
    let raw = event("msgrcv", &[7, 0x1000, 100, 0, 0], 2, &mut mem, 32);
    let ev = Event::parse(&raw).unwrap();
    assert_eq!((ev.cap(1), &ev.bytes_of("msgp")[8..]), (Cap::Whole, &b"he"[..]));
}

#[test]
fn a_buffer_is_cut_to_the_limit_and_only_what_was_read_counts() {
    let mut mem = Fake::default().with(0x1000, &[7; 4096]);
    let raw = event("read", &[0, 0x1000, 4096], 100, &mut mem, 32);
    let ev = Event::parse(&raw).unwrap();
    assert_eq!((ev.cap(1), ev.bytes_of("buf")), (Cap::Cut, &[7; 32][..]));
    let raw = event("read", &[0, 0x1000, 4096], 3, &mut mem, 32);
    let ev = Event::parse(&raw).unwrap();
    assert_eq!((ev.cap(1), ev.bytes_of("buf")), (Cap::Whole, &[7; 3][..]));
    let raw = event("read", &[0, 0x1000, 4096], -4, &mut mem, 32);
    assert_eq!(Event::parse(&raw).unwrap().cap(1), Cap::None);
}

#[test]
fn hostile_lengths_are_bounded() {
    let mut mem = Fake::default().with(0x1000, &vec![1; 1 << 20]);
    for (name, args) in [
        ("write", vec![1, 0x1000, u64::MAX]),
        ("writev", vec![1, 0x1000, u64::MAX]),
        ("poll", vec![0x1000, u32::MAX.into(), 0]),
        ("select", vec![i32::MAX as u64, 0x1000, 0x1000, 0x1000, 0]),
        ("execve", vec![0x1000, 0x1000, 0x1000]),
        ("sendmmsg", vec![3, 0x1000, u32::MAX.into(), 0]),
        ("rt_sigprocmask", vec![0, 0x1000, 0x1000, u64::MAX]),
        ("bind", vec![3, 0x1000, u32::MAX.into()]),
        ("setgroups", vec![i32::MAX as u64, 0x1000]),
    ] {
        let raw = event(name, &args, i64::MAX, &mut mem, 65535);
        assert!(raw.len() < 1 << 20, "{name}: {} bytes", raw.len());
        assert!(Event::parse(&raw).is_ok(), "{name}");
    }
}

#[test]
fn every_call_survives_any_arguments() {
    let mut mem = Fake::default().with(0, &vec![0xff; 1 << 16]).with(0x7fff_0000, &vec![0; 4096]);
    for s in events::registry::syscalls() {
        for v in [0, 1, 8, 0xfff0, 0x7fff_0000, u64::MAX, i64::MIN as u64] {
            for ret in [0, 1, 4096, -1, -512, i64::MAX] {
                let raw = event(s.name, &[v; 8], ret, &mut mem, 64);
                assert!(Event::parse(&raw).is_ok(), "{} {v:#x} {ret}", s.name);
            }
        }
    }
}

#[test]
fn iovecs_carry_what_the_result_covers() {
    let iov = [0x2000u64, 4, 0x3000, 8];
    let raw_iov: Vec<u8> = iov.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut mem = Fake::default().with(0x1000, &raw_iov).with(0x2000, b"abcd").with(0x3000, b"efghijkl");
    let raw = event("readv", &[0, 0x1000, 2], 6, &mut mem, 32);
    let ev = Event::parse(&raw).unwrap();
    let t = ev.tail(1, true).unwrap();
    let v = events::message::Cursor::new(t.bytes).iov().unwrap();
    let parts: Vec<_> = v.iter().map(|e| (e.len, e.bytes.to_vec())).collect();
    assert_eq!(parts, [(4, b"abcd".to_vec()), (8, b"ef".to_vec())]);
}
