//! The agent's file, which ld.so loads into the command and the programs that it starts.
//!
//! It lies in a directory of the user's, named after its contents, and stays there when trapline ends: a program that runs on may execute
//! others, and ld.so would print a warning for a file that is gone. The directory can be searched by all, because a child may
//! change its user; it can be written by its owner only.
//!
//! Files of other builds go when a new one is put there: those that no trapline has used for a day, and that no process has, neither among
//! its mappings nor in its environment. A file counts as used when a session begins, so none goes between that and its first process.

use engine::error::{Error, Result};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file that was used less long ago stays.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The most files of other builds that are looked at.
const FILES: usize = 1000;

/// The agent, built with this crate.
const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));

/// The agent's bytes.
pub fn bytes() -> &'static [u8] {
    AGENT
}

/// The name of the agent's file, which names its contents.
pub fn name() -> String {
    format!("agent-{:016x}", fingerprint(AGENT))
}

/// What the name of AddressSanitizer's library begins with.
pub const ASAN: &str = "libasan.so";

/// Puts the agent's file where it can be loaded, if it is not there yet. `beside_asan`: AddressSanitizer's library looks at the name of the
/// first library of a program, and ends the program if that is not its own (`AsanCheckDynamicRTPrereqs` of compiler-rt 12 to 19): the file
/// then has a name that begins with that one. What the check is for, functions that hide its own, the agent does not have.
///
/// # Errors
/// No directory can take it; each is named with its reason.
pub fn place(beside_asan: bool) -> Result<PathBuf> {
    let uid = sys::process::euid();
    let own = format!("trapline-agent-{uid}");
    let home = std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache/trapline-agent"));
    let shared = ["/tmp", "/var/tmp", "/dev/shm"].map(|dir| Path::new(dir).join(&own));
    let mut tried = Vec::new();
    for dir in shared.into_iter().chain(home) {
        match put(&dir, uid, AGENT, if beside_asan { ASAN } else { "" }) {
            Ok(file) => return Ok(file),
            Err(e) => tried.push(format!("{}: {}", dir.display(), reason(&e))),
        }
    }
    Err(Error::failed(
        "agent",
        tried.join("; "),
        "make one of them a directory of yours, on a file system without noexec",
    ))
}

fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::InvalidInput => "mounted with noexec, or a name that LD_PRELOAD cannot have".into(),
        io::ErrorKind::PermissionDenied => "another user can write there".into(),
        _ => e.to_string(),
    }
}

