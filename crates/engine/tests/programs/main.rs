//! The programs of `bpf::syscalls`, interpreted, make the same events as [`engine::capture`]: every call, over random registers,
//! results and memory, of which some is unmapped.

mod begun;
mod filters;

use bpf::Program;
use bpf::btf_offsets::{BtfOffsets, Namespace};
use bpf::capture_row::{self as rows, Limits as RowLimits};
use bpf::interp::{Access, Machine};
use bpf::scratch::{self, FILTERED, SEEN, UNKNOWN};
use bpf::syscalls::{self, Maps, Session, Slots, Source, state};
use engine::capture::{Call, Limits, Memory, tails};
use events::Event;
use events::encode::{self, Fixed};
use events::layout::CAP_START_UNKNOWN;
use events::schema::Schema;
use events::types::{Len, LenFrom, Switch, Type};
use lang::Verdict;
use std::collections::BTreeMap;

const STRING: u32 = 32;
/// Where the mapped memory is; before and behind it there is none.
const BASE: u64 = 0x10_0000;
const LEN: usize = 3 * 4096;
const UNMAPPED: u64 = 0x90_0000;

const TASKS: i32 = 3;
const SCRATCHES: i32 = 4;
const RING: i32 = 5;
const ROWS: i32 = 6;
const SWITCHES: i32 = 7;
const SLOTS: Slots = Slots { map: 8, bits: 3 };

/// Calls whose events the programs make otherwise, by design.
const OTHERWISE: &[(&str, &str)] = &[
    ("process_vm_readv", "the second array is shown as its address"),
    ("process_vm_writev", "the second array is shown as its address"),
    ("rt_sigreturn", "its argument is not a register: the mask is in the frame on the stack"),
];

/// Random inputs of calls.
struct Random(testkit::Random);

impl Random {
    fn new(seed: u64) -> Random {
        Random(testkit::Random::new(seed))
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }
    fn pointer(&mut self) -> u64 {
        match self.below(12) {
            0 => UNMAPPED + self.below(4096),
            1 => BASE + LEN as u64 - 1 - self.below(64),
            2 => 0,
            _ => BASE + 8 * self.below(LEN as u64 / 8),
        }
    }
    fn argument(&mut self) -> u64 {
        match self.below(8) {
            0 => self.below(4),
            1 | 2 => self.below(64),
            3 => [u64::MAX, i32::MAX as u64, 4096, 1 << 32, 0xffff_ff9c][self.below(5) as usize],
            _ => self.pointer(),
        }
    }
    fn result(&mut self) -> i64 {
        match self.below(6) {
            0 => [-1, -4, -14, -22, -512, -516][self.below(6) as usize],
            1 => 0,
            2 => 5000,
            _ => self.below(40) as i64,
        }
    }
    /// Words that are pointers, small numbers, zeros or text.
    fn memory(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        while bytes.len() < LEN {
            let run = 1 + self.below(5);
            match self.below(4) {
                0 => (0..run).for_each(|_| bytes.extend(self.pointer().to_le_bytes())),
                1 => (0..run).for_each(|_| bytes.extend(self.below(20).to_le_bytes())),
                2 => bytes.extend(vec![0; 8 * run as usize]),
                _ => bytes.extend((0..8 * run).map(|_| b"abc/\0"[self.below(30).min(4) as usize % 5])),
            }
        }
        bytes.truncate(LEN);
        bytes
    }
}

/// Memory that is read whole or not at all, as the programs' helpers do: an array of which a part is mapped is a fault.
struct User<'a>(&'a [u8]);

impl Memory for User<'_> {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        let from = addr.checked_sub(BASE).map_or(usize::MAX, |at| at as usize);
        let Some(bytes) = self.0.get(from..).and_then(|rest| rest.get(..buf.len())) else { return 0 };
        buf.copy_from_slice(bytes);
        buf.len()
    }
}

