//! What is captured of a call: a row of a map that the programs read, made from the call's schema.
//!
//! ```text
//!  0   2     4     5    6    7     8            20           32 …288
//!  ┌───┬─────┬─────┬────┬────┬─────┬────────────┬────────────┬─────────────────────────────────────────┐
//!  │id │flags│fixed│n in│cpu │n all│ 6 × offset │ 3 × offset │ up to 16 Ops: those of entry, of exit   │
//!  └───┴─────┴─────┴────┴────┴─────┴────────────┴────────────┴─────────────────────────────────────────┘
//!                                   arguments    captures
//! ```
//!
//! Every selection of calls has the same programs; what they do is data. The order of the ops is the order of the
//! layout's tails. Invariant: an op exists for each tail, so that every event has every tail.

use events::keep::Keep;
use events::layout::Shape;
use events::schema::{Arg, Dir, Ret, Schema};
use events::types::{Fmt, Int, Len, LenFrom, MTYPE, Mem, StrKind, Type};

/// Bytes of a row.
pub const ROW: usize = 288;
/// Offset of the class id (u16).
pub const ID: i16 = 0;
/// Offset of the flags (u16).
pub const FLAGS: i16 = 2;
/// Offset of the length of the fixed part (u8).
pub const FIXED: i16 = 4;
/// Offset of the number of ops of entry (u8).
pub const N_IN: i16 = 5;
/// Offset of the offset of the processors (u8).
pub const CPU: i16 = 6;
/// Offset of the number of all ops (u8).
pub const N: i16 = 7;
/// Offset of the places of the arguments (6 × u16); of one that does not exist it is where the fixed part ends.
pub const ARGS: i16 = 8;
/// Offset of the places of the captures (3 × u16); of one that does not exist it is where the fixed part ends.
pub const CAPTURED: i16 = 20;
/// How many captures there are.
pub const CAPTURES: usize = 3;
/// Offset of the places of the ids of the kernel's and of the process's stack (2 × u16); 0: it is not captured.
pub const STACKS: i16 = 26;
/// Offset of the ops: those of entry, then those of exit.
pub const OPS: i16 = 32;
/// Bytes of an op.
pub const OP: i16 = 16;
/// The most ops of a row.
pub const MAX_OPS: i16 = 16;

/// The call's events are wanted.
pub const WANTED: u16 = 1;
/// Memory is read at entry, because the call changes it, replaces it, or does not return.
pub const AT_ENTRY: u16 = 2;

/// No call has this number.
pub const NO_ROW: u16 = 4;

/// The result is a new descriptor.
pub const MAKES_FD: u16 = 8;
/// Two new descriptors are where an argument points to; its number is above [`PAIR_SHIFT`].
pub const MAKES_PAIR: u16 = 16;
/// Bits below the number of that argument.
pub const PAIR_SHIFT: u16 = 8;
/// The message that the call has received may bring descriptors.
pub const MAKES_RIGHTS: u16 = 32;
/// The working directory changes.
pub const CHANGES_CWD: u16 = 64;
/// The first argument, a socket, may have new ends.
pub const CHANGES_FD: u16 = 128;

/// The only op reads bytes after the call, in the simplest way: the programs have straight code for it. Above the number of
/// [`MAKES_PAIR`]'s argument.
pub const STRAIGHT: u16 = 1 << 11;

/// The call has [`SHORT_CALL`] arguments at most: the programs need not look at more. Above the number of [`MAKES_PAIR`]'s argument.
pub const SHORT: u16 = 1 << 12;
/// Arguments of most calls, at most.
pub const SHORT_CALL: usize = 3;

/// The filter of the call is not evaluated by the programs any more. Above the number of [`MAKES_PAIR`]'s argument.
pub const UNFILTERED: u16 = 1 << 15;

