//! Areas and patches: maps what the collector has planned, and replaces bytes of the program.
//!
//! With one thread in the process, bytes are just written. With several, each patch is made in three steps that no thread can see
//! half of: int3 at its first byte, the rest, its first byte; all threads' processors are synchronised in between (membarrier(2)), and a
//! thread that comes to an int3 meanwhile goes on in the stub. A patch that splits instructions needs more: no thread may be between its
//! first byte and its end. That holds for modules that the loader has just mapped, before their constructors run
//! ([`Reason::Modules`]), and it is the collector's duty for [`Reason::Attach`]; else such patches are not made.

use crate::context::Context;
use crate::kernel::{self, KernelAction};
use crate::plan::{Plan, map_area, table};
use crate::text::{read_text, write_text};
use crate::{areas, child, originals, own, record, shared, sites};
use abi::message::{Hook, Installed, Reason};
use abi::plan::{Header, Original, PATCH, Patch};
use abi::stub::Variant;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU16, AtomicU64};
use unwind::Mapping;

const INT3: u8 = 0xcc;
const JMP: u8 = 0xe9;
/// Where an area has the minimum of timed stubs, from the end of its stubs.
const MINIMUM: u64 = abi::message::SLOWS as u64 * 8;
const SIGTRAP: u32 = 5;
/// MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, and its registration.
const SYNC: usize = 1 << 5;
const REGISTER: usize = 1 << 6;

/// The mappings of a plan for the unwinder.
pub fn mappings(bytes: &[u8]) -> &[Mapping] {
    let header = table::<Header>(bytes, 0, 1).and_then(<[Header]>::first);
    header.and_then(|h| table(bytes, h.mappings_at, h.mappings)).unwrap_or_default()
}

/// Which patches can be made, and how.
#[derive(Clone, Copy)]
struct Way {
    /// No other thread executes what is patched.
    alone: bool,
    /// Patches that split instructions too.
    splits: bool,
}

/// Maps the areas and makes the patches.
pub fn install(bytes: &[u8], reason: Reason) -> Installed {
    // The collector has stopped all other threads of a process that it attaches to.
    let alone = reason == Reason::Attach || own::threads() == Some(1);
    carry_out(bytes, Way { alone, splits: alone || reason == Reason::Modules })
}

/// Makes the patches of a plan anew, of which all modules have just been loaded.
pub fn install_again(bytes: &[u8]) -> Installed {
    carry_out(bytes, Way { alone: true, splits: true })
}

fn carry_out(bytes: &[u8], way: Way) -> Installed {
    let Some(plan) = Plan::new(bytes) else { return Installed::failure(kernel::EPROTO) };
    // One byte for each area: whether it is there. New memory, which goes when the plan has been carried out.
    let len = (plan.areas.len() as u64 + 4096) & !4095;
    let Some(flags) = kernel::reserve(len) else { return Installed::failure(kernel::ENOMEM) };
    // SAFETY: this many bytes have been reserved.
    let there = unsafe { core::slice::from_raw_parts_mut(flags as *mut u8, plan.areas.len()) };
    for (area, there) in plan.areas.iter().zip(there.iter_mut()) {
        *there = u8::from(map_area(area, plan.bytes));
    }
    let hooked = originals::are_in();
    for original in plan.originals {
        let patch = plan.patches.get(original.patch as usize);
        let Some(patch) = patch.filter(|p| there.get(p.area as usize) == Some(&1)) else { continue };
        originals::set(original.hook, original.address);
        if original.hook == Hook::FreeOfLibc as u32 {
            originals::set_free_of_libc(patch.address - u64::from(patch.skipped));
        }
    }
    // With memory for records, and stubs that write some, it is a recording.
    let recording = plan.areas.iter().zip(there.iter()).find(|(area, there)| **there == 1 && area.stubs > 0);
    if let Some((area, _)) = recording.filter(|_| shared::control().is_some())
        && let Some(variant) = Variant::of(area.variant).filter(|v| abi::tracer::records(*v))
    {
        // SAFETY: the area is there, and its pointers lie behind its stubs.
        let minimum = unsafe { ((area.address + area.stubs + MINIMUM) as *const u64).read_unaligned() };
        if !record::begin(variant, minimum) {
            // SAFETY: nothing of it is borrowed any more.
            unsafe { kernel::unmap(flags, len) };
            return Installed::failure(kernel::EBUSY);
        }
    }
    let installed = Patcher { hooked, ..Patcher::new(&plan, there, way) }.run();
    // SAFETY: nothing of it is borrowed any more.
    unsafe { kernel::unmap(flags, len) };
    installed
}