/// What the backends that read memory from user space make of a call.
fn captured(schema: &'static Schema, args: &[u64; 6], ret: i64, memory: &[u8]) -> Vec<u8> {
    let layout = events::registry::layout(schema.id).expect("a layout");
    let limits = Limits { string: STRING as usize, text: 0, verbose: false, keep: Default::default() };
    let args = &args[..schema.args.len().min(6)];
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mem = &mut User(memory);
    let caps = tails(&Call { schema, layout, args, result: None }, mem, limits, 0, &mut before);
    let cap = tails(&Call { schema, layout, args, result: Some(ret) }, mem, limits, caps, &mut after);
    let mut out = Vec::new();
    let fixed = Fixed { cap, ret, tid: 21, pid: 20, cpu_in: 0, cpu_out: 0, ..Fixed::default() };
    encode::fixed(&mut out, schema, layout, &fixed, args);
    [out, before, after].concat()
}

fn switch_ops(s: &'static Schema, nr: u32, limits: RowLimits) -> Vec<([u8; 16], [u8; 32])> {
    let mut ops = Vec::new();
    for (i, a) in s.args.iter().enumerate() {
        let Type::Switch { table, nth, .. } = a.ty else { continue };
        let table: &'static Switch = table;
        let cases = table.cases.iter().map(|c| (c.key, c.types.args));
        for (selector, types) in cases.chain([(u64::MAX, table.default.args)]) {
            let Some((ty, dir)) = types.get(usize::from(nth)).copied().flatten() else { continue };
            let op = |exit| rows::switch_op(s, i as u8, &ty, dir, exit, limits).bytes();
            let value = [op(false), op(true)].concat();
            ops.push((rows::switch_key(nr, i as u8, selector), value.try_into().expect("two ops")));
        }
    }
    ops
}

/// A machine with the maps of one call.
fn machine(schema: &'static Schema, nr: u32, memory: &[u8]) -> Machine {
    let limits = RowLimits { string: STRING, text: 0, verbose: false, keep: Default::default() };
    let mut m = Machine::new();
    m.tick = 0;
    m.pid_tgid = 20 << 32 | 21;
    // task_struct with its ids at 16 and 24, pointers to a signal_struct at 32, a struct pid at 40, another task at 48.
    // A namespace knows them as 8 and 7.
    let mut task = |[tgid, pid]: [u64; 2], signal: u64, id: u32, leader: u64| {
        let id = m.add_kernel(&id.to_le_bytes(), Access::ReadOnly);
        let words = [0, 0, tgid, pid, signal, id, leader, 0];
        m.add_kernel(&words.map(u64::to_le_bytes).concat(), Access::ReadOnly)
    };
    let leader = task([20, 20], 0, 7, 0);
    let signal = task([0, 0], 0, 0, 0);
    m.task = task([20, 21], signal, 8, leader);
    m.add_user(BASE, memory);
    m.add_task_storage(TASKS, state::SIZE as usize);
    m.add_array(SLOTS.map, state::SLOT as usize, SLOTS.entries(1));
    m.add_array(SCRATCHES, scratch::SIZE as usize, 1);
    m.add_ring(RING, 1 << 20);
    m.add_array(ROWS, rows::ROW, nr + 1);
    let ops = switch_ops(schema, nr, limits);
    m.add_hash(SWITCHES, 16, 32, ops.len().max(1) as u32);
    let task = m.task.to_le_bytes();
    assert!(m.set_value(TASKS, &task, &[0; state::SIZE as usize]));
    assert!(m.set_value(ROWS, &nr.to_le_bytes(), &rows::row(schema, true, limits)));
    for (key, value) in ops {
        assert!(m.set_value(SWITCHES, &key, &value));
    }
    m
}

/// The pid namespace, and the filters of calls.
type Given = (Option<Namespace>, Vec<(u32, lang::Filter)>);

/// What the programs make of it.
fn traced(schema: &'static Schema, nr: u32, args: &[u64; 6], ret: i64, memory: &[u8]) -> Vec<u8> {
    let (_, events) = filtered(schema, nr, args, ret, memory, (None, Vec::new()));
    assert_eq!(events.len(), 1, "{} {args:x?} = {ret}", schema.name);
    events.into_iter().next().unwrap_or_default()
}

/// What the machine's structs look like.
fn offsets(namespace: Option<Namespace>) -> BtfOffsets {
    BtfOffsets {
        thread_status: 8,
        task_tgid: 16,
        task_pid: 24,
        task_signal: 32,
        signal_exec: 8,
        namespace,
        ..BtfOffsets::default()
    }
}

/// A session with filters.
fn session(filters: Vec<(u32, lang::Filter)>) -> Session {
    Session { filters, ..Session::default() }
}

