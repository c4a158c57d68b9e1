//! `-e` expressions: which calls, signals and outcomes.
//!
//! A set is strace's: names, `%class`, `/regex/`, `all`, `none`, separated by commas; a leading `!` negates the whole. A
//! leading `?` keeps an unknown name from being an error, `@64` at the end of a name leaves out the calls of 32-bit programs.

use crate::error::{Error, Result};
use events::names::Descriptors;
use events::registry;
use events::schema::{Schema, Sets};
use lang::near::nearest;
use lang::pattern::glob;

/// A set of calls. Calls that no table knows belong to it only when it is everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    bits: Vec<bool>,
    unknown: bool,
}

impl Calls {
    /// Every call.
    pub fn all() -> Calls {
        Calls { bits: vec![true; events::generated::SCHEMAS.len()], unknown: true }
    }
    /// No call.
    pub fn none() -> Calls {
        Calls { bits: vec![false; events::generated::SCHEMAS.len()], unknown: false }
    }
    /// Whether every call belongs to it.
    pub fn is_all(&self) -> bool {
        self.unknown && registry::syscalls().all(|s| self.bits[usize::from(s.id)])
    }
    /// Adds one.
    pub fn insert(&mut self, s: &Schema) {
        self.bits[usize::from(s.base)] = true;
    }
    /// Adds all of `other`.
    pub fn join(&mut self, other: &Calls) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a |= b);
        self.unknown |= other.unknown;
    }
    /// Takes all of `other` out.
    pub fn remove(&mut self, other: &Calls) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= !b);
        self.unknown &= !other.unknown;
    }
    /// Those that a table knows.
    pub fn known(&self) -> Calls {
        Calls { bits: self.bits.clone(), unknown: false }
    }
    /// Takes all out that are not in `other`.
    pub fn retain(&mut self, other: &Calls) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= b);
        self.unknown &= other.unknown;
    }
    /// Whether `s` belongs to it; the class of unknown and 32-bit calls (`raw`) only when unknown calls do, and no other probe.
    pub fn contains(&self, s: &Schema) -> bool {
        if s.name == "raw" { self.unknown } else { self.bits.get(usize::from(s.base)).copied().unwrap_or(false) }
    }
    /// Whether 32-bit calls and unknown numbers belong to it.
    pub fn has_unknown(&self) -> bool {
        self.unknown
    }
    /// How many.
    pub fn len(&self) -> usize {
        registry::syscalls().filter(|s| s.name != "raw" && self.contains(s)).count()
    }
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && !self.unknown
    }
    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        registry::syscalls().filter(|s| s.name != "raw" && self.contains(s)).map(|s| s.name).collect()
    }
    /// For each x86_64 number, whether it belongs to the set.
    pub fn by_number(&self) -> Vec<bool> {
        let ids = events::generated::X86_64;
        ids.iter().map(|&id| if id == u16::MAX { self.unknown } else { self.bits[usize::from(id)] }).collect()
    }

    /// Reads a set expression.
    pub fn parse(text: &str) -> Result<Calls> {
        let (negated, text) = match text.strip_prefix('!') {
            Some(t) => (true, t),
            None => (false, text),
        };
        let mut calls = Calls::none();
        let items = split_set(text);
        if items.is_empty() {
            return Err(names_nothing("-e", text));
        }
        for item in items {
            calls.add(item)?;
        }
        if negated {
            calls.bits.iter_mut().for_each(|b| *b = !*b);
            calls.unknown = !calls.unknown;
        }
        Ok(calls)
    }

    fn add(&mut self, item: &str) -> Result<()> {
        let (optional, item) = match item.strip_prefix('?') {
            Some(t) => (true, t),
            None => (false, item),
        };
        let (item, of_64) = match item.rsplit_once('@') {
            Some((name, "64")) => (name, true),
            Some((_, bits @ ("32" | "x32"))) => {
                let why = format!("calls of {bits} programs have no names here, and are selected together");
                return Err(Error::usage(format!("-e {item}"), why, "use all, with --where for some of them"));
            }
            _ => (item, false),
        };
        let found = match item {
            "all" | "%all" if of_64 => self.add_where(|_| true),
            "all" | "%all" => {
                *self = Calls::all();
                true
            }
            "none" | "%none" => true,
            _ if item.starts_with('%') => self.add_where(in_class(&item[1..])?),
            _ if WITHOUT_SIGN.contains(&item) => self.add_where(in_class(item)?),
            _ if item.len() > 1 && item.starts_with('/') => {
                let pattern = item[1..].strip_suffix('/').unwrap_or(&item[1..]);
                let re = regex_lite::Regex::new(pattern).map_err(|e| {
                    Error::usage(format!("-e /{pattern}/"), one_line(&e.to_string()), "check the expression")
                })?;
                self.add_where(|s| re.is_match(s.name))
            }
            _ => {
                // strace's names for the pairs that differ from the kernel's.
                let pattern = item.strip_prefix("syscall:").filter(|p| p.contains(['*', '?']));
                let name = item.strip_prefix("syscall:").unwrap_or(item);
                let is_like = |s: &Schema| pattern.is_some_and(|p| glob(p.as_bytes(), s.name.as_bytes()));
                self.add_where(|s| is_like(s) || s.name == name || s.x86_64.is_some_and(|n| name.parse() == Ok(n)))
            }
        };
        if found || optional { Ok(()) } else { Err(unknown_call(item)) }
    }

    fn add_where(&mut self, want: impl Fn(&Schema) -> bool) -> bool {
        let mut found = false;
        for s in registry::syscalls().filter(|s| s.name != "raw" && want(s)) {
            self.bits[usize::from(s.id)] = true;
            found = true;
        }
        found
    }
}

