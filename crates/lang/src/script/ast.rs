//! The tree of a script: its clauses, and what stands beside them. Expressions and statements are [`crate::ast`]'s.

use super::attach::Point;
use super::cdecl::Declarations;
pub use crate::ast::*;
use crate::diag::Span;

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

/// A macro, or a function, which is one whose parameters are values.
#[derive(Clone, Debug, PartialEq)]
pub struct Macro {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub params: Vec<MacroParam>,
    /// Statements, and the value at the end.
    pub body: Body,
    /// Of a function: the type of its value, if it is declared.
    pub function: Option<Option<TypeName>>,
    /// The place of its name.
    pub span: Span,
}

/// What a macro takes.
#[derive(Clone, Debug, PartialEq)]
pub enum MacroParam {
    /// A variable, which the macro may change.
    Var(String),
    /// A map.
    Map(String),
    /// Any expression.
    Expr(String),
    /// The value of an expression, in a variable of the function's own: its name, and its type if it is declared.
    Value(String, Option<TypeName>),
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
