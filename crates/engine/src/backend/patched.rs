//! The areas of traced functions in a process, for walks up its stacks: found where mappings of no file end, and read from the process.
//!
//! Whatever the memory of the process has is believed as far as it fits: what is wrong costs frames of that process.

use abi::plan::{Step, Trailer};
pub use abi::stub::Variant;
use abi::stub::{Layout, layout};
use std::sync::Arc;
use unwind::build::Module;
use unwind::patched::{MOVED, Patched, stubs};
use unwind::{Kind, Mapping, Rule, SavedBp};

/// The most bytes of tables of an area.
const MOST_BYTES: usize = 64 << 20;
/// The most areas of one mapping: areas that lie side by side become one.
const MOST: usize = 64;

/// An area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    trailer: Trailer,
    variant: Variant,
}

/// The areas that a mapping of executable memory of no file consists of; none where any part of it is something else.
pub fn areas(pid: i32, (start, end): (u64, u64)) -> Vec<Area> {
    let (mut all, mut end) = (Vec::new(), end);
    while end > start && all.len() < MOST {
        let Some(area) = area_before(pid, end).filter(|a| a.trailer.address >= start) else { return Vec::new() };
        end = area.trailer.address;
        all.push(area);
    }
    if end > start { Vec::new() } else { all }
}

fn area_before(pid: i32, end: u64) -> Option<Area> {
    let mut bytes = [0; Trailer::SIZE];
    let at = end.checked_sub(Trailer::SIZE as u64)?;
    let read = sys::mem::read(pid, at, &mut bytes).ok()?;
    let trailer = Trailer::parse(&bytes).filter(|t| read == bytes.len() && t.len > 0 && t.address + t.len == end)?;
    Some(Area { trailer, variant: Variant::of(trailer.variant)? })
}

impl Area {
    /// What its stubs do: they share rules with all of the kind ([`rules`]).
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Where it lies.
    pub fn range(&self) -> (u64, u64) {
        (self.trailer.address, self.trailer.address + self.trailer.len)
    }

    /// The distance of the agent's data of a thread from its `fs` base.
    pub fn tls(&self) -> i64 {
        self.trailer.tls
    }

    /// Its stubs, whose rules begin with this page.
    pub fn stubs(&self, first_page: u32) -> Mapping {
        let Trailer { address, stubs: len, entries_at, .. } = self.trailer;
        let Layout { size, returns, .. } = layout(self.variant);
        let bias = address + u64::from(entries_at);
        Mapping { start: address, end: address + len, bias, first_page, flags: stubs(*size, *returns) }
    }

    /// Its moved beginnings: what lies between the stubs and the steps.
    pub fn moved(&self) -> Mapping {
        let Trailer { address, stubs, steps, steps_at, .. } = self.trailer;
        let (start, end) = (address + stubs, address + u64::from(steps_at));
        Mapping { start, end, bias: address, first_page: steps, flags: MOVED }
    }

    /// The bytes from its first step to behind its last entry.
    pub fn steps_and_entries(&self) -> (u64, usize) {
        let Trailer { address, stubs, steps_at, entries_at, .. } = self.trailer;
        let entries = (stubs / u64::from(layout(self.variant).size)) as usize * size_of::<i32>();
        (address + u64::from(steps_at), (entries_at - steps_at) as usize + entries)
    }
}

/// An area, with what was read of it: the walker in user space has it, that in the kernel reads it where it is.
#[derive(Clone, Debug)]
pub struct Copy {
    area: Area,
    rules: Arc<Vec<(u32, Rule)>>,
    steps_and_entries: Arc<Vec<u8>>,
    /// The functions' numbers, stub by stub, of those that say where they are called from; empty: not known.
    numbers: Arc<Vec<u32>>,
}

impl Copy {
    /// Reads the tables of an area; none where they cannot be read.
    pub fn of(pid: i32, area: Area) -> Option<Copy> {
        let (at, len) = area.steps_and_entries();
        let mut bytes = vec![0; len.min(MOST_BYTES)];
        let read = sys::mem::read(pid, at, &mut bytes).ok()?;
        let steps_and_entries = Arc::new(bytes);
        let numbers = Arc::new(numbers(pid, &area));
        (read == len).then(|| Copy { area, rules: Arc::new(rules(area.variant)), steps_and_entries, numbers })
    }

    /// The number in the records of the function whose stub lies at a pc; none where that is not known. `exact`: it is no return address.
    pub fn number(&self, pc: u64, exact: bool) -> Option<u32> {
        let offset = pc.wrapping_sub(u64::from(!exact)).wrapping_sub(self.area.trailer.address);
        let nth = offset / u64::from(layout(self.area.variant).size);
        self.numbers.get(usize::try_from(nth).ok()?).copied()
    }

    /// The area.
    pub fn area(&self) -> &Area {
        &self.area
    }

    /// What lies at a pc; `exact`: it is no return address. Where functions return to it is not known from where they were called.
    pub fn at(&self, pc: u64, exact: bool) -> Option<Patched> {
        let offset = pc.wrapping_sub(u64::from(!exact)).wrapping_sub(self.area.trailer.address);
        if offset < self.area.trailer.stubs { self.stub(offset, exact) } else { self.moved(offset) }
    }

