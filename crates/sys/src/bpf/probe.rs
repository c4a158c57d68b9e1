//! What bpf(2) allows here, found by trying: each feature is used once and undone at once.
//!
//! Nothing is guessed from versions. Everything made is a descriptor that is closed before [`features`] returns; the
//! tracepoint that is attached for a moment is one that only an execve passes.

use super::iter;
use super::link::Link;
use super::map::{ANY, Map};
use super::prog::{LoadError, Program, ProgramKind, ProgramSpec, btf_load};
use super::ring::Ring;
use crate::btf::{self, KernelBtf, Kind};
use crate::process;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `r0 = 0; exit`.
const NOTHING: [u8; 16] = [0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];

/// Calls bpf_loop with the function at 8, once.
const LOOP: [[u8; 8]; 10] = [
    [0xb7, 1, 0, 0, 1, 0, 0, 0],    // r1 = 1
    [0x18, 0x42, 0, 0, 6, 0, 0, 0], // r2 = the function that many instructions after the next one
    [0; 8],
    [0xb7, 3, 0, 0, 0, 0, 0, 0],   // r3 = 0
    [0xb7, 4, 0, 0, 0, 0, 0, 0],   // r4 = 0
    [0x85, 0, 0, 0, 181, 0, 0, 0], // call bpf_loop
    [0xb7, 0, 0, 0, 0, 0, 0, 0],   // r0 = 0
    [0x95, 0, 0, 0, 0, 0, 0, 0],   // exit
    [0xb7, 0, 0, 0, 0, 0, 0, 0],   // r0 = 0
    [0x95, 0, 0, 0, 0, 0, 0, 0],   // exit
];
/// Where its function is.
const LOOPED: u32 = 8;

/// A jump that the kernel takes when a loop had too many rounds.
const MAY_GOTO: [[u8; 8]; 4] = [
    [0xb7, 0, 0, 0, 0, 0, 0, 0], // r0 = 0
    [0xe5, 0, 1, 0, 0, 0, 0, 0], // may_goto +1
    [0xb7, 0, 0, 0, 0, 0, 0, 0], // r0 = 0
    [0x95, 0, 0, 0, 0, 0, 0, 0], // exit
];

/// The results.
#[derive(Debug)]
pub struct Features {
    /// PROG_LOAD of a tracing program.
    pub program: io::Result<()>,
    /// One that calls a function of its own back (`bpf_loop`, Linux 5.17).
    pub loops: io::Result<()>,
    /// The kernel's types (`/sys/kernel/btf/vmlinux`) can be read.
    pub types: io::Result<()>,
    /// A ring that is mapped (Linux 5.8).
    pub ring: io::Result<()>,
    /// Storage that each task carries (Linux 5.11), set from outside through a pidfd.
    pub task_storage: io::Result<()>,
    /// A typed tracepoint (`tp_btf`), attached.
    pub typed_tracepoint: io::Result<()>,
    /// An iterator over tasks (Linux 5.8), opened.
    pub task_iterator: io::Result<()>,
    /// A pidfd of any thread (Linux 6.9): attaching to a process with several threads needs it.
    pub thread_pidfd: io::Result<()>,
}

/// Whether a tracing program can be loaded, tasks can carry storage and the kernel's types can be read: which is what is most often refused
/// or missing. Takes a tenth of a millisecond.
pub fn usable() -> io::Result<()> {
    loops()?;
    task_storage()?;
    std::fs::File::open("/sys/kernel/btf/vmlinux").map(drop)
}

/// Tries everything; takes a few milliseconds.
pub fn features() -> Features {
    let _ = super::raise_memory_limit();
    let types = KernelBtf::kernel();
    let typed = |what: fn(&KernelBtf) -> io::Result<()>| match &types {
        Ok(btf) => what(btf),
        Err(e) => Err(io::Error::new(e.kind(), "the kernel's types cannot be read")),
    };
    Features {
        program: program(),
        loops: loops(),
        ring: ring(),
        task_storage: task_storage(),
        typed_tracepoint: typed(typed_tracepoint),
        task_iterator: typed(task_iterator),
        thread_pidfd: thread_pidfd(),
        types: types.map(drop),
    }
}

/// Whether a pidfd of any thread can be had (Linux 6.9).
pub fn thread_pidfd() -> io::Result<()> {
    process::pidfd(process::own_pid(), true).map(drop)
}

fn program() -> io::Result<()> {
    load(&ProgramSpec::new(ProgramKind::RawTracepoint, "trapline_probe", &NOTHING)).map(drop)
}

fn loops() -> io::Result<()> {
    let (blob, main, looped) = btf::build::program_types();
    let types = btf_load(&blob).map_err(|e| e.error)?;
    let functions = [[0, main], [LOOPED, looped]].concat().iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
    let code = LOOP.concat();
    let mut spec = ProgramSpec::new(ProgramKind::RawTracepoint, "trapline_probe", &code);
    spec.functions = Some((types.as_fd(), &functions));
    load(&spec).map(drop).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => io::Error::other("no bpf_loop (Linux 5.17)"),
        _ => e,
    })
}

/// Whether programs may have loops in place, which the kernel ends (`may_goto`, Linux 6.9).
pub fn may_goto() -> bool {
    load(&ProgramSpec::new(ProgramKind::RawTracepoint, "trapline_probe", &MAY_GOTO.concat())).is_ok()
}

fn load(spec: &ProgramSpec) -> io::Result<Program> {
    Program::load(spec).map_err(|e: LoadError| e.error)
}

fn ring() -> io::Result<()> {
    let map = Map::ring("trapline_probe", crate::mapping::page_size() as u32)?;
    Ring::new(&map).map(drop)
}

fn task_storage() -> io::Result<()> {
    let (blob, key, value) = btf::build::value_types("trapline_probe", 8);
    let types = btf_load(&blob).map_err(|e| e.error)?;
    let map = Map::task_storage("trapline_probe", types.as_fd(), key, value, 8)?;
    let own = process::pidfd(process::own_pid(), false)?;
    map.update(&own.as_raw_fd().to_ne_bytes(), &[0; 8], ANY)
}

fn typed_tracepoint(btf: &KernelBtf) -> io::Result<()> {
    let id = find(btf, Kind::Typedef, "btf_trace_sched_process_exec")?;
    let program = load(&ProgramSpec::typed_tracepoint("trapline_probe", &NOTHING, id))?;
    Link::tracing(&program).map(drop)
}

fn task_iterator(btf: &KernelBtf) -> io::Result<()> {
    let id = find(btf, Kind::Func, "bpf_iter_task")?;
    let program = load(&ProgramSpec::iterator("trapline_probe", &NOTHING, id))?;
    iter::open(&Link::iterator(&program, &[])?).map(drop)
}

fn find(btf: &KernelBtf, kind: Kind, name: &str) -> io::Result<u32> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("this kernel does not have {name}"));
    btf.find(kind, name).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::fake;
    use std::time::Instant;

    #[test]
    fn a_refusal_is_told_per_feature() {
        let found = fake::with(|_, _| fake::refuse(libc::EPERM), features);
        for r in [found.program, found.ring, found.task_storage, found.typed_tracepoint, found.task_iterator] {
            assert!(matches!(r.unwrap_err().kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound));
        }
        assert!(fake::with(|_, _| fake::refuse(libc::EPERM), usable).is_err());
    }

    #[test]
    fn descriptors_are_closed_again() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        features();
        let (before, began) = (open(), Instant::now());
        features();
        assert!(began.elapsed().as_millis() < 1000);
        // Other tests' threads open and close some too.
        assert!(open() < before + 5);
    }
}
