//! Macros: every use is replaced with a block that has the macro's statements, and its value.
//!
//! They are hygienic: a macro's own variables are not those of its user, and it sees maps that it is given only. Several macros of
//! one name differ in how many parameters they take, and of which kind. Functions are replaced too: their parameters are values, and they
//! see all maps.
//!
//! Invariant: what comes out is at most [`ast::MAX_HEIGHT`] high and has at most [`MAX_NODES`] nodes of macros.

use super::ast::{self, *};
use super::parse::by_name;
use crate::ast::{height, node};
use crate::diag::{Code, Diagnostic, Span};
use crate::parse::OF_THREADS;
use crate::tokens::Result;
use std::collections::BTreeMap;

/// So much may come out of macros.
pub const MAX_NODES: usize = 1 << 17;
/// How deep a tree, and the macros in it, are walked.
const MAX_DEPTH: usize = 2 * ast::MAX_HEIGHT;

/// Replaces all macros in the script's clauses.
pub(super) fn expand(script: &mut Script) -> Result<()> {
    if script.macros.is_empty() {
        return Ok(());
    }
    let macros = std::mem::take(&mut script.macros);
    let mut x = Expander { macros: by_name(&macros), within: Vec::new(), depth: 0, nodes: 0, unique: 0 };
    let outside = Scope::default();
    let result = script.clauses.iter_mut().try_for_each(|c| {
        c.predicate.iter_mut().try_for_each(|e| x.expr(e, &outside))?;
        x.stmts(&mut c.body, &outside)
    });
    script.macros = macros;
    result
}

/// What the names in a macro's body stand for.
#[derive(Default)]
struct Scope {
    /// Of a macro; what a variable that is no parameter has behind its name.
    unique: Option<usize>,
    vars: BTreeMap<String, String>,
    maps: BTreeMap<String, String>,
    exprs: BTreeMap<String, Expr>,
    /// Of a function: it sees all maps.
    is_function: bool,
    /// Of one that has a value: the variable for it, and its type if it is declared.
    value: Option<(String, Option<TypeName>)>,
}

impl Scope {
    fn var(&self, name: &mut String) {
        if let Some(n) = self.unique {
            *name = self.vars.get(name).cloned().unwrap_or_else(|| format!("{name}'{n}"));
        }
    }

    fn map(&self, name: &mut String, span: Span) -> Result<()> {
        match (self.unique, self.maps.get(name)) {
            (None, _) => {}
            _ if self.is_function => {}
            _ if name.starts_with(OF_THREADS) => {}
            (_, Some(given)) => name.clone_from(given),
            _ => {
                let e = Diagnostic::new(Code::Macro, span, format!("'@{name}' is not one of the macro's parameters"));
                return Err(e.hint(format!("add @{name} to its parameters, and pass the map where it is used")));
            }
        }
        Ok(())
    }
}

struct Expander<'m> {
    macros: BTreeMap<&'m str, Vec<&'m Macro>>,
    /// The macros that are being replaced.
    within: Vec<&'m str>,
    depth: usize,
    nodes: usize,
    unique: usize,
}

