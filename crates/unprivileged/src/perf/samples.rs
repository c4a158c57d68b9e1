//! Samples in, events out: the copied stack is walked, the filter evaluated, the event encoded as the kernel backend's programs do it.

use super::processes::Processes;
use super::sleepers::Slept;
use engine::backend::code::{Code, id_of};
use engine::callers::{Handle, Open};
use engine::request::enabling::Enabling;
use engine::request::probe_enabling::{ProbeEnabling, Source};
use engine::stats::{Counts, StackCounts};
use events::encode::{self, Fixed};
use events::layout::Layout;
use events::stream::Scope;
use events::{Event, StreamId};
use lang::{Context, Verdict};
use std::collections::HashMap;
use std::sync::Arc;
use sys::perf::record::{Registers as User, Sample, Stamp};
use unwind::patched::Patched;
use unwind::stack::MAX_FRAMES;
use unwind::walk::{Registers, Target, Walk};
use unwind::{Ended, Rule};

/// The most stacks whose ids are remembered; then they are reported again.
const MOST_STACKS: usize = 4 << 20;

/// Frames that were walked already, and why there are no more.
type Walked<'s> = Option<(&'s [u64], Ended)>;

/// Takes an event with its stream.
pub type Each<'e> = &'e mut dyn FnMut(StreamId, &[u8]);

/// An enabling, and what it has counted.
struct Enabled {
    id: u32,
    enabling: Arc<ProbeEnabling>,
    layout: Layout,
    /// The number of its streams.
    nth: u16,
    counts: Counts,
}

/// Makes events of samples.
pub struct Samples {
    enabled: Vec<Enabled>,
    /// The stacks that were reported, and with which time.
    reported: HashMap<u64, u64>,
    /// The last of these times.
    last: u64,
    frames: Vec<u64>,
    event: Vec<u8>,
    /// What was counted of stacks.
    pub stacks: StackCounts,
}

impl Samples {
    /// Of the probes among these enablings.
    pub fn new(enablings: &[Enabling]) -> Samples {
        let enabled = |(nth, (id, e)): (u16, (u32, &Arc<ProbeEnabling>))| {
            let parts = e.filter.as_ref().map_or(0, |f| f.parts().len());
            let counts = Counts { parts: vec![0; parts], streams: Some(nth.into()), ..Counts::default() };
            Enabled { id, layout: Layout::of(e.schema), enabling: Arc::clone(e), nth, counts }
        };
        Samples {
            enabled: (1..).zip(enablings.iter().filter_map(|e| Some((e.id, e.probe()?)))).map(enabled).collect(),
            reported: HashMap::new(),
            last: 0,
            frames: Vec::new(),
            event: Vec::new(),
            stacks: StackCounts { endings: vec![0; Ended::ALL.len()], ..StackCounts::default() },
        }
    }

    /// A sample of an enabling becomes an event, after the report of its stack.
    pub fn take(&mut self, nth: usize, sample: &Sample<'_>, processes: &mut Processes, each: Each<'_>) {
        self.report(nth, sample, None, processes, each);
    }

    /// The time that a thread did not run becomes an event, after the report of its stack.
    pub fn slept(&mut self, nth: usize, slept: &Slept<'_>, processes: &mut Processes, each: Each<'_>) {
        let Slept { pid, tid, cpu, time, ns, .. } = *slept;
        let sample = Sample { stamp: Stamp { pid, tid, time, cpu, id: 0 }, addr: ns, ..Sample::default() };
        self.report(nth, &sample, Some((slept.frames, slept.ended)), processes, each);
    }

    /// `walked`: the frames, where the sample has no copy of the stack.
    fn report(
        &mut self,
        nth: usize,
        sample: &Sample<'_>,
        walked: Walked<'_>,
        processes: &mut Processes,
        each: Each<'_>,
    ) {
        let Some(enabled) = self.enabled.get(nth) else { return };
        let e = Arc::clone(&enabled.enabling);
        self.encode(nth, sample, processes, 0);
        if !self.passes(nth, sample, processes) {
            return;
        }
        let most = e.fields.iter().find_map(|f| if let Source::UserStack(n) = f { Some(*n) } else { None });
        if let Some(most) = most {
            let (id, reported) = self.stack(usize::from(most), sample, walked, processes, each);
            // A record that comes late may have a stack that was reported with a later time: its event is moved behind the report.
            let stamp = Stamp { time: sample.stamp.time.max(reported + 1), ..sample.stamp };
            self.encode(nth, &Sample { stamp, ..*sample }, processes, id);
        }
        let enabled = &mut self.enabled[nth];
        enabled.counts.recorded += 1;
        each(StreamId::new(Scope::Cpu(sample.stamp.cpu), enabled.nth), &self.event);
    }

    /// Ticks that the kernel has skipped.
    pub fn missed(&mut self, nth: usize, ticks: u64) {
        self.enabled.get_mut(nth).into_iter().for_each(|e| e.counts.missed += ticks);
    }

