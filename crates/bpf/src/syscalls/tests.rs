//! The programs, interpreted over the memory of a small made-up kernel: ids, signals, stops, late paths, names.

mod no_entry;
mod signals;

use super::*;
use crate::btf_offsets::{BtfOffsets, Ids, Names, Namespace};
use crate::capture_row::{self, Limits};
use crate::frame::Generated;
use crate::interp::{Access, Machine};
use crate::scratch;
use ::events::Event;
use ::events::generated as g;

mod slots;

const TASKS: i32 = 3;
const SCRATCHES: i32 = 4;
const RING: i32 = 5;
const ROWS: i32 = 6;
const SWITCHES: i32 = 7;
const OPENAT: u32 = 257;

// Where our kernel's task_struct has what.
const TASK: usize = 256;
const STATUS: usize = 0;
const TGID: usize = 8;
const PID: usize = 16;
const SIGNAL: usize = 24;
const FILES: usize = 32;
const LEADER: usize = 40;
const THREAD_PID: usize = 48;
const JOBCTL: usize = 56;
const STATE: usize = 64;
const PARENT: usize = 72;
const FS: usize = 80;

/// What the scratch buffer is made for, here ([`with_both_rings`]).
fn shape() -> scratch::Shape {
    match OWN.get() {
        true => scratch::Shape::CALLS.with_ring(1 << 20).expect("a small ring"),
        false => scratch::Shape::CALLS,
    }
}

thread_local! {
    static OWN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a test with the kernel's ring, and with the ring that programs write themselves.
fn with_both_rings(test: fn()) {
    for own in [false, true] {
        OWN.set(own);
        test();
    }
    OWN.set(false);
}

fn maps() -> Maps {
    let row_count = OPENAT as i32 + 1;
    Maps {
        tasks: TASKS,
        scratch: SCRATCHES,
        shape: shape(),
        rings: if shape().has_rings() { Vec::new() } else { vec![RING] },
        rows: ROWS,
        row_count,
        switches: SWITCHES,
        stacks: None,
        slots: None,
    }
}

fn offsets() -> BtfOffsets {
    BtfOffsets {
        thread_status: STATUS as i16,
        task_tgid: TGID as i16,
        task_pid: PID as i16,
        task_signal: SIGNAL as i16,
        task_files: FILES as i16,
        task_jobctl: JOBCTL as i16,
        task_state: STATE as i16,
        task_parent: PARENT as i16,
        signal_flags: 0,
        signal_exec: 8,
        signal_pids: 16,
        binprm_filename: 0,
        binprm_fdpath: 8,
        ids: Ids { thread_pid: THREAD_PID as i32, group_leader: LEADER as i32, level: 0, numbers: 8, upid: 16 },
        ..BtfOffsets::default()
    }
}

struct World {
    m: Machine,
}

impl World {
    /// A machine with its maps, and one traced task, the current one: thread 21 of process 20.
    fn new() -> World {
        let mut m = Machine::new();
        m.pid_tgid = 20 << 32 | 21;
        m.add_task_storage(TASKS, state::SIZE as usize);
        m.add_buffer(SCRATCHES, shape());
        m.add_ring(RING, 1 << 20);
        m.add_array(ROWS, capture_row::ROW, OPENAT + 1);
        m.add_hash(SWITCHES, 16, 32, 1);
        let mut w = World { m };
        w.m.task = w.task(20, 21, 0);
        w.trace(w.m.task, &[]);
        w
    }

    fn object(&mut self, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.m.add_kernel(&bytes, Access::ReadWrite)
    }

    fn put(&mut self, at: u64, field: usize, value: u64) {
        self.m.memory.write(at + field as u64, &value.to_le_bytes()).expect("memory of our own");
    }

    /// A task, with ids that are 100 and 1000 less two and four levels down, and a signal_struct with these flags.
    fn task(&mut self, tgid: u64, pid: u64, flags: u64) -> u64 {
        let task = self.object(&[0; TASK / 8]);
        // struct signal_struct: flags, group_exec_task, pids of four kinds
        let signal = self.object(&[flags, 0, 0, 0, 70, 80]);
        for (field, value) in [(TGID, tgid), (PID, pid), (SIGNAL, signal)] {
            self.put(task, field, value);
        }
        // struct pid: level, then { nr, ns } by level
        let ids = |id: u64| [1, id, 0, id + 500, 0];
        let thread = self.object(&ids(pid));
        let leader = if tgid == pid { task } else { self.object(&[0; TASK / 8]) };
        let process = self.object(&ids(tgid));
        self.put(task, THREAD_PID, thread);
        self.put(task, LEADER, leader);
        if leader != task {
            self.put(leader, THREAD_PID, process);
        }
        task
    }

    /// Gives a task a state with these words in it.
    fn trace(&mut self, task: u64, words: &[(i16, u64)]) {
        let mut value = [0u8; state::SIZE as usize];
        for (at, word) in words {
            value[*at as usize..*at as usize + 8].copy_from_slice(&word.to_le_bytes());
        }
        assert!(self.m.set_value(TASKS, &task.to_le_bytes(), &value));
    }

    fn state(&self, task: u64) -> Vec<u8> {
        self.m.value(TASKS, &task.to_le_bytes()).expect("a state")
    }

    fn run(&mut self, program: Generated, ctx: &[u64]) -> Vec<Vec<u8>> {
        let program = program.expect("a program");
        if let Err(fault) = self.m.run_words(&program, ctx) {
            panic!("{fault}\n{program}");
        }
        self.drain()
    }

    fn drain(&mut self) -> Vec<Vec<u8>> {
        if shape().has_rings() { self.m.drain_buffer(SCRATCHES, shape()) } else { self.m.drain(RING) }
    }

    /// The end of a call, whose result the registers hold (ax).
    fn returns(&mut self, offsets: &BtfOffsets, regs: u64, ret: u64) -> Vec<Vec<u8>> {
        self.put(regs, 80, ret);
        self.run(sys_exit(&maps(), offsets, &Session::default(), Source::All), &[regs, ret])
    }

    fn siginfo(&mut self, signo: u32, code: i32, pid: u32) -> u64 {
        let words = [u64::from(signo), u64::from(code as u32), u64::from(pid), 0, 0, 0];
        self.object(&words)
    }
}

fn names(events: &[Vec<u8>]) -> Vec<&'static str> {
    events.iter().map(|e| Event::parse(e).expect("an event").schema.name).collect()
}

