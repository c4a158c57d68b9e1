//! What a Rust source uses: a scanner of its text, no parser. Comments, strings and what is `#[cfg(test)]` or
//! `#[cfg(doc)]` are skipped.

use std::collections::BTreeSet;

/// The modules of a file that a place is in, outermost first: those with a body.
pub type Scope = Vec<String>;

/// One name of a `use` declaration.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    pub scope: Scope,
    pub path: Vec<String>,
    /// What it is called here; none: all names of the module at `path`.
    pub name: Option<String>,
}

/// What a file uses and defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its modules in files of their own.
    pub children: Vec<String>,
    pub imports: Vec<Import>,
    /// Paths of two or more names outside of `use`.
    pub paths: BTreeSet<(Scope, Vec<String>)>,
    /// Names that it defines.
    pub items: BTreeSet<String>,
    /// All identifiers.
    pub words: BTreeSet<String>,
}

impl Source {
    pub fn of(text: &str) -> Source {
        let mut scanner = Scanner { tokens: tokens(text), at: 0, source: Source::default() };
        scanner.module(&mut Vec::new());
        scanner.source
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = skipped(rest);
        if skipped > 0 {
            rest = &rest[skipped..];
        } else if c == '_' || c.is_alphanumeric() {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            let n = word(&rest[raw..]);
            out.push(Token::Word(rest[raw..raw + n].into()));
            rest = &rest[raw + n..];
        } else if let Some(after) = rest.strip_prefix("::") {
            out.push(Token::Colons);
            rest = after;
        } else {
            out.push(Token::Sign(c));
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Bytes of the identifier or number at the beginning of a text.
fn word(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
}

/// Bytes of the blanks, comment, string, character or lifetime at the beginning of a text; 0 where there is none.
fn skipped(text: &str) -> usize {
    let to = |n: Option<usize>| n.unwrap_or(text.len());
    let begins = |prefix: &str| text.starts_with(prefix);
    if begins("//") {
        return to(text.find('\n'));
    }
    if begins("/*") {
        return block_comment(text);
    }
    if begins("'") {
        return character(text);
    }
    let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r')).unwrap_or(text.len()).min(2);
    let string = &text[prefix..];
    if string.starts_with('"') && !text[..prefix].contains('r') {
        let mut escaped = false;
        let end = string[1..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return to(end.map(|n| prefix + n + 2));
    }
    let hashes = string.bytes().take_while(|b| *b == b'#').count();
    if text[..prefix].contains('r') && string[hashes..].starts_with('"') {
        let close = format!("\"{}", "#".repeat(hashes));
        return to(string[hashes + 1..].find(&close).map(|n| prefix + hashes + 1 + n + close.len()));
    }
    if prefix == 1 && begins("b'") {
        return 1 + character(&text[1..]);
    }
    text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len())
}

/// Bytes of a comment that begins with a slash and a star, and nests.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match (rest.starts_with(b"/*"), rest.starts_with(b"*/")) {
            (true, _) => (depth, at) = (depth + 1, at + 2),
            (_, true) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Bytes of the character or lifetime that begins with a quote.
fn character(text: &str) -> usize {
    let mut rest = text[1..].chars();
    match rest.next() {
        Some('\\') => text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(text.len(), |(n, _)| n + 3),
        Some(c) if rest.next() == Some('\'') => c.len_utf8() + 2,
        _ => 1 + word(&text[1..]),
    }
}

struct Scanner {
    tokens: Vec<Token>,
    at: usize,
    source: Source,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn is(&self, ahead: usize, sign: char) -> bool {
        self.peek(ahead) == Some(&Token::Sign(sign))
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        match self.peek(ahead) {
            Some(Token::Word(w)) => Some(w),
            _ => None,
        }
    }

    /// Everything up to the brace that closes the module.
    fn module(&mut self, scope: &mut Scope) {
        let mut depth = 0;
        while let Some(token) = self.peek(0) {
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') if depth == 0 => return,
                Token::Sign('}') => depth -= 1,
                Token::Sign('#') => {
                    self.attribute();
                    continue;
                }
                Token::Colons => {
                    // The path of another crate.
                    self.at += 1;
                    self.path();
                    continue;
                }
                Token::Word(w) => {
                    let w = w.clone();
                    self.named(&w, scope);
                    continue;
                }
                Token::Sign(_) => {}
            }
            self.at += 1;
        }
    }

    /// A keyword with what belongs to it, or a path.
    fn named(&mut self, word: &str, scope: &mut Scope) {
        let defined = self.word(1).map(String::from);
        match (word, defined) {
            ("use", _) => {
                self.at += 1;
                let other = self.peek(0) == Some(&Token::Colons);
                let mut found = Vec::new();
                self.tree(Vec::new(), &mut found);
                for (path, name) in found.into_iter().filter(|_| !other) {
                    self.source.imports.push(Import { scope: scope.clone(), path, name });
                }
            }
            // `pub(in path)` uses nothing.
            ("pub", _) => {
                self.at += 1;
                if self.is(0, '(') && self.word(1) == Some("in") {
                    self.balanced();
                }
            }
            ("mod", Some(name)) => {
                self.at += 2;
                if self.is(0, ';') {
                    self.source.children.push(name);
                } else if self.is(0, '{') {
                    self.at += 1;
                    self.source.items.insert(name.clone());
                    scope.push(name);
                    self.module(scope);
                    scope.pop();
                    self.at += 1;
                }
            }
            ("fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static", Some(name)) => {
                self.source.items.insert(name);
                self.at += 1;
            }
            ("macro_rules", _) if self.is(1, '!') => {
                self.source.items.extend(self.word(2).map(String::from));
                self.at += 3;
            }
            _ => {
                let path = self.path();
                if path.len() > 1 {
                    self.source.paths.insert((scope.clone(), path));
                }
            }
        }
    }

    /// The names of a path from here on.
    fn path(&mut self) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(w) = self.word(0).map(String::from) {
            self.source.words.insert(w.clone());
            path.push(w);
            self.at += 1;
            if self.peek(0) != Some(&Token::Colons) || self.word(1).is_none() {
                break;
            }
            self.at += 1;
        }
        path
    }

    /// A tree of `use`, below `prefix`.
    fn tree(&mut self, mut path: Vec<String>, found: &mut Vec<(Vec<String>, Option<String>)>) {
        loop {
            if self.is(0, '{') {
                self.at += 1;
                while self.peek(0).is_some() && !self.is(0, '}') {
                    self.tree(path.clone(), found);
                    self.at += usize::from(self.is(0, ','));
                }
                self.at += 1;
                return;
            }
            if self.is(0, '*') {
                self.at += 1;
                return found.push((path, None));
            }
            if self.peek(0) == Some(&Token::Colons) {
                self.at += 1;
                continue;
            }
            let Some(name) = self.word(0).map(String::from) else { return self.at += 1 };
            path.push(name);
            self.at += 1;
            if self.peek(0) != Some(&Token::Colons) {
                break;
            }
        }
        if path.len() > 1 && path.last().is_some_and(|w| w == "self") {
            path.pop();
        }
        let mut name = path.last().cloned();
        if self.word(0) == Some("as") {
            name = self.word(1).map(String::from);
            self.at += 2;
        }
        found.push((path, name));
    }

    /// An attribute; with `cfg(test)` or `cfg(doc)` the item that it belongs to is skipped.
    fn attribute(&mut self) {
        self.at += 1;
        self.at += usize::from(self.is(0, '!'));
        if !self.is(0, '[') {
            return;
        }
        let from = self.at;
        self.balanced();
        let words: Vec<&Token> = self.tokens[from..self.at].iter().collect();
        let word = |w: &str| words.contains(&&Token::Word(w.into()));
        if word("cfg") && (word("test") || word("doc")) && !word("not") && !word("any") {
            self.item();
        }
    }

    /// Past what is in the brackets that open here.
    fn balanced(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.peek(0) {
            match token {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
    }

    /// Past an item: up to its semicolon, or to the end of its body.
    fn item(&mut self) {
        let in_use = |s: &Scanner| s.word(0) == Some("use");
        let mut with_braces = false;
        while self.peek(0).is_some() {
            with_braces |= in_use(self);
            if self.is(0, ';') {
                self.at += 1;
                return;
            }
            let body = self.is(0, '{');
            if body || self.is(0, '(') || self.is(0, '[') {
                self.balanced();
            } else {
                self.at += 1;
            }
            if body && !with_braces {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let source = Source::of(text);
        let glob = |i: &Import| if i.name.is_none() { "::*" } else { "" };
        let imports = source.imports.iter().map(|i| i.path.join("::") + glob(i));
        imports.chain(source.paths.iter().map(|(_, p)| p.join("::"))).collect()
    }

    #[test]
    fn trees_of_use_are_taken_apart() {
        let text = "pub(crate) use crate::a::{self, b::{C, D as E}, *}; use ::other::x; use super::super::y;";
        assert_eq!(paths(text), ["crate::a", "crate::a::b::C", "crate::a::b::D", "crate::a::*", "super::super::y"]);
        let names: Vec<_> = Source::of(text).imports.into_iter().map(|i| i.name).collect();
        assert_eq!(names, [Some("a".into()), Some("C".into()), Some("E".into()), None, Some("y".into())]);
    }

    #[test]
    fn comments_strings_and_tests_say_nothing() {
        let text = r###"
            // crate::a::b
            /* crate::a::b /* crate::c::d */ crate::e::f */
            const S: &[&str] = &["crate::a::b\"", r#"crate::"a"::b"#, b"x::y"];
            fn f<'a>(c: &'a str) -> char { let _ = ('\'', '"', b'\'', '\u{22}'); crate::real::one(c) }
            #[cfg(test)]
            mod tests { use super::*; fn t() { crate::a::b(); } }
            #[cfg(test)]
            use crate::{a::b};
            #[cfg(test)]
            const N: [u8; 4] = crate::a::B;
            #[cfg(doc)]
            use crate::a;
            #[cfg(not(test))]
            pub(in crate::a::b) fn g() { self::two() }
        "###;
        assert_eq!(paths(text), ["crate::real::one", "self::two"]);
    }

    #[test]
    fn modules_items_and_scopes_are_known() {
        let source =
            Source::of("mod a; pub mod b { pub fn f() { super::x::y() } } enum E {} macro_rules! m { () => {} }");
        assert_eq!(source.children, ["a"]);
        let path = (vec!["b".to_string()], ["super", "x", "y"].map(String::from).to_vec());
        assert_eq!(source.paths, BTreeSet::from([path]));
        assert!(["b", "f", "E", "m"].iter().all(|i| source.items.contains(*i)));
    }
}
