//! Areas and patches: maps what the collector has planned, and replaces bytes of the program.
//!
//! With one thread in the process, bytes are just written. With several, each patch is made in three steps that no thread can see
//! half of: int3 at its first byte, the rest, its first byte; all threads' processors are synchronised in between (membarrier(2)), and a
//! thread that comes to an int3 meanwhile goes on in the stub. A patch that splits instructions needs more: no thread may be between its
//! first byte and its end. That holds for modules that the loader has just mapped, before their constructors run
//! ([`Reason::Modules`]), and it is the collector's duty for [`Reason::Attach`]; else such patches are not made.
//!
//! The threads that a collector has stopped go on when it is killed, at any moment. Their patches are made in the three steps too: once all
//! first bytes are int3, no thread can come to be in between any more, and it is time to see whether the collector is still there.

use crate::context::Context;
use crate::kernel::{self, KernelAction};
use crate::plan::{Plan, map_area, table};
use crate::text::{read_text, write_text};
use crate::{areas, child, originals, own, record, shared, sites};
use abi::message::{Hook, Installed, Reason};
use abi::plan::{Header, Original, PATCH, Patch};
use abi::stub::Variant;
use core::ops::Range;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU16, AtomicU64};
use unwind::Mapping;

const INT3: u8 = 0xcc;
const JMP: u8 = 0xe9;
/// Where an area has the minimum of timed stubs, from the end of its stubs.
const MINIMUM: u64 = abi::message::SLOWS as u64 * 8;
const SIGTRAP: u32 = 5;
/// How long a signal may stay pending, of a thread that does not get a processor, or that somebody else has stopped: 20 us each.
const NAPS: u32 = 50_000;
/// MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, and its registration.
const SYNC: usize = 1 << 5;
const REGISTER: usize = 1 << 6;

/// The mappings of a plan for the unwinder.
pub fn mappings(bytes: &[u8]) -> &[Mapping] {
    let header = table::<Header>(bytes, 0, 1).and_then(<[Header]>::first);
    header.and_then(|h| table(bytes, h.mappings_at, h.mappings)).unwrap_or_default()
}

/// Who else may execute what is patched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Nobody,
    /// Threads that the collector has stopped.
    Stopped,
    Run,
}

impl Others {
    /// Of a process whose other threads the collector has stopped.
    fn stopped() -> Others {
        if own::threads() == Some(1) { Others::Nobody } else { Others::Stopped }
    }
}

/// Which patches can be made, and how.
#[derive(Clone, Copy)]
struct Way {
    others: Others,
    /// Patches that split instructions too.
    splits: bool,
}

/// What is written of patches in one pass over all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Whole,
    /// int3 at the first byte.
    Trap,
    /// All but the first byte.
    Tail,
    /// The first byte.
    Head,
    /// The first byte that was there before the trap.
    Back,
}

/// Maps the areas and makes the patches.
pub fn install(bytes: &[u8], reason: Reason) -> Installed {
    let others = match Others::stopped() {
        Others::Stopped if reason != Reason::Attach => Others::Run,
        others => others,
    };
    carry_out(bytes, Way { others, splits: others != Others::Run || reason == Reason::Modules })
}

/// Makes the patches of a plan anew, of which all modules have just been loaded.
pub fn install_again(bytes: &[u8]) -> Installed {
    carry_out(bytes, Way { others: Others::Nobody, splits: true })
}

/// What is noted while a plan is carried out, in memory of its own: a byte for each area, whether it is there, and one for each patch, whether it
/// has begun.
struct Notes {
    at: u64,
    len: u64,
    areas: &'static mut [u8],
    patches: &'static mut [u8],
}

impl Notes {
    fn of(plan: &Plan<'_>) -> Option<Notes> {
        let (areas, patches) = (plan.areas.len(), plan.patches.len());
        let len = (areas as u64 + patches as u64 + 4096) & !4095;
        let at = kernel::reserve(len)?;
        // SAFETY: this many bytes have been reserved, and go with the value, which gives no reference away.
        let all = unsafe { core::slice::from_raw_parts_mut(at as *mut u8, areas + patches) };
        let (areas, patches) = all.split_at_mut_checked(areas)?;
        Some(Notes { at, len, areas, patches })
    }

    fn has_area(&self, area: u32) -> bool {
        self.areas.get(area as usize) == Some(&1)
    }

    fn has_begun(&self, patch: usize) -> bool {
        self.patches.get(patch) == Some(&1)
    }

    fn begin(&mut self, patch: usize, has_begun: bool) {
        if let Some(noted) = self.patches.get_mut(patch) {
            *noted = u8::from(has_begun);
        }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        // SAFETY: nothing of it is borrowed any more.
        unsafe { kernel::unmap(self.at, self.len) };
    }
}

