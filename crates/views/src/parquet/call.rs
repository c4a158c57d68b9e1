//! The table of system calls.

use super::column::Value;
use super::dictionary::Texts;
use super::file::File;
use super::{About, Who, schema};
use crate::latency::By;
use crate::latency::subject::{self, Subject, whole_path};
use crate::timeline::tally::{READS, WRITES};
use crate::{Options, json};
use events::layout::{self, CAP_NO_RESULT, CAP_START_UNKNOWN};
use events::names::{AT_FDCWD, Names};
use events::types::{Fmt, StrKind, Type};
use events::{Cap, Event, Schema};
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The table.
pub struct Calls {
    /// Its rows.
    pub file: File,
    about: About,
    options: Options,
    /// What is known of calls, by the numbers of their classes.
    facts: Vec<Option<Facts>>,
    groups: Vec<usize>,
    args: Vec<u8>,
    told: Told,
}

/// The arguments of calls as events have them, and the numbers of their texts in the row group: most calls are made again and again with the
/// same, whose text is not made again.
#[derive(Default)]
struct Told {
    group: usize,
    given: Texts,
    texts: Vec<u32>,
    key: Vec<u8>,
    /// By the numbers of classes: how often it was asked for, and how often known.
    classes: Vec<(u32, u32)>,
}

/// The longest arguments that are remembered, bytes.
const LONGEST: usize = 1 << 10;
/// Calls of a class after which its texts are no longer remembered, if few of them have been found again.
const TRIED: u32 = 256;

impl Told {
    /// The number of the text of a call's arguments. Class, arguments, captured memory and result determine it.
    fn find(&mut self, ev: &Event<'_>, group: usize) -> Option<u32> {
        if self.group != group {
            self.group = group;
            self.given.clear();
            self.texts.clear();
            self.classes.clear();
        }
        let class = usize::from(ev.schema.id);
        if self.classes.len() <= class {
            self.classes.resize(class + 1, (0, 0));
        }
        let (asked, known) = &mut self.classes[class];
        if *asked >= TRIED && *known < *asked / 2 {
            return None;
        }
        *asked += 1;
        let (layout, bytes) = (ev.layout, ev.bytes);
        self.key.clear();
        self.key.extend_from_slice(&bytes[layout::ID..layout::TID]);
        self.key.extend_from_slice(&ev.ret().to_le_bytes());
        self.key.extend_from_slice(layout.more_caps.map_or(&[], |at| &bytes[at..at + 8]));
        for (at, width) in &layout.args[..ev.schema.args.len()] {
            self.key.extend_from_slice(&bytes[usize::from(*at)..][..usize::from(*width)]);
        }
        self.key.extend_from_slice(&bytes[layout.fixed..]);
        if self.key.len() > LONGEST {
            return None;
        }
        let nth = self.given.number(&self.key, Some)?;
        let found = self.texts.get(nth as usize).copied();
        *known += u32::from(found.is_some());
        found
    }

    /// That text has this number.
    fn learn(&mut self, number: Option<u32>) {
        if let Some(number) = number.filter(|_| self.texts.len() < self.given.len()) {
            self.texts.push(number);
        }
    }
}

/// What the class of a call says.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Its result is how many bytes it has read or written.
    moves: bool,
    /// The arguments that are its second path and the directory where that begins, and the address of a socket.
    second: Option<(usize, Option<usize>)>,
    address: Option<usize>,
}

impl Facts {
    fn of(schema: &Schema) -> Facts {
        let mut facts =
            Facts { moves: READS.contains(&schema.name) || WRITES.contains(&schema.name), ..Facts::default() };
        let (mut paths, mut dir) = (0, None);
        for (i, arg) in schema.args.iter().enumerate() {
            match arg.ty {
                Type::Int(int) if int.fmt == Fmt::Dirfd => dir = Some(i),
                Type::Str(StrKind::Path) => {
                    paths += 1;
                    if paths == 2 {
                        facts.second = Some((i, dir));
                    }
                }
                Type::Sockaddr(_) => facts.address = facts.address.or(Some(i)),
                _ => {}
            }
        }
        facts
    }
}

impl Calls {
    /// None so far.
    pub fn new(about: &About) -> Calls {
        Calls {
            file: about.file(&schema::CALLS),
            about: about.clone(),
            options: Options::default(),
            facts: Vec::new(),
            groups: Vec::new(),
            args: Vec::new(),
            told: Told::default(),
        }
    }

    fn facts(&mut self, schema: &Schema) -> Facts {
        let nth = usize::from(schema.id);
        if self.facts.len() <= nth {
            self.facts.resize(nth + 1, None);
        }
        *self.facts[nth].get_or_insert_with(|| Facts::of(schema))
    }

