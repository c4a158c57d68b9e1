//! Walks that remember against walks that do not: made stacks, changed in between as programs change theirs and as none does.

use std::cell::Cell;
use std::collections::HashMap;
use testkit::{Random, rounds};
use unwind::replay::{MAX, Replay, Space};
use unwind::rule::{Kind, SavedBp, UCONTEXT};
use unwind::table::{Mapping, Page, Row, Tables};
use unwind::walk::{Bx, Caller, Registers, Target, Walk, step};
use unwind::{Ended, Rule};

/// Functions of 16 bytes each, one rule for each.
const CODE: u64 = 0x40_0000;
const FUNCTIONS: u64 = 64;
/// Code without rows, and code in no mapping.
const BLANK: u64 = 0x50_0000;
const NOWHERE: u64 = 0x60_0000;
/// The stack.
const BASE: u64 = 0x7fff_0000_0000;
const WORDS: usize = 4096;

struct World {
    rules: Vec<Rule>,
    rows: Vec<Row>,
    unmapped: Option<Rule>,
    generation: u64,
    words: Vec<u64>,
    /// What of the stack can be read.
    readable: std::ops::Range<u64>,
    reads: Cell<usize>,
}

const PAGES: [Page; 1] = [Page { first: 0, rows: FUNCTIONS as u32 }];
const MAPPINGS: [Mapping; 2] = [
    Mapping { start: CODE, end: CODE + 16 * FUNCTIONS, bias: CODE, first_page: 0, flags: 0 },
    Mapping { start: BLANK, end: BLANK + 0x1000, bias: 0, first_page: 0, flags: Mapping::NO_ROWS },
];

impl World {
    fn new(r: &mut Random) -> World {
        let mut w = World {
            rules: Vec::new(),
            rows: (0..FUNCTIONS as u16).map(|n| Row::new(16 * n, n)).collect(),
            unmapped: None,
            generation: r.below(3),
            words: (0..WORDS).map(|_| r.next()).collect(),
            readable: BASE..BASE + 8 * WORDS as u64,
            reads: Cell::new(0),
        };
        w.change_rules(r);
        w
    }

    /// Mostly plain rules, as files have them, or those of programs with frame pointers; and some of each kind.
    fn change_rules(&mut self, r: &mut Random) {
        let pointers = r.index(3);
        self.unmapped = [None, None, Some(Rule::NONE)][r.index(3)];
        self.rules = (0..FUNCTIONS).map(|_| rule(r, pointers)).collect();
    }