/// The kinds of ops. 0 ends the list.
pub mod kind {
    /// C string, up to `max` bytes.
    pub const STR: u8 = 1;
    /// C string after a u16 length (switches).
    pub const STR_BYTES: u8 = 2;
    /// `length` bytes, up to `max`.
    pub const BYTES: u8 = 3;
    /// One element of `elem` bytes.
    pub const ONE: u8 = 4;
    /// `length` elements of `elem` bytes, up to `max` bytes.
    pub const MANY: u8 = 5;
    /// Array of strings.
    pub const STRV: u8 = 6;
    /// Number of strings of an array.
    pub const COUNT: u8 = 7;
    /// iovecs.
    pub const IOV: u8 = 8;
    /// A message.
    pub const MSG: u8 = 9;
    /// Pointer and size of a signal set, and the set.
    pub const SIGPACK: u8 = 10;
    /// The op in the map of switches that another argument selects.
    pub const SWITCH: u8 = 11;
    /// An empty tail of 1 byte.
    pub const EMPTY1: u8 = 12;
    /// An empty tail of 2 bytes.
    pub const EMPTY2: u8 = 13;
    /// An empty tail of 4 bytes.
    pub const EMPTY4: u8 = 14;
    /// An array of messages.
    pub const MMSG: u8 = 15;
    /// The name of the thread.
    pub const COMM: u8 = 16;
    /// A System V message: 8 bytes, and `length` bytes behind them, up to `max` in all.
    pub const MSGBUF: u8 = 17;
}

/// When an op of exit is carried out.
pub mod when {
    /// The call succeeded.
    pub const SUCCESS: u8 = 0;
    /// The call was interrupted.
    pub const INTERRUPTED: u8 = 1;
    /// Always.
    pub const ALWAYS: u8 = 2;
    /// Never, and counted where there is an address: of an op of entry, what the call has changed meanwhile
    /// ([`crate::rows_at_exit`]).
    pub const TOO_LATE: u8 = 3;
    /// The call returned more than 0.
    pub const POSITIVE: u8 = 4;
}

/// Where an op's length comes from.
pub mod length {
    /// `n` of the op.
    pub const CONST: u8 = 0;
    /// An argument, 32 bits unsigned.
    pub const ARG32: u8 = 1;
    /// An argument, 32 bits signed; negative is 0.
    pub const ARG32S: u8 = 2;
    /// An argument, 64 bits.
    pub const ARG64: u8 = 3;
    /// An argument, 64 bits signed; negative is 0.
    pub const ARG64S: u8 = 6;
    /// The result.
    pub const RET: u8 = 4;
    /// The 32-bit integer that an argument points to.
    pub const DEREF: u8 = 5;
}

/// One capture.
///
/// ```text
/// 0 kind  1 arg  2 when  3 length  4 length's arg  5 guard (an argument that must not be 0, 255 for none)
/// 6 elem (u16)  8 mul (u8)  9 phase (1: of exit)  10 n (u16)  12 div (u16)  14 max (u16)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// One of [`kind`].
    pub kind: u8,
    /// The argument.
    pub arg: u8,
    /// One of [`when`].
    pub when: u8,
    /// One of [`length`].
    pub length: u8,
    /// The argument that `length` refers to.
    pub len_arg: u8,
    /// An argument that must not be 0, 255 for none.
    pub guard: u8,
    /// Bytes of an element.
    pub elem: u16,
    /// Carried out when the call has ended.
    pub exit: bool,
    /// Multiplier of the length.
    pub mul: u8,
    /// Divisor of the length.
    pub div: u16,
    /// The most bytes, up to 32768.
    pub max: u32,
    /// A constant length.
    pub n: u16,
}

impl Op {
    fn new(kind: u8, arg: u8) -> Op {
        Op { kind, arg, when: 0, length: 0, len_arg: 0, guard: 255, elem: 0, exit: false, mul: 1, div: 1, max: 0, n: 0 }
    }

