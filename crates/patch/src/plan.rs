//! The plan of a module: for each function the place of its patch and its moved beginning, or why it gets none. It depends on the file
//! alone, not on where that is loaded, and is made once per file.
//!
//! ```text
//!  functions ─► frame, room ─► places: behind the first instruction, at it ─► what leads into them ─► move the beginning ─► Site | Refusal
//! ```
//!
//! A patch lies behind the function's first instruction where it can ([`crate::first`]), so that probes and breakpoints at the function
//! and the patch do not touch each other's bytes; else at it. It lies further on where it would lie across a debugger's breakpoint
//! or a static probe.

use crate::Refusal;
use crate::first::{First, Undo, first, prologue};
use crate::input::{Frame, Function, Module, Point};
use crate::relocate::{Fix, FixKind, JUMP, Step, relocate};
use crate::targets::{Hits, Place, hits};
use abi::message::Hook;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::ops::Range;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// How far from the code what beginnings speak of may be: the module's data. What is farther is refused, because it would leave no room
/// for an area that reaches everything; it is hardly code.
const DATA: u64 = 512 << 20;
/// This many entries of the unwind information begin between that of a function and an instruction of it, at most.
const AROUND: usize = 8;
/// The longest padding behind a small function.
const PADDING: usize = 16;

/// A function that can be patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The function's number in the module; of several functions at one place that of the first.
    pub number: u32,
    /// Where the function begins, as an address of the file.
    pub start: u64,
    /// Where the patch lies: there, or behind the first instructions.
    pub address: u64,
    /// The moved beginning repeats the instructions in front of the patch, whose effects on the stack this takes back.
    pub undo: Option<Undo>,
    /// The bytes that it replaces.
    pub old: [u8; JUMP],
    /// An instruction begins within the patch.
    pub splits: bool,
    /// Where the program goes on behind the patch.
    pub back: u64,
    /// Its moved beginning in [`Plan::code`]; empty: nothing is displaced, and the stub goes to `back`.
    pub code: Range<u32>,
    /// A probe lies behind the moved instructions, and not in front of them.
    pub behind: bool,
}

impl Site {
    /// Where the instructions of the moved beginning lie in the file.
    pub fn begins(&self) -> u64 {
        if self.undo.is_some() || self.behind { self.start } else { self.address }
    }

    /// The patch leads to what takes back effects on the stack.
    pub fn is_undone(&self) -> bool {
        self.undo.is_some_and(|undo| undo != Undo::NOTHING)
    }
}

/// A module's plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Sites of functions, by address.
    pub sites: Vec<Site>,
    /// Functions without a site of their own, because another function has the same: their number, that of the site.
    pub aliases: Vec<(u32, u32)>,
    /// Functions without a patch.
    pub refusals: Vec<(u32, Refusal)>,
    /// Hooked functions; sites of traced functions with the same address are the same.
    pub hooks: Vec<(Hook, Site)>,
    /// Probes: at the entry of a function, where they may share its site, and within.
    pub points: Vec<Site>,
    /// Functions whose returns are probes.
    pub returns: Vec<Site>,
    /// Probes that cannot be reached.
    pub refused_points: Vec<(u32, Refusal)>,
    /// Hooks that cannot be made.
    pub refused_hooks: Vec<(Hook, Refusal)>,
    /// The moved beginnings of all sites.
    pub code: Vec<u8>,
    /// What is open in them, by offset.
    pub fixes: Vec<Fix>,
    /// What the moved beginnings stand for, by offset.
    pub steps: Vec<Step>,
    /// The lowest address that patches and beginnings speak of, and behind the highest.
    pub reach: Range<u64>,
    /// What beginnings may speak of.
    near: Range<u64>,
}

/// A function on its way: where its patch could be, the best place first, and what may be decoded.
struct Candidate<'b> {
    function: Function,
    places: Vec<(Place, Option<First>)>,
    /// Its bytes.
    bytes: &'b [u8],
    /// It is a function: a jump of its own to the patch would look like a call.
    is_function: bool,
}

