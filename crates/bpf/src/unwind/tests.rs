//! The program in the interpreter, against the walker in user space: whatever tables and stacks there are, both find the same.

use super::*;
use crate::Helper;
use crate::insn::Alu;
use crate::interp::{Access, Machine};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeSet;
use unwind::patched::{Patched, Shadow};
use unwind::table::{CHUNK, Page, Row, find};
use unwind::{Frame, Kind, Record, Registers, Rule, SavedBp, Target, Walk};

const PROCESSES: i32 = 3;
const PAGES: i32 = 4;
const CHUNKS: i32 = 5;
const RULES: i32 = 6;
const AREA: i32 = 7;
const FIRST_CHUNK: i32 = 100;
const PAGE_COUNT: u32 = 8;
const RULE_COUNT: u32 = 32;
const TGID: u32 = 77;
/// Where a task has its `fs` base, and how far from that the agent's data is.
const FS_BASE: i32 = 16;
const TLS: i64 = -64;
const OFFSETS: UprobeOffsets =
    UprobeOffsets { utask: 8, copy: 0, address: 8, first: 16, stack: 0, original: 8, next: 16 };
/// Where the stack is, and how many words it has.
const STACK: u64 = 0x7ffd_0000_0000;
const WORDS: usize = 192;
/// Where the code is: mappings of a page each.
const CODE: u64 = 0x5555_0000_0000;

/// A process: tables, a stack, what return probes hide.
#[derive(Clone, Debug)]
struct Made {
    rules: Vec<Rule>,
    /// By page: addresses and numbers of rules.
    rows: Vec<Vec<(u16, u16)>>,
    no_rows: Option<usize>,
    guess_unmapped: bool,
    words: Vec<u64>,
    registers: Registers,
    /// Place (a number of a word) and address.
    hidden: Vec<(usize, u64)>,
    patched: PatchedCode,
}

/// Stubs and moved beginnings, and the shadow stack.
#[derive(Clone, Debug, Default)]
struct PatchedCode {
    /// How far the functions of stubs are from the stubs.
    entries: [i32; 4],
    /// Offset, how the stack pointer is lower, distance of the original.
    steps: Vec<(u32, Lower, i32)>,
    /// Place (a number of a word) and address of each entry; the number of entries below the top.
    shadow: (Vec<(usize, u64)>, usize),
}

/// Stubs of 64 bytes, to which functions return at 45; the code of moved beginnings; what stubs have of the thread.
const STUBS: u64 = CODE + 6 * 0x2_0000;
const RETURNS: u64 = 45;
const MOVED: u64 = CODE + 7 * 0x2_0000;
const MOVED_LEN: u64 = 0x80;
const ENTRIES: u64 = 0x6000_0000;
const FS: u64 = 0x6100_0000;
const SHADOW: u64 = 0x6200_0000;

/// By 8 bytes that were pushed, and by 128 that were skipped.
type Lower = (bool, bool);

impl PatchedCode {
    fn mappings(&self, page: usize) -> [Mapping; 2] {
        let flags = unwind::patched::stubs(64, RETURNS as u32);
        let first_page = page as u32;
        let stubs = Mapping { start: STUBS, end: STUBS + 4 * 64, bias: ENTRIES, first_page, flags };
        let (flags, first_page) = (unwind::patched::MOVED, self.steps.len() as u32);
        [stubs, Mapping { start: MOVED, end: MOVED + MOVED_LEN, bias: MOVED - 16, first_page, flags }]
    }

    /// What is in memory, by address.
    fn memory(&self) -> Vec<(u64, Vec<u8>)> {
        let entries = self.entries.iter().flat_map(|e| e.to_le_bytes()).collect();
        let step = |(at, (pushed, skipped), of): &(u32, Lower, i32)| {
            let at = at | if *pushed { unwind::patched::PUSHED } else { 0 };
            let at = at | if *skipped { unwind::patched::SKIPPED } else { 0 };
            [at.to_le_bytes(), of.to_le_bytes()].concat()
        };
        let steps = self.steps.iter().flat_map(step).collect();
        let (all, below) = &self.shadow;
        let words = |(place, address): &(usize, u64)| [STACK + 8 * *place as u64, *address, 0, 0];
        let mut shadow: Vec<u8> = all.iter().flat_map(words).flat_map(u64::to_le_bytes).collect();
        shadow.resize(shadow.len().max(512), 0);
        let top = SHADOW + unwind::patched::ENTRY * *below as u64;
        let local = [top, 0, 0, 0, 0, SHADOW].iter().flat_map(|w| w.to_le_bytes()).collect();
        let local_at = FS.wrapping_add_signed(TLS);
        vec![(ENTRIES, entries), (MOVED + MOVED_LEN, steps), (SHADOW, shadow), (local_at, local)]
    }

