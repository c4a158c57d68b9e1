//! A checked script: typed, without names, ready to be run or to be made into code.
//!
//! Every expression has 64 bits (integers of a type, in the type's sign), or is a string, bytes, or a tuple. Numbers and truth are
//! expressions of [`crate::ir`], whose leaves are the [`Expr`]s that are something else; what operators mean is there.
//!
//! Invariant: an integer's value lies within its type; whoever stores one that may not casts it before.

use super::attach::Point;
use super::cdecl::Declarations;
use super::config::Config;
use super::format::Format;
use super::types::{Aggregate, Space, Type};
use crate::diag::{Diagnostic, Span};
pub use crate::ir::{Cmp, Op};
use crate::parse::OF_THREADS;

/// 64 bits.
pub type Int = crate::ir::Int<Box<Expr>, Box<Equal>>;
/// True or false.
pub type Cond = crate::ir::Cond<Box<Expr>, Box<Equal>>;

/// Whether two strings, or as many bytes, or the parts of two tuples, are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Equal(pub Expr, pub Expr);

/// A script that can run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its clauses, in their order.
    pub clauses: Vec<Clause>,
    /// Its maps, in the order of their names.
    pub maps: Vec<Map>,
    /// Where it writes with a format.
    pub sites: Vec<Site>,
    /// Its settings.
    pub config: Config,
    /// What its clauses read of memory.
    pub hoisted: Vec<Hoisted>,
    /// The types that it declares.
    pub declarations: Declarations,
    /// Whose addresses it names: `ksym`, `usym`.
    pub symbols: Vec<Space>,
    /// What is doubtful in it.
    pub warnings: Vec<Diagnostic>,
}

/// An expression of memory: what it is of a clause that wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hoisted {
    /// The clause whose leaves it names.
    pub clause: usize,
    /// Of a number, and of the characters of a structure, [`Kind::Load`]; of a string, [`Kind::TextAt`]; of what only programs have,
    /// [`Kind::Leaf`].
    pub expr: Expr,
    /// The field of events that has it: another one for everything else that is read.
    pub name: String,
}

/// A clause.
#[derive(Clone, Debug, Default)]
pub struct Clause {
    /// Its probes.
    pub points: Vec<Point>,
    /// Only where this is true.
    pub predicate: Option<Cond>,
    /// What happens.
    pub body: Vec<Stmt>,
    /// The types of its variables.
    pub vars: Vec<Type>,
    /// What it reads of an event: first what its predicate does.
    pub leaves: Vec<Leaf>,
    /// This many of them the predicate reads.
    pub predicate_leaves: usize,
    /// The leaves that only the memory of other leaves depends on.
    pub idle: Vec<usize>,
    /// The maps that it uses, by their numbers.
    pub maps: Vec<usize>,
    /// The variables that expressions change: `$x++`, `find(…, $x)`.
    pub stepped: Vec<usize>,
    /// From its first probe to its end.
    pub span: Span,
}

/// A map.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Its name, without `@`.
    pub name: String,
    /// The parts of its key; none: it is one value.
    pub key: Vec<Type>,
    /// What it holds.
    pub value: Type,
    /// Its kind, if it is declared.
    pub kind: Option<String>,
    /// How many keys it holds.
    pub entries: u64,
    /// It holds addresses of strings: whose memory, and how many bytes are read, a NUL among them.
    pub text: Option<(Space, u32)>,
}

impl Map {
    /// It has variables of threads, `self->NAME`, by the threads' numbers.
    pub fn is_of_threads(&self) -> bool {
        self.name.starts_with(OF_THREADS)
    }

    /// When it is full, a new key takes the place of the least recently used one.
    pub fn drops_keys(&self) -> bool {
        matches!(self.kind.as_deref(), Some("lruhash" | "percpulruhash"))
    }
}

/// A place of a script that writes with a format.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Where.
    pub span: Span,
    /// How.
    pub format: Format,
    /// The types of its arguments.
    pub args: Vec<Type>,
    /// Which arguments are texts of the script itself.
    pub own: Vec<bool>,
}

/// What a clause reads of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// What.
    pub what: What,
    /// Its type.
    pub ty: Type,
}

