//! Text to the tree of a script: directives, declarations, settings, macros, clauses. Statements and expressions are
//! `crate::parse`'s.
//!
//! ```text
//! #include <x>   #define N 1   struct s { … };   config = { … }   let @m = hash(9);   macro f($x) { … }   fn f($x) { … }   probe /p/ { … }
//! ```
//!
//! Invariant: recursion is at most [`crate::tokens::MAX_NESTING`] deep, and no tree is higher than [`MAX_HEIGHT`].

use super::ast::*;
use super::attach::Point;
use super::{attach, cdecl, headers};
use crate::diag::{Code, Diagnostic, Span, quote};
use crate::lex::{Lexer, Token, limit};
use crate::near::did_you_mean;
use crate::parse::{Parser, Sizes};
use crate::tokens::{Define, Result, Tokens};
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
    /// `--unsafe`: it may run commands.
    pub may_run: bool,
    /// `-k`: operations on maps that fail are said; from 2 on, reads of memory and of keys too.
    pub failures: u8,
    /// Of its clauses only this one of `test:` or `bench:`; else all others.
    pub only: Option<String>,
}

/// The clauses `test:NAME` and `bench:NAME` of a script, by their probes.
pub fn tests(text: &str, params: &Parameters) -> Result<Vec<Point>> {
    // Their names do not depend on the sizes of structures.
    let (script, _) = whole(text, params, &|_| Some((0, 1)))?;
    Ok(script.clauses.into_iter().flat_map(|c| c.points).filter(Point::is_test).collect())
}

/// Parses a script. `sizes` knows structures that it does not declare itself.
pub fn parse(text: &str, params: &Parameters, sizes: Sizes<'_>) -> Result<(Script, Vec<Diagnostic>)> {
    let (mut script, warnings) = whole(text, params, sizes)?;
    for clause in &mut script.clauses {
        clause.points.retain(|p| match &params.only {
            Some(name) => p.name() == *name,
            None => !p.is_test(),
        });
    }
    let first = script.clauses.first().map(|c| c.span);
    script.clauses.retain(|c| !c.points.is_empty());
    if let (Some(span), true) = (first, script.clauses.is_empty()) {
        let e = Diagnostic::new(Code::Syntax, span, "a script of tests alone");
        return Err(e.hint("run them with trapline test FILE"));
    }
    Ok((script, warnings))
}

/// With all of its clauses.
fn whole(text: &str, params: &Parameters, sizes: Sizes<'_>) -> Result<(Script, Vec<Diagnostic>)> {
    limit(text, MAX_SCRIPT, "script")?;
    let mut p = Parser::new(Tokens::new(text));
    p.sizes = Some(sizes);
    let mut r = Reader { p, params, script: Script::default(), branches: Vec::new() };
    if text.starts_with("#!") {
        r.p.t.raw().take_while(|c| c != '\n');
    }
    // What many scripts ask before they include the kernel's headers.
    let known = Define { body: Ok(vec![Token::Int(1)]), function: false, span: Span::default() };
    r.p.t.defines.insert("BPFTRACE_HAVE_BTF".into(), known);
    while r.top()? {}
    if let Some(b) = r.branches.last() {
        return Err(Diagnostic::new(Code::Declaration, b.span, "a directive without its #endif"));
    }
    if r.script.clauses.is_empty() {
        let end = Span { start: text.len(), end: text.len() };
        return Err(Diagnostic::new(Code::Syntax, end, "a script without a probe").hint("for instance begin { … }"));
    }
    Ok((r.script, r.p.warnings))
}

/// `#if` … `#endif`
struct Branch {
    span: Span,
    /// One of its parts has been taken.
    taken: bool,
    /// This part is read.
    active: bool,
}

struct Reader<'t> {
    p: Parser<'t>,
    params: &'t Parameters,
    script: Script,
    branches: Vec<Branch>,
}

