//! `trapline complete BEFORE AFTER`: what may stand at the cursor in a line. The shells' scripts, which know no option and no name, ask it.
//!
//! ```text
//! the line ─► words ─► where the cursor is: an option, the value of one, a command, an argument ─► candidates
//! ```
//!
//! A candidate is a line: what may be typed, a tab, what it means. Lines that begin with a colon ask the shell for names of its own:
//! `:files`, `:dirs`, or `:command N`, where word N begins the command that is traced.

use super::candidates::{self, Around, Candidate};
use super::command;
use clap::{Arg, Command, ValueHint};
use engine::Result;
use session::output::to_stdout;

const BASH: &str = include_str!("../completions/trapline.bash");
const ZSH: &str = include_str!("../completions/trapline.zsh");
const FISH: &str = include_str!("../completions/trapline.fish");

/// The shells that are known.
pub const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// `trapline completions SHELL`
pub fn completions(shell: &str) -> Result<u8> {
    let script = match shell {
        "zsh" => ZSH,
        "fish" => FISH,
        _ => BASH,
    };
    to_stdout(script.as_bytes())
}

/// `trapline complete BEFORE AFTER`
pub fn complete(before: &str, after: &str) -> Result<u8> {
    to_stdout(lines(before, after).as_bytes())
}

fn lines(before: &str, after: &str) -> String {
    let mut whole = command();
    whole.build();
    let mut before = words(before);
    let current = before.pop().unwrap_or_default();
    let at = Place::behind(&whole, &before);
    // What follows may say what is meant: the program, a process.
    let all: Vec<String> = before.iter().cloned().chain(["-".into()]).chain(words(after)).collect();
    let whole_line = Place::behind(&whole, &all);
    let around = Around {
        command: at.path.clone(),
        program: whole_line.traced.and_then(|n| all.get(n)).cloned(),
        given: whole_line.given,
    };
    let mut out = String::new();
    for Candidate { word, what } in at.candidates(&current, &around) {
        // A name from a file or from the kernel is nobody's line.
        if !word.contains(['\n', '\t', '\r', '\x1b']) {
            let what: String = what.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            out += &if what.is_empty() { format!("{word}\n") } else { format!("{word}\t{what}\n") };
        }
    }
    out
}

/// Where the cursor is.
struct Place<'a> {
    /// The command whose arguments are typed.
    of: &'a Command,
    /// Its words.
    path: Vec<&'a str>,
    /// The option whose value comes next.
    pending: Option<&'a Arg>,
    /// `--` was typed.
    only_arguments: bool,
    /// How many arguments were typed.
    arguments: usize,
    /// The word that begins the command which is traced.
    traced: Option<usize>,
    /// The options with values so far, by their ids.
    given: Vec<(&'a str, String)>,
}

impl<'a> Place<'a> {
    /// The place behind these words, the first of which is trapline.
    fn behind(whole: &'a Command, words: &[String]) -> Place<'a> {
        let mut at = Place {
            of: whole,
            path: Vec::new(),
            pending: None,
            only_arguments: false,
            arguments: 0,
            traced: None,
            given: Vec::new(),
        };
        for (n, word) in words.iter().enumerate().skip(1) {
            at.pass(n, word);
        }
        at
    }

    fn pass(&mut self, n: usize, word: &str) {
        if self.traced.is_some() {
            return;
        }
        if let Some(option) = self.pending.take() {
            self.given.push((option.get_id().as_str(), word.into()));
        } else if self.only_arguments || !word.starts_with('-') || word == "-" {
            match self.of.find_subcommand(word) {
                Some(inner) if self.arguments == 0 && !self.only_arguments => {
                    self.of = inner;
                    self.path.push(inner.get_name());
                }
                _ => {
                    self.traced = self.argument().filter(|a| is_command(a)).map(|_| n);
                    self.arguments += 1;
                }
            }
        } else if word == "--" {
            self.only_arguments = true;
        } else {
            match self.option(word) {
                Some((option, "")) if !option.is_require_equals_set() && !has_equals(word) => {
                    self.pending = Some(option)
                }
                Some((option, value)) => self.given.push((option.get_id().as_str(), value.into())),
                None => {}
            }
        }
    }

    /// The option with a value that a word names, the last one of several letters, and the value in the same word.
    fn option<'w>(&self, word: &'w str) -> Option<(&'a Arg, &'w str)> {
        let mut all = self.of.get_arguments().filter(|a| a.get_action().takes_values());
        if let Some(name) = word.strip_prefix("--") {
            let (name, value) = name.split_once('=').unwrap_or((name, ""));
            let option = all.find(|a| a.get_long_and_visible_aliases().is_some_and(|l| l.contains(&name)))?;
            return Some((option, value));
        }
        let of = |letter: char| {
            self.of.get_arguments().find(|a| a.get_short() == Some(letter) && a.get_action().takes_values())
        };
        let (at, option) =
            word.char_indices().skip(1).find_map(|(at, letter)| Some((at + letter.len_utf8(), of(letter)?)))?;
        Some((option, &word[at..]))
    }

