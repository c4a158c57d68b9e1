//! The tokens of a text, one at a time, with the macros of `#define` replaced.
//!
//! They are read on demand, because probes and directives of scripts are not made of tokens.
//!
//! Invariant: what replaces macros is bounded ([`MAX_EXPANDED`]), and recursion of a parser too (`Tokens::deeper`).

use crate::diag::{Code, Diagnostic, Span, quote};
use crate::lex::{Lexer, Token};
use std::collections::{BTreeMap, VecDeque};

/// This many tokens may come out of macros.
pub const MAX_EXPANDED: usize = 1 << 17;
/// So deep may macros use each other.
const MAX_CHAIN: usize = 32;
/// How deep brackets, operators and blocks nest.
pub const MAX_NESTING: usize = 64;

pub(crate) type Result<T> = std::result::Result<T, Diagnostic>;

/// What `#define` gives a name.
#[derive(Clone, Debug)]
pub(crate) struct Define {
    /// What it is replaced with; an error, if that has no tokens of the language.
    pub body: Result<Vec<Token>>,
    /// `#define F(x) …`
    pub function: bool,
    /// Where.
    pub span: Span,
}

pub(crate) struct Tokens<'t> {
    lexer: Lexer<'t>,
    ahead: VecDeque<(Token, Span)>,
    pub defines: BTreeMap<String, Define>,
    expanded: usize,
    depth: usize,
}

impl<'t> Tokens<'t> {
    /// Those of a script.
    pub fn new(text: &'t str) -> Tokens<'t> {
        let lexer = Lexer { text, at: 0, script: true };
        Tokens { lexer, ahead: VecDeque::new(), defines: BTreeMap::new(), expanded: 0, depth: 0 }
    }

    /// Those of a filter. They are all read at once: what is wrong with a token comes before all other mistakes.
    pub fn of_filter(text: &'t str) -> Result<Tokens<'t>> {
        let mut t = Tokens::new(text);
        t.lexer.script = false;
        while t.ahead.back().is_none_or(|last| last.0 != Token::End) {
            let next = t.ahead.len();
            t.peek_at(next)?;
        }
        Ok(t)
    }

    /// For what is not made of tokens: begins where the next token does.
    pub fn raw(&mut self) -> &mut Lexer<'t> {
        if let Some((_, span)) = self.ahead.front() {
            self.lexer.at = span.start;
            self.ahead.clear();
        }
        &mut self.lexer
    }

    pub fn text(&self) -> &'t str {
        self.lexer.text
    }

    /// The token that is `n` after the next one.
    pub fn peek_at(&mut self, n: usize) -> Result<&Token> {
        while self.ahead.len() <= n {
            let (token, span) = self.lexer.next()?;
            match token {
                Token::Name(name) if self.defines.contains_key(&name) => self.expand(&name, span, &mut Vec::new())?,
                token => self.ahead.push_back((token, span)),
            }
        }
        Ok(&self.ahead[n].0)
    }

    pub fn peek(&mut self) -> Result<&Token> {
        self.peek_at(0)
    }

    pub fn span(&mut self) -> Result<Span> {
        self.peek()?;
        Ok(self.ahead[0].1)
    }

    pub fn next(&mut self) -> Result<(Token, Span)> {
        self.peek()?;
        let end = Span { start: self.lexer.at, end: self.lexer.at };
        Ok(self.ahead.pop_front().unwrap_or((Token::End, end)))
    }

