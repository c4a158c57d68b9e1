//! Operations of io_uring: which there are, and the fields of their events, `io_uring:NAME`.
//!
//! Their classes are made at run time, as those of other probes are, and all have the same fields at the same places, which each operation has names
//! for (`fields`). What is known of them is here, because both who makes them and who finds them in a trace, whose metadata has numbers only,
//! shows descriptors as descriptors and flags by name.

mod fields;

use crate::generated::flags::{T_IO_URING_CQE, T_IO_URING_OP, T_IO_URING_SQE};
pub use crate::operation_fields::{FIELDS, PREFIX};
use crate::schema::Schema;
use crate::types::{Fmt, Int, StrKind, Type};

/// The name of what is no operation of the table: one that it does not name, or a completion without a submission.
pub const OTHER: &str = "other";

/// The field that is the address of a path for some operations.
pub const ADDRESS: usize = 1;

/// Operations whose address is that of a path (io_uring/fs.c, openclose.c, statx.c of Linux 6.18: `getname` of `sqe->addr`).
const OF_PATHS: [&str; 8] = ["openat", "openat2", "statx", "renameat", "unlinkat", "mkdirat", "symlinkat", "linkat"];

/// The operations of the table: opcode and name, as in `read` of `IORING_OP_READ`.
pub fn operations() -> impl Iterator<Item = (u8, String)> {
    let known = |e: crate::types::Entry| {
        Some((u8::try_from(e.value).ok()?, e.name.strip_prefix("IORING_OP_")?.to_ascii_lowercase()))
    };
    T_IO_URING_OP.entries().filter_map(known)
}

/// Whether the address of this operation is that of a path, which is read.
pub fn has_path(name: &str) -> bool {
    OF_PATHS.contains(&name)
}

/// The names that the fields have for this operation.
pub fn names(operation: &str) -> [&'static str; FIELDS.len()] {
    let mut names = FIELDS;
    for (name, own) in names.iter_mut().zip(fields::of(operation).iter().flat_map(|row| row.names)) {
        if !own.is_empty() {
            *name = own;
        }
    }
    names
}

/// The type of a field of this operation's events, by its name there or for all operations.
pub fn field(operation: &str, name: &str) -> Option<Type> {
    let own = names(operation).iter().position(|n| *n == name);
    let generic = FIELDS.get(own.or_else(|| FIELDS.iter().position(|n| *n == name))?)?;
    let int = |signed, fmt| Int { size: 8, signed, fmt };
    let plain = match *generic {
        "addr" => return Some(Type::Str(StrKind::Text)),
        "fd" => int(true, Fmt::Dirfd),
        "offset" => int(true, Fmt::Dec),
        "registered" => int(true, Fmt::Registered),
        "op_flags" | "user_data" | "ring" => int(false, Fmt::Hex),
        "sqe_flags" => int(false, Fmt::Flags(&T_IO_URING_SQE)),
        "cqe_flags" => int(false, Fmt::Flags(&T_IO_URING_CQE)),
        _ => int(false, Fmt::Dec),
    };
    let fmt = fields::of(operation).and_then(|row| row.format(name)).unwrap_or(plain.fmt);
    Some(Type::Int(Int { fmt, ..plain }))
}

/// Whether this is the class of an operation.
pub fn is_operation(schema: &Schema) -> bool {
    schema.name.starts_with(PREFIX)
}

/// The type of a field of the class of this name, if it is one of these.
pub fn field_of(class: &str, name: &str) -> Option<Type> {
    field(class.strip_prefix(PREFIX)?, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_names_of_the_kernel() {
        let all: Vec<(u8, String)> = operations().collect();
        assert!(all.contains(&(22, "read".into())) && all.contains(&(0, "nop".into())));
        assert!(all.iter().all(|(_, name)| name != OTHER));
        assert!(OF_PATHS.iter().all(|path| all.iter().any(|(_, name)| name == path)));
        let has_type = |op: &str| names(op).iter().chain(&FIELDS).all(|name| field(op, name).is_some());
        assert!(has_type(OTHER) && all.iter().all(|(_, op)| has_type(op)));
        assert_eq!((field_of("io_uring:read", "fd").is_some(), field_of("uprobe:x:y", "fd")), (true, None));
    }

    #[test]
    fn words_are_called_as_arguments_of_calls() {
        assert_eq!(names("openat")[..6], ["dfd", "filename", "mode", "offset", "flags", "file_index"]);
        assert_eq!(names("nop"), FIELDS);
        let format = |op: &str, name: &str| match field(op, name) {
            Some(Type::Int(Int { fmt, .. })) => Some(fmt),
            _ => None,
        };
        let is_open = |fmt| matches!(fmt, Some(Fmt::Flags(table)) if table.name == "open");
        assert!(is_open(format("openat", "flags")) && !is_open(format("openat", "op_flags")));
        assert_eq!((format("openat", "mode"), format("read", "count")), (Some(Fmt::Oct), Some(Fmt::Dec)));
        let fields: Vec<_> = names("openat").iter().map(|n| (n.to_string(), field("openat", n).unwrap())).collect();
        let fields = fields.into_iter().map(|(name, ty)| crate::dynamic::Field { name, ty }).collect::<Vec<_>>();
        let class = crate::dynamic::span("io_uring:openat", &fields).unwrap();
        assert_eq!((class.arg("filename"), class.arg("addr"), class.arg("len")), (Some(1), Some(1), Some(2)));
    }
}
