//! The names of descriptors, per process, derived from events alone.
//!
//! Seeded by `process:fd` events; kept by the calls that open, copy, pass, inherit and close. A view asks it through
//! [`Names`] and so never asks the system. `before` an event is shown the table learns what the event makes known (a new
//! descriptor's name is shown after the result); `after` it, what the event ends (a closed descriptor still has its name).

mod operations;
mod rings;

use crate::pipeline::threads::Threads;
use events::event::Event;
use events::hash::Table;
use events::io_uring;
use events::names::{AT_FDCWD, FdName, Names};
use events::schema::Ret;
use events::types::{Fmt, Int, Mem, Type};
use rings::Rings;
use std::rc::Rc;
use std::sync::LazyLock;

#[derive(Clone, Debug)]
struct Open {
    name: FdName,
    cloexec: bool,
}

type Files = Table<i32, Open>;

/// The table.
#[derive(Default)]
pub struct FdTable {
    /// Descriptors by process; shared by processes that were cloned with CLONE_FILES.
    files: Table<u32, Rc<std::cell::RefCell<Files>>>,
    /// Names handed out by [`Names::fd`], which lends: a copy of the shared tables' entries, per process and descriptor.
    view: Table<(u32, i32), FdName>,
    /// What the call that is being shown has made; joins the table after it.
    made: Table<(u32, i32), Open>,
    rings: Rings,
    threads: Threads,
    enabled: bool,
}

const O_CLOEXEC: u64 = 0o2_000_000;
const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x10000;

/// Whether a call makes, copies or closes descriptors, or changes what paths are relative to: most are none of these.
#[inline]
fn touches(ev: &Event<'_>) -> bool {
    const BY_NAME: [&str; 10] = [
        "dup",
        "dup2",
        "dup3",
        "fcntl",
        "chdir",
        "fchdir",
        "close",
        "close_range",
        "io_uring_enter",
        "io_uring_register",
    ];
    static TOUCH: LazyLock<Vec<bool>> = LazyLock::new(|| {
        let mut touch = vec![false; usize::from(u16::MAX) + 1];
        for schema in events::registry::syscalls() {
            let is_fd = |int: &Int| int.fmt == Fmt::Fd;
            let returns = |ret: Ret| matches!(ret, Ret::Int(int) if is_fd(&int));
            let makes = returns(schema.ret)
                || schema.args.iter().any(|a| match &a.ty {
                    Type::Ptr { elem: Mem::Int(int), .. } => is_fd(int),
                    // What another argument decides may be a result.
                    Type::Switch { .. } => true,
                    _ => false,
                });
            touch[usize::from(schema.base)] |= makes || BY_NAME.contains(&schema.name);
        }
        touch
    });
    TOUCH[usize::from(ev.schema.base)]
}

impl FdTable {
    /// Keeps names from now on. Without this call the table stays empty and costs nothing.
    pub fn enable(&mut self) {
        self.enabled = true;
    }

    fn files(&mut self, pid: u32) -> &Rc<std::cell::RefCell<Files>> {
        self.files.entry(pid).or_default()
    }

    fn set(&mut self, pid: u32, fd: i32, name: FdName, cloexec: bool) {
        self.view.insert((pid, fd), name.clone());
        let shared = Rc::clone(self.files(pid));
        shared.borrow_mut().insert(fd, Open { name, cloexec });
        if Rc::strong_count(&shared) > 2 {
            self.refresh(&shared);
        }
    }

    /// Brings the lent names of every process that shares `files` up to date.
    fn refresh(&mut self, files: &Rc<std::cell::RefCell<Files>>) {
        let pids: Vec<u32> = self.files.iter().filter(|(_, f)| Rc::ptr_eq(f, files)).map(|(p, _)| *p).collect();
        for pid in pids {
            self.view.retain(|(p, _), _| *p != pid);
            for (fd, open) in files.borrow().iter() {
                self.view.insert((pid, *fd), open.name.clone());
            }
        }
    }

    fn remove(&mut self, pid: u32, keep: impl Fn(i32, &Open) -> bool) {
        let shared = Rc::clone(self.files(pid));
        shared.borrow_mut().retain(|fd, o| keep(*fd, o));
        self.refresh(&shared);
    }

    fn copy(&mut self, pid: u32, from: i32, to: i32, cloexec: bool) {
        if let Some(name) = self.view.get(&(pid, from)).cloned() {
            self.make(pid, to, name, cloexec);
        }
    }

    /// A descriptor that the current call has made, unless the backend has just reported a better name.
    fn make(&mut self, pid: u32, fd: i32, name: FdName, cloexec: bool) {
        self.made.entry((pid, fd)).or_insert(Open { name, cloexec }).cloexec = cloexec;
    }

