//! The classes of a trace that this program knows, or can make from the metadata alone.

use super::{MORE_CAPS, STREAM_CLASS, event_class, plain, stream_class};
use crate::model::{Base, EventClass, Field, Metadata, Type};
use events::generated::P_SIGNAL;
use events::schema::{Class, Extent};
use events::types::{Fmt, Int};

/// Maps the classes of a trace to those of this program: by id, `None` where the trace's class has another layout, or another name.
pub fn known(metadata: &Metadata) -> Vec<Option<u16>> {
    let own: std::collections::HashMap<String, EventClass> =
        stream_class().events.into_iter().map(|e| (e.name.clone(), e)).collect();
    let Some(stream) = metadata.stream(STREAM_CLASS) else { return Vec::new() };
    let mut all = Vec::new();
    for class in &stream.events {
        let id = usize::try_from(class.id).unwrap_or(usize::MAX);
        if id > usize::from(u16::MAX) {
            continue;
        }
        if all.len() <= id {
            all.resize(id + 1, None);
        }
        all[id] = match own.get(&class.name) {
            Some(o) if o.fields == class.fields => Some(o.id as u16),
            Some(o) => captured(o.id as u16, class).or_else(|| before(o.id as u16, class)),
            None => made(class),
        };
    }
    all
}

/// Makes the class of a probe that codegen does not know: what [`event_class`] has made of it has its arguments, in order.
pub(super) fn made(class: &EventClass) -> Option<u16> {
    let fields = &class.fields.as_ref()?.fields;
    let find = |name: &str| fields.iter().find(|f| f.name == name).map(|f| &f.ty);
    // An argument has 64 bits: only the processors of a span have 16, and only capture bits are an array of bytes.
    let wide = |f: &Field| matches!(&f.ty, Type::Int(i) | Type::Enum(i, _) if i.size == 64);
    let is_span = matches!(&fields.first()?.ty, Type::Int(i) if i.size == 16);
    let (extent, not_args) = if is_span { (Extent::Span, 2) } else { (Extent::Point, 0) };
    let more_caps = fields.iter().any(|f| matches!(f.ty, Type::Array(_, MORE_CAPS)));
    let first = fields.iter().enumerate().filter(|(_, f)| wide(f)).nth(not_args).map_or(fields.len(), |(i, _)| i);
    let mut args = Vec::new();
    for f in &fields[first..] {
        let (name, ty) = match (&f.ty, f.name.strip_suffix("_ptr")) {
            (Type::Int(_), Some(name)) if find(name).is_some() => {
                (name, pointed(find(name)?, find(&format!("{name}_count")).is_some())?)
            }
            (Type::Int(i), _) if i.size == 64 => {
                let fmt = match i.base {
                    Base::Hexadecimal if is_stack(&f.name) => Fmt::Stack,
                    Base::Hexadecimal => Fmt::Hex,
                    Base::Octal => Fmt::Oct,
                    _ => Fmt::Dec,
                };
                let plain = events::types::Type::Int(Int { size: 8, signed: i.signed, fmt });
                (f.name.as_str(), events::io_uring::field_of(&class.name, &f.name).unwrap_or(plain))
            }
            (Type::Enum(i, _), _) if i.size == 64 => {
                (f.name.as_str(), events::io_uring::field_of(&class.name, &f.name)?)
            }
            // Pads, tails and their counts.
            _ => continue,
        };
        args.push(events::dynamic::Field { name: name.into(), ty });
    }
    let schema = events::dynamic::shaped(&class.name, extent, more_caps, &args).ok()?;
    (event_class(schema).fields == class.fields).then_some(schema.id)
}

/// Whether a number of this name is the id of a stack.
fn is_stack(name: &str) -> bool {
    events::stacks::FIELDS.contains(&name)
}

/// Makes the class of a call that earlier versions have recorded with less.
fn before(base: u16, class: &EventClass) -> Option<u16> {
    let before = events::dynamic::without_text(events::registry::by_id(base)?)?;
    (event_class(before).fields == class.fields).then_some(before.id).or_else(|| captured(before.id, class))
}

/// Makes the class of a call with captures: its fields are those of the call, and for each capture an address and what was read.
pub(super) fn captured(base: u16, class: &EventClass) -> Option<u16> {
    let base = events::registry::by_id(base).filter(|s| s.class == Class::Syscall || s.id == P_SIGNAL.id)?;
    let fields = &class.fields.as_ref()?.fields;
    let find = |name: &str| fields.iter().find(|f| f.name == name).map(|f| &f.ty);
    let mut captures = Vec::new();
    for f in fields {
        let own = |name: &str| base.args.iter().any(|a| plain(a.name) == name);
        if let Type::Int(i) = &f.ty
            && i.size == 64
            && is_stack(&f.name)
            && !own(&f.name)
        {
            let id = Int { size: 8, signed: false, fmt: Fmt::Stack };
            captures.push(events::dynamic::Field { name: f.name.clone(), ty: events::types::Type::Int(id) });
            continue;
        }
        let Some(name) = f.name.strip_suffix("_ptr").filter(|name| !own(name)) else { continue };
        // An argument may have this name too.
        let Some(read) = find(name) else { continue };
        let ty = pointed(read, find(&format!("{name}_count")).is_some())?;
        captures.push(events::dynamic::Field { name: name.into(), ty });
    }
    let schema = events::dynamic::with_captures(base, &captures).ok()?;
    (event_class(schema).fields == class.fields).then_some(schema.id)
}

/// The type of a captured address, by the type of the memory that was read there.
fn pointed(ty: &Type, counted: bool) -> Option<events::types::Type> {
    use events::types::{StrKind, Type as T};
    Some(match ty {
        Type::Str(_) => T::Str(StrKind::Text),
        Type::Sequence(element, _) if counted && matches!(**element, Type::Struct(_)) => T::Strv,
        Type::Sequence(..) if counted => T::Ptr { elem: events::dynamic::ADDRESS, len: Some(events::dynamic::READ) },
        Type::Sequence(..) => T::Bytes(events::dynamic::READ),
        _ => return None,
    })
}
