//! What the ptracer knows of one thread.

use engine::capture::Memory;
use events::encode;
use events::layout::{Layout, NO_CPU};
use events::schema::Schema;
use sys::intercept::Slot;
use sys::ptrace::{Changed, FrameRegisters};

/// A call between its entry and its exit.
#[derive(Debug)]
pub struct Pending {
    /// What it is.
    pub schema: &'static Schema,
    /// Its layout.
    pub layout: &'static Layout,
    /// Its number.
    pub nr: u64,
    /// Moment of entry, ns of the monotonic clock.
    pub start: u64,
    /// Argument registers (for `raw`: number, architecture, registers).
    pub args: [u64; 8],
    /// Capture bits so far.
    pub caps: u16,
    /// Tails of entry.
    pub tails: Vec<u8>,
    /// Processor at entry.
    pub cpu: u16,
    /// A notice was written.
    pub noticed: bool,
    /// The argument that takes the id of its stack.
    pub stack: Option<usize>,
    /// The registers that its stack is walked from; none before the stop of a thread that was attached to in the call.
    pub registers: Option<FrameRegisters>,
    /// The event is wanted (else only its end is awaited).
    pub wanted: bool,
    /// The attach interrupted the call and the kernel restarts it: the next entry is still this call.
    pub restarting: bool,
    /// Hidden code makes it on the program's behalf: it is shown if it succeeds.
    pub on_behalf: bool,
}

impl Pending {
    /// Forgets what was read of the thread's memory: it may be another program's by now.
    pub fn forget_memory(&mut self) {
        self.caps = 0;
        self.tails.clear();
        for spec in self.layout.tails.iter().filter(|spec| self.wanted && !spec.out) {
            encode::empty_tail(&mut self.tails, spec.shape);
        }
    }
}

/// One traced thread.
pub struct Thread {
    /// Thread id.
    pub tid: i32,
    /// Process id.
    pub pid: i32,
    /// The call it is in.
    pub pending: Option<Pending>,
    /// The command before its execve: nothing of it is shown.
    pub starting: bool,
    /// Stopped for the first time (signal and event), and to be resumed once its creator's event has reported it.
    pub held: Option<(i32, i32)>,
    /// Its creator's event did not come in time: it was reported without a creator.
    pub adopted: bool,
    /// Its process is released: so is the thread, at its next stop.
    pub leaving: bool,
    /// The state at the previous stop could not be read, and its call is counted as lost.
    pub unread: bool,
    /// Its program has a seccomp filter of its own, which may refuse calls at which trapline's filter would have it stop: it stops at
    /// all calls.
    pub refuses: bool,
    /// What has another value for the length of its call, until its next stop.
    pub changed: Option<Changed>,
    /// Its process and parent are known.
    pub known: bool,
    /// Address of its `struct rseq`.
    pub rseq: Option<u64>,
    /// How often that was asked for in vain.
    pub rseq_tries: u8,
    /// Tails of the last call, kept for their allocation.
    pub spare: Vec<u8>,
    /// Where it records calls itself.
    pub slot: Option<Slot>,
    /// It was seen to whether it gets a slot.
    pub looked: bool,
    /// When the last call that it has recorded ended, ns.
    pub ended: u64,
    /// When the call that it is in, and records, began, and that of which a notice was written: by the time stamp counter.
    pub began: u64,
    /// See `began`.
    pub noticed: u64,
    /// It executes single instructions: where it is after a jump that is not the program's.
    pub stepped: u64,
}

impl Thread {
    /// A thread of process `pid` that was just seen.
    pub fn new(tid: i32, pid: i32) -> Thread {
        Thread {
            tid,
            pid,
            pending: None,
            starting: false,
            held: None,
            adopted: false,
            leaving: false,
            unread: false,
            refuses: false,
            changed: None,
            known: false,
            rseq: None,
            rseq_tries: 0,
            spare: Vec::new(),
            slot: None,
            looked: false,
            ended: 0,
            began: 0,
            noticed: 0,
            stepped: 0,
        }
    }

    /// The thread's memory for the length of one stop.
    pub fn memory(&mut self) -> ThreadMemory {
        if self.rseq.is_none() && self.rseq_tries < 16 {
            self.rseq = sys::ptrace::rseq_address(self.tid);
            self.rseq_tries += 1;
        }
        ThreadMemory { tid: self.tid, rseq: self.rseq, cpu: NO_CPU }
    }

    /// Forgets what an execve makes stale.
    pub fn reset_image(&mut self) {
        self.rseq = None;
        self.rseq_tries = 0;
        self.slot = None;
    }
}

/// The memory of a stopped thread. The first read also reads the processor from its rseq area.
pub struct ThreadMemory {
    tid: i32,
    rseq: Option<u64>,
    /// The processor that the thread was on when it last ran in user space, [`NO_CPU`] before a read.
    ///
    /// The kernel updates rseq on the way back to user space, after the exit stop (`kernel/entry/common.c`), so at both
    /// stops of a call this is the processor that the call was entered on.
    pub cpu: u16,
}

impl Memory for ThreadMemory {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        // struct rseq: u32 cpu_id_start, u32 cpu_id (include/uapi/linux/rseq.h); negative values mean unregistered.
        if let Some(rseq) = self.rseq.take() {
            let mut cpu = [0u8; 4];
            return match sys::mem::read2(self.tid, (rseq + 4, &mut cpu), (addr, buf)) {
                Ok((4, n)) => {
                    self.cpu = u16::try_from(u32::from_le_bytes(cpu)).unwrap_or(NO_CPU);
                    n
                }
                _ => sys::mem::read(self.tid, addr, buf).unwrap_or(0),
            };
        }
        sys::mem::read(self.tid, addr, buf).unwrap_or(0)
    }
}
