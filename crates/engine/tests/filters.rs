//! Filters in the kernel decide as the evaluator does: random ones, over random values, taken by the verifier and run at a real
//! call of this process. Wants bpf(2).

use bpf::filter::{self, Argument, Bytes, Exits, Place, Places};
use bpf::{Alu, Assembler, Cond, Helper, Reg, Reg::*, Size};
use events::encode::{self, Fixed};
use events::generated::C_OPENAT;
use events::layout::Layout;
use events::{Cap, Event};
use lang::{Context, Filter, Verdict};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::link::Link;
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use testkit::skip;

/// The value of the map: the inputs, the outcome of each filter, and memory for strings.
mod at {
    pub const TIME: i16 = 0;
    pub const START: i16 = 8;
    pub const RETVAL: i16 = 16;
    pub const CPU: i16 = 24;
    pub const ARGS: i16 = 32;
    pub const RUNS: i16 = 88;
    pub const OUTCOMES: i16 = 96;
    pub const STRINGS: i16 = 1024;
    pub const SIZE: u32 = 2048;
}

const FILTERS: usize = 24;
const PROGRAMS: usize = 6;
const ROUNDS: usize = 12;

/// Random filters and values.
struct Random(testkit::Random);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next()
    }
    fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        self.0.of(list)
    }
    fn word(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(5) as u64,
            1 => [63, 64, 0xffff_ffff, 1 << 63, u64::MAX, 0x8000_0000, 0x241][self.below(7)],
            2 => self.next() as i32 as u64,
            _ => self.next(),
        }
    }

    /// A number, fully parenthesised: conditions are numbers too.
    fn expression(&mut self, depth: usize, who: &Who) -> String {
        if depth == 0 || self.below(6) == 0 {
            return self.leaf(who);
        }
        let a = self.expression(depth - 1, who);
        match self.below(10) {
            0 => format!("({}{a})", self.of(&["-", "~", "!"])),
            1 => format!("(({}){a})", self.of(&["int8", "uint8", "int16", "uint16", "int32", "uint32"])),
            2 => format!("({a} ? {} : {})", self.expression(depth - 1, who), self.expression(depth - 1, who)),
            _ => {
                let ops =
                    ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"];
                format!("({a} {} {})", self.of(&ops), self.expression(depth - 1, who))
            }
        }
    }

    fn leaf(&mut self, who: &Who) -> String {
        let values = ["tid", "uid", "gid", "cpu", "nsecs", "retval", "dur", "args.dfd", "args.flags", "args.mode"];
        match self.below(8) {
            0..=2 => self.of(&values).into(),
            3 => format!("(pid == {})", who.pid + self.below(2) as u32),
            4 => format!("{}", self.word()),
            5 => self.of(&["(-ENOENT)", "O_CREAT", "O_RDWR"]).into(),
            _ => {
                let (subject, strings) = match self.below(3) {
                    0 => ("comm", vec![who.comm.as_str(), "", "other", &who.comm[..who.comm.len() - 1]]),
                    _ => ("args.filename", STRINGS.to_vec()),
                };
                let constant = self.of(&strings);
                match self.below(3) {
                    0 => format!("({subject} == \"{constant}\")"),
                    1 => format!("startswith({subject}, \"{constant}\")"),
                    _ => format!("(strncmp({subject}, \"{constant}\", {}) == 0)", self.below(14)),
                }
            }
        }
    }

    /// Some parts, as the checker takes them.
    fn filter(&mut self, who: &Who) -> (String, Filter) {
        loop {
            let parts: Vec<String> = (0..1 + self.below(3)).map(|_| self.expression(4, who)).collect();
            let text = parts.join(" && ");
            // Divisions by a constant zero and the like are errors; constants are of no interest.
            if let Ok(f) = lang::filter::parse(&text, &[]).unwrap().check(&C_OPENAT)
                && f.constant().is_none()
            {
                return (text, f);
            }
        }
    }
}

const STRINGS: &[&str] =
    &["", "/etc/passwd", "/etc/passwd2", "/etc/pass", "/etc/", "x", "/e", "/a/path/of/some/length/that/is/longer"];

/// What helpers say of this thread.
struct Who {
    pid: u32,
    tid: u32,
    uid: u32,
    gid: u32,
    comm: String,
}

impl Who {
    fn am_i() -> Who {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        let tid = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let comm = std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim_end().to_owned();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let real = |key: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        Who { pid: std::process::id(), tid, uid: real("Uid:"), gid: real("Gid:"), comm }
    }
}

fn places() -> Places {
    let memory = |off: i16| Place::Memory(R6, off, Size::D);
    let mut p = filter::helpers((R6, at::STRINGS), (R10, -192, 24));
    p.cpu = memory(at::CPU);
    p.nsecs = memory(at::TIME);
    p.start = Some(memory(at::START));
    p.retval = Some(memory(at::RETVAL));
    p.args = (0..4).map(|i| Argument { value: memory(at::ARGS + 8 * i), bytes: Bytes::User }).collect();
    p
}

fn outcome(a: &mut Assembler, i: usize, value: i32) {
    a.store(Size::D, R6, at::OUTCOMES + 8 * i as i16, value);
}

/// Leaves unless this process calls getppid.
fn mine(a: &mut Assembler, context: Reg, pid: u32, out: bpf::Label) {
    const GETPPID: i32 = 110;
    a.load(Size::D, R1, context, 8);
    a.jump_if(Cond::Ne, R1, GETPPID, out);
    a.call(Helper::GetCurrentPidTgid);
    a.alu(Alu::Rsh, R0, 32);
    a.jump_if(Cond::Ne, R0, pid as i32, out);
}