/// The maps of [`machine`].
fn maps(nr: u32) -> Maps {
    Maps {
        tasks: TASKS,
        scratch: SCRATCHES,
        shape: scratch::Shape::CALLS,
        rings: vec![RING],
        rows: ROWS,
        row_count: nr as i32 + 1,
        switches: SWITCHES,
        stacks: None,
        slots: None,
    }
}

/// A counter of the machine's only processor.
fn counter(m: &Machine, which: i16) -> u64 {
    let at = scratch::index(0, which);
    let value = m.value(SCRATCHES, &[0; 4]).expect("scratch memory");
    u64::from_le_bytes(std::array::from_fn(|i| value[at + i]))
}

/// A `struct pt_regs` with these in di, si, dx, r10, r8, r9, and the result in ax from the start.
fn registers(args: &[u64; 6], ret: i64) -> [u8; 168] {
    let mut regs = [0; 168];
    for (at, arg) in [112, 104, 96, 56, 72, 64].into_iter().zip(args) {
        regs[at..at + 8].copy_from_slice(&arg.to_le_bytes());
    }
    regs[80..88].copy_from_slice(&ret.to_le_bytes());
    regs
}

fn own_rings() -> scratch::Shape {
    scratch::Shape::CALLS.with_ring(1 << 18).expect("a small ring")
}

/// Runs the programs in a pid namespace, with filters; also returns the machine as it is afterwards.
fn filtered(
    schema: &'static Schema,
    nr: u32,
    args: &[u64; 6],
    ret: i64,
    memory: &[u8],
    (namespace, filters): Given,
) -> (Machine, Vec<Vec<u8>>) {
    let (offsets, session) = (offsets(namespace), session(filters));
    let program = |own: bool| {
        let maps = match own {
            true => Maps { shape: own_rings(), slots: Some(SLOTS), ..maps(nr) },
            false => maps(nr),
        };
        let enter = syscalls::sys_enter(&maps, &offsets, &session, Source::All).expect("a program");
        let exit = syscalls::sys_exit(&maps, &offsets, &session, Source::All).expect("a program");
        (enter, exit)
    };
    let (m, events) = run(schema, args, ret, machine(schema, nr, memory), nr, program(false));
    // The ring that programs write themselves: the same bytes.
    if nr.is_multiple_of(3) {
        let mut own = machine(schema, nr, memory);
        own.add_buffer(SCRATCHES, own_rings());
        let (mut own, _) = run(schema, args, ret, own, nr, program(true));
        assert_eq!(own.drain_buffer(SCRATCHES, own_rings()), events, "{} {args:x?} = {ret}", schema.name);
    }
    (m, events)
}

/// The filters of this call and of some near it, as one program may have them.
fn with_neighbours(text: &str, nr: u32) -> Vec<(u32, lang::Filter)> {
    let parsed = lang::filter::parse(text, &[]).unwrap_or_else(|e| panic!("{}", e.block("", text)));
    let filter = |nr: u32| parsed.check(events::registry::by_number(nr.into())?).ok();
    (nr.saturating_sub(3)..nr + 4).filter_map(|nr| Some((nr, filter(nr)?))).collect()
}

/// Runs the programs of entry and exit.
fn run(
    schema: &'static Schema,
    args: &[u64; 6],
    ret: i64,
    mut m: Machine,
    nr: u32,
    (enter, exit): (Program, Program),
) -> (Machine, Vec<Vec<u8>>) {
    let regs = m.add_kernel(&registers(args, ret), Access::ReadOnly);
    m.user_registers = regs;
    let run = |m: &mut Machine, p: Program, ctx: [u64; 2]| {
        if let Err(fault) = m.run_words(&p, &ctx) {
            panic!("{} {args:x?} = {ret}: {fault}\n{p}", schema.name);
        }
    };
    run(&mut m, enter, [regs, nr.into()]);
    if ret >= 0 && schema.name.starts_with("execve") {
        // The memory of the program before.
        m.memory.clear_user();
    }
    run(&mut m, exit, [regs, ret as u64]);
    let events = m.drain(RING);
    (m, events)
}

