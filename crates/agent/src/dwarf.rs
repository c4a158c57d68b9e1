//! Descriptions of frames (DWARF), written byte by byte.

/// Operations, rules of call frames, and registers, by their numbers (DWARF 5, 7.7.1 and 7.24; System V ABI for x86-64, figure 3.36).
pub mod op {
    pub const DEREF: u8 = 0x06;
    pub const CONST1U: u8 = 0x08;
    pub const CONST2U: u8 = 0x0a;
    pub const CONST2S: u8 = 0x0b;
    pub const CONST4U: u8 = 0x0c;
    pub const CONST8U: u8 = 0x0e;
    pub const DUP: u8 = 0x12;
    pub const DROP: u8 = 0x13;
    pub const OVER: u8 = 0x14;
    pub const PICK: u8 = 0x15;
    pub const SWAP: u8 = 0x16;
    pub const ROT: u8 = 0x17;
    pub const AND: u8 = 0x1a;
    pub const MINUS: u8 = 0x1c;
    pub const MOD: u8 = 0x1d;
    pub const MUL: u8 = 0x1e;
    pub const PLUS: u8 = 0x22;
    pub const PLUS_UCONST: u8 = 0x23;
    pub const SHR: u8 = 0x25;
    pub const XOR: u8 = 0x27;
    pub const BRA: u8 = 0x28;
    pub const EQ: u8 = 0x29;
    pub const GE: u8 = 0x2a;
    pub const GT: u8 = 0x2b;
    pub const LE: u8 = 0x2c;
    pub const LT: u8 = 0x2d;
    pub const SKIP: u8 = 0x2f;
    pub const LIT0: u8 = 0x30;
    pub const BREG0: u8 = 0x70;
    pub const DEREF_SIZE: u8 = 0x94;
}
pub const DEF_CFA: u8 = 0x0c;
pub const DEF_CFA_EXPRESSION: u8 = 0x0f;
pub const VAL_EXPRESSION: u8 = 0x16;
pub const RSP: u8 = 7;
pub const RA: u8 = 16;

/// Bytes that are written one after the other.
pub struct Writer {
    at: *mut u8,
    room: usize,
    /// How many there are.
    pub len: usize,
    /// Some have found no room.
    pub full: bool,
}

impl Writer {
    /// One that writes from `at` on.
    ///
    /// # Safety
    /// `room` bytes are there, and nobody else uses them.
    pub unsafe fn new(at: *mut u8, room: usize) -> Writer {
        Writer { at, room, len: 0, full: false }
    }

    pub fn put(&mut self, bytes: &[u8]) -> &mut Writer {
        if self.len + bytes.len() <= self.room {
            // SAFETY: so says who has made it.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(self.len), bytes.len()) };
            self.len += bytes.len();
        } else {
            self.full = true;
        }
        self
    }

    pub fn number(&mut self, value: u64) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// Writes over what was written before.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        let end = core::mem::replace(&mut self.len, at);
        self.put(bytes);
        self.len = end;
    }

    /// Fills up to a multiple of 8 with nops, and notes the length of what began at `start`.
    pub fn finish(&mut self, start: usize) {
        while !self.len.is_multiple_of(8) && !self.full {
            self.put(&[0]);
        }
        self.patch(start, &((self.len - start - 4) as u32).to_le_bytes());
    }

    /// A jump forward, to where [`Writer::land`] is told to.
    pub fn jump(&mut self, operation: u8) -> usize {
        self.put(&[operation, 0, 0]).len
    }

    pub fn land(&mut self, jump: usize) {
        self.patch(jump - 2, &((self.len - jump) as i16).to_le_bytes());
    }

    /// A jump backward.
    pub fn jump_to(&mut self, operation: u8, to: usize) {
        self.put(&[operation]);
        let distance = to as i64 - (self.len as i64 + 2);
        self.put(&(distance as i16).to_le_bytes());
    }

    /// An expression of less than 16 KiB, and its length before it.
    pub fn expression(&mut self, write: impl FnOnce(&mut Writer)) {
        let start = self.put(&[0, 0]).len;
        write(self);
        let len = self.len - start;
        self.patch(start - 2, &[len as u8 | 0x80, (len >> 7) as u8]);
    }
}
