//! What statements assign, and how they are left.

use super::super::ir::{Expr, Kind, Place, Stmt};
use super::super::types::Type;
use std::collections::BTreeSet;

/// Whether a function may return before the end of its statements.
pub(super) fn returns_early(list: &[Stmt]) -> bool {
    fn count(list: &[Stmt]) -> usize {
        let of = |s: &Stmt| match s {
            Stmt::Return => 1,
            Stmt::If(arms, rest) => arms.iter().map(|a| count(&a.1)).sum::<usize>() + count(rest),
            Stmt::While(_, list, _)
            | Stmt::Repeat(_, list)
            | Stmt::Block(list)
            | Stmt::Range(_, _, _, list, _)
            | Stmt::Each(_, _, list) => count(list),
            _ => 0,
        };
        list.iter().map(of).sum()
    }
    fn ends(list: &[Stmt]) -> usize {
        match list.last() {
            Some(Stmt::Return) => 1,
            Some(Stmt::Block(list)) => ends(list),
            _ => 0,
        }
    }
    count(list) > ends(list)
}

/// The variables that statements assign to.
pub(super) fn assigned(list: &[Stmt], to: &mut BTreeSet<usize>) {
    for s in list {
        match s {
            Stmt::Set(Place::Var(var), _) | Stmt::Change(Place::Var(var), ..) => _ = to.insert(*var),
            Stmt::If(arms, rest) => {
                arms.iter().for_each(|(_, list)| assigned(list, to));
                assigned(rest, to);
            }
            Stmt::While(_, list, _) | Stmt::Repeat(_, list) | Stmt::Block(list) | Stmt::Function(list) => {
                assigned(list, to)
            }
            Stmt::Range(var, _, _, list, _) | Stmt::Each(var, _, list) => {
                to.insert(*var);
                assigned(list, to);
            }
            _ => {}
        }
    }
}

/// Whether a loop with this body is left by `break`, and whether one of its rounds is by `continue`.
pub(super) fn jumps(body: &[Stmt]) -> (bool, bool) {
    let mut all = (false, false);
    let mut add = |(a, b)| all = (all.0 | a, all.1 | b);
    for s in body {
        match s {
            Stmt::Break => add((true, false)),
            Stmt::Continue => add((false, true)),
            Stmt::Block(list) => add(jumps(list)),
            Stmt::If(arms, rest) => arms.iter().map(|a| &a.1).chain([rest]).for_each(|list| add(jumps(list))),
            _ => {}
        }
    }
    all
}

/// `break` of a loop that is written out: it says so, and leaves its round.
pub(super) fn mark_breaks(body: &mut Vec<Stmt>, flag: usize) {
    let set = || Stmt::Set(Place::Var(flag), Expr { kind: Kind::Const(1, false), ty: Type::INT });
    let mut i = 0;
    while i < body.len() {
        match &mut body[i] {
            Stmt::Break => {
                body.insert(i, set());
                i += 1;
            }
            Stmt::Block(list) => mark_breaks(list, flag),
            Stmt::If(arms, rest) => {
                arms.iter_mut().for_each(|(_, list)| mark_breaks(list, flag));
                mark_breaks(rest, flag);
            }
            _ => {}
        }
        i += 1;
    }
}