fn carry_out(bytes: &[u8], way: Way) -> Installed {
    let Some(plan) = Plan::new(bytes) else { return Installed::failure(kernel::EPROTO) };
    let Some(notes) = Notes::of(&plan) else { return Installed::failure(kernel::ENOMEM) };
    for (area, there) in plan.areas.iter().zip(notes.areas.iter_mut()) {
        *there = u8::from(map_area(area, plan.bytes));
    }
    let hooked = originals::are_in();
    for original in plan.originals {
        let patch = plan.patches.get(original.patch as usize);
        let Some(patch) = patch.filter(|p| notes.has_area(p.area)) else { continue };
        originals::set(original.hook, original.address);
        if original.hook == Hook::FreeOfLibc as u32 {
            originals::set_free_of_libc(patch.address - u64::from(patch.skipped));
        }
    }
    // With memory for records, and stubs that write some, it is a recording.
    let recording = plan.areas.iter().zip(notes.areas.iter()).find(|(area, there)| **there == 1 && area.stubs > 0);
    if let Some((area, _)) = recording.filter(|_| shared::control().is_some())
        && let Some(variant) = Variant::of(area.variant).filter(|v| abi::tracer::records(*v))
    {
        // SAFETY: the area is there, and its pointers lie behind its stubs.
        let minimum = unsafe { ((area.address + area.stubs + MINIMUM) as *const u64).read_unaligned() };
        if !record::begin(variant, minimum) {
            return Installed::failure(kernel::EBUSY);
        }
    }
    Patcher { hooked, ..Patcher::new(&plan, notes, way) }.run()
}

/// Makes the patches of a plan.
struct Patcher<'a> {
    plan: &'a Plan<'a>,
    notes: Notes,
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

/// Bytes of a patch to be written.
struct Part {
    bytes: [u8; PATCH],
    /// Which of them.
    range: Range<usize>,
}