    /// The op's bytes.
    pub fn bytes(&self) -> [u8; OP as usize] {
        let mut b = [0; OP as usize];
        b[..6].copy_from_slice(&[self.kind, self.arg, self.when, self.length, self.len_arg, self.guard]);
        b[6..8].copy_from_slice(&self.elem.to_le_bytes());
        b[8] = self.mul;
        b[9] = self.exit.into();
        b[10..12].copy_from_slice(&self.n.to_le_bytes());
        b[12..14].copy_from_slice(&self.div.to_le_bytes());
        b[14..16].copy_from_slice(&(self.max.min(65535) as u16).to_le_bytes());
        b
    }
}

/// Limits on captures.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of strings and buffers, at most [`MAX_STRING`].
    pub string: u32,
    /// Bytes of string arguments, where a filter that no program carries out needs more.
    pub text: u32,
    /// Contents of environments too.
    pub verbose: bool,
    /// Which memory.
    pub keep: Keep,
}

/// The most bytes of one string or buffer that a program captures.
pub const MAX_STRING: u32 = 4000;
/// The most bytes of a path that a program captures, without its NUL.
pub const MAX_PATH: u32 = 4000;
/// A directory buffer is captured whole, because its entries are counted.
const MAX_DIRENTS: u32 = 32768;

fn set_len(op: &mut Op, len: &Len, schema: &Schema) {
    op.mul = len.mul.min(255) as u8;
    op.div = len.div.max(1);
    match len.from {
        LenFrom::Const(n) => (op.length, op.n) = (length::CONST, n.min(65535) as u16),
        LenFrom::Ret => {
            op.length = length::RET;
            // A size of 0 asks for the length only, and nothing is stored.
            let size = ["size", "gidsetsize"].iter().find_map(|n| schema.arg(n));
            op.guard = size.map_or(255, |i| i as u8);
        }
        LenFrom::Deref(i) => (op.length, op.len_arg) = (length::DEREF, i),
        LenFrom::Arg(i) => {
            op.len_arg = i;
            op.length = match schema.args[usize::from(i)].ty {
                Type::Int(Int { size: 8, signed: true, .. }) => length::ARG64S,
                Type::Int(Int { size: 8, .. }) => length::ARG64,
                Type::Int(Int { signed: true, .. }) => length::ARG32S,
                Type::Int(_) => length::ARG32,
                _ => length::ARG64,
            };
        }
    }
}

fn bytes(op: &mut Op, len: &Len, schema: &Schema, max: u32) {
    op.kind = kind::BYTES;
    op.max = max;
    set_len(op, len, schema);
}

/// The op that captures `ty` as argument `arg` into a tail of `shape`.
fn op_for(schema: &Schema, arg: u8, ty: &Type, shape: Shape, limits: Limits) -> Op {
    let mut op = Op::new(kind::EMPTY2, arg);
    match ty {
        ty if !limits.keep.has(ty) => op.kind = empty(shape),
        Type::Int(_) => op.kind = empty(shape),
        Type::Switch { on, on2, .. } => (op.kind, op.len_arg, op.guard) = (kind::SWITCH, *on, on2.unwrap_or(255)),
        Type::Str(k) => {
            op.kind = if shape == Shape::Str { kind::STR } else { kind::STR_BYTES };
            op.max = if *k == StrKind::Path { MAX_PATH } else { limits.string.max(limits.text) };
        }
        Type::Bytes(len) => bytes(&mut op, len, schema, limits.string),
        Type::Msgbuf(len) => {
            bytes(&mut op, len, schema, limits.string.max(1) + MTYPE as u32);
            op.kind = kind::MSGBUF;
        }
        Type::Sockaddr(len) => bytes(&mut op, len, schema, 128),
        Type::Sigset(len) | Type::Cpuset(len) => bytes(&mut op, len, schema, 1024),
        Type::Fdset(len) => {
            bytes(&mut op, len, schema, 1024);
            op.div = 8;
        }
        Type::Dirents { len, .. } => bytes(&mut op, len, schema, MAX_DIRENTS),
        Type::SigsetPack => op.kind = kind::SIGPACK,
        Type::Ptr { elem, len } => element(&mut op, schema, elem, len.as_ref(), shape, limits),
        Type::Envv if !limits.verbose => op.kind = kind::COUNT,
        Type::Strv | Type::Envv => {
            // As many strings as the other backends capture.
            let most = if limits.verbose { 512 } else { limits.string.clamp(1, 512) };
            (op.kind, op.max, op.n) = (kind::STRV, limits.string, most as u16);
        }
        Type::Iov(len) => {
            (op.kind, op.max, op.when) = (kind::IOV, limits.string, when::ALWAYS);
            set_len(&mut op, len, schema);
        }
        Type::Msghdr => (op.kind, op.max, op.when) = (kind::MSG, limits.string, when::ALWAYS),
        Type::Mmsghdr(len) => {
            (op.kind, op.max) = (kind::MMSG, limits.string);
            set_len(&mut op, len, schema);
        }
    }
    op
}

