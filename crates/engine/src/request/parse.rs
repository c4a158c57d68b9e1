//! What an `-e` asks for, as it is written.
//!
//! ```text
//! -e 'PROBE[,PROBE]… [/FILTER/] [kstack[=N]] [ustack[=N]] [comm] [cpu] [uid] [gid] [str(ARGUMENT)]…'
//! ```

use crate::capture::captures::{self, Captures};
use crate::error::{Error, Result};
use crate::provider::quoting;
use events::dynamic;
use events::{Extent, Schema};
use lang::Diagnostic;

/// What one `-e` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Probes and calls, as they were written.
    pub names: Vec<String>,
    /// Filter.
    pub filter: Option<String>,
    /// Captures.
    pub captures: Captures,
    /// Arguments that are addresses of strings, which are captured.
    pub strings: Vec<String>,
}

impl Request {
    /// Reads an `-e`.
    pub fn parse(text: &str) -> Result<Request> {
        let mut request = Request::default();
        let mut rest = text.trim();
        if is_clause(text) {
            let why = "a clause of a script, and here a probe is named";
            return Err(Error::usage(format!("-e {text}"), why, "record, trace and run take clauses"));
        }
        let blank = quoting::find(rest, |rest| rest.starts_with(' '));
        if !quoting::is_closed(&rest[..blank.unwrap_or(rest.len())]) {
            return Err(Error::usage(
                format!("-e {text}"),
                "a quote in it is not closed",
                "PROVIDER:\"NAME, WITH BLANKS\"",
            ));
        }
        // A filter is between slashes with a blank outside, which distinguishes it from a path.
        if let Some(from) = quoting::find(rest, |rest| rest.starts_with(" /")) {
            let behind = &rest[from + 2..];
            let to = behind.rfind('/').filter(|to| behind[to + 1..].is_empty() || behind[to + 1..].starts_with(' '));
            let Some(to) = to else {
                return Err(Error::usage(format!("-e {text}"), "its filter is not closed", "PROBE /FILTER/ kstack"));
            };
            request.filter = Some(behind[..to].trim().to_string());
            request.captures(text, &behind[to + 1..])?;
            rest = &rest[..from];
        } else if let Some(from) = blank {
            request.captures(text, &rest[from..])?;
            rest = &rest[..from];
        }
        request.names = names(rest);
        if request.names.is_empty() {
            return Err(Error::usage(format!("-e {text}"), "it names no probe", "for instance -e syscall:openat"));
        }
        Ok(request)
    }

