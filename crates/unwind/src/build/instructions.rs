//! Call frame instructions, carried out: what of a frame is where, from which address on.
//!
//! Only what the tables have is followed: the CFA, rbp, rbx, the return address. Numbers of instructions: DWARF 5, table 7.29, and GNU's.

use super::entries::{Bytes, Cie};

/// rbx, rbp, rsp, the return address (System V ABI for x86-64, figure 3.36).
const BX: u64 = crate::rule::BX as u64;
pub(super) const BP: u64 = 6;
pub(super) const SP: u64 = 7;
pub(super) const RA: u64 = 16;

/// The most states that are remembered at a time. Compilers need one.
const REMEMBERED: usize = 16;

/// How the CFA is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cfa<'b> {
    Sum { register: u64, offset: i64 },
    Expression(&'b [u8]),
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved<'b> {
    /// Nothing is said of it.
    Unset,
    Undefined,
    Same,
    /// In memory, at CFA + offset.
    Cfa(i64),
    /// In memory, where the expression says.
    Expression(&'b [u8]),
    /// In another register.
    Register(u64),
    /// It is CFA + offset, or what an expression says.
    Value,
}

/// What is known of a frame at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State<'b> {
    pub cfa: Cfa<'b>,
    pub bp: Saved<'b>,
    pub bx: Saved<'b>,
    pub ra: Saved<'b>,
}

/// Before the first instruction.
pub(super) const NOTHING: State<'static> =
    State { cfa: Cfa::Sum { register: 0, offset: 0 }, bp: Saved::Unset, bx: Saved::Unset, ra: Saved::Unset };

/// The instructions are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

/// Where the next row begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This many bytes further on.
    By(u64),
    /// At this address.
    To(u64),
}

/// Carries instructions out.
#[derive(Debug)]
pub(super) struct Machine<'b> {
    /// Units of the instructions, bytes.
    code: u64,
    data: i64,
    /// What registers are restored to.
    initial: State<'b>,
    /// What holds at the address that was reached.
    pub state: State<'b>,
    /// Whether it may differ from that before the last step.
    pub changed: bool,
    remembered: [State<'b>; REMEMBERED],
    depth: usize,
}

