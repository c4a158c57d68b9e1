//! Makes the stubs and patches of a module for one process: a plan, and where everything is.
//!
//! ```text
//!  area:  stubs (an array) │ pointers to slow code, minimum │ moved beginnings │ probes │ steps │ entries │ jumps to hooks │ programs │ int3 │ trailer
//! ```
//!
//! A traced function that is hooked too is traced first: its stub goes on at the jump to the hook, which calls the moved beginning. A probe at
//! its entry comes last, in front of the moved beginning.

use crate::first::Undo;
use crate::plan::{Plan, Site};
use crate::probe::{self, Code};
use crate::relocate::{FixKind, JUMP};
use crate::stub::{MINIMUM, POINTERS, Template};
use abi::message::{HOOKS, Hook, SLOWS, Slow};
use abi::plan::{PATCH, Step, Trailer};
use abi::stub::{UNDO, Variant};
use abi::values::{self, Offsets, PROBE_HEAD, TABLE};
use std::fmt;
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// `jmp [rip+0]`, and the address behind it. Before it, for a function of the heap: `lea r11, [rip + original]`. In front of all, where
/// the patch leads: what raises the stack pointer.
const FAR_JUMP: usize = UNDO as usize + 7 + 14;
/// As far as 32 bits of distance reach, with room for an instruction.
pub const REACH: u64 = (1 << 31) - 64;

/// Where the parts of a process are.
#[derive(Clone, Debug)]
pub struct Places {
    /// What is added to addresses of the file.
    pub bias: u64,
    /// Where the area will be.
    pub area: u64,
    /// Where `abi::thread::Thread` is, from the `fs` base.
    pub tls: i32,
    /// Addresses of slow code, by `Slow`.
    pub slow: [u64; SLOWS],
    /// Addresses of the agent's functions, by `Hook`; 0: the hook is not made.
    pub hooks: [u64; HOOKS],
    /// What stubs do.
    pub variant: Variant,
    /// The minimum of timed stubs, in ticks of the time stamp counter; of those that measure, the scale.
    pub minimum: u64,
}

/// Bytes to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Where, in the process.
    pub address: u64,
    /// How many.
    pub len: u8,
    /// How many bytes of the function lie in front of them.
    pub skipped: u8,
    /// An instruction begins within them.
    pub splits: bool,
    /// The bytes that must be there; the rest is 0.
    pub old: [u8; PATCH],
    /// What replaces them.
    pub new: [u8; PATCH],
}

/// Where the original of a hooked function goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original {
    /// The hook.
    pub hook: Hook,
    /// Its patch, by its number in [`Linked::patches`].
    pub patch: u32,
    /// The address.
    pub address: u64,
}

/// Moved code: its range in the process, and what it is a copy of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Where it lies in the process.
    pub range: Range<u64>,
    /// Where the first instruction of that lies in the process.
    pub original: u64,
}

/// A module's area and patches.
#[derive(Clone, Debug)]
pub struct Linked {
    /// Where the area is to be mapped.
    pub address: u64,
    /// Its contents. The area has whole pages.
    pub content: Vec<u8>,
    /// Bytes of stubs at its beginning.
    pub stubs: u64,
    /// What they do.
    pub variant: Variant,
    /// The number, in the session, of the function that each stub is for.
    pub functions: Vec<u32>,
    /// The patches, those of functions first, in order of addresses.
    pub patches: Vec<Patch>,
    /// Originals of hooked functions.
    pub originals: Vec<Original>,
    /// Moved beginnings in order of addresses.
    pub beginnings: Vec<Beginning>,
    /// What their code stands for.
    pub steps: Vec<Step>,
    /// Where that is written in the contents.
    pub steps_at: u64,
    /// Where it is written there which functions the stubs are for.
    pub entries_at: u64,
    /// Where jumps to hooks are: code that leaves the stack as it was when the function was called.
    pub jumps: Range<u64>,
    /// Probes, by their numbers in the module.
    probes: Vec<(u32, Code)>,
    /// Where their patches are, which may be those of functions, and their instructions.
    probed: Vec<(u64, u64)>,
    /// Counters of static probes, each with a patch, by its number in [`Linked::patches`].
    pub counters: Vec<(u64, u32)>,
}

/// What an area has beside the stubs of the functions that a plan traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'p> {
    /// Functions that get stubs for the sake of their returns, with their numbers in the session.
    pub returns: &'p [(&'p Site, u32)],
    /// Probes.
    pub points: &'p [&'p Site],
}

