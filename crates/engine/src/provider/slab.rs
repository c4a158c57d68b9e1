//! `slab:NAME:alloc`, `slab:NAME:free`: objects of a slab cache of the kernel, or pages.
//!
//! The tracepoints of the allocator have no probe of their own for each cache: the program compares the cache first, and what is not of
//! it is no event. What an object is known by is in [`crate::slab::points`].

use super::{
    ArgInfo, ArgLocation, ArgType, AttachPoint, Encoding, Probe, Provider, Ready, Refusal, kernel_types, word,
};
use crate::error::Error;
use crate::slab::caches::{self, Caches};
use crate::slab::offsets;
use crate::slab::points::{self, Point, Slab as Kind, Test};
use lang::pattern::glob;
use sys::btf::KernelBtf;

/// The provider.
pub struct Slab;

const FORM: &str =
    "slab:NAME:alloc, slab:NAME:free: objects of a slab cache ('trapline slab list'), or pages, or pages-ORDER";
const ENDS: [&str; 2] = ["alloc", "free"];

impl Provider for Slab {
    fn name(&self) -> &'static str {
        "slab"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let mut names = caches::names();
        names.push("pages".into());
        // The pattern may be the name of pages of one order, which are not listed.
        let (name, _) = split(pattern);
        if points::pages(name).is_some_and(|p| matches!(p, Ok(Some(_)))) {
            names.push(name.into());
        }
        let probes = names.iter().flat_map(|name| ENDS.map(|end| (name, end)));
        let types = if details { kernel_types::kernel_types().ok() } else { None };
        let (name, end) = split(pattern);
        let matches =
            |(n, e): &(&String, &str)| glob(name.as_bytes(), n.as_bytes()) && glob(end.as_bytes(), e.as_bytes());
        let found: Vec<Probe> =
            probes.filter(matches).map(|(name, end)| probe(name, end, details, types.as_ref())).collect();
        match found.is_empty() {
            true => Err(Refusal::nothing("slab", &format!("{name}:*"), names.iter().map(String::as_str))),
            false => Ok(found),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let btf = kernel_types::kernel_types()?;
        let said = |e: Error| match e {
            Error::Usage { why, todo, .. } => Refusal::Wrong(why, todo),
            Error::Failed { why, todo, .. } => Refusal::Closed(why, todo),
            other => Refusal::Closed(other.to_string(), FORM.into()),
        };
        let mut caches = None;
        let mut found = Vec::new();
        for probe in self.list(pattern, true)? {
            let Some((name, end)) = probe.name.trim_start_matches("slab:").rsplit_once(':') else { continue };
            let slab = match points::pages(name) {
                Some(order) => Kind::Pages(order.map_err(said)?),
                None => {
                    if caches.is_none() {
                        caches = Some(Caches::read(&btf).map_err(said)?);
                    }
                    Kind::Cache(caches.as_ref().map(|c| c.find(name)).transpose().map_err(said)?.unwrap_or_default())
                }
            };
            found.push(enabled(probe.name.clone(), name, end, &slab, &btf).map_err(said)?);
        }
        Ok(found)
    }
}

/// The name of the cache and `alloc` or `free`; a name alone means both.
fn split(pattern: &str) -> (&str, &str) {
    match pattern.rsplit_once(':') {
        Some((name, end)) => (name, end),
        None => (pattern, "*"),
    }
}

fn probe(name: &str, end: &str, details: bool, types: Option<&KernelBtf>) -> Probe {
    let flags = |btf| gfp(btf, tracepoint(name));
    let args = if details { arguments(name, end, 0, types.and_then(flags)) } else { Vec::new() };
    Probe { name: format!("slab:{name}:{end}"), args, ..Probe::default() }
}

/// The tracepoint of most allocations of a slab.
fn tracepoint(name: &str) -> &'static str {
    match points::pages(name) {
        Some(_) => "mm_page_alloc",
        None if name.starts_with("kmalloc-") => "kmalloc",
        None => "kmem_cache_alloc",
    }
}