impl<'b> Machine<'b> {
    pub fn new() -> Machine<'b> {
        let remembered = [NOTHING; REMEMBERED];
        Machine { code: 1, data: 1, initial: NOTHING, state: NOTHING, changed: true, remembered, depth: 0 }
    }

    /// A function begins.
    pub fn begin(&mut self, cie: &Cie<'b>, initial: State<'b>) {
        (self.code, self.data) = (cie.code, cie.data);
        (self.initial, self.state) = (initial, initial);
        (self.changed, self.depth) = (true, 0);
    }

    /// Carries instructions out up to the next step to another address; none: there is no other.
    pub fn step(&mut self, bytes: &mut Bytes<'b>) -> Result<Option<Step>, Damaged> {
        while let Some(byte) = bytes.byte() {
            let low = u64::from(byte & 0x3f);
            match byte >> 6 {
                // advance_loc, offset, restore
                1 => return Ok(Some(Step::By(low.wrapping_mul(self.code)))),
                2 => {
                    let offset = self.scaled(bytes.uleb().map(|n| n as i64))?;
                    self.set(low, Saved::Cfa(offset));
                }
                3 => self.restore(low),
                _ => {
                    if let Some(step) = self.other(byte, bytes)? {
                        return Ok(Some(step));
                    }
                }
            }
        }
        Ok(None)
    }

    fn other(&mut self, byte: u8, bytes: &mut Bytes<'b>) -> Result<Option<Step>, Damaged> {
        let by = |n: Option<u64>, code: u64| Ok(Some(Step::By(n.ok_or(Damaged)?.wrapping_mul(code))));
        match byte {
            // nop
            0x00 => {}
            // set_loc; pointers of other encodings are not written here.
            0x01 => return bytes.number::<8>().map(|to| Some(Step::To(to))).ok_or(Damaged),
            // advance_loc1, 2, 4
            0x02 => return by(bytes.number::<1>(), self.code),
            0x03 => return by(bytes.number::<2>(), self.code),
            0x04 => return by(bytes.number::<4>(), self.code),
            // offset_extended, offset_extended_sf, and GNU's, which subtracts
            0x05 | 0x11 | 0x2f => {
                let register = uleb(bytes)?;
                let offset = if byte == 0x11 { bytes.sleb() } else { bytes.uleb().map(|n| n as i64) };
                let offset = self.scaled(offset)?;
                self.set(register, Saved::Cfa(if byte == 0x2f { offset.wrapping_neg() } else { offset }));
            }
            // restore_extended, undefined, same_value, register
            0x06 => {
                let register = uleb(bytes)?;
                self.restore(register);
            }
            0x07 => self.set(uleb(bytes)?, Saved::Undefined),
            0x08 => self.set(uleb(bytes)?, Saved::Same),
            0x09 => {
                let (register, other) = (uleb(bytes)?, uleb(bytes)?);
                self.set(register, Saved::Register(other));
            }
            // remember_state, restore_state
            0x0a => {
                *self.remembered.get_mut(self.depth).ok_or(Damaged)? = self.state;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1).ok_or(Damaged)?;
                (self.state, self.changed) = (self.remembered[self.depth], true);
            }
            // def_cfa, def_cfa_sf, def_cfa_register, def_cfa_offset, def_cfa_offset_sf
            0x0c => {
                let (register, offset) = (uleb(bytes)?, uleb(bytes)? as i64);
                self.set_cfa(Cfa::Sum { register, offset });
            }
            0x12 => {
                let (register, offset) = (uleb(bytes)?, self.scaled(bytes.sleb())?);
                self.set_cfa(Cfa::Sum { register, offset });
            }
            0x0d => {
                let Cfa::Sum { offset, .. } = self.state.cfa else { return Err(Damaged) };
                self.set_cfa(Cfa::Sum { register: uleb(bytes)?, offset });
            }
            0x0e | 0x13 => {
                let Cfa::Sum { register, .. } = self.state.cfa else { return Err(Damaged) };
                let offset = if byte == 0x0e { uleb(bytes)? as i64 } else { self.scaled(bytes.sleb())? };
                self.set_cfa(Cfa::Sum { register, offset });
            }
            // def_cfa_expression, expression
            0x0f => self.set_cfa(Cfa::Expression(block(bytes)?)),
            0x10 => {
                let (register, expression) = (uleb(bytes)?, block(bytes)?);
                self.set(register, Saved::Expression(expression));
            }
            // val_offset, val_offset_sf, val_expression
            0x14..=0x16 => {
                let register = uleb(bytes)?;
                match byte {
                    0x14 => drop(uleb(bytes)?),
                    0x15 => drop(bytes.sleb().ok_or(Damaged)?),
                    _ => drop(block(bytes)?),
                }
                self.set(register, Saved::Value);
            }
            // GNU_args_size
            0x2e => drop(uleb(bytes)?),
            _ => return Err(Damaged),
        }
        Ok(None)
    }

    fn scaled(&self, n: Option<i64>) -> Result<i64, Damaged> {
        n.map(|n| n.wrapping_mul(self.data)).ok_or(Damaged)
    }

    fn set_cfa(&mut self, cfa: Cfa<'b>) {
        (self.state.cfa, self.changed) = (cfa, true);
    }

    fn set(&mut self, register: u64, saved: Saved<'b>) {
        let place = match register {
            BP => &mut self.state.bp,
            BX => &mut self.state.bx,
            RA => &mut self.state.ra,
            _ => return,
        };
        (*place, self.changed) = (saved, true);
    }

    fn restore(&mut self, register: u64) {
        match register {
            BP => self.set(register, self.initial.bp),
            BX => self.set(register, self.initial.bx),
            RA => self.set(register, self.initial.ra),
            _ => {}
        }
    }
}

fn uleb(bytes: &mut Bytes<'_>) -> Result<u64, Damaged> {
    bytes.uleb().ok_or(Damaged)
}

fn block<'b>(bytes: &mut Bytes<'b>) -> Result<&'b [u8], Damaged> {
    let len = uleb(bytes)?;
    bytes.take(len).ok_or(Damaged)
}
