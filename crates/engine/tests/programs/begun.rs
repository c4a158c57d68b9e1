//! Calls that begin before the session, or do not end in it, and sessions that stop.

use super::*;

/// A machine whose task is in a call of close that began at 1000.
fn in_close(flags: i32) -> Machine {
    let mut m = machine(events::registry::by_name("close").unwrap(), 3, &[]);
    m.time = 5000;
    let mut value = vec![0; state::SIZE as usize];
    let mut put = |at: i16, v: u64| value[at as usize..at as usize + 8].copy_from_slice(&v.to_le_bytes());
    put(state::FLAGS, (state::IN_CALL | flags) as u64);
    put(state::START, 1000);
    put(state::NR, 3);
    let task = m.task.to_le_bytes();
    assert!(m.set_value(TASKS, &task, &value));
    m
}

#[test]
fn a_call_whose_start_is_not_known_has_no_duration() {
    const ATTACHED: i32 = state::ATTACHED;
    for (text, flags, passes) in
        [("dur == 4000", 0, true), ("dur >= 0", ATTACHED, false), ("pid == 20", ATTACHED, true)]
    {
        let mut m = in_close(flags);
        let program =
            syscalls::sys_exit(&maps(3), &offsets(None), &session(with_neighbours(text, 3)), Source::All).unwrap();
        m.run_words(&program, &[0, 0]).unwrap_or_else(|e| panic!("{text}: {e}\n{program}"));
        assert_eq!(m.drain(RING).len(), usize::from(passes), "{text}");
        let missing = u64::from(!passes);
        let counters = [SEEN, UNKNOWN, scratch::DROPPED].map(|c| counter(&m, c));
        assert_eq!(counters, [1, missing, 0], "{text}");
        // The next call's start is known.
        let state = m.value(TASKS, &m.task.to_le_bytes()).unwrap();
        assert_eq!(i32::from(state[0]) & (ATTACHED | state::IN_CALL), 0, "{text}");
    }
}

#[test]
fn a_call_that_does_not_return_has_no_result() {
    for (text, events, filtered, unknown) in [
        ("pid == 20", 2, 0, 0),
        ("pid == 21", 1, 1, 0),
        ("pid == 20 || retval == 0", 1, 0, 1),
        ("dur == 4000", 2, 0, 0),
        ("dur != 4000", 1, 1, 0),
    ] {
        let mut m = in_close(0);
        let program = syscalls::exit(&maps(3), &offsets(None), &session(with_neighbours(text, 3))).unwrap();
        let task = m.task;
        m.run_words(&program, &[task]).unwrap_or_else(|e| panic!("{text}: {e}\n{program}"));
        assert_eq!(m.drain(RING).len(), events, "{text}");
        assert_eq!([SEEN, FILTERED, UNKNOWN].map(|c| counter(&m, c)), [2, filtered, unknown], "{text}");
    }
}

/// On a whole machine: what a thread makes of its returns from calls, each a number, a result and whether it was entered; with
/// these flags in its task storage before.
fn returns(flags: i32, calls: &[(u32, i64, bool)]) -> Vec<Vec<u8>> {
    let schema = events::registry::by_name("getppid").expect("a row");
    let nr = schema.x86_64.expect("a number");
    let offsets = BtfOffsets { thread_status: 8, task_signal: 32, signal_exec: 8, ..BtfOffsets::default() };
    let session = Session { system_wide: true, ..Session::default() };
    let maps = maps(nr);
    let mut m = machine(schema, nr, &[]);
    // A start of 0 means that nothing is known.
    (m.time, m.tick) = (1000, 1);
    let mut value = [0; state::SIZE as usize];
    value[..4].copy_from_slice(&flags.to_le_bytes());
    let task = m.task.to_le_bytes();
    assert!(m.set_value(TASKS, &task, &value));
    let enter = syscalls::sys_enter(&maps, &offsets, &session, Source::All).expect("a program");
    let exit = syscalls::sys_exit(&maps, &offsets, &session, Source::All).expect("a program");
    for (nr, ret, entered) in calls {
        let mut regs = [0u8; 168];
        regs[120..124].copy_from_slice(&nr.to_le_bytes());
        regs[80..88].copy_from_slice(&ret.to_le_bytes());
        let regs = m.add_kernel(&regs, Access::ReadOnly);
        if *entered {
            m.run_words(&enter, &[regs, u64::from(*nr)]).expect("a run");
        }
        m.run_words(&exit, &[regs, *ret as u64]).expect("a run");
    }
    m.drain(RING)
}

#[test]
fn the_first_return_of_a_thread_tells_of_a_call_from_before() {
    const GETPPID: u32 = 110;
    const CLONE: u32 = 56;
    let known = |events: Vec<Vec<u8>>| -> Vec<(i64, bool)> {
        let parse =
            |e: &Vec<u8>| Event::parse(e).map(|e| (e.ret(), e.caps() & CAP_START_UNKNOWN == 0)).expect("an event");
        events.iter().map(parse).collect()
    };
    assert_eq!(known(returns(0, &[(GETPPID, 7, false), (GETPPID, 8, true)])), [(7, false), (8, true)]);
    // Later too: a call that was refused before it began has no entry.
    assert_eq!(known(returns(0, &[(GETPPID, 7, true), (GETPPID, 8, false)])), [(7, true), (8, false)]);
    // A child's first return, and then a call.
    assert_eq!(known(returns(0, &[(CLONE, 0, false), (GETPPID, 8, true)])), [(8, true)]);
    for mark in [state::LEFT_OUT, state::OWN] {
        assert_eq!(known(returns(mark, &[(GETPPID, 7, false), (GETPPID, 8, true)])), []);
    }
}