impl Candidate<'_> {
    /// A place that a patch can always be tried at: the last, but for those further on in the prologue.
    fn last(&self) -> u64 {
        let mut places = self.places.iter().map(|(place, _)| place).rev();
        places.find(|place| place.repeated <= 1).map_or(self.function.address, |place| place.at)
    }
}

impl Plan {
    /// Makes the plan.
    pub fn new(module: &Module<'_>) -> Plan {
        let mut plan = Plan::default();
        let code = module.code();
        plan.near = code.start.saturating_sub(DATA)..code.end.saturating_add(DATA);
        let mut candidates = Vec::with_capacity(module.functions.len());
        for function in module.functions {
            match candidate(module, *function, true) {
                Ok(candidate) => candidates.push(candidate),
                Err(refusal) => plan.refusals.push((function.number, refusal)),
            }
        }
        let mut hooks = vec![];
        for (hook, address) in module.hooks {
            let function = Function { address: *address, size: 0, number: 0, refusal: None };
            match candidate(module, function, false) {
                Ok(candidate) => hooks.push((*hook, candidate)),
                Err(refusal) => plan.refused_hooks.push((*hook, refusal)),
            }
        }
        candidates.sort_by_key(Candidate::last);
        let mut points = vec![];
        for point in module.points {
            match point_candidate(module, point) {
                Ok(candidate) => points.push((*point, candidate)),
                Err(refusal) => plan.refused_points.push((point.number, refusal)),
            }
        }
        let all = candidates.iter().chain(hooks.iter().map(|(_, c)| c)).chain(points.iter().map(|(_, c)| c));
        let mut places: Vec<Place> = all.flat_map(|c| c.places.iter().map(|p| p.0)).collect();
        places.sort_by_key(|p| p.at);
        let hits = hits(module, &places);
        plan.functions(module, &candidates, &hits);
        plan.hooks(module, &hooks, &hits);
        plan.points(module, &points, &hits);
        plan.refusals.sort_unstable();
        plan.measure(code);
        plan
    }

