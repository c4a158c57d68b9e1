//! Mistakes in a text: as values, and as messages.
//!
//! ```text
//! trapline: --where: F0003 unknown field 'args.flgs' at 1:1 (did you mean args.flags?)
//!
//! trapline: --where: F0003 unknown field 'args.flgs' at 1:1
//!   |
//! 1 | args.flgs & O_CREAT
//!   | ^^^^^^^^^
//!   = did you mean args.flags?
//! ```
//!
//! Invariant: no control character of the text reaches the output.

use std::fmt::Write;

/// A range of bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// After the last byte.
    pub end: usize,
}

impl Span {
    /// From the start of one to the end of the other.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }

    /// The part of `text` that it covers; empty where it does not fit.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

macro_rules! codes {
    ($($variant:ident = $number:literal $doc:literal;)*) => {
        /// The kinds of mistakes. Their numbers stay.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $doc] $variant = $number,)* }

        impl Code {
            /// Every kind, with its general description.
            pub const ALL: &'static [(Code, &'static str)] = &[$((Code::$variant, $doc),)*];
        }
    };
}

#[rustfmt::skip]
codes! {
    Character = 1 "A character that the language does not have.";
    Literal = 2 "A number or a string that is not well formed.";
    UnknownField = 3 "No probe has an argument of this name.";
    NotInProbe = 4 "Some of the probes lack the argument.";
    TooLarge = 5 "The text is too long or nests too deep.";
    Syntax = 6 "Something else was expected here.";
    UnknownName = 7 "Neither a value nor a constant.";
    Ambiguous = 8 "The name has several values, and nothing says which is meant.";
    Type = 9 "A number where a string is expected, or the other way round.";
    Parameter = 10 "A positional parameter was not given.";
    Function = 11 "An unknown function, or arguments that it does not take.";
    NotAvailable = 12 "The probe does not have this value.";
    Never = 13 "The operation can never be valid, or never be true.";
    Parentheses = 14 "C's operator precedence gives this a meaning that is probably not intended.";
    NotAFilter = 15 "Part of the probe language, but not of a filter.";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "F{:04}", *self as u16)
    }
}

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What could be done.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A mistake without a hint.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { code, message: message.into(), span, hint: None }
    }

    /// Adds a hint.
    pub fn hint(self, hint: impl Into<String>) -> Diagnostic {
        Diagnostic { hint: Some(hint.into()), ..self }
    }

    /// Line and column of its start in `text`, both from 1; columns count characters.
    pub fn position(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }

    /// One line; `place` is where the text is from, for instance `--where`.
    pub fn line(&self, place: &str, text: &str) -> String {
        let hint = self.hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
        self.head(place, text) + &hint
    }

    fn head(&self, place: &str, text: &str) -> String {
        let (line, column) = self.position(text);
        format!("trapline: {place}: {} {} at {line}:{column}", self.code, self.message)
    }

    /// Several lines: the message, the line of the text, a caret, the hint. Ends without a newline.
    pub fn block(&self, place: &str, text: &str) -> String {
        let (line, column) = self.position(text);
        let source = text.split('\n').nth(line - 1).unwrap_or_default();
        let left = source.chars().count().saturating_sub(column - 1).max(1);
        let carets = self.span.of(text).chars().count().clamp(1, left);
        let number = line.to_string();
        let mut out = self.head(place, text);
        let (gap, blank) = (" ".repeat(number.len()), " ".repeat(column - 1));
        let _ = write!(out, "\n{gap} |\n{number} | {}\n{gap} | {blank}{}", printable(source), "^".repeat(carets));
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\n{gap} = {hint}");
        }
        out
    }
}

/// One character for each, so that carets stay below what they mean.
fn printable(line: &str) -> String {
    line.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// A piece of a text as a message shows it: escaped, and not long.
pub(crate) fn quote(piece: &str) -> String {
    let mut short: String = piece.chars().take(40).collect();
    if short.len() < piece.len() {
        short.push('…');
    }
    format!("'{}'", short.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\""))
}
