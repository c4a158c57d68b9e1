//! The stacks of an event: by the id under which a `process:stack` event has reported them, or, in traces of earlier versions, as arrays of
//! addresses in the event itself. Whoever shows stacks asks here, and need not know which.

use crate::Event;
use crate::dynamic::{ADDRESS, READ};
use crate::generated::{P_INFLIGHT, SCHEMAS};
use crate::names::{EXACT, Names, Stack};
use crate::schema::{Arg, Schema};
use crate::types::{Fmt, Int, Type};
use std::borrow::Cow;

/// The fields that stacks are in.
pub const FIELDS: [&str; 2] = ["kstack", "ustack"];

/// A stack of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStack<'a> {
    /// The field: `kstack`, `ustack`.
    pub field: &'static str,
    /// Its id; none in traces of earlier versions.
    pub id: Option<u64>,
    /// Of the kernel, and not of the process.
    pub kernel: bool,
    /// Why there are no more frames: a number of the crate `unwind`; 0 where that is not known.
    pub ended: u8,
    /// How many frames of a process are guessed.
    pub guessed: u32,
    /// The frames, as [`Stack::frames`]; none where the stack was lost.
    pub frames: Cow<'a, [u64]>,
}

impl EventStack<'_> {
    /// The stack without its field and id.
    pub fn stack(&self) -> Stack<'_> {
        Stack { kernel: self.kernel, ended: self.ended, guessed: self.guessed, frames: &self.frames }
    }
}

/// Whether a field is a stack.
pub fn is_stack(arg: &Arg) -> bool {
    FIELDS.contains(&arg.name)
        && match arg.ty {
            Type::Int(Int { fmt: Fmt::Stack, .. }) => true,
            Type::Ptr { elem, len: Some(len) } => elem == ADDRESS && len == READ,
            _ => false,
        }
}

/// Whether events of a class may have stacks: those of the tables' classes have none.
#[inline]
pub fn may_have(schema: &Schema) -> bool {
    usize::from(schema.id) >= SCHEMAS.len()
}

/// The event whose stacks are shown with `ev`: of the notice of a call in flight, the call.
pub fn bearer<'a>(ev: &Event<'a>) -> Event<'a> {
    let call = if ev.schema.id == P_INFLIGHT.id { Event::parse(ev.bytes_of("call")).ok() } else { None };
    call.filter(Event::is_syscall).unwrap_or(*ev)
}

/// The stacks of an event, in the order of its fields.
pub fn of<'a>(ev: &Event<'a>, names: &'a dyn Names) -> impl Iterator<Item = EventStack<'a>> {
    let ev = *ev;
    let args = if may_have(ev.schema) { ev.schema.args } else { &[] };
    let fields = args.iter().enumerate().filter(|(_, a)| is_stack(a));
    fields.map(move |(i, arg)| match arg.ty {
        Type::Int(_) => by_id(arg.name, ev.arg(i), names),
        _ => in_line(arg.name, ev.tail(i, false).map(|t| t.bytes).unwrap_or_default()),
    })
}

fn by_id<'a>(field: &'static str, id: u64, names: &'a dyn Names) -> EventStack<'a> {
    let lost = Stack { kernel: field == FIELDS[0], ended: 0, guessed: 0, frames: &[] };
    let found = if id == 0 { None } else { names.stack(id) };
    let Stack { kernel, ended, guessed, frames } = found.unwrap_or(lost);
    EventStack { field, id: Some(id), kernel, ended, guessed, frames: frames.into() }
}

/// Return addresses, but for the first of a process, where it was interrupted.
fn in_line<'a>(field: &'static str, bytes: &[u8]) -> EventStack<'a> {
    let kernel = field == FIELDS[0];
    let mut frames: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
    if let Some(first) = frames.first_mut().filter(|_| !kernel) {
        *first |= EXACT;
    }
    EventStack { field, id: None, kernel, ended: 0, guessed: 0, frames: frames.into() }
}

/// The moment when a stack of an event was taken, ns of the monotonic clock: that of a call which replaces its program is of its entry.
pub fn time(ev: &Event<'_>) -> u64 {
    if ev.is_syscall() && ["execve", "execveat"].contains(&ev.schema.name) { ev.start() } else { ev.time() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamic::{Field, class};
    use crate::encode::{self, Fixed};
    use crate::names::FdName;

    struct One;
    impl Names for One {
        fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
            None
        }
        fn comm(&self, _: u32) -> Option<&[u8]> {
            None
        }
        fn stack(&self, id: u64) -> Option<Stack<'_>> {
            (id == 7).then_some(Stack { kernel: false, ended: 1, guessed: 2, frames: &[5, 6] })
        }
    }

    fn stacks(fields: &[(&str, Type)], values: &[u64], tail: Option<&[u64]>) -> Vec<(&'static str, Vec<u64>, u8)> {
        let fields: Vec<Field> = fields.iter().map(|(n, ty)| Field { name: (*n).into(), ty: *ty }).collect();
        let schema = class(&format!("stacks:{}", fields.len()), &fields).unwrap();
        let layout = crate::registry::layout(schema.id).unwrap();
        let mut bytes = Vec::new();
        encode::fixed(&mut bytes, schema, layout, &Fixed { time: 1, cap: 1, ..Fixed::default() }, values);
        if let Some(tail) = tail {
            let words: Vec<u8> = tail.iter().flat_map(|f| f.to_le_bytes()).collect();
            encode::many_tail(&mut bytes, &words, 8);
        }
        let ev = Event::parse(&bytes).unwrap();
        of(&ev, &One).map(|s| (s.field, s.frames.to_vec(), s.ended)).collect()
    }

    #[test]
    fn both_forms_are_read() {
        let id = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Stack });
        assert_eq!(stacks(&[("ustack", id)], &[7], None), [("ustack", vec![5, 6], 1)]);
        let lost = stacks(&[("kstack", id), ("ustack", id)], &[0, 9], None);
        assert_eq!(lost, [("kstack", vec![], 0), ("ustack", vec![], 0)]);
        let list = Type::Ptr { elem: ADDRESS, len: Some(READ) };
        let other = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
        let inline = stacks(&[("ustack", list), ("x", other), ("y", other)], &[1, 2, 3], Some(&[16, 32]));
        assert_eq!(inline, [("ustack", vec![16 | EXACT, 32], 0)]);
    }
}