    fn functions(&mut self, module: &Module<'_>, candidates: &[Candidate<'_>], hits: &Hits) {
        for same in candidates.chunk_by(|a, b| a.last() == b.last()) {
            // Of several names each may know the size.
            let Some(best) = same.iter().max_by_key(|c| c.function.size) else { continue };
            match self.site(module, best, hits) {
                Ok(site) => {
                    let at = self.sites.partition_point(|s| s.address < site.address);
                    self.sites.insert(at, Site { number: same[0].function.number, ..site });
                    self.aliases.extend(same[1..].iter().map(|c| (c.function.number, same[0].function.number)));
                }
                Err(refusal) => self.refusals.extend(same.iter().map(|c| (c.function.number, refusal))),
            }
        }
    }

    fn hooks(&mut self, module: &Module<'_>, hooks: &[(Hook, Candidate<'_>)], hits: &Hits) {
        for (hook, candidate) in hooks {
            let of = |place: &Place| {
                let found = self.sites.binary_search_by_key(&place.at, |s| s.address).ok()?;
                (self.sites[found].start == place.start).then_some(found)
            };
            let found = candidate.places.iter().find_map(|(place, _)| of(place));
            let site = match found {
                Some(found) => Ok(self.sites[found].clone()),
                None => self.site(module, candidate, hits),
            };
            match site {
                Ok(site) => self.hooks.push((*hook, site)),
                Err(refusal) => self.refused_hooks.push((*hook, refusal)),
            }
        }
    }

    fn points(&mut self, module: &Module<'_>, points: &[(Point, Candidate<'_>)], hits: &Hits) {
        for (point, candidate) in points {
            let is_there = |s: &&Site| candidate.is_function && s.start == point.address;
            let is_hooked = self.hooks.iter().any(|(_, s)| s.start == point.address);
            let site = match self.sites.iter().find(is_there).or(self.hooks.iter().map(|h| &h.1).find(is_there)) {
                _ if point.at_return && is_hooked => Err(Refusal::Hooked),
                Some(site) => Ok(site.clone()),
                None => match self.points.iter().chain(&self.returns).find(is_there) {
                    Some(site) => Ok(site.clone()),
                    None => self.site(module, candidate, hits),
                },
            };
            match site {
                Ok(site) => {
                    let all = if point.at_return { &mut self.returns } else { &mut self.points };
                    all.push(Site { number: point.number, start: point.address, ..site });
                }
                Err(refusal) => self.refused_points.push((point.number, refusal)),
            }
        }
    }

    /// The first place that works; else what is wrong with the last.
    fn site(&mut self, module: &Module<'_>, candidate: &Candidate<'_>, hits: &Hits) -> Result<Site, Refusal> {
        let mut refusal = Refusal::TooSmall;
        for (place, kept) in &candidate.places {
            match self.site_at(module, candidate, (place, kept.as_ref()), hits) {
                Ok(site) => return Ok(site),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    fn site_at(
        &mut self,
        module: &Module<'_>,
        candidate: &Candidate<'_>,
        (place, kept): (&Place, Option<&First>),
        hits: &Hits,
    ) -> Result<Site, Refusal> {
        let at = place.at;
        if self.overlaps(place) {
            return Err(Refusal::SymbolInside);
        }
        if hits.is_inside(place) {
            return Err(Refusal::JumpInside);
        }
        if module.stops_in(at) {
            return Err(Refusal::Breakpoint);
        }
        if candidate.is_function && module.statics_in(at) {
            return Err(Refusal::StaticProbe);
        }
        if candidate.is_function && hits.is_loop(at) {
            return Err(Refusal::Loop);
        }
        let repeated = kept.filter(|k| !k.is_empty);
        let begin = at - repeated.map_or(0, |k| k.len as u64);
        let bytes = &candidate.bytes[(begin - place.start) as usize..];
        let (code, fixes, steps) = (self.code.len(), self.fixes.len(), self.steps.len());
        let least = place.probe.saturating_sub(at) as usize;
        let from = (begin, (at - begin) as usize, least);
        let moved = relocate(from, bytes, module.profilers, &mut self.code, &mut self.fixes, &mut self.steps);
        let moved = moved.and_then(|moved| {
            if self.leaves(module, code) {
                return Err(Refusal::Patched);
            }
            if hits.has_label(place) && (moved.splits || repeated.is_some()) {
                return Err(Refusal::JumpInside);
            }
            // What never comes to the probe is no way to it.
            if least > 0 && (moved.ends || moved.displaced < least) {
                return Err(Refusal::Unmovable);
            }
            let is_near = self.fixes[fixes..].iter().all(|f| self.near.contains(&f.target));
            if is_near { Ok(moved) } else { Err(Refusal::Unmovable) }
        });
        let moved = moved.inspect_err(|_| {
            self.code.truncate(code);
            self.fixes.truncate(fixes);
            self.steps.truncate(steps);
        })?;
        let bytes = module.bytes(at).and_then(|b| b.first_chunk::<JUMP>()).ok_or(Refusal::TooSmall)?;
        let back = at.wrapping_add(moved.displaced as u64);
        let end = if moved.is_empty { code } else { self.code.len() };
        Ok(Site {
            number: candidate.function.number,
            start: place.start,
            address: at,
            undo: repeated.map(|k| k.undo),
            old: *bytes,
            splits: moved.splits,
            back,
            code: code as u32..end as u32,
            behind: least > 0,
        })
    }

    /// A patch here would overlap another one: a function begins within the endbr64 of another.
    fn overlaps(&self, place: &Place) -> bool {
        let near = |s: &&Site| s.address.abs_diff(place.at) < JUMP as u64;
        let next = self.sites.partition_point(|s| s.address < place.at);
        let beside = self.sites[next.saturating_sub(1)..].iter().take(2);
        let is_same = |s: &&Site| (s.address, s.start) == (place.at, place.start);
        beside
            .filter(near)
            .chain(self.hooks.iter().map(|(_, s)| s).filter(near).filter(|s| !is_same(s)))
            .chain(self.points.iter().chain(&self.returns).filter(near).filter(|s| !is_same(s)))
            .next()
            .is_some()
    }

    /// The beginning, which is at the end of the code, is a jump out of the module.
    fn leaves(&self, module: &Module<'_>, code: usize) -> bool {
        let is_jump = self.code.get(code) == Some(&0xe9) && self.code.len() == code + JUMP;
        is_jump && self.fixes.last().is_some_and(|fix| module.bytes(fix.target).is_none())
    }

    /// Sets the reach.
    fn measure(&mut self, code: Range<u64>) {
        let targets = self.fixes.iter().filter(|f| f.kind != FixKind::Absolute).map(|f| f.target);
        self.reach = targets.fold(code, |reach, a| a.min(reach.start)..a.max(reach.end));
    }
}

/// Looks at what surrounds a function, before its code is.
fn candidate<'b>(module: &Module<'b>, function: Function, needs_frame: bool) -> Result<Candidate<'b>, Refusal> {
    if let Some(refusal) = function.refusal {
        return Err(refusal);
    }
    let address = function.address;
    let rest = module.bytes(address).ok_or(Refusal::Outside)?;
    let frame = frame(module.frames, address);
    if needs_frame && !frame.is_some_and(|f| f.is_as_called) {
        return Err(Refusal::NoFrame);
    }
    let size = match (function.size, frame) {
        (0, Some(frame)) => frame.len,
        (0, None) => next_symbol(module, address) - address,
        (size, _) => size,
    };
    let size = size.min(rest.len() as u64) as usize;
    let bytes = &rest[..size];
    let end = address.wrapping_add(size as u64);
    let mut places = vec![];
    let mut refusal = None;
    // The agent's own functions have the arguments of those that they replace.
    let may_write = needs_frame && !module.captures && !module.has_point(address);
    let kept = first(address, bytes).filter(|k| k.keeps_arguments || may_write);
    let behind = kept.map(|kept| (kept.len, Some(kept)));
    // More of a prologue stays only for a debugger's breakpoint or a static probe.
    let has_static = kept.is_some_and(|kept| module.statics_in(address.wrapping_add(kept.len as u64)));
    let prologue = if module.stops_near(address) || has_static { prologue(address, bytes) } else { Vec::new() };
    let may_stay = |kept: &First| kept.keeps_arguments || may_write;
    let prologue = prologue.into_iter().filter(may_stay).map(|kept| (kept.len, Some(kept)));
    // Where a program may demand it, an endbr64 stays in front in any case. For a static probe's sake alone, the first instruction is not
    // replaced: other tools' probes of the function would be lost for it.
    let stays = bytes.starts_with(&ENDBR64) || has_static;
    let front = if stays { None } else { Some((0, None)) };
    for (skipped, kept) in behind.into_iter().chain(prologue).chain(front) {
        match room(module, address, rest, (size, skipped)) {
            Ok(()) => {
                let at = address.wrapping_add(skipped as u64);
                let repeated = kept.filter(|k: &First| !k.is_empty).map_or(0, |k| k.len as u64 - k.first as u64 + 1);
                places.push((Place { at, start: address, end, repeated, probe: 0 }, kept));
            }
            Err(why) => refusal = Some(why),
        }
    }
    if places.is_empty() {
        return Err(refusal.unwrap_or(Refusal::TooSmall));
    }
    Ok(Candidate { function, places, bytes, is_function: true })
}

