//! Answers agents: which patches the process gets. Files are read once per session, functions numbered once.

use super::called::{Called, counters};
use super::module::{Known, Role};
use super::runtime::Runtime;
use super::sums::Shape;
use super::tables::Tables;
use super::ticks::ticks_of;
use abi::message::{HOOKS, Hello, Hook};
use abi::stub::Variant;
use engine::own_events;
use engine::request::functions::{Functions, Sums};
use events::generated::P_FUNCTION;
use patch::hole::{self, Kind, Mapping};
use patch::link::{self, Beside, Linked, Places};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use sys::maps::{self, Map, PROT_EXEC};

/// Hooks of a process whose functions are left alone: the agent still follows into programs that it executes.
const FOLLOWING: [Hook; 4] = [Hook::Execve, Hook::Execveat, Hook::Fexecve, Hook::Syscall];

/// A file, as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    role: u8,
}

/// A module of a process: where it is, and which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    start: u64,
    file: (u32, u32, u64),
}

impl Placed {
    /// Its file: device (major, minor) and inode.
    pub fn file(&self) -> (u32, u32, u64) {
        self.file
    }
}

/// What a process gets.
#[derive(Default)]
pub struct Answer {
    /// The plan, as `abi::plan` has it; empty if there is nothing to patch.
    pub plan: Vec<u8>,
    /// Events that report the functions that have got a number.
    pub reported: Vec<Vec<u8>>,
    /// Files that were read for the first time, and have functions to be traced.
    pub read: Vec<Arc<Known>>,
    /// Files with places of probes, with the number of the first place: the first time.
    pub points: Vec<(u32, Arc<Known>)>,
    /// Where the plan's areas are to be.
    pub areas: Vec<Range<u64>>,
    /// How many functions and places of probes are patched.
    pub functions: usize,
    /// The plan's parts, each with its file and the number of that one's first function.
    pub linked: Vec<(Linked, Arc<Known>, u32)>,
    /// What cannot be patched, or read: a line each.
    pub problems: Vec<String>,
    /// How many functions of allocators are stood in for.
    pub allocators: usize,
    /// Unwind tables, and their bytes, where allocations get stacks.
    pub tables: Option<(OwnedFd, u64)>,
    /// The modules that the process has now.
    pub modules: Vec<Placed>,
    /// The path of the program.
    pub program: String,
    /// The process's functions are left alone: the file for whose sake, and its runtime.
    pub left_alone: Option<(String, Runtime)>,
}

/// A patch that a process did not get.
pub struct Unpatched {
    /// The function's name.
    pub name: String,
    /// A breakpoint is in its place: a probe's, or a debugger's.
    pub has_breakpoint: bool,
    /// It allocates or frees memory.
    pub is_of_heap: bool,
}

impl Answer {
    /// The patches of the plan that a process does not have, by what is in their places. That of a function that others had patched already
    /// leads elsewhere; it is none.
    pub fn unpatched(&self, pid: i32) -> Vec<Unpatched> {
        const JMP: u8 = 0xe9;
        const INT3: u8 = 0xcc;
        let mut all = Vec::new();
        for (linked, known, first) in &self.linked {
            for (i, patch) in linked.patches.iter().enumerate() {
                let mut there = [0; abi::plan::PATCH];
                let bytes = &mut there[..patch.len.into()];
                let read = sys::mem::read(pid, patch.address, bytes).unwrap_or(0);
                if read < bytes.len() || bytes[0] == JMP {
                    continue;
                }
                let hook = linked.originals.iter().find(|o| o.patch as usize == i).map(|o| o.hook);
                let number = linked.functions.get(i).map(|n| n - first).or_else(|| linked.probe_at(patch.address));
                let of_point = |n| known.point(n).map(|p| &p.label);
                let name = number.and_then(|n| known.names.get(n as usize).or_else(|| of_point(n)));
                let name = name.cloned().or_else(|| hook.map(|h| format!("{h:?}").to_lowercase()));
                all.push(Unpatched {
                    name: name.unwrap_or_default(),
                    has_breakpoint: bytes[0] == INT3,
                    is_of_heap: hook.is_some_and(Hook::is_of_heap),
                });
            }
        }
        all
    }
}

