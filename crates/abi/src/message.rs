//! Messages on the socket between agent and collector: a stream socket (unix(7)), one connection per request.

/// What a collector calls the agent's entry point for (the entry point of its ELF file), with the address of an [`Invocation`], while it
/// keeps all threads of the process stopped but the one that makes the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// Fill in the answer, with a [`Hello`] behind it, and nothing else. Other threads may run.
    Look = 1,
    /// Take over what a dead collector has left, ask the collector at the socket with [`Reason::Attach`], and adopt signal handlers.
    Attach = 2,
    /// Restore all bytes and handlers; without [`FREE`], the unwinder's hook stays, for stubs to which threads will return.
    Detach = 3,
    /// Serve requests for tracers ([`crate::tracer`]) at the socket.
    Tracers = 4,
}

/// Bit of [`Invocation::flags`]: no thread is in a stub, or will return to one, and none is in the agent: areas and shared memory that are
/// not used any more can go.
pub const FREE: u32 = 1;
/// Bit of [`Invocation::flags`] in an answer: libc's functions lead to the agent's.
pub const HOOKED: u32 = 2;
/// Bit of [`Invocation::flags`] in an answer: tracers other than a recording are enabled ([`crate::tracer`]).
pub const TRACED: u32 = 4;

/// Argument and answer of a call of the agent's entry point. The socket's name follows, then the path of the agent's file and a NUL.
/// The call returns 0, or an errno.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Invocation {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`crate::VERSION`].
    pub version: u32,
    /// An [`Order`].
    pub order: u32,
    /// [`FREE`].
    pub flags: u32,
    /// Bytes of the socket's name.
    pub socket_len: u32,
    /// Bytes of the path, without NUL; 0: children that execute programs are not followed.
    pub path_len: u32,
    /// Answer: 1: a session is under way whose collector is alive; 2: whose collector is gone.
    pub session: u32,
    /// Answer: how many areas there are.
    pub areas: u32,
    /// Answer: where their table is, an array of [`crate::plan::Area`].
    pub areas_at: u64,
    /// Answer: as [`Hello::tls`].
    pub tls: i64,
    /// Answer: bytes of an entry of the shadow stack.
    pub stride: u64,
    /// Answer: patches that could not be undone, because other bytes were there.
    pub left: u64,
}

impl Invocation {
    /// Its bytes in memory.
    pub const SIZE: usize = size_of::<Invocation>();

    /// Writes it.
    pub fn bytes(&self) -> [u8; Invocation::SIZE] {
        let mut bytes = [0; Invocation::SIZE];
        let (words, longs) = bytes.split_at_mut(32);
        let small = [
            self.magic,
            self.version,
            self.order,
            self.flags,
            self.socket_len,
            self.path_len,
            self.session,
            self.areas,
        ];
        words.chunks_exact_mut(4).zip(small).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        let large = [self.areas_at, self.tls as u64, self.stride, self.left];
        longs.chunks_exact_mut(8).zip(large).for_each(|(to, long)| to.copy_from_slice(&long.to_le_bytes()));
        bytes
    }

    /// Reads it. Nothing but its length is checked.
    pub fn parse(bytes: &[u8; Invocation::SIZE]) -> Invocation {
        let mut w = Words(bytes);
        Invocation {
            magic: w.u32(),
            version: w.u32(),
            order: w.u32(),
            flags: w.u32(),
            socket_len: w.u32(),
            path_len: w.u32(),
            session: w.u32(),
            areas: w.u32(),
            areas_at: w.u64(),
            tls: w.u64() as i64,
            stride: w.u64(),
            left: w.u64(),
        }
    }
}

/// The first word of every message: "trap" in ASCII.
pub const MAGIC: u32 = 0x7061_7274;

/// Why the agent asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// The process has begun a program.
    Start = 1,
    /// The process is a child that runs on in the same program (fork): its text is patched already, and it needs memory of its own.
    Fork = 2,
    /// Modules were loaded or unloaded (dlopen, dlclose).
    Modules = 3,
    /// The agent was injected into a running process.
    Attach = 4,
    /// The process is about to execute a program. The text that follows is not that of mappings: its first byte is 0 if the agent
    /// follows, else an [`Untraced`]; the rest is the path. There is no answer.
    Exec = 5,
    /// The program was not executed: the kernel refused it. No text, and no answer.
    Failed = 6,
    /// A collector wants to ask for tracers ([`crate::tracer`]): no text of mappings follows.
    Tracers = 7,
}

/// Why the agent cannot follow into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Untraced {
    /// It asks for no loader.
    Static = 1,
    /// It changes the user or the group (or the process has changed them and keeps the way back), so its loader drops `LD_PRELOAD`.
    ChangesUser = 2,
    /// Its file has capabilities: the same.
    Capabilities = 3,
    /// It is for another architecture, or of 32 bits.
    Machine = 4,
    /// The agent's file cannot be loaded by the process: it sees other files (chroot, a namespace), may not read it, or the file
    /// system is mounted with `noexec`.
    Unreachable = 5,
    /// It loads a sanitizer's library, which wants to be loaded first, or claims the agent's addresses.
    Sanitizer = 6,
}