/// Looks at what surrounds the place of a probe: a function, or an instruction of one.
fn point_candidate<'b>(module: &Module<'b>, point: &Point) -> Result<Candidate<'b>, Refusal> {
    let Point { address, number, at_return, refusal } = *point;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if at_return || frame(module.frames, address).is_some_and(|f| f.is_as_called) {
        return candidate(module, Function { address, size: 0, number, refusal: None }, true);
    }
    let around = module.frames[..module.frames.partition_point(|f| f.start <= address)].iter().rev();
    let Frame { start, len, .. } = *around.take(AROUND).find(|f| address - f.start < f.len).ok_or(Refusal::NoFrame)?;
    let rest = module.bytes(start).ok_or(Refusal::Outside)?;
    let bytes = &rest[..rest.len().min(len as usize)];
    // A hostile file's last function may end where addresses do.
    let end = start.saturating_add(bytes.len() as u64);
    let within = bytes.get((address - start) as usize..).ok_or(Refusal::Outside)?;
    let instruction = Decoder::with_ip(64, within, address, DecoderOptions::NONE).decode();
    // A static probe's nop stays where what follows it is reached by nothing else: a breakpoint there and the patch do not touch each other's bytes.
    let is_nop = instruction.mnemonic() == Mnemonic::Nop;
    let behind = is_nop.then_some(instruction.len() as u64);
    let mut places = vec![];
    for (skipped, repeated) in behind.map(|len| (len, 1)).into_iter().chain([(0, 0)]) {
        let at = address.saturating_add(skipped);
        let own = end.saturating_sub(at) as usize;
        // Behind the function is padding.
        let has_room = own >= JUMP || own > 0 && is_padding(&rest[bytes.len()..], JUMP - own);
        if has_room && next_symbol(module, address).saturating_sub(at) >= JUMP as u64 {
            places.push((Place { at, start, end, repeated, probe: 0 }, None));
        }
    }
    let front = before(bytes, start, address.saturating_add(instruction.len() as u64)).filter(|_| is_nop);
    places.extend(front.map(|at| (Place { at, start, end, repeated: 0, probe: address }, None)));
    let function = Function { address, size: 0, number, refusal: None };
    if places.is_empty() {
        Err(Refusal::TooSmall)
    } else {
        Ok(Candidate { function, places, bytes, is_function: false })
    }
}

