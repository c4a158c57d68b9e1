//! Events out of the ptracer: encoded once, pushed whole, waited for or counted.

use crate::ptrace::thread::Pending;
use engine::own_events::{self, Stack};
use engine::plan::OnFull;
use events::encode::{self, Fixed};
use events::layout::{CAP_32BIT, NO_CPU};
use events::schema::Schema;
use std::time::Duration;
use sys::ring::control::Ptracer;
use sys::ring::{NoRoom, Writer};

/// The writing end.
pub struct Emitter {
    ring: Writer,
    on_full: OnFull,
    buf: Vec<u8>,
    parent: i32,
    /// The front end is gone or has asked to stop: nothing is written any more.
    pub silent: bool,
    /// The session is stopped: calls and signals are not reported, but forks, execs and ends are.
    pub held: bool,
    /// Events that others may still come before; none: there are no others.
    waiting: Option<Waiting>,
    /// When events were last put into the ring that had waited.
    settled: u64,
    /// No event in the ring is later than that.
    last: u64,
}

/// Events that are not in the ring yet.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Time, and where the event begins and ends.
    events: Vec<(u64, usize, usize)>,
}

/// How long events wait for others that come before them, ns: a thread may be interrupted between the end of its call and its record.
const WAIT: u64 = 2_000_000;
/// The most bytes that wait.
const MOST: usize = 1 << 20;

impl Emitter {
    /// Writes to `ring` for the front end `parent`.
    pub fn new(ring: Writer, on_full: OnFull, parent: i32) -> Self {
        Emitter {
            ring,
            on_full,
            buf: Vec::with_capacity(4096),
            parent,
            silent: false,
            held: false,
            waiting: None,
            settled: 0,
            last: 0,
        }
    }

    /// Whether the front end has gone, or asked to stop.
    pub fn abandoned(&self) -> bool {
        sys::process::parent() != self.parent || self.control().must_stop()
    }

