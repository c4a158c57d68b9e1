//! Where libraries are in another process: glibc's functions, and the agent.

use super::image::Image;
use super::target::name_of;
use crate::file;
use abi::message::Invocation;
use abi::plan::Area;
use abi::tracer::{self, Entry};
use std::cell::Cell;
use std::io;
use std::ops::Range;
use symbols::code_tables::CodeTables;
use symbols::headers::Headers;
use sys::maps::{self, Map, PROT_EXEC};
use sys::remote::{Caller, Instructions, Memory, Thread};

/// glibc, as a process has it.
pub struct Libc {
    /// Its code.
    pub code: Range<u64>,
    /// Its functions that have names: address, end, name; by address.
    functions: Vec<(u64, u64, String)>,
}

impl Libc {
    /// Reads it; none where the process has none, or its file cannot be read.
    pub fn find(pid: i32, maps: &[Map]) -> Option<Libc> {
        let is_libc = |m: &&Map| name_of(m).starts_with("libc.so.6") || name_of(m).starts_with("libc-2.");
        let map = maps.iter().filter(|m| m.prot & PROT_EXEC != 0).find(is_libc)?;
        let file = maps::open(pid, map.range, &map.path, map.file).ok()?;
        let tables = CodeTables::read(&file).ok()?;
        let segment = tables.code.iter().filter(|c| c.offset >> 12 << 12 <= map.offset).max_by_key(|c| c.offset)?;
        let bias = map.range.0.wrapping_sub(segment.address.wrapping_sub(segment.offset).wrapping_add(map.offset));
        let place = |f: symbols::code_tables::Named| {
            let start = f.address.wrapping_add(bias);
            (start, start.saturating_add(f.size.max(1)), f.name)
        };
        let mut functions: Vec<_> = tables.functions.into_iter().filter(|f| !f.indirect).map(place).collect();
        functions.sort_unstable();
        Some(Libc { code: map.range.0..map.range.1, functions })
    }

    /// The address of a function.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|f| f.2 == name).map(|f| f.0)
    }

    /// The names of the function that an address lies in; none for a function without one.
    pub fn names(&self, address: u64) -> impl Iterator<Item = &str> {
        let at = self.functions.partition_point(|f| f.0 <= address);
        let before = self.functions[..at].iter().rev();
        let start = before.clone().next().map(|f| f.0);
        before.take_while(move |f| Some(f.0) == start).filter(move |f| address < f.1).map(|f| f.2.as_str())
    }
}

/// The agent in a process.
pub struct Injected {
    /// Its entry point.
    pub entry: u64,
    /// Its code.
    pub code: Range<u64>,
    /// The program that has it.
    pub image: Image,
    /// Instructions for calls; none: not looked for yet.
    instructions: Cell<Option<Instructions>>,
    /// Memory for calls, which stays in the process between them.
    memory: Cell<Kept>,
}

/// Memory for calls.
#[derive(Default)]
enum Kept {
    /// Each call has its own.
    #[default]
    No,
    /// It is kept for the next call.
    Next,
    Yes(Memory),
}

impl Injected {
    /// The tracers that a process with the agent knows, read without a stop; none where the agent is not there, or is another build.
    pub fn tracers(pid: i32) -> Vec<Entry> {
        let table = || -> Option<Vec<u8>> {
            let maps = maps::of(pid).ok()?;
            let name = file::name();
            let base = maps.iter().find(|m| name_of(m).contains(&name) && m.offset == 0)?.range.0;
            let agent = file::bytes();
            let section = Headers::read(agent)?.section(tracer::SECTION)?.address;
            let at = base.wrapping_add(section.wrapping_sub(first_address(agent)?));
            let mut bytes = vec![0; tracer::TRACERS * Entry::SIZE];
            let read = sys::mem::read(pid, at, &mut bytes).ok()?;
            bytes.truncate(read);
            Some(bytes)
        };
        table().unwrap_or_default().chunks_exact(Entry::SIZE).map_while(Entry::parse).collect()
    }

