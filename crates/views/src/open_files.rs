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

use crate::descriptors::{Added, Descriptors, made};
use crate::options::{Options, Prefix};
use crate::profile::words::ascii;
use crate::profile::{Frame, FrameId, StackId, Stacks, Unit};
use crate::stack::{Place, frames, line};
use crate::units::duration;
use crate::{View, text};
use events::names::Names;
use events::schema::Schema;
use events::traces::own;
use events::{Event, stacks};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Places, descriptors and processes of a place that are shown.
const MOST_PLACES: usize = 100;
const MOST_SHOWN: usize = 8;

/// An open descriptor.
struct Open {
    time: u64,
    stack: StackId,
    call: &'static Schema,
    text: String,
    comm: String,
}

/// The view.
pub struct OpenFiles {
    open: Descriptors<Open>,
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
        OpenFiles { open: Descriptors::default(), stacks, opened: 0, closed: 0, not_held: 0, lost: 0, last: 0 }
    }
}

impl OpenFiles {
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
        for fd in made {
            self.opened += 1;
            let (text, comm) = (text.clone(), comm.clone());
            let open = Open { time: ev.time(), stack, call: ev.schema, text, comm };
            match self.open.add(ev, *fd, open) {
                Added::New => {}
                Added::Instead => self.closed += 1,
                Added::NotHeld => self.not_held += 1,
            }
        }
    }
}

impl View for OpenFiles {
    fn see(&mut self, ev: &Event<'_>) {
        self.last = self.last.max(ev.time());
        self.closed += self.open.closed_by(ev);
    }

    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, _: &mut Vec<u8>) {
        let made = made(ev);
        if !made.is_empty() {
            self.add(ev, names, &made);
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
        for (table, fd, open) in self.open.all() {
            let group = groups.entry((open.stack, open.call.base)).or_insert_with(|| Group {
                by_process: BTreeMap::new(),
                n: 0,
                oldest: open.time,
                last: (0, ""),
            });
            let process = group.by_process.entry(table).or_insert_with(|| (open.comm.clone(), Vec::new()));
            process.1.push(fd);
            group.n += 1;
            group.oldest = group.oldest.min(open.time);
            if open.time >= group.last.0 {
                group.last = (open.time, &open.text);
            }
        }
        let places = groups.len();
        let (opened, closed, still) = (self.opened, self.closed, self.open.all().len());
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
