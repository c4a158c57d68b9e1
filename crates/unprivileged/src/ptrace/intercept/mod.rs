//! Calls that processes record themselves: a `syscall` instruction that stops is patched, and its calls do not stop any more.
//!
//! ```text
//!  stop at a call ─► memory for the process, an area for stubs, a stub, a patch ─► the call begins again
//!                                                                          │
//!  patched site ─► stub ─► sys::intercept::code: the call, its record in the thread's slot ─► drained before each stop, and in between
//! ```
//!
//! Everything else stops as before, and what the process cannot record itself too (no slot, no room, no row): there is no call that neither of
//! the two shows. A thread finds its slot by `gs`, which programs do not use; where one does, nothing is patched.
//!
//! Memory is made while the process has one thread, so that none sees the descriptor that it takes for a moment.

mod batch;
mod clock;
mod functions;
mod inject;
mod record;
mod rows;
mod sites;

pub use clock::Clock;
pub use record::{Captures, Record, Sorted};

use batch::Batch;
use engine::capture::Limits;
use inject::Guest;
use patch::calls::{self, Way};
use sites::{Areas, Files, Identity};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use sys::intercept::{self as code, Memory, ROWS, Row, Slot};
use sys::proc;
use sys::ptrace::{self, Status, SyscallInfo};

/// Stops after which it is tried again to patch a site, and how many times as often it has to stop before that is tried once more.
const FEW: u32 = 3;
const AGAIN: u32 = 32;

const CLONE: u64 = 56;
const CLONE3: u64 = 435;
/// `include/uapi/linux/sched.h`.
const CLONE_VM: u64 = 0x100;
const SYS_MMAP: i64 = 9;
const SYS_CLOSE: i64 = 3;
const SYS_MREMAP: i64 = 25;
const SYS_MEMFD_CREATE: i64 = 319;
/// What the code calls to be asked for bytes: gettid and process_vm_readv; and for what descriptors are: fcntl, fstat, getsockopt, getsockname,
/// getpeername and readlinkat.
const ASKS: [usize; 2] = [186, 310];
const NAMES: [usize; 6] = [72, 5, 55, 51, 52, 267];
const MFD_CLOEXEC_ALLOW_SEALING: u64 = 3;
const READ_EXECUTE: u64 = 5;
const MAP_PRIVATE: u64 = 2;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// The name of the memory, as `/proc/PID/maps` shows it.
const NAME: &[u8; 16] = b"trapline\0\0\0\0\0\0\0\0";
/// Far below the stack pointer: nothing of the program's is there.
const FAR: u64 = 4096;

/// The rows of all calls that processes record themselves, by number.
pub fn rows(calls: &[bool], limits: Limits, names: bool) -> Vec<(usize, Row)> {
    let row = |nr: usize| {
        let schema = events::registry::by_number(nr as u64)?;
        rows::of(schema, events::registry::layout(schema.id)?, limits, names)
    };
    let wanted = calls.iter().enumerate().take(ROWS).filter(|(_, wanted)| **wanted);
    wanted.filter_map(|(nr, _)| Some((nr, row(nr)?))).collect()
}

/// The calls that the code makes itself, for these rows: they are nobody's, and do not stop there, whether they have rows or not.
pub fn own_calls(rows: &[(usize, Row)]) -> impl Iterator<Item = usize> {
    let any = |is: fn(&Row) -> bool| rows.iter().any(|(_, row)| is(row));
    let asks = ASKS.into_iter().filter(move |_| any(rows::asks));
    asks.chain(NAMES.into_iter().filter(move |_| any(Row::has_names)))
}

/// What is known of a `syscall` instruction.
#[derive(Clone, Copy, Debug)]
struct Site {
    stops: u32,
    /// When it is looked at next.
    next: u32,
}

/// What is patched in a program. A child of fork has a copy, a child that shares memory has its parent's.
#[derive(Clone, Default)]
struct Image {
    memory: Option<Rc<Memory>>,
    /// How many parts of the slots the process has mapped.
    parts: usize,
    /// There are no more.
    full: bool,
    /// Memory is not to be had, `gs` is the program's, or what was patched was put back.
    refused: bool,
    sites: HashMap<u64, Site>,
    areas: Areas,
    /// Where patches begin: a thread that finds a breakpoint there while one is made repeats the instruction.
    patched: HashSet<u64>,
    /// The files that have some.
    files: HashSet<Identity>,
}

