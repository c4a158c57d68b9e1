//! Calls that processes record themselves under ptrace: all of them, in order, and nothing else of the program is different.

use crate::lab::{self, each_ptracer};
use crate::trace::{Trace, trace};
use std::collections::BTreeMap;

/// How often each call was made, by name, without those of which a handler or a scheduler decides how often they are made.
fn counts(t: &Trace) -> BTreeMap<String, usize> {
    let varies = [
        "rt_sigreturn",
        "read",
        "write",
        "getppid",
        "nanosleep",
        "clock_nanosleep",
        "futex",
        "setitimer",
        "rt_sigprocmask",
        // A thread is cancelled by a signal only where it has begun.
        "tgkill",
        "getpid",
    ];
    let mut counts = BTreeMap::new();
    for line in &t.lines {
        let name = line.text.split('(').next().unwrap_or_default();
        if line.text.contains('(') && !varies.contains(&name) && !name.starts_with(['+', '-']) {
            *counts.entry(name.to_string()).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn the_program_does_not_notice() {
    each_ptracer(|user| {
        let Some(program) = lab::program("own_calls") else { return };
        let alone = lab::run(&mut lab::as_user(user, &[&program]));
        assert!(alone.out().ends_with("descriptors: 0\n"), "{} {}", alone.code(), alone.stderr);
        let alone = alone.out();
        let recorded = trace(user, &["-f"], &[&program]);
        assert_eq!((recorded.outcome.code(), recorded.outcome.out()), (0, alone.clone()));
        let stopped = trace(user, &["-f", "--no-seccomp"], &[&program]);
        assert_eq!(stopped.outcome.out(), alone);
        assert_eq!(counts(&recorded), counts(&stopped));
    });
}

/// What each thread did, apart from addresses and ids: the same lines as where every call stops.
#[test]
fn lines_are_those_of_stops() {
    each_ptracer(|user| {
        let script = "import os,json,threading\nr,w=os.pipe()\n\
            for i in range(300): os.write(w,b'%d'%i); os.read(r,10); os.stat('/etc'); os.access('/nothing',0)\n\
            for i in range(300): os.lseek(os.open('/etc/passwd',0),i,0)\n";
        let many = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/many_calls.py");
        for command in [
            &["ls", "-lR", "/etc/apt"][..],
            &["python3", "-I", "-S", "-c", script],
            &["python3", "-I", "-S", many],
            // Later programs are patched at sites that are known of the first.
            &["sh", "-c", "for i in 1 2 3 4; do cat /etc/passwd; /bin/echo $i; done"],
            &["sh", "-c", "for i in 1 2 3; do while read x; do echo $x; done </etc/passwd; done"],
        ] {
            same_as_stops(user, &[], command);
        }
    });
}

/// Also what their descriptors are.
#[test]
fn descriptors_have_the_names_of_stops() {
    let many = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/descriptors.py");
    each_ptracer(|user| {
        // Where chroot is not selected, names still are those of the tracer's root directory.
        for options in [&["-y"][..], &["-yy"], &["-y", "-e", "openat,read,fcntl"]] {
            same_as_stops(user, options, &["python3", "-I", "-S", many]);
        }
    });
}

/// Messages of queues, and several of sockets in one call: with names, control data, bad addresses, and more than a record takes.
#[test]
fn messages_are_those_of_stops() {
    each_ptracer(|user| {
        let Some(program) = lab::program("messages") else { return };
        for options in [&[][..], &["-y"], &["-s", "0"], &["-s", "100"], &["-v"]] {
            same_as_stops(user, options, &[&program]);
        }
        let t = trace(user, &["-f", "-e", "msgsnd,msgrcv,sendmmsg"], &[&program]);
        let shows = |text: &str| t.lines.iter().filter(|l| l.text.contains(text)).count();
        assert_eq!(shows("{mtype=2, mtext=\"hel\"}, 3, 0, MSG_NOERROR) = 3"), 8);
        assert_eq!(shows("{mtype=2, mtext=\"helloxxxxxxxxxxxxxxxxxxxxxxxxxxx\"...}, 100, 0) = 0"), 8);
        assert_eq!(shows("{mtype=3, mtext=\"abcdefgh\"}, 8, 0"), 16);
        // What was sent of each is read behind the call.
        assert_eq!((shows("msg_len=12345"), shows("msg_len=0}") > 100), (0, true));
    });
}

/// A call that stops gives up the processor at least twice.
#[test]
fn few_messages_do_not_stop() {
    const PAIRS: usize = 2000;
    each_ptracer(|user| {
        let Some(program) = lab::program("messages") else { return };
        let t = trace(user, &["-f"], &[&program, &PAIRS.to_string()]);
        let calls = t.lines.iter().filter(|l| l.text.contains("mmsg(")).count();
        let gave_up: usize = t.outcome.out().trim().parse().expect("a number");
        assert!((t.outcome.code(), calls) == (0, 2 * PAIRS) && gave_up < PAIRS, "{calls} {gave_up}");
    });
}

/// The calls that a process makes to look at its descriptors are nobody's, also where such calls of the program's own stop.
#[test]
fn calls_of_the_code_are_not_shown() {
    let many = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/descriptors.py");
    each_ptracer(|user| {
        let made = |also: &[&str]| {
            let t = trace(user, &[&["-f", "-v", "-y"], also].concat(), &["python3", "-I", "-S", many]);
            assert_eq!(t.outcome.code(), 0, "{}", t.outcome.stderr);
            counts(&t)
        };
        let (recorded, stopped) = (made(&[]), made(&["--no-seccomp"]));
        // The code makes fcntl(2) alone; Python's own mappings differ from run to run.
        assert!(stopped["fcntl"] > 10 && recorded["fcntl"] == stopped["fcntl"], "{recorded:?} {stopped:?}");
    });
}

/// Asserts that each thread has the same lines whether its calls stop or not.
fn same_as_stops(user: lab::User, options: &[&str], command: &[&str]) {
    let lines = |also: &[&str]| {
        let t = trace(user, &[&["-f"], options, also].concat(), command);
        assert_eq!(t.outcome.code(), 0, "{}", t.outcome.stderr);
        // Threads are beside each other in any order.
        let mut threads: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        // Whether a child ends before it is waited for, and when a heap grows that begins anywhere, is a matter of luck.
        let luck = ["--- SIGCHLD", "wait4(", "rt_sigreturn(", "brk(", "mmap(", "munmap("];
        // A busy machine makes calls long.
        let is_luck = |text: &str| luck.iter().any(|luck| text.starts_with(luck)) || text.ends_with("<in flight>");
        let lines = t.lines.iter().filter(|l| !is_luck(&l.text));
        lines.for_each(|l| threads.entry(l.tid).or_default().push(without_addresses(&l.text)));
        let mut threads: Vec<Vec<String>> = threads.into_values().collect();
        threads.sort();
        threads.concat()
    };
    let (recorded, stopped) = (lines(&[]), lines(&["--no-seccomp"]));
    let different = recorded.iter().zip(&stopped).find(|(a, b)| a != b);
    assert!(different.is_none() && recorded.len() == stopped.len(), "{command:?} {different:?}");
}

/// Numbers of three and more digits, hexadecimal ones, random bytes and the state of the machine differ from run to run.
fn without_addresses(text: &str) -> String {
    if ["getrandom(", "sysinfo("].iter().any(|name| text.starts_with(name)) {
        return String::new();
    }
    // So does the id of a message queue.
    if let Some((name, rest)) = text.split_once('(').filter(|(name, _)| ["msgsnd", "msgrcv", "msgctl"].contains(name)) {
        let (_, rest) = rest.split_once(',').unwrap_or_default();
        return format!("{name}{}", without_addresses(rest));
    }
    if text.starts_with("msgget(") {
        return String::new();
    }
    // So do the bytes of a process's id.
    let (text, _) = text.split_once("SCM_CREDENTIALS, cmsg_data=").unwrap_or((text, ""));
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_number = word.starts_with("0x") || word.len() > 2 && word.bytes().all(|b| b.is_ascii_digit());
        out.push_str(if is_number { "N" } else { word });
        out.push_str(&part[word.len()..]);
    }
    // Results are aligned.
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_call_is_in_the_trace() {
    each_ptracer(|user| {
        for options in [&[][..], &["-e", "read,write"], &["--on-full", "drop"], &["-y"], &["--where", "retval >= 0"]] {
            let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000"];
            let t = trace(user, &[&["-f"], options].concat(), &command);
            assert_eq!(t.outcome.code(), 0, "{options:?}");
            let made = |name: &str| t.lines.iter().filter(|l| l.text.starts_with(name)).count();
            let dropped = options.contains(&"drop");
            assert!(made("write(1") == 20_000 || dropped, "{options:?} {}", made("write(1"));
            assert!(made("read(0") == 20_000 || dropped, "{options:?} {}", made("read(0"));
        }
    });
}

/// A call that a thread is in when it is killed, and one that takes long.
#[test]
fn calls_without_an_end_are_shown() {
    each_ptracer(|user| {
        let script = "import os,signal,threading\nr,w=os.pipe()\nfor i in range(40): os.write(w,b'x'); os.read(r,1)\n\
            threading.Timer(0.5,lambda: os.kill(os.getpid(),9)).start()\nos.read(r,7)";
        let t = trace(user, &["-f"], &["python3", "-I", "-S", "-c", script]);
        let last = t.lines.iter().rfind(|l| l.text.starts_with("read(")).expect("a read");
        assert!(last.text.contains(", 7") && last.text.ends_with("= ?"), "{}", last.text);
    });
}

#[test]
fn without_memory_for_it_calls_stop() {
    let command = "ulimit -v 60000; exec dd if=/dev/zero of=/dev/null bs=1 count=300";
    each_ptracer(|user| {
        let t = trace(user, &["-f"], &["sh", "-c", command]);
        assert_eq!(t.outcome.code(), 0, "{}", t.outcome.stderr);
        assert_eq!(t.lines.iter().filter(|l| l.text.starts_with("write(1")).count(), 300);
    });
}

/// Threads, and children of fork, of which there are more than the memory has slots for at first: their calls do not stop either.
#[test]
fn hundreds_of_threads_and_processes_record_their_calls() {
    const CROWD: usize = 250;
    each_ptracer(|user| {
        let Some(program) = lab::program("crowd") else { return };
        for kind in ["threads", "processes"] {
            let t = trace(user, &["-f", "-e", "getppid"], &[&program, kind, &CROWD.to_string()]);
            let calls = t.lines.iter().filter(|line| line.text.starts_with("getppid(")).count();
            assert_eq!((t.outcome.code(), calls), (0, CROWD * 300), "{kind}: {}", t.outcome.stderr);
            let out = t.outcome.out();
            let numbers: Vec<usize> = out.split(' ').filter_map(|word| word.parse().ok()).collect();
            // A call that stops gives up the processor at least twice.
            assert!(numbers[0] == CROWD * 100 && numbers[1] < CROWD * 20, "{kind}: {out}");
        }
    });
}
