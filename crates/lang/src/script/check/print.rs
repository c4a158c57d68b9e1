//! Statements that print, and their formats.

use super::super::ast::{self, Kind as Written};
use super::super::format::{Format, MAX_ARGS, Spec};
use super::super::ir::{self, Column, Expr, Kind, Stmt, Writing};
use super::super::types::Type;
use super::Checker;
use super::collect::not_a_map;
use super::expr::unknown;
use crate::diag::{Code, Diagnostic, Span};
use crate::tokens::Result;

impl Checker<'_> {
    pub(super) fn print(&mut self, list: &[ast::Expr], span: Span) -> Result<Stmt> {
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
    pub(super) fn print_all(&mut self, list: &[ast::Expr], span: Span) -> Result<Stmt> {
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

    pub(super) fn write(&mut self, writing: Writing, list: &[ast::Expr], span: Span) -> Result<Stmt> {
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