/// Makes the patches of a plan.
struct Patcher<'a> {
    plan: &'a Plan<'a>,
    there: &'a [u8],
    /// `/proc/self/mem`, or negative.
    memory: i32,
    way: Way,
    /// Put the old bytes where the new ones are.
    undo: bool,
    spared: Spared,
    /// The hooks are there already.
    hooked: bool,
    done: Installed,
}

impl<'a> Patcher<'a> {
    fn new(plan: &'a Plan<'a>, there: &'a [u8], way: Way) -> Patcher<'a> {
        let memory = kernel::open_own(c"/proc/self/mem", kernel::O_RDWR) as i32;
        let done = Installed::failure(0);
        Patcher { plan, there, memory, way, undo: false, spared: Spared::Nothing, hooked: false, done }
    }

    /// The bytes that are to be there, and those that replace them.
    fn bytes<'p>(&self, patch: &'p Patch) -> (&'p [u8; PATCH], &'p [u8; PATCH]) {
        if self.undo { (&patch.new, &patch.old) } else { (&patch.old, &patch.new) }
    }

    fn run(mut self) -> Installed {
        if self.undo {
            self.count_probes();
        }
        if self.way.alone {
            self.write_all()
        } else {
            self.write_live()
        }
        if !self.undo {
            self.count_probes();
        }
        if self.memory >= 0 {
            kernel::close(self.memory);
        }
        self.done
    }

    /// Raises the counters of static probes whose patches are there, or lowers them.
    fn count_probes(&self) {
        for counter in self.plan.counters {
            let Some(patch) = self.plan.patches.get(counter.patch as usize) else { continue };
            let len = patch.len as usize;
            let there = self.read(patch.address, len).unwrap_or_default();
            if !counter.address.is_multiple_of(2) || len == 0 || there.get(..len) != patch.new.get(..len) {
                continue;
            }
            // SAFETY: the module is there, since its code has the patch, and it may write to its counter, as the collector has seen.
            let number = unsafe { &*(counter.address as *const AtomicU16) };
            if self.undo {
                number.fetch_sub(1, Relaxed);
            } else {
                number.fetch_add(1, Relaxed);
            }
        }
    }

    /// Whether a patch is to stay as it is.
    fn is_spared(&self, patch: &Patch) -> bool {
        match self.spared {
            Spared::Nothing => false,
            Spared::Unwinder => {
                self.hook(patch).is_some_and(|h| [Hook::FindFde as u32, Hook::Backtrace as u32].contains(&h))
            }
            Spared::Hooks => {
                let of_heap = Hook::Malloc as u32..=Hook::FreeOfLibc as u32;
                self.hook(patch).is_some_and(|h| !of_heap.contains(&h))
            }
        }
    }

    /// The hook that a patch makes.
    fn hook(&self, patch: &Patch) -> Option<u32> {
        let is_it = |o: &&Original| self.plan.patches.get(o.patch as usize).is_some_and(|p| p.address == patch.address);
        self.plan.originals.iter().find(is_it).map(|o| o.hook)
    }

    /// What is to be written to undo a patch whose first byte is no longer its own: a probe or a breakpoint on it, which restores the file's
    /// byte when it goes, or has done so already. That byte stays, the others are the function's again.
    fn rest(&self, patch: &Patch, there: &[u8]) -> Option<[u8; PATCH]> {
        let len = patch.len as usize;
        let (new, old) = (patch.new.get(..len)?, patch.old.get(..len)?);
        let is_changed = there.first().is_some_and(|b| [INT3, old[0]].contains(b)) && there.get(1..len) == new.get(1..);
        let mut rest = patch.old;
        rest[0] = *there.first()?;
        (self.undo && is_changed).then_some(rest)
    }

    /// Counts a patch that finds other bytes than it expects. Those that are there already, of hooks too, and of functions that have tracers,
    /// are none that are missing.
    fn refuse(&self, patch: &Patch, there: &[u8], done: &mut Installed) {
        if self.undo {
            done.other_bytes += 1;
        } else if patch.new.get(..patch.len as usize) == Some(there) {
            done.patched += 1;
        } else if self.hooked && self.hook(patch).is_some() {
            // As it should be.
        } else if sites::meet(patch, there) {
            done.patched += 1;
        } else {
            done.other_bytes += 1;
        }
    }