/// What a filter comes to that names a string which cannot be read.
const UNKNOWN: i32 = 1000;

/// All filters one after the other, each with its outcome: 0 passes, 1 + the part that rejects, or [`UNKNOWN`].
fn program(filters: &[(String, Filter)], map: &Map, who: &Who) -> bpf::Program {
    let mut a = Assembler::new();
    let out = a.new_label();
    mine(&mut a, R1, who.pid, out);
    a.map_value(R6, map.as_fd().as_raw_fd(), 0);
    for (i, (text, f)) in filters.iter().enumerate() {
        let exits = Exits { rejected: f.parts().iter().map(|_| a.new_label()).collect(), unknown: a.new_label() };
        let next = a.new_label();
        filter::emit(&mut a, f, &places(), &exits).unwrap_or_else(|e| panic!("{e}: {text}"));
        outcome(&mut a, i, 0);
        a.jump(next);
        for (part, label) in exits.rejected.iter().enumerate() {
            a.bind(*label);
            outcome(&mut a, i, 1 + part as i32);
            a.jump(next);
        }
        a.bind(exits.unknown);
        outcome(&mut a, i, UNKNOWN);
        a.bind(next);
    }
    a.load(Size::D, R1, R6, at::RUNS);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R6, at::RUNS, R1);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish().unwrap()
}

/// The inputs of one round.
struct Inputs {
    fixed: Fixed,
    args: [u64; 4],
    /// None: the address leads nowhere.
    string: Option<CString>,
}

impl Inputs {
    fn new(r: &mut Random, who: &Who) -> Inputs {
        let fixed = Fixed {
            time: r.word(),
            cap: 0,
            tid: who.tid,
            pid: who.pid,
            start: r.word(),
            ret: if r.below(2) == 0 { -2 } else { r.word() as i64 },
            cpu_in: r.below(4) as u16,
            cpu_out: 0,
            ..Fixed::default()
        };
        let string = (r.below(5) > 0).then(|| CString::new(r.of(STRINGS)).unwrap());
        let address = string.as_ref().map_or(0x1000, |s| s.as_ptr() as u64);
        Inputs { fixed, args: [r.word(), address, r.word(), r.word()], string }
    }

    fn put(&self, map: &Map) {
        let mut value = vec![0; at::SIZE as usize];
        let mut put = |at: i16, v: u64| value[at as usize..at as usize + 8].copy_from_slice(&v.to_le_bytes());
        put(at::TIME, self.fixed.time);
        put(at::START, self.fixed.start);
        put(at::RETVAL, self.fixed.ret as u64);
        put(at::CPU, self.fixed.cpu_in.into());
        self.args.iter().enumerate().for_each(|(i, v)| put(at::ARGS + 8 * i as i16, *v));
        map.update(&[0; 4], &value, 0).unwrap();
    }

    fn verdict(&self, filter: &Filter, who: &Who) -> Verdict {
        let layout = Layout::of(&C_OPENAT);
        let cap = if self.string.is_some() { Cap::Whole } else { Cap::Fault };
        let fixed = Fixed { cap: u16::from(cap.bits()) << 2, ..self.fixed };
        let mut bytes = Vec::new();
        encode::fixed(&mut bytes, &C_OPENAT, &layout, &fixed, &self.args);
        encode::str_tail(&mut bytes, self.string.as_ref().map_or(b"", |s| s.to_bytes()));
        let context = Context { comm: Some(who.comm.as_bytes()), uid: Some(who.uid), gid: Some(who.gid), cpu: None };
        filter.matches(&Event::parse(&bytes).unwrap(), &context)
    }
}

#[test]
fn the_kernel_and_the_evaluator_agree() {
    let Ok(map) = Map::array("tl_filters", at::SIZE, 1, 0) else { return skip("root", "bpf(2) needs privilege") };
    if testkit::own_pid_namespace() {
        return skip("root", "in a pid namespace of its own");
    }
    let (mut r, who) = (Random(testkit::Random::new(7)), Who::am_i());
    let (mut passed, mut rejected) = (0, 0);
    for _ in 0..PROGRAMS {
        let filters: Vec<_> = (0..FILTERS).map(|_| r.filter(&who)).collect();
        let code = program(&filters, &map, &who);
        let bytes = code.bytes();
        let loaded = Program::load(&ProgramSpec::new(ProgramKind::RawTracepoint, "tl_filters", &bytes))
            .unwrap_or_else(|e| panic!("{e}\n{code}\n{}", &e.log[e.log.len().saturating_sub(4000)..]));
        let link = Link::raw_tracepoint(&loaded, "sys_enter").unwrap();
        for _ in 0..ROUNDS {
            let inputs = Inputs::new(&mut r, &who);
            inputs.put(&map);
            sys::process::parent();
            let mut value = vec![0; at::SIZE as usize];
            map.lookup(&[0; 4], &mut value).unwrap();
            let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
            assert_eq!(word(at::RUNS as usize), 1, "the program did not run to its end, once");
            for (i, (text, f)) in filters.iter().enumerate() {
                let found = word(at::OUTCOMES as usize + 8 * i);
                let expected = match inputs.verdict(f, &who) {
                    Verdict::Pass => 0,
                    Verdict::Rejected(part) => 1 + part as u64,
                    Verdict::Unknown(_) => UNKNOWN as u64,
                };
                assert_eq!(found, expected, "{text}\n{:?} {:x?} {:?}", inputs.fixed, inputs.args, inputs.string);
                *(if found == 0 { &mut passed } else { &mut rejected }) += 1;
            }
        }
        drop(link);
    }
    assert!(passed > 200 && rejected > 200, "{passed} passed, {rejected} were rejected");
}
