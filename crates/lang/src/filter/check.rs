//! From tree and schema to a typed filter: names get values, constants are folded, every mistake gets its place.
//!
//! Invariant: what comes out holds no name, and every argument in it is one of the schema.

use super::ir::{Arg, Cmp, Cond, How, Int, Op, Subject, Text, Value};
use super::{Filter, MAX_STRING, Parsed, Part};
use crate::ast::{Base, Binary, Cast, Expr, Kind, TypeName, Unary};
use crate::diag::{Code, Diagnostic, Span, quote};
use crate::ir::Zero;
use crate::names::{self, Beside, Found};
use crate::near::did_you_mean;
use events::schema::{Class, Ret};
use events::{Schema, Type};

type Result<T> = std::result::Result<T, Diagnostic>;

/// The names of values, and what they are.
const VALUES: &[(&str, &str)] = &[
    ("pid", "process"),
    ("tid", "thread"),
    ("uid", "user"),
    ("gid", "group"),
    ("comm", "name of the thread"),
    ("cpu", "processor at entry"),
    ("nsecs", "time of the event"),
    ("retval", "result of a call or another span"),
    ("dur", "ns from start to end of a call or another span"),
    ("probe", "full name of the probe"),
    ("args", "the arguments: args.NAME"),
    ("true", "1"),
    ("false", "0"),
];

/// Functions.
const FUNCTIONS: &[&str] = &["startswith", "endswith", "contains", "glob", "strncmp", "str"];

/// What the functions with a string and a constant compare; bpftrace has one of them, by another name.
fn how(function: &str) -> Option<How> {
    Some(match function {
        "startswith" => How::Starts,
        "endswith" => How::Ends,
        "contains" | "strcontains" => How::Contains,
        "glob" => How::Glob,
        _ => return None,
    })
}

/// The longest name of a thread (`TASK_COMM_LEN` less its NUL, include/linux/sched.h).
const MAX_COMM: usize = 15;

/// A pointer's register.
const WORD: Cast = Cast { size: 8, signed: false };

/// An expression with its type.
enum Typed {
    Int(Int),
    Cond(Cond),
    Str(Str),
}

/// A string.
enum Str {
    Constant(Vec<u8>),
    Subject(Subject),
}

pub(super) fn check(parsed: &Parsed, schema: &Schema) -> Result<Filter> {
    let c = Checker { schema, text: &parsed.text };
    let mut parts = Vec::new();
    c.parts(&parsed.tree, &mut parts)?;
    Ok(Filter::new(schema, parts))
}

struct Checker<'c> {
    schema: &'c Schema,
    text: &'c str,
}

