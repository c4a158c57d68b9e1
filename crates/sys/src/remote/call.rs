//! Calls of functions in a stopped thread of another process.
//!
//! ```text
//!  memory in the target:  code │ stack ◄── │ block: result, done, … │ bytes for the function │ signal frame
//! ```
//!
//! The thread runs on a stack of its own, with all signals blocked. When the function has returned, the code notes the result
//! and that it is done, and waits for trapline to stop the thread and to give it its registers back. If trapline has died meanwhile, the
//! code gives them back itself after a second, by the signal frame: a killed trapline does not kill the program.
//!
//! Blocked signals stay pending in the kernel, whole, until the thread has its own mask again. A system call from which the thread was
//! stopped is repeated or continued as if nothing had happened.

use super::frame;
use super::thread::Thread;
use crate::mem;
use crate::ptrace::{self, Change, Registers, event};
use std::io;
use std::time::{Duration, Instant};

/// Bytes of the memory: a page of code, and the rest.
const CODE: u64 = 4096;
const MEMORY: u64 = 512 << 10;
/// Room for the block, the bytes for the function, and the signal frame, at the end of the memory.
const ROOM: u64 = 96 << 10;
/// The most bytes for a function.
const DATA: usize = 16 << 10;
/// Offset of those from the block.
const DATA_AT: u64 = 64;

/// `rbx`: the block; `r12`: the function.
///
/// ```text
///       call r12
///       mov [rbx], rax; mov dword [rbx+8], 1
///       rdtsc; shl rdx, 32; or rax, rdx; mov r13, rax
///  1:   mov eax, SYS_sched_yield; syscall
///       rdtsc; shl rdx, 32; or rax, rdx; sub rax, r13; cmp rax, [rbx+16]; jb 1b
///       mov rsp, [rbx+24]; mov eax, SYS_rt_sigreturn; syscall
/// ```
const CALL: &[u8] = &[
    0x41, 0xff, 0xd4, 0x48, 0x89, 0x03, 0xc7, 0x43, 0x08, 1, 0, 0, 0, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09,
    0xd0, 0x49, 0x89, 0xc5, 0xb8, 24, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xd0, 0x4c,
    0x29, 0xe8, 0x48, 0x3b, 0x43, 16, 0x72, 0xe7, 0x48, 0x8b, 0x63, 24, 0xb8, 15, 0, 0, 0, 0x0f, 0x05,
];
/// A function of libc's kind: (number, six arguments).
///
/// ```text
///  mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; mov r8, r9; mov r9, [rsp+8]; syscall; ret
/// ```
const SYSCALL: &[u8] = &[
    0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c,
    0x8b, 0x4c, 0x24, 8, 0x0f, 0x05, 0xc3,
];
const SYSCALL_AT: u64 = 256;
/// How long the code waits for trapline, in ticks of the time stamp counter: about a second.
const ALONE: u64 = 3_000_000_000;
/// How long a thread that runs may take to stop.
const STOP: Duration = Duration::from_millis(500);

/// How long a thread may take to begin a system call, on a loaded machine too.
const BEGIN: Duration = Duration::from_secs(5);