/// Whether both agree on a message: lengths that a kernel takes, and iovecs all of which are mapped.
fn message_agrees(at: u64, memory: &[u8]) -> bool {
    let mut h = [0; 48];
    User(memory).read(at, &mut h);
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| h[at + n]));
    let bytes = word(24).min(1024) * 16;
    let mapped = (BASE..BASE + LEN as u64 + 1 - bytes).contains(&word(16));
    mapped && word(8) as u32 <= 128 && word(40) <= 512
}

/// Whether programs and [`engine::capture`] read as much of argument `i`: of address lengths, sets and the like that no
/// kernel takes, they do not.
fn limits_agree(schema: &'static Schema, i: usize, args: &[u64; 6], ret: i64, memory: &[u8]) -> bool {
    let Some((&ty, _)) = schema.resolve(i, &args[..schema.args.len().min(6)]) else { return true };
    let len = match ty {
        Type::SigsetPack => return false,
        // Read one by one there, all at once here: both are right where all are mapped.
        Type::Iov(Len { from: LenFrom::Arg(j), .. }) => {
            let bytes = args[usize::from(j)].min(1024) * 16;
            return (BASE..BASE + LEN as u64 + 1 - bytes).contains(&args[i]);
        }
        // As far as there is room for them.
        Type::Mmsghdr(_) => {
            let asked = if schema.name == "sendmmsg" { args[2] & 0xffff_ffff } else { 0 };
            let all = asked.max(ret.max(0) as u64);
            return all <= 16 && (0..all).all(|n| message_agrees(args[i] + 64 * n, memory));
        }
        Type::Msghdr => return message_agrees(args[i], memory),
        Type::Sockaddr(len) | Type::Sigset(len) | Type::Cpuset(len) | Type::Fdset(len) => len,
        _ => return true,
    };
    let len = match len.from {
        LenFrom::Const(n) => n.into(),
        LenFrom::Arg(j) => args[usize::from(j)],
        LenFrom::Ret => ret.max(0) as u64,
        LenFrom::Deref(j) => {
            let mut b = [0; 4];
            User(memory).read(args[usize::from(j)], &mut b);
            u32::from_le_bytes(b).into()
        }
    };
    len <= 128
}

/// What is different about two events, but for the arguments of which `agree` says no.
fn difference(schema: &'static Schema, want: &[u8], have: &[u8], agree: impl Fn(usize) -> bool) -> Option<String> {
    if want == have {
        return None;
    }
    let (want, have) = match (Event::parse(want), Event::parse(have)) {
        (Ok(want), Ok(have)) => (want, have),
        (want, have) => return Some(format!("malformed: {:?} {:?}", want.err(), have.err())),
    };
    let mut all = Vec::new();
    if (want.ret(), want.args()) != (have.ret(), have.args()) {
        all.push(format!("{:x?} = {}, not {:x?} = {}", have.args(), have.ret(), want.args(), want.ret()));
    }
    for i in 0..schema.args.len().min(6) {
        // An argument that does not exist is shown by nobody; the programs capture it all the same.
        let exists = schema.resolve(i, &want.args()[..schema.args.len()]).is_some();
        if exists && want.cap(i) != have.cap(i) && agree(i) {
            all.push(format!("argument {i} ({}): {:?}, not {:?}", schema.args[i].name, have.cap(i), want.cap(i)));
        }
    }
    let exists = |i: u8| schema.resolve(i.into(), &want.args()[..schema.args.len()]).is_some();
    for t in want.layout.tails.iter().filter(|t| exists(t.arg)) {
        let bytes = |e: &Event<'_>| e.tail(usize::from(t.arg), t.out).map(|t| t.bytes.to_vec());
        let (w, h) = (bytes(&want), bytes(&have));
        if w != h && agree(t.arg.into()) {
            let (w, h) = (w.unwrap_or_default(), h.unwrap_or_default());
            let at = w.iter().zip(&h).position(|(w, h)| w != h).unwrap_or(w.len().min(h.len()));
            let hex = |b: &[u8]| {
                b.iter().skip(at.saturating_sub(4)).take(24).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
            };
            let name = schema.args[usize::from(t.arg)].name;
            let phase = if t.out { "exit" } else { "entry" };
            let (shape, have, want) = (t.shape, hex(&h), hex(&w));
            let lens = format!("{} bytes, not {}", h.len(), w.len());
            all.push(format!("tail of {name} ({shape:?}, {phase}): {lens}; at {at}, and 4 before: {have}, not {want}"));
        }
    }
    (!all.is_empty()).then(|| all.join("\n  "))
}

