//! Filters: parsed once, checked for each probe, evaluated over its events.
//!
//! ```text
//! parse(text, params) ─► Parsed ──check(schema)──► Filter ──matches(event, context)──► Verdict
//!                                                    ├─ needs(): what must be captured
//!                                                    └─ parts(), order(): what the generator of BPF code works on
//! ```
//!
//! A filter is a list of *parts*: the operands of its outermost `&&`, numbered as they are written. They are evaluated in the
//! order of their cost, so that no string is read where a number already decides. The only visible effect is which part is
//! reported to have rejected an event.
//!
//! Invariant: an event that lacks a value which its filter names does not pass, wherever in the filter the name is.

mod check;
mod eval;
pub mod ir;
#[cfg(test)]
mod tests;

use crate::ast::Expr;
use crate::diag::{Code, Diagnostic, Span};
use crate::lex::limit;
use events::{Event, Schema};
use ir::{Cond, Leaf, Subject, Value};

/// The longest text of a filter, in bytes.
pub const MAX_TEXT: usize = 16 * 1024;
/// The longest constant that a string is compared with, in bytes.
pub const MAX_STRING: usize = 255;

/// A filter that is well formed, and not yet typed: that depends on the probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What was parsed.
    pub text: String,
    /// Its tree.
    pub tree: Expr,
}

/// Parses a filter; `params` are the values of `$1`, `$2`, ….
pub fn parse(text: &str, params: &[String]) -> Result<Parsed, Diagnostic> {
    limit(text, MAX_TEXT, "filter")?;
    Ok(Parsed { text: text.into(), tree: crate::parse::filter(text, params)? })
}

impl Parsed {
    /// A copy with other names for some arguments. Messages still show the names as written.
    pub fn renamed(&self, other: &dyn Fn(&str) -> Option<String>) -> Parsed {
        let mut renamed = self.clone();
        renamed.tree.rename_arguments(other);
        renamed
    }

    /// Types the filter for the events of one class.
    pub fn check(&self, schema: &Schema) -> Result<Filter, Diagnostic> {
        check::check(self, schema)
    }

    /// Types it for several classes. A value that only some of them have is an error that names one of the others.
    pub fn check_all(&self, schemas: &[&Schema]) -> Result<Vec<Filter>, Diagnostic> {
        let results: Vec<_> = schemas.iter().map(|s| self.check(s)).collect();
        let fine = results.iter().filter(|r| r.is_ok()).count();
        let Some((at, Err(e))) = results.iter().enumerate().find(|(_, r)| r.is_err()) else {
            return results.into_iter().collect();
        };
        let lacks = matches!(e.code, Code::UnknownField | Code::NotAvailable);
        if !lacks && fine > 0 {
            // A type differs between the probes: the message must name them.
            let (s, e) = (schemas[at], e.clone());
            return Err(Diagnostic { message: format!("{}: {}", s.probe(), e.message), ..e });
        }
        if fine == 0 {
            return Err(self.only_where_none(schemas, e.clone()));
        }
        Err(self.partly(schemas[at], schemas.len() - fine, fine, e))
    }

    /// An argument that some probe has, though the filter suits none of them, is not unknown.
    fn only_where_none(&self, schemas: &[&Schema], e: Diagnostic) -> Diagnostic {
        let field = e.span.of(&self.text).trim_start_matches("args").trim_start_matches(['.', '-', '>']);
        let having = schemas.iter().filter(|s| s.arg(field).is_some()).count();
        match (e.code, schemas.iter().find(|s| s.arg(field).is_none())) {
            (Code::UnknownField, Some(without)) if having > 0 => {
                self.partly(without, schemas.len() - having, having, &e)
            }
            _ => e,
        }
    }

    fn partly(&self, without: &Schema, lacking: usize, having: usize, e: &Diagnostic) -> Diagnostic {
        let what = e.span.of(&self.text);
        let others = if lacking > 1 { format!(" and {} more", lacking - 1) } else { String::new() };
        let message = format!("{}{others} has no '{what}'", without.probe());
        let message = if lacking > 1 { message.replace(" has no ", " have no ") } else { message };
        let have = if having == 1 { "1 has".into() } else { format!("{having} have") };
        let hint = format!("{have} it: select those only, with -e");
        Diagnostic::new(Code::NotInProbe, e.span, message).hint(hint)
    }
}

/// One operand of the outermost `&&`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place in the text.
    pub span: Span,
    /// As it is written.
    pub text: String,
    /// What it means.
    pub cond: Cond,
}

/// A filter for the events of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    schema: u16,
    name: &'static str,
    parts: Vec<Part>,
    order: Vec<usize>,
    needs: Needs,
}