/// All that is patched.
pub struct Intercept {
    rows: Vec<(usize, Row)>,
    has_row: Vec<bool>,
    images: HashMap<i32, Rc<RefCell<Image>>>,
    files: Files,
    /// Descriptors get names.
    names: bool,
    /// From time stamps to times.
    pub clock: Clock,
}

/// What has become of a thread at a stop.
pub enum Then {
    /// It is where it was.
    GoesOn,
    /// It will make its call from the beginning.
    Repeats,
    /// It has ended.
    Ended(Option<Status>),
}

impl Intercept {
    /// With these rows.
    pub fn new(rows: Vec<(usize, Row)>) -> Intercept {
        let mut has_row = vec![false; ROWS];
        rows.iter().for_each(|(nr, _)| has_row[*nr] = true);
        let names = rows.iter().any(|(_, row)| row.has_names());
        Intercept { rows, has_row, images: HashMap::new(), files: Files::default(), names, clock: Clock::new() }
    }

    /// Whether the threads of a process see the names of descriptors that the ptracer would see.
    pub fn sees_names(&self, pid: i32) -> bool {
        self.names && proc::shares_root(pid)
    }

    /// Does what can be done while a command starts.
    pub fn prepare(&self) {
        calls::prepare();
    }

    /// Whether processes record calls with this number.
    pub fn has(&self, nr: u64) -> bool {
        self.has_row.get(nr as usize).is_some_and(|has| *has)
    }

    /// A thread stops at the filter, at one of its calls; `alone`: it is the only one of its process.
    pub fn stop(&mut self, (pid, tid): (i32, i32), call: &SyscallInfo, alone: bool, slot: &mut Option<Slot>) -> Then {
        let begins_thread = call.nr == CLONE3 || call.nr == CLONE && call.args[0] & CLONE_VM != 0;
        let has_row = self.has(call.nr);
        if call.arch != ptrace::ARCH_X86_64 || !(has_row || begins_thread && alone) {
            return Then::GoesOn;
        }
        let at = call.ip.wrapping_sub(calls::SYSCALL);
        let image = Rc::clone(self.images.entry(pid).or_default());
        let is_shared = Rc::strong_count(&image) > 2;
        let mut image = image.borrow_mut();
        if image.refused || image.memory.is_none() && (!alone || is_shared) {
            return Then::GoesOn;
        }
        if has_row && slot.is_none() && image.memory.is_some() && !image.full {
            let Ok(mut guest) = Guest::new(tid, at) else { return Then::Ended(None) };
            let made = self.give_slot(&mut image, pid, &mut guest);
            if made.is_err() && guest.ended.is_some() {
                return Then::Ended(guest.ended);
            }
            *slot = made.unwrap_or(None);
            if slot.is_some() || guest.has_moved() {
                return guest.give_back(call.nr, Some(at)).map_or(Then::Ended(None), |()| Then::Repeats);
            }
        }
        let mut stops = 0;
        if has_row {
            let site = image.sites.entry(at).or_insert(Site { stops: 0, next: 1 });
            site.stops = site.stops.saturating_add(1);
            if site.stops < site.next {
                return Then::GoesOn;
            }
            stops = site.stops;
            site.next = if site.stops < FEW { FEW } else { site.next.saturating_mul(AGAIN) };
        } else if image.memory.is_some() {
            return Then::GoesOn;
        }
        let Ok(mut guest) = Guest::new(tid, at) else { return Then::Ended(None) };
        let here = Here { pid, at, alone: alone && !is_shared, stops };
        let made = self.patch(&mut image, &here, call, &mut guest, slot);
        if made.is_err() && guest.ended.is_some() {
            return Then::Ended(guest.ended);
        }
        let from = made.unwrap_or(None);
        let repeats = from.is_some() || guest.has_moved();
        match guest.give_back(call.nr, from) {
            Err(_) => Then::Ended(None),
            Ok(()) if repeats => Then::Repeats,
            Ok(()) => Then::GoesOn,
        }
    }

