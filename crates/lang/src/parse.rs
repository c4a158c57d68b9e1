//! Tokens to a tree: precedence climbing, with C's precedence and associativity.
//!
//! It does not resolve names or check types (see [`crate::filter`]).
//!
//! Invariant: recursion is at most [`MAX_NESTING`] deep, and no tree is higher than [`MAX_HEIGHT`]. Chains of `&&` and of `||`
//! are one node each, so that long lists of alternatives are not deep.

use crate::ast::{Binary, Cast, Expr, Kind, Unary};
use crate::diag::{Code, Diagnostic, Span, quote};
use crate::lex::{Token, lex, whole_number};

/// How deep parentheses and operators nest.
pub const MAX_NESTING: usize = 64;
/// How high a tree is; chains of arithmetic grow without nesting.
pub const MAX_HEIGHT: usize = 128;

/// Binding powers of `||` and `&&`.
const ANY: u8 = 1;
const ALL: u8 = 2;

type Result<T> = std::result::Result<T, Diagnostic>;

/// Parses the whole of `text` as an expression; `params` are the values of `$1`, `$2`, ….
pub fn parse(text: &str, params: &[String]) -> Result<Expr> {
    let mut p = Parser { text, params, tokens: lex(text)?, at: 0, depth: 0 };
    match p.peek() {
        Token::End => return Err(p.error("an empty filter").hint("for instance: pid == 1")),
        Token::Sym("/") => {
            return Err(p.error("unexpected '/'").hint("write the filter without slashes here"));
        }
        _ => {}
    }
    let e = p.expr(0)?;
    match p.peek() {
        Token::End => Ok(e),
        _ => Err(p.unexpected("an operator")),
    }
}