/// The file in this directory.
fn put(dir: &Path, uid: u32, contents: &[u8], before: &str) -> io::Result<PathBuf> {
    // LD_PRELOAD is a list with these between its entries, and `$` begins a name that ld.so replaces (ld.so(8)).
    if dir.as_os_str().as_bytes().iter().any(|b| b" :\t\n$".contains(b)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sys::agent::open_to_all(dir, uid)?;
    let path = dir.join(format!("{before}agent-{:016x}.so", fingerprint(contents)));
    if is_it(&path, uid, contents) {
        // The time of its last use. Of a file that cannot be written, its owner may set it.
        let _ = std::fs::File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        return Ok(path);
    }
    let mut random = [0; 8];
    sys::process::random(&mut random)?;
    let new = dir.join(format!(".new-{:016x}", u64::from_le_bytes(random)));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file
        .write_all(contents)
        .and_then(|()| file.set_permissions(std::fs::Permissions::from_mode(0o555)))
        .and_then(|()| std::fs::rename(&new, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written?;
    remove_unused(dir, uid, &path, SystemTime::now());
    Ok(path)
}

/// Removes files of other builds that nobody needs, at `now`.
fn remove_unused(dir: &Path, uid: u32, own: &Path, now: SystemTime) {
    let is_old = |path: &PathBuf| {
        let name = path.file_name().map_or(&[][..], OsStrExt::as_bytes);
        let name = name.strip_prefix(ASAN.as_bytes()).unwrap_or(name);
        let hex = name.strip_prefix(b"agent-").and_then(|n| n.strip_suffix(b".so"));
        let meta = std::fs::symlink_metadata(path);
        let idle = |m: &std::fs::Metadata| now.duration_since(m.modified().ok()?).ok();
        hex.is_some_and(|h| h.len() == 16 && h.iter().all(u8::is_ascii_hexdigit))
            && path != own
            && meta.is_ok_and(|m| m.is_file() && m.uid() == uid && idle(&m).is_some_and(|t| t > DAY))
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let mut old: Vec<PathBuf> = entries.filter(is_old).take(FILES).collect();
    // In another pid namespace than the first one, there may be processes that cannot be seen.
    if old.is_empty() || sys::proc::pid_namespace().is_some() {
        return;
    }
    // The first process is not trapline's.
    for pid in sys::proc::all().into_iter().filter(|pid| *pid != 1) {
        match texts_of(pid, uid) {
            Some(texts) => old.retain(|path| !texts.iter().any(|text| names(text, path))),
            None => return,
        }
    }
    old.iter().for_each(|path| drop(std::fs::remove_file(path)));
}

/// The mappings and the environment of a process, as text. Those of another user's process that cannot be read are empty: it has none of
/// this user's files. None: it may have one.
fn texts_of(pid: i32, uid: u32) -> Option<[Vec<u8>; 2]> {
    let owner = sys::proc::ids(pid).map(|(user, _)| user);
    let read = |what: &str| match std::fs::read(format!("/proc/{pid}/{what}")) {
        Ok(text) => Some(text),
        Err(_) if owner != Some(uid) && uid != 0 => Some(Vec::new()),
        Err(_) if !sys::proc::exists(pid) => Some(Vec::new()),
        // A process that has ended, and is not waited for, has no memory.
        Err(e) if e.raw_os_error() == Some(NO_PROCESS) => Some(Vec::new()),
        Err(_) => None,
    };
    // One that executes a program just now has no environment yet, nor arguments, but memory.
    for _ in 0..LOOKS {
        let [environment, arguments, maps] = [read("environ")?, read("cmdline")?, read("maps")?];
        if maps.is_empty() || !environment.is_empty() || !arguments.is_empty() {
            return Some([maps, environment]);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// How often a process that executes a program is looked at.
const LOOKS: usize = 20;

/// ESRCH.
const NO_PROCESS: i32 = 3;

/// Whether a text has the name of a file, in whatever directory: a process may have another root.
fn names(text: &[u8], path: &Path) -> bool {
    let name = path.file_name().map_or(&[][..], OsStrExt::as_bytes);
    text.windows(name.len().max(1)).any(|part| part == name)
}

/// Whether the file is there, as this process would write it.
fn is_it(path: &Path, uid: u32, contents: &[u8]) -> bool {
    let fine = |m: std::fs::Metadata| m.is_file() && m.uid() == uid && m.mode() & 0o777 == 0o555;
    std::fs::symlink_metadata(path).is_ok_and(fine) && std::fs::read(path).is_ok_and(|there| there == contents)
}

/// FNV-1a of 64 bits: a name, not a protection.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Scratch;

    #[test]
    fn the_file_is_written_once_and_renewed_when_it_is_not_the_same() {
        let scratch = Scratch::new("agent-file");
        let (dir, uid) = (scratch.join("own"), sys::process::euid());
        let path = put(&dir, uid, b"one", "").unwrap();
        let inode = |p: &Path| std::fs::metadata(p).unwrap().ino();
        let first = inode(&path);
        assert_eq!((put(&dir, uid, b"one", "").unwrap(), inode(&path)), (path.clone(), first));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(&path, b"two").unwrap();
        put(&dir, uid, b"one", "").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_ne!(put(&dir, uid, b"two", "").unwrap(), path);
        let others = std::fs::read_dir(&dir).unwrap().filter(|e| e.as_ref().unwrap().file_name().as_bytes()[0] == b'.');
        assert_eq!(others.count(), 0);
    }

    #[test]
    fn files_of_other_builds_go_when_nobody_needs_them() {
        if sys::proc::pid_namespace().is_some() {
            return testkit::skip("pid-namespace", "not all processes can be seen");
        }
        let scratch = Scratch::new("agent-old-files");
        let (dir, uid) = (scratch.join("own"), sys::process::euid());
        let put_aged = |contents: &[u8], days: u64| {
            let path = put(&dir, uid, contents, "").unwrap();
            let then = SystemTime::now() - DAY * days as u32;
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let [young, named, mapped] = [put_aged(b"young", 0), put_aged(b"named", 0), put_aged(b"mapped", 0)];
        let [old, other] = [put_aged(b"old", 0), dir.join("agent-of-mine.so")];
        std::fs::write(&other, b"").unwrap();
        for path in [&named, &mapped, &old, &other] {
            std::fs::File::open(path).unwrap().set_modified(SystemTime::now() - DAY * 2).unwrap();
        }
        // A process has the one in its environment, and the other, which it executes, among its mappings.
        let running = dir.join("running");
        std::fs::copy("/bin/sleep", &running).unwrap();
        std::fs::remove_file(&mapped).unwrap();
        std::fs::rename(&running, &mapped).unwrap();
        std::fs::File::open(&mapped).unwrap().set_modified(SystemTime::now() - DAY * 2).unwrap();
        let mut child = std::process::Command::new(&mapped).arg("100").env("OTHER", &named).spawn().unwrap();
        let new = put(&dir, uid, b"new", "").unwrap();
        let there = [&young, &named, &mapped, &old, &other, &new].map(|p| p.exists());
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(there, [true, true, true, false, true, true]);
        // With the process gone, they go; one that was used again stays.
        put(&dir, uid, b"named", "").unwrap();
        let gone = put_aged(b"gone", 2);
        std::fs::remove_file(&gone).unwrap();
        put(&dir, uid, b"newer", "").unwrap();
        assert_eq!([&named, &mapped, &new].map(|p| p.exists()), [true, false, true]);
    }

    /// By its address the programs in the kernel and the ptracer distinguish the agent's calls from the program's.
    #[test]
    fn the_agent_is_linked_where_its_code_is_looked_for() {
        let number = |at: usize, len: usize| AGENT[at..at + len].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        // Elf64_Ehdr: e_phoff, e_phentsize, e_phnum; Elf64_Phdr: p_type, p_vaddr, p_memsz (elf(5)).
        let (table, size, count) = (number(32, 8) as usize, number(54, 2) as usize, number(56, 2) as usize);
        let headers = (0..count).map(|n| table + n * size);
        let loaded = headers.filter(|h| number(*h, 4) == 1).map(|h| (number(h + 16, 8), number(h + 40, 8)));
        let all: Vec<(u64, u64)> = loaded.map(|(start, len)| (start, start + len)).collect();
        assert_eq!(all[0].0, abi::CODE.start);
        assert!(all.iter().all(|(start, end)| abi::CODE.contains(start) && *end <= abi::CODE.end), "{all:x?}");
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_used() {
        let scratch = Scratch::new("agent-place");
        let uid = sys::process::euid();
        let open = scratch.join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let linked = scratch.join("linked");
        std::os::unix::fs::symlink("/tmp", &linked).unwrap();
        for dir in [open, linked, scratch.join("a b"), scratch.join("a:b")] {
            assert!(put(&dir, uid, b"x", "").is_err(), "{}", dir.display());
        }
    }
}
