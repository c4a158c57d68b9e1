//! Tokens to trees: precedence climbing, with C's precedence and associativity, and what C does not have: maps, tuples, blocks.
//!
//! Filters have some of the expressions; where a text goes on with others, that is a mistake. Nothing is resolved, no type is checked.
//!
//! Invariant: recursion is at most [`crate::tokens::MAX_NESTING`] deep, and no tree is higher than [`crate::ast::MAX_HEIGHT`]. Chains
//! of `&&` and of `||` are one node each, so that long lists of alternatives are not deep.

mod stmt;
mod types;

use crate::ast::{Binary, Expr, Kind, Unary, height, node};
use crate::diag::{Code, Diagnostic, Severity, Span};
use crate::lex::{Token, whole_number};
use crate::tokens::{Result, Tokens};
use std::collections::BTreeSet;

pub(crate) use types::type_words;

/// What the names of maps of threads begin with: `self->x` is such a map at the thread's number.
pub(crate) const OF_THREADS: &str = "self->";

/// Binding powers of `||` and `&&`.
const ANY: u8 = 1;
const ALL: u8 = 2;

/// Parses the whole of `text` as a filter; `params` are the values of `$1`, `$2`, ….
pub(crate) fn filter(text: &str, params: &[String]) -> Result<Expr> {
    let mut p = Parser { params: Some(params), ..Parser::new(Tokens::of_filter(text)?) };
    let span = p.t.span()?;
    let error = |message: &str| Diagnostic::new(Code::Syntax, span, message);
    match p.t.peek()? {
        Token::End => return Err(error("an empty filter").hint("for instance: pid == 1")),
        Token::Sym("/") => return Err(error("unexpected '/'").hint("write the filter without slashes here")),
        _ => {}
    }
    let e = p.expr()?;
    match p.t.peek()? {
        Token::End => Ok(e),
        _ => Err(p.t.unexpected("an operator")),
    }
}

pub(crate) struct Parser<'t> {
    pub t: Tokens<'t>,
    /// Of a filter: the values of `$1`, `$2`, …. A script's are not known here.
    params: Option<&'t [String]>,
    /// The names that a script gives to types.
    pub typedefs: BTreeSet<String>,
    /// Bytes and alignment of structures that a script does not declare itself.
    pub sizes: Option<Sizes<'t>>,
    pub warnings: Vec<Diagnostic>,
    /// `return` may have a value.
    pub in_function: bool,
}

/// From a structure's name to its bytes and alignment.
pub type Sizes<'t> = &'t dyn Fn(&str) -> Option<(u64, u64)>;

fn highest(list: &[Expr]) -> usize {
    list.iter().map(|e| e.height).max().unwrap_or(0)
}

impl<'t> Parser<'t> {
    /// Of a script.
    pub fn new(t: Tokens<'t>) -> Parser<'t> {
        Parser { t, params: None, typedefs: BTreeSet::new(), sizes: None, warnings: Vec::new(), in_function: false }
    }
}

impl Parser<'_> {
    pub(crate) fn expr(&mut self) -> Result<Expr> {
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
                "/" if self.params.is_none() && matches!(self.t.peek_at(1)?, Token::Sym("{")) => break,
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
        self.node(kind(list), span, below)
    }

    /// `c ? a : b`, `a ?: b`
    fn choice(&mut self, condition: Expr) -> Result<Expr> {
        self.t.next()?;
        let yes = match self.params.is_none() && self.t.at(":")? {
            true => None,
            false => Some(Box::new(self.binary(0)?)),
        };
        self.t.expect(":")?;
        let no = self.binary(0)?;
        let below = condition.height.max(no.height).max(yes.as_ref().map_or(0, |y| y.height));
        let span = condition.span.to(no.span);
        self.node(Kind::Choice(Box::new(condition), yes, Box::new(no)), span, below)
    }

    fn operator(&mut self, left: Expr, op: Binary, power: u8) -> Result<Expr> {
        self.t.next()?;
        let right = self.binary(power + 1)?;
        self.misleading(op, &left)?;
        self.misleading(op, &right)?;
        let (span, below) = (left.span.to(right.span), left.height.max(right.height));
        self.node(Kind::Binary(op, Box::new(left), Box::new(right)), span, below)
    }

