//! How a probe is switched on by the kernel backend: what kind of program is attached, where, and where its arguments are then.

use super::{Place, Probe};
use bpf::probes::Value;
use std::io;
use std::path::Path;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramSpec};

/// A probe, ready to be switched on.
pub struct Ready {
    /// Its name and its arguments.
    pub probe: Probe,
    /// How.
    pub hook: Box<dyn Hook>,
}

/// Places that are left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Places of this probe.
    Places(&'static str, Vec<String>),
    /// Other probes that the same pattern matches.
    Probes(&'static str, Vec<String>),
}

impl LeftOut {
    /// In one line; `name` is the probe's.
    pub fn line(&self, name: &str) -> String {
        let list = |all: &[String]| {
            let more = if all.len() > 3 { ", …" } else { "" };
            format!("{}{more}", all[..all.len().min(3)].join(", "))
        };
        match self {
            LeftOut::Places(why, all) => format!("{name}: {why} {} of its places: {}", all.len(), list(all)),
            LeftOut::Probes(why, all) => format!("left out, because {why}: {}", list(all)),
        }
    }
}

/// Where a program is attached.
pub trait Hook: Send + Sync {
    /// What to load these instructions as.
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a>;

    /// For a hook of several probes: the numbers of their classes, in the order of the probes. The program finds that of the probe that
    /// was reached in its cookie.
    fn tag(&mut self, classes: &[u16]) {
        let _ = classes;
    }

    /// Attaches the program. Dropping the links detaches it.
    fn attach(&self, program: &Program) -> io::Result<Vec<Link>>;

    /// Where argument `nth`, which the probe says to be at `place`, is at this place.
    fn place<'a>(&'a self, nth: usize, place: &'a Place) -> &'a Place {
        let _ = nth;
        place
    }

    /// Where the program finds an argument of `size` bytes.
    fn value(&self, place: &Place, size: u8, signed: bool) -> Option<Value>;

    /// Whether addresses of strings are the process's, and not the kernel's.
    fn strings_are_users(&self) -> bool {
        false
    }

    /// What to use where the kernel refuses this: a breakpoint for fentry.
    fn instead(&self) -> Option<Box<dyn Hook>> {
        None
    }

    /// Whether closing a link waits for a grace period of RCU (some 35 ms).
    fn is_slow_to_close(&self) -> bool {
        false
    }

    /// Whether its events are those of whatever task runs there, which may be none of the session: clocks.
    fn is_of_the_machine(&self) -> bool {
        false
    }

    /// How it is attached, in words.
    fn how(&self) -> String;

    /// For returns of functions: their entries, which are counted, because the kernel follows only so many returns.
    fn entries(&self) -> Option<Box<dyn Hook>> {
        None
    }

    /// How many frames of a kernel stack that the program takes are its own: of the program and of what called it.
    fn own_frames(&self) -> u8 {
        0
    }

    /// What it cannot see.
    fn lost(&self) -> Option<&'static str> {
        None
    }

    /// The file that its places are in.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Of a wildcard's places: those that are left out, though others are not; what the kernel refuses is known once it is attached.
    fn left_out(&self) -> Vec<LeftOut> {
        Vec::new()
    }

    /// Notes other probes that were left out before, for [`Hook::left_out`].
    fn leave_out(&mut self, others: Vec<LeftOut>) {
        let _ = others;
    }

    /// Whether it replaces return addresses of the process.
    fn replaces_returns(&self) -> bool {
        false
    }

    /// How many functions' return addresses it has replaced that something may leave otherwise than by returning: of the others that
    /// is proven impossible.
    fn unproven_returns(&self) -> usize {
        0
    }

    /// Whether a function looks at the return address that is replaced.
    fn looks_at_return(&self) -> bool {
        false
    }

    /// What a refusal means, where the system's word does not say it.
    fn explain(&self, e: &io::Error) -> Option<(String, String)> {
        let _ = e;
        None
    }
}

/// Offsets in `struct pt_regs` (arch/x86/include/asm/ptrace.h, 6.18) by the register's name.
pub const REGISTERS: [(&str, i16); 17] = [
    ("r15", 0),
    ("r14", 8),
    ("r13", 16),
    ("r12", 24),
    ("rbp", 32),
    ("rbx", 40),
    ("r11", 48),
    ("r10", 56),
    ("r9", 64),
    ("r8", 72),
    ("rax", 80),
    ("rcx", 88),
    ("rdx", 96),
    ("rsi", 104),
    ("rdi", 112),
    ("rip", 128),
    ("rsp", 152),
];

/// Registers of arguments, in order (System V ABI for x86-64, 3.2.3).
const ARGUMENTS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// Offset of a register of 8 bytes.
pub fn register(name: &str) -> Option<i16> {
    REGISTERS.iter().find(|r| r.0 == name).map(|r| r.1)
}

/// The registers of a program at a function's entry or return: its context is a `struct pt_regs`.
pub fn in_registers(place: &Place, size: u8, signed: bool) -> Option<Value> {
    let off = match place {
        Place::Argument(i) => register(ARGUMENTS.get(usize::from(*i))?)?,
        Place::Result => register("rax")?,
        _ => return None,
    };
    Some(Value::Context { off, size, signed })
}

/// A part of a register by the name that the assembler has for it: its offset, and how many bytes it has.
pub fn part_of_register(name: &str) -> Option<(i16, u8)> {
    if let Some(off) = register(name) {
        return Some((off, 8));
    }
    // r8d, r8w, r8b
    if let Some(whole) = name.strip_suffix(['d', 'w', 'b'])
        && let Some(off) = register(whole).filter(|_| whole.starts_with('r') && whole.len() <= 3)
        && whole[1..].parse::<u8>().is_ok()
    {
        let size = match name.as_bytes().last() {
            Some(b'd') => 4,
            Some(b'w') => 2,
            _ => 1,
        };
        return Some((off, size));
    }
    let legacy = [("ax", "al", "ah"), ("bx", "bl", "bh"), ("cx", "cl", "ch"), ("dx", "dl", "dh")];
    for (word, low, high) in legacy {
        let off = register(&format!("r{word}"))?;
        if name == low {
            return Some((off, 1));
        }
        if name == high {
            return Some((off + 1, 1));
        }
    }
    let word = name.strip_prefix('e').unwrap_or(name);
    if let Some(off) = register(&format!("r{word}")).filter(|_| word.len() == 2) {
        return Some((off, if word.len() < name.len() { 4 } else { 2 }));
    }
    // sil, dil, bpl, spl
    let off = register(&format!("r{}", name.strip_suffix('l')?))?;
    Some((off, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_registers() {
        let at = part_of_register;
        assert_eq!(
            [at("rax"), at("eax"), at("ax"), at("al"), at("ah")],
            [Some((80, 8)), Some((80, 4)), Some((80, 2)), Some((80, 1)), Some((81, 1))]
        );
        assert_eq!(
            [at("r8"), at("r8d"), at("r15w"), at("r10b")],
            [Some((72, 8)), Some((72, 4)), Some((0, 2)), Some((56, 1))]
        );
        assert_eq!(
            [at("edi"), at("di"), at("dil"), at("bpl")],
            [Some((112, 4)), Some((112, 2)), Some((112, 1)), Some((32, 1))]
        );
        assert_eq!([at("xmm0"), at("eip2"), at(""), at("l")], [None; 4]);
    }
}
