//! BPF code for numbers of scripts' clauses: the leaves of [`crate::expr`]'s trees.
//!
//! ```text
//! values of the event: where the program around the code has them     variables: words of a frame     *p: read into scratch bytes
//! ```
//!
//! Not here yet: statements, maps, strings, tuples, functions. An expression that has one of those is [`Unfit`].

#[cfg(test)]
mod properties;

use crate::asm::{Assembler, Label};
use crate::expr::{Generator, NoTemps, Place, Source};
use crate::helper::Helper;
use crate::insn::{Alu, Cond as Jump, Reg, Reg::*, Size};
use lang::Span;
use lang::ast::Cast;
use lang::ir::Leaf;
use lang::script::ir::{self, Equal, Expr, Int, Kind};
use lang::script::types::Space;

/// What goes wrong while a clause runs, and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Of a division at this place of the script.
    DivisionByZero(Span),
    /// A read of an address without memory. Its result is 0.
    BadRead,
}

/// Where the values of a clause are in the program that the code is put into.
pub struct Places<'p, E> {
    /// By the numbers of the clause's leaves: where it is, and what is there cut to. None: it is no number.
    pub leaves: &'p [Option<(Place, Option<Cast>)>],
    /// The words of the variables, aligned to 8: the register, the offset of the first.
    pub vars: (Reg, i16),
    /// 8 bytes to read memory into, aligned to 8.
    pub scratch: (Reg, i16),
    /// Emits the code that counts. R0 to R5 are free.
    pub count: &'p dyn Fn(&mut Assembler<E>, Fault),
    /// Where it is: a zero that the verifier does not know, which is added to what is kept in memory, so that it knows nothing of that.
    pub zero: Option<Reg>,
}

/// Why there is no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The expression needs more words than there are.
    Temps,
    /// [`Places::leaves`] does not say where this one is.
    Leaf(usize),
    /// The value is none of those that have code.
    Value,
    /// There are more loops within one another than functions can be called back.
    Depth,
}

impl From<NoTemps> for Unfit {
    fn from(_: NoTemps) -> Unfit {
        Unfit::Temps
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Temps => f.write_str("the expression is too complex for the kernel"),
            Unfit::Leaf(i) => write!(f, "value {i} of the clause has no place"),
            Unfit::Value => f.write_str("a value that the kernel's programs do not have"),
            Unfit::Depth => f.write_str("more loops within one another than this kernel has"),
        }
    }
}
impl std::error::Error for Unfit {}

impl<E> Places<'_, E> {
    /// The word of a variable.
    pub fn var(&self, index: usize) -> (Reg, i16) {
        (self.vars.0, self.vars.1 + 8 * index as i16)
    }
}

impl<E> Source<E> for Places<'_, E> {
    type Value = Box<Expr>;
    type Test = Box<Equal>;
    type Unfit = Unfit;

    fn place(&self, value: &Box<Expr>) -> Result<Option<(Place, Option<Cast>)>, Unfit> {
        match value.kind {
            Kind::Leaf(i) => self.leaves.get(i).copied().flatten().map(Some).ok_or(Unfit::Leaf(i)),
            Kind::Var(i) if value.ty.as_int().is_some() => {
                let (base, off) = self.var(i);
                Ok(Some((Place::Memory(base, off, Size::D), None)))
            }
            _ => Ok(None),
        }
    }

    fn make(g: &mut Generator<'_, E, Self>, value: &Box<Expr>) -> Result<(), Unfit> {
        let cast = value.ty.as_int().ok_or(Unfit::Value)?;
        match &value.kind {
            Kind::Load(address, space) => g.read(address, *space, cast),
            Kind::Step { place: ir::Place::Var(i), by, after } => {
                g.step(*i, *by as i32, *after, cast);
                Ok(())
            }
            _ => Err(Unfit::Value),
        }
    }

    fn test(_: &mut Generator<'_, E, Self>, _: &Box<Equal>, _: bool, _: Label) -> Result<(), Unfit> {
        Err(Unfit::Value)
    }

    fn changes(leaf: Leaf<'_, Box<Expr>, Box<Equal>>) -> bool {
        let Leaf::Value(value) = leaf else { return true };
        match &value.kind {
            Kind::Leaf(_) | Kind::Var(_) => false,
            Kind::Load(address, _) => {
                let mut any = false;
                address.leaves(&mut |leaf| any |= Self::changes(leaf));
                any
            }
            _ => true,
        }
    }

    fn keep(g: &mut Generator<'_, E, Self>, number: Reg) {
        g.source.zero.into_iter().for_each(|zero| g.a.alu(Alu::Add, number, zero));
    }

    fn by_zero(g: &mut Generator<'_, E, Self>, at: Span) {
        (g.source.count)(g.a, Fault::DivisionByZero(at));
    }
}

impl<E> Generator<'_, E, Places<'_, E>> {
    /// R0 = what is at an address; 0 where there is nothing.
    fn read(&mut self, address: &Int, space: Space, cast: Cast) -> Result<(), Unfit> {
        let (base, off) = self.source.scratch;
        let (helper, size) = match space {
            Space::Kernel => (Helper::ProbeReadKernel, size_of(cast)),
            Space::User => (Helper::ProbeReadUser, size_of(cast)),
        };
        self.int(address)?;
        self.a.mov(R3, R0);
        self.a.mov(R1, base);
        self.a.alu(Alu::Add, R1, i32::from(off));
        self.a.mov(R2, i32::from(cast.size));
        self.a.call(helper);
        let read = self.a.new_label();
        self.a.jump_if(Jump::Eq, R0, 0, read);
        (self.source.count)(self.a, Fault::BadRead);
        self.a.bind(read);
        self.a.load(size, R0, base, off);
        if cast.signed {
            self.extend(R0, cast);
        }
        Ok(())
    }

    /// A variable goes up or down; R0 = what it was, or is.
    fn step(&mut self, var: usize, by: i32, after: bool, cast: Cast) {
        let (base, off) = self.source.var(var);
        self.a.load(Size::D, R0, base, off);
        self.a.mov(R1, R0);
        self.a.alu(Alu::Add, R1, by);
        self.extend(R1, cast);
        Places::keep(self, R1);
        self.a.store(Size::D, base, off, R1);
        if !after {
            self.a.mov(R0, R1);
        }
    }
}

fn size_of(cast: Cast) -> Size {
    match cast.size {
        1 => Size::B,
        2 => Size::H,
        4 => Size::W,
        _ => Size::D,
    }
}
