//! Where the traced functions of threads were called from at times that have passed: for walks up stacks that were copied.
//!
//! ```text
//!  agent: where from (`abi::caller`), entries, exits ─► what happened ─► the calls that are open, thread by thread ─┐
//!  perf: a sample's thread and time ────────────────────────────────────────────────────────────────────────────────┴► return addresses
//! ```
//!
//! A copied stack has the addresses of stubs where return addresses were, and when it is walked, the shadow stack has other calls. So the
//! agent's records are replayed up to the time of the sample. A thread that is sampled stands still from before that time until its stack is
//! copied, which takes longer than the two clocks may be apart: the calls are those of the copy. An answer must have the place on the stack, and
//! be of the function whose stub is there: on a busy machine the clocks may be further apart.
//!
//! What the agent could not record leaves no calls that could be wrong: they are forgotten, but for those that were open all the time, which the
//! shadow stack still has.

use abi::caller;
use events::functions::{HIGH, Moment, RECORD, VALUES, each, time, word};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unwind::patched::{BASE, ENTRY, Shadow, TOP};

/// The most open calls of a thread that are known, and the most threads.
const MOST_CALLS: usize = 1 << 20;
const MOST_THREADS: usize = 1 << 16;
/// How many of the innermost calls an exit may be of.
const MOST_LOOKS: usize = 4096;

/// A call that is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Where its return address is on the stack; 0: not known.
    pub place: u64,
    /// Its return address.
    pub address: u64,
    /// The function's number; 0: it has none.
    pub number: u32,
}

/// What has happened in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// A call has begun, of a function that has a number if its calls are recorded.
    Called(Call),
    /// Likewise, and nothing says from where.
    Entered(u32),
    Left(u32),
    Returned(u64),
    /// Records are missing; these calls are open nevertheless.
    Lost(Box<[Call]>),
}

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    /// Those that are open, the outermost first; behind them such as have just ended.
    calls: Vec<Call>,
    open: usize,
    /// What has happened since, with the counter's values.
    changes: VecDeque<(u64, Change)>,
    /// The counter in its last record.
    last: u64,
}

/// All threads of a session.
#[derive(Debug, Default)]
pub struct Callers {
    threads: HashMap<u32, Thread>,
    /// The last moments on both clocks, in order.
    moments: VecDeque<Moment>,
    /// Processes that have lost records since their last ones.
    in_doubt: HashSet<u32>,
    /// An agent tells what happens.
    is_told: bool,
}

/// What the agent's collector and the perf backend share.
#[derive(Clone, Debug, Default)]
pub struct Handle(Arc<Mutex<Callers>>);

impl Handle {
    /// All threads.
    pub fn get(&self) -> MutexGuard<'_, Callers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Callers {
    /// What happened before this moment is about to be told.
    pub fn begin_round(&mut self, now: Moment) {
        self.in_doubt.clear();
        self.moments.push_back(now);
        self.is_told = true;
    }

    /// Nothing more is told, unless another round begins.
    pub fn stop(&mut self) {
        self.is_told = false;
    }

    /// A process has lost records, and not said yet which of its threads: nothing is known of any.
    pub fn doubt(&mut self, pid: u32) {
        self.in_doubt.insert(pid);
    }

    /// Up to when all is told that has happened, ns.
    pub fn known(&self) -> u64 {
        match (self.is_told, self.moments.len()) {
            (false, _) => u64::MAX,
            // One moment says nothing of the counter's rate.
            (true, 0 | 1) => 0,
            (true, n) => self.moments[n - 1].monotonic,
        }
    }

