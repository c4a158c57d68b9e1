//! Stops at calls: what a thread asks for, and how its call ends.

use super::{RAW, Tracer};
use crate::ptrace::emit::End;
use crate::ptrace::renames::CHANGE_ROOT;
use crate::ptrace::thread::{Pending, Thread};
use crate::ptrace::{fds, filter};
use engine::backend::code::build_here;
use engine::backend::stacks;
use engine::capture;
use events::layout::{CAP_INTERRUPTED, CAP_START_UNKNOWN, NO_CPU};
use sys::ptrace::{self, FrameRegisters};
use sys::{proc, seccomp, time};

const RT_SIGRETURN: u64 = 15;
/// execve and execveat: what hidden code makes on the program's behalf.
pub(super) const EXECS: [u64; 2] = [59, 322];
const ESRCH: i32 = 3;
/// At rt_sigreturn the stack pointer points to a `struct ucontext`, whose `uc_sigmask` comes after flags, link, stack_t (24)
/// and sigcontext (256) (`arch/x86/include/asm/sigframe.h`, `include/uapi/asm-generic/ucontext.h`).
const SIGFRAME_MASK: u64 = 8 + 8 + 24 + 256;

impl Tracer {
    /// A stop at a call: by the filter, which stops at entries only, or else at any of both ends.
    pub(super) fn syscall_stop(&mut self, tid: i32, by_filter: bool) {
        // Whatever becomes of it here, the thread goes on.
        if let Some(mut t) = self.threads.remove(&tid) {
            match ptrace::syscall_info(tid) {
                Ok(info) => self.call_stop(&mut t, &info),
                // Killed meanwhile: its end will be reported, and shows the call that it was in.
                Err(e) if e.raw_os_error() == Some(ESRCH) => {}
                Err(_) => self.unread_stop(&mut t, by_filter),
            }
            self.threads.insert(tid, t);
        }
        self.resume(tid, 0);
    }

    fn call_stop(&mut self, t: &mut Thread, info: &ptrace::SyscallInfo) {
        t.unread = false;
        if info.op == 3 && !self.is_hidden(info) && self.may_record(t, info) {
            return;
        }
        match info.op {
            1 | 3 => match &mut t.pending {
                // The restart of a call that the attach interrupted.
                Some(p) if p.restarting => p.restarting = false,
                // With a filter on, an entry stop precedes the seccomp stop of the same call.
                Some(_) if info.op == 3 => {}
                _ if self.is_hidden(info) && !EXECS.contains(&info.nr) => t.pending = None,
                _ => {
                    let mut args = info.args;
                    if info.nr == RT_SIGRETURN && info.arch == ptrace::ARCH_X86_64 {
                        args[0] = info.sp + SIGFRAME_MASK;
                    }
                    let on_behalf = self.is_hidden(info);
                    t.pending = Some(Pending { on_behalf, ..self.entry(t, info.arch, info.nr, args) });
                }
            },
            2 => self.exit(t, info.ret),
            _ => {}
        }
        // Last, because events show what the program asks for.
        if info.op == 3 && info.told != u32::from(seccomp::MARK) {
            // A filter of the program's own asks a tracer, and there is none but trapline.
            t.changed = ptrace::refuse(t.tid).ok();
        } else if info.op == 3 || info.op == 1 && self.job.follow && !self.job.filtered {
            t.changed = ptrace::trace_untraced(t.tid, info).ok().flatten();
        }
    }

    fn is_hidden(&self, info: &ptrace::SyscallInfo) -> bool {
        self.job.hidden.is_some_and(|upper| info.ip >> 32 == u64::from(upper))
    }

    /// A stop at a call that the kernel does not describe. A call whose entry was seen is shown without its end; any other is lost,
    /// and counted once.
    fn unread_stop(&mut self, t: &mut Thread, by_filter: bool) {
        if by_filter && t.refuses {
            // It was told at the entry stop of the call.
            return;
        }
        self.control().count_unread();
        if t.pending.is_some() {
            // With a filter on, an entry stop precedes the filter's stop of one call.
            if !by_filter {
                self.tell_unfinished(t);
                t.pending = None;
            }
            return;
        }
        // After the filter's stop the thread runs without stops: there is none at the end of the call.
        t.unread = !by_filter && !t.unread;
        if (by_filter || t.unread) && !t.starting {
            self.control().drop_event(None);
        }
    }

