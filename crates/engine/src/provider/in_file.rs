//! How a program is attached to instructions of a file: at the entries of functions, at their returns, at static probes.

use super::elf_file::ElfFile;
use super::hook::{Hook, LeftOut, Ready, in_registers, part_of_register, register};
use super::{Place, Probe, Site};
use bpf::probes::Value;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use symbols::Elf;
use symbols::code::is_misread_by_linux;
use symbols::places::Places;
use symbols::usdt::Operand;
use sys::bpf::link::{Link, UprobeMulti};
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::attach as perf;

/// Programs at the places of a probe in a file: one for all places whose arguments are found in the same way.
pub(super) fn at_sites(of: &ElfFile, probe: Probe, at_return: bool, tolerant: bool) -> Vec<Ready> {
    let mut groups: Vec<(Vec<Place>, Vec<Site>)> = Vec::new();
    for site in &probe.sites {
        match groups.iter_mut().find(|(places, _)| *places == site.places) {
            Some((_, sites)) => sites.push(site.clone()),
            None => groups.push((site.places.clone(), vec![site.clone()])),
        }
    }
    let hook = |(places, sites)| Ready {
        probe: probe.clone(),
        hook: Box::new(InFile { places, tolerant, ..InFile::new(of, sites, at_return) }),
    };
    groups.into_iter().map(hook).collect()
}

/// One program at the places of many probes, which it tells apart by its cookie.
pub(super) fn at_all(of: &ElfFile, probes: &[Probe], others: Vec<LeftOut>, at_return: bool) -> Box<dyn Hook> {
    let mut sites = Vec::new();
    let mut cookies = Vec::new();
    for (nth, probe) in (0u64..).zip(probes) {
        sites.extend(probe.sites.iter().cloned());
        cookies.resize(sites.len(), nth);
    }
    Box::new(InFile { cookies, others, tolerant: true, ..InFile::new(of, sites, at_return) })
}

/// Instructions of a file.
#[derive(Clone)]
struct InFile {
    /// The file that was looked at: programs are attached to it, whatever lies at its path by then.
    file: Arc<File>,
    elf: Arc<Elf>,
    /// Where the arguments are, in their order; empty: as the probe says.
    places: Vec<Place>,
    sites: Vec<Site>,
    /// Of the places: which probe each is of; once that is known, the number of its class. Empty: all are of one.
    cookies: Vec<u64>,
    at_return: bool,
    one_by_one: bool,
    /// A place that takes no breakpoint does not keep the others from theirs.
    tolerant: bool,
    /// Those places.
    left_out: Arc<Mutex<Vec<usize>>>,
    /// Other probes of the same pattern, which are left out.
    others: Vec<LeftOut>,
}

/// ENOTSUPP (include/linux/errno.h), which no program should see.
const NOT_SUPPORTED: i32 = 524;

/// Whether this says that the kernel can put no breakpoint there, because the instruction is none that it could carry out elsewhere:
/// ENOTSUPP and ENOEXEC of arch/x86/kernel/uprobes.c (6.18), for instance for one with a `lock` prefix.
fn no_breakpoint(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(NOT_SUPPORTED | 8))
}

/// Whether an instruction has a prefix with which the kernel puts no breakpoint there: ES, CS, SS, DS or LOCK (`is_prefix_bad` of the
/// same). Where no process has the file mapped yet, the kernel says so to nobody.
fn has_bad_prefix(instruction: &[u8]) -> bool {
    let prefix = |b: &&u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    instruction.iter().take_while(prefix).any(|b| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0xf0))
}

impl InFile {
    fn new(of: &ElfFile, sites: Vec<Site>, at_return: bool) -> InFile {
        InFile {
            file: Arc::clone(&of.file),
            elf: Arc::clone(&of.elf),
            places: Vec::new(),
            sites,
            cookies: Vec::new(),
            at_return,
            one_by_one: false,
            tolerant: false,
            left_out: Arc::default(),
            others: Vec::new(),
        }
    }

    /// The path by which the kernel finds the file that is open here.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// The places where the instruction rules a breakpoint out.
    fn without_breakpoint(&self) -> Vec<usize> {
        // The longest instruction.
        let mut bytes = [0; 15];
        let bad = |(nth, site): (usize, &Site)| {
            let n = self.file.read_at(&mut bytes, site.offset).unwrap_or(0);
            (has_bad_prefix(&bytes[..n]) || is_misread_by_linux(&bytes[..n])).then_some(nth)
        };
        self.sites.iter().enumerate().filter_map(bad).collect()
    }

    /// Attaches to some of the places at once.
    fn attach_to(&self, program: &Program, some: std::ops::Range<usize>) -> io::Result<Link> {
        let sites = &self.sites[some.clone()];
        let path = CString::new(self.path())?;
        let offsets: Vec<u64> = sites.iter().map(|s| s.offset).collect();
        let counters: Vec<u64> = sites.iter().map(|s| s.counter).collect();
        let counters = if counters.iter().any(|c| *c != 0) { &counters[..] } else { &[] };
        let cookies = if self.cookies.is_empty() { &[] } else { &self.cookies[some] };
        let all =
            UprobeMulti { path: &path, offsets: &offsets, counters, cookies, at_return: self.at_return, pid: None };
        Link::uprobe_multi(program, &all)
    }

