//! The catalogue of probes: their providers, names and arguments.
//!
//! ```text
//!  PROVIDER:REST ─► the provider of that name ─► list(REST, with * and ?) ─► Probe { name, arguments, notes }
//! ```
//!
//! One file per provider, each an implementation of [`Provider`]; nothing else knows the kinds of probes. Listing needs no privilege as far as
//! the system lets it, and attaches nothing.

pub mod absent;
pub mod attach_point;
mod control;
mod count;
pub mod elf_file;
pub mod file_point;
mod function;
mod hardware;
mod heap;
mod in_file;
mod io_uring;
mod kernel_types;
pub mod location;
mod names;
pub mod operations;
mod prototype;
pub mod quoting;
mod rawtracepoint;
mod slab;
mod software;
mod syscall;
mod timer;
mod tracepoint;
mod uprobe;
mod usdt;
mod watchpoint;

pub use attach_point::{AttachPoint, LeftOut, Ready};
pub use location::ArgLocation;
pub use syscall::kernel_name;
pub use timer::{clock_period, is_of_blocked};

use crate::error::{Error, Result};
use crate::provider::quoting::{quote, unquote};
use crate::target::modules;
use events::Fmt;
use lang::near::nearest;
use lang::pattern::{glob, is_pattern};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What an argument is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgType {
    /// As C writes it.
    pub c: String,
    /// Bytes; 0: not known, or not of a fixed size.
    pub size: u32,
    /// A signed integer.
    pub signed: bool,
    /// How its bytes are encoded.
    pub encoding: Encoding,
}

/// How the bytes of an argument are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// An integer.
    #[default]
    Int,
    /// A floating-point number.
    Float,
    /// An address.
    Pointer,
    /// An address of a string.
    Text,
    /// The bytes themselves: an array, a structure.
    Bytes,
    /// Characters up to a NUL.
    Chars,
    /// An integer that events show in this way.
    Shown(Fmt),
}

/// An argument of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgInfo {
    /// Name, as a filter uses it.
    pub name: String,
    /// Type.
    pub ty: ArgType,
    /// Where it lies.
    pub location: ArgLocation,
}

impl fmt::Display for ArgInfo {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (c, name) = (&self.ty.c, &self.name);
        match (c.find('['), c.ends_with('*')) {
            (Some(at), _) => write!(f, "{} {name}{}", &c[..at], &c[at..]),
            (None, true) => write!(f, "{c}{name}"),
            (None, false) => write!(f, "{c} {name}"),
        }
    }
}

/// Something that can happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Full name, with its provider.
    pub name: String,
    /// Its arguments; empty where [`Provider::list`] was not asked for it.
    pub args: Vec<ArgInfo>,
    /// Other names of arguments in filters and captures, and the arguments that they mean.
    pub aliases: Vec<(String, String)>,
    /// A remark: how to complete its name, or what is special about its places.
    pub note: String,
    /// Where in files it lies, for probes that do; several where functions share a name, or where a static probe was inlined.
    pub sites: Vec<Site>,
}

/// An instruction of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub path: Arc<Path>,
    /// Where the instruction lies in it.
    pub offset: u64,
    /// Offset of a counter (semaphore) in it that must be raised during the session; 0: none.
    pub counter: u64,
    /// Where the arguments lie at this place, in the order of the probe's; empty where all places agree.
    pub locations: Vec<ArgLocation>,
    /// Of a function: where it begins in the file's own address space, and how many bytes it has, as far as that is known.
    pub address: u64,
    /// See `address`.
    pub size: u64,
}

impl Probe {
    /// How large what a symbol names is, in the file of its only place.
    pub fn symbol_size(&self, name: &str) -> Option<u64> {
        let [site] = &self.sites[..] else { return None };
        let file = std::fs::File::open(&site.path).ok()?;
        symbols::elf::symbol(file, name).map(|s| s.size)
    }

    /// Its places in words; empty where it has none.
    pub fn places(&self) -> String {
        let all: Vec<String> = self.sites.iter().map(|s| format!("{:#x}", s.offset)).collect();
        if all.is_empty() { String::new() } else { format!("file offset {}", all.join(", ")) }
    }
}

/// Puts the places of probes of one name together. They are sorted by name.
fn join(found: &mut Vec<Probe>, probe: Probe) {
    match found.last_mut() {
        Some(last) if last.name == probe.name => {
            // Two symbols of one place, as constructors of C++ have them, are one.
            let other = |s: &Site| last.sites.iter().all(|l| l.offset != s.offset);
            let sites: Vec<Site> = probe.sites.into_iter().filter(other).collect();
            last.sites.extend(sites);
            if last.note.is_empty() {
                last.note = probe.note;
            }
        }
        _ => found.push(probe),
    }
}