/// The classes that strace takes without `%` too.
const WITHOUT_SIGN: [&str; 7] = ["desc", "file", "ipc", "memory", "network", "process", "signal"];

fn one_line(s: &str) -> String {
    s.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits at commas, but not inside `/…/`.
fn split_set(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut inside) = (Vec::new(), 0, false);
    for (i, c) in text.char_indices() {
        match c {
            '/' if i == start || inside => inside = !inside,
            ',' if !inside => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out.retain(|s| !s.is_empty());
    out
}

/// The names of the classes (`%file` …).
pub fn classes() -> &'static [&'static str] {
    events::generated::SET_NAMES
}

fn in_class(name: &str) -> Result<impl Fn(&Schema) -> bool + use<>> {
    // strace's older names.
    let canonical = match name {
        "fd" => "desc",
        "net" => "network",
        "proc" => "process",
        "mem" => "memory",
        "sig" => "signal",
        "cred" => "creds",
        "sched" => "sched",
        other => other,
    };
    let Some(bit) = classes().iter().position(|c| *c == canonical) else {
        let near = nearest(canonical, classes().iter().copied());
        return Err(Error::usage(
            format!("-e %{name}"),
            "no such class",
            format!("did you mean %{}?", near.join(", %")),
        ));
    };
    Ok(move |s: &Schema| s.sets.meets(Sets(1 << bit)))
}

/// A set without a name in it is a mistake: of a script whose variable is empty, for instance.
fn names_nothing(option: &str, text: &str) -> Error {
    Error::usage(format!("{option} '{text}'"), "it names nothing", "none is the empty set")
}

fn unknown_call(name: &str) -> Error {
    let call = name.strip_prefix("syscall:").filter(|call| !call.contains(':'));
    let is_probe = |(provider, _): (&str, &str)| provider == "syscall" || crate::provider::named(provider).is_some();
    if call.is_none() && name.split_once(':').is_some_and(is_probe) {
        let todo = format!("use 'trapline record -e {name}'");
        return Error::usage(format!("-e {name}"), "a probe, but trace shows only system calls", todo);
    }
    let near = nearest(call.unwrap_or(name), registry::syscalls().map(|s| s.name).filter(|n| *n != "raw"));
    Error::usage(format!("-e {name}"), "no such system call", format!("did you mean {}?", near.join(", ")))
}

/// A set of signals (`-e signal=…`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signals([bool; 65]);

impl Signals {
    /// Every signal.
    pub fn all() -> Signals {
        Signals([true; 65])
    }
    /// Whether signal `n` belongs to it.
    pub fn contains(&self, n: u64) -> bool {
        self.0.get(n as usize).copied().unwrap_or(true)
    }
    /// Reads `INT,SIGTERM`, `!SEGV`, `all`, `none`.
    pub fn parse(text: &str) -> Result<Signals> {
        let (negated, text) = match text.strip_prefix('!') {
            Some(t) => (true, t),
            None => (false, text),
        };
        let mut set = [false; 65];
        if text.split(',').all(str::is_empty) {
            return Err(names_nothing("-e signal=", text));
        }
        for item in text.split(',').filter(|i| !i.is_empty()) {
            match item {
                "all" => set = [true; 65],
                "none" => {}
                _ => set[signal_number(item)?] = true,
            }
        }
        if negated {
            set.iter_mut().for_each(|b| *b = !*b);
        }
        Ok(Signals(set))
    }
}

/// The number of a signal named `SIGINT`, `INT` or `2`.
fn signal_number(name: &str) -> Result<usize> {
    if let Ok(n) = name.parse::<usize>()
        && (1..65).contains(&n)
    {
        return Ok(n);
    }
    let upper = name.to_ascii_uppercase();
    let full = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    let table = &events::generated::flags::T_SIGNAL;
    if let Some(e) = table.entries().find(|e| e.name == full) {
        return Ok(e.value as usize);
    }
    let near = nearest(&full, table.entries().map(|e| e.name));
    Err(Error::usage(format!("-e signal={name}"), "no such signal", format!("did you mean {}?", near.join(", "))))
}

/// Reads `3,5`, `!3`, `all`, `none`, as `option` says.
pub fn descriptors(option: &str, text: &str) -> Result<Descriptors> {
    let (negated, list) = match text.strip_prefix('!') {
        Some(t) => (true, t),
        None => (false, text),
    };
    if list.split(',').all(str::is_empty) {
        return Err(names_nothing(option, text));
    }
    let mut set = Descriptors { negated, numbers: Vec::new() };
    for item in list.split(',').filter(|i| !i.is_empty()) {
        match (item, item.parse::<i32>()) {
            ("all", _) => return Ok(Descriptors { negated: !negated, numbers: Vec::new() }),
            ("none", _) => {}
            (_, Ok(n)) if n >= 0 => set.numbers.push(n),
            _ => return Err(Error::usage(format!("{option}{item}"), "not a descriptor", "a number, all or none")),
        }
    }
    Ok(set)
}

/// Outcomes of a call (`-e status=…`, `-z`, `-Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// It succeeded.
    pub successful: bool,
    /// It returned an error.
    pub failed: bool,
    /// It did not return.
    pub unfinished: bool,
    /// Its end was not observed (a detach).
    pub detached: bool,
}