fn element(op: &mut Op, schema: &Schema, elem: &Mem, len: Option<&Len>, shape: Shape, limits: Limits) {
    op.elem = elem.size() as u16;
    match (shape, len) {
        (Shape::One(_), _) => op.kind = kind::ONE,
        (Shape::Bytes, None) => {
            (op.kind, op.max, op.n) = (kind::BYTES, u32::from(op.elem), op.elem);
        }
        (_, Some(len)) => {
            op.kind = if shape == Shape::Bytes { kind::BYTES } else { kind::MANY };
            set_len(op, len, schema);
            // As many elements as the other backends capture.
            let items = if limits.verbose { 1024 } else { limits.string.max(1) };
            let most = items.min(4096 / u32::from(op.elem).max(1));
            op.max = most * u32::from(op.elem);
            if op.kind == kind::BYTES {
                op.mul = (u32::from(op.mul) * u32::from(op.elem)).min(255) as u8;
            }
        }
        _ => op.kind = empty(shape),
    }
}

fn empty(shape: Shape) -> u8 {
    match shape {
        Shape::Str | Shape::One(_) => kind::EMPTY1,
        Shape::Bytes | Shape::Many(_) | Shape::Iov | Shape::Msg => kind::EMPTY2,
        Shape::Strv => kind::EMPTY4,
    }
}

/// Whether a call's memory is gone, or has changed, when the call ends.
fn reads_at_entry(schema: &Schema) -> bool {
    let is_changed = |a: &Arg| is_changed(a) || matches!(a.ty, Type::Switch { .. });
    // capget writes the version that it knows over one that it does not know.
    is_gone(schema) || schema.name == "capget" || schema.args.iter().any(is_changed)
}

/// Whether a call that succeeds leaves nothing of its memory, or does not return.
pub(crate) fn is_gone(schema: &Schema) -> bool {
    matches!(schema.name, "execve" | "execveat" | "exit" | "exit_group" | "rt_sigreturn" | "kexec_load" | "reboot")
}

/// Whether the call changes what it reads of an argument. Of an array of messages it changes nothing but their lengths.
pub(crate) fn is_changed(a: &Arg) -> bool {
    a.dir == Dir::InOut && !matches!(a.ty, Type::Mmsghdr(_))
}

/// What a call does to the table of descriptors, as far as its schema shows. Descriptors that fcntl copies follow from the event
/// alone.
fn descriptors(schema: &Schema) -> u16 {
    let made = |int: &Int| matches!(int.fmt, Fmt::Fd | Fmt::Dirfd);
    let pair = schema
        .args
        .iter()
        .position(|a| a.dir.reads_out() && matches!(&a.ty, Type::Ptr { elem: Mem::Int(int), .. } if made(int)));
    match (schema.name, &schema.ret) {
        ("chdir" | "fchdir", _) => CHANGES_CWD,
        ("connect" | "bind" | "listen", _) => CHANGES_FD,
        ("recvmsg", _) => MAKES_RIGHTS,
        (_, Ret::Int(int)) if made(int) => MAKES_FD,
        _ => pair.map_or(0, |i| MAKES_PAIR | (i as u16) << PAIR_SHIFT),
    }
}

