//! Scripts, in bpftrace's dialect: from text to a program that can be run.
//!
//! ```text
//! text ──parse──► ast::Script ──expand──► (no macros) ──check, with a World──► ir::Program (typed, no names)
//!          ├ attach (probes), cdecl (C)                     ├ types (what a set of values needs), table (values and functions)
//!          └ crate::parse (statements, expressions)         └ format (printf)
//! ```
//!
//! ```text
//! ir::Program ─► run::Machine ◄─ trait Event: what happened; ─► trait Host: what is printed (run::Output), in its order
//!                  └ maps (in memory), value, library (functions), time (strftime)
//! ```
//!
//! Types are inferred to a fixpoint over all clauses. Every mistake is a [`Diagnostic`] that names one thing and what to write instead.
//!
//! Invariant: no text makes any of it panic, recurse without bound or run long. [`parse::MAX_SCRIPT`] bounds the text,
//! [`crate::tokens::MAX_NESTING`] and [`ast::MAX_HEIGHT`] the depth, [`crate::tokens::MAX_EXPANDED`] and [`expand::MAX_NODES`] what
//! macros give.

pub mod ast;
pub mod attach;
pub mod cdecl;
mod check;
pub mod config;
pub mod expand;
pub mod format;
mod headers;
pub mod hoist;
pub mod import;
pub mod ir;
mod library;
pub mod maps;
pub mod parse;
pub mod run;
pub mod table;
#[cfg(test)]
mod tests;
pub mod time;
pub mod typed;
pub mod types;
pub mod value;

pub use crate::diag::{Code, Diagnostic, Severity};
pub use check::{Known, World};
pub use ir::Program;
pub use parse::Parameters;

/// Reads and checks a script. What comes with an error are all its mistakes, and what is doubtful in it.
pub fn compile(text: &str, params: &Parameters, world: &dyn World) -> Result<Program, Vec<Diagnostic>> {
    let sizes = |name: &str| world.structure(name).map(|s| (s.size, s.align));
    let (mut script, warnings) = parse::parse(text, params, &sizes).map_err(|e| vec![e])?;
    expand::expand(&mut script).map_err(|e| vec![e])?;
    check::check(&script, params, world, warnings)
}
