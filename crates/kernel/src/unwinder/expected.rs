//! The files that a program will have mapped when it begins: itself, its loader, the libraries that these name. Their tables are built while
//! the session is still being prepared. It is a guess: whatever else is mapped is built when it is.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use symbols::ld_cache::LdCache;

/// The most files.
const MOST: usize = 32;
/// The most program headers, and bytes of the dynamic section and of its strings.
const MAX_HEADERS: u64 = 64;
const MAX_DYNAMIC: u64 = 1 << 14;
const MAX_STRINGS: u64 = 1 << 22;
/// The longest path.
const MAX_PATH: u64 = 4096;
/// Kinds of program headers (elf.h).
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
/// Tags of the dynamic section.
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// The most directories that a file names for its libraries.
const MAX_DIRS: usize = 16;

/// The files, the program first.
pub(super) fn files(program: &Path) -> Vec<PathBuf> {
    let cache = std::fs::read("/etc/ld.so.cache").ok().and_then(|bytes| LdCache::parse(&bytes)).unwrap_or_default();
    let mut found = Vec::new();
    let (mut seen, mut next) = (HashSet::new(), VecDeque::from([program.to_path_buf()]));
    while let Some(path) = next.pop_front()
        && found.len() < MOST
    {
        if !seen.insert(path.clone()) {
            continue;
        }
        let Ok(file) = sys::maps::open_regular(&path) else { continue };
        let needs = needs(&file).unwrap_or_else(|| Needs { interpreter: script(&file), ..Needs::default() });
        next.extend(needs.interpreter.clone());
        next.extend(needs.libraries.iter().filter_map(|name| library(name, &path, &needs.dirs, &cache)));
        found.push(path);
    }
    found
}

/// Where a library of a program is, as ld.so(8) looks for it: in the directories that the program names, then in the cache.
fn library(name: &str, program: &Path, dirs: &[String], cache: &LdCache) -> Option<PathBuf> {
    let own = || std::fs::canonicalize(program).ok()?.parent().map(Path::to_path_buf);
    let place = |dir: &String| {
        let rest = dir.strip_prefix("$ORIGIN").or_else(|| dir.strip_prefix("${ORIGIN}"));
        let dir = match rest {
            Some(rest) => own()?.join(rest.trim_start_matches('/')),
            None => PathBuf::from(dir),
        };
        // By one name, however it is reached: that distinguishes the files.
        std::fs::canonicalize(dir.join(name)).ok().filter(|path| path.is_file())
    };
    dirs.iter().find_map(place).or_else(|| Some(PathBuf::from(cache.path(name)?)))
}

fn read(file: &File, at: u64, len: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let read = file.read_at(&mut bytes, at).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    Some(bytes.get(at..at.checked_add(len)?)?.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes.split(|b| *b == 0).next().unwrap_or_default()).into()
}

/// What a script is run by.
fn script(file: &File) -> Option<PathBuf> {
    let line = read(file, 0, 256)?;
    let line = line.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let name = line.split(|b| *b == b' ' || *b == b'\t').find(|word| !word.is_empty())?;
    Some(path(name))
}

/// What a program asks for.
#[derive(Default)]
struct Needs {
    /// Its loader.
    interpreter: Option<PathBuf>,
    /// Names of its libraries.
    libraries: Vec<String>,
    /// Where they are first looked for.
    dirs: Vec<String>,
}