impl<'a> Patcher<'a> {
    fn new(plan: &'a Plan<'a>, notes: Notes, way: Way) -> Patcher<'a> {
        let memory = kernel::open_own(c"/proc/self/mem", kernel::O_RDWR) as i32;
        let done = Installed::failure(0);
        Patcher { plan, notes, memory, way, undo: false, spared: Spared::Nothing, hooked: false, done }
    }

    /// The bytes that are to be there, and those that replace them.
    fn bytes<'p>(&self, patch: &'p Patch) -> (&'p [u8; PATCH], &'p [u8; PATCH]) {
        if self.undo { (&patch.new, &patch.old) } else { (&patch.old, &patch.new) }
    }

    fn run(mut self) -> Installed {
        if self.undo {
            self.count_probes();
        }
        match self.way.others {
            Others::Nobody => self.pass(Step::Whole),
            Others::Stopped | Others::Run => self.write_live(),
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

    /// What a step writes of a patch of this number, where these bytes are; none: nothing, and it is counted. Whether it has begun is noted.
    fn part(&mut self, step: Step, (i, patch): (usize, &Patch), there: &[u8], done: &mut Installed) -> Option<Part> {
        let (old, new) = self.bytes(patch);
        let (old, new, len) = (*old, *new, patch.len as usize);
        let part = |bytes, range| Some(Part { bytes, range });
        if !matches!(step, Step::Whole | Step::Trap) {
            return match step {
                _ if !self.notes.has_begun(i) => None,
                Step::Tail => part(new, 1..len),
                Step::Back => part(old, 0..1),
                _ => part(new, 0..1),
            };
        }
        self.notes.begin(i, false);
        if self.is_spared(patch) {
            return None;
        }
        if !self.notes.has_area(patch.area) {
            done.no_area += 1;
        } else if !(1..=PATCH).contains(&len) || patch.splits != 0 && !self.way.splits {
            done.failed += 1;
        } else if old.get(..len) == Some(there) && step == Step::Whole {
            return part(new, 0..len);
        } else if old.get(..len) == Some(there) && old[0] != INT3 {
            self.notes.begin(i, true);
            return part([INT3; PATCH], 0..1);
        } else if let Some(rest) = self.rest(patch, there) {
            return part(rest, 0..len);
        } else {
            self.refuse(patch, there, done);
        }
        None
    }

    fn read(&self, address: u64, len: usize) -> Option<[u8; PATCH]> {
        // SAFETY: the plan's patches lie in modules, which stay: it is carried out in the loader, in constructors, or while threads are stopped.
        unsafe { read_text(self.memory, address, len) }
    }

    fn write(&self, address: u64, bytes: &[u8]) -> bool {
        // SAFETY: as in `read`; the bytes are those of a patch, of which no thread sees a half.
        unsafe { write_text(self.memory, address, bytes) }
    }

    /// A step of all patches: page by page, because each write is a call of the kernel. Threads that run may write to what is beside a patch.
    fn pass(&mut self, step: Step) {
        let (patches, whole_pages) = (self.plan.patches, self.way.others != Others::Run);
        let mut i = 0;
        while let Some(first) = patches.get(i) {
            let page = first.address & !4095;
            let inside = |p: &Patch| p.address & !4095 == page && (p.address + u64::from(p.len) - 1) & !4095 == page;
            let count = patches.get(i..).unwrap_or(&[]).iter().take_while(|p| p.len > 0 && inside(p)).count();
            if whole_pages && count > 1 && self.write_page(step, page, i..i + count) {
                i += count;
                continue;
            }
            self.write_one(step, i, first);
            i += 1;
        }
    }

    fn write_one(&mut self, step: Step, i: usize, patch: &Patch) {
        let there = self.read(patch.address, patch.len as usize).unwrap_or_default();
        let mut done = self.done;
        let part = self.part(step, (i, patch), there.get(..patch.len as usize).unwrap_or_default(), &mut done);
        if let Some(Part { bytes, range }) = part {
            let from = patch.address + range.start as u64;
            let made = bytes.get(range).is_some_and(|bytes| self.write(from, bytes));
            if matches!(step, Step::Whole | Step::Trap) {
                *(if made { &mut done.patched } else { &mut done.failed }) += 1;
                if !made {
                    self.notes.begin(i, false);
                }
            }
        }
        self.done = done;
    }

    /// A step of patches of one page. False: nothing was done.
    fn write_page(&mut self, step: Step, page: u64, patches: Range<usize>) -> bool {
        let mut bytes = [0u8; 4096];
        if self.memory < 0 || kernel::pread(self.memory, &mut bytes, page) != 4096 {
            return false;
        }
        let (mut done, mut changed) = (self.done, false);
        let all = self.plan.patches;
        for (i, patch) in all.iter().enumerate().take(patches.end).skip(patches.start) {
            let at = (patch.address - page) as usize;
            let Some(there) = bytes.get_mut(at..at + patch.len as usize) else { continue };
            let Some(part) = self.part(step, (i, patch), there, &mut done) else { continue };
            if let (Some(to), Some(from)) = (there.get_mut(part.range.clone()), part.bytes.get(part.range)) {
                to.copy_from_slice(from);
                done.patched += u32::from(matches!(step, Step::Whole | Step::Trap));
                changed = true;
            }
        }
        if changed && kernel::pwrite(self.memory, &bytes, page) != 4096 {
            return false;
        }
        self.done = done;
        true
    }

    /// All patches, while other threads run, or may run at any moment.
    fn write_live(&mut self) {
        let runs = self.way.others == Others::Run;
        if self.plan.patches.is_empty() {
            return;
        }
        if runs && kernel::membarrier(REGISTER) != 0 {
            self.done.failed += self.plan.patches.len() as u32;
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
        self.pass(Step::Trap);
        self.synchronise();
        if !runs && !self.undo && !own::is_held() {
            // Some may run since the first int3 was written, and be between the first byte of a patch and its end.
            self.pass(Step::Back);
            self.done = Installed { failed: self.plan.patches.len() as u32, ..Installed::failure(0) };
        } else {
            self.pass(Step::Tail);
            self.synchronise();
            self.pass(Step::Head);
        }
        self.synchronise();
        if runs || !own::is_held() {
            // One that has come to an int3 may not have got its signal yet.
            let mut naps = NAPS;
            while naps > 0 && own::has_pending(SIGTRAP) {
                kernel::sleep(20_000);
                naps -= 1;
            }
        }
        // SAFETY: as it was.
        unsafe { kernel::set_action(SIGTRAP, &before) };
        LIVE.store(0, SeqCst);
        // One may have seen the plan, and be preempted since. No test can have it stand between two of the handler's instructions.
        while TRAPPED.load(SeqCst) & COUNT != 0 && TRAPPED.load(SeqCst) >> 32 == u64::from(child::owner()) {
            kernel::sleep(20_000);
        }
    }

    /// What is written is there for all threads that run.
    fn synchronise(&self) {
        if self.way.others == Others::Stopped {
            if own::is_held() {
                return;
            }
            kernel::membarrier(REGISTER);
        }
        kernel::membarrier(SYNC);
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
    let Some(notes) = Notes::of(&plan) else { return plan.patches.len() as u64 };
    for (area, there) in plan.areas.iter().zip(notes.areas.iter_mut()) {
        *there = u8::from(areas::all().iter().any(|a| a.address == area.address));
    }
    let way = Way { others: Others::stopped(), splits: true };
    let done = Patcher { undo: true, spared, ..Patcher::new(&plan, notes, way) }.run();
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