    /// What each enabling has counted, by number; `dropped` of each.
    pub fn counts(&self, dropped: impl Fn(usize) -> u64) -> Vec<(u32, Counts)> {
        let counts = |(nth, e): (usize, &Enabled)| {
            let mut n = e.counts.clone();
            n.dropped = dropped(nth);
            n.seen = n.recorded + n.filtered + n.dropped;
            (e.id, n)
        };
        self.enabled.iter().enumerate().map(counts).collect()
    }

    fn encode(&mut self, nth: usize, sample: &Sample<'_>, processes: &mut Processes, stack: u64) {
        let Samples { enabled, event, .. } = self;
        let Enabled { enabling, layout, .. } = &enabled[nth];
        let (pid, tid) = (sample.stamp.pid, sample.stamp.tid);
        let mut args = Vec::with_capacity(enabling.fields.len());
        let mut cap = 0;
        for (i, field) in enabling.fields.iter().enumerate() {
            args.push(match field {
                Source::UserStack(_) => stack,
                Source::Number(_) => sample.addr,
                Source::Cpu => sample.stamp.cpu.into(),
                Source::Uid => processes.ids(pid, tid).0.into(),
                Source::Gid => processes.ids(pid, tid).1.into(),
                Source::Comm => {
                    cap |= 1u16.checked_shl(2 * i as u32).unwrap_or(0);
                    1
                }
                _ => 0,
            });
        }
        event.clear();
        let fixed = Fixed { time: sample.stamp.time, cap, tid, pid, ..Fixed::default() };
        encode::fixed(event, enabling.schema, layout, &fixed, &args);
        for tail in &layout.tails {
            match enabling.fields.get(usize::from(tail.arg)) {
                Some(Source::Comm) => encode::str_tail(event, &processes.thread(pid, tid).comm),
                _ => encode::empty_tail(event, tail.shape),
            }
        }
    }

    /// Whether the filter of the enabling lets the event pass.
    fn passes(&mut self, nth: usize, sample: &Sample<'_>, processes: &mut Processes) -> bool {
        let Enabled { enabling, counts, .. } = &mut self.enabled[nth];
        let (Some(filter), Ok(event)) = (&enabling.filter, Event::parse(&self.event)) else { return true };
        let (pid, tid) = (sample.stamp.pid, sample.stamp.tid);
        let needs = filter.needs();
        let ids = (needs.uid || needs.gid).then(|| processes.ids(pid, tid));
        let (uid, gid) = (ids.map(|i| i.0), ids.map(|i| i.1));
        let comm = Some(&processes.thread(pid, tid).comm[..]);
        let context = Context { comm, uid, gid, cpu: u16::try_from(sample.stamp.cpu).ok() };
        match filter.matches(&event, &context) {
            Verdict::Pass => return true,
            Verdict::Rejected(part) => counts.parts.get_mut(part).into_iter().for_each(|n| *n += 1),
            Verdict::Unknown(_) => {}
        }
        counts.filtered += 1;
        false
    }

    /// Walks the stack of a sample and reports it, if it was not reported before; its id, and the time of the report.
    fn stack(
        &mut self,
        most: usize,
        sample: &Sample<'_>,
        walked: Walked<'_>,
        processes: &mut Processes,
        each: Each<'_>,
    ) -> (u64, u64) {
        let (pid, tid, time) = (sample.stamp.pid, sample.stamp.tid, sample.stamp.time);
        let callers = processes.callers.clone();
        let mut callers = callers.as_ref().map(Handle::get);
        let mut walk = |samples: &mut Samples, processes: &Processes| {
            let open = callers.as_mut().and_then(|callers| callers.at((pid, tid), time));
            samples.walk(most, sample, processes.code(pid), open)
        };
        let (mut ended, mut guessed) = match walked {
            Some(walked) => self.keep(most, walked),
            None => walk(self, processes),
        };
        // Perhaps the record of a mapping was lost.
        if walked.is_none() && ended == Ended::NoMapping && processes.look_again(pid, time) {
            (ended, guessed) = walk(self, processes);
        }
        self.stacks.endings[ended as usize] += 1;
        let id = id_of(&self.frames, ended as u64);
        if self.reported.len() >= MOST_STACKS {
            self.reported.clear();
        }
        if let Some(time) = self.reported.get(&id) {
            return (id, *time);
        }
        let schema = &events::generated::P_STACK;
        let Some(layout) = events::registry::layout(schema.id) else { return (0, 0) };
        let frames: Vec<u8> = self.frames.iter().flat_map(|f| f.to_le_bytes()).collect();
        // Of one moment, the streams of CPUs come first: the report is to stand before its event. Times of its own stream rise.
        self.last = self.last.max(time.saturating_sub(1));
        let fixed = Fixed { time: self.last, cap: 1, tid, pid, ..Fixed::default() };
        self.event.clear();
        encode::fixed(&mut self.event, schema, layout, &fixed, &[1, id, 0, ended as u64, guessed]);
        encode::many_tail(&mut self.event, &frames, 8);
        each(StreamId::STACKS, &self.event);
        self.reported.insert(id, self.last);
        (id, self.last)
    }

