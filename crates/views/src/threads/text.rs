//! Threads as text.

use super::{Actor, Deadlock, Found, Frame, Process, Thread, Wait};
use crate::escape;
use crate::profile::name::base;
use crate::units;

/// How threads are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Escape sequences for colour.
    pub colour: bool,
    /// Threads with the same stack are each shown alone.
    pub each: bool,
    /// Inlined functions are left out.
    pub no_inline: bool,
}

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const FAINT: &str = "\x1b[2m";
const END: &str = "\x1b[0m";

/// Appends the threads of all processes: deadlocks first, then each process.
pub fn write(found: &Found, deadlocks: &[Deadlock], style: Style, out: &mut Vec<u8>) {
    let w = &mut Writer { style, out };
    for d in deadlocks {
        w.deadlock(d, &found.processes);
    }
    let dead = |tid: i32| deadlocks.iter().any(|d| d.circle.contains(&tid));
    let mut first = true;
    for p in found.processes.iter().filter(|p| !p.other || p.threads.iter().any(|t| dead(t.tid))) {
        if !std::mem::take(&mut first) {
            w.text("\n");
        }
        w.process(p);
    }
}

struct Writer<'o> {
    style: Style,
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// A name that another program has chosen.
    fn name(&mut self, name: &str) {
        escape::line(name.as_bytes(), self.out);
    }

    fn painted(&mut self, colour: &str, text: &str) {
        match self.style.colour {
            true => self.text(&format!("{colour}{text}{END}")),
            false => self.text(text),
        }
    }

    fn who(&mut self, id: i32, name: &str) {
        self.text(&id.to_string());
        if !name.is_empty() {
            self.text(" (");
            self.name(name);
            self.text(")");
        }
    }

    fn deadlock(&mut self, d: &Deadlock, processes: &[Process]) {
        let thread = |tid: i32| processes.iter().flat_map(|p| &p.threads).find(|t| t.tid == tid);
        let what = match (d.likely, d.circle.len()) {
            (false, 1) => "deadlock: a thread waits for itself",
            (true, 1) => "likely deadlock: a thread waits for itself",
            (false, n) => &format!("deadlock: {n} threads wait for one another"),
            (true, n) => &format!("likely deadlock: {n} threads wait for one another"),
        };
        self.painted(RED, what);
        self.text("\n");
        for t in d.circle.iter().filter_map(|tid| thread(*tid)) {
            self.text("  ");
            self.who(t.tid, &t.name);
            if let Some(wait) = &t.wait {
                self.text(" ");
                self.wait(wait, !wait.likely);
            }
            self.text("\n");
        }
        let likely = d.circle.iter().filter_map(|tid| thread(*tid)?.wait.as_ref()).find(|w| w.likely);
        if let Some(wait) = likely.filter(|w| !w.note.is_empty()) {
            self.text("  likely: ");
            self.name(&wait.note);
            self.text("\n");
        }
        if !d.behind.is_empty() {
            self.text("  behind them: ");
            for (nth, t) in d.behind.iter().filter_map(|tid| thread(*tid)).enumerate() {
                self.text(if nth > 0 { ", " } else { "" });
                self.who(t.tid, &t.name);
            }
            self.text("\n");
        }
        self.text("\n");
    }

    fn process(&mut self, p: &Process) {
        let n = p.threads.len();
        let head = format!("{n} thread{}", if n == 1 { "" } else { "s" });
        if self.style.colour {
            self.text(BOLD);
        }
        self.who(p.pid, &p.name);
        self.text(": ");
        self.text(&head);
        if let Some(own) = p.own {
            self.text(&format!(", in another pid namespace as {own}"));
        }
        self.text(if self.style.colour { "\x1b[0m\n" } else { "\n" });
        let mut shown = vec![false; n];
        for (at, t) in p.threads.iter().enumerate() {
            if shown.get(at) == Some(&true) {
                continue;
            }
            let mut same = vec![t];
            for (later, other) in p.threads.iter().enumerate().skip(at + 1) {
                if !self.style.each && is_alike(t, other) {
                    same.push(other);
                    if let Some(shown) = shown.get_mut(later) {
                        *shown = true;
                    }
                }
            }
            self.text("\n");
            self.threads(&same);
        }
    }

    /// Threads that are shown as one.
    fn threads(&mut self, same: &[&Thread]) {
        let Some((t, others)) = same.split_first() else { return };
        self.who(t.tid, &t.name);
        for other in others {
            self.text(", ");
            self.who(other.tid, if other.name == t.name { "" } else { &other.name });
        }
        self.text(if others.is_empty() { " " } else { ":\n    " });
        self.doing(t);
        if let Some((least, most)) = times(same) {
            self.text(", for ");
            self.text(&units::duration(least));
            if least != most {
                self.text(" to ");
                self.text(&units::duration(most));
            }
        }
        self.text("\n");
        if let Some(wait) = &t.wait {
            self.text("    ");
            self.wait(wait, true);
            self.text("\n");
        }
        let no_inline = self.style.no_inline;
        let frames = t.stack.iter().filter(|f| !(no_inline && f.inlined));
        for (nth, f) in frames.enumerate() {
            self.frame(nth, f);
        }
        if let Some(why) = &t.incomplete {
            self.text("    ");
            self.painted(FAINT, &format!("({why})"));
            self.text("\n");
        }
    }

    fn doing(&mut self, t: &Thread) {
        match (&t.call, t.state) {
            (Some((_, text)), state) => {
                self.text(text);
                self.text(match state {
                    'T' => ", stopped by a signal",
                    't' => ", stopped by its tracer",
                    'D' => ", in uninterruptible sleep",
                    _ => "",
                });
            }
            (None, 'R') => self.text("running"),
            (None, 'T') => self.text("stopped by a signal"),
            (None, 't') => self.text("stopped by its tracer"),
            (None, 'Z' | 'X') => self.text("has ended"),
            (None, 'D') => self.text("in uninterruptible sleep, outside of a system call"),
            (None, _) => self.text("blocked outside of a system call"),
        }
    }

    /// What is waited for, and `noted`: what else is to be said of it.
    fn wait(&mut self, wait: &Wait, noted: bool) {
        self.text("waits for ");
        self.name(&wait.object);
        if !wait.relation.is_empty() && !wait.by.is_empty() {
            self.text(", ");
            self.text(wait.relation);
            self.text(" ");
            self.actors(&wait.by);
        }
        if noted && !wait.note.is_empty() {
            self.text(" (");
            self.name(&wait.note);
            self.text(")");
        }
    }

    fn actors(&mut self, all: &[Actor]) {
        /// Those that are named.
        const MOST: usize = 8;
        for (nth, a) in all.iter().take(MOST).enumerate() {
            self.text(if nth > 0 { ", " } else { "" });
            self.who(a.tid.unwrap_or(a.pid), &a.name);
            if !a.how.is_empty() {
                self.text(" ");
                self.name(&a.how);
            }
        }
        if all.len() > MOST {
            self.text(&format!(" and {} more", all.len() - MOST));
        }
    }

    fn frame(&mut self, nth: usize, f: &Frame) {
        self.text(&format!("    #{nth:<3}"));
        match (f.function.is_empty(), f.address) {
            (false, _) => {
                self.name(&f.function);
                if let (Some(offset), 0) = (f.offset, f.line) {
                    self.text(&format!("+{offset:#x}"));
                }
            }
            (true, Some(address)) => self.text(&format!("{address:#x}")),
            (true, None) => self.text("?"),
        }
        if !f.file.is_empty() {
            self.text(" at ");
            self.name(&f.file);
            if f.line > 0 {
                self.text(&format!(":{}", f.line));
            }
        } else if !f.module.is_empty() {
            self.text(" (");
            self.name(base(&f.module));
            self.text(")");
        }
        self.text(if f.inlined { " (inlined)" } else { "" });
        self.text(if f.guessed { " (guessed)" } else { "" });
        self.text("\n");
    }
}