    /// Takes records of a thread. `rest` gets those that are for others, too. `lost`: some are missing before them, and these calls are open
    /// nevertheless.
    pub fn take(&mut self, tid: u32, high: u32, records: &[u8], lost: Option<Box<[Call]>>, rest: &mut Vec<u8>) {
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid) {
            self.threads.clear();
        }
        let thread = self.threads.entry(tid).or_default();
        let (mut high, mut lost) = (high, lost);
        if lost.is_some() {
            // Until the first record.
            thread.changes.push_back((thread.last, Change::Lost(Box::default())));
        }
        for record in each(records) {
            let Some(head) = record.first_chunk::<RECORD>() else { continue };
            let word = word(head);
            if word == HIGH {
                high = time(head);
                rest.extend_from_slice(record);
                continue;
            }
            let tsc = u64::from(high) << 32 | u64::from(time(head));
            thread.last = tsc;
            if let Some(open) = lost.take() {
                thread.changes.push_back((tsc, Change::Lost(open)));
            }
            if word == caller::WORD {
                let [address, place] = [8, 16].map(|at| number(record, at));
                let change = match address >> 16 {
                    0 => Change::Returned(place),
                    address => Change::Called(Call { place, address, number: 0 }),
                };
                thread.changes.push_back((tsc, change));
                continue;
            }
            rest.extend_from_slice(record);
            let plain = word & !VALUES;
            let function = plain >> 1;
            if function > abi::shared::FUNCTIONS {
                continue;
            }
            match thread.changes.back_mut() {
                Some((_, Change::Called(call))) if plain & 1 == 0 && call.number == 0 => call.number = function,
                _ if plain & 1 == 0 => thread.changes.push_back((tsc, Change::Entered(function))),
                _ => thread.changes.push_back((tsc, Change::Left(function))),
            }
        }
    }

    /// The calls of a thread that were open at a time, ns; none where they are not known.
    pub fn at(&mut self, (pid, tid): (u32, u32), time: u64) -> Option<Open<'_>> {
        if self.in_doubt.contains(&pid) {
            return None;
        }
        let tsc = self.tsc(time);
        let thread = self.threads.get_mut(&tid)?;
        thread.go_on(tsc);
        Some(Open { calls: &thread.calls, open: thread.open, shadow: None })
    }

    /// A process has forked: its child has the calls of the thread that has.
    pub fn fork(&mut self, child: u32, parent: u32, time: u64) {
        let tsc = self.tsc(time);
        let Some(parent) = self.threads.get_mut(&parent) else { return };
        parent.go_on(tsc);
        let (calls, open) = (parent.calls.clone(), parent.open);
        let child = self.threads.entry(child).or_default();
        (child.calls, child.open) = (calls, open);
    }

    /// A thread has ended, or executes another program: its calls have.
    pub fn end(&mut self, tid: u32, time: u64) {
        let tsc = self.tsc(time);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.go_on(tsc);
        (thread.calls, thread.open) = (Vec::new(), 0);
        if thread.changes.is_empty() {
            self.threads.remove(&tid);
        }
    }

    /// No more is asked about what was before.
    pub fn settle(&mut self, until: u64) {
        let tsc = self.tsc(until);
        self.threads.values_mut().for_each(|thread| thread.go_on(tsc));
        // Those on both sides of a time are needed.
        while self.moments.len() > 2 && self.moments[1].monotonic <= until {
            self.moments.pop_front();
        }
    }

    /// The value of the counter at a time, ns.
    fn tsc(&self, time: u64) -> u64 {
        let after = self.moments.partition_point(|m| m.monotonic <= time).clamp(1, self.moments.len().max(2) - 1);
        match (self.moments.get(after - 1), self.moments.get(after)) {
            (Some(before), Some(next)) => between(*before, *next, time),
            _ => 0,
        }
    }
}

