//! The registers of blocked threads, which run no instruction for it: a task iterator reads those with which they have entered the kernel
//! (Linux 5.15).

use super::task_ids;
use bpf::syscalls::iterator;
use std::collections::HashMap;
use std::io;
use sys::bpf::prog::{Program, ProgramSpec};
use sys::bpf::{iter::read, link::Link};
use sys::btf::{KernelBtf, Kind};

/// The registers of a thread that a call keeps: rip, rsp, rbp, rbx, r12 to r15.
pub type Registers = [u64; 8];

/// Those of all threads of trapline's pid namespace, by their ids. They are stale where a thread runs.
///
/// # Errors
/// This kernel has no such iterator, or not for this user.
pub fn of_all() -> io::Result<HashMap<i32, Registers>> {
    let missing = || io::Error::from(io::ErrorKind::Unsupported);
    let types = ["task_struct", "pid", "upid"].map(|name| (Kind::Struct, name));
    let btf = KernelBtf::kernel_for(&[&types[..], &[(Kind::Func, "bpf_iter_task")]].concat())?;
    let at = task_ids::offsets(&btf)?;
    let id = btf.find(Kind::Func, "bpf_iter_task").ok_or_else(missing)?;
    let source = iterator::registers(&at).map_err(io::Error::other)?;
    let program = Program::load(&ProgramSpec::iterator("trapline_regs", &source.bytes(), id))
        .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
    let mut bytes = Vec::new();
    read(&Link::iterator(&program, &[])?, &mut bytes)?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> HashMap<i32, Registers> {
    let record = |r: &[u8]| {
        let word = |at: usize| r.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        (word(0) as i32, std::array::from_fn(|nth| word(8 + 8 * nth)))
    };
    bytes.chunks_exact(iterator::REGISTERS).map(record).filter(|(tid, _)| *tid != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_by_thread_and_those_of_other_namespaces_are_left_out() {
        let record = |tid: u64, pc: u64| [tid | 9 << 32, pc, 2, 3, 4, 5, 6, 7, 8].map(u64::to_le_bytes).concat();
        let all = parse(&[record(7, 1), record(0, 5)].concat());
        assert_eq!(all, HashMap::from([(7, [1, 2, 3, 4, 5, 6, 7, 8])]));
        assert!(parse(&record(7, 1)[..71]).is_empty());
    }
}