/// Which argument of a tracepoint has the flags of an allocation.
fn gfp(btf: &KernelBtf, tracepoint: &str) -> Option<u8> {
    let arguments = offsets::arguments(btf, tracepoint)?;
    arguments.iter().position(|c| c == "gfp_t").map(|n| n as u8)
}

/// The arguments. `size`: bytes of an object; `gfp`: which argument of the tracepoint has the flags of an allocation.
fn arguments(name: &str, end: &str, size: u64, gfp: Option<u8>) -> Vec<ArgInfo> {
    let at = |name: &str, ty: ArgType, location| ArgInfo { name: name.into(), ty, location };
    let pointer = || ArgType { encoding: Encoding::Pointer, ..word("void *", 8, false) };
    let argument = ArgLocation::Argument;
    if points::pages(name).is_some() {
        let mut all =
            vec![at("address", pointer(), argument(0)), at("order", word("unsigned int", 4, false), argument(1))];
        all.extend(gfp.filter(|_| end == "alloc").map(|n| at("gfp_flags", word("gfp_t", 4, false), argument(n))));
        return all;
    }
    let mut all = vec![at("address", pointer(), argument(1)), at("call_site", pointer(), argument(0))];
    if end == "alloc" {
        all.insert(1, at("size", word("size_t", 8, false), ArgLocation::Constant(size as i64)));
        all.extend(gfp.map(|n| at("gfp_flags", word("gfp_t", 4, false), argument(n))));
    }
    all
}

fn enabled(full: String, name: &str, end: &str, slab: &Kind, btf: &KernelBtf) -> Result<Ready, Error> {
    let points = points::of(name, slab, btf)?;
    let is_kmalloc = matches!(slab, Kind::Cache(found) if found.cache.is_kmalloc());
    let all = if end == "alloc" { points.allocated } else { points.released };
    // Objects of kmalloc pass its own tracepoints, the last ones; those of other caches the first ones.
    let last = all.len().saturating_sub(1);
    let chosen = all.into_iter().nth(if is_kmalloc { last } else { 0 });
    let point = match (chosen, slab) {
        (Some(point), _) if decides(&point) => point,
        // A page that is released has its order.
        (Some(point), Kind::Pages(order)) => Point { test: Test::Order { arg: points::ORDER, order: *order }, ..point },
        _ => {
            let why = "this kernel's tracepoints do not tell the cache (Linux 6.13)";
            return Err(Error::failed(name, why, "use tracepoint:kmem:*, or 'trapline slab'"));
        }
    };
    let args = arguments(name, end, slab.object_size(), gfp(btf, point.tracepoint));
    let probe = Probe { name: full, args, ..Probe::default() };
    Ok(Ready::new(probe, AttachPoint::Slab(point)))
}

/// Whether the arguments of the tracepoint decide, and not a table.
fn decides(point: &Point) -> bool {
    !matches!(point.test, Test::Tracked | Test::Known { .. } | Test::Named { .. } | Test::Sized { of: None, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_an_order_and_unknown_caches_near_names() {
        let names =
            |pattern: &str| Slab.list(pattern, false).map(|l| l.into_iter().map(|p| p.name).collect::<Vec<_>>());
        assert_eq!(names("pages-1").unwrap(), ["slab:pages-1:alloc", "slab:pages-1:free"]);
        assert_eq!(names("pages:free").unwrap(), ["slab:pages:free"]);
        assert!(names("pages-77:alloc").is_err() && names("no such cache:alloc").is_err());
        let page = &Slab.list("pages:alloc", true).unwrap()[0];
        let args: Vec<String> = page.args.iter().map(|a| a.to_string()).collect();
        assert_eq!(args[..2], ["void *address", "unsigned int order"]);
        // Where the kernel's types can be read.
        assert!(args.get(2).is_none_or(|flags| flags == "gfp_t gfp_flags"), "{args:?}");
    }
}
