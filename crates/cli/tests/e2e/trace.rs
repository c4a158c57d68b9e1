//! One `trapline trace -o FILE`, and its lines.

use crate::lab::{self, Outcome, User};
use std::ffi::OsStr;
use std::path::PathBuf;

/// A line of `-o FILE`.
#[derive(Clone, Debug)]
pub struct Line {
    pub tid: u32,
    pub text: String,
}

impl Line {
    pub fn parse(line: &str) -> Line {
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let tid = line[..digits].parse().unwrap_or_else(|_| panic!("no thread in front: {line}"));
        assert!(line[digits..].starts_with(' '), "no space behind the thread: {line}");
        Line { tid, text: line[digits..].trim_start().to_string() }
    }

    /// A completed call, or one that never returned.
    pub fn is_call(&self) -> bool {
        !self.text.starts_with("--- ") && !self.text.starts_with("+++ ") && !self.text.contains("<in flight")
    }

    /// What stands behind the last ` = `.
    pub fn result(&self) -> &str {
        self.text.rsplit_once(" = ").map_or("", |(_, r)| r)
    }

    pub fn is(&self, call: &str) -> bool {
        self.is_call() && self.text.strip_prefix(call).is_some_and(|r| r.starts_with('('))
    }
}

/// A finished trace.
#[derive(Debug)]
pub struct Trace {
    pub outcome: Outcome,
    pub lines: Vec<Line>,
}

impl Trace {
    pub fn calls(&self, name: &str) -> Vec<&Line> {
        self.lines.iter().filter(|l| l.is(name)).collect()
    }
    /// Lines that contain a text.
    pub fn with(&self, text: &str) -> Vec<&Line> {
        self.lines.iter().filter(|l| l.text.contains(text)).collect()
    }
    /// The one line that contains a text.
    #[track_caller]
    pub fn one(&self, text: &str) -> &Line {
        let found = self.with(text);
        assert_eq!(found.len(), 1, "lines with {text}:\n{}", self.text());
        found[0]
    }
    #[track_caller]
    pub fn has(&self, text: &str) {
        assert!(!self.with(text).is_empty(), "no line with {text}:\n{}", self.text());
    }
    #[track_caller]
    pub fn lacks(&self, text: &str) {
        assert!(self.with(text).is_empty(), "a line with {text}:\n{}", self.text());
    }
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|l| format!("{} {}", l.tid, l.text)).collect();
        format!("{}\nstderr: {}", lines.join("\n"), self.outcome.stderr)
    }
    /// The names of the calls, each once, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.lines.iter().filter(|l| l.is_call()).filter_map(|l| Some(l.text.split_once('(')?.0)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads the lines of a file.
pub fn lines_of(path: &std::path::Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(Line::parse).collect()
}

/// `trapline trace -o FILE OPTIONS -- COMMAND`, and FILE.
pub fn arguments<'a>(options: &[&'a str], command: &[&'a str]) -> (Vec<String>, PathBuf) {
    let file = lab::scratch().join("trace");
    let mut args = vec!["trace".to_string(), "-o".into(), file.to_str().expect("UTF-8").into()];
    args.extend(options.iter().map(ToString::to_string));
    if !command.is_empty() {
        args.push("--".into());
        args.extend(command.iter().map(ToString::to_string));
    }
    (args, file)
}

/// Traces a command.
pub fn trace(user: User, options: &[&str], command: &[&str]) -> Trace {
    let (args, file) = arguments(options, command);
    let outcome = lab::run(&mut lab::trapline(user, &args));
    let lines = lines_of(&file);
    Trace { outcome, lines }
}

/// Traces a command with text on stderr.
pub fn on_stderr<S: AsRef<OsStr>>(user: User, args: &[S]) -> Outcome {
    let mut all = vec![OsStr::new("trace")];
    all.extend(args.iter().map(AsRef::as_ref));
    lab::run(&mut lab::trapline(user, &all))
}