fn values(event: &[u8], fields: &[&str]) -> Vec<u64> {
    let ev = Event::parse(event).expect("an event");
    fields.iter().map(|f| ev.value_of(f)).collect()
}

#[test]
fn ids_are_those_of_the_level_that_the_session_has() {
    with_both_rings(|| {
        let level = |level: i16| Namespace {
            thread_pid: THREAD_PID as i16,
            group_leader: LEADER as i16,
            number: 8 + 16 * level,
        };
        for (namespace, add) in [(None, 0), (Some(level(0)), 0), (Some(level(1)), 500)] {
            let mut w = World::new();
            let offsets = BtfOffsets { namespace, ..offsets() };
            let child = w.task(33, 33, 0);
            let parent = w.m.task;
            let events = w.run(fork(&maps(), &offsets, &Session::default()), &[parent, child]);
            assert_eq!(names(&events), ["fork"]);
            let ev = Event::parse(&events[0]).expect("an event");
            assert_eq!((ev.pid(), ev.tid()), (20 + add, 21 + add));
            assert_eq!(values(&events[0], &["child", "tid"]), [33 + u64::from(add); 2]);
            assert_eq!(w.state(child)[state::TID as usize..][..4], (33 + add).to_le_bytes());
            // A thread that takes its leader's id by execve keeps its first one in its state.
            w.trace(parent, &[(state::TID, 7)]);
            let binprm = w.object(&[0; 4]);
            let events = w.run(exec(&maps(), &offsets, &Session::default()), &[parent, 9, binprm]);
            let old = if namespace.is_some() { 7 } else { 9 };
            assert_eq!((names(&events), values(&events[0], &["old_tid"])), (vec!["exec"], vec![old]));
        }
    });
}

