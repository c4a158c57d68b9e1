//! Mistakes in a script, and what is doubtful in one.
//!
//! ```text
//! stdin:1:9-15: ERROR: '@x' holds integers, and a string is assigned to it [S0008]
//! begin { @x = "a"; }
//!         ~~~~~~
//! stdin:1:1-5: it gets its type here
//! HINT: use another map
//! ```
//!
//! Invariant: no control character of the script reaches the output, and a script has at most [`MAX_REPORTED`] messages.

use crate::diag::Span;
use std::fmt::Write;

/// So many messages are shown of one script.
pub const MAX_REPORTED: usize = 20;

macro_rules! codes {
    ($($variant:ident = $number:literal $doc:literal;)*) => {
        /// The kinds of messages. Their numbers stay.
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
    Token = 1 "A character, a number or a string that is not well formed.";
    Syntax = 2 "Something else was expected here.";
    TooLarge = 3 "The script is too long, nests too deep, or grows too much.";
    Probe = 4 "A probe that is not known, or not written like this.";
    Name = 5 "A name that is neither a value, a function, a constant nor a macro.";
    Variable = 6 "A variable or a map that nothing is assigned to.";
    Call = 7 "Arguments that a function does not take.";
    Type = 8 "A value of another type is needed here.";
    Declaration = 9 "A C declaration or a directive that is not understood.";
    Field = 10 "A structure, or a probe, does not have this member.";
    Config = 11 "A setting that is not known, or has no such value.";
    Format = 12 "A format and its arguments do not fit.";
    Parameter = 13 "A positional parameter was not given.";
    Macro = 14 "A macro that cannot be used like this.";
    Place = 15 "A statement that makes no sense here.";
    Unsupported = 16 "Part of the language, but not of this version.";
    Refused = 17 "It would change the traced system.";
    Doubtful = 18 "It has a meaning, but probably not the intended one.";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "S{:04}", *self as u16)
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The script does not run.
    Error,
    /// It does.
    Warning,
}

/// A message about a place of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Another place, and what is there.
    pub second: Option<(Span, String)>,
    /// What could be done.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A mistake.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { code, severity: Severity::Error, message: message.into(), span, second: None, hint: None }
    }

    /// Something doubtful.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::new(code, span, message) }
    }

    /// Adds a hint.
    pub fn hint(self, hint: impl Into<String>) -> Diagnostic {
        Diagnostic { hint: Some(hint.into()), ..self }
    }

    /// Adds a hint, if there is one.
    pub fn maybe_hint(self, hint: Option<String>) -> Diagnostic {
        Diagnostic { hint: hint.or(self.hint), ..self }
    }

    /// Adds another place.
    pub fn second(self, span: Span, what: impl Into<String>) -> Diagnostic {
        Diagnostic { second: Some((span, what.into())), ..self }
    }

    /// Several lines, without a newline at the end: the message, the line of the script with tildes below, the second place, the
    /// hint. `name` is the file's, `stdin` for a script from the command line.
    pub fn show(&self, name: &str, text: &str) -> String {
        let level = if self.severity == Severity::Error { "ERROR" } else { "WARNING" };
        let mut out = format!("{name}:{}: {level}: {} [{}]", place(self.span, text), self.message, self.code);
        let (line, column, length) = columns(self.span, text);
        let source = text.split('\n').nth(line - 1).unwrap_or_default();
        let _ = write!(out, "\n{}\n{}{}", printable(source), " ".repeat(column - 1), "~".repeat(length));
        if let Some((span, what)) = &self.second {
            let _ = write!(out, "\n{name}:{}: {what}", place(*span, text));
        }
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\nHINT: {hint}");
        }
        out
    }
}

impl From<crate::Diagnostic> for Diagnostic {
    fn from(d: crate::Diagnostic) -> Diagnostic {
        let code = match d.code {
            crate::Code::Syntax => Code::Syntax,
            crate::Code::TooLarge => Code::TooLarge,
            _ => Code::Token,
        };
        Diagnostic { hint: d.hint, ..Diagnostic::new(code, d.span, d.message) }
    }
}

/// Line and column of the start, both from 1, and how many characters of that line are meant: at least one.
fn columns(span: Span, text: &str) -> (usize, usize, usize) {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let length = span.of(text).split('\n').next().unwrap_or_default().chars().count();
    (line, column, length.max(1))
}

/// `LINE:COLUMN-COLUMN`
pub fn place(span: Span, text: &str) -> String {
    let (line, column, length) = columns(span, text);
    format!("{line}:{column}-{}", column + length)
}

/// One character for each, so that tildes stay below what they mean.
fn printable(line: &str) -> String {
    let one = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    line.chars().map(one).collect()
}
