//! What a clause reads of an event: values by their names, arguments, constants. And which probes have them.

use super::super::attach::{Arguments, Point};
use super::super::headers;
use super::super::ir::{Cond, Expr, Int, Kind, Leaf, Op, What};
use super::super::table::{self, Class, Row};
use super::super::types::{self, Space, Type};
use super::expr::{computed, constant, make, number, truth_value};
use super::{Checker, MAX_LEAVES, bounded};
use crate::diag::{Code, Diagnostic, Span, quote};
use crate::ir::Cmp;
use crate::names::{self, Found};
use crate::tokens::Result;

impl Checker<'_> {
    /// The number of a leaf, which is new or is there already.
    pub(super) fn leaf(&mut self, what: What, ty: Type, span: Span) -> Result<Expr> {
        let index = match self.leaves.iter().position(|l| l.what == what) {
            Some(i) => i,
            None if self.leaves.len() >= MAX_LEAVES => {
                let message = format!("a clause that reads more than {MAX_LEAVES} values of an event");
                return Err(Diagnostic::new(Code::TooLarge, span, message).hint("write several clauses"));
            }
            None => {
                self.leaves.push(Leaf { what, ty: ty.clone() });
                self.leaves.len() - 1
            }
        };
        Ok(make(Kind::Leaf(index), ty))
    }

    /// The leaf of the string at the address that another leaf is.
    pub(super) fn text_leaf(&mut self, index: usize) -> Option<usize> {
        let what = match &self.leaves.get(index)?.what {
            What::Arg(n) => What::TextOf(n.clone()),
            What::Number(n) => What::TextOfNumber(*n),
            _ => return None,
        };
        match self.leaf(what, Type::Str(self.config.max_strlen), Span::default()).ok()?.kind {
            Kind::Leaf(text) => Some(text),
            _ => None,
        }
    }

    /// Whose memory an address is of that a leaf gives.
    pub(super) fn space_of(&self, index: usize) -> Space {
        match self.leaves.get(index).map(|l| &l.what) {
            Some(What::Value("curtask" | "ctx")) => Space::Kernel,
            _ => self.space(),
        }
    }

    /// Whose memory addresses are of of which nothing else is known.
    pub(super) fn space(&self) -> Space {
        let user = |p: &Point| {
            let name = p.provider.name;
            matches!(name, "uprobe" | "uretprobe" | "usdt" | "syscall" | "function" | "heap")
                || name == "tracepoint" && p.parts.first().is_some_and(|c| c == "syscalls")
        };
        if self.points.iter().all(user) && !self.points.is_empty() { Space::User } else { Space::Kernel }
    }

    /// A value, or a constant.
    pub(super) fn name(&mut self, name: &str, span: Span) -> Result<Expr> {
        if let Some(n) = name.strip_prefix("arg").and_then(|n| n.parse::<u8>().ok()).filter(|n| *n < 64) {
            let numbered = |a| matches!(a, Arguments::Numbered | Arguments::Both | Arguments::Call);
            self.has(span, name, numbered, "arguments with numbers")?;
            return self.leaf(What::Number(n), Type::UINT, span);
        }
        if let Some(n) = name.strip_prefix("sarg").and_then(|n| n.parse::<u8>().ok()).filter(|n| *n < 64) {
            let numbered = |a| matches!(a, Arguments::Numbered | Arguments::Both);
            self.has(span, name, numbered, "arguments with numbers")?;
            return self.stack_word(n, span);
        }
        match table::row(name) {
            Some(r) => self.row_by_name(r, span),
            None => self.constant(name, span),
        }
    }

    /// A word of the stack, behind the address to which the function returns.
    fn stack_word(&mut self, n: u8, span: Span) -> Result<Expr> {
        let space = self.space();
        let stack = self.leaf(What::Register("sp".into()), Type::UINT, span)?;
        let at = Int::binary(Op::Add, stack.int(), Int::Const(8 + 8 * i64::from(n)));
        Ok(make(Kind::Load(Box::new(at), space), Type::UINT))
    }

    fn row_by_name(&mut self, r: &'static Row, span: Span) -> Result<Expr> {
        match r.class {
            Class::Value => self.value_call(r, &[], span),
            Class::Later | Class::Refused => Err(refused(r, span)),
            // Those that take nothing may be written without parentheses.
            _ if r.params().all(|p| p.optional) => self.call(r.name, &[], span),
            _ => {
                let e = Diagnostic::new(Code::Call, span, format!("'{}' is a function", r.name));
                Err(e.hint(format!("write {}", r.signature())))
            }
        }
    }

    /// A value of the table; of one of its kinds.
    pub(super) fn builtin(&mut self, r: &'static Row, kind: Option<String>, span: Span) -> Result<Expr> {
        let mut ty = r.ty(self.config.max_strlen);
        match r.name {
            "args" => return self.all_args(span),
            "retval" => {
                let has_result = |a| matches!(a, Arguments::Result | Arguments::Span | Arguments::Call);
                self.has(span, r.name, has_result, "a result")?;
                let types: Vec<Type> = self.points.iter().map(|p| self.world.retval(p).unwrap_or(Type::INT)).collect();
                ty = types.first().filter(|t| types.iter().all(|u| u == *t)).cloned().unwrap_or(Type::INT);
            }
            "dur" => {
                self.has(span, r.name, |a| matches!(a, Arguments::Span | Arguments::Call), "a start and an end")?
            }
            "curtask" => {
                let known = self.world.structure("task_struct").is_some();
                let task = if known { Type::Struct("task_struct".into()) } else { Type::None };
                ty = Type::Pointer(Box::new(task), Space::Kernel);
            }
            "ctx" => ty = Type::Pointer(Box::new(Type::None), Space::Kernel),
            "cpid" => {
                return match self.world.child() {
                    Some(pid) => Ok(number(pid.into())),
                    None if self.world.starts() => self.leaf(What::Value(r.name), ty, span),
                    None => {
                        let w = Diagnostic::warning(Code::Parameter, span, "'cpid' is 0: no command was given");
                        self.warn(w.hint("start one with -c COMMAND"));
                        Ok(number(0))
                    }
                };
            }
            "ppid" | "pcomm" if self.knows_task() => return self.of_task(r.name, ty, span),
            "usermode" => return self.usermode(span),
            "rand" => return Ok(make(Kind::Call("rand", Vec::new()), ty)),
            "func" => self.has(span, r.name, |a| a != Arguments::None, "a function")?,
            _ => {}
        }
        self.leaf(kind.map_or(What::Value(r.name), |k| What::Kind(r.name, k)), ty, span)
    }

    /// Whether all probes of the clause have the kernel's structure of the thread.
    fn knows_task(&self) -> bool {
        let of_process = |p: &Point| matches!(p.provider.name, "syscall" | "function" | "heap" | "process");
        !self.points.iter().any(of_process) && self.world.structure("task_struct").is_some()
    }

    /// `curtask->real_parent->tgid`, `curtask->group_leader->comm`
    fn of_task(&mut self, name: &str, ty: Type, span: Span) -> Result<Expr> {
        let path = if name == "ppid" { ["real_parent", "tgid"] } else { ["group_leader", "comm"] };
        let mut x = self.name("curtask", span)?;
        for member in path {
            x = self.field_of(x, span, member, span)?;
        }
        match ty.as_int() {
            Some(cast) => Ok(computed(x.int().cast(cast), ty)),
            None => self.text_at(x, None),
        }
    }

    /// Whether the processor was in user mode: the two lowest bits of the code segment are the privilege level (Intel SDM 3A, 5.5). Code
    /// of a program, and trapline itself at probes of its own, are in no other mode.
    fn usermode(&mut self, span: Span) -> Result<Expr> {
        let of_program = |p: &Point| matches!(p.provider.name, "uprobe" | "uretprobe" | "usdt" | "function" | "heap");
        if !self.points.is_empty() && self.points.iter().all(|p| p.is_own() || of_program(p)) {
            return Ok(truth_value(Cond::Const(true)));
        }
        let segment = self.leaf(What::Register("cs".into()), Type::UINT, span)?;
        let level = Int::binary(Op::And, segment.int(), Int::Const(3));
        Ok(truth_value(Cond::compare(Cmp::Eq, level, Int::Const(3))))
    }

    /// All probes of the clause have it.
    fn has(&mut self, span: Span, name: &str, fits: impl Fn(Arguments) -> bool, what: &str) -> Result<()> {
        let Some(p) = self.points.iter().find(|p| !fits(p.provider.arguments)) else { return Ok(()) };
        let e = Diagnostic::new(Code::Field, span, format!("'{}' has no '{name}'", p.name()));
        let e = e.second(p.span, "it is one of the clause's probes");
        Err(e.hint(format!("the value is there at probes that have {what}")))
    }

    /// `args`: a record of all arguments.
    fn all_args(&mut self, span: Span) -> Result<Expr> {
        let named = |a| matches!(a, Arguments::Named | Arguments::Both | Arguments::Span | Arguments::Call);
        self.has(span, "args", named, "named arguments")?;
        let Some(names) = self.points.first().and_then(|p| self.world.args(p)).filter(|args| !args.is_empty()) else {
            let e = Diagnostic::new(Code::Field, span, "the arguments are not known together");
            return Err(e.hint("write args.NAME"));
        };
        let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        let list = names.iter().map(|name| self.arg(name, span)).collect::<Result<Vec<_>>>()?;
        let ty = Type::Record(names, list.iter().map(|e| e.ty.clone()).collect());
        Ok(make(Kind::Tuple(list), bounded(ty, span)?))
    }

    /// `args.NAME`
    pub(super) fn arg(&mut self, name: &str, span: Span) -> Result<Expr> {
        let named = |a| matches!(a, Arguments::Named | Arguments::Both | Arguments::Span | Arguments::Call);
        self.has(span, &format!("args.{name}"), named, "named arguments")?;
        let mut ty: Option<Type> = None;
        for p in self.points {
            let late = self.world.late(p).map(|ty| vec![(name.to_owned(), ty)]);
            let Some(args) = late.or_else(|| self.world.args(p)) else {
                let e = Diagnostic::new(Code::Field, span, format!("the arguments of '{}' are not known", p.name()));
                let hint = match p.provider.name {
                    "function" => "debug information says what they are: compile the program with -g",
                    _ => "`trapline list -v PROBE` shows those of probes that exist",
                };
                return Err(e.hint(hint));
            };
            let Some((_, found)) = args.iter().find(|a| a.0 == name) else {
                let e = Diagnostic::new(Code::Field, span, format!("'{}' has no argument '{name}'", p.name()));
                let e = e.second(p.span, "it is one of the clause's probes");
                let all: Vec<&str> = args.iter().map(|a| a.0.as_str()).collect();
                let list = (!all.is_empty()).then(|| format!("it has {}", all.join(", ")));
                return Err(e.maybe_hint(list).maybe_hint(self.near("args.", name, all.into_iter())));
            };
            let same = match (&ty, found) {
                (None, t) => Some(t.clone()),
                (Some(a), b) if a == b => Some(a.clone()),
                (Some(Type::Int(a)), Type::Int(b)) => types::join_ints(*a, *b).map(Type::Int),
                _ => None,
            };
            let Some(same) = same else {
                let first = ty.unwrap_or_default();
                let e = Diagnostic::new(
                    Code::Type,
                    span,
                    format!("'args.{name}' is {first} at some of the probes, {found} at others"),
                );
                return Err(e.second(p.span, "at this one").hint("write a clause for each"));
            };
            ty = Some(same);
        }
        self.leaf(What::Arg(name.to_owned()), ty.unwrap_or(Type::INT), span)
    }

    /// A name that is a constant.
    fn constant(&mut self, name: &str, span: Span) -> Result<Expr> {
        if let Some((v, of)) = self.declarations.constant(name) {
            return Ok(make(Kind::Const(v, false), Type::Enum(of.to_owned())));
        }
        let found = headers::constant(name).map_or_else(|| names::constant(name, None), Found::Value);
        let (values, of_kernel): (Vec<(String, i64)>, bool) = match found {
            Found::Value(v) => return Ok(constant(v)),
            Found::Ambiguous(values) => (values.iter().map(|(table, v)| ((*table).to_owned(), *v)).collect(), false),
            Found::None => (self.world.enumerators(name), true),
        };
        match &values[..] {
            [] => Err(self.unknown_name(name, span)),
            // The kernel's have 64 bits, and the sign of what they meet.
            [(_, v), rest @ ..] if of_kernel && rest.iter().all(|r| r.1 == *v) => {
                Ok(make(Kind::Const(*v, *v >= 0), Type::INT))
            }
            [(_, v), rest @ ..] if rest.iter().all(|r| r.1 == *v) => Ok(constant(*v)),
            _ => {
                let of = |of: &str| if of.is_empty() { "an enumeration without a name" } else { of }.to_owned();
                let list: Vec<String> = values.iter().map(|(table, v)| format!("{v} ({})", of(table))).collect();
                let e = Diagnostic::new(Code::Name, span, format!("{} has several values", quote(name)));
                Err(e.hint(format!("write the number: {}", list.join(", "))))
            }
        }
    }

    pub(super) fn unknown_name(&self, name: &str, span: Span) -> Diagnostic {
        let rows = table::ROWS.iter().filter(|r| !matches!(r.class, Class::Later | Class::Refused)).map(|r| r.name);
        let macros = self.script.macros.iter().map(|m| m.name.as_str());
        let constants = headers::names().chain(names::all(None)).map(|n| -> &str { n });
        if let Some(m) = self.script.macros.iter().find(|m| m.name == name) {
            let kind = if m.function.is_some() { "function" } else { "macro" };
            let e = Diagnostic::new(Code::Name, span, format!("'{name}' is a {kind} of {} parameters", m.params.len()));
            return e.second(m.span, "it is defined here").hint(format!("write {name}(…)"));
        }
        let near = self.near("", name, rows.chain(macros).chain(constants));
        let e = Diagnostic::new(Code::Name, span, format!("{} is neither a value nor a constant", quote(name)));
        let included = (!self.script.includes.is_empty()
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit()))
        .then(|| format!("headers are not read: write #define {name} VALUE"));
        e.hint(format!("a variable is written ${name}, a map @{name}")).maybe_hint(included).maybe_hint(near)
    }
}

pub(super) fn refused(r: &Row, span: Span) -> Diagnostic {
    match r.class {
        Class::Refused => {
            Diagnostic::new(Code::Refused, span, format!("'{}' would change the traced system", r.name)).hint(r.help)
        }
        _ => Diagnostic::new(Code::Unsupported, span, format!("'{}' is not in this version", r.name)).hint(r.help),
    }
}