    fn read(&self, address: u64) -> Option<u64> {
        let word = |(begin, bytes): (u64, Vec<u8>)| {
            let at = usize::try_from(address.checked_sub(begin)?).ok()?;
            Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        };
        self.memory().into_iter().find_map(word)
    }

    fn moved(&self, offset: u64) -> Option<Patched> {
        let next = self.steps.partition_point(|s| u64::from(s.0) <= offset + 16);
        let (_, (pushed, skipped), of) = *self.steps.get(next.checked_sub(1)?)?;
        let original = (of != 0).then(|| (MOVED - 16).wrapping_add_signed(of.into()))?;
        let lowered = 8 * u64::from(pushed) + 128 * u64::from(skipped);
        Some(Patched::Moved { original, lowered })
    }
}

impl Made {
    fn mappings(&self) -> Vec<Mapping> {
        let flags = |nth| if self.no_rows == Some(nth) { Mapping::NO_ROWS } else { 0 };
        let one = |nth: usize| {
            // Between mappings are gaps.
            let start = CODE + nth as u64 * 0x2_0000;
            Mapping { start, end: start + 0x1_0000, bias: start, first_page: nth as u32, flags: flags(nth) }
        };
        (0..self.rows.len()).map(one).chain(self.patched.mappings(self.rows.len())).collect()
    }

    /// Pages in turn in two chunks, with the row in effect at the beginning of each.
    fn tables(&self) -> (Vec<Page>, Vec<Row>) {
        let (mut pages, mut rows, mut next) = (Vec::new(), vec![Row(0); 2 * CHUNK], [10usize, CHUNK + 4]);
        let of_stubs = self.rules.len().saturating_sub(3) as u16;
        let stub = vec![(20, of_stubs + 1), (RETURNS as u16, of_stubs + 2), (50, of_stubs)];
        for (nth, page) in self.rows.iter().chain([&stub]).enumerate() {
            let first = next[nth % 2];
            let mut all = vec![(0, if nth == self.rows.len() { of_stubs } else { 0 })];
            all.extend(page.iter().filter(|r| r.0 > 0).copied());
            all.sort_unstable();
            all.dedup_by_key(|r| r.0);
            for (at, (low, rule)) in all.iter().enumerate() {
                rows[first + at] = Row::new(*low, *rule);
            }
            pages.push(Page { first: first as u32, rows: all.len() as u32 });
            next[nth % 2] += all.len().next_multiple_of(2);
        }
        (pages, rows)
    }
}

/// What the other registers have: places in the stack.
fn other_register(number: u8) -> u64 {
    STACK + 8 * (u64::from(number) * 5 % 23)
}

/// Where they are in `struct pt_regs`, by number; rbp and rsp aside.
const IN_PT_REGS: [(u8, usize); 14] = [
    (0, 80),
    (1, 96),
    (2, 88),
    (3, 40),
    (4, 104),
    (5, 112),
    (8, 72),
    (9, 64),
    (10, 56),
    (11, 48),
    (12, 24),
    (13, 16),
    (14, 8),
    (15, 0),
];

struct Walked<'m> {
    made: &'m Made,
    mappings: Vec<Mapping>,
    pages: Vec<Page>,
    rows: Vec<Row>,
    /// The list is gone through once.
    seen: usize,
    shadow: Option<Shadow>,
}

