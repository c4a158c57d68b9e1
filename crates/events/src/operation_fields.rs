//! What operations of io_uring have in common: how their names begin, and the fields of their events ([`crate::io_uring`]). Uses nothing, so that
//! every schema can ask.

/// What the names of the probes begin with.
pub const PREFIX: &str = "io_uring:";

/// The fields, in their order, by the names that they have for all operations.
pub const FIELDS: [&str; 11] = [
    "fd",
    "addr",
    "len",
    "offset",
    "op_flags",
    "file_index",
    "registered",
    "sqe_flags",
    "cqe_flags",
    "user_data",
    "ring",
];

/// The field of this name, if `class` is that of an operation.
pub fn of_all(class: &str, name: &str) -> Option<usize> {
    class.starts_with(PREFIX).then(|| FIELDS.iter().position(|field| *field == name)).flatten()
}
