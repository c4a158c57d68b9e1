//! One call on one line: name, arguments, result.

use super::sink::TextSink;
use super::{Colour, coloured, quirks, result, types};
use crate::options::{Options, Stacks};
use crate::values;
use crate::write::number::{hex, spaces};
use events::functions::{self, Kind};
use events::layout::{CAP_32BIT, CAP_NO_RESULT};
use events::names::Names;
use events::walk::{self, Phase, Sink};
use events::{Arg, Dir, Event, Type};

/// A call that has ended, or will never end, on the line that starts at `line`: the column of the result counts from there.
#[inline]
pub fn complete(ev: &Event<'_>, names: &dyn Names, opts: &Options, line: usize, out: &mut Vec<u8>) {
    let visible = head(ev, opts, out);
    if ev.schema.name == "raw" {
        raw_arguments(ev, out);
    } else {
        let mut sink = TextSink::new(out, opts, names, ev);
        arguments(ev, &mut sink, opts);
    }
    out.push(b')');
    // strace counts what is seen: the escape sequences of a colour take no column.
    let hidden = if opts.colour { visible } else { 0 };
    let width = out.len() - line - hidden;
    spaces(opts.column.saturating_sub(width + 1), out);
    if ev.caps() & CAP_NO_RESULT != 0 {
        out.extend_from_slice(b" = ?");
        return;
    }
    out.extend_from_slice(b" = ");
    result::write(ev, names, opts, out);
}

/// An event of a probe that is not a call: its name, its fields by name, and the result of a span.
pub fn probe(ev: &Event<'_>, names: &dyn Names, opts: &Options, out: &mut Vec<u8>) {
    if let Some(kind @ (Kind::Entry | Kind::Exit)) = functions::kind(ev.schema) {
        coloured(opts, Colour::Name, out, |o| {
            o.extend_from_slice(b"function:");
            crate::escape::name(ev.bytes_of("function"), o);
            o.extend_from_slice(if kind == Kind::Entry { b":entry" } else { b":exit" });
        });
        let (signature, found) = (names.signature(ev.value_of("number") as u32), ev.bytes_of("values"));
        let text = match kind {
            Kind::Entry => values::arguments(signature, found).map(|text| format!("({text})")),
            _ => values::result(signature, found).map(|text| format!("() = {text}")),
        };
        return out.extend_from_slice(text.as_deref().unwrap_or("()").as_bytes());
    }
    coloured(opts, Colour::Name, out, |o| crate::escape::name(ev.schema.name.as_bytes(), o));
    out.push(b'(');
    let mut sink = TextSink::new(out, opts, names, ev);
    let mut any = false;
    for i in (0..ev.schema.args.len()).filter(|i| is_field(ev, *i, opts)) {
        captured(ev, i, &mut any, &mut sink);
    }
    out.push(b')');
    if ev.is_span() {
        out.extend_from_slice(b" = ");
        match ev.caps() & CAP_NO_RESULT {
            0 => result::write(ev, names, opts, out),
            _ => out.push(b'?'),
        }
    }
}

/// A call that is still running: what is known at entry.
pub fn in_flight(ev: &Event<'_>, attach: u64, names: &dyn Names, opts: &Options, out: &mut Vec<u8>) {
    head(ev, opts, out);
    if ev.schema.name == "raw" {
        raw_arguments(ev, out);
    } else {
        let mut sink = TextSink::new(out, opts, names, ev);
        entry_arguments(ev, &mut sink, opts);
    }
    let note: &[u8] = match attach {
        1 => b" <in flight since attach>",
        2 => b" <detached ...>",
        _ => b" <in flight>",
    };
    coloured(opts, Colour::Faint, out, |o| o.extend_from_slice(note));
}

/// Name and parenthesis; returns how many bytes of it are escape sequences.
#[inline]
fn head(ev: &Event<'_>, opts: &Options, out: &mut Vec<u8>) -> usize {
    coloured(opts, Colour::Name, out, |o| match ev.schema.name {
        "raw" => o.extend_from_slice(raw_name(ev).as_bytes()),
        name => o.extend_from_slice(name.as_bytes()),
    });
    out.push(b'(');
    Colour::Name.start().len() + super::COLOUR_END.len()
}

/// The number of a call.
pub fn number(ev: &Event<'_>) -> u64 {
    if ev.schema.name == "raw" { ev.arg(0) & 0xffff_ffff } else { ev.schema.x86_64.unwrap_or(0).into() }
}

/// The name of a call that no row describes.
pub fn raw_name(ev: &Event<'_>) -> String {
    let nr = ev.arg(0) & 0xffff_ffff;
    if ev.caps() & CAP_32BIT != 0
        && let Some(name) = events::generated::I386.get(nr as usize).filter(|n| !n.is_empty())
    {
        return format!("{name}@i386");
    }
    format!("syscall_{nr:#x}")
}