/// Makes answers.
pub struct Planner {
    functions: Functions,
    /// Ticks of the time stamp counter in a millisecond.
    ticks_per_ms: u64,
    known: HashMap<Key, Arc<Known>>,
    /// The number of the first function of a file; that of its function n is n higher.
    numbers: HashMap<Key, u32>,
    next: u32,
    /// Made when they are first needed.
    tables: Option<Tables>,
    /// Where areas are, by process, file, the module's place, and what they are for: those of one that comes to the same place again are there.
    areas: HashMap<(i32, Key, u64, bool), Range<u64>>,
}

impl Planner {
    /// For the functions that are wanted.
    pub fn new(functions: Functions, ticks_per_ms: u64) -> Planner {
        Planner {
            functions,
            ticks_per_ms,
            known: HashMap::new(),
            numbers: HashMap::new(),
            next: 1,
            tables: None,
            areas: HashMap::new(),
        }
    }

    /// One whose numbers are higher than this, which a function has already.
    pub fn numbered_after(mut self, last: u32) -> Planner {
        self.next = self.next.max(last.saturating_add(1));
        self
    }

    /// The highest number that a function has.
    pub fn last(&self) -> u32 {
        self.next - 1
    }

    /// The patches of a process that says this, and has these mappings. `before`: the modules that are patched already.
    pub fn answer(&mut self, pid: i32, hello: &Hello, maps: &[Map], before: &[Placed]) -> Answer {
        let mut answer = Answer::default();
        if before.is_empty() {
            self.areas.retain(|(of, ..), _| *of != pid);
        }
        let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| maps::identity(&m));
        let is_program = |m: &Map| Some(m.file) == program;
        if let Some(m) = maps.iter().find(|m| is_program(m)) {
            answer.program = String::from_utf8_lossy(&m.path).into_owned();
        }
        let agent = maps.iter().find(|m| m.range.0 <= hello.slow[0] && hello.slow[0] < m.range.1).map(|m| m.file);
        let wanted = self.functions.wants_program(&answer.program);
        // The code that records the process's system calls is none of its own.
        let is_ours = |m: &Map| Some(m.file) == agent || m.range.0 == sys::intercept::CODE;
        let has_code = |m: &&Map| m.prot & PROT_EXEC != 0 && m.file.2 != 0 && !is_ours(m);
        // By their names, those that were there before count too.
        answer.left_alone = maps.iter().filter(has_code).find_map(|m| {
            let path = String::from_utf8_lossy(&m.path);
            Some((path.to_string(), Runtime::of_name(&path)?))
        });
        let mut found = Vec::new();
        for m in maps.iter().filter(has_code) {
            let placed = Placed { start: m.range.0, file: m.file };
            answer.modules.push(placed.clone());
            if before.contains(&placed) {
                continue;
            }
            let path = String::from_utf8_lossy(&m.path).into_owned();
            let role = Role::of(&path, is_program(m));
            if role != Role::Libc && (!wanted || answer.left_alone.is_some()) {
                continue;
            }
            match self.module(pid, m, &path, role, &mut answer) {
                Ok((known, key, first)) => found.push((m, path, role, known, (key, first))),
                Err(why) => answer.problems.push(format!("{path}: {why}")),
            }
        }
        let owned = |(_, path, role, known, _): &(&Map, String, Role, Arc<Known>, (Key, u32))| {
            let runtime = known.runtime.filter(|r| *role == Role::Program || r.owns_process())?;
            Some((path.clone(), runtime))
        };
        answer.left_alone = answer.left_alone.or_else(|| found.iter().find_map(owned));
        let is_left = !wanted || answer.left_alone.is_some();
        let (mut taken, mut linked, mut files) = (mappings(maps, &is_program), Vec::new(), Vec::new());
        for (m, path, role, known, first) in found {
            let none = known.names.is_empty() && !self.functions.none;
            if role == Role::Program && none && self.functions.are_all() && !is_left {
                let todo = "--lib shows functions of libraries, debug symbols show its own";
                answer.problems.push(format!("{path}: the program has no symbols of functions ({todo})"));
            }
            match self.link((pid, hello), (m, maps), &known, first, &mut taken, is_left) {
                Ok(some) => {
                    files.extend(some.iter().map(|_| (Arc::clone(&known), first.1)));
                    linked.extend(some);
                }
                Err(why) => answer.problems.push(format!("{path}: {why}")),
            }
        }
        answer.functions = linked.iter().map(|l| l.functions.len() + l.probes()).sum();
        answer.areas = linked.iter().map(|l| l.address..l.address + l.len()).collect();
        let heap = |l: &Linked| l.originals.iter().filter(|o| o.hook.is_of_heap()).count();
        answer.allocators = linked.iter().map(heap).sum();
        let mappings = self.mappings(pid, maps, (&linked, before.is_empty()), &mut answer);
        if !linked.is_empty() || !mappings.is_empty() {
            answer.plan = patch::file::write(&linked, &mappings);
        }
        let with_files = linked.into_iter().zip(files);
        answer.linked = with_files.map(|(linked, (known, first))| (linked, known, first)).collect();
        answer
    }

    /// The mappings of a process for its unwinder; none where no stacks are wanted.
    fn mappings(
        &mut self,
        pid: i32,
        maps: &[Map],
        (linked, begins): (&[Linked], bool),
        answer: &mut Answer,
    ) -> Vec<[u64; 4]> {
        if answer.left_alone.is_some() || !self.functions.heap.as_ref().is_some_and(|h| h.stacks) {
            return Vec::new();
        }
        let made = match self.tables.take() {
            Some(tables) => Ok(tables),
            None => Tables::new(),
        };
        let mut tables = match made {
            Ok(tables) => tables,
            Err(e) => {
                answer.problems.push(format!("allocations have no stacks: {e}"));
                return Vec::new();
            }
        };
        let mappings = tables.mappings(pid, maps, linked, begins);
        let (fd, len) = tables.file();
        answer.tables = fd.try_clone_to_owned().ok().map(|fd| (fd, len));
        self.tables = Some(tables);
        mappings
    }

    /// The files of a process that have functions to be traced, as far as they were read, and what is added to their addresses.
    pub fn modules(&mut self, pid: i32, maps: &[Map]) -> Vec<(Arc<Known>, u64)> {
        let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| maps::identity(&m));
        let mut modules = Vec::new();
        for m in maps.iter().filter(|m| m.prot & PROT_EXEC != 0 && m.file.2 != 0) {
            let path = String::from_utf8_lossy(&m.path).into_owned();
            let role = Role::of(&path, Some(m.file) == program);
            let Ok((_, known)) = self.known(pid, m, &path, role) else { continue };
            if let Some(bias) = known.bias(m.range.0, m.offset).filter(|_| !known.plan.sites.is_empty()) {
                modules.push((known, bias));
            }
        }
        modules
    }

    /// Reads the files that a process has mapped before it is stopped. Returns where no thread of it may be when it is patched: in order,
    /// apart.
    pub fn prepare(&mut self, pid: i32, maps: &[Map]) -> Vec<Range<u64>> {
        const JUMP: u64 = 5;
        let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| maps::identity(&m));
        let mut ranges = Vec::new();
        for m in maps.iter().filter(|m| m.prot & PROT_EXEC != 0 && m.file.2 != 0) {
            let path = String::from_utf8_lossy(&m.path).into_owned();
            let role = Role::of(&path, Some(m.file) == program);
            let Ok((_, known)) = self.known(pid, m, &path, role) else { continue };
            let Some(bias) = known.bias(m.range.0, m.offset) else { continue };
            let sites = known.sites();
            let inside = |address: u64| address + 1..address + JUMP;
            ranges.extend(sites.filter(|s| s.splits).map(|s| inside(s.address.wrapping_add(bias))));
            ranges.extend(known.cleared.iter().map(|w| w.start.wrapping_add(bias)..w.end.wrapping_add(bias)));
        }
        apart(ranges)
    }

    /// The files that were read so far.
    pub fn files(&self) -> Vec<Arc<Known>> {
        self.known.values().map(Arc::clone).collect()
    }

    /// The file of a mapping, read once.
    fn known(&mut self, pid: i32, m: &Map, path: &str, role: Role) -> Result<(Key, Arc<Known>), String> {
        let file = maps::open(pid, m.range, &m.path, m.file).map_err(|e| e.to_string())?;
        let meta = file.metadata().map_err(|e| e.to_string())?;
        let changed = (meta.mtime(), meta.mtime_nsec());
        let key = Key { device: meta.dev(), inode: meta.ino(), size: meta.size(), changed, role: role as u8 };
        let known = match self.known.entry(key) {
            Entry::Occupied(e) => Arc::clone(e.get()),
            Entry::Vacant(e) => {
                let known = Known::read(&file, path, role, &self.functions).map_err(|e| e.to_string())?;
                Arc::clone(e.insert(Arc::new(known)))
            }
        };
        Ok((key, known))
    }

    /// The file of a mapping, which it is, and the number of its first function. Reports its functions the first time.
    fn module(
        &mut self,
        pid: i32,
        m: &Map,
        path: &str,
        role: Role,
        answer: &mut Answer,
    ) -> Result<(Arc<Known>, Key, u32), String> {
        let (key, known) = self.known(pid, m, path, role)?;
        if let Some(first) = self.numbers.get(&key) {
            return Ok((known, key, *first));
        }
        let (first, count) = (self.next, (known.names.len() + known.points.len()) as u32);
        self.next = first.checked_add(count).filter(|n| *n < abi::shared::FUNCTIONS).ok_or("too many functions")?;
        self.numbers.insert(key, first);
        answer.read.extend((role.is_traced(&self.functions)).then(|| Arc::clone(&known)));
        let points = first + known.names.len() as u32;
        if let Some(most) = self.functions.sums.map(Sums::numbers).filter(|most| points > *most) {
            let left = points - first.max(most);
            answer.problems.push(format!("{path}: {left} functions are not counted: sums are kept of {most}"));
        }
        answer.points.extend((!known.points.is_empty()).then(|| (points, Arc::clone(&known))));
        let now = sys::time::monotonic();
        let who = (pid as u32, pid as u32);
        let report = |name: u32, function: u32| {
            let numbers = [0, 0, 0, u64::from(first + function), known.addresses[function as usize]];
            let tails = [known.names[name as usize].as_bytes(), known.path.as_bytes(), &known.build_id];
            own_events::process(&P_FUNCTION, now, who, &numbers, &tails)
        };
        // The last name that is reported is the function's.
        answer.reported.extend(known.aliases().map(|(alias, function)| report(alias, function)));
        for site in &known.plan.sites {
            answer.reported.push(report(site.number, site.number));
            if let Some(captured) = known.captured.get(&site.number) {
                let (text, number) = (captured.signature.text(), u64::from(first + site.number));
                let class = events::values::class();
                answer.reported.push(own_events::process(class, now, who, &[0, number], &[text.as_bytes()]));
            }
        }
        Ok((known, key, first))
    }

    fn link(
        &mut self,
        (pid, hello): (i32, &Hello),
        (m, maps): (&Map, &[Map]),
        known: &Known,
        (key, first): (Key, u32),
        taken: &mut Vec<Mapping>,
        is_left: bool,
    ) -> Result<Vec<Linked>, String> {
        let follows = |(hook, _): &(Hook, _)| FOLLOWING.contains(hook);
        if known.is_empty() || is_left && !known.plan.hooks.iter().any(follows) {
            return Ok(Vec::new());
        }
        let mut hooks = hello.hooks;
        if is_left {
            hooks = [0; HOOKS];
            FOLLOWING.iter().for_each(|h| hooks[*h as usize] = hello.hooks[*h as usize]);
        }
        let bias = known.bias(m.range.0, m.offset).ok_or("no segment of the file is mapped there")?;
        let called = if is_left { Called::default() } else { Called::of(known) };
        let returns: Vec<_> = called.returns.iter().map(|s| (*s, first + s.number)).collect();
        let count = |captured| known.plan.sites.iter().filter(|s| called.has(s) == captured).count();
        let Planner { functions, ticks_per_ms, areas, .. } = self;
        let mut link = |variant, hooks, captured: bool, more: u64| {
            let points = known.plan.points.iter().filter(|s| !is_left && called.has(s) == captured);
            let points: Vec<_> = points.collect();
            let returns = if captured { &returns[..] } else { &[] };
            let steps = points.iter().map(|s| known.point(s.number).map_or(0, |p| p.steps.len()));
            let more = more + link::programs_len(steps);
            let len = link::area_len(&known.plan, (count(captured) + returns.len(), points.len()), variant)
                + more.next_multiple_of(link::PAGE);
            let reach = known.plan.reach.start.wrapping_add(bias)..known.plan.reach.end.wrapping_add(bias);
            let place = (pid, key, m.range.0, captured);
            let is_there =
                |area: &&Range<u64>| taken.iter().any(|t| t.range.start <= area.start && area.end <= t.range.end);
            let area = match areas.get(&place).filter(is_there) {
                Some(area) => area.start,
                None => hole::nearest(taken, &reach, len).ok_or("there is no room for stubs near it")?,
            };
            let at = taken.partition_point(|t| t.range.start < area);
            taken.insert(at, Mapping { range: area..area + len, kind: Kind::Other });
            let places = Places {
                bias,
                area,
                tls: i32::try_from(hello.tls).map_err(|_| "its thread-local data is too far away")?,
                slow: hello.slow,
                hooks,
                variant,
                minimum: match functions.sums {
                    Some(sums) => Shape::of(sums, *ticks_per_ms).scale,
                    None => functions.minimum.map_or(0, |ns| ticks_of(ns, *ticks_per_ms)),
                },
            };
            let of_called: HashSet<u32> = known.plan.sites.iter().filter(|s| called.has(s)).map(|s| s.number).collect();
            // Of further functions there are no rows.
            let most = functions.sums.map_or(u32::MAX, Sums::numbers);
            let is_wanted = |n| !is_left && of_called.contains(&n) == captured && first + n < most;
            let number = |n| is_wanted(n).then_some(first + n);
            let mut linked = link::link(&known.plan, &places, number, Beside { returns, points: &points })
                .map_err(|e| e.to_string())?;
            link::copy_at_probes(&mut linked, |n| (first + n, known.point(n).map_or(&[][..], |p| &p.steps)));
            // It may take less than was looked for.
            areas.insert(place, area..area + linked.len());
            Ok::<_, String>(linked)
        };
        let mut all = vec![link(functions.variant(), hooks, false, 0)?];
        if !called.is_empty() {
            let steps = known.captured.values().map(|c| c.programs.0.len() + c.programs.1.len());
            let returns = known.plan.returns.iter().map(|s| known.point(s.number).map_or(0, |p| p.steps.len()));
            let mut captured = link(Variant::Called, [0; HOOKS], true, link::programs_len(steps.chain(returns)))?;
            link::capture(&mut captured, &hello.slow, |n| called.copied(known, first, n));
            all.push(captured);
        }
        all.iter_mut().for_each(|linked| linked.counters = counters(known, bias, linked, maps));
        Ok(all)
    }
}

