//! The tree of a script, as written: nothing is resolved.
//!
//! Invariant: no tree is higher than [`MAX_HEIGHT`], so that walking one by recursion is safe.

use super::attach::Point;
use super::cdecl::Declarations;
use crate::ast::Binary;
use crate::diag::Span;

/// How high a tree is.
pub const MAX_HEIGHT: usize = 128;

/// A script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// `config = { … }`
    pub config: Vec<Setting>,
    /// Structures, unions, enumerations and typedefs of the script's own.
    pub declarations: Declarations,
    /// The headers that it includes.
    pub includes: Vec<(String, Span)>,
    /// `let @m = hash(100);`
    pub maps: Vec<MapDeclaration>,
    /// `macro name(…) { … }`
    pub macros: Vec<Macro>,
    /// `probe /predicate/ { … }`
    pub clauses: Vec<Clause>,
}

/// `name = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where.
    pub span: Span,
}

/// A map whose kind is declared.
#[derive(Clone, Debug, PartialEq)]
pub struct MapDeclaration {
    /// Its name, without `@`.
    pub name: String,
    /// `hash`, …
    pub kind: String,
    /// How many keys it holds.
    pub entries: u64,
    /// Where.
    pub span: Span,
}

/// A macro.
#[derive(Clone, Debug, PartialEq)]
pub struct Macro {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub params: Vec<MacroParam>,
    /// Statements, and the value at the end.
    pub body: Body,
    /// The place of its name.
    pub span: Span,
}

/// What a macro takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MacroParam {
    /// A variable, which the macro may change.
    Var(String),
    /// A map.
    Map(String),
    /// Any expression.
    Expr(String),
}

/// Statements, and the expression behind the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Statements.
    pub stmts: Vec<Stmt>,
    /// What the block is worth.
    pub value: Option<Box<Expr>>,
}

/// Some probes, and what happens when one of them is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The probes.
    pub points: Vec<Point>,
    /// The predicate.
    pub predicate: Option<Expr>,
    /// What happens.
    pub body: Vec<Stmt>,
    /// From the first probe to the end of the body.
    pub span: Span,
}

/// A statement and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
    /// 1 for a leaf.
    pub height: usize,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// An expression, for what it does.
    Expr(Expr),
    /// `target = value`, `target op= value`
    Assign(Expr, Option<Binary>, Expr),
    /// `let $x: type = value`
    Let(String, Option<TypeName>, Option<Expr>),
    /// `if (c) { … } else if (c) { … } else { … }`
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    /// `while (c) { … }`
    While(Expr, Vec<Stmt>),
    /// `unroll (n) { … }`
    Unroll(Expr, Vec<Stmt>),
    /// `for $i : a..b { … }`
    ForRange(String, Expr, Expr, Vec<Stmt>),
    /// `for $kv : @m { … }`: the variable, the map's name and its place.
    ForMap(String, String, Span, Vec<Stmt>),
    /// `{ … }`
    Block(Vec<Stmt>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `return`
    Return,
}

/// An expression and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub span: Span,
    /// 1 for a leaf.
    pub height: usize,
    /// Whether parentheses are around it.
    pub grouped: bool,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number.
    Int(u64),
    /// A string.
    Str(Vec<u8>),
    /// `true`, `false`
    Bool(bool),
    /// `$1`
    Param(usize),
    /// `$#`
    ParamCount,
    /// A value, a constant, a macro's parameter.
    Name(String),
    /// `$x`
    Var(String),
    /// `@m`, `@m[k, …]`
    Map(String, Vec<Expr>),
    /// `f(…)`
    Call(String, Vec<Expr>),
    /// `-x` …
    Unary(Unary, Box<Expr>),
    /// `++x`, `x--` …
    Step {
        /// The variable or map.
        target: Box<Expr>,
        /// `++`
        up: bool,
        /// The value is that before.
        after: bool,
    },
    /// `(type)x`
    Cast(TypeName, Box<Expr>),
    /// Arithmetic and comparisons.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a && b && …`
    All(Vec<Expr>),
    /// `a || b || …`
    Any(Vec<Expr>),
    /// `a ? b : c`; without `b` it is `a`.
    Choice(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    /// `x.name`, `x->name`
    Field(Box<Expr>, String, bool),
    /// `x.0`
    Part(Box<Expr>, usize),
    /// `x[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `{ …; x }`
    Block(Vec<Stmt>, Box<Expr>),
    /// `sizeof(type)`
    SizeOfType(TypeName),
    /// `sizeof(x)`
    SizeOf(Box<Expr>),
    /// `offsetof(type, a.b)`
    OffsetOf(TypeName, Vec<String>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unary {
    Minus,
    Complement,
    Not,
    Deref,
    Address,
}

/// A type, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    /// What its name begins with.
    pub base: Base,
    /// How many `*` follow.
    pub pointers: usize,
    /// The lengths of arrays; 0 where it is what the value gives.
    pub arrays: Vec<u64>,
    /// Where.
    pub span: Span,
    /// That of the expression in `typeof`, else 0.
    pub height: usize,
}

/// The name of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// `int32`, `string`, `size_t`, `unsigned long`
    Named(String),
    /// `struct x`, `union x`
    Struct(String),
    /// `enum x`
    Enum(String),
    /// `typeof(x)`
    TypeOf(Box<Expr>),
}