/// What an event's bytes do not contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The thread's name; bytes after a NUL are ignored.
    pub comm: Option<&'a [u8]>,
    /// The thread's user.
    pub uid: Option<u32>,
    /// The thread's group.
    pub gid: Option<u32>,
    /// The processor, of events that do not have it.
    pub cpu: Option<u16>,
}

/// The result of a filter for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Pass,
    /// This part, counted from 0 as they are written, is not true of it.
    Rejected(usize),
    /// Something that the filter names is not known of it, so it does not pass.
    Unknown(Missing),
}

impl Verdict {
    /// Whether the event passes.
    pub fn passes(self) -> bool {
        self == Verdict::Pass
    }
}

/// What is not known of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is not of the class that the filter was checked for.
    Probe,
    /// The call did not return.
    Retval,
    /// The call was in flight when it was attached to, so that `dur` is not known.
    Start,
    /// The processor.
    Cpu,
    /// The user.
    Uid,
    /// The group.
    Gid,
    /// The thread's name.
    Comm,
    /// This string argument could not be read, or too little of it was captured; see [`Needs::strings`].
    Text(u8),
}

/// What must be known of an event for a filter to decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Context::comm`].
    pub comm: bool,
    /// [`Context::uid`].
    pub uid: bool,
    /// [`Context::gid`].
    pub gid: bool,
    /// The processor at entry.
    pub cpu: bool,
    /// The time of the event.
    pub nsecs: bool,
    /// The start of the call.
    pub start: bool,
    /// The result.
    pub retval: bool,
    /// A bit for each argument whose register is read, strings included.
    pub args: u32,
    /// The strings that are read, by argument.
    pub strings: Vec<NeededString>,
    /// Strings are searched, which no program in the kernel does.
    pub search: bool,
}

/// A string that a filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededString {
    /// Index of the argument.
    pub arg: u8,
    /// This many bytes of it, a NUL at the end among them, always decide.
    pub bytes: usize,
    /// It is there only when the call has ended.
    pub at_exit: bool,
}

impl Needs {
    /// Whether it can be decided before the call is carried out.
    pub fn at_entry(&self) -> bool {
        !(self.nsecs || self.start || self.retval || self.strings.iter().any(|s| s.at_exit))
    }

    fn add(&mut self, leaf: Leaf<'_>, schema: &Schema) {
        match leaf {
            Leaf::Value(Value::Pid | Value::Tid) => {}
            Leaf::Value(Value::Uid) => self.uid = true,
            Leaf::Value(Value::Gid) => self.gid = true,
            Leaf::Value(Value::Cpu) => self.cpu = true,
            Leaf::Value(Value::Nsecs) => self.nsecs = true,
            Leaf::Value(Value::Dur) => (self.nsecs, self.start) = (true, true),
            Leaf::Value(Value::Retval) => self.retval = true,
            Leaf::Value(Value::Arg(a)) => self.args |= 1 << a.index,
            Leaf::Test(t) => {
                self.search |= t.how.searches();
                match t.subject {
                    Subject::Comm => self.comm = true,
                    Subject::Arg(arg) => self.string(arg, t.bytes(), schema),
                }
            }
        }
    }

    fn string(&mut self, arg: u8, bytes: usize, schema: &Schema) {
        self.args |= 1 << arg;
        match self.strings.iter_mut().find(|s| s.arg == arg) {
            Some(s) => s.bytes = s.bytes.max(bytes),
            None => {
                let at_exit = !schema.args[usize::from(arg)].dir.reads_in();
                self.strings.push(NeededString { arg, bytes, at_exit });
            }
        }
    }
}

impl Filter {
    /// Evaluates the filter for an event.
    pub fn matches(&self, event: &Event<'_>, context: &Context<'_>) -> Verdict {
        eval::matches(self, event, context)
    }

    /// The class of the events that it was checked for.
    pub fn schema(&self) -> u16 {
        self.schema
    }

    /// What must be known for that.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The operands of the outermost `&&`, as they are written.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The numbers of the parts in the order in which they are evaluated.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The constant result, if the filter is true or false for every event with known values.
    pub fn constant(&self) -> Option<bool> {
        let constants = self.parts.iter().map(|p| if let Cond::Const(c) = p.cond { Some(c) } else { None });
        match constants.clone().any(|c| c == Some(false)) {
            true => Some(false),
            false => constants.clone().all(|c| c == Some(true)).then_some(true),
        }
    }

    fn new(schema: &Schema, parts: Vec<Part>) -> Filter {
        let mut needs = Needs::default();
        parts.iter().for_each(|p| p.cond.leaves(&mut |leaf| needs.add(leaf, schema)));
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|&i| parts[i].cond.cost());
        Filter { schema: schema.id, name: schema.name, parts, order, needs }
    }
}
