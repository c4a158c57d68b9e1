//! The programs at fork and exec: loaded, attached.

use super::super::task_ids;
use super::maps::Maps;
use bpf::unwind::tasks::{self, TaskMaps, TaskOffsets};
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::btf::KernelBtf;

type Generator = fn(&TaskMaps, &TaskOffsets) -> Result<bpf::Program, bpf::AsmError>;

/// Tracepoint, name of the program, program.
const ALL: [(&str, &str, Generator); 2] =
    [("sched_process_fork", "trapline_ufork", tasks::fork), ("task_rename", "trapline_uexec", tasks::exec)];

/// Loads and attaches them. They are detached when the links are dropped.
pub(super) fn attach(btf: &KernelBtf, maps: &Maps) -> io::Result<Vec<Link>> {
    let (maps, at) = (maps.for_tasks(), offsets(btf)?);
    let load = |(tracepoint, name, make): &(&str, &str, Generator)| {
        let program = make(&maps, &at).map_err(|e| io::Error::other(e.to_string()))?;
        let bytes = program.bytes();
        let spec = ProgramSpec::new(ProgramKind::RawTracepoint, name, &bytes);
        let program = Program::load(&spec).map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
        Link::raw_tracepoint(&program, tracepoint)
    };
    ALL.iter().map(load).collect()
}

fn offsets(btf: &KernelBtf) -> io::Result<TaskOffsets> {
    let missing = |name| io::Error::other(format!("the kernel's BTF has no {name}"));
    let field = |root, name| btf.field_of(root, &[name]).map(|f| f.offset as i32).ok_or_else(|| missing(name));
    Ok(TaskOffsets {
        tgid: field("task_struct", "tgid")?,
        mm: field("task_struct", "mm")?,
        start_code: field("mm_struct", "start_code")?,
        namespace: task_ids::namespace(btf)?,
    })
}
