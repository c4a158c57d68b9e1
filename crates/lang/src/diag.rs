//! Mistakes in a text, and what is doubtful in one: as values, and as messages.
//!
//! ```text
//! trapline: --where: F0003 unknown field 'args.flgs' at 1:1 (did you mean args.flags?)
//!
//! trapline: --where: F0003 unknown field 'args.flgs' at 1:1
//!   |
//! 1 | args.flgs & O_CREAT
//!   | ^^^^^^^^^
//!   = did you mean args.flags?
//!
//! stdin:1:9-15: ERROR: '@x' holds integers, and a string is assigned to it [S0008]
//! begin { @x = "a"; }
//!         ~~~~~~
//! stdin:1:1-5: it gets its type here
//! HINT: use another map
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
    ($($variant:ident = $filter:literal $script:literal $doc:literal;)*) => {
        /// The kinds of mistakes. Their numbers stay.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $doc] $variant,)* }

        impl Code {
            /// Every kind, with its general description.
            pub const ALL: &'static [(Code, &'static str)] = &[$((Code::$variant, $doc),)*];

            /// Its numbers in filters and in scripts; 0 where it is not there.
            fn numbers(self) -> (u16, u16) {
                match self { $(Code::$variant => ($filter, $script),)* }
            }
        }
    };
}

#[rustfmt::skip]
codes! {
    Character = 1 1 "A character that the language does not have.";
    Literal = 2 1 "A number or a string that is not well formed.";
    UnknownField = 3 0 "No probe has an argument of this name.";
    NotInProbe = 4 0 "Some of the probes lack the argument.";
    TooLarge = 5 3 "The text is too long or nests too deep.";
    Syntax = 6 2 "Something else was expected here.";
    UnknownName = 7 0 "Neither a value nor a constant.";
    Ambiguous = 8 0 "The name has several values, and nothing says which is meant.";
    Type = 9 8 "A value of another type is needed here.";
    Parameter = 10 13 "A positional parameter was not given.";
    Function = 11 0 "An unknown function, or arguments that it does not take.";
    NotAvailable = 12 0 "The probe does not have this value.";
    Never = 13 0 "The operation can never be valid, or never be true.";
    Parentheses = 14 18 "C's operator precedence gives this a meaning that is probably not intended.";
    NotAFilter = 15 0 "Part of the probe language, but not of a filter.";
    Probe = 0 4 "A probe that is not known, or not written like this.";
    Name = 0 5 "A name that is neither a value, a function, a constant nor a macro.";
    Variable = 0 6 "A variable or a map that nothing is assigned to.";
    Call = 0 7 "Arguments that a function does not take.";
    Declaration = 0 9 "A C declaration or a directive that is not understood.";
    Field = 0 10 "A structure, or a probe, does not have this member.";
    Config = 0 11 "A setting that is not known, or has no such value.";
    Format = 0 12 "A format and its arguments do not fit.";
    Macro = 0 14 "A macro that cannot be used like this.";
    Place = 0 15 "A statement that makes no sense here.";
    Unsupported = 0 16 "Part of the language, but not of this version.";
    Refused = 0 17 "It would change the traced system.";
    Doubtful = 0 18 "It has a meaning, but probably not the intended one.";
}

impl Code {
    /// `F0003`; None: no filter has such a mistake.
    pub fn in_filters(self) -> Option<String> {
        Some(self.numbers().0).filter(|n| *n > 0).map(|n| format!("F{n:04}"))
    }

    /// `S0008`; None: no script has such a mistake.
    pub fn in_scripts(self) -> Option<String> {
        Some(self.numbers().1).filter(|n| *n > 0).map(|n| format!("S{n:04}"))
    }
}

/// Its number in filters, or else in scripts.
impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.in_filters().or(self.in_scripts()).unwrap_or_default())
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text means nothing.
    Error,
    /// It does.
    Warning,
}