/// What an ELF file of 64 bits asks for.
fn needs(file: &File) -> Option<Needs> {
    let head = read(file, 0, 64)?;
    head.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (at, size, count) = (number(&head, 32, 8)?, number(&head, 54, 2)?, number(&head, 56, 2)?.min(MAX_HEADERS));
    let table = read(file, at, size * count)?;
    // Kind, offset in the file, address, bytes in the file.
    let segment = |s: &[u8]| Some([number(s, 0, 4)?, number(s, 8, 8)?, number(s, 16, 8)?, number(s, 32, 8)?]);
    let segments: Vec<[u64; 4]> = table.chunks(size.max(1) as usize).filter_map(segment).collect();
    let of_kind = |kind| segments.iter().find(|s| s[0] == kind);
    let interpreter = of_kind(PT_INTERP).and_then(|s| Some(path(&read(file, s[1], s[3].min(MAX_PATH))?)));
    let Some(dynamic) = of_kind(PT_DYNAMIC).and_then(|s| read(file, s[1], s[3].min(MAX_DYNAMIC))) else {
        return Some(Needs { interpreter, ..Needs::default() });
    };
    let entries: Vec<(u64, u64)> =
        dynamic.chunks_exact(16).filter_map(|e| Some((number(e, 0, 8)?, number(e, 8, 8)?))).collect();
    let strings = entries.iter().find(|e| e.0 == DT_STRTAB)?.1;
    let load = segments.iter().find(|s| s[0] == PT_LOAD && strings.checked_sub(s[2]).is_some_and(|at| at < s[3]))?;
    let within = strings - load[2];
    let strings = read(file, load[1].checked_add(within)?, (load[3] - within).min(MAX_STRINGS))?;
    let name = |at: u64| {
        let rest = strings.get(usize::try_from(at).ok()?..)?;
        String::from_utf8(rest.split(|b| *b == 0).next()?.to_vec()).ok()
    };
    let libraries = entries.iter().filter(|e| e.0 == DT_NEEDED).take(MOST).filter_map(|e| name(e.1)).collect();
    let tag = if entries.iter().any(|e| e.0 == DT_RUNPATH) { DT_RUNPATH } else { DT_RPATH };
    let dirs = entries.iter().find(|e| e.0 == tag).and_then(|e| name(e.1)).unwrap_or_default();
    let dirs = dirs.split(':').filter(|dir| !dir.is_empty()).take(MAX_DIRS).map(String::from).collect();
    Some(Needs { interpreter, libraries, dirs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_its_loader_and_its_libraries() {
        let dir = testkit::Scratch::new("expected");
        dir.write("script", b"#! /bin/sh -e\n:\n");
        dir.write("empty", b"");
        let files_of = |path: &Path| files(path);
        let of_script = files_of(&dir.join("script"));
        let names: Vec<_> = of_script.iter().filter_map(|p| p.file_name()?.to_str()).collect();
        assert_eq!(&names[..2], ["script", "sh"]);
        if names.iter().any(|n| n.starts_with("ld-linux")) {
            assert!(names.contains(&"libc.so.6"), "{names:?}");
        }
        assert_eq!(files_of(&dir.join("empty")).len(), 1);
        assert_eq!(files_of(&dir.join("none")).len(), 0);
    }

    #[test]
    fn libraries_are_looked_for_where_the_program_says() {
        let dir = testkit::Scratch::new("runpath");
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        std::fs::create_dir_all(dir.join("lib")).unwrap();
        dir.write("bin/program", b"");
        dir.write("lib/libhere.so.1", b"");
        std::os::unix::fs::symlink(dir.join("bin/program"), dir.join("link")).unwrap();
        let here = std::fs::canonicalize(dir.join("lib/libhere.so.1")).unwrap();
        let cache = LdCache::default();
        let absolute = dir.join("lib").display().to_string();
        for dirs in [["/nowhere", "$ORIGIN/../lib"], ["${ORIGIN}/../lib", ""], ["$ORIGIN", &absolute]] {
            let dirs = dirs.map(String::from);
            for program in ["bin/program", "link"] {
                let found = |name| library(name, &dir.join(program), &dirs, &cache);
                assert_eq!(found("libhere.so.1").as_ref(), Some(&here), "{dirs:?} {program}");
                assert_eq!(found("libgone.so.1"), None);
            }
        }
    }

    #[test]
    fn damaged_files_need_something_or_nothing() {
        let whole = std::fs::read("/bin/sh").unwrap();
        let mut random = testkit::Random::new(11);
        let dir = testkit::Scratch::new("needs");
        for _ in 0..testkit::rounds(300) {
            let mut bytes = whole[..whole.len().min(1 << 16)].to_vec();
            for _ in 0..8 {
                let at = random.index(1024);
                bytes[at] = random.next() as u8;
            }
            dir.write("damaged", &bytes);
            let _ = needs(&File::open(dir.join("damaged")).unwrap());
        }
    }
}
