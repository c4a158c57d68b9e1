//! Records of probes in files: out of the runs of threads, as events.
//!
//! Invariant: each record of a probe becomes an event of each enabling that has the place, is counted as filtered there, or is no event of the
//! session, because that was stopped, or the enabling taken away.

use super::identity::{Asks, Identities, Known as Who};
use super::module::Known;
use super::points::{Part, Taken};
use super::times::Times;
use abi::values::{CUT, ENDS, FAULT, LENGTH, NULL};
use engine::pipeline::backend::Deliver;
use engine::request::enabling::Enabling;
use engine::request::expression::Filtered;
use engine::request::functions::Probes;
use engine::request::probe_enabling::{ProbeEnabling, Source};
use engine::stats::Counts;
use events::encode::{self, Fixed};
use events::functions::{Clock, HIGH, RECORD, Run, VALUES, each as each_record, parts_of, time, word};
use events::layout::Layout;
use events::stream::Scope;
use events::{Event, StreamId};
use lang::Verdict;
use std::collections::HashMap;
use std::sync::Arc;

/// The enabling of the streams of these events.
const ENABLING: u16 = 3;
/// Bits of an argument that say how its string was captured: whole, cut, not at all.
const WHOLE: u64 = 1;
const SHORT: u64 = 2;
const NONE: u64 = 3;

/// The probes of a session.
pub struct ProbeEvents {
    probes: Vec<(u32, Arc<ProbeEnabling>)>,
    /// The files with places of them, by the number of their first place.
    files: Vec<(u32, Arc<Known>)>,
    asks: Asks,
    identities: Identities,
    times: Times,
    /// By enabling.
    counts: Vec<Counts>,
    filtered: Filtered,
    /// The time of the last event of each thread.
    last: HashMap<u32, u64>,
    event: Vec<u8>,
    arguments: Vec<u64>,
}