    pub(super) fn entry(&mut self, t: &mut Thread, arch: u32, nr: u64, regs: [u64; 6]) -> Pending {
        let native = arch == ptrace::ARCH_X86_64;
        let known = if native { events::registry::by_number(nr) } else { None };
        let wanted = match known {
            _ if self.job.takes_orders => self.control().wants(known.map(|_| nr)),
            Some(_) => self.job.calls.get(nr as usize).copied().unwrap_or(self.job.unknown),
            None => self.job.unknown,
        };
        let mut args = [0; 8];
        let class = known.map(|s| self.job.with_stacks.get(&s.id).map_or(s, |c| c.0));
        let (schema, layout) = match class.and_then(|s| Some((s, events::registry::layout(s.id)?))) {
            Some(found) => {
                args[..6].copy_from_slice(&regs);
                found
            }
            None => {
                (args[0], args[1]) = (nr, u64::from(arch));
                args[2..].copy_from_slice(&regs);
                *RAW
            }
        };
        let mut tails = std::mem::take(&mut t.spare);
        tails.clear();
        let (mut caps, mut cpu) = (0, NO_CPU);
        if wanted && !layout.tails.is_empty() {
            let mut mem = t.memory();
            let call = capture::Call { schema, layout, args: &args, result: None };
            caps = capture::tails(&call, &mut mem, self.job.limits, 0, &mut tails);
            cpu = mem.cpu;
        }
        if wanted && self.job.cpu && cpu == NO_CPU {
            cpu = proc::cpu(t.tid).unwrap_or(NO_CPU);
        }
        let stack = if schema.id == schema.base { None } else { schema.args.iter().position(events::stacks::is_stack) };
        if let Some(at) = stack {
            // The register is no argument of the call.
            args[at] = 0;
        }
        let start = time::monotonic();
        let mut p = Pending {
            schema,
            layout,
            nr,
            start,
            args,
            caps,
            tails,
            cpu,
            stack,
            registers: stack.filter(|_| wanted && !t.starting).and_then(|_| ptrace::frame_registers(t.tid).ok()),
            noticed: false,
            wanted,
            restarting: false,
            on_behalf: false,
        };
        if stacks::is_at_entry(schema.name) {
            self.take_stack(t, &mut p);
        }
        p
    }

    pub(super) fn exit(&mut self, t: &mut Thread, ret: i64) {
        let end = time::monotonic();
        let Some(mut p) = t.pending.take() else { return };
        if t.starting {
            // Only the execve that works out is the command's own.
            if p.schema.name != "execve" || ret < 0 {
                t.spare = p.tails;
                return;
            }
            t.starting = false;
        }
        if stacks::changes_mappings(p.schema.name) {
            self.stacks.forget(t.pid);
        }
        if self.job.filtered && ret >= 0 {
            self.note_refusals(t, &p);
            if filter::dispatches(&p)
                && let Some(code) = &mut self.intercept
            {
                code.put_back((t.pid, t.tid));
            }
        }
        if CHANGE_ROOT.contains(&p.nr) && ret >= 0 {
            self.look_at_root(t);
        }
        if p.wanted && !(p.on_behalf && ret < 0) {
            // Before the command's execve there is no stack of its own.
            if !stacks::is_at_entry(p.schema.name) || p.stack.is_some_and(|at| p.args[at] == 0) {
                self.take_stack(t, &mut p);
            }
            self.tails.clear();
            let mut more = 0;
            if p.layout.tails.iter().any(|s| s.out) {
                let mut mem = t.memory();
                p.caps = self.exit_tails(&p, &mut mem, ret);
                if p.cpu == NO_CPU {
                    p.cpu = mem.cpu;
                }
            }
            if p.caps & CAP_START_UNKNOWN != 0 && ret == -4 {
                more |= CAP_INTERRUPTED;
            }
            if self.job.fd_names && ret >= 0 {
                fds::made(&mut self.out, t, &p, ret, end, self.job.fd_details);
            }
            let e = End { time: end, ret, more, out: &self.tails, cpu: p.cpu, cpu_out: NO_CPU };
            self.out.call((t.pid, t.tid), &p, &e);
            if self.job.fd_names && ret >= 0 {
                fds::changed(&mut self.out, t, &p, end, self.job.fd_details);
            }
        }
        t.spare = p.tails;
    }

    /// After a call that has succeeded: whether the thread has got a seccomp filter beside trapline's. Where that refuses a call,
    /// trapline's says nothing of it; but the thread stops at the entry of a call before any filter is asked.
    fn note_refusals(&mut self, t: &mut Thread, p: &Pending) {
        let Some(everywhere) = filter::added(p) else { return };
        t.refuses = true;
        Self::stop_recording(t);
        if everywhere {
            for other in self.threads.values_mut().filter(|other| other.pid == t.pid) {
                other.refuses = true;
                Self::stop_recording(other);
            }
        }
    }

    /// Gives the call that a thread is in its stack, where it has none yet. The thread stops before it leaves the call.
    pub(super) fn complete_stack(&mut self, tid: i32) {
        let Some(mut t) = self.threads.remove(&tid) else { return };
        if let Some(mut p) = t.pending.take() {
            if p.registers.is_some() && p.stack.is_some_and(|at| p.args[at] == 0) {
                self.take_stack(&t, &mut p);
            }
            t.pending = Some(p);
        }
        self.threads.insert(tid, t);
    }

    /// The stack of a thread that does not run, for the call that it is in.
    fn take_stack(&mut self, t: &Thread, p: &mut Pending) {
        if let Some(at) = p.stack.filter(|_| p.wanted && !t.starting && !self.out.silent && !self.out.held)
            && let Some(registers) = p.registers.or_else(|| ptrace::frame_registers(t.tid).ok())
        {
            let most = self.job.with_stacks.get(&p.schema.base).map_or(0, |c| c.1);
            p.args[at] = self.stack((t.pid, t.tid), registers, most);
        }
    }

    /// The id of the stack of a thread that does not run, which is reported.
    pub(super) fn stack(&mut self, who: (i32, i32), registers: FrameRegisters, most: usize) -> u64 {
        let Tracer { stacks, out, .. } = self;
        stacks.of(who, registers, most, &mut build_here, |stack| out.stack(who, &stack))
    }
}
