//! Slots: claimed, shared, given back, and found by those that send signals.

use super::*;
use crate::frame::Slots;
use crate::frame::state::{fate, look};
use ::events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN};

const SLOTS: Slots = Slots { map: 9, bits: 1 };
const CLOSE: u32 = 3;

/// The world, one of whose tasks has its registers at `regs`.
struct Stage {
    w: World,
    regs: u64,
    session: Session,
}

impl Stage {
    fn new(session: Session) -> Stage {
        let mut w = World::new();
        w.m.add_array(SLOTS.map, state::SLOT as usize, SLOTS.entries(1));
        let limits = Limits { string: 32, text: 0, verbose: false, keep: Default::default() };
        assert!(w.m.set_value(ROWS, &CLOSE.to_le_bytes(), &capture_row::row(&g::C_CLOSE, true, limits)));
        let regs = w.object(&[0; 21]);
        w.m.user_registers = regs;
        Stage { w, regs, session }
    }

    fn maps() -> Maps {
        Maps { slots: Some(SLOTS), ..maps() }
    }

    fn enters(&mut self) -> Vec<Vec<u8>> {
        let program = sys_enter(&Stage::maps(), &offsets(), &self.session, Source::All);
        self.w.run(program, &[self.regs, CLOSE.into()])
    }

    fn returns(&mut self) -> Vec<Vec<u8>> {
        let program = sys_exit(&Stage::maps(), &offsets(), &self.session, Source::All);
        self.w.run(program, &[self.regs, 0])
    }

    fn ends(&mut self) -> Vec<Vec<u8>> {
        let program = sys_exit(&Stage::maps(), &offsets(), &self.session, Source::All);
        let task = self.w.m.task;
        self.w.run(program, &[task, 0])
    }

    fn word(bytes: &[u8], at: i16) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| bytes[at as usize + i]))
    }

    fn of_slot(&self, nth: u32, at: i16) -> u64 {
        Stage::word(&self.w.m.value(SLOTS.map, &nth.to_le_bytes()).expect("a slot"), at)
    }

    fn at_home(&self, at: i16) -> u64 {
        Stage::word(&self.w.state(self.w.m.task), at)
    }

    fn put(&mut self, nth: u32, at: i16, word: u64) {
        let mut slot = self.w.m.value(SLOTS.map, &nth.to_le_bytes()).expect("a slot");
        slot[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
        assert!(self.w.m.set_value(SLOTS.map, &nth.to_le_bytes(), &slot));
    }

    /// What the registers have of a call: its number, and its result.
    fn in_registers(&mut self, nr: u32, result: i64) {
        self.w.put(self.regs, 120, nr.into());
        self.w.put(self.regs, 80, result as u64);
    }

    /// The number of the slot that the task has.
    fn own(&self) -> Option<u32> {
        (0..SLOTS.count()).find(|nth| self.of_slot(*nth, state::KEY) == self.regs)
    }

    /// Has another task take every slot.
    fn take_all(&mut self) {
        (0..SLOTS.count()).for_each(|nth| self.put(nth, state::KEY, 0xbeef));
    }
}

fn who(events: &[Vec<u8>]) -> Vec<(&'static str, u32, u32)> {
    let of = |e: &Vec<u8>| Event::parse(e).map(|e| (e.schema.name, e.pid(), e.tid())).expect("an event");
    events.iter().map(of).collect()
}

fn known_starts(events: &[Vec<u8>]) -> Vec<bool> {
    let of = |e: &Vec<u8>| Event::parse(e).map(|e| e.caps() & CAP_START_UNKNOWN == 0).expect("an event");
    events.iter().map(of).collect()
}

#[test]
fn a_call_that_was_refused_before_its_entry_is_in_the_registers() {
    with_both_rings(|| {
        let mut s = Stage::new(Session::default());
        s.enters();
        s.in_registers(CLOSE, 0);
        assert_eq!(known_starts(&s.returns()), [true]);
        s.in_registers(CLOSE, -1);
        let events = s.returns();
        let event = Event::parse(&events[0]).expect("an event");
        assert_eq!((who(&events), known_starts(&events), event.ret()), (vec![("close", 20, 21)], vec![false], -1));
        // The next one has an entry again.
        s.enters();
        assert_eq!(known_starts(&s.returns()), [true]);
        // What a child returns from first is no call.
        s.in_registers(56, 0);
        assert_eq!(s.returns().len(), 0);
        // The task ends in a call that has not returned, once; in one that has returned the same, not.
        s.in_registers(CLOSE, -38);
        let events = s.ends();
        assert_eq!((names(&events), known_starts(&events[..1])), (vec!["close", "exit"], vec![false]));
        let mut s = Stage::new(Session::default());
        s.in_registers(CLOSE, -38);
        assert_eq!(names(&s.returns()), ["close"]);
        assert_eq!(names(&s.ends()), ["exit"]);
        // A fatal signal in the stop of a tracer keeps the call from being carried out: it has no result.
        let mut s = Stage::new(Session::default());
        s.w.m.task = s.w.task(40, 40, 4);
        s.w.m.pid_tgid = 40 << 32 | 40;
        s.w.trace(s.w.m.task, &[]);
        s.in_registers(CLOSE, -38);
        assert_eq!(names(&s.returns()), [""; 0]);
        let events = s.ends();
        let close = Event::parse(&events[0]).expect("an event");
        assert_eq!((names(&events), known_starts(&events[..1])), (vec!["close", "exit"], vec![false]));
        assert_ne!(close.caps() & CAP_NO_RESULT, 0);
    });
}