/// Why a plan cannot be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The area is too far from the module.
    OutOfReach,
    /// A number is 0 or does not fit into a record.
    Number(u32),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::OutOfReach => f.write_str("the memory for stubs is too far from the code"),
            LinkError::Number(number) => write!(f, "{number} is no number of a function"),
        }
    }
}

impl std::error::Error for LinkError {}

/// The most bytes that an area for this many functions and probes of a plan takes: whole pages.
pub fn area_len(plan: &Plan, (functions, points): (usize, usize), variant: Variant) -> u64 {
    let stubs = functions as u64 * u64::from(abi::stub::layout(variant).size);
    let steps = 8 + (plan.steps.len() + points * probe::STEPS + 1) * size_of::<Step>() + functions * size_of::<i32>();
    let code = plan.code.len() + points * probe::MOST;
    let rest = POINTERS + code + steps + plan.hooks.len() * FAR_JUMP + Trailer::SIZE;
    (stubs + rest as u64).next_multiple_of(PAGE)
}

/// Makes it. `number`: the number in the session of a function of the module; None: it is not to be traced.
pub fn link(
    plan: &Plan,
    places: &Places,
    number: impl Fn(u32) -> Option<u32>,
    beside: Beside<'_>,
) -> Result<Linked, LinkError> {
    let template = Template::new(places.variant, places.tls);
    let mut wanted: Vec<(&Site, u32)> = plan.sites.iter().filter_map(|s| Some((s, number(s.number)?))).collect();
    wanted.extend_from_slice(beside.returns);
    wanted.sort_by_key(|(site, _)| site.address);
    if let Some((_, wrong)) = wanted.iter().find(|(_, n)| *n == 0 || *n > abi::shared::FUNCTIONS) {
        return Err(LinkError::Number(*wrong));
    }
    let stubs = wanted.len() * template.size();
    let map = Map {
        places,
        pointers: places.area.wrapping_add(stubs as u64),
        code: places.area.wrapping_add((stubs + POINTERS) as u64),
    };
    let len = area_len(plan, (wanted.len(), beside.points.len()), places.variant);
    if !map.reaches(plan, len) {
        return Err(LinkError::OutOfReach);
    }
    let mut content = vec![0; stubs + POINTERS];
    map.write_pointers(&mut content[stubs..]);
    content.extend(&plan.code);
    map.fix(plan, &mut content[stubs + POINTERS..]);
    let (probes, steps) = map.probes(plan, beside.points, &mut content);
    // Where the program goes on behind the stubs and hooks of a function.
    let goes_on = |site: &Site| {
        let at = |(point, (_, code)): (&&Site, &(u32, Code))| {
            (point.address == site.address).then(|| code.entry(places.area))
        };
        beside.points.iter().zip(&probes).find_map(at).unwrap_or_else(|| map.beginning(site))
    };
    let mut linked = Linked {
        address: places.area,
        content,
        stubs: stubs as u64,
        variant: places.variant,
        functions: wanted.iter().map(|(_, n)| *n).collect(),
        patches: Vec::with_capacity(wanted.len() + plan.hooks.len()),
        originals: vec![],
        beginnings: map.beginnings(plan),
        steps,
        steps_at: 0,
        entries_at: 0,
        jumps: 0..0,
        probes: vec![],
        probed: beside.points.iter().map(|s| (map.biased(s.address), map.biased(s.start))).collect(),
        counters: vec![],
    };
    linked.write_steps();
    linked.write_entries(wanted.iter().map(|(site, _)| map.biased(site.start)));
    let jumps = linked.end();
    for (i, (site, number)) in wanted.iter().enumerate() {
        let offset = i * template.size();
        let at = places.area.wrapping_add(offset as u64);
        template.write(
            &mut linked.content[offset..][..template.size()],
            at,
            *number,
            goes_on(site),
            map.pointers,
            site.undo.unwrap_or(Undo::NOTHING),
        );
        let entry = at.wrapping_add(u64::from(template.layout().entry));
        linked.patches.push(map.patch(site, if site.is_undone() { entry - u64::from(UNDO) } else { entry }));
    }
    for (hook, site) in &plan.hooks {
        let function = places.hooks[*hook as usize];
        if function == 0 {
            continue;
        }
        let (first, thunk) = linked.add_thunk(site, function, hook.is_of_heap().then(|| goes_on(site)));
        let patch = match wanted.binary_search_by_key(&site.address, |(s, _)| s.address) {
            Ok(traced) => {
                let offset = traced * template.size();
                let at = places.area.wrapping_add(offset as u64);
                let out = &mut linked.content[offset..][..template.size()];
                template.write(out, at, wanted[traced].1, thunk, map.pointers, site.undo.unwrap_or(Undo::NOTHING));
                traced
            }
            Err(_) => {
                linked.patches.push(map.patch(site, first));
                linked.patches.len() - 1
            }
        };
        linked.originals.push(Original { hook: *hook, patch: patch as u32, address: goes_on(site) });
    }
    linked.jumps = jumps..linked.end();
    linked.patch_probes(&map, beside.points, &probes);
    linked.probes = probes;
    Ok(linked)
}

