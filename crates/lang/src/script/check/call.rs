//! Calls: what the table says of their arguments, and what is special about some.

use super::super::ast::{self, Kind as Written};
use super::super::config::stack_mode;
use super::super::ir::{Expr, Kind, What};
use super::super::table::{self, Class, Param, Row, Want};
use super::super::types::{Space, Type};
use super::Checker;
use super::expr::{make, number};
use super::leaf::refused;
use crate::diag::{Code, Diagnostic, Span, quote};
use crate::tokens::Result;

impl Checker<'_> {
    /// A call that has a value.
    pub(super) fn call(&mut self, name: &str, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let Some(r) = table::row(name) else {
            let rows = table::ROWS.iter().filter(|r| !matches!(r.class, Class::Later | Class::Refused)).map(|r| r.name);
            let near = self.near("", name, rows.chain(self.script.macros.iter().map(|m| m.name.as_str())));
            let e = Diagnostic::new(Code::Name, span, format!("no function is called {}", quote(name)));
            return Err(e.hint("a function of your own is a macro: macro name($x) { … }").maybe_hint(near));
        };
        self.count(r, list, span)?;
        match r.class {
            Class::Later | Class::Refused => return Err(refused(r, span)),
            Class::Aggregation => {
                let e = Diagnostic::new(Code::Place, span, format!("'{name}' collects in a map"));
                return Err(e.hint(format!("write @name = {}", r.signature())));
            }
            Class::Statement => {
                let e = Diagnostic::new(Code::Place, span, format!("'{name}' has no value"));
                return Err(e.hint("it is a statement: put it on a line of its own"));
            }
            Class::Value => return self.value_call(r, list, span),
            Class::Function => {}
        }
        match name {
            "delete" => self.delete(list, span),
            "has_key" => {
                let (map, key) = self.map_and_key(&list[0], &list[1], span)?;
                Ok(make(Kind::HasKey(map, key), Type::Bool))
            }
            "find" => self.find(list, span),
            "len" => self.length(list, span),
            "getopt" => self.getopt(list, span),
            "str" => self.str(list),
            "buf" => self.buf(list, span),
            "ntop" => self.ntop(list, span),
            "macaddr" => {
                let x = self.value(&list[0])?;
                let bytes = self.bytes_of(x, 6, span)?;
                Ok(make(Kind::Call("macaddr", vec![bytes]), r.ty(0)))
            }
            "strcap" => {
                let x = self.value(&list[0])?;
                match x.ty {
                    Type::Str(n) => Ok(number(n.into())),
                    Type::Array(_, n) => Ok(number(n)),
                    _ => Err(self.wrong(r, "text", &x.ty, list[0].span)),
                }
            }
            "pton" => self.pton(list),
            "kaddr" => self.kaddr(r, list, span),
            "cgroupid" => self.cgroupid(r, list, span),
            "uaddr" => self.uaddr(list, span),
            "reg" => {
                let register = word(&list[0])?;
                self.leaf(What::Register(register), Type::UINT, span)
            }
            "strftime" => {
                let format = word(&list[0])?;
                let ns = self.int_of(&list[1])?;
                Ok(make(Kind::Call("strftime", vec![make(Kind::Text(format.into_bytes()), Type::Str(0)), ns]), r.ty(0)))
            }
            _ => self.plain(r, list),
        }
    }

    /// The address of a symbol of the kernel.
    fn kaddr(&mut self, r: &table::Row, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let symbol = self.symbol(&list[0])?;
        let address = self.world.kernel_symbol(&symbol).ok_or_else(|| {
            let e = Diagnostic::new(Code::Name, span, format!("no symbol of the kernel is {}", quote(&symbol)));
            e.hint("root finds its functions, and its data where it was built with CONFIG_KALLSYMS_ALL")
        })?;
        Ok(make(Kind::Const(address as i64, false), r.ty(0)))
    }

    /// The number of a control group.
    fn cgroupid(&mut self, r: &table::Row, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let path = self.symbol(&list[0])?;
        let id = self.world.cgroup(&path).ok_or_else(|| {
            let message = format!("{} is no directory of a control group", quote(&path));
            let e = Diagnostic::new(Code::Name, span, message);
            e.hint("for instance cgroupid(\"/sys/fs/cgroup/system.slice\")")
        })?;
        Ok(make(Kind::Const(id as i64, false), r.ty(0)))
    }

    /// The address of a symbol in the file of the probes.
    fn uaddr(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let symbol = self.symbol(&list[0])?;
        let mut size = None;
        for p in self.points {
            let found = self.world.symbol(p, &symbol).ok_or_else(|| {
                let message = format!("the address of {} is not known at '{}'", quote(&symbol), p.name());
                let e = Diagnostic::new(Code::Name, span, message);
                e.hint("it is at uprobe and usdt probes of one place, in whose file the symbol is")
            })?;
            size = size.or(Some(found));
        }
        let of = size.filter(|n| matches!(n, 1 | 2 | 4)).unwrap_or(8) as u8;
        let ty = Type::Pointer(Box::new(Type::int(of, false)), Space::User);
        self.leaf(What::Address(Space::User, symbol), ty, span)
    }

    /// The name of a symbol: a string, or a parameter as one.
    fn symbol(&mut self, e: &ast::Expr) -> Result<String> {
        match (&e.kind, self.value(e)?.kind) {
            (Written::Call(..), Kind::Text(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => word(e),
        }
    }

    /// As many arguments as the row takes.
    pub(super) fn count(&self, r: &Row, list: &[ast::Expr], span: Span) -> Result<()> {
        if matches!(r.class, Class::Later | Class::Refused) {
            return Ok(());
        }
        let least = r.params().filter(|p| !p.optional && !p.many).count();
        let most = if r.params().any(|p| p.many) { usize::MAX } else { r.params().count() };
        if (least..=most).contains(&list.len()) {
            return Ok(());
        }
        let n = list.len();
        let given = if n == 1 { "1 argument is".to_owned() } else { format!("{n} arguments are") };
        let wants = match (least, most) {
            (0, 0) => "none".to_owned(),
            (a, usize::MAX) => format!("at least {a}"),
            (a, b) if a == b => a.to_string(),
            (a, b) => format!("{a} to {b}"),
        };
        let e = Diagnostic::new(Code::Call, span, format!("'{}' takes {wants}, {given} given", r.name));
        Err(e.hint(format!("write {}", r.signature())))
    }

    pub(super) fn wrong(&self, r: &Row, want: &str, is: &Type, span: Span) -> Diagnostic {
        let what = if want == "text" { "a string" } else { "a number" };
        let e = Diagnostic::new(Code::Call, span, format!("'{}' takes {what} here, not {}", r.name, is.kind()));
        match (want, is) {
            ("text", Type::Pointer(..)) => e.hint("str() reads the string at an address"),
            _ => e.hint(format!("write {}", r.signature())),
        }
    }

    /// An argument as the table wants it.
    pub(super) fn argument(&mut self, r: &Row, p: &Param, e: &ast::Expr) -> Result<Expr> {
        let x = self.value(e)?;
        match p.want {
            Want::Int if x.ty.as_int().is_none() => Err(self.wrong(r, "int", &x.ty, e.span)),
            Want::Text if matches!(&x.ty, Type::Pointer(of, _) if **of == Type::int(1, true)) => self.text_at(x, None),
            Want::Text if !x.ty.is_text() => Err(self.wrong(r, "text", &x.ty, e.span)),
            _ => Ok(x),
        }
    }

    /// A function that has its arguments, and nothing special.
    fn plain(&mut self, r: &'static Row, list: &[ast::Expr]) -> Result<Expr> {
        let args = r.params().zip(list).map(|(p, e)| self.argument(r, &p, e)).collect::<Result<Vec<_>>>()?;
        let ty = match r.name {
            "bswap" => {
                let size = args[0].ty.as_int().map_or(8, |c| c.size);
                Type::int(size, false)
            }
            "kptr" | "uptr" => {
                let space = if r.name == "kptr" { Space::Kernel } else { Space::User };
                let of = match &args[0].ty {
                    Type::Pointer(of, _) => of.clone(),
                    _ => Box::new(Type::None),
                };
                let [x] = <[Expr; 1]>::try_from(args).unwrap_or_else(|_| [number(0)]);
                return Ok(make(x.kind, Type::Pointer(of, space)));
            }
            "ksym" | "usym" => {
                self.symbols.push(if r.name == "ksym" { Space::Kernel } else { Space::User });
                let ty = r.ty(0);
                return Ok(make(Kind::Call(r.name, args), ty));
            }
            _ => r.ty(self.config.max_strlen),
        };
        Ok(make(Kind::Call(r.name, args), ty))
    }

    /// `pid()`, `nsecs(boot)`, `kstack(perf, 3)`
    pub(super) fn value_call(&mut self, r: &'static Row, list: &[ast::Expr], span: Span) -> Result<Expr> {
        if let Type::Stack(space, _, most) = r.ty(0) {
            let (mut mode, mut limit) = (self.config.stack_mode, most);
            for e in list {
                match &e.kind {
                    Written::Name(n) if stack_mode(n).is_some() => mode = stack_mode(n).unwrap_or_default(),
                    _ => limit = self.literal(e, 1, most.into())? as u32,
                }
            }
            // Stacks of this many frames are other stacks.
            let kind = (limit != most).then(|| limit.to_string());
            let mut x = self.builtin(r, kind, span)?;
            x.ty = Type::Stack(space, mode, limit);
            return Ok(x);
        }
        let Some(e) = list.first() else { return self.builtin(r, None, span) };
        let kinds: &[&str] = match r.name {
            "nsecs" => &["monotonic", "boot", "tai", "sw_tai"],
            _ => &["curr_ns", "init"],
        };
        match &e.kind {
            Written::Name(n) if n == kinds[0] => self.builtin(r, None, span),
            Written::Name(n) if kinds.contains(&n.as_str()) => self.builtin(r, Some(n.clone()), span),
            _ => {
                let e = Diagnostic::new(Code::Call, e.span, format!("'{}' has no such kind", r.name));
                Err(e.hint(format!("it has {}", kinds.join(", "))))
            }
        }
    }

    /// A number that is known before the script runs.
    pub(super) fn literal(&mut self, e: &ast::Expr, least: i64, most: i64) -> Result<i64> {
        match self.int_of(e)?.kind {
            Kind::Const(v, _) if (least..=most).contains(&v) => Ok(v),
            Kind::Const(v, _) => {
                let e = Diagnostic::new(Code::Call, e.span, format!("{v} is not a number from {least} to {most}"));
                Err(e.hint("choose another"))
            }
            _ => {
                let e = Diagnostic::new(Code::Call, e.span, "the value of this is not known before the script runs");
                Err(e.hint("write a number, or a parameter such as $1"))
            }
        }
    }

    /// `getopt("name", default)`: what the command line says, with the default's type.
    fn getopt(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let name = word(&list[0])?;
        let given = self.params.named.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let default = list.get(1).map(|e| self.value(e)).transpose()?;
        let wrong = |what: &str| {
            let shown = quote(given.as_deref().unwrap_or_default());
            Diagnostic::new(Code::Parameter, span, format!("--{name} is {shown}, not {what}"))
        };
        let ty = default.as_ref().map_or(Type::Bool, |d| d.ty.clone());
        match (&given, default) {
            (None, Some(d)) if matches!(d.kind, Kind::Const(..) | Kind::Text(_)) => Ok(d),
            (_, Some(d)) if !matches!(d.kind, Kind::Const(..) | Kind::Text(_)) => {
                Err(Diagnostic::new(Code::Call, span, "the default is not known before the script runs")
                    .hint("write a literal"))
            }
            (None, _) => Ok(make(Kind::Const(0, false), Type::Bool)),
            (Some(v), _) if ty == Type::Bool => match v.as_str() {
                "" | "1" | "true" => Ok(make(Kind::Const(1, false), Type::Bool)),
                "0" | "false" => Ok(make(Kind::Const(0, false), Type::Bool)),
                _ => Err(wrong("true or false")),
            },
            (Some(v), _) if ty.is_text() => Ok(make(Kind::Text(v.clone().into_bytes()), Type::Str(v.len() as u32))),
            (Some(v), _) => match crate::lex::whole_number(v) {
                Some(n) => Ok(make(Kind::Const(n, false), Type::INT)),
                None => Err(wrong("a number")),
            },
        }
    }
}

/// A string that is written in the script.
pub(super) fn word(e: &ast::Expr) -> Result<String> {
    match &e.kind {
        Written::Str(s) => Ok(String::from_utf8_lossy(s).into_owned()),
        _ => Err(Diagnostic::new(Code::Call, e.span, "a string in quotes is needed here")
            .hint("its value must be known before the script runs")),
    }
}