impl Expander<'_> {
    fn stmts(&mut self, list: &mut [Stmt], s: &Scope) -> Result<()> {
        list.iter_mut().try_for_each(|stmt| self.stmt(stmt, s))
    }

    fn stmt(&mut self, stmt: &mut Stmt, s: &Scope) -> Result<()> {
        let span = stmt.span;
        let below = match &mut stmt.kind {
            StmtKind::Expr(e) => {
                self.expr(e, s)?;
                e.height
            }
            StmtKind::Assign(a, _, b) => {
                self.expr(a, s)?;
                self.expr(b, s)?;
                a.height.max(b.height)
            }
            StmtKind::Let(name, ty, value) => {
                s.var(name);
                ty.iter_mut().try_for_each(|t| self.type_name(t, s))?;
                value.iter_mut().try_for_each(|e| self.expr(e, s))?;
                value.as_ref().map_or(0, |v| v.height).max(ty.as_ref().map_or(0, |t| t.height))
            }
            StmtKind::If(arms, otherwise) => {
                let mut most = 0;
                for (c, body) in arms {
                    self.expr(c, s)?;
                    self.stmts(body, s)?;
                    most = most.max(c.height).max(height(body));
                }
                self.stmts(otherwise, s)?;
                most.max(height(otherwise))
            }
            StmtKind::While(e, body) | StmtKind::Unroll(e, body) => {
                self.expr(e, s)?;
                self.stmts(body, s)?;
                e.height.max(height(body))
            }
            StmtKind::ForRange(var, a, b, body) => {
                self.expr(a, s)?;
                self.expr(b, s)?;
                s.var(var);
                self.stmts(body, s)?;
                a.height.max(b.height).max(height(body))
            }
            StmtKind::ForMap(var, map, at, body) => {
                s.map(map, *at)?;
                s.var(var);
                self.stmts(body, s)?;
                height(body)
            }
            StmtKind::Block(body) => {
                self.stmts(body, s)?;
                height(body)
            }
            StmtKind::Function(body) => {
                self.stmts(body, s)?;
                height(body)
            }
            StmtKind::Return(value) => {
                value.iter_mut().try_for_each(|e| self.expr(e, s))?;
                let below = value.as_ref().map_or(0, |v| v.height);
                if let (Some(given), Some((name, ty))) = (value.take(), &s.value) {
                    let given = converted(given, ty.as_ref())?;
                    let below = given.height;
                    let target = node(Kind::Var(name.clone()), given.span, 0)?;
                    let list = [StmtKind::Assign(target, None, given), StmtKind::Return(None)];
                    let list = list.map(|kind| Stmt { kind, span, height: below + 1 });
                    stmt.kind = StmtKind::Block(list.into());
                    below + 1
                } else {
                    below
                }
            }
            StmtKind::Break | StmtKind::Continue => 0,
        };
        if below >= ast::MAX_HEIGHT {
            return Err(too_deep(span));
        }
        stmt.height = below + 1;
        Ok(())
    }

    fn type_name(&mut self, t: &mut TypeName, s: &Scope) -> Result<()> {
        if let Base::TypeOf(e) = &mut t.base {
            self.expr(e, s)?;
            t.height = e.height;
        }
        Ok(())
    }

    fn expr(&mut self, e: &mut Expr, s: &Scope) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep(e.span));
        }
        self.depth += 1;
        self.nodes += usize::from(s.unique.is_some());
        if self.nodes > MAX_NODES {
            return Err(Diagnostic::new(
                Code::TooLarge,
                e.span,
                format!("macros give more than {MAX_NODES} expressions"),
            ));
        }
        self.inner(e, s)?;
        self.depth -= 1;
        Ok(())
    }

    fn inner(&mut self, e: &mut Expr, s: &Scope) -> Result<()> {
        let span = e.span;
        let below = match &mut e.kind {
            Kind::Int(_) | Kind::Str(_) | Kind::Bool(_) | Kind::Param(_) | Kind::ParamCount | Kind::Arg(_) => 0,
            Kind::Name(n) => {
                if let Some(given) = s.exprs.get(n) {
                    *e = Expr { grouped: Some(given.bare()), ..given.clone() };
                    return Ok(());
                }
                if self.macros.get(n.as_str()).is_some_and(|all| all.iter().any(|m| m.params.is_empty())) {
                    let name = n.clone();
                    *e = self.call(&name, Vec::new(), span)?;
                    return Ok(());
                }
                0
            }
            Kind::Var(n) => {
                s.var(n);
                0
            }
            Kind::Map(n, keys) => {
                s.map(n, span)?;
                self.exprs(keys, s)?
            }
            Kind::Call(name, list) => {
                let below = self.exprs(list, s)?;
                if self.macros.contains_key(name.as_str()) {
                    let (name, list) = (name.clone(), std::mem::take(list));
                    *e = self.call(&name, list, span)?;
                    return Ok(());
                }
                below
            }
            Kind::All(list) | Kind::Any(list) | Kind::Tuple(list) | Kind::Record(_, list) => self.exprs(list, s)?,
            Kind::Unary(_, a)
            | Kind::Step { target: a, .. }
            | Kind::Field(a, ..)
            | Kind::Part(a, _)
            | Kind::SizeOf(a) => {
                self.expr(a, s)?;
                a.height
            }
            Kind::Cast(ty, a) => {
                self.type_name(ty, s)?;
                self.expr(a, s)?;
                a.height.max(ty.height)
            }
            Kind::SizeOfType(ty) | Kind::OffsetOf(ty, _) => {
                self.type_name(ty, s)?;
                ty.height
            }
            Kind::Binary(_, a, b) | Kind::Index(a, b) => {
                self.expr(a, s)?;
                self.expr(b, s)?;
                a.height.max(b.height)
            }
            Kind::Choice(c, a, b) => {
                self.expr(c, s)?;
                a.iter_mut().try_for_each(|a| self.expr(a, s))?;
                self.expr(b, s)?;
                c.height.max(b.height).max(a.as_ref().map_or(0, |a| a.height))
            }
            Kind::Block(stmts, value) => {
                self.stmts(stmts, s)?;
                self.expr(value, s)?;
                height(stmts).max(value.height)
            }
        };
        if below >= ast::MAX_HEIGHT {
            return Err(too_deep(span));
        }
        e.height = below + 1;
        Ok(())
    }

    /// The height of the highest.
    fn exprs(&mut self, list: &mut [Expr], s: &Scope) -> Result<usize> {
        list.iter_mut().try_for_each(|e| self.expr(e, s))?;
        Ok(list.iter().map(|e| e.height).max().unwrap_or(0))
    }

    /// The block that a use becomes; the arguments are expanded already.
    fn call(&mut self, name: &str, list: Vec<Expr>, span: Span) -> Result<Expr> {
        let m = self.overload(name, &list, span)?;
        if self.within.contains(&m.name.as_str()) {
            let kind = if m.function.is_some() { "function" } else { "macro" };
            let e = Diagnostic::new(Code::Macro, span, format!("the {kind} '{name}' uses itself"));
            return Err(e
                .second(m.span, "it is defined here")
                .hint("a loop does what recursion does: for $i : 0..10 { … }"));
        }
        self.unique += 1;
        let mut scope = Scope { unique: Some(self.unique), is_function: m.function.is_some(), ..Scope::default() };
        let mut params = Vec::new();
        for (param, arg) in m.params.iter().zip(list) {
            match (param, arg) {
                (MacroParam::Var(p), Expr { kind: Kind::Var(n), .. }) => drop(scope.vars.insert(p.clone(), n)),
                (MacroParam::Map(p), Expr { kind: Kind::Map(n, _), .. }) => drop(scope.maps.insert(p.clone(), n)),
                (MacroParam::Var(p) | MacroParam::Map(p) | MacroParam::Expr(p), arg) => {
                    drop(scope.exprs.insert(p.clone(), arg))
                }
                // The variable's own, so that the argument is evaluated once, and where the function is used.
                (MacroParam::Value(p, ty), arg) => {
                    let mut name = p.clone();
                    scope.var(&mut name);
                    let arg = converted(arg, ty.as_ref())?;
                    let below = arg.height.max(ty.as_ref().map_or(0, |t| t.height));
                    params.push(let_(name, ty.clone(), Some(arg), span, below));
                }
            }
        }
        self.within.push(&m.name);
        if let Some(ty) = &m.function {
            let block = self.function(m, ty.clone(), params, scope, span);
            self.within.pop();
            return block;
        }
        let mut body = m.body.clone();
        self.stmts(&mut body.stmts, &scope)?;
        let nothing = || node(Kind::Tuple(Vec::new()), span, 0).map(Box::new);
        let mut value = body.value.map_or_else(nothing, Ok)?;
        self.expr(&mut value, &scope)?;
        self.within.pop();
        let below = height(&body.stmts).max(value.height);
        node(Kind::Block(body.stmts, value), span, below)
    }
}