fn pause(since: Instant) {
    if since.elapsed() < Duration::from_micros(50) {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Calls functions in a stopped thread. Dropped, the thread is as it was, and still stopped.
pub struct Caller<'t> {
    thread: &'t mut Thread,
    /// What the thread has of its own.
    own: Registers,
    state: Vec<u8>,
    mask: u64,
    /// Where the memory in the target is.
    memory: u64,
    /// An address of `syscall` in the target.
    instruction: u64,
    /// The memory stays when the value goes.
    kept: bool,
    /// A call has not come back: the thread is not to be touched.
    lost: bool,
}

/// Memory for calls that stays mapped in the target between two [`Caller`]s: making and removing it takes longer than a call. Dropped, it is
/// unmapped by any thread of the target that can be stopped.
#[derive(Debug)]
#[must_use]
pub struct Memory {
    pid: i32,
    /// 0: a [`Caller`] has it.
    at: u64,
    instruction: u64,
}

impl Memory {
    /// Whether it is in the process of a thread: neither another process's, nor gone with a program that was executed.
    fn is_of(&self, tid: i32) -> bool {
        let mut there = vec![0; CODE as usize];
        mem::read(tid, self.at, &mut there).is_ok_and(|len| len == there.len()) && there == code()
    }

    fn unmap_by(&self, tid: i32) -> io::Result<()> {
        let mut thread = Thread::ask(tid)?;
        if !thread.has_stopped()? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut caller = Caller::prepare(&mut thread, self.instruction)?;
        caller.memory = self.at;
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.at != 0 && self.is_of(self.pid) {
            let threads = crate::proc::threads(self.pid).unwrap_or_default();
            let _ = threads.into_iter().any(|tid| self.unmap_by(tid).is_ok());
        }
    }
}

/// The page of code.
fn code() -> Vec<u8> {
    let mut code = vec![0xcc; CODE as usize];
    code[..CALL.len()].copy_from_slice(CALL);
    code[SYSCALL_AT as usize..SYSCALL_AT as usize + SYSCALL.len()].copy_from_slice(SYSCALL);
    code
}

impl<'t> Caller<'t> {
    /// Prepares a thread. `instruction`: the address of a `syscall` instruction in the target, for instance in the vDSO.
    ///
    /// # Errors
    /// The thread has ended, runs 32-bit code, or may not map memory.
    pub fn new(thread: &'t mut Thread, instruction: u64) -> io::Result<Caller<'t>> {
        let mut caller = Caller::prepare(thread, instruction)?;
        caller.map()?;
        Ok(caller)
    }

    /// As [`Caller::new`], with the memory of an earlier one, which goes with the value.
    ///
    /// # Errors
    /// The thread has ended, or runs 32-bit code. `InvalidInput`: the memory is not in its process.
    pub fn again(thread: &'t mut Thread, instruction: u64, mut memory: Memory) -> io::Result<Caller<'t>> {
        if !memory.is_of(thread.tid()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut caller = Caller::prepare(thread, instruction)?;
        caller.memory = std::mem::take(&mut memory.at);
        Ok(caller)
    }

    /// Ends as if dropped, but leaves the memory, for [`Caller::again`].
    pub fn keep(mut self) -> Memory {
        let tid = self.thread.tid();
        let pid = crate::proc::status_field(tid, "Tgid").and_then(|id| id.parse().ok()).unwrap_or(tid);
        self.kept = true;
        Memory { pid, at: self.memory, instruction: self.instruction }
    }

    fn prepare(thread: &'t mut Thread, instruction: u64) -> io::Result<Caller<'t>> {
        let tid = thread.tid();
        let own = thread.registers()?;
        if !own.is_64_bit() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (state, mask) = (ptrace::extended_state(tid)?, ptrace::signal_mask(tid)?);
        let caller = Caller { thread, own, state, mask, memory: 0, instruction, kept: false, lost: false };
        ptrace::set_signal_mask(tid, u64::MAX)?;
        Ok(caller)
    }

    fn map(&mut self) -> io::Result<()> {
        let (rw, rx) = ((libc::PROT_READ | libc::PROT_WRITE) as u64, (libc::PROT_READ | libc::PROT_EXEC) as u64);
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let at = self.bare(libc::SYS_mmap, [0, MEMORY, rw, flags, u64::MAX, 0])?;
        if at < 0 {
            return Err(in_target("mmap", at));
        }
        self.memory = at as u64;
        let code = code();
        self.thread.write(self.memory, &code)?;
        if self.bare(libc::SYS_mprotect, [self.memory, CODE, rx, 0, 0, 0])? >= 0 {
            return Ok(());
        }
        // Memory that has been written to may not become code (PR_SET_MDWE, a filter): new memory is mapped as code, and written through
        // the process's file of its memory.
        let fixed = flags | libc::MAP_FIXED as u64;
        let at = self.bare(libc::SYS_mmap, [self.memory, CODE, rx, fixed, u64::MAX, 0])?;
        if at < 0 {
            return Err(in_target("mmap of code", at));
        }
        self.thread.write_code(self.memory, &code)
    }

    /// A system call without any memory in the target: at an instruction of its own, between the two stops of the call.
    fn bare(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<i64> {
        let tid = self.thread.tid();
        let mut to = self.own;
        let r = &mut to.0;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = arguments;
        (r.rip, r.rax, r.orig_rax) = (self.instruction, number as u64, u64::MAX);
        r.eflags &= !0x100;
        ptrace::set_all_registers(tid, &to)?;
        if let Err(e) = self.step_call() {
            if e.kind() == io::ErrorKind::TimedOut {
                self.thread.hold(STOP)?;
                ptrace::set_all_registers(tid, &self.own)?;
            }
            return Err(e);
        }
        // From the end of a call the thread would go on without a look at the registers that it gets: only after a stop of this kind
        // does the kernel repeat the call that the thread was in before.
        self.thread.hold_on(STOP)?;
        let answer = ptrace::all_registers(tid)?;
        ptrace::set_all_registers(tid, &self.own)?;
        Ok(answer.0.rax as i64)
    }

    /// From where the thread is through one system call. `TimedOut`: it has not begun the call, because it is frozen (cgroups(7)).
    fn step_call(&mut self) -> io::Result<()> {
        let tid = self.thread.tid();
        for is_in_call in [false, true] {
            ptrace::syscall(tid, 0)?;
            let since = Instant::now();
            loop {
                let status = match ptrace::wait_for(tid, is_in_call) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(None) if since.elapsed() > BEGIN => return Err(io::ErrorKind::TimedOut.into()),
                    Ok(None) => {
                        pause(since);
                        continue;
                    }
                    other => other?.ok_or(io::ErrorKind::NotFound)?,
                };
                match status.change() {
                    Change::Stopped(signal, 0) if signal & 0x80 != 0 || signal == libc::SIGTRAP => break,
                    // SIGSTOP, which cannot be blocked: the process stops when it is let go.
                    Change::Stopped(signal, 0) => ptrace::syscall(tid, signal)?,
                    Change::Stopped(..) => ptrace::syscall(tid, 0)?,
                    _ => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                }
            }
        }
        Ok(())
    }

    /// Where the block begins.
    fn block(&self) -> u64 {
        self.memory + MEMORY - ROOM
    }

    /// Where `data` of a [`Caller::call`] is, in the target.
    pub fn data(&self) -> u64 {
        self.block() + DATA_AT
    }

    /// A system call; its result, negative for an error number.
    ///
    /// # Errors
    /// Those of [`Caller::call`].
    pub fn syscall(&mut self, number: i64, arguments: [u64; 6], data: &[u8]) -> io::Result<i64> {
        let [a, b, c, d, e, f] = arguments;
        let function = self.memory + SYSCALL_AT;
        self.begin(function, [number as u64, a, b, c, d, e], f, data)?;
        self.finish(Duration::from_secs(2)).map(|n| n as i64)
    }

    /// Calls the function at an address, with `data` in memory at [`Caller::data`]. All signals are blocked meanwhile; other threads
    /// stay as they are.
    ///
    /// # Errors
    /// `InvalidInput`: too many bytes. `TimedOut`: it has not returned; the thread goes on in it, and then where it was. ESRCH: the thread
    /// has ended.
    pub fn call(&mut self, function: u64, arguments: [u64; 6], data: &[u8], limit: Duration) -> io::Result<u64> {
        self.begin(function, arguments, 0, data)?;
        self.finish(limit)
    }

    fn begin(&mut self, function: u64, arguments: [u64; 6], seventh: u64, data: &[u8]) -> io::Result<()> {
        if data.len() > DATA {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let tid = self.thread.tid();
        let block = self.block();
        let frame = (block + DATA_AT + data.len() as u64).next_multiple_of(64);
        let words = [0, 0, ALONE, frame, 0, 0, 0, 0];
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend_from_slice(data);
        bytes.resize((frame - block) as usize, 0);
        bytes.extend(frame::build(frame, &self.own, &self.state, self.mask));
        if bytes.len() as u64 > ROOM {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stack = block - 64;
        self.thread.write(stack, &seventh.to_le_bytes())?;
        self.thread.write(block, &bytes)?;
        let mut to = self.own;
        let r = &mut to.0;
        [r.rdi, r.rsi, r.rdx, r.rcx, r.r8, r.r9] = arguments;
        (r.rip, r.rsp, r.rbp, r.rax, r.orig_rax) = (self.memory, stack, 0, 0, u64::MAX);
        (r.rbx, r.r12) = (block, function);
        // The direction flag is clear in every function. With the trap flag, and its signal blocked, the first instruction would be the last.
        r.eflags &= !0x500;
        ptrace::set_all_registers(tid, &to)?;
        self.thread.run()
    }

    fn finish(&mut self, limit: Duration) -> io::Result<u64> {
        let (tid, block, since) = (self.thread.tid(), self.block(), Instant::now());
        loop {
            // SIGSTOP cannot be blocked: the call goes on, and the process stops when it is let go.
            if self.thread.look()? == Some(event::STOP) {
                self.thread.run()?;
            }
            let mut answer = [0; 12];
            if mem::read(tid, block, &mut answer)? == answer.len() && answer[8] != 0 {
                self.thread.hold(STOP)?;
                self.restore()?;
                return Ok(u64::from_le_bytes(std::array::from_fn(|i| answer[i])));
            }
            if since.elapsed() > limit {
                self.lost = true;
                return Err(io::ErrorKind::TimedOut.into());
            }
            pause(since);
        }
    }

    /// Gives the thread what it had.
    fn restore(&mut self) -> io::Result<()> {
        let tid = self.thread.tid();
        ptrace::set_extended_state(tid, &self.state)?;
        ptrace::set_all_registers(tid, &self.own)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if self.lost {
            return;
        }
        if self.memory != 0 && !self.kept {
            let _ = self.bare(libc::SYS_munmap, [self.memory, MEMORY, 0, 0, 0, 0]);
        }
        let tid = self.thread.tid();
        let _ = self.restore();
        let _ = ptrace::set_signal_mask(tid, self.mask);
    }
}

/// The error of a call that was made in the target: not to be taken for one of trapline's own.
fn in_target(call: &str, answer: i64) -> io::Error {
    let error = io::Error::from_raw_os_error(-answer as i32);
    let kind = if error.kind() == io::ErrorKind::OutOfMemory { error.kind() } else { io::ErrorKind::Other };
    io::Error::new(kind, format!("{call} in the process: {error}"))
}

/// The address of a `syscall` instruction in a process: in the vDSO, or in a library.
///
/// # Errors
/// Its memory may not be read (`PermissionDenied`); `NotFound`: there is none.
pub fn instruction(pid: i32) -> io::Result<u64> {
    const MOST: usize = 2 << 20;
    let maps = crate::maps::of(pid)?;
    let code = maps.iter().filter(|m| m.prot & crate::maps::PROT_EXEC != 0 && m.path != b"[vsyscall]");
    let (vdso, others): (Vec<_>, Vec<_>) = code.partition(|m| m.path == b"[vdso]");
    for map in vdso.into_iter().chain(others) {
        let mut bytes = vec![0; ((map.range.1 - map.range.0) as usize).min(MOST)];
        let len = mem::read(pid, map.range.0, &mut bytes)?;
        if let Some(at) = bytes[..len].windows(2).position(|w| w == [0x0f, 0x05]) {
            return Ok(map.range.0 + at as u64);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;
    use crate::proc;
    use std::process::{Child, Command};
    use std::time::Instant;

    fn sleeper(seconds: &str) -> Child {
        let child = Command::new("sleep").arg(seconds).spawn().unwrap();
        let since = Instant::now();
        while proc::call_in_flight(child.id() as i32, child.id() as i32)
            .is_none_or(|(nr, _)| nr != libc::SYS_clock_nanosleep)
        {
            assert!(since.elapsed() < Duration::from_secs(5), "it does not sleep");
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    }

    #[test]
    fn calls_are_made_and_the_sleep_goes_on() {
        let mut child = sleeper("1");
        let (pid, since) = (child.id() as i32, Instant::now());
        let maps = crate::maps::of(pid).unwrap();
        for _ in 0..20 {
            let mut threads = Threads::stop(pid).unwrap();
            let at = instruction(pid).unwrap();
            let before = threads.all()[0].registers().unwrap();
            {
                let mut caller = Caller::new(&mut threads.all()[0], at).unwrap();
                assert_eq!(caller.syscall(libc::SYS_getpid, [0; 6], &[]).unwrap(), pid.into());
                let text = c"/nowhere at all";
                let path = caller.data();
                let answer = caller.syscall(libc::SYS_access, [path, 0, 0, 0, 0, 0], text.to_bytes_with_nul()).unwrap();
                assert_eq!(answer, -i64::from(libc::ENOENT));
            }
            let after = threads.all()[0].registers().unwrap();
            assert_eq!((before.pc(), before.sp(), before.0.rax), (after.pc(), after.sp(), after.0.rax));
            threads.release();
        }
        assert_eq!(crate::maps::of(pid).unwrap(), maps);
        assert!(child.wait().unwrap().success());
        assert!(since.elapsed() > Duration::from_millis(900), "the sleep was cut short");
    }

    #[test]
    fn memory_that_is_kept_fits_its_process_alone_and_goes_with_the_value() {
        let mut children = [sleeper("10"), sleeper("10")];
        let [pid, other] = [0, 1].map(|i| children[i].id() as i32);
        let before = crate::maps::of(pid).unwrap();
        let kept = || {
            let mut threads = Threads::stop(pid).unwrap();
            Caller::new(&mut threads.all()[0], instruction(pid).unwrap()).unwrap().keep()
        };
        let memory = kept();
        {
            let mut threads = Threads::stop(pid).unwrap();
            let mut caller = Caller::again(&mut threads.all()[0], memory.instruction, memory).unwrap();
            assert_eq!(caller.syscall(libc::SYS_getpid, [0; 6], &[]).unwrap(), pid.into());
        }
        assert_eq!(crate::maps::of(pid).unwrap(), before);
        let memory = kept();
        assert_ne!(crate::maps::of(pid).unwrap(), before);
        let mut threads = Threads::stop(other).unwrap();
        let refused = Caller::again(&mut threads.all()[0], memory.instruction, memory).map(drop);
        assert_eq!(refused.map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
        assert_eq!(crate::maps::of(pid).unwrap(), before);
        drop(threads);
        children.iter_mut().for_each(|c| c.kill().and_then(|()| c.wait()).map(drop).unwrap());
    }

    #[test]
    fn only_a_stopped_thread_of_another_process_is_written_to() {
        assert!(Thread::ask(crate::process::own_pid()).is_err());
        let mut child = sleeper("10");
        let mut thread = Thread::ask(child.id() as i32).unwrap();
        assert!(thread.write(0, &[]).is_err());
        assert!(thread.has_stopped().unwrap());
        let (sp, mut there) = (thread.registers().unwrap().sp() & !7, [0; 8]);
        mem::read(thread.tid(), sp, &mut there).unwrap();
        thread.write(sp, &there).unwrap();
        assert!(thread.write(0, &there).is_err());
        drop(thread);
        child.kill().and_then(|()| child.wait()).unwrap();
    }

    #[test]
    fn a_call_that_does_not_return_is_given_up_and_a_thread_goes_on_by_itself() {
        let mut child = sleeper("0.5");
        let pid = child.id() as i32;
        let mut threads = Threads::stop(pid).unwrap();
        let at = instruction(pid).unwrap();
        let mut caller = Caller::new(&mut threads.all()[0], at).unwrap();
        caller.begin(caller.memory + SYSCALL_AT, [libc::SYS_getpid as u64, 0, 0, 0, 0, 0], 0, &[]).unwrap();
        // As if trapline were killed now.
        caller.lost = true;
        drop(caller);
        threads.release();
        assert!(child.wait().unwrap().success());
    }
}
