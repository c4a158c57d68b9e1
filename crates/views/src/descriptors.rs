//! Descriptors that processes have opened, as their calls say.
//!
//! A child has the descriptors of its parent, which it has not opened: they are not there again. A program that is executed has those without
//! close-on-exec. Descriptors that were open before the first event, and those received in messages, are not known.

use events::Event;
use events::layout::CAP_NO_RESULT;
use events::schema::Ret;
use events::types::{Fmt, Mem, Type};
use std::collections::HashMap;

/// `CLONE_THREAD`, `CLONE_FILES` (`include/uapi/linux/sched.h`); `O_CLOEXEC`; `CLOSE_RANGE_CLOEXEC`; `F_DUPFD`, `F_SETFD`,
/// `F_DUPFD_CLOEXEC` (`include/uapi/linux/fcntl.h`).
const CLONE_THREAD: u64 = 0x10000;
const CLONE_FILES: u64 = 0x400;
const O_CLOEXEC: u64 = 0o2_000_000;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const F_DUPFD: u64 = 0;
const F_SETFD: u64 = 2;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// Descriptors that are remembered: a hostile program has no more of them at a time than the kernel allows, but many processes may.
const MOST: usize = 1 << 20;

/// What happened to a number that a call has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was not open.
    New,
    /// What had it before was closed: by dup2, or where nobody saw it.
    Instead,
    /// There are too many.
    NotHeld,
}

/// Those that are open, each with what its user wants to know of it.
#[derive(Debug)]
pub struct Descriptors<T> {
    /// By the table of descriptors, which is called after a process, and the number; whether executed programs get it.
    open: HashMap<(u32, i32), (bool, T)>,
    /// Processes that use another one's table.
    shared: HashMap<u32, u32>,
}

impl<T> Default for Descriptors<T> {
    fn default() -> Descriptors<T> {
        Descriptors { open: HashMap::new(), shared: HashMap::new() }
    }
}

impl<T> Descriptors<T> {
    /// The table that a process uses.
    pub fn table(&self, pid: u32) -> u32 {
        self.shared.get(&pid).copied().unwrap_or(pid)
    }

    /// All of them: table, number, what is known.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (u32, i32, &T)> {
        self.open.iter().map(|((table, fd), (_, of))| (*table, *fd, of))
    }

    /// Those that are closed if a process executes a program, the lowest first.
    pub fn closed_on_exec(&self, pid: u32) -> Vec<(i32, &T)> {
        // Before that, it gets a table of its own, in which none is known.
        if self.shared.contains_key(&pid) {
            return Vec::new();
        }
        let of = self.open.iter().filter(|((table, _), (cloexec, _))| *table == pid && *cloexec);
        let mut all: Vec<(i32, &T)> = of.map(|((_, fd), (_, of))| (*fd, of)).collect();
        all.sort_unstable_by_key(|(fd, _)| *fd);
        all
    }

    /// How many an event closes, in the table of its process.
    pub fn closed_by(&mut self, ev: &Event<'_>) -> u64 {
        let pid = ev.pid();
        if ev.is_syscall() {
            return if ev.errno().is_none() { self.call(ev) } else { 0 };
        }
        match ev.schema.name {
            "fork" => {
                let (child, flags) = (ev.value_of("child") as u32, ev.value_of("flags"));
                if flags & CLONE_THREAD == 0 && flags & CLONE_FILES != 0 {
                    let table = self.table(pid);
                    self.shared.insert(child, table);
                }
                0
            }
            "exec" => {
                self.shared.remove(&pid);
                self.close(pid, |_, cloexec| cloexec)
            }
            _ => 0,
        }
    }

    /// Notes one that a call has opened.
    pub fn add(&mut self, ev: &Event<'_>, fd: i32, of: T) -> Added {
        let key = (self.table(ev.pid()), fd);
        if self.open.len() >= MOST && !self.open.contains_key(&key) {
            return Added::NotHeld;
        }
        match self.open.insert(key, (is_cloexec(ev), of)) {
            Some(_) => Added::Instead,
            None => Added::New,
        }
    }

    fn close(&mut self, pid: u32, is: impl Fn(i32, bool) -> bool) -> u64 {
        let table = self.table(pid);
        let before = self.open.len();
        self.open.retain(|(of, fd), (cloexec, _)| *of != table || !is(*fd, *cloexec));
        (before - self.open.len()) as u64
    }

    fn set_cloexec(&mut self, pid: u32, is: impl Fn(i32) -> bool, set: bool) {
        let table = self.table(pid);
        let chosen = self.open.iter_mut().filter(|((of, fd), _)| *of == table && is(*fd));
        chosen.for_each(|(_, (cloexec, _))| *cloexec = set);
    }

    /// What a call closes.
    fn call(&mut self, ev: &Event<'_>) -> u64 {
        if ev.schema.args.is_empty() {
            return 0;
        }
        let (pid, first) = (ev.pid(), ev.arg(0));
        match ev.schema.name {
            "close" => {
                let key = (self.table(pid), first as i32);
                u64::from(self.open.remove(&key).is_some())
            }
            "close_range" => {
                let (first, last) = (first as u32, ev.arg(1) as u32);
                let inside = move |fd: i32| u32::try_from(fd).is_ok_and(|fd| (first..=last).contains(&fd));
                if ev.arg(2) & CLOSE_RANGE_CLOEXEC == 0 {
                    return self.close(pid, |fd, _| inside(fd));
                }
                self.set_cloexec(pid, inside, true);
                0
            }
            "fcntl" if ev.arg(1) == F_SETFD => {
                self.set_cloexec(pid, |fd| fd == first as i32, ev.arg(2) & 1 != 0);
                0
            }
            _ => 0,
        }
    }
}

