//! Calls about maps: keys, lengths, and what is collected.

use super::super::ast::{self, Kind as Written};
use super::super::ir::{Expr, Kind, Stmt};
use super::super::table::{self, Param, Want};
use super::super::types::{Aggregate, MAX_BUCKETS, Powers, Type};
use super::Checker;
use super::expr::{make, number};
use crate::diag::{Code, Diagnostic, Span};
use crate::tokens::Result;

impl Checker<'_> {
    pub(super) fn map_and_key(&mut self, map: &ast::Expr, key: &ast::Expr, span: Span) -> Result<(usize, Vec<Expr>)> {
        let Written::Map(name, keys) = &map.kind else { return Err(not_a_map(map.span)) };
        if !keys.is_empty() {
            let e = Diagnostic::new(Code::Call, map.span, "the key is an argument of its own");
            return Err(e.hint(format!("write @{name} and the key behind a comma")));
        }
        let key = self.key(name, std::slice::from_ref(key), span)?;
        Ok((self.map_index(name), key))
    }

    pub(super) fn delete(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
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

    pub(super) fn find(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
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

    pub(super) fn length(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
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
}

pub(super) fn not_a_map(span: Span) -> Diagnostic {
    Diagnostic::new(Code::Call, span, "a map is needed here").hint("maps are written @name")
}
