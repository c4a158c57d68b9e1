//! Numbers: every expression ends up in R0.
//!
//! ```text
//! leaf op constant        R0 = leaf; R0 op= imm
//! left op leaf in memory  R0 = left; R1 = leaf; R0 op= R1
//! left op right           R0 = left ─► temp; R0 = right; R1 = R0; R0 = temp; R0 op= R1
//! ```

use super::{Generator, Place, Unfit};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Alu, Cond as Jump, Reg, Reg::*, Size};
use lang::ast::Cast;
use lang::filter::ir::{Cmp, Cond, Int, Op, Value};

fn immediate(i: &Int) -> Option<i32> {
    if let Int::Const(v) = i { i32::try_from(*v).ok() } else { None }
}

/// Signed comparisons.
fn jump(cmp: Cmp) -> Jump {
    match cmp {
        Cmp::Eq => Jump::Eq,
        Cmp::Ne => Jump::Ne,
        Cmp::Lt => Jump::Slt,
        Cmp::Le => Jump::Sle,
        Cmp::Gt => Jump::Sgt,
        Cmp::Ge => Jump::Sge,
    }
}

fn unsigned(cmp: Cmp) -> Jump {
    match cmp {
        Cmp::Lt => Jump::Lt,
        Cmp::Le => Jump::Le,
        Cmp::Gt => Jump::Gt,
        Cmp::Ge => Jump::Ge,
        same => jump(same),
    }
}

/// The operation of eBPF, for all but division.
fn alu(op: Op) -> Option<Alu> {
    Some(match op {
        Op::Or => Alu::Or,
        Op::Xor => Alu::Xor,
        Op::And => Alu::And,
        Op::Shl => Alu::Lsh,
        Op::Shr => Alu::Rsh,
        Op::Add => Alu::Add,
        Op::Sub => Alu::Sub,
        Op::Mul => Alu::Mul,
        Op::Div | Op::Mod => return None,
    })
}

/// How many words of [`super::Places::temps`] the code of a condition takes at most, wherever its values are.
pub(super) fn words(cond: &Cond) -> usize {
    match cond {
        Cond::Const(_) | Cond::Text(_) => 0,
        Cond::Compare(_, x, y) => words_of_two(x, y),
        Cond::Not(c) => words(c),
        Cond::All(list) | Cond::Any(list) => list.iter().map(words).max().unwrap_or(0),
    }
}

fn words_of(i: &Int) -> usize {
    match i {
        Int::Const(_) | Int::Value(_) => 0,
        Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => words_of(x),
        Int::Binary(_, x, y) => words_of_two(x, y),
        Int::Choice(c, x, y) => words(c).max(words_of(x)).max(words_of(y)),
        Int::Truth(c) => words(c),
    }
}

fn words_of_two(x: &Int, y: &Int) -> usize {
    match (x, y) {
        (one, Int::Const(_)) | (Int::Const(_), one) => words_of(one),
        (x, y) => words_of(x).max(1 + words_of(y)),
    }
}

