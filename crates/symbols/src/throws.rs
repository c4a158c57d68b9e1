//! What makes functions be left in another way than by returning: then a return probe, for which the kernel has replaced the return
//! address, harms the program.
//!
//! | means | what becomes of a program with a return probe in the way |
//! |---|---|
//! | exception (C++, Rust's panics, …) | the unwinder finds no frame above the function: the program aborts |
//! | cancelled or ended thread | the unwinder takes it for the end of the stack: handlers of the callers do not run |
//! | another stack (coroutines) | the kernel mixes up the returns of the two stacks: the program dies of SIGILL |
//! | Go | its runtime moves stacks by their return addresses: the program dies |
//!
//! longjmp is none of these: the kernel drops the returns that were jumped over.
//!
//! A file that defines such a function (libgcc_s, libc) does nothing with it by itself; a file that refers to it does. So each file is asked
//! what it imports, or what it was linked with statically. Pure: which files make up a program is for others to find.

use crate::{Elf, ReadAt};
use std::fmt;

/// In what way functions can be left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Means {
    /// By an exception, because the file uses this function.
    Exception(String),
    /// By the end of a thread in the midst of them: likewise.
    ThreadEnd(String),
    /// By going on with another stack: likewise.
    OtherStack(String),
    /// It is a Go program.
    Go,
    /// This cannot be known: the file is stripped, and may have been linked with an unwinder.
    Unknown,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Means::Exception(by) => write!(f, "can raise exceptions ({by})"),
            Means::ThreadEnd(by) => write!(f, "can end threads in the middle of functions ({by})"),
            Means::OtherStack(by) => write!(f, "can switch stacks ({by})"),
            Means::Go => f.write_str("is a Go program, whose stacks move"),
            Means::Unknown => f.write_str("is stripped and may raise exceptions"),
        }
    }
}

/// What raises exceptions, or leaves functions for all that is known (Itanium C++ ABI: Exception Handling, 1.3; GCC's own).
const EXCEPTION: &[&str] = &[
    "__cxa_throw",
    "__cxa_rethrow",
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_SjLj_RaiseException",
];
/// The unwinder's side of the end of a thread, which the C libraries call.
const FORCED: &[&str] = &["_Unwind_ForcedUnwind", "_Unwind_SjLj_ForcedUnwind"];
/// What ends a thread in the midst of a function (pthread_cancel(3), pthread_exit(3), thrd_exit(3)).
const THREAD_END: &[&str] = &["pthread_cancel", "pthread_exit", "thrd_exit"];
/// Switches to another stack (swapcontext(3), Boost.Context).
const OTHER_STACK: &[&str] = &["swapcontext", "jump_fcontext", "ontop_fcontext"];

/// Files that only define what others raise with: the unwinder and the C libraries, by their own names or the starts of them.
const ONLY_DEFINE: &[&str] = &["libgcc_s.so", "libc.so.", "libpthread.so.", "ld-linux", "libc.musl", "libunwind.so"];

/// Sections of Go programs.
const OF_GO: &[&str] = &[".gopclntab", ".go.buildinfo", ".note.go.buildid"];

/// How code of this file can leave functions, its own and others'. None: not by itself.
pub fn of(elf: &Elf, file: &(impl ReadAt + ?Sized)) -> Option<Means> {
    if elf.dynamic().soname.as_ref().is_some_and(|name| ONLY_DEFINE.iter().any(|d| name.starts_with(d))) {
        return None;
    }
    if OF_GO.iter().any(|name| elf.section(name).is_some()) {
        return Some(Means::Go);
    }
    let imported = |names: &[&str]| names.iter().find(|n| elf.is_imported(n)).map(|n| n.to_string());
    imported(EXCEPTION)
        .map(Means::Exception)
        .or_else(|| imported(THREAD_END).or_else(|| imported(FORCED)).map(Means::ThreadEnd))
        .or_else(|| imported(OTHER_STACK).map(Means::OtherStack))
        .or_else(|| linked(elf, file))
        .or_else(|| may_hide(elf).then_some(Means::Unknown))
}

