//! The plan of a module: for each function the place of its patch and its moved beginning, or why it gets none. It depends on the file
//! alone, not on where that is loaded, and is made once per file.
//!
//! ```text
//!  functions ─► place: behind endbr64 ─► frame, symbols, room ─► all jumps of the module ─► move the beginning ─► Site | Refusal
//! ```

use crate::Refusal;
use crate::input::{Frame, Function, Module};
use crate::relocate::{Fix, FixKind, JUMP, relocate};
use crate::targets::{Hits, Place, hits};
use abi::message::Hook;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::ops::Range;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// How far from the code what beginnings speak of may be: the module's data. What is farther is refused, because it would leave no room
/// for an area that reaches everything; it is hardly code.
const DATA: u64 = 512 << 20;
/// The longest padding behind a small function.
const PADDING: usize = 16;

/// A function that can be patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The function's number in the module; of several functions at one place that of the first.
    pub number: u32,
    /// Where the patch lies, as an address of the file.
    pub address: u64,
    /// The bytes that it replaces.
    pub old: [u8; JUMP],
    /// An instruction begins within the patch.
    pub splits: bool,
    /// Where the program goes on behind the patch.
    pub back: u64,
    /// Its moved beginning in [`Plan::code`]; empty: nothing is displaced, and the stub goes to `back`.
    pub code: Range<u32>,
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
    /// Hooks that cannot be made.
    pub refused_hooks: Vec<(Hook, Refusal)>,
    /// The moved beginnings of all sites.
    pub code: Vec<u8>,
    /// What is open in them, by offset.
    pub fixes: Vec<Fix>,
    /// The lowest address that patches and beginnings speak of, and behind the highest.
    pub reach: Range<u64>,
    /// What beginnings may speak of.
    near: Range<u64>,
}

/// A function on its way: where its patch would be, and what may be decoded.
struct Candidate<'b> {
    function: Function,
    place: Place,
    bytes: &'b [u8],
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
        candidates.sort_by_key(|c| c.place.at);
        let mut places: Vec<Place> = candidates.iter().chain(hooks.iter().map(|(_, c)| c)).map(|c| c.place).collect();
        places.sort_by_key(|p| p.at);
        let hits = hits(module, &places);
        plan.functions(module, &candidates, &hits);
        plan.hooks(module, &hooks, &hits);
        plan.refusals.sort_unstable();
        plan.measure(code);
        plan
    }

    fn functions(&mut self, module: &Module<'_>, candidates: &[Candidate<'_>], hits: &Hits) {
        for same in candidates.chunk_by(|a, b| a.place.at == b.place.at) {
            // Of several names each may know the size.
            let Some(best) = same.iter().max_by_key(|c| c.function.size) else { continue };
            match self.site(module, best, hits) {
                Ok(site) => {
                    self.sites.push(Site { number: same[0].function.number, ..site });
                    self.aliases.extend(same[1..].iter().map(|c| (c.function.number, same[0].function.number)));
                }
                Err(refusal) => self.refusals.extend(same.iter().map(|c| (c.function.number, refusal))),
            }
        }
    }

    fn hooks(&mut self, module: &Module<'_>, hooks: &[(Hook, Candidate<'_>)], hits: &Hits) {
        for (hook, candidate) in hooks {
            let found = self.sites.binary_search_by_key(&candidate.place.at, |s| s.address);
            let site = match found {
                Ok(found) => Ok(self.sites[found].clone()),
                Err(_) => self.site(module, candidate, hits),
            };
            match site {
                Ok(site) => self.hooks.push((*hook, site)),
                Err(refusal) => self.refused_hooks.push((*hook, refusal)),
            }
        }
    }

    fn site(&mut self, module: &Module<'_>, candidate: &Candidate<'_>, hits: &Hits) -> Result<Site, Refusal> {
        let at = candidate.place.at;
        if self.overlaps(at) {
            return Err(Refusal::SymbolInside);
        }
        if hits.is_inside(at) {
            return Err(Refusal::JumpInside);
        }
        if hits.is_loop(at) {
            return Err(Refusal::Loop);
        }
        let (code, fixes) = (self.code.len(), self.fixes.len());
        let moved = relocate(at, candidate.bytes, module.profilers, &mut self.code, &mut self.fixes);
        let moved = moved.and_then(|moved| {
            if self.leaves(module, code) {
                return Err(Refusal::Patched);
            }
            let is_near = self.fixes[fixes..].iter().all(|f| self.near.contains(&f.target));
            if is_near { Ok(moved) } else { Err(Refusal::Unmovable) }
        });
        let moved = moved.inspect_err(|_| {
            self.code.truncate(code);
            self.fixes.truncate(fixes);
        })?;
        let bytes = module.bytes(at).and_then(|b| b.first_chunk::<JUMP>()).ok_or(Refusal::TooSmall)?;
        let back = at.wrapping_add(moved.displaced as u64);
        let end = if moved.is_empty { code } else { self.code.len() };
        Ok(Site {
            number: candidate.function.number,
            address: at,
            old: *bytes,
            splits: moved.splits,
            back,
            code: code as u32..end as u32,
        })
    }

    /// A patch here would overlap another one: a function begins within the endbr64 of another.
    fn overlaps(&self, at: u64) -> bool {
        let next = self.sites.partition_point(|s| s.address < at);
        let beside = self.sites[next.saturating_sub(1)..].iter().take(2);
        beside.chain(self.hooks.iter().map(|(_, s)| s)).any(|s| (1..JUMP as u64).contains(&s.address.abs_diff(at)))
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

    /// What speaks of places in a site's beginning.
    pub fn fixes_of(&self, site: &Site) -> &[Fix] {
        let first = self.fixes.partition_point(|f| f.at < site.code.start);
        let end = self.fixes.partition_point(|f| f.at < site.code.end);
        &self.fixes[first..end.max(first)]
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
    let skipped = if rest.starts_with(&ENDBR64) { ENDBR64.len() } else { 0 };
    let at = address.wrapping_add(skipped as u64);
    let (at_bytes, own) = (&rest[skipped..], size.saturating_sub(skipped));
    if at_bytes.len() < JUMP || own == 0 || own < JUMP && !is_padding(&at_bytes[own..], JUMP - own) {
        return Err(Refusal::TooSmall);
    }
    if next_symbol(module, at) - at < JUMP as u64 {
        return Err(if own < JUMP { Refusal::TooSmall } else { Refusal::SymbolInside });
    }
    let place = Place { at, start: address, end: address.wrapping_add(size as u64) };
    Ok(Candidate { function, place, bytes: &at_bytes[..own] })
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
