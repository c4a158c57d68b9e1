//! Probes of a script: `tracepoint:syscalls:sys_enter_open*`, `uprobe:"/opt/a b":main`, `interval:1s`, `begin`.
//!
//! They are not made of the language's tokens: paths have `/`, names have `*`. A list ends at `{`, or at the `/` of a predicate.
//! What a pattern matches, and whether a probe exists, is the catalogue's to say.

use crate::diag::{Code, Diagnostic, Span};
use crate::duration;
use crate::lex::Lexer;
use crate::near::did_you_mean;
use crate::tokens::Result;

/// A probe, as a script names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it is made of.
    pub provider: &'static Provider,
    /// What follows the provider's name, without quotes.
    pub parts: Vec<String>,
    /// Of clocks: the time between two ticks, in ns.
    pub period: Option<u64>,
    /// Where.
    pub span: Span,
}

/// What provides probes.
#[derive(Debug, PartialEq)]
pub struct Provider {
    /// Its name.
    pub name: &'static str,
    /// Other names, short ones first.
    pub aliases: &'static [&'static str],
    /// What follows: one form for each number of parts.
    pub forms: &'static [&'static str],
    /// The second part is a path.
    pub path: bool,
    /// What its arguments are: `args.NAME`, `arg0` and so on.
    pub arguments: Arguments,
    /// One line of help. Of those that this version does not have: what to write instead.
    pub help: &'static str,
    /// Whether this version has it.
    pub known: bool,
}

/// Which arguments probes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// None.
    None,
    /// `args.NAME`
    Named,
    /// `arg0` …
    Numbered,
    /// Both.
    Both,
    /// `retval`
    Result,
    /// `args.NAME` and `retval`.
    Span,
    /// `args.NAME`, `arg0` … and `retval`.
    Call,
}

use Arguments::{Both, Call, Named, Numbered, Span as Spans};

macro_rules! providers {
    ($($name:literal [$($alias:literal)*] [$($form:literal)*] $path:literal $arguments:expr, $known:literal, $help:literal;)*) => {
        /// All providers that scripts know.
        pub static PROVIDERS: &[Provider] = &[$(Provider {
            name: $name, aliases: &[$($alias),*], forms: &[$($form),*], path: $path, arguments: $arguments, known: $known, help: $help,
        }),*];
    };
}

#[rustfmt::skip]
providers! {
    "begin" ["BEGIN"] [""] false Arguments::None, true, "before the first probe is attached";
    "end" ["END"] [""] false Arguments::None, true, "after the last probe is detached";
    "interval" ["i"] ["DURATION" "UNIT:COUNT"] false Arguments::None, true, "a clock, on one processor";
    "profile" ["p"] ["DURATION" "UNIT:COUNT"] false Arguments::None, true, "a clock, on every processor";
    "tracepoint" ["t"] ["CATEGORY:EVENT"] false Named, true, "a static probe of the kernel";
    "rawtracepoint" ["rt"] ["EVENT" "MODULE:EVENT"] false Both, true, "a static probe of the kernel, with its raw arguments";
    "syscall" [] ["NAME" "NAME:entry|return"] false Spans, true, "a system call, from entry to return";
    "process" [] ["EVENT"] false Named, true, "what happens to processes: fork, exec, exit, signal";
    "function" [] ["NAME" "NAME:return"] false Call, true, "a function of the traced program, without rights";
    "heap" [] ["EVENT"] false Named, true, "an allocation or a free of the traced program";
    "io_uring" [] ["OPERATION"] false Spans, true, "an operation of io_uring, from its submission to its completion";
    "slab" [] ["CACHE" "CACHE:EVENT"] false Named, true, "an allocation of the kernel";
    "software" ["s"] ["EVENT" "EVENT:COUNT"] false Arguments::None, true, "an event that the kernel counts";
    "hardware" ["h"] ["EVENT" "EVENT:COUNT"] false Arguments::None, true, "an event that the processor counts";
    "uprobe" ["u"] ["PATH:FUNCTION" "PATH:LANGUAGE:FUNCTION"] true Numbered, true, "the entry of a function in a file";
    "uretprobe" ["ur"] ["PATH:FUNCTION" "PATH:LANGUAGE:FUNCTION"] true Arguments::Result, true, "the return of a function in a file";
    "usdt" ["U"] ["PATH:NAME" "PATH:PROVIDER:NAME"] true Numbered, true, "a static probe of a program";
    "kprobe" ["k"] ["FUNCTION" "MODULE:FUNCTION"] false Numbered, true, "the entry of a function of the kernel";
    "kretprobe" ["kr"] ["FUNCTION" "MODULE:FUNCTION"] false Arguments::Result, true, "the return of a function of the kernel";
    "fentry" ["f" "kfunc"] ["FUNCTION" "MODULE:FUNCTION"] false Named, true, "the entry of a function of the kernel, by its types";
    "fexit" ["fr" "kretfunc"] ["FUNCTION" "MODULE:FUNCTION"] false Spans, true, "the return of a function of the kernel, by its types";
    "watchpoint" ["w"] ["ADDRESS:LENGTH:MODE" "FUNCTION+argN:LENGTH:MODE" "PATH:FUNCTION+argN:LENGTH:MODE"] true Named, true, "an access to memory";
    "asyncwatchpoint" ["aw"] ["FUNCTION+argN:LENGTH:MODE" "PATH:FUNCTION+argN:LENGTH:MODE"] true Named, true, "an access to memory, from shortly after the call of a function on";
    "self" [] ["signal:SIGUSR1"] false Arguments::None, true, "a signal that trapline itself gets";
    "iter" ["it"] ["OBJECT"] false Named, true, "each object of the kernel, once: task, task_file, task_vma";
    "test" [] ["NAME"] false Arguments::None, true, "a test of the script, which `trapline test FILE` runs";
    "bench" [] ["NAME"] false Arguments::None, true, "what `trapline test FILE` runs many times, and measures";
}