    fn space(&self) -> Space<'_> {
        let tables = Tables { pages: &PAGES, rows: &self.rows, rules: &self.rules };
        Space { tables, mappings: &MAPPINGS, unmapped: self.unmapped, generation: self.generation }
    }

    fn read(&self, address: u64) -> Option<u64> {
        self.reads.set(self.reads.get() + 1);
        let inside = self.readable.contains(&address) && address.is_multiple_of(8);
        self.words.get((address.wrapping_sub(BASE) / 8) as usize).copied().filter(|_| inside)
    }

    fn write(&mut self, address: u64, word: u64) {
        if let Some(w) = self.words.get_mut((address.wrapping_sub(BASE) / 8) as usize) {
            *w = word;
        }
    }

    /// An address that code may return to.
    fn code(&self, r: &mut Random) -> u64 {
        match r.index(200) {
            0 => BLANK + r.below(0x1000),
            1 => NOWHERE + r.below(0x1000),
            2 if r.index(2) == 0 => 0,
            3 => (1 << (56 + r.below(8))) | (CODE + r.below(16 * FUNCTIONS)),
            _ => CODE + 16 * r.below(FUNCTIONS) + r.below(3) + 1,
        }
    }

    /// One that mostly leads further out with this rsp and rbp.
    fn fit(&self, r: &mut Random, sp: u64, bp: u64) -> u64 {
        let far = bp.wrapping_sub(sp) >= 200;
        let uses = |kind| matches!(kind, Kind::Bp | Kind::BpAt | Kind::None);
        let fits = |code: &u64| !far || self.space().rule(code - 1).is_none_or(|rule| !uses(rule.kind()));
        (0..20).map(|_| self.code(r).max(1)).find(fits).unwrap_or(0)
    }

    /// What may be in rbp of a frame.
    fn bp(&self, r: &mut Random, sp: u64) -> u64 {
        match r.index(6) {
            0 => r.next(),
            1 => r.below(3),
            _ => sp.wrapping_add(8 * r.below(12)),
        }
    }

    /// Makes a stack outward from these registers: the words that rules look at lead on to some frame.
    fn make(&mut self, r: &mut Random, start: Registers, depth: usize) {
        let mut frame = Caller::returning(start);
        let mut context = None;
        for _ in 0..depth {
            let Some(rule) = self.space().rule(frame.lookup()) else { return };
            let Registers { sp, bp, .. } = frame.registers;
            let cfa = match rule.kind() {
                Kind::Sp => sp.wrapping_add(rule.offset() as u64),
                Kind::Bp => bp.wrapping_add(rule.offset() as u64),
                Kind::Plt => sp.wrapping_add(rule.offset() as u64 + 8 * r.below(2)),
                Kind::None => bp.wrapping_add(16),
                Kind::SpAt | Kind::BpAt => {
                    let at = if rule.kind() == Kind::SpAt { sp } else { bp }.wrapping_add(rule.offset() as u64);
                    let cfa = sp.wrapping_add(16 + 8 * r.below(6));
                    self.write(at, cfa.wrapping_sub(rule.extra() as i8 as u64));
                    cfa
                }
                Kind::Signal => {
                    let [bp_at, sp_at, pc_at] = UCONTEXT.map(|at| sp.wrapping_add(rule.offset() as u64 + at));
                    // Mostly further out, mostly not on another stack.
                    let outer = match r.index(4) {
                        0 => BASE + 8 * r.below(WORDS as u64),
                        _ => sp + 256 + 8 * r.below(10),
                    };
                    self.write(sp_at, outer);
                    self.write(pc_at, self.code(r));
                    self.write(bp_at, self.bp(r, outer));
                    0
                }
                _ => 0,
            };
            let word = self.bp(r, cfa);
            let outer_bp = if rule.bp() == SavedBp::Same { bp } else { word };
            self.write(cfa.wrapping_sub(8), self.fit(r, cfa, outer_bp));
            match rule.bp() {
                _ if rule.kind() == Kind::None => self.write(bp, word),
                SavedBp::Cfa(at) => self.write(cfa.wrapping_add(at as u64), word),
                SavedBp::Sp(at) => self.write(sp.wrapping_add(at as u64), word),
                SavedBp::Bp(at) => self.write(bp.wrapping_add(at as u64), word),
                SavedBp::Same => {}
            }
            match step(&frame, Some(rule), &mut context, Bx::Lost, |at| self.read(at), |_| None) {
                Ok(next) => frame = next,
                Err(_) => return,
            }
        }
    }

    /// A frame that the frame with these registers has called.
    fn call(&mut self, r: &mut Random, outer: Registers) -> Registers {
        let code = CODE + 16 * r.below(FUNCTIONS) + 1 + r.below(3);
        let Some(rule) = self.space().rule(code - 1) else { return outer };
        let junk = self.bp(r, outer.sp - 64);
        let mut inner = match rule.kind() {
            Kind::Sp if rule.offset() > 0 => Registers { pc: code, sp: outer.sp - rule.offset() as u64, bp: junk },
            Kind::Bp => {
                let bp = outer.sp - rule.offset() as u64;
                Registers { pc: code, sp: bp - 8 * r.below(5), bp }
            }
            _ => return outer,
        };
        match rule.bp() {
            SavedBp::Same if rule.kind() == Kind::Sp => inner.bp = outer.bp,
            SavedBp::Cfa(at) if at <= -16 => self.write(outer.sp.wrapping_add(at as u64), outer.bp),
            _ => return outer,
        }
        self.write(outer.sp - 8, outer.pc);
        inner
    }

    /// This many calls.
    fn calls(&mut self, r: &mut Random, outer: Registers, depth: usize) -> Registers {
        (0..depth).fold(outer, |outer, _| self.call(r, outer))
    }

    /// Frames, how they end, and the registers of each, as a walk has them that remembers nothing.
    fn walk(&self, start: Registers) -> (Vec<u64>, Ended, Vec<Registers>) {
        let mut walk = Walk::from(self, Caller::returning(start), MAX);
        let (mut frames, mut registers) = (Vec::new(), Vec::new());
        while let Some(frame) = walk.next() {
            frames.push(frame.0);
            registers.push(walk.registers());
        }
        (frames, walk.ended(), registers)
    }
}