impl ProbeEvents {
    /// Of a session with these probes.
    pub fn new(probes: &Probes, running: bool) -> ProbeEvents {
        let filters = || probes.0.iter().filter_map(|(_, e)| e.filter.as_ref());
        let captures = |of: fn(&Source) -> bool| probes.0.iter().any(|(_, e)| e.fields.iter().any(of));
        let asks = Asks {
            comm: filters().any(|f| f.needs().comm) || captures(|s| matches!(s, Source::Comm)),
            ids: filters().any(|f| f.needs().uid || f.needs().gid)
                || captures(|s| matches!(s, Source::Uid | Source::Gid)),
        };
        let parts = |e: &ProbeEnabling| vec![0; e.filter.as_ref().map_or(0, |f| f.parts().len())];
        ProbeEvents {
            counts: probes.0.iter().map(|(_, e)| Counts { parts: parts(e), ..Counts::default() }).collect(),
            probes: probes.0.clone(),
            files: Vec::new(),
            asks,
            identities: Identities::default(),
            times: Times::new(running),
            filtered: Filtered::default(),
            last: HashMap::new(),
            event: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// A file has places of probes, the first of which has this number in the session.
    pub fn add(&mut self, first: u32, file: Arc<Known>) {
        for (enabling, name) in &file.unreached {
            self.counts.get_mut(*enabling).into_iter().for_each(|n| n.refused.push(name.clone()));
        }
        let at = self.files.partition_point(|(n, _)| *n < first);
        self.files.insert(at, (first, file));
    }

    /// A process begins a program, or is a new child.
    pub fn begin(&mut self, pid: u32, who: Who) {
        self.identities.begin(pid, who);
    }

    /// A process has ended.
    pub fn end(&mut self, pid: u32) {
        self.identities.end(pid);
    }

    /// From this moment on, a value of the time stamp counter, the session is stopped, or runs.
    pub fn switch(&mut self, tsc: u64, running: bool) {
        self.times.switch(tsc, running);
    }

    /// From this moment on there are no events of enablings that were taken away.
    pub fn remove(&mut self, tsc: u64, all: &[Enabling]) {
        self.times.remove(tsc, all);
    }

    /// What was counted of each enabling, by number. `lost` are records that were of probes; of several, nobody knows which.
    pub fn counts(&self, lost: u64) -> Vec<(u32, Counts)> {
        let dropped = if self.probes.len() == 1 { lost } else { 0 };
        let of = |n: &Counts| Counts {
            seen: n.seen.saturating_add(dropped),
            filtered: n.seen - n.recorded,
            dropped,
            ..n.clone()
        };
        self.probes.iter().map(|(id, _)| *id).zip(self.counts.iter().map(of)).collect()
    }

    /// Events that filters have rejected.
    pub fn filtered(&self) -> &Filtered {
        &self.filtered
    }

    /// The place with this number: its file, and which of that one's places it is.
    fn place(&self, number: u32) -> Option<(Arc<Known>, usize)> {
        let (first, file) = self.files[..self.files.partition_point(|(n, _)| *n <= number)].last()?;
        let nth = (number - first) as usize;
        (nth < file.points.len()).then(|| (Arc::clone(file), nth))
    }

    /// Takes the records of probes out of a run and delivers them; returns how many there were. The others are left in `others`.
    pub fn take(&mut self, run: &Run<'_>, others: &mut Vec<u8>, each: &mut dyn Deliver) -> usize {
        others.clear();
        let clock = Clock::between(run.from, run.to);
        let (mut high, mut told, mut taken) = (run.high, u32::MAX, 0);
        for record in each_record(run.records) {
            let Some(head) = record.first_chunk::<RECORD>() else { break };
            if word(head) == HIGH {
                high = time(head);
                continue;
            }
            let plain = word(head) & !VALUES;
            let Some((file, nth)) = self.place(plain >> 1) else {
                if std::mem::replace(&mut told, high) != high {
                    others.extend([high, HIGH].map(u32::to_le_bytes).as_flattened());
                }
                others.extend_from_slice(record);
                continue;
            };
            taken += 1;
            let tsc = u64::from(high) << 32 | u64::from(time(head));
            if !self.times.runs_at(tsc) {
                continue;
            }
            let tid = run.tid();
            let at = clock.ns(tsc).max(self.last.get(&tid).copied().unwrap_or(0));
            self.last.insert(tid, at);
            let (_, mut values) = if word(head) & VALUES != 0 { parts_of(record) } else { (plain, &[][..]) };
            for part in file.points.get(nth).map_or(&[][..], |p| &p.parts) {
                self.deliver(part, (run.pid, tid, at, tsc), &mut values, each);
            }
        }
        taken
    }

    /// Delivers an event of an enabling that has not been taken away by then, if its filter passes. `values` loses what it takes.
    fn deliver(
        &mut self,
        part: &Part,
        (pid, tid, time, tsc): (u32, u32, u64, u64),
        values: &mut &[u8],
        each: &mut dyn Deliver,
    ) {
        let Some(layout) = events::registry::layout(part.schema.id) else { return };
        let mut event = std::mem::take(&mut self.event);
        let mut arguments = std::mem::take(&mut self.arguments);
        let nobody = Who::default();
        let who = if self.asks.any() { self.identities.of((pid, tid), time, self.asks) } else { &nobody };
        encode_event(&mut event, &mut arguments, (part, layout, who), (pid, tid, time), values);
        let is_there = self.probes.get(part.enabling).is_some_and(|(id, _)| self.times.has(*id, tsc));
        let passes = is_there && self.passes(part, &event, (pid, tid, time));
        if passes {
            each.event(StreamId::new(Scope::Thread(tid), ENABLING), &event);
        }
        (self.event, self.arguments) = (event, arguments);
    }

    fn passes(&mut self, part: &Part, event: &[u8], (pid, tid, time): (u32, u32, u64)) -> bool {
        let (Some((_, enabling)), Some(n)) = (self.probes.get(part.enabling), self.counts.get_mut(part.enabling))
        else {
            return false;
        };
        n.seen += 1;
        let Some(filter) = &enabling.filter else {
            n.recorded += 1;
            return true;
        };
        let nobody = Who::default();
        let who = if self.asks.any() { self.identities.of((pid, tid), time, self.asks) } else { &nobody };
        let Ok(ev) = Event::parse(event) else { return false };
        match filter.matches(&ev, &who.context()) {
            Verdict::Pass => {
                n.recorded += 1;
                return true;
            }
            Verdict::Rejected(part) => n.parts.get_mut(part).into_iter().for_each(|n| *n += 1),
            _ => self.filtered.unknown += 1,
        }
        *self.filtered.classes.entry(part.schema.id).or_default() += 1;
        false
    }
}

/// The first `n` bytes, which are taken away; zeros where there are fewer.
fn take<'v>(values: &mut &'v [u8], n: usize) -> &'v [u8] {
    let (taken, rest) = values.split_at(n.min(values.len()));
    *values = rest;
    taken
}

/// A number of this many bytes, perhaps with a sign.
fn number(bytes: &[u8], signed: bool) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    let value = u64::from_le_bytes(word);
    if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
}

/// A string, and how it was captured.
fn text<'v>(values: &mut &'v [u8]) -> (&'v [u8], u64, u64) {
    let head = take(values, 2);
    let Some(head) = head.first_chunk().map(|b| u16::from_le_bytes(*b)) else { return (&[], NONE, 0) };
    let bytes = take(values, usize::from(head & LENGTH));
    match head {
        _ if head & NULL != 0 => (&[], NONE, 0),
        _ if head & FAULT != 0 => (&[], NONE, number(bytes, false)),
        _ if head & (CUT | ENDS) != 0 => (bytes, SHORT, 1),
        _ => (bytes, WHOLE, 1),
    }
}

