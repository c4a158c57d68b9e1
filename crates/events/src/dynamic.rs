//! Classes that are made at run time: of probes whose fields only the running kernel, a program's file or a trace knows.
//!
//! They live as long as the process, like those of codegen, so that an event can refer to its class without counting: there are
//! at most [`MAX`] of them.

use crate::generated::SCHEMAS;
use crate::generated::structs::S_MSGBUF;
use crate::layout::Layout;
use crate::schema::{Arg, Class, Dir, Extent, FIRST_CAPS, MAX_ARGS, Ret, Schema, Sets};
use crate::types::{Fmt, Int, Len, LenFrom, Mem, Type};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most classes that one process can make.
pub const MAX: usize = 32768;

/// The classes of a part of the ids.
const PART: usize = 256;
/// A class, once it is made.
type Made = OnceLock<(&'static Schema, &'static Layout)>;

/// In parts that are made when their first class is: as one array, they would be 768 KiB of the binary.
static CLASSES: [OnceLock<Box<[Made; PART]>>; MAX / PART] = [const { OnceLock::new() }; MAX / PART];
/// How many there are; changed under the lock of [`MADE`].
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The classes that are made, by name.
static MADE: Mutex<BTreeMap<&str, Vec<&'static Schema>>> = Mutex::new(BTreeMap::new());

/// A field of a class that is being made.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
}

/// There are too many classes, or a class has too many fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "more than {MAX} classes of events, or more than {MAX_ARGS} fields in one")
    }
}
impl std::error::Error for TooMany {}

/// The length of the memory that was read: all of the tail.
pub const READ: Len = Len { from: LenFrom::Const(0), mul: 1, div: 1 };
/// An element of a stack.
pub const ADDRESS: Mem = Mem::Int(Int { size: 8, signed: false, fmt: Fmt::Addr });

fn leak(s: &str) -> &'static str {
    Box::leak(s.to_string().into_boxed_str())
}

/// Makes the class of the probe `name`, whose events are points, or finds it where it was made before with the same fields.
pub fn class(name: &str, fields: &[Field]) -> Result<&'static Schema, TooMany> {
    shaped(name, Extent::Point, needs_more_caps(fields), fields)
}

/// Makes the class of the probe `name`, whose events are spans, or finds it.
pub fn span(name: &str, fields: &[Field]) -> Result<&'static Schema, TooMany> {
    shaped(name, Extent::Span, needs_more_caps(fields), fields)
}

/// Whether memory is read for a field from the seventh on.
fn needs_more_caps(fields: &[Field]) -> bool {
    fields.iter().skip(FIRST_CAPS).any(|f| !matches!(f.ty, Type::Int(_)))
}

/// Makes the class of the probe `name` as a trace has it, or finds it: the first format has no more capture bits than those of six
/// arguments.
pub fn shaped(name: &str, extent: Extent, more_caps: bool, fields: &[Field]) -> Result<&'static Schema, TooMany> {
    // Every argument has 8 bytes in the event; what is narrower was extended by who wrote it.
    let widened = |ty: Type| match ty {
        Type::Int(int) => Type::Int(Int { size: 8, ..int }),
        other => other,
    };
    make(name, (extent, more_caps), &[], fields, widened, |id, args| Schema {
        id,
        base: id,
        name: leak(name),
        class: Class::Probe,
        extent,
        more_caps,
        x86_64: None,
        aarch64: None,
        args,
        ret: Ret::Int(Int { size: 8, signed: true, fmt: Fmt::Dec }),
        sets: Sets::default(),
        from: "",
    })
}

