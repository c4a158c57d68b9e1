//! `--off-cpu`: how long threads were blocked, by the stacks with which they left the CPU.
//!
//! ```text
//! sched_switch of the thread (its stacks) ─────► blocked ─────► sched_exit of the same thread: it is back
//!                                          sched_waking of it, by a thread of the target: the waker's stacks
//! ```
//!
//! Both ends are events of the thread itself, so that only threads of the target are seen. Threads that wait for a CPU are not
//! blocked. Of a thread that was blocked at the beginning only that is known.

use super::gather::{Gather, Raw};
use engine::pipeline::world::World;
use engine::provider;
use events::traces::beside;
use events::{Event, Schema};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use views::profile::LabelsId;

/// A thread leaves the CPU.
const OUT: &str = "tracepoint:sched:sched_switch";
/// It is back (since Linux 6.16): at the end of `schedule`, after a switch. Or, where that is missing, a function of the kernel.
const IN: [&str; 2] = ["rawtracepoint:sched_exit_tp", "fentry:finish_task_switch"];
/// Somebody wakes it.
pub const WAKING: &str = "tracepoint:sched:sched_waking";

/// Bits of `prev_state` (`TASK_REPORT`, include/linux/sched.h): all of them, and those of threads that have ended
/// (`EXIT_DEAD`, `EXIT_ZOMBIE`, `TASK_DEAD`).
const STATES: u64 = 0xff;
const ENDED: u64 = 0x10 | 0x20 | 0x80;
/// The most threads that are followed.
const MOST: usize = 1 << 20;

/// The probes that this kernel needs.
pub fn probes(wakers: bool) -> Vec<String> {
    probes_of(provider::ready(IN[0]).is_ok(), wakers)
}

/// The same, where the first probe of [`IN`] is there or is not.
fn probes_of(has_first: bool, wakers: bool) -> Vec<String> {
    let back = if has_first { format!("{} /args.arg0 == 1/", IN[0]) } else { IN[1].to_string() };
    let mut all = vec![OUT.to_string(), back, "end".into()];
    if wakers {
        all.push(WAKING.into());
    }
    all
}

/// Whether a probe is one whose stacks are wanted.
pub fn has_stacks(name: &str) -> bool {
    name == OUT || name == WAKING
}

/// Whether events of these classes show how long threads were blocked.
pub fn is_of(classes: &[&Schema]) -> bool {
    let has = |name: &str| classes.iter().any(|c| c.name == name);
    has(OUT) && IN.iter().any(|name| has(name))
}

/// A thread that is not running.
struct Out {
    time: u64,
    blocked: bool,
    labels: LabelsId,
    raw: Raw,
    waker: Option<(LabelsId, Raw)>,
}

/// Pairs the departure of a thread from a CPU with its return.
#[derive(Default)]
pub struct OffCpu {
    outs: HashMap<u32, Out>,
    /// Threads that ran before the session, and of which nothing was seen yet.
    attached: HashSet<u32>,
    /// Threads that were seen.
    seen: HashSet<u32>,
    wakers: bool,
    /// The time of the last event.
    last: u64,
    /// Threads that were blocked at the beginning, and whose stack and time are not known.
    at_begin: u64,
    /// Threads that were blocked at the end.
    at_end: u64,
    /// Times of which one end was not seen.
    unpaired: u64,
    /// Threads that were woken by an interrupt, or by a thread that is not the target's.
    by_others: u64,
}

impl OffCpu {
    /// No thread is blocked, as far as is known.
    pub fn new(wakers: bool) -> OffCpu {
        OffCpu { wakers, ..OffCpu::default() }
    }

    /// Learns which threads are older than the session.
    pub fn observe(&mut self, ev: &Event<'_>) {
        if ev.schema.class == events::Class::Process && ev.schema.name == "attach" && self.attached.len() < MOST {
            self.attached.insert(ev.tid());
        }
    }

    /// Learns from an event.
    pub fn event(&mut self, ev: &Event<'_>, world: &World, gather: &mut Gather) {
        self.last = self.last.max(ev.time());
        match ev.schema.name {
            OUT => {
                let state = ev.value_of("prev_state") & STATES;
                self.attached.remove(&ev.tid());
                if state & ENDED != 0 {
                    self.outs.remove(&ev.tid());
                    self.seen.remove(&ev.tid());
                    return;
                }
                self.seen.insert(ev.tid());
                let (labels, raw) = (gather.labels(ev, world), gather.raw(ev, world));
                let out = Out { time: ev.time(), blocked: state != 0, labels, raw, waker: None };
                if self.outs.len() >= MOST || self.outs.insert(ev.tid(), out).is_some() {
                    self.unpaired += 1;
                }
            }
            WAKING if self.wakers => {
                if let Some(out) =
                    self.outs.get_mut(&beside(ev.tid(), ev.value_of("pid") as u32)).filter(|o| o.waker.is_none())
                {
                    out.waker = Some((gather.labels(ev, world), gather.raw(ev, world)));
                }
            }
            name if IN.contains(&name) => match self.outs.remove(&ev.tid()) {
                Some(out) => self.add(out, ev.time(), gather),
                None if self.attached.remove(&ev.tid()) => {
                    self.at_begin += 1;
                    self.seen.insert(ev.tid());
                }
                // A new thread comes to a CPU for the first time.
                None => self.unpaired += u64::from(!self.seen.insert(ev.tid())),
            },
            _ => {}
        }
    }

