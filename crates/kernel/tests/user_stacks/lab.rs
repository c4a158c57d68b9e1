//! What fills the maps of the unwinder, and the programs that use it.

use bpf::unwind::{GUESS_UNMAPPED, PROCESS, Tables, UprobeOffsets, UserStacks, area, process};
use bpf::{Alu, Assembler, Cond, Helper, Reg, Reg::*, Size};
use kernel::unwinder::uprobe_offsets;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use sys::bpf::map::{ANY, MMAPABLE, Map, Values};
use sys::bpf::prog::{Program, ProgramSpec, btf_load};
use sys::bpf::ring::Ring;
use sys::btf::KernelBtf;
use unwind::build::{Module, Placed, Space};
use unwind::table::{CHUNK, Row, find};
use unwind::{Ended, Frame, Mapping, Registers, Rule, Target, Walk};

const PAGES: u32 = 1 << 16;
const RULES: u32 = 1 << 16;
const CHUNKS: u32 = 64;
/// Pages of the stack that are copied for the walker in user space.
pub const COPIED: i32 = 16;
const PAGE: i32 = 4096;
/// A sample for comparison: pc, sp, bp, and then the copied pages, from that of sp on.
const COPY: usize = 32 + (COPIED * PAGE) as usize;

/// A file by path, device and inode.
type Known = (Vec<u8>, (u32, u32, u64));

/// The maps, and what they hold.
pub struct Lab {
    processes: Map,
    pages: (Map, Values),
    rules: (Map, Values),
    chunks: Map,
    /// Each chunk, as the kernel has it and as the walker in user space reads it.
    filled: Vec<(Map, Values)>,
    rows: Vec<Row>,
    space: Space,
    modules: HashMap<Known, Option<Placed>>,
    pub mappings: HashMap<u32, Vec<Mapping>>,
    pub area: Map,
    pub ring: Map,
    uprobes: Option<UprobeOffsets>,
    /// Time that building took.
    pub built: Duration,
}

fn cpus() -> u32 {
    sys::processors::possible().unwrap().last().unwrap() + 1
}

fn chunk() -> Map {
    Map::array("tl_rows", 4 * CHUNK as u32, 1, MMAPABLE).unwrap()
}

fn with_values(name: &str, size: u32) -> (Map, Values) {
    let map = Map::array(name, size, 1, MMAPABLE).unwrap();
    let values = map.mmap().unwrap();
    (map, values)
}

impl Lab {
    pub fn new() -> Lab {
        Lab {
            processes: Map::hash("tl_processes", 4, PROCESS as u32, 64, 0).unwrap(),
            pages: with_values("tl_pages", 8 * PAGES),
            rules: with_values("tl_rules", 8 * RULES),
            chunks: Map::array_of("tl_chunks", &chunk(), CHUNKS).unwrap(),
            filled: Vec::new(),
            rows: Vec::new(),
            space: Space::new(CHUNKS as usize, PAGES as usize),
            modules: HashMap::new(),
            mappings: HashMap::new(),
            area: Map::array("tl_area", (area::SIZE + COPY) as u32, cpus(), 0).unwrap(),
            ring: Map::ring("tl_ring", 1 << 25).unwrap(),
            uprobes: uprobe_offsets(&KernelBtf::kernel().unwrap()),
            built: Duration::ZERO,
        }
    }

    fn tables(&self) -> Tables {
        Tables {
            processes: self.processes.as_fd().as_raw_fd(),
            pages: self.pages.0.as_fd().as_raw_fd(),
            page_count: PAGES,
            chunks: self.chunks.as_fd().as_raw_fd(),
            rules: self.rules.0.as_fd().as_raw_fd(),
            rule_count: RULES,
            frames: unwind::stack::MAX_FRAMES as u16,
            uprobes: self.uprobes,
            memory: None,
            fs_base: None,
        }
    }

    /// Places a module: rows and pages first, then the rules; what leads to them comes last.
    fn place(&mut self, module: &Module) -> Placed {
        let (rows, filled, chunks) = (&mut self.rows, &mut self.filled, &self.chunks);
        let (old_pages, old_rules) = (self.space.pages().len(), self.space.rules().all().len());
        let placed = self.space.add(module, |first, some| {
            let first = first as usize;
            while filled.len() <= first / CHUNK {
                let map = chunk();
                let values = map.mmap().unwrap();
                chunks.put_map(&(filled.len() as u32).to_le_bytes(), &map).unwrap();
                filled.push((map, values));
            }
            rows.resize(rows.len().max((first / CHUNK + 1) * CHUNK), Row(0));
            rows[first..first + some.len()].copy_from_slice(some);
            let values = &filled[first / CHUNK].1;
            for (nth, two) in some.chunks(2).enumerate() {
                let word = u64::from(two[0].0) | u64::from(two.get(1).map_or(0, |r| r.0)) << 32;
                values.word(4 * (first % CHUNK) + 8 * nth).unwrap().store(word, Ordering::Relaxed);
            }
        });
        for (nth, page) in self.space.pages().iter().enumerate().skip(old_pages) {
            self.pages.1.word(8 * nth).unwrap().store(page.to_word(), Ordering::Relaxed);
        }
        for (nth, rule) in self.space.rules().all().iter().enumerate().skip(old_rules) {
            self.rules.1.word(8 * nth).unwrap().store(rule.0, Ordering::Release);
        }
        placed.unwrap()
    }