    /// The argument that comes next.
    fn argument(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.of.get_positionals().collect();
        let repeated = || all.last().filter(|a| a.get_num_args().is_some_and(|n| n.max_values() > 1));
        all.get(self.arguments).or_else(repeated).copied()
    }

    fn candidates(&self, current: &str, around: &Around<'_>) -> Vec<Candidate> {
        if let Some(n) = self.traced {
            return vec![Candidate::new(format!(":command {n}"), "")];
        }
        if let Some(option) = self.pending {
            return candidates::of(option, "", current, around);
        }
        if current.starts_with('-') && !self.only_arguments {
            return match self.option(current) {
                Some((option, value)) if current.len() > 2 && (!value.is_empty() || has_equals(current)) => {
                    candidates::of(option, &current[..current.len() - value.len()], value, around)
                }
                _ => self.options(current),
            };
        }
        let commands =
            self.of.get_subcommands().filter(|c| self.arguments == 0 && !self.only_arguments && !c.is_hide_set());
        let about = |c: &Command| c.get_about().map(ToString::to_string).unwrap_or_default();
        let mut found: Vec<Candidate> = commands
            .filter(|c| c.get_name().starts_with(current))
            .map(|c| Candidate::new(c.get_name(), about(c)))
            .collect();
        match self.argument() {
            // The word at the cursor begins it.
            Some(a) if is_command(a) => found.push(Candidate::new(":command", "")),
            Some(a) => found.extend(candidates::of(a, "", current, around)),
            None => {}
        }
        found
    }

    fn options(&self, current: &str) -> Vec<Candidate> {
        let mut found = Vec::new();
        for a in self.of.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set()) {
            let help = a.get_help().map(ToString::to_string).unwrap_or_default();
            let longs = a.get_long_and_visible_aliases().unwrap_or_default();
            let shorts = if longs.is_empty() { a.get_short() } else { None };
            let equals =
                if a.is_require_equals_set() && a.get_num_args().is_none_or(|n| n.min_values() > 0) { "=" } else { "" };
            let names = longs.iter().map(|l| format!("--{l}{equals}")).chain(shorts.map(|s| format!("-{s}")));
            found.extend(names.filter(|name| name.starts_with(current)).map(|name| Candidate::new(name, help.clone())));
        }
        found
    }
}

/// Whether an argument is the command that is traced.
fn is_command(a: &Arg) -> bool {
    a.get_value_hint() == ValueHint::CommandWithArguments
}

/// Whether a long option has its value behind it.
fn has_equals(word: &str) -> bool {
    word.starts_with("--") && word.contains('=')
}

/// The words of a line, as a shell has them.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            (' ' | '\t' | '\n', None) => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
                continue;
            }
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('\\', None | Some('"')) => word.extend(rest.next()),
            _ => word.push(c),
        }
        begun = true;
    }
    if begun || line.ends_with([' ', '\t']) {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_shells_do() {
        assert_eq!(words("a 'b c' \"d e\"f \\ g"), ["a", "b c", "d ef", " g"]);
        assert_eq!(words("a  'b"), ["a", "b"]);
        assert_eq!(words("a "), ["a", ""]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn the_place_of_the_cursor_decides() {
        let first = |before: &str| lines(before, "").lines().next().unwrap_or_default().to_string();
        for (before, expected) in [
            ("trapline rec", "record\tRecord the events"),
            ("trapline trace --summary-o", "--summary-only\tCount calls"),
            ("trapline trace -e read,openat2", "read,openat2"),
            ("trapline trace -qeread,openat2", "-qeread,openat2"),
            ("trapline trace --trace=openat2", "--trace=openat2"),
            ("trapline trace -k ls", ":command"),
            ("trapline trace -s 5 -k -- l", ":command"),
            ("trapline trace -s 5 ls -l ", ":command 4"),
            ("trapline trace -o ", ":files"),
            ("trapline report ", ":dirs"),
            ("trapline session sta", "start\tRecord events again"),
            ("trapline tracer enable -p 1 thr", "thread_checker"),
            ("trapline session set name -e +openat2", "+openat2"),
            ("trapline help kil", "killed\tWhen trapline is killed"),
            ("trapline man trac", "trace\tShow the system calls"),
            ("trapline trace -s ", ""),
            ("trapline nothing ", ""),
        ] {
            let found = first(before);
            assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{before}: {found}");
        }
    }
}
