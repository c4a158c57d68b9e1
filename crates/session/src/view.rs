//! Finds views by their names, and gives them their input.
//!
//! ```text
//! --as NAME ─► find ─► a row of views::kind: what the view is made of, and how ─► a sink of the pump, or the records of a trace
//!                                                                                 thread by thread
//! ```

pub mod calls;
pub mod heap;
pub mod known;
pub mod lines;
pub mod parquet;
pub mod pictures;
pub mod screen;
pub mod stacks;
pub mod stats;
pub mod tables;
pub mod totals;

use crate::ask::{Ask, Show};
use crate::output::Output;
use crate::spans;
use ctf::trace::Trace;
use engine::{Error, Result};
use std::io;

pub use views::kind::{Form, Kind, Make, Of, all};

/// Opens where a view goes.
///
/// # Errors
/// The file cannot be made, or a terminal would get what it cannot show.
pub fn open(kind: &Kind, file: Option<&str>) -> Result<Output> {
    check(kind, file)?;
    Output::view(file)
}

/// Opens where a view goes while a recording runs: lines can be read as they come.
///
/// # Errors
/// The file cannot be made.
pub fn open_live(kind: &Kind, file: Option<&str>) -> Result<Output> {
    let grows = matches!(kind.make, Make::Lines(_) | Make::Calls { .. });
    if grows { check(kind, file).and_then(|()| Output::growing(file)) } else { open(kind, file) }
}

/// Refuses a terminal that cannot show a view.
///
/// # Errors
/// It is one, or the view is a directory and has no name.
pub fn check(kind: &Kind, file: Option<&str>) -> Result<()> {
    let whom = match kind.form {
        Form::Binary(whom) => whom,
        Form::Directory if file.is_none_or(str::is_empty) => {
            let todo = format!("--as {}=DIR", kind.short);
            return Err(Error::usage(format!("--as {}", kind.short), "it is a directory of files", todo));
        }
        _ => return Ok(()),
    };
    if file.is_some() || !sys::process::is_terminal(&io::stdout()) {
        return Ok(());
    }
    let todo = format!("--as {}=FILE", kind.short);
    let todo = if whom.is_empty() { todo } else { format!("{todo}, {whom}") };
    Err(Error::usage(format!("--as {}", kind.short), "it is binary, and stdout is a terminal", todo))
}

/// The views that commands about these things have: each name once, as it is given there.
pub fn names(of: &[Of]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for kind in all().filter(|kind| of.contains(&kind.of)) {
        let name = name(kind, of);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn name(kind: &Kind, of: &[Of]) -> &'static str {
    if of == [kind.of] { kind.short } else { kind.name }
}

/// The view of this name, of those that are made of these things.
///
/// # Errors
/// No view has this name.
pub fn find(view: &str, of: &[Of]) -> Result<&'static Kind> {
    let is_it = |kind: &&Kind| of.contains(&kind.of) && (kind.name == view || name(kind, of) == view);
    all().find(is_it).ok_or_else(|| unknown(view, &names(of)))
}

/// What to say where there is no such view.
pub fn unknown(view: &str, names: &[&str]) -> Error {
    Error::usage(format!("--as {view}"), "no such view", or(names))
}

/// `a, b or c`
pub fn or<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = String::new();
    for (n, name) in names.iter().enumerate() {
        text += if n == 0 {
            ""
        } else if n + 1 == names.len() {
            " or "
        } else {
            ", "
        };
        text += name.as_ref();
    }
    text
}

/// The views that are made of these things, as a help text has them: as they are called `within` the views of a command, with the default.
pub fn help(of: &[Of], within: &[Of], default: &str) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for kind in all().filter(|kind| of.contains(&kind.of)) {
        let name = name(kind, within);
        let note = if kind.form == Form::Svg { " (SVG)" } else { "" };
        let default = if name == default { " [default]" } else { "" };
        shown.push(format!("{name}{note}{default}"));
    }
    shown
}

