//! Schemas: what a probe's event carries.

use crate::operation_fields::of_all;
pub use crate::types::Dir;
use crate::types::{Cond, Int, Type};

/// An argument of a call, or a field of a `process:` event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arg {
    /// Name, as a filter and JSON use it.
    pub name: &'static str,
    /// Type.
    pub ty: Type,
    /// When its memory is read.
    pub dir: Dir,
    /// The argument exists only where this holds.
    pub cond: Option<Cond>,
}

/// What a call returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ret {
    /// An integer; -4095…-1 are errors.
    Int(Int),
    /// It does not return.
    Never,
}

/// How an event lies in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It happens at one moment.
    Point,
    /// It lasts: it has a start, a result, and the processors at both ends. Its time is that of its end.
    Span,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A system call: `syscall:NAME`, always a span.
    Syscall,
    /// trapline's own: `process:NAME`, always a point.
    Process,
    /// Another probe, whose class was made at run time: a point or a span. Its name is the probe's whole name.
    Probe,
}

/// A set of named groups of calls (`%file`), one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sets(pub u32);

impl Sets {
    /// Whether the two have a group in common.
    pub fn meets(self, other: Sets) -> bool {
        self.0 & other.0 != 0
    }
}

/// What one class of events carries. The bytes follow from it: [`crate::layout::Layout`].
#[derive(Debug, PartialEq)]
pub struct Schema {
    /// Index in [`crate::generated::SCHEMAS`], the `id` in an event's header.
    pub id: u16,
    /// The class whose call, signal or probe this is: its own id, or that of the class to which it adds captures
    /// ([`crate::dynamic::with_captures`]).
    pub base: u16,
    /// Name without its provider: `openat`. Of a class made at run time: with it.
    pub name: &'static str,
    /// Kind.
    pub class: Class,
    /// Point or span.
    pub extent: Extent,
    /// There are capture bits for the arguments from the seventh on, in a field of their own.
    pub more_caps: bool,
    /// Number on x86_64, for calls that exist there.
    pub x86_64: Option<u32>,
    /// Number on aarch64.
    pub aarch64: Option<u32>,
    /// Arguments in the order of the registers.
    pub args: &'static [Arg],
    /// Result.
    pub ret: Ret,
    /// Groups.
    pub sets: Sets,
    /// Where the row was read from.
    pub from: &'static str,
}

/// The most arguments that a schema may have: `process:` events have more than the six of a call.
pub const MAX_ARGS: usize = 32;

/// The arguments whose capture bits every event has; further ones have theirs where [`Schema::more_caps`] says so.
pub const FIRST_CAPS: usize = 6;

impl Schema {
    /// The name of its probe: `syscall:openat`.
    pub fn probe(&self) -> std::borrow::Cow<'static, str> {
        match self.class {
            Class::Syscall => format!("syscall:{}", self.name).into(),
            Class::Process => format!("process:{}", self.name).into(),
            Class::Probe => self.name.into(),
        }
    }

    /// Whether its events have a start, a result and processors.
    pub fn is_span(&self) -> bool {
        self.extent == Extent::Span
    }

    /// Index of the argument `name`.
    pub fn arg(&self, name: &str) -> Option<usize> {
        self.args
            .iter()
            .position(|a| a.name == name)
            .or_else(|| of_all(self.name, name).filter(|nth| *nth < self.args.len()))
    }

    /// The type and direction of argument `i` when the arguments have these values: switches resolved, none where the
    /// argument does not exist.
    pub fn resolve(&self, i: usize, values: &[u64]) -> Option<(&'static Type, Dir)> {
        let arg = &self.args[i];
        if let Some(c) = arg.cond
            && !c.test.holds(self.value_of(usize::from(c.on), values))
        {
            return None;
        }
        match &arg.ty {
            Type::Switch { table, on, on2, nth } => {
                let row = table.find(self.key(*on, *on2, values));
                row.args.get(usize::from(*nth))?.as_ref().map(|(ty, dir)| (ty, *dir))
            }
            ty => Some((ty, arg.dir)),
        }
    }

    /// The result's type when the arguments have these values.
    pub fn ret_type(&self, values: &[u64]) -> Ret {
        for a in self.args {
            if let Type::Switch { table, on, on2, .. } = a.ty
                && let Some(i) = table.find(self.key(on, on2, values)).ret
            {
                return Ret::Int(i);
            }
        }
        self.ret
    }

    fn key(&self, on: u8, on2: Option<u8>, values: &[u64]) -> u64 {
        let first = self.value_of(usize::from(on), values);
        match on2 {
            None => first & 0xffff_ffff,
            Some(b) => first << 32 | self.value_of(usize::from(b), values) & 0xffff_ffff,
        }
    }

    /// The value of argument `i` cut to its type, for tests: unsigned, so that masks and keys compare as written.
    fn value_of(&self, i: usize, values: &[u64]) -> u64 {
        let v = values.get(i).copied().unwrap_or(0);
        match self.args.get(i).map(|a| a.ty) {
            Some(Type::Int(int)) if int.size < 8 => v & ((1 << (8 * u32::from(int.size))) - 1),
            _ => v,
        }
    }
}
