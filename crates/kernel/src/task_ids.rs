//! Where the kernel keeps the ids of a task, and which of them are those of trapline's pid namespace.

use bpf::btf_offsets::{Ids, Namespace};
use bpf::syscalls::iterator;
use std::io;
use sys::bpf::prog::{Program, ProgramSpec};
use sys::bpf::{iter::read, link::Link};
use sys::btf::{KernelBtf, Kind};
use sys::proc;

/// Where a task's ids are.
pub fn offsets(btf: &KernelBtf) -> io::Result<Ids> {
    let missing = || io::Error::from(io::ErrorKind::Unsupported);
    let field = |root: &str, name: &str| btf.field_of(root, &[name]).map(|f| f.offset as i32).ok_or_else(missing);
    let upid = btf.find(Kind::Struct, "upid").and_then(|id| btf.size(id)).ok_or_else(missing)?;
    Ok(Ids {
        thread_pid: field("task_struct", "thread_pid")?,
        group_leader: field("task_struct", "group_leader")?,
        level: field("pid", "level")?,
        numbers: field("pid", "numbers")? + field("upid", "nr")?,
        upid: upid as i32,
    })
}

/// Where the ids of trapline's own pid namespace are; none where that is the initial one.
pub fn namespace(btf: &KernelBtf) -> io::Result<Option<Namespace>> {
    if proc::pid_namespace().is_none() {
        return Ok(None);
    }
    let missing = || io::Error::from(io::ErrorKind::Unsupported);
    let at = offsets(btf)?;
    let id = btf.find(Kind::Func, "bpf_iter_task").ok_or_else(missing)?;
    let program = iterator::level(&at).map_err(io::Error::other)?;
    let program = Program::load(&ProgramSpec::iterator("trapline_level", &program.bytes(), id))
        .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
    let mut bytes = Vec::new();
    read(&Link::iterator(&program, &[])?, &mut bytes)?;
    let level = bytes.try_into().map(i32::from_le_bytes).map_err(|_| missing())?;
    let short = |n: i32| i16::try_from(n).map_err(|_| missing());
    Ok(Some(Namespace {
        thread_pid: short(at.thread_pid)?,
        group_leader: short(at.group_leader)?,
        number: short(at.numbers + level * at.upid)?,
    }))
}
