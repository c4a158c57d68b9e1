//! Which modules the loader has, by the list that it keeps for debuggers (`struct r_debug` of glibc's `<link.h>`), and which of them are new. A look
//! at it takes no system call, where `/proc/self/maps` takes longer than a small module takes to load.
//!
//! Before glibc 2.35 the list has none of the namespaces that dlmopen(3) makes. There nothing in the list tells that modules have come.

use crate::kernel;
use crate::memory::load;
use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The most modules that are known.
const MOST: usize = 1024;

/// A module: where the loader describes it, what is added to its file's addresses, and where its dynamic section is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Module {
    map: u64,
    bias: u64,
    dynamic: u64,
}

/// What has happened since the last look.
pub enum Change {
    /// Modules have gone, or the loader is about to change its list.
    Gone,
    /// Modules have come: see [`came`].
    Came,
    /// The list is as it was, so that something else has changed, or it is not there, or too long.
    Unknown,
}

/// Where the list is; 0: not looked for yet, 1: nowhere.
static LIST: AtomicU64 = AtomicU64::new(0);
/// Two tables: the modules that are there, and those that have come with the last change.
static TABLES: AtomicU64 = AtomicU64::new(0);
static THERE: AtomicU32 = AtomicU32::new(0);
static CAME: AtomicU32 = AtomicU32::new(0);

/// The modules that have come with the last change.
pub fn came() -> &'static [Module] {
    table(MOST, CAME.load(Acquire) as usize)
}

fn table(from: usize, count: usize) -> &'static [Module] {
    let at = TABLES.load(Acquire) as *const Module;
    if at.is_null() {
        return &[];
    }
    // SAFETY: there is room for twice as many. They change only in the loader, which one thread at a time is in.
    unsafe { core::slice::from_raw_parts(at.add(from), count.min(MOST)) }
}

/// Notes that the collector knows all modules that are there.
pub fn note() {
    look();
    CAME.store(0, Release);
}

/// Looks for modules that have come. In the loader.
pub fn look() -> Change {
    let before = table(0, THERE.load(Acquire) as usize);
    let Some(list) = list() else { return unknown() };
    let Some(tables) = tables() else { return unknown() };
    let (mut there, mut came, mut old, known) = (0, 0, 0, before.len());
    let mut is_whole = true;
    let consistent = modules(list, |module| {
        // The order stays the same, so that the next one is mostly the next one.
        let left = before.get(old..).unwrap_or(&[]);
        match left.iter().position(|m| *m == module) {
            Some(skipped) => old += skipped + 1,
            None if came < MOST => {
                // SAFETY: there is room, as the comparison says.
                unsafe { tables.add(MOST + came).write(module) };
                came += 1;
            }
            None => is_whole = false,
        }
        there += 1;
    });
    if !consistent {
        // The loader says so too when it begins, when nothing has changed yet.
        return Change::Gone;
    }
    if !is_whole || there > MOST {
        return unknown();
    }
    let mut at = 0;
    modules(list, |module| {
        if at < MOST {
            // SAFETY: there is room, as the comparison says.
            unsafe { tables.add(at).write(module) };
            at += 1;
        }
    });
    THERE.store(there as u32, Release);
    CAME.store(came as u32, Release);
    match came {
        0 if there == known => Change::Unknown,
        0 => Change::Gone,
        _ => Change::Came,
    }
}

fn unknown() -> Change {
    THERE.store(0, Release);
    CAME.store(0, Release);
    Change::Unknown
}

fn tables() -> Option<*mut Module> {
    if TABLES.load(Acquire) == 0 {
        TABLES.store(kernel::reserve((2 * MOST * size_of::<Module>()) as u64)?, Release);
    }
    Some(TABLES.load(Relaxed) as *mut Module)
}

/// Calls `each` with every module of every namespace. False: the loader is about to change one of its lists.
fn modules(list: u64, mut each: impl FnMut(Module)) -> bool {
    // struct r_debug_extended: version, first module, r_brk, state (0: consistent), r_ldbase, next namespace (since version 2).
    const NAMESPACES: usize = 64;
    let (mut namespace, mut left) = (list, 8 * MOST);
    for _ in 0..NAMESPACES {
        // SAFETY: so the loader keeps them, and it waits meanwhile.
        let (version, mut map, state) =
            unsafe { (load(namespace) as u32, load(namespace + 8), load(namespace + 24) as u32) };
        if state != 0 {
            return false;
        }
        while map != 0 && left > 0 {
            // struct link_map: l_addr, l_name, l_ld, l_next.
            // SAFETY: as above.
            let module = unsafe { Module { map, bias: load(map), dynamic: load(map + 16) } };
            each(module);
            // SAFETY: as above.
            map = unsafe { load(map + 24) };
            left -= 1;
        }
        // SAFETY: as above.
        namespace = if version < 2 { 0 } else { unsafe { load(namespace + 40) } };
        if namespace == 0 {
            break;
        }
    }
    true
}

