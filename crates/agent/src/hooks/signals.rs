//! Handlers of signals: the stand-in for `sigaction`, and that for handlers.
//!
//! The kernel gets [`stand_in`] for every handler of the program, with all signals blocked, so that nothing interrupts it while it
//! looks at the thread. It puts right what it has interrupted (`patch::stub`, "Signals"), raises a barrier in the shadow
//! stack, blocks what the program wants blocked, calls the program's handler, and takes everything back. What `sigaction` reports
//! is the program's own.

use crate::context::Context;
use crate::kernel::KernelAction;
use crate::memory::store;
use crate::originals::original;
use crate::thread::{ENTRY, Local, local};
use crate::{areas, child, heap, kernel, permits, record, shadow};
use abi::message::Hook;
use abi::stub::UNDO;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// struct sigaction of glibc and musl.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Action {
    handler: u64,
    mask: [u64; 16],
    flags: u32,
    restorer: u64,
}

impl Action {
    fn of_kernel(action: KernelAction) -> Action {
        let mut mask = [0; 16];
        mask[0] = action.mask;
        Action { handler: action.handler, mask, flags: action.flags as u32, restorer: action.restorer }
    }
}

const SIGNALS: usize = 65;
const SA_NODEFER: u32 = 0x4000_0000;

/// The program's handler of a signal.
struct Handler {
    /// The process that writes it, or 0.
    writer: AtomicU32,
    flags: AtomicU32,
    handler: AtomicU64,
    mask: AtomicU64,
}

static HANDLERS: [Handler; SIGNALS] = [const {
    Handler { writer: AtomicU32::new(0), flags: AtomicU32::new(0), handler: AtomicU64::new(0), mask: AtomicU64::new(0) }
}; SIGNALS];

/// How often handlers have become the agent's and the program's again. While it is odd, they are the agent's.
static TURNS: AtomicU32 = AtomicU32::new(0);

/// Handlers that are installed from now on are the agent's.
pub fn begin() {
    TURNS.fetch_or(1, Release);
}

impl Handler {
    /// Keeps other threads out. A lock that a thread of the parent held when the process was forked is taken over.
    fn lock(&self, pid: u32) {
        loop {
            match self.writer.compare_exchange(0, pid, AcqRel, Acquire) {
                Ok(_) => return,
                Err(owner) if owner != pid => {
                    if self.writer.compare_exchange(owner, pid, AcqRel, Acquire).is_ok() {
                        return;
                    }
                }
                Err(_) => kernel::sleep(50_000),
            }
        }
    }

    fn unlock(&self) {
        self.writer.store(0, Release);
    }

    fn get(&self) -> Action {
        let mut mask = [0; 16];
        mask[0] = self.mask.load(Relaxed);
        Action { handler: self.handler.load(Acquire), mask, flags: self.flags.load(Relaxed), restorer: 0 }
    }

    /// What is the program's where the kernel has this action.
    fn of_program(&self, kernel: Action) -> Action {
        if kernel.handler != own() {
            return kernel;
        }
        let Action { handler, mask, .. } = self.get();
        Action { handler, mask, ..kernel }
    }

    fn set(&self, action: &Action) {
        self.flags.store(action.flags, Relaxed);
        self.mask.store(action.mask[0], Relaxed);
        self.handler.store(action.handler, Release);
    }
}

/// The agent's own stand-in, as a handler's address.
fn own() -> u64 {
    stand_in as *const () as u64
}