/// Whether two threads are shown as one: the same stack, and the same call, for nothing of their own.
fn is_alike(a: &Thread, b: &Thread) -> bool {
    let call = |t: &Thread| t.call.as_ref().map(|(name, _)| name.clone());
    let alike = |f: &Frame, g: &Frame| (&f.function, &f.module, f.line) == (&g.function, &g.module, g.line);
    let stacks = a.stack.len() == b.stack.len() && a.stack.iter().zip(&b.stack).all(|(f, g)| alike(f, g));
    let waits = match (&a.wait, &b.wait) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b || a.kind == b.kind && a.by.is_empty() && b.by.is_empty(),
        _ => false,
    };
    a.state == b.state && call(a) == call(b) && waits && stacks && a.incomplete == b.incomplete && !a.stack.is_empty()
}

/// The shortest and the longest time for which threads have not run.
fn times(threads: &[&Thread]) -> Option<(u64, u64)> {
    let all: Vec<u64> = threads.iter().filter_map(|t| t.idle).collect();
    Some((*all.iter().min()?, *all.iter().max()?))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    fn mutex(object: &str, tid: i32, name: &str) -> Option<Wait> {
        let by = vec![Actor { pid: 1, tid: Some(tid), name: name.into(), how: String::new() }];
        Some(Wait { kind: "mutex", object: object.into(), relation: "held by", by, complete: true, ..Wait::default() })
    }

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        let module = "/usr/lib/libc.so.6".into();
        Frame { function: function.into(), file: file.into(), line, module, offset: Some(0x1b), ..Frame::default() }
    }

    fn sample() -> Found {
        let call = |text: &str| Some((text.split('(').next().unwrap_or_default().to_string(), text.to_string()));
        let lock = |tid, name: &str, wait| Thread {
            tid,
            own: None,
            name: name.into(),
            state: 'S',
            call: call("futex(0x10, FUTEX_WAIT_PRIVATE, 2, NULL)"),
            idle: Some(3_200_000_000),
            wait,
            stack: vec![frame("pthread_mutex_lock", "", 0), frame("work", "app.c", 12)],
            incomplete: None,
        };
        let idle = |tid, idle| Thread { wait: None, idle: Some(idle), ..lock(tid, "idle", None) };
        let threads = vec![
            lock(2, "a", mutex("mutex 0x10", 3, "b")),
            lock(3, "b\x1b", mutex("mutex 0x20", 2, "a")),
            idle(4, 1_000),
            idle(5, 2_000),
            Thread { tid: 6, name: "r".into(), state: 'R', incomplete: Some("why".into()), ..Thread::default() },
        ];
        let process = Process { pid: 1, own: None, name: "app".into(), threads, other: false };
        Found { processes: vec![process], stopped: 7 }
    }

    #[test]
    fn the_deadlock_comes_first_and_equal_stacks_once() {
        let found = sample();
        let mut out = Vec::new();
        write(&found, &find(&found.processes), Style::default(), &mut out);
        let expect = expect_test::expect![[r#"
            deadlock: 2 threads wait for one another
              2 (a) waits for mutex 0x10, held by 3 (b)
              3 (b\u{1b}) waits for mutex 0x20, held by 2 (a)

            1 (app): 5 threads

            2 (a) futex(0x10, FUTEX_WAIT_PRIVATE, 2, NULL), for 3.20s
                waits for mutex 0x10, held by 3 (b)
                #0  pthread_mutex_lock+0x1b (libc.so.6)
                #1  work at app.c:12

            3 (b\u{1b}) futex(0x10, FUTEX_WAIT_PRIVATE, 2, NULL), for 3.20s
                waits for mutex 0x20, held by 2 (a)
                #0  pthread_mutex_lock+0x1b (libc.so.6)
                #1  work at app.c:12

            4 (idle), 5:
                futex(0x10, FUTEX_WAIT_PRIVATE, 2, NULL), for 1.00us to 2.00us
                #0  pthread_mutex_lock+0x1b (libc.so.6)
                #1  work at app.c:12

            6 (r) running
                (why)
        "#]];
        expect.assert_eq(&String::from_utf8_lossy(&out));
    }

    #[test]
    fn each_thread_can_be_shown_alone() {
        let found = sample();
        let mut out = Vec::new();
        write(&found, &[], Style { each: true, ..Style::default() }, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains("\n4 (idle) futex") && text.contains("\n5 (idle) futex"), "{text}");
    }
}
