//! The walker: frames of a stack by rules, with memory and rules from wherever the caller has them.
//!
//! It does in user space what the program of `bpf::unwind` does in the kernel, step by step, so that either can be compared with the other.
//! No recursion, no allocation; the number of frames is bounded. Memory and registers may be anything.

use crate::patched::Patched;
use crate::rule::{BX, IN_UCONTEXT, Kind, Rule, SavedBp, SavedBx, UCONTEXT};
use crate::stack::{Ended, Frame};

/// The furthest that a guessed frame may lie from the stack pointer, bytes.
pub const GUESS_REACH: u64 = 1 << 20;

/// The most functions that have called each other by jumps, and so have one return address.
const MAX_TAIL_CALLS: u32 = 64;

/// The most return probes of the kernel at one return address.
const MAX_HIDDEN: u32 = 64;

/// The registers that unwinding needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// rip, or a return address.
    pub pc: u64,
    /// rsp.
    pub sp: u64,
    /// rbp.
    pub bp: u64,
}

/// What a walk asks for.
pub trait Target {
    /// The 8 bytes of stack memory at an address; none where they cannot be read.
    fn read(&mut self, address: u64) -> Option<u64>;

    /// The rule at an address: [`Rule::NONE`] where code without rows is mapped, none where nothing is.
    fn rule(&mut self, address: u64) -> Option<Rule>;

    /// The rule of code in no mapping: [`Rule::NONE`] in processes with a just-in-time compiler, whose frames are guessed.
    fn unmapped(&mut self) -> Option<Rule> {
        None
    }

    /// A register of the innermost frame, by its number in the ABI, below 16; none where that is not known.
    fn register(&mut self, number: u8) -> Option<u64> {
        let _ = number;
        None
    }

    /// What lies at the pc of a frame, where that is code of patched functions; `exact`: it is no return address. At a return address that is
    /// a stub's, its place on the stack is 8 below rsp.
    fn patched(&mut self, frame: Registers, exact: bool) -> Option<Patched> {
        let _ = (frame, exact);
        None
    }

    /// The return address that a return probe of the kernel has replaced at this place of the stack, where that is known.
    fn hidden(&mut self, place: u64) -> Option<u64> {
        let _ = place;
        None
    }
}

/// The registers of the caller, and what else is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its registers.
    pub registers: Registers,
    /// It was interrupted by a signal: its pc is no return address.
    pub interrupted: bool,
    /// It was guessed.
    pub guessed: bool,
    /// Where its rbp was read, apart from a signal's; none where it is that of the frame before.
    pub bp_at: Option<u64>,
}

impl Caller {
    /// One that a call has left with these registers: its pc is a return address.
    pub fn returning(registers: Registers) -> Caller {
        Caller { registers, interrupted: false, guessed: false, bp_at: None }
    }

    /// Where its rule is found: within the call instruction, for a return address.
    #[inline]
    pub fn lookup(&self) -> u64 {
        self.registers.pc.wrapping_sub(u64::from(!self.interrupted))
    }

    /// It, if it is one: a return address of 0 is the end of a stack.
    ///
    /// # Errors
    /// [`Ended::Outermost`].
    #[inline]
    pub fn or_end(self) -> Result<Caller, Ended> {
        if self.registers.pc == 0 { Err(Ended::Outermost) } else { Ok(self) }
    }

    /// As it is kept.
    #[inline]
    pub fn frame(&self) -> Frame {
        let exact = u64::from(self.interrupted) * Frame::EXACT;
        let guessed = u64::from(self.guessed) * Frame::GUESSED;
        Frame(Frame(self.registers.pc).address() | exact | guessed)
    }
}