/// As C converts what a function is given, and what it returns: to the number that is declared.
fn converted(e: Expr, ty: Option<&TypeName>) -> Result<Expr> {
    let is_number = |t: &&TypeName| match &t.base {
        Base::Named(name) => t.arrays.is_empty() && name != "string",
        _ => t.pointers > 0,
    };
    let Some(ty) = ty.filter(is_number) else { return Ok(e) };
    let (span, below) = (e.span, e.height.max(ty.height));
    node(Kind::Cast(ty.clone(), Box::new(e)), span, below)
}

/// `let $name: type = value`
fn let_(name: String, ty: Option<TypeName>, value: Option<Expr>, span: Span, below: usize) -> Stmt {
    Stmt { kind: StmtKind::Let(name, ty, value), span, height: below + 1 }
}

/// Whether one of the statements returns a value.
fn returns_a_value(list: &[Stmt]) -> bool {
    list.iter().any(|s| match &s.kind {
        StmtKind::Return(value) => value.is_some(),
        StmtKind::If(arms, otherwise) => arms.iter().any(|a| returns_a_value(&a.1)) || returns_a_value(otherwise),
        StmtKind::While(_, list)
        | StmtKind::Unroll(_, list)
        | StmtKind::ForRange(_, _, _, list)
        | StmtKind::ForMap(_, _, _, list)
        | StmtKind::Block(list)
        | StmtKind::Function(list) => returns_a_value(list),
        _ => false,
    })
}

