//! `trapline diff A B` of stacks: what has changed from one profile to another. Function calls are compared by [`crate::diff`].

use super::past;
use super::sink::Profile;
use crate::ask::{Ask, Show};
use crate::complain;
use crate::output::Output;
use crate::view::screen::Clocks;
use crate::view::{self, stacks};
use engine::{Error, Result};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;
use views::profile::diff::Diff;
use views::profile::flame::Flame;
use views::profile::style::{Style, Terminal};
use views::profile::table::Table;
use views::profile::{By, Frame, Labels, Stacks, Tally, Unit, folded};

/// The longest line of folded stacks, bytes.
const LONGEST: u64 = 1 << 20;

/// Runs the command.
pub fn run(ask: &Ask, a: &Path, b: &Path) -> Result<u8> {
    let style = stacks::style(ask, format!("{} → {}", a.display(), b.display()), Clocks::now())?;
    let wanted = view::wanted(ask, "table");
    let mut drawings = wanted.iter().map(drawing).collect::<Result<Vec<_>>>()?;
    // A folded file knows no modules: then functions are compared by their names alone.
    let by_name = a.is_file() || b.is_file();
    let (before, after) = (Side::read(ask, a, by_name)?, Side::read(ask, b, by_name)?);
    for (side, path) in [(&before, a), (&after, b)] {
        if side.with(Stacks::is_empty) {
            let todo = "record for longer, or what does more";
            complain(&format!("{}: nothing to compare: it has no events with stacks ({todo})", path.display()));
        }
    }
    before.with(|before| {
        after.with(|after| drawings.iter_mut().try_for_each(|d| draw(d, Diff { before, after }, &style)))
    })?;
    Ok(0)
}

/// The views of a difference, by the names of those of a profile.
const VIEWS: [(&str, Draw); 3] = [
    ("table", |diff, style, terminal, out| {
        let table = Table::of(style, terminal);
        diff.table(table.rows, table.width, out);
    }),
    ("folded", |diff, style, _, out| diff.folded(style.by, false, out)),
    ("flame", |diff, style, _, out| Flame::of(style).write_difference(diff.before, diff.after, out)),
];

/// Draws a difference, for a terminal if there is one.
type Draw = fn(Diff<'_>, &Style, Option<Terminal>, &mut Vec<u8>);

fn drawing(Show { view, file }: &Show) -> Result<(Draw, Output)> {
    match VIEWS.iter().find(|(name, _)| name == view) {
        Some((_, draw)) => Ok((*draw, Output::view(file.as_deref())?)),
        None => {
            let todo = view::or(&VIEWS.map(|(name, _)| name));
            Err(Error::usage(format!("--as {view}"), "no such view of a difference", todo))
        }
    }
}

fn draw((draw, output): &mut (Draw, Output), diff: Diff<'_>, style: &Style) -> Result<()> {
    let mut text = Vec::new();
    draw(diff, style, output.is_terminal().then(stacks::size), &mut text);
    output.write_lines(&text);
    output.close();
    output.take_trouble().map_or(Ok(()), Err)
}

/// One of the two profiles.
enum Side {
    OfTrace(Rc<RefCell<Profile>>),
    OfLines(Box<Stacks>),
}

impl Side {
    /// Reads a trace or a file.
    fn read(ask: &Ask, path: &Path, by_name: bool) -> Result<Side> {
        if !path.is_dir() {
            let file = File::open(path).map_err(|e| cannot(path, &e))?;
            return Ok(Side::OfLines(Box::new(lines(path, &mut BufReader::new(file), Unit::Events)?)));
        }
        let profile = past::of_trace(ask, path)?;
        if !by_name {
            return Ok(Side::OfTrace(profile));
        }
        let mut text = Vec::new();
        folded::write(profile.borrow().stacks(), By::Comm, &mut text);
        Ok(Side::OfLines(Box::new(lines(path, &mut &text[..], Unit::Events)?)))
    }

    fn with<T>(&self, act: impl FnOnce(&Stacks) -> T) -> T {
        match self {
            Side::OfTrace(profile) => act(profile.borrow().stacks()),
            Side::OfLines(stacks) => act(stacks),
        }
    }
}

fn cannot(path: &Path, e: &std::io::Error) -> Error {
    let todo = "name a trace, or a file of folded stacks";
    Error::failed(path.display().to_string(), ctf::folder::reason(e), todo)
}

/// Stacks of lines `command;outer;inner WEIGHT`.
fn lines(path: &Path, from: &mut impl BufRead, unit: Unit) -> Result<Stacks> {
    let mut stacks = Stacks::new(unit);
    let mut line = Vec::new();
    for nth in 1.. {
        line.clear();
        let n = from.by_ref().take(LONGEST).read_until(b'\n', &mut line).map_err(|e| cannot(path, &e))?;
        if n == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            continue;
        }
        if let Some(lost) = folded::parse_lost(text) {
            stacks.set_lost(Some(lost));
            continue;
        }
        let parsed = text.rsplit_once(' ').and_then(|(names, n)| Some((names, n.parse::<u64>().ok()?)));
        let Some((names, weight)) = parsed else {
            let why = format!("line {nth} is no folded stack: NAME;NAME WEIGHT");
            return Err(Error::failed(path.display().to_string(), why, "name a trace, or a file of folded stacks"));
        };
        let mut names = names.split(';');
        let comm = names.next().unwrap_or_default();
        let mut frames: Vec<_> = names.map(|name| stacks.frame(&frame(name))).collect();
        frames.reverse();
        let (stack, labels) = (stacks.stack(&frames), stacks.labels(Labels { comm, ..Labels::default() }));
        stacks.add_many(stack, labels, Tally { samples: weight, weight }, 0);
    }
    Ok(stacks)
}

/// A frame by its name, with the marks behind it.
fn frame(name: &str) -> Frame<'_> {
    let (name, kernel) = name.strip_suffix("_[k]").map_or((name, false), |n| (n, true));
    let (name, inlined) = name.strip_suffix("_[i]").map_or((name, false), |n| (n, true));
    let (name, guessed) = name.strip_suffix("_[g]").map_or((name, false), |n| (n, true));
    Frame { function: name, kernel, inlined, guessed, ..Frame::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Stacks> {
        lines(Path::new("x"), &mut text.as_bytes(), Unit::Events)
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let text = "sh 1\nsh;main;f_[i] 3\nsh;main;read_[g]_[k] 18446744073709551615\n";
        let stacks = read(text).unwrap();
        let mut out = Vec::new();
        folded::write(&stacks, By::Comm, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), text);
        assert_eq!(read("a b;c d 5\r\n\n").unwrap().total().weight, 5);
    }

    #[test]
    fn invalid_lines_are_refused() {
        for bad in ["a;b", "a;b c", "a;b -1", "a;b 1.5", "a 99999999999999999999"] {
            assert!(read(bad).is_err_and(|e| e.to_string().contains("line 1 is no folded stack")), "{bad}");
        }
    }
}
