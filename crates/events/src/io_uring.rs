//! Operations of io_uring: which there are, and the fields of their events, `io_uring:NAME`.
//!
//! Their classes are made at run time, as those of other probes are, and all have the same fields. What is known of them is here, because both who
//! makes them and who finds them in a trace, whose metadata has numbers only, shows descriptors as descriptors and flags by name.

use crate::generated::flags::{T_IO_URING_CQE, T_IO_URING_OP, T_IO_URING_SQE};
use crate::schema::Schema;
use crate::types::{Fmt, Int, StrKind, Type};

/// What the names of the probes begin with.
pub const PREFIX: &str = "io_uring:";
/// The name of what is no operation of the table: one that it does not name, or a completion without a submission.
pub const OTHER: &str = "other";

/// The fields, in their order.
pub const FIELDS: [&str; 10] =
    ["fd", "addr", "len", "offset", "op_flags", "registered", "sqe_flags", "cqe_flags", "user_data", "ring"];

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

/// The type of a field of these events.
pub fn field(name: &str) -> Option<Type> {
    let int = |signed, fmt| Type::Int(Int { size: 8, signed, fmt });
    Some(match name {
        "fd" => int(true, Fmt::Dirfd),
        "addr" => Type::Str(StrKind::Text),
        "len" => int(false, Fmt::Dec),
        "offset" | "registered" => int(true, Fmt::Dec),
        "op_flags" | "user_data" | "ring" => int(false, Fmt::Hex),
        "sqe_flags" => int(false, Fmt::Flags(&T_IO_URING_SQE)),
        "cqe_flags" => int(false, Fmt::Flags(&T_IO_URING_CQE)),
        _ => return None,
    })
}

/// Whether this is the class of an operation.
pub fn is_operation(schema: &Schema) -> bool {
    schema.name.starts_with(PREFIX)
}

/// The type of a field of the class of this name, if it is one of these.
pub fn field_of(class: &str, name: &str) -> Option<Type> {
    if class.starts_with(PREFIX) { field(name) } else { None }
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
        assert!(FIELDS.iter().all(|name| field(name).is_some()));
        assert_eq!((field_of("io_uring:read", "fd").is_some(), field_of("uprobe:x:y", "fd")), (true, None));
    }
}