    /// Finds it, injected or preloaded: by the name of its file, and by its code.
    pub fn find(pid: i32) -> Option<Injected> {
        let image = Image::of(pid).ok()?;
        let maps = maps::of(pid).ok()?;
        let name = file::name();
        let ours: Vec<&Map> = maps.iter().filter(|m| name_of(m).contains(&name)).collect();
        let (first, code) = (ours.first()?, ours.iter().find(|m| m.prot & PROT_EXEC != 0)?);
        let agent = file::bytes();
        let entry = word_at(agent, 24)?.wrapping_sub(first_address(agent)?);
        let len = (code.range.1 - code.range.0) as usize;
        let mut there = vec![0; len];
        (sys::mem::read(pid, code.range.0, &mut there).ok()? == len).then_some(())?;
        let expected = agent.get(code.offset as usize..)?;
        let same = there.len().min(expected.len());
        let is_it = first.offset == 0 && there[..same] == expected[..same];
        is_it.then(|| Injected {
            entry: first.range.0.wrapping_add(entry),
            code: code.range.0..code.range.1,
            image,
            instructions: Cell::default(),
            memory: Cell::default(),
        })
    }
}

impl Injected {
    /// Memory for calls stays in the process from the next call on, until [`Injected::leave`].
    pub fn stay(&self) {
        self.memory.set(Kept::Next);
    }

    /// What calls functions in a stopped thread of its process.
    pub fn caller<'t>(&self, pid: i32, thread: &'t mut Thread) -> io::Result<Caller<'t>> {
        match self.memory.take() {
            Kept::Yes(memory) => {
                self.memory.set(Kept::Next);
                Caller::again(thread, memory)
            }
            before => {
                self.memory.set(before);
                let instructions = self.instructions.get().map_or_else(|| Instructions::of(pid), Ok)?;
                self.instructions.set(Some(instructions));
                Caller::new(thread, instructions)
            }
        }
    }

    /// Ends calls.
    pub fn keep(&self, caller: Caller<'_>) {
        match self.memory.take() {
            Kept::No => {}
            _ => self.memory.set(Kept::Yes(caller.keep())),
        }
    }

    /// Whether there is memory for calls.
    pub fn has_memory(&self) -> bool {
        let memory = self.memory.take();
        let has = matches!(memory, Kept::Yes(_));
        self.memory.set(memory);
        has
    }

    /// Removes the memory for calls.
    pub fn leave(&self, thread: &mut Thread) {
        let memory = self.memory.take();
        // Where the process has executed another program, the memory has gone with the first one.
        if let Kept::Yes(memory) = memory
            && self.image.is_still_there(thread.tid()).is_ok()
        {
            drop(Caller::again(thread, memory));
        }
    }
}

fn word_at(file: &[u8], at: usize) -> Option<u64> {
    file.get(at..)?.first_chunk::<8>().map(|b| u64::from_le_bytes(*b))
}

/// The address that an ELF file is linked for: that of its first segment. The agent's is not 0 ([`abi::CODE`]).
fn first_address(file: &[u8]) -> Option<u64> {
    const HEADER: usize = 56;
    const PT_LOAD: u32 = 1;
    let headers = file.get(usize::try_from(word_at(file, 32)?).ok()?..)?;
    let first = headers.chunks_exact(HEADER).take(16).find(|h| h[..4] == PT_LOAD.to_le_bytes())?;
    word_at(first, 16)
}

/// The areas of an agent, in order; none where the process does not say so.
pub fn areas(pid: i32, seen: &Invocation) -> Vec<Range<u64>> {
    const MOST: u32 = 1 << 15;
    let size = size_of::<Area>();
    let mut bytes = vec![0; seen.areas.min(MOST) as usize * size];
    let read = sys::mem::read(pid, seen.areas_at, &mut bytes).unwrap_or(0);
    let word = |b: &[u8], at: usize| b[at..].first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
    let range = |b: &[u8]| word(b, 0)..word(b, 0).saturating_add(word(b, 8));
    let mut all: Vec<Range<u64>> = bytes[..read].chunks_exact(size).map(range).collect();
    order::by_key(&mut all, |r| r.start);
    all
}