    /// Whether a patch can be made; else it is counted.
    fn wanted(&mut self, patch: &Patch) -> bool {
        let len = patch.len as usize;
        if self.is_spared(patch) {
            return false;
        }
        if self.there.get(patch.area as usize) != Some(&1) {
            self.done.no_area += 1;
        } else if !(1..=PATCH).contains(&len) || patch.splits != 0 && !self.way.splits {
            self.done.failed += 1;
        } else {
            let there = self.read(patch.address, len).unwrap_or_default();
            if there.get(..len) == self.bytes(patch).0.get(..len) {
                return true;
            }
            if let Some(rest) = self.rest(patch, there.get(..len).unwrap_or_default()) {
                let made = rest.get(..len).is_some_and(|bytes| self.write(patch.address, bytes));
                self.count(made);
                return false;
            }
            let mut done = self.done;
            self.refuse(patch, there.get(..len).unwrap_or_default(), &mut done);
            self.done = done;
        }
        false
    }

    fn read(&self, address: u64, len: usize) -> Option<[u8; PATCH]> {
        // SAFETY: the plan's patches lie in modules, which stay: it is carried out in the loader, in constructors, or while threads are stopped.
        unsafe { read_text(self.memory, address, len) }
    }

    fn write(&self, address: u64, bytes: &[u8]) -> bool {
        // SAFETY: as in `read`; the bytes are those of a patch, of which no thread sees a half.
        unsafe { write_text(self.memory, address, bytes) }
    }

    fn count(&mut self, made: bool) {
        *(if made { &mut self.done.patched } else { &mut self.done.failed }) += 1;
    }

    /// All patches, in a process of one thread: page by page, because each write is a call of the kernel.
    fn write_all(&mut self) {
        let patches = self.plan.patches;
        let mut i = 0;
        while let Some(first) = patches.get(i) {
            let page = first.address & !4095;
            let inside = |p: &Patch| p.address & !4095 == page && (p.address + u64::from(p.len) - 1) & !4095 == page;
            let count = patches.get(i..).unwrap_or(&[]).iter().take_while(|p| p.len > 0 && inside(p)).count();
            if count > 1 && self.write_page(page, patches.get(i..i + count).unwrap_or(&[])) {
                i += count;
                continue;
            }
            if self.wanted(first) {
                let made =
                    self.bytes(first).1.get(..first.len as usize).is_some_and(|new| self.write(first.address, new));
                self.count(made);
            }
            i += 1;
        }
    }

    /// Patches of one page. False: nothing was done.
    fn write_page(&mut self, page: u64, patches: &[Patch]) -> bool {
        let mut bytes = [0u8; 4096];
        if self.memory < 0 || kernel::pread(self.memory, &mut bytes, page) != 4096 {
            return false;
        }
        let (mut done, mut changed) = (Installed::failure(0), false);
        for patch in patches {
            let at = (patch.address - page) as usize;
            let len = patch.len as usize;
            let (old, new) = self.bytes(patch);
            let (old, new) = (old.get(..len), new.get(..len));
            if self.is_spared(patch) {
                continue;
            }
            if self.there.get(patch.area as usize) != Some(&1) {
                done.no_area += 1;
            } else if let (Some(there), Some(old), Some(new)) = (bytes.get_mut(at..at + len), old, new) {
                let rest = self.rest(patch, there);
                if let Some(new) = if there == old { Some(new) } else { rest.as_ref().and_then(|r| r.get(..len)) } {
                    there.copy_from_slice(new);
                    done.patched += 1;
                    changed = true;
                } else {
                    self.refuse(patch, there, &mut done);
                }
            } else {
                done.failed += 1;
            }
        }
        if changed && kernel::pwrite(self.memory, &bytes, page) != 4096 {
            return false;
        }
        self.done.patched += done.patched;
        self.done.other_bytes += done.other_bytes;
        self.done.no_area += done.no_area;
        self.done.failed += done.failed;
        true
    }

