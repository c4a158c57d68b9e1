//! Whether a stopped thread can load a library now: it holds no lock of the loader or of malloc, which loading needs.
//!
//! Its stack is walked. A frame of the loader, of an allocator, or of one of glibc's functions below is one too many. So is a thread that is
//! inside glibc alone, because it begins or ends.

use super::library::Libc;
use super::target::name_of;
use crate::backend::code::{Code, Files};
use std::ops::Range;
use sys::maps::{Map, PROT_EXEC};
use sys::remote::Thread;
use unwind::Rule;
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
    pub fn new(pid: i32, maps: &[Map], libc: Libc) -> Process {
        let holds = |m: &&Map| {
            let name = name_of(m);
            m.prot & PROT_EXEC != 0 && (name.starts_with("ld-") || name.starts_with("ld.so") || name.contains("alloc"))
        };
        let others = maps.iter().filter(holds).map(|m| m.range.0..m.range.1).collect();
        Process { code: Code::of(pid, &mut Files::default()).unwrap_or_default(), libc, others }
    }

    /// Its glibc.
    pub fn libc(&self) -> &Libc {
        &self.libc
    }

    /// Whether this thread can load a library.
    pub fn is_suitable(&self, thread: &Thread) -> bool {
        let Ok((pc, registers)) = sys::ptrace::frame_registers(thread.tid()) else { return false };
        let target = Stopped { tid: thread.tid(), registers, code: &self.code };
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

/// A stopped thread, whose memory is read where it is.
struct Stopped<'p> {
    tid: i32,
    registers: [u64; 16],
    code: &'p Code,
}

impl Target for Stopped<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (sys::mem::read(self.tid, address, &mut word).ok()? == 8).then(|| u64::from_le_bytes(word))
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        self.code.rule(address)
    }

    fn unmapped(&mut self) -> Option<Rule> {
        self.code.unmapped()
    }

    fn register(&mut self, number: u8) -> Option<u64> {
        self.registers.get(usize::from(number)).copied()
    }
}
