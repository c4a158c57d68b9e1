//! Text to tokens.
//!
//! Invariant: every token has a span inside the text, the last one is [`Token::End`], and the work is linear.

use crate::diag::{Code, Diagnostic, Span, quote};
use crate::duration;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A number.
    Int(u64),
    /// A string: its bytes.
    Str(Vec<u8>),
    /// A name or a keyword.
    Name(String),
    /// `$1`
    Param(usize),
    /// `$#`; in scripts only.
    ParamCount,
    /// `$name`, without the `$`; in scripts only.
    Var(String),
    /// `@name`, without the `@`: empty for `@` alone; in scripts only.
    Map(String),
    /// Punctuation.
    Sym(&'static str),
    /// The end of the text.
    End,
}

/// Longer ones first. Those that no filter has are here so that the error names them whole.
const SYMBOLS: &[&str] = &[
    "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=", "<", ">", "(", ")", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "?", ":", ",", ".", "=", "[",
    "]", "{", "}", ";", "@", "$",
];

/// Those that only scripts have, tried first.
const SCRIPT_SYMBOLS: &[&str] = &["..", "::"];

/// Units after a number in addition to those of [durations](crate::duration): binary multiples, and C's suffixes.
const UNITS: &[(&str, u64)] = &[
    ("k", 1 << 10),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("u", 1),
    ("l", 1),
    ("ul", 1),
    ("ll", 1),
    ("ull", 1),
    ("U", 1),
    ("L", 1),
    ("UL", 1),
    ("LL", 1),
    ("ULL", 1),
];

/// Refuses a text that is longer than its language allows; `what` it is.
pub(crate) fn limit(text: &str, most: usize, what: &str) -> Result<(), Diagnostic> {
    if text.len() <= most {
        return Ok(());
    }
    let start = (0..=most).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let message = format!("a {what} of {} bytes; at most {most} are allowed", text.len());
    Err(Diagnostic::new(Code::TooLarge, Span { start, end: text.len() }, message))
}

/// The number, if the whole text is one; it may have a sign. Those from 2^63 to 2^64-1 wrap to negative ones.
pub(crate) fn whole_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut lexer = Lexer { text: digits, at: 0, script: false };
    let Ok(Token::Int(v)) = lexer.number() else { return None };
    (lexer.at == digits.len()).then(|| if digits.len() < text.len() { v.wrapping_neg() } else { v } as i64)
}

/// Where in a text the next token is.
pub(crate) struct Lexer<'t> {
    /// The whole text.
    pub text: &'t str,
    /// What of it has been read.
    pub at: usize,
    /// Whether scripts' tokens are known.
    pub script: bool,
}

impl<'t> Lexer<'t> {
    /// The next token, and its place.
    pub fn next(&mut self) -> Result<(Token, Span), Diagnostic> {
        self.blanks()?;
        let start = self.at;
        let token = self.token()?;
        Ok((token, Span { start, end: self.at }))
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    pub fn take_while(&mut self, f: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let n = rest.find(|c| !f(c)).unwrap_or(rest.len());
        self.at += n;
        &rest[..n]
    }
    fn error(&self, code: Code, start: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, Span { start, end: self.at }, message)
    }

    /// Blanks and comments.
    pub fn blanks(&mut self) -> Result<(), Diagnostic> {
        loop {
            self.take_while(char::is_whitespace);
            let start = self.at;
            if self.rest().starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                let Some(n) = self.rest()[2..].find("*/") else {
                    self.at += 2;
                    return Err(self.error(Code::Syntax, start, "an unterminated comment"));
                };
                self.at += n + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        match self.peek() {
            None => Ok(Token::End),
            Some('0'..='9') => self.number(),
            Some('"') => self.string(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Ok(Token::Name(self.word().into())),
            Some('$') if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.at += 1;
                let digits = self.take_while(|c| c.is_ascii_digit());
                let n = digits.parse().map_err(|_| self.error(Code::Literal, start, "no such parameter"))?;
                Ok(Token::Param(n))
            }
            Some('$' | '@' | '\'') if self.script => self.sigil(),
            Some(c) => match self.symbol() {
                Some(s) => {
                    self.at += s.len();
                    Ok(Token::Sym(s))
                }
                None => {
                    self.at += c.len_utf8();
                    let e =
                        self.error(Code::Character, start, format!("unexpected character {}", quote(&c.to_string())));
                    Err(if c == '\'' { e.hint("write strings in double quotes") } else { e })
                }
            },
        }
    }

    /// The symbol that begins here.
    fn symbol(&self) -> Option<&'static str> {
        let more = if self.script { SCRIPT_SYMBOLS } else { &[] };
        more.iter().chain(SYMBOLS).find(|s| self.rest().starts_with(**s)).copied()
    }