/// Has the probes of an area copy values: puts programs behind its contents. `program`: the number in the session, and the steps, of the probe with
/// this number in the module.
pub fn copy_at_probes<'p>(linked: &mut Linked, program: impl Fn(u32) -> (u32, &'p [values::Step])) {
    for ((number, code), original) in linked.probes.iter().zip(&linked.probed) {
        let (number, steps) = program(*number);
        let at = put_program(&mut linked.content, number, original.1, steps);
        code.set_program(&mut linked.content, at);
    }
}

/// Appends the program of a probe at an instruction, and returns where it is.
fn put_program(content: &mut Vec<u8>, number: u32, instruction: u64, steps: &[values::Step]) -> usize {
    content.resize(content.len().next_multiple_of(8), 0xcc);
    let at = content.len();
    let walks = if steps.iter().any(|s| s.place == values::STACK_HASH) { values::WALKS } else { 0 };
    let simple = if values::is_simple(steps) { values::SIMPLE } else { 0 };
    content.extend(number.to_le_bytes());
    content.extend((values::most(steps) | walks | simple).to_le_bytes());
    content.extend(instruction.to_le_bytes());
    content.extend(steps.iter().flat_map(values::Step::bytes));
    content.extend(values::Step::default().bytes());
    at
}

/// What is copied when a function begins, and when it returns: steps ([`abi::values`]) without their end.
pub type Programs = (Vec<values::Step>, Vec<values::Step>);

/// What a stub of the variant Called copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied<'p> {
    /// Calls are recorded, with what these copy.
    pub calls: Option<&'p Programs>,
    /// They are recorded anyway, with the function's number.
    pub number: Option<u32>,
    /// A probe at the return: its number in the session, and its steps.
    pub returns: Option<(u32, &'p [values::Step])>,
}

/// The most bytes that programs of these numbers of steps take in an area.
pub fn programs_len(steps: impl Iterator<Item = usize>) -> u64 {
    let fixed = size_of::<Offsets>() + 2 * PROBE_HEAD + 3 * size_of::<values::Step>();
    steps.map(|n| (fixed + n * size_of::<values::Step>()) as u64).sum::<u64>() + 8
}

/// Has the stubs of an area, which are of the variant Called, capture values: puts programs behind its contents. `copied`: what that of the
/// function with this number in the session does. `slow`: addresses of slow code.
pub fn capture<'p>(linked: &mut Linked, slow: &[u64; SLOWS], copied: impl Fn(u32) -> Copied<'p>) {
    let pointers = linked.stubs as usize;
    let put = |content: &mut Vec<u8>, index: usize, value: u64| {
        content[pointers + 8 * index..][..8].copy_from_slice(&value.to_le_bytes());
    };
    let content = &mut linked.content;
    content.resize(content.len().next_multiple_of(8), 0xcc);
    let table = content.len();
    put(content, Slow::Call as usize, slow[Slow::Arguments as usize]);
    put(content, Slow::Return as usize, slow[Slow::Result as usize]);
    put(content, TABLE, table as u64);
    content.resize((table + linked.functions.len() * size_of::<Offsets>()).next_multiple_of(8), 0);
    for (i, number) in linked.functions.iter().enumerate() {
        let mut write = |steps: &[values::Step]| {
            let at = content.len() as u32;
            content.extend(steps.iter().flat_map(values::Step::bytes));
            content.extend(values::Step::default().bytes());
            if steps.is_empty() { 0 } else { at }
        };
        let copied = copied(*number);
        let [entry, exit] = match copied.calls {
            Some((entry, exit)) => [write(entry), write(exit)],
            None => [0, 0],
        };
        let returns = copied.returns.map_or(0, |(number, steps)| put_program(content, number, 0, steps) as u32);
        let offsets = [entry, exit, copied.number.unwrap_or(0), returns].map(u32::to_le_bytes);
        content[table + i * size_of::<Offsets>()..][..size_of::<Offsets>()].copy_from_slice(offsets.as_flattened());
    }
}

