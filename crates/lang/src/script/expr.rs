//! Expressions of scripts: precedence climbing, with C's precedence and associativity, and what C does not have: maps, tuples, blocks.

use super::ast::*;
use super::cdecl;
use super::diag::{Code, Diagnostic};
use super::parse::{Parser, height};
use super::tokens::Result;
use crate::ast::Binary;
use crate::diag::Span;
use crate::lex::Token;

/// Binding powers of `||` and `&&`.
const ANY: u8 = 1;
const ALL: u8 = 2;

/// An expression.
pub(super) fn node(kind: Kind, span: Span, below: usize) -> Result<Expr> {
    if below >= MAX_HEIGHT {
        let message = format!("more than {MAX_HEIGHT} operators in a chain");
        return Err(Diagnostic::new(Code::TooLarge, span, message).hint("give a part of it a name: $x = …"));
    }
    Ok(Expr { kind, span, height: below + 1, grouped: false })
}

fn highest(list: &[Expr]) -> usize {
    list.iter().map(|e| e.height).max().unwrap_or(0)
}

impl Parser<'_> {
    pub fn expr(&mut self) -> Result<Expr> {
        self.binary(0)
    }

    /// An expression of operators that bind at least as strongly as `min`.
    fn binary(&mut self, min: u8) -> Result<Expr> {
        self.t.enter()?;
        let mut left = self.unary()?;
        while let Token::Sym(sym) = *self.t.peek()? {
            left = match sym {
                "||" if ANY >= min => self.chain(left, "||", ANY + 1, Kind::Any)?,
                "&&" if ALL >= min => self.chain(left, "&&", ALL + 1, Kind::All)?,
                "?" if min == 0 => self.choice(left)?,
                // The end of a predicate.
                "/" if matches!(self.t.peek_at(1)?, Token::Sym("{")) => break,
                _ => match Binary::ALL.iter().find(|(_, name, power)| *name == sym && *power >= min) {
                    Some((op, _, power)) => self.operator(left, *op, *power)?,
                    None => break,
                },
            };
        }
        self.t.leave();
        Ok(left)
    }

    fn chain(&mut self, first: Expr, sym: &str, min: u8, kind: fn(Vec<Expr>) -> Kind) -> Result<Expr> {
        let mut list = vec![first];
        while self.t.eat(sym)? {
            list.push(self.binary(min)?);
        }
        let span = list[0].span.to(list[list.len() - 1].span);
        let below = highest(&list);
        node(kind(list), span, below)
    }

    /// `c ? a : b`, `a ?: b`
    fn choice(&mut self, condition: Expr) -> Result<Expr> {
        self.t.next()?;
        let yes = match self.t.at(":")? {
            true => None,
            false => Some(Box::new(self.binary(0)?)),
        };
        self.t.expect(":")?;
        let no = self.binary(0)?;
        let below = condition.height.max(no.height).max(yes.as_ref().map_or(0, |y| y.height));
        let span = condition.span.to(no.span);
        node(Kind::Choice(Box::new(condition), yes, Box::new(no)), span, below)
    }

    fn operator(&mut self, left: Expr, op: Binary, power: u8) -> Result<Expr> {
        self.t.next()?;
        let right = self.binary(power + 1)?;
        self.misleading(op, &left);
        self.misleading(op, &right);
        let (span, below) = (left.span.to(right.span), left.height.max(right.height));
        node(Kind::Binary(op, Box::new(left), Box::new(right)), span, below)
    }

    /// `a & b == c` and `a < b < c` mean something in C, but hardly ever what was meant.
    fn misleading(&mut self, op: Binary, operand: &Expr) {
        let Kind::Binary(inner, ..) = operand.kind else { return };
        let bits = matches!(op, Binary::And | Binary::Or | Binary::Xor);
        if operand.grouped || !inner.is_comparison() || !(bits || op.is_comparison()) {
            return;
        }
        let message = format!("'{}' is applied to the result of '{}'", op.symbol(), inner.symbol());
        let hint = match bits {
            true => format!("write (a {} b) {} c, or add parentheses if this is meant", op.symbol(), inner.symbol()),
            false => "write a < b && b < c, or add parentheses if this is meant".into(),
        };
        self.warnings.push(Diagnostic::warning(Code::Doubtful, operand.span, message).hint(hint));
    }

    fn unary(&mut self) -> Result<Expr> {
        let Token::Sym(sym) = *self.t.peek()? else { return self.postfix() };
        let op = match sym {
            "-" => Unary::Minus,
            "~" => Unary::Complement,
            "!" => Unary::Not,
            "*" => Unary::Deref,
            "&" => Unary::Address,
            "++" | "--" => return self.step_before(sym == "++"),
            _ => return self.postfix(),
        };
        let (_, start) = self.t.next()?;
        self.t.enter()?;
        let e = self.unary()?;
        self.t.leave();
        let (span, below) = (start.to(e.span), e.height);
        node(Kind::Unary(op, Box::new(e)), span, below)
    }

    fn step_before(&mut self, up: bool) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        self.t.enter()?;
        let target = self.unary()?;
        self.t.leave();
        let span = start.to(target.span);
        self.step(target, up, false, span)
    }

    fn step(&mut self, target: Expr, up: bool, after: bool, span: Span) -> Result<Expr> {
        if !matches!(target.kind, Kind::Var(_) | Kind::Map(..)) {
            let sym = if up { "++" } else { "--" };
            let e = Diagnostic::new(Code::Place, span, format!("'{sym}' counts variables and maps only"));
            return Err(e.hint(format!("write {} {sym} 1", "x").replace("++", "+").replace("--", "-")));
        }
        let below = target.height;
        node(Kind::Step { target: Box::new(target), up, after }, span, below)
    }

    fn postfix(&mut self) -> Result<Expr> {
        let mut e = self.primary()?;
        loop {
            let Token::Sym(sym) = *self.t.peek()? else { return Ok(e) };
            let start = e.span;
            e = match sym {
                "." | "->" => {
                    self.t.next()?;
                    let (token, span) = self.t.next()?;
                    let below = e.height;
                    let kind = match token {
                        Token::Name(n) => Kind::Field(Box::new(e), n, sym == "->"),
                        Token::Int(n) if sym == "." => Kind::Part(Box::new(e), n.max(0) as usize),
                        _ => {
                            return Err(Diagnostic::new(Code::Syntax, span, format!("expected a name behind '{sym}'")));
                        }
                    };
                    node(kind, start.to(span), below)?
                }
                "[" => {
                    self.t.next()?;
                    let index = self.expr()?;
                    let end = self.t.expect("]")?;
                    let below = e.height.max(index.height);
                    node(Kind::Index(Box::new(e), Box::new(index)), start.to(end), below)?
                }
                "++" | "--" => {
                    let (_, end) = self.t.next()?;
                    self.step(e, sym == "++", true, start.to(end))?
                }
                _ => return Ok(e),
            };
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let span = self.t.span()?;
        let kind = match self.t.peek()?.clone() {
            Token::Int(v) => Kind::Int(v as u64),
            Token::Str(s) => return self.strings(s),
            Token::Param(n) => Kind::Param(n),
            Token::ParamCount => Kind::ParamCount,
            Token::Var(n) => Kind::Var(n),
            Token::Map(n) => return self.map(n),
            Token::Name(n) => return self.name(n),
            Token::Sym(sym @ ("(" | "{")) => {
                self.t.enter()?;
                let e = if sym == "(" { self.group()? } else { self.block_expr()? };
                self.t.leave();
                return Ok(e);
            }
            _ => return Err(self.t.unexpected("a value")),
        };
        self.t.next()?;
        node(kind, span, 0)
    }

    /// One string, or several in a row, as in C.
    fn strings(&mut self, first: Vec<u8>) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        let (mut bytes, mut span) = (first, start);
        while let Token::Str(more) = self.t.peek()?.clone() {
            bytes.extend(more);
            span = start.to(self.t.next()?.1);
        }
        node(Kind::Str(bytes), span, 0)
    }

    fn map(&mut self, name: String) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        if !self.t.at("[")? {
            return node(Kind::Map(name, Vec::new()), start, 0);
        }
        self.t.next()?;
        let keys = self.list("]")?;
        let end = self.t.expect("]")?;
        if keys.is_empty() {
            return Err(
                Diagnostic::new(Code::Syntax, start.to(end), "a map with an empty key").hint(format!("write @{name}"))
            );
        }
        let below = highest(&keys);
        node(Kind::Map(name, keys), start.to(end), below)
    }

    /// Expressions with commas between them, up to `end`.
    fn list(&mut self, end: &str) -> Result<Vec<Expr>> {
        let mut list = Vec::new();
        while !self.t.at(end)? {
            list.push(self.expr()?);
            if !self.t.eat(",")? {
                break;
            }
        }
        Ok(list)
    }

    fn name(&mut self, name: String) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        let call = self.t.at("(")?;
        match name.as_str() {
            "true" | "false" => return node(Kind::Bool(name == "true"), start, 0),
            "sizeof" if call => return self.size_of(start),
            "offsetof" if call => return self.offset_of(start),
            "struct" | "union" | "enum" => {
                let e = Diagnostic::new(Code::Syntax, start, "a type where a value is expected");
                return Err(e.hint("a cast has parentheses: (struct x *)y"));
            }
            _ => {}
        }
        if !call {
            return node(Kind::Name(name), start, 0);
        }
        self.t.next()?;
        let list = self.list(")")?;
        let end = self.t.expect(")")?;
        let below = highest(&list);
        node(Kind::Call(name, list), start.to(end), below)
    }

    fn size_of(&mut self, start: Span) -> Result<Expr> {
        self.t.expect("(")?;
        let (kind, below) = match self.at_type(0)? {
            true => {
                let ty = self.type_name()?;
                let below = ty.height;
                (Kind::SizeOfType(ty), below)
            }
            false => {
                let e = self.expr()?;
                let below = e.height;
                (Kind::SizeOf(Box::new(e)), below)
            }
        };
        let end = self.t.expect(")")?;
        node(kind, start.to(end), below)
    }

    fn offset_of(&mut self, start: Span) -> Result<Expr> {
        self.t.expect("(")?;
        let ty = self.type_name()?;
        self.t.expect(",")?;
        let mut path = vec![self.t.name("a member")?.0];
        while self.t.eat(".")? {
            path.push(self.t.name("a member")?.0);
        }
        let end = self.t.expect(")")?;
        let below = ty.height;
        node(Kind::OffsetOf(ty, path), start.to(end), below)
    }

    /// `{ …; x }`
    fn block_expr(&mut self) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        let body = self.body()?;
        let Some(value) = body.value else {
            let e = Diagnostic::new(Code::Place, start, "a block without a value where a value is expected");
            return Err(e.hint("its last expression has no semicolon behind it: { …; $x }"));
        };
        let (span, below) = (start.to(value.span), height(&body.stmts).max(value.height));
        node(Kind::Block(body.stmts, value), span, below)
    }

    /// `(x)`, `(a, b)` or `(type)x`.
    fn group(&mut self) -> Result<Expr> {
        if self.at_type(1)? {
            return self.cast();
        }
        let (_, start) = self.t.next()?;
        if matches!((self.t.peek()?.clone(), self.t.peek_at(1)?), (Token::Name(_), Token::Sym("="))) {
            let span = self.t.span()?;
            let e = Diagnostic::new(Code::Unsupported, span, "tuples with named parts are not in this version");
            return Err(e.hint("write (a, b), and .0 and .1 for its parts"));
        }
        let mut first = self.expr()?;
        if !self.t.at(",")? {
            let end = self.t.expect(")")?;
            first.grouped = true;
            first.span = start.to(end);
            return Ok(first);
        }
        self.t.next()?;
        let mut list = vec![first];
        list.extend(self.list(")")?);
        let end = self.t.expect(")")?;
        let below = highest(&list);
        node(Kind::Tuple(list), start.to(end), below)
    }

    fn cast(&mut self) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        let ty = self.type_name()?;
        self.t.expect(")")?;
        self.t.enter()?;
        let e = self.unary()?;
        self.t.leave();
        let (span, below) = (start.to(e.span), e.height.max(ty.height));
        node(Kind::Cast(ty, Box::new(e)), span, below)
    }

    /// Whether a type's name begins `n` tokens from here, and a value cannot.
    fn at_type(&mut self, n: usize) -> Result<bool> {
        let Token::Name(name) = self.t.peek_at(n)?.clone() else { return Ok(false) };
        if ["struct", "union", "enum", "typeof", "unsigned", "signed", "long", "short"].contains(&name.as_str()) {
            return Ok(true);
        }
        let mut after = n + 1;
        if self.script.declarations.named(&name).is_some() {
            return Ok(matches!(self.t.peek_at(after)?, Token::Sym(")" | "*" | "[" | ",") | Token::Name(_)));
        }
        // A name that nobody knows here, followed by stars only: the kernel's type.
        while matches!(self.t.peek_at(after)?, Token::Sym("*")) {
            after += 1;
        }
        let closed = matches!(self.t.peek_at(after)?, Token::Sym(")"));
        let value = matches!(
            self.t.peek_at(after + 1)?,
            Token::Name(_) | Token::Int(_) | Token::Var(_) | Token::Map(_) | Token::Param(_) | Token::Sym("(")
        );
        Ok(closed && (value || after > n + 1))
    }

    /// `struct x *`, `uint8[4]`, `typeof($x)`
    pub fn type_name(&mut self) -> Result<TypeName> {
        let start = self.t.span()?;
        let first = match self.t.peek()?.clone() {
            Token::Name(n) => n,
            _ => return Err(self.t.unexpected("a type")),
        };
        let base = match first.as_str() {
            "const" | "volatile" => {
                self.t.next()?;
                self.t.enter()?;
                let ty = self.type_name()?;
                self.t.leave();
                return Ok(ty);
            }
            "struct" | "union" => {
                self.t.next()?;
                Base::Struct(self.t.name("the structure's name")?.0)
            }
            "enum" => {
                self.t.next()?;
                Base::Enum(self.t.name("the enumeration's name")?.0)
            }
            "typeof" => {
                self.t.next()?;
                self.t.expect("(")?;
                let e = self.expr()?;
                self.t.expect(")")?;
                Base::TypeOf(Box::new(e))
            }
            _ => Base::Named(cdecl::type_words(&mut self.t)?),
        };
        let (mut pointers, mut arrays) = (0, Vec::new());
        while self.t.eat("*")? {
            pointers += 1;
            if pointers > 8 {
                return Err(self.t.unexpected("a name"));
            }
        }
        let mut end = self.t.span()?;
        while self.t.at("[")? {
            self.t.next()?;
            arrays.push(match self.t.at("]")? {
                true => 0,
                false => self.t.integer("the array's length")?.0,
            });
            end = self.t.expect("]")?;
            if arrays.len() > 8 {
                return Err(self.t.unexpected("')'"));
            }
        }
        let span =
            if arrays.is_empty() { Span { start: start.start, end: end.start.max(start.end) } } else { start.to(end) };
        let height = if let Base::TypeOf(e) = &base { e.height } else { 0 };
        Ok(TypeName { base, pointers, arrays, span, height })
    }
}