fn list() -> Option<u64> {
    if LIST.load(Relaxed) == 0 {
        LIST.store(find().unwrap_or(1), Relaxed);
    }
    Some(LIST.load(Relaxed)).filter(|at| *at > 1)
}

/// Finds it in the program's dynamic section.
fn find() -> Option<u64> {
    const AT_PHDR: u64 = 3;
    const AT_PHNUM: u64 = 5;
    const DT_DEBUG: u64 = 21;
    let mut auxv = [0u64; 128];
    let fd = kernel::open_own(c"/proc/self/auxv", kernel::O_RDONLY);
    if fd < 0 {
        return None;
    }
    // SAFETY: as many bytes, of which any are numbers.
    let bytes = unsafe { core::slice::from_raw_parts_mut(auxv.as_mut_ptr().cast::<u8>(), size_of_val(&auxv)) };
    kernel::read(fd as i32, bytes);
    kernel::close(fd as i32);
    let value = |kind| auxv.as_chunks::<2>().0.iter().find(|[k, _]| *k == kind).map(|[_, value]| *value);
    let (headers, count) = (value(AT_PHDR)?, value(AT_PHNUM)?);
    let of = |kind| segment(headers, count, kind);
    let bias = headers.wrapping_sub(of(PT_PHDR)?.address);
    let dynamic = of(PT_DYNAMIC)?;
    let at = bias.wrapping_add(dynamic.address);
    // SAFETY: the loader has read the section.
    let entry = |n| unsafe { [load(at + 16 * n), load(at + 16 * n + 8)] };
    let list = (0..dynamic.size / 16).map(entry).take_while(|[tag, _]| *tag != 0).find(|[tag, _]| *tag == DT_DEBUG)?[1];
    kernel::is_readable(list).then_some(list)
}

const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_PHDR: u32 = 6;

struct Segment {
    address: u64,
    size: u64,
}

/// Program header `n` of a table (elf(5)).
fn header(table: u64, n: u64) -> (u32, Segment) {
    let at = table + 56 * n;
    // SAFETY: the loader has read the headers.
    unsafe { (load(at) as u32, Segment { address: load(at + 16), size: load(at + 40) }) }
}

fn segment(table: u64, count: u64, kind: u32) -> Option<Segment> {
    (0..count.min(128)).map(|n| header(table, n)).find(|(k, _)| *k == kind).map(|(_, segment)| segment)
}

impl Module {
    /// An address in it.
    pub fn inside(&self) -> u64 {
        self.dynamic
    }

    /// From its beginning to its dynamic section, which lies behind its code.
    pub fn range(&self) -> Range<u64> {
        self.bias..self.dynamic
    }

    /// Adds its file's build id, and where it is, to a hash. None without a build id.
    pub fn identity(&self, hash: u64) -> Option<u64> {
        const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");
        // Where the file does not begin at its address 0, its header is not there.
        let head = word(self.bias).filter(|word| *word as u32 == ELF)?;
        let (table, count) = (self.bias.wrapping_add(word(self.bias + 32)?), word(self.bias + 56)? as u16);
        let notes = (0..u64::from(count.min(128))).map(|n| header(table, n)).filter(|(kind, _)| *kind == PT_NOTE);
        let id =
            notes.map(|(_, note)| note).find_map(|note| build_id(self.bias.wrapping_add(note.address), note.size))?;
        Some([head, self.bias, self.dynamic].into_iter().chain(id).fold(hash, fold))
    }
}

/// FNV-1a, by words.
fn fold(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29)
}

/// A word that may not be there.
fn word(at: u64) -> Option<u64> {
    // SAFETY: it is readable.
    kernel::is_readable(at).then(|| unsafe { load(at) })
}

/// The first bytes of the build id in a segment of notes (`NT_GNU_BUILD_ID`, gABI's "Note Section"): those of a SHA-1, or all.
fn build_id(at: u64, size: u64) -> Option<[u64; 2]> {
    const HEAD: u64 = 12;
    const BUILD_ID: u32 = 3;
    const GNU: u32 = u32::from_le_bytes(*b"GNU\0");
    let mut offset = 0;
    while offset + HEAD + 4 <= size {
        let note = at.wrapping_add(offset);
        let (lengths, kind) = (word(note)?, word(note + 8)?);
        let (name, content) = (lengths as u32, (lengths >> 32) as u32);
        if kind as u32 == BUILD_ID && name == 4 && (kind >> 32) as u32 == GNU && content >= 16 {
            return Some([word(note + HEAD + 4)?, word(note + HEAD + 12)?]);
        }
        offset += HEAD + u64::from(name.next_multiple_of(4)) + u64::from(content.next_multiple_of(4));
    }
    None
}
