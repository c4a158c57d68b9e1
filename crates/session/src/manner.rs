//! How calls are shown, where the command line says so call by call or descriptor by descriptor: strace's `-e` with a qualifier other than
//! `trace=`, `signal=` and `status=`, which select, and what `-v`, `-y`, `-Y` and `-q` are short for. A later one replaces an earlier one.

use crate::ask::{Ask, Select};
use engine::request::select::{self, Calls};
use engine::{Error, Result};
use events::names::Descriptors;
use views::options::FdNames;

/// How calls are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// All fields of structs.
    pub verbose: bool,
    /// Calls that have none nevertheless, by class id.
    pub abbrev: Vec<bool>,
    /// Calls whose structs are addresses, by class id.
    pub opaque: Vec<bool>,
    /// Calls whose arguments are registers, by class id.
    pub raw: Vec<bool>,
    /// Descriptors whose data is dumped when it is read.
    pub read: Descriptors,
    /// Descriptors whose data is dumped when it is written.
    pub write: Descriptors,
    /// What is shown of descriptors.
    pub fd_names: FdNames,
    /// Names of threads.
    pub comm: bool,
    /// What is not said.
    pub quiet: Quiet,
}

/// What is not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// What trapline itself has to say.
    pub messages: bool,
    /// That a thread has exited.
    pub exits: bool,
    /// That another thread's execve has replaced one.
    pub superseded: bool,
}

impl Quiet {
    /// `-q`, `-qq`, `-qqq`.
    fn times(times: u8) -> Quiet {
        Quiet { messages: times > 0, exits: times > 1, superseded: times > 2 }
    }

    /// `quiet=SET`. Nothing is ever said of how paths are resolved, nor of the mode of a process.
    fn parse(text: &str) -> Result<Quiet> {
        const ALL: [&str; 5] = ["attach", "exit", "path-resolution", "personality", "thread-execve"];
        let words = words("quiet", &text.replace("superseded", "thread-execve"), &ALL)?;
        Ok(Quiet { messages: words.has("attach"), exits: words.has("exit"), superseded: words.has("thread-execve") })
    }
}

/// The qualifiers of `-e`, by all their names.
fn qualifier(name: &str) -> &str {
    match name {
        "t" => "trace",
        "trace-fd" | "fd" | "fds" => "trace-fds",
        "a" => "abbrev",
        "v" => "verbose",
        "x" => "raw",
        "signals" | "s" => "signal",
        "reads" | "r" => "read",
        "writes" | "w" => "write",
        "silent" | "silence" | "q" => "quiet",
        "decode-fd" => "decode-fds",
        "decode-pid" => "decode-pids",
        other => other,
    }
}

/// An expression's qualifier, as it is usually written, and its set.
pub fn qualified(text: &str) -> Option<(&str, &str)> {
    let (name, set) = text.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    is_name.then_some((qualifier(name), set))
}

/// Whether a qualifier says how calls are shown.
pub fn is_of_manner(qualifier: &str) -> bool {
    matches!(qualifier, "abbrev" | "verbose" | "raw" | "read" | "write" | "quiet" | "decode-fds" | "decode-pids")
}

/// A set of words.
struct Words {
    found: Vec<&'static str>,
    negated: bool,
}

impl Words {
    fn has(&self, word: &str) -> bool {
        self.found.contains(&word) != self.negated
    }
}