fn raw_arguments(ev: &Event<'_>, out: &mut Vec<u8>) {
    for i in 2..8 {
        if i > 2 {
            out.extend_from_slice(b", ");
        }
        let narrow = ev.caps() & CAP_32BIT != 0;
        hex(if narrow { ev.arg(i) & 0xffff_ffff } else { ev.arg(i) }, out);
    }
}

fn arguments(ev: &Event<'_>, sink: &mut TextSink<'_>, opts: &Options) {
    if opts.is_raw(ev.schema) {
        return registers(ev, opts, sink.out);
    }
    let own = events::registry::own_args(ev.schema);
    let is_plain = opts.is_opaque(ev.schema) || opts.arg_names;
    let mut any = (!is_plain || ev.schema.name == "clone") && quirks::arguments(ev, sink);
    if !any {
        let phase = quirks::phase(ev);
        for i in 0..own {
            argument(ev, i, phase, &mut any, sink, opts);
        }
    }
    for i in (own..ev.schema.args.len()).filter(|i| is_field(ev, *i, opts)) {
        captured(ev, i, &mut any, sink);
    }
}

/// Whether a field is shown among the others: a stack has lines of its own, and its id says nothing.
fn is_field(ev: &Event<'_>, i: usize, opts: &Options) -> bool {
    let arg = &ev.schema.args[i];
    !events::stacks::is_stack(arg) || opts.stacks == Stacks::Fields && !matches!(arg.ty, Type::Int(_))
}

/// What was captured in addition to the arguments, by its name.
fn captured(ev: &Event<'_>, i: usize, any: &mut bool, sink: &mut TextSink<'_>) {
    if *any {
        sink.raw(", ");
    }
    named(ev, i, sink);
    *any = true;
}

/// A field with its name.
fn named(ev: &Event<'_>, i: usize, sink: &mut TextSink<'_>) {
    let arg = &ev.schema.args[i];
    crate::escape::name(arg.name.as_bytes(), sink.out);
    sink.raw("=");
    sink.after = !matches!(arg.ty, Type::Int(_));
    walk::arg(ev, i, Phase::In, sink);
}

#[inline]
fn argument(ev: &Event<'_>, i: usize, phase: Phase, any: &mut bool, sink: &mut TextSink<'_>, opts: &Options) {
    let before = sink.out.len();
    if *any {
        sink.out.extend_from_slice(b", ");
    }
    let arg = &ev.schema.args[i];
    if opts.types {
        types::declare(arg, sink.out);
    } else if opts.arg_names {
        name(arg, sink.out);
    }
    sink.after = !matches!(arg.ty, Type::Int(_));
    if ev.resolve(i).is_some_and(|(ty, _)| opts.hides(ev.schema, ty)) {
        sink.addr(ev.arg(i));
        *any = true;
    } else if walk::arg(ev, i, phase, sink) {
        *any = true;
    } else {
        sink.out.truncate(before);
    }
}

/// A call that a thread is in: what is known at entry, `...` for the rest, and the parenthesis.
pub fn entered(ev: &Event<'_>, names: &dyn Names, opts: &Options, out: &mut Vec<u8>) {
    head(ev, opts, out);
    let mut whole = true;
    if ev.schema.name == "raw" {
        raw_arguments(ev, out);
    } else {
        whole = entry_arguments(ev, &mut TextSink::new(out, opts, names, ev), opts);
    }
    out.extend_from_slice(if whole { b")" } else { b"...)" });
}

/// The arguments up to the first that only the end of the call makes known; whether they are all.
fn entry_arguments(ev: &Event<'_>, sink: &mut TextSink<'_>, opts: &Options) -> bool {
    let mut any = false;
    for i in 0..events::registry::own_args(ev.schema) {
        match ev.resolve(i) {
            Some((Type::Int(_), _)) | None | Some((_, Dir::In | Dir::InOut)) => {}
            // An argument that points to no memory is known already.
            Some(_) if ev.arg(i) == 0 => {}
            Some(_) => {
                if any {
                    sink.raw(", ");
                }
                return false;
            }
        }
        argument(ev, i, Phase::In, &mut any, sink, opts);
    }
    true
}

/// `NAME=`
fn name(arg: &Arg, out: &mut Vec<u8>) {
    out.extend_from_slice(arg.name.as_bytes());
    out.push(b'=');
}

/// Every argument as its register, for `-e raw=`.
fn registers(ev: &Event<'_>, opts: &Options, out: &mut Vec<u8>) {
    for i in 0..events::registry::own_args(ev.schema) {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        if opts.arg_names {
            name(&ev.schema.args[i], out);
        }
        // Of a narrower type the kernel takes no more of the register.
        let bytes = match &ev.schema.args[i].ty {
            Type::Int(int) => u32::from(int.size).clamp(1, 8),
            _ => 8,
        };
        hex(ev.arg(i) & u64::MAX >> (64 - 8 * bytes), out);
    }
}