impl Outcomes {
    /// All of them.
    pub const ALL: Outcomes = Outcomes { successful: true, failed: true, unfinished: true, detached: true };
    /// None of them.
    pub const NONE: Outcomes = Outcomes { successful: false, failed: false, unfinished: false, detached: false };

    /// Reads `successful,failed`, `!unfinished`, `all`, `none`.
    pub fn parse(text: &str) -> Result<Outcomes> {
        let (negated, text) = match text.strip_prefix('!') {
            Some(t) => (true, t),
            None => (false, text),
        };
        let mut o = Outcomes::NONE;
        if text.split(',').all(str::is_empty) {
            return Err(names_nothing("-e status=", text));
        }
        for item in text.split(',').filter(|i| !i.is_empty()) {
            match item {
                "all" => o = Outcomes::ALL,
                "none" => {}
                "successful" => o.successful = true,
                "failed" => o.failed = true,
                "unfinished" => o.unfinished = true,
                "detached" => o.detached = true,
                // Linux has no call whose result is unavailable.
                "unavailable" => {}
                _ => {
                    let all = ["successful", "failed", "unfinished", "detached", "unavailable"];
                    let near = nearest(item, all.into_iter());
                    let hint = format!("did you mean {}?", near[0]);
                    return Err(Error::usage(format!("-e status={item}"), "no such status", hint));
                }
            }
        }
        Ok(if negated {
            Outcomes { successful: !o.successful, failed: !o.failed, unfinished: !o.unfinished, detached: !o.detached }
        } else {
            o
        })
    }
}

/// The calls that change a thread's name.
pub const NAME_CALLS: &[&str] = &["prctl"];
/// The calls that change its ids.
pub const ID_CALLS: &[&str] = &["setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid"];
/// Calls whose events the descriptor table needs, whether they are shown or not.
pub const FD_CALLS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "pipe",
    "pipe2",
    "socket",
    "socketpair",
    "accept",
    "accept4",
    "connect",
    "bind",
    "listen",
    "recvmsg",
    "recvmmsg",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "signalfd",
    "signalfd4",
    "timerfd_create",
    "inotify_init",
    "inotify_init1",
    "fanotify_init",
    "memfd_create",
    "memfd_secret",
    "userfaultfd",
    "perf_event_open",
    "bpf",
    "io_uring_setup",
    "pidfd_open",
    "pidfd_getfd",
    "open_by_handle_at",
    "open_tree",
    "fsopen",
    "fsmount",
    "fspick",
    "landlock_create_ruleset",
    "mq_open",
    "chdir",
    "fchdir",
    "execve",
    "execveat",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "unshare",
];