#[test]
fn a_path_that_faulted_at_entry_is_the_kernel_s_at_exec() {
    with_both_rings(|| {
        let (maps, offsets, session) = (maps(), offsets(), Session::default());
        let tails = b"\0and the others";
        for (nr, caps, fdpath, expected) in [
            (59u64, 3u64 | 1 << 2, 0u64, Some(1 | 1 << 2)),
            (59, 1, 0, None),
            (322, 3 << 2 | 1 << 4, 0, Some(1 << 2 | 1 << 4)),
            (322, 3 << 2, 1, None),
            (2, 3, 0, None),
        ] {
            let mut w = World::new();
            let task = w.m.task;
            let name = w.m.add_kernel(b"/bin/true\0", Access::ReadOnly);
            let binprm = w.object(&[name, fdpath]);
            let mut words =
                vec![(state::FLAGS, 1), (state::NR, nr), (state::LEN, tails.len() as u64), (state::CAPS, caps)];
            for (i, chunk) in tails.chunks(8).enumerate() {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                words.push((state::TAILS + 8 * i as i16, u64::from_le_bytes(word)));
            }
            w.trace(task, &words);
            w.run(exec(&maps, &offsets, &session), &[task, 21, binprm]);
            let state = w.state(task);
            let word = |at: i16| u64::from_le_bytes(state[at as usize..][..8].try_into().unwrap());
            let have = &state[state::TAILS as usize..][..word(state::LEN) as usize];
            match expected {
                Some(caps) => assert_eq!((have, word(state::CAPS)), (&b"/bin/true\0and the others"[..], caps), "{nr}"),
                None => assert_eq!((have, word(state::CAPS)), (&tails[..], caps), "{nr}"),
            }
        }
    });
}

/// Our kernel's files: offsets of 8 bytes a field, in the order of [`Names`].
fn where_names_are() -> Names {
    Names {
        files: [FILES as i32, 0],
        fdtable: [0, 8, 16],
        file: [0, 16],
        path: [0, 8],
        fs: [FS as i32, 0],
        dentry: [0, 8, 16, 24, 32, 40],
        dname: 0,
        inode: [0, 8, 16],
        magic: 0,
        mount: [0, 8, 16, 24],
        sockets: None,
    }
}

