//! Tokens of TSDL.

use super::Error;
use crate::identifiers::clip;

/// A place in the text: line and column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pos {
    pub line: u32,
    pub column: u32,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok {
    Word(String),
    Number(u64),
    Text(String),
    /// Punctuation: one of `PUNCTUATION`.
    P(&'static str),
    End,
}

impl Tok {
    /// For diagnostics.
    pub fn describe(&self) -> String {
        match self {
            Tok::Word(w) => format!("`{}`", clip(w)),
            Tok::Number(n) => format!("`{n}`"),
            Tok::Text(_) => "a string".into(),
            Tok::P(p) => format!("`{p}`"),
            Tok::End => "the end of the metadata".into(),
        }
    }
}

/// Longest first.
const PUNCTUATION: &[&str] =
    &["...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", ".", "*", "-", "+"];

/// Longest identifier that is taken.
const MAX_WORD: usize = 4096;

/// Splits the text. Fails at the first thing that is no token.
pub(super) fn tokens(text: &str, max: usize) -> Result<Vec<(Tok, Pos)>, Error> {
    let mut lexer = Lexer { rest: text, pos: Pos { line: 1, column: 1 } };
    let mut out = Vec::new();
    loop {
        lexer.blanks()?;
        let pos = lexer.pos;
        if out.len() >= max {
            return Err(Error::at(pos, format!("more than {max} tokens")));
        }
        let token = lexer.token()?;
        let end = token == Tok::End;
        out.push((token, pos));
        if end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    pos: Pos,
}

impl<'a> Lexer<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(Error::at(self.pos, message))
    }

    /// Takes the first `bytes` bytes, which end between characters.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (head, rest) = self.rest.split_at(bytes);
        for c in head.chars() {
            if c == '\n' {
                self.pos = Pos { line: self.pos.line.saturating_add(1), column: 1 };
            } else {
                self.pos.column = self.pos.column.saturating_add(1);
            }
        }
        self.rest = rest;
        head
    }

    /// White space, comments, and directives that begin with `#`.
    fn blanks(&mut self) -> Result<(), Error> {
        loop {
            let space =
                self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n', '\x0b', '\x0c', '\0']).len();
            self.take(space);
            if self.rest.starts_with("/*") {
                let Some(end) = self.rest[2..].find("*/") else { return self.fail("a comment that does not end") };
                self.take(end + 4);
            } else if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Tok, Error> {
        let Some(first) = self.rest.chars().next() else { return Ok(Tok::End) };
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == 'L' && (self.rest.starts_with("L\"") || self.rest.starts_with("L'")) {
            self.take(1);
            return self.text();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
            if end > MAX_WORD {
                return self.fail(format!("a word of more than {MAX_WORD} characters"));
            }
            return Ok(Tok::Word(self.take(end).into()));
        }
        if first == '"' || first == '\'' {
            return self.text();
        }
        match PUNCTUATION.iter().find(|p| self.rest.starts_with(**p)) {
            Some(p) => {
                self.take(p.len());
                Ok(Tok::P(p))
            }
            None => self.fail(format!("`{}` is not part of the language", first.escape_default())),
        }
    }

    fn number(&mut self) -> Result<Tok, Error> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let parsed = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16)
        } else if let Some(octal) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
            u64::from_str_radix(octal, 8)
        } else {
            digits.parse::<u64>()
        };
        match parsed {
            Ok(n) => {
                self.take(end);
                Ok(Tok::Number(n))
            }
            Err(_) => self.fail(format!("`{}` is not an integer of 64 bits", clip(word))),
        }
    }

    /// A string or a character constant.
    fn text(&mut self) -> Result<Tok, Error> {
        let start = self.pos;
        let quote = self.take(1).as_bytes()[0];
        let mut out: Vec<u8> = Vec::new();
        loop {
            let Some(c) = self.rest.chars().next() else { return Err(Error::at(start, "a string that does not end")) };
            match c {
                '\\' => self.escape(&mut out)?,
                '\n' => return Err(Error::at(start, "a string that does not end on its line")),
                _ if c == char::from(quote) => break,
                _ => out.extend_from_slice(self.take(c.len_utf8()).as_bytes()),
            }
        }
        self.take(1);
        if quote == b'\'' {
            return match out.as_slice() {
                [one] => Ok(Tok::Number(u64::from(*one))),
                _ => Err(Error::at(start, "a character constant that is not one character")),
            };
        }
        Ok(Tok::Text(String::from_utf8_lossy(&out).into_owned()))
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let after = self.rest.as_bytes().get(1).copied();
        let simple = match after {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'v') => 11,
            Some(b'e') => 27,
            Some(c @ (b'"' | b'\\' | b'\'' | b'?')) => c,
            Some(b'0'..=b'7') => return self.radix(1, 3, 8, out),
            Some(b'x') => return self.radix(2, 2, 16, out),
            _ => return self.fail("an unknown escape in a string"),
        };
        self.take(2);
        out.push(simple);
        Ok(())
    }

    /// A byte by its digits, which begin after `skip` bytes.
    fn radix(&mut self, skip: usize, max: usize, radix: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let digits = self.rest[skip..].chars().take(max).take_while(|c| c.is_digit(radix)).count();
        match u8::from_str_radix(&self.rest[skip..skip + digits], radix) {
            Ok(byte) => {
                self.take(skip + digits);
                out.push(byte);
                Ok(())
            }
            Err(_) => self.fail("an escape that is not a byte"),
        }
    }
}
