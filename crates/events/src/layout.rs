//! The bytes of an event, computed from its schema alone.
//!
//! ```text
//!  0      8   10   12   16   20                                                      fixed      end
//!  ┌──────┬───┬────┬────┬────┬───┬───────┬─────┬─────────┬──────────┬─────────┬───────┬──────────┐
//!  │ time │id │cap │tid │pid │a32│ start │ ret │more caps│ a64 …    │ a32 …   │cpu cpu│ tails …  │
//!  └──────┴───┴────┴────┴────┴───┴───────┴─────┴─────────┴──────────┴─────────┴───────┴──────────┘
//! ```
//!
//! Little-endian. `time` is the moment of emission (a span's end), `start` that of its beginning, both in ns of the monotonic
//! clock. The fixed fields are placed so that they fall naturally aligned when the event starts on 8 bytes: one 4-byte
//! argument fills the gap at 20, then come start and result, the 8-byte arguments, the other 4-byte ones, and the
//! processors at entry and exit (u16 each, [`NO_CPU`] where unknown; in the gap where no argument is). Only spans
//! ([`crate::schema::Extent`]) have start, result and processors. Classes made at run time ([`crate::schema::Class::Probe`]) have
//! 8 bytes for each argument.
//!
//! A tail is what was read from memory; the tails of entry (`in`, `inout`) come first, then those of exit (`out`, `inout`), each
//! group in the order of the arguments, with the nested shapes (string arrays, iovecs, messages) last, so that a backend can
//! write the others in one simple loop. Every tail of the schema is present in every event, empty where nothing was read.
//!
//! `cap` holds two bits per argument (0 not read, 1 whole, 2 truncated, 3 fault) for the first six arguments, and the four
//! `CAP_` bits for spans of which not everything is known. Where [`Schema::more_caps`] says so, 8 bytes hold the two bits of each
//! argument from the seventh on; elsewhere what was read for those is whole.

use crate::schema::{Class, Dir, MAX_ARGS, Schema};
use crate::types::{StrKind, Type};

/// Offset of the class id.
pub const ID: usize = 8;
/// Offset of the capture bits.
pub const CAP: usize = 10;
/// Offset of the thread id.
pub const TID: usize = 12;
/// Offset of the process id.
pub const PID: usize = 16;
/// Where the fields of the schema start.
pub const FIELDS: usize = 20;

/// The span has no result: the call did not return (exit_group, or the process was killed in it).
pub const CAP_NO_RESULT: u16 = 1 << 12;
/// The span had begun before trapline attached: its start is not known.
pub const CAP_START_UNKNOWN: u16 = 1 << 13;
/// A 32-bit call: registers only.
pub const CAP_32BIT: u16 = 1 << 14;
/// The attach itself interrupted the call.
pub const CAP_INTERRUPTED: u16 = 1 << 15;
/// Processor not known.
pub const NO_CPU: u16 = u16::MAX;

/// The shape of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bytes and a NUL.
    Str,
    /// `u16 length`, bytes.
    Bytes,
    /// `u8 n` (0 or 1), `n` elements of that many bytes.
    One(u16),
    /// `u16 n`, `n` elements of that many bytes.
    Many(u16),
    /// `u16 total`, `u16 n`, `n` × { `u64 address`, `u8 cap`, bytes, NUL }.
    Strv,
    /// `u16 n`, `n` × { `u64 base`, `u64 length`, `u8 cap`, `u16 length`, bytes }.
    Iov,
    /// `u16 n`, `n` × a message: see [`crate::message`].
    Msg,
}

/// One tail: which argument, from when, of which shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailSpec {
    /// Index of the argument.
    pub arg: u8,
    /// Read at exit.
    pub out: bool,
    /// Bytes.
    pub shape: Shape,
}

