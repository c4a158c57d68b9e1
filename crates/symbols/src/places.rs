//! Whether a breakpoint may be put on a place of a file: only where an instruction begins. On any other byte it would change what
//! the program does, or kill it.
//!
//! ```text
//!  symbol        an entry of .eh_frame begins there ─► yes; else it may not lie within an instruction of what encloses it
//!  symbol+offset decoded from the symbol's start
//!  static probe  what encloses it is decoded; where nothing does, it must be an instruction that does nothing
//! ```
//!
//! Tables of symbols and notes may be damaged or wrong, so they are checked against the code.

use crate::code::{self, At, Code};
use crate::frames::{Frame, Frames};
use crate::{Elf, ReadAt};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

/// `EM_X86_64`.
const X86_64: u16 = 62;
/// Functions of which is remembered what their instructions are.
const REMEMBERED: usize = 64;
/// Limits of a proof that nothing leaves a function: how many other functions it reads, and how many bytes.
const MAX_CALLED: usize = 64;
const MAX_CALLED_BYTES: usize = 256 << 10;

/// How many tail calls from function to function are followed.
const MAX_TAIL_CALLS: usize = 4;

/// Why no breakpoint may be put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// It is inside of an instruction; the nearest offsets into the function that are not.
    Inside(Vec<u64>),
    /// It is not known to be code; the nearest offsets into the function that are.
    NoCode(Vec<u64>),
    /// The file does not have the function's size, so that it cannot be decoded.
    NoSize,
    /// The offset is outside of the function, which has this many bytes.
    Outside(u64),
    /// Instructions of this machine (`EM_*`) are not known.
    Machine(u16),
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misplaced::Inside(_) => f.write_str("it is inside of an instruction"),
            Misplaced::NoCode(_) => f.write_str("what lies there is not known to be code"),
            Misplaced::NoSize => f.write_str("the file does not say how long the function is"),
            Misplaced::Outside(size) => write!(f, "the function has {size} bytes"),
            Misplaced::Machine(machine) => write!(f, "the instructions of machine {machine} are not known"),
        }
    }
}

impl Misplaced {
    /// The nearest offsets into the function where a breakpoint may be put.
    pub fn nearest(&self) -> &[u64] {
        match self {
            Misplaced::Inside(near) | Misplaced::NoCode(near) => near,
            _ => &[],
        }
    }
}

type Outcome = Result<(), Misplaced>;

/// The places of a file.
pub struct Places<'f, R: ReadAt + ?Sized> {
    elf: &'f Elf,
    file: &'f R,
    frames: OnceCell<Frames>,
    /// Starts of functions whose size is known, with the furthest end of all functions up to there.
    by_address: OnceCell<Vec<(u64, u64, u64)>>,
    decoded: RefCell<HashMap<u64, Rc<Code>>>,
}

impl<'f, R: ReadAt + ?Sized> Places<'f, R> {
    /// Of a file whose tables are `elf`.
    pub fn new(elf: &'f Elf, file: &'f R) -> Self {
        let (frames, by_address) = (OnceCell::new(), OnceCell::new());
        Places { elf, file, frames, by_address, decoded: RefCell::default() }
    }

    fn frames(&self) -> &Frames {
        self.frames.get_or_init(|| Frames::read(self.elf, self.file))
    }

    fn machine(&self) -> Outcome {
        if self.elf.machine() == X86_64 { Ok(()) } else { Err(Misplaced::Machine(self.elf.machine())) }
    }

    /// Whether a function begins at its symbol's address.
    pub fn entry(&self, address: u64) -> Outcome {
        self.machine()?;
        if !code::is_instruction(&self.elf.code(self.file, address, code::LONGEST)) {
            return Err(Misplaced::NoCode(Vec::new()));
        }
        let frame = self.frames().at(address);
        if frame.is_some_and(|frame| frame.start == address) {
            return Ok(());
        }
        // Only the symbol claims that it begins there: another function that begins before and reaches further may contradict it.
        let around = frame.or_else(|| self.enclosing_symbol(address, |start| start < address));
        match around.map_or(At::Start, |frame| self.code(frame).at(address)) {
            At::Start | At::Likely | At::Doubtful => Ok(()),
            At::Inside => Err(Misplaced::Inside(Vec::new())),
            At::Data => Err(Misplaced::NoCode(Vec::new())),
        }
    }

