//! The events of allocations: `heap:malloc`, `heap:free`, `heap:mmap`, `heap:munmap`.

use super::{Entry, Kind, What};
use events::Schema;
use events::dynamic::{self, Field};
use events::encode::{self, Fixed};
use events::types::{Fmt, Int, Type};
use std::sync::LazyLock;

/// What the names of probes begin with.
pub const PROVIDER: &str = "heap:";

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// A block was allocated.
    Malloc,
    /// A block is freed.
    Free,
    /// Memory was mapped.
    Mmap,
    /// Memory is unmapped.
    Munmap,
    /// The process is about to fork. It cannot be asked for: it says what a child begins with.
    Fork,
    /// The process is a child.
    Child,
}

/// Those that can be asked for, with what they are.
pub const ALL: [(Probe, &str, &str); 4] = [
    (Probe::Malloc, "heap:malloc", "a block was allocated: malloc, calloc, realloc, operator new, …"),
    (Probe::Free, "heap:free", "a block is freed: free, realloc, operator delete, …"),
    (Probe::Mmap, "heap:mmap", "memory was mapped: mmap, mremap"),
    (Probe::Munmap, "heap:munmap", "memory is unmapped: munmap, mremap"),
];

impl Probe {
    /// The probe of what has happened.
    pub fn of(what: &What) -> Probe {
        match what {
            What::Alloc { kind: Kind::Malloc, .. } => Probe::Malloc,
            What::Alloc { kind: Kind::Mmap, .. } => Probe::Mmap,
            What::Free { .. } => Probe::Free,
            What::Unmap { .. } => Probe::Munmap,
            What::Fork { .. } => Probe::Fork,
            What::Child { .. } => Probe::Child,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Fork => "heap:fork",
            Probe::Child => "heap:child",
            _ => ALL.iter().find(|p| p.0 == self).map_or("", |p| p.1),
        }
    }

    /// The probe with this name, of those that can be asked for.
    pub fn named(name: &str) -> Option<Probe> {
        ALL.iter().find(|p| p.1 == name).map(|p| p.0)
    }

    /// Whether it is about memory that is allocated: then it may have a stack.
    pub fn allocates(self) -> bool {
        matches!(self, Probe::Malloc | Probe::Mmap)
    }

    /// Names and types of its fields; allocations may have a `stack`.
    pub fn fields(self, stack: bool) -> Vec<(&'static str, Type)> {
        let int = |fmt| Type::Int(Int { size: 8, signed: false, fmt });
        let (address, size) = (("address", int(Fmt::Addr)), ("size", int(Fmt::Dec)));
        match self {
            Probe::Malloc | Probe::Mmap if stack => vec![address, size, ("ustack", int(Fmt::Stack))],
            Probe::Malloc | Probe::Mmap => vec![address, size],
            Probe::Free => vec![address],
            Probe::Munmap => vec![address, size],
            Probe::Fork => vec![("number", int(Fmt::Dec))],
            Probe::Child => vec![("parent", int(Fmt::Dec)), ("number", int(Fmt::Dec))],
        }
    }

    /// The class of its events, with or without a stack; none where there are too many classes.
    pub fn class(self, stack: bool) -> Option<&'static Schema> {
        static CLASSES: LazyLock<[[Option<&'static Schema>; 6]; 2]> = LazyLock::new(|| {
            use Probe::*;
            [false, true].map(|stack| {
                [Malloc, Free, Mmap, Munmap, Fork, Child].map(|p| {
                    let fields = p.fields(stack).into_iter().map(|(name, ty)| Field { name: name.into(), ty });
                    dynamic::class(p.name(), &fields.collect::<Vec<_>>()).ok()
                })
            })
        });
        CLASSES.get(usize::from(stack)).and_then(|of| of.get(self as usize)).copied().flatten()
    }
}

/// Writes an entry of process `pid` as an event into `out`, which is cleared. `parent`: the process id that [`What::Child`] is to name.
pub fn encode(out: &mut Vec<u8>, pid: u32, entry: &Entry, parent: u32, has_stack: bool) {
    out.clear();
    let Some(schema) = Probe::of(&entry.what).class(has_stack) else { return };
    let Some(layout) = events::registry::layout(schema.id) else { return };
    let fixed = Fixed { time: entry.time, tid: entry.tid, pid, ..Fixed::default() };
    let mut write = |args: &[u64]| encode::fixed(out, schema, layout, &fixed, args);
    match entry.what {
        What::Alloc { address, size, stack, .. } if has_stack => write(&[address, size, stack]),
        What::Alloc { address, size, .. } => write(&[address, size]),
        What::Free { address } => write(&[address]),
        What::Unmap { address, len } => write(&[address, len]),
        What::Fork { number } => write(&[number]),
        What::Child { number, .. } => write(&[parent.into(), number]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_an_event() {
        let mut out = Vec::new();
        let what = What::Alloc { kind: Kind::Malloc, address: 0x1000, size: 24, stack: 7 };
        encode(&mut out, 3, &Entry { time: 5, tid: 4, what }, 0, true);
        let ev = events::Event::parse(&out).unwrap();
        assert_eq!((ev.schema.probe().as_ref(), ev.time(), ev.pid(), ev.tid()), ("heap:malloc", 5, 3, 4));
        assert_eq!(["address", "size", "ustack"].map(|f| ev.value_of(f)), [0x1000, 24, 7]);
        encode(&mut out, 3, &Entry { time: 5, tid: 4, what }, 0, false);
        let ev = events::Event::parse(&out).unwrap();
        assert_eq!((ev.schema.probe().as_ref(), ev.schema.args.len()), ("heap:malloc", 2));
        assert_eq!(Probe::named("heap:mmap"), Some(Probe::Mmap));
        assert!(Probe::named("heap:fork").is_none());
    }
}