impl Reader<'_> {
    /// What comes next at the outermost level; false at the end.
    fn top(&mut self) -> Result<bool> {
        let l = self.p.t.raw();
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
                cdecl::declaration(&mut self.p, &mut self.script.declarations)?;
            }
            "config" if assigns => self.config()?,
            "let" if names => self.map_declaration()?,
            "macro" if names => self.macro_()?,
            "import" if after.starts_with('"') => {
                let span = Span { start, end: start + word.len() };
                let e = Diagnostic::new(Code::Place, span, "an import is a line of its own");
                return Err(e.hint("write import \"FILE\"; at the beginning of a line"));
            }
            "fn" | "subprog" if names => self.function()?,
            _ => self.clause(start)?,
        }
        Ok(true)
    }

    fn directive(&mut self) -> Result<()> {
        let text = self.p.t.text();
        let l = self.p.t.raw();
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
            "undef" => drop(self.p.t.defines.remove(body.of(text).trim())),
            "include" => {
                let header = body.of(text).trim();
                if !headers::is_known(header) {
                    let message = format!("{}: file not found", quote(header));
                    let e = Diagnostic::new(Code::Name, body, message);
                    let todo = "it is none of Linux or C, and others are not read: declare what the script needs of it";
                    return Err(e.hint(todo));
                }
                self.script.includes.push((header.to_owned(), body));
            }
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
        let text = body.of(self.p.t.text());
        if word != "if" {
            let name = text.split_whitespace().next().unwrap_or_default();
            return Ok(self.p.t.defines.contains_key(name) == (word == "ifdef"));
        }
        let mut words = String::new();
        let mut l = Lexer { text, at: 0, script: true };
        let mut defined = false;
        loop {
            let (token, span) = l.next().map_err(|mut e| {
                (e.span.start, e.span.end) = (e.span.start + body.start, e.span.end + body.start);
                e
            })?;
            let word = span.of(text);
            match token {
                Token::End => break,
                Token::Name(n) if n == "defined" => defined = true,
                Token::Name(n) if defined => {
                    words.push_str(if self.p.t.defines.contains_key(&n) { "1 " } else { "0 " });
                    defined = false;
                }
                Token::Name(n) => match self.p.t.defines.get(&n).map(|d| &d.body) {
                    Some(Ok(body)) if matches!(body[..], [Token::Int(_)]) => {
                        let [Token::Int(v)] = body[..] else { continue };
                        words.push_str(&format!("{v} "));
                    }
                    _ => words.push_str("0 "),
                },
                _ => words.push_str(&format!("{word} ")),
            }
        }
        let mut p = Parser::new(Tokens::new(&words));
        let value = cdecl::constant(&mut p, &self.script.declarations);
        match value {
            Ok(v) if *p.t.peek()? == Token::End => Ok(v != 0),
            _ => Err(Diagnostic::new(Code::Declaration, body, "a condition that is not understood")
                .hint("numbers, defined(NAME), !, &&, || and comparisons are")),
        }
    }

    fn define(&mut self, body: Span) -> Result<()> {
        let text = body.of(self.p.t.text());
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
                Err(e) => break Err(Diagnostic { span, ..e }),
            }
        };
        self.p.t.defines.insert(name.to_owned(), Define { body, function, span });
        Ok(())
    }

    /// `config = { name = value; … }`
    fn config(&mut self) -> Result<()> {
        self.p.t.next()?;
        self.p.t.expect("=")?;
        self.p.t.expect("{")?;
        while !self.p.t.eat("}")? {
            let (name, span) = self.p.t.name("a setting or '}'")?;
            self.p.t.expect("=")?;
            let (token, value) = self.p.t.next()?;
            let value_text = match token {
                Token::Str(s) => String::from_utf8_lossy(&s).into_owned(),
                Token::Int(v) => v.to_string(),
                Token::Name(n) => n,
                _ => return Err(Diagnostic::new(Code::Syntax, value, "expected a number, a string or a name")),
            };
            self.script.config.push(Setting { name, value: value_text, span: span.to(value) });
            if !self.p.t.eat(";")? && !self.p.t.eat(",")? {
                self.p.t.expect("}")?;
                return Ok(());
            }
        }
        Ok(())
    }

    /// `let @m = hash(100);`
    fn map_declaration(&mut self) -> Result<()> {
        let (_, start) = self.p.t.next()?;
        let name = match self.p.t.next()? {
            (Token::Map(name), _) => name,
            (_, span) => {
                return Err(Diagnostic::new(Code::Place, span, "only maps are declared outside of clauses")
                    .hint("write let @name = hash(100);"));
            }
        };
        self.p.t.expect("=")?;
        let (kind, span) = self.p.t.name("a kind of map")?;
        let kinds = ["hash", "lruhash", "percpuhash", "percpulruhash"];
        if !kinds.contains(&kind.as_str()) {
            let e = Diagnostic::new(Code::Name, span, format!("no kind of map is called '{kind}'"));
            return Err(e.hint(format!("there are {}", kinds.join(", "))).maybe_hint(did_you_mean(
                "",
                &kind,
                kinds.into_iter(),
            )));
        }
        self.p.t.expect("(")?;
        let (entries, at) = self.p.t.integer("how many keys it holds")?;
        if entries == 0 || entries > u64::from(u32::MAX) {
            return Err(Diagnostic::new(Code::Type, at, "not a number of keys"));
        }
        let end = self.p.t.expect(")")?;
        self.p.t.expect(";")?;
        self.script.maps.push(MapDeclaration { name, kind, entries, span: start.to(end) });
        Ok(())
    }

    /// `macro name($x, @m, e) { … }`
    fn macro_(&mut self) -> Result<()> {
        self.p.t.next()?;
        let (name, span) = self.p.t.name("the macro's name")?;
        self.p.t.expect("(")?;
        let mut params = Vec::new();
        while !self.p.t.at(")")? {
            params.push(match self.p.t.next()? {
                (Token::Var(n), _) => MacroParam::Var(n),
                (Token::Map(n), _) => MacroParam::Map(n),
                (Token::Name(n), _) => MacroParam::Expr(n),
                (_, span) => {
                    let e = Diagnostic::new(Code::Syntax, span, "expected a parameter");
                    return Err(e.hint("$x is a variable, @m a map, x any expression"));
                }
            });
            if !self.p.t.eat(",")? {
                break;
            }
        }
        self.p.t.expect(")")?;
        self.p.t.expect("{")?;
        let body = self.p.body()?;
        self.script.macros.push(Macro { name, params, body, function: None, span });
        Ok(())
    }

    /// `fn name($x : type, …) : type { … }`
    fn function(&mut self) -> Result<()> {
        self.p.t.next()?;
        let (name, span) = self.p.t.name("the function's name")?;
        self.p.t.expect("(")?;
        let mut params = Vec::new();
        while !self.p.t.at(")")? {
            let (token, at) = self.p.t.next()?;
            let Token::Var(n) = token else {
                let e = Diagnostic::new(Code::Syntax, at, "expected a parameter");
                return Err(e.hint("write $x or $x : type; a macro takes maps: macro name(@m) { … }"));
            };
            let ty = if self.p.t.eat(":")? { Some(self.p.type_name()?) } else { None };
            params.push(MacroParam::Value(n, ty));
            if !self.p.t.eat(",")? {
                break;
            }
        }
        self.p.t.expect(")")?;
        let ty = if self.p.t.eat(":")? { Some(self.p.type_name()?) } else { None };
        self.p.t.expect("{")?;
        self.p.in_function = true;
        let body = self.p.body();
        self.p.in_function = false;
        let Body { mut stmts, value } = body?;
        // An expression at the end is what it does, as in C.
        if let Some(e) = value {
            let (span, height) = (e.span, e.height + 1);
            stmts.push(Stmt { kind: StmtKind::Expr(*e), span, height });
        }
        let body = Body { stmts, value: None };
        self.script.macros.push(Macro { name, params, body, function: Some(ty), span });
        Ok(())
    }

    fn clause(&mut self, start: usize) -> Result<()> {
        let params = self.params;
        let (points, predicate) = attach::points(self.p.t.raw(), &params.positional)?;
        let predicate = match predicate {
            true => Some(self.predicate()?),
            false => None,
        };
        self.p.t.expect("{")?;
        let (body, end) = self.p.rest_of_block()?;
        self.script.clauses.push(Clause { points, predicate, body, span: Span { start, end } });
        Ok(())
    }

    /// Behind the first `/`, up to the second one.
    fn predicate(&mut self) -> Result<Expr> {
        if self.p.t.at("/")? {
            let span = self.p.t.span()?;
            return Err(Diagnostic::new(Code::Syntax, span, "an empty predicate").hint("leave both slashes out"));
        }
        let e = self.p.expr()?;
        self.p.t.expect("/")?;
        Ok(e)
    }
}

/// The macros of a script, by name.
pub(super) fn by_name(macros: &[Macro]) -> BTreeMap<&str, Vec<&Macro>> {
    let mut out: BTreeMap<&str, Vec<&Macro>> = BTreeMap::new();
    macros.iter().for_each(|m| out.entry(&m.name).or_default().push(m));
    out
}
