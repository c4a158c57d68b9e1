//! Where the objects of a slab are allocated and released: tracepoints, and how a program knows there that an object is one of the cache.

use super::caches::{Cache, Caches, Found};
use super::offsets;
use crate::error::{Error, Result};
use bpf::slab::{Bytes, MAX_NAME, Place, Which};
use sys::btf::KernelBtf;

/// Bytes of a page of x86-64, as a power of two.
const PAGE_SHIFT: u8 = 12;
/// The highest order of pages (`MAX_PAGE_ORDER` of x86-64).
const MAX_ORDER: u32 = 10;

/// What is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slab {
    /// Pages: of one order, or of all.
    Pages(Option<u32>),
    /// The objects of a cache.
    Cache(Found),
}

/// A tracepoint, and how its program knows the cache.
pub type Point = (&'static str, Place);

/// The tracepoints of a slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    /// Of allocations.
    pub allocated: Vec<Point>,
    /// Of releases.
    pub released: Vec<Point>,
    /// The size of an object.
    pub size: Bytes,
    /// The cache is found by its name, when it is first used.
    pub by_name: bool,
}

impl Slab {
    /// The slab of a name: `pages`, `pages-ORDER`, or the name of a cache.
    pub fn named(name: &str, caches: impl FnOnce() -> Result<Caches>) -> Result<Slab> {
        match pages(name) {
            Some(order) => order.map(Slab::Pages),
            None => caches()?.find(name).map(Slab::Cache),
        }
    }

    /// Bytes of an object; 0 where they differ.
    pub fn object_size(&self) -> u64 {
        match self {
            Slab::Pages(None) => 0,
            Slab::Pages(Some(order)) => 1 << (order + u32::from(PAGE_SHIFT)),
            Slab::Cache(found) => found.cache.object_size,
        }
    }
}

/// The order in `pages` or `pages-ORDER`; none where the name is that of a cache.
pub fn pages(name: &str) -> Option<Result<Option<u32>>> {
    if name == "pages" {
        return Some(Ok(None));
    }
    let order = name.strip_prefix("pages-")?;
    Some(match order.parse::<u32>() {
        Ok(order) if order <= MAX_ORDER => Ok(Some(order)),
        _ => {
            Err(Error::usage(name, "no such slab", format!("pages, or pages-0 to pages-{MAX_ORDER}: pages-1 is 8 KiB")))
        }
    })
}

/// The tracepoints.
///
/// # Errors
/// This kernel's tracepoints do not tell what is needed.
pub fn of(name: &str, slab: &Slab, btf: &KernelBtf) -> Result<Points> {
    match slab {
        Slab::Pages(order) => Ok(of_pages(*order)),
        Slab::Cache(found) => of_cache(name, &found.cache, btf),
    }
}

fn of_pages(order: Option<u32>) -> Points {
    let place = |which| Place { which, object: 0, call_site: None };
    Points {
        allocated: vec![("mm_page_alloc", place(Which::Order { arg: 1, order }))],
        released: vec![("mm_page_free", place(Which::Tracked))],
        size: Bytes::Pages { order: 1, shift: PAGE_SHIFT },
        by_name: false,
    }
}

/// How a program knows that an argument is this cache.
fn this(cache: &Cache, arg: u8) -> Which {
    match cache.address {
        Some(address) => Which::Cache { arg, address },
        None => Which::Named { arg, name: cache.name.clone() },
    }
}

fn of_cache(name: &str, cache: &Cache, btf: &KernelBtf) -> Result<Points> {
    let unable = |why: &str, todo: &str| Error::failed(name, format!("unable to trace it: {why}"), todo);
    if cache.name.len() > MAX_NAME {
        return Err(unable("its name is too long", "use Linux 6.13 or later"));
    }
    let argument = |tracepoint| offsets::arguments(btf, tracepoint).unwrap_or_default();
    let place = |which, object| Place { which, object, call_site: Some(0) };
    let (alloc, kmalloc, free) = (argument("kmem_cache_alloc"), argument("kmalloc"), argument("kmem_cache_free"));
    let mut allocated = Vec::new();
    if let Some(arg) = offsets::cache_of(&alloc) {
        allocated.push(("kmem_cache_alloc", place(this(cache, arg), 1)));
    }
    let function = offsets::function(btf).zip(cache.address);
    match offsets::cache_of(&kmalloc) {
        // Linux 6.0.
        Some(arg) => allocated.push(("kmalloc", place(this(cache, arg), 1))),
        // (call_site, ptr, bytes_req, bytes_alloc, …)
        None if kmalloc.len() > 4 && (cache.is_kmalloc() || function.is_some() && cache.may_be_of_kmalloc()) => {
            let which = Which::Sized { arg: 3, size: cache.size, of: function };
            allocated.push(("kmalloc", place(which, 1)));
        }
        None => {}
    }
    if allocated.is_empty() {
        return Err(unable("this kernel's tracepoints do not name the cache (Linux 6.0)", "use a later kernel"));
    }
    // A cache without an address is known from its first allocation; one of kmalloc, never.
    let by_size = allocated.iter().any(|(_, p)| matches!(p.which, Which::Sized { of: None, .. }));
    let which = match (offsets::cache_of(&free), cache.address) {
        (Some(arg), Some(address)) => Which::Cache { arg, address },
        (Some(arg), None) if !by_size => Which::Known { arg },
        _ => Which::Tracked,
    };
    // kfree takes objects of any cache (Linux 6.4).
    let freed = function.map_or(Which::Tracked, |(function, address)| Which::Asked { function, address });
    Ok(Points {
        released: vec![("kmem_cache_free", place(which, 1)), ("kfree", place(freed, 1))],
        by_name: allocated.iter().any(|(_, p)| matches!(p.which, Which::Named { .. })),
        allocated,
        size: Bytes::Fixed(cache.object_size),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_an_order_or_none() {
        assert_eq!(pages("pages").unwrap().unwrap(), None);
        assert_eq!(pages("pages-1").unwrap().unwrap(), Some(1));
        assert!(pages("pages-11").unwrap().is_err() && pages("pages-").unwrap().is_err());
        assert!(pages("pages_cache").is_none() && pages("filp").is_none());
        assert_eq!(Slab::Pages(Some(1)).object_size(), 8192);
    }
}