    /// What is mapped by a process now. False: it is gone.
    pub fn add(&mut self, pid: u32) -> bool {
        let Ok(maps) = sys::maps::of(pid as i32) else { return false };
        let mut mappings = Vec::new();
        let mut flags = 0;
        for m in maps.iter().filter(|m| m.prot & sys::maps::PROT_EXEC != 0) {
            let (start, end) = m.range;
            let is_vdso = m.path == b"[vdso]";
            if m.path == b"[vsyscall]" || m.path == b"[uprobes]" {
                continue;
            }
            if m.path.first() != Some(&b'/') && !is_vdso {
                // A just-in-time compiler's.
                mappings.push(Mapping { start, end, flags: Mapping::NO_ROWS, ..Mapping::default() });
                flags = GUESS_UNMAPPED;
                continue;
            }
            let bytes = || {
                if is_vdso {
                    let mut bytes = vec![0; (end - start) as usize];
                    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, start).ok()?;
                    return Some(bytes);
                }
                let mut file = sys::maps::open(pid as i32, m.range, &m.path, m.file).ok()?;
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut file, &mut bytes).ok()?;
                Some(bytes)
            };
            let key = (m.path.clone(), m.file);
            if !self.modules.contains_key(&key) {
                let Some(bytes) = bytes() else { continue };
                let started = Instant::now();
                let module = Module::build(&bytes).ok().filter(|m| !m.is_empty());
                let placed = module.map(|m| self.place(&m));
                self.built += started.elapsed();
                self.modules.insert(key.clone(), placed);
            }
            let placed = self.modules[&key].as_ref();
            let without = Mapping { start, end, flags: Mapping::NO_ROWS, ..Mapping::default() };
            mappings.push(placed.and_then(|p| p.mapping(start, end, m.offset)).unwrap_or(without));
        }
        if self.mappings.get(&pid) != Some(&mappings) {
            let value = process(flags, 0, &mappings).expect("not too many mappings");
            self.processes.update(&pid.to_le_bytes(), &value, ANY).unwrap();
            self.mappings.insert(pid, mappings);
        }
        true
    }
}

/// What a program does with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makes {
    /// Nothing: its endings are counted.
    Counts,
    /// Sends the record.
    Records,
    /// Sends how many ns the walk took, and the number of frames.
    Times,
    /// Sends registers and a copy of the stack, and the record behind them.
    Copies,
}

impl Lab {
    /// A program that walks the stack of whatever runs in process `pid`. `guard` is emitted first, and jumps to the label to leave.
    pub fn program(&self, pid: u32, makes: Makes, guard: impl Fn(&mut Assembler, bpf::Label)) -> bpf::Program {
        let mut a = Assembler::new();
        let out = a.new_label();
        guard(&mut a, out);
        let stacks = UserStacks::new(&mut a, self.tables());
        a.call(Helper::GetCurrentPidTgid);
        a.alu(Alu::Rsh, R0, 32);
        a.jump_if(Cond::Ne, R0, pid as i32, out);
        a.mov(R7, R0);
        a.call(Helper::GetSmpProcessorId);
        a.store(Size::W, R10, -4, R0);
        a.map_fd(R1, self.area.as_fd().as_raw_fd());
        a.mov(R2, R10);
        a.alu(Alu::Add, R2, -4);
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Eq, R0, 0, out);
        a.mov(R6, R0);
        if makes == Makes::Copies {
            copy(&mut a);
        }
        if makes == Makes::Times {
            a.call(Helper::KtimeGetNs);
            a.store(Size::D, R10, -16, R0);
        }
        a.mov(R1, R6);
        a.mov(R2, R7);
        stacks.call(&mut a);
        match makes {
            Makes::Counts => {}
            Makes::Records => self.send(&mut a, i32::from(area::RECORD), None),
            Makes::Copies => self.send(&mut a, i32::from(area::RECORD), Some((unwind::stack::RECORD + COPY) as i32)),
            Makes::Times => {
                a.alu(Alu::Rsh, R0, 3);
                a.store(Size::D, R10, -24, R0);
                a.call(Helper::KtimeGetNs);
                a.load(Size::D, R1, R10, -16);
                a.alu(Alu::Sub, R0, R1);
                a.store(Size::D, R10, -16, R0);
                a.map_fd(R1, self.ring.as_fd().as_raw_fd());
                a.mov(R2, R10);
                a.alu(Alu::Add, R2, -24);
                a.mov(R3, 16);
                a.mov(R4, 1);
                a.call(Helper::RingbufOutput);
            }
        }
        a.bind(out);
        a.mov(R0, 0);
        a.exit();
        stacks.finish(&mut a);
        a.finish().unwrap()
    }

    /// Sends what is at an offset of the area: this many bytes, or as many as r0 says.
    fn send(&self, a: &mut Assembler, at: i32, bytes: Option<i32>) {
        a.map_fd(R1, self.ring.as_fd().as_raw_fd());
        a.mov(R2, R6);
        a.alu(Alu::Add, R2, at);
        match bytes {
            Some(n) => a.mov(R3, n),
            None => a.mov(R3, R0),
        }
        // BPF_RB_NO_WAKEUP
        a.mov(R4, 1);
        a.call(Helper::RingbufOutput);
    }

    /// Loads it.
    pub fn load(&self, program: &bpf::Program, spec: impl Fn(&[u8]) -> ProgramSpec<'_>) -> Program {
        let (blob, main, callback) = sys::btf::build::program_types();
        let btf = btf_load(&blob).unwrap();
        let types = std::iter::once(main).chain(std::iter::repeat(callback));
        let records: Vec<u8> = program
            .functions()
            .iter()
            .zip(types)
            .flat_map(|(at, id)| [(*at as u32).to_ne_bytes(), id.to_ne_bytes()].concat())
            .collect();
        let insns = program.bytes();
        let mut spec = spec(&insns);
        spec.functions = Some((btf.as_fd(), &records));
        Program::load(&spec).unwrap_or_else(|e| panic!("{e}\n{}", e.log))
    }

    /// How the stacks have ended so far, and how many return addresses were repaired.
    pub fn endings(&self) -> (Vec<(Ended, u64)>, u64) {
        let value = |cpu: u32| {
            let mut value = vec![0; area::SIZE + COPY];
            assert!(self.area.lookup(&cpu.to_le_bytes(), &mut value).unwrap());
            value
        };
        let values: Vec<Vec<u8>> = (0..cpus()).map(value).collect();
        let word = |at: i16| values.iter().map(|v| u64::from_le_bytes(*v[at as usize..].first_chunk().unwrap())).sum();
        let all = Ended::ALL.iter().map(|e| (*e, word(area::ENDINGS_AT + 8 * *e as i16))).filter(|e| e.1 > 0);
        (all.collect(), word(area::REPAIRED))
    }

    pub fn reader(&self) -> Ring {
        Ring::new(&self.ring).unwrap()
    }
}

