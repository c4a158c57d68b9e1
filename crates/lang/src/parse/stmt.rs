//! Statements of scripts.

use super::Parser;
use crate::ast::{Binary, Body, Expr, Kind, MAX_HEIGHT, Stmt, StmtKind, height};
use crate::diag::{Code, Diagnostic, Span};
use crate::lex::Token;
use crate::tokens::Result;

impl Parser<'_> {
    fn block(&mut self) -> Result<Vec<Stmt>> {
        self.t.expect("{")?;
        Ok(self.rest_of_block()?.0)
    }

    /// Up to the brace; where that ends.
    pub(crate) fn rest_of_block(&mut self) -> Result<(Vec<Stmt>, usize)> {
        let body = self.body_parts()?;
        let (stmts, value) = (body.0.stmts, body.0.value);
        // What would be a block's value is a statement where nobody asks for it.
        let mut stmts = stmts;
        if let Some(e) = value {
            let (span, height) = (e.span, e.height + 1);
            stmts.push(Stmt { kind: StmtKind::Expr(*e), span, height });
        }
        Ok((stmts, body.1))
    }

    /// Statements, and the expression behind the last semicolon, if there is one.
    pub(crate) fn body(&mut self) -> Result<Body> {
        Ok(self.body_parts()?.0)
    }

    fn body_parts(&mut self) -> Result<(Body, usize)> {
        self.t.enter()?;
        let (mut stmts, mut value) = (Vec::new(), None);
        let end = loop {
            let span = self.t.span()?;
            if self.t.eat("}")? {
                break span.end;
            }
            if self.t.eat(";")? {
                continue;
            }
            let Some(stmt) = self.statement()? else { continue };
            let end = self.t.span()?;
            match stmt.kind {
                StmtKind::Expr(e) if self.t.eat("}")? => {
                    value = Some(Box::new(e));
                    break end.end;
                }
                kind => {
                    let open = !matches!(
                        kind,
                        StmtKind::If(..)
                            | StmtKind::While(..)
                            | StmtKind::Unroll(..)
                            | StmtKind::ForRange(..)
                            | StmtKind::ForMap(..)
                            | StmtKind::Block(_)
                    );
                    if open && !self.t.at("}")? && !self.t.eat(";")? {
                        return Err(self.t.unexpected("';' or '}'"));
                    }
                    stmts.push(Stmt { kind, ..stmt });
                }
            }
        };
        self.t.leave();
        Ok((Body { stmts, value }, end))
    }

    fn stmt(&self, kind: StmtKind, span: Span, below: usize) -> Result<Option<Stmt>> {
        if below >= MAX_HEIGHT {
            return Err(Diagnostic::new(Code::TooLarge, span, format!("nested more than {MAX_HEIGHT} levels deep")));
        }
        Ok(Some(Stmt { kind, span, height: below + 1 }))
    }

    /// None: an `else if` has been added to the statement before.
    fn statement(&mut self) -> Result<Option<Stmt>> {
        let start = self.t.span()?;
        let word = match self.t.peek()? {
            Token::Name(n) => n.clone(),
            Token::Sym("{") => {
                let body = {
                    self.t.next()?;
                    self.body()?
                };
                return self.block_statement(body, start);
            }
            Token::Sym("#") => String::new(),
            _ => return self.simple(start),
        };
        match word.as_str() {
            "if" => self.if_(start),
            "while" => {
                self.t.next()?;
                let c = self.expr()?;
                let body = self.block()?;
                let below = height(&body).max(c.height);
                self.stmt(StmtKind::While(c, body), start, below)
            }
            "unroll" => {
                self.t.next()?;
                let n = self.expr()?;
                let body = self.block()?;
                let below = height(&body).max(n.height);
                self.stmt(StmtKind::Unroll(n, body), start, below)
            }
            "for" => self.for_(start),
            "let" => self.let_(start),
            "break" | "continue" | "return" => {
                self.t.next()?;
                if word == "return" && !self.t.at(";")? && !self.t.at("}")? {
                    return self.return_value(start);
                }
                let kind = match word.as_str() {
                    "break" => StmtKind::Break,
                    "continue" => StmtKind::Continue,
                    _ => StmtKind::Return(None),
                };
                self.stmt(kind, start, 0)
            }
            _ => self.simple(start),
        }
    }

    fn return_value(&mut self, start: Span) -> Result<Option<Stmt>> {
        let value = self.expr()?;
        if !self.in_function {
            let e = Diagnostic::new(Code::Place, value.span, "a clause returns no value");
            return Err(e.hint("write return;"));
        }
        let below = value.height;
        self.stmt(StmtKind::Return(Some(value)), start, below)
    }

    fn block_statement(&mut self, body: Body, start: Span) -> Result<Option<Stmt>> {
        let mut stmts = body.stmts;
        if let Some(e) = body.value {
            let (span, height) = (e.span, e.height + 1);
            stmts.push(Stmt { kind: StmtKind::Expr(*e), span, height });
        }
        let below = height(&stmts);
        self.stmt(StmtKind::Block(stmts), start, below)
    }

    fn if_(&mut self, start: Span) -> Result<Option<Stmt>> {
        let (mut arms, mut otherwise) = (Vec::new(), Vec::new());
        loop {
            self.t.next()?;
            let c = self.expr()?;
            arms.push((c, self.block()?));
            if !self.t.eat_name("else")? {
                break;
            }
            if !self.t.at_name("if")? {
                otherwise = self.block()?;
                break;
            }
        }
        let below = arms.iter().map(|(c, b)| height(b).max(c.height)).max().unwrap_or(0).max(height(&otherwise));
        self.stmt(StmtKind::If(arms, otherwise), start, below)
    }

    /// `for $i : a..b { }`, `for ($kv : @m) { }`; the parentheses may be there or not.
    fn for_(&mut self, start: Span) -> Result<Option<Stmt>> {
        self.t.next()?;
        let open = self.t.eat("(")?;
        let var = match self.t.next()? {
            (Token::Var(n), _) => n,
            (_, span) => {
                let e = Diagnostic::new(Code::Syntax, span, "expected a variable");
                return Err(e.hint("write for $i : 0..10 { … } or for $kv : @map { … }"));
            }
        };
        self.t.expect(":")?;
        let kind = match self.t.peek()?.clone() {
            Token::Map(map) if matches!(self.t.peek_at(1)?, Token::Sym(")" | "{")) => {
                let (_, span) = self.t.next()?;
                if open {
                    self.t.expect(")")?;
                }
                let body = self.block()?;
                StmtKind::ForMap(var, map, span, body)
            }
            _ => {
                let from = self.expr()?;
                self.t.expect("..")?;
                let to = self.expr()?;
                if open {
                    self.t.expect(")")?;
                }
                let body = self.block()?;
                StmtKind::ForRange(var, from, to, body)
            }
        };
        let below = match &kind {
            StmtKind::ForRange(_, a, b, body) => height(body).max(a.height).max(b.height),
            StmtKind::ForMap(.., body) => height(body),
            _ => 0,
        };
        self.stmt(kind, start, below)
    }

    /// `let $x`, `let $x: type`, `let $x = e`
    fn let_(&mut self, start: Span) -> Result<Option<Stmt>> {
        self.t.next()?;
        let (name, mut end) = match self.t.next()? {
            (Token::Var(n), span) => (n, span),
            (Token::Map(_), span) => {
                let e = Diagnostic::new(Code::Place, span, "a map is declared outside of clauses");
                return Err(e.hint("write let @name = hash(100); before the first clause"));
            }
            (_, span) => return Err(Diagnostic::new(Code::Syntax, span, "expected a variable")),
        };
        let ty = match self.t.eat(":")? {
            true => Some(self.type_name()?),
            false => None,
        };
        end = ty.as_ref().map_or(end, |t| t.span);
        let value = match self.t.eat("=")? {
            true => Some(self.expr()?),
            false => None,
        };
        let end = value.as_ref().map_or(end, |v| v.span);
        let below = value.as_ref().map_or(0, |v| v.height).max(ty.as_ref().map_or(0, |t| t.height));
        self.stmt(StmtKind::Let(name, ty, value), start.to(end), below)
    }

    /// An expression or an assignment.
    fn simple(&mut self, start: Span) -> Result<Option<Stmt>> {
        let target = self.expr()?;
        let Token::Sym(sym) = *self.t.peek()? else { return self.expression(target) };
        let op = match sym.strip_suffix('=') {
            Some("") => None,
            Some(op) => match Binary::ALL.iter().find(|b| b.1 == op && !b.0.is_comparison()) {
                Some(b) => Some(b.0),
                None => return self.expression(target),
            },
            None => return self.expression(target),
        };
        let fine = matches!(&target.kind, Kind::Var(_) | Kind::Map(..))
            || matches!(&target.kind, Kind::Name(n) if n == "_" && op.is_none());
        if !fine {
            let e = Diagnostic::new(Code::Place, target.span, "only variables and maps are assigned to");
            let name = target.span.of(self.t.text());
            let plain = matches!(&target.kind, Kind::Name(_));
            return Err(e.maybe_hint(plain.then(|| format!("a variable is written ${name}, a map @{name}"))));
        }
        self.t.next()?;
        let value = self.expr()?;
        let (span, below) = (start.to(value.span), target.height.max(value.height));
        self.stmt(StmtKind::Assign(target, op, value), span, below)
    }

    fn expression(&mut self, e: Expr) -> Result<Option<Stmt>> {
        let (span, below) = (e.span, e.height);
        self.stmt(StmtKind::Expr(e), span, below)
    }
}
