//! Text to the tree of a script: directives, declarations, settings, macros, clauses, statements. Expressions are `expr`'s.
//!
//! ```text
//! #include <x>   #define N 1   struct s { … };   config = { … }   let @m = hash(9);   macro f($x) { … }   probe /p/ { … }
//! ```
//!
//! Invariant: recursion is at most [`super::tokens::MAX_NESTING`] deep, and no tree is higher than [`MAX_HEIGHT`].

use super::ast::*;
use super::diag::{Code, Diagnostic};
use super::tokens::{Define, Result, Tokens};
use super::{attach, cdecl};
use crate::ast::Binary;
use crate::diag::{Span, quote};
use crate::lex::{Lexer, Token};
use crate::near::did_you_mean;
use std::collections::BTreeMap;

/// The longest script, in bytes.
pub const MAX_SCRIPT: usize = 1 << 20;

/// What the command line gives a script.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// `$1`, `$2`, …
    pub positional: Vec<String>,
    /// `--name=value`, for `getopt`.
    pub named: Vec<(String, String)>,
    /// `--config name=value`, instead of what the script says.
    pub config: Vec<(String, String)>,
}

/// Parses a script.
pub fn parse(text: &str, params: &Parameters) -> Result<(Script, Vec<Diagnostic>)> {
    if text.len() > MAX_SCRIPT {
        let start = (0..=MAX_SCRIPT).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let message = format!("a script of {} bytes; at most {MAX_SCRIPT} are allowed", text.len());
        return Err(Diagnostic::new(Code::TooLarge, Span { start, end: text.len() }, message));
    }
    let mut p =
        Parser { t: Tokens::new(text), params, script: Script::default(), branches: Vec::new(), warnings: Vec::new() };
    if text.starts_with("#!") {
        p.t.raw().take_while(|c| c != '\n');
    }
    // What many scripts ask before they include the kernel's headers.
    let known = Define { body: Ok(vec![Token::Int(1)]), function: false, span: Span::default() };
    p.t.defines.insert("BPFTRACE_HAVE_BTF".into(), known);
    while p.top()? {}
    if let Some(b) = p.branches.last() {
        return Err(Diagnostic::new(Code::Declaration, b.span, "a directive without its #endif"));
    }
    if p.script.clauses.is_empty() {
        let end = Span { start: text.len(), end: text.len() };
        return Err(Diagnostic::new(Code::Syntax, end, "a script without a probe").hint("for instance begin { … }"));
    }
    Ok((p.script, p.warnings))
}

/// `#if` … `#endif`
struct Branch {
    span: Span,
    /// One of its parts has been taken.
    taken: bool,
    /// This part is read.
    active: bool,
}

pub(super) struct Parser<'t> {
    pub t: Tokens<'t>,
    pub params: &'t Parameters,
    pub script: Script,
    branches: Vec<Branch>,
    pub warnings: Vec<Diagnostic>,
}