    /// `a & b == c` and `a < b < c` mean something in C, but hardly ever what was meant.
    fn misleading(&mut self, op: Binary, operand: &Expr) -> Result<()> {
        let Kind::Binary(inner, ..) = operand.kind else { return Ok(()) };
        let bits = matches!(op, Binary::And | Binary::Or | Binary::Xor);
        if operand.grouped.is_some() || !inner.is_comparison() || !(bits || op.is_comparison()) {
            return Ok(());
        }
        let message = format!("'{}' is applied to the result of '{}'", op.symbol(), inner.symbol());
        let e = Diagnostic::new(Code::Parentheses, operand.span, message).hint(match bits {
            true => format!("write (a {} b) {} c, or add parentheses if this is meant", op.symbol(), inner.symbol()),
            false => "write a < b && b < c, or add parentheses if this is meant".into(),
        });
        if self.params.is_some() {
            return Err(e);
        }
        self.warnings.push(Diagnostic { severity: Severity::Warning, ..e });
        Ok(())
    }

    fn unary(&mut self) -> Result<Expr> {
        let Token::Sym(sym) = *self.t.peek()? else { return self.postfix() };
        let op = match sym {
            "-" => Unary::Minus,
            "~" => Unary::Complement,
            "!" => Unary::Not,
            _ if self.params.is_some() => return self.postfix(),
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
        self.node(Kind::Unary(op, Box::new(e)), span, below)
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
        self.node(Kind::Step { target: Box::new(target), up, after }, span, below)
    }

    fn postfix(&mut self) -> Result<Expr> {
        let mut e = self.primary()?;
        while self.params.is_none() {
            let Token::Sym(sym) = *self.t.peek()? else { return Ok(e) };
            let start = e.span;
            e = match sym {
                "." | "->" => {
                    self.t.next()?;
                    let (token, span) = self.t.next()?;
                    let below = e.height;
                    let kind = match token {
                        Token::Name(n) => Kind::Field(Box::new(e), n, sym == "->"),
                        Token::Int(n) if sym == "." => Kind::Part(Box::new(e), n as usize),
                        _ => {
                            return Err(Diagnostic::new(Code::Syntax, span, format!("expected a name behind '{sym}'")));
                        }
                    };
                    self.node(kind, start.to(span), below)?
                }
                "[" => {
                    self.t.next()?;
                    let index = self.expr()?;
                    let end = self.t.expect("]")?;
                    let below = e.height.max(index.height);
                    self.node(Kind::Index(Box::new(e), Box::new(index)), start.to(end), below)?
                }
                "++" | "--" => {
                    let (_, end) = self.t.next()?;
                    self.step(e, sym == "++", true, start.to(end))?
                }
                _ => return Ok(e),
            };
        }
        Ok(e)
    }

    fn primary(&mut self) -> Result<Expr> {
        let span = self.t.span()?;
        let kind = match self.t.peek()?.clone() {
            Token::Int(v) => Kind::Int(v),
            Token::Str(s) => return self.strings(s),
            Token::Param(n) => self.param(n, span)?,
            Token::ParamCount => Kind::ParamCount,
            Token::Var(n) => Kind::Var(n),
            Token::Map(n) => return self.map(n),
            Token::Name(n) => return self.name(n),
            Token::Sym("(") => return self.group(),
            Token::Sym("{") if self.params.is_none() => return self.block_expr(),
            _ => return Err(self.t.unexpected("a value")),
        };
        self.t.next()?;
        self.node(kind, span, 0)
    }

    /// `$N`; in a filter its value: a number where it is one, else a string.
    fn param(&self, n: usize, span: Span) -> Result<Kind> {
        let Some(params) = self.params else { return Ok(Kind::Param(n)) };
        let Some(text) = n.checked_sub(1).and_then(|i| params.get(i)) else {
            let e = Diagnostic::new(Code::Parameter, span, format!("parameter ${n} was not given"));
            return Err(match (n, params.len()) {
                (0, _) => e.hint("the first parameter is $1"),
                (_, 0) => e.hint("there are none"),
                (_, k) => e.hint(format!("the last one is ${k}")),
            });
        };
        if text.contains('\0') {
            return Err(Diagnostic::new(Code::Literal, span, "a parameter with a NUL inside"));
        }
        Ok(whole_number(text).map_or_else(|| Kind::Str(text.clone().into_bytes()), |v| Kind::Int(v as u64)))
    }

    /// `str($N)` in a filter is a string even where the parameter looks like a number.
    fn text_of_param(&mut self) -> Result<Option<Kind>> {
        let Token::Param(n) = *self.t.peek()? else { return Ok(None) };
        let text =
            self.params.zip(n.checked_sub(1)).and_then(|(params, i)| params.get(i)).filter(|t| !t.contains('\0'));
        let Some(text) = text.filter(|_| matches!(self.t.peek_at(1), Ok(Token::Sym(")")))) else { return Ok(None) };
        self.t.next()?;
        Ok(Some(Kind::Str(text.clone().into_bytes())))
    }

    /// One string, or, in a script, several in a row, as in C.
    fn strings(&mut self, first: Vec<u8>) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        let (mut bytes, mut span) = (first, start);
        while let (true, Token::Str(more)) = (self.params.is_none(), self.t.peek()?.clone()) {
            bytes.extend(more);
            span = start.to(self.t.next()?.1);
        }
        self.node(Kind::Str(bytes), span, 0)
    }

