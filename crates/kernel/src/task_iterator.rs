//! The task iterator: reads which calls threads are in (Linux 5.8).

use super::task_ids;
use super::unwinder::fs_base_offset;
use bpf::capture_row::Frames;
use bpf::syscalls::Maps;
use bpf::syscalls::iterator::{self, BOUNDS, Stacks};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramSpec};
use sys::bpf::{iter::read, link::Link};
use sys::btf::{KernelBtf, Kind};

/// The loaded iterator.
pub struct TaskIterator {
    window: Map,
    link: Link,
    /// Its instructions.
    pub source: bpf::Program,
    _program: Program,
}

/// Loads the iterator, with what stacks are made of if calls have some and this kernel can (Linux 5.15). An error means that it has no
/// iterator, or does not allow trapline to use it.
pub fn load(btf: &KernelBtf, maps: &Maps, unknown: bool, frames: Frames) -> io::Result<TaskIterator> {
    let has_stacks = frames.user > 0 || frames.kernel > 0;
    let fs_base = if has_stacks { fs_base_offset(btf) } else { None };
    let stacks = fs_base.map(|fs_base| Stacks { fs_base, kernel: frames.kernel });
    load_with(btf, maps, unknown, stacks).or_else(|e| match stacks {
        Some(_) => load_with(btf, maps, unknown, None),
        None => Err(e),
    })
}

fn load_with(btf: &KernelBtf, maps: &Maps, unknown: bool, stacks: Option<Stacks>) -> io::Result<TaskIterator> {
    let at = task_ids::offsets(btf)?;
    let missing = || io::Error::from(io::ErrorKind::Unsupported);
    let id = btf.find(Kind::Func, "bpf_iter_task").ok_or_else(missing)?;
    let window = Map::array("trapline_window", iterator::WINDOW, 1, 0)?;
    let source =
        iterator::in_flight(maps, window.as_fd().as_raw_fd(), &at, unknown, stacks).map_err(io::Error::other)?;
    let program = Program::load(&ProgramSpec::iterator("trapline_flight", &source.bytes(), id))
        .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
    let link = Link::iterator(&program, &[])?;
    Ok(TaskIterator { window, link, source, _program: program })
}

impl TaskIterator {
    /// Records of the calls in flight that began after `after` and not after `until`.
    pub fn read(&self, after: u64, until: u64) -> io::Result<Vec<u8>> {
        let mut window = [0; iterator::WINDOW as usize];
        window[..BOUNDS].copy_from_slice(&[after.to_le_bytes(), until.to_le_bytes()].concat());
        self.window.update(&0u32.to_le_bytes(), &window, 0)?;
        let mut bytes = Vec::new();
        read(&self.link, &mut bytes)?;
        Ok(bytes)
    }
}
