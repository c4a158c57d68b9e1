//! Calls that processes record themselves: a `syscall` instruction that stops often is patched, and its calls do not stop any more.
//!
//! ```text
//!  stop at a call ─► the site has stopped often? ─► memory for the process, an area for stubs, a stub, a patch
//!                                                                  │
//!  patched site ─► stub ─► sys::intercept::code: the call, its record in the thread's slot ─► drained before each stop, and in between
//! ```
//!
//! Everything else stops as before, and what the process cannot record itself too (no slot, no room, no row): there is no call that neither of
//! the two shows. A thread finds its slot by `gs`, which programs do not use; where one does, nothing is patched.
//!
//! Memory is made while the process has one thread, so that none sees the descriptor that it takes for a moment.

mod clock;
mod inject;
mod record;
mod rows;
mod sites;

pub use clock::Clock;
pub use record::Record;

use engine::capture::Limits;
use inject::Guest;
use patch::calls::{self, Way};
use sites::{Areas, Files, Place};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use sys::intercept::{self as code, Memory, ROWS, Row, Slot};
use sys::ptrace::{self, Status, SyscallInfo};

/// Stops after which a site is patched. Where the project is tested, that is soon.
const OFTEN: u32 = if cfg!(debug_assertions) { 1 } else { 3 };
/// How many times as often it has to stop before that is tried again.
const AGAIN: u32 = 32;

const CLONE: u64 = 56;
const CLONE3: u64 = 435;
/// `include/uapi/linux/sched.h`.
const CLONE_VM: u64 = 0x100;
const SYS_MMAP: i64 = 9;
const SYS_CLOSE: i64 = 3;
const SYS_MEMFD_CREATE: i64 = 319;
const MFD_CLOEXEC_ALLOW_SEALING: u64 = 3;
const READ_EXECUTE: u64 = 5;
const READ_WRITE: u64 = 3;
const MAP_SHARED: u64 = 1;
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
    calls
        .iter()
        .enumerate()
        .take(ROWS)
        .filter(|(_, wanted)| **wanted)
        .filter_map(|(nr, _)| Some((nr, row(nr)?)))
        .collect()
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
    /// Memory is not to be had, or `gs` is the program's.
    refused: bool,
    sites: HashMap<u64, Site>,
    areas: Areas,
    /// Where patches begin: a thread that finds a breakpoint there while one is made repeats the instruction.
    patched: HashSet<u64>,
}