/// Copies registers and pages of the stack behind the record: { pc, sp, bp, pages }, pages.
fn copy(a: &mut Assembler) {
    let done = a.new_label();
    let place = |a: &mut Assembler, r: Reg, at: usize| {
        a.mov(r, R6);
        a.alu(Alu::Add, r, (area::SIZE + at) as i32);
    };
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R1, R0);
    a.call(Helper::TaskPtRegs);
    a.mov(R9, R0);
    for (nth, at) in [128, 152, 32].into_iter().enumerate() {
        place(a, R1, 8 * nth);
        a.mov(R2, 8);
        a.mov(R3, R9);
        a.alu(Alu::Add, R3, at);
        a.call(Helper::ProbeReadKernel);
    }
    place(a, R1, 0);
    a.load(Size::D, R9, R1, 8);
    a.alu(Alu::Rsh, R9, 12);
    a.alu(Alu::Lsh, R9, 12);
    for page in 0..COPIED {
        place(a, R1, 0);
        a.store(Size::D, R1, 24, page);
        place(a, R1, 32 + (page * PAGE) as usize);
        a.mov(R2, PAGE);
        a.mov(R3, R9);
        a.alu(Alu::Add, R3, page * PAGE);
        a.call(Helper::ProbeReadUser);
        a.jump_if(Cond::Ne, R0, 0, done);
    }
    place(a, R1, 0);
    a.store(Size::D, R1, 24, COPIED);
    a.bind(done);
}

/// The walker in user space, on a copied stack.
pub struct Copied<'s> {
    lab: &'s Lab,
    mappings: &'s [Mapping],
    from: u64,
    stack: &'s [u8],
}

impl Target for Copied<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.from)?).ok()?;
        Some(u64::from_le_bytes(*self.stack.get(at..)?.first_chunk()?))
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        let tables =
            unwind::Tables { pages: self.lab.space.pages(), rows: &self.lab.rows, rules: self.lab.space.rules().all() };
        find(self.mappings, address).map(|m| tables.rule(m, address))
    }
}

/// The frames of a sample that [`Makes::Copies`] has sent, walked in user space, and how that ended.
pub fn walked(lab: &Lab, pid: u32, sample: &[u8]) -> (Vec<Frame>, Ended) {
    let copy = &sample[unwind::stack::RECORD..];
    let word = |at: usize| u64::from_le_bytes(*copy[at..].first_chunk().unwrap());
    let registers = Registers { pc: word(0), sp: word(8), bp: word(16) };
    let pages = word(24) as usize;
    let stack = &copy[32..32 + pages * PAGE as usize];
    let target = Copied { lab, mappings: &lab.mappings[&pid], from: registers.sp & !(PAGE as u64 - 1), stack };
    let mut walk = Walk::new(target, registers, unwind::stack::MAX_FRAMES);
    let frames = walk.by_ref().collect();
    (frames, walk.ended())
}