/// `sigaction(signal, new, old)`.
///
/// # Safety
/// As of libc's.
pub unsafe extern "C" fn sigaction(signal: i32, new: *const Action, old: *mut Action) -> i32 {
    let original = original(Hook::Sigaction);
    // SAFETY: the plan has put a relocated `sigaction` there.
    let original: extern "C" fn(i32, *const Action, *mut Action) -> i32 = unsafe { core::mem::transmute(original) };
    let Some(handler) = usize::try_from(signal).ok().filter(|s| *s > 0).and_then(|s| HANDLERS.get(s)) else {
        return original(signal, new, old);
    };
    let mask = permits::block();
    // A child of vfork has actions of its own, but its parent's memory: the table stays its parent's.
    let owner = child::owner();
    let pid = if mask.is_some() { kernel::getpid() as u32 } else { owner.max(1) };
    let shared = owner != pid && owner != 0;
    if !shared {
        handler.lock(pid);
    }
    // SAFETY: the program's own, or null.
    let wanted = unsafe { new.as_ref() }.copied();
    let turn = TURNS.load(Acquire);
    // A session that comes or goes between this and the next call moves the handler that the kernel has, and not the one that the program has.
    let before = (wanted.is_some() && !old.is_null()).then(|| {
        let now = kernel::action(signal as u32);
        handler.of_program(Action { restorer: 0, ..Action::of_kernel(now) })
    });
    let stored = handler.get();
    // 0 and 1 are SIG_DFL and SIG_IGN.
    let ours =
        wanted.filter(|w| w.handler > 1 && !shared).map(|w| Action { handler: own(), mask: [u64::MAX; 16], ..w });
    if let Some(wanted) = wanted.filter(|_| ours.is_some()) {
        handler.set(&wanted);
    }
    let answer = original(signal, ours.as_ref().map_or(new, core::ptr::from_ref), old);
    // SAFETY: the program's own, or null; the original has just filled it in.
    if let Some(old) = unsafe { old.as_mut() }.filter(|_| answer == 0) {
        match before {
            Some(before) if old.handler == own() || TURNS.load(Acquire) != turn => {
                *old = Action { restorer: old.restorer, ..before };
            }
            Some(_) => {}
            None => *old = handler.of_program(*old),
        }
    }
    match wanted.filter(|_| ours.is_some()) {
        Some(_) if answer != 0 => handler.set(&stored),
        // A session that has come meanwhile has put the handler from before there, and one that has gone has given back all others.
        Some(wanted) => {
            handler.set(&wanted);
            if turn & 1 == 0 || TURNS.load(Acquire) != turn {
                settle(signal as u32);
            }
        }
        None => {}
    }
    if !shared {
        handler.unlock();
    }
    permits::unblock(mask);
    answer
}

/// `rt_sigaction(signal, new, old, size)`, by syscall(2), as [`sigaction`] does it; false: the kernel is to say what is wrong with it.
pub fn by_number(signal: u64, new: u64, old: u64, size: u64) -> bool {
    const LAST: u64 = size_of::<KernelAction>() as u64 - 8;
    let whole = |at: u64, can: fn(u64) -> bool| at == 0 || can(at) && can(at.wrapping_add(LAST));
    let ours = u32::try_from(signal).is_ok_and(|signal| !NOT_OURS.contains(&signal));
    let is_possible = permits::records() && original(Hook::Sigaction) != 0;
    if !ours || size != 8 || !is_possible || !whole(new, kernel::is_readable) {
        return false;
    }
    // SAFETY: it is there, and the program's, or null.
    let wanted = (new != 0).then(|| unsafe { (new as *const KernelAction).read_unaligned() }).map(Action::of_kernel);
    // It may be in the same place, and has any value then.
    if !whole(old, kernel::is_writable) {
        return false;
    }
    let mut before = Action::of_kernel(KernelAction::default());
    let wanted = wanted.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: both are here.
    if unsafe { sigaction(signal as i32, wanted, &raw mut before) } != 0 {
        return false;
    }
    if old != 0 {
        let Action { handler, mask: [mask, ..], flags, restorer } = before;
        let before = KernelAction { handler, flags: flags.into(), restorer, mask };
        // SAFETY: it is there, and the program's.
        unsafe { (old as *mut KernelAction).write_unaligned(before) };
    }
    true
}