    /// Patches the site of a call, and those of its file that are known, or prepares that: where the call begins again, if it is patched.
    fn patch(
        &mut self,
        image: &mut Image,
        here: &Here,
        call: &SyscallInfo,
        guest: &mut Guest,
        slot: &mut Option<Slot>,
    ) -> io::Result<Option<u64>> {
        let has_row = self.has(call.nr);
        let place = if has_row { self.files.place(here.pid, here.at, call.nr, here.stops, &image.areas) } else { None };
        if has_row && place.is_none() {
            return Ok(None);
        }
        let area = place.as_ref().filter(|_| !image.areas.has_room(here.at));
        let mut area = area.and_then(|_| Areas::hole(here.pid, here.at));
        if image.memory.is_none() && !self.give_memory(image, here.pid, guest, (slot, &mut area))? {
            image.refused = true;
            return Ok(None);
        }
        if let Some(area) = area {
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
            let mapped = guest.call(SYS_MMAP, [area, sites::AREA, READ_EXECUTE, flags, u64::MAX, 0])?;
            if mapped as u64 == area {
                image.areas.add(area);
            }
        }
        let Some((place, map)) = place else { return Ok(None) };
        let begins_again = match place.way {
            // It is patched: a thread has come to the call itself.
            way if image.patched.contains(&calls::from(here.at, way)) => return Ok(None),
            Way::Front(front) => front.number().map(u64::from) == Some(call.nr),
            Way::Hole(_) => true,
        };
        let mut batch = Batch::default();
        let from = batch.add(image, &place);
        if image.files.insert(map.file) {
            for site in self.files.known(here.pid, &map, here.at) {
                let is_wanted = site.number.is_some_and(|number| self.has(number.into()));
                if is_wanted && !image.patched.contains(&calls::from(site.at, site.way)) {
                    batch.add(image, &site);
                }
            }
        }
        let made = batch.write(image, guest.tid(), here.alone)?;
        Ok(from.filter(|from| begins_again && made.contains(from)))
    }

    /// Makes the memory that a process records calls in, and gives its thread a slot; maps an area of stubs too, if there is one to be mapped. False:
    /// the memory is not to be had.
    fn give_memory(
        &self,
        image: &mut Image,
        pid: i32,
        guest: &mut Guest,
        (slot, area): (&mut Option<Slot>, &mut Option<u64>),
    ) -> io::Result<bool> {
        if guest.registers().gs_base() != 0 || !guest.registers().is_64_bit() {
            return Ok(false);
        }
        let (tid, name) = (guest.tid(), (guest.sp() - FAR) & !7);
        let mut there = [0; NAME.len()];
        if sys::mem::read(tid, name, &mut there)? != there.len() {
            return Ok(false);
        }
        ptrace::write_bytes(tid, name, NAME)?;
        let fd = guest.call(SYS_MEMFD_CREATE, [name, MFD_CLOEXEC_ALLOW_SEALING, 0, 0, 0, 0])?;
        ptrace::write_bytes(tid, name, &there)?;
        if fd < 0 {
            return Ok(false);
        }
        let memory = Memory::new(pid, fd as i32, &self.rows);
        let code = [code::CODE, code::CODE_LEN, READ_EXECUTE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd as u64, 0];
        let Some(memory) = memory.ok().filter(|_| guest.call(SYS_MMAP, code).is_ok_and(|at| at as u64 == code[0]))
        else {
            guest.call(SYS_CLOSE, [fd as u64, 0, 0, 0, 0, 0])?;
            return Ok(false);
        };
        let wanted = area.take();
        let (slots, mapped) =
            guest.run(code::setup(), [fd as u64, wanted.unwrap_or(0), sites::AREA])?.first_arguments();
        wanted.into_iter().filter(|area| *area == mapped).for_each(|area| image.areas.add(area));
        if slots != code::SLOTS {
            return Ok(false);
        }
        *slot = Slot::take(&memory, 1, self.sees_names(pid));
        if let Some(slot) = slot {
            guest.set_gs_base(slot.address());
        }
        (image.memory, image.parts) = (Some(memory), 1);
        Ok(true)
    }

    /// A slot for a thread that found none when it began, in a further part if need be.
    fn give_slot(&self, image: &mut Image, pid: i32, guest: &mut Guest) -> io::Result<Option<Slot>> {
        let parts = image.memory.as_ref().and_then(|memory| memory.parts_for_one_more());
        let Some(parts) = parts else {
            image.full = true;
            return Ok(None);
        };
        if guest.registers().gs_base() != 0 || !guest.registers().is_64_bit() {
            return Ok(None);
        }
        if parts > image.parts {
            // The mapping grows where it is: behind it there is nothing.
            let len = |parts: usize| code::PART_LEN * parts as u64;
            let at = guest.call(SYS_MREMAP, [code::SLOTS, len(image.parts), len(parts), 0, 0, 0])?;
            image.full = at as u64 != code::SLOTS;
            image.parts = if image.full { image.parts } else { parts };
        }
        let slot = self.slot(image, (pid, guest.tid()));
        slot.iter().for_each(|slot| guest.set_gs_base(slot.address()));
        Ok(slot)
    }