/// Sets a word that user space has mapped: the switch of the machine's only processor.
fn switch(m: &mut Machine, to: u64) {
    let mut value = m.value(SCRATCHES, &[0; 4]).expect("scratch memory").to_vec();
    let at = scratch::index(0, scratch::SWITCH);
    value[at..at + 8].copy_from_slice(&to.to_le_bytes());
    assert!(m.set_value(SCRATCHES, &[0; 4], &value));
}

#[test]
fn a_session_that_is_stopped_holds_calls_back() {
    use syscalls::session_switch::{NO_UNKNOWN, STOPPED};
    let (offsets, session) = (offsets(None), Session { switch: Some(0), unknown: true, ..Session::default() });
    let exit = syscalls::sys_exit(&maps(3), &offsets, &session, Source::All).unwrap();
    for (flags, word, events) in [
        (0, 0, 1),
        (0, STOPPED, 0),
        (0, NO_UNKNOWN, 1),
        // Calls without a row.
        (state::COMPAT, 0, 1),
        (state::COMPAT, STOPPED, 0),
        (state::COMPAT, NO_UNKNOWN, 0),
        // One that was not wanted when it began.
        (state::UNREAD, 0, 0),
    ] {
        let mut m = in_close(flags);
        switch(&mut m, word);
        m.run_words(&exit, &[0, 0]).unwrap_or_else(|e| panic!("{flags} {word}: {e}\n{exit}"));
        assert_eq!((m.drain(RING).len(), counter(&m, SEEN)), (events, events as u64), "{flags} {word}");
        // The call is over in any case.
        let state = m.value(TASKS, &m.task.to_le_bytes()).unwrap();
        assert_eq!(i32::from(state[0]) & state::IN_CALL, 0);
    }
    // The end of a task is told of, the call that it ends in is not.
    let exit = syscalls::exit(&maps(3), &offsets, &session).unwrap();
    for (word, names) in [(0, &["close", "exit"][..]), (STOPPED, &["exit"][..])] {
        let mut m = in_close(0);
        switch(&mut m, word);
        let task = m.task;
        m.run_words(&exit, &[task]).unwrap_or_else(|e| panic!("{e}\n{exit}"));
        let events = m.drain(RING);
        let found: Vec<&str> = events.iter().map(|e| Event::parse(e).expect("an event").schema.name).collect();
        assert_eq!(found, names);
    }
}

/// The session's switch and what the ops keep in the scratch buffer are words of their own: with every call, so with every op.
#[test]
fn a_session_that_can_be_stopped_records_every_call_as_any_other_does() {
    let mut random = Random::new(0x7261_706c_696e_6503);
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(schema) = events::registry::by_number(nr.into()) else { continue };
        for round in 0..4 {
            let (memory, args) = (random.memory(), std::array::from_fn(|_| random.argument()));
            let ret = if round == 0 { 5000 } else { random.result() };
            let want = traced(schema, nr, &args, ret, &memory);
            let (offsets, session) = (offsets(None), Session { switch: Some(0), ..Session::default() });
            let mut m = machine(schema, nr, &memory);
            let regs = m.add_kernel(&registers(&args, ret), Access::ReadOnly);
            let enter = syscalls::sys_enter(&maps(nr), &offsets, &session, Source::All).expect("a program");
            let exit = syscalls::sys_exit(&maps(nr), &offsets, &session, Source::All).expect("a program");
            let becomes_another = ret >= 0 && schema.name.starts_with("execve");
            for word in [0, 0, syscalls::session_switch::STOPPED, 0] {
                switch(&mut m, word);
                let about = format!("{} {args:x?} = {ret}, switch {word}", schema.name);
                m.run_words(&enter, &[regs, nr.into()]).unwrap_or_else(|e| panic!("{about}: {e}\n{enter}"));
                assert_eq!(counter(&m, scratch::SWITCH), word, "{about}");
                if becomes_another {
                    m.memory.clear_user();
                }
                m.run_words(&exit, &[regs, ret as u64]).unwrap_or_else(|e| panic!("{about}: {e}\n{exit}"));
                assert_eq!(counter(&m, scratch::SWITCH), word, "{about}");
                let expected = if word == 0 { std::slice::from_ref(&want) } else { &[] };
                assert_eq!(m.drain(RING), expected, "{about}");
                if becomes_another {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_call_that_became_wanted_too_late_to_be_read_is_not_shown() {
    let limits = RowLimits { string: STRING, text: 0, verbose: false, keep: Default::default() };
    for (name, events) in [("execve", 0), ("close", 1)] {
        let schema = events::registry::by_name(name).expect("a row");
        let nr = schema.x86_64.expect("a number");
        let (offsets, session) = (offsets(None), Session { switch: Some(0), ..Session::default() });
        let mut m = machine(schema, nr, &[0; 64]);
        let regs = m.add_kernel(&[0; 168], Access::ReadOnly);
        assert!(m.set_value(ROWS, &nr.to_le_bytes(), &rows::row(schema, false, limits)));
        let enter = syscalls::sys_enter(&maps(nr), &offsets, &session, Source::All).unwrap();
        let exit = syscalls::sys_exit(&maps(nr), &offsets, &session, Source::All).unwrap();
        let call = |m: &mut Machine| {
            m.run_words(&enter, &[regs, nr.into()]).unwrap_or_else(|e| panic!("{e}\n{enter}"));
            assert!(m.set_value(ROWS, &nr.to_le_bytes(), &rows::row(schema, true, limits)));
            m.run_words(&exit, &[regs, 0]).unwrap_or_else(|e| panic!("{e}\n{exit}"));
            m.drain(RING).len()
        };
        assert_eq!((call(&mut m), call(&mut m)), (events, 1), "{name}");
    }
}