impl Target for &World {
    fn read(&mut self, address: u64) -> Option<u64> {
        World::read(self, address)
    }
    fn rule(&mut self, address: u64) -> Option<Rule> {
        self.space().rule(address)
    }
}

fn rule(r: &mut Random, pointers: usize) -> Rule {
    let offset = 8 * (1 + r.below(6) as i64);
    let bp = match r.index(5) {
        0 => SavedBp::Cfa(-16),
        1 => SavedBp::Cfa(-8 * r.below(9) as i16),
        2 if r.index(8) == 0 => SavedBp::Sp(8 * r.below(5) as i16 - 8),
        2 if r.index(4) == 0 => SavedBp::Bp(8 * r.below(5) as i16 - 8),
        _ => SavedBp::Same,
    };
    if r.index(20) < 9 * pointers {
        return Rule::new(Kind::Bp, 16, SavedBp::Cfa(-16), 0).unwrap();
    }
    match r.index(200) {
        0 => Some(Rule::END),
        1 => Some(Rule::UNKNOWN),
        2 => Some(Rule::NONE),
        3 => Rule::new(Kind::Signal, 8 * r.below(3) as i64, SavedBp::Same, 0),
        4 => Rule::new(Kind::Plt, offset, bp, r.below(16) as u8),
        5 => Rule::new(Kind::SpAt, offset, bp, 8 * r.below(3) as u8),
        6 => Rule::new(Kind::BpAt, -8, bp, 0xf8),
        7 => Rule::new(Kind::Register, offset, bp, r.below(17) as u8),
        8 => Rule::new(Kind::Sp, -8, bp, 0),
        9..30 => Rule::new(Kind::Bp, offset, bp, 0),
        _ => Rule::new(Kind::Sp, offset, bp, 0),
    }
    .unwrap()
}

/// What is checked of each walk, and what was seen in all of them.
#[derive(Default)]
struct Seen {
    hashes: HashMap<u64, Vec<u64>>,
    of_frames: HashMap<Vec<u64>, u64>,
    before: (u64, Vec<u64>),
    walks: usize,
    same: usize,
    endings: [usize; unwind::stack::ENDINGS],
    reads: [usize; 2],
}

impl Seen {
    fn compare(&mut self, replay: &mut Replay, w: &World, start: Registers, what: &str) -> (Ended, Vec<Registers>) {
        w.reads.set(0);
        let (frames, ended, registers) = w.walk(start);
        self.reads[0] += w.reads.replace(0);
        let walked = replay.walk(&w.space(), start, |at| w.read(at));
        self.reads[1] += w.reads.get();
        assert_eq!((replay.frames(), walked.ended), (&frames[..], ended), "walk {}, {what}", self.walks);
        let now = (w.generation, frames.clone());
        assert_eq!(walked.same, now == self.before, "walk {}, {what}", self.walks);
        assert_eq!(*self.hashes.entry(walked.hash).or_insert_with(|| frames.clone()), frames);
        assert_eq!(*self.of_frames.entry(frames.clone()).or_insert(walked.hash), walked.hash);
        self.walks += 1;
        self.same += usize::from(walked.same);
        self.endings[ended as usize] += 1;
        self.before = now;
        (ended, registers)
    }
}