/// Reads a set of words: a list, `all` or `none`, negated by `!`.
fn words(option: &str, text: &str, known: &[&'static str]) -> Result<Words> {
    let (negated, list) = match text.strip_prefix('!') {
        Some(list) => (true, list),
        None => (false, text),
    };
    let mut found = Vec::new();
    for word in list.split(',') {
        match (word, known.iter().find(|k| **k == word)) {
            ("all", _) => found.extend(known),
            ("none", _) => {}
            (_, Some(word)) => found.push(*word),
            _ => {
                let all = format!("{}, all or none", known.join(", "));
                return Err(Error::usage(format!("-e {option}={word}"), "no such word", all));
            }
        }
    }
    Ok(Words { found, negated })
}

/// For each class, whether a set of calls has it.
fn by_class(calls: &Calls) -> Vec<bool> {
    events::generated::SCHEMAS.iter().map(|s| calls.contains(s)).collect()
}

fn fd_names(set: &str) -> Result<FdNames> {
    const UNKNOWN: [&str; 3] = ["pidfd", "eventfd", "signalfd"];
    if let Some(detail) = set.trim_start_matches('!').split(',').find(|d| UNKNOWN.contains(d)) {
        let why = "nothing more is known of such a descriptor";
        return Err(Error::usage(format!("-e decode-fds={detail}"), why, "path, socket, dev, all or none"));
    }
    let words = words("decode-fds", set, &["path", "socket", "dev"])?;
    Ok(FdNames { path: words.has("path"), socket: words.has("socket"), device: words.has("dev") })
}

impl Manner {
    /// What the command line asks for.
    ///
    /// # Errors
    /// A set that names something unknown.
    pub fn of(ask: &Ask) -> Result<Manner> {
        let format = &ask.format;
        let mut manner = Manner {
            verbose: format.no_abbrev,
            fd_names: [FdNames::NONE, FdNames::PATH, FdNames::FULL][usize::from(format.fd.min(2))],
            comm: format.decode_pids,
            quiet: Quiet::times(ask.quiet),
            ..Manner::default()
        };
        for (qualifier, set) in ask.select.expressions().filter_map(qualified) {
            manner.take(qualifier, set)?;
        }
        Ok(manner)
    }

    fn take(&mut self, qualifier: &str, set: &str) -> Result<()> {
        let dumped = || select::descriptors(&format!("-e {qualifier}="), set);
        match qualifier {
            "abbrev" => {
                let calls = Calls::parse(set)?;
                self.verbose = !calls.is_all();
                self.abbrev = by_class(&calls);
            }
            "verbose" => self.opaque = by_class(&Calls::parse(set)?).iter().map(|shown| !shown).collect(),
            "raw" => self.raw = by_class(&Calls::parse(set)?),
            "read" => self.read = dumped()?,
            "write" => self.write = dumped()?,
            "quiet" => self.quiet = Quiet::parse(set)?,
            "decode-fds" => self.fd_names = fd_names(set)?,
            "decode-pids" => self.comm = words("decode-pids", set, &["comm"])?.has("comm"),
            _ => {}
        }
        Ok(())
    }

    /// Whether data is dumped: then as much of it is captured as possible.
    pub fn dumps(&self) -> bool {
        !self.read.is_empty() || !self.write.is_empty()
    }
}

/// `-q` of a command line with `quiet=SET`: whether trapline's own messages are left out. A set that is wrong is reported elsewhere.
pub fn messages(select: &Select) -> Option<bool> {
    let sets = select.expressions().filter_map(qualified).filter(|(name, _)| *name == "quiet");
    sets.last().map(|(_, set)| Quiet::parse(set).is_ok_and(|quiet| quiet.messages))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manner(exprs: &[&str]) -> Result<Manner> {
        let select = Select { expr: exprs.iter().map(|e| (*e).into()).collect(), ..Select::default() };
        Manner::of(&Ask { select, ..Ask::default() })
    }

    #[test]
    fn the_last_of_each_kind_is_taken() {
        let m =
            manner(&["read=3", "r=5", "write=!1", "decode-fds=path", "decode-fd=dev,socket", "abbrev=none"]).unwrap();
        assert!(!m.read.contains(3) && m.read.contains(5) && m.write.contains(2) && !m.write.contains(1) && m.dumps());
        assert_eq!(m.fd_names, FdNames { path: false, ..FdNames::FULL });
        assert!(m.verbose && m.abbrev.iter().all(|a| !a));
        let m = manner(&["abbrev=none", "a=!fstat", "v=none", "x=all", "decode-pids=comm"]).unwrap();
        let of = |set: &[bool], name: &str| set[usize::from(events::registry::by_name(name).unwrap().id)];
        assert!(m.verbose && of(&m.abbrev, "stat") && !of(&m.abbrev, "fstat") && m.comm);
        assert!(of(&m.opaque, "stat") && of(&m.raw, "stat"));
        assert!(!manner(&["abbrev=none", "abbrev=all"]).unwrap().verbose);
        assert_eq!(manner(&["openat", "trace=read", "signal=INT", "fd=3"]).unwrap(), Manner::default());
    }

    #[test]
    fn quiet_has_levels_and_sets() {
        let is = |q: Quiet| [q.messages, q.exits, q.superseded];
        assert_eq!([0, 1, 2, 3].map(|n| is(Quiet::times(n)).iter().filter(|set| **set).count()), [0, 1, 2, 3]);
        let quiet = |set: &str| is(manner(&[&format!("quiet={set}")]).unwrap().quiet);
        assert_eq!(quiet("attach,personality,exit"), [true, true, false]);
        assert_eq!(quiet("all"), [true; 3]);
        assert_eq!(quiet("none"), [false; 3]);
        assert_eq!(quiet("!exit"), [true, false, true]);
        assert_eq!(quiet("superseded,path-resolution"), [false, false, true]);
        let select = |e: &str| Select { expr: vec![e.into()], ..Select::default() };
        assert_eq!(["openat", "q=exit", "silence=all"].map(|e| messages(&select(e))), [None, Some(false), Some(true)]);
    }

    #[test]
    fn unknown_words_are_named() {
        for wrong in
            ["quiet=exits", "decode-fds=paths", "decode-fds=pidfd", "decode-pids=pidns", "read=x", "abbrev=nope"]
        {
            let e = manner(&[wrong]).unwrap_err().to_string();
            assert!(e.contains(wrong.split('=').nth(1).unwrap()), "{e}");
        }
    }
}