/// Signals whose actions are not the program's: SIGKILL, SIGSTOP, and two of glibc's own.
const NOT_OURS: [u32; 4] = [9, 19, 32, 33];

/// Has the kernel call the stand-in for handlers that the program has installed before the agent came. All other threads are stopped.
pub fn adopt() {
    (1..SIGNALS as u32).filter(|s| !NOT_OURS.contains(s)).for_each(adopt_one);
}

/// Has the kernel call the stand-in for a signal, if it calls a handler of the program.
fn adopt_one(signal: u32) {
    let action = kernel::action(signal);
    if let Some(handler) = HANDLERS.get(signal as usize).filter(|_| action.handler > 1 && action.handler != own()) {
        handler.set(&Action::of_kernel(action));
        // SAFETY: the stand-in is a handler; flags and restorer are the program's.
        unsafe { kernel::set_action(signal, &KernelAction { handler: own(), mask: kernel::ALL, ..action }) };
    }
}

/// Gives the kernel the program's handlers. All other threads are stopped.
pub fn give_back() {
    // All others are stopped: it is this thread alone that writes it.
    TURNS.store((TURNS.load(Relaxed) | 1).wrapping_add(1), Release);
    (1..SIGNALS as u32).filter(|s| !NOT_OURS.contains(s)).for_each(give_back_one);
}

/// Gives the kernel the program's handler of a signal, if it has the agent's.
fn give_back_one(signal: u32) {
    let action = kernel::action(signal);
    if let Some(handler) = HANDLERS.get(signal as usize).filter(|_| action.handler == own()) {
        let (mask, flags) = (handler.mask.load(Relaxed), u64::from(handler.flags.load(Relaxed)));
        let own = KernelAction { handler: handler.handler.load(Acquire), mask, flags: flags | action.flags, ..action };
        // SAFETY: what the program has asked for.
        unsafe { kernel::set_action(signal, &own) };
    }
}

/// Has the kernel's handler of a signal be whose it is to be, whatever sessions come and go meanwhile.
fn settle(signal: u32) {
    loop {
        let turn = TURNS.load(Acquire);
        match turn & 1 {
            0 => give_back_one(signal),
            _ => adopt_one(signal),
        }
        if TURNS.load(Acquire) == turn {
            return;
        }
    }
}

/// Puts right what a signal has interrupted, if that is a stub or a record of the agent's own.
fn repair(local: &Local, context: Context) {
    let pc = context.pc();
    if let Some((to, counts)) = record::interrupted(pc) {
        local.cur.fetch_add(if counts { 8 } else { 0 }, Relaxed);
        return context.set_pc(to);
    }
    if let Some((by, popped)) = areas::raises_at(pc) {
        popped.into_iter().for_each(|register| context.pop(register));
        context.raise(by.into());
        return context.set_pc(pc + u64::from(UNDO));
    }
    let Some((layout, offset)) = areas::stub_of(pc) else { return };
    if let Some(commit) = layout.commit.iter().find(|commit| commit.at == offset) {
        local.cur.fetch_add(commit.bytes.into(), Relaxed);
        return context.set_pc(pc + u64::from(commit.next - offset));
    }
    if let Some(part) = layout.again.iter().find(|a| a.start <= offset && offset < a.end) {
        let longest = layout.commit.iter().map(|commit| commit.bytes).max().unwrap_or(0);
        if longest > 8 {
            crate::values::clear_behind(local, longest.into());
        }
        let top = local.top.load(Relaxed);
        if top != 0 {
            // SAFETY: the entry below top, or the sentinel.
            local.top_slot.store(unsafe { crate::memory::load(top - ENTRY) }, Relaxed);
        }
        context.set_pc(pc - u64::from(offset) + u64::from(part.at));
    }
}

/// Signals of instructions: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const FAULTS: [i32; 5] = [4, 5, 7, 8, 11];