    /// Learns what `ev` makes known.
    #[inline]
    pub fn before(&mut self, ev: &Event<'_>) {
        self.threads.before(ev);
        match (ev.is_syscall(), ev.schema.name) {
            (false, "exec") if self.enabled => {
                self.unshare(ev.pid());
                // The kernel makes descriptors of rings with O_CLOEXEC.
                self.rings.forget(|id| id.0 == ev.pid());
                self.remove(ev.pid(), |_, o| !o.cloexec);
            }
            (false, "fork") => self.forked(ev),
            (false, "fd") if self.enabled => {
                let name = FdName { path: ev.bytes_of("path").to_vec(), detail: ev.bytes_of("detail").to_vec() };
                let (fd, flags) = (ev.value_of("fd") as i32, ev.value_of("flags"));
                let cloexec = flags & 1 != 0;
                // 2: the call that follows has made it.
                if flags & 2 != 0 {
                    self.made.insert((ev.pid(), fd), Open { name, cloexec });
                } else {
                    self.set(ev.pid(), fd, name, cloexec);
                }
            }
            (true, _) if self.enabled && touches(ev) && ev.ret() >= 0 && ev.errno().is_none() => self.call(ev),
            (false, _) if self.enabled && ev.is_span() && io_uring::is_operation(ev.schema) => self.operation(ev),
            _ => {}
        }
    }

    fn forked(&mut self, ev: &Event<'_>) {
        let (child, flags) = (ev.value_of("child") as u32, ev.value_of("flags"));
        if !self.enabled || flags & CLONE_THREAD != 0 {
            return;
        }
        let files = Rc::clone(self.files(ev.pid()));
        let files =
            if flags & CLONE_FILES != 0 { files } else { Rc::new(std::cell::RefCell::new(files.borrow().clone())) };
        self.files.insert(child, Rc::clone(&files));
        self.refresh(&files);
    }

    /// An execve gives the process a table of its own.
    fn unshare(&mut self, pid: u32) {
        let own = self.files(pid).borrow().clone();
        self.files.insert(pid, Rc::new(std::cell::RefCell::new(own)));
    }

    fn call(&mut self, ev: &Event<'_>) {
        let (pid, ret) = (ev.pid(), ev.ret() as i32);
        let arg = |i: usize| ev.arg(i);
        match ev.schema.name {
            "dup" => self.copy(pid, arg(0) as i32, ret, false),
            "dup2" if arg(0) as i32 != ret => self.copy(pid, arg(0) as i32, ret, false),
            "dup3" => self.copy(pid, arg(0) as i32, ret, arg(2) & O_CLOEXEC != 0),
            // F_DUPFD 0, F_DUPFD_CLOEXEC 1030, F_SETFD 2 (include/uapi/linux/fcntl.h).
            "fcntl" if arg(1) == 0 => self.copy(pid, arg(0) as i32, ret, false),
            "fcntl" if arg(1) == 1030 => self.copy(pid, arg(0) as i32, ret, true),
            "fcntl" if arg(1) == 2 => {
                let files = Rc::clone(self.files(pid));
                if let Some(o) = files.borrow_mut().get_mut(&(arg(0) as i32)) {
                    o.cloexec = arg(2) & 1 != 0;
                }
            }
            "open" | "creat" | "openat" | "openat2" => self.opened(ev, ret),
            "io_uring_enter" => self.rings.entered(ev),
            "io_uring_register" => self.registered(ev),
            "io_uring_setup" => {
                self.rings.made(pid, ret);
                self.made_otherwise(ev, ret);
            }
            _ => self.made_otherwise(ev, ret),
        }
    }

    /// A path as seen from directory `dir` of process `pid`; as it is, where the current directory is not known, and none in another one
    /// that is not known.
    fn resolve(&self, pid: u32, dir: i32, path: &[u8]) -> Option<Vec<u8>> {
        let mut full = match self.view.get(&(pid, dir)) {
            _ if path.starts_with(b"/") => return Some(path.to_vec()),
            Some(name) => name.path.clone(),
            None if dir == AT_FDCWD => return Some(path.to_vec()),
            None => return None,
        };
        if !full.ends_with(b"/") {
            full.push(b'/');
        }
        full.extend_from_slice(path.strip_prefix(b"./").unwrap_or(path));
        Some(full)
    }

    /// Names a descriptor that the current call has made.
    fn learn(&mut self, pid: u32, fd: i32, path: Vec<u8>) {
        self.make(pid, fd, FdName { path, detail: Vec::new() }, false);
    }