/// The layout of one event class.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset and width of each argument.
    pub args: [(u16, u8); MAX_ARGS],
    /// Offset of the start (spans only).
    pub start: usize,
    /// Offset of the result (spans only).
    pub ret: usize,
    /// Offsets of the processors at entry and exit (spans only).
    pub cpu: (usize, usize),
    /// Offset of the capture bits of arguments from the seventh on, where there are any.
    pub more_caps: Option<usize>,
    /// Where the tails start.
    pub fixed: usize,
    /// The tails in the order of their bytes.
    pub tails: Vec<TailSpec>,
}

fn shape(ty: &Type) -> Option<Shape> {
    Some(match ty {
        Type::Int(_) => return None,
        Type::Str(StrKind::Path | StrKind::Text) => Shape::Str,
        Type::Bytes(_)
        | Type::Msgbuf(_)
        | Type::Sockaddr(_)
        | Type::Sigset(_)
        | Type::SigsetPack
        | Type::Fdset(_)
        | Type::Cpuset(_)
        | Type::Dirents { .. }
        | Type::Switch { .. } => Shape::Bytes,
        Type::Ptr { elem, len: None } => Shape::One(elem.size() as u16),
        Type::Ptr { elem, len: Some(_) } => Shape::Many(elem.size() as u16),
        Type::Strv | Type::Envv => Shape::Strv,
        Type::Iov(_) => Shape::Iov,
        Type::Msghdr | Type::Mmsghdr(_) => Shape::Msg,
    })
}

fn width(ty: &Type) -> u8 {
    match ty {
        Type::Int(i) if i.size <= 4 => 4,
        _ => 8,
    }
}

impl Layout {
    /// The layout of `schema`'s events.
    pub fn of(schema: &Schema) -> Layout {
        let mut l = Layout {
            args: [(0, 0); MAX_ARGS],
            start: 0,
            ret: 0,
            cpu: (0, 0),
            more_caps: None,
            fixed: 0,
            tails: Vec::new(),
        };
        let mut at = FIELDS;
        // The arguments of classes made at run time are in their order, so that a trace's metadata determines the layout.
        let wide = schema.class == Class::Probe;
        let width = |ty: &Type| if wide { 8 } else { width(ty) };
        let narrow: Vec<usize> = (0..schema.args.len()).filter(|&i| width(&schema.args[i].ty) == 4).collect();
        let (gap, narrow) = narrow.split_at(narrow.len().min(1));
        for &i in gap {
            l.args[i] = (at as u16, 4);
            at += 4;
        }
        let span = schema.is_span();
        if span && gap.is_empty() {
            l.cpu = (at, at + 2);
            at += 4;
        }
        at = at.next_multiple_of(8);
        if span {
            (l.start, l.ret) = (at, at + 8);
            at += 16;
        }
        if schema.more_caps {
            l.more_caps = Some(at);
            at += 8;
        }
        for (i, a) in schema.args.iter().enumerate().filter(|(_, a)| width(&a.ty) == 8) {
            debug_assert!(i < MAX_ARGS, "{}: {}", schema.name, a.name);
            l.args[i] = (at as u16, 8);
            at += 8;
        }
        for &i in narrow {
            l.args[i] = (at as u16, 4);
            at += 4;
        }
        if span && !gap.is_empty() {
            l.cpu = (at, at + 2);
            at += 4;
        }
        l.fixed = at;
        for (out, nested) in [(false, false), (false, true), (true, false), (true, true)] {
            for (i, a) in schema.args.iter().enumerate() {
                // A switch decides its direction at run time, so it has both tails.
                let dir = if matches!(a.ty, Type::Switch { .. }) { Dir::InOut } else { a.dir };
                let wanted = if out { dir.reads_out() } else { dir.reads_in() };
                if let (Some(shape), true) = (shape(&a.ty), wanted)
                    && matches!(shape, Shape::Strv | Shape::Iov | Shape::Msg) == nested
                {
                    l.tails.push(TailSpec { arg: i as u8, out, shape });
                }
            }
        }
        l
    }
}