/// The value of the counter at a time, by two moments.
fn between(before: Moment, next: Moment, time: u64) -> u64 {
    let (ticks, ns) = (next.tsc.saturating_sub(before.tsc), next.monotonic.saturating_sub(before.monotonic));
    let since = i128::from(time) - i128::from(before.monotonic);
    let ticks = since * i128::from(ticks) / i128::from(ns.max(1));
    u64::try_from(i128::from(before.tsc) + ticks).unwrap_or(0)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

impl Thread {
    /// Has happen what had happened when the counter had this value.
    fn go_on(&mut self, tsc: u64) {
        while self.changes.front().is_some_and(|(at, _)| *at <= tsc) {
            let Some((_, change)) = self.changes.pop_front() else { return };
            self.change(change);
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Called(call) => self.push(call),
            Change::Entered(number) => self.push(Call { number, ..Call::default() }),
            Change::Left(number) => self.remove(|call| call.number == number),
            Change::Returned(place) => self.remove(|call| call.place == place && call.number == 0),
            Change::Lost(open) => (self.open, self.calls) = (open.len(), open.into_vec()),
        }
    }

    fn push(&mut self, call: Call) {
        if self.open >= MOST_CALLS {
            (self.calls, self.open) = (Vec::new(), 0);
        }
        match self.calls.get_mut(self.open) {
            Some(ended) => *ended = call,
            None => self.calls.push(call),
        }
        self.open += 1;
    }

    /// The innermost call of these has ended. It stays behind the open ones: an exception ends calls whose frames are still there.
    fn remove(&mut self, is: impl Fn(&Call) -> bool) {
        let innermost = self.open.saturating_sub(MOST_LOOKS);
        let Some(at) = self.calls[innermost..self.open].iter().rposition(is).map(|n| innermost + n) else { return };
        self.open -= 1;
        if at < self.open {
            self.calls.remove(at);
        }
    }
}

/// The calls of a thread that are open, in a walk from the innermost frame outward.
pub struct Open<'c> {
    calls: &'c [Call],
    open: usize,
    shadow: Option<Shadow>,
}