/// Makes the class of the call `base`, or of signals, with captures: fields in addition to its arguments, each of which points to memory. Or
/// finds it where it was made before.
pub fn with_captures(base: &'static Schema, captures: &[Field]) -> Result<&'static Schema, TooMany> {
    let key = base.probe();
    make(&key, (base.extent, base.more_caps), base.args, captures, |ty| ty, |id, args| Schema { id, args, ..*base })
}

/// The class of the call `base` as it was before texts of System V messages were captured; none: it has none. Or finds it.
pub fn without_text(base: &'static Schema) -> Option<&'static Schema> {
    let before = Type::Ptr { elem: Mem::Struct(&S_MSGBUF), len: None };
    let args = base.args.iter().map(|a| if matches!(a.ty, Type::Msgbuf(_)) { Arg { ty: before, ..*a } } else { *a });
    let args: &'static [Arg] = Vec::leak(args.collect());
    let is_other = args.iter().zip(base.args).any(|(a, b)| a.ty != b.ty);
    let made = || {
        make(&base.probe(), (base.extent, base.more_caps), args, &[], |ty| ty, |id, args| Schema { id, args, ..*base })
    };
    is_other.then(made)?.ok()
}

/// Makes a class whose arguments are `first` and then `fields`, or finds it by its name as a probe.
fn make(
    name: &str,
    shape: (Extent, bool),
    first: &'static [Arg],
    fields: &[Field],
    ty: impl Fn(Type) -> Type,
    schema: impl FnOnce(u16, &'static [Arg]) -> Schema,
) -> Result<&'static Schema, TooMany> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |s: &&&'static Schema| {
        let own = s.args.get(first.len()..).unwrap_or_default();
        (s.extent, s.more_caps) == shape
            && s.args.starts_with(first)
            && own.len() == fields.len()
            && own.iter().zip(fields).all(|(a, f)| a.name == f.name && a.ty == ty(f.ty))
    };
    if let Some(s) = made.get(name).and_then(|of_name| of_name.iter().find(same)) {
        return Ok(s);
    }
    let count = COUNT.load(Ordering::Relaxed);
    let id = u16::try_from(SCHEMAS.len() + count).map_err(|_| TooMany)?;
    if count >= MAX || first.len() + fields.len() > MAX_ARGS {
        return Err(TooMany);
    }
    let own = fields.iter().map(|f| Arg { name: leak(&f.name), ty: ty(f.ty), dir: Dir::In, cond: None });
    let args: Vec<Arg> = first.iter().copied().chain(own).collect();
    let schema: &'static Schema = Box::leak(Box::new(schema(id, Vec::leak(args))));
    let layout: &'static Layout = Box::leak(Box::new(Layout::of(schema)));
    let part = CLASSES[count / PART].get_or_init(|| Box::new([const { OnceLock::new() }; PART]));
    let _ = part[count % PART].set((schema, layout));
    COUNT.store(count + 1, Ordering::Relaxed);
    made.entry(leak(name)).or_default().push(schema);
    Ok(schema)
}

/// The class of an event's header id, where it was made at run time.
pub fn by_id(id: u16) -> Option<(&'static Schema, &'static Layout)> {
    let nth = usize::from(id).checked_sub(SCHEMAS.len())?;
    CLASSES.get(nth / PART)?.get()?[nth % PART].get().copied()
}

/// The id of the class of this name that was made first.
pub fn by_name(name: &str) -> Option<u16> {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.get(name)?.first().map(|s| s.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{self, Fixed};
    use crate::types::StrKind;

    #[test]
    fn a_class_is_made_once_and_its_events_are_read() {
        let int = |fmt| Type::Int(Int { size: 4, signed: true, fmt });
        let fields = [
            Field { name: "comm".into(), ty: Type::Str(StrKind::Text) },
            Field { name: "prev_pid".into(), ty: int(Fmt::Pid) },
        ];
        let s = class("tracepoint:a:b", &fields).unwrap();
        assert!(std::ptr::eq(s, class("tracepoint:a:b", &fields).unwrap()));
        let other = class("tracepoint:a:b", &fields[..1]).unwrap();
        assert!(other.id != s.id && usize::from(s.id) >= SCHEMAS.len());
        let mut bytes = Vec::new();
        let fixed = Fixed { time: 7, tid: 2, pid: 1, cap: 1, ..Fixed::default() };
        encode::fixed(&mut bytes, s, &Layout::of(s), &fixed, &[0, u64::MAX]);
        encode::str_tail(&mut bytes, b"bash");
        let ev = crate::Event::parse(&bytes).unwrap();
        assert_eq!((ev.schema.name, ev.bytes_of("comm"), ev.value_of("prev_pid")), (s.name, &b"bash"[..], u64::MAX));
        assert_eq!(ev.schema.probe(), "tracepoint:a:b");
    }

    #[test]
    fn a_call_with_captures_is_the_call() {
        let open = crate::registry::by_name("openat").unwrap();
        let fields = [
            Field { name: "comm".into(), ty: Type::Str(StrKind::Text) },
            Field { name: "ustack".into(), ty: Type::Ptr { elem: ADDRESS, len: Some(READ) } },
        ];
        let s = with_captures(open, &fields).unwrap();
        assert!(std::ptr::eq(s, with_captures(open, &fields).unwrap()) && s.id != open.id);
        assert_eq!((s.base, crate::registry::own_args(s), s.args.len()), (open.id, 4, 6));
        assert_eq!((s.name, s.class, s.probe().as_ref()), ("openat", Class::Syscall, "syscall:openat"));
        let mut bytes = Vec::new();
        let fixed = Fixed { time: 7, tid: 2, pid: 1, cap: 1 << 2 | 1 << 8 | 1 << 10, ret: 3, ..Fixed::default() };
        encode::fixed(&mut bytes, s, &Layout::of(s), &fixed, &[u64::MAX, 1, 2, 3, 1, 1]);
        encode::str_tail(&mut bytes, b"/x");
        encode::str_tail(&mut bytes, b"cat");
        bytes.extend([1, 0]);
        bytes.extend(7u64.to_le_bytes());
        let ev = crate::Event::parse(&bytes).unwrap();
        assert_eq!((ev.bytes_of("filename"), ev.bytes_of("comm"), ev.ret()), (&b"/x"[..], &b"cat"[..], 3));
        assert_eq!(ev.bytes_of("ustack"), 7u64.to_le_bytes());
    }

    #[test]
    fn every_call_has_room_for_captures() {
        let stack = Type::Ptr { elem: ADDRESS, len: Some(READ) };
        let fields = ["comm", "kstack", "ustack"].map(|name| Field { name: name.into(), ty: stack });
        for call in crate::registry::syscalls() {
            let s = with_captures(call, &fields).unwrap();
            // What the programs of calls have room for: see bpf::capture_row.
            assert!(Layout::of(s).fixed < 128 && Layout::of(s).tails.len() <= 16, "{}", call.name);
        }
    }

    #[test]
    fn too_many_fields_are_refused() {
        let field =
            |n: usize| Field { name: format!("f{n}"), ty: Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec }) };
        let fields: Vec<_> = (0..=MAX_ARGS).map(field).collect();
        assert_eq!(class("x", &fields), Err(TooMany));
    }
}