/// Whether the table of descriptors needs a call.
pub fn for_descriptors(s: &Schema) -> bool {
    s.class == events::Class::Syscall && FD_CALLS.contains(&s.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: &str) -> Vec<&'static str> {
        let c = Calls::parse(set).unwrap();
        registry::syscalls().filter(|s| s.name != "raw" && c.contains(s)).map(|s| s.name).collect()
    }

    #[test]
    fn names_classes_expressions_and_negation() {
        assert_eq!(names("openat,close"), ["close", "openat"]);
        assert_eq!(names("/^fchmod"), ["fchmod", "fchmodat", "fchmodat2"]);
        assert_eq!(names("syscall:fchmod*"), names("/^fchmod"));
        assert_eq!(names("syscall:*"), names("/."));
        assert_eq!(names("/^(read|write)$/,close"), ["read", "write", "close"]);
        assert!(names("%file").contains(&"openat") && !names("%file").contains(&"read"));
        assert!(!names("!read").contains(&"read") && names("!read").len() > 300);
        assert_eq!(names("none"), [""; 0]);
        assert_eq!(names("?nonsense,read"), ["read"]);
        assert!(Calls::parse("all").unwrap().is_all());
        assert!(!Calls::parse("!read").unwrap().is_all());
    }

    #[test]
    fn sets_are_written_as_for_strace() {
        for class in WITHOUT_SIGN {
            assert_eq!(names(class), names(&format!("%{class}")), "{class}");
        }
        assert_eq!(names("stat"), ["stat"], "a call, and no class");
        assert!(Calls::parse("clock").is_err(), "strace has no such name");
        assert_eq!(names("openat@64,?nonsense@64"), ["openat"]);
        assert_eq!(names("%file@64"), names("%file"));
        assert_eq!(names("/^dup[23]$@64"), ["dup2", "dup3"]);
        let all = Calls::parse("all@64").unwrap();
        assert!(!all.has_unknown() && all.len() == Calls::all().len());
        for narrow in ["openat@32", "all@x32", "?openat@32"] {
            let e = Calls::parse(narrow).unwrap_err().to_string();
            assert!(e.contains("selected together"), "{e}");
        }
        assert!(Calls::parse("openat@65").is_err() && Calls::parse("nonsense@64").is_err());
    }

    #[test]
    fn sets_of_descriptors() {
        let has = |text: &str| {
            let set = descriptors("--read ", text).unwrap();
            [0, 3, 5].map(|fd| set.contains(fd))
        };
        assert_eq!(has("3,5"), [false, true, true]);
        assert_eq!(has("!3"), [true, false, true]);
        assert_eq!((has("all"), has("!all"), has("none")), ([true; 3], [false; 3], [false; 3]));
        assert!(!descriptors("--read ", "all").unwrap().contains(-1), "no descriptor");
        for wrong in ["", "x", "-1", "3,x", "!"] {
            assert!(descriptors("--read ", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_name_what_is_near() {
        for unknown in ["opennat", "syscall:opennat"] {
            let e = Calls::parse(unknown).unwrap_err().to_string();
            assert!(e.contains("no such system call (did you mean openat"), "{e}");
        }
        let e = Calls::parse("%netwrk").unwrap_err().to_string();
        assert!(e.contains("%network"), "{e}");
        assert!(Calls::parse("/(/").is_err());
        for text in ["", ",", "!", "!,,"] {
            let e = Calls::parse(text).unwrap_err().to_string();
            assert!(e.contains("names nothing"), "{e}");
            assert!(Signals::parse(text).is_err() && Outcomes::parse(text).is_err(), "{text}");
        }
        for probe in ["tracepoint:sched:sched_switch", "syscall:openat:entry", "profile:hz:99"] {
            let e = Calls::parse(probe).unwrap_err().to_string();
            assert!(e.contains(&format!("trapline record -e {probe}")), "{e}");
        }
        let e = Signals::parse("SIGTREM").unwrap_err().to_string();
        assert!(e.contains("SIGTERM"), "{e}");
    }
}