    /// Attaches to one place by an event of its own.
    fn attach_one(&self, program: &Program, nth: usize) -> io::Result<Link> {
        let s = &self.sites[nth];
        let (path, at_return, counter) = (PathBuf::from(self.path()), self.at_return, s.counter);
        let place = perf::Uprobe { path: &path, offset: s.offset, at_return, counter, pid: None };
        Link::perf(program, place.open()?, self.cookies.get(nth).copied().unwrap_or(0))
    }

    /// The places that a refusal of the kernel left out, by the names of their probes.
    fn without_breakpoint_names(&self) -> Vec<String> {
        let name = |nth: &usize| {
            let class = self.cookies.get(*nth).and_then(|id| events::schema::by_id(*id as u16));
            class.map_or_else(|| format!("file offset {:#x}", self.sites[*nth].offset), |s| s.name.into())
        };
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).iter().map(name).collect()
    }
}

impl Hook for InFile {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        match self.one_by_one {
            true => ProgramSpec::new(ProgramKind::Kprobe, name, insns),
            false => ProgramSpec::uprobe_multi(name, insns),
        }
    }

    fn how(&self) -> String {
        let (n, s) = (self.sites.len(), if self.sites.len() == 1 { "" } else { "s" });
        let counters = if self.sites.iter().any(|s| s.counter != 0) { ", a semaphore raised" } else { "" };
        format!("uprobe_multi, else perf uprobes, at {n} place{s}{counters}")
    }

    fn entries(&self) -> Option<Box<dyn Hook>> {
        let entries = || InFile {
            at_return: false,
            places: Vec::new(),
            cookies: Vec::new(),
            others: Vec::new(),
            left_out: Arc::default(),
            ..self.clone()
        };
        self.at_return.then(|| Box::new(entries()) as Box<dyn Hook>)
    }

    fn lost(&self) -> Option<&'static str> {
        self.at_return.then_some("returns of calls nested deeper than 64: the kernel follows no more")
    }

    fn file(&self) -> Option<&Path> {
        self.sites.first().map(|s| &*s.path)
    }

    fn tag(&mut self, classes: &[u16]) {
        for cookie in &mut self.cookies {
            *cookie = classes.get(*cookie as usize).copied().unwrap_or(0).into();
        }
    }

    fn attach(&self, program: &Program) -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        let mut left_out = self.without_breakpoint();
        if !(left_out.is_empty() || self.tolerant) {
            return Err(io::Error::from_raw_os_error(NOT_SUPPORTED));
        }
        // What lies between those.
        let mut waiting = Vec::new();
        let mut from = 0;
        for end in left_out.iter().copied().chain([self.sites.len()]) {
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
                Err(e) if !(self.tolerant && no_breakpoint(&e)) => return Err(e),
                Err(_) if some.len() == 1 => left_out.push(some.start),
                Err(_) => {
                    let middle = some.start + some.len() / 2;
                    waiting.push(middle..some.end);
                    waiting.push(some.start..middle);
                }
            }
        }
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = left_out;
        Ok(links)
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let refused = self.without_breakpoint_names();
        let own = (!refused.is_empty()).then_some(LeftOut::Places("the kernel can put no breakpoint at", refused));
        own.into_iter().chain(self.others.clone()).collect()
    }

    fn leave_out(&mut self, others: Vec<LeftOut>) {
        self.others = others;
    }

    fn replaces_returns(&self) -> bool {
        self.at_return
    }

    fn unproven_returns(&self) -> usize {
        if !self.at_return {
            return 0;
        }
        let places = Places::new(&self.elf, &*self.file);
        self.sites.iter().filter(|s| !places.is_closed(s.address, s.size)).count()
    }

    fn looks_at_return(&self) -> bool {
        let places = Places::new(&self.elf, &*self.file);
        self.at_return && self.sites.iter().any(|s| places.takes_return_address(s.address, s.size))
    }

    fn strings_are_users(&self) -> bool {
        true
    }

    fn explain(&self, e: &io::Error) -> Option<(String, String)> {
        let todo = "name another place: uprobe:PATH:FUNCTION+OFFSET";
        no_breakpoint(e).then(|| ("the kernel can put no breakpoint at this instruction".into(), todo.into()))
    }

    /// Before Linux 6.6 every place has an event of its own.
    fn instead(&self) -> Option<Box<dyn Hook>> {
        (!self.one_by_one).then(|| Box::new(InFile { one_by_one: true, ..self.clone() }) as Box<dyn Hook>)
    }

    fn is_slow_to_close(&self) -> bool {
        true
    }

    fn place<'a>(&'a self, nth: usize, place: &'a Place) -> &'a Place {
        self.places.get(nth).unwrap_or(place)
    }

    fn value(&self, place: &Place, size: u8, signed: bool) -> Option<Value> {
        match place {
            Place::Operand(operand) => in_operand(operand, size, signed),
            place => in_registers(place, size, signed),
        }
    }
}

/// What a static probe's operand says.
fn in_operand(operand: &Operand, size: u8, signed: bool) -> Option<Value> {
    match operand {
        Operand::Constant(n) => Some(Value::Constant(*n)),
        Operand::Register(name) => {
            let (off, bytes) = part_of_register(name)?;
            Some(Value::Context { off, size: size.min(bytes), signed })
        }
        Operand::Memory { offset, base, index } => {
            let index = match index {
                Some((name, factor)) => Some((register(name)?, *factor)),
                None => None,
            };
            let base = if base.is_empty() { None } else { Some(register(base)?) };
            Some(Value::User { base, index, disp: *offset, size, signed })
        }
        Operand::Other(_) => None,
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