/// Ranges of addresses in order, with those that overlap as one.
pub fn apart(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    order::by_key(&mut ranges, |r| r.start);
    ranges.dedup_by(|next, before| {
        let overlap = next.start < before.end;
        before.end = if overlap { before.end.max(next.end) } else { before.end };
        overlap
    });
    ranges
}

/// The mappings as the search for a hole wants them.
fn mappings(maps: &[Map], is_program: &impl Fn(&Map) -> bool) -> Vec<Mapping> {
    let kind = |m: &Map| match &*m.path {
        b"[heap]" => Kind::Heap,
        b"[stack]" => Kind::Stack,
        _ if is_program(m) => Kind::Heap,
        _ => Kind::Other,
    };
    let mut all: Vec<Mapping> = maps.iter().map(|m| Mapping { range: m.range.0..m.range.1, kind: kind(m) }).collect();
    order::by_key(&mut all, |m| m.range.start);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::message::{HOOKS, MAGIC, Reason, SLOWS};

    #[test]
    fn ranges_come_apart() {
        assert_eq!(apart(vec![20..30, 1..5, 22..24, 29..31, 31..32, 1..5]), [1..5, 20..31, 31..32]);
    }

    #[test]
    fn this_process_can_be_patched() {
        let maps = sys::maps::of(sys::process::own_pid()).unwrap();
        let hello = Hello {
            magic: MAGIC,
            version: abi::VERSION,
            reason: Reason::Start as u32,
            pid: 1,
            parent: 0,
            maps_len: 0,
            tls: -512,
            slow: [0x10; SLOWS],
            hooks: [0x20; HOOKS],
            originals: 0,
        };
        let functions = Functions { wanted: vec!["*collector*".into()], ..Functions::default() };
        let mut planner = Planner::new(functions, 1_000_000);
        let pid = sys::process::own_pid();
        let first = planner.answer(pid, &hello, &maps, &[]);
        assert!(first.functions > 10 && first.reported.len() >= first.functions, "{:?}", first.problems);
        assert_eq!(first.plan[..4], abi::plan::MAGIC.to_le_bytes());
        let names: Vec<String> = first
            .reported
            .iter()
            .map(|e| String::from_utf8_lossy(events::Event::parse(e).unwrap().bytes_of("name")).into_owned())
            .collect();
        assert!(names.iter().any(|n| n.contains("planner") && n.contains("answer")), "{names:?}");
        // A second process gets the same numbers, which are not reported again; what is patched is not patched again.
        let second = planner.answer(pid, &hello, &maps, &[]);
        assert_eq!((second.plan == first.plan, second.reported.len()), (true, 0));
        assert!(planner.answer(pid, &hello, &maps, &first.modules).plan.is_empty());
    }
}
