//! Stacks of violations: what a checker of the agent has copied of a thread, walked by the tables of the process's code.
//!
//! ```text
//!  abi::tracer::Violation: registers at the call, stack from rsp upwards ─┬► unwind::Walk ─► frames, the function's own first
//!  /proc/PID/maps ─► tables ──────────────────────────────────────────────┘   without those of the agent
//! ```
//!
//! Where stubs have put their return addresses, the agent has copied the program's, so that no frame is missing. Names are the caller's
//! business: frames are those of an event's stack (`events::names`).

use super::library::Injected;
use engine::backend::code::{Code, Files, build_here};
use std::ops::Range;
use unwind::Rule;
use unwind::stack::MAX_FRAMES;
use unwind::walk::{Registers, Target, Walk};

pub use unwind::Ended;

/// A call that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The thread.
    pub tid: u32,
    /// Its name then.
    pub thread: String,
    /// The function.
    pub function: String,
    /// When, by the monotonic clock, in ns: when it was called, or had returned.
    pub time: u64,
    /// How long it has taken, in ns; 0 where only the call counts.
    pub took: u64,
    /// Frames, innermost first: the first one is the function's first instruction.
    pub frames: Vec<u64>,
    /// Why there are no more.
    pub ended: Ended,
}

/// Walks the stacks of violations. `named`: the name of the function, and what it has taken, in ns.
pub fn of(
    pid: i32,
    violations: &[abi::tracer::Violation],
    named: impl Fn(&abi::tracer::Violation) -> (String, u64),
) -> Vec<Violation> {
    if violations.is_empty() {
        return Vec::new();
    }
    let code = Code::of(pid, &mut Files::default(), &mut build_here).unwrap_or_default();
    let own = Injected::find(pid).map_or(0..0, |i| i.code);
    let one = |v: &abi::tracer::Violation| {
        let (frames, ended) = walk(v, &code, &own);
        let thread = String::from_utf8_lossy(&v.thread).split('\0').next().unwrap_or_default().to_string();
        let (function, took) = named(v);
        Violation { tid: v.tid, thread, function, time: v.time, took, frames, ended }
    };
    violations.iter().map(one).collect()
}

fn walk(v: &abi::tracer::Violation, code: &Code, own: &Range<u64>) -> (Vec<u64>, Ended) {
    let len = usize::try_from(v.len).map_or(0, |len| len.min(v.stack.len()));
    let [pc, sp, bp, ..] = v.registers;
    let mut walk = Walk::new(Copied { v, stack: &v.stack[..len], code }, Registers { pc, sp, bp }, MAX_FRAMES);
    let mut frames: Vec<u64> = Vec::new();
    for frame in walk.by_ref() {
        // Handlers of signals are called by the agent.
        if !own.contains(&frame.lookup()) {
            frames.push(frame.0);
        }
    }
    let cut = walk.ended() == Ended::ReadFault && len == v.stack.len();
    (frames, if cut { Ended::Cut } else { walk.ended() })
}

/// What was copied of a thread.
struct Copied<'a> {
    v: &'a abi::tracer::Violation,
    stack: &'a [u8],
    code: &'a Code,
}

impl Target for Copied<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.wrapping_sub(self.v.registers[1])).ok()?;
        self.stack.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        self.code.rule(address)
    }

    fn unmapped(&mut self) -> Option<Rule> {
        self.code.unmapped()
    }

    /// Numbers of the ABI: rbx is 3, rbp 6, rsp 7.
    fn register(&mut self, number: u8) -> Option<u64> {
        let [_, sp, bp, bx, r12, r13, r14, r15] = self.v.registers;
        match number {
            3 => Some(bx),
            6 => Some(bp),
            7 => Some(sp),
            12 => Some(r12),
            13 => Some(r13),
            14 => Some(r14),
            15 => Some(r15),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwind::Frame;

    fn violation(words: &[u64], len: u64) -> abi::tracer::Violation {
        let mut v = abi::tracer::Violation { len, registers: [1, 0x1000, 3, 4, 5, 6, 7, 8], ..Default::default() };
        v.stack.chunks_exact_mut(8).zip(words).for_each(|(to, w)| to.copy_from_slice(&w.to_le_bytes()));
        v
    }

    #[test]
    fn only_what_was_copied_is_read() {
        let v = violation(&[10, 20, 30], 20);
        let code = Code::default();
        let mut copied = Copied { v: &v, stack: &v.stack[..20], code: &code };
        let read = [0x1000, 0x1008, 0x1001, 0x1010, 0xff8, u64::MAX].map(|a| copied.read(a));
        assert_eq!(read, [Some(10), Some(20), Some(20 << 56), None, None, None]);
        assert_eq!(
            [3, 6, 7, 15, 0, 16].map(|n| copied.register(n)),
            [Some(4), Some(3), Some(0x1000), Some(8), None, None]
        );
    }

    #[test]
    fn a_length_beyond_the_copy_and_unknown_code_end_the_walk() {
        let v = violation(&[10], u64::MAX);
        assert_eq!(walk(&v, &Code::default(), &(0..0)), (vec![1 | Frame::EXACT], Ended::NoMapping));
        assert_eq!(walk(&v, &Code::default(), &(0..2)), (vec![], Ended::NoMapping));
    }
}