    /// A slot that nobody has, and that a stopped thread has mapped: another thread may have made its process meanwhile, or mapped a part.
    fn slot(&self, image: &Image, (pid, tid): (i32, i32)) -> Option<Slot> {
        let slot = Slot::take(image.memory.as_ref()?, image.parts, self.sees_names(pid))?;
        (slot.is_in_first_part() || ptrace::read_word(tid, slot.address()).is_ok()).then_some(slot)
    }

    /// A thread has stopped for the first time: it gets a slot if its process has memory, and one that nobody has.
    pub fn begin(&mut self, (pid, tid): (i32, i32)) -> Option<Slot> {
        let image = self.images.get(&pid).map(|image| image.borrow());
        let mut registers = ptrace::all_registers(tid).ok()?;
        let has_memory = image.as_ref().is_some_and(|image| image.memory.is_some());
        if !code::is_slot(registers.gs_base()) && (!has_memory || registers.gs_base() != 0) {
            return None;
        }
        let slot = image.and_then(|image| self.slot(&image, (pid, tid)));
        registers.set_gs_base(slot.as_ref().map_or(0, Slot::address));
        ptrace::set_all_registers(tid, &registers).ok()?;
        slot
    }

    /// A process has made another one.
    pub fn forked(&mut self, parent: i32, child: i32, shares_memory: bool) {
        if let Some(image) = self.images.get(&parent) {
            let theirs = if shares_memory { Rc::clone(image) } else { Rc::new(RefCell::new(image.borrow().clone())) };
            self.images.insert(child, theirs);
        }
    }

    /// A process has executed another program, or has ended.
    pub fn forget(&mut self, pid: i32) {
        self.images.remove(&pid);
    }

    /// Where a call is made decides whether it is one (Syscall User Dispatch): those of this process are made where the program has them from now on. The
    /// thread is stopped; others may be in stubs, and leave them as ever.
    pub fn put_back(&mut self, (pid, tid): (i32, i32)) {
        let mut image = self.images.entry(pid).or_default().borrow_mut();
        image.refused = true;
        for at in &image.patched {
            // Nothing leads to a hole then.
            if image.areas.of_hole(*at).is_none() {
                // What cannot be written is not mapped any more.
                let _ = batch::undo(tid, *at);
            }
        }
    }

    /// The program's address for a thread that is in a stub or a hole; none: it is in neither.
    pub fn in_program(&self, (pid, tid): (i32, i32), pc: u64) -> Option<u64> {
        let image = self.images.get(&pid)?.borrow();
        if !image.areas.has(pc) {
            return image.areas.of_hole(pc);
        }
        let (offset, mut words) = (pc % calls::STUB as u64, [0; 4]);
        for (word, at) in words.iter_mut().zip((pc - offset + calls::WORDS..).step_by(8)) {
            *word = ptrace::read_word(tid, at).ok()?;
        }
        calls::in_program(&words, offset)
    }

    /// A thread that executes single instructions (the trap flag) has executed one that is not the program's, a jump to a stub: where it goes on, and
    /// where it is after another such jump. Neither has a signal.
    pub fn stepped(&self, (pid, tid): (i32, i32), pc: u64) -> Option<(u64, u64)> {
        let image = self.images.get(&pid)?.borrow();
        let word = |at: u64| ptrace::read_word(tid, at).ok();
        if let Some(at) = image.areas.of_hole(pc) {
            let distance = (word(pc)? >> 8) as i32;
            let stub = pc.wrapping_add_signed(calls::JUMP as i64 + i64::from(distance));
            let raw = word(stub + calls::WORDS + 8).filter(|_| image.areas.has(stub))?;
            return Some((raw, at + calls::SYSCALL));
        }
        (image.areas.has(pc) && pc.is_multiple_of(calls::STUB as u64)).then_some((pc, 0))
    }

    /// A thread has found a breakpoint where a patch was made at that moment: where it goes on.
    pub fn trapped(&self, pid: i32, pc: u64) -> Option<u64> {
        let at = pc.wrapping_sub(1);
        let image = self.images.get(&pid)?.borrow();
        image.patched.contains(&at).then_some(at)
    }
}

/// Where a thread has stopped.
struct Here {
    pid: i32,
    /// The `syscall` instruction.
    at: u64,
    /// It is the only thread of its process.
    alone: bool,
    /// How often threads have stopped there.
    stops: u32,
}