/// Whether `--by` asks for a table of each host or trace.
pub fn is_of_traces(by: &str) -> bool {
    matches!(by, "host" | "trace")
}

/// The views that are asked for; where none is, and no trace is written, the default.
pub fn wanted(ask: &Ask, default: &str) -> Vec<Show> {
    match &ask.show[..] {
        [] if ask.keep.output.is_none() => vec![Show::stdout(default)],
        all => all.to_vec(),
    }
}

/// Views of a report.
pub const OF_TRACES: &[Of] = &[Of::Events, Of::Trace, Of::Time, Of::Calls, Of::Stacks, Of::Heap];
/// Views of the functions that a command calls.
pub const OF_CALLS: &[Of] = &[Of::Calls, Of::Time];

/// The view of a trace that is meant. Names that several have are those of function calls where it has no stacks, and those of the heap where
/// nothing else has any, or where `--of` is given.
///
/// # Errors
/// There is no such view.
pub fn of_trace(view: &str, ask: &Ask, trace: &Trace) -> Result<&'static Kind> {
    let of = |of: Of| all().find(move |kind| kind.of == of && kind.name == view);
    spans::check(ask, trace, view)?;
    let of_heap = || {
        ask.heap.of.is_some() || ask.table.by.as_ref().is_none_or(|by| is_of_traces(by)) && heap::has_only_heap(trace)
    };
    match (of(Of::Calls), of(Of::Stacks), of(Of::Heap)) {
        (Some(kind), Some(_), _) if ask.heap.of.is_none() && totals::has_calls_only(trace) => Ok(kind),
        (_, Some(_), Some(kind)) if of_heap() => Ok(kind),
        (_, Some(kind), _) => Ok(kind),
        _ => find(view, OF_TRACES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_EXPECT=1` writes the rows anew.
    #[test]
    fn the_documentation_has_a_row_for_each_view() {
        const HEAD: &str = "| view | made of | what it shows |\n|---|---|---|\n";
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/REPORT.md");
        let text = std::fs::read_to_string(page).expect("docs/REPORT.md");
        let (before, rest) = text.split_once(HEAD).expect("a table of views");
        let (_, after) = rest.split_once("\n\n").expect("the end of the table");
        let row = |kind: &Kind| {
            let of = match kind.of {
                Of::Events => "events",
                Of::Trace | Of::Time => "the trace",
                Of::Calls => "function calls",
                Of::Stacks => "stacks",
                Of::Heap => "allocations",
            };
            format!("| `{}` | {of} | {} |\n", kind.name, kind.help)
        };
        let rows: String = all().map(row).collect();
        expect_test::expect_file![page].assert_eq(&format!("{before}{HEAD}{rows}\n{after}"));
    }

    #[test]
    fn a_name_means_one_view_of_a_sort() {
        for kind in all() {
            for name in [kind.name, kind.short] {
                let same = all().filter(|k| k.of == kind.of && (k.name == name || k.short == name));
                assert_eq!(same.count(), 1, "{name}");
            }
        }
        assert_eq!(names(&[Of::Stacks]), ["table", "calltree", "bottom-up", "folded", "flame", "pprof", "json"]);
        assert_eq!(find("json", OF_TRACES).map(|kind| kind.of).ok(), Some(Of::Events));
        assert_eq!(find("json", &[Of::Heap]).map(|kind| kind.name).ok(), Some("heap-json"));
        let said = find("flam", &[Of::Stacks]).err().map(|e| e.to_string());
        assert_eq!(
            said.as_deref(),
            Some("--as flam: no such view (table, calltree, bottom-up, folded, flame, pprof or json)")
        );
    }

    #[test]
    fn help_names_the_default_and_pictures() {
        let (stacks, all) = (&[Of::Stacks][..], OF_TRACES);
        assert_eq!(
            or(&help(stacks, stacks, "table")),
            "table [default], calltree, bottom-up, folded, flame (SVG), pprof or json"
        );
        assert_eq!(help(stacks, all, "")[6], "profile-json");
    }
}