    /// The path that is opened.
    fn path_of(&self, ev: &Event<'_>) -> Option<Vec<u8>> {
        let dir = ev.schema.arg("dfd").map_or(AT_FDCWD, |i| ev.arg(i) as i32);
        self.resolve(ev.pid(), dir, ev.bytes_of("filename"))
    }

    fn opened(&mut self, ev: &Event<'_>, fd: i32) {
        if let Some(path) = self.path_of(ev) {
            self.learn(ev.pid(), fd, path);
        }
    }

    fn made_otherwise(&mut self, ev: &Event<'_>, ret: i32) {
        let pid = ev.pid();
        let kind: &[u8] = match ev.schema.name {
            "socket" | "accept" | "accept4" | "socketpair" => b"socket:[?]",
            "pipe" | "pipe2" => b"pipe:[?]",
            "epoll_create" | "epoll_create1" => b"anon_inode:[eventpoll]",
            "eventfd" | "eventfd2" => b"anon_inode:[eventfd]",
            _ => b"anon_inode:[?]",
        };
        if matches!(ev.ret_type(), Ret::Int(i) if i.fmt == Fmt::Fd) {
            self.learn(pid, ret, kind.to_vec());
        }
        for (i, a) in ev.schema.args.iter().enumerate() {
            if let Type::Ptr { elem: Mem::Int(int), .. } = a.ty
                && int.fmt == Fmt::Fd
                && let Some(t) = ev.tail(i, true)
            {
                for fd in t.bytes.chunks_exact(4) {
                    self.learn(pid, int.read(fd) as i32, kind.to_vec());
                }
            }
        }
    }

    /// What was made by what was shown joins the table.
    fn keep_made(&mut self) {
        if !self.made.is_empty() {
            for ((pid, fd), open) in std::mem::take(&mut self.made) {
                self.set(pid, fd, open.name, open.cloexec);
            }
        }
    }

    fn close(&mut self, pid: u32, fd: i32) {
        self.rings.close(pid, fd);
        self.view.remove(&(pid, fd));
        let files = Rc::clone(self.files(pid));
        files.borrow_mut().remove(&fd);
        if Rc::strong_count(&files) > 2 {
            self.refresh(&files);
        }
    }

    /// Forgets what `ev` ends.
    #[inline]
    pub fn after(&mut self, ev: &Event<'_>) {
        self.threads.after(ev);
        if !ev.is_syscall() {
            if ev.schema.name == "exit" && ev.tid() == ev.pid() {
                self.files.remove(&ev.pid());
                self.rings.forget(|id| id.0 == ev.pid());
                self.view.retain(|(p, _), _| *p != ev.pid());
            } else if self.enabled && ev.is_span() && io_uring::is_operation(ev.schema) {
                self.operation_ended(ev);
            }
            return;
        }
        if !self.enabled || ev.errno().is_some() {
            return;
        }
        self.keep_made();
        if !touches(ev) {
            return;
        }
        match ev.schema.name {
            "chdir" => {
                if let Some(path) = self.resolve(ev.pid(), AT_FDCWD, ev.bytes_of("filename")) {
                    self.set(ev.pid(), AT_FDCWD, FdName { path, detail: Vec::new() }, false);
                }
            }
            "fchdir" => {
                if let Some(name) = self.view.get(&(ev.pid(), ev.arg(0) as i32)).cloned() {
                    self.set(ev.pid(), AT_FDCWD, name, false);
                }
            }
            "close" => self.close(ev.pid(), ev.arg(0) as i32),
            // CLOSE_RANGE_CLOEXEC is 4 (include/uapi/linux/close_range.h).
            "close_range" => {
                let (first, last) = (ev.arg(0) as u32, ev.arg(1) as u32);
                let inside = |fd: i32| fd >= 0 && (first..=last).contains(&(fd as u32));
                if ev.arg(2) & 4 == 0 {
                    self.remove(ev.pid(), |fd, _| !inside(fd));
                } else {
                    let files = Rc::clone(self.files(ev.pid()));
                    files.borrow_mut().iter_mut().filter(|(fd, _)| inside(**fd)).for_each(|(_, o)| o.cloexec = true);
                }
            }
            _ => {}
        }
    }
}

impl Names for FdTable {
    fn fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.view.get(&(pid, fd))
    }
    fn new_fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.made.get(&(pid, fd)).map(|o| &o.name).or_else(|| self.fd(pid, fd))
    }
    fn registered(&self, index: i32) -> Option<&FdName> {
        self.rings.file(index)
    }
    fn comm(&self, pid: u32) -> Option<&[u8]> {
        self.threads.comm(pid)
    }
    fn ids(&self, tid: u32) -> (Option<u32>, Option<u32>) {
        self.threads.ids(tid)
    }
}