/// Whether it is the trap flag's signal for an instruction of a stub or of the agent, or within what stands for one of the program's: the
/// program sees the steps of its own code alone. What is begun anew after each step would never end.
fn is_step_of_ours(signal: i32, info: u64, pc: u64) -> bool {
    const SIGTRAP: i32 = 5;
    const TRAP_TRACE: i32 = 2;
    // SAFETY: as in `show_original`.
    signal == SIGTRAP
        && unsafe { ((info + 8) as *const i32).read() } == TRAP_TRACE
        && (areas::stub_of(pc).is_some() || areas::raises_at(pc).is_some() || is_agent(pc) || is_within(pc))
}

unsafe extern "C" {
    safe static __ehdr_start: u8;
    safe static etext: u8;
}

/// Whether a pc in moved code is not where the code for an instruction begins.
fn is_within(pc: u64) -> bool {
    areas::moved(pc).is_some_and(|moved| moved.find(moved.original) != Some(pc))
}

/// Whether a pc is in the agent's own code.
fn is_agent(pc: u64) -> bool {
    (&raw const __ehdr_start as u64..&raw const etext as u64).contains(&pc)
}

/// Has the program see a fault in moved code where it would be without the agent: it looks at the instruction, or leaves by an exception
/// whose tables know the original's place.
fn show_original(signal: i32, info: u64, context: Context) -> Option<areas::Moved> {
    // SAFETY: the kernel has put a siginfo_t there; the third of its first numbers is si_code, above 0 if the kernel has sent it.
    let sent_by_kernel = unsafe { ((info + 8) as *const i32).read() } > 0;
    let moved = areas::moved(context.pc()).filter(|_| FAULTS.contains(&signal) && sent_by_kernel)?;
    context.set_pc(moved.original);
    context.raise(moved.lowered as i64);
    Some(moved)
}

/// What the kernel calls for every handler of the program, with all signals blocked.
extern "C" fn stand_in(signal: i32, info: u64, context: u64) {
    // SAFETY: the kernel's own.
    let context = unsafe { Context::at(context) };
    if is_step_of_ours(signal, info, context.pc()) {
        return;
    }
    let local = local();
    let moved = show_original(signal, info, context);
    let mark = shadow::MARK;
    let place = &raw const mark as u64;
    repair(local, context);
    let pc = context.pc();
    shadow::remove_left_barrier(local, place);
    let before = (local.top.load(Relaxed), local.top_slot.load(Relaxed));
    shadow::raise_barrier(local, place);
    let suspended = heap::suspend(local);
    if let Some(handler) = HANDLERS.get(signal as usize) {
        call(handler, signal, info, context);
    }
    // It goes on in the moved code, also where the handler has chosen another instruction of it.
    let chosen = context.pc();
    let other = || if chosen == pc || !permits::records() { None } else { areas::instead_of(chosen) };
    if let Some(pc) = moved.and_then(|m| m.find(chosen)).or_else(other) {
        context.set_pc(pc);
    }
    heap::resume(local, &suspended);
    shadow::lower_barrier(local, place, before);
    // SAFETY: the barrier's mark, which must not be found here any more.
    unsafe { store(place, 0) };
}

/// Calls the program's handler, with the mask that it would have.
fn call(handler: &Handler, signal: i32, info: u64, context: Context) {
    let code = handler.handler.load(Acquire);
    let own = if handler.flags.load(Relaxed) & SA_NODEFER == 0 { 1 << (signal - 1) } else { 0 };
    if code <= 1 {
        return;
    }
    // SAFETY: the program's handler.
    let code: extern "C" fn(i32, u64, u64) = unsafe { core::mem::transmute(code) };
    // Where that may not be asked for, all signals stay blocked until it returns.
    if permits::records() {
        kernel::set_mask(context.mask() | handler.mask.load(Relaxed) | own);
    }
    code(signal, info, context.address());
    permits::block();
}
