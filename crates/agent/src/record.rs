//! The tracer `graph`: a recording. Where it is the only tracer of a function, a stub of the recording's plan writes the records; in lists of
//! tracers, the code below does.

use crate::entries::Entry;
use crate::sites::Site;
use crate::thread::Local;
use crate::tracers::{self, Slot, Tracer};
use crate::{child, chunks, counts, entries, kernel, permits, sites};
use abi::built_in::Kind;
use abi::stub::Variant;
use abi::thread::{CUR, END, HIGH, RECORDED, WRITTEN};
use abi::tracer::Reply;
use core::arch::global_asm;
use core::sync::atomic::Ordering::Relaxed;

// A record, as stubs write it: `rdi` has the thread's data, `esi` the word. 0: it is written; 1: something else is to be done first. A
// signal that interrupts this is answered as in stubs (`hooks::signals`): the code is begun anew, or has the record count.
global_asm!(
    ".text",
    ".globl trapline_record", ".hidden trapline_record", ".type trapline_record,@function",
    ".globl trapline_record_commit", ".hidden trapline_record_commit",
    ".globl trapline_record_end", ".hidden trapline_record_end",
    ".balign 16",
    "trapline_record:",
    ".cfi_startproc",
    "mov rcx, [rdi + {cur}]",
    "cmp rcx, [rdi + {end}]",
    "jae 2f",
    "rdtsc",
    "cmp edx, [rdi + {high}]",
    "jne 2f",
    "mov [rcx], eax",
    "mov [rcx + 4], esi",
    "trapline_record_commit:",
    "add qword ptr [rdi + {cur}], 8",
    "trapline_record_end:",
    "xor eax, eax",
    "ret",
    "2:",
    "mov eax, 1",
    "ret",
    ".cfi_endproc",
    ".size trapline_record, .-trapline_record",
    cur = const CUR,
    end = const END,
    high = const HIGH,
);

unsafe extern "C" {
    safe fn trapline_record(local: &Local, word: u32) -> u32;
    safe static trapline_record_commit: u8;
    safe static trapline_record_end: u8;
}

/// Where a thread goes on whose signal has interrupted a record at this pc, and whether the record is complete and counts.
pub fn interrupted(pc: u64) -> Option<(u64, bool)> {
    let at = |code: &u8| core::ptr::from_ref(code) as u64;
    let (start, commit, end) =
        (trapline_record as *const () as u64, at(&trapline_record_commit), at(&trapline_record_end));
    match pc {
        _ if pc == commit => Some((end, true)),
        _ if start <= pc && pc < commit => Some((start, false)),
        _ => None,
    }
}

/// Writes a record of now, or counts it.
#[inline(always)]
fn write(local: &Local, word: u32) {
    if trapline_record(local, word) != 0 {
        write_slowly(local, word);
    }
}

#[cold]
fn write_slowly(local: &Local, word: u32) {
    if chunks::hopeless(local) {
        return chunks::drop_records(local, 1);
    }
    let mask = kernel::block();
    chunks::emit(local, kernel::tsc(), word, mask);
    kernel::set_mask(mask);
}

/// Option of [`Kind::Graph`]: the variant.
const VARIANT: usize = 0;
/// Option of [`Kind::Graph`]: the minimum.
const MINIMUM: usize = 1;

fn is_late(slot: &Slot) -> bool {
    slot.option(VARIANT) == Variant::Timed as u64
}

/// The recording, if it is among the slots of these bits.
#[inline(always)]
pub fn of(bits: u32) -> Option<&'static Slot> {
    let graph = bits & tracers::graph();
    if graph == 0 { None } else { tracers::slot(graph) }
}

/// What the flags of an entry get where a recording sees the beginning of a call, and writes it late.
#[inline(always)]
pub fn flags(slot: &Slot) -> u32 {
    if is_late(slot) { entries::PENDING } else { 0 }
}

/// A call begins.
#[inline(always)]
pub fn enter(local: &Local, site: &Site, slot: &Slot) {
    if !is_late(slot) {
        write(local, site.record.load(Relaxed) << 1);
    }
}