impl Open<'_> {
    /// The return address of the function with a number, none where that is not known, which was at a place of the stack, further out than those
    /// that were asked for before. A call of another function there is one of another moment.
    pub fn address(&mut self, place: u64, number: Option<u32>) -> Option<u64> {
        /// Where the calls are, as a shadow stack has them.
        const AT: u64 = 0x1000;
        let Open { calls, open, shadow } = self;
        let is_of = |call: &Call| number.is_none_or(|number| call.number == number || call.number == 0);
        let read = |at: u64| match at.checked_sub(AT) {
            None if at == TOP as u64 => Some(AT + ENTRY * *open as u64),
            None => (at == BASE as u64).then_some(AT),
            Some(at) => {
                let call = calls.get((at / ENTRY) as usize)?;
                Some(match at.is_multiple_of(ENTRY) {
                    // Passed over: of a tail call that has just ended, or of another moment.
                    true if call.place == place && !is_of(call) => place.wrapping_sub(1),
                    true => call.place,
                    false => call.address,
                })
            }
        };
        if shadow.is_none() {
            *shadow = Shadow::of(0, read);
        }
        shadow.as_mut()?.address(place, read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(time: u32, word: u32) -> Vec<u8> {
        [time.to_le_bytes(), word.to_le_bytes()].concat()
    }

    fn called(time: u32, place: u64, address: u64) -> Vec<u8> {
        let length = u64::from(caller::LEN);
        [plain(time, caller::WORD), (address << 16 | length).to_le_bytes().to_vec(), place.to_le_bytes().to_vec()]
            .concat()
    }

    /// A tick is 10 ns, and the counter has begun 1000 ticks before the clock.
    fn callers() -> Callers {
        let mut all = Callers::default();
        for monotonic in [0, 10_000, 20_000] {
            all.begin_round(Moment { tsc: 1000 + monotonic / 10, monotonic });
        }
        all
    }

    fn addresses(all: &mut Callers, tid: u32, time: u64, places: &[u64]) -> Vec<Option<u64>> {
        let mut open = all.at((7, tid), time).expect("known");
        places.iter().map(|place| open.address(*place, None)).collect()
    }

    #[test]
    fn calls_are_those_of_the_time() {
        let (mut all, mut rest) = (callers(), Vec::new());
        let records = [
            called(1010, 90, 11),
            plain(1010, 3 << 1),
            called(1020, 80, 12),
            plain(1020, 4 << 1),
            plain(1030, 4 << 1 | 1),
            called(1040, 80, 13),
            plain(1040, 4 << 1),
        ]
        .concat();
        all.take(8, 0, &records, None, &mut rest);
        let plain_ones: Vec<u8> =
            [(1010, 6), (1020, 8), (1030, 9), (1040, 8)].iter().flat_map(|(t, w)| plain(*t, *w)).collect();
        assert_eq!(rest, plain_ones, "the rest is for others");
        assert_eq!(addresses(&mut all, 8, 90, &[80, 90]), [None, None]);
        assert_eq!(addresses(&mut all, 8, 250, &[80, 90]), [Some(12), Some(11)]);
        // It has ended, and nothing else has taken its place: an exception may be on its way.
        assert_eq!(addresses(&mut all, 8, 350, &[80, 90]), [Some(12), Some(11)]);
        assert_eq!(addresses(&mut all, 8, 450, &[80, 90]), [Some(13), Some(11)]);
        assert_eq!(addresses(&mut all, 8, 450, &[70]), [None]);
        let mut of = |number| all.at((7, 8), 450).and_then(|mut open| open.address(80, Some(number)));
        assert_eq!([of(4), of(5)], [Some(13), None], "of another function's call");
        // A tail call: both are at one place.
        all.take(8, 0, &[called(1046, 80, 14), plain(1046, 7 << 1)].concat(), None, &mut rest);
        let mut of = |number| all.at((7, 8), 465).and_then(|mut open| open.address(80, Some(number)));
        assert_eq!([of(7), of(4), of(5)], [Some(14), Some(13), None]);
        assert!(all.at((7, 9), 450).is_none());
    }

    #[test]
    fn what_is_lost_is_not_guessed() {
        let (mut all, mut rest) = (callers(), Vec::new());
        all.take(8, 0, &[called(1010, 90, 11), plain(1010, 3 << 1)].concat(), None, &mut rest);
        let open = Box::from([Call { place: 95, address: 10, number: 2 }]);
        all.take(8, 0, &plain(1050, 5 << 1), Some(open), &mut rest);
        let mut at = |time, place| addresses(&mut all, 8, time, &[place])[0];
        // From the last record before on.
        assert_eq!(
            [at(90, 90), at(400, 90), at(400, 95), at(600, 90), at(600, 95)],
            [None, None, None, None, Some(10)]
        );
        all.doubt(7);
        assert!(all.at((7, 8), 600).is_none());
        all.begin_round(Moment { tsc: 9000, monotonic: 80_000 });
        assert!(all.at((7, 8), 600).is_some());
    }

    #[test]
    fn children_threads_and_programs() {
        let (mut all, mut rest) = (callers(), Vec::new());
        all.take(8, 0, &[called(1010, 90, 11), plain(1010, 3 << 1)].concat(), None, &mut rest);
        all.fork(9, 8, 200);
        all.end(8, 300);
        assert_eq!(addresses(&mut all, 9, 300, &[90]), [Some(11)]);
        assert!(all.at((7, 8), 400).is_none());
        // A function whose return is a probe has no record of its entry.
        all.take(9, 0, &[called(1050, 80, 12), called(1060, 80, 0), called(1070, 80, 13)].concat(), None, &mut rest);
        assert_eq!(addresses(&mut all, 9, 550, &[80, 90]), [Some(12), Some(11)]);
        assert_eq!(addresses(&mut all, 9, 750, &[80, 80, 90]), [Some(13), None, None]);
    }

    #[test]
    fn it_is_known_up_to_the_last_round() {
        let mut all = Callers::default();
        assert_eq!(all.known(), u64::MAX, "nobody tells anything");
        all.begin_round(Moment { tsc: 5, monotonic: 50 });
        assert_eq!(all.known(), 0);
        all.begin_round(Moment { tsc: 9, monotonic: 90 });
        assert_eq!((all.known(), all.tsc(70), all.tsc(130)), (90, 7, 13));
        all.stop();
        assert_eq!(all.known(), u64::MAX);
    }
}
