//! Signals and stops.

use super::*;

#[test]
fn a_fatal_signal_is_shown_when_its_receiver_is_told_to_die() {
    with_both_rings(|| {
        let mut w = World::new();
        let (maps, offsets, session) = (maps(), offsets(), Session::default());
        let exiting = w.task(40, 40, 4);
        w.trace(exiting, &[(state::FLAGS, 1)]);
        let info = w.siginfo(15, 0, 77);
        assert!(w.run(generated(&maps, &offsets, &session), &[15, info, exiting, 1, 0]).is_empty());
        // What comes after it is too late.
        assert!(w.run(generated(&maps, &offsets, &session), &[1, info, exiting, 1, 1]).is_empty());
        w.m.task = exiting;
        w.m.pid_tgid = 40 << 32 | 40;
        let action = w.object(&[0]);
        let events = w.run(delivered(&maps, &offsets, &session), &[9, 0, action]);
        assert_eq!((names(&events), values(&events[0], &["signo", "pid"])), (vec!["signal"], vec![15, 77]));
        assert!(w.run(delivered(&maps, &offsets, &session), &[9, 0, action]).is_empty());
        // One that is delivered to be handled, or by SIGKILL, is none.
        let lives = w.task(50, 50, 0);
        w.trace(lives, &[]);
        assert!(w.run(generated(&maps, &offsets, &session), &[15, info, lives, 1, 0]).is_empty());
        assert!(w.run(generated(&maps, &offsets, &session), &[9, info, exiting, 1, 0]).is_empty());
    });
}

#[test]
fn a_call_that_a_fatal_signal_ends_has_its_result() {
    with_both_rings(|| {
        let mut w = World::new();
        let offsets = offsets();
        let exiting = w.task(40, 40, 4);
        w.m.task = exiting;
        w.m.pid_tgid = 40 << 32 | 40;
        let row = capture_row::row(
            &g::C_OPENAT,
            true,
            Limits { string: 32, text: 0, verbose: false, keep: Default::default() },
        );
        assert!(w.m.set_value(ROWS, &OPENAT.to_le_bytes(), &row));
        let regs = w.object(&[0; 21]);
        // Cut off by another thread's signal it has none, and the end of the task shows it.
        w.trace(exiting, &[(state::FLAGS, 1), (state::NR, OPENAT.into())]);
        assert!(w.returns(&offsets, regs, -512i64 as u64).is_empty());
        w.trace(exiting, &[(state::FLAGS, 1), (state::NR, OPENAT.into()), (state::HELD, 2), (state::HELD_NR, 15)]);
        let events = w.returns(&offsets, regs, -512i64 as u64);
        assert_eq!(names(&events), ["openat", "signal"]);
        assert_eq!(values(&events[1], &["signo"]), [15]);
    });
}

#[test]
fn an_ignored_signal_waits_for_the_end_of_a_call_that_runs() {
    with_both_rings(|| {
        let (maps, offsets, session) = (maps(), offsets(), Session::default());
        // Flags, the task's state and number of the call: shown at once?
        for (flags, sleeps, nr, signo, at_once) in [
            (0, 0, 0, 17, true),
            (1, 0, 0, 17, false),
            (1, 1, 0, 17, true),
            (1, 1, 61, 17, false),
            (1, 1, 61, 28, true),
        ] {
            let mut w = World::new();
            let receiver = w.task(40, 41, 0);
            w.put(receiver, STATE, sleeps);
            w.trace(receiver, &[(state::FLAGS, flags), (state::NR, nr)]);
            let info = w.siginfo(signo, 1, 99);
            let events = w.run(generated(&maps, &offsets, &session), &[signo.into(), info, receiver, 1, 1]);
            assert_eq!(names(&events), if at_once { vec!["signal"] } else { vec![] }, "{flags} {sleeps} {nr} {signo}");
            let shown = if at_once {
                let ev = Event::parse(&events[0]).expect("an event");
                assert_eq!((ev.pid(), ev.tid()), (40, 41));
                events
            } else {
                // A second one is not kept: there is one place.
                assert_eq!(
                    names(&w.run(generated(&maps, &offsets, &session), &[23, info, receiver, 1, 1])),
                    ["signal"]
                );
                w.m.task = receiver;
                w.m.pid_tgid = 40 << 32 | 41;
                let regs = w.object(&[0; 21]);
                w.returns(&offsets, regs, 0)
            };
            assert_eq!((names(&shown), values(&shown[0], &["signo", "pid"])), (vec!["signal"], vec![signo.into(), 99]));
        }
    });
}