/// What was linked into the file statically. An unwinder alone is in every static program; that nothing refers to it is looked up in
/// the code. Of threads and stacks, libraries have one file for each of the functions: it is linked in if it is used.
fn linked(elf: &Elf, file: &(impl ReadAt + ?Sized)) -> Option<Means> {
    let defined = |names: &[&'static str]| names.iter().find(|n| !elf.function(n).is_empty()).map(|n| n.to_string());
    let raisers: Vec<u64> = EXCEPTION.iter().flat_map(|n| elf.function(n)).map(|f| f.address).collect();
    if let Some(by) = defined(&EXCEPTION[..2]) {
        return Some(Means::Exception(by));
    }
    if !raisers.is_empty() && is_referred_to(elf, file, &raisers) {
        return defined(EXCEPTION).map(Means::Exception);
    }
    if !elf.is_static() {
        return None;
    }
    defined(THREAD_END).map(Means::ThreadEnd).or_else(|| defined(OTHER_STACK).map(Means::OtherStack))
}

/// Whether an unwinder may be in a file without saying so: it is stripped, has tables of landing places, and imports what an unwinder
/// looks through the loaded files with (`_dl_find_object` since glibc 2.35), but not an unwinder; or imports nothing.
fn may_hide(elf: &Elf) -> bool {
    let lands = elf.section(".gcc_except_table").is_some_and(|s| s.size > 0);
    let looks = elf.is_imported("dl_iterate_phdr") || elf.is_imported("_dl_find_object");
    let unwinds_itself = looks && !elf.imports().iter().any(|i| i.starts_with("_Unwind_"));
    elf.is_stripped() && lands && (elf.is_static() || unwinds_itself)
}

/// The most bytes of a file that are looked through, and how many at a time.
const MAX_SEARCHED: u64 = 1 << 30;
const PIECE: usize = 1 << 20;

/// Whether any code but the unwinder's own calls one of these functions, or anything in memory points to one.
fn is_referred_to(elf: &Elf, file: &(impl ReadAt + ?Sized), functions: &[u64]) -> bool {
    let mut own: Vec<(u64, u64)> = elf
        .functions()
        .iter()
        .filter(|f| f.name.starts_with("_Unwind_"))
        .map(|f| (f.address, f.address.saturating_add(f.size.max(1))))
        .collect();
    own.sort_unstable();
    let is_own = |at: u64| own[..own.partition_point(|o| o.0 <= at)].iter().rev().take(8).any(|o| at < o.1);
    let mut left = MAX_SEARCHED;
    for (address, offset, len, code) in elf.loaded() {
        if len > left {
            return true;
        }
        left -= len;
        let mut from = 0;
        while from < len {
            // Each piece begins with the last bytes of the one before.
            let mut piece = vec![0; (len - from).min(PIECE as u64 + 8) as usize];
            if file.read_at(offset.saturating_add(from), &mut piece).is_err() {
                return true;
            }
            if refers(&piece, address.wrapping_add(from), code, functions).any(|at| !is_own(at)) {
                return true;
            }
            from += PIECE as u64;
        }
    }
    false
}

/// Where the bytes, which lie at `address`, name one of the functions: as a word, and in code by a branch, or by taking its address.
fn refers<'b>(bytes: &'b [u8], address: u64, code: bool, functions: &'b [u64]) -> impl Iterator<Item = u64> + 'b {
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let relative = |at: usize| Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let named = move |at: &usize| {
        let behind = address.wrapping_add(*at as u64 + 4);
        word(*at).is_some_and(|w| functions.contains(&w))
            || code
                && takes_relative(&bytes[..*at])
                && relative(*at).is_some_and(|r| functions.contains(&behind.wrapping_add_signed(r.into())))
    };
    (0..bytes.len()).filter(named).map(move |at| address.wrapping_add(at as u64))
}

/// Whether an instruction that begins as these bytes end goes on with a distance: call, jmp, jcc, lea.
fn takes_relative(before: &[u8]) -> bool {
    match before {
        [.., 0xe8 | 0xe9] | [.., 0x0f, 0x80..=0x8f] => true,
        [.., 0x8d, modrm] => modrm & 0xc7 == 0x05,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_can_panic() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let Some(Means::Exception(by)) = of(&elf, &bytes[..]) else { panic!("{:?}", of(&elf, &bytes[..])) };
        assert!(by.starts_with("_Unwind_"), "{by}");
    }

    #[test]
    fn references_are_words_and_distances() {
        // call to 0x2000 from 0x1001; a word.
        let mut bytes = vec![0x90, 0xe8];
        bytes.extend(0xffa_i32.to_le_bytes());
        let found = |code, to| refers(&bytes, 0x1000, code, to).collect::<Vec<_>>();
        assert_eq!(found(true, &[0x2000]), [0x1002]);
        assert_eq!(found(false, &[0x2000]), []);
        assert_eq!(found(true, &[0x2001]), []);
        // lea and jne.
        for before in [&[0x48, 0x8d, 0x3d][..], &[0x0f, 0x85]] {
            assert!(takes_relative(before), "{before:x?}");
        }
        assert!(!takes_relative(&[0x66, 0x0f, 0x1f]) && !takes_relative(&[]));
        let word = 0x2000u64.to_le_bytes();
        assert_eq!(refers(&word, 0x5000, false, &[0x2000]).collect::<Vec<_>>(), [0x5000]);
    }
}