impl<E> Generator<'_, E> {
    /// Goes to `to` if the comparison holds.
    pub(super) fn compare(&mut self, cmp: Cmp, x: &Int, y: &Int, to: Label) -> Result<(), Unfit> {
        if self.narrow(cmp, x, y, to)? || self.bits(cmp, x, y, to)? {
            return Ok(());
        }
        match immediate(y) {
            Some(imm) => {
                self.int(x)?;
                self.a.jump_if(jump(cmp), R0, imm, to);
            }
            None => {
                self.pair(x, y)?;
                self.a.jump_if(jump(cmp), R0, R1, to);
            }
        }
        Ok(())
    }

    /// An argument of 32 bits and a constant of its range: the lower halves are compared, whatever the upper ones are.
    fn narrow(&mut self, cmp: Cmp, x: &Int, y: &Int, to: Label) -> Result<bool, Unfit> {
        let (Int::Value(Value::Arg(arg)), Int::Const(v)) = (x, y) else { return Ok(false) };
        if arg.cast.size != 4 || arg.cast.apply(*v) != *v {
            return Ok(false);
        }
        let place = self.place(Value::Arg(*arg))?;
        self.fetch(place, R0);
        self.a.jump_if32(if arg.cast.signed { jump(cmp) } else { unsigned(cmp) }, R0, *v as i32, to);
        Ok(true)
    }

    /// `x & mask`, zero or not, where no bit of the mask is in doubt.
    fn bits(&mut self, cmp: Cmp, x: &Int, y: &Int, to: Label) -> Result<bool, Unfit> {
        let (Int::Binary(Op::And, x, mask), Cmp::Ne, Int::Const(0)) = (x, cmp, y) else { return Ok(false) };
        let Some(mask) = immediate(mask) else { return Ok(false) };
        self.masked(x, mask)?;
        self.a.jump_if(Jump::Set, R0, mask, to);
        Ok(true)
    }

    /// R0 = x, or something that has the same bits under the mask.
    fn masked(&mut self, x: &Int, mask: i32) -> Result<(), Unfit> {
        match x {
            // Bits above the type are not asked for.
            Int::Value(Value::Arg(arg)) if arg.cast.size == 4 && mask >= 0 => {
                let place = self.place(Value::Arg(*arg))?;
                self.fetch(place, R0);
                Ok(())
            }
            _ => self.int(x),
        }
    }

    /// R0 = the expression.
    pub(super) fn int(&mut self, i: &Int) -> Result<(), Unfit> {
        match i {
            Int::Const(_) | Int::Value(_) => self.leaf(i, R0)?,
            Int::Cast(cast, x) => {
                self.int(x)?;
                self.extend(R0, *cast);
            }
            Int::Minus(x) => {
                self.int(x)?;
                self.a.neg(R0);
            }
            Int::Complement(x) => {
                self.int(x)?;
                self.a.alu(Alu::Xor, R0, -1);
            }
            Int::Binary(op, x, y) => self.binary(*op, x, y)?,
            Int::Choice(c, x, y) => self.choice(c, x, y)?,
            Int::Truth(c) => self.choice(c, &Int::Const(1), &Int::Const(0))?,
        }
        Ok(())
    }

    fn choice(&mut self, c: &Cond, x: &Int, y: &Int) -> Result<(), Unfit> {
        let [other, done] = [self.a.new_label(), self.a.new_label()];
        self.branch(c, false, other)?;
        self.int(x)?;
        self.a.jump(done);
        self.a.bind(other);
        self.int(y)?;
        self.a.bind(done);
        Ok(())
    }

    fn binary(&mut self, op: Op, x: &Int, y: &Int) -> Result<(), Unfit> {
        let Some(alu) = alu(op) else {
            self.pair(x, y)?;
            self.divide(op == Op::Mod);
            return Ok(());
        };
        let shift = matches!(op, Op::Shl | Op::Shr);
        match immediate(y) {
            Some(imm) if op == Op::And => {
                self.masked(x, imm)?;
                self.a.alu(alu, R0, imm);
            }
            Some(imm) => {
                self.int(x)?;
                self.a.alu(alu, R0, if shift { imm & 63 } else { imm });
            }
            None => {
                self.pair(x, y)?;
                if shift {
                    self.a.alu(Alu::And, R1, 63);
                }
                self.a.alu(alu, R0, R1);
            }
        }
        Ok(())
    }

    /// R0 /= R1 or R0 %= R1, signed: eBPF divides unsigned; by zero the result is that of `lang`.
    fn divide(&mut self, rest: bool) {
        // The sign of the result: that of the dividend for the rest, else of both.
        self.a.mov(R2, R0);
        if !rest {
            self.a.alu(Alu::Xor, R2, R1);
        }
        for reg in [R0, R1] {
            let positive = self.a.new_label();
            self.a.jump_if(Jump::Sge, reg, 0, positive);
            self.a.neg(reg);
            self.a.bind(positive);
        }
        self.a.alu(if rest { Alu::Mod } else { Alu::Div }, R0, R1);
        let positive = self.a.new_label();
        self.a.jump_if(Jump::Sge, R2, 0, positive);
        self.a.neg(R0);
        self.a.bind(positive);
    }

    /// R0 = x, R1 = y.
    fn pair(&mut self, x: &Int, y: &Int) -> Result<(), Unfit> {
        if self.simple(y)? {
            self.int(x)?;
            return self.leaf(y, R1);
        }
        if self.simple(x)? {
            self.int(y)?;
            self.a.mov(R1, R0);
            return self.leaf(x, R0);
        }
        let (base, first, count) = self.places.temps;
        if self.depth >= count {
            return Err(Unfit::Temps);
        }
        let slot = first + 8 * self.depth as i16;
        self.int(x)?;
        self.a.store(Size::D, base, slot, R0);
        self.depth += 1;
        self.int(y)?;
        self.depth -= 1;
        self.a.mov(R1, R0);
        self.a.load(Size::D, R0, base, slot);
        Ok(())
    }

    /// Needs one register only.
    fn simple(&self, i: &Int) -> Result<bool, Unfit> {
        Ok(match i {
            Int::Const(_) => true,
            Int::Value(Value::Dur) => false,
            Int::Value(v) => matches!(self.place(*v)?, Place::Memory(..)),
            _ => false,
        })
    }

    /// A constant or a value. Where it is not [`Self::simple`], R0 and R1 are lost.
    fn leaf(&mut self, i: &Int, to: Reg) -> Result<(), Unfit> {
        match i {
            Int::Const(v) => self.a.constant(to, *v as u64),
            Int::Value(v) => {
                let place = self.place(*v)?;
                self.fetch(place, to);
                match v {
                    Value::Arg(arg) => self.extend(to, arg.cast),
                    Value::Dur => {
                        let Some(start @ Place::Memory(..)) = self.places.start else { return Err(Unfit::Start) };
                        self.fetch(start, R1);
                        self.a.alu(Alu::Sub, to, R1);
                    }
                    _ => {}
                }
            }
            _ => self.int(i)?,
        }
        Ok(())
    }

    /// `to` = what is there, not extended. R0 to R5 are lost where it comes from a helper.
    pub(super) fn fetch(&mut self, place: Place, to: Reg) {
        let helper = match place {
            Place::Memory(base, off, size) => return self.a.load(size, to, base, off),
            Place::OfTask(slot, at) => {
                self.a.load(Size::D, to, Reg::R10, slot);
                return self.a.load(Size::W, to, to, at);
            }
            Place::Low(h) | Place::High(h) | Place::Whole(h) => h,
            Place::Credential(cred, at) => {
                self.a.call(Helper::GetCurrentTaskBtf);
                self.a.load(Size::D, R0, R0, cred);
                return self.a.load(Size::W, to, R0, at);
            }
        };
        self.a.call(helper);
        match place {
            Place::Low(_) => self.a.mov32(R0, R0),
            Place::High(_) => self.a.alu(Alu::Rsh, R0, 32),
            _ => {}
        }
        if to != R0 {
            self.a.mov(to, R0);
        }
    }

    fn extend(&mut self, reg: Reg, cast: Cast) {
        let shift = 64 - 8 * i32::from(cast.size);
        match (cast.size, cast.signed) {
            (8, _) => {}
            (4, false) => self.a.mov32(reg, reg),
            (_, signed) => {
                self.a.alu(Alu::Lsh, reg, shift);
                self.a.alu(if signed { Alu::Arsh } else { Alu::Rsh }, reg, shift);
            }
        }
    }
}
