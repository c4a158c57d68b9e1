//! The caches of this kernel, and which of them a name means.
//!
//! From Linux 6.13 on an iterator lists them, with their addresses; before, `/proc/slabinfo` lists their names. The kernel merges
//! caches of equal size and flags: `/sys/kernel/slab` has a link for each name, and those of one merged cache lead to one
//! directory.

use super::{offsets, words};
use crate::error::{Error, Result};
use bpf::slab::{listed, record};
use lang::near::nearest;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use sys::bpf::prog::{Program, ProgramSpec};
use sys::bpf::{iter, link::Link};
use sys::btf::{KernelBtf, Kind};

/// A cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// Its name.
    pub name: String,
    /// Its address; none where this kernel does not list it.
    pub address: Option<u64>,
    /// Bytes of an object.
    pub object_size: u64,
    /// Bytes that an object takes.
    pub size: u64,
    /// Objects in use and allocated, as the kernel counts them; 0 where it does not.
    pub objects: u64,
    /// Other names of it: caches that the kernel has merged with it.
    pub aliases: Vec<String>,
}

impl Cache {
    /// Whether kmalloc takes its objects from it.
    pub fn is_kmalloc(&self) -> bool {
        self.name.starts_with("kmalloc-") || self.name.starts_with("dma-kmalloc-")
    }

    /// Whether objects of it may pass the tracepoint of kmalloc: caches with a size at the end of their names.
    pub(super) fn may_be_of_kmalloc(&self) -> bool {
        let last = self.name.rsplit('-').next().unwrap_or_default();
        let digits = last.strip_suffix('k').unwrap_or(last);
        self.is_kmalloc()
            || last.len() < self.name.len() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    }
}

/// The caches.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    /// In the order of the kernel.
    pub all: Vec<Cache>,
    /// The kernel knows the cache of an object (`bpf_get_kmem_cache`, Linux 6.13): objects of kmalloc can be distinguished.
    pub tells_cache: bool,
    /// From the names that `/sys/kernel/slab` has to the directory that each leads to.
    links: HashMap<String, PathBuf>,
}

/// What a name means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The cache.
    pub cache: Cache,
    /// How many caches have this name.
    pub twins: usize,
}

impl Caches {
    /// Asks the kernel.
    pub fn read(btf: &KernelBtf) -> Result<Caches> {
        let unreadable = |e: io::Error| Error::failed("slab caches", words(&e), "run trapline as root");
        let counts = slabinfo();
        let mut all = match iterate(btf) {
            Ok(all) => all,
            Err(_) => counts.as_ref().map_err(|e| unreadable(io::Error::new(e.kind(), e.to_string())))?.clone(),
        };
        let counted: HashMap<String, u64> =
            counts.unwrap_or_default().into_iter().map(|c| (c.name, c.objects)).collect();
        let links = links();
        let mut named: BTreeMap<&PathBuf, Vec<&String>> = BTreeMap::new();
        links.iter().for_each(|(name, to)| named.entry(to).or_default().push(name));
        for cache in &mut all {
            cache.objects = counted.get(&cache.name).copied().unwrap_or(0);
            let same = links.get(&cache.name).and_then(|to| named.get(to)).into_iter().flatten();
            cache.aliases = same.filter(|n| **n != &cache.name).map(|n| n.to_string()).collect();
            cache.aliases.sort();
        }
        Ok(Caches { all, tells_cache: offsets::function(btf).is_some(), links })
    }

    /// The cache of a name, or the one that the kernel has merged a cache of this name with.
    pub fn find(&self, name: &str) -> Result<Found> {
        let own: Vec<&Cache> = self.all.iter().filter(|c| c.name == name).collect();
        let merged = || self.all.iter().find(|c| c.aliases.iter().any(|a| a == name));
        if let Some(cache) = own.first().copied().or_else(merged) {
            return Ok(Found { cache: cache.clone(), twins: own.len() });
        }
        if self.links.contains_key(name) {
            let why = "unable to trace it: the kernel has merged it with a cache that it does not list";
            return Err(Error::failed(name, why, "boot with slab_nomerge to keep caches apart"));
        }
        let names = self.all.iter().flat_map(|c| std::iter::once(&c.name).chain(&c.aliases)).map(String::as_str);
        let near = nearest(name, names.chain(["pages"]));
        let todo = match near.is_empty() {
            true => "see 'trapline slab list'".into(),
            false => format!("did you mean {}? 'trapline slab list' has all", near.join(", ")),
        };
        Err(Error::usage(name, "no such slab", todo))
    }

    /// The caches whose objects cannot be distinguished from those of a cache of kmalloc: those of the same size.
    pub fn like(&self, cache: &Cache) -> Vec<&str> {
        let same = |c: &&Cache| c.is_kmalloc() && c.size == cache.size && c.name != cache.name;
        match self.tells_cache || !cache.is_kmalloc() {
            true => Vec::new(),
            false => self.all.iter().filter(same).map(|c| c.name.as_str()).collect(),
        }
    }
}

/// The names of caches, as an ordinary user may read them, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = links().into_keys().collect();
    names.sort();
    names
}

