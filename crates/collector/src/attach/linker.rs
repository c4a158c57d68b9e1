//! Stubs of functions that tracers are enabled on.

use super::sections::Section;
use crate::module::Known;
use abi::message::{HOOKS, Hello};
use abi::stub::Variant;
use abi::tracer::{self, NO_PATCH, STUBS, Site, Target};
use patch::hole::{self, Kind as MapKind, Mapping};
use patch::link::{self, Linked, Places};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use sys::agent::Status;
use sys::maps::Map;

/// Bytes of a jump.
pub(super) const JUMP: u64 = 5;

/// A file with code, as the process has it.
pub(super) struct Module {
    pub known: Arc<Known>,
    pub bias: u64,
    /// Its executable sections, where they matter; none where it has no section headers.
    pub sections: Option<Vec<Section>>,
}

/// The most bytes of code that are read at a time.
const PART: u64 = 1 << 20;

/// The functions that have other bytes than their files, by their addresses: a recording's stubs, other tracers', hooks.
pub(super) fn changed(pid: i32, modules: &[Module]) -> HashSet<u64> {
    let mut changed = HashSet::new();
    for m in modules {
        let of = |s: &patch::Site| (s.address.wrapping_add(m.bias), s.old, s.start.wrapping_add(m.bias));
        let mut sites = m.known.plan.sites.iter().map(of).peekable();
        while let Some((first, ..)) = sites.peek().copied() {
            let (mut part, mut bytes) = (Vec::new(), Vec::new());
            while let Some(site) = sites.next_if(|(address, ..)| (first..first + PART).contains(address)) {
                part.push(site);
            }
            let end = part.last().map_or(first, |(address, ..)| address + JUMP);
            bytes.resize((end - first) as usize, 0);
            let read = sys::mem::read(pid, first, &mut bytes).unwrap_or(0);
            let there = |address: u64| bytes[..read].get((address - first) as usize..)?.get(..JUMP as usize);
            let is_changed = |address: u64, old: [u8; JUMP as usize]| there(address).is_some_and(|t| t != old);
            changed
                .extend(part.iter().filter(|(address, old, _)| is_changed(*address, *old)).map(|(.., start)| *start));
        }
    }
    changed
}

/// Collects targets, and stubs for those that need new ones.
pub(super) struct Linker<'a> {
    sites: &'a [Site],
    hello: &'a Hello,
    variant: Variant,
    taken: Vec<Mapping>,
    /// Addresses of new sites, in order of their numbers.
    new: Vec<u64>,
    linked: Vec<Linked>,
    targets: Vec<Target>,
    /// Functions with stubs of a recording, which is a tracer of them too.
    pub(super) recorded: HashSet<u64>,
    /// Functions that lead to the agent's own.
    pub(super) hooked: usize,
}

