//! Calls: what the table says of their arguments, and what is special about some.

use super::super::ast::{self, Kind as Written};
use super::super::config::stack_mode;
use super::super::format::{Format, MAX_ARGS, Spec};
use super::super::ir::{self, Column, Expr, Kind, Speculate, Stmt, What, Writing};
use super::super::table::{self, Class, Param, Row, Want};
use super::super::types::{Aggregate, MAX_BUCKETS, Powers, Space, Type};
use super::Checker;
use super::expr::{make, number, unknown};
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

    /// The bytes of an address of the Internet that is written out.
    fn pton(&mut self, list: &[ast::Expr]) -> Result<Expr> {
        let text = word(&list[0])?;
        let bytes = internet(&text).ok_or_else(|| {
            let e = Diagnostic::new(
                Code::Call,
                list[0].span,
                format!("{} is not an address of the Internet", quote(&text)),
            );
            e.hint("for instance \"127.0.0.1\" or \"::1\"")
        })?;
        let n = bytes.len() as u64;
        Ok(make(Kind::Text(bytes), Type::Array(Box::new(Type::int(1, false)), n)))
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
    fn count(&self, r: &Row, list: &[ast::Expr], span: Span) -> Result<()> {
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

    fn wrong(&self, r: &Row, want: &str, is: &Type, span: Span) -> Diagnostic {
        let what = if want == "text" { "a string" } else { "a number" };
        let e = Diagnostic::new(Code::Call, span, format!("'{}' takes {what} here, not {}", r.name, is.kind()));
        match (want, is) {
            ("text", Type::Pointer(..)) => e.hint("str() reads the string at an address"),
            _ => e.hint(format!("write {}", r.signature())),
        }
    }

    /// An argument as the table wants it.
    fn argument(&mut self, r: &Row, p: &Param, e: &ast::Expr) -> Result<Expr> {
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
            // Stacks of so many frames are other stacks.
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
    fn literal(&mut self, e: &ast::Expr, least: i64, most: i64) -> Result<i64> {
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

    // Maps.

    fn map_and_key(&mut self, map: &ast::Expr, key: &ast::Expr, span: Span) -> Result<(usize, Vec<Expr>)> {
        let Written::Map(name, keys) = &map.kind else { return Err(not_a_map(map.span)) };
        if !keys.is_empty() {
            let e = Diagnostic::new(Code::Call, map.span, "the key is an argument of its own");
            return Err(e.hint(format!("write @{name} and the key behind a comma")));
        }
        let key = self.key(name, std::slice::from_ref(key), span)?;
        Ok((self.map_index(name), key))
    }

    fn delete(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let (map, key) = match list {
            [map, key] => self.map_and_key(map, key, span)?,
            _ => {
                let Written::Map(name, keys) = &list[0].kind else { return Err(not_a_map(list[0].span)) };
                let key = self.key(name, keys, list[0].span)?;
                (self.map_index(name), key)
            }
        };
        Ok(make(Kind::Delete(map, key), Type::Bool))
    }

    fn find(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let (map, key) = self.map_and_key(&list[0], &list[1], span)?;
        let (Written::Map(name, _), Written::Var(var)) = (&list[0].kind, &list[2].kind) else {
            let e = Diagnostic::new(Code::Call, list[2].span, "the value is put into a variable");
            return Err(e.hint("write $value"));
        };
        let ty = match self.map_slot(name).ty() {
            Type::Aggregate(a) => a.value(),
            t => t,
        };
        let index = self.assigned(var, list[2].span);
        let value = make(Kind::Nothing, ty);
        self.assign_var(var, index, &value, list[2].span)?;
        self.stepped.insert(index);
        Ok(make(Kind::Find(map, key, index), Type::Bool))
    }

    fn length(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        if let Written::Map(name, keys) = &list[0].kind
            && keys.is_empty()
        {
            self.map_info(name, span);
            return Ok(make(Kind::Length(self.map_index(name)), Type::UINT));
        }
        let x = self.value(&list[0])?;
        match &x.ty {
            Type::Array(_, n) => Ok(number(*n)),
            Type::Stack(..) => Ok(make(Kind::Call("frames", vec![x]), Type::UINT)),
            t if t.is_text() => Ok(make(Kind::Call("strlen", vec![x]), Type::UINT)),
            t => {
                let e = Diagnostic::new(Code::Call, list[0].span, format!("a value of type {t} has no length"));
                Err(e.hint("maps, strings, arrays and stacks have"))
            }
        }
    }

    /// `@m[k] = count()` …
    pub(super) fn collect(
        &mut self,
        map: &str,
        keys: &[ast::Expr],
        name: &str,
        list: &[ast::Expr],
        at: Span,
        span: Span,
    ) -> Result<Stmt> {
        let Some(r) = table::row(name) else { return Err(self.unknown_name(name, span)) };
        self.count(r, list, span)?;
        let key = self.key(map, keys, at)?;
        let value = match list.first() {
            Some(e) => {
                Some(self.argument(r, &Param { name: "n", want: Want::Int, optional: false, many: false }, e)?)
            }
            None => None,
        };
        let flexible = value.as_ref().is_some_and(|v| self.flexible(v).is_some());
        let signed = value.as_ref().and_then(|v| v.ty.as_int()).is_some_and(|c| c.signed) && !flexible;
        let aggregate = match name {
            "count" => Aggregate::Count,
            "sum" => Aggregate::Sum { signed },
            "min" => Aggregate::Min { signed },
            "max" => Aggregate::Max { signed },
            "avg" => Aggregate::Avg { signed },
            "stats" => Aggregate::Stats { signed },
            "stddev" => Aggregate::Stddev { signed },
            "hist" => Aggregate::Hist { bits: list.get(1).map_or(Ok(0), |e| self.literal(e, 0, 5))? as u8 },
            "llquantize" => self.llquantize(list, span)?,
            _ => self.lhist(list, span)?,
        };
        let weight = r.params().position(|p| p.name == "weight").and_then(|i| list.get(i));
        let weight = weight.map(|e| self.int_of(e)).transpose()?;
        self.assign_map(map, &Type::Aggregate(aggregate), None, at)?;
        Ok(Stmt::Collect(self.map_index(map), key, aggregate, value.map(Expr::int), weight.map(Expr::int)))
    }

    fn llquantize(&mut self, list: &[ast::Expr], span: Span) -> Result<Aggregate> {
        let mut n = [0; 4];
        for (v, e) in n.iter_mut().zip(&list[1..]) {
            *v = self.literal(e, 0, i64::from(u16::MAX))?;
        }
        let [factor, from, to, steps] = n;
        Powers::new(factor, from, to, steps).map(Aggregate::Llquantize).ok_or_else(|| {
            let message = format!("no buckets from {factor}^{from} to {factor}^{to} in {steps} steps each");
            let e = Diagnostic::new(Code::Call, span, message);
            let hint = "steps are a multiple of the factor, and divide its powers, as in llquantize(n, 10, 0, 6, 20)";
            e.hint(format!("{hint}; at most {MAX_BUCKETS} buckets are allowed"))
        })
    }

    fn lhist(&mut self, list: &[ast::Expr], span: Span) -> Result<Aggregate> {
        let mut n = [0; 3];
        for (v, e) in n.iter_mut().zip(&list[1..]) {
            *v = self.literal(e, i64::MIN, i64::MAX)?;
        }
        let [min, max, step] = n;
        let wrong = |what: String| Err(Diagnostic::new(Code::Call, span, what).hint("write lhist(n, min, max, step)"));
        if step < 1 {
            return wrong(format!("steps of {step}"));
        }
        match max.checked_sub(min) {
            Some(width) if width > 0 && width / step <= MAX_BUCKETS as i64 => Ok(Aggregate::Lhist { min, max, step }),
            Some(width) if width > 0 => wrong(format!("{} steps; at most {MAX_BUCKETS} are allowed", width / step)),
            _ => wrong(format!("no steps from {min} to {max}")),
        }
    }

    // Strings and bytes.

    fn str(&mut self, list: &[ast::Expr]) -> Result<Expr> {
        // `str($1)` is a string also where the parameter looks like a number.
        if let Written::Param(n) = &list[0].kind {
            let text = n.checked_sub(1).and_then(|i| self.params.positional.get(i)).cloned();
            if text.is_none() {
                let w =
                    Diagnostic::warning(Code::Parameter, list[0].span, format!("'${n}' was not given and is empty"));
                self.warn(w.hint("parameters follow the script on the command line"));
            }
            let text = text.unwrap_or_default();
            return Ok(make(Kind::Text(text.clone().into_bytes()), Type::Str(text.len() as u32)));
        }
        let x = self.value(&list[0])?;
        let length = list.get(1).map(|e| self.int_of(e)).transpose()?;
        let fits =
            x.ty.is_text() || matches!(x.ty, Type::Pointer(..) | Type::Int(_) | Type::Array(..) | Type::Buffer(_));
        if !fits {
            let e = Diagnostic::new(Code::Call, list[0].span, format!("{} is no address of a string", x.ty));
            return Err(e.hint("str() reads the string at an address"));
        }
        if matches!(x.ty, Type::Array(..) | Type::Buffer(_)) {
            let max = self.config.max_strlen;
            return Ok(make(Kind::Call("text", vec![x]), Type::Str(max)));
        }
        self.text_at(x, length)
    }

    fn buf(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let x = self.value(&list[0])?;
        let max = self.config.max_strlen;
        match (&x.ty, list.get(1)) {
            (Type::Pointer(..) | Type::Int(_), Some(n)) => {
                let n = self.int_of(n)?;
                let most = if let Kind::Const(v, _) = n.kind { v.clamp(0, max.into()) as u32 } else { max };
                let space = match (&x.ty, &x.kind) {
                    (Type::Pointer(_, s), _) => *s,
                    (_, Kind::Leaf(i)) => self.space_of(*i),
                    _ => self.space(),
                };
                let space = number(u64::from(space == Space::User));
                Ok(make(Kind::Call("buf at", vec![x, n, space]), Type::Buffer(most)))
            }
            (Type::Pointer(..) | Type::Int(_), None) => {
                let e = Diagnostic::new(Code::Call, span, "how many bytes is not known");
                Err(e.hint("write buf(address, length)"))
            }
            (Type::Array(..) | Type::Str(_) | Type::Buffer(_), n) => {
                // Of a string, what is behind its end are zeros.
                let mut args = match n {
                    Some(n) => vec![self.int_of(n)?, number(if x.ty.is_text() { max.into() } else { 0 })],
                    None => vec![number(max.into()), number(0)],
                };
                args.insert(0, x);
                Ok(make(Kind::Call("buf", args), Type::Buffer(max)))
            }
            (t, _) => Err(Diagnostic::new(Code::Call, span, format!("a value of type {t} has no bytes to show"))),
        }
    }

    /// `n` bytes of a value: an array, or the memory at an address.
    fn bytes_of(&mut self, x: Expr, n: u64, span: Span) -> Result<Expr> {
        let bytes = Type::Array(Box::new(Type::int(1, false)), n);
        match &x.ty {
            Type::Array(..) | Type::Buffer(_) | Type::Str(_) => Ok(x),
            Type::Pointer(_, space) => {
                let space = *space;
                Ok(make(Kind::Load(Box::new(x.int()), space), bytes))
            }
            t => {
                let e = Diagnostic::new(Code::Call, span, format!("{n} bytes are needed here, not {}", t.kind()));
                Err(e.hint("pass an array, or an address"))
            }
        }
    }

    fn ntop(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let last = self.value(&list[list.len() - 1])?;
        let family = match list {
            [family, _] => Some(self.int_of(family)?),
            _ => None,
        };
        let ty = Type::Str(45);
        let args = match (&last.ty, family) {
            (Type::Int(_), None) => vec![number(2), last],
            (Type::Int(_), Some(f)) => vec![f, last],
            (Type::Array(_, n), None) => vec![number(if *n == 16 { 10 } else { 2 }), last],
            (Type::Array(..) | Type::Buffer(_) | Type::Str(_), Some(f)) => vec![f, last],
            (Type::Pointer(..), Some(f)) => {
                let bytes = self.bytes_of(last, if matches!(f.kind, Kind::Const(10, _)) { 16 } else { 4 }, span)?;
                vec![f, bytes]
            }
            (t, _) => {
                let e = Diagnostic::new(Code::Call, span, format!("a value of type {t} is no address of the Internet"));
                return Err(e.hint("a number, or 4 or 16 bytes are"));
            }
        };
        Ok(make(Kind::Call("ntop", args), ty))
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

    // Statements.

    pub(super) fn statement_call(&mut self, name: &str, list: &[ast::Expr], span: Span) -> Result<Stmt> {
        let Some(r) = table::row(name) else { return Err(self.unknown_name(name, span)) };
        self.count(r, list, span)?;
        Ok(match name {
            "printf" => self.write(Writing::Printf, list, span)?,
            "errorf" => self.write(Writing::Error, list, span)?,
            "warnf" => self.write(Writing::Warning, list, span)?,
            "assert" => {
                let fails = self.truth_of(&list[0])?.negated();
                let what = &list[1..];
                let format = if what.is_empty() { "assertion failed\n" } else { "assertion failed: %s\n" };
                let format = crate::ast::node(Written::Str(format.into()), span, 0)?;
                let says = self.write(Writing::Error, &[&[format], what].concat(), span)?;
                let ends = Stmt::Exit(Some(crate::script::ir::Int::Const(1)));
                Stmt::If(vec![(fails, vec![says, ends])], Vec::new())
            }
            "cat" => self.write(Writing::Cat, list, span)?,
            "system" if !self.params.may_run => {
                let e = Diagnostic::new(Code::Refused, span, "'system' runs a command, which scripts may not");
                return Err(e.hint("allow it with --unsafe"));
            }
            "system" => self.write(Writing::System, list, span)?,
            "print" => self.print(list, span)?,
            "printa" => self.print_all(list, span)?,
            "unwatch" => Stmt::Unwatch(self.int_of(&list[0])?.int()),
            "speculate" | "commit" | "discard" => {
                let number = self.int_of(&list[0])?.int();
                Stmt::Speculate(
                    match name {
                        "speculate" => Speculate::Begin,
                        "commit" => Speculate::Commit,
                        _ => Speculate::Discard,
                    },
                    number,
                )
            }
            "clear" | "zero" => {
                let Written::Map(map, keys) = &list[0].kind else { return Err(not_a_map(list[0].span)) };
                if !keys.is_empty() {
                    let e = Diagnostic::new(Code::Call, list[0].span, format!("'{name}' is for a whole map"));
                    return Err(e.hint(format!("write {name}(@{map}), or delete(@{map}, key) for one key")));
                }
                self.map_info(map, list[0].span);
                let index = self.map_index(map);
                if name == "clear" { Stmt::Clear(index) } else { Stmt::Zero(index) }
            }
            "time" => Stmt::Time(list.first().map_or(Ok("%H:%M:%S\n".into()), word)?.into_bytes()),
            "join" => {
                let x = self.value(&list[0])?;
                let text = |t: &Type| t.is_text();
                let strings = |of: &Type| match of {
                    Type::None => true,
                    Type::Pointer(of, _) => **of == Type::int(1, true),
                    _ => false,
                };
                let (fits, array) = match &x.ty {
                    Type::Tuple(list) => (list.iter().all(text), None),
                    Type::Pointer(of, space) => (strings(of), Some(*space)),
                    t => (text(t), None),
                };
                if !fits {
                    let e = Diagnostic::new(
                        Code::Call,
                        list[0].span,
                        format!("'join' prints strings, not {}", x.ty.kind()),
                    );
                    return Err(e.hint("cast it: (char **)…"));
                }
                let separator = list.get(1).map_or(Ok(" ".into()), word)?;
                let x = match array {
                    Some(space) => make(Kind::Strings(Box::new(x.int()), space), Type::Tuple(Vec::new())),
                    None => x,
                };
                Stmt::Join(x, separator.into_bytes())
            }
            _ => Stmt::Exit(list.first().map(|e| self.int_of(e)).transpose()?.map(Expr::int)),
        })
    }

    fn print(&mut self, list: &[ast::Expr], span: Span) -> Result<Stmt> {
        let Written::Map(name, keys) = &list[0].kind else {
            if list.len() > 1 {
                let e = Diagnostic::new(Code::Call, span, "only maps are printed by number of keys");
                return Err(e.hint("write print(value)"));
            }
            let x = self.value(&list[0])?;
            return Ok(Stmt::Print(x));
        };
        let top = list.get(1).map(|e| self.int_of(e)).transpose()?.map(Expr::int);
        let div = list.get(2).map(|e| self.int_of(e)).transpose()?.map(Expr::int);
        if keys.is_empty() {
            self.map_info(name, list[0].span);
            return Ok(Stmt::PrintMap(self.map_index(name), top, div));
        }
        if top.is_some() {
            let e = Diagnostic::new(Code::Call, span, "one key of a map is printed alone");
            return Err(e.hint(format!("write print(@{name}[…]), or print(@{name}, 5) for the largest")));
        }
        let key = self.key(name, keys, list[0].span)?;
        Ok(Stmt::PrintKey(self.map_index(name), key))
    }

    /// Maps side by side.
    fn print_all(&mut self, list: &[ast::Expr], span: Span) -> Result<Stmt> {
        let (format, list) = match list {
            [ast::Expr { kind: Written::Str(text), span, .. }, rest @ ..] => (Some((text, *span)), rest),
            list => (None, list),
        };
        let mut maps = Vec::new();
        for e in list {
            let Written::Map(name, keys) = &e.kind else { return Err(not_a_map(e.span)) };
            if !keys.is_empty() {
                let e = Diagnostic::new(Code::Call, e.span, "whole maps are printed side by side");
                return Err(e.hint(format!("write printa(@{name}), or print(@{name}[…]) for one key")));
            }
            self.map_info(name, e.span);
            let shown = match self.map_slot(name).ty() {
                Type::Aggregate(a) => a.value(),
                ty => ty,
            };
            maps.push((self.map_index(name), name, self.map_key(name), shown, e.span));
        }
        let Some((_, first, keys, ..)) = maps.first() else {
            let e = Diagnostic::new(Code::Call, span, "no map to print");
            return Err(e.hint("write printa(@a, @b)"));
        };
        for (_, name, other, shown, at) in &maps {
            if other != keys {
                let e = Diagnostic::new(Code::Type, *at, format!("the keys of '@{name}' are not those of '@{first}'"));
                return Err(e.hint("maps side by side have the same keys"));
            }
            if *shown == Type::None {
                let holds = self.map_slot(name).ty();
                if holds == Type::None {
                    return Err(unknown(*at));
                }
                let e = Diagnostic::new(Code::Type, *at, format!("'@{name}' holds {holds}, which is no single value"));
                return Err(e.hint(format!("print(@{name}) shows it")));
            }
        }
        let (format, at) = match format {
            Some((text, at)) => (Format::parse(text, at)?, at),
            None => {
                let of_maps = maps.iter().map(|m| Spec::column(&m.3, true));
                (Format::columns(keys.iter().map(|ty| Spec::column(ty, false)).chain(of_maps)), span)
            }
        };
        let (mut of_key, mut of_maps) = (keys.iter().enumerate(), maps.iter().enumerate());
        let (mut args, mut types) = (Vec::new(), Vec::new());
        for spec in format.values() {
            let next = match spec.of_map {
                true => of_maps.next().map(|(i, m)| (Column::Map(i), m.3.clone())),
                false => of_key.next().map(|(i, ty)| (Column::Key(i), ty.clone())),
            };
            let Some((column, ty)) = next else {
                let has = format!(
                    "the format takes more than the maps have: {} and {}",
                    parts(keys.len()),
                    values(maps.len())
                );
                return Err(Diagnostic::new(Code::Format, at, has).hint("%@d is a map's value, %s a part of the key"));
            };
            if !spec.takes(&ty) {
                let d = Diagnostic::new(Code::Format, at, format!("'{}' does not show {}", spec.name(), ty.kind()));
                return Err(d.maybe_hint(Spec::instead(&ty).map(|s| format!("write {s}"))));
            }
            args.push(column);
            types.push(ty);
        }
        let numbers = maps.iter().map(|m| m.0).collect();
        let own = vec![false; types.len()];
        self.sites.push(ir::Site { span, format, args: types, own });
        Ok(Stmt::PrintAll(numbers, self.sites.len() - 1, args))
    }

    fn write(&mut self, writing: Writing, list: &[ast::Expr], span: Span) -> Result<Stmt> {
        let Written::Str(text) = &list[0].kind else {
            let e = Diagnostic::new(Code::Format, list[0].span, "the format is a string in quotes");
            return Err(e.hint("write printf(\"%s\\n\", …) for a value"));
        };
        let format = Format::parse(text, list[0].span)?;
        let args = list[1..].iter().map(|e| self.value(e)).collect::<Result<Vec<_>>>()?;
        let specs: Vec<Spec> = format.values().copied().collect();
        if specs.iter().any(|s| s.of_map) {
            let e = Diagnostic::new(Code::Format, list[0].span, "'%@' is a map's value, which only printa() takes");
            return Err(e.hint("write printa(\"…\", @map)"));
        }
        if specs.len() != args.len() {
            let are = if args.len() == 1 { "is" } else { "are" };
            let message = format!("the format takes {}, {} {are} given", values(specs.len()), args.len());
            let e = Diagnostic::new(Code::Format, span, message);
            return Err(e.hint(if specs.len() > args.len() {
                "%% is a percent sign"
            } else {
                "each value has its %d or %s"
            }));
        }
        if args.len() > MAX_ARGS {
            return Err(
                Diagnostic::new(Code::TooLarge, span, format!("more than {MAX_ARGS} values")).hint("write two of them")
            );
        }
        let mut out = Vec::new();
        for ((spec, x), e) in specs.iter().zip(args).zip(&list[1..]) {
            let pointer = matches!(&x.ty, Type::Pointer(of, _) if **of == Type::int(1, true));
            let x = if pointer && spec.name() == "%s" { self.text_at(x, None)? } else { x };
            if !spec.takes(&x.ty) {
                let d =
                    Diagnostic::new(Code::Format, e.span, format!("'{}' does not show {}", spec.name(), x.ty.kind()));
                let instead = Spec::instead(&x.ty).map(|s| format!("write {s}"));
                return Err(d.hint("print() shows any value").maybe_hint(instead));
            }
            out.push(x);
        }
        let own = out.iter().map(|x| matches!(x.kind, Kind::Text(_))).collect();
        self.sites.push(ir::Site { span, format, args: out.iter().map(|x| x.ty.clone()).collect(), own });
        Ok(Stmt::Write(writing, self.sites.len() - 1, out))
    }
}

fn parts(n: usize) -> String {
    format!("{n} part{} of a key", if n == 1 { "" } else { "s" })
}

fn values(n: usize) -> String {
    format!("{n} value{}", if n == 1 { "" } else { "s" })
}

fn not_a_map(span: Span) -> Diagnostic {
    Diagnostic::new(Code::Call, span, "a map is needed here").hint("maps are written @name")
}

/// A string that is written in the script.
fn word(e: &ast::Expr) -> Result<String> {
    match &e.kind {
        Written::Str(s) => Ok(String::from_utf8_lossy(s).into_owned()),
        _ => Err(Diagnostic::new(Code::Call, e.span, "a string in quotes is needed here")
            .hint("its value must be known before the script runs")),
    }
}

/// The bytes of an address of the Internet.
fn internet(text: &str) -> Option<Vec<u8>> {
    match text.parse::<std::net::IpAddr>().ok()? {
        std::net::IpAddr::V4(a) => Some(a.octets().to_vec()),
        std::net::IpAddr::V6(a) => Some(a.octets().to_vec()),
    }
}