fn iterate(btf: &KernelBtf) -> io::Result<Vec<Cache>> {
    let missing = || io::Error::from(io::ErrorKind::Unsupported);
    let id = btf.find(Kind::Func, "bpf_iter_kmem_cache").ok_or_else(missing)?;
    let source = listed(&offsets::of(btf)?).map_err(io::Error::other)?;
    let program = Program::load(&ProgramSpec::iterator("trapline_slabs", &source.bytes(), id))
        .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
    let mut bytes = Vec::new();
    iter::read(&Link::iterator(&program, &[])?, &mut bytes)?;
    Ok(bytes.chunks_exact(record::BYTES).map(of_record).collect())
}

fn of_record(bytes: &[u8]) -> Cache {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let name = bytes[record::NAME..].split(|b| *b == 0).next().unwrap_or_default();
    let address = u64::from(word(record::ADDRESS)) | u64::from(word(record::ADDRESS + 4)) << 32;
    Cache {
        name: String::from_utf8_lossy(name).into_owned(),
        address: Some(address),
        object_size: word(record::OBJECT_SIZE).into(),
        size: word(record::SIZE).into(),
        ..Cache::default()
    }
}

/// The caches by their names, with the sizes that the kernel shows.
fn slabinfo() -> io::Result<Vec<Cache>> {
    Ok(of_slabinfo(&std::fs::read_to_string("/proc/slabinfo")?))
}

fn of_slabinfo(text: &str) -> Vec<Cache> {
    let line = |line: &str| {
        // The name may have blanks; the numbers follow it.
        let numbers = line.split(" : ").next()?;
        let words: Vec<&str> = numbers.split_whitespace().collect();
        let (name, numbers) = words.split_at(words.len().checked_sub(5)?);
        let number = |n: usize| numbers[n].parse::<u64>().ok();
        let (objects, size) = (number(0)?, number(2)?);
        (!name.is_empty()).then(|| Cache { name: name.join(" "), object_size: size, size, objects, ..Cache::default() })
    };
    text.lines().skip(2).filter_map(line).collect()
}

/// Where the names of `/sys/kernel/slab` lead to: those that are no links, to themselves.
fn links() -> HashMap<String, PathBuf> {
    let entries = std::fs::read_dir("/sys/kernel/slab").into_iter().flatten().flatten();
    let mut found = HashMap::new();
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // The directory of a merged cache has a name that no cache has.
        if !name.starts_with(':') {
            let to = std::fs::read_link(entry.path()).unwrap_or_else(|_| PathBuf::from(&name));
            found.insert(name, to);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "slabinfo - version: 2.1\n# name <active_objs> …\n\
        filp 300 320 192 16 1 : tunables 0 0 0 : slabdata 20 20 0\nodd name 1 2 64 4 5 : tunables 0 0 0 : slabdata 1 1 0\nbroken\n\n";

    #[test]
    fn slabinfo_is_read_and_nonsense_is_not() {
        let all = of_slabinfo(TEXT);
        assert_eq!(all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["filp", "odd name"]);
        assert_eq!((all[0].objects, all[0].size), (300, 192));
    }

    #[test]
    fn names_are_found_directly_through_links_and_with_twins() {
        let cache = |name: &str, aliases: &[&str]| Cache {
            name: name.into(),
            size: 64,
            aliases: aliases.iter().map(|a| a.to_string()).collect(),
            ..Cache::default()
        };
        let all = vec![cache("filp", &[]), cache("vm_area", &["cred", "pid"]), cache("twin", &[]), cache("twin", &[])];
        let caches = Caches { all, links: HashMap::from([("lost".into(), ":0".into())]), tells_cache: false };
        let found = |name: &str| caches.find(name).map(|f| (f.cache.name, f.twins));
        assert_eq!(found("filp").unwrap(), ("filp".into(), 1));
        assert_eq!(found("cred").unwrap(), ("vm_area".into(), 0));
        assert_eq!(found("twin").unwrap(), ("twin".into(), 2));
        let unknown = found("flip").unwrap_err().to_string();
        assert!(unknown.contains("no such slab (did you mean filp, "), "{unknown}");
        assert_eq!(caches.find("lost").unwrap_err().exit_status(), 125);
    }

    #[test]
    fn caches_of_kmalloc_of_one_size_are_alike_where_the_kernel_tells_nothing() {
        let cache = |name: &str| Cache { name: name.into(), size: 64, ..Cache::default() };
        let mut caches = Caches { all: ["kmalloc-64", "kmalloc-cg-64", "filp"].map(cache).into(), ..Caches::default() };
        assert_eq!(caches.like(&cache("kmalloc-64")), ["kmalloc-cg-64"]);
        assert!(caches.like(&cache("filp")).is_empty());
        caches.tells_cache = true;
        assert!(caches.like(&cache("kmalloc-64")).is_empty());
        assert!(
            cache("msg_msg-8k").may_be_of_kmalloc()
                && !cache("filp").may_be_of_kmalloc()
                && !cache("8k").may_be_of_kmalloc()
        );
    }
}