/// The caller of a frame by the frame's rule.
///
/// # Errors
/// Why there is none. `read` reads the stack; `register` knows the registers that are not in `frame`, by their numbers in the ABI.
#[inline]
pub fn caller(
    frame: Registers,
    rule: Rule,
    mut read: impl FnMut(u64) -> Option<u64>,
    register: impl FnOnce(u8) -> Option<u64>,
) -> Result<Caller, Ended> {
    let Registers { pc, sp, bp } = frame;
    let mut read = |address| read(address).ok_or(Ended::ReadFault);
    let offset = rule.offset() as u64;
    let extra = rule.extra();
    let cfa = match rule.kind() {
        Kind::None => return guess(frame, read),
        Kind::End => return Err(Ended::Outermost),
        Kind::Unknown => return Err(Ended::Unknown),
        Kind::Sp | Kind::Stub => sp.wrapping_add(offset),
        Kind::Bp => bp.wrapping_add(offset),
        Kind::Register => register(extra).ok_or(Ended::Unknown)?.wrapping_add(offset),
        Kind::Plt => sp.wrapping_add(offset).wrapping_add(if (pc & 15) as u8 >= extra { 8 } else { 0 }),
        Kind::SpAt => read(sp.wrapping_add(offset))?.wrapping_add(extra as i8 as u64),
        Kind::BpAt => read(bp.wrapping_add(offset))?.wrapping_add(extra as i8 as u64),
        Kind::Signal => {
            let context = sp.wrapping_add(offset);
            let [bp, sp, pc] = UCONTEXT.map(|at| read(context.wrapping_add(at)));
            let registers = Registers { pc: pc?, sp: sp?, bp: bp? };
            return Ok(Caller { registers, interrupted: true, guessed: false, bp_at: None });
        }
    };
    let bp_at = match rule.bp() {
        SavedBp::Same => None,
        SavedBp::Cfa(at) => Some(cfa.wrapping_add(at as u64)),
        SavedBp::Bp(at) => Some(bp.wrapping_add(at as u64)),
        SavedBp::Sp(at) => Some(sp.wrapping_add(at as u64)),
    };
    if rule.kind() == Kind::Stub {
        let registers = Registers { pc: read(cfa.wrapping_sub(8))?, sp: cfa, bp };
        return Ok(Caller::returning(registers));
    }
    above(frame, cfa, bp_at, read)
}

/// The caller of a frame whose CFA is known, and where its rbp is saved, if it is.
///
/// # Errors
/// Why there is none.
#[inline]
pub fn above(
    frame: Registers,
    cfa: u64,
    bp_at: Option<u64>,
    mut read: impl FnMut(u64) -> Result<u64, Ended>,
) -> Result<Caller, Ended> {
    if cfa <= frame.sp {
        return Err(Ended::NotGrowing);
    }
    let pc = read(cfa.wrapping_sub(8))?;
    let bp = match bp_at {
        None => frame.bp,
        Some(at) => read(at)?,
    };
    Ok(Caller { bp_at, ..Caller::returning(Registers { pc, sp: cfa, bp }) })
}

/// The caller where there are no rows: rbp is taken as a frame pointer. rbp 0 is the end of such a chain.
fn guess(frame: Registers, mut read: impl FnMut(u64) -> Result<u64, Ended>) -> Result<Caller, Ended> {
    let Registers { sp, bp, .. } = frame;
    if bp == 0 {
        return Err(Ended::Outermost);
    }
    if bp & 7 != 0 || bp.wrapping_sub(sp) >= GUESS_REACH {
        return Err(Ended::NoRow);
    }
    let (outer, pc) = (read(bp)?, read(bp.wrapping_add(8))?);
    let registers = Registers { pc, sp: bp.wrapping_add(16), bp: outer };
    Ok(Caller { registers, interrupted: false, guessed: true, bp_at: Some(bp) })
}

/// Where the rbx of a frame is that is not the innermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bx {
    /// In rbx of the frame that the walk begins with, or that a signal has interrupted last.
    Same,
    /// In memory.
    At(u64),
    /// That is not known.
    Lost,
}

impl Bx {
    /// That of the caller with this CFA, which `rule` has led to from a frame with this rsp. Below rsp it has been popped already.
    fn above(self, rule: Rule, sp: u64, cfa: u64) -> Bx {
        match rule.bx() {
            _ if rule.kind() == Kind::Signal => Bx::Same,
            SavedBx::Same => self,
            SavedBx::Below(bytes) if cfa.wrapping_sub(bytes) < sp => self,
            SavedBx::Below(bytes) => Bx::At(cfa.wrapping_sub(bytes)),
            SavedBx::Lost => Bx::Lost,
        }
    }
}