#[test]
fn a_new_descriptor_s_path_crosses_mounts_up_to_the_first() {
    with_both_rings(|| {
        let offsets = BtfOffsets { names: Some(where_names_are()), ..offsets() };
        let mut w = World::new();
        let task = w.m.task;
        let row = capture_row::row(
            &g::C_OPENAT,
            true,
            Limits { string: 32, text: 0, verbose: false, keep: Default::default() },
        );
        assert!(w.m.set_value(ROWS, &OPENAT.to_le_bytes(), &row));
        let (inode, sb) = (w.object(&[4711, 5, 0o100_644]), w.object(&[0xef53]));
        let entry = |w: &mut World, parent: u64, name: &[u8], hashed: u64| {
            let name = w.m.add_kernel(name, Access::ReadOnly);
            let d = w.object(&[parent, name, inode, sb, 0, hashed]);
            if parent == 0 {
                w.put(d, 0, d);
            }
            d
        };
        // The first mount: /mnt; upon that another: sub/file.
        let root = entry(&mut w, 0, b"/\0", 0);
        let point = entry(&mut w, root, b"mnt\0", 1);
        let first = w.object(&[0, root, 0, 0]);
        w.put(first, 16, first);
        let upper = entry(&mut w, 0, b"/\0", 0);
        let second = w.object(&[0, upper, first, point]);
        let sub = entry(&mut w, upper, b"sub\0", 1);
        let file = entry(&mut w, sub, b"file\0", 1);
        let gone = entry(&mut w, sub, b"gone\0", 0);
        let open: Vec<u64> = [file, gone, upper].iter().map(|d| w.object(&[second, *d, 0])).collect();
        let (cloexec, table) = (w.object(&[0b010]), w.object(&open));
        let fdt = w.object(&[3, cloexec, table]);
        let files = w.object(&[fdt]);
        w.put(task, FILES, files);
        let regs = w.object(&[0; 21]);
        let layout = events::registry::layout(g::P_FD.id).expect("a layout");
        for (fd, bits, cloexec, components) in [
            (0u64, raw::WHOLE, 0, &b"file\0sub\0mnt\0"[..]),
            (1, raw::WHOLE | raw::UNLINKED, 1, b"gone\0sub\0mnt\0"),
            (2, raw::WHOLE, 0, b"mnt\0"),
        ] {
            w.trace(task, &[(state::FLAGS, 1), (state::NR, OPENAT.into())]);
            let events = w.returns(&offsets, regs, fd);
            assert_eq!(events.len(), 2);
            let (record, call) = (&events[0], Event::parse(&events[1]).expect("an event"));
            assert_eq!((call.schema.name, call.ret()), ("openat", fd as i64));
            assert_eq!(record[8..10], g::P_FD.id.to_le_bytes());
            let arg = |i: usize| record[usize::from(layout.args[i].0)];
            assert_eq!((u64::from(arg(2)), arg(3)), (fd, 2 | cloexec));
            let tail = &record[layout.fixed..];
            assert_eq!(u64::from_le_bytes(tail[raw::INODE..][..8].try_into().unwrap()), 4711);
            assert_eq!(u64::from_le_bytes(tail[raw::MAGIC..][..8].try_into().unwrap()), 0xef53);
            assert_eq!(tail[raw::BITS..][..2], bits.to_le_bytes());
            assert_eq!(&tail[raw::COMPONENTS..], components);
        }
        // What failed, and what is not open any more, has no name.
        for (ret, events) in [(-2i64, 1), (3, 1)] {
            w.trace(task, &[(state::FLAGS, 1), (state::NR, OPENAT.into())]);
            assert_eq!(w.returns(&offsets, regs, ret as u64).len(), events, "{ret}");
        }
        // A path that never ends is not whole.
        w.put(file, 0, sub);
        w.put(sub, 0, file);
        w.trace(task, &[(state::FLAGS, 1), (state::NR, OPENAT.into())]);
        let events = w.returns(&offsets, regs, 0);
        assert_eq!(events[0][layout.fixed + raw::BITS] & raw::WHOLE as u8, 0);
    });
}

impl World {
    /// A word of the scratch buffer of the only processor, of all places.
    fn word(&self, word: i16) -> u64 {
        // What is seen is counted where it is published, too.
        let published = if word == scratch::SEEN { self.word(scratch::PUBLISHED) } else { 0 };
        let value = self.m.value(SCRATCHES, &[0; 4]).expect("a scratch buffer");
        shape()
            .indices(0, word)
            .map(|at| u64::from_le_bytes(value[at..at + 8].try_into().expect("a word")))
            .sum::<u64>()
            + published
    }

    fn set_word(&mut self, word: i16, to: u64) {
        (0..shape().indices(0, word).count()).for_each(|place| self.set_word_of(place, word, to));
    }

    fn set_word_of(&mut self, place: usize, word: i16, to: u64) {
        let at = shape().indices(0, word).nth(place).expect("a place");
        let mut value = self.m.value(SCRATCHES, &[0; 4]).expect("a scratch buffer");
        value[at..at + 8].copy_from_slice(&to.to_le_bytes());
        assert!(self.m.set_value(SCRATCHES, &[0; 4], &value));
    }
}

/// The parts of a scratch buffer that events are built in, by place.
fn events_of(buffer: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    let Some([first, second]) = shape().levels() else {
        return vec![&mut buffer[scratch::WORDS..]].into_iter();
    };
    let (head, tail) = buffer.split_at_mut(second.data as usize);
    vec![&mut head[first.data as usize..], tail].into_iter()
}