    /// Adds the row of a call.
    pub fn row(&mut self, ev: &Event<'_>, names: &dyn Names, who: Who<'_>, stack: Value<'_>) {
        let facts = self.facts(ev.schema);
        let known = ev.caps() & CAP_START_UNKNOWN == 0;
        let time = Value::Int(self.about.time(if known { ev.start() } else { ev.time() }));
        let (errno, has_result) = (ev.errno(), ev.caps() & CAP_NO_RESULT == 0);
        let ret = if errno.is_some() { -1 } else { ev.ret() };
        let number;
        let errno_name = match errno.map(|n| (n, events::errno::lookup(n))) {
            None => Value::Null,
            Some((_, Some((name, _)))) => Value::Text(name.as_bytes()),
            Some((n, None)) => {
                number = n.to_string();
                Value::Text(number.as_bytes())
            }
        };
        let name = Subject::of(ev, By::Call, names);
        let named;
        let name = match &name {
            Subject::Call(name) => name,
            other => {
                named = other.name(By::Call, &[]);
                named.as_str()
            }
        };
        let (fd, path) = subject::descriptor_and_file(ev, names);
        let (ends, path) = match &path {
            subject::File::Path(path) => (None, Value::Text(path)),
            subject::File::Socket(ends) => (Some(*ends), Value::Text(ends)),
            subject::File::Unnamed | subject::File::None => (None, Value::Null),
        };
        let second = second(ev, facts, names);
        let moved = has_result && errno.is_none() && facts.moves;
        let peer = facts.address.and_then(|i| address(ev, i)).or_else(|| ends.and_then(other_end));
        let (address, port) = peer.unzip();
        let known = self.told.find(ev, self.file.nth_group());
        let args = match known {
            Some(number) => Value::Known(number),
            None => {
                self.args.clear();
                json::details(ev, &self.options, names, &mut self.groups, &mut self.args);
                Value::Text(&self.args)
            }
        };
        self.file.row([
            time,
            time,
            Value::unsigned(ev.duration()),
            Value::Text(name.as_bytes()),
            who.pid,
            who.tid,
            who.comm,
            who.exe,
            Value::maybe(names.ids(ev.tid()).0),
            Value::maybe(ev.cpus().0),
            Value::maybe(has_result.then_some(ret)),
            errno_name,
            Value::maybe(fd),
            path,
            second.as_deref().map_or(Value::Null, Value::Text),
            Value::maybe(moved.then_some(ret)),
            address.as_ref().map_or(Value::Null, |address: &String| Value::text(address.as_bytes())),
            Value::maybe(port.flatten()),
            stack,
            args,
        ]);
        if known.is_none() && self.file.nth_group() == self.told.group {
            self.told.learn(self.file.last_number());
        }
    }
}

/// The second path of a call.
fn second<'a>(ev: &Event<'a>, facts: Facts, names: &dyn Names) -> Option<Cow<'a, [u8]>> {
    let (i, dir) = facts.second?;
    ev.resolve(i)?;
    let read = matches!(ev.cap(i), Cap::Whole | Cap::Cut);
    let path = ev.tail(i, false).filter(|tail| read && !tail.bytes.is_empty())?.bytes;
    let dir = dir.map_or(AT_FDCWD, |i| ev.arg(i) as i32);
    Some(whole_path(ev.pid(), path, Some(dir), names))
}

/// The address that a call was given or has got: an IP address, or the path of a socket; and the port.
fn address(ev: &Event<'_>, i: usize) -> Option<(String, Option<u16>)> {
    const AF_UNIX: u16 = 1;
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let read = matches!(ev.cap(i), Cap::Whole | Cap::Cut);
    let bytes = ev.tail(i, false).or_else(|| ev.tail(i, true)).filter(|_| read)?.bytes;
    let (family, rest) = bytes.split_first_chunk()?;
    let port = rest.first_chunk().map(|port| u16::from_be_bytes(*port));
    match u16::from_le_bytes(*family) {
        AF_INET => rest.get(2..)?.first_chunk().map(|ip: &[u8; 4]| (Ipv4Addr::from(*ip).to_string(), port)),
        AF_INET6 => rest.get(6..)?.first_chunk().map(|ip: &[u8; 16]| (Ipv6Addr::from(*ip).to_string(), port)),
        AF_UNIX => {
            let path = rest.split(|c| *c == 0).find(|part| !part.is_empty())?;
            Some((String::from_utf8_lossy(path).into_owned(), None))
        }
        _ => None,
    }
}

/// The other end of a socket of which both are known: `TCP:[127.0.0.1:80->127.0.0.1:4000]`.
fn other_end(ends: &[u8]) -> Option<(String, Option<u16>)> {
    let ends = std::str::from_utf8(ends).ok()?;
    let (_, end) = ends.strip_suffix(']')?.rsplit_once("->")?;
    let (address, port) = end.rsplit_once(':')?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    Some((address.to_owned(), Some(port.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_behind_the_arrow() {
        let end = |ends: &str| other_end(ends.as_bytes());
        assert_eq!(end("TCP:[127.0.0.1:80->10.0.0.1:4000]"), Some(("10.0.0.1".into(), Some(4000))));
        assert_eq!(end("TCPv6:[[::1]:80->[fe80::1]:4000]"), Some(("fe80::1".into(), Some(4000))));
        assert_eq!(["TCP:[127.0.0.1:80]", "UNIX:[1->2]", "TCP:[a->b:c]", ""].map(end), [None, None, None, None]);
    }
}
