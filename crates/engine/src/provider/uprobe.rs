//! `uprobe:PATH:SYMBOL[+OFFSET]` and `uretprobe:PATH:SYMBOL`: functions of programs and libraries, at their entry and at their
//! return.

use super::hook::{Hook, Ready, in_registers, part_of_register, register};
use super::pattern::is_pattern;
use super::{ArgInfo, Place, Probe, Provider, Refusal, Site, glob, join, word};
use bpf::probes::Value;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use symbols::Elf;
use symbols::usdt::Operand;
use sys::bpf::link::{Link, UprobeMulti};
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::attach as perf;

/// One of the two.
pub struct Uprobe {
    name: &'static str,
    describe: &'static str,
    at_return: bool,
}

/// At the entry, or at an offset.
pub static UPROBE: Uprobe = Uprobe {
    name: "uprobe",
    describe: "uprobe:PATH:SYMBOL[+OFFSET]: a function of a program or library, reached",
    at_return: false,
};
/// At the return.
pub static URETPROBE: Uprobe = Uprobe {
    name: "uretprobe",
    describe: "uretprobe:PATH:SYMBOL: a function of a program or library, returning",
    at_return: true,
};

/// More functions than this share a program.
const APART: usize = 64;

/// Arguments that registers pass.
const REGISTERS: u8 = 6;

impl Provider for Uprobe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn is_enumerable(&self) -> bool {
        false
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let (path, symbol) = split_path(pattern, 1, self.describe)?;
        let (path, elf) = open(&path)?;
        let symbol = &symbol[0];
        // An operator's name may contain `+`: a whole name comes first.
        let (base, plus) = match symbol.rsplit_once('+') {
            Some((base, plus)) if !self.at_return && !plus.is_empty() && elf.function(symbol).is_empty() => {
                (base, number(plus))
            }
            _ => (symbol.as_str(), None),
        };
        let shared: Arc<Path> = path.as_path().into();
        let mut found: Vec<Probe> = Vec::new();
        for f in elf.functions().iter().filter(|f| glob(base.as_bytes(), f.name.as_bytes())) {
            let more = plus.unwrap_or(0);
            let Some(at) = f.offset.checked_add(more).filter(|_| more == 0 || more < f.size) else { continue };
            let suffix = if plus.is_some() { format!("+{more}") } else { String::new() };
            let name = format!("{}:{}:{}{suffix}", self.name, path.display(), f.name);
            let note =
                if f.indirect { "a place only chooses the function, at load time: calls do not reach it" } else { "" };
            let site = Site { path: shared.clone(), offset: at, counter: 0, places: Vec::new() };
            join(&mut found, Probe { name, args: self.args(details), note: note.into(), sites: vec![site] });
        }
        if found.is_empty() {
            let prefix = format!("{}:{}", self.name, path.display());
            return Err(Refusal::nothing(&prefix, base, elf.functions().iter().map(|f| f.name.as_str())));
        }
        Ok(found)
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let all = self.list(pattern, true)?;
        let tolerant = is_pattern(pattern);
        Ok(all.into_iter().flat_map(|probe| at_sites(probe, self.at_return, tolerant)).collect())
    }

    fn together(&self, pattern: &str) -> Result<Option<(Vec<Probe>, Ready)>, Refusal> {
        let all = self.list(pattern, false)?;
        if all.len() <= APART {
            return Ok(None);
        }
        let mut sites = Vec::new();
        let mut cookies = Vec::new();
        for (nth, probe) in (0u64..).zip(&all) {
            sites.extend(probe.sites.iter().cloned());
            cookies.resize(sites.len(), nth);
        }
        let hook = InFile { cookies, ..InFile::new(Vec::new(), sites, self.at_return, true) };
        let name = format!("{}:{pattern}", self.name);
        let probe = Probe { name, args: self.args(true), ..Probe::default() };
        Ok(Some((all, Ready { probe, hook: Box::new(hook) })))
    }
}

/// Programs at the places of a probe in a file: one for all places whose arguments are found in the same way.
pub(super) fn at_sites(probe: Probe, at_return: bool, tolerant: bool) -> Vec<Ready> {
    let mut groups: Vec<(Vec<Place>, Vec<Site>)> = Vec::new();
    for site in &probe.sites {
        match groups.iter_mut().find(|(places, _)| *places == site.places) {
            Some((_, sites)) => sites.push(site.clone()),
            None => groups.push((site.places.clone(), vec![site.clone()])),
        }
    }
    let hook = |(places, sites)| Ready {
        probe: probe.clone(),
        hook: Box::new(InFile::new(places, sites, at_return, tolerant)),
    };
    groups.into_iter().map(hook).collect()
}

/// Instructions of a file.
#[derive(Clone)]
struct InFile {
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
    /// The places where an instruction's prefix rules a breakpoint out.
    fn without_breakpoint(&self) -> io::Result<Vec<usize>> {
        let Some(first) = self.sites.first() else { return Ok(Vec::new()) };
        let file = File::open(&first.path)?;
        // The longest instruction.
        let mut bytes = [0; 15];
        let bad = |(nth, site): (usize, &Site)| {
            let n = file.read_at(&mut bytes, site.offset).unwrap_or(0);
            has_bad_prefix(&bytes[..n]).then_some(nth)
        };
        Ok(self.sites.iter().enumerate().filter_map(bad).collect())
    }

    fn new(places: Vec<Place>, sites: Vec<Site>, at_return: bool, tolerant: bool) -> InFile {
        let left_out = Arc::default();
        InFile { places, sites, cookies: Vec::new(), at_return, one_by_one: false, tolerant, left_out }
    }