impl Target for Walked<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(STACK)?).ok()?;
        // At any byte: of two neighbours.
        let word = |n: usize| self.made.words.get(n).map(|w| w.to_le_bytes());
        let (low, high) = (word(at / 8)?, if at % 8 == 0 { [0; 8] } else { word(at / 8 + 1)? });
        Some(u64::from_le_bytes(*[low, high].concat()[at % 8..].first_chunk()?))
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        let tables = unwind::Tables { pages: &self.pages, rows: &self.rows, rules: &self.made.rules };
        find(&self.mappings, address).map(|m| tables.rule(m, address))
    }
    fn patched(&mut self, frame: Registers, exact: bool) -> Option<Patched> {
        let (lookup, patched) = (frame.pc.wrapping_sub(u64::from(!exact)), &self.made.patched);
        if (MOVED..MOVED + MOVED_LEN).contains(&lookup) {
            return Some(patched.moved(lookup - MOVED).unwrap_or(Patched::Return(None)));
        }
        let offset = (STUBS..STUBS + 4 * 64).contains(&lookup).then(|| lookup - STUBS)?;
        if !exact && offset % 64 + 1 == RETURNS {
            let read = |at| patched.read(at);
            let new = || Shadow::of(FS.wrapping_add_signed(TLS), read);
            self.shadow = self.shadow.take().or_else(new);
            return Some(Patched::Return(self.shadow.as_mut()?.address(frame.sp.wrapping_sub(8), read)));
        }
        let function = STUBS.wrapping_add_signed(patched.entries[offset as usize / 64].into());
        let tables = unwind::Tables { pages: &self.pages, rows: &self.rows, rules: &self.made.rules };
        let rule = tables.at(self.made.rows.len() as u32, offset % 64)?;
        Some(Patched::Stub { function, cfa: (rule.kind() == Kind::Stub).then(|| rule.offset()) })
    }
    fn register(&mut self, number: u8) -> Option<u64> {
        Some(other_register(number))
    }
    fn unmapped(&mut self) -> Option<Rule> {
        self.made.guess_unmapped.then_some(Rule::NONE)
    }
    fn hidden(&mut self, place: u64) -> Option<u64> {
        let rest = &self.made.hidden[self.seen..];
        let at = rest.iter().position(|h| STACK + 8 * h.0 as u64 >= place)?;
        self.seen += at;
        let (found, address) = rest[at];
        (STACK + 8 * found as u64 == place).then(|| {
            self.seen += 1;
            address
        })
    }
}

fn walk(made: &Made) -> (Vec<Frame>, Ended) {
    let (pages, rows) = made.tables();
    let target = Walked { made, mappings: made.mappings(), pages, rows, seen: 0, shadow: None };
    let mut walk = Walk::new(target, made.registers, unwind::stack::MAX_FRAMES);
    let frames = walk.by_ref().collect();
    (frames, walk.ended())
}

/// A program that leaves the record, and its result is the record's length.
fn program(uprobes: bool) -> crate::Program {
    program_of(uprobes, MAX_FRAMES as u16)
}

fn program_of(uprobes: bool, frames: u16) -> crate::Program {
    program_with(uprobes, frames, None)
}

fn program_with(uprobes: bool, frames: u16, memory: Option<MemoryOffsets>) -> crate::Program {
    let mut a = Assembler::new();
    let tables = Tables {
        processes: PROCESSES,
        pages: PAGES,
        page_count: PAGE_COUNT,
        chunks: CHUNKS,
        rules: RULES,
        rule_count: RULE_COUNT,
        frames,
        uprobes: uprobes.then_some(OFFSETS),
        memory,
        fs_base: Some(FS_BASE),
    };
    let stacks = UserStacks::new(&mut a, tables);
    a.call(Helper::GetCurrentPidTgid);
    a.alu(Alu::Rsh, R0, 32);
    a.mov(R2, R0);
    a.map_value(R1, AREA, 0);
    stacks.call(&mut a);
    a.exit();
    stacks.finish(&mut a);
    a.finish().unwrap()
}