impl Point {
    /// By its full name: `tracepoint:sched:sched_switch`.
    pub fn name(&self) -> String {
        let parts: String = self.parts.iter().flat_map(|p| [":", p]).collect();
        self.provider.name.to_owned() + &parts
    }

    /// `begin`, `end`, or what is run as they are.
    pub fn is_special(&self) -> bool {
        self.is_test() || matches!(self.provider.name, "begin" | "end")
    }

    /// `test:` or `bench:`
    pub fn is_test(&self) -> bool {
        matches!(self.provider.name, "test" | "bench")
    }

    /// It is no event: `begin`, `end`, an interval, a signal of trapline's own, or an object that the kernel walks over.
    pub fn is_own(&self) -> bool {
        self.is_special() || self.is_interval() || matches!(self.provider.name, "iter" | "self")
    }

    /// A clock of which each tick runs once.
    pub fn is_interval(&self) -> bool {
        self.provider.name == "interval"
    }
}

/// Whether a script's provider is called so.
fn provider(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|p| p.name == name || p.aliases.contains(&name))
}

/// The list of probes that begins here. Stops at `{`, or behind the `/` that begins a predicate, and returns whether there was one.
pub(super) fn points(l: &mut Lexer<'_>, params: &[String]) -> Result<(Vec<Point>, bool)> {
    let mut points = Vec::new();
    loop {
        l.blanks()?;
        points.push(point(l, params)?);
        l.blanks()?;
        match l.peek() {
            Some(',') => l.at += 1,
            Some('{') => return Ok((points, false)),
            Some('/') => {
                l.at += 1;
                return Ok((points, true));
            }
            _ => {
                let span = here(l);
                let found =
                    if span.start == l.text.len() { "the end".into() } else { crate::diag::quote(span.of(l.text)) };
                let e =
                    Diagnostic::new(Code::Syntax, span, format!("expected ',', a predicate or '{{', found {found}"));
                return Err(e.hint("write PROBE { … } or PROBE /PREDICATE/ { … }"));
            }
        }
    }
}

/// The next character.
fn here(l: &Lexer<'_>) -> Span {
    Span { start: l.at, end: l.at + l.peek().map_or(0, char::len_utf8) }
}

/// One probe: parts between colons, some of them in quotes.
fn point(l: &mut Lexer<'_>, params: &[String]) -> Result<Point> {
    let start = l.at;
    let (mut parts, mut part, mut path) = (Vec::new(), String::new(), false);
    loop {
        // The second part of some is a path, and a path has slashes.
        let at_path = path && parts.len() == 1;
        match l.peek() {
            Some('"') => quoted(l, &mut part)?,
            Some('$') => parameter(l, params, &mut part)?,
            Some(':') => {
                l.at += 1;
                if parts.is_empty() {
                    path = provider(&part).is_some_and(|p| p.path);
                }
                parts.push(std::mem::take(&mut part));
            }
            Some('/') if !at_path => break,
            Some(c) if c.is_whitespace() || matches!(c, ',' | '{' | '}' | ';') => break,
            None => break,
            Some(c) => {
                part.push(c);
                l.at += c.len_utf8();
            }
        }
        if parts.len() > 4 {
            let span = Span { start, end: l.at };
            return Err(
                Diagnostic::new(Code::Probe, span, "no probe has more than four parts").hint("quote colons: \"a:b\"")
            );
        }
    }
    parts.push(part);
    let span = Span { start, end: l.at };
    if l.at == start {
        let found =
            if here(l).start == l.text.len() { "the end".into() } else { crate::diag::quote(here(l).of(l.text)) };
        return Err(Diagnostic::new(Code::Syntax, here(l), format!("expected a probe, found {found}"))
            .hint("for instance begin, interval:1s or tracepoint:sched:sched_switch"));
    }
    named(parts, span)
}

