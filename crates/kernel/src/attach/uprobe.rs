//! At instructions of a file: all places with one link (uprobe_multi), or each with an event of its own (perf uprobes).

use super::{Attached, Way, registers};
use crate::moved::{Agents, Moved};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use engine::provider::file_point::FilePoint;
use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use symbols::code::is_misread_by_linux;
use sys::bpf::link::{Link, UprobeMulti};
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::attach as perf;

/// How a program is attached to instructions of a file, in words.
pub fn how(file: &FilePoint) -> String {
    let (n, s) = (file.sites.len(), if file.sites.len() == 1 { "" } else { "s" });
    let counters = if file.sites.iter().any(|s| s.counter != 0) { ", a semaphore raised" } else { "" };
    format!("uprobe_multi, else perf uprobes, at {n} place{s}{counters}")
}

/// Breakpoints at instructions of a file.
pub struct Uprobes<'p> {
    pub file: &'p FilePoint,
    /// Of each site; or empty.
    pub cookies: &'p [u64],
    /// Where processes may have other instructions.
    pub agents: &'p Agents,
    /// Each place has a perf event of its own.
    pub one_by_one: bool,
}

/// ENOTSUPP (include/linux/errno.h), which no program should see.
const NOT_SUPPORTED: i32 = 524;

/// Whether this says that the kernel can put no breakpoint there, because the instruction is none that it could carry out elsewhere:
/// ENOTSUPP and ENOEXEC of arch/x86/kernel/uprobes.c (6.18), for instance for one with a `lock` prefix.
fn no_breakpoint(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(NOT_SUPPORTED | 8))
}

/// Whether an instruction has a prefix with which the kernel puts no breakpoint there: ES, CS, SS, DS or LOCK (`is_prefix_bad` of the
/// same file). Where no process has the file mapped yet, the kernel reports no error.
fn has_bad_prefix(instruction: &[u8]) -> bool {
    let prefix = |b: &&u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    instruction.iter().take_while(prefix).any(|b| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0xf0))
}

impl Uprobes<'_> {
    /// The path by which the kernel finds the file that is open here.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.file.as_raw_fd())
    }

    /// The places where the instruction rules a breakpoint out.
    fn without_breakpoint(&self) -> Vec<usize> {
        // The longest instruction.
        let mut bytes = [0; 15];
        let mut all = Vec::new();
        for (nth, site) in self.file.sites.iter().enumerate() {
            let n = self.file.file.read_at(&mut bytes, site.offset).unwrap_or(0);
            if has_bad_prefix(&bytes[..n]) || is_misread_by_linux(&bytes[..n]) {
                all.push(nth);
            }
        }
        all
    }

    /// Attaches to some of the places at once.
    fn attach_to(&self, program: &Program, some: std::ops::Range<usize>) -> io::Result<Link> {
        let sites = &self.file.sites[some.clone()];
        let path = CString::new(self.path())?;
        let offsets: Vec<u64> = sites.iter().map(|s| s.offset).collect();
        let counters: Vec<u64> = sites.iter().map(|s| s.counter).collect();
        let counters = if counters.iter().any(|c| *c != 0) { &counters[..] } else { &[] };
        let cookies = if self.cookies.is_empty() { &[] } else { &self.cookies[some] };
        let at_return = self.file.at_return;
        let all = UprobeMulti { path: &path, offsets: &offsets, counters, cookies, at_return, pid: None };
        Link::uprobe_multi(program, &all)
    }

    /// Attaches to one place by an event of its own.
    fn attach_one(&self, program: &Program, nth: usize) -> io::Result<Link> {
        let s = &self.file.sites[nth];
        let (path, at_return, counter) = (PathBuf::from(self.path()), self.file.at_return, s.counter);
        let place = perf::Uprobe { path: &path, offset: s.offset, at_return, counter, pid: None };
        Link::perf(program, place.open()?, self.cookies.get(nth).copied().unwrap_or(0))
    }
}

impl Way for Uprobes<'_> {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        match self.one_by_one {
            true => ProgramSpec::new(ProgramKind::Kprobe, name, insns),
            false => ProgramSpec::uprobe_multi(name, insns),
        }
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        let mut links = Vec::new();
        let moved = self.agents.moved(self.file);
        if let Some((_, moved)) = moved.first().filter(|_| !self.file.tolerant) {
            return Err(io::Error::other(*moved));
        }
        let mut refused = self.without_breakpoint();
        if !(refused.is_empty() || self.file.tolerant) {
            return Err(io::Error::from_raw_os_error(NOT_SUPPORTED));
        }
        refused.extend(moved.iter().map(|(nth, _)| *nth));
        refused.sort_unstable();
        refused.dedup();
        // What lies between those.
        let mut waiting = Vec::new();
        let mut from = 0;
        for end in refused.iter().copied().chain([self.file.sites.len()]) {
            match self.one_by_one {
                true => waiting.extend((from..end).map(|nth| nth..nth + 1)),
                false => waiting.extend((from < end).then_some(from..end)),
            }
            from = end + 1;
        }
        // Of what is refused, the halves come next.
        while let Some(some) = waiting.pop() {
            let attached = match self.one_by_one {
                true => self.attach_one(program, some.start),
                false => self.attach_to(program, some.clone()),
            };
            match attached {
                Ok(link) => links.push(link),
                Err(e) if !(self.file.tolerant && no_breakpoint(&e)) => return Err(e),
                Err(_) if some.len() == 1 => refused.push(some.start),
                Err(_) => {
                    let middle = some.start + some.len() / 2;
                    waiting.push(middle..some.end);
                    waiting.push(some.start..middle);
                }
            }
        }
        Ok(Attached { links, refused, moved })
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        registers::value(at, size, signed)
    }

    fn is_slow_to_close(&self) -> bool {
        true
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        if let Some(moved) = e.get_ref().and_then(|e| e.downcast_ref::<Moved>()) {
            let todo =
                format!("end the session of process {} first, or trace the function with 'function:NAME'", moved.pid);
            return Some((moved.to_string(), todo));
        }
        let todo = "name another place: uprobe:PATH:FUNCTION+OFFSET";
        no_breakpoint(e).then(|| ("the kernel can put no breakpoint at this instruction".into(), todo.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_take_no_breakpoint_are_known_by_their_prefixes() {
        // lock incl (%rdi); data16 lock; notrack jmp; nop with CS.
        for bad in [&[0xf0, 0xff, 0x07][..], &[0x66, 0xf0, 0xff], &[0x3e, 0xff, 0xe0], &[0x66, 0x2e, 0x0f, 0x1f]] {
            assert!(has_bad_prefix(bad), "{bad:x?}");
        }
        // endbr64; push; rep stos; mov with FS; nothing; nothing but prefixes that are none of those.
        for good in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0x55], &[0xf3, 0x48, 0xab], &[0x64, 0x48, 0x8b], &[], &[0x66; 15]]
        {
            assert!(!has_bad_prefix(good), "{good:x?}");
        }
    }
}