fn machine(made: &Made) -> Machine {
    let mut m = Machine::new();
    m.limit = 10_000_000;
    m.pid_tgid = u64::from(TGID) << 32 | 5;
    m.add_hash(PROCESSES, 4, PROCESS, 4);
    let flags = if made.guess_unmapped { GUESS_UNMAPPED } else { 0 };
    assert!(m.set_value(PROCESSES, &TGID.to_le_bytes(), &process(flags, TLS, &made.mappings()).unwrap()));
    let (pages, rows) = made.tables();
    let words = |words: &mut dyn Iterator<Item = u64>, count: usize| {
        let mut all: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        all.resize(8 * count, 0);
        all
    };
    m.add_array(PAGES, 8 * PAGE_COUNT as usize, 1);
    assert!(m.set_value(PAGES, &[0; 4], &words(&mut pages.iter().map(|p| p.to_word()), PAGE_COUNT as usize)));
    m.add_array(RULES, 8 * RULE_COUNT as usize, 1);
    assert!(m.set_value(RULES, &[0; 4], &words(&mut made.rules.iter().map(|r| r.0), RULE_COUNT as usize)));
    m.add_maps(CHUNKS, 4);
    for (nth, chunk) in rows.chunks(CHUNK).enumerate() {
        let fd = FIRST_CHUNK + nth as i32;
        m.add_array(fd, 4 * CHUNK, 1);
        let bytes: Vec<u8> = chunk.iter().flat_map(|r| r.0.to_le_bytes()).collect();
        assert!(m.set_value(fd, &[0; 4], &bytes) && m.set_map(CHUNKS, nth as u32, fd));
    }
    m.add_array(AREA, area::SIZE, 1);
    let mut registers = [0u8; 168];
    let r = made.registers;
    for (number, at) in IN_PT_REGS {
        registers[at..at + 8].copy_from_slice(&other_register(number).to_le_bytes());
    }
    for (at, value) in [(32, r.bp), (128, r.pc), (136, 0x33), (152, r.sp)] {
        registers[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    m.user_registers = m.add_kernel(&registers, Access::Probe);
    let bytes: Vec<u8> = made.words.iter().flat_map(|w| w.to_le_bytes()).collect();
    m.add_user(STACK, &bytes);
    made.patched.memory().iter().filter(|(_, b)| !b.is_empty()).for_each(|(at, bytes)| m.add_user(*at, bytes));
    // The kernel's list, the last one first.
    let mut next = 0u64;
    for (place, address) in made.hidden.iter().rev() {
        let words = [STACK + 8 * *place as u64, *address, next];
        next = m.add_kernel(&words.map(u64::to_le_bytes).concat(), Access::Probe);
    }
    let utask = m.add_kernel(&[0, 0, next].map(u64::to_le_bytes).concat(), Access::Probe);
    m.task = m.add_kernel(&[0, utask, FS].map(u64::to_le_bytes).concat(), Access::Probe);
    m
}

/// Frames and ending by the program.
fn run(m: &mut Machine, program: &crate::Program) -> (Vec<Frame>, Ended) {
    let len = m.run_words(program, &[]).unwrap() as usize;
    let area = m.value(AREA, &[0; 4]).unwrap();
    let record = Record::parse(&area[area::RECORD as usize..][..len]).unwrap();
    let frames: Vec<Frame> = record.frames().collect();
    assert_eq!(record.guessed as usize, frames.iter().filter(|f| f.is_guessed()).count());
    assert_eq!(len, unwind::stack::HEAD + 8 * frames.len());
    (frames, record.ended)
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let bp = prop_oneof![
        6 => Just(SavedBp::Same),
        2 => (-12i16..0).prop_map(|n| SavedBp::Cfa(8 * n)),
        1 => (-3i16..3).prop_map(|n| SavedBp::Bp(8 * n)),
        1 => (-3i16..3).prop_map(|n| SavedBp::Sp(8 * n)),
    ];
    let kind = prop_oneof![
        20 => Just(Kind::Sp),
        4 => Just(Kind::Bp),
        1 => Just(Kind::Plt),
        1 => Just(Kind::SpAt),
        1 => Just(Kind::BpAt),
        3 => Just(Kind::None),
        1 => Just(Kind::End),
        1 => Just(Kind::Unknown),
        2 => Just(Kind::Register),
    ];
    (kind, prop_oneof![1 => -1i64..12, 8 => 1i64..4], bp, any::<u8>()).prop_map(|(kind, words, bp, extra)| {
        let extra = match kind {
            Kind::SpAt | Kind::BpAt => extra & 0xf8,
            // rbp and rsp have kinds of their own.
            Kind::Register if matches!(extra & 15, 6 | 7) => 3,
            _ => extra & 15,
        };
        Rule::new(kind, 8 * words, bp, extra).unwrap()
    })
}

/// A word of a stack: mostly of code or of the stack itself.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        120 => (0u64..3, 0u64..0x1_0000).prop_map(|(m, at)| CODE + m * 0x2_0000 + at),
        20 => (0u64..4).prop_map(|nth| STUBS + 64 * nth + RETURNS),
        4 => (0u64..4 * 64).prop_map(|at| STUBS + at),
        4 => (0u64..MOVED_LEN).prop_map(|at| MOVED + at),
        20 => (0u64..WORDS as u64).prop_map(|n| STACK + 8 * n),
        1 => (0u64..0x8_0000).prop_map(|at| CODE - 0x1000 + at),
        1 => any::<u64>(),
        1 => Just(0),
    ]
}