impl Checker<'_> {
    fn parts(&self, e: &Expr, out: &mut Vec<Part>) -> Result<()> {
        if let Kind::All(list) = &e.kind {
            return list.iter().try_for_each(|e| self.parts(e, out));
        }
        let cond = self.cond(e)?;
        out.push(Part { span: e.span, text: e.span.of(self.text).into(), cond });
        Ok(())
    }

    fn probe(&self) -> String {
        self.schema.probe().into_owned()
    }

    fn cond(&self, e: &Expr) -> Result<Cond> {
        match self.typed(e, None)? {
            Typed::Cond(c) => Ok(c),
            Typed::Int(i) => Ok(i.truth()),
            Typed::Str(_) => Err(wrong_type(e, "a string is neither true nor false").hint("compare it with ==")),
        }
    }

    fn int(&self, e: &Expr, beside: Option<Beside>) -> Result<Int> {
        match self.typed(e, beside)? {
            Typed::Int(i) => Ok(i),
            Typed::Cond(c) => Ok(c.into()),
            Typed::Str(_) => Err(wrong_type(e, "a string where a number is expected")),
        }
    }

    fn typed(&self, e: &Expr, beside: Option<Beside>) -> Result<Typed> {
        let span = e.bare();
        Ok(match &e.kind {
            Kind::Int(v) => Typed::Int(Int::Const(*v as i64)),
            Kind::Str(s) => Typed::Str(Str::Constant(s.clone())),
            Kind::Bool(b) => Typed::Cond(Cond::Const(*b)),
            Kind::Name(n) => self.name(span, n, beside)?,
            Kind::Arg(n) => self.field(span, n)?,
            Kind::Call(f, list) => self.call(span, f, list)?,
            Kind::Cast(to, x) => Typed::Int(self.int(x, beside)?.cast(cast(to).ok_or_else(|| not_a_filter(span))?)),
            Kind::Unary(Unary::Not, x) => Typed::Cond(self.cond(x)?.negated()),
            Kind::Unary(Unary::Minus, x) => Typed::Int(self.int(x, beside)?.minus()),
            Kind::Unary(Unary::Complement, x) => Typed::Int(self.int(x, beside)?.complement()),
            Kind::Binary(op, a, b) => self.binary(span, *op, a, b, beside)?,
            Kind::All(list) => Typed::Cond(all(self.conds(list)?)),
            Kind::Any(list) => Typed::Cond(all(self.conds(list)?.into_iter().map(Cond::negated).collect()).negated()),
            Kind::Choice(c, Some(a), b) => self.choice(c, a, b, beside)?,
            // The parser of filters makes no others.
            _ => return Err(not_a_filter(span)),
        })
    }

    fn conds(&self, list: &[Expr]) -> Result<Vec<Cond>> {
        list.iter().map(|e| self.cond(e)).collect()
    }

    fn choice(&self, c: &Expr, a: &Expr, b: &Expr, beside: Option<Beside>) -> Result<Typed> {
        Ok(Typed::Int(Int::choice(self.cond(c)?, self.int(a, beside)?, self.int(b, beside)?)))
    }

    fn binary(&self, span: Span, op: Binary, a: &Expr, b: &Expr, outer: Option<Beside>) -> Result<Typed> {
        // The type of an argument determines what a name next to it means.
        let beside = self.beside(a).or_else(|| self.beside(b)).or(outer.filter(|_| !op.is_comparison()));
        let (a_typed, b_typed) = (self.typed(a, beside)?, self.typed(b, beside)?);
        if let Some(cmp) = Cmp::of(op, true) {
            return match (a_typed, b_typed) {
                (Typed::Str(x), Typed::Str(y)) => self.strings(span, cmp, x, y),
                (Typed::Str(_), _) => Err(self.mixed(a, b)),
                (_, Typed::Str(_)) => Err(self.mixed(b, a)),
                (x, y) => Ok(Typed::Cond(Cond::compare(cmp, number(x), number(y)))),
            };
        }
        for (typed, at) in [(&a_typed, a), (&b_typed, b)] {
            if matches!(typed, Typed::Str(_)) {
                return Err(wrong_type(at, format!("'{}' takes numbers, not strings", op.symbol())));
            }
        }
        let (x, y) = (number(a_typed), number(b_typed));
        Ok(Typed::Int(arithmetic(op, x, y, b.span)?))
    }

    fn mixed(&self, string: &Expr, number: &Expr) -> Diagnostic {
        let (s, n) = (quote(string.span.of(self.text)), quote(number.span.of(self.text)));
        let e = wrong_type(string, format!("{s} is a string, {n} a number"));
        match (&string.kind, &number.kind) {
            (_, Kind::Int(v)) => e.hint(format!("write \"{}\"", *v as i64)),
            (Kind::Str(_), Kind::Arg(_)) => {
                e.hint("only string arguments are read from memory; other arguments are numbers")
            }
            _ => e,
        }
    }

    /// `==` and `!=` of strings, of which one is a constant.
    fn strings(&self, span: Span, cmp: Cmp, x: Str, y: Str) -> Result<Typed> {
        let wrong = |message: &str| Diagnostic::new(Code::Type, span, message);
        if !matches!(cmp, Cmp::Eq | Cmp::Ne) {
            return Err(
                wrong("strings have no order").hint("they know ==, != and functions such as startswith(s, \"…\")")
            );
        }
        let cond = match (x, y) {
            (Str::Constant(x), Str::Constant(y)) => Cond::Const(x == y),
            (Str::Subject(s), Str::Constant(c)) | (Str::Constant(c), Str::Subject(s)) => text(span, s, c, How::Is)?,
            (Str::Subject(_), Str::Subject(_)) => {
                return Err(
                    wrong("two strings of which neither is a constant").hint("one of the two must be a constant")
                );
            }
        };
        Ok(Typed::Cond(if cmp == Cmp::Eq { cond } else { cond.negated() }))
    }

    fn name(&self, span: Span, name: &str, beside: Option<Beside>) -> Result<Typed> {
        let probe = self.schema.class == Class::Probe;
        let of_spans = |v: Value| match self.schema.is_span() {
            true => Ok(Typed::Int(Int::Value(v))),
            false => Err(Diagnostic::new(
                Code::NotAvailable,
                span,
                format!("{} is not a call and has no '{name}'", self.probe()),
            )),
        };
        let value = |v: Value| Ok(Typed::Int(Int::Value(v)));
        match name {
            "pid" => value(Value::Pid),
            "tid" => value(Value::Tid),
            "uid" => value(Value::Uid),
            "gid" => value(Value::Gid),
            "nsecs" => value(Value::Nsecs),
            "cpu" if probe => value(Value::Cpu),
            "cpu" => of_spans(Value::Cpu),
            // A return probe has it among its arguments.
            "retval" if probe && self.schema.arg(name).is_some() => self.field(span, name),
            "retval" if self.schema.is_span() && self.schema.ret == Ret::Never => {
                Err(Diagnostic::new(Code::NotAvailable, span, format!("{} never returns", self.probe())))
            }
            "retval" => of_spans(Value::Retval),
            "dur" => of_spans(Value::Dur),
            "comm" => Ok(Typed::Str(Str::Subject(Subject::Comm))),
            "probe" => Ok(Typed::Str(Str::Constant(self.probe().into_bytes()))),
            "true" => Ok(Typed::Cond(Cond::Const(true))),
            "false" => Ok(Typed::Cond(Cond::Const(false))),
            "args" => Err(Diagnostic::new(Code::Syntax, span, "'args' without a name").hint("write args.NAME")),
            _ => self.constant(span, name, beside),
        }
    }

    fn constant(&self, span: Span, name: &str, beside: Option<Beside>) -> Result<Typed> {
        match names::constant(name, beside) {
            Found::Value(v) => Ok(Typed::Int(Int::Const(v))),
            Found::Ambiguous(several) => {
                let list: Vec<String> = several.iter().map(|(t, v)| format!("{v:#x} in {t}")).collect();
                let shown = list[..list.len().min(4)].join(", ");
                let message = format!("'{name}' has several values: {shown}");
                Err(Diagnostic::new(Code::Ambiguous, span, message).hint("write the number"))
            }
            Found::None => {
                let e = Diagnostic::new(Code::UnknownName, span, format!("unknown name {}", quote(name)));
                if self.schema.arg(name).is_some() {
                    return Err(e.hint(format!("did you mean args.{name}?")));
                }
                let candidates = VALUES.iter().map(|v| v.0).chain(names::all(beside));
                Err(match did_you_mean("", name, candidates) {
                    Some(hint) => e.hint(hint),
                    None => e.hint("write strings in double quotes, arguments as args.NAME"),
                })
            }
        }
    }

    fn field(&self, span: Span, name: &str) -> Result<Typed> {
        let Some(index) = self.schema.arg(name) else {
            let shown = span.of(self.text);
            let e = Diagnostic::new(Code::UnknownField, span, format!("unknown field {}", quote(shown)));
            let names = || self.schema.args.iter().map(|a| a.name);
            return Err(e.hint(match did_you_mean("args.", name, names()) {
                Some(hint) => hint,
                None if self.schema.args.is_empty() => format!("{} has no arguments", self.probe()),
                None => format!("{} has {}", self.probe(), names().collect::<Vec<_>>().join(", ")),
            }));
        };
        Ok(match self.schema.args[index].ty {
            Type::Str(_) => Typed::Str(Str::Subject(Subject::Arg(index as u8))),
            ty => {
                let cast = if let Type::Int(i) = ty { Cast { size: i.size, signed: i.signed } } else { WORD };
                Typed::Int(Int::Value(Value::Arg(Arg { index: index as u8, cast })))
            }
        })
    }

    /// The table that names the values of an expression.
    fn beside(&self, e: &Expr) -> Option<Beside> {
        match &e.kind {
            Kind::Arg(n) => Beside::of(&self.schema.args[self.schema.arg(n)?].ty),
            Kind::Cast(_, e) | Kind::Unary(Unary::Minus | Unary::Complement, e) => self.beside(e),
            Kind::Binary(op, a, b) if !op.is_comparison() => self.beside(a).or_else(|| self.beside(b)),
            Kind::Choice(_, Some(a), b) => self.beside(a).or_else(|| self.beside(b)),
            _ => None,
        }
    }

    fn call(&self, span: Span, function: &str, list: &[Expr]) -> Result<Typed> {
        let usage = |usage: &str| Err(Diagnostic::new(Code::Function, span, "wrong arguments").hint(usage.to_owned()));
        match (function, list) {
            ("str", [s]) => match self.typed(s, None)? {
                Typed::Str(s) => Ok(Typed::Str(s)),
                // Only the author of the filter knows that a function's argument or result is an address.
                Typed::Int(Int::Value(Value::Arg(a))) if self.schema.class == Class::Probe => {
                    Ok(Typed::Str(Str::Subject(Subject::Arg(a.index))))
                }
                _ => Err(wrong_type(s, "not a string").hint("only arguments that are strings can be read")),
            },
            (_, [s, constant]) if let Some(how) = how(function) => {
                let (s, constant) = (self.string(s)?, self.literal(constant)?);
                Ok(Typed::Cond(compared(span, s, constant, how)?))
            }
            ("strncmp", [a, b, n]) => {
                let Int::Const(count @ 0..) = self.int(n, None)? else {
                    return usage("strncmp(string, \"constant\", number)");
                };
                let (a, b) = match (self.string(a)?, self.string(b)?) {
                    (Str::Constant(c), other) | (other, Str::Constant(c)) => (other, c),
                    _ => return usage("one of the two strings is a constant"),
                };
                Ok(Typed::Cond(first_bytes(span, a, b, count as usize)?.negated()))
            }
            ("str", _) => usage("str(string)"),
            (_, _) if how(function).is_some() => usage(&format!("{function}(string, \"constant\")")),
            ("strncmp", _) => usage("strncmp(string, \"constant\", number)"),
            _ => {
                let d = Diagnostic::new(Code::Function, span, format!("unknown function {}", quote(function)));
                let hint = did_you_mean("", function, FUNCTIONS.iter().copied());
                Err(d.hint(hint.unwrap_or_else(|| format!("there are {}", FUNCTIONS.join(", ")))))
            }
        }
    }

    fn string(&self, e: &Expr) -> Result<Str> {
        match self.typed(e, None)? {
            Typed::Str(s) => Ok(s),
            _ => Err(wrong_type(e, "a number where a string is expected")),
        }
    }

    fn literal(&self, e: &Expr) -> Result<Vec<u8>> {
        match self.string(e)? {
            Str::Constant(c) => Ok(c),
            Str::Subject(_) => Err(wrong_type(e, "not a constant")),
        }
    }
}

