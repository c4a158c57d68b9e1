//! What a call was about: which row counts it.

use super::By;
use crate::escape;
use events::layout::CAP_32BIT;
use events::names::{AT_FDCWD, Names};
use events::schema::Ret;
use events::traces::own;
use events::types::{Fmt, StrKind, Type};
use events::{Cap, Event, Int};
use std::borrow::Cow;

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

/// Arguments with the type of a path that are not the file of the call: the text of a link, the device of a mount.
const NOT_WORKED_ON: [(&str, &str); 3] = [("symlink", "oldname"), ("symlinkat", "oldname"), ("mount", "dev_name")];

/// Calls whose path names something that is in no directory: message queues.
const NO_FILES: [&str; 2] = ["mq_open", "mq_unlink"];

/// What a call was about, by its arguments.
struct About<'a> {
    /// The first path.
    path: Option<Given<'a>>,
    /// The first descriptor; else one that the call has made; else a directory's.
    fd: Descriptor,
}

/// A path that a call was given.
enum Given<'a> {
    /// The path, and the directory that it starts from, unless it names no file.
    Path(&'a [u8], Option<i32>),
    /// It is empty: the directory itself.
    Dir(i32),
    /// It is not known.
    Unread,
}

/// A descriptor of a call.
enum Descriptor {
    /// It existed before.
    Old(i32),
    /// The call has made it.
    Made(i32),
    None,
}

impl About<'_> {
    /// The number of the descriptor.
    fn number(&self) -> Option<i32> {
        match self.fd {
            Descriptor::Old(fd) | Descriptor::Made(fd) => Some(fd).filter(|fd| *fd >= 0),
            Descriptor::None => None,
        }
    }
}

/// The file that a call was about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum File<'a> {
    /// By its path.
    Path(Cow<'a, [u8]>),
    /// A socket, by what is known of its ends.
    Socket(&'a [u8]),
    /// Its name is not known.
    Unnamed,
    /// The call is about no file or descriptor.
    None,
}

/// The descriptor and the file that a call was about.
#[inline]
pub(crate) fn descriptor_and_file<'a>(ev: &Event<'a>, names: &'a dyn Names) -> (Option<i32>, File<'a>) {
    let about = about(ev);
    (about.number(), file(ev, &about, names))
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
            By::Path => match file(ev, &about(ev), names) {
                File::Path(path) => Subject::Path(path.into()),
                File::Socket(ends) => Subject::Socket(ends.into()),
                File::Unnamed => Subject::Unnamed,
                File::None => Subject::None,
            },
            By::Fd => about(ev).number().map_or(Subject::None, |fd| Subject::Fd(ev.pid(), fd)),
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

fn file<'a>(ev: &Event<'a>, about: &About<'a>, names: &'a dyn Names) -> File<'a> {
    let named = |name: Option<&'a events::names::FdName>| match name {
        None => File::Unnamed,
        Some(n) if n.path.starts_with(b"socket:[") && !n.detail.is_empty() => File::Socket(&n.detail),
        Some(n) => File::Path(Cow::Borrowed(&n.path)),
    };
    match (&about.path, &about.fd) {
        (Some(Given::Path(path, dir)), _) => File::Path(whole_path(ev.pid(), path, *dir, names)),
        (Some(Given::Unread), _) => File::Unnamed,
        (Some(Given::Dir(fd)), _) | (None, Descriptor::Old(fd)) => named(names.fd(ev.pid(), *fd)),
        (None, Descriptor::Made(fd)) => named(names.new_fd(ev.pid(), *fd)),
        (None, Descriptor::None) => File::None,
    }
}

/// A path that a call of process `pid` was given, with the directory that it starts from, where that is known.
pub(crate) fn whole_path<'a>(pid: u32, path: &'a [u8], dir: Option<i32>, names: &dyn Names) -> Cow<'a, [u8]> {
    match dir.filter(|_| !path.starts_with(b"/")).and_then(|dir| names.fd(pid, dir)) {
        None => path.into(),
        Some(dir) => {
            let slash: &[u8] = if dir.path.ends_with(b"/") { b"" } else { b"/" };
            let rest = path.strip_prefix(b"./").unwrap_or(path);
            [&dir.path[..], slash, rest].concat().into()
        }
    }
}

#[inline]
fn about<'a>(ev: &Event<'a>) -> About<'a> {
    let (mut path, mut fd, mut dir) = (None, None, None);
    for (i, arg) in ev.schema.args.iter().enumerate() {
        // Others cannot be any of these, whatever their values are.
        let may_be = matches!(
            arg.ty,
            Type::Int(Int { fmt: Fmt::Fd | Fmt::Dirfd, .. }) | Type::Str(StrKind::Path) | Type::Switch { .. }
        );
        match if may_be { ev.resolve(i) } else { None } {
            Some((Type::Int(Int { fmt: Fmt::Fd, .. }), _)) => {
                fd = fd.or(Some(ev.arg(i) as i32).filter(|&fd| fd >= 0));
            }
            Some((Type::Int(Int { fmt: Fmt::Dirfd, .. }), _)) => dir = Some(ev.arg(i) as i32),
            Some((Type::Str(StrKind::Path), _))
                if path.is_none() && !NOT_WORKED_ON.contains(&(ev.schema.name, arg.name)) =>
            {
                path = Some(given(ev, i, dir));
            }
            _ => {}
        }
    }
    let fd = match (fd, made(ev), dir) {
        (Some(fd), _, _) | (None, None, Some(fd)) => Descriptor::Old(fd),
        (None, Some(fd), _) => Descriptor::Made(fd),
        (None, None, None) => Descriptor::None,
    };
    About { path, fd }
}

/// The path that is argument `i`, with the directory's descriptor before it.
fn given<'a>(ev: &Event<'a>, i: usize, dir: Option<i32>) -> Given<'a> {
    let read = matches!(ev.cap(i), Cap::Whole | Cap::Cut);
    let bytes = ev.tail(i, false).or_else(|| ev.tail(i, true)).map(|t| t.bytes).filter(|_| read);
    match (bytes, dir) {
        (Some([]), Some(dir)) => Given::Dir(dir),
        // Without a path, the directory itself.
        (None, Some(dir)) if ev.arg(i) == 0 => Given::Dir(dir),
        (None | Some([]), _) => Given::Unread,
        (Some(path), _) => {
            let file = !NO_FILES.contains(&ev.schema.name);
            Given::Path(path, file.then_some(dir.unwrap_or(AT_FDCWD)))
        }
    }
}

fn made(ev: &Event<'_>) -> Option<i32> {
    let is_fd = || matches!(ev.ret_type(), Ret::Int(Int { fmt: Fmt::Fd, .. }));
    (ev.ret() >= 0 && is_fd() && ev.errno().is_none()).then(|| ev.ret() as i32).filter(|&fd| fd >= 0)
}