    fn map(&mut self, name: String) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        if !self.t.at("[")? {
            return self.node(Kind::Map(name, Vec::new()), start, 0);
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
        self.node(Kind::Map(name, keys), start.to(end), below)
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
        let script = self.params.is_none();
        let next = self.t.peek()?.clone();
        match (name.as_str(), next) {
            ("args", Token::Sym("." | "->")) if !script || matches!(self.t.peek_at(1)?, Token::Name(_)) => {
                self.t.next()?;
                let (name, end) = self.t.name("the name of an argument")?;
                return self.node(Kind::Arg(name), start.to(end), 0);
            }
            // A thread's own variable is a map by threads.
            ("self", Token::Sym("->")) if script => {
                self.t.next()?;
                let (name, end) = self.t.name("the name of a variable")?;
                let span = start.to(end);
                let tid = self.node(Kind::Name("tid".into()), span, 0)?;
                return self.node(Kind::Map(format!("{OF_THREADS}{name}"), vec![tid]), span, 1);
            }
            ("sizeof", Token::Sym("(")) if script => return self.size_of(start),
            ("offsetof", Token::Sym("(")) if script => return self.offset_of(start),
            (_, Token::Sym("(")) => {}
            ("true" | "false", _) => return self.node(Kind::Bool(name == "true"), start, 0),
            ("struct" | "union" | "enum", _) if script => {
                let e = Diagnostic::new(Code::Syntax, start, "a type where a value is expected");
                return Err(e.hint("a cast has parentheses: (struct x *)y"));
            }
            _ => return self.node(Kind::Name(name), start, 0),
        }
        self.t.next()?;
        if name == "str"
            && let Some(text) = self.text_of_param()?
        {
            let end = self.t.expect(")")?;
            return self.node(text, start.to(end), 0);
        }
        let list = self.list(")")?;
        let end = self.t.expect(")")?;
        let below = highest(&list);
        self.node(Kind::Call(name, list), start.to(end), below)
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
        self.node(Kind::Block(body.stmts, value), span, below)
    }

    /// `(x)`, `(a, b)`, `(x = a, y = b)` or `(type)x`.
    fn group(&mut self) -> Result<Expr> {
        if self.at_type(1)? {
            return self.cast();
        }
        let (_, start) = self.t.next()?;
        let script = self.params.is_none();
        if script && self.at_member()? {
            return self.record(start);
        }
        let mut first = self.expr()?;
        if !(script && self.t.at(",")?) {
            let end = self.t.expect(")")?;
            first.grouped = Some(first.bare());
            first.span = start.to(end);
            return Ok(first);
        }
        self.t.next()?;
        let mut list = vec![first];
        list.extend(self.list(")")?);
        let end = self.t.expect(")")?;
        let below = highest(&list);
        self.node(Kind::Tuple(list), start.to(end), below)
    }

    /// Whether `name =` follows.
    fn at_member(&mut self) -> Result<bool> {
        Ok(matches!((self.t.peek()?.clone(), self.t.peek_at(1)?), (Token::Name(_), Token::Sym("="))))
    }

    /// The rest of `(x = a, y = b)`.
    fn record(&mut self, start: Span) -> Result<Expr> {
        let (mut names, mut list) = (Vec::new(), Vec::new());
        while self.at_member()? {
            let (name, span) = self.t.name("the name of a member")?;
            if names.contains(&name) {
                return Err(Diagnostic::new(Code::Field, span, format!("a second member '{name}'")));
            }
            self.t.expect("=")?;
            names.push(name);
            list.push(self.expr()?);
            if !self.t.eat(",")? {
                break;
            }
        }
        let end = self.t.expect(")")?;
        let below = highest(&list);
        self.node(Kind::Record(names, list), start.to(end), below)
    }

    fn node(&self, kind: Kind, span: Span, below: usize) -> Result<Expr> {
        let e = node(kind, span, below);
        e.map_err(|e| if self.params.is_none() { e.hint("give a part of it a name: $x = …") } else { e })
    }
}
