//! `open`: descriptors that were opened and not closed, by the stack that opened them.
//!
//! ```text
//! 503 opened, 491 closed, 12 still open, from 2 places
//!
//! 11 open, the oldest for 3.20s: openat(AT_FDCWD, "/etc/hosts", O_RDONLY) = 14
//!    4711 (app): 4, 5, 6, 7, 8, 9, 10, 11 and 3 more
//!  > /usr/lib/libc.so.6(open64) open64.c:41
//!  > /usr/bin/app(load_hosts) app.c:12
//! ```
//!
//! A copy (dup, fcntl) counts where it was made. A child has the descriptors of its parent, which it has not opened: they are not shown
//! again. A program that is executed has those without close-on-exec. Descriptors that were open before the trace, and those received in
//! messages, are not known.

use crate::options::{Options, Prefix};
use crate::profile::words::ascii;
use crate::profile::{Frame, FrameId, StackId, Stacks, Unit};
use crate::stack::{Place, frames, line};
use crate::units::duration;
use crate::{View, text};
use events::names::Names;
use events::schema::{Ret, Schema};
use events::traces::own;
use events::types::{Fmt, Mem, Type};
use events::{Event, stacks};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Places, descriptors and processes of a place that are shown.
const MOST_PLACES: usize = 100;
const MOST_SHOWN: usize = 8;
/// Descriptors that are remembered: a hostile program has no more of them at a time than the kernel allows, but many processes may.
const MOST_OPEN: usize = 1 << 20;

/// `CLONE_THREAD`, `CLONE_FILES` (`include/uapi/linux/sched.h`); `O_CLOEXEC`; `CLOSE_RANGE_CLOEXEC`; `F_DUPFD`, `F_SETFD`,
/// `F_DUPFD_CLOEXEC` (`include/uapi/linux/fcntl.h`).
const CLONE_THREAD: u64 = 0x10000;
const CLONE_FILES: u64 = 0x400;
const O_CLOEXEC: u64 = 0o2_000_000;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const F_DUPFD: u64 = 0;
const F_SETFD: u64 = 2;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// An open descriptor.
struct Open {
    time: u64,
    stack: StackId,
    call: &'static Schema,
    text: String,
    comm: String,
    cloexec: bool,
}

/// The view.
pub struct OpenFiles {
    /// By the table of descriptors, which is called after a process, and the descriptor.
    open: HashMap<(u32, i32), Open>,
    /// Processes that use another one's table.
    shared: HashMap<u32, u32>,
    stacks: Stacks,
    opened: u64,
    closed: u64,
    not_held: u64,
    lost: u64,
    last: u64,
}

impl Default for OpenFiles {
    fn default() -> OpenFiles {
        let stacks = Stacks::new(Unit::Events);
        let (open, shared) = (HashMap::new(), HashMap::new());
        OpenFiles { open, shared, stacks, opened: 0, closed: 0, not_held: 0, lost: 0, last: 0 }
    }
}

impl OpenFiles {
    fn table(&self, pid: u32) -> u32 {
        self.shared.get(&pid).copied().unwrap_or(pid)
    }

    fn close(&mut self, pid: u32, is: impl Fn(i32, &Open) -> bool) {
        let table = self.table(pid);
        let before = self.open.len();
        self.open.retain(|(of, fd), open| *of != table || !is(*fd, open));
        self.closed += (before - self.open.len()) as u64;
    }

    fn set_cloexec(&mut self, pid: u32, is: impl Fn(i32) -> bool, set: bool) {
        let table = self.table(pid);
        let chosen = self.open.iter_mut().filter(|((of, fd), _)| *of == table && is(*fd));
        chosen.for_each(|(_, open)| open.cloexec = set);
    }

    /// What a call closes.
    fn call(&mut self, ev: &Event<'_>) {
        if ev.schema.args.is_empty() {
            return;
        }
        let (pid, first) = (ev.pid(), ev.arg(0));
        match ev.schema.name {
            "close" => {
                let key = (self.table(pid), first as i32);
                self.closed += u64::from(self.open.remove(&key).is_some());
            }
            "close_range" => {
                let (first, last) = (first as u32, ev.arg(1) as u32);
                let inside = move |fd: i32| u32::try_from(fd).is_ok_and(|fd| (first..=last).contains(&fd));
                match ev.arg(2) & CLOSE_RANGE_CLOEXEC {
                    0 => self.close(pid, |fd, _| inside(fd)),
                    _ => self.set_cloexec(pid, inside, true),
                }
            }
            "fcntl" if ev.arg(1) == F_SETFD => self.set_cloexec(pid, |fd| fd == first as i32, ev.arg(2) & 1 != 0),
            _ => {}
        }
    }