/// The descriptors that a call has made.
pub fn made(ev: &Event<'_>) -> Vec<i32> {
    let mut made = Vec::new();
    let is_done = ev.is_syscall() && ev.errno().is_none() && ev.ret() >= 0 && ev.caps() & CAP_NO_RESULT == 0;
    if !is_done {
        return made;
    }
    let copies = !matches!(ev.schema.name, "fcntl") || [F_DUPFD, F_DUPFD_CLOEXEC].contains(&ev.arg(1));
    // dup2 of a descriptor to itself makes none.
    let itself = ev.schema.name == "dup2" && ev.arg(0) as i64 == ev.ret();
    let returns = matches!(ev.ret_type(), Ret::Int(i) if i.fmt == Fmt::Fd) || ev.schema.name == "fcntl";
    if returns && copies && !itself {
        made.push(ev.ret() as i32);
    }
    for (i, a) in ev.schema.args.iter().enumerate() {
        if let Type::Ptr { elem: Mem::Int(int), .. } = a.ty
            && int.fmt == Fmt::Fd
            && let Some(tail) = ev.tail(i, true)
        {
            made.extend(tail.bytes.chunks_exact(4).map(|fd| int.read(fd) as i32));
        }
    }
    made
}

/// Whether a call makes descriptors that executed programs do not get.
fn is_cloexec(ev: &Event<'_>) -> bool {
    /// `MFD_CLOEXEC`, `IN_CLOEXEC` and others are `O_CLOEXEC`, but for these (`include/uapi/linux/memfd.h`, `fanotify.h`, `perf_event.h`).
    const LOW: [(&str, u64); 3] = [("memfd_create", 1), ("fanotify_init", 1), ("perf_event_open", 8)];
    if ev.schema.name == "fcntl" {
        return ev.arg(1) == F_DUPFD_CLOEXEC;
    }
    let flags = ev.schema.args.iter().position(|a| matches!(a.name, "flags" | "type")).map_or(0, |i| ev.arg(i));
    let low = LOW.iter().find(|(name, _)| *name == ev.schema.name);
    match low {
        Some((_, bit)) => flags & bit != 0,
        // Those of bpf(2), pidfd_open(2) and their like always are.
        None => flags & O_CLOEXEC != 0 || ["bpf", "pidfd_open", "pidfd_getfd", "seccomp"].contains(&ev.schema.name),
    }
}
