//! Functions and tracepoints in the kernel's types (BTF).

use super::{ArgInfo, ArgLocation, ArgType, Encoding, Refusal};
use std::collections::HashMap;
use sys::btf::{Described, KernelBtf, Kind};

/// The kernel's types.
pub fn kernel_types() -> Result<KernelBtf, Refusal> {
    KernelBtf::kernel()
        .map_err(|e| Refusal::Closed(format!("the kernel's types cannot be read: {e}"), "use a kernel with BTF".into()))
}

/// The typedef of a tracepoint's function.
const TYPEDEF: &str = "btf_trace_";

/// The kernel's tracepoints, sorted, and the ids of their functions' types.
pub fn tracepoints(btf: &KernelBtf) -> Vec<(&str, u32)> {
    let mut all: Vec<(&str, u32)> =
        btf.all(Kind::Typedef).filter_map(|(id, n)| Some((n.strip_prefix(TYPEDEF)?, id))).collect();
    all.sort_unstable();
    all.dedup_by_key(|t| t.0);
    all
}

/// The functions that call what is attached to a tracepoint, by its name: their parameters have names.
pub fn callers(btf: &KernelBtf) -> HashMap<&str, u32> {
    btf.all(Kind::Func).filter_map(|(id, n)| Some((n.strip_prefix("__traceiter_")?, id))).collect()
}

/// The arguments of a tracepoint's function, but for the first, which is the attachment's own.
pub fn arguments(btf: &KernelBtf, id: u32) -> Vec<ArgInfo> {
    let params = btf.prototype(id).map(|p| p.params).unwrap_or_default();
    let arg =
        |(i, (name, ty)): (usize, &(String, u32))| described(btf.describe(*ty), name, ArgLocation::Argument(i as u8));
    params.iter().skip(1).enumerate().map(arg).collect()
}

/// An argument of a type of the kernel.
pub fn described(d: Described, name: &str, location: ArgLocation) -> ArgInfo {
    let encoding = match () {
        _ if d.string => Encoding::Text,
        _ if d.pointer => Encoding::Pointer,
        _ if d.aggregate => Encoding::Bytes,
        _ => Encoding::Int,
    };
    let name = match (name, &location) {
        ("", ArgLocation::Argument(i)) => format!("arg{i}"),
        _ => name.to_string(),
    };
    ArgInfo { name, ty: ArgType { c: d.c, size: d.size, signed: d.signed, encoding }, location }
}