#[test]
fn what_interrupts_a_program_on_its_processor_is_counted_and_spoils_nothing() {
    with_both_rings(|| {
        let (maps, offsets, session) = (maps(), offsets(), Session::default());
        let mut w = World::new();
        let receiver = w.task(40, 40, 0);
        let ignored = w.siginfo(10, 0, 77);
        let task = w.m.task;
        let (child, binprm, action) = (w.task(60, 60, 0), w.object(&[0; 4]), w.object(&[0]));
        w.trace(receiver, &[]);
        assert!(w.m.set_value(
            ROWS,
            &3u32.to_le_bytes(),
            &capture_row::row(
                ::events::registry::by_name("close").expect("close"),
                true,
                Limits { string: 32, text: 0, verbose: false, keep: Default::default() }
            )
        ));
        // In close(3), at its end.
        let in_close: &[(i16, u64)] = &[(state::FLAGS, state::IN_CALL as u64), (state::NR, 3), (state::ARGS, 3)];
        let regs = w.object(&[0; 21]);

        let programs: [(&str, u16, Generated, Vec<u64>); 6] = [
            (
                "signal_generate",
                g::P_SIGNAL.id,
                generated(&maps, &offsets, &session),
                vec![10, ignored, receiver, 1, 1],
            ),
            ("signal_deliver", g::P_SIGNAL.id, delivered(&maps, &offsets, &session), vec![10, ignored, action]),
            ("fork", g::P_FORK.id, fork(&maps, &offsets, &session), vec![task, child]),
            ("exec", g::P_EXEC.id, exec(&maps, &offsets, &session), vec![task, 9, binprm]),
            ("exit", g::P_EXIT.id, exit(&maps, &offsets, &session), vec![task]),
            (
                "sys_exit",
                ::events::registry::by_name("close").expect("close").id,
                sys_exit(&maps, &offsets, &session, Source::All),
                vec![regs, 0],
            ),
        ];
        let places = shape().indices(0, scratch::BUSY).count() as u64;
        for (name, class, program, ctx) in programs {
            let program = program.expect("a program");
            let lost = scratch::DROPPED_CLASSES + 8 * class as i16;
            w.trace(task, in_close);
            // The programs that are interrupted have events half built.
            let mut buffer = w.m.value(SCRATCHES, &[0; 4]).expect("a scratch buffer");
            events_of(&mut buffer).for_each(|part| part.fill(0xa5));
            assert!(w.m.set_value(SCRATCHES, &[0; 4], &buffer));
            w.set_word(scratch::BUSY, 1);
            let before = [scratch::SEEN, scratch::DROPPED, lost].map(|word| w.word(word));
            w.m.run_words(&program, &ctx).unwrap_or_else(|e| panic!("{name}: {e}\n{program}"));
            assert!(w.drain().is_empty(), "{name}");
            let after = [scratch::SEEN, scratch::DROPPED, lost].map(|word| w.word(word));
            assert_eq!(after, before.map(|n| n + 1), "{name}: seen, dropped, dropped of its class");
            let mut buffer = w.m.value(SCRATCHES, &[0; 4]).expect("a scratch buffer");
            let spoilt = events_of(&mut buffer).any(|part| part.iter().any(|b| *b != 0xa5));
            assert!(!spoilt, "{name} writes into another's event");
            assert_eq!(w.word(scratch::BUSY), places, "{name} releases what it has not claimed");
            if places == 2 {
                // The second place is free: the event is built there, and the first one is left alone.
                w.set_word_of(1, scratch::BUSY, 0);
                w.trace(task, in_close);
                w.m.run_words(&program, &ctx).unwrap_or_else(|e| panic!("{name}: {e}\n{program}"));
                assert!(!w.drain().is_empty(), "{name}");
                let mut buffer = w.m.value(SCRATCHES, &[0; 4]).expect("a scratch buffer");
                let first = events_of(&mut buffer).next().expect("the first place");
                assert!(first.iter().all(|b| *b == 0xa5), "{name} writes into another's event");
                assert_eq!((w.word(scratch::BUSY), w.word(lost)), (1, before[2] + 1), "{name}");
            }
            // Alone, it claims the buffer and releases it.
            w.set_word(scratch::BUSY, 0);
            w.trace(task, in_close);
            w.m.run_words(&program, &ctx).unwrap_or_else(|e| panic!("{name}: {e}\n{program}"));
            assert!(!w.drain().is_empty(), "{name}");
            assert_eq!((w.word(scratch::BUSY), w.word(lost)), (0, before[2] + 1), "{name}");
        }
        let runs = 1 + places;
        // A child is traced though the event of its birth was lost, and threads are counted whatever becomes of events.
        assert_eq!((w.word(scratch::BORN), w.word(scratch::ENDED)), (runs, runs));
    });
}