    /// Whether an instruction begins at an offset into the function that begins at an address and has `size` bytes (0: not known).
    pub fn offset(&self, address: u64, size: u64, offset: u64) -> Outcome {
        self.entry(address)?;
        if offset == 0 {
            return Ok(());
        }
        let frame = self.extent(address, size).ok_or(Misplaced::NoSize)?;
        if offset >= frame.end - frame.start {
            return Err(Misplaced::Outside(frame.end - frame.start));
        }
        let code = self.code(frame);
        let near = || code.nearest(address + offset).into_iter().map(|at| at - address).collect();
        match code.at(address + offset) {
            At::Start | At::Likely => Ok(()),
            At::Inside => Err(Misplaced::Inside(near())),
            At::Doubtful | At::Data => Err(Misplaced::NoCode(near())),
        }
    }

    /// Whether a place that nothing but a note names is an instruction.
    pub fn noted(&self, address: u64) -> Outcome {
        self.machine()?;
        let is_nop = code::is_nop(&self.elf.code(self.file, address, code::LONGEST));
        let at = self.enclosing(address).map_or(At::Doubtful, |frame| self.code(frame).at(address));
        match at {
            At::Start | At::Likely => Ok(()),
            At::Doubtful if is_nop => Ok(()),
            At::Inside => Err(Misplaced::Inside(Vec::new())),
            At::Doubtful | At::Data => Err(Misplaced::NoCode(Vec::new())),
        }
    }

    /// Whether a place is jumped to, and not called: a part that the compiler has split off a function. Where a return address would be
    /// replaced there, it would be something else.
    pub fn is_jumped_to(&self, address: u64) -> bool {
        self.frames().is_as_called(address) == Some(false)
    }

    /// Whether a function reads its own return address, and so behaves differently if that is replaced: like setjmp, which saves it,
    /// and dlsym, which finds its caller by it; or ends in a tail call to such a function.
    pub fn takes_return_address(&self, address: u64, size: u64) -> bool {
        let Some(mut frame) = self.extent(address, size) else { return false };
        for _ in 0..MAX_TAIL_CALLS {
            let code = self.code(frame);
            if code.takes_return_address() {
                return true;
            }
            let mut next = code.goes_on_as().iter().filter_map(|to| self.enclosing(*to).filter(|f| f.start == *to));
            match next.next() {
                Some(other) => frame = other,
                None => break,
            }
        }
        false
    }

    /// Whether it is proven that no exception and no cancellation of a thread leaves a function: it calls nothing but functions of this
    /// file of which that holds too, and where it goes is known.
    pub fn is_closed(&self, address: u64, size: u64) -> bool {
        if self.machine().is_err() {
            return false;
        }
        let Some(first) = self.extent(address, size) else { return false };
        let mut waiting = vec![first];
        let mut seen: Vec<u64> = vec![first.start];
        let mut bytes = 0;
        while let Some(frame) = waiting.pop() {
            bytes += (frame.end - frame.start) as usize;
            if bytes > MAX_CALLED_BYTES {
                return false;
            }
            let code = self.code(frame);
            let Some(called) = code.leaves_to() else { return false };
            for address in called {
                let Some(frame) = self.enclosing(*address) else { return false };
                if *address != frame.start && self.code(frame).at(*address) != At::Start {
                    return false;
                }
                if !seen.contains(&frame.start) {
                    seen.push(frame.start);
                    waiting.push(frame);
                }
            }
            if seen.len() > MAX_CALLED {
                return false;
            }
        }
        true
    }

    /// From where to where a function reaches.
    fn extent(&self, address: u64, size: u64) -> Option<Frame> {
        let frame = self.frames().at(address).filter(|r| r.start == address);
        match size {
            0 => frame,
            size => {
                let end = address.checked_add(size)?;
                Some(Frame { end, ..frame.unwrap_or(Frame::unknown(address, end)) })
            }
        }
    }