/// Where an instruction begins in front of which a patch has room that ends with a static probe, or in front of it. `bytes`: those of the function.
/// `end`: behind the probe.
fn before(bytes: &[u8], start: u64, end: u64) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut last = None;
    while decoder.can_decode() && decoder.ip() < end {
        last = Some(decoder.ip()).filter(|at| end - at >= JUMP as u64).or(last);
        if decoder.decode().is_invalid() {
            return None;
        }
    }
    last.filter(|_| decoder.ip() == end)
}

/// Whether there is room for a patch that leaves the first bytes of a function in place. `size`: bytes of the function.
fn room(module: &Module<'_>, address: u64, rest: &[u8], (size, skipped): (usize, usize)) -> Result<(), Refusal> {
    let (bytes, own) = (&rest[skipped..], size.saturating_sub(skipped));
    if bytes.len() < JUMP || own == 0 || own < JUMP && !is_padding(&bytes[own..], JUMP - own) {
        return Err(Refusal::TooSmall);
    }
    let at = address.wrapping_add(skipped as u64);
    // Another function may begin in an endbr64, and then is patched instead.
    let from = if rest.starts_with(&ENDBR64) { at } else { address };
    if next_symbol(module, from).saturating_sub(at) < JUMP as u64 {
        return Err(if own < JUMP { Refusal::TooSmall } else { Refusal::SymbolInside });
    }
    Ok(())
}

/// The entry that begins at an address.
fn frame(frames: &[Frame], address: u64) -> Option<Frame> {
    let first = frames.partition_point(|f| f.start < address);
    frames[first..].iter().take_while(|f| f.start == address).copied().max_by_key(|f| (f.is_as_called, f.len))
}

/// The next symbol or unwind entry behind an address.
fn next_symbol(module: &Module<'_>, address: u64) -> u64 {
    let symbol = module.symbols.partition_point(|s| *s <= address);
    let frame = module.frames.partition_point(|f| f.start <= address);
    let symbol = module.symbols.get(symbol).copied().unwrap_or(u64::MAX);
    symbol.min(module.frames.get(frame).map_or(u64::MAX, |f| f.start))
}

/// The first so many bytes are instructions that nobody comes to: nop or int3.
fn is_padding(bytes: &[u8], wanted: usize) -> bool {
    let bytes = &bytes[..bytes.len().min(PADDING)];
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    while decoder.position() < wanted && decoder.can_decode() {
        if !matches!(decoder.decode().mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
            return false;
        }
    }
    decoder.position() >= wanted
}