struct Parser<'t> {
    text: &'t str,
    params: &'t [String],
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }
    fn span(&self) -> Span {
        self.tokens[self.at].1
    }
    /// Takes the next token; the end is never taken.
    fn next(&mut self) -> (Token, Span) {
        let t = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        t
    }
    fn eat(&mut self, sym: &str) -> bool {
        let hit = matches!(self.peek(), Token::Sym(s) if *s == sym);
        if hit {
            self.next();
        }
        hit
    }
    fn expect(&mut self, sym: &str) -> Result<Span> {
        let span = self.span();
        if self.eat(sym) { Ok(span) } else { Err(self.unexpected(&format!("'{sym}'"))) }
    }
    fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::Syntax, self.span(), message)
    }

    fn unexpected(&self, wanted: &str) -> Diagnostic {
        let what = match self.peek() {
            Token::End => "the end".to_owned(),
            _ => quote(self.span().of(self.text)),
        };
        let e = self.error(format!("expected {wanted}, found {what}"));
        let foreign = |hint: &str| Diagnostic { code: Code::NotAFilter, ..e.clone() }.hint(hint);
        match self.peek() {
            Token::Sym("=") => e.hint("did you mean ==?"),
            Token::Sym("@" | "[" | "]") => foreign("filters have no maps"),
            Token::Sym("$") => foreign("filters have no variables but the parameters $1, $2, …"),
            Token::Sym("{" | "}" | ";") => foreign("a filter is one expression"),
            Token::Sym("++" | "--" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=") => {
                foreign("filters change nothing")
            }
            Token::Name(n) if matches!(n.as_str(), "and" | "or" | "not") => e.hint("write &&, ||, !"),
            _ => e,
        }
    }

    fn node(&self, kind: Kind, span: Span, below: usize) -> Result<Expr> {
        let height = below + 1;
        if height > MAX_HEIGHT {
            return Err(Diagnostic::new(Code::TooLarge, span, format!("more than {MAX_HEIGHT} operators in a chain")));
        }
        Ok(Expr { kind, span, height })
    }

    /// One level of recursion.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_NESTING {
            let message = format!("nested more than {MAX_NESTING} levels deep");
            return Err(Diagnostic::new(Code::TooLarge, self.span(), message));
        }
        self.depth += 1;
        let r = f(self);
        self.depth -= 1;
        r
    }

    /// An expression of operators that bind at least as strongly as `min`.
    fn expr(&mut self, min: u8) -> Result<Expr> {
        self.deeper(|p| {
            let mut left = p.unary()?;
            loop {
                left = match p.peek() {
                    Token::Sym("||") if ANY >= min => p.chain(left, "||", ANY + 1, Kind::Any)?,
                    Token::Sym("&&") if ALL >= min => p.chain(left, "&&", ALL + 1, Kind::All)?,
                    Token::Sym("?") if min == 0 => p.choice(left)?,
                    Token::Sym(s) => match Binary::ALL.iter().find(|(_, name, power)| name == s && *power >= min) {
                        Some((op, _, power)) => p.binary(left, *op, *power)?,
                        None => return Ok(left),
                    },
                    _ => return Ok(left),
                };
            }
        })
    }

    fn chain(&mut self, first: Expr, sym: &str, min: u8, kind: fn(Vec<Expr>) -> Kind) -> Result<Expr> {
        let mut list = vec![first];
        while self.eat(sym) {
            list.push(self.expr(min)?);
        }
        let span = list[0].span.to(list[list.len() - 1].span);
        let below = list.iter().map(|e| e.height).max().unwrap_or(0);
        self.node(kind(list), span, below)
    }

    fn choice(&mut self, condition: Expr) -> Result<Expr> {
        self.next();
        let yes = self.expr(0)?;
        self.expect(":")?;
        let no = self.expr(0)?;
        let (span, below) = (condition.span.to(no.span), condition.height.max(yes.height).max(no.height));
        self.node(Kind::Choice(Box::new([condition, yes, no])), span, below)
    }

    fn binary(&mut self, left: Expr, op: Binary, power: u8) -> Result<Expr> {
        self.next();
        let right = self.expr(power + 1)?;
        let (span, below) = (left.span.to(right.span), left.height.max(right.height));
        for operand in [&left, &right] {
            self.misleading(op, operand)?;
        }
        self.node(Kind::Binary(op, Box::new(left), Box::new(right)), span, below)
    }

    /// `a & b == c` and `a < b < c` mean something in C, but hardly ever what was meant.
    fn misleading(&self, op: Binary, operand: &Expr) -> Result<()> {
        let Kind::Binary(inner, ..) = operand.kind else { return Ok(()) };
        let bits = matches!(op, Binary::And | Binary::Or | Binary::Xor);
        if !inner.is_comparison() || !(bits || op.is_comparison()) {
            return Ok(());
        }
        let e = Diagnostic::new(
            Code::Parentheses,
            operand.span,
            format!("'{}' is applied to the result of '{}'", op.symbol(), inner.symbol()),
        );
        Err(e.hint(match bits {
            true => format!("write (a {} b) {} c, or add parentheses if this is meant", op.symbol(), inner.symbol()),
            false => "write a < b && b < c, or add parentheses if this is meant".into(),
        }))
    }

    fn unary(&mut self) -> Result<Expr> {
        let op = match self.peek() {
            Token::Sym("-") => Unary::Minus,
            Token::Sym("~") => Unary::Complement,
            Token::Sym("!") => Unary::Not,
            _ => return self.primary(),
        };
        let (_, start) = self.next();
        let e = self.deeper(Self::unary)?;
        let (span, below) = (start.to(e.span), e.height);
        self.node(Kind::Unary(op, Box::new(e)), span, below)
    }

    fn primary(&mut self) -> Result<Expr> {
        match self.peek().clone() {
            Token::Int(v) => self.leaf(Kind::Int(v)),
            Token::Str(s) => self.leaf(Kind::Str(s)),
            Token::Param(n) => self.param(n),
            Token::Name(n) => self.name(n),
            Token::Sym("(") => self.group(),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn leaf(&mut self, kind: Kind) -> Result<Expr> {
        let (_, span) = self.next();
        self.node(kind, span, 0)
    }

    /// `$N`: a number where the parameter is one, else a string.
    fn param(&mut self, n: usize) -> Result<Expr> {
        let given = n.checked_sub(1).and_then(|i| self.params.get(i));
        let Some(text) = given else {
            let message = format!("parameter ${n} was not given");
            let e = Diagnostic::new(Code::Parameter, self.span(), message);
            return Err(match (n, self.params.len()) {
                (0, _) => e.hint("the first parameter is $1"),
                (_, 0) => e.hint("there are none"),
                (_, k) => e.hint(format!("the last one is ${k}")),
            });
        };
        if text.contains('\0') {
            return Err(Diagnostic::new(Code::Literal, self.span(), "a parameter with a NUL inside"));
        }
        let kind = whole_number(text).map_or_else(|| Kind::Str(text.clone().into_bytes()), Kind::Int);
        self.leaf(kind)
    }

    fn name(&mut self, name: String) -> Result<Expr> {
        let (_, start) = self.next();
        if name == "args" && (self.eat(".") || self.eat("->")) {
            let Token::Name(field) = self.peek().clone() else {
                return Err(self.unexpected("the name of an argument"));
            };
            let (_, end) = self.next();
            return self.node(Kind::Field(field), start.to(end), 0);
        }
        if !self.eat("(") {
            return self.node(Kind::Name(name), start, 0);
        }
        // `str($1)` is a string even where the parameter looks like a number.
        if let (true, Token::Param(n)) = (name == "str", self.peek().clone())
            && let Some(text) = n.checked_sub(1).and_then(|i| self.params.get(i)).filter(|t| !t.contains('\0'))
            && self.tokens.get(self.at + 1).is_some_and(|t| t.0 == Token::Sym(")"))
        {
            let kind = Kind::Str(text.clone().into_bytes());
            self.next();
            let end = self.expect(")")?;
            return self.node(kind, start.to(end), 0);
        }
        let mut list = Vec::new();
        while !matches!(self.peek(), Token::Sym(")")) {
            list.push(self.expr(0)?);
            if !self.eat(",") {
                break;
            }
        }
        let end = self.expect(")")?;
        let below = list.iter().map(|e| e.height).max().unwrap_or(0);
        self.node(Kind::Call(name, list), start.to(end), below)
    }

    /// `(x)` or `(int32)x`.
    fn group(&mut self) -> Result<Expr> {
        let (_, start) = self.next();
        if let (Token::Name(n), Some((Token::Sym(")"), _))) = (self.peek(), self.tokens.get(self.at + 1))
            && let Some(cast) = cast(n)
        {
            self.next();
            self.next();
            let e = self.deeper(Self::unary)?;
            let (span, below) = (start.to(e.span), e.height);
            return self.node(Kind::Cast(cast, Box::new(e)), span, below);
        }
        let e = self.expr(0)?;
        let end = self.expect(")")?;
        let below = e.height;
        self.node(Kind::Group(Box::new(e)), start.to(end), below)
    }
}

fn cast(name: &str) -> Option<Cast> {
    let (signed, bits) = match name.strip_prefix('u') {
        Some(rest) => (false, rest.strip_prefix("int")?),
        None => (true, name.strip_prefix("int")?),
    };
    let size = [("8", 1), ("16", 2), ("32", 4), ("64", 8)].iter().find(|(b, _)| *b == bits)?.1;
    Some(Cast { size, signed })
}