/// Code of the agent that stubs call. `patch::stub` describes the registers and the stack at each, and where it returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Slow {
    /// Entry: the chunk is full, or there is none: the record has been written, or is written there.
    Chunk = 0,
    /// Entry: the place of the return address is not below the last one's: first use, tail call, frames that were left.
    Enter = 1,
    /// Exit: the place of the return address is not the last one's.
    Exit = 2,
    /// The upper half of the time stamp counter has changed.
    High = 3,
    /// Exit: the call took the minimum of time. Its entry and those of its callers are written if they are not yet, and its exit.
    Late = 4,
    /// Entry: the thread has no [`crate::thread::Row`]s.
    Count = 5,
    /// Entry of a function with tracers.
    Call = 6,
    /// Exit of a function with tracers.
    Return = 7,
    /// Entry of a function with captured arguments: stands in for `Call`.
    Arguments = 8,
    /// Exit of a function with captured arguments: stands in for `Return`.
    Result = 9,
    /// A probe within a function, or at its entry: in code that stands for the instruction at its place.
    Probe = 10,
}
/// How many there are.
pub const SLOWS: usize = 11;

/// Functions of libraries that the agent replaces by functions of its own, which call the original through its relocated beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Hook {
    /// `_Unwind_Find_FDE` of libgcc, shared or linked in: finds stubs too.
    FindFde = 0,
    /// `sigaction` of libc.
    Sigaction = 1,
    /// `execve` of libc, which all of its exec functions and posix_spawn call.
    Execve = 2,
    /// `execveat` of libc.
    Execveat = 3,
    /// `fork` of libc.
    Fork = 4,
    /// `_Fork` of libc.
    ForkAsyncSafe = 5,
    /// `clone` of libc: matters without CLONE_VM.
    Clone = 6,
    /// `syscall` of libc: matters for clone, fork and exec.
    Syscall = 7,
    /// `_dl_debug_state` of the loader, which it calls when modules have come or gone.
    Modules = 8,
    /// `vfork` of libc.
    Vfork = 9,
    /// `_Unwind_Backtrace` of libgcc, shared or linked in: leaves stubs out.
    Backtrace = 10,
    /// `prctl` of libc: matters for filters of system calls.
    Prctl = 11,
    /// `fexecve` of libc, which does not call its `execveat`.
    Fexecve = 12,
    /// `malloc`, and what else gets the size first: `operator new`, `valloc`.
    Malloc = 13,
    /// `aligned_alloc`, `memalign`: alignment, size.
    Aligned = 14,
    /// `posix_memalign`.
    PosixMemalign = 15,
    /// `calloc`.
    Calloc = 16,
    /// `realloc`: block, size.
    Realloc = 17,
    /// `reallocarray`.
    Reallocarray = 18,
    /// `free`, and what else gets the block first: `operator delete`.
    Free = 19,
    /// `mmap` of libc.
    Mmap = 20,
    /// `munmap` of libc.
    Munmap = 21,
    /// `mremap` of libc.
    Mremap = 22,
    /// `free` of libc, which libc calls itself at the end of a thread, for blocks that the program has freed already.
    FreeOfLibc = 23,
    /// `longjmp` of libc, which is `_longjmp` and `siglongjmp` too: it leaves calls.
    Longjmp = 24,
    /// `__longjmp_chk` of libc.
    LongjmpChecked = 25,
    /// `_exit` of libc, which is `_Exit` too, and which `exit` calls: the process ends.
    Exit = 26,
}
/// How many there are, with room for more.
pub const HOOKS: usize = 32;

impl Hook {
    /// Whether it is a function that allocates or frees memory. A process may have several of each: such a hook gets the address of its
    /// own original in r11.
    pub fn is_of_heap(self) -> bool {
        (Hook::Malloc as usize..=Hook::FreeOfLibc as usize).contains(&(self as usize))
    }
}

impl Untraced {
    /// The reason with this number.
    pub fn of(number: u8) -> Option<Untraced> {
        use Untraced::*;
        [Static, ChangesUser, Capabilities, Machine, Unreachable, Sanitizer].into_iter().find(|u| *u as u8 == number)
    }
}

/// What a line begins with, behind the text of `/proc/self/maps`, for a module that has come since the agent asked last; an address in the
/// module follows. One that was there then may be there again: the agent does not say which modules go.
pub const CAME: &[u8] = b"came ";

