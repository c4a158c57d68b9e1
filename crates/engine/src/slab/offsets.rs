//! What the programs must know of this kernel: offsets in its structs, and where tracepoints have which argument.

use bpf::slab::Offsets;
use std::io;
use sys::btf::{KernelBtf, Kind};

/// The offsets, from the kernel's types.
pub fn of(btf: &KernelBtf) -> io::Result<Offsets> {
    let field = |root: &str, name: &str| {
        let found = btf.field_of(root, &[name]).and_then(|f| i16::try_from(f.offset).ok());
        found.ok_or_else(|| io::Error::other(format!("this kernel's types do not have {root}.{name}")))
    };
    Ok(Offsets {
        task_mm: field("task_struct", "mm")?,
        mm_exe: field("mm_struct", "exe_file")?,
        file_inode: field("file", "f_inode")?,
        inode_number: field("inode", "i_ino")?,
        regs_ip: field("pt_regs", "ip")?,
        cache_name: field("kmem_cache", "name")?,
        cache_size: field("kmem_cache", "size")?,
        cache_object_size: field("kmem_cache", "object_size")?,
    })
}

/// The arguments of a tracepoint, as C writes their types; none where the kernel does not have it.
pub fn arguments(btf: &KernelBtf, tracepoint: &str) -> Option<Vec<String>> {
    let id = btf.find(Kind::Typedef, &format!("btf_trace_{tracepoint}"))?;
    let prototype = btf.prototype(id)?;
    Some(prototype.params.iter().skip(1).map(|(_, ty)| btf.describe(*ty).c).collect())
}

/// Which argument of a tracepoint is a cache.
pub fn cache_of(arguments: &[String]) -> Option<u8> {
    let is = |c: &String| c.trim_start_matches("const ").starts_with("struct kmem_cache *");
    arguments.iter().position(is).map(|n| n as u8)
}

/// The function that returns the cache of an object (Linux 6.13).
pub fn function(btf: &KernelBtf) -> Option<i32> {
    btf.find(Kind::Func, "bpf_get_kmem_cache").and_then(|id| i32::try_from(id).ok())
}
