//! The tree of an expression, as written: nothing is resolved, parentheses are kept.
//!
//! Invariant: no tree is higher than [`crate::parse::MAX_HEIGHT`], so that walking one by recursion is safe.

use crate::diag::Span;

/// An expression and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub span: Span,
    /// 1 for a leaf.
    pub(crate) height: usize,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number, with units and signs of its own applied.
    Int(i64),
    /// A string, without its quotes and escapes.
    Str(Vec<u8>),
    /// A value or a constant: `pid`, `O_CREAT`.
    Name(String),
    /// `args.NAME`
    Field(String),
    /// `function(…)`
    Call(String, Vec<Expr>),
    /// `-x`, `~x`, `!x`
    Unary(Unary, Box<Expr>),
    /// `(int32)x`
    Cast(Cast, Box<Expr>),
    /// Arithmetic and comparisons.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a && b && …`
    All(Vec<Expr>),
    /// `a || b || …`
    Any(Vec<Expr>),
    /// `a ? b : c`
    Choice(Box<[Expr; 3]>),
    /// `(x)`
    Group(Box<Expr>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Minus,
    /// `~`
    Complement,
    /// `!`
    Not,
}

/// What an integer is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Sign-extended.
    pub signed: bool,
}

/// Operators with two operands, `&&` and `||` aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Or,
    Xor,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl Binary {
    /// How it is written, and how strongly it binds (as in C).
    pub const ALL: &'static [(Binary, &'static str, u8)] = &[
        (Binary::Or, "|", 3),
        (Binary::Xor, "^", 4),
        (Binary::And, "&", 5),
        (Binary::Eq, "==", 6),
        (Binary::Ne, "!=", 6),
        (Binary::Lt, "<", 7),
        (Binary::Le, "<=", 7),
        (Binary::Gt, ">", 7),
        (Binary::Ge, ">=", 7),
        (Binary::Shl, "<<", 8),
        (Binary::Shr, ">>", 8),
        (Binary::Add, "+", 9),
        (Binary::Sub, "-", 9),
        (Binary::Mul, "*", 10),
        (Binary::Div, "/", 10),
        (Binary::Mod, "%", 10),
    ];

    /// How it is written.
    pub fn symbol(self) -> &'static str {
        Binary::ALL.iter().find(|(op, _, _)| *op == self).map_or("", |(_, s, _)| s)
    }

    /// Gives 0 or 1.
    pub fn is_comparison(self) -> bool {
        use Binary::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}

impl Expr {
    /// Without the parentheses around it.
    pub fn inner(&self) -> &Expr {
        match &self.kind {
            Kind::Group(e) => e.inner(),
            _ => self,
        }
    }

    /// Gives arguments other names.
    pub(crate) fn rename_fields(&mut self, other: &dyn Fn(&str) -> Option<String>) {
        match &mut self.kind {
            Kind::Field(name) => {
                if let Some(other) = other(name) {
                    *name = other;
                }
            }
            Kind::Call(_, list) | Kind::All(list) | Kind::Any(list) => {
                list.iter_mut().for_each(|e| e.rename_fields(other));
            }
            Kind::Unary(_, e) | Kind::Cast(_, e) | Kind::Group(e) => e.rename_fields(other),
            Kind::Binary(_, a, b) => {
                a.rename_fields(other);
                b.rename_fields(other);
            }
            Kind::Choice(three) => three.iter_mut().for_each(|e| e.rename_fields(other)),
            Kind::Int(_) | Kind::Str(_) | Kind::Name(_) => {}
        }
    }
}