    /// The descriptors that a call has made.
    fn made(ev: &Event<'_>) -> Vec<i32> {
        let mut made = Vec::new();
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

    fn add(&mut self, ev: &Event<'_>, names: &dyn Names, made: &[i32]) {
        let mut ids: Vec<FrameId> = Vec::new();
        for stack in stacks::of(ev, names).filter(|s| !s.kernel) {
            frames(ev, &stack, names, &mut |p| ids.push(self.stacks.frame(&p.frame)));
        }
        let stack = self.stacks.stack(&ids);
        let opts = Options { prefix: Prefix::Never, column: 0, ..Options::default() };
        let mut line = Vec::new();
        text::complete(ev, names, &opts, 0, &mut line);
        let text = String::from_utf8_lossy(&line).into_owned();
        let comm = names.called(ev.tid()).into_owned();
        let cloexec = is_cloexec(ev);
        for fd in made {
            self.opened += 1;
            let key = (self.table(ev.pid()), *fd);
            if self.open.len() >= MOST_OPEN && !self.open.contains_key(&key) {
                self.not_held += 1;
                continue;
            }
            let (text, comm) = (text.clone(), comm.clone());
            let open = Open { time: ev.time(), stack, call: ev.schema, text, comm, cloexec };
            // What had this number before was closed: by dup2, or where nobody saw it.
            self.closed += u64::from(self.open.insert(key, open).is_some());
        }
    }
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

impl View for OpenFiles {
    fn see(&mut self, ev: &Event<'_>) {
        self.last = self.last.max(ev.time());
        let pid = ev.pid();
        if ev.is_syscall() {
            if ev.errno().is_none() {
                self.call(ev);
            }
            return;
        }
        match ev.schema.name {
            "fork" => {
                let (child, flags) = (ev.value_of("child") as u32, ev.value_of("flags"));
                if flags & CLONE_THREAD == 0 && flags & CLONE_FILES != 0 {
                    let table = self.table(pid);
                    self.shared.insert(child, table);
                }
            }
            "exec" => {
                self.shared.remove(&pid);
                self.close(pid, |_, open| open.cloexec);
            }
            _ => {}
        }
    }

    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, _: &mut Vec<u8>) {
        if ev.is_syscall() && ev.errno().is_none() && ev.ret() >= 0 && ev.caps() & events::layout::CAP_NO_RESULT == 0 {
            let made = OpenFiles::made(ev);
            if !made.is_empty() {
                self.add(ev, names, &made);
            }
        }
    }

    fn lost(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        /// Of one place: descriptors by process, the oldest, and the last call.
        struct Group<'o> {
            by_process: BTreeMap<u32, (String, Vec<i32>)>,
            n: usize,
            oldest: u64,
            last: (u64, &'o str),
        }
        let mut groups: HashMap<(StackId, u16), Group<'_>> = HashMap::new();
        for ((table, fd), open) in &self.open {
            let group = groups.entry((open.stack, open.call.base)).or_insert_with(|| Group {
                by_process: BTreeMap::new(),
                n: 0,
                oldest: open.time,
                last: (0, ""),
            });
            let process = group.by_process.entry(*table).or_insert_with(|| (open.comm.clone(), Vec::new()));
            process.1.push(*fd);
            group.n += 1;
            group.oldest = group.oldest.min(open.time);
            if open.time >= group.last.0 {
                group.last = (open.time, &open.text);
            }
        }
        let places = groups.len();
        let (opened, closed, still) = (self.opened, self.closed, self.open.len());
        let s = if places == 1 { "place" } else { "places" };
        let mut text = format!("{opened} opened, {closed} closed, {still} still open");
        if still > 0 {
            text += &format!(", from {places} {s}");
        }
        if self.not_held > 0 {
            text += &format!("; {} did not fit and are not shown", self.not_held);
        }
        if self.lost > 0 {
            text += &format!("; {} events were lost: some may be closed", self.lost);
        }
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
        let mut all: Vec<_> = groups.into_iter().collect();
        all.sort_by_key(|((stack, call), g)| (Reverse(g.n), g.oldest, *stack, *call));
        for ((stack, _), group) in all.iter().take(MOST_PLACES) {
            let age = duration(self.last.saturating_sub(group.oldest));
            let head = if group.n == 1 {
                format!("\n1 open, for {age}: ")
            } else {
                format!("\n{} open, the oldest for {age}: ", group.n)
            };
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(group.last.1.as_bytes());
            out.push(b'\n');
            for (pid, (comm, fds)) in group.by_process.iter().take(MOST_SHOWN) {
                let mut fds = fds.clone();
                fds.sort_unstable();
                let shown: Vec<String> = fds.iter().take(MOST_SHOWN).map(i32::to_string).collect();
                let more = fds.len().saturating_sub(MOST_SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let comm = if comm.is_empty() { String::new() } else { format!(" ({})", ascii(comm)) };
                out.extend_from_slice(format!("   {}{comm}: {}{more}\n", own(*pid), shown.join(", ")).as_bytes());
            }
            let more = group.by_process.len().saturating_sub(MOST_SHOWN);
            if more > 0 {
                out.extend_from_slice(format!("   and in {more} more processes\n").as_bytes());
            }
            for frame in self.stacks.frames_of(*stack) {
                let frame: Frame<'_> = self.stacks.frame_at(*frame);
                line(&Place { frame, offset: None, address: None }, true, out);
            }
        }
        let more = places.saturating_sub(MOST_PLACES);
        if more > 0 {
            out.extend_from_slice(format!("\n{more} more {}\n", if more == 1 { "place" } else { "places" }).as_bytes());
        }
    }
}
