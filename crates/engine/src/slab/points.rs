//! Where the objects of a slab are allocated and released: tracepoints, and what decides there that an object is one of the cache. Arguments are
//! those of the tracepoint, from 0.

use super::caches::{Cache, Caches, Found};
use super::offsets;
use crate::error::{Error, Result};
use sys::btf::KernelBtf;

/// Bytes of a page of x86-64, as a power of two.
pub(super) const PAGE_SHIFT: u8 = 12;
/// The argument of `mm_page_alloc` that is the order of the pages.
pub const ORDER: u8 = 1;
/// Bytes of the name of a cache at most, so that it can be compared.
pub(super) const MAX_NAME: usize = 70;
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

/// A tracepoint that objects pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its name.
    pub tracepoint: &'static str,
    /// What decides that an object is one of the cache.
    pub test: Test,
    /// The argument that is the object.
    pub object: u8,
    /// The argument that is the caller of the allocator.
    pub call_site: Option<u8>,
}

/// What decides that an object is one of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// An argument is the address of the cache.
    Cache {
        /// The argument.
        arg: u8,
        /// The address.
        address: u64,
    },
    /// An argument is the address of a cache of this name: the first one is remembered.
    Named {
        /// The argument.
        arg: u8,
        /// The name.
        name: String,
    },
    /// An argument is the address that was remembered.
    Known {
        /// The argument.
        arg: u8,
    },
    /// The allocation has this size, and the allocator says that the object is of the cache.
    Sized {
        /// The argument with the size.
        arg: u8,
        /// The size.
        size: u64,
        /// The BTF id of `bpf_get_kmem_cache`, and the address of the cache; none: the size decides.
        of: Option<(i32, u64)>,
    },
    /// An argument is the order of the pages.
    Order {
        /// The argument.
        arg: u8,
        /// The order; none: any.
        order: Option<u32>,
    },
    /// The allocator says that the object is of the cache.
    Asked {
        /// The BTF id of `bpf_get_kmem_cache`.
        function: i32,
        /// The address of the cache.
        address: u64,
    },
    /// Whether its allocation was recorded.
    Tracked,
}

/// The tracepoints of a slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    /// Of allocations.
    pub allocated: Vec<Point>,
    /// Of releases.
    pub released: Vec<Point>,
    /// Bytes of an object; none: pages, as many as their order says.
    pub size: Option<u64>,
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
/// This kernel's tracepoints do not have the necessary arguments.
pub fn of(name: &str, slab: &Slab, btf: &KernelBtf) -> Result<Points> {
    match slab {
        Slab::Pages(order) => Ok(of_pages(*order)),
        Slab::Cache(found) => of_cache(name, &found.cache, btf),
    }
}

fn of_pages(order: Option<u32>) -> Points {
    let point = |tracepoint, test| Point { tracepoint, test, object: 0, call_site: None };
    Points {
        allocated: vec![point("mm_page_alloc", Test::Order { arg: ORDER, order })],
        released: vec![point("mm_page_free", Test::Tracked)],
        size: None,
        by_name: false,
    }
}

/// An argument is this cache.
fn this(cache: &Cache, arg: u8) -> Test {
    match cache.address {
        Some(address) => Test::Cache { arg, address },
        None => Test::Named { arg, name: cache.name.clone() },
    }
}

fn of_cache(name: &str, cache: &Cache, btf: &KernelBtf) -> Result<Points> {
    let unable = |why: &str, todo: &str| Error::failed(name, format!("unable to trace it: {why}"), todo);
    if cache.name.len() > MAX_NAME {
        return Err(unable("its name is too long", "use Linux 6.13 or later"));
    }
    let argument = |tracepoint| offsets::arguments(btf, tracepoint).unwrap_or_default();
    let point = |tracepoint, test| Point { tracepoint, test, object: 1, call_site: Some(0) };
    let (alloc, kmalloc, free) = (argument("kmem_cache_alloc"), argument("kmalloc"), argument("kmem_cache_free"));
    let mut allocated = Vec::new();
    if let Some(arg) = offsets::cache_of(&alloc) {
        allocated.push(point("kmem_cache_alloc", this(cache, arg)));
    }
    let function = offsets::function(btf).zip(cache.address);
    match offsets::cache_of(&kmalloc) {
        // Linux 6.0.
        Some(arg) => allocated.push(point("kmalloc", this(cache, arg))),
        // (call_site, ptr, bytes_req, bytes_alloc, …)
        None if kmalloc.len() > 4 && (cache.is_kmalloc() || function.is_some() && cache.may_be_of_kmalloc()) => {
            allocated.push(point("kmalloc", Test::Sized { arg: 3, size: cache.size, of: function }));
        }
        None => {}
    }
    if allocated.is_empty() {
        return Err(unable("this kernel's tracepoints do not name the cache (Linux 6.0)", "use a later kernel"));
    }
    // A cache without an address is known from its first allocation; one of kmalloc, never.
    let by_size = allocated.iter().any(|p| matches!(p.test, Test::Sized { of: None, .. }));
    let test = match (offsets::cache_of(&free), cache.address) {
        (Some(arg), Some(address)) => Test::Cache { arg, address },
        (Some(arg), None) if !by_size => Test::Known { arg },
        _ => Test::Tracked,
    };
    // kfree takes objects of any cache (Linux 6.4).
    let freed = function.map_or(Test::Tracked, |(function, address)| Test::Asked { function, address });
    Ok(Points {
        released: vec![point("kmem_cache_free", test), point("kfree", freed)],
        by_name: allocated.iter().any(|p| matches!(p.test, Test::Named { .. })),
        allocated,
        size: Some(cache.object_size),
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