/// The op of a capture, by its name.
fn capture_op(arg: u8, name: &str) -> Op {
    Op::new(if name == "comm" { kind::COMM } else { kind::EMPTY2 }, arg)
}

/// How many frames of each stack are captured at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Of the kernel's stack.
    pub kernel: u8,
    /// Of the process's stack.
    pub user: u16,
}

/// The row of a call, with captures ([`events::dynamic::with_captures`]) where its class has them.
pub fn row(schema: &Schema, wanted: bool, limits: Limits) -> [u8; ROW] {
    let limits = Limits { string: limits.string.min(MAX_STRING), text: limits.text.min(MAX_STRING), ..limits };
    let Some(layout) = events::registry::layout(schema.id) else {
        unreachable!("{}: not a registered class", schema.name)
    };
    let mut r = [0u8; ROW];
    let mut put = |at: i16, v: u16| r[at as usize..at as usize + 2].copy_from_slice(&v.to_le_bytes());
    put(ID, schema.id);
    let at_entry = u16::from(reads_at_entry(schema)) * AT_ENTRY;
    let short = u16::from(events::registry::own_args(schema) <= SHORT_CALL) * SHORT;
    let flags = (u16::from(wanted) * WANTED) | at_entry | descriptors(schema) | short;
    put(FLAGS, flags);
    for i in 0..6 {
        put(
            ARGS + 2 * i as i16,
            if i < events::registry::own_args(schema) { layout.args[i].0 } else { layout.fixed as u16 },
        );
    }
    let memory_of = |a: &Arg| !matches!(a.ty, Type::Int(_));
    let memory = |i: usize| schema.args.get(i).is_some_and(memory_of);
    for i in 0..CAPTURES {
        let place = layout
            .args
            .get(events::registry::own_args(schema) + i)
            .filter(|_| memory(events::registry::own_args(schema) + i));
        put(CAPTURED + 2 * i as i16, place.map_or(layout.fixed as u16, |(at, _)| *at));
    }
    for (nth, name) in events::stacks::FIELDS.into_iter().enumerate() {
        let own = events::registry::own_args(schema);
        let id = schema.args.iter().zip(layout.args).skip(own).find(|(a, _)| a.name == name && !memory_of(a));
        put(STACKS + 2 * nth as i16, id.map_or(0, |(_, (at, _))| at));
    }
    r[FIXED as usize] = layout.fixed as u8;
    r[CPU as usize] = layout.cpu.0 as u8;
    let mut nested = [0; 2];
    for (n, t) in layout.tails.iter().take(MAX_OPS as usize).enumerate() {
        let arg = &schema.args[usize::from(t.arg)];
        let mut op = match usize::from(t.arg) < events::registry::own_args(schema) {
            true => op_for(schema, t.arg, &arg.ty, t.shape, limits),
            false => capture_op(t.arg, arg.name),
        };
        op.exit = t.out;
        op.when = when(arg.dir).unwrap_or(op.when);
        // Of several iovec arrays (process_vm_readv) the first is captured, the others are shown as addresses.
        if matches!(t.shape, Shape::Iov | Shape::Msg) {
            nested[usize::from(t.out)] += 1;
            if nested[usize::from(t.out)] > 1 {
                op.kind = kind::EMPTY2;
            }
        }
        let at = OPS as usize + OP as usize * n;
        r[at..at + OP as usize].copy_from_slice(&op.bytes());
        r[N as usize] += 1;
        r[N_IN as usize] += u8::from(!t.out);
        if layout.tails.len() == 1 && at_entry == 0 && is_straight(&op) {
            r[FLAGS as usize..][..2].copy_from_slice(&(flags | STRAIGHT).to_le_bytes());
        }
    }
    r
}

/// The results that an argument's memory waits for, other than [`when::SUCCESS`].
fn when(dir: Dir) -> Option<u8> {
    match dir {
        Dir::OutIntr => Some(when::INTERRUPTED),
        Dir::OutPositive => Some(when::POSITIVE),
        Dir::In | Dir::Out | Dir::InOut => None,
    }
}