fn wrong_type(at: &Expr, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Type, at.span, message)
}

/// What an expression is that filters do not have.
fn not_a_filter(span: Span) -> Diagnostic {
    Diagnostic::new(Code::NotAFilter, span, "no expression of a filter")
}

/// The integer that a cast is to.
fn cast(to: &TypeName) -> Option<Cast> {
    if let Base::Named(name) = &to.base { Cast::named(name) } else { None }
}

/// Strings have been handled before.
fn number(t: Typed) -> Int {
    match t {
        Typed::Int(i) => i,
        Typed::Cond(c) => c.into(),
        Typed::Str(_) => Int::Const(0),
    }
}

fn arithmetic(op: Binary, a: Int, b: Int, right: Span) -> Result<Int> {
    let never = |message: &str| Err(Diagnostic::new(Code::Never, right, message));
    match (op, &b) {
        (Binary::Div | Binary::Mod, Int::Const(0)) => return never("division by zero"),
        (Binary::Shl | Binary::Shr, Int::Const(n)) if !(0..64).contains(n) => {
            return never("a shift by a number that is not 0 to 63");
        }
        _ => {}
    }
    let op = Op::of(op, true, Zero::Natural).unwrap_or(Op::Or);
    Ok(Int::binary(op, a, b))
}

/// All of them, without those that are always true.
fn all(list: Vec<Cond>) -> Cond {
    if list.contains(&Cond::Const(false)) {
        return Cond::Const(false);
    }
    let mut rest: Vec<Cond> = list.into_iter().filter(|c| *c != Cond::Const(true)).collect();
    match rest.len() {
        0 => Cond::Const(true),
        1 => rest.remove(0),
        _ => Cond::All(rest),
    }
}

