//! The maps that the programs read: made, described, filled.

use super::Room;
use bpf::unwind::tasks::TaskMaps;
use bpf::unwind::{MemoryOffsets, PROCESS, Tables, UprobeOffsets};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use sys::bpf::map::{ANY, EXIST, MMAPABLE, Map, Values};
use sys::btf::KernelBtf;
use unwind::build::{Full, Module, Placed, Space};
use unwind::table::{CHUNK, Row};

/// Pages of all modules: 4 GiB of code.
const PAGES: u32 = 1 << 16;
/// Rules have numbers of 16 bits.
const RULES: u32 = 1 << 16;
/// Bytes of a chunk.
const CHUNK_BYTES: u32 = 4 * CHUNK as u32;
/// The maps. Programs that were loaded with them keep them too.
pub struct Maps {
    pub(super) processes: Map,
    pages: Map,
    rules: Map,
    pub(super) chunks: Map,
    pub(super) counter: Map,
    uprobes: Option<UprobeOffsets>,
    memory: Option<MemoryOffsets>,
    fs_base: Option<i32>,
}

impl Maps {
    /// Makes them; and a chunk, which the map of maps takes as the example of its contents.
    pub(super) fn make(btf: &KernelBtf, room: Room) -> io::Result<(Maps, Map)> {
        let array = |name, size| Map::array(name, size, 1, MMAPABLE);
        let processes = move || Map::hash("tl_processes", 4, PROCESS as u32, room.processes.max(1), 0);
        std::thread::scope(|s| {
            // Its memory is allocated at once.
            let processes = s.spawn(processes);
            let first = chunk()?;
            let maps = Maps {
                pages: array("tl_pages", 8 * PAGES)?,
                rules: array("tl_rules", 8 * RULES)?,
                chunks: Map::array_of("tl_chunks", &first, room.chunks())?,
                counter: array("tl_counter", 8)?,
                uprobes: uprobe_offsets(btf),
                memory: memory_offsets(btf),
                fs_base: fs_base_offset(btf),
                processes: processes.join().unwrap_or_else(|p| std::panic::resume_unwind(p))?,
            };
            Ok((maps, first))
        })
    }

    pub(super) fn tables(&self) -> Tables {
        let fd = |map: &Map| map.as_fd().as_raw_fd();
        Tables {
            processes: fd(&self.processes),
            pages: fd(&self.pages),
            page_count: PAGES,
            chunks: fd(&self.chunks),
            rules: fd(&self.rules),
            rule_count: RULES,
            frames: unwind::stack::MAX_FRAMES as u16,
            uprobes: self.uprobes,
            memory: self.memory,
            fs_base: self.fs_base,
        }
    }

    pub(super) fn for_tasks(&self) -> TaskMaps {
        TaskMaps { processes: self.processes.as_fd().as_raw_fd(), counter: self.counter.as_fd().as_raw_fd() }
    }

    /// Puts chunks in their places, and waits until no program reads what was there before.
    pub(super) fn put_chunks(&self, chunks: &[(u32, Map)]) -> io::Result<()> {
        let keys: Vec<u8> = chunks.iter().flat_map(|c| c.0.to_le_bytes()).collect();
        let values: Vec<u8> = chunks.iter().flat_map(|c| c.1.as_fd().as_raw_fd().to_ne_bytes()).collect();
        self.chunks.update_all(&keys, &values)
    }

    /// Sets what a process has mapped. False: it is executing a program, or (`begins`: it is not there yet) there is no room for it.
    pub(super) fn set(&self, pid: u32, value: &[u8], begins: bool) -> bool {
        self.processes.update(&pid.to_le_bytes(), value, if begins { ANY } else { EXIST }).is_ok()
    }

    pub(super) fn forget(&self, pid: u32) {
        let _ = self.processes.delete(&pid.to_le_bytes());
    }
}

fn chunk() -> io::Result<Map> {
    Map::array("tl_rows", CHUNK_BYTES, 1, MMAPABLE)
}

/// Where this kernel keeps what uprobes replace; none where it has no uprobes, or others.
pub fn uprobe_offsets(btf: &KernelBtf) -> Option<UprobeOffsets> {
    let field = |root, name| Some(btf.field_of(root, &[name])?.offset as i32);
    Some(UprobeOffsets {
        utask: field("task_struct", "utask")?,
        first: field("uprobe_task", "return_instances")?,
        address: field("uprobe_task", "vaddr")?,
        copy: field("uprobe_task", "xol_vaddr")?,
        stack: field("return_instance", "stack")?,
        original: field("return_instance", "orig_ret_vaddr")?,
        next: field("return_instance", "next")?,
    })
}

fn memory_offsets(btf: &KernelBtf) -> Option<MemoryOffsets> {
    let field = |root, name| Some(btf.field_of(root, &[name])?.offset as i32);
    Some(MemoryOffsets { mm: field("task_struct", "mm")?, start_code: field("mm_struct", "start_code")? })
}

/// Where this kernel keeps the `fs` base of a thread that it has interrupted: what a thread has set by an instruction (FSGSBASE) is not there.
pub fn fs_base_offset(btf: &KernelBtf) -> Option<i32> {
    Some(btf.field_of("task_struct", &["thread", "fsbase"])?.offset as i32)
}