impl<'m> Expander<'m> {
    /// What a use of a function becomes: its parameters, its statements, and the variable that has its value.
    fn function(
        &mut self,
        m: &Macro,
        ty: Option<TypeName>,
        mut stmts: Vec<Stmt>,
        mut scope: Scope,
        span: Span,
    ) -> Result<Expr> {
        let mut body = m.body.stmts.clone();
        let mut value = node(Kind::Tuple(Vec::new()), span, 0)?;
        if ty.is_some() || returns_a_value(&body) {
            let name = format!("{}'{}", m.name, self.unique);
            let below = ty.as_ref().map_or(0, |t| t.height);
            stmts.push(let_(name.clone(), ty.clone(), None, span, below));
            scope.value = Some((name.clone(), ty));
            value = node(Kind::Var(name), span, 0)?;
        }
        self.stmts(&mut body, &scope)?;
        let below = height(&body);
        if below >= ast::MAX_HEIGHT {
            return Err(too_deep(span));
        }
        stmts.push(Stmt { kind: StmtKind::Function(body), span, height: below + 1 });
        let below = height(&stmts);
        node(Kind::Block(stmts, Box::new(value)), span, below)
    }

    /// The macro of this name that takes these arguments.
    fn overload(&self, name: &str, list: &[Expr], span: Span) -> Result<&'m Macro> {
        let all = self.macros.get(name).map(Vec::as_slice).unwrap_or_default();
        let takes = |m: &&&Macro| {
            m.params.len() == list.len()
                && m.params.iter().zip(list).all(|(p, a)| match p {
                    MacroParam::Var(_) => matches!(a.kind, Kind::Var(_)),
                    MacroParam::Map(_) => matches!(&a.kind, Kind::Map(_, keys) if keys.is_empty()),
                    MacroParam::Expr(_) | MacroParam::Value(..) => true,
                })
        };
        let Some(m) = all.iter().find(takes) else {
            let kind = if all.iter().any(|m| m.function.is_none()) { "macro" } else { "function" };
            let e = Diagnostic::new(Code::Macro, span, format!("no {kind} '{name}' takes these arguments"));
            let forms: Vec<String> = all.iter().map(|m| signature(m)).collect();
            let takes = if kind == "macro" { ": $x takes a variable, @x a map" } else { "" };
            let e = e.hint(format!("there is {}{takes}", forms.join(", ")));
            return Err(match all.first() {
                Some(m) => e.second(m.span, "it is defined here"),
                None => e,
            });
        };
        Ok(m)
    }
}

fn signature(m: &Macro) -> String {
    let param = |p: &MacroParam| match p {
        MacroParam::Var(n) | MacroParam::Value(n, _) => format!("${n}"),
        MacroParam::Map(n) => format!("@{n}"),
        MacroParam::Expr(n) => n.clone(),
    };
    format!("{}({})", m.name, m.params.iter().map(param).collect::<Vec<_>>().join(", "))
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(Code::TooLarge, span, format!("nested more than {} levels deep", ast::MAX_HEIGHT))
}