/// What the agent sends first. `maps_len` bytes of text follow: `/proc/self/maps`, and lines with [`CAME`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`crate::VERSION`].
    pub version: u32,
    /// A [`Reason`].
    pub reason: u32,
    /// The process, and for [`Reason::Fork`] its parent, in the process's own PID namespace.
    pub pid: u32,
    /// The parent.
    pub parent: u32,
    /// Bytes of text that follow.
    pub maps_len: u32,
    /// Where [`crate::thread::Thread`] of a thread is, as an offset from its `fs` base. Negative.
    pub tls: i64,
    /// Addresses of the agent's code that stubs jump to, by [`Slow`]; 0: none.
    pub slow: [u64; SLOWS],
    /// Addresses of the agent's functions that replace others, by [`Hook`]; 0: none.
    pub hooks: [u64; HOOKS],
    /// Where the agent keeps the addresses of the originals, an array of u64 by [`Hook`]. The plan's patches do not write there: the
    /// agent does, from the plan's originals.
    pub originals: u64,
}

/// What the collector wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// Map both descriptors and install the plan.
    Trace = 1,
    /// The process gets no memory for records, because it has some or nothing of it is traced: the plan is installed, if only for its
    /// hooks. Only the plan's descriptor comes.
    Follow = 2,
    /// Nothing is to be done; no descriptor comes.
    Leave = 3,
    /// The answer takes longer; another one follows.
    Wait = 4,
}

/// What the collector answers, with the descriptors of the shared memory, of the plan, and of the unwind tables (SCM_RIGHTS, in this order).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Welcome {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`crate::VERSION`].
    pub version: u32,
    /// A [`Verdict`].
    pub verdict: u32,
    /// How many descriptors come with it.
    pub descriptors: u32,
    /// Bytes of the shared memory; 0 without one.
    pub shared: u64,
    /// Bytes of the plan; 0 without one.
    pub plan: u64,
    /// Bytes of the unwind tables (`unwind::replay`), by which allocations get their stacks; 0 without any.
    pub tables: u64,
    /// 1: an agent that was loaded with the program keeps its plans, because it may be taken out before the program ends.
    pub keep: u64,
}

/// What the agent says at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Installed {
    /// [`MAGIC`].
    pub magic: u32,
    /// 0, or why nothing was installed, an errno.
    pub error: u32,
    /// Patches that were made.
    pub patched: u32,
    /// Patches that were not made, because other bytes were there than the plan expects.
    pub other_bytes: u32,
    /// Patches that were not made, because memory of their areas was not to be had.
    pub no_area: u32,
    /// Patches that were not made for another reason.
    pub failed: u32,
}

impl Installed {
    /// What is said where nothing was installed: an errno, or 0 where nothing was to be.
    pub const fn failure(error: u32) -> Installed {
        Installed { magic: MAGIC, error, patched: 0, other_bytes: 0, no_area: 0, failed: 0 }
    }
}

/// Takes numbers off the front of bytes that came over the socket.
#[derive(Debug)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// From the front of these.
    pub fn of(bytes: &'a [u8]) -> Words<'a> {
        Words(bytes)
    }

    /// This many bytes; zeros where they are missing.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *bytes
    }

    /// A number of 4 bytes; 0 where it is missing.
    pub fn u32(&mut self) -> u32 {
        let (word, rest) = self.0.split_first_chunk().unwrap_or((&[0; 4], &[]));
        self.0 = rest;
        u32::from_le_bytes(*word)
    }

    /// A number of 8 bytes.
    pub fn u64(&mut self) -> u64 {
        let (word, rest) = self.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
        self.0 = rest;
        u64::from_le_bytes(*word)
    }
}

impl Hello {
    /// Its bytes on the socket.
    pub const SIZE: usize = size_of::<Hello>();

    /// Reads it. Nothing but its length is checked.
    pub fn parse(bytes: &[u8; Hello::SIZE]) -> Hello {
        let mut w = Words(bytes);
        Hello {
            magic: w.u32(),
            version: w.u32(),
            reason: w.u32(),
            pid: w.u32(),
            parent: w.u32(),
            maps_len: w.u32(),
            tls: w.u64() as i64,
            slow: core::array::from_fn(|_| w.u64()),
            hooks: core::array::from_fn(|_| w.u64()),
            originals: w.u64(),
        }
    }
}

impl Welcome {
    /// Its bytes on the socket.
    pub const SIZE: usize = size_of::<Welcome>();

    /// Writes it.
    pub fn bytes(&self) -> [u8; Welcome::SIZE] {
        let mut bytes = [0; Welcome::SIZE];
        let (words, sizes) = bytes.split_at_mut(16);
        let words = words.chunks_exact_mut(4).zip([self.magic, self.version, self.verdict, self.descriptors]);
        words.for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        let sizes = sizes.chunks_exact_mut(8).zip([self.shared, self.plan, self.tables, self.keep]);
        sizes.for_each(|(to, size)| to.copy_from_slice(&size.to_le_bytes()));
        bytes
    }
}

impl Installed {
    /// Its bytes on the socket.
    pub const SIZE: usize = size_of::<Installed>();

    /// Reads it.
    pub fn parse(bytes: &[u8; Installed::SIZE]) -> Installed {
        let mut w = Words(bytes);
        Installed {
            magic: w.u32(),
            error: w.u32(),
            patched: w.u32(),
            other_bytes: w.u32(),
            no_area: w.u32(),
            failed: w.u32(),
        }
    }
}