/// Why a provider has nothing to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The pattern names nothing that exists; the names that come nearest.
    Nothing(Vec<String>),
    /// The pattern has not the form of this provider's names: that form.
    Form(&'static str),
    /// The probe exists and cannot be used, or cannot exist: why, and what to do.
    Wrong(String, String),
    /// The system does not allow the listing: why, and what would help.
    Closed(String, String),
}

impl Refusal {
    /// Nothing of `all` matches `pattern`.
    fn nothing<'a>(provider: &str, pattern: &str, all: impl Iterator<Item = &'a str>) -> Refusal {
        Refusal::Nothing(nearest(pattern, all).into_iter().map(|n| format!("{provider}:{n}")).collect())
    }
}

/// A source of probes of one kind.
pub trait Provider: Sync {
    /// Its name: the part of a probe's name before the first colon.
    fn name(&self) -> &'static str;

    /// How its probes are named, and what they are, in one line.
    fn describe(&self) -> &'static str;

    /// The probes whose names match `pattern` (`*` and `?`; without the provider), sorted; with their arguments where
    /// `details` asks for them, which may take longer.
    fn list(&self, pattern: &str, details: bool) -> std::result::Result<Vec<Probe>, Refusal>;

    /// The probes that a pattern matches, with their attach points; a probe whose sites have the arguments in different locations is there several times.
    fn ready(&self, pattern: &str) -> std::result::Result<Vec<Ready>, Refusal>;

    /// The probes that match, with one attach point for all, where there are so many that separate ones would cost too much, and where
    /// their arguments lie in the same locations; the name of it all is the pattern's.
    fn together(&self, pattern: &str) -> std::result::Result<Option<(Vec<Probe>, Ready)>, Refusal> {
        let _ = pattern;
        Ok(None)
    }

    /// Whether a pattern of all providers (`*:…`) includes it: not where a file must be named first.
    fn is_enumerable(&self) -> bool {
        true
    }

    /// Why none of its probes can be used on this machine, if that is known without trying.
    fn unusable(&self) -> Option<String> {
        None
    }
}

static ALL: &[&dyn Provider] = &[
    &syscall::Syscall,
    &tracepoint::Tracepoint,
    &rawtracepoint::RawTracepoint,
    &timer::PROFILE,
    &timer::INTERVAL,
    &timer::BLOCKED,
    &software::Software,
    &hardware::Hardware,
    &heap::Heap,
    &io_uring::IoUring,
    &uprobe::UPROBE,
    &uprobe::URETPROBE,
    &usdt::Usdt,
    &watchpoint::WATCHPOINT,
    &watchpoint::ASYNC,
    &slab::Slab,
    &function::FENTRY,
    &function::FEXIT,
    &function::KPROBE,
    &function::KRETPROBE,
    &control::BEGIN,
    &control::END,
];

/// All providers.
pub fn all() -> &'static [&'static dyn Provider] {
    ALL
}

/// The provider of this name.
pub fn named(name: &str) -> Option<&'static dyn Provider> {
    all().iter().copied().find(|p| p.name() == name)
}

/// The probes that match `PROVIDER:REST`, or all of the provider `PROVIDER`.
///
/// # Errors
/// A usage error with the nearest names where nothing matches; a failure where the system does not allow the listing.
pub fn list(pattern: &str, details: bool) -> Result<Vec<Probe>> {
    let whole = unquote(pattern);
    let (name, rest) = whole.split_once(':').unwrap_or((&whole, "*"));
    if let Some(provider) = named(name) {
        let rest = if rest.is_empty() { "*" } else { rest };
        return provider.list(rest, details).map_err(|r| refuse(pattern, provider, r));
    }
    if !name.contains(['*', '?']) {
        let near = nearest(name, all().iter().map(|p| p.name()));
        return Err(Error::usage(pattern, "no such provider", format!("did you mean {}?", near.join(", "))));
    }
    let mut found = Vec::new();
    for provider in all().iter().filter(|p| p.is_enumerable() && glob(name.as_bytes(), p.name().as_bytes())) {
        found.extend(provider.list(rest, details).unwrap_or_default());
    }
    if found.is_empty() {
        return Err(Error::usage(pattern, "no probe matches", "see 'trapline list PROVIDER:*'"));
    }
    Ok(found)
}

