//! What a call was about: which row counts it.

use super::By;
use crate::escape;
use events::layout::CAP_32BIT;
use events::names::{AT_FDCWD, Names};
use events::schema::Ret;
use events::traces::own;
use events::types::{Fmt, StrKind, Type};
use events::{Cap, Event};

/// A row's key. The order is that of `name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A call, by its name.
    Call(&'static str),
    /// A call without a schema: whether it is a 32-bit one, and its number.
    Number(bool, u32),
    /// A thread.
    Thread(u32),
    /// A file.
    Path(Box<[u8]>),
    /// A socket, by what is known of its ends.
    Socket(Box<[u8]>),
    /// A descriptor of a process.
    Fd(u32, i32),
    /// A file or a descriptor whose name is not known.
    Unnamed,
    /// No file or no descriptor.
    None,
}

/// Arguments that have the type of a path and are none that the call works on: the text of a link, what is mounted.
const NOT_WORKED_ON: [(&str, &str); 3] = [("symlink", "oldname"), ("symlinkat", "oldname"), ("mount", "dev_name")];

/// Calls whose path names something that is in no directory: message queues.
const NO_FILES: [&str; 2] = ["mq_open", "mq_unlink"];

/// The subject by the arguments.
enum About<'a> {
    /// A path as the call was given it, and the directory that it starts from, unless it names no file.
    Path(&'a [u8], Option<i32>),
    /// A path that is not known.
    Unread,
    /// A descriptor that existed before.
    Fd(i32),
    /// A descriptor that the call has made.
    Made(i32),
    None,
}

impl Subject {
    /// The row of a call.
    #[inline]
    pub fn of(ev: &Event<'_>, by: By, names: &dyn Names) -> Subject {
        match by {
            By::Call if ev.schema.name == "raw" => {
                Subject::Number(ev.caps() & CAP_32BIT != 0, ev.value_of("nr") as u32)
            }
            By::Call => Subject::Call(ev.schema.name),
            By::Thread => Subject::Thread(ev.tid()),
            By::Path => path(ev, names),
            By::Fd => match about(ev, false) {
                About::Fd(fd) | About::Made(fd) if fd >= 0 => Subject::Fd(ev.pid(), fd),
                _ => Subject::None,
            },
        }
    }

    /// Bytes on the heap.
    pub fn heap(&self) -> usize {
        match self {
            Subject::Path(b) | Subject::Socket(b) => b.len(),
            _ => 0,
        }
    }

    /// Name, printable ASCII.
    pub fn name(&self, by: By, comm: &[u8]) -> String {
        let mut out = Vec::new();
        match self {
            Subject::Call(name) => return (*name).to_owned(),
            Subject::Number(narrow, nr) => {
                let known = events::generated::I386.get(*nr as usize).filter(|n| *narrow && !n.is_empty());
                return known.map_or_else(|| format!("syscall_{nr:#x}"), |n| format!("{n}@i386"));
            }
            Subject::Thread(tid) if comm.is_empty() => return own(*tid).to_string(),
            Subject::Thread(tid) => {
                out.extend_from_slice(format!("{} ", own(*tid)).as_bytes());
                escape::name(comm, &mut out);
            }
            Subject::Path(path) => escape::name(path, &mut out),
            Subject::Socket(ends) => escape::name_in_brackets(ends, &mut out),
            Subject::Fd(pid, fd) => return format!("{}:{fd}", own(*pid)),
            Subject::Unnamed => return "(unknown)".to_owned(),
            Subject::None if by == By::Fd => return "(no descriptor)".to_owned(),
            Subject::None => return "(no path)".to_owned(),
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn path(ev: &Event<'_>, names: &dyn Names) -> Subject {
    let named = |name: Option<&events::names::FdName>| match name {
        None => Subject::Unnamed,
        Some(n) if n.path.starts_with(b"socket:[") && !n.detail.is_empty() => Subject::Socket(n.detail[..].into()),
        Some(n) => Subject::Path(n.path[..].into()),
    };
    match about(ev, true) {
        About::None => Subject::None,
        About::Unread => Subject::Unnamed,
        About::Fd(fd) => named(names.fd(ev.pid(), fd)),
        About::Made(fd) => named(names.new_fd(ev.pid(), fd)),
        About::Path(path, dir) => Subject::Path(whole_path(ev.pid(), path, dir, names)),
    }
}

/// A path that a call of process `pid` was given, with the directory that it starts from, where that is known.
pub(crate) fn whole_path(pid: u32, path: &[u8], dir: Option<i32>, names: &dyn Names) -> Box<[u8]> {
    match dir.filter(|_| !path.starts_with(b"/")).and_then(|dir| names.fd(pid, dir)) {
        None => path.into(),
        Some(dir) => {
            let slash: &[u8] = if dir.path.ends_with(b"/") { b"" } else { b"/" };
            let rest = path.strip_prefix(b"./").unwrap_or(path);
            [&dir.path[..], slash, rest].concat().into()
        }
    }
}

/// The first path where paths are wanted; else the first descriptor; else one that the call has made; else a directory's.
fn about<'a>(ev: &Event<'a>, paths: bool) -> About<'a> {
    let (mut fd, mut dir) = (None, None);
    for (i, arg) in ev.schema.args.iter().enumerate() {
        match ev.resolve(i) {
            Some((Type::Int(int), _)) if int.fmt == Fmt::Fd => {
                fd = fd.or(Some(ev.arg(i) as i32).filter(|&fd| fd >= 0));
            }
            Some((Type::Int(int), _)) if int.fmt == Fmt::Dirfd => dir = Some(ev.arg(i) as i32),
            Some((Type::Str(StrKind::Path), _)) if paths && !NOT_WORKED_ON.contains(&(ev.schema.name, arg.name)) => {
                let read = matches!(ev.cap(i), Cap::Whole | Cap::Cut);
                let bytes = ev.tail(i, false).or_else(|| ev.tail(i, true)).map(|t| t.bytes).filter(|_| read);
                match (bytes, dir) {
                    (Some([]), Some(dir)) => return About::Fd(dir),
                    // Without a path, the directory itself.
                    (None, Some(dir)) if ev.arg(i) == 0 => return About::Fd(dir),
                    (None | Some([]), _) => return About::Unread,
                    (Some(path), _) => {
                        let file = !NO_FILES.contains(&ev.schema.name);
                        return About::Path(path, file.then_some(dir.unwrap_or(AT_FDCWD)));
                    }
                }
            }
            _ => {}
        }
    }
    match (fd, made(ev), dir) {
        (Some(fd), _, _) | (None, None, Some(fd)) => About::Fd(fd),
        (None, Some(fd), _) => About::Made(fd),
        (None, None, None) => About::None,
    }
}

fn made(ev: &Event<'_>) -> Option<i32> {
    let is_fd = matches!(ev.ret_type(), Ret::Int(int) if int.fmt == Fmt::Fd);
    (is_fd && ev.errno().is_none()).then(|| ev.ret() as i32).filter(|&fd| fd >= 0)
}