/// Changes something, and says where the next walk begins.
fn change(w: &mut World, r: &mut Random, start: &mut Registers, last: &[Registers]) -> &'static str {
    let some = r.of(last);
    let near = r.of(&last[..last.len().min(5)]);
    match r.index(15) {
        0 => return "nothing",
        1 => {
            let word = [w.code(r), w.code(r), w.code(r), r.next(), 0, some.sp][r.index(6)];
            w.write(some.sp - 8, word);
            return "a return address";
        }
        2 => {
            w.write(some.sp - 8 - 8 * (1 + r.below(3)), w.bp(r, some.sp));
            return "a word near a return address";
        }
        3 => {
            w.words[r.index(WORDS)] = [w.code(r), r.next(), some.bp][r.index(3)];
            return "any word";
        }
        4 => {
            start.bp = w.bp(r, start.sp);
            return "rbp";
        }
        5 => {
            start.pc = w.code(r);
            return "pc";
        }
        // It has called others; or something that is like calls.
        6..11 => {
            let depth = r.index(12);
            *start = w.calls(r, near, depth);
            return "calls";
        }
        11 => {
            let mut inner = near;
            inner.sp = inner.sp.wrapping_sub(8 * r.below(60));
            inner.pc = w.code(r);
            inner.bp = w.bp(r, inner.sp);
            *start = inner;
            let depth = 1 + r.index(6);
            w.make(r, inner, depth);
            return "other inner frames";
        }
        12 => {
            let low = if r.index(2) == 0 { start.sp } else { BASE };
            let high = if r.index(2) == 0 { some.sp + 8 * r.below(4) } else { BASE + 8 * WORDS as u64 };
            w.readable = low..high;
            return "what can be read";
        }
        13 if r.index(4) == 0 => {
            w.change_rules(r);
            w.generation = r.next();
            return "rules";
        }
        _ => {}
    }
    w.readable = BASE..BASE + 8 * WORDS as u64;
    start.sp = BASE + 8 * r.below(WORDS as u64);
    start.pc = w.code(r);
    start.bp = w.bp(r, start.sp);
    if r.index(3) == 0 {
        w.make(r, *start, 50);
    } else {
        let depth = r.of(&[5, 20, 100, 400]);
        *start = w.calls(r, *start, depth);
    }
    "another stack"
}

#[test]
fn each_walk_is_the_one_that_remembers_nothing() {
    let mut seen = Seen::default();
    for seed in 0..rounds(2000) as u64 {
        let mut r = Random::new(seed);
        let mut w = World::new(&mut r);
        let mut replay = Box::new(Replay::EMPTY);
        seen.before.1.clear();
        let mut start = Registers { pc: w.code(&mut r), sp: BASE + 8 * r.below(64), bp: 0 };
        w.make(&mut r, start, 60);
        let mut what = format!("seed {seed}");
        let (mut ended, mut registers) = seen.compare(&mut replay, &w, start, &what);
        for _ in 0..60 {
            let changed = change(&mut w, &mut r, &mut start, &registers);
            what = format!("seed {seed}, {ended:?}, {changed}");
            (ended, registers) = seen.compare(&mut replay, &w, start, &what);
        }
    }
    // What it was to see, it has seen.
    println!("{} walks, {} the same, reads {:?}, endings {:?}", seen.walks, seen.same, seen.reads, seen.endings);
    for ended in [Ended::Outermost, Ended::NoMapping, Ended::NoRow, Ended::Unknown, Ended::ReadFault, Ended::NotGrowing]
    {
        assert!(seen.endings[ended as usize] > seen.walks / 1000, "{ended:?}: {:?}", seen.endings);
    }
    assert!(seen.same > seen.walks / 20);
}

/// Any word, and mostly one that leads on.
fn anything(address: u64, seed: u64) -> Option<u64> {
    let mut r = Random::new(address ^ seed.rotate_left(32));
    match r.index(8) {
        0 => None,
        1 => Some(r.next()),
        2 => Some(address.wrapping_add(r.below(512))),
        3 => Some([0, u64::MAX, 1 << 63, i64::MAX as u64][r.index(4)]),
        _ => Some(CODE + r.below(16 * FUNCTIONS)),
    }
}

#[test]
fn any_memory_and_any_tables_are_answered() {
    let mut r = Random::new(7);
    let mut replay = Box::new(Replay::EMPTY);
    let mut deepest = 0;
    for round in 0..rounds(20_000) {
        let mut w = World::new(&mut r);
        w.generation = round as u64 / 8;
        if r.index(2) == 0 {
            w.rules.iter_mut().for_each(|rule| *rule = Rule(rule.0 ^ (r.next() & r.next() & r.next())));
        }
        let mut rows = w.rows.clone();
        rows.iter_mut().for_each(|row| *row = if r.index(3) == 0 { Row(r.next() as u32) } else { *row });
        let mut pages = PAGES;
        let mut mappings = MAPPINGS;
        for _ in 0..r.index(3) {
            let m = &mut mappings[r.index(2)];
            match r.index(5) {
                0 => m.start = r.next(),
                1 => m.end = r.next(),
                2 => m.bias = r.next(),
                3 => m.first_page = r.next() as u32,
                _ => pages[0] = Page { first: r.below(80) as u32, rows: r.next() as u32 },
            }
        }
        let tables = Tables { pages: &pages, rows: &rows, rules: &w.rules };
        let space = Space { tables, mappings: &mappings, unmapped: w.unmapped, generation: w.generation };
        let start = Registers { pc: w.code(&mut r), sp: [r.next(), 8 * r.below(1000)][r.index(2)], bp: r.next() };
        let reads = Cell::new(0);
        // Words change even during the walk.
        let walked = replay.walk(&space, start, |address| {
            reads.set(reads.get() + 1);
            anything(address, round as u64 / 3 + reads.get() as u64 % 2)
        });
        assert!(!replay.frames().is_empty() && replay.frames().len() <= MAX && walked.hash != 0);
        assert_ne!(walked.ended, Ended::Running);
        assert!(reads.get() <= 8 * MAX, "{}", reads.get());
        deepest = deepest.max(replay.frames().len());
    }
    assert!(deepest > 8, "{deepest}");
}

