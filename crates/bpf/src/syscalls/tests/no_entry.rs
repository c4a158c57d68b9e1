//! Sessions in which no program runs at the entry of a call: what the end of one makes of the registers.

use super::*;
use crate::rows_at_exit;
use ::events::cap::Cap;

const ORIG_AX: usize = 120;
const AX: usize = 80;
const ARGUMENTS: [usize; 6] = [112, 104, 96, 56, 72, 64];
/// Where the program has something.
const AT: u64 = 0x1000;

fn session() -> Session {
    Session { no_entry: true, unknown: true, ..Session::default() }
}

impl World {
    /// A world where these calls are wanted.
    fn wanting(calls: &[&'static ::events::Schema]) -> World {
        let mut w = World::new();
        let limits = Limits { string: 32, text: 0, verbose: false, keep: Default::default() };
        for call in calls {
            let nr = call.x86_64.expect("a number");
            assert!(w.m.set_value(ROWS, &nr.to_le_bytes(), &rows_at_exit::row(call, true, limits)));
        }
        w
    }

    fn registers(&mut self, nr: i64, args: [u64; 6], ret: i64) -> u64 {
        let regs = self.object(&[0; 21]);
        let words = ARGUMENTS.into_iter().zip(args).chain([(ORIG_AX, nr as u64), (AX, ret as u64)]);
        words.for_each(|(at, value)| self.put(regs, at, value));
        regs
    }

    /// A call that ends with these registers.
    fn ends(&mut self, nr: i64, args: [u64; 6], ret: i64) -> Vec<Vec<u8>> {
        let regs = self.registers(nr, args, ret);
        self.run(sys_exit(&maps(), &offsets(), &session(), Source::All), &[regs, ret as u64])
    }

    /// The current task ends with these registers; returns how many calls it has ended in.
    fn dies(&mut self, nr: i64, ax: i64) -> u64 {
        self.m.user_registers = self.registers(nr, [0; 6], ax);
        let task = self.m.task;
        let before = self.word(scratch::UNRETURNED);
        assert_eq!(names(&self.run(exit(&maps(), &offsets(), &session()), &[task])), ["exit"]);
        self.word(scratch::UNRETURNED) - before
    }

    fn is_32bit(&mut self) {
        self.put(self.m.task, STATUS, 2);
    }
}

fn too_late(w: &World) -> u64 {
    w.word(scratch::TOO_LATE)
}

#[test]
fn number_arguments_and_result_are_in_the_registers() {
    with_both_rings(|| {
        let mut w = World::wanting(&[&g::C_WRITE]);
        w.m.add_user(AT, b"hello");
        // Only the lower half of the number counts.
        let events = w.ends(1 | 5 << 32, [3, AT, 5, 0, 0, 0], 5);
        assert_eq!(names(&events), ["write"]);
        let ev = Event::parse(&events[0]).expect("an event");
        assert_eq!((&ev.args()[..3], ev.ret()), (&[3, AT, 5][..], 5));
        assert_eq!((ev.tail(1, false).map(|t| t.bytes), ev.cap(1)), (Some(&b"hello"[..]), Cap::Whole));
        assert_eq!((ev.duration(), ev.start(), ev.cpus().0), (None, ev.time(), None));
        assert_eq!(ev.cpus().1, Some(0));
        assert_eq!((ev.pid(), ev.tid(), too_late(&w)), (20, 21, 0));
        // The state has nothing that says that the task is in a call.
        assert_eq!(w.state(w.m.task)[..8], [0; 8]);
    });
}

#[test]
fn what_a_call_has_changed_is_counted() {
    with_both_rings(|| {
        let mut w = World::wanting(&[&g::C_POLL]);
        w.m.add_user(AT, &[7, 0, 0, 0, 1, 0, 4, 0]);
        let events = w.ends(7, [AT, 1, 0, 0, 0, 0], 1);
        let ev = Event::parse(&events[0]).expect("an event");
        let (before, after) = (ev.tail(0, false).expect("a tail"), ev.tail(0, true).expect("a tail"));
        assert_eq!((before.n, after.n, after.bytes), (0, 1, &[7, 0, 0, 0, 1, 0, 4, 0][..]));
        assert_eq!((ev.cap(0), too_late(&w)), (Cap::Fault, 1));
        // There was nothing.
        w.ends(7, [0, 0, 10, 0, 0, 0], 0);
        assert_eq!(too_late(&w), 1);
    });
}

#[test]
fn a_child_s_first_return_is_no_call() {
    with_both_rings(|| {
        let mut w = World::wanting(&[&g::C_CLONE, &g::C_FORK, &g::C_VFORK, &g::C_CLOSE]);
        for nr in [56, 57, 58, 435] {
            assert!(w.ends(nr, [0; 6], 0).is_empty(), "{nr}");
        }
        assert_eq!(names(&w.ends(57, [0; 6], 99)), ["fork"]);
        assert_eq!(names(&w.ends(3, [4, 0, 0, 0, 0, 0], 0)), ["close"]);
        // The command is not itself yet.
        w.trace(w.m.task, &[(state::FLAGS, state::STARTING as u64)]);
        assert!(w.ends(3, [4, 0, 0, 0, 0, 0], 0).is_empty());
        w.is_32bit();
        w.trace(w.m.task, &[]);
        assert!([120, 2, 190, 435].into_iter().all(|nr| w.ends(nr, [0; 6], 0).is_empty()));
    });
}

#[test]
fn a_call_that_has_replaced_its_registers_is_known() {
    with_both_rings(|| {
        let mut w = World::wanting(&[&g::C_EXECVE, &g::C_RT_SIGRETURN]);
        let events = w.ends(-1, [1, 2, 3, 4, 5, 6], -4);
        let ev = Event::parse(&events[0]).expect("an event");
        assert_eq!((ev.schema.name, ev.args()[0], ev.ret(), too_late(&w)), ("rt_sigreturn", 0, -4, 1));
        // A program may make a call of that number.
        let events = w.ends(-1, [1, 2, 3, 4, 5, 6], -38);
        assert_eq!((names(&events), too_late(&w)), (vec!["raw"], 1));
        // Path, arguments and environment are those of the program that was.
        assert_eq!((names(&w.ends(59, [0; 6], 0)), too_late(&w)), (vec!["execve"], 4));
        w.m.add_user(AT, b"/bin/none\0");
        let events = w.ends(59, [AT, 0, 0, 0, 0, 0], -2);
        let path = Event::parse(&events[0]).expect("an event").bytes_of("filename").to_vec();
        assert_eq!((path.as_slice(), too_late(&w)), (&b"/bin/none"[..], 4));
        // One that has begun a 32-bit program has its number there.
        w.is_32bit();
        assert_eq!((names(&w.ends(11, [0; 6], 0)), too_late(&w)), (vec!["execve"], 7));
        assert_eq!(names(&w.ends(11, [0; 6], -2)), ["raw"]);
        let events = w.ends(-1, [0; 6], 0);
        assert_eq!((names(&events), values(&events[0], &["nr"])), (vec!["raw"], vec![173]));
    });
}

#[test]
fn calls_that_do_not_return_are_counted_where_they_are_wanted() {
    with_both_rings(|| {
        const NOSYS: i64 = -38;
        let mut w = World::wanting(&[&g::C_EXIT_GROUP, &g::C_KILL, &g::C_READ]);
        assert_eq!(w.dies(231, NOSYS), 1);
        // It had returned, was not wanted, or the task came to the kernel another way.
        assert_eq!(w.dies(62, 0), 0);
        let row = [0; capture_row::ROW];
        assert!(w.m.set_value(ROWS, &35u32.to_le_bytes(), &row));
        assert_eq!(w.dies(35, NOSYS), 0);
        assert_eq!(w.dies(-1, NOSYS), 0);
        // Cut off by a signal that ends the process: reported at the end of the call, and not at that of the task.
        let exiting = w.task(40, 40, 4);
        w.trace(exiting, &[]);
        (w.m.task, w.m.pid_tgid) = (exiting, 40 << 32 | 40);
        let before = w.word(scratch::UNRETURNED);
        assert!(w.ends(0, [0; 6], -512).is_empty());
        assert_eq!(w.word(scratch::UNRETURNED) - before, 1);
        assert_eq!(w.dies(0, -512), 0);
        w.is_32bit();
        assert_eq!(w.dies(1, NOSYS), 1);
    });
}

#[test]
fn signals_that_are_ignored_wait_for_no_call() {
    with_both_rings(|| {
        let mut w = World::wanting(&[]);
        let receiver = w.task(50, 50, 0);
        w.trace(receiver, &[]);
        let info = w.siginfo(17, 1, 77);
        assert_eq!(names(&w.run(generated(&maps(), &offsets(), &session()), &[17, info, receiver, 1, 1])), ["signal"]);
    });
}
