//! Stacks of stopped threads, and whether one can load a library now: it holds no lock of the loader or of malloc, which loading needs.
//!
//! Its stack is walked. A frame of the loader, of an allocator, or of one of glibc's functions below is one too many. So is a thread that is
//! inside glibc alone, because it begins or ends.

use super::library::Libc;
use super::target::name_of;
use engine::backend::code::{Code, Files, build_here};
use std::collections::HashMap;
use std::ops::Range;
use sys::maps::{Map, PROT_EXEC};
use sys::remote::Thread;
use unwind::Rule;
use unwind::stack::Ended;
use unwind::walk::{Registers, Target, Walk};

/// The beginnings of names of glibc's functions that hold such a lock, or are about to end the process.
const HOLDING: [&str; 20] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "mall",
    "__libc_memalign",
    "__libc_alloc",
    "dl",
    "_dl",
    "__libc_dl",
    "fork",
    "_Fork",
    "exit",
    "__cxa",
    "quick_exit",
];
/// The most frames that are looked at.
const FRAMES: usize = 256;

/// What is known of a process.
pub struct Process {
    code: Code,
    libc: Libc,
    /// Code of the loader and of allocators.
    others: Vec<Range<u64>>,
}

impl Process {
    /// Reads it.
    pub fn new(pid: i32, maps: &[Map], libc: Libc, files: &mut Files) -> Process {
        let holds = |m: &&Map| {
            let name = name_of(m);
            m.prot & PROT_EXEC != 0 && (name.starts_with("ld-") || name.starts_with("ld.so") || name.contains("alloc"))
        };
        let others = maps.iter().filter(holds).map(|m| m.range.0..m.range.1).collect();
        Process { code: Code::of(pid, files, &mut build_here).unwrap_or_default(), libc, others }
    }

    /// Its glibc.
    pub fn libc(&self) -> &Libc {
        &self.libc
    }

    /// Whether this thread can load a library.
    pub fn is_suitable(&self, thread: &Thread) -> bool {
        let Ok(frame) = sys::ptrace::frame_registers(thread.tid()) else { return false };
        let (pc, registers) = (frame.pc, frame.by_number);
        let hidden = HashMap::new();
        let target = Stopped { tid: thread.tid(), registers, code: &self.code, areas: &[], hidden: &hidden };
        let walk = Walk::new(target, Registers { pc, sp: registers[7], bp: registers[6] }, FRAMES);
        let mut left_libc = false;
        for frame in walk {
            let at = frame.lookup();
            if self.others.iter().any(|o| o.contains(&at)) {
                return false;
            }
            left_libc |= !self.libc.code.contains(&at);
            if self.libc.names(at).any(|n| HOLDING.iter().any(|h| n.starts_with(h))) {
                return false;
            }
        }
        left_libc
    }
}

/// The code of a process, by which the stacks of its threads are walked.
pub struct Stacks {
    code: Code,
    /// The agent's areas, in order: frames in them are known to the shadow stacks alone.
    pub areas: Vec<Range<u64>>,
    /// The return addresses that stubs have taken the place of, by place.
    pub hidden: HashMap<u64, u64>,
}

impl Stacks {
    /// Reads what a process has mapped.
    pub fn of(pid: i32, files: &mut Files) -> Stacks {
        let code = Code::of(pid, files, &mut build_here).unwrap_or_default();
        Stacks { code, areas: Vec::new(), hidden: HashMap::new() }
    }

    /// The pcs of all frames of a thread; none where its stack cannot be walked to its end. A frame in an area is the last one.
    pub fn walk(&self, thread: &Thread) -> Option<Vec<u64>> {
        let sys::ptrace::FrameRegisters { pc, by_number: registers, .. } =
            sys::ptrace::frame_registers(thread.tid()).ok()?;
        let stopped =
            Stopped { tid: thread.tid(), registers, code: &self.code, areas: &self.areas, hidden: &self.hidden };
        let mut walk = Walk::new(stopped, Registers { pc, sp: registers[7], bp: registers[6] }, MANY);
        let pcs: Vec<u64> = walk.by_ref().map(|frame| frame.address()).collect();
        let in_area = pcs.last().is_some_and(|pc| is_in(&self.areas, *pc));
        (walk.ended() == Ended::Outermost || in_area).then_some(pcs)
    }
}

/// The most frames of a thread that is looked for in code that changes.
const MANY: usize = 100_000;

fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    let at = ranges.partition_point(|r| r.end <= address);
    ranges.get(at).is_some_and(|r| r.contains(&address))
}

/// A stopped thread, whose memory is read where it is.
struct Stopped<'p> {
    tid: i32,
    registers: [u64; 16],
    code: &'p Code,
    areas: &'p [Range<u64>],
    hidden: &'p HashMap<u64, u64>,
}

impl Target for Stopped<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (sys::mem::read(self.tid, address, &mut word).ok()? == 8).then(|| u64::from_le_bytes(word))
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        if is_in(self.areas, address) { None } else { self.code.rule(address) }
    }

    fn unmapped(&mut self) -> Option<Rule> {
        if self.areas.is_empty() { self.code.unmapped() } else { None }
    }

    fn hidden(&mut self, place: u64) -> Option<u64> {
        self.hidden.get(&place).copied()
    }

    fn register(&mut self, number: u8) -> Option<u64> {
        self.registers.get(usize::from(number)).copied()
    }
}
