//! Two languages: filters, expressions over the values of an event, a subset of bpftrace's and btrace's; and [`script`]s.
//!
//! ```text
//! text ──tokens──► parse ──► ast::Expr ──filter::check, with a schema──► filter::Filter (typed, folded, ordered)
//!                        │                                                  │
//!                        │        evaluated over events (filter::eval) ◄────┴────► BPF code (crate bpf, `filter`)
//!                        └► ast::Stmt ──script::{expand, check}, with a world──► script::Program ──► script::run
//! ```
//!
//! Both have one lexer, one parser and one kind of [`Diagnostic`]; filters have some of the expressions of scripts.
//!
//! Two things that every language of names needs are here too: wildcards ([`pattern`]) and what a wrong name may have meant ([`near`]).
//!
//! Pure: nothing here reads a file, a clock or another process. No text makes it panic, recurse without bound or run long:
//! [`filter::MAX_TEXT`] and [`script::parse::MAX_SCRIPT`] bound the text, [`tokens::MAX_NESTING`] the depth.
//!
//! Invariant: what an operator means is defined once, in [`ir`]; folding and evaluation call it, and the generator of BPF code is
//! compared with it by property.

pub mod ast;
pub mod diag;
pub mod duration;
pub mod filter;
pub mod ir;
pub mod lex;
mod names;
pub mod near;
mod parse;
pub mod pattern;
pub mod script;
pub mod tokens;

pub use diag::{Code, Diagnostic, Severity, Span};
pub use filter::{Context, Filter, Missing, Needs, Parsed, Verdict};