#[test]
fn calls_of_hidden_code_are_left_out_but_for_an_execve_that_succeeds() {
    with_both_rings(|| {
        let (maps, offsets) = (maps(), offsets());
        let session = Session { hidden: Some(0x10ff), ..Session::default() };
        let limits = Limits { string: 32, text: 0, verbose: false, keep: Default::default() };
        for (call, ip, ret, shown) in [
            (&g::C_CLOSE, 0x7fff_1234_5678u64, 0u64, true),
            (&g::C_CLOSE, 0x10ff_0000_2345, 0, false),
            (&g::C_CLOSE, 0x1100_0000_2345, 0, true),
            (&g::C_EXECVE, 0x10ff_0000_2345, 0, true),
            (&g::C_EXECVE, 0x10ff_0000_2345, -2i64 as u64, false),
            (&g::C_EXECVE, 0x7fff_1234_5678, -2i64 as u64, true),
        ] {
            let mut w = World::new();
            let nr = call.x86_64.expect("a number");
            let row = capture_row::row(call, true, limits);
            assert!(w.m.set_value(ROWS, &nr.to_le_bytes(), &row));
            let regs = w.object(&[0; 21]);
            w.put(regs, 128, ip);
            w.put(regs, 80, ret);
            assert!(w.run(sys_enter(&maps, &offsets, &session, Source::All), &[regs, nr.into()]).is_empty());
            let events = w.run(sys_exit(&maps, &offsets, &session, Source::All), &[regs, ret]);
            let expected: &[&str] = if shown { &[call.name] } else { &[] };
            assert_eq!(names(&events), expected, "{ip:x} {ret}");
        }
    });
}

#[test]
fn a_call_that_is_rejected_at_its_entry_needs_no_buffer() {
    with_both_rings(|| {
        let (maps, offsets) = (maps(), offsets());
        let limits = Limits { string: 32, text: 0, verbose: false, keep: Default::default() };
        let nr = g::C_CLOSE.x86_64.expect("a number");
        let most = "args.fd * args.fd - (args.fd * 3 - (args.fd - 5) * (args.fd + 1)) == pid * (tid + (args.fd | pid))";
        // Sums of so many products that they do not fit on the stack are for the end of the call.
        let too_much = (0..9).fold("pid * tid".to_string(), |rest, _| format!("pid * tid - ({rest})")) + " == 1";
        for (text, at_entry) in
            [("pid == 1", true), ("tid == 1", true), ("comm == \"other\"", true), (most, true), (&too_much, false)]
        {
            let parsed = lang::filter::parse(text, &[]).unwrap_or_else(|e| panic!("{}", e.block("", text)));
            let filter = parsed.check(&g::C_CLOSE).unwrap_or_else(|e| panic!("{}", e.block("", text)));
            let session = Session { filters: vec![(nr, filter)], ..Session::default() };
            let mut w = World::new();
            let (task, regs) = (w.m.task, w.object(&[0; 21]));
            assert!(w.m.set_value(ROWS, &nr.to_le_bytes(), &capture_row::row(&g::C_CLOSE, true, limits)));
            w.set_word(scratch::BUSY, 1);
            assert!(w.run(sys_enter(&maps, &offsets, &session, Source::All), &[regs, nr.into()]).is_empty());
            let flags = u64::from_le_bytes(w.state(task)[..8].try_into().unwrap());
            assert_eq!(flags & state::REJECTED as u64 != 0, at_entry, "{text}");
            let counted = [scratch::SEEN, scratch::FILTERED, scratch::DROPPED].map(|word| w.word(word));
            assert_eq!(counted, [at_entry.into(), at_entry.into(), 0], "{text}");
            // Its end finds it counted; another's end is decided there.
            w.set_word(scratch::BUSY, 0);
            assert!(w.run(sys_exit(&maps, &offsets, &session, Source::All), &[regs, 0]).is_empty(), "{text}");
            let counted = [scratch::SEEN, scratch::FILTERED, scratch::DROPPED].map(|word| w.word(word));
            assert_eq!(counted, [1, 1, 0], "{text}");
        }
    });
}
