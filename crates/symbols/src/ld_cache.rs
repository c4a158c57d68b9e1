//! The dynamic loader's cache (`/etc/ld.so.cache`): where libraries lie, by their names. The format of glibc 2.2 and later, alone
//! or after the old one; musl has no cache.
//!
//! ```text
//!  "glibc-ld.so.cache1.1" │ u32 entries │ u32 bytes of strings │ 20 bytes
//!  entry: u32 flags │ u32 name │ u32 path │ u32 0 │ u64 hwcap          offsets of strings count from the start of the magic
//! ```

use std::collections::BTreeSet;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// The old format in front of it: a magic, the number of entries of 12 bytes, and these.
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
/// `FLAG_ELF_LIBC6 | FLAG_X8664_LIB64` (sysdeps/generic/ldconfig.h of glibc).
const X86_64: u32 = 0x0303;
/// The most entries that are read.
const MAX: usize = 1 << 16;

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its name, with its version: `libc.so.6`.
    pub name: String,
    /// Where it lies.
    pub path: String,
}

/// The libraries for x86-64.
#[derive(Clone, Debug, Default)]
pub struct LdCache(Vec<Library>);

fn word(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*b.get(at..)?.first_chunk()?))
}

fn text(b: &[u8], at: u32) -> Option<String> {
    let rest = b.get(at as usize..)?;
    let rest = &rest[..rest.len().min(4096)];
    let end = rest.iter().position(|b| *b == 0)?;
    Some(std::str::from_utf8(&rest[..end]).ok()?.to_string())
}

impl LdCache {
    /// Reads a cache; `None` if the format is unknown. Damaged entries are skipped.
    pub fn parse(bytes: &[u8]) -> Option<LdCache> {
        let bytes = match bytes.strip_prefix(OLD_MAGIC) {
            None => bytes,
            Some(_) => {
                let entries = word(bytes, OLD_MAGIC.len())? as usize;
                let end = OLD_HEADER.checked_add(entries.checked_mul(OLD_ENTRY)?)?;
                bytes.get(end.checked_next_multiple_of(8)?..)?
            }
        };
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let count = word(bytes, MAGIC.len())? as usize;
        let entry = |i: usize| {
            let at = HEADER + i * ENTRY;
            let (flags, name, path) = (word(bytes, at)?, word(bytes, at + 4)?, word(bytes, at + 8)?);
            // Builds for better processors come first; others that have the same functions lie where everybody finds them.
            let plain = bytes.get(at + 16..at + ENTRY)? == [0; 8];
            (flags == X86_64 && plain).then_some(())?;
            Some(Library { name: text(bytes, name)?, path: text(bytes, path)? })
        };
        Some(LdCache((0..count.min(MAX)).filter_map(entry).collect()))
    }

    /// The path of the library that a file asks for by this name.
    pub fn path(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|l| l.name == name).map(|l| l.path.as_str())
    }

    /// The libraries that `name` may mean: `libc` is `libc.so.6`, and so is `libc.so`.
    pub fn named(&self, name: &str) -> Vec<&Library> {
        if let Some(exact) = self.0.iter().find(|l| l.name == name) {
            return vec![exact];
        }
        let versions = |l: &&Library| is_version(&l.name, name);
        let mut seen = BTreeSet::new();
        self.0.iter().filter(versions).filter(|l| seen.insert(&l.name)).collect()
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|l| l.name.as_str())
    }
}

/// Whether a library's file name is `name`, or a version of it: `libc.so.6` of `libc` and of `libc.so`.
pub fn is_version(file: &str, name: &str) -> bool {
    let with_version = |rest: &str| match rest.strip_prefix(".so") {
        Some(version) => version.is_empty() || version.starts_with('.'),
        None => name.ends_with(".so") && rest.starts_with('.'),
    };
    file == name || file.strip_prefix(name).is_some_and(with_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let base = HEADER + entries.len() * ENTRY;
        let mut put = |text: &str| {
            let at = (base + strings.len()) as u32;
            strings.extend(text.as_bytes());
            strings.push(0);
            at
        };
        let rows: Vec<(u32, u32, u32)> = entries.iter().map(|(f, n, p)| (*f, put(n), put(p))).collect();
        let mut out = MAGIC.to_vec();
        out.extend((entries.len() as u32).to_le_bytes());
        out.resize(HEADER, 0);
        for (flags, name, path) in rows {
            [flags, name, path, 0, 0, 0].iter().for_each(|w| out.extend(w.to_le_bytes()));
        }
        out.extend(strings);
        out
    }

    fn some() -> Vec<u8> {
        cache(&[
            (3, "libc.so.6", "/lib/i386/libc.so.6"),
            (X86_64, "libc.so.6", "/lib/libc.so.6"),
            (X86_64, "libcrypt.so.1", "/lib/libcrypt.so.1"),
            (X86_64, "libx.so.2", "/lib/libx.so.2"),
            (X86_64, "libx.so.1", "/lib/libx.so.1"),
        ])
    }

    #[test]
    fn libraries_are_found_with_and_without_their_version() {
        let c = LdCache::parse(&some()).unwrap();
        let named = |n: &str| c.named(n).into_iter().map(|l| l.path.as_str()).collect::<Vec<_>>();
        for name in ["libc", "libc.so", "libc.so.6"] {
            assert_eq!(named(name), ["/lib/libc.so.6"], "{name}");
        }
        assert_eq!(named("libx"), ["/lib/libx.so.2", "/lib/libx.so.1"]);
        for none in ["c", "lib", "libc.so.", "libc.so.7", ""] {
            assert!(named(none).is_empty(), "{none}: {:?}", named(none));
        }
        assert_eq!((c.path("libx.so.1"), c.path("libx")), (Some("/lib/libx.so.1"), None));
    }

    #[test]
    fn behind_the_old_format() {
        let mut old = OLD_MAGIC.to_vec();
        old.extend(1u32.to_le_bytes());
        old.resize((OLD_HEADER + OLD_ENTRY).next_multiple_of(8), 7);
        old.extend(some());
        assert_eq!(LdCache::parse(&old).unwrap().path("libc.so.6"), Some("/lib/libc.so.6"));
        assert!(LdCache::parse(b"").is_none() && LdCache::parse(b"glibc-ld.so.cache1.0").is_none());
    }

    #[test]
    fn damage_leaves_entries_out() {
        let whole = some();
        for n in 0..whole.len() {
            let _ = LdCache::parse(&whole[..n]);
            let mut bad = whole.clone();
            bad[n] ^= 0xff;
            assert!(LdCache::parse(&bad).is_none_or(|c| c.0.len() <= 5), "{n}");
        }
    }

    #[test]
    fn the_cache_of_this_machine_knows_its_libc() {
        let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else {
            return testkit::skip("package:libc", "no /etc/ld.so.cache");
        };
        let c = LdCache::parse(&bytes).unwrap();
        assert!(c.named("libc").iter().all(|l| std::path::Path::new(&l.path).exists()));
    }
}
