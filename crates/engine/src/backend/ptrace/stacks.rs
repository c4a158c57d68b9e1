//! Stacks of stopped threads: registers and a copy of the stack in, `process:stack` events and their ids out.
//!
//! ```text
//!  PTRACE_GETREGS ─► registers ──┐
//!  process_vm_readv: 64 KiB ─────┼─► unwind::Walk ─► frames ─► id ─► reported once
//!  /proc/PID/maps ─► tables ─────┘
//! ```
//!
//! Tables are built once for each file, which is open only while it is read. What a process has mapped is read when it is first needed, again
//! after each exec and each call seen here that changes mappings, and when an address is in no mapping.

use super::emit::Emitter;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::Read;
use std::rc::Rc;
use symbols::headers::Headers;
use sys::maps::{Map, PROT_EXEC};
use unwind::Rule;
use unwind::build::Module;
use unwind::walk::{Registers, Target, Walk};

/// Bytes of a stack that are copied at once, and reads of 8 bytes elsewhere.
const COPY: usize = 64 << 10;
const MOST_READS: u32 = 256;
/// The largest file that tables are built of, bytes; files with tables; processes; stacks whose ids are remembered.
const MAX_FILE: u64 = 512 << 20;
const MOST_FILES: usize = 1024;
const MOST_PROCESSES: usize = 4096;
const MOST_STACKS: usize = 1 << 20;

/// Calls that replace or end the program: their stacks are those of the entry.
const AT_ENTRY: [&str; 5] = ["execve", "execveat", "exit", "exit_group", "rt_sigreturn"];
/// Calls that change what is mapped.
const MAPPING: [&str; 5] = ["mmap", "munmap", "mremap", "mprotect", "pkey_mprotect"];

/// Whether the stack of a call is taken at its entry.
pub fn is_at_entry(call: &str) -> bool {
    AT_ENTRY.contains(&call)
}

/// Whether a call changes what is mapped.
pub fn changes_mappings(call: &str) -> bool {
    MAPPING.contains(&call)
}

/// The tables of a file, and where its code lies.
struct Tables {
    module: Module,
    headers: Headers,
}

/// Mapped code; without tables, frames are guessed.
struct Code {
    start: u64,
    end: u64,
    offset: u64,
    tables: Option<Rc<Tables>>,
}

/// What a file is known by: device, inode and path.
type FileKey = ((u32, u32, u64), Vec<u8>);

/// The tables of all files, what each process has mapped, and the stacks that were reported.
#[derive(Default)]
pub struct Stacks {
    files: HashMap<FileKey, Option<Rc<Tables>>>,
    processes: HashMap<i32, Vec<Code>>,
    reported: HashSet<u64>,
    copy: Vec<u8>,
    frames: Vec<u64>,
}

impl Stacks {
    /// What the process has mapped is not known any more.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// The id of the stack of a stopped thread, at most `most` frames of it, which is reported where it was not before; 0: there is none.
    pub fn of(&mut self, (pid, tid): (i32, i32), most: usize, out: &mut Emitter) -> u64 {
        let Ok((pc, registers)) = sys::ptrace::frame_registers(tid) else { return 0 };
        let (bp, sp) = (registers[6], registers[7]);
        self.copy.resize(COPY, 0);
        let copied = sys::mem::read(tid, sp, &mut self.copy).unwrap_or(0);
        let mut fresh = !self.processes.contains_key(&pid);
        let (mut ended, mut guessed);
        loop {
            if fresh {
                self.look_at(pid);
            }
            let Stacks { processes, copy, frames, .. } = self;
            let code = processes.get(&pid).map(Vec::as_slice).unwrap_or_default();
            let target = Stopped { tid, sp, registers, copy: &copy[..copied], code, reads: 0 };
            let mut walk = Walk::new(target, Registers { pc, sp, bp }, most.min(unwind::stack::MAX_FRAMES));
            frames.clear();
            guessed = 0;
            for frame in walk.by_ref() {
                guessed += u64::from(frame.is_guessed());
                frames.push(frame.0);
            }
            ended = walk.ended() as u64;
            // Perhaps it was mapped since.
            if fresh || walk.ended() != unwind::Ended::NoMapping {
                break;
            }
            fresh = true;
        }
        let id = id_of(&self.frames, ended);
        if !self.reported.contains(&id) {
            let bytes: Vec<u8> = self.frames.iter().flat_map(|f| f.to_le_bytes()).collect();
            if !out.stack((pid, tid), [id, 0, ended, guessed], &bytes) {
                return 0;
            }
            if self.reported.len() >= MOST_STACKS {
                self.reported.clear();
            }
            self.reported.insert(id);
        }
        id
    }