    /// All patches, while other threads run.
    fn write_live(&mut self) {
        let patches = self.plan.patches;
        if patches.is_empty() {
            return;
        }
        if kernel::membarrier(REGISTER) != 0 {
            self.done.failed += patches.len() as u32;
            return;
        }
        LIVE.store(core::ptr::from_ref(self.plan) as u64, Release);
        let action = KernelAction {
            handler: trap as *const () as u64,
            flags: SA_SIGINFO | SA_RESTORER | SA_ONSTACK,
            restorer: &raw const trapline_restorer as u64,
            mask: kernel::ALL,
        };
        // SAFETY: the handler and its restorer are the agent's; what the program has comes back below.
        let before = unsafe { kernel::set_action(SIGTRAP, &action) };
        // A first byte of int3 says in the second and third step which patches go on.
        for patch in patches {
            if self.wanted(patch) {
                let made = self.write(patch.address, &[INT3]);
                self.count(made);
            }
        }
        kernel::membarrier(SYNC);
        let begun = |s: &Self, p: &Patch| s.read(p.address, 1).is_some_and(|b| b[0] == INT3) && p.old[0] != INT3;
        for patch in patches {
            if let Some(tail) = patch.new.get(1..patch.len as usize).filter(|_| begun(self, patch)) {
                self.write(patch.address + 1, tail);
            }
        }
        kernel::membarrier(SYNC);
        for patch in patches {
            if let Some(head) = patch.new.get(..1).filter(|_| begun(self, patch)) {
                self.write(patch.address, head);
            }
        }
        kernel::membarrier(SYNC);
        // SAFETY: as it was.
        unsafe { kernel::set_action(SIGTRAP, &before) };
        LIVE.store(0, SeqCst);
        // One may have seen the plan, and be preempted since. No test can have it stand between two of the handler's instructions.
        while TRAPPED.load(SeqCst) & COUNT != 0 && TRAPPED.load(SeqCst) >> 32 == u64::from(child::owner()) {
            kernel::sleep(20_000);
        }
    }
}

/// What stays when a plan is undone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spared {
    Nothing,
    /// What finds stubs for exceptions, and leaves them out of backtraces: threads will return into stubs.
    Unwinder,
    /// All hooks but those of allocators: functions have tracers.
    Hooks,
}

/// Undoes a plan. All other threads are stopped. How many patches could not be undone, because their bytes have changed: the program
/// has written over them, or unloaded the module.
pub fn undo(bytes: &[u8], spared: Spared) -> u64 {
    let Some(plan) = Plan::new(bytes) else { return 0 };
    let len = (plan.areas.len() as u64 + 4096) & !4095;
    let Some(flags) = kernel::reserve(len) else { return plan.patches.len() as u64 };
    // SAFETY: this many bytes have been reserved.
    let there = unsafe { core::slice::from_raw_parts_mut(flags as *mut u8, plan.areas.len()) };
    for (area, there) in plan.areas.iter().zip(there.iter_mut()) {
        *there = u8::from(areas::all().iter().any(|a| a.address == area.address));
    }
    let way = Way { alone: true, splits: true };
    let done = Patcher { undo: true, spared, ..Patcher::new(&plan, there, way) }.run();
    // SAFETY: nothing of it is borrowed any more.
    unsafe { kernel::unmap(flags, len) };
    u64::from(done.failed)
}

/// The plan that is being carried out while other threads run.
static LIVE: AtomicU64 = AtomicU64::new(0);
/// How many threads are in [`trap`], and above that the process: a child of fork has none of its parent's.
static TRAPPED: AtomicU64 = AtomicU64::new(0);
const COUNT: u64 = u32::MAX as u64;

const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_ONSTACK: u64 = 0x0800_0000;

core::arch::global_asm!(
    ".text",
    ".globl trapline_restorer",
    ".hidden trapline_restorer",
    ".type trapline_restorer,@function",
    "trapline_restorer:",
    "mov eax, 15",
    "syscall",
    ".size trapline_restorer, .-trapline_restorer",
);

unsafe extern "C" {
    static trapline_restorer: u8;
}

/// A thread has come to a function of which only the first byte is patched: it goes where the patch will lead.
extern "C" fn trap(_: i32, _: u64, context: u64) {
    let own = u64::from(child::owner()) << 32;
    let enters = |n: u64| Some(if n & !COUNT == own { n + 1 } else { own + 1 });
    let _ = TRAPPED.fetch_update(SeqCst, SeqCst, enters);
    // SAFETY: the kernel's own.
    go_on(unsafe { Context::at(context) }, LIVE.load(SeqCst));
    TRAPPED.fetch_sub(1, SeqCst);
}

fn go_on(context: Context, live: u64) {
    let pc = context.pc();
    if live == 0 {
        // The patch is complete by now: it is executed again.
        return context.set_pc(pc - 1);
    }
    // SAFETY: the plan, whose type has a shorter lifetime here, lives until this thread has left.
    let plan = unsafe { &*(live as *const Plan<'_>) };
    let Some(patch) = plan.patches.iter().find(|p| p.address == pc - 1) else { return };
    if patch.new[0] == JMP {
        let distance = i32::from_le_bytes([patch.new[1], patch.new[2], patch.new[3], patch.new[4]]);
        context.set_pc((patch.address + 5).wrapping_add_signed(i64::from(distance)));
    }
}