impl Parser<'_> {
    /// What comes next at the outermost level; false at the end.
    fn top(&mut self) -> Result<bool> {
        let l = self.t.raw();
        l.blanks()?;
        match l.peek() {
            None => return Ok(false),
            Some('#') => {
                self.directive()?;
                return Ok(true);
            }
            Some(';') => {
                l.at += 1;
                return Ok(true);
            }
            _ => {}
        }
        if self.branches.iter().any(|b| !b.active) {
            l.take_while(|c| c != '\n');
            return Ok(true);
        }
        let start = l.at;
        let word = l.word();
        let after = l.rest().trim_start();
        let (colon, assigns) = (after.starts_with(':'), after.starts_with('='));
        let names = after.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '@' | '$'));
        l.at = start;
        match word {
            "struct" | "union" | "enum" | "typedef" | "extern" if !colon => {
                cdecl::declaration(&mut self.t, &mut self.script.declarations)?;
            }
            "config" if assigns => self.config()?,
            "let" if names => self.map_declaration()?,
            "macro" if names => self.macro_()?,
            "import" if after.starts_with('"') => {
                return Err(self.unsupported(
                    start,
                    word,
                    "a later version imports files; copy what you need into the script",
                ));
            }
            "fn" | "subprog" if names => {
                return Err(self.unsupported(start, word, "write a macro: macro name($x) { … }"));
            }
            _ => self.clause(start)?,
        }
        Ok(true)
    }

    fn unsupported(&self, start: usize, word: &str, hint: &str) -> Diagnostic {
        let span = Span { start, end: start + word.len() };
        Diagnostic::new(Code::Unsupported, span, format!("'{word}' is not in this version")).hint(hint)
    }

    fn directive(&mut self) -> Result<()> {
        let text = self.t.text();
        let l = self.t.raw();
        let start = l.at;
        l.at += 1;
        l.take_while(|c| c == ' ' || c == '\t');
        let word = l.word();
        let body = l.at;
        // A line that ends in a backslash goes on in the next one.
        loop {
            l.take_while(|c| c != '\n');
            if !text[body..l.at].ends_with('\\') || l.at == text.len() {
                break;
            }
            l.at += 1;
        }
        let span = Span { start, end: l.at };
        let body = Span { start: body, end: l.at };
        let active = self.branches.iter().all(|b| b.active);
        match word {
            "ifdef" | "ifndef" | "if" => {
                let holds = active && self.holds(word, body)?;
                self.branches.push(Branch { span, taken: holds || !active, active: holds });
            }
            "elif" | "else" | "endif" => self.other_branch(word, span, body)?,
            _ if !active => {}
            "define" => self.define(body)?,
            "undef" => drop(self.t.defines.remove(body.of(text).trim())),
            "include" => self.script.includes.push((body.of(text).trim().to_owned(), body)),
            "pragma" | "error" | "warning" | "line" | "" => {}
            _ => {
                let known = ["include", "define", "undef", "ifdef", "ifndef", "if", "else", "elif", "endif"];
                let e = Diagnostic::new(Code::Declaration, span, format!("unknown directive {}", quote(word)));
                return Err(e.maybe_hint(did_you_mean("#", word, known.into_iter())));
            }
        }
        Ok(())
    }

    fn other_branch(&mut self, word: &str, span: Span, body: Span) -> Result<()> {
        let outer = self.branches.iter().rev().skip(1).all(|b| b.active);
        let Some(taken) = self.branches.last().map(|b| b.taken) else {
            return Err(Diagnostic::new(Code::Declaration, span, format!("#{word} without an #if")));
        };
        if word == "endif" {
            self.branches.pop();
            return Ok(());
        }
        let active = outer && !taken && (word == "else" || self.holds("if", body)?);
        if let Some(b) = self.branches.last_mut() {
            (b.active, b.taken) = (active, b.taken || active);
        }
        Ok(())
    }

    /// Whether the part behind `#if`, `#ifdef`, `#ifndef` is read. Names that are not defined are 0, as in C.
    fn holds(&mut self, word: &str, body: Span) -> Result<bool> {
        let text = body.of(self.t.text());
        if word != "if" {
            let name = text.split_whitespace().next().unwrap_or_default();
            return Ok(self.t.defines.contains_key(name) == (word == "ifdef"));
        }
        let mut words = String::new();
        let mut l = Lexer { text, at: 0, script: true };
        let mut defined = false;
        loop {
            let (token, span) = l.next().map_err(|mut e| {
                (e.span.start, e.span.end) = (e.span.start + body.start, e.span.end + body.start);
                Diagnostic::from(e)
            })?;
            let word = span.of(text);
            match token {
                Token::End => break,
                Token::Name(n) if n == "defined" => defined = true,
                Token::Name(n) if defined => {
                    words.push_str(if self.t.defines.contains_key(&n) { "1 " } else { "0 " });
                    defined = false;
                }
                Token::Name(n) => match self.t.defines.get(&n).map(|d| &d.body) {
                    Some(Ok(body)) if matches!(body[..], [Token::Int(_)]) => {
                        let [Token::Int(v)] = body[..] else { continue };
                        words.push_str(&format!("{} ", v as u64));
                    }
                    _ => words.push_str("0 "),
                },
                _ => words.push_str(&format!("{word} ")),
            }
        }
        let mut t = Tokens::new(&words);
        let value = cdecl::constant(&mut t, &self.script.declarations);
        match value {
            Ok(v) if *t.peek()? == Token::End => Ok(v != 0),
            _ => Err(Diagnostic::new(Code::Declaration, body, "a condition that is not understood")
                .hint("numbers, defined(NAME), !, &&, || and comparisons are")),
        }
    }

    fn define(&mut self, body: Span) -> Result<()> {
        let text = body.of(self.t.text());
        let mut l = Lexer { text, at: 0, script: true };
        l.take_while(char::is_whitespace);
        let start = l.at;
        let name = l.word();
        let span = Span { start: body.start + start, end: body.start + l.at };
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Diagnostic::new(Code::Declaration, body, "#define without a name"));
        }
        let function = l.rest().starts_with('(');
        let replaced = l.rest().replace("\\\n", "  ");
        let mut inner = Lexer { text: &replaced, at: 0, script: true };
        let mut tokens = Vec::new();
        let body = loop {
            match inner.next() {
                Ok((Token::End, _)) => break Ok(tokens),
                Ok((token, _)) => tokens.push(token),
                Err(e) => break Err(Diagnostic { span, ..Diagnostic::from(e) }),
            }
        };
        self.t.defines.insert(name.to_owned(), Define { body, function, span });
        Ok(())
    }

    /// `config = { name = value; … }`
    fn config(&mut self) -> Result<()> {
        self.t.next()?;
        self.t.expect("=")?;
        self.t.expect("{")?;
        while !self.t.eat("}")? {
            let (name, span) = self.t.name("a setting or '}'")?;
            self.t.expect("=")?;
            let (token, value) = self.t.next()?;
            let value_text = match token {
                Token::Str(s) => String::from_utf8_lossy(&s).into_owned(),
                Token::Int(v) => (v as u64).to_string(),
                Token::Name(n) => n,
                _ => return Err(Diagnostic::new(Code::Syntax, value, "expected a number, a string or a name")),
            };
            self.script.config.push(Setting { name, value: value_text, span: span.to(value) });
            if !self.t.eat(";")? && !self.t.eat(",")? {
                self.t.expect("}")?;
                return Ok(());
            }
        }
        Ok(())
    }

    /// `let @m = hash(100);`
    fn map_declaration(&mut self) -> Result<()> {
        let (_, start) = self.t.next()?;
        let name = match self.t.next()? {
            (Token::Map(name), _) => name,
            (_, span) => {
                return Err(Diagnostic::new(Code::Place, span, "only maps are declared outside of clauses")
                    .hint("write let @name = hash(100);"));
            }
        };
        self.t.expect("=")?;
        let (kind, span) = self.t.name("a kind of map")?;
        let kinds = ["hash", "lruhash", "percpuhash", "percpulruhash"];
        if !kinds.contains(&kind.as_str()) {
            let e = Diagnostic::new(Code::Name, span, format!("no kind of map is called '{kind}'"));
            return Err(e.hint(format!("there are {}", kinds.join(", "))).maybe_hint(did_you_mean(
                "",
                &kind,
                kinds.into_iter(),
            )));
        }
        self.t.expect("(")?;
        let (entries, at) = self.t.integer("how many keys it holds")?;
        if entries == 0 || entries > u64::from(u32::MAX) {
            return Err(Diagnostic::new(Code::Type, at, "not a number of keys"));
        }
        let end = self.t.expect(")")?;
        self.t.expect(";")?;
        self.script.maps.push(MapDeclaration { name, kind, entries, span: start.to(end) });
        Ok(())
    }

    /// `macro name($x, @m, e) { … }`
    fn macro_(&mut self) -> Result<()> {
        self.t.next()?;
        let (name, span) = self.t.name("the macro's name")?;
        self.t.expect("(")?;
        let mut params = Vec::new();
        while !self.t.at(")")? {
            params.push(match self.t.next()? {
                (Token::Var(n), _) => MacroParam::Var(n),
                (Token::Map(n), _) => MacroParam::Map(n),
                (Token::Name(n), _) => MacroParam::Expr(n),
                (_, span) => {
                    let e = Diagnostic::new(Code::Syntax, span, "expected a parameter");
                    return Err(e.hint("$x is a variable, @m a map, x any expression"));
                }
            });
            if !self.t.eat(",")? {
                break;
            }
        }
        self.t.expect(")")?;
        self.t.expect("{")?;
        let body = self.body()?;
        self.script.macros.push(Macro { name, params, body, span });
        Ok(())
    }

    fn clause(&mut self, start: usize) -> Result<()> {
        let params = self.params;
        let (points, predicate) = attach::points(self.t.raw(), &params.positional)?;
        let predicate = match predicate {
            true => Some(self.predicate()?),
            false => None,
        };
        self.t.expect("{")?;
        let (body, end) = self.rest_of_block()?;
        self.script.clauses.push(Clause { points, predicate, body, span: Span { start, end } });
        Ok(())
    }

    /// Behind the first `/`, up to the second one.
    fn predicate(&mut self) -> Result<Expr> {
        if self.t.at("/")? {
            let span = self.t.span()?;
            return Err(Diagnostic::new(Code::Syntax, span, "an empty predicate").hint("leave both slashes out"));
        }
        let e = self.expr()?;
        self.t.expect("/")?;
        Ok(e)
    }

    pub fn block(&mut self) -> Result<Vec<Stmt>> {
        self.t.expect("{")?;
        Ok(self.rest_of_block()?.0)
    }

    /// Up to the brace; where that ends.
    fn rest_of_block(&mut self) -> Result<(Vec<Stmt>, usize)> {
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

    /// Statements, and what stands behind the last semicolon.
    pub fn body(&mut self) -> Result<Body> {
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
                    let span = self.t.span()?;
                    return Err(Diagnostic::new(Code::Place, span, "a clause returns no value").hint("write return;"));
                }
                let kind = match word.as_str() {
                    "break" => StmtKind::Break,
                    "continue" => StmtKind::Continue,
                    _ => StmtKind::Return,
                };
                self.stmt(kind, start, 0)
            }
            _ => self.simple(start),
        }
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

/// The height of the highest.
pub(super) fn height(stmts: &[Stmt]) -> usize {
    stmts.iter().map(|s| s.height).max().unwrap_or(0)
}

/// The macros of a script, by name.
pub(super) fn by_name(macros: &[Macro]) -> BTreeMap<&str, Vec<&Macro>> {
    let mut out: BTreeMap<&str, Vec<&Macro>> = BTreeMap::new();
    macros.iter().for_each(|m| out.entry(&m.name).or_default().push(m));
    out
}