#[test]
fn the_programs_capture_what_the_other_backends_do() {
    let rounds: u64 = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut random = Random::new(0x7261_706c_696e_6501);
    let mut different: BTreeMap<&str, (u64, String)> = BTreeMap::new();
    let mut compared = 0;
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(schema) = events::registry::by_number(nr.into()) else { continue };
        if OTHERWISE.iter().any(|(name, _)| *name == schema.name) {
            continue;
        }
        for _ in 0..rounds {
            let memory = random.memory();
            let args: [u64; 6] = std::array::from_fn(|_| random.argument());
            let ret = random.result();
            let (want, have) = (captured(schema, &args, ret, &memory), traced(schema, nr, &args, ret, &memory));
            compared += 1;
            let agree = |i| limits_agree(schema, i, &args, ret, &memory);
            if let Some(d) = difference(schema, &want, &have, agree) {
                let entry = different.entry(schema.name).or_insert((0, String::new()));
                entry.0 += 1;
                let text = format!("{args:x?} = {ret}\n  {d}");
                if entry.1.is_empty() || text.len() < entry.1.len() {
                    entry.1 = text;
                }
            }
        }
    }
    assert!(compared > 3000, "{compared}");
    let list: Vec<String> = different.iter().map(|(name, (n, d))| format!("{name} ({n} of {rounds}): {d}")).collect();
    assert!(list.is_empty(), "{} calls differ, of each the shortest case:\n{}", list.len(), list.join("\n"));
}

/// `n` messages of struct mmsghdr at the front, each with a name, two iovecs and control bytes behind them.
fn messages(n: u64) -> Vec<u8> {
    let mut memory = vec![0u8; LEN];
    let mut put = |at: u64, bytes: &[u8]| memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    let data = BASE + 64 * n;
    for i in 0..n {
        let iov = BASE + LEN as u64 - 32;
        let header = [data, 6, iov, 1 + i % 2, data + 8, 8 * (i % 3), 0, 40 + 10 * i];
        put(64 * i, &header.map(u64::to_le_bytes).concat());
    }
    put(
        64 * n,
        b"namehere--control--control-bytes-of-a-message and what it says, which is longer than what is wanted of it",
    );
    put(LEN as u64 - 32, &[data + 20, 60, data + 30, 5].map(u64::to_le_bytes).concat());
    memory
}

#[test]
fn arrays_of_messages_are_captured_message_by_message() {
    for (name, nr, n, ret) in [
        ("recvmmsg", 299, 5, 4),
        ("recvmmsg", 299, 5, 0),
        ("recvmmsg", 299, 5, -11),
        ("sendmmsg", 307, 5, 5),
        ("sendmmsg", 307, 5, 1),
    ] {
        let schema = events::registry::by_name(name).expect("a call");
        let (args, memory) = ([3, BASE, n, 0, 0, 0], messages(n));
        let (want, have) = (captured(schema, &args, ret, &memory), traced(schema, nr, &args, ret, &memory));
        assert_eq!(difference(schema, &want, &have, |_| true), None, "{name} = {ret}");
        assert!(ret <= 0 || have.len() > 120 * ret as usize, "{name}: {} bytes", have.len());
    }
    // What there is no room for is cut, behind a whole message.
    let schema = events::registry::by_name("recvmmsg").expect("a call");
    let (args, memory) = ([3, BASE, 100, 0, 0, 0], messages(100));
    let (want, have) = (captured(schema, &args, 100, &memory), traced(schema, 299, &args, 100, &memory));
    let (want, have) = (Event::parse(&want).expect("an event"), Event::parse(&have).expect("an event"));
    let bytes = |e: &Event<'_>| e.tail(1, true).expect("a tail").bytes.to_vec();
    let (w, h) = (bytes(&want), bytes(&have));
    assert_eq!((have.cap(1), u16::from_le_bytes([w[0], w[1]])), (events::event::Cap::Cut, 100));
    assert!(u16::from_le_bytes([h[0], h[1]]) >= 30 && w[2..].starts_with(&h[2..]), "{} bytes", h.len());
}
