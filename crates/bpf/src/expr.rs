//! BPF code for expressions of `lang::ir`: trees, of which every number ends up in R0.
//!
//! ```text
//! leaf op constant        R0 = leaf; R0 op= imm
//! left op leaf in memory  R0 = left; R1 = leaf; R0 op= R1
//! left op right           R0 = left ─► temp; R0 = right; R1 = R0; R0 = temp; R0 op= R1
//! ```
//!
//! What the leaves are is up to the language, and where they are to the program around the code: [`Source`]. Numbers pass through R0 and
//! R1; R2 to R5 are scratch, R6 to R9 are not used.
//!
//! Not here: what the operators mean; that is `lang::ir`, and properties of the languages' generators compare the two.
//!
//! Invariant: operands are evaluated from left to right, but where the order makes no difference.

use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond as Jump, Reg, Reg::*, Size};
use lang::Span;
use lang::ast::Cast;
use lang::ir::{Cmp, Cond, Int, Leaf, Op, Zero};

/// Where a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an offset from a register that the code does not write: R6 to R10.
    Memory(Reg, i16, Size),
    /// The lower 32 bits of what a helper without arguments gives.
    Low(Helper),
    /// The upper 32 bits of what a helper without arguments gives.
    High(Helper),
    /// All 64 bits of what a helper without arguments gives.
    Whole(Helper),
    /// 32 bits of the current task's credentials: the offset of `cred` in `struct task_struct`, and one in `struct cred`. The
    /// helper for users and groups maps both through a user namespace, which takes 15 ns.
    Credential(i16, i16),
    /// 32 bits of the current task, a pointer to which is in a stack slot: the slot, and the offset in `struct task_struct`.
    OfTask(i16, i16),
}

/// The expression needs more words than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTemps;

/// What the leaves of a language's expressions are, and where they are in the program that the code is put into.
pub trait Source<E>: Sized {
    /// A value of 64 bits.
    type Value;
    /// A test of what is no number.
    type Test;
    /// Why there is no code.
    type Unfit: From<NoTemps>;

    /// Where a value is, and what is there cut to. None: nowhere; [`Source::make`] makes it.
    fn place(&self, value: &Self::Value) -> Result<Option<(Place, Option<Cast>)>, Self::Unfit>;

