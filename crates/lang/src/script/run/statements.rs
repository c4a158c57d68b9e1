//! Statements of a clause, one after the other, and its loops.

use super::Fault;
use super::exec::{Next, Result, Run, Stop};
use crate::diag::Span;
use crate::ir::Reader;
use crate::script::ir::{Place, Stmt};
use crate::script::maps::{self, Held};
use crate::script::types::Type;
use crate::script::value::Value;

impl Run<'_> {
    pub(super) fn stmts(&mut self, list: &[Stmt]) -> Result<Next> {
        for s in list {
            match self.stmt(s) {
                Ok(Next::Go) => {}
                Ok(next) | Err(Stop::Leave(next)) => return Ok(next),
                Err(unknown) => return Err(unknown),
            }
        }
        Ok(Next::Go)
    }

    /// One more round of a loop. None: the loop ends; with whether the run does.
    fn round(&mut self, body: &[Stmt], span: Span) -> Result<Option<Next>> {
        if self.rounds == 0 {
            self.fault(Fault::TooManyRounds, span);
            return Ok(Some(Next::Return));
        }
        self.rounds -= 1;
        Ok(match self.stmts(body)? {
            Next::Go | Next::Continue => None,
            Next::Break => Some(Next::Go),
            Next::Return => Some(Next::Return),
        })
    }

    fn stmt(&mut self, s: &Stmt) -> Result<Next> {
        match s {
            Stmt::Eval(e) => drop(self.any(e)?),
            Stmt::Set(Place::Var(i), e) => self.vars[*i] = Some(self.any(e)?),
            Stmt::Set(Place::Map(m, key), e) => {
                let v = self.any(e)?;
                self.with_key(key, |run, key| match run.stores[*m].at(key, || Held::Value(Value::Int(0))) {
                    Some(held) => *held = Held::Value(v),
                    None => run.is_full(),
                })?;
            }
            Stmt::Change(place, op, e) => {
                let amount = e.eval(self)?;
                if let Some(at) = op.counted(amount) {
                    self.by_zero(at);
                }
                self.change(place, |old| op.apply(old, amount))?;
            }
            Stmt::Collect(m, key, aggregate, e, weight) => {
                let v = e.as_ref().map_or(Ok(0), |e| e.eval(self))?;
                let weight = weight.as_ref().map_or(Ok(1), |e| e.eval(self))?;
                let weight = u64::try_from(weight).unwrap_or(0);
                let map = &self.program.maps[*m];
                // What the map has become over all clauses, such as signed, is what counts.
                let aggregate = if let Type::Aggregate(a) = map.value { a } else { *aggregate };
                self.with_key(key, |run, key| match run.stores[*m].at(key, || Held::new(&map.value)) {
                    Some(held) => held.collect(aggregate, v, weight),
                    None => run.is_full(),
                })?;
            }
            Stmt::If(arms, otherwise) => {
                for (c, body) in arms {
                    if c.eval(self)? {
                        return self.stmts(body);
                    }
                }
                return self.stmts(otherwise);
            }
            Stmt::While(c, body, span) => {
                while c.eval(self)? {
                    if let Some(next) = self.round(body, *span)? {
                        return Ok(next);
                    }
                }
            }
            Stmt::Repeat(n, body) => {
                for _ in 0..*n {
                    if let Some(next) = self.round(body, self.clause.span)? {
                        return Ok(next);
                    }
                }
            }
            Stmt::Range(var, from, to, body, span) => {
                let (from, to) = (from.eval(self)?, to.eval(self)?);
                for i in from..to {
                    self.vars[*var] = Some(Value::Int(i));
                    if let Some(next) = self.round(body, *span)? {
                        return Ok(next);
                    }
                }
            }
            Stmt::Each(var, m, body) => return self.each(*var, *m, body),
            Stmt::Block(body) => return self.stmts(body),
            Stmt::Function(body) => {
                let next = self.stmts(body)?;
                // Of the whole clause: by exit(), or because there were too many rounds.
                if next == Next::Return && (self.exit.is_some() || self.rounds == 0) {
                    return Ok(next);
                }
            }
            Stmt::Break => return Ok(Next::Break),
            Stmt::Continue => return Ok(Next::Continue),
            Stmt::Return => return Ok(Next::Return),
            Stmt::Exit(code) => {
                let code = code.as_ref().map_or(Ok(0), |e| e.eval(self))?;
                self.exit.get_or_insert(code as i32);
                return Ok(Next::Return);
            }
            other => self.print(other)?,
        }
        Ok(Next::Go)
    }

    /// A round for each pair that the map has at the start.
    pub(super) fn each(&mut self, var: usize, m: usize, body: &[Stmt]) -> Result<Next> {
        let map = &self.program.maps[m];
        let value = if let Type::Aggregate(a) = &map.value { a.value() } else { map.value.clone() };
        let pair = |(key, held): (&[u8], &Held)| {
            let mut key = maps::parts(key, &map.key);
            let key = if key.len() == 1 { key.remove(0) } else { Value::Tuple(key) };
            Value::Tuple(vec![key, held.read(&value)])
        };
        let pairs: Vec<Value> = self.stores[m].pairs().into_iter().map(pair).collect();
        for pair in pairs {
            self.vars[var] = Some(pair);
            if let Some(next) = self.round(body, self.clause.span)? {
                return Ok(next);
            }
        }
        Ok(Next::Go)
    }
}