/// What is read of an event, or of its thread.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// `pid`, `comm`, … by the names of [`super::table`].
    Value(&'static str),
    /// `nsecs(boot)`, `pid(init)`: a value, and which of its kinds; of stacks, how many frames.
    Kind(&'static str, String),
    /// `args.NAME`
    Arg(String),
    /// `argN`
    Number(u8),
    /// The string at `args.NAME`.
    TextOf(String),
    /// The string at `argN`.
    TextOfNumber(u8),
    /// `reg("ax")`
    Register(String),
    /// The address of a symbol.
    Address(Space, String),
    /// Memory: the number of what [`super::hoist`] has moved.
    Memory(usize),
}

impl What {
    /// The number of a thread that no other thread of several traces has.
    pub fn thread_of_all() -> What {
        What::Kind("tid", "all".into())
    }

    /// Whether it is what lies at an address.
    pub fn is_memory(&self) -> bool {
        matches!(self, What::TextOf(_) | What::TextOfNumber(_) | What::Memory(_))
    }

    /// Whether only programs of the kernel have it, and no event.
    pub fn is_of_programs(&self) -> bool {
        match self {
            What::Value(name) => matches!(*name, "curtask" | "ctx" | "jiffies" | "numaid" | "cgroup"),
            What::Kind(name, of) => *name == "nsecs" && matches!(of.as_str(), "boot" | "tai"),
            _ => false,
        }
    }
}

/// An expression and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Its type.
    pub ty: Type,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing: of calls that give none.
    Nothing,
    /// A number. `true`: a literal, which takes the sign of what it meets.
    Const(i64, bool),
    /// A string of the script.
    Text(Vec<u8>),
    /// By its index in the clause's leaves.
    Leaf(usize),
    /// By its index in the clause's variables.
    Var(usize),
    /// What a map holds at a key; zero, or empty, where it holds nothing. An aggregation's number.
    Map(usize, Vec<Expr>),
    /// Whether a map has a key.
    HasKey(usize, Vec<Expr>),
    /// How many keys a map has.
    Length(usize),
    /// Takes a key out of a map; whether it was there.
    Delete(usize, Vec<Expr>),
    /// If the map has the key: its value is put into the variable.
    Find(usize, Vec<Expr>, usize),
    /// A number that is made of others; or a truth value.
    Int(Int),
    /// One or the other, which are no numbers.
    Choice(Box<Cond>, Box<Expr>, Box<Expr>),
    /// Several values.
    Tuple(Vec<Expr>),
    /// A part of a tuple.
    Part(Box<Expr>, usize),
    /// What is at an address: as many bytes as the type has.
    Load(Box<Int>, Space),
    /// A piece of bytes, from an offset on: as many as the type has.
    Piece(Box<Expr>, Box<Int>),
    /// The string at an address, of at most this many bytes, its NUL among them.
    TextAt(Box<Int>, Space, Box<Int>),
    /// An address, and the string there: a map keeps both.
    Kept(Box<Expr>, Box<Expr>),
    /// The strings at the addresses of an array that ends with a null one, as many as are read.
    Strings(Box<Int>, Space),
    /// Counts up or down.
    Step {
        /// What.
        place: Place,
        /// By how much: below zero with `--`; of pointers by the size of what they are of.
        by: i64,
        /// The value is that before.
        after: bool,
    },
    /// A function.
    Call(&'static str, Vec<Expr>),
    /// What happens, and then a value.
    Block(Vec<Stmt>, Box<Expr>),
    /// A value; where there is none, because something fails, that is said with this place.
    Told(Box<Expr>, Span),
}

impl Expr {
    /// As a number.
    pub fn int(self) -> Int {
        match self.kind {
            Kind::Const(v, _) => Int::Const(v),
            Kind::Int(i) => i,
            _ => Int::Value(Box::new(self)),
        }
    }

    /// Whether the number is not zero.
    pub fn truth(self) -> Cond {
        self.int().truth()
    }
}

/// What is assigned to.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A variable.
    Var(usize),
    /// A map at a key.
    Map(usize, Vec<Expr>),
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// An expression, for what it does.
    Eval(Expr),
    /// `place = value`
    Set(Place, Expr),
    /// `place op= value`
    Change(Place, Op, Int),
    /// A value is added to a map's aggregation. `count()` has none. In a histogram it may count several times.
    Collect(usize, Vec<Expr>, Aggregate, Option<Int>, Option<Int>),
    /// The first arm that holds, or the rest.
    If(Vec<(Cond, Vec<Stmt>)>, Vec<Stmt>),
    /// As long as it holds.
    While(Cond, Vec<Stmt>, Span),
    /// This many times.
    Repeat(u32, Vec<Stmt>),
    /// A variable from one number to before another.
    Range(usize, Int, Int, Vec<Stmt>, Span),
    /// A variable is each pair of a map.
    Each(usize, usize, Vec<Stmt>),
    /// Out of the loop.
    Break,
    /// To the loop's next round.
    Continue,
    /// Out of the clause.
    Return,
    /// Writes by a format.
    Write(Writing, usize, Vec<Expr>),
    /// Prints a value.
    Print(Expr),
    /// Prints what a map holds: at most this many, divided.
    PrintMap(usize, Option<Int>, Option<Int>),
    /// Prints maps side by side: by the format of a place, which takes these values.
    PrintAll(Vec<usize>, usize, Vec<Column>),
    /// Keeps, prints or forgets what is printed.
    Speculate(Speculate, Int),
    /// Prints what a map holds at a key.
    PrintKey(usize, Vec<Expr>),
    /// Takes all keys out.
    Clear(usize),
    /// Sets all values to zero.
    Zero(usize),
    /// Prints the time of day.
    Time(Vec<u8>),
    /// Ends the script.
    Exit(Option<Int>),
    /// Prints an array of strings.
    Join(Expr, Vec<u8>),
    /// An address is watched no more.
    Unwatch(Int),
    /// Statements with variables of their own.
    Block(Vec<Stmt>),
    /// Those of a function, in which [`Stmt::Return`] goes behind them.
    Function(Vec<Stmt>),
}

/// A value of a line of maps that are printed side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A part of the key.
    Key(usize),
    /// What one of the maps holds.
    Map(usize),
}

/// What happens to a speculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speculate {
    /// What the clause prints from here on is kept.
    Begin,
    /// What was kept is printed.
    Commit,
    /// What was kept is forgotten.
    Discard,
}

/// What writing by a format is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It is shown.
    Printf,
    /// It is an error, and shown with its place.
    Error,
    /// It is a warning, and shown with its place.
    Warning,
    /// It is a path: the file is shown.
    Cat,
    /// It is a command: what it writes is shown.
    System,
}