    /// The control page.
    pub fn control(&self) -> Ptracer<'_> {
        self.ring.control()
    }

    /// Marks the end of the events in the ring.
    pub fn finish(&mut self) {
        self.in_order(false);
        self.ring.finish();
    }

    /// From now on events wait until those before them are there, or do not.
    pub fn in_order(&mut self, wait: bool) {
        if wait != self.waiting.is_some() {
            self.release(u64::MAX);
            self.waiting = wait.then(Waiting::default);
        }
    }

    /// Events with an earlier time come too late.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Puts events into the ring that have waited long enough. `recorded`: when it was begun to look for calls that processes have recorded; none: no
    /// process does.
    pub fn settle(&mut self, recorded: Option<u64>) {
        let Some(waiting) = &self.waiting else {
            return self.control().settle(recorded.unwrap_or(0));
        };
        let (now, full) = (sys::time::monotonic(), waiting.bytes.len() > MOST);
        if full || now >= self.settled + WAIT {
            self.settled = now;
            self.release(if full { u64::MAX } else { now.saturating_sub(WAIT) });
            self.control().settle(recorded.map_or(0, |recorded| recorded.min(now).saturating_sub(WAIT)));
        }
    }

    /// Puts events up to a time into the ring.
    fn release(&mut self, until: u64) {
        let Some(mut waiting) = self.waiting.take() else { return };
        waiting.events.sort_by_key(|e| e.0);
        let ready = waiting.events.partition_point(|e| e.0 <= until);
        let mut rest = Waiting::default();
        for (i, (time, start, end)) in waiting.events.into_iter().enumerate() {
            let event = &waiting.bytes[start..end];
            if i < ready {
                self.buf.clear();
                self.buf.extend_from_slice(event);
                self.push_now();
            } else {
                let at = rest.bytes.len();
                rest.bytes.extend_from_slice(event);
                rest.events.push((time, at, rest.bytes.len()));
            }
        }
        self.last = self.last.max(if until == u64::MAX { 0 } else { until });
        self.waiting = Some(rest);
    }

    /// Stops or resumes reporting calls and signals, and writes the event for it.
    pub fn hold(&mut self, held: bool) {
        use events::generated::{P_PAUSED, P_RESUMED};
        if held != self.held {
            let own = (self.parent, self.parent);
            self.process(if held { &P_PAUSED } else { &P_RESUMED }, own, &[], &[]);
            self.held = held;
        }
    }

    /// Whether the event is in the ring, or will be.
    fn push(&mut self) -> bool {
        let Some(waiting) = &mut self.waiting else { return self.push_now() };
        let time = self.buf.first_chunk().map_or(0, |time| u64::from_le_bytes(*time));
        let at = waiting.bytes.len();
        waiting.bytes.extend_from_slice(&self.buf);
        waiting.events.push((time, at, waiting.bytes.len()));
        true
    }

    fn push_now(&mut self) -> bool {
        if self.silent {
            return false;
        }
        self.last = self.last.max(self.buf.first_chunk().map_or(0, |time| u64::from_le_bytes(*time)));
        loop {
            match self.ring.push(&self.buf) {
                Ok(()) => return true,
                Err(NoRoom::Yet) if self.on_full == OnFull::Block => {}
                Err(NoRoom::Yet | NoRoom::Ever) => return self.drop_it(),
                // Nobody reads any more, so waiting would never end.
                Err(NoRoom::Reader(_)) => {
                    self.silent = true;
                    return self.drop_it();
                }
            }
            self.ring.wait_for_room(Duration::from_millis(50));
            if self.abandoned() {
                self.silent = true;
                return false;
            }
        }
    }

    fn drop_it(&self) -> bool {
        let class = self.buf.get(8..10).map(|id| u16::from_le_bytes([id[0], id[1]]));
        self.control().drop_event(class);
        false
    }

    /// A stack. Whether it is in the ring.
    pub fn stack(&mut self, (pid, tid): (i32, i32), report: &Stack<'_>) -> bool {
        self.buf.clear();
        own_events::stack(sys::time::monotonic(), (pid as u32, tid as u32), report, &mut self.buf);
        self.push()
    }

    /// A `process:` event with integer arguments `args` and string tails for its first arguments.
    pub fn process(&mut self, schema: &'static Schema, who: (i32, i32), args: &[u64], strings: &[&[u8]]) {
        self.process_at(sys::time::monotonic(), schema, who, args, strings);
    }

    /// A `process:` event at a given time.
    pub fn process_at(
        &mut self,
        time: u64,
        schema: &'static Schema,
        (pid, tid): (i32, i32),
        args: &[u64],
        strings: &[&[u8]],
    ) {
        if self.silent || self.held && is_of_signals(schema) {
            return;
        }
        let Some(layout) = events::registry::layout(schema.id) else { return };
        let mut cap = 0;
        for i in 0..strings.len() {
            cap |= 1 << (2 * i);
        }
        self.buf.clear();
        let f = Fixed { time, cap, tid: tid as u32, pid: pid as u32, ..Fixed::default() };
        encode::fixed(&mut self.buf, schema, layout, &f, args);
        for (spec, s) in layout.tails.iter().zip(strings) {
            match spec.shape {
                events::layout::Shape::Str => encode::str_tail(&mut self.buf, s),
                _ => encode::bytes_tail(&mut self.buf, s),
            }
        }
        self.push();
    }

    /// A call: its end, or with `more` [`events::layout::CAP_NO_RESULT`] what is known without one.
    pub fn call(&mut self, who: (i32, i32), p: &Pending, end: &End<'_>) {
        if self.silent || self.held {
            return;
        }
        self.buf.clear();
        encode_call(&mut self.buf, who, p, end);
        self.push();
    }

    /// The notice that a call is still running (`attach` 0), was found running at attach (1), or is left running (2).
    pub fn in_flight(&mut self, who: (i32, i32), p: &Pending, attach: u64) {
        if self.silent || self.held {
            return;
        }
        let mut call = Vec::new();
        let now = sys::time::monotonic();
        let more = events::layout::CAP_NO_RESULT | start_unknown(attach);
        let end = End { time: now, ret: 0, more, out: &[], cpu: p.cpu, cpu_out: NO_CPU };
        encode_call(&mut call, who, p, &end);
        if call.len() > usize::from(u16::MAX) {
            // Too much for a notice: the end will show it all.
            call.clear();
            encode::fixed(&mut call, p.schema, p.layout, &fixed(who, p, &end), &p.args);
            for spec in &p.layout.tails {
                encode::empty_tail(&mut call, spec.shape);
            }
        }
        self.process_at(now, &events::generated::P_INFLIGHT, who, &[0, attach], &[&call]);
    }
}

/// Events that a stopped session skips, like calls.
fn is_of_signals(schema: &Schema) -> bool {
    use events::generated::{P_SIGNAL, P_STOP};
    [P_SIGNAL.id, P_STOP.id].contains(&schema.base)
}

fn start_unknown(attach: u64) -> u16 {
    if attach == 1 { events::layout::CAP_START_UNKNOWN } else { 0 }
}

/// How a call ended.
pub struct End<'a> {
    /// When.
    pub time: u64,
    /// Raw result.
    pub ret: i64,
    /// Capture bits to add.
    pub more: u16,
    /// Tails of exit; empty for none, which writes empty ones.
    pub out: &'a [u8],
    /// Processor at entry.
    pub cpu: u16,
    /// Processor at exit.
    pub cpu_out: u16,
}

fn fixed((pid, tid): (i32, i32), p: &Pending, end: &End<'_>) -> Fixed {
    let raw = p.schema.name == "raw" && p.args[1] == u64::from(sys::ptrace::ARCH_I386);
    Fixed {
        time: end.time,
        cap: p.caps | end.more | if raw { CAP_32BIT } else { 0 },
        tid: tid as u32,
        pid: pid as u32,
        start: p.start,
        ret: end.ret,
        cpu_in: end.cpu,
        cpu_out: end.cpu_out,
        ..Fixed::default()
    }
}

fn encode_call(buf: &mut Vec<u8>, who: (i32, i32), p: &Pending, end: &End<'_>) {
    encode::fixed(buf, p.schema, p.layout, &fixed(who, p, end), &p.args);
    buf.extend_from_slice(&p.tails);
    if end.out.is_empty() {
        for spec in p.layout.tails.iter().filter(|t| t.out) {
            encode::empty_tail(buf, spec.shape);
        }
    } else {
        buf.extend_from_slice(end.out);
    }
}