    /// Attaches to some of the places at once.
    fn attach_to(&self, program: &Program, some: std::ops::Range<usize>) -> io::Result<Link> {
        let sites = &self.sites[some.clone()];
        let path = CString::new(sites[0].path.as_os_str().as_bytes())?;
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
        let (at_return, counter) = (self.at_return, s.counter);
        let place = perf::Uprobe { path: &s.path, offset: s.offset, at_return, counter, pid: None };
        Link::perf(program, place.open()?, self.cookies.get(nth).copied().unwrap_or(0))
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
        let entries = || InFile::new(Vec::new(), self.sites.clone(), false, self.tolerant);
        self.at_return.then(|| Box::new(entries()) as Box<dyn Hook>)
    }

    fn is_preemptible(&self) -> bool {
        true
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
        let mut left_out = self.without_breakpoint()?;
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

    fn left_out(&self) -> Vec<String> {
        let name = |nth: &usize| {
            let class = self.cookies.get(*nth).and_then(|id| events::schema::by_id(*id as u16));
            class.map_or_else(|| format!("file offset {:#x}", self.sites[*nth].offset), |s| s.name.into())
        };
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).iter().map(name).collect()
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

impl Uprobe {
    /// What the calling convention passes: which of them the function has, the file does not say.
    fn args(&self, details: bool) -> Vec<ArgInfo> {
        match (details, self.at_return) {
            (false, _) => Vec::new(),
            (true, true) => {
                vec![ArgInfo { name: "retval".into(), ty: word("long", 8, true), place: Place::Result }]
            }
            (true, false) => {
                let arg = |i| ArgInfo { name: format!("arg{i}"), ty: word("long", 8, true), place: Place::Argument(i) };
                (0..REGISTERS).map(arg).collect()
            }
        }
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A path and up to `parts` words behind it, `*` where they are missing. The path may contain colons: the first part that is a
/// file counts.
pub(super) fn split_path(pattern: &str, parts: usize, form: &'static str) -> Result<(String, Vec<String>), Refusal> {
    let is_file = |p: &str| !p.is_empty() && Path::new(p).is_file();
    let ends = pattern.match_indices(':').map(|(at, _)| at).chain([pattern.len()]);
    let end = ends.into_iter().find(|end| is_file(&pattern[..*end]));
    let end = end.unwrap_or_else(|| pattern.find(':').unwrap_or(pattern.len()));
    let path = &pattern[..end];
    if path.is_empty() || is_pattern(path) {
        return Err(Refusal::Form(form));
    }
    let rest = pattern[end..].strip_prefix(':').unwrap_or_default();
    // The last word keeps what colons it has.
    let mut words: Vec<String> = rest.splitn(parts, ':').filter(|w| !w.is_empty()).map(str::to_string).collect();
    words.resize(parts, "*".into());
    Ok((path.to_string(), words))
}

/// Reads the file; a name without a slash is looked for in PATH.
pub(super) fn open(path: &str) -> Result<(PathBuf, Elf), Refusal> {
    let found = if path.contains('/') { None } else { in_path(path) };
    let path = found.unwrap_or_else(|| PathBuf::from(path));
    let closed = |why: String, todo: &str| Refusal::Closed(format!("{}: {why}", path.display()), todo.into());
    let file = sys::maps::open_regular(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput => closed("not a file".into(), "name a program or a library"),
        _ => closed(e.to_string().split(" (os error").next().unwrap_or_default().into(), "check the path"),
    })?;
    let elf = Elf::read(file).map_err(|e| closed(e.to_string(), "name a program or a library"))?;
    Ok((path, elf))
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join(name)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> String {
        std::env::current_exe().unwrap().to_str().unwrap().to_string()
    }

    #[test]
    fn functions_of_this_program() {
        let probes = UPROBE.list(&format!("{}:mai?", own()), true).unwrap();
        let [main] = &probes[..] else { panic!("{probes:?}") };
        assert_eq!(main.name, format!("uprobe:{}:main", own()));
        assert!(main.places().starts_with("file offset 0x") && main.args.len() == 6);
        assert_eq!(&*main.sites[0].path, Path::new(&own()));
        let plus = UPROBE.list(&format!("{}:main+4", own()), false).unwrap();
        assert!(plus[0].name.ends_with(":main+4") && plus[0].sites[0].offset == main.sites[0].offset + 4);
        assert!(UPROBE.list(&format!("{}:main+1000000000", own()), false).is_err());
        assert!(URETPROBE.list(&format!("{}:main+4", own()), false).is_err());
        assert_eq!(URETPROBE.list(&format!("{}:main", own()), true).unwrap()[0].args[0].name, "retval");
        assert!(UPROBE.list(&own(), false).unwrap().len() > 100);
        let Err(Refusal::Nothing(near)) = UPROBE.list(&format!("{}:maim", own()), false) else { panic!() };
        assert_eq!(near[0], format!("uprobe:{}:main", own()));
    }

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

    #[test]
    fn paths_are_told_from_symbols() {
        let split = |p: &str, n| split_path(p, n, "form");
        assert_eq!(split("/no/file:a", 1).unwrap(), ("/no/file".into(), vec!["a".into()]));
        assert_eq!(split("/no/file:a:b:c", 2).unwrap(), ("/no/file".into(), vec!["a".into(), "b:c".into()]));
        assert_eq!(split("/no/file", 2).unwrap().1, ["*", "*"]);
        assert!(split("*:main", 1).is_err() && split(":main", 1).is_err());
        let Err(Refusal::Closed(why, _)) = UPROBE.list("/dev/zero:main", false) else { panic!() };
        assert!(why.contains("not a file"), "{why}");
        let Err(Refusal::Closed(why, _)) = UPROBE.list("/proc/self/maps:main", false) else { panic!() };
        assert!(why.contains("not an ELF"), "{why}");
    }
}
