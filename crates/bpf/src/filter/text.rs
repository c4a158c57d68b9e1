//! Strings: read as far as it takes to decide, then compared in words.
//!
//! `bpf_probe_read_user_str` says how long the string is, its NUL included and cut at the size asked for. With a size one
//! beyond the constant and its NUL, the length alone shows whether the string is shorter, as long, or longer.

use super::{Argument, Bytes, OfEvent, Place, Unfit};
use crate::asm::Label;
use crate::expr::Generator;
use crate::helper::Helper;
use crate::insn::{Alu, Cond as Jump, Reg, Reg::*, Size};
use events::Cap;
use lang::filter::ir::{How, Subject, Text};

/// `TASK_COMM_LEN` (include/linux/sched.h).
const COMM: usize = 16;

/// Bytes of scratch memory.
pub(super) fn room(t: &Text) -> usize {
    let n = if t.subject == Subject::Comm { COMM } else { size(t) };
    n.next_multiple_of(8)
}

/// How many bytes of a string in the target are asked for.
fn size(t: &Text) -> usize {
    t.constant.len() + if t.how == How::Starts { 1 } else { 2 }
}

impl<E> Generator<'_, E, OfEvent<'_>> {
    /// Goes to `to` if the test's outcome is `when`.
    pub(super) fn text(&mut self, t: &Text, when: bool, to: Label) -> Result<(), Unfit> {
        let differs = if when { self.a.new_label() } else { to };
        self.differing(t, differs)?;
        if when {
            self.a.jump(to);
            self.a.bind(differs);
        }
        Ok(())
    }

    /// Goes to `differs` if the test does not hold.
    fn differing(&mut self, t: &Text, differs: Label) -> Result<(), Unfit> {
        if t.how.searches() {
            return Err(Unfit::Search);
        }
        let with_nul = || [&t.constant[..], if t.how == How::Starts { &[] } else { &[0] }].concat();
        match t.subject {
            Subject::Comm => {
                let (base, off) = self.source.places.scratch;
                self.scratch(R1);
                self.a.mov(R2, COMM as i32);
                self.a.call(Helper::GetCurrentComm);
                self.same(base, off, &with_nul(), differs);
            }
            Subject::Arg(i) => match self.source.argument(i)? {
                Argument { bytes: Bytes::User, value } => self.read(Helper::ProbeReadUserStr, t, value, differs),
                Argument { bytes: Bytes::Kernel, value } => self.read(Helper::ProbeReadKernelStr, t, value, differs),
                Argument { bytes: Bytes::Copy(base, off, bits), value } => {
                    if let Some((base, off, bit)) = bits {
                        let (fault, read) = (i32::from(Cap::Fault.bits()) << bit, self.a.new_label());
                        self.a.load(Size::D, R0, base, off);
                        self.a.alu(Alu::And, R0, fault);
                        self.a.jump_if(Jump::Ne, R0, fault, read);
                        self.unread(value);
                        self.a.bind(read);
                    }
                    self.same(base, off, &with_nul(), differs);
                }
                Argument { bytes: Bytes::Nowhere, .. } if t.holds(b"") => {}
                Argument { bytes: Bytes::Nowhere, .. } => self.a.jump(differs),
            },
        }
        Ok(())
    }

    fn read(&mut self, helper: Helper, t: &Text, address: Place, differs: Label) {
        let (base, off) = self.source.places.scratch;
        self.fetch(address, R3);
        self.scratch(R1);
        self.a.mov(R2, size(t) as i32);
        self.a.call(helper);
        let read = self.a.new_label();
        self.a.jump_if(Jump::Sge, R0, 0, read);
        self.unread(address);
        self.a.mov(R0, 0);
        self.a.bind(read);
        match t.constant.len() as i32 {
            // The string of a null pointer is empty.
            0 => self.a.jump_if(Jump::Sgt, R0, 1, differs),
            n => self.a.jump_if(Jump::Ne, R0, n + 1, differs),
        }
        self.same(base, off, &t.constant, differs);
    }

    /// What could not be read is unknown, but at a null pointer.
    fn unread(&mut self, address: Place) {
        self.fetch(address, R3);
        self.a.jump_if(Jump::Ne, R3, 0, self.source.unknown);
    }

    fn scratch(&mut self, to: Reg) {
        let (base, off) = self.source.places.scratch;
        self.a.mov(to, base);
        self.a.alu(Alu::Add, to, i32::from(off));
    }

    /// Goes to `differs` unless these bytes are there; aligned as `off` is.
    fn same(&mut self, base: Reg, off: i16, bytes: &[u8], differs: Label) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let (size, n) = match rest.len() {
                8.. => (Size::D, 8),
                4.. => (Size::W, 4),
                2.. => (Size::H, 2),
                _ => (Size::B, 1),
            };
            let mut word = [0; 8];
            word[..n].copy_from_slice(&rest[..n]);
            let word = u64::from_le_bytes(word);
            self.a.load(size, R0, base, off + at as i16);
            match n {
                8 => {
                    self.a.constant(R1, word);
                    self.a.jump_if(Jump::Ne, R0, R1, differs);
                }
                _ => self.a.jump_if32(Jump::Ne, R0, word as u32 as i32, differs),
            }
            at += n;
        }
    }
}
