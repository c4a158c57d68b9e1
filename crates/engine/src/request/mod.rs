//! What is asked for: calls, probes, functions and allocations, each with its filter and what it captures.
//!
//! ```text
//! -e ─► parse ─┬► select: a set of calls ─► call_enabling ─┐
//!              ├► provider: probes ─► probe_enabling ──────┼─► enabling: one list ─► plan
//!              ├► functions ───────────────────────────────┤
//!              └► heap_enabling ───────────────────────────┘
//!
//! Clauses of scripts that collect in the kernel are part of the enabling of their probe (collecting).
//! ```

pub mod call_enabling;
pub mod collecting;
pub mod enabling;
pub mod expression;
pub mod functions;
pub mod heap_enabling;
pub mod parse;
pub mod probe_enabling;
pub mod returns;
pub mod select;
pub mod watches;