    fn add(&mut self, out: Out, until: u64, gather: &mut Gather) {
        if out.blocked {
            self.by_others += u64::from(self.wakers && out.waker.is_none());
            gather.add(out.labels, out.raw, out.waker, until.saturating_sub(out.time), until);
        }
    }

    /// The session has ended: who is still blocked has been so up to now.
    pub fn end(&mut self, gather: &mut Gather) {
        let mut left: Vec<Out> = std::mem::take(&mut self.outs).into_values().filter(|o| o.blocked).collect();
        order::by_key(&mut left, |o| o.time);
        self.at_end += left.len() as u64;
        for out in left {
            gather.add(out.labels, out.raw, None, self.last.saturating_sub(out.time), self.last);
        }
    }

    /// What it lacks.
    pub fn tell(&self, lines: &mut Vec<String>, counters: &mut Value) {
        let words = [
            (self.at_begin, "threads blocked at the beginning, not counted until they ran"),
            (self.attached.len() as u64, "threads that did nothing, and have no stack"),
            (self.at_end, "threads blocked at the end, counted up to it"),
            (self.unpaired, "times blocked that are not known, because events are missing"),
            (self.by_others, "woken by an interrupt or another process"),
        ];
        lines.extend(words.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {n}")));
        counters["off_cpu"] = json!({
            "blocked_at_begin": self.at_begin,
            "idle": self.attached.len(),
            "blocked_at_end": self.at_end,
            "unpaired": self.unpaired,
            "woken_by_others": if self.wakers { json!(self.by_others) } else { Value::Null },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::request::parse::Request;
    use events::dynamic::{Field, class};
    use events::encode::{self, Fixed};
    use events::types::{Fmt, Int, Type};
    use views::profile::{By, folded};

    /// Before Linux 6.16, a function of the kernel says that a thread is back, for threads of the target only.
    #[test]
    fn without_the_tracepoint_a_function_says_that_a_thread_is_back() {
        let (new, old) = (probes_of(true, false), probes_of(false, true));
        assert_eq!((new[1].as_str(), old[1].as_str()), ("rawtracepoint:sched_exit_tp /args.arg0 == 1/", IN[1]));
        assert!(old.iter().chain(&new).all(|text| Request::parse(text).is_ok()) && old.last().unwrap() == WAKING);
        let int = |fmt| Type::Int(Int { size: 8, signed: false, fmt });
        let field = |name: &str, fmt| Field { name: name.into(), ty: int(fmt) };
        let fields = [field("prev_state", Fmt::Dec), field("ustack", Fmt::Stack)];
        let (out, back) = (class(OUT, &fields).unwrap(), class(IN[1], &[]).unwrap());
        assert!(is_of(&[out, back]) && !is_of(&[out]) && !is_of(&[back]));
        assert!(has_stacks(OUT) && !has_stacks(IN[1]));
        let (world, mut off_cpu, mut gather) = (World::default(), OffCpu::new(false), Gather::of_switches());
        // Thread 5 is blocked for 70 ns, then loses its CPU for 10 ns, and is blocked at the end; 6 was blocked before.
        let events: [(u64, u32, &'static Schema, &[u64]); 7] = [
            (100, 5, out, &[1, 0]),
            (170, 5, back, &[]),
            (200, 5, out, &[0, 0]),
            (210, 5, back, &[]),
            (220, 6, back, &[]),
            (250, 5, out, &[2, 0]),
            (280, 6, back, &[]),
        ];
        for (time, tid, schema, values) in events {
            let mut bytes = Vec::new();
            let layout = events::registry::layout(schema.id).unwrap();
            encode::fixed(&mut bytes, schema, layout, &Fixed { time, pid: 5, tid, ..Fixed::default() }, values);
            off_cpu.event(&Event::parse(&bytes).unwrap(), &world, &mut gather);
        }
        off_cpu.end(&mut gather);
        gather.settle(u64::MAX, &world);
        let mut lines = Vec::new();
        folded::write(&gather.stacks, By::Nothing, &mut lines);
        assert_eq!(gather.stacks.total().weight, 70 + 30, "{}", String::from_utf8_lossy(&lines));
        assert_eq!((off_cpu.at_end, off_cpu.unpaired), (1, 1));
    }
}