/// All that is patched.
pub struct Intercept {
    rows: Vec<(usize, Row)>,
    has_row: Vec<bool>,
    images: HashMap<i32, Rc<RefCell<Image>>>,
    files: Files,
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
        Intercept { rows, has_row, images: HashMap::new(), files: Files::default(), clock: Clock::new() }
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
        if has_row {
            let site = image.sites.entry(at).or_insert(Site { stops: 0, next: OFTEN });
            site.stops = site.stops.saturating_add(1);
            if site.stops < site.next {
                return Then::GoesOn;
            }
            site.next = site.next.saturating_mul(AGAIN);
        } else if image.memory.is_some() {
            return Then::GoesOn;
        }
        let Ok(mut guest) = Guest::new(tid, at) else { return Then::Ended(None) };
        let made = self.patch(&mut image, pid, call, &mut guest, slot);
        let (moved, ended) = (guest.has_moved(), guest.ended);
        if made.is_err() && ended.is_some() {
            return Then::Ended(ended);
        }
        match guest.give_back(call.nr) {
            Err(_) => Then::Ended(None),
            Ok(()) if moved => Then::Repeats,
            Ok(()) => Then::GoesOn,
        }
    }

    /// Patches the site of a call, or prepares that.
    fn patch(
        &mut self,
        image: &mut Image,
        pid: i32,
        call: &SyscallInfo,
        guest: &mut Guest,
        slot: &mut Option<Slot>,
    ) -> io::Result<()> {
        let at = call.ip.wrapping_sub(calls::SYSCALL);
        let has_row = self.has(call.nr);
        let place = if has_row { self.files.place(pid, at, call.nr, &image.areas) } else { None };
        if has_row && place.is_none() {
            return Ok(());
        }
        if image.memory.is_none() && !self.give_memory(image, pid, guest, slot)? {
            image.refused = true;
            return Ok(());
        }
        let Some(Place { way, hole, mappings }) = place else { return Ok(()) };
        let stub = match image.areas.room(at) {
            Some(stub) => stub,
            None => {
                let Some(area) = Areas::hole(&mappings, at) else { return Ok(()) };
                let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
                let mapped = guest.call(SYS_MMAP, [area, sites::AREA, READ_EXECUTE, flags, u64::MAX, 0])?;
                if mapped as u64 != area {
                    return Ok(());
                }
                image.areas.add(area)
            }
        };
        let tid = guest.tid();
        let (Some(bytes), Some(patches)) =
            (calls::stub(stub, at, way, code::CODE), calls::patches(at, way, stub, &hole))
        else {
            return Ok(());
        };
        for patch in &patches {
            let mut there = vec![0; patch.old.len()];
            if sys::mem::read(tid, patch.at, &mut there)? != there.len() || there != patch.old {
                return Ok(());
            }
        }
        ptrace::write_bytes(tid, stub, &bytes)?;
        if let Way::Hole(at) = way {
            image.areas.use_hole(at);
        }
        for patch in &patches {
            image.patched.insert(patch.at);
            write(tid, patch)?;
        }
        Ok(())
    }

    /// Makes the memory that a process records calls in, and gives its thread a slot. False: it is not to be had.
    fn give_memory(&self, image: &mut Image, pid: i32, guest: &mut Guest, slot: &mut Option<Slot>) -> io::Result<bool> {
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
        let mut is_there = memory.is_ok();
        let rx = MAP_PRIVATE | MAP_FIXED_NOREPLACE;
        let rw = MAP_SHARED | MAP_FIXED_NOREPLACE;
        let parts = [
            [code::CODE, code::CODE_LEN, READ_EXECUTE, rx, fd as u64, 0],
            [code::SLOTS, code::SLOTS_LEN, READ_WRITE, rw, fd as u64, code::CODE_LEN],
        ];
        for part in parts {
            is_there = is_there && guest.call(SYS_MMAP, part)? as u64 == part[0];
        }
        guest.call(SYS_CLOSE, [fd as u64, 0, 0, 0, 0, 0])?;
        let Some(memory) = memory.ok().filter(|_| is_there) else { return Ok(false) };
        *slot = Slot::take(&memory);
        if let Some(slot) = slot {
            guest.set_gs_base(slot.address());
        }
        image.memory = Some(memory);
        Ok(true)
    }

    /// A thread has stopped for the first time: it gets a slot if its process has memory.
    pub fn begin(&mut self, (pid, tid): (i32, i32)) -> Option<Slot> {
        let memory = self.images.get(&pid).and_then(|image| image.borrow().memory.clone());
        let mut registers = ptrace::all_registers(tid).ok()?;
        let inherited = (code::SLOTS..code::SLOTS + code::SLOTS_LEN).contains(&registers.gs_base());
        if !inherited && (memory.is_none() || registers.gs_base() != 0) {
            return None;
        }
        let slot = memory.and_then(|memory| Slot::take(&memory));
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

    /// A thread has found a breakpoint where a patch was made at that moment: where it goes on.
    pub fn trapped(&self, pid: i32, pc: u64) -> Option<u64> {
        let at = pc.wrapping_sub(1);
        let image = self.images.get(&pid)?.borrow();
        image.patched.contains(&at).then_some(at)
    }
}

/// Makes a patch, while other threads may execute what is there: the first byte is a breakpoint until the others are there.
fn write(tid: i32, patch: &calls::Patch) -> io::Result<()> {
    const INT3: u8 = 0xcc;
    ptrace::write_bytes(tid, patch.at, &[INT3])?;
    ptrace::write_bytes(tid, patch.at + 1, &patch.new[1..])?;
    ptrace::write_bytes(tid, patch.at, &patch.new[..1])
}
