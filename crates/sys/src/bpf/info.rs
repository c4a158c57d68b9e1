//! Information about programs, maps and links, and the list of all that exist on the machine.
//!
//! Kernels fill as much of the structures as they know; the rest stays zero.

use super::{Attr, Command, at, call, call_fd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Object {
    Program,
    Map,
    Link,
    /// Types.
    Btf,
}

impl Object {
    fn commands(self) -> (Command, Command) {
        match self {
            Object::Program => (Command::ProgNextId, Command::ProgById),
            Object::Map => (Command::MapNextId, Command::MapById),
            Object::Link => (Command::LinkNextId, Command::LinkById),
            Object::Btf => (Command::BtfNextId, Command::BtfById),
        }
    }
}

/// The ids of all objects of a kind, rising. Needs CAP_SYS_ADMIN.
pub fn ids(object: Object) -> io::Result<Vec<u32>> {
    let mut ids = Vec::new();
    loop {
        let mut attr = Attr::new().u32(at::ID, ids.last().copied().unwrap_or(0));
        // SAFETY: no addresses in it.
        match unsafe { call(object.commands().0, &mut attr) } {
            Ok(_) => ids.push(attr.get_u32(at::NEXT_ID)),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(ids),
            Err(e) => return Err(e),
        }
    }
}

/// Opens an object by id; an object that is gone is `NotFound`.
pub fn by_id(object: Object, id: u32) -> io::Result<OwnedFd> {
    let mut attr = Attr::new().u32(at::ID, id);
    // SAFETY: no addresses in it.
    unsafe { call_fd(object.commands().1, &mut attr) }
}

/// Room for any of the structures.
struct Raw([u8; 512]);

impl Raw {
    fn get(fd: BorrowedFd) -> io::Result<Raw> {
        let mut raw = Raw([0; 512]);
        let mut attr =
            Attr::new().fd(at::INFO_FD, fd).u32(at::INFO_SIZE, raw.0.len() as u32).output(at::INFO, &mut raw.0);
        // SAFETY: the room is as long as said, and all zero: no addresses in it that the kernel would follow.
        unsafe { call(Command::ObjectInfo, &mut attr) }?;
        Ok(raw)
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap_or_default())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap_or_default())
    }

    fn name(&self, at: usize) -> String {
        let name = self.0[at..at + 16].split(|b| *b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

/// A program (`struct bpf_prog_info`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramInfo {
    /// `enum bpf_prog_type`.
    pub kind: u32,
    /// Id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Bytes of machine code.
    pub jited_size: u32,
    /// Bytes of instructions after the verifier.
    pub translated_size: u32,
    /// Maps that it uses.
    pub maps: u32,
    /// Time in it; counts while [`enable_stats`] is held.
    pub run_time_ns: u64,
    /// Runs; counts while [`enable_stats`] is held.
    pub run_count: u64,
    /// Missed runs: the kernel skipped the program because it was already running on that CPU. Always counts (Linux 5.12).
    pub recursion_misses: u64,
    /// Instructions that the verifier walked (Linux 5.16).
    pub verified_insns: u32,
    /// Type that it attaches to.
    pub attach_btf_id: u32,
}

/// Reads the information about a program.
pub fn program(fd: &impl AsFd) -> io::Result<ProgramInfo> {
    let raw = Raw::get(fd.as_fd())?;
    Ok(ProgramInfo {
        kind: raw.u32(0),
        id: raw.u32(4),
        name: raw.name(64),
        jited_size: raw.u32(16),
        translated_size: raw.u32(20),
        maps: raw.u32(52),
        run_time_ns: raw.u64(192),
        run_count: raw.u64(200),
        recursion_misses: raw.u64(208),
        verified_insns: raw.u32(216),
        attach_btf_id: raw.u32(224),
    })
}

/// The types of a module, as programs that attach to its functions name them. `NotFound`: no such module, or one without types.
pub fn types_of_module(module: &str) -> io::Result<OwnedFd> {
    for id in ids(Object::Btf)? {
        let Ok(types) = by_id(Object::Btf, id) else { continue };
        if name_of_types(types.as_fd())?.as_deref() == Some(module.as_bytes()) {
            return Ok(types);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The name of the kernel's own types, or of a module's (`struct bpf_btf_info`); none of other types.
fn name_of_types(fd: BorrowedFd) -> io::Result<Option<Vec<u8>>> {
    const NAME: usize = 16;
    const NAME_LENGTH: usize = 24;
    const OF_KERNEL: usize = 28;
    let mut name = [0u8; 64];
    let mut info = [0u8; 32];
    info[NAME..NAME + 8].copy_from_slice(&(name.as_mut_ptr() as u64).to_ne_bytes());
    info[NAME_LENGTH..NAME_LENGTH + 4].copy_from_slice(&(name.len() as u32).to_ne_bytes());
    let mut attr = Attr::new().fd(at::INFO_FD, fd).u32(at::INFO_SIZE, info.len() as u32).output(at::INFO, &mut info);
    // SAFETY: the information is as long as said; the one address in it is that of the room for the name, which is as long as said there; the
    // rest is zero.
    unsafe { call(Command::ObjectInfo, &mut attr) }?;
    let of_kernel = info[OF_KERNEL..].iter().any(|b| *b != 0);
    Ok(of_kernel.then(|| name.split(|b| *b == 0).next().unwrap_or_default().to_vec()))
}

/// A map (`struct bpf_map_info`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapInfo {
    /// `enum bpf_map_type`.
    pub kind: u32,
    /// Id.
    pub id: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries.
    pub entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
    /// Name.
    pub name: String,
}

/// Reads the information about a map.
pub fn map(fd: &impl AsFd) -> io::Result<MapInfo> {
    let raw = Raw::get(fd.as_fd())?;
    Ok(MapInfo {
        kind: raw.u32(0),
        id: raw.u32(4),
        key_size: raw.u32(8),
        value_size: raw.u32(12),
        entries: raw.u32(16),
        flags: raw.u32(20),
        name: raw.name(24),
    })
}

/// A link (`struct bpf_link_info`). Classic tracepoints have none: their descriptor is a perf event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// `enum bpf_link_type`: 1 raw tracepoint, 2 tracing, 4 iterator, 7 perf event.
    pub kind: u32,
    /// Id.
    pub id: u32,
    /// The program.
    pub program: u32,
}

/// Reads the information about a link.
pub fn link(fd: &impl AsFd) -> io::Result<LinkInfo> {
    let raw = Raw::get(fd.as_fd())?;
    Ok(LinkInfo { kind: raw.u32(0), id: raw.u32(4), program: raw.u32(8) })
}

/// Lets the kernel measure programs while the descriptor is held; costs each run of each program two clock readings.
pub fn enable_stats() -> io::Result<OwnedFd> {
    let mut attr = Attr::new().u32(at::STATS_TYPE, 0);
    // SAFETY: no addresses in it.
    unsafe { call_fd(Command::EnableStats, &mut attr) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::fake;

    #[test]
    fn ids_are_walked_to_the_end() {
        let hook = |_, attr: &mut Attr| {
            let next = match attr.get_u32(at::ID) {
                0 => 3,
                3 => 70,
                _ => return fake::refuse(libc::ENOENT),
            };
            *attr = Attr::new().u32(at::NEXT_ID, next);
            Ok(0)
        };
        assert_eq!(fake::with(hook, || ids(Object::Map)).unwrap(), [3, 70]);
        assert!(fake::with(|_, _| fake::refuse(libc::EPERM), || ids(Object::Link)).is_err());
    }
}
