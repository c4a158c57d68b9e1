//! Loops: what is known in any of their rounds, and rounds one behind the other.

use super::super::ir::{Cond, Expr, Int, Kind, Place, Stmt};
use super::super::types::Type;
use super::statements::{assigned, jumps, mark_breaks};
use super::{MOST_ROUNDS, Moves};
use crate::ir::Cmp;
use std::collections::BTreeSet;

impl Moves<'_> {
    /// A loop, which is written out where that moves all of its memory, and nothing else does.
    pub(super) fn rounds(&mut self, s: &mut Stmt) {
        let (written, before, outside) = (s.clone(), self.now.clone(), self.writes_out);
        self.any_round(s);
        if self.now.left == before.left || self.lookable == 0 {
            return;
        }
        let left = before.left;
        let as_it_is = std::mem::replace(&mut self.now, before);
        self.writes_out = true;
        let out = self.written_out(written);
        self.writes_out = outside;
        match out {
            Some(out) if self.now.left == left && self.lookable > 0 => *s = out,
            _ => self.now = as_it_is,
        }
    }

    /// A loop, whatever its round.
    fn any_round(&mut self, s: &mut Stmt) {
        let (mut vars, mut one) = (BTreeSet::new(), None);
        let body: &mut Vec<Stmt> = match s {
            Stmt::While(_, body, _) | Stmt::Repeat(_, body) => body,
            Stmt::Each(var, _, body) => {
                one = Some(*var);
                body
            }
            Stmt::Range(var, a, b, body, _) => {
                self.int(a);
                self.int(b);
                one = Some(*var);
                body
            }
            _ => return,
        };
        assigned(body, &mut vars);
        vars.extend(self.stepped);
        vars.retain(|var| self.now.known.is_set(*var));
        vars.extend(one);
        self.now.known.vary(&vars);
        if let Stmt::While(c, ..) = s {
            self.cond(c);
        }
        if let Stmt::While(_, body, _)
        | Stmt::Repeat(_, body)
        | Stmt::Each(_, _, body)
        | Stmt::Range(_, _, _, body, _) = s
        {
            self.stmts(body);
        }
        self.now.known.vary(&vars);
    }

    /// The rounds of a loop, one behind the other. None: nobody knows how many there are, or there are too many.
    fn written_out(&mut self, s: Stmt) -> Option<Stmt> {
        let (body, condition, mut values) = match s {
            Stmt::Repeat(n, body) => (body, None, Some((0..i64::from(n), None))),
            Stmt::Range(var, a, b, body, _) => {
                let (Int::Const(a), Int::Const(b)) = (self.now.known.pure(&a)?, self.now.known.pure(&b)?) else {
                    return None;
                };
                (body, None, Some((a..b, Some(var))))
            }
            Stmt::While(c, body, _) => (body, Some(c), None),
            _ => return None,
        };
        let (breaks, continues) = jumps(&body);
        if continues {
            return None;
        }
        let blocks = self.now.blocks;
        let flag = self.first_flag + self.flags;
        self.flags += usize::from(breaks);
        let number = |v: i64| Expr { kind: Kind::Const(v, false), ty: Type::INT };
        let mut out = Vec::new();
        if breaks {
            out.push(Stmt::Set(Place::Var(flag), number(0)));
        }
        for _ in 0..=MOST_ROUNDS {
            let mut round = Vec::new();
            let mut goes_on = true;
            if let Some(c) = &condition {
                goes_on = self.now.known.decided(c)?;
                let mut c = c.clone();
                self.cond(&mut c);
                round.push(Stmt::Eval(Expr { kind: Kind::Int(c.into()), ty: Type::Bool }));
            }
            if let Some((values, var)) = &mut values {
                let value = values.next();
                goes_on = value.is_some();
                if let (Some(var), Some(v)) = (*var, value) {
                    round.push(Stmt::Set(Place::Var(var), number(v)));
                    self.now.known.set(&Place::Var(var), Some(Int::Const(v)));
                }
            }
            if goes_on {
                let mut body = body.clone();
                self.stmts(&mut body);
                if breaks {
                    mark_breaks(&mut body, flag);
                }
                round.push(Stmt::Repeat(1, body));
            }
            if breaks {
                let flag = Int::Value(Box::new(Expr { kind: Kind::Var(flag), ty: Type::INT }));
                round = vec![Stmt::If(vec![(Cond::Compare(Cmp::Eq, flag, Int::Const(0)), round)], Vec::new())];
            }
            out.extend(round);
            // A block that is a value may leave the loop from within an expression.
            if self.lookable == 0 || self.now.blocks != blocks {
                return None;
            }
            if !goes_on {
                if breaks {
                    let mut vars = BTreeSet::new();
                    assigned(&body, &mut vars);
                    vars.extend(self.stepped);
                    self.now.known.vary(&vars);
                }
                return Some(Stmt::Block(out));
            }
        }
        None
    }
}