/// Mostly of functions in the code.
fn any_patched() -> impl Strategy<Value = PatchedCode> {
    let entry = (0u64..3, 0u64..0x1_0000).prop_map(|(m, at)| (CODE + m * 0x2_0000 + at).wrapping_sub(STUBS) as i32);
    let lower = (prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    let step = (16u32..0x90, lower, (0u64..3, 0u64..0x1_0000), prop::bool::weighted(0.9));
    let step = step.prop_map(|(at, pushed, (m, to), is_one)| {
        let of = (CODE + m * 0x2_0000 + to).wrapping_sub(MOVED - 16) as i32;
        (at, pushed, if is_one { of } else { 0 })
    });
    let address = prop_oneof![12 => any_word(), 1 => 0u64..3];
    let shadow = prop::collection::vec((0usize..WORDS, address), 0..40);
    let parts = (prop::array::uniform4(entry), prop::collection::vec(step, 0..12), shadow, 0usize..40, any::<bool>());
    parts.prop_map(|(entries, mut steps, mut shadow, below, sorted)| {
        steps.sort_unstable();
        if sorted {
            shadow.sort_by_key(|e| std::cmp::Reverse(e.0));
        }
        let below = below.min(shadow.len());
        PatchedCode { entries, steps, shadow: (shadow, below) }
    })
}

fn made() -> impl Strategy<Value = Made> {
    let rows = prop::collection::vec((any::<u16>(), 0u16..12), 0..60);
    (
        prop::collection::vec(any_rule(), 11),
        prop::collection::vec(rows, 3),
        prop::option::weighted(0.2, 0usize..3),
        prop::bool::weighted(0.2),
        prop::collection::vec(any_word(), WORDS),
        (any_word(), 0u64..20, any_word()),
        prop::collection::btree_map(0usize..WORDS, any_word(), 0..6),
        any_patched(),
    )
        .prop_map(|(mut rules, rows, no_rows, guess_unmapped, words, (pc, sp, bp), hidden, patched)| {
            rules.insert(0, Rule::NONE);
            let stub = |cfa| Rule::new(Kind::Stub, cfa, SavedBp::Same, 0).unwrap();
            rules.extend([stub(8), Rule::UNKNOWN, stub(0)]);
            let registers = Registers { pc, sp: STACK + 8 * sp, bp };
            Made {
                rules,
                rows,
                no_rows,
                guess_unmapped,
                words,
                registers,
                hidden: hidden.into_iter().collect(),
                patched,
            }
        })
}

/// Which of the two reasons it is depends on what else is in the kernel's list.
fn ending(ended: Ended) -> Ended {
    if ended == Ended::ReturnProbe { Ended::NoMapping } else { ended }
}

#[test]
fn both_walkers_find_the_same() {
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let program = program(true);
    let seen = RefCell::new((BTreeSet::new(), 0, 0));
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let compared = runner.run(&made(), |made| {
        let (frames, ended) = run(&mut machine(&made), &program);
        let mut seen = seen.borrow_mut();
        seen.0.insert(ended);
        seen.1 = seen.1.max(frames.len());
        seen.2 += frames.iter().filter(|f| f.is_guessed()).count();
        let (want, want_ended) = walk(&made);
        prop_assert_eq!((frames, ending(ended)), (want, ending(want_ended)));
        Ok(())
    });
    compared.unwrap_or_else(|e| panic!("{e}"));
    // The processes are made so that much happens.
    let (endings, longest, guessed) = seen.into_inner();
    eprintln!("{endings:?}, at most {longest} frames, {guessed} guessed");
    assert!(
        endings.len() >= 6 && endings.contains(&Ended::Stub) && longest >= 7 && guessed > 0,
        "{endings:?} {longest} {guessed}"
    );
}

#[test]
fn a_process_has_so_many_mappings_and_no_more() {
    let one = Mapping { start: 0x1000, end: 0x2000, bias: 0x800, first_page: 7, flags: Mapping::NO_ROWS };
    let value = process(GUESS_UNMAPPED, -9, &[one]).unwrap();
    assert_eq!((value.len(), &value[..8]), (PROCESS, &[1, 0, 0, 0, 1, 0, 0, 0][..]));
    let word = |at: usize| u64::from_le_bytes(*value[at..].first_chunk().unwrap());
    assert_eq!([8, 16, 24, 32, 40].map(word), [-9i64 as u64, 0x1000, 0x2000, 0x800, 7 | 1 << 32]);
    assert_eq!([48, PROCESS - 32].map(word), [i64::MAX as u64; 2]);
    assert!(process(0, 0, &[one; MAPPINGS]).is_some() && process(0, 0, &[one; MAPPINGS + 1]).is_none());
}

#[test]
fn other_code_and_unknown_processes_end_at_once() {
    let rows = vec![vec![(0, 0)]];
    let registers = Registers { pc: CODE, sp: STACK, bp: 0 };
    let (rules, words, hidden) = (vec![Rule::NONE], vec![0; WORDS], Vec::new());
    let patched = PatchedCode::default();
    let made = Made { rules, rows, no_rows: None, guess_unmapped: false, words, registers, hidden, patched };
    let first = vec![Frame(CODE | Frame::EXACT)];
    let program = program(false);
    let mut m = machine(&made);
    m.pid_tgid = 1 << 32;
    assert_eq!(run(&mut m, &program), (first.clone(), Ended::NoProcess));
    for (cs, frames, ended) in [(0x23u8, first.clone(), Ended::NotX86_64), (0x10, Vec::new(), Ended::NotUser)] {
        let mut m = machine(&made);
        let mut registers = [0u8; 168];
        registers[136] = cs;
        registers[128..136].copy_from_slice(&CODE.to_le_bytes());
        m.user_registers = m.add_kernel(&registers, Access::Probe);
        assert_eq!(run(&mut m, &program), (frames, ended));
        let area = m.value(AREA, &[0; 4]).unwrap();
        let counter = area::ENDINGS_AT as usize + 8 * ended as usize;
        assert_eq!(area[counter], 1);
    }
}

#[test]
fn a_process_that_executes_a_program_has_no_stack() {
    let (registers, hidden) = (Registers { pc: CODE, sp: STACK, bp: 0 }, Vec::new());
    let (rules, words) = (vec![Rule::NONE, Rule::END], vec![0; WORDS]);
    let patched = PatchedCode::default();
    let made = Made {
        rules,
        rows: vec![vec![(1, 1)]],
        no_rows: None,
        guess_unmapped: false,
        words,
        registers,
        hidden,
        patched,
    };
    let program = program_with(false, MAX_FRAMES as u16, Some(MemoryOffsets { mm: 8, start_code: 16 }));
    for (pc, start_code, want) in [
        (CODE - 1, Some(1), Ended::NoMapping),
        (CODE - 1, Some(0), Ended::NoMemory),
        (CODE - 1, None, Ended::NoMemory),
        // What could be walked was there.
        (CODE + 5, Some(0), Ended::Outermost),
    ] {
        let mut m = machine(&Made { registers: Registers { pc, ..registers }, ..made.clone() });
        let mm = start_code.map_or(0, |at| m.add_kernel(&[0, 0, at].map(u64::to_le_bytes).concat(), Access::Probe));
        m.task = m.add_kernel(&[0, mm].map(u64::to_le_bytes).concat(), Access::Probe);
        assert_eq!(run(&mut m, &program).1, want, "{pc:x} {start_code:?}");
    }
}

#[test]
fn registers_are_known_of_the_innermost_frame_and_of_an_interrupted_one() {
    let rule = |kind, offset, extra| Rule::new(kind, offset, SavedBp::Same, extra).unwrap();
    for number in IN_PT_REGS.map(|r| r.0) {
        let rules = vec![Rule::NONE, rule(Kind::Register, 16, number), rule(Kind::Signal, 0, 0), Rule::END];
        let rows = vec![vec![(1, 1), (0x100, 2), (0x200, 3)]];
        let mut words = vec![0; WORDS];
        let registers = Registers { pc: CODE + 0x10, sp: STACK - 64, bp: 0 };
        // The CFA is the register + 16, below it the address of a signal frame. What it has interrupted has the same rule, and another
        // value in the register.
        let cfa = (other_register(number) - STACK) as usize / 8 + 2;
        words[cfa - 1] = CODE + 0x101;
        let context = |offset: u16| cfa + usize::from(offset) / 8;
        words[context(unwind::rule::IN_UCONTEXT[usize::from(number)])] = STACK + 8 * 100;
        words[context(unwind::rule::IN_UCONTEXT[7])] = STACK + 8 * 90;
        words[context(0xa8)] = CODE + 0x20;
        words[101] = CODE + 0x20;
        let patched = PatchedCode::default();
        let made =
            Made { rules, rows, no_rows: None, guess_unmapped: false, words, registers, hidden: Vec::new(), patched };
        let want =
            [(0x10, Frame::EXACT), (0x101, 0), (0x20, Frame::EXACT), (0x20, 0)].map(|f| Frame((CODE + f.0) | f.1));
        let (frames, ended) = run(&mut machine(&made), &program(false));
        // At a return address nothing is known of it.
        assert_eq!((&frames[..], ended), (&want[..], Ended::Unknown), "register {number}");
        assert_eq!(walk(&made), (frames, ended));
    }
}

#[test]
fn a_stack_without_an_end_fills_the_record() {
    // Each frame is a word: the words lead to the same place again.
    let rule = Rule::new(Kind::SpAt, 0, SavedBp::Same, 0).unwrap();
    let rows = vec![vec![(1, 1)]];
    let rules = vec![Rule::NONE, rule];
    let deep = 2 * unwind::stack::MAX_FRAMES;
    // *(rsp) is the CFA, two words further out; the word before that is the return address.
    let words = (0..deep).map(|n| if n % 2 == 0 { STACK + 8 * (n as u64 + 2) } else { CODE + 0x100 }).collect();
    let registers = Registers { pc: CODE + 0x100, sp: STACK, bp: 0 };
    let patched = PatchedCode::default();
    let made =
        Made { rules, rows, no_rows: None, guess_unmapped: false, words, registers, hidden: Vec::new(), patched };
    let (frames, ended) = run(&mut machine(&made), &program(true));
    assert_eq!((frames.len(), ended), (unwind::stack::MAX_FRAMES, Ended::Full));
    assert_eq!((&frames, ended), (&walk(&made).0, walk(&made).1));
    let (few, ended) = run(&mut machine(&made), &program_of(true, 7));
    assert_eq!((&few[..], ended), (&frames[..7], Ended::Full));
}

#[test]
fn a_copied_instruction_is_taken_for_its_original() {
    let rule = Rule::new(Kind::Sp, 8, SavedBp::Same, 0).unwrap();
    let registers = Registers { pc: 0x7fff_0000_1003, sp: STACK, bp: 0 };
    let (rules, words, rows) = (vec![Rule::NONE, rule], vec![CODE + 0x200, 0], vec![vec![(1, 1)]]);
    let patched = PatchedCode::default();
    let made =
        Made { rules, rows, no_rows: None, guess_unmapped: false, words, registers, hidden: Vec::new(), patched };
    let with = |copy: u64| {
        let mut m = machine(&made);
        let utask = m.add_kernel(&[copy, CODE + 0x100, 0].map(u64::to_le_bytes).concat(), Access::Probe);
        m.task = m.add_kernel(&[0, utask].map(u64::to_le_bytes).concat(), Access::Probe);
        run(&mut m, &program(true))
    };
    let whole = vec![Frame((CODE + 0x103) | Frame::EXACT), Frame(CODE + 0x200)];
    assert_eq!(with(0x7fff_0000_1000), (whole, Ended::Outermost));
    let unknown = vec![Frame(registers.pc | Frame::EXACT)];
    assert_eq!(with(0), (unknown.clone(), Ended::NoMapping));
    assert_eq!(with(0x7fff_0000_1080), (unknown, Ended::NoMapping));
}

#[test]
fn damaged_tables_end_the_walk() {
    let rows = vec![vec![(1, 1)]];
    let rule = Rule::new(Kind::Sp, 16, SavedBp::Same, 0).unwrap();
    let registers = Registers { pc: CODE + 0x100, sp: STACK, bp: 0 };
    let (rules, words) = (vec![Rule::NONE, rule], vec![0; WORDS]);
    let patched = PatchedCode::default();
    let made =
        Made { rules, rows, no_rows: None, guess_unmapped: false, words, registers, hidden: Vec::new(), patched };
    let program = program(true);
    let end = |damage: &dyn Fn(&mut Machine)| {
        let mut m = machine(&made);
        damage(&mut m);
        run(&mut m, &program).1
    };
    assert_eq!(end(&|_| ()), Ended::Outermost);
    let page = |page: Page| {
        move |m: &mut Machine| {
            let mut pages = vec![0; 8 * PAGE_COUNT as usize];
            pages[..8].copy_from_slice(&page.to_word().to_le_bytes());
            assert!(m.set_value(PAGES, &[0; 4], &pages));
        }
    };
    // No such chunk, rows up to and behind the end of a chunk, more rows than a page can have.
    assert_eq!(end(&page(Page { first: 3 << 18, rows: 1 })), Ended::Damaged);
    assert_eq!(end(&page(Page { first: (1 << 18) - 1, rows: 5 })), Ended::Damaged);
    assert_eq!(end(&page(Page { first: 10, rows: u32::MAX })), Ended::Damaged);
    // A page, a row and a rule that do not exist.
    assert_eq!(end(&page(Page { first: 0, rows: 0 })), Ended::Outermost);
    let far = Mapping { first_page: PAGE_COUNT, ..made.mappings()[0] };
    let set = |m: &mut Machine| assert!(m.set_value(PROCESSES, &TGID.to_le_bytes(), &process(0, 0, &[far]).unwrap()));
    assert_eq!(end(&set), Ended::Damaged);
    let row = |m: &mut Machine| {
        let mut rows = vec![0; 4 * CHUNK];
        rows[40..44].copy_from_slice(&Row::new(0, 999).0.to_le_bytes());
        rows[44..48].copy_from_slice(&Row::new(1, 999).0.to_le_bytes());
        assert!(m.set_value(FIRST_CHUNK, &[0; 4], &rows));
    };
    assert_eq!(end(&row), Ended::Damaged);
}

#[test]
fn stacks_lead_through_patched_functions() {
    // The frame at CODE + 0x100 has been called by a stub, which a tail call of another has led to, and so has its caller.
    let plain = Rule::new(Kind::Sp, 16, SavedBp::Same, 0).unwrap();
    let stub = |cfa| Rule::new(Kind::Stub, cfa, SavedBp::Same, 0).unwrap();
    let rules = vec![Rule::NONE, plain, Rule::END, stub(8), Rule::UNKNOWN, stub(0)];
    let mut words = vec![0; WORDS];
    let returns = |nth: u64| STUBS + 64 * nth + RETURNS;
    for (at, word) in [(1, returns(2)), (3, returns(1)), (5, CODE + 0x300)] {
        words[at] = word;
    }
    let shadow = vec![(3, CODE + 0x200), (1, CODE + 0x150), (1, returns(0))];
    let distance = |to: u64, from: u64| to.wrapping_sub(from) as i32;
    let patched = PatchedCode {
        entries: [distance(CODE + 0x180, STUBS); 4],
        steps: vec![
            (16, (false, false), distance(CODE + 0x110, MOVED - 16)),
            (20, (true, false), distance(CODE + 0x118, MOVED - 16)),
        ],
        shadow: (shadow, 3),
    };
    let rows = vec![vec![(1, 1), (0x300, 2)]];
    let registers = Registers { pc: CODE + 0x100, sp: STACK, bp: 0 };
    let made =
        Made { rules, rows, no_rows: None, guess_unmapped: false, words, registers, hidden: Vec::new(), patched };
    let program = program(true);
    let found = |made: &Made| {
        let by_program = run(&mut machine(made), &program);
        assert_eq!(by_program, walk(made));
        (by_program.0.iter().map(|f| f.0 - CODE).collect::<Vec<u64>>(), by_program.1)
    };
    let exact = Frame::EXACT;
    assert_eq!(found(&made), (vec![exact | 0x100, 0x150, 0x200, 0x300], Ended::Outermost));
    // In a stub before it has called, where it has returned to, and in moved code behind a push and before it.
    let at = |pc, word: i64| {
        let registers = Registers { pc, sp: STACK.wrapping_add_signed(8 * word), bp: 0 };
        found(&Made { registers, ..made.clone() })
    };
    assert_eq!(at(STUBS + 64 + 8, 1), (vec![exact | 0x180, 0x150, 0x200, 0x300], Ended::Outermost));
    assert_eq!(at(returns(2), 2), (vec![exact | 0x180, 0x150, 0x200, 0x300], Ended::Outermost));
    assert_eq!(at(MOVED + 2, 0), (vec![exact | 0x110, 0x150, 0x200, 0x300], Ended::Outermost));
    assert_eq!(at(MOVED + 7, -1), (vec![exact | 0x118, 0x150, 0x200, 0x300], Ended::Outermost));
    assert_eq!(at(STUBS + 64 + 30, 1).1, Ended::Unknown);
    // Entries that an exception has removed; calls that have left none.
    let with = |below| {
        let shadow = (made.patched.shadow.0.clone(), below);
        found(&Made { patched: PatchedCode { shadow, ..made.patched.clone() }, ..made.clone() })
    };
    assert_eq!(with(1), (vec![exact | 0x100, 0x150, 0x200, 0x300], Ended::Outermost));
    let shadow = (vec![(3, CODE + 0x200)], 1);
    let other = Made { patched: PatchedCode { shadow, ..made.patched.clone() }, ..made.clone() };
    assert_eq!(found(&other), (vec![exact | 0x100], Ended::Stub));
}