/// A message about a place of a text. Names of the text are in it as they are, but for control characters.
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
    /// A mistake without a hint.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        let message = printable(&message.into());
        Diagnostic { code, severity: Severity::Error, message, span, second: None, hint: None }
    }

    /// Something doubtful.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::new(code, span, message) }
    }

    /// Adds a hint.
    pub fn hint(self, hint: impl Into<String>) -> Diagnostic {
        Diagnostic { hint: Some(printable(&hint.into())), ..self }
    }

    /// Adds a hint, if there is one.
    pub fn maybe_hint(self, hint: Option<String>) -> Diagnostic {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Adds another place.
    pub fn second(self, span: Span, what: impl Into<String>) -> Diagnostic {
        Diagnostic { second: Some((span, printable(&what.into()))), ..self }
    }

    /// Line and column of its start in `text`, both from 1; columns count characters.
    pub fn position(&self, text: &str) -> (usize, usize) {
        let (line, column, _) = columns(self.span, text);
        (line, column)
    }

    /// Of a filter, one line; `place` is where the text is from, for instance `--where`.
    pub fn line(&self, place: &str, text: &str) -> String {
        let hint = self.hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
        self.head(place, text) + &hint
    }

    fn head(&self, place: &str, text: &str) -> String {
        let (line, column) = self.position(text);
        let code = self.code.in_filters().unwrap_or_default();
        format!("trapline: {place}: {code} {} at {line}:{column}", self.message)
    }

    /// Of a filter, several lines: the message, the line of the text, a caret, the hint. Ends without a newline.
    pub fn block(&self, place: &str, text: &str) -> String {
        let (line, column, _) = columns(self.span, text);
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

    /// Of a script, several lines, without a newline at the end: the message, the line of the script with tildes below, the second
    /// place, the hint. `name` is the file's, `stdin` for a script from the command line.
    pub fn show(&self, name: &str, text: &str) -> String {
        let level = if self.severity == Severity::Error { "ERROR" } else { "WARNING" };
        let code = self.code.in_scripts().unwrap_or_default();
        let mut out = format!("{}: {level}: {} [{code}]", place(name, self.span, text), self.message);
        let at = Place::of(name, self.span, text);
        let _ = write!(out, "\n{}\n{}{}", printable(at.source), " ".repeat(at.column - 1), "~".repeat(at.length));
        if let Some((span, what)) = &self.second {
            let _ = write!(out, "\n{}: {what}", place(name, *span, text));
        }
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\nHINT: {hint}");
        }
        out
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

/// Where a script has a span. Behind a line `#line N "FILE"` lines count from N, and are that file's.
struct Place<'t> {
    name: &'t str,
    line: usize,
    column: usize,
    length: usize,
    /// The line.
    source: &'t str,
}

impl<'t> Place<'t> {
    fn of(name: &'t str, span: Span, text: &'t str) -> Place<'t> {
        let (line, column, length) = columns(span, text);
        let source = text.split('\n').nth(line - 1).unwrap_or_default();
        let own = Place { name, line, column, length, source };
        let before = text.get(..span.start).unwrap_or(text);
        let first = before.starts_with("#line ").then_some(0);
        let marker = before.rfind("\n#line ").map(|at| at + 1).or(first);
        let Some((marked, rest)) = marker.and_then(|at| before[at..].split_once('\n')) else { return own };
        let words = marked["#line ".len()..].trim().split_once(' ').unwrap_or((marked["#line ".len()..].trim(), ""));
        let Ok(first) = words.0.parse::<usize>() else { return own };
        let file = words.1.trim().trim_matches('"');
        let line = first.saturating_add(rest.matches('\n').count());
        Place { name: if file.is_empty() { name } else { file }, line, ..own }
    }
}

/// `NAME:LINE:COLUMN` of the first character.
pub fn start(name: &str, span: Span, text: &str) -> String {
    let at = Place::of(name, span, text);
    format!("{}:{}:{}", printable(at.name), at.line, at.column)
}

/// Where it begins, from 1 on.
pub fn line_and_column(name: &str, span: Span, text: &str) -> (usize, usize) {
    let at = Place::of(name, span, text);
    (at.line, at.column)
}

/// `NAME:LINE:COLUMN-COLUMN`
pub fn place(name: &str, span: Span, text: &str) -> String {
    let at = Place::of(name, span, text);
    format!("{}:{}:{}-{}", printable(at.name), at.line, at.column, at.column + at.length)
}

/// One character for each, so that carets and tildes stay below what they mean.
fn printable(line: &str) -> String {
    let one = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    line.chars().map(one).collect()
}

/// A piece of a text as a message shows it: escaped, and not long.
pub(crate) fn quote(piece: &str) -> String {
    let mut short: String = piece.chars().take(40).collect();
    if short.len() < piece.len() {
        short.push('…');
    }
    format!("'{}'", short.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\""))
}
