//! Calls that are statements.

use super::super::ast::{self, Kind as Written};
use super::super::ir::{Expr, Kind, Speculate, Stmt, Writing};
use super::super::table;
use super::super::types::Type;
use super::Checker;
use super::call::word;
use super::collect::not_a_map;
use super::expr::make;
use crate::diag::{Code, Diagnostic, Span};
use crate::tokens::Result;

impl Checker<'_> {
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
}
