//! Tokens of TSDL.

use std::borrow::Cow;

use super::Fault;
use crate::identifiers::clip;

/// A place in the text: the byte at which a character begins. A text has at most [`super::MAX_TEXT`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pos(pub u32);

impl Pos {
    pub const START: Pos = Pos(0);
}

/// What a token is. Words are those of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok<'a> {
    Word(&'a str),
    Number(u64),
    Text(Cow<'a, str>),
    /// Punctuation: the character, or one of those below for several.
    P(u8),
    End,
}

/// `...`
pub(super) const DOTS: u8 = b'.' | LONG;
/// `:=`
pub(super) const ASSIGN: u8 = b':' | LONG;
/// `->`
pub(super) const ARROW: u8 = b'-' | LONG;
/// What makes a character's code that of the punctuation of several which begins with it.
const LONG: u8 = 0x80;

/// Punctuation as it is written.
pub(super) fn written(punctuation: u8) -> String {
    match punctuation {
        DOTS => "...".into(),
        ASSIGN => ":=".into(),
        ARROW => "->".into(),
        one => char::from(one).into(),
    }
}

impl Tok<'_> {
    /// For diagnostics.
    pub fn describe(&self) -> String {
        match self {
            Tok::Word(w) => format!("`{}`", clip(w)),
            Tok::Number(n) => format!("`{n}`"),
            Tok::Text(_) => "a string".into(),
            Tok::P(p) => format!("`{}`", written(*p)),
            Tok::End => "the end of the metadata".into(),
        }
    }
}

/// Longest identifier that is taken.
const MAX_WORD: usize = 4096;

/// Splits the text. Fails at the first thing that is no token.
pub(super) fn tokens(text: &str, max: usize) -> Result<Vec<(Tok<'_>, Pos)>, Fault> {
    let mut lexer = Lexer { text, at: 0 };
    let mut out = Vec::new();
    loop {
        lexer.blanks()?;
        let pos = lexer.pos();
        if out.len() >= max {
            return Err(Fault::at(pos, format!("more than {max} tokens")));
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
    text: &'a str,
    /// A character begins here, or the text ends.
    at: usize,
}

impl<'a> Lexer<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::at(self.pos(), message))
    }

    fn pos(&self) -> Pos {
        Pos(self.at as u32)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The byte so far ahead.
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// How many of the next bytes are such ones.
    fn run(&self, is: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().position(|b| !is(*b)).unwrap_or(rest.len())
    }

    /// Takes the first `bytes` bytes, which end between characters.
    fn take(&mut self, bytes: usize) -> &'a str {
        let from = self.at;
        self.at += bytes;
        &self.text[from..self.at]
    }

    /// White space, comments, and directives that begin with `#`.
    fn blanks(&mut self) -> Result<(), Fault> {
        loop {
            self.at += self.run(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c | 0));
            match (self.byte(0), self.byte(1)) {
                (Some(b'/'), Some(b'*')) => {
                    let Some(end) = self.rest()[2..].find("*/") else {
                        return self.fail("a comment that does not end");
                    };
                    self.at += end + 4;
                }
                (Some(b'/'), Some(b'/')) | (Some(b'#'), _) => self.at += self.run(|b| b != b'\n'),
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Tok<'a>, Fault> {
        let Some(first) = self.byte(0) else { return Ok(Tok::End) };
        match first {
            b'0'..=b'9' => return self.number(),
            b'"' | b'\'' => return self.text(),
            b'L' if matches!(self.byte(1), Some(b'"' | b'\'')) => {
                self.at += 1;
                return self.text();
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let end = self.run(|b| b.is_ascii_alphanumeric() || b == b'_');
                if end > MAX_WORD {
                    return self.fail(format!("a word of more than {MAX_WORD} characters"));
                }
                return Ok(Tok::Word(self.take(end)));
            }
            _ => {}
        }
        let (code, bytes) = match (first, self.byte(1), self.byte(2)) {
            (b'.', Some(b'.'), Some(b'.')) => (DOTS, 3),
            (b':', Some(b'='), _) => (ASSIGN, 2),
            (b'-', Some(b'>'), _) => (ARROW, 2),
            (b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>', ..) => (first, 1),
            (b';' | b':' | b',' | b'=' | b'.' | b'*' | b'-' | b'+', ..) => (first, 1),
            _ => {
                let shown = self.rest().chars().next().unwrap_or_default().escape_default();
                return self.fail(format!("`{shown}` is not part of the language"));
            }
        };
        self.at += bytes;
        Ok(Tok::P(code))
    }

    fn number(&mut self) -> Result<Tok<'a>, Fault> {
        let end = self.run(|b| b.is_ascii_alphanumeric());
        let word = &self.rest()[..end];
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
                self.at += end;
                Ok(Tok::Number(n))
            }
            Err(_) => self.fail(format!("`{}` is not an integer of 64 bits", clip(word))),
        }
    }

    /// A string or a character constant.
    fn text(&mut self) -> Result<Tok<'a>, Fault> {
        let start = self.pos();
        let quote = self.take(1).as_bytes()[0];
        let plain = self.run(|b| b != quote && b != b'\\' && b != b'\n');
        if quote == b'"' && self.byte(plain) == Some(quote) {
            let text = self.take(plain);
            self.at += 1;
            return Ok(Tok::Text(Cow::Borrowed(text)));
        }
        let mut out: Vec<u8> = Vec::new();
        loop {
            let Some(c) = self.byte(0) else { return Err(Fault::at(start, "a string that does not end")) };
            match c {
                b'\\' => self.escape(&mut out)?,
                b'\n' => return Err(Fault::at(start, "a string that does not end on its line")),
                _ if c == quote => break,
                _ => {
                    let plain = self.run(|b| b != quote && b != b'\\' && b != b'\n');
                    out.extend_from_slice(self.take(plain).as_bytes());
                }
            }
        }
        self.at += 1;
        if quote == b'\'' {
            return match out.as_slice() {
                [one] => Ok(Tok::Number(u64::from(*one))),
                _ => Err(Fault::at(start, "a character constant that is not one character")),
            };
        }
        Ok(Tok::Text(Cow::Owned(String::from_utf8_lossy(&out).into_owned())))
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let simple = match self.byte(1) {
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
        self.at += 2;
        out.push(simple);
        Ok(())
    }

    /// A byte by its digits, which begin after `skip` bytes.
    fn radix(&mut self, skip: usize, max: usize, radix: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        let rest = self.rest();
        let digits = rest[skip..].chars().take(max).take_while(|c| c.is_digit(radix)).count();
        match u8::from_str_radix(&rest[skip..skip + digits], radix) {
            Ok(byte) => {
                self.at += skip + digits;
                out.push(byte);
                Ok(())
            }
            Err(_) => self.fail("an escape that is not a byte"),
        }
    }
}