    fn captures(&mut self, text: &str, words: &str) -> Result<()> {
        for word in words.split_whitespace() {
            if let Some(argument) = word.strip_prefix("str(").and_then(|w| w.strip_suffix(')')) {
                let argument = argument.strip_prefix("args.").unwrap_or(argument);
                self.strings.push(argument.to_string());
                continue;
            }
            let (name, n) = word.split_once('=').map_or((word, None), |(name, n)| (name, Some(n)));
            let frames = |most: u16| n.map_or(Some(most), |n| n.parse().ok().filter(|n| (1..=most).contains(n)));
            match (name, frames(captures::KERNEL.into()), frames(captures::USER)) {
                ("kstack", Some(n), _) => self.captures.kstack = n as u8,
                ("ustack", _, Some(n)) => self.captures.ustack = n,
                ("comm", ..) if n.is_none() => self.captures.comm = true,
                ("cpu", ..) if n.is_none() => self.captures.cpu = true,
                ("uid", ..) if n.is_none() => self.captures.uid = true,
                ("gid", ..) if n.is_none() => self.captures.gid = true,
                _ => {
                    let todo =
                        "kstack[=N] (at most 127), ustack[=N] (at most 512), comm, cpu, uid, gid or str(ARGUMENT)";
                    return Err(Error::usage(
                        format!("-e {text}"),
                        format!("'{word}' is not something to capture"),
                        todo,
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The names between commas; those within quotes belong to a name.
pub fn names(text: &str) -> Vec<String> {
    quoting::split(text).into_iter().map(str::trim).filter(|n| !n.is_empty()).map(str::to_string).collect()
}

/// Whether an `-e` has statements, and so is a clause of a script: `PROBE /FILTER/ { … }`. Names of closures have braces too, but no blank
/// before them, and no statements in them.
pub fn is_clause(text: &str) -> bool {
    let text = text.trim();
    let body = |rest: &str| {
        let behind = rest.strip_prefix('/').unwrap_or(rest).trim_start();
        behind.starts_with('{') && (behind.len() < rest.len() || rest.contains(';'))
    };
    text.ends_with('}') && quoting::find(text, body).is_some()
}

/// A name and a filter, in one line.
pub fn label(name: &str, filter: Option<&str>) -> String {
    filter.map_or_else(|| name.into(), |filter| format!("{name} /{}/", filter.replace(['\n', '\r'], " ")))
}

/// Whether a name of an `-e` is a probe other than a call: it begins with a provider's name.
pub fn is_probe(name: &str) -> bool {
    let provider = name.split(':').next().unwrap_or_default();
    // The entry or the return of a call by itself.
    if provider == "syscall" && (name.ends_with(":entry") || name.ends_with(":return")) {
        return true;
    }
    matches!(name, "begin" | "end") || name.contains(':') && provider != "syscall" && !name.starts_with(['/', '%', '!'])
}

/// A mistake in the filter of a probe.
pub(super) fn mistake(probe: &str, text: &str, d: &Diagnostic) -> Error {
    let (line, column) = d.position(text);
    let place = if line == 1 { format!("column {column}") } else { format!("line {line}, column {column}") };
    let of = if probe.is_empty() { String::new() } else { format!("{probe}: ") };
    let todo = d.hint.clone().unwrap_or_else(|| "see docs/FILTERS.md".into());
    Error::usage(format!("-e {of}/{text}/"), format!("{} {} at {place}", d.code, d.message), todo)
}

/// The class of a probe whose events are points or spans.
pub(super) fn class(name: &str, extent: Extent, fields: &[dynamic::Field]) -> Result<&'static Schema> {
    let made = match extent {
        Extent::Point => dynamic::class(name, fields),
        Extent::Span => dynamic::span(name, fields),
    };
    made.map_err(|e| Error::failed(name, e.to_string(), "enable fewer probes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_names_a_filter_and_captures() {
        let r = Request::parse("uprobe:/bin/sh:main,read /args.fd == 3 && pid / 2 > 1/ kstack ustack=5 comm").unwrap();
        assert_eq!(r.names, ["uprobe:/bin/sh:main", "read"]);
        assert_eq!(r.filter.as_deref(), Some("args.fd == 3 && pid / 2 > 1"));
        assert_eq!(r.captures, Captures { kstack: captures::KERNEL, ustack: 5, comm: true, ..Captures::default() });
        let r = Request::parse("uprobe:/usr/bin/x:y").unwrap();
        assert_eq!((r.filter, r.captures), (None, Captures::default()));
        let r = Request::parse(r#"uprobe:./p:"a::f(int, char*)",read /pid == 1/ str(arg0) str(args.why)"#).unwrap();
        assert_eq!(r.names, [r#"uprobe:./p:"a::f(int, char*)""#, "read"]);
        assert_eq!((r.filter.as_deref(), r.strings), (Some("pid == 1"), vec!["arg0".to_string(), "why".into()]));
        assert_eq!(Request::parse(r#"uprobe:"./a /b":main comm"#).unwrap().names, [r#"uprobe:"./a /b":main"#]);
        for bad in [
            r#"uprobe:./p:"a b"#,
            "read str(",
            "",
            " , ",
            "read /pid == 1",
            "read kstack=0",
            "read kstack=128",
            "read ustack=513",
            "read stack",
            "read comm=3",
        ] {
            assert!(Request::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn clauses_are_told_from_requests() {
        for clause in
            ["begin { exit(); }", "openat /pid == 1/{ @++ }", "end{exit();}", "a:b\n{ @ = 1 }", "a /x == \"}\"/ {}"]
        {
            assert!(is_clause(clause) && Request::parse(clause).is_err(), "{clause}");
        }
        for request in ["openat /comm == \"{ }\"/", "function:a::{closure#0}", "function:a::{{closure}}", "/a{2}/"] {
            assert!(!is_clause(request), "{request}");
        }
        assert!(!is_clause(r#"uprobe:./p:"a { b; }""#));
    }

    #[test]
    fn calls_are_told_from_other_probes() {
        for probe in
            ["tracepoint:sched:sched_switch", "uprobe:/bin/sh:main", "begin", "profile:hz:99", "syscall:read:entry"]
        {
            assert!(is_probe(probe), "{probe}");
        }
        for call in ["read", "%file", "/^get/", "!read", "syscall:openat", "all"] {
            assert!(!is_probe(call), "{call}");
        }
    }
}