#[test]
fn stacks_deeper_than_what_is_kept_are_cut_on_the_outer_side() {
    let mut r = Random::new(1);
    let mut w = World::new(&mut r);
    w.rules = vec![Rule::new(Kind::Sp, 8, SavedBp::Same, 0).unwrap(); FUNCTIONS as usize];
    w.words.iter_mut().enumerate().for_each(|(n, word)| *word = CODE + 1 + n as u64 % 1000);
    let mut replay = Box::new(Replay::EMPTY);
    let mut seen = Seen::default();
    // In, out, whole again, and the depth that is just kept.
    for depth in [600, 600, 601, 599, 500, 512, 513, 512, 511, 514, 300, 513] {
        let start = Registers { pc: CODE + 5, sp: BASE + 8 * (WORDS - depth + 1) as u64, bp: 0 };
        let (ended, _) = seen.compare(&mut replay, &w, start, "deep");
        assert_eq!(replay.frames().len(), depth.min(MAX));
        assert_eq!(ended, if depth > MAX { Ended::Full } else { Ended::ReadFault });
    }
    // The words outside of what is kept do not count.
    let start = Registers { pc: CODE + 5, sp: BASE + 8 * (WORDS - 600) as u64, bp: 0 };
    seen.compare(&mut replay, &w, start, "deep");
    w.words[WORDS - 10] = 0;
    assert!(replay.walk(&w.space(), start, |at| w.read(at)).same);
    seen.compare(&mut replay, &w, start, "deep");
}

#[test]
fn what_was_found_is_not_asked_again() {
    let mut r = Random::new(2);
    let mut w = World::new(&mut r);
    w.rules = vec![Rule::new(Kind::Sp, 32, SavedBp::Cfa(-16), 0).unwrap(); FUNCTIONS as usize];
    w.rules[0] = Rule::END;
    for n in 0..20 {
        w.words[4 * n + 3] = CODE + 16 * (19 - n as u64) + 1;
    }
    let start = Registers { pc: CODE + 16 * 20 + 1, sp: BASE, bp: 7 };
    let mut replay = Box::new(Replay::EMPTY);
    let walked = replay.walk(&w.space(), start, |at| w.read(at));
    assert_eq!((walked.ended, walked.same, replay.frames().len()), (Ended::Outermost, false, 21));
    // Without tables, with another rbp and other saved ones: one word per frame is read.
    let blank = Tables { pages: &[], rows: &[], rules: &[] };
    let blank = Space { tables: blank, mappings: &[], unmapped: None, generation: w.generation };
    (0..20).for_each(|n| w.words[4 * n + 2] = r.next());
    w.reads.set(0);
    let again = replay.walk(&blank, Registers { bp: 8, ..start }, |at| w.read(at));
    assert_eq!((again.hash, again.ended, again.same, w.reads.get()), (walked.hash, Ended::Outermost, true, 20));
    // Other inner frames: their rules are known, too.
    w.words[3] = CODE + 16 * 7 + 1;
    let other = replay.walk(&blank, start, |at| w.read(at));
    assert_eq!((other.ended, other.same, replay.frames().len()), (Ended::Outermost, false, 21));
    assert_ne!(other.hash, walked.hash);
    // Another generation: they are forgotten.
    let generation = w.generation + 1;
    let gone = replay.walk(&Space { generation, ..blank }, start, |at| w.read(at));
    assert_eq!((gone.ended, replay.frames().len()), (Ended::NoMapping, 1));
}
