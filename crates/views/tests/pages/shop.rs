//! The program of the picture in docs/TIMELINE.md: a server whose three threads answer requests, and a program that it starts. Its times are
//! made up, so that the picture is the same each time.

use super::{at, probe};
use crate::build::Call;
use events::functions;
use events::generated::P_EXEC;
use events::names::{FdName, Frame, FunctionName, Names, Stack};
use std::cell::Cell;

/// Its functions, from number 1.
const FUNCTIONS: [&str; 6] = ["main", "worker", "request", "load", "parse", "keep"];
const MAIN: u64 = 1;
const WORKER: u64 = 2;
const REQUEST: u64 = 3;
const LOAD: u64 = 4;
const PARSE: u64 = 5;
const KEEP: u64 = 6;
/// The process, and what it starts.
const SHOP: u32 = 400;
const CHILD: u32 = 410;

/// Knows it, on the processor of the event that is shown.
#[derive(Default)]
pub struct Known {
    cpu: Cell<u32>,
}

impl Known {
    /// The next event is of this processor.
    pub fn on(&self, cpu: u32) {
        self.cpu.set(cpu);
    }
}

impl Names for Known {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn cpu(&self) -> Option<u32> {
        Some(self.cpu.get())
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        match tid {
            SHOP => Some(b"shop"),
            CHILD => Some(b"gzip"),
            _ => Some(b"worker"),
        }
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        let name = FUNCTIONS.get(number.checked_sub(1)? as usize)?;
        Some(FunctionName { name, symbol: name, module: "/usr/bin/shop", build_id: &[], address: 0, aliases: &[] })
    }
    fn stack(&self, id: u64) -> Option<Stack<'_>> {
        (1..=6).contains(&id).then_some(Stack { kernel: false, ended: 1, guessed: 0, frames: &[0x10, 0x20, 0x30] })
    }
    fn frames(&self, _: u32, _: u64, _: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        for (function, line) in [("parse", 41), ("load", 63), ("request", 90), ("worker", 112)] {
            each(&Frame { function, module: "/usr/bin/shop", file: "src/shop.c", line, ..Frame::default() });
        }
    }
}

/// An event: when it is told, where, and what it is.
pub type Told = (u64, u32, Vec<u8>);

/// A thread at work; times are µs.
struct Thread {
    tid: u32,
    cpu: u32,
    time: u64,
    random: testkit::Random,
    block: u64,
    told: Vec<Told>,
}

impl Thread {
    fn new(tid: u32, time: u64) -> Thread {
        Thread { tid, cpu: tid % 2, time, random: testkit::Random::new(tid.into()), block: 0, told: Vec::new() }
    }

    fn any(&mut self, from: u64, to: u64) -> u64 {
        from + self.random.next() % (to - from)
    }

    fn tell(&mut self, call: Call) {
        let time = at(0) + self.time * 1000;
        self.told.push((self.time, self.cpu, call.times(time, time).who(SHOP, self.tid).encode()));
    }

    /// A system call that takes so long.
    fn call(&mut self, us: u64, call: Call) {
        let begin = at(0) + self.time * 1000;
        self.time += us;
        self.told.push((self.time, self.cpu, call.times(begin, begin + us * 1000).who(SHOP, self.tid).encode()));
    }

    /// A call of a function, which does this.
    fn within(&mut self, number: u64, work: impl FnOnce(&mut Thread)) {
        self.tell(Call::of(functions::entry()).arg("number", number));
        self.time += 20;
        work(self);
        self.time += 20;
        self.tell(Call::of(functions::exit()).arg("number", number));
    }

    /// It computes, and samples are taken.
    fn computes(&mut self, us: u64) {
        let end = self.time + us;
        while self.time + 700 < end {
            self.time += 700;
            self.tell(Call::of(probe("profile:hz:999", &["ustack"])).arg("ustack", 1));
        }
        self.time = end;
    }

    /// It waits in a call.
    fn waits(&mut self, us: u64, call: Call) {
        let switch = || Call::of(probe("tracepoint:sched:sched_switch", &["prev_pid", "prev_state", "next_pid"]));
        let tid = u64::from(self.tid);
        self.time += 5;
        self.tell(switch().arg("prev_pid", tid).arg("prev_state", 1));
        let begin = self.time;
        self.time += us;
        self.tell(switch().arg("next_pid", tid));
        self.time = begin - 5;
        self.call(us + 10, call);
    }