#[test]
fn a_siginfo_that_is_none_is_that_of_the_sender() {
    with_both_rings(|| {
        let (maps, offsets, session) = (maps(), offsets(), Session::default());
        for (info, expected) in [(0, [0, 520, 1000]), (1, [0x80, 0, 0])] {
            let mut w = World::new();
            w.m.uid_gid = 7 << 32 | 1000;
            let receiver = w.m.task;
            let events = w.run(generated(&maps, &offsets, &session), &[23, info, receiver, 0, 1]);
            // The process is known to the receiver by the id that its own, deepest namespace has.
            assert_eq!(values(&events[0], &["code", "pid", "uid"]), expected);
        }
    });
}

#[test]
fn stops_are_those_that_the_kernel_will_carry_out() {
    with_both_rings(|| {
        let (maps, offsets, session) = (maps(), offsets(), Session::default());
        let stopped = |signo: u64, handler: u64, jobctl: u64, flags: u64, (group, of): (u64, u64)| {
            let mut w = World::new();
            let task = w.task(40, 40, flags);
            let parent = w.task(30, 30, 0);
            let signal = u64::from_le_bytes(w.m.memory.read(parent + SIGNAL as u64, 8).unwrap().try_into().unwrap());
            w.put(signal, 32, group);
            w.put(signal, 40, of);
            w.put(task, PARENT, parent);
            w.put(task, JOBCTL, jobctl);
            w.trace(task, &[]);
            w.m.task = task;
            w.m.pid_tgid = 40 << 32 | 40;
            let (info, action) = (w.siginfo(signo as u32, 0, 1), w.object(&[handler]));
            // The parent's parent: a group and a session of its own.
            let top = w.task(1, 1, 0);
            let signal = u64::from_le_bytes(w.m.memory.read(top + SIGNAL as u64, 8).unwrap().try_into().unwrap());
            w.put(signal, 32, 1);
            w.put(signal, 40, 1);
            w.put(parent, PARENT, top);
            let events = w.run(delivered(&maps, &offsets, &session), &[signo, info, action]);
            if let [_, stop] = &events[..] {
                assert_eq!(values(stop, &["signo"]), [signo]);
            }
            names(&events) == ["signal", "stop"]
        };
        const DEQUEUED: u64 = 1 << 16;
        // The task's own group and session are 70 and 80.
        let (orphan, shell) = ((70, 80), (60, 80));
        assert!(stopped(19, 0, DEQUEUED, 0, orphan));
        assert!(stopped(20, 0, DEQUEUED, 0, shell) && stopped(22, 0, DEQUEUED, 0, shell));
        assert!(!stopped(20, 0, DEQUEUED, 0, orphan) && !stopped(20, 0, DEQUEUED, 0, (60, 90)));
        assert!(!stopped(20, 0x1000, DEQUEUED, 0, shell), "handled");
        assert!(!stopped(19, 0, 0, 0, orphan), "continued meanwhile");
        assert!(!stopped(19, 0, DEQUEUED, 4, orphan), "about to end");
        assert!(!stopped(18, 0, DEQUEUED, 0, shell) && !stopped(23, 0, DEQUEUED, 0, shell));
    });
}

#[test]
fn other_threads_leave_their_calls_to_stop() {
    with_both_rings(|| {
        let offsets = offsets();
        for (ret, jobctl, stops) in
            [(-516i64, 1 << 17 | 19, true), (-4, 1 << 17 | 19, true), (-512, 0, false), (0, 1 << 17 | 19, false)]
        {
            let mut w = World::new();
            let (task, regs) = (w.m.task, w.object(&[0; 21]));
            w.put(task, JOBCTL, jobctl);
            w.trace(task, &[(state::FLAGS, 1)]);
            let events = w.returns(&offsets, regs, ret as u64);
            assert_eq!(names(&events), if stops { vec!["stop"] } else { vec![] }, "{ret}");
        }
    });
}

#[test]
fn the_siginfo_of_a_held_signal_is_read_before_the_next_may_be_held() {
    with_both_rings(|| {
        let offsets = offsets();
        let program = delivered(&maps(), &offsets, &Session::default()).expect("a program").to_string();
        let lines: Vec<&str> = program.lines().collect();
        let at =
            |what: &str| lines.iter().position(|l| l.contains(what)).unwrap_or_else(|| panic!("{what}\n{program}"));
        let held = at("a signal that was held");
        let cleared = held + lines[held..].iter().position(|l| l.contains("xchg")).expect("it is cleared");
        let read = at(&format!("r0 +{}", state::HELD_INFO + state::SIGINFO as i16 - 8));
        assert!(held < read && read < cleared, "{held} {read} {cleared}\n{program}");
    });
}