/// From addresses of the file to those of the process.
struct Map<'p> {
    places: &'p Places,
    pointers: u64,
    code: u64,
}

impl Map<'_> {
    fn biased(&self, address: u64) -> u64 {
        address.wrapping_add(self.places.bias)
    }

    fn reaches(&self, plan: &Plan, len: u64) -> bool {
        let (low, high) = (self.biased(plan.reach.start), self.biased(plan.reach.end));
        let Some(end) = self.places.area.checked_add(len) else { return false };
        low <= high && high.max(end) - low.min(self.places.area) <= REACH
    }

    fn write_pointers(&self, out: &mut [u8]) {
        for (slow, out) in self.places.slow.iter().zip(out.chunks_exact_mut(8)) {
            out.copy_from_slice(&slow.to_le_bytes());
        }
        out[MINIMUM..][..8].copy_from_slice(&self.places.minimum.to_le_bytes());
    }

    /// Where what calls the original of a site goes.
    fn beginning(&self, site: &Site) -> u64 {
        if site.code.is_empty() { self.biased(site.back) } else { self.code.wrapping_add(site.code.start.into()) }
    }

    fn fix(&self, plan: &Plan, code: &mut [u8]) {
        for fix in &plan.fixes {
            let at = fix.at as usize;
            let target = self.biased(fix.target);
            match fix.kind {
                FixKind::Absolute => code[at..][..8].copy_from_slice(&target.to_le_bytes()),
                FixKind::Relative(rest) => {
                    let next = self.code.wrapping_add(at as u64 + u64::from(rest));
                    code[at..][..4].copy_from_slice(&(target.wrapping_sub(next) as u32).to_le_bytes());
                }
            }
        }
    }

    fn beginnings(&self, plan: &Plan) -> Vec<Beginning> {
        let hooks = plan.hooks.iter().map(|(_, site)| site);
        let probes = plan.points.iter().chain(&plan.returns);
        let sites = plan.sites.iter().chain(hooks).chain(probes).filter(|s| !s.code.is_empty());
        let at = |offset: u32| self.code.wrapping_add(offset.into());
        let mut all: Vec<Beginning> = sites
            .map(|s| Beginning { range: at(s.code.start)..at(s.code.end), original: self.biased(s.begins()) })
            .collect();
        all.sort_by_key(|b| b.range.start);
        all.dedup();
        all
    }

    /// Appends the code of probes to the contents, behind the moved beginnings. What all that code stands for.
    fn probes(&self, plan: &Plan, points: &[&Site], content: &mut Vec<u8>) -> (Vec<(u32, Code)>, Vec<Step>) {
        let mut steps = self.steps(plan);
        let probes = points.iter().map(|site| {
            let to = if site.behind { self.biased(site.back) } else { self.beginning(site) };
            let code = Code::put(content, self.places.area, self.pointers, site, to);
            if site.behind && !site.code.is_empty() {
                self.lead(content, self.code.wrapping_add(site.code.end.into()), code.entry(self.places.area));
            }
            steps.extend(code.steps(self.biased(site.begins()).wrapping_sub(self.places.area) as i32));
            (site.number, code)
        });
        (probes.collect(), steps)
    }

    /// Has the jump that ends at an address of the area lead to another one.
    fn lead(&self, content: &mut [u8], end: u64, to: u64) {
        let at = end.wrapping_sub(self.places.area) as usize - 4;
        content[at..][..4].copy_from_slice(&(to.wrapping_sub(end) as u32).to_le_bytes());
    }

    fn steps(&self, plan: &Plan) -> Vec<Step> {
        let of = |step: &crate::Step| {
            let at = self.code.wrapping_add(step.at.into()).wrapping_sub(self.places.area) as u32;
            let original = self.biased(step.original).wrapping_sub(self.places.area) as i32;
            Step { at: if step.pushed { at | Step::PUSHED } else { at }, original }
        };
        let end = self.code.wrapping_add(plan.code.len() as u64).wrapping_sub(self.places.area) as u32;
        plan.steps.iter().map(of).chain([Step { at: end, original: 0 }]).collect()
    }

    fn patch(&self, site: &Site, to: u64) -> Patch {
        let address = self.biased(site.address);
        let (mut old, mut new) = ([0; PATCH], [0; PATCH]);
        old[..JUMP].copy_from_slice(&site.old);
        new[0] = 0xe9;
        let distance = to.wrapping_sub(address.wrapping_add(JUMP as u64)) as u32;
        new[1..JUMP].copy_from_slice(&distance.to_le_bytes());
        let skipped = site.address.saturating_sub(site.start) as u8;
        Patch { address, len: JUMP as u8, skipped, splits: site.splits, old, new }
    }
}

