//! Two languages: filters, expressions over the values of an event, a subset of bpftrace's and btrace's; and [`script`]s.
//!
//! ```text
//! text ──lex──► tokens ──parse──► ast::Expr ──filter::check, with a schema──► filter::Filter (typed, folded, ordered)
//!                                                                                │
//!                             evaluated over events (filter::eval) ◄─────────────┴────► BPF code (crate bpf, `filter`)
//! ```
//!
//! Two things that every language of names needs are here too: wildcards ([`pattern`]) and what a wrong name may have meant ([`near`]).
//!
//! Pure: nothing here reads a file, a clock or another process. No text makes it panic, recurse without bound or run long:
//! [`lex::MAX_TEXT`] bounds the text, [`parse::MAX_NESTING`] the depth.
//!
//! Invariant: what an operator means is defined once, in [`filter::ir`]; folding and evaluation call it, and the generator of BPF
//! code is compared with it by property.

pub mod ast;
pub mod diag;
pub mod duration;
pub mod filter;
pub mod lex;
mod names;
pub mod near;
pub mod parse;
pub mod pattern;
pub mod script;

pub use diag::{Code, Diagnostic, Span};
pub use filter::{Context, Filter, Missing, Needs, Parsed, Verdict};
