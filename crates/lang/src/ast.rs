//! The tree of expressions and statements, as written: nothing is resolved. Filters have some of its expressions.
//!
//! Invariant: no tree is higher than [`MAX_HEIGHT`], so that walking one by recursion is safe.

use crate::diag::{Code, Diagnostic, Span};

/// How high a tree is; chains of arithmetic grow without nesting.
pub const MAX_HEIGHT: usize = 128;

/// An expression and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Where, its parentheses included.
    pub span: Span,
    /// 1 for a leaf.
    pub height: usize,
    /// Where it is within its parentheses, if there are some.
    pub grouped: Option<Span>,
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
    /// `args.NAME`
    Arg(String),
    /// `x.name`, `x->name`
    Field(Box<Expr>, String, bool),
    /// `x.0`
    Part(Box<Expr>, usize),
    /// `x[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `(x = a, y = b)`
    Record(Vec<String>, Vec<Expr>),
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

/// What an integer is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Sign-extended.
    pub signed: bool,
}

impl Cast {
    /// Of an integer type by its name in the language: `int8` to `uint64`.
    pub fn named(name: &str) -> Option<Cast> {
        let (signed, bits) = match name.strip_prefix('u') {
            Some(rest) => (false, rest.strip_prefix("int")?),
            None => (true, name.strip_prefix("int")?),
        };
        let size = [("8", 1), ("16", 2), ("32", 4), ("64", 8)].iter().find(|(b, _)| *b == bits)?.1;
        Some(Cast { size, signed })
    }

    /// Of an integer type by its name in the language, in C, or in the kernel's headers.
    pub(crate) fn of_c(name: &str) -> Option<Cast> {
        let (signed, size) = match name {
            "char" | "signed char" | "s8" | "__s8" | "int8_t" => (true, 1),
            "unsigned char" | "u8" | "__u8" | "uint8_t" | "u_char" => (false, 1),
            "short" | "short int" | "s16" | "__s16" | "int16_t" => (true, 2),
            "unsigned short" | "u16" | "__u16" | "uint16_t" | "__be16" | "__le16" | "umode_t" | "sa_family_t"
            | "mode_t" => (false, 2),
            "int" | "signed" | "signed int" | "s32" | "__s32" | "int32_t" | "pid_t" => (true, 4),
            "unsigned" | "unsigned int" | "u32" | "__u32" | "uint32_t" | "__be32" | "__le32" | "uid_t" | "gid_t"
            | "dev_t" | "gfp_t" | "u_int" => (false, 4),
            "long" | "long int" | "long long" | "long long int" | "s64" | "__s64" | "int64_t" | "ssize_t"
            | "loff_t" | "intptr_t" | "off_t" | "ktime_t" | "time_t" => (true, 8),
            "unsigned long"
            | "unsigned long int"
            | "unsigned long long"
            | "unsigned long long int"
            | "u64"
            | "__u64"
            | "uint64_t"
            | "__be64"
            | "__le64"
            | "size_t"
            | "uintptr_t"
            | "sector_t"
            | "u_long" => (false, 8),
            _ => return Cast::named(name),
        };
        Some(Cast { size, signed })
    }
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
    /// Its place without parentheses around it.
    pub fn bare(&self) -> Span {
        self.grouped.unwrap_or(self.span)
    }

    /// Gives arguments of a filter other names.
    pub(crate) fn rename_arguments(&mut self, other: &dyn Fn(&str) -> Option<String>) {
        match &mut self.kind {
            Kind::Arg(name) => {
                if let Some(other) = other(name) {
                    *name = other;
                }
            }
            Kind::Call(_, list) | Kind::All(list) | Kind::Any(list) => {
                list.iter_mut().for_each(|e| e.rename_arguments(other));
            }
            Kind::Unary(_, e) | Kind::Cast(_, e) => e.rename_arguments(other),
            Kind::Binary(_, a, b) => {
                a.rename_arguments(other);
                b.rename_arguments(other);
            }
            Kind::Choice(c, a, b) => {
                [Some(c), a.as_mut(), Some(b)].into_iter().flatten().for_each(|e| e.rename_arguments(other));
            }
            _ => {}
        }
    }
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
    /// `return`; of a function, `return x`
    Return(Option<Expr>),
    /// The statements of a function, in which `return` goes behind them.
    Function(Vec<Stmt>),
}

/// Statements, and the expression behind the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Statements.
    pub stmts: Vec<Stmt>,
    /// What the block is worth.
    pub value: Option<Box<Expr>>,
}

/// An expression.
pub(crate) fn node(kind: Kind, span: Span, below: usize) -> Result<Expr, Diagnostic> {
    if below >= MAX_HEIGHT {
        return Err(Diagnostic::new(Code::TooLarge, span, format!("more than {MAX_HEIGHT} operators in a chain")));
    }
    Ok(Expr { kind, span, height: below + 1, grouped: None })
}

/// The height of the highest.
pub(crate) fn height(stmts: &[Stmt]) -> usize {
    stmts.iter().map(|s| s.height).max().unwrap_or(0)
}
