//! What tests of programs need: one at a time, little programs, counters.
#![allow(dead_code)]

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};
use sys::bpf::info::{self, Object};
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramSpec};
pub use testkit::skip;

/// One test at a time: they count what they leave behind.
static ALONE: Mutex<()> = Mutex::new(());

#[track_caller]
pub fn start() -> Option<MutexGuard<'static, ()>> {
    let guard = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let why = match info::ids(Object::Program).and_then(|_| Map::array("probe", 8, 1, 0)) {
        Err(e) => e.to_string(),
        Ok(_) if testkit::own_pid_namespace() => "in a pid namespace of its own".into(),
        Ok(_) => return Some(guard),
    };
    skip("root", &why);
    None
}

pub type Insn = (u8, u8, u8, i16, i32);

pub fn assemble(insns: &[Insn]) -> Vec<u8> {
    let mut out = Vec::new();
    for (op, dst, src, off, imm) in insns {
        out.extend([*op, src << 4 | dst]);
        out.extend(off.to_le_bytes());
        out.extend(imm.to_le_bytes());
    }
    out
}

pub const EXIT: [Insn; 2] = [(0xb7, 0, 0, 0, 0), (0x95, 0, 0, 0, 0)];

pub const fn call(helper: i32) -> Insn {
    (0x85, 0, 0, 0, helper)
}

pub fn load_map(dst: u8, map: &Map) -> [Insn; 2] {
    use std::os::fd::AsRawFd;
    [(0x18, dst, 1, 0, map.as_fd().as_raw_fd()), (0, 0, 0, 0, 0)]
}

/// r6 = context; leaves for `EXIT`, which must follow `body`, unless this process runs.
pub fn mine(body: &[Insn]) -> Vec<u8> {
    let mut v: Vec<Insn> = vec![(0xbf, 6, 1, 0, 0), call(14), (0x77, 0, 0, 0, 32)];
    v.push((0x55, 0, 0, body.len() as i16, std::process::id() as i32));
    v.extend(body);
    v.extend(EXIT);
    assemble(&v)
}

/// Adds 1 to the value of index `index` in an array (also one per CPU); 9 instructions.
pub fn count(map: &Map, index: i32) -> Vec<Insn> {
    let [a, b] = load_map(1, map);
    let key = [(0x62, 10, 0, -4, index), (0xbf, 2, 10, 0, 0), (0x07, 2, 0, 0, -4)];
    let add = [call(1), (0x15, 0, 0, 2, 0), (0xb7, 1, 0, 0, 1), (0xdb, 0, 1, 0, 0)];
    [&[a, b], &key[..], &add[..]].concat()
}

/// Sends the word at fp-16 to the ring in r1; result in r0.
pub const SEND: [Insn; 5] =
    [(0xbf, 2, 10, 0, 0), (0x07, 2, 0, 0, -16), (0xb7, 3, 0, 0, 8), (0xb7, 4, 0, 0, 1), call(130)];

pub fn load(spec: &ProgramSpec) -> Program {
    Program::load(spec).unwrap_or_else(|e| panic!("{e}\n{}", e.log))
}

pub fn getppid(times: usize) {
    for _ in 0..times {
        // SAFETY: no arguments.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

pub fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

pub fn sum(map: &Map, index: u32) -> u64 {
    map.lookup_per_cpu(&index.to_le_bytes()).unwrap().unwrap().iter().map(|v| number(v)).sum()
}