/// The inside of quotes.
fn quoted(l: &mut Lexer<'_>, part: &mut String) -> Result<()> {
    let start = l.at;
    l.at += 1;
    while let Some(c) = l.peek().filter(|c| *c != '\n') {
        l.at += c.len_utf8();
        match c {
            '"' => return Ok(()),
            // A quote in a name.
            '\\' if l.peek() == Some('"') => {
                l.at += 1;
                part.push('"');
            }
            c => part.push(c),
        }
    }
    let span = Span { start, end: start + 1 };
    Err(Diagnostic::new(Code::Literal, span, "an unterminated string").hint("it ends with \""))
}

/// `$1` within a probe.
fn parameter(l: &mut Lexer<'_>, params: &[String], part: &mut String) -> Result<()> {
    let start = l.at;
    l.at += 1;
    let digits = l.take_while(|c| c.is_ascii_digit());
    let span = Span { start, end: l.at };
    let value = digits.parse::<usize>().ok().and_then(|n| params.get(n.checked_sub(1)?));
    match value {
        Some(v) => part.push_str(v),
        None => {
            let e = Diagnostic::new(
                Code::Parameter,
                span,
                format!("{} was not given", crate::diag::quote(span.of(l.text))),
            );
            return Err(e.hint("parameters follow the script on the command line"));
        }
    }
    Ok(())
}

fn named(mut parts: Vec<String>, span: Span) -> Result<Point> {
    let first = parts.remove(0);
    let Some(p) = provider(&first).or_else(|| special(&first)) else {
        let names = PROVIDERS.iter().flat_map(|p| std::iter::once(p.name).chain(p.aliases.iter().copied()));
        let e = Diagnostic::new(Code::Probe, span, format!("no provider is called {}", crate::diag::quote(&first)));
        let bare = parts.is_empty().then(|| "a probe is PROVIDER:NAME; `trapline list` shows them".to_owned());
        return Err(e.maybe_hint(bare).maybe_hint(did_you_mean("", &first, names.filter(|n| n.len() > 2))));
    };
    if !p.known {
        return Err(Diagnostic::new(Code::Unsupported, span, format!("'{}' probes are not in this version", p.name))
            .hint(p.help));
    }
    // `hardware:cycles:` has the kernel's number.
    if matches!(p.name, "software" | "hardware") && parts.len() == 2 && parts[1].is_empty() {
        parts.pop();
    }
    // Any provider; and without a path, the program of -p.
    let is_static = p.name == "usdt" && parts.len() == 3;
    if is_static && parts[1].is_empty() {
        parts[1] = "*".to_owned();
    }
    let fits = p.forms.iter().any(|f| form_length(f) == parts.len());
    if !fits || parts.iter().skip(usize::from(is_static)).any(String::is_empty) {
        let forms: Vec<String> =
            p.forms.iter().map(|f| format!("{}{}{f}", p.name, if f.is_empty() { "" } else { ":" })).collect();
        let message = format!("{} is not how a probe of '{}' is written", crate::diag::quote(&full(p, &parts)), p.name);
        return Err(Diagnostic::new(Code::Probe, span, message).hint(format!("write {}", forms.join(" or "))));
    }
    if p.name == "self" && parts != ["signal", "SIGUSR1"] {
        let message = format!("{} is no probe", crate::diag::quote(&full(p, &parts)));
        return Err(Diagnostic::new(Code::Probe, span, message)
            .hint("write self:signal:SIGUSR1: other signals end trapline, or are not for it"));
    }
    let period = match p.name {
        "interval" | "profile" => Some(period(p, &parts, span)?),
        _ => None,
    };
    Ok(Point { provider: p, parts, period, span })
}

fn full(p: &Provider, parts: &[String]) -> String {
    parts.iter().fold(p.name.to_owned(), |all, part| all + ":" + part)
}

/// `begin` and `end` are known in any letter case.
fn special(name: &str) -> Option<&'static Provider> {
    PROVIDERS[..2].iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

fn form_length(form: &str) -> usize {
    if form.is_empty() { 0 } else { form.matches(':').count() + 1 }
}

/// `hz:99`, `s:1`, `1s`, `100ms`
fn period(p: &Provider, parts: &[String], span: Span) -> Result<u64> {
    let ns = match parts {
        [unit, count] => count.parse::<u64>().ok().and_then(|n| match unit.as_str() {
            "hz" => 1_000_000_000u64.checked_div(n),
            unit => duration::UNITS.iter().find(|u| u.0 == unit).and_then(|u| n.checked_mul(u.1)),
        }),
        [one] if one.chars().any(|c| c.is_ascii_alphabetic()) => duration::parse(one),
        _ => None,
    };
    ns.filter(|ns| *ns > 0).ok_or_else(|| {
        let e = Diagnostic::new(
            Code::Probe,
            span,
            format!("{} is not a time between ticks", crate::diag::quote(&full(p, parts))),
        );
        e.hint(format!("for instance {0}:1s, {0}:100ms or {0}:hz:99", p.name))
    })
}