    /// Reads what a process has mapped.
    fn look_at(&mut self, pid: i32) {
        let maps = sys::maps::of(pid).unwrap_or_default();
        let code: Vec<Code> = maps
            .into_iter()
            .filter(|m| m.prot & PROT_EXEC != 0)
            .map(|m| {
                let tables = self.tables(pid, &m);
                Code { start: m.range.0, end: m.range.1, offset: m.offset, tables }
            })
            .collect();
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        self.processes.insert(pid, code);
    }

    fn tables(&mut self, pid: i32, map: &Map) -> Option<Rc<Tables>> {
        let key = (map.file, map.path.clone());
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        let built = bytes_of(pid, map).and_then(|bytes| {
            let headers = Headers::read(&bytes[..])?;
            Some(Rc::new(Tables { module: Module::build(&bytes).ok()?, headers }))
        });
        if self.files.len() >= MOST_FILES {
            self.files.clear();
        }
        self.files.insert(key, built.clone());
        built
    }
}

/// The file that is mapped, or the vDSO.
fn bytes_of(pid: i32, map: &Map) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if map.path == b"[vdso]" {
        bytes.resize(usize::try_from(map.range.1.checked_sub(map.range.0)?).ok().filter(|n| *n <= 1 << 20)?, 0);
        let n = sys::mem::read(pid, map.range.0, &mut bytes).ok()?;
        bytes.truncate(n);
        return Some(bytes);
    }
    if map.file.2 == 0 {
        return None;
    }
    let file = sys::maps::open(pid, map.range, &map.path, map.file).ok()?;
    file.metadata().ok().filter(|m| m.len() <= MAX_FILE)?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The id of a stack: never 0.
fn id_of(frames: &[u64], ended: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (frames, ended).hash(&mut hasher);
    hasher.finish().max(1)
}

/// A stopped thread, with a copy of the inner part of its stack.
struct Stopped<'s> {
    tid: i32,
    sp: u64,
    registers: [u64; 16],
    copy: &'s [u8],
    code: &'s [Code],
    reads: u32,
}

impl Target for Stopped<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.wrapping_sub(self.sp)).ok();
        if let Some(word) = at.and_then(|at| self.copy.get(at..)?.first_chunk::<8>()) {
            return Some(u64::from_le_bytes(*word));
        }
        if self.reads >= MOST_READS {
            return None;
        }
        self.reads += 1;
        let mut word = [0; 8];
        let n = sys::mem::read(self.tid, address, &mut word).ok()?;
        (n == 8).then(|| u64::from_le_bytes(word))
    }

    fn register(&mut self, number: u8) -> Option<u64> {
        self.registers.get(usize::from(number)).copied()
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        let at = self.code.partition_point(|c| c.end <= address);
        let code = self.code.get(at).filter(|c| c.start <= address)?;
        let Some(tables) = &code.tables else { return Some(Rule::NONE) };
        let offset = address.wrapping_sub(code.start).wrapping_add(code.offset);
        Some(tables.headers.address_of(offset).map_or(Rule::NONE, |own| tables.module.rule(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwind::Frame;

    #[test]
    fn ids_are_those_of_the_frames() {
        let frames = [1 | Frame::EXACT, 2, 3];
        assert_eq!(id_of(&frames, 1), id_of(&frames, 1));
        assert_ne!(id_of(&frames, 1), id_of(&frames[..2], 1));
        assert_ne!(id_of(&frames, 1), id_of(&frames, 2));
        assert_ne!(id_of(&[], 0), 0);
    }

    #[test]
    fn memory_outside_of_the_copy_is_read_a_bounded_number_of_times() {
        let tid = sys::process::own_pid();
        let here = [7u64; 4];
        let address = here.as_ptr() as u64;
        let copy = 5u64.to_le_bytes();
        let mut stopped = Stopped { tid, sp: 0x1000, registers: [0; 16], copy: &copy, code: &[], reads: 0 };
        assert_eq!((stopped.read(0x1000), stopped.read(address)), (Some(5), Some(7)));
        stopped.reads = MOST_READS;
        assert_eq!((stopped.read(0x1000), stopped.read(address), stopped.rule(1)), (Some(5), None, None));
    }
}