/// What a pc in an area is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// A stub: the function's number in the session, and the offset in the stub.
    Stub {
        /// The number.
        function: u32,
        /// The offset.
        offset: u32,
    },
    /// The moved beginning of the code at this address.
    Beginning(u64),
    /// Something else: a pointer, a jump to a hook, a gap.
    Other,
}

impl Linked {
    /// Adds the patches of probes where no other patch leads to them.
    fn patch_probes(&mut self, map: &Map<'_>, points: &[&Site], probes: &[(u32, Code)]) {
        for (site, (_, code)) in points.iter().zip(probes) {
            if !self.patches.iter().any(|p| p.address == map.biased(site.address)) {
                let is_behind = site.behind && !site.code.is_empty();
                let to = if is_behind { map.beginning(site) } else { code.begins(self.address) };
                self.patches.push(map.patch(site, to));
            }
        }
    }

    /// Appends the way to a hook's function: where it begins, and where it does behind what undoes the patch. `original`: where the program
    /// goes on, which the function gets in r11.
    fn add_thunk(&mut self, site: &Site, function: u64, original: Option<u64>) -> (u64, u64) {
        let first = self.address.wrapping_add(self.content.len() as u64);
        if let Some(undo) = site.undo.filter(|_| site.is_undone()) {
            self.content.extend(undo.code());
        }
        let thunk = self.address.wrapping_add(self.content.len() as u64);
        if let Some(original) = original {
            let distance = original.wrapping_sub(thunk.wrapping_add(7));
            self.content.extend([0x4c, 0x8d, 0x1d]);
            self.content.extend((distance as u32).to_le_bytes());
        }
        self.content.extend([0xff, 0x25, 0, 0, 0, 0]);
        self.content.extend(function.to_le_bytes());
        (first, thunk)
    }

    /// Bytes of the area: whole pages.
    pub fn len(&self) -> u64 {
        ((self.content.len() + Trailer::SIZE) as u64).next_multiple_of(PAGE)
    }

    fn write_steps(&mut self) {
        self.content.resize(self.content.len().next_multiple_of(8), 0xcc);
        self.steps_at = self.content.len() as u64;
        for step in &self.steps {
            self.content.extend(step.at.to_le_bytes());
            self.content.extend(step.original.to_le_bytes());
        }
    }

    /// The functions of the stubs, by where they begin in the process.
    fn write_entries(&mut self, functions: impl Iterator<Item = u64>) {
        self.entries_at = self.content.len() as u64;
        for function in functions {
            self.content.extend((function.wrapping_sub(self.address) as i32).to_le_bytes());
        }
    }

    /// Where its contents end.
    fn end(&self) -> u64 {
        self.address.wrapping_add(self.content.len() as u64)
    }

    /// How many probes it has.
    pub fn probes(&self) -> usize {
        self.probes.len()
    }

    /// The number in the module of the probe whose patch is at an address.
    pub fn probe_at(&self, address: u64) -> Option<u32> {
        let nth = self.probed.iter().position(|(at, _)| *at == address)?;
        self.probes.get(nth).map(|(number, _)| *number)
    }

    /// Whether there is nothing in it: never, because it has pointers.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// What lies at a pc; None: outside of the area.
    pub fn inside(&self, pc: u64) -> Option<Inside> {
        let offset = pc.checked_sub(self.address).filter(|o| *o < self.len())?;
        let size = u64::from(abi::stub::layout(self.variant).size);
        if offset < self.stubs {
            let function = *self.functions.get((offset / size) as usize)?;
            return Some(Inside::Stub { function, offset: (offset % size) as u32 });
        }
        let next = self.beginnings.partition_point(|b| b.range.start <= pc);
        let found = next.checked_sub(1).map(|i| &self.beginnings[i]).filter(|b| b.range.contains(&pc));
        Some(found.map_or(Inside::Other, |b| Inside::Beginning(b.original)))
    }
}