    /// What only scripts have: variables, maps, characters.
    fn sigil(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        let sigil = self.peek();
        self.at += 1;
        match sigil {
            Some('\'') => self.character(start),
            Some('@') => Ok(Token::Map(self.word().into())),
            _ if self.rest().starts_with('#') => {
                self.at += 1;
                Ok(Token::ParamCount)
            }
            _ => match self.word() {
                "" => Err(self.error(Code::Character, start, "a '$' without a name").hint("$name, $1 or $#")),
                name => Ok(Token::Var(name.into())),
            },
        }
    }

    /// `'a'`, after its first quote: its byte.
    fn character(&mut self, start: usize) -> Result<Token, Diagnostic> {
        let mut bytes = Vec::new();
        let here = self.at;
        match self.peek() {
            Some('\\') => {
                self.at += 1;
                match self.peek() {
                    Some('\'') => {
                        self.at += 1;
                        bytes.push(b'\'');
                    }
                    _ => self.escape(here, &mut bytes)?,
                }
            }
            Some(c) if c.is_ascii() && !matches!(c, '\'' | '\n') => {
                self.at += 1;
                bytes.push(c as u8);
            }
            _ => {}
        }
        if bytes.is_empty() || !self.rest().starts_with('\'') {
            let e = self.error(Code::Literal, start, "not one character between the quotes");
            return Err(e.hint("write strings in double quotes"));
        }
        self.at += 1;
        Ok(Token::Int(bytes[0].into()))
    }

    pub fn word(&mut self) -> &'t str {
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn number(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        let word = self.word();
        let bad = |this: &Self, why: &str| Err(this.error(Code::Literal, start, format!("{why} {}", quote(word))));
        let Some((digits, radix, rest)) = split_number(word) else { return bad(self, "not a number:") };
        let Ok(v) = u64::from_str_radix(&digits, radix) else {
            return bad(self, if digits.is_empty() { "not a number:" } else { "too large a number:" });
        };
        let scale = match rest {
            "" => Some(1),
            _ => match rest.strip_prefix(['e', 'E']).filter(|_| radix == 10) {
                Some(e) => e.parse().ok().filter(|e| *e < 20).map(|e| 10u64.saturating_pow(e)),
                None => duration::UNITS.iter().chain(UNITS).find(|u| u.0 == rest).map(|u| u.1),
            },
        };
        let Some(scale) = scale else {
            let e = bad(self, "not a number:");
            return e.map_err(|e: Diagnostic| e.hint("units are ns us ms s m h d, and k M G (1024 each)"));
        };
        match v.checked_mul(scale) {
            Some(v) if scale == 1 || v <= i64::MAX as u64 => Ok(Token::Int(v)),
            _ => bad(self, "too large a number:"),
        }
    }

    fn string(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let here = self.at;
            let Some(c) = self.peek().filter(|c| *c != '\n') else {
                return Err(self.error(Code::Literal, start, "an unterminated string").hint("it ends with \""));
            };
            self.at += c.len_utf8();
            match c {
                '"' => break,
                '\\' => self.escape(here, &mut bytes)?,
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        // In scripts, a string ends at its NUL, as in C.
        if self.script {
            bytes.truncate(bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()));
        }
        if bytes.contains(&0) {
            let e = self.error(Code::Literal, start, "a string with a NUL inside");
            return Err(e.hint("C strings end there"));
        }
        Ok(Token::Str(bytes))
    }

    fn escape(&mut self, start: usize, bytes: &mut Vec<u8>) -> Result<(), Diagnostic> {
        let c = self.peek().unwrap_or('\n');
        if c != '\n' {
            self.at += c.len_utf8();
        }
        bytes.push(match c {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            '"' | '\\' => c as u8,
            'x' => self.code(2, 16, start)?,
            '0'..='7' => {
                self.at -= 1;
                self.code(3, 8, start)?
            }
            _ => {
                let e = self.error(Code::Literal, start, "an unknown escape");
                return Err(e.hint(r#"known are \n \t \r \" \\ \xHH \OOO"#));
            }
        });
        Ok(())
    }

    /// At most `most` digits.
    fn code(&mut self, most: usize, radix: u32, start: usize) -> Result<u8, Diagnostic> {
        let from = self.at;
        while self.at - from < most && self.peek().is_some_and(|c| c.is_digit(radix)) {
            self.at += 1;
        }
        let v = u8::from_str_radix(&self.text[from..self.at], radix);
        v.map_err(|_| self.error(Code::Literal, start, "an escape that is not a byte"))
    }
}

/// Digits, their radix, and what follows them.
fn split_number(word: &str) -> Option<(String, u32, &str)> {
    let (body, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if word.len() > 1 && word.starts_with('0') && word[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            (&word[1..], 8)
        }
        None => (word, 10),
    };
    let n = body.find(|c: char| c != '_' && !c.is_digit(radix)).unwrap_or(body.len());
    let (digits, rest) = body.split_at(n);
    // 089 is neither octal nor decimal; separators must be between digits.
    let fine = !rest.starts_with(|c: char| c.is_ascii_digit()) && !digits.ends_with('_') && !digits.starts_with('_');
    fine.then(|| (digits.replace('_', ""), radix, rest))
}