impl<'a> Linker<'a> {
    pub(super) fn new(status: &'a Status, maps: &[Map], hello: &'a Hello, variant: Variant) -> Linker<'a> {
        let kind = |m: &Map| match &*m.path {
            b"[heap]" => MapKind::Heap,
            b"[stack]" => MapKind::Stack,
            _ => MapKind::Other,
        };
        let mut taken: Vec<Mapping> =
            maps.iter().map(|m| Mapping { range: m.range.0..m.range.1, kind: kind(m) }).collect();
        order::by_key(&mut taken, |m| m.range.start);
        let (new, linked, targets) = (Vec::new(), Vec::new(), Vec::new());
        let (sites, recorded) = (&status.sites, HashSet::new());
        Linker { sites, hello, variant, taken, new, linked, targets, recorded, hooked: 0 }
    }

    fn site(&self, address: u64) -> Option<(u32, &Site)> {
        let i = self.sites.iter().position(|s| s.address == address)?;
        Some((i as u32 + 1, &self.sites[i]))
    }

    /// The number of the function at an address.
    pub(super) fn number(&self, address: u64) -> Option<u32> {
        let new = || self.new.iter().position(|a| *a == address).map(|i| (self.sites.len() + i) as u32 + 1);
        self.site(address).map(|(n, _)| n).or_else(new)
    }

    pub(super) fn add(&mut self, m: &Module) -> std::result::Result<(), String> {
        let bit = |v: Variant| 1 << STUBS.iter().position(|s| *s == v).unwrap_or(0);
        let known: HashMap<u64, (u32, Site)> =
            self.sites.iter().enumerate().map(|(i, s)| (s.address, (i as u32 + 1, *s))).collect();
        // By variant: numbers of the file's functions, and of the process's.
        let mut wanted: [(Variant, Vec<(u32, u32)>); 2] = [(self.variant, vec![]), (Variant::Called, vec![])];
        for site in &m.known.plan.sites {
            if m.known.plan.hooks.iter().any(|(_, hook)| hook.address == site.address) {
                self.hooked += 1;
                continue;
            }
            let address = site.start.wrapping_add(m.bias);
            let (number, there) = known.get(&address).map_or((0, Site::default()), |(n, s)| (*n, *s));
            let several = there.tracers != 0 || self.recorded.contains(&address);
            let variant = if several { Variant::Called } else { self.variant };
            let number = if number == 0 {
                self.new.push(address);
                (self.sites.len() + self.new.len()) as u32
            } else {
                number
            };
            if there.stubs & bit(variant) != 0 {
                self.targets.push(Target { number, patch: NO_PATCH });
            } else {
                wanted[usize::from(several)].1.push((site.number, number));
            }
        }
        wanted.into_iter().filter(|(_, sites)| !sites.is_empty()).try_for_each(|(v, sites)| self.link(m, v, sites))
    }

    /// Has sites that have tracers, and a stub of the recording, be called with both.
    pub(super) fn join(&mut self, m: &Module) -> std::result::Result<(), String> {
        let bit = |v: Variant| 1 << STUBS.iter().position(|s| *s == v).unwrap_or(0);
        let records: u32 = STUBS.into_iter().filter(|v| tracer::records(*v)).map(bit).sum();
        let sites = m.known.plan.sites.iter().map(|s| (s.start.wrapping_add(m.bias), s.number));
        let by_address: HashMap<u64, u32> = sites.collect();
        let mut wanted = Vec::new();
        for (i, site) in self.sites.iter().enumerate().filter(|(_, s)| s.tracers != 0 && s.stubs & records != 0) {
            let (Some(of_file), number) = (by_address.get(&site.address), i as u32 + 1) else { continue };
            if site.stubs & bit(Variant::Called) == 0 {
                wanted.push((*of_file, number));
            } else {
                self.targets.push(Target { number, patch: NO_PATCH });
            }
        }
        if wanted.is_empty() { Ok(()) } else { self.link(m, Variant::Called, wanted) }
    }

    /// Makes stubs. `sites`: numbers of the file's functions, and of the process's.
    fn link(&mut self, m: &Module, variant: Variant, mut sites: Vec<(u32, u32)>) -> std::result::Result<(), String> {
        sites.sort_unstable();
        let plan = &m.known.plan;
        let len = link::area_len(plan, (sites.len(), 0), variant);
        let reach = plan.reach.start.wrapping_add(m.bias)..plan.reach.end.wrapping_add(m.bias);
        let area = hole::nearest(&self.taken, &reach, len).ok_or("there is no room for stubs near it")?;
        let at = self.taken.partition_point(|t| t.range.start < area);
        self.taken.insert(at, Mapping { range: area..area + len, kind: MapKind::Other });
        let places = Places {
            bias: m.bias,
            area,
            tls: i32::try_from(self.hello.tls).map_err(|_| "its thread-local data is too far away")?,
            slow: self.hello.slow,
            hooks: [0; HOOKS],
            variant,
            minimum: 0,
        };
        let number = |n: u32| sites.binary_search_by_key(&n, |s| s.0).ok().map(|i| sites[i].1);
        let linked = link::link(plan, &places, number, link::Beside::default()).map_err(|e| e.to_string())?;
        let first: usize = self.linked.iter().map(|l| l.patches.len()).sum();
        let targets = linked.functions.iter().enumerate();
        self.targets.extend(targets.map(|(i, n)| Target { number: *n, patch: (first + i) as u32 }));
        self.linked.push(linked);
        Ok(())
    }

    pub(super) fn finish(mut self) -> (Vec<Target>, Vec<u8>) {
        order::by_key(&mut self.targets, |t| t.number);
        let plan = if self.linked.is_empty() { Vec::new() } else { patch::file::write(&self.linked, &[]) };
        (self.targets, plan)
    }
}
