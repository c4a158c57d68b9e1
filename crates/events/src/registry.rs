//! All classes of events: the tables' and those that were made at run time.

use crate::layout::Layout;
use crate::schema::{Class, Schema};
use std::sync::LazyLock;

/// The schema of an event's header id.
#[inline]
pub fn by_id(id: u16) -> Option<&'static Schema> {
    match crate::generated::SCHEMAS.get(usize::from(id)) {
        Some(s) => Some(s),
        None => crate::dynamic::by_id(id).map(|(s, _)| s),
    }
}

/// The layout of the class `id`, computed once.
#[inline]
pub fn layout(id: u16) -> Option<&'static Layout> {
    static ALL: LazyLock<Vec<Layout>> =
        LazyLock::new(|| crate::generated::SCHEMAS.iter().map(|s| Layout::of(s)).collect());
    match ALL.get(usize::from(id)) {
        Some(l) => Some(l),
        None => crate::dynamic::by_id(id).map(|(_, l)| l),
    }
}

/// The schema of a call by its number on x86_64.
pub fn by_number(nr: u64) -> Option<&'static Schema> {
    let id = *crate::generated::X86_64.get(usize::try_from(nr).ok()?)?;
    if id == u16::MAX { None } else { by_id(id) }
}

/// The schema of a call by its name.
pub fn by_name(name: &str) -> Option<&'static Schema> {
    syscalls().find(|s| s.name == name)
}

/// All calls.
pub fn syscalls() -> impl Iterator<Item = &'static Schema> {
    crate::generated::SCHEMAS.iter().copied().filter(|s| s.class == Class::Syscall)
}

/// How many of its arguments are of the call or probe itself; captures come after them.
#[inline]
pub fn own_args(schema: &Schema) -> usize {
    if schema.base == schema.id { schema.args.len() } else { by_id(schema.base).map_or(0, |s| s.args.len()) }
}