    fn allocates(&mut self, size: u64) {
        self.block += 1;
        let address = u64::from(self.tid) << 32 | self.block << 8;
        let call = Call::of(probe("heap:malloc", &["address", "size", "ustack"]));
        self.tell(call.arg("address", address).arg("size", size).arg("ustack", 1));
    }

    fn releases(&mut self, block: u64) {
        let address = u64::from(self.tid) << 32 | block << 8;
        self.tell(Call::of(probe("heap:free", &["address", "ustack"])).arg("address", address).arg("ustack", 1));
    }

    /// A request: a file that may be missing, read in parts and parsed; some of it is kept.
    fn request(&mut self, nth: u64) {
        let fd = i64::from(self.tid - SHOP) + 3;
        let file = format!("/srv/shop/{}.json", nth % 7);
        self.within(REQUEST, |t| {
            t.within(LOAD, |t| {
                let missing = nth % 5 == 3;
                let open = Call::new("openat").str("filename", file.as_bytes());
                t.call(40, open.ret(if missing { -2 } else { fd }));
                if missing {
                    return;
                }
                for _ in 0..t.any(1, 4) {
                    let us = t.any(80, 400);
                    t.call(us, Call::new("read").arg("fd", fd as u64).ret(4096));
                }
                t.call(15, Call::new("close").arg("fd", fd as u64));
                t.within(PARSE, |t| {
                    for _ in 0..t.any(2, 6) {
                        let (size, us) = (t.any(2_000, 30_000), t.any(100, 900));
                        t.allocates(size);
                        t.computes(us);
                    }
                });
            });
            let block = t.block;
            if nth.is_multiple_of(3) {
                t.within(KEEP, |t| t.computes(500));
            } else if block > 3 {
                (block - 3..block).for_each(|block| t.releases(block));
            }
        });
        let us = self.any(500, 4000);
        self.waits(us, Call::new("clock_nanosleep").ret(0));
    }
}

/// All its events, in their order.
pub fn events() -> Vec<Told> {
    let mut main = Thread::new(SHOP, 0);
    main.call(600, Call::new("execve").str("filename", b"/usr/bin/shop").strv("argv", &[b"shop"]).ret(0));
    main.tell(Call::of(&P_EXEC).str("comm", b"shop"));
    let mut all = Vec::new();
    for n in 1..3 {
        main.time += 300;
        main.call(60, Call::new("clone3").ret(i64::from(SHOP + n)));
        let fork = Call::process("fork").arg("child", SHOP.into()).arg("tid", (SHOP + n).into()).arg("flags", 0x10f00);
        main.tell(fork);
        let mut worker = Thread::new(SHOP + n, main.time + 500);
        let end = 90_000 + u64::from(n) * 8_000;
        worker.within(WORKER, |t| {
            let mut nth = 0;
            while t.time < end {
                t.request(nth);
                nth += 1;
            }
        });
        worker.tell(Call::process("exit").arg("code", 0));
        all.append(&mut worker.told);
    }
    main.within(MAIN, |t| {
        (0..9).for_each(|nth| t.request(nth));
        t.tell(Call::process("fork").arg("child", CHILD.into()).arg("tid", CHILD.into()));
        t.waits(45_000, Call::new("futex").ret(0));
        t.waits(20_000, Call::new("wait4").ret(CHILD.into()));
    });
    let ended = main.time + 1000;
    main.time = ended;
    main.tell(Call::process("exit").arg("code", 0));
    let begin = ended - 30_000;
    let child = |from: u64, to: u64, call: Call| {
        (to, 1, call.times(at(0) + from * 1000, at(0) + to * 1000).who(CHILD, CHILD).encode())
    };
    all.push(child(
        begin,
        begin + 900,
        Call::new("execve").str("filename", b"/usr/bin/gzip").strv("argv", &[b"gzip", b"log"]).ret(0),
    ));
    all.push(child(begin + 800, begin + 800, Call::of(&P_EXEC).str("comm", b"gzip")));
    for n in 0..12 {
        let from = begin + 1500 + n * 2200;
        all.push(child(from, from + 300, Call::new("read").arg("fd", 3).ret(65536)));
        all.push(child(from + 1700, from + 2100, Call::new("write").arg("fd", 4).ret(9000 + n as i64 * 100)));
    }
    all.push(child(ended - 1500, ended - 1500, Call::process("exit").arg("code", 0)));
    all.append(&mut main.told);
    all.sort_by_key(|(time, ..)| *time);
    all
}
