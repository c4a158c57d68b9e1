//! What the plan of a process has for probes and captured values beside the stubs of traced functions.

use super::module::Known;
use patch::Site;
use patch::link::{Copied, Linked};
use std::collections::HashSet;
use sys::maps::{Map, PROT_WRITE};

/// The functions of a file that get stubs of the variant Called: those whose values are captured, and those whose returns are probes.
#[derive(Default)]
pub struct Called<'k> {
    /// Where they are.
    addresses: HashSet<u64>,
    /// Those that are not traced otherwise.
    pub returns: Vec<&'k Site>,
}

impl<'k> Called<'k> {
    /// Those of a file.
    pub fn of(known: &'k Known) -> Called<'k> {
        let captured = known.plan.sites.iter().filter(|s| known.captured.contains_key(&s.number));
        let addresses = captured.chain(&known.plan.returns).map(|s| s.address).collect();
        let is_traced = |r: &&Site| known.plan.sites.iter().any(|s| s.address == r.address);
        Called { addresses, returns: known.plan.returns.iter().filter(|r| !is_traced(r)).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether the function of a site is one.
    pub fn has(&self, site: &Site) -> bool {
        self.addresses.contains(&site.address)
    }

    /// What the stub of the function with this number does. The numbers of a file's functions follow `first`, and those of its probes follow them.
    pub fn copied<'p>(&self, known: &'p Known, first: u32, number: u32) -> Copied<'p> {
        let n = number - first;
        let is_probe = known.point(n).is_some();
        let site = if is_probe { &known.plan.returns } else { &known.plan.sites }.iter().find(|s| s.number == n);
        let returns = site.and_then(|site| known.plan.returns.iter().find(|r| r.address == site.address));
        Copied {
            calls: known.captured.get(&n).map(|c| &c.programs),
            number: (!is_probe).then_some(number),
            returns: returns.and_then(|r| Some((first + r.number, &known.point(r.number)?.steps[..]))),
        }
    }
}

/// The counters of the static probes of a file's area that the process may write to, each with the patch of the probe.
pub fn counters(known: &Known, bias: u64, linked: &Linked, maps: &[Map]) -> Vec<(u64, u32)> {
    let is_writable = |at: u64| {
        let holds = |m: &Map| m.prot & PROT_WRITE != 0 && m.range.0 <= at && at + 2 <= m.range.1;
        maps.iter().any(holds)
    };
    let patch_of = |site: &Site| linked.patches.iter().position(|p| p.address == site.address.wrapping_add(bias));
    let patched = known.plan.points.iter().filter_map(|site| Some((known.point(site.number)?, patch_of(site)?)));
    let all =
        patched.flat_map(|(point, patch)| point.counters.iter().map(move |c| (c.wrapping_add(bias), patch as u32)));
    all.filter(|(at, _)| is_writable(*at)).collect()
}