/// The caller of a frame, whose rule is `rule`, in a walk. `context` is where the registers are that a signal has interrupted, if the walk
/// has come through one: a `struct ucontext`; `bx`, where rbx is. `register` knows those of the frame that a walk begins with.
///
/// # Errors
/// Why there is none.
#[inline]
pub fn step(
    frame: &Caller,
    rule: Option<Rule>,
    context: &mut Option<u64>,
    bx: Bx,
    read: impl Fn(u64) -> Option<u64>,
    register: impl FnOnce(u8) -> Option<u64>,
) -> Result<Caller, Ended> {
    let rule = rule.ok_or(Ended::NoMapping)?;
    let registers = Registers { pc: frame.lookup(), ..frame.registers };
    let register = |number: u8| match (*context, bx) {
        _ if !frame.interrupted && number != BX => None,
        (_, Bx::At(at)) if !frame.interrupted => read(at),
        (_, Bx::Lost) if !frame.interrupted => None,
        (Some(context), _) => read(context.wrapping_add(u64::from(*IN_UCONTEXT.get(usize::from(number))?))),
        (None, _) => register(number),
    };
    let caller = caller(registers, rule, &read, register)?;
    if rule.kind() == Kind::Signal {
        *context = Some(registers.sp.wrapping_add(rule.offset() as u64));
    }
    caller.or_end()
}

/// A walk under way: an iterator over frames, innermost first, and then [`Walk::ended`].
#[derive(Debug)]
pub struct Walk<T> {
    target: T,
    frame: Caller,
    /// The rule of `frame`, once that was looked up.
    rule: Option<Rule>,
    left: usize,
    ended: Ended,
    first: bool,
    /// Where the registers of the current frame are that a signal has interrupted, if one has: a `struct ucontext`.
    context: Option<u64>,
    bx: Bx,
}

impl<T: Target> Walk<T> {
    /// Begins at these registers; at most `most` frames come.
    pub fn new(target: T, registers: Registers, most: usize) -> Walk<T> {
        let frame = Caller { interrupted: true, ..Caller::returning(registers) };
        Walk { bx: Bx::Same, ..Walk::from(target, frame, most) }
    }

    /// Begins at this frame; at most `most` frames come.
    pub fn from(target: T, frame: Caller, most: usize) -> Walk<T> {
        Walk { target, frame, rule: None, left: most, ended: Ended::Running, first: true, context: None, bx: Bx::Lost }
    }

    /// Why there are no more frames; [`Ended::Running`] as long as there may be more.
    pub fn ended(&self) -> Ended {
        self.ended
    }

    /// The registers of the frame that came last.
    pub fn registers(&self) -> Registers {
        self.frame.registers
    }

    /// Goes on to the caller.
    fn step(&mut self) -> Result<(), Ended> {
        let target = core::cell::RefCell::new(&mut self.target);
        let read = |address| target.borrow_mut().read(address);
        let register = |number| target.borrow_mut().register(number);
        let sp = self.frame.registers.sp;
        self.frame = step(&self.frame, self.rule, &mut self.context, self.bx, read, register)?;
        self.bx = self.rule.map_or(Bx::Lost, |rule| self.bx.above(rule, sp, self.frame.registers.sp));
        Ok(())
    }

    /// Looks through what stands for other code. A chain of tail calls has as many stubs.
    fn see_through(&mut self) -> Result<(), Ended> {
        for _ in 0..MAX_TAIL_CALLS {
            let Caller { registers, interrupted, .. } = self.frame;
            let sp = registers.sp;
            match self.target.patched(registers, interrupted) {
                None => return Ok(()),
                Some(Patched::Return(None)) => return Err(Ended::Stub),
                Some(Patched::Return(Some(address))) => self.frame.registers.pc = address,
                Some(Patched::Moved { original, lowered }) => {
                    // The code of a probe calls, and has not come to its instruction: what is looked up is that, and not what is in front of it.
                    let pc = original.wrapping_add(u64::from(!interrupted));
                    self.frame.registers = Registers { pc, sp: sp.wrapping_add(lowered), ..registers };
                }
                Some(Patched::Stub { function, cfa }) => {
                    let rule = cfa.and_then(|cfa| Rule::new(Kind::Stub, cfa, SavedBp::Same, 0));
                    self.rule = Some(rule.unwrap_or(Rule::UNKNOWN));
                    self.frame.registers.pc = function;
                    self.frame.interrupted = true;
                    return Ok(());
                }
            }
        }
        Err(Ended::Stub)
    }