    /// Takes frames as they are, as far as they are wanted.
    fn keep(&mut self, most: usize, (frames, ended): (&[u64], Ended)) -> (Ended, u64) {
        self.frames.clear();
        self.frames.extend(frames.iter().take(most));
        let guessed = self.frames.iter().filter(|frame| unwind::Frame(**frame).is_guessed()).count() as u64;
        (if frames.len() > most { Ended::Full } else { ended }, guessed)
    }

    /// The frames of a sample; why there are no more, and how many are guessed. `open`: the calls of traced functions that were open then.
    fn walk(&mut self, most: usize, sample: &Sample<'_>, code: Option<&Code>, open: Option<Open<'_>>) -> (Ended, u64) {
        self.frames.clear();
        let (registers, pc) = match sample.user.registers {
            User::Wide(registers, pc) => (registers, pc),
            User::Narrow => return (Ended::NotX86_64, 0),
            User::None => return (Ended::NoMemory, 0),
        };
        let (bp, sp) = (registers[RBP], registers[RSP]);
        let mut copied = Copied { registers, bytes: sample.user.stack, code, open, is_short: false };
        let mut walk = Walk::new(&mut copied, Registers { pc, sp, bp }, most.min(MAX_FRAMES));
        let mut guessed = 0;
        for frame in walk.by_ref() {
            guessed += u64::from(frame.is_guessed());
            self.frames.push(frame.0);
        }
        let ended = match walk.ended() {
            Ended::ReadFault if copied.is_short && sample.user.is_cut => Ended::Cut,
            ended => ended,
        };
        (ended, guessed)
    }
}

/// Numbers of registers in the ABI (figure 3.36).
const RBP: usize = 6;
const RSP: usize = 7;
/// Bytes below the stack pointer that belong to a function (the ABI of x86-64).
const RED_ZONE: u64 = 128;

/// A copied stack.
struct Copied<'s> {
    registers: [u64; 16],
    bytes: &'s [u8],
    code: Option<&'s Code>,
    /// The calls of traced functions that were open then.
    open: Option<Open<'s>>,
    /// The walk has asked for more than was copied.
    is_short: bool,
}

impl Target for &mut Copied<'_> {
    /// Nothing is copied below the stack pointer. There, rows look for the caller's rbp alone, in the place that the code has already
    /// popped it from: the register has it.
    fn read(&mut self, address: u64) -> Option<u64> {
        let sp = self.registers[RSP];
        if (1..=RED_ZONE).contains(&sp.wrapping_sub(address)) {
            return Some(self.registers[RBP]);
        }
        let at = usize::try_from(address.checked_sub(sp)?).ok()?;
        let word = self.bytes.get(at..).and_then(|b| b.first_chunk::<8>());
        self.is_short |= word.is_none();
        word.map(|w| u64::from_le_bytes(*w))
    }

    fn register(&mut self, number: u8) -> Option<u64> {
        self.registers.get(usize::from(number)).copied()
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        self.code?.rule(address)
    }

    fn patched(&mut self, frame: Registers, exact: bool) -> Option<Patched> {
        match self.code?.patched(frame.pc, exact)? {
            // Of a stub whose return address is below the stack pointer, that is not copied.
            Patched::Stub { cfa: Some(0), .. } => {}
            Patched::Return(_) if !exact => {}
            other => return Some(other),
        }
        let (place, number) = (frame.sp.wrapping_sub(8), self.code?.number(frame.pc, exact));
        Some(Patched::Return(self.open.as_mut().and_then(|open| open.address(place, number))))
    }

    fn unmapped(&mut self) -> Option<Rule> {
        self.code?.unmapped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_copy_lacks_is_told_from_what_cannot_be_read() {
        let bytes = [1u64.to_le_bytes(), 2u64.to_le_bytes()].concat();
        let mut registers = [0; 16];
        (registers[RBP], registers[RSP]) = (7, 0x1000);
        let mut copied = Copied { registers, bytes: &bytes, code: None, open: None, is_short: false };
        let mut target = &mut copied;
        assert_eq!((target.read(0x1000), target.read(0x1008)), (Some(1), Some(2)));
        assert_eq!((target.read(0xff8), target.read(0xf00)), (Some(7), None));
        assert!(!target.is_short, "below the stack pointer nothing is copied");
        assert_eq!((target.read(0x1009), target.is_short), (None, true));
        assert_eq!((target.read(u64::MAX), target.rule(1), target.unmapped()), (None, None, None));
    }
}