    fn stub(&self, offset: u64, exact: bool) -> Option<Patched> {
        let Layout { size, returns, .. } = layout(self.area.variant);
        let (nth, within) = (offset / u64::from(*size), (offset % u64::from(*size)) as u32);
        if !exact && within + 1 == *returns {
            return Some(Patched::Return(None));
        }
        let Trailer { address, entries_at, steps_at, .. } = self.area.trailer;
        let at = (entries_at - steps_at) as usize + 4 * nth as usize;
        let distance = i32::from_le_bytes(*self.steps_and_entries.get(at..)?.first_chunk()?);
        let row = self.rules.partition_point(|r| r.0 <= within).checked_sub(1)?;
        let rule = self.rules.get(row)?.1;
        let cfa = (rule != Rule::UNKNOWN).then(|| rule.offset());
        Some(Patched::Stub { function: address.wrapping_add_signed(distance.into()), cfa })
    }

    fn moved(&self, offset: u64) -> Option<Patched> {
        let Trailer { address, steps, .. } = self.area.trailer;
        let (all, _) = self.steps_and_entries.as_chunks::<8>();
        let word = |b: [u8; 4]| u32::from_le_bytes(b);
        let at = |[a, b, c, d, e, f, g, h]: [u8; 8]| (word([a, b, c, d]), word([e, f, g, h]) as i32);
        let all = all.get(..steps as usize)?;
        let next = all.partition_point(|step| u64::from(at(*step).0 & Step::PLACE) <= offset);
        let (at, distance) = at(*all.get(next.checked_sub(1)?)?);
        let original = (distance != 0).then(|| address.wrapping_add_signed(distance.into()))?;
        Some(Patched::Moved { original, lowered: Step { at, original: distance }.lowered() })
    }
}

/// What the stubs of an area have of their functions' numbers.
fn numbers(pid: i32, area: &Area) -> Vec<u32> {
    let Trailer { address, stubs, .. } = area.trailer;
    let len = usize::try_from(stubs).unwrap_or(usize::MAX);
    if area.variant != Variant::Callers || len > MOST_BYTES {
        return Vec::new();
    }
    let mut bytes = vec![0; len];
    let read = sys::mem::read(pid, address, &mut bytes).unwrap_or(0);
    let Layout { size, number, .. } = *layout(area.variant);
    let word = |stub: &[u8]| stub.get(number as usize..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
    let all = bytes[..read].chunks_exact(size as usize);
    all.map(|stub| word(stub).map_or(0, |word| abi::stub::number(area.variant, word))).collect()
}

/// Where the CFA is in a stub, by offset.
///
/// In front of the entry is an instruction that raises the stack pointer by another number in each stub: there nothing is known.
pub fn rules(variant: Variant) -> Vec<(u32, Rule)> {
    let Layout { entry, frames, .. } = layout(variant);
    let rule = |cfa: u32| Rule::new(Kind::Stub, cfa.into(), SavedBp::Same, 0).unwrap_or(Rule::UNKNOWN);
    let mut all: Vec<(u32, Rule)> = frames.iter().map(|f| (f.from, rule(f.cfa))).collect();
    all.retain(|row| row.0 != *entry);
    all.extend([(entry - abi::stub::UNDO, Rule::UNKNOWN), (*entry, rule(8))]);
    all.sort_by_key(|row| row.0);
    all
}

/// The [`rules`] of a variant, as the tables of the unwinder take them.
pub fn module(variant: Variant) -> Module {
    Module::of_rules(&rules(variant), layout(variant).size)
}

const _: () = assert!(size_of::<Step>() == 8 && size_of::<abi::thread::Shadow>() as u64 == unwind::patched::ENTRY);
const _: () = assert!(Step::PUSHED == unwind::patched::PUSHED && Step::SKIPPED == unwind::patched::SKIPPED);
const _: () = assert!(abi::thread::BARRIER == unwind::patched::BARRIER);
const _: () =
    assert!(abi::thread::TOP == unwind::patched::TOP as i32 && abi::thread::BASE == unwind::patched::BASE as i32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_have_rules() {
        for variant in Variant::ALL {
            let (of, rules) = (layout(variant), rules(variant));
            assert!(rules.is_sorted_by_key(|r| r.0) && rules[0].0 == 0, "{variant:?}");
            let at = |offset: u32| rules[rules.partition_point(|r| r.0 <= offset) - 1].1;
            assert_eq!((at(of.entry).kind(), at(of.entry).offset()), (Kind::Stub, 8), "{variant:?}");
            assert_eq!(at(of.entry - 1), Rule::UNKNOWN);
            if of.returns > 0 {
                assert_eq!((at(of.returns).kind(), at(of.returns).offset()), (Kind::Stub, 0), "{variant:?}");
            }
        }
    }

    #[test]
    fn memory_without_a_trailer_is_no_area() {
        let bytes = vec![0u8; 1 << 16];
        let end = (bytes.as_ptr() as u64 + bytes.len() as u64) & !0xfff;
        assert_eq!(areas(sys::process::own_pid(), (end - 4096, end)), []);
        assert_eq!(areas(sys::process::own_pid(), (0, 4096)), []);
    }
}