/// The probes that match `PROVIDER:REST`, with their attach points.
///
/// # Errors
/// Those of [`list`].
pub fn ready(pattern: &str) -> Result<Vec<Ready>> {
    let whole = unquote(pattern);
    let (name, rest) = whole.split_once(':').unwrap_or((&whole, "*"));
    let Some(provider) = named(name) else {
        let near = nearest(name, all().iter().map(|p| p.name()));
        return Err(Error::usage(pattern, "no such provider", format!("did you mean {}?", near.join(", "))));
    };
    provider.ready(rest).map_err(|r| refuse(pattern, provider, r))
}

/// The probes that match `PROVIDER:REST`, with one attach point for all ([`Provider::together`]).
///
/// # Errors
/// Those of [`list`].
pub fn together(pattern: &str) -> Result<Option<(Vec<Probe>, Ready)>> {
    let whole = unquote(pattern);
    let (name, rest) = whole.split_once(':').unwrap_or((&whole, "*"));
    match named(name) {
        Some(provider) => provider.together(rest).map_err(|r| refuse(pattern, provider, r)),
        None => Ok(None),
    }
}

/// Providers whose probes lie in files.
const OF_FILES: [&str; 3] = ["uprobe", "uretprobe", "usdt"];

/// A pattern with the path of a process's own file: of a library without a path, the one that it has mapped; of an absolute path, the file
/// there in its mount namespace and root directory, where that is another one.
pub fn of_processes(pattern: &str, pids: &[i32]) -> Option<String> {
    let whole = unquote(pattern);
    let (provider, rest) = whole.split_once(':').filter(|p| OF_FILES.contains(&p.0))?;
    let (file, rest) = rest.split_once(':')?;
    let path = match (file.contains('/'), Path::new(file)) {
        (true, path) => pids.iter().find_map(|pid| modules::seen_elsewhere(*pid, path))?,
        (false, path) if path.is_file() => return None,
        (false, _) => pids.iter().find_map(|pid| modules::mapped_library(*pid, file))?,
    };
    Some(format!("{provider}:{}:{}", quote(&path.to_string_lossy()), quote(rest)))
}

/// Of a function that its file does not have: which of the files that processes have mapped has it.
pub fn elsewhere(pattern: &str, pids: &[i32]) -> Option<Error> {
    let whole = unquote(pattern);
    let (provider, rest) = whole.split_once(':').filter(|p| p.0.starts_with('u') && OF_FILES[..2].contains(&p.0))?;
    let (_, words) = elf_file::split_path(rest, 1, "").ok()?;
    let name = words.first().filter(|name| !is_pattern(name))?;
    let found = absent::in_processes(provider, pids, name);
    let todo = format!("the process has mapped {}", found.join(", "));
    (!found.is_empty()).then(|| Error::usage(pattern, "no such probe in this file", todo))
}

fn refuse(pattern: &str, provider: &dyn Provider, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Nothing(near) if near.is_empty() => Error::usage(pattern, "no such probe", provider.describe()),
        Refusal::Nothing(near) => Error::usage(pattern, "no such probe", format!("did you mean {}?", near.join(", "))),
        Refusal::Form(how) => Error::usage(pattern, format!("{} probes do not look like this", provider.name()), how),
        Refusal::Wrong(why, todo) => Error::usage(pattern, why, todo),
        Refusal::Closed(why, todo) => Error::failed(pattern, why, todo),
    }
}

/// An integer, or whatever one word holds.
fn word(c: &str, size: u32, signed: bool) -> ArgType {
    ArgType { c: c.into(), size, signed, encoding: Encoding::Int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_have_names_of_their_own_and_say_how_theirs_look() {
        let names: Vec<&str> = all().iter().map(|p| p.name()).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
        assert!(all().iter().all(|p| p.describe().starts_with(p.name())));
    }

    #[test]
    fn unknown_names_are_answered_with_near_ones() {
        let e = list("tracepiont:sched:*", false).unwrap_err().to_string();
        assert!(e.contains("no such provider") && e.contains("tracepoint"), "{e}");
        let e = list("syscall:opennat", false).unwrap_err().to_string();
        assert!(e.contains("did you mean syscall:openat"), "{e}");
        let e = list("software:page-fault:1", false).unwrap_err().to_string();
        assert!(e.contains("software:page-faults"), "{e}");
        assert!(list("uprobe:*", false).is_err() && list("*:no such thing", false).is_err());
    }

    #[test]
    fn arguments_are_shown_as_in_c() {
        let show = |c: &str| {
            ArgInfo { name: "x".into(), ty: word(c, 4, true), location: ArgLocation::Argument(0) }.to_string()
        };
        assert_eq!([show("int"), show("char *"), show("char[16]")], ["int x", "char *x", "char x[16]"]);
    }
}