    /// R0 = a value that is nowhere.
    fn make(g: &mut Generator<'_, E, Self>, value: &Self::Value) -> Result<(), Self::Unfit>;

    /// Goes to `to` if the test's outcome is `when`.
    fn test(g: &mut Generator<'_, E, Self>, test: &Self::Test, when: bool, to: Label) -> Result<(), Self::Unfit>;

    /// Whether it changes what another value may be.
    fn changes(_: Leaf<'_, Self::Value, Self::Test>) -> bool {
        false
    }

    /// A register holds a number that will be kept in memory.
    fn keep(_: &mut Generator<'_, E, Self>, _: Reg) {}

    /// Counts a division by zero. R0 to R5 are free.
    fn by_zero(_: &mut Generator<'_, E, Self>, _at: Span) {}
}

/// A number of a language.
type Number<E, S> = Int<<S as Source<E>>::Value, <S as Source<E>>::Test>;
/// A condition of a language.
type Condition<E, S> = Cond<<S as Source<E>>::Value, <S as Source<E>>::Test>;

/// The code of expressions.
pub struct Generator<'g, E, S> {
    /// The program.
    pub a: &'g mut Assembler<E>,
    /// The leaves.
    pub source: &'g S,
    /// Words to keep numbers in, aligned to 8: the register, the offset of the first, how many.
    pub temps: (Reg, i16, usize),
    /// Words in use.
    pub depth: usize,
}

fn immediate<V, T>(i: &Int<V, T>) -> Option<i32> {
    if let Int::Const(v) = i { i32::try_from(*v).ok() } else { None }
}

fn jump(cmp: Cmp) -> Jump {
    match cmp {
        Cmp::Eq => Jump::Eq,
        Cmp::Ne => Jump::Ne,
        Cmp::Lt => Jump::Slt,
        Cmp::Le => Jump::Sle,
        Cmp::Gt => Jump::Sgt,
        Cmp::Ge => Jump::Sge,
        Cmp::LtU => Jump::Lt,
        Cmp::LeU => Jump::Le,
        Cmp::GtU => Jump::Gt,
        Cmp::GeU => Jump::Ge,
    }
}

/// The unsigned comparison of the same relation.
fn unsigned(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::LtU,
        Cmp::Le => Cmp::LeU,
        Cmp::Gt => Cmp::GtU,
        Cmp::Ge => Cmp::GeU,
        same => same,
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
        Op::Sar => Alu::Arsh,
        Op::Add => Alu::Add,
        Op::Sub => Alu::Sub,
        Op::Mul => Alu::Mul,
        Op::Div(_) | Op::Mod(_) | Op::DivU(_) | Op::ModU(_) => return None,
    })
}

/// Whether something in it changes what another value may be.
fn changes<E, S: Source<E>>(i: &Number<E, S>) -> bool {
    let mut any = false;
    i.leaves(&mut |leaf| any |= S::changes(leaf));
    any
}

/// How many words the code of a condition takes at most, wherever its values are; `of`: how many that of a value takes.
pub fn words<V, T>(cond: &Cond<V, T>, of: &dyn Fn(&V) -> usize) -> usize {
    match cond {
        Cond::Const(_) | Cond::Test(_) => 0,
        Cond::Compare(_, x, y) => words_of_two(x, y, of),
        Cond::Not(c) => words(c, of),
        Cond::All(list) | Cond::Any(list) => list.iter().map(|c| words(c, of)).max().unwrap_or(0),
    }
}

/// How many words the code of a number takes at most.
pub fn words_of<V, T>(i: &Int<V, T>, of: &dyn Fn(&V) -> usize) -> usize {
    match i {
        Int::Const(_) => 0,
        Int::Value(v) => of(v),
        Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => words_of(x, of),
        Int::Binary(_, x, y) => words_of_two(x, y, of),
        Int::Choice(c, x, y) => words(c, of).max(words_of(x, of)).max(words_of(y, of)),
        Int::Or(x, y) => words_of(x, of).max(words_of(y, of)),
        Int::Truth(c) => words(c, of),
    }
}

fn words_of_two<V, T>(x: &Int<V, T>, y: &Int<V, T>, of: &dyn Fn(&V) -> usize) -> usize {
    match (x, y) {
        (one, Int::Const(_)) | (Int::Const(_), one) => words_of(one, of),
        (x, y) => words_of(x, of).max(1 + words_of(y, of)),
    }
}

impl<E, S: Source<E>> Generator<'_, E, S> {
    /// Goes to `to` if the condition is `when`, else falls through.
    pub fn branch(&mut self, c: &Condition<E, S>, when: bool, to: Label) -> Result<(), S::Unfit> {
        match c {
            Cond::Const(v) if *v == when => self.a.jump(to),
            Cond::Const(_) => {}
            Cond::Compare(cmp, x, y) => self.compare(if when { *cmp } else { cmp.negated() }, x, y, to)?,
            Cond::Test(t) => S::test(self, t, when, to)?,
            Cond::Not(c) => self.branch(c, !when, to)?,
            // One that is not decides over all; one that is decides over any.
            Cond::All(list) => self.list(list, false, when, to)?,
            Cond::Any(list) => self.list(list, true, when, to)?,
        }
        Ok(())
    }

    /// A list that is `decisive` as soon as one of its conditions is, else the opposite.
    fn list(&mut self, list: &[Condition<E, S>], decisive: bool, when: bool, to: Label) -> Result<(), S::Unfit> {
        if when == decisive {
            return list.iter().try_for_each(|c| self.branch(c, when, to));
        }
        let decided = self.a.new_label();
        list.iter().try_for_each(|c| self.branch(c, decisive, decided))?;
        self.a.jump(to);
        self.a.bind(decided);
        Ok(())
    }

    /// Goes to `to` if the comparison holds.
    fn compare(&mut self, cmp: Cmp, x: &Number<E, S>, y: &Number<E, S>, to: Label) -> Result<(), S::Unfit> {
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

    /// A value of 32 bits and a constant of its range: the lower halves are compared, whatever the upper ones are.
    fn narrow(&mut self, cmp: Cmp, x: &Number<E, S>, y: &Number<E, S>, to: Label) -> Result<bool, S::Unfit> {
        let (Int::Value(value), Int::Const(v)) = (x, y) else { return Ok(false) };
        let Some((place, Some(cast))) = self.source.place(value)? else { return Ok(false) };
        if cast.size != 4 || cast.apply(*v) != *v {
            return Ok(false);
        }
        self.fetch(place, R0);
        self.a.jump_if32(jump(if cast.signed { cmp } else { unsigned(cmp) }), R0, *v as i32, to);
        Ok(true)
    }

    /// `x & mask`, zero or not, where no bit of the mask is in doubt.
    fn bits(&mut self, cmp: Cmp, x: &Number<E, S>, y: &Number<E, S>, to: Label) -> Result<bool, S::Unfit> {
        let (Int::Binary(Op::And, x, mask), Cmp::Ne, Int::Const(0)) = (x, cmp, y) else { return Ok(false) };
        let Some(mask) = immediate(mask) else { return Ok(false) };
        self.masked(x, mask)?;
        self.a.jump_if(Jump::Set, R0, mask, to);
        Ok(true)
    }

    /// R0 = x, or something that has the same bits under the mask.
    fn masked(&mut self, x: &Number<E, S>, mask: i32) -> Result<(), S::Unfit> {
        if let Int::Value(value) = x
            && let Some((place, Some(cast))) = self.source.place(value)?
            && cast.size == 4
            && mask >= 0
        {
            // Bits above the type are not asked for.
            self.fetch(place, R0);
            return Ok(());
        }
        self.int(x)
    }

    /// R0 = the expression.
    pub fn int(&mut self, i: &Number<E, S>) -> Result<(), S::Unfit> {
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
            Int::Or(x, y) => {
                let done = self.a.new_label();
                self.int(x)?;
                self.a.jump_if(Jump::Ne, R0, 0, done);
                self.int(y)?;
                self.a.bind(done);
            }
            Int::Truth(c) => self.choice(c, &Int::Const(1), &Int::Const(0))?,
        }
        Ok(())
    }