/// Whether an op reads bytes in the simplest way.
fn is_straight(op: &Op) -> bool {
    let simple = op.guard == 255 && (op.mul, op.div) == (1, 1) && op.when == when::SUCCESS && op.arg < 6;
    simple && op.kind == kind::BYTES && matches!(op.length, length::RET | length::ARG64)
}

/// The kinds of a row's ops, a bit each; all of them where a switch decides.
pub fn kinds(row: &[u8; ROW]) -> u32 {
    let ops = row[OPS as usize..].chunks_exact(OP as usize).take(MAX_OPS as usize);
    ops.fold(0, |mask, op| match op[0] {
        kind::SWITCH => u32::MAX,
        kind::MMSG => mask | 1 << kind::MSG,
        k => mask | 1 << k,
    })
}

/// The op of a switch's argument at entry or `exit`: the one for `ty`, or the empty tail where `ty` is not read then.
pub fn switch_op(schema: &Schema, arg: u8, ty: &Type, dir: Dir, exit: bool, limits: Limits) -> Op {
    let now = if exit { dir.reads_out() } else { dir.reads_in() };
    let limits = Limits { string: limits.string.min(MAX_STRING), text: limits.text.min(MAX_STRING), ..limits };
    let mut op = op_for(schema, arg, ty, Shape::Bytes, limits);
    if !now {
        op = Op::new(kind::EMPTY2, arg);
    } else {
        op.when = when(dir).unwrap_or(op.when);
    }
    op.exit = exit;
    op
}

/// The key of a row of the switch map: call number, argument, selector.
pub fn switch_key(nr: u32, arg: u8, selector: u64) -> [u8; 16] {
    let mut k = [0; 16];
    k[..4].copy_from_slice(&nr.to_le_bytes());
    k[4] = arg;
    k[8..].copy_from_slice(&selector.to_le_bytes());
    k
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::layout::Layout;

    /// The program stores every argument as 8 bytes, in the order of the arguments, and then times, result and processors.
    #[test]
    fn nothing_that_is_stored_earlier_stands_behind_a_narrow_argument() {
        for s in events::registry::syscalls().filter(|s| s.name != "raw" && s.args.len() <= 6) {
            let l = Layout::of(s);
            for (i, (at, _)) in l.args.iter().enumerate().take(s.args.len()).filter(|(_, (_, width))| *width == 4) {
                let behind = |(_, (other, _)): &(usize, &(u16, u8))| *other == at + 4;
                let next = l.args.iter().take(s.args.len()).enumerate().find(behind);
                assert!(next.is_none_or(|(j, _)| j > i), "{}", s.name);
            }
        }
    }

    #[test]
    fn calls_with_one_buffer_have_straight_code() {
        let straight = |name: &str| {
            let schema = events::registry::by_name(name).expect("a call");
            let r = row(schema, true, Limits { string: 32, text: 0, verbose: false, keep: Keep::All });
            u16::from_le_bytes([r[FLAGS as usize], r[FLAGS as usize + 1]]) & STRAIGHT != 0
        };
        assert!(["read", "write", "pread64", "pwrite64", "getrandom"].into_iter().all(straight));
        // No tail, a string, several, one that is read at entry.
        assert!(!["close", "openat", "getsockopt", "recvmsg", "execve", "ioctl"].into_iter().any(straight));
    }

    #[test]
    fn every_tail_has_an_op() {
        for s in events::registry::syscalls().filter(|s| s.name != "raw") {
            let r = row(s, true, Limits { string: 32, text: 0, verbose: false, keep: Keep::All });
            let l = Layout::of(s);
            let ins = l.tails.iter().filter(|t| !t.out).count();
            assert_eq!((usize::from(r[N_IN as usize]), usize::from(r[N as usize])), (ins, l.tails.len()), "{}", s.name);
        }
    }
}
