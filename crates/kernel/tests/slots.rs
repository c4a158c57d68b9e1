//! The words of a call are found by its thread's kernel stack: whose call it is stays right, however few slots there are for them.

use engine::capture::Limits;
use engine::pipeline::backend::Backend;
use engine::plan::{self, OnFull, Plan};
use engine::request::enabling::of_calls;
use engine::request::select::Calls;
use engine::target::Target;
use events::{Event, StreamId};
use kernel::Kernel;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use testkit::{compiled, skip};

/// One test at a time: each of the whole machine would see the others.
static ALONE: Mutex<()> = Mutex::new(());
/// Few slots, some, and as many as usual; and whether the ends of calls alone are traced.
const SESSIONS: [Session; 4] = [(Some(1), false), (Some(4), false), (Some(4), true), (None, false)];

type Session = (Option<u32>, bool);

fn plan(target: Target, (slots, no_duration): Session) -> Plan {
    Plan {
        enablings: of_calls(&Calls::all()),
        functions: None,
        refiltered: false,
        call_captures: Vec::new(),
        unwind: Default::default(),
        samples_beside: None,
        copied_stack: 0,
        callers: None,
        measure: false,
        target,
        follow: true,
        limits: Limits { string: 32, text: 0, verbose: false, keep: Default::default() },
        fd_names: false,
        fd_details: false,
        seccomp: true,
        kill_on_exit: false,
        on_full: OnFull::Drop,
        buffer: 16 << 20,
        backend: plan::Backend::Auto,
        named: false,
        paused: false,
        notice_ms: 200,
        slots,
        buffer_is_asked: true,
        no_duration,
        filter: None,
    }
}

/// What a run of `whose_calls` leaves: its calls by thread, how many events were lost, and how many calls are not those of the thread that they
/// name.
struct Left {
    by_thread: BTreeMap<u32, u64>,
    lost: u64,
    wrong: u64,
}

/// Runs the program; none where this is skipped.
fn run(words: [&str; 3], whole: bool, session: Session) -> Option<Left> {
    if !testkit::is_root() {
        skip("root", "bpf(2) needs privilege");
        return None;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = compiled("whose_calls", "whose_calls.c", &[])?;
    // A session gives up the privileges of its thread.
    let watched = std::thread::scope(|s| s.spawn(|| watch(&program, words, whole, session)).join());
    Some(watched.unwrap_or_else(|p| std::panic::resume_unwind(p)))
}

fn watch(program: &str, words: [&str; 3], whole: bool, session: Session) -> Left {
    // It is attached to in the midst of a call, and is no descendant of this process: a session of the whole machine leaves those out.
    const SCRIPT: &str = r#"exec 3<&0; { read go; exec "$@"; } <&3 3<&- & echo $!"#;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "sh", program]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let (mut go, mut said) =
        (shell.stdin.take().expect("a pipe"), BufReader::new(shell.stdout.take().expect("a pipe")));
    let mut pid = String::new();
    said.read_line(&mut pid).expect("its pid");
    assert!(shell.wait().expect("it ends").success());
    let target = match whole {
        true => Target::All { left_out: vec![] },
        false => Target::Pids(vec![pid.trim().parse().expect("its pid")]),
    };
    let mut kernel = Kernel::start(&plan(target, session)).unwrap_or_else(|e| panic!("{e}"));
    go.write_all(b"go\n").expect("it waits");
    let ended = std::thread::spawn(move || said.read_to_string(&mut String::new()));
    let mut left = Left { by_thread: BTreeMap::new(), lost: 0, wrong: 0 };
    loop {
        let polled = kernel.poll(true, &mut |_: StreamId, event: &[u8]| {
            let event = Event::parse(event).expect("an event");
            if event.schema.name != "lseek" || event.value_of("fd") as i32 != -1 {
                return;
            }
            let named = [event.value_of("offset"), event.value_of("whence")].map(|id| id as u32);
            *left.by_thread.entry(event.tid()).or_default() += 1;
            left.wrong += u64::from([event.tid(), event.pid()] != named || event.ret() != -9);
        });
        if polled.ended {
            break;
        }
        if whole && ended.is_finished() {
            kernel.stop();
        }
        if polled.events == 0 {
            kernel.wait(Duration::from_millis(5));
        }
    }
    left.lost = kernel.report().losses.total;
    left
}

/// `threads`: how many threads make calls, and how many calls each makes.
fn all_are_there(words: [&str; 3], threads: usize, each: u64) {
    for (session, whole) in SESSIONS.into_iter().flat_map(|session| [(session, false), (session, true)]) {
        let Some(left) = run(words, whole, session) else { return };
        let found: u64 = left.by_thread.values().sum();
        let made = threads as u64 * each;
        assert_eq!(left.wrong, 0, "{words:?} {session:?} {whole}: of {found}");
        assert!(
            found <= made && found + left.lost >= made,
            "{words:?} {session:?} {whole}: {found} and {} of {made}",
            left.lost
        );
        if left.lost == 0 {
            assert_eq!(left.by_thread.len(), threads, "{words:?} {session:?} {whole}");
            assert!(left.by_thread.values().all(|n| *n == each), "{words:?} {session:?} {whole}: {:?}", left.by_thread);
        }
    }
}

#[test]
fn a_thousand_threads_share_two_slots() {
    all_are_there(["threads", "1000", "20"], 1000, 20);
}

#[test]
fn stacks_that_pass_to_other_threads_pass_without_their_calls() {
    all_are_there(["processes", "150", "10"], 300, 10);
}

#[test]
fn a_second_thread_that_executes_a_program_is_the_process() {
    const TIMES: u64 = 20;
    for session in SESSIONS {
        let Some(left) = run(["exec", "20", "10"], false, session) else { return };
        assert_eq!(
            (left.wrong, left.by_thread.values().sum::<u64>(), left.lost),
            (0, (TIMES + 1) * 10, 0),
            "{session:?}"
        );
        // Each image has a second thread of its own, but for the last one.
        assert_eq!(left.by_thread.len() as u64, TIMES + 1, "{session:?}");
    }
}