    fn choice(&mut self, c: &Condition<E, S>, x: &Number<E, S>, y: &Number<E, S>) -> Result<(), S::Unfit> {
        let [other, done] = [self.a.new_label(), self.a.new_label()];
        self.branch(c, false, other)?;
        self.int(x)?;
        self.a.jump(done);
        self.a.bind(other);
        self.int(y)?;
        self.a.bind(done);
        Ok(())
    }

    fn binary(&mut self, op: Op, x: &Number<E, S>, y: &Number<E, S>) -> Result<(), S::Unfit> {
        let Some(alu) = alu(op) else { return self.division(op, x, y) };
        let shift = matches!(op, Op::Shl | Op::Shr | Op::Sar);
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

    /// A division, and what it gives by zero.
    fn division(&mut self, op: Op, x: &Number<E, S>, y: &Number<E, S>) -> Result<(), S::Unfit> {
        self.pair(x, y)?;
        let done = self.a.new_label();
        if let Some(Zero::Counted(at)) = op.zero()
            && !matches!(y, Int::Const(v) if *v != 0)
        {
            let divide = self.a.new_label();
            self.a.jump_if(Jump::Ne, R1, 0, divide);
            S::by_zero(self, at);
            self.a.mov(R0, 1);
            self.a.jump(done);
            self.a.bind(divide);
        }
        match op {
            Op::DivU(_) => self.a.alu(Alu::Div, R0, R1),
            Op::ModU(_) => self.a.alu(Alu::Mod, R0, R1),
            op => self.divide(matches!(op, Op::Mod(_))),
        }
        self.a.bind(done);
        Ok(())
    }

    /// R0 /= R1 or R0 %= R1, signed: eBPF divides unsigned; by zero the result is eBPF's.
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
    fn pair(&mut self, x: &Number<E, S>, y: &Number<E, S>) -> Result<(), S::Unfit> {
        if self.simple(y)? {
            self.int(x)?;
            return self.leaf(y, R1);
        }
        if self.simple(x)? && (matches!(x, Int::Const(_)) || !changes::<E, S>(y)) {
            self.int(y)?;
            self.a.mov(R1, R0);
            return self.leaf(x, R0);
        }
        let (base, first, count) = self.temps;
        if self.depth >= count {
            return Err(NoTemps.into());
        }
        let slot = first + 8 * self.depth as i16;
        self.int(x)?;
        S::keep(self, R0);
        self.a.store(Size::D, base, slot, R0);
        self.depth += 1;
        self.int(y)?;
        self.depth -= 1;
        self.a.mov(R1, R0);
        self.a.load(Size::D, R0, base, slot);
        Ok(())
    }

    /// Needs one register only.
    fn simple(&self, i: &Number<E, S>) -> Result<bool, S::Unfit> {
        Ok(match i {
            Int::Const(_) => true,
            Int::Value(v) => matches!(self.source.place(v)?, Some((Place::Memory(..), _))),
            _ => false,
        })
    }

    /// A constant or a value. Where it is not [`Self::simple`], R0 and R1 are lost.
    fn leaf(&mut self, i: &Number<E, S>, to: Reg) -> Result<(), S::Unfit> {
        match i {
            Int::Const(v) => self.a.constant(to, *v as u64),
            Int::Value(v) => match self.source.place(v)? {
                Some((place, cast)) => {
                    self.fetch(place, to);
                    cast.into_iter().for_each(|cast| self.extend(to, cast));
                }
                None => S::make(self, v)?,
            },
            _ => self.int(i)?,
        }
        Ok(())
    }

    /// `to` = what is there, not extended. R0 to R5 are lost where it comes from a helper.
    pub fn fetch(&mut self, place: Place, to: Reg) {
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

    /// Cuts what is in a register, and extends it.
    pub fn extend(&mut self, reg: Reg, cast: Cast) {
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