/// A call has ended, of which the recording has seen the beginning. `took`: its ticks, where stubs need them.
#[inline(always)]
pub fn exit(local: &Local, entry: Entry, site: &Site, slot: &Slot, took: u64) {
    let word = site.record.load(Relaxed) << 1 | 1;
    if !is_late(slot) {
        write(local, word);
    } else if took >= slot.option(MINIMUM) {
        write_late(local, entry, word);
    }
}

/// A call that was left ends: its exit is recorded, and what stubs count of it. `entry` is its entry in the shadow stack, which counts for
/// nothing from then on; all above it have been ended.
pub fn left(local: &Local, entry: Entry) {
    let (tsc, word) = (entry.time(), entry.word());
    let (function, flags) = (word as u32, (word >> 32) as u32);
    let number = function & !(WRITTEN | RECORDED);
    if number == 0 {
        return;
    }
    if local.busy.load(Relaxed) != 0 {
        entry.forget();
        return chunks::drop_records(local, 1);
    }
    let took = || if tsc != 0 && permits::records() { kernel::tsc().wrapping_sub(tsc) } else { 0 };
    if flags == u32::MAX {
        entry.forget();
        match function & RECORDED {
            0 => counts::add_time(local, number, entry, took()),
            _ => write(local, number << 1 | 1),
        }
    } else if function & WRITTEN == 0 {
        let least = tracer().and_then(Tracer::slot).map_or(0, |slot| slot.option(MINIMUM));
        if took() >= least {
            write_late(local, entry, number << 1 | 1);
        }
        entry.forget();
    } else if let Some(site) = sites::get(number) {
        let (seen, epoch) = entries::seen(flags);
        let took = took();
        for slot in tracers::reverse(seen) {
            match slot.kind() {
                k if k == Kind::Count as u32 && slot.is_older(epoch) => counts::add_time(local, number, entry, took),
                k if k == Kind::Graph as u32 && slot.is_older(epoch) => exit(local, entry, site, slot, took),
                _ => {}
            }
        }
        entry.forget();
    }
}

/// Writes what has not been written of the calls up to that of an entry, and the exit of this one.
pub fn write_late(local: &Local, entry: Entry, word: u32) {
    if !permits::records() {
        // Its entry and its exit.
        return chunks::drop_records(local, 2);
    }
    let now = kernel::tsc();
    let mask = kernel::block();
    entries::write_entries(local, entry, child::born(), |tsc, function| chunks::emit(local, tsc, function << 1, mask));
    chunks::emit(local, now, word, mask);
    kernel::set_mask(mask);
}

/// The thread's program ends: writes the entries of its calls that have taken long enough. In a child of vfork(2), they are those of its parent, and
/// are written a little sooner.
pub fn write_open(local: &Local) {
    let Some(slot) = tracer().and_then(Tracer::slot).filter(|slot| is_late(slot)) else { return };
    if !permits::records() || local.top.load(Relaxed) == 0 || local.busy.load(Relaxed) != 0 {
        return;
    }
    let mask = kernel::block();
    if let Some(entry) = entries::long_open(local, kernel::tsc(), slot.option(MINIMUM)) {
        entries::write_entries(local, entry, child::born(), |tsc, function| {
            chunks::emit(local, tsc, function << 1, mask);
        });
    }
    kernel::set_mask(mask);
}

fn tracer() -> Option<&'static Tracer> {
    tracers::known().iter().find(|t| t.kind() == Kind::Graph as u32)
}

/// A recording begins, whose stubs are of this variant. True: it is a tracer.
pub fn begin(variant: Variant, minimum: u64) -> bool {
    let options = [variant as u64, minimum, 0, 0, 0, 0, 0, 0];
    tracers::graph() != 0 || tracer().is_some_and(|g| g.enable(&options).is_ok())
}

/// The recording has ended: its sites get the bytes that their other tracers need. All other threads are stopped.
pub fn end() {
    let Some((graph, slot)) = tracer().and_then(|g| Some((g, g.slot()?))) else { return };
    for site in (1..=sites::used()).filter_map(sites::get) {
        site.tracers.fetch_and(!slot.bit(), Relaxed);
    }
    graph.disable();
    sites::apply_all(&mut Reply::default());
    (1..=sites::used()).filter_map(sites::get).for_each(Site::forget_record);
}
