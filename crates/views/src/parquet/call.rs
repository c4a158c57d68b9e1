//! The table of system calls.

use super::column::Value;
use super::file::File;
use super::{About, Who, schema};
use crate::latency::By;
use crate::latency::subject::{Subject, whole_path};
use crate::timeline::tally::{READS, WRITES};
use crate::{Options, json};
use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN};
use events::names::{AT_FDCWD, Names};
use events::types::{Fmt, StrKind, Type};
use events::{Cap, Event, Schema};
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
        let fd = match Subject::of(ev, By::Fd, names) {
            Subject::Fd(_, fd) => Value::Int(fd.into()),
            _ => Value::Null,
        };
        let path = Subject::of(ev, By::Path, names);
        let (ends, path) = match &path {
            Subject::Path(path) => (None, Value::Text(path)),
            Subject::Socket(ends) => (Some(&**ends), Value::Text(ends)),
            _ => (None, Value::Null),
        };
        let second = second(ev, facts, names);
        let moved = has_result && errno.is_none() && facts.moves;
        let peer = facts.address.and_then(|i| address(ev, i)).or_else(|| ends.and_then(other_end));
        let (address, port) = peer.unzip();
        self.args.clear();
        json::details(ev, &self.options, names, &mut self.groups, &mut self.args);
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
            fd,
            path,
            second.as_deref().map_or(Value::Null, Value::Text),
            Value::maybe(moved.then_some(ret)),
            address.as_ref().map_or(Value::Null, |address: &String| Value::text(address.as_bytes())),
            Value::maybe(port.flatten()),
            stack,
            Value::Text(&self.args),
        ]);
    }
}

/// The second path of a call.
fn second(ev: &Event<'_>, facts: Facts, names: &dyn Names) -> Option<Box<[u8]>> {
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