fn encode_event(
    out: &mut Vec<u8>,
    arguments: &mut Vec<u64>,
    (part, layout, who): (&Part, &'static Layout, &Who),
    (pid, tid, time): (u32, u32, u64),
    values: &mut &[u8],
) {
    out.clear();
    arguments.clear();
    let (mut cap, mut more_caps, mut tails) = (0, 0, Vec::new());
    let mut captured = |i: usize, how: u64| match i.checked_sub(events::schema::FIRST_CAPS) {
        None => cap |= (how as u16) << (2 * i),
        Some(i) => more_caps |= how << (2 * i),
    };
    for (i, taken) in part.fields.iter().enumerate() {
        arguments.push(match taken {
            Taken::Number(size, signed) => number(take(values, usize::from(*size)), *signed),
            Taken::Constant(n) => *n,
            Taken::Hidden => {
                tails.push(&[][..]);
                0
            }
            Taken::Uid => who.ids.map_or(0, |ids| ids.0.into()),
            Taken::Gid => who.ids.map_or(0, |ids| ids.1.into()),
            Taken::Comm => {
                captured(i, if who.comm.is_some() { WHOLE } else { NONE });
                tails.push(who.comm.as_deref().unwrap_or_default());
                1
            }
            Taken::Text => {
                let (text, how, address) = text(values);
                captured(i, how);
                tails.push(text);
                address
            }
        });
    }
    let fixed = Fixed { time, cap, more_caps, tid, pid, ..Fixed::default() };
    encode::fixed(out, part.schema, layout, &fixed, arguments);
    tails.into_iter().for_each(|text| encode::str_tail(out, text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::dynamic::{self, Field};
    use events::types::{Fmt, Int, StrKind, Type};

    #[test]
    fn numbers_have_the_sign_and_width_of_their_types() {
        assert_eq!(number(&[0xff, 0xff], true) as i64, -1);
        assert_eq!(number(&[0xff, 0xff], false), 0xffff);
        assert_eq!(number(&[0; 0], true), 0);
        assert_eq!(number(&(-5i64).to_le_bytes(), true) as i64, -5);
    }

    #[test]
    fn strings_say_how_they_were_captured() {
        let of = |head: u16, bytes: &[u8]| {
            let all = [&head.to_le_bytes(), bytes].concat();
            let mut rest = &all[..];
            let (text, how, address) = text(&mut rest);
            (text.to_vec(), how, address, rest.len())
        };
        assert_eq!(of(2, b"abc"), (b"ab".to_vec(), WHOLE, 1, 1));
        assert_eq!(of(2 | CUT, b"ab"), (b"ab".to_vec(), SHORT, 1, 0));
        assert_eq!(of(NULL, b""), (vec![], NONE, 0, 0));
        assert_eq!(of(8 | FAULT, &0x1234u64.to_le_bytes()), (vec![], NONE, 0x1234, 0));
        // What a hostile process writes.
        assert_eq!(of(0xffff, b"a").3, 0);
        assert_eq!(text(&mut &[1u8][..]), (&[][..], NONE, 0));
    }

    #[test]
    fn a_record_is_an_event_whatever_it_lacks() {
        let int = Type::Int(Int { size: 8, signed: true, fmt: Fmt::Dec });
        let field = |name: &str, ty| Field { name: name.into(), ty };
        let fields = [field("a", int), field("text", Type::Str(StrKind::Text)), field("b", int), field("c", int)];
        let schema = dynamic::class("usdt:test:probe_events", &fields).unwrap();
        let layout = events::registry::layout(schema.id).unwrap();
        let taken = vec![Taken::Number(2, true), Taken::Text, Taken::Constant(7), Taken::Number(8, false)];
        let part = Part { enabling: 0, schema, fields: taken };
        let whole = [&(-3i16).to_le_bytes()[..], &5u16.to_le_bytes(), b"hello", &9u64.to_le_bytes()].concat();
        for cut in 0..=whole.len() {
            let (mut out, mut arguments, mut values) = (Vec::new(), Vec::new(), &whole[..cut]);
            encode_event(&mut out, &mut arguments, (&part, layout, &Who::default()), (1, 2, 3), &mut values);
            let ev = Event::parse(&out).unwrap();
            assert_eq!((ev.pid(), ev.tid(), ev.time(), ev.value_of("b")), (1, 2, 3, 7), "{cut}");
            if cut == whole.len() {
                assert_eq!((ev.value_of("a") as i64, ev.bytes_of("text"), ev.value_of("c")), (-3, &b"hello"[..], 9));
            }
        }
    }
}