    /// The function that an address lies in.
    fn enclosing(&self, address: u64) -> Option<Frame> {
        self.frames().at(address).or_else(|| self.enclosing_symbol(address, |start| start <= address))
    }

    /// What encloses an address by the table of symbols: that which begins nearest to it, of those that begin `before` it.
    fn enclosing_symbol(&self, address: u64, before: impl Fn(u64) -> bool) -> Option<Frame> {
        let all = self.by_address.get_or_init(|| {
            let sized = self.elf.functions().iter().filter(|f| f.size > 0);
            let mut all: Vec<_> = sized.map(|f| (f.address, f.address.saturating_add(f.size), 0)).collect();
            all.sort_unstable();
            let mut furthest = 0;
            for f in &mut all {
                furthest = furthest.max(f.1);
                f.2 = furthest;
            }
            all
        });
        let before = &all[..all.partition_point(|f| before(f.0))];
        // Where functions overlap, later ones may end before the address.
        let candidates = before.iter().rev().take(REMEMBERED).take_while(|f| f.2 > address);
        let (start, end, _) = candidates.into_iter().find(|f| f.1 > address)?;
        Some(Frame::unknown(*start, *end))
    }

    fn code(&self, frame: Frame) -> Rc<Code> {
        if let Some(known) = self.decoded.borrow().get(&frame.start) {
            return Rc::clone(known);
        }
        let bytes = self.elf.code(self.file, frame.start, (frame.end - frame.start).min(code::MAX as u64) as usize);
        let code = Rc::new(Code::read(frame.start, &bytes, frame.lands));
        let mut decoded = self.decoded.borrow_mut();
        if decoded.len() >= REMEMBERED {
            decoded.clear();
        }
        decoded.insert(frame.start, Rc::clone(&code));
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn every_function_of_this_program_begins_where_its_symbol_says() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let places = Places::new(&elf, &bytes[..]);
        let wrong: Vec<_> = elf.functions().iter().filter(|f| places.entry(f.address).is_err()).collect();
        assert_eq!(wrong, Vec::<&crate::elf::Function>::new());
        let [main] = elf.function("main") else { panic!("one main") };
        assert_eq!(places.offset(main.address, main.size, 0), Ok(()));
        assert_eq!(places.offset(main.address, main.size, main.size), Err(Misplaced::Outside(main.size)));
        assert_eq!(places.offset(main.address, main.size, u64::MAX), Err(Misplaced::Outside(main.size)));
    }

    #[test]
    fn offsets_into_instructions_are_refused_with_the_nearest() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let places = Places::new(&elf, &bytes[..]);
        let [main] = elf.function("main") else { panic!("one main") };
        let inside = (1..main.size).find_map(|at| match places.offset(main.address, main.size, at) {
            Err(Misplaced::Inside(near)) => Some((at, near)),
            _ => None,
        });
        let (at, near) = inside.unwrap();
        assert!(near[0] < at && near.get(1).is_none_or(|n| *n > at), "{at}: {near:?}");
        assert!(near.iter().all(|n| places.offset(main.address, main.size, *n).is_ok()));
    }

    /// A symbol in the midst of another function's instructions.
    #[test]
    fn symbols_that_lie_are_refused() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let places = Places::new(&elf, &bytes[..]);
        let [main] = elf.function("main") else { panic!("one main") };
        let mut refused = 0;
        for at in 1..main.size {
            let lie = main.address + at;
            let starts = places.offset(main.address, main.size, at).is_ok();
            assert!(places.entry(lie).is_ok() || !starts, "{at}");
            refused += u64::from(places.entry(lie).is_err());
            assert_eq!(places.noted(lie).is_ok(), starts, "{at}");
        }
        assert!(refused * 2 > main.size, "{refused} of {}", main.size);
        assert_eq!(places.entry(1), Err(Misplaced::NoCode(Vec::new())));
        assert!(places.noted(0).is_err());
    }
}