/// A string test, if it can ever hold.
fn text(span: Span, subject: Subject, constant: Vec<u8>, how: How) -> Result<Cond> {
    let never = |message: String| Err(Diagnostic::new(Code::Never, span, message));
    // A star of a pattern may stand for nothing.
    let least = constant.iter().filter(|c| how != How::Glob || **c != b'*').count();
    if subject == Subject::Comm && least > MAX_COMM {
        return never(format!("the name of a thread has at most {MAX_COMM} bytes, this one {least}"));
    }
    if constant.len() > MAX_STRING {
        let message = format!("a string of {} bytes; at most {MAX_STRING} are allowed", constant.len());
        return Err(Diagnostic::new(Code::TooLarge, span, message));
    }
    match how {
        How::Starts | How::Ends | How::Contains if constant.is_empty() => Ok(Cond::Const(true)),
        _ => Ok(Cond::Test(Text { subject, constant, how })),
    }
}

fn compared(span: Span, s: Str, constant: Vec<u8>, how: How) -> Result<Cond> {
    match s {
        Str::Constant(s) => Ok(Cond::Const(how.holds(&s, &constant))),
        Str::Subject(s) => text(span, s, constant, how),
    }
}

/// C's strncmp: equal in the first `n` bytes, or up to the NUL.
fn first_bytes(span: Span, a: Str, b: Vec<u8>, n: usize) -> Result<Cond> {
    let how = if n <= b.len() { How::Starts } else { How::Is };
    let b = b[..n.min(b.len())].to_vec();
    match a {
        Str::Constant(a) => Ok(Cond::Const(how.holds(&a, &b))),
        Str::Subject(s) => text(span, s, b, how),
    }
}