    /// Looks up the rule of the frame, and the return address that a return probe hides there.
    fn look_up(&mut self) -> Result<(), Ended> {
        self.find_rule()?;
        for _ in 0..MAX_HIDDEN {
            if self.rule.is_some() {
                break;
            }
            let Some(pc) = self.target.hidden(self.frame.registers.sp.wrapping_sub(8)) else { break };
            self.frame.registers.pc = pc;
            self.find_rule()?;
        }
        if self.rule.is_none() {
            self.rule = self.target.unmapped();
        }
        Ok(())
    }

    fn find_rule(&mut self) -> Result<(), Ended> {
        self.rule = None;
        self.see_through()?;
        if self.rule.is_none() {
            self.rule = self.target.rule(self.frame.lookup());
        }
        Ok(())
    }
}

impl<T: Target> Iterator for Walk<T> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.ended != Ended::Running {
            return None;
        }
        if !core::mem::take(&mut self.first)
            && let Err(ended) = self.step()
        {
            self.ended = ended;
            return None;
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.ended = Ended::Full;
            return None;
        };
        self.left = left;
        if let Err(ended) = self.look_up() {
            self.ended = ended;
            return None;
        }
        Some(self.frame.frame())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a stack from an address on, and rules by address.
    struct Made {
        base: u64,
        words: [u64; 32],
        rules: fn(u64) -> Option<Rule>,
        hidden: Option<(u64, u64)>,
    }

    impl Target for &Made {
        fn read(&mut self, address: u64) -> Option<u64> {
            let at = address.checked_sub(self.base)?;
            self.words.get(usize::try_from(at / 8).ok()?).copied().filter(|_| at % 8 == 0)
        }
        fn rule(&mut self, address: u64) -> Option<Rule> {
            (self.rules)(address)
        }
        fn hidden(&mut self, place: u64) -> Option<u64> {
            self.hidden.filter(|h| h.0 == place).map(|h| h.1)
        }
    }

    const BASE: u64 = 0x7000_0000;

    fn made(words: &[(usize, u64)], rules: fn(u64) -> Option<Rule>) -> Made {
        let mut all = [0; 32];
        words.iter().for_each(|(at, word)| all[*at] = *word);
        Made { base: BASE, words: all, rules, hidden: None }
    }

    fn walk<const N: usize>(made: &Made, pc: u64, sp: usize, bp: u64) -> ([u64; N], usize, Ended) {
        let mut walk = Walk::new(made, Registers { pc, sp: BASE + 8 * sp as u64, bp }, N);
        let (mut frames, mut n) = ([0; N], 0);
        for frame in walk.by_ref() {
            frames[n] = frame.0;
            n += 1;
        }
        (frames, n, walk.ended())
    }

    fn rule(kind: Kind, offset: i64, bp: SavedBp, extra: u8) -> Option<Rule> {
        Rule::new(kind, offset, bp, extra)
    }

    #[test]
    fn each_kind_of_rule() {
        let rules = |pc| match pc {
            0x10 => rule(Kind::Sp, 16, SavedBp::Cfa(-16), 0),
            0x20..0x28 => rule(Kind::Bp, 16, SavedBp::Bp(0), 0),
            0x2f | 0x30 => rule(Kind::SpAt, 8, SavedBp::Sp(0), 8),
            0x3f => rule(Kind::BpAt, -8, SavedBp::Same, 0xf8),
            0x4a => rule(Kind::Plt, 8, SavedBp::Same, 11),
            0x4b => rule(Kind::Plt, 8, SavedBp::Same, 11),
            0x5f => Some(Rule::END),
            _ => None,
        };
        let words = [
            // 0x10: rbp at 0, return address at 1.
            (0, BASE + 8 * 4),
            (1, 0x21),
            // 0x20: rbp at rbp.
            (4, BASE + 8 * 12),
            (5, 0x30),
            // 0x2f: sp = 6; CFA = *(7) + 8.
            (6, BASE + 8 * 13),
            (7, BASE + 8 * 9),
            (9, 0x40),
            // 0x3f: CFA = *(rbp - 8) - 8.
            (12, BASE + 8 * 16),
            (14, 0x4b),
            (15, 0x60),
        ];
        let made = made(&words, rules);
        let (frames, n, ended) = walk::<8>(&made, 0x10, 0, 7);
        assert_eq!(frames[..n], [0x10 | Frame::EXACT, 0x21, 0x30, 0x40, 0x4b, 0x60]);
        assert_eq!(ended, Ended::Outermost);
        assert_eq!(walk::<3>(&made, 0x10, 0, 7), ([0x10 | Frame::EXACT, 0x21, 0x30], 3, Ended::Full));
        // In a linkage table before and after its push.
        assert_eq!(walk::<8>(&made, 0x4a, 15, 0).1, 2);
        assert_eq!(walk::<8>(&made, 0x4b, 14, 0).0[1], 0x60);
    }

    #[test]
    fn a_signal_frame_leads_to_the_interrupted_one() {
        let rules = |pc| match pc {
            0x10 => rule(Kind::Signal, 0, SavedBp::Same, 0),
            // Not 0x1f: the address of an interrupted instruction is looked up as it is.
            0x20 => Some(Rule::END),
            _ => None,
        };
        let made = made(&[(15, 1), (20, BASE - 4096), (21, 0x20)], rules);
        let (frames, n, ended) = walk::<8>(&made, 0x10, 0, 0);
        assert_eq!((&frames[..n], ended), (&[0x10 | Frame::EXACT, 0x20 | Frame::EXACT][..], Ended::Outermost));
    }

    #[test]
    fn code_without_rows_is_guessed_by_rbp() {
        let rules = |pc| match pc {
            0x10 | 0x1f => Some(Rule::NONE),
            0x2f => Some(Rule::END),
            _ => None,
        };
        let at = |n: u64| BASE + 8 * n;
        let chain = made(&[(2, at(6)), (3, 0x20), (6, 0), (7, 0x30)], rules);
        let (frames, n, ended) = walk::<8>(&chain, 0x10, 0, at(2));
        assert_eq!(frames[..n], [0x10 | Frame::EXACT, 0x20 | Frame::GUESSED, 0x30 | Frame::GUESSED]);
        assert_eq!(ended, Ended::Outermost);
        for (bp, want) in
            [(0, Ended::Outermost), (at(2) + 1, Ended::NoRow), (BASE - 8, Ended::NoRow), (at(40), Ended::ReadFault)]
        {
            assert_eq!(walk::<8>(&chain, 0x10, 0, bp).2, want, "{bp:x}");
        }
    }

    #[test]
    fn it_says_why_it_ends() {
        let rules = |pc| match pc {
            0x10 => rule(Kind::Sp, -8, SavedBp::Same, 0),
            0x20 => rule(Kind::Sp, 4096, SavedBp::Same, 0),
            0x30 => Some(Rule::UNKNOWN),
            0x40 => rule(Kind::Sp, 8, SavedBp::Same, 0),
            _ => None,
        };
        let made = made(&[(1, 0x999)], rules);
        let end = |pc, sp| walk::<8>(&made, pc, sp, 0).2;
        assert_eq!([end(0x10, 1), end(0x20, 0), end(0x30, 0)], [Ended::NotGrowing, Ended::ReadFault, Ended::Unknown]);
        assert_eq!([end(0x50, 0), end(0x40, 0), end(0x40, 1)], [Ended::NoMapping, Ended::Outermost, Ended::NoMapping]);
        // The place of the return address shows which one a return probe hides.
        let hidden = Made { hidden: Some((BASE + 8, 0x31)), ..made };
        assert_eq!(walk::<8>(&hidden, 0x40, 1, 0), ([0x40 | Frame::EXACT, 0x31, 0, 0, 0, 0, 0, 0], 2, Ended::Unknown));
    }
}
