//! What the kernel hands over to a handler of signals (arch/x86/include/uapi/asm/ucontext.h).

use crate::memory::{load, store};

/// The ucontext_t that a handler gets.
#[derive(Clone, Copy)]
pub struct Context(u64);

impl Context {
    /// The one at an address.
    ///
    /// # Safety
    /// The kernel has put a ucontext_t there, for the handler that asks.
    pub unsafe fn at(address: u64) -> Context {
        Context(address)
    }

    /// Its address.
    pub fn address(self) -> u64 {
        self.0
    }

    const SP: u64 = 40 + 15 * 8;
    const PC: u64 = 40 + 16 * 8;
    const MASK: u64 = 40 + 256;

    /// The pc that was interrupted.
    pub fn pc(self) -> u64 {
        // SAFETY: there is a ucontext_t.
        unsafe { load(self.0 + Self::PC) }
    }

    /// Has the thread go on elsewhere.
    pub fn set_pc(self, pc: u64) {
        // SAFETY: as in `pc`.
        unsafe { store(self.0 + Self::PC, pc) };
    }

    /// Does what an instruction that raises the stack pointer would.
    pub fn raise(self, by: i64) {
        // SAFETY: as in `pc`.
        unsafe { store(self.0 + Self::SP, load(self.0 + Self::SP).wrapping_add_signed(by)) };
    }

    /// Gives a register that callees keep, by its number, the word on top of the stack.
    pub fn pop(self, register: u8) {
        let place = match register {
            3 => 11,
            5 => 10,
            upper @ 12..=15 => u64::from(upper) - 8,
            _ => return,
        };
        // SAFETY: as in `pc`, and the thread has just pushed that word.
        unsafe { store(self.0 + 40 + place * 8, load(load(self.0 + Self::SP))) };
    }

    /// The mask of blocked signals that the handler returns to.
    pub fn mask(self) -> u64 {
        // SAFETY: as in `pc`.
        unsafe { load(self.0 + Self::MASK) }
    }
}