    fn expand(&mut self, name: &str, span: Span, within: &mut Vec<String>) -> Result<()> {
        let Some(define) = self.defines.get(name).cloned() else { return Ok(()) };
        if define.function {
            let e = Diagnostic::new(Code::Macro, span, format!("'{name}' is a macro of C with parameters"));
            let hint = format!("write it in the script's language: macro {name}(x) {{ … }}");
            return Err(e.second(define.span, "it is defined here").hint(hint));
        }
        let body = define.body.map_err(|e| e.second(span, "it is used here"))?;
        if within.len() >= MAX_CHAIN {
            return Err(Diagnostic::new(Code::TooLarge, span, format!("macros within more than {MAX_CHAIN} others")));
        }
        within.push(name.to_owned());
        for token in body {
            self.expanded += 1;
            if self.expanded > MAX_EXPANDED {
                let message = format!("macros give more than {MAX_EXPANDED} tokens");
                return Err(Diagnostic::new(Code::TooLarge, span, message));
            }
            match token {
                Token::Name(n) if self.defines.contains_key(&n) && !within.contains(&n) => {
                    self.expand(&n, span, within)?;
                }
                token => self.ahead.push_back((token, span)),
            }
        }
        within.pop();
        Ok(())
    }

    /// Whether the next token is this symbol.
    pub fn at(&mut self, sym: &str) -> Result<bool> {
        Ok(matches!(self.peek()?, Token::Sym(s) if *s == sym))
    }

    pub fn at_name(&mut self, name: &str) -> Result<bool> {
        Ok(matches!(self.peek()?, Token::Name(n) if n == name))
    }

    pub fn eat(&mut self, sym: &str) -> Result<bool> {
        let hit = self.at(sym)?;
        if hit {
            self.next()?;
        }
        Ok(hit)
    }

    pub fn eat_name(&mut self, name: &str) -> Result<bool> {
        let hit = self.at_name(name)?;
        if hit {
            self.next()?;
        }
        Ok(hit)
    }

    pub fn expect(&mut self, sym: &str) -> Result<Span> {
        let span = self.span()?;
        if self.eat(sym)? { Ok(span) } else { Err(self.unexpected(&format!("'{sym}'"))) }
    }

    pub fn name(&mut self, what: &str) -> Result<(String, Span)> {
        match self.peek()? {
            Token::Name(_) => match self.next()? {
                (Token::Name(n), span) => Ok((n, span)),
                _ => Err(self.unexpected(what)),
            },
            _ => Err(self.unexpected(what)),
        }
    }

    pub fn integer(&mut self, what: &str) -> Result<(u64, Span)> {
        match self.peek()?.clone() {
            Token::Int(v) => Ok((v, self.next()?.1)),
            _ => Err(self.unexpected(what)),
        }
    }

    /// What is wrong with the next token.
    pub fn unexpected(&mut self, wanted: &str) -> Diagnostic {
        let (token, span) = match (self.peek().cloned(), self.span()) {
            (Ok(token), Ok(span)) => (token, span),
            (Err(e), _) | (_, Err(e)) => return e,
        };
        let what = match &token {
            Token::End => "the end".to_owned(),
            _ => quote(span.of(self.text())),
        };
        let e = Diagnostic::new(Code::Syntax, span, format!("expected {wanted}, found {what}"));
        match token {
            Token::Name(n) if matches!(n.as_str(), "and" | "or" | "not") => e.hint("write &&, ||, !"),
            Token::Sym("=") if self.lexer.script => e.hint("to compare, write =="),
            _ if self.lexer.script => e,
            other => not_in_filters(&other, e),
        }
    }

    /// One level of recursion.
    pub fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_NESTING {
            let message = format!("nested more than {MAX_NESTING} levels deep");
            return Err(Diagnostic::new(Code::TooLarge, self.span()?, message));
        }
        self.depth += 1;
        Ok(())
    }

    /// Back from it.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// A mistake at a token that filters do not have.
fn not_in_filters(token: &Token, e: Diagnostic) -> Diagnostic {
    let hint = match token {
        Token::Sym("=") => return e.hint("did you mean ==?"),
        Token::Sym("@" | "[" | "]") => "filters have no maps",
        Token::Sym("$") => "filters have no variables but the parameters $1, $2, …",
        Token::Sym("{" | "}" | ";") => "a filter is one expression",
        Token::Sym("++" | "--" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=") => {
            "filters change nothing"
        }
        _ => return e,
    };
    Diagnostic { code: Code::NotAFilter, ..e }.hint(hint)
}
