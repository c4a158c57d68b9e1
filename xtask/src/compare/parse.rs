//! Reads a trace in strace's line format: merges `<unfinished ...>` with `<... resumed>`, so that each call is one entry,
//! placed where it ended.

use std::collections::HashMap;

/// What a line reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Call,
    /// A signal that arrived, a stop, an exit: `--- … ---` and `+++ … +++`.
    Process,
}

/// One line of a trace, once complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub pid: u32,
    pub kind: Kind,
    /// The call's name, or the first words of a process line (`--- SIGCHLD`, `+++ exited`).
    pub name: String,
    /// The text between the parentheses, or the rest of a process line.
    pub args: String,
    /// The text after `= `; `?` for a call that did not return.
    pub result: String,
}

impl Entry {
    pub fn text(&self) -> String {
        match self.kind {
            Kind::Call => format!("{}({}) = {}", self.name, self.args, self.result),
            Kind::Process => format!("{} {}", self.name, self.args),
        }
    }
}

/// The entries of a trace in the order in which they ended, and the lines that are none.
#[derive(Default)]
pub struct Trace {
    pub entries: Vec<Entry>,
    pub not_understood: Vec<String>,
}

const UNFINISHED: &str = " <unfinished ...>";

/// Reads the text of a trace.
pub fn parse(text: &str) -> Trace {
    let mut reader = Reader::default();
    for line in text.lines() {
        if reader.line(line).is_none() {
            reader.trace.not_understood.push(line.to_string());
        }
    }
    reader.end()
}

#[derive(Default)]
struct Reader {
    trace: Trace,
    /// The first halves of calls whose end is still to come, by thread.
    open: HashMap<u32, String>,
}

impl Reader {
    /// Takes one line; `None` where it is not understood.
    fn line(&mut self, line: &str) -> Option<()> {
        let (pid, rest) = line.split_once(' ')?;
        let (pid, rest) = (pid.parse().ok()?, rest.trim_start());
        if rest.ends_with("<in flight>") || rest.ends_with("<in flight since attach>") {
            // trapline's own: the complete line follows at the call's end.
            return Some(());
        }
        if rest.starts_with("--- ") || rest.starts_with("+++ ") {
            self.process_line(pid, rest);
            return Some(());
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, tail) = resumed.split_once(" resumed>")?;
            let head = self.open.remove(&pid)?;
            return self.call(pid, &(head + tail));
        }
        if let Some(head) = rest.strip_suffix(UNFINISHED) {
            self.open.insert(pid, head.to_string());
            return Some(());
        }
        self.call(pid, rest)
    }

    /// `--- SIGCHLD {…} ---` becomes the name `--- SIGCHLD` and the arguments `{…}`.
    fn process_line(&mut self, pid: u32, rest: &str) {
        let (mark, text) = rest.split_at(3);
        let text = text.trim().trim_end_matches(mark).trim();
        let (word, args) = text.split_once(' ').unwrap_or((text, ""));
        if let Some(thread) = args.strip_prefix("by execve in pid ").and_then(|thread| thread.parse().ok()) {
            // The thread that called execve continues under this pid, and so does its open call.
            if let Some(head) = self.open.remove(&thread) {
                self.open.insert(pid, head);
            }
        }
        self.push(pid, Kind::Process, &format!("{mark} {word}"), args, "");
    }

    fn call(&mut self, pid: u32, text: &str) -> Option<()> {
        let name_end = text.find('(')?;
        let (name, rest) = (&text[..name_end], &text[name_end + 1..]);
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        let close = matching_parenthesis(rest)?;
        let result = rest[close + 1..].trim_start().strip_prefix("= ")?;
        // A call that was killed: `read(3,  <unfinished ...>) = ?`.
        let args = rest[..close].strip_suffix(UNFINISHED).unwrap_or(&rest[..close]);
        self.push(pid, Kind::Call, name, args, result);
        Some(())
    }

    fn push(&mut self, pid: u32, kind: Kind, name: &str, args: &str, result: &str) {
        let [name, args, result] = [name, args, result].map(|text| text.trim().to_string());
        // `read(3, ` of a call without its end: the comma only shows that more was to come.
        let args = args.trim_end_matches([',', ' ']).to_string();
        self.trace.entries.push(Entry { pid, kind, name, args, result });
    }

    /// What never ended is an entry too, with the result that strace gives to a call that was killed.
    fn end(mut self) -> Trace {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort();
        for (pid, head) in open {
            if self.call(pid, &format!("{head}) = ?")).is_none() {
                self.trace.not_understood.push(head);
            }
        }
        self.trace
    }
}

/// The place of the parenthesis that closes a call; strings and comments may contain others.
fn matching_parenthesis(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The place of the quote that ends the string beginning at `start`.
pub fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{Kind, parse};

    fn texts(trace: &str) -> Vec<String> {
        let trace = parse(trace);
        assert_eq!(trace.not_understood, Vec::<String>::new());
        trace.entries.iter().map(|entry| format!("{} {}", entry.pid, entry.text())).collect()
    }

    #[test]
    fn halves_are_merged_at_the_end() {
        let trace = "10 read(3,  <unfinished ...>\n11  close(4) = 0\n10 <... read resumed>\"a)\\\"\", 4) = 2\n";
        assert_eq!(texts(trace), ["11 close(4) = 0", "10 read(3, \"a)\\\"\", 4) = 2"]);
    }

    #[test]
    fn killed_calls_have_no_result() {
        let trace =
            "10 read(3,  <unfinished ...>\n10 <... read resumed> <unfinished ...>) = ?\n11 pause( <unfinished ...>\n";
        assert_eq!(texts(trace), ["10 read(3) = ?", "11 pause() = ?"]);
    }

    #[test]
    fn exec_from_a_thread_ends_under_the_leader() {
        let trace = "11 execve(\"a\", [], NULL <unfinished ...>\n10 +++ superseded by execve in pid 11 +++\n\
                     10 <... execve resumed>) = 0\n";
        assert_eq!(texts(trace), ["10 +++ superseded by execve in pid 11", "10 execve(\"a\", [], NULL) = 0"]);
    }

    #[test]
    fn in_flight_lines_are_ignored() {
        assert_eq!(texts("10 read(0,  <in flight>\n10 read(0, \"\", 1) = 0\n"), ["10 read(0, \"\", 1) = 0"]);
    }

    #[test]
    fn process_lines() {
        let trace = parse("10 --- SIGCHLD {si_signo=SIGCHLD} ---\n10 +++ exited with 3 +++\n");
        assert!(trace.entries.iter().all(|entry| entry.kind == Kind::Process));
        assert_eq!(trace.entries[0].name, "--- SIGCHLD");
        assert_eq!(trace.entries[1].args, "with 3");
    }

    #[test]
    fn comments_after_the_result_stay() {
        let trace = parse("10 poll([{fd=3}], 1, 0) = 1 ([{fd=3, revents=POLLIN}])\nstrace: something\n");
        assert_eq!(trace.entries[0].result, "1 ([{fd=3, revents=POLLIN}])");
        assert_eq!(trace.not_understood, ["strace: something"]);
    }
}
