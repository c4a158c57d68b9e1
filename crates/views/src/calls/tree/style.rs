//! What a line of the tree looks like.

use crate::profile::name::shortened;
use crate::write::number;
use std::borrow::Cow;

/// What lines have.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The column of durations.
    pub time: bool,
    /// The column of modules.
    pub module: bool,
    /// Escape sequences for colours.
    pub colour: bool,
    /// The longest line, in characters: longer names are shortened. [`usize::MAX`] for any length.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { time: true, module: false, colour: false, width: usize::MAX }
    }
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call that others follow.
    Entry,
    /// A whole call.
    Leaf,
    /// The return of a call.
    Exit,
    /// A call has ended because an outer one returned.
    Left {
        /// There is a line about its entry.
        has_entry: bool,
    },
    /// A call has not returned.
    Unfinished {
        /// There is a line about its entry.
        has_entry: bool,
    },
    /// A system call.
    SystemCall,
    /// No call.
    Note,
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// How many calls are around it.
    pub depth: usize,
    /// What is called, or the note.
    pub name: &'a str,
    /// What it is about.
    pub kind: Kind,
    /// How long it took, ns.
    pub duration: Option<u64>,
    /// What a call has returned, if that is known.
    pub result: Option<&'a str>,
}

/// Names are never shortened to less.
const LEAST_NAME: usize = 24;
/// Calls deeper than this are not indented more, and their lines have the depth.
pub const DEEPEST: usize = 64;

const GREY: &str = "\x1b[90m";
const CYAN: &str = "\x1b[36m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Appends a duration in ten characters, with a unit, as uftrace has it; wider from ten million seconds on.
pub fn duration(ns: u64, out: &mut Vec<u8>) {
    let (unit, name): (u64, &[u8]) = match ns {
        0..=999_999 => (1000, b" us"),
        1_000_000..=999_999_999 => (1_000_000, b" ms"),
        1_000_000_000..=999_999_999_999 => (1_000_000_000, b"  s"),
        _ => {
            number::padded(ns / 1_000_000_000, 7, out);
            return out.extend_from_slice(b"  s");
        }
    };
    number::padded(ns / unit, 3, out);
    out.push(b'.');
    let part = ns / (unit / 1000) % 1000;
    out.extend([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + digit as u8));
    out.extend_from_slice(name);
}

impl Style {
    /// Appends the first line.
    pub fn heading(&self, out: &mut Vec<u8>) {
        let duration = if self.time { " DURATION    " } else { "" };
        let module = if self.module { "          MODULE" } else { "" };
        out.extend_from_slice(format!("#{duration} TID    {module} FUNCTION\n").as_bytes());
    }

    /// Appends what is before the text of a line.
    pub fn columns(&self, duration_ns: Option<u64>, tid: Option<u32>, module: Option<&str>, out: &mut Vec<u8>) {
        if self.time {
            out.push(b' ');
            match duration_ns {
                Some(ns) if self.colour && ns >= 1_000_000 => {
                    let colour = if ns >= 1_000_000_000 { RED } else { YELLOW };
                    out.extend_from_slice(colour.as_bytes());
                    duration(ns, out);
                    out.extend_from_slice(PLAIN.as_bytes());
                    out.push(b' ');
                }
                Some(ns) => {
                    duration(ns, out);
                    out.push(b' ');
                }
                None => out.extend_from_slice(b"           "),
            }
        }
        match tid {
            Some(tid) => {
                out.push(b'[');
                number::padded(u64::from(tid), 5, out);
                out.push(b']');
            }
            None => out.extend_from_slice(b"       "),
        }
        if self.module {
            let shown = shortened(module.unwrap_or_default(), 16);
            let room = 16 - shown.chars().count().min(16);
            out.resize(out.len() + 1 + room, b' ');
            out.extend_from_slice(shown.as_bytes());
        }
        out.extend_from_slice(b" | ");
    }

    /// Appends a line.
    pub fn line(&self, tid: u32, module: Option<&str>, line: &Line<'_>, out: &mut Vec<u8>) {
        self.columns(line.duration, Some(tid), module, out);
        indent(line.depth, out);
        let name = &*self.fitting(line.name, line.depth);
        let mut put = |parts: [&str; 3]| parts.iter().for_each(|p| out.extend_from_slice(p.as_bytes()));
        match line.kind {
            Kind::Entry => put([name, " {", ""]),
            Kind::Leaf => match line.result {
                Some(result) => put([name, " = ", &format!("{result};")]),
                None => put([name, ";", ""]),
            },
            Kind::Exit => {
                match line.result {
                    Some(result) => put(["} = ", result, " "]),
                    None => put(["} ", "", ""]),
                }
                self.comment(bare(name), "", out);
            }
            Kind::Left { has_entry } => self.doubtful(name, has_entry, "left without a recorded return", out),
            Kind::Unfinished { has_entry } => self.doubtful(name, has_entry, "has not returned", out),
            Kind::SystemCall if self.colour => put([CYAN, name, PLAIN]),
            Kind::SystemCall => put([name, "", ""]),
            Kind::Note => self.comment(name, "", out),
        }
        out.push(b'\n');
    }

    /// A name, shortened to what a line has room for behind the columns and the spaces of its depth.
    pub fn fitting<'a>(&self, name: &'a str, depth: usize) -> Cow<'a, str> {
        if self.width == usize::MAX {
            return name.into();
        }
        let columns = if self.time { 12 } else { 0 } + if self.module { 17 } else { 0 } + "[12345] | ".len();
        // Braces and comments around the name.
        let others = columns + 2 * depth.min(DEEPEST) + 10;
        shortened(name, self.width.saturating_sub(others).max(LEAST_NAME))
    }

    fn doubtful(&self, name: &str, has_entry: bool, why: &str, out: &mut Vec<u8>) {
        if has_entry {
            out.extend_from_slice(b"} ");
            self.comment(bare(name), why, out);
        } else {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"; ");
            self.comment(why, "", out);
        }
    }

    fn comment(&self, text: &str, more: &str, out: &mut Vec<u8>) {
        let colon = if more.is_empty() { "" } else { ": " };
        let (begin, end) = if self.colour { (GREY, PLAIN) } else { ("", "") };
        for part in [begin, "/* ", text, colon, more, " */", end] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Appends the spaces before a call.
pub fn indent(depth: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * depth.min(DEEPEST), b' ');
    if depth > DEEPEST {
        out.extend_from_slice(format!("+{} ", depth - DEEPEST).as_bytes());
    }
}

/// A name without its empty parentheses.
fn bare(name: &str) -> &str {
    name.strip_suffix("()").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_ten_characters() {
        for (ns, want) in [
            (0, "  0.000 us"),
            (1_234, "  1.234 us"),
            (999_999, "999.999 us"),
            (1_000_000, "  1.000 ms"),
            (12_345_678_901, " 12.345  s"),
            (999_999_999_999, "999.999  s"),
            (1_000_000_000_000, "   1000  s"),
        ] {
            let mut out = Vec::new();
            duration(ns, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{ns}");
        }
    }
}
