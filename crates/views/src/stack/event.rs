//! The stacks of an event, with the functions that the collector names.

use super::{Place, folded, line, object, place};
use crate::options::Stacks;
use crate::profile::Frame;
use crate::write::json as w;
use events::Event;
use events::names::{self, Names};
use events::stacks::{self, EventStack};

/// What is shown of a stack that was lost.
const LOST: &[u8] = b" > (lost)\n";

impl<'a> From<&names::Frame<'a>> for Place<'a> {
    fn from(f: &names::Frame<'a>) -> Place<'a> {
        let &names::Frame { function, module, file, line, inlined, guessed, kernel, offset, address } = f;
        Place { frame: Frame { function, module, file, line, inlined, guessed, kernel }, offset, address }
    }
}

/// Hands over the frames of a stack of an event, innermost first.
pub(crate) fn frames(ev: &Event<'_>, stack: &EventStack<'_>, names: &dyn Names, each: &mut dyn FnMut(&Place<'_>)) {
    names.frames(ev.pid(), stacks::time(ev), &stack.stack(), &mut |f| each(&f.into()));
}

/// Appends the stacks of an event as lines below it.
#[inline]
pub fn below(ev: &Event<'_>, names: &dyn Names, form: Stacks, out: &mut Vec<u8>) {
    if form != Stacks::Fields && stacks::may_have(ev.schema) {
        lines(ev, names, form, out);
    }
}

fn lines(ev: &Event<'_>, names: &dyn Names, form: Stacks, out: &mut Vec<u8>) {
    for stack in stacks::of(ev, names) {
        match form {
            _ if stack.frames.is_empty() => out.extend_from_slice(LOST),
            Stacks::Fold => fold(ev, &stack, names, out),
            _ => frames(ev, &stack, names, &mut |p| line(p, form == Stacks::Sources, out)),
        }
    }
}

/// On one line, the outermost frame first.
fn fold(ev: &Event<'_>, stack: &EventStack<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    let (mut text, mut ends) = (Vec::new(), vec![0]);
    frames(ev, stack, names, &mut |p| {
        folded(p, &mut text);
        ends.push(text.len());
    });
    let mut before: &[u8] = b" > ";
    for part in ends.windows(2).rev() {
        out.extend_from_slice(before);
        out.extend_from_slice(&text[part[0]..part[1]]);
        before = b";";
    }
    out.push(b'\n');
}

/// Appends the address of the instruction that an event comes from, as strace -i does: the innermost of its stack.
pub fn instruction(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    let first = stacks::of(ev, names).find_map(|s| s.frames.first().copied().filter(|_| !s.kernel));
    match first {
        Some(a) => out.extend_from_slice(format!("[{:016x}] ", a & !(names::GUESSED | names::EXACT)).as_bytes()),
        None => out.extend_from_slice(b"[????????????????] "),
    }
}

/// Appends the stacks of an event as members of its object: arrays of frames, which are empty where a stack was lost.
#[inline]
pub fn members(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    for stack in stacks::of(ev, names) {
        w::key(out, stack.field);
        out.push(b'[');
        frames(ev, &stack, names, &mut |p| object(p, out));
        out.push(b']');
    }
}

/// Appends the stacks of an event as lines of the record view.
pub fn records(ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
    for stack in stacks::of(ev, names) {
        let head = |out: &mut Vec<u8>| {
            out.extend_from_slice(b"S ");
            out.extend_from_slice(stack.field.as_bytes());
            out.push(b' ');
        };
        if stack.frames.is_empty() {
            head(out);
            out.extend_from_slice(b"(lost)\n");
        }
        frames(ev, &stack, names, &mut |p| {
            head(out);
            place(p, true, out);
            out.push(b'\n');
        });
    }
}