#[test]
fn a_task_has_its_slot_from_its_first_call_to_its_end() {
    with_both_rings(|| {
        let mut s = Stage::new(Session::default());
        assert_eq!((s.own(), s.enters().len()), (None, 0));
        let own = s.own().expect("a slot");
        assert_eq!([state::FLAGS, state::NR].map(|at| s.of_slot(own, at)), [1, CLOSE.into()]);
        assert_eq!(s.at_home(state::NR), 0, "the home is old");
        assert_eq!(who(&s.returns()), [("close", 20, 21)]);
        // The next call needs no home: nobody asks for it.
        s.enters();
        let task = s.w.m.task;
        s.w.put(task, TGID, 77);
        assert_eq!(who(&s.returns()), [("close", 20, 21)]);
        assert_eq!(who(&s.ends()), [("exit", 20, 21)]);
        assert_eq!([state::KEY, state::FLAGS, state::FATE].map(|at| s.of_slot(own, at)), [0; 3]);
    });
}

#[test]
fn a_task_that_is_not_traced_gives_its_slot_back_too() {
    for mark in [state::OWN, state::LEFT_OUT] {
        let mut s = Stage::new(Session { system_wide: true, ..Session::default() });
        let task = s.w.m.task;
        s.w.trace(task, &[(state::FLAGS, mark as u64)]);
        s.enters();
        assert!(s.own().is_some());
        assert_eq!((s.returns().len(), s.ends().len(), s.own()), (0, 0, None));
    }
}

#[test]
fn where_another_task_has_the_slot_the_words_are_at_home() {
    with_both_rings(|| {
        let mut s = Stage::new(Session::default());
        s.take_all();
        s.enters();
        assert_eq!([state::FLAGS, state::NR].map(|at| s.at_home(at)), [1, CLOSE.into()]);
        assert_eq!(who(&s.returns()), [("close", 20, 21)]);
        assert_eq!(s.at_home(state::FLAGS), 0);
        assert_eq!(who(&s.ends()), [("exit", 20, 21)]);
        let spare = SLOTS.count()..SLOTS.entries(1);
        assert!(spare.clone().all(|nth| s.of_slot(nth, state::FATE) == 0), "the spare ones are free again");
        assert!((0..SLOTS.count()).all(|nth| s.of_slot(nth, state::KEY) == 0xbeef));
        // In the midst of a call the slot becomes free: the call goes on there.
        let mut s = Stage::new(Session::default());
        s.take_all();
        s.enters();
        (0..SLOTS.count()).for_each(|nth| s.put(nth, state::KEY, 0));
        assert_eq!((who(&s.returns()), s.own().is_some()), (vec![("close", 20, 21)], true));
        // Both spare ones are in use: what is not known of the call at its end is in the registers.
        let mut s = Stage::new(Session::default());
        s.take_all();
        spare.clone().for_each(|nth| s.put(nth, state::FATE, fate::COPIED as u64));
        let task = s.w.m.task;
        // The call that was in the home before is not the one that returns.
        s.w.trace(task, &[(state::FLAGS, state::IN_CALL as u64), (state::NR, 1), (state::START, 5)]);
        let counts = |s: &Stage| [scratch::SEEN, scratch::DROPPED].map(|w| s.w.word(w));
        assert_eq!((s.enters().len(), counts(&s)), (0, [0, 0]));
        (0..SLOTS.count()).for_each(|nth| s.put(nth, state::KEY, 0));
        s.in_registers(CLOSE, 0);
        let events = s.returns();
        assert_eq!((who(&events), known_starts(&events)), (vec![("close", 20, 21)], vec![false]));
        // At the end too: what is lost is counted.
        let before = counts(&s);
        s.take_all();
        assert_eq!((s.returns().len(), counts(&s)), (0, before.map(|n| n + 1)));
    });
}

#[test]
fn a_signal_that_is_held_is_shown_though_the_home_is_seldom_looked_at() {
    with_both_rings(|| {
        let mut s = Stage::new(Session::default());
        s.enters();
        s.returns();
        s.enters();
        let (info, task) = (s.w.siginfo(17, 1, 99), s.w.m.task);
        let sent = generated(&Stage::maps(), &offsets(), &s.session);
        assert_eq!(s.w.run(sent, &[17, info, task, 1, 1]).len(), 0, "it is held");
        let own = s.own().expect("a slot");
        assert_eq!(s.of_slot(own, state::LOOK), look::SIGNAL as u64);
        assert_eq!(names(&s.returns()), ["close", "signal"]);
        assert_eq!([state::LOOK, state::HELD].map(|at| s.of_slot(own, at)), [0, 0]);
        s.enters();
        assert_eq!(names(&s.returns()), ["close"]);
    });
}

#[test]
fn a_task_that_is_let_go_gives_its_slot_back_at_its_next_call() {
    let mut s = Stage::new(Session::default());
    s.enters();
    let (own, task) = (s.own().expect("a slot"), s.w.m.task);
    s.put(own, state::LOOK, look::ANEW as u64);
    // It has a home again, of somebody who was not in a call.
    s.w.trace(task, &[]);
    assert_eq!((s.returns().len(), s.own()), (0, Some(own)));
    s.put(own, state::LOOK, look::ANEW as u64);
    assert!(s.w.m.remove_value(TASKS, &task.to_le_bytes()));
    assert_eq!((s.enters().len(), s.own()), (0, None));
}