/// Writes modules into pages, chunks and rules. Rows come before the pages that lead to them.
pub(super) struct Writer {
    pages: Values,
    rules: Values,
    chunks: HashMap<u32, Values>,
    space: Space,
    written_rules: usize,
    /// Chunks on their way into the map of maps: whether nothing was in their place before.
    coming: HashMap<u32, bool>,
    /// A chunk that is made already.
    spare: Option<Map>,
    max_chunks: u32,
    /// Numbers of pages of modules that are out.
    left: Vec<Range<u32>>,
    /// Those that are used again when the chunk of this number has arrived: no program can be there any more then.
    leaving: HashMap<u32, Vec<Range<u32>>>,
}

impl Writer {
    pub fn new(maps: &Maps, room: Room, spare: Map) -> io::Result<Writer> {
        Ok(Writer {
            pages: maps.pages.mmap()?,
            rules: maps.rules.mmap()?,
            chunks: HashMap::new(),
            space: Space::new(0, PAGES as usize),
            written_rules: 0,
            coming: HashMap::new(),
            spare: Some(spare),
            max_chunks: room.chunks(),
            left: Vec::new(),
            leaving: HashMap::new(),
        })
    }

    /// Bytes of chunks.
    pub fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * u64::from(CHUNK_BYTES)
    }

    /// The most chunks that there may be.
    pub fn max_chunks(&self) -> u32 {
        self.max_chunks
    }

    /// How many chunks a module would take that no module is in.
    pub fn chunks_for(&self, module: &Module) -> usize {
        self.space.chunks_for(module)
    }

    /// How many chunks no module is in, those on their way among them.
    pub fn available(&self) -> usize {
        self.space.free_chunks() + self.coming.len()
    }

    /// Whether chunks are on their way.
    pub fn waits(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Makes as many new chunks as are wanted beside those that are free or on their way, and as there may be. They are for
    /// [`Maps::put_chunks`].
    pub fn more(&mut self, wanted: usize) -> io::Result<Vec<(u32, Map)>> {
        let mut made = Vec::new();
        while self.available() < wanted && (self.chunks.len() as u32) < self.max_chunks {
            let number = self.chunks.len() as u32;
            made.push((number, self.make(number, true)?));
        }
        Ok(made)
    }

    fn make(&mut self, number: u32, new: bool) -> io::Result<Map> {
        let map = self.spare.take().map_or_else(chunk, Ok)?;
        self.chunks.insert(number, map.mmap()?);
        self.coming.insert(number, new);
        Ok(map)
    }

    /// Chunks are in their places, and nothing else is read there.
    pub fn arrived(&mut self, chunks: &[u32]) {
        for number in chunks {
            if self.coming.remove(number).is_some() {
                self.space.give_chunk(*number);
            }
            for pages in self.leaving.remove(number).unwrap_or_default() {
                self.space.give_pages(pages);
            }
        }
    }

    /// Uses new chunks as soon as programs find them: the call that puts them there goes on, because it waits for programs that may read
    /// what was there before, and nothing was.
    fn look_for_new(&mut self, maps: &Maps) {
        let is_there = |number: &u32| maps.chunks.lookup(&number.to_le_bytes(), &mut [0; 4]).unwrap_or(false);
        let new = self.coming.iter().filter(|(_, new)| **new).map(|(number, _)| *number);
        for number in new.filter(is_there).collect::<Vec<_>>() {
            self.coming.remove(&number);
            self.space.give_chunk(number);
        }
    }

    /// Writes a module.
    ///
    /// # Errors
    /// There is no room now.
    pub fn place(&mut self, module: &Module, maps: &Maps) -> Result<Placed, Full> {
        if self.coming.values().any(|new| *new) {
            self.look_for_new(maps);
        }
        let chunks = &self.chunks;
        let placed = self.space.add(module, |first, rows| write_rows(chunks, first, rows))?;
        // Rows of other modules, and of this one, name rules by number: those first.
        for (nth, rule) in self.space.rules().all().iter().enumerate().skip(self.written_rules) {
            store(&self.rules, nth, rule.0);
        }
        self.written_rules = self.space.rules().all().len();
        self.write_pages(&placed);
        Ok(placed)
    }

    fn write_pages(&self, placed: &Placed) {
        for number in placed.pages().map(|n| n as usize) {
            let page = self.space.pages().get(number).copied().unwrap_or_default();
            store(&self.pages, number, page.to_word());
        }
    }

    /// Takes a module out that no process's mappings lead to any more. Returns new chunks for places that it has left empty.
    pub fn remove(&mut self, placed: &Placed) -> io::Result<Vec<(u32, Map)>> {
        let left = self.space.remove(placed);
        self.write_pages(placed);
        self.left.push(placed.pages());
        if let Some(number) = left.first() {
            self.leaving.entry(*number).or_default().append(&mut self.left);
        }
        left.into_iter().map(|number| Ok((number, self.make(number, false)?))).collect()
    }
}

fn store(values: &Values, nth: usize, word: u64) {
    if let Some(to) = values.word(8 * nth) {
        to.store(word, Ordering::Release);
    }
}

fn write_rows(chunks: &HashMap<u32, Values>, first: u32, rows: &[Row]) {
    let first = first as usize;
    let Some(values) = chunks.get(&((first / CHUNK) as u32)) else { return };
    for (nth, two) in rows.chunks(2).enumerate() {
        let word = u64::from(two[0].0) | u64::from(two.get(1).map_or(0, |r| r.0)) << 32;
        if let Some(to) = values.word(4 * (first % CHUNK) + 8 * nth) {
            to.store(word, Ordering::Relaxed);
        }
    }
}
