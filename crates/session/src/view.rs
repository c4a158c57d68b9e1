//! The views that there are: one table, from which `--as` of every command, its help and its completions come.
//!
//! ```text
//! --as NAME ─► find ─► a row: what the view is made of, and how ─► a sink of the pump, or the records of a trace thread by thread
//! ```
//!
//! A new view is a file, and a row here (docs/HOWTO_ADD_VIEW.md).

pub mod calls;
pub mod heap;
pub mod known;
pub mod lines;
pub mod parquet;
pub mod screen;
pub mod stacks;
pub mod stats;
pub mod tables;
pub mod totals;

use crate::ask::{Ask, Show};
use crate::output::Output;
use crate::spans;
use calls::{Demangle, Making};
use ctf::trace::Trace;
use engine::pipeline::pump::Sink;
use engine::{Error, Result};
use stacks::Style;
use std::io;
use views::View;
use views::calls::CallView;
use views::calls::edges::Language;
use views::heap as memory;
use views::options::Options;
use views::profile::Stacks;
use views::timeline::{Timeline, html, overview, perfetto, span_table, tree};

/// A row of the table.
pub struct Kind {
    /// Its name in `--as`.
    pub name: &'static str,
    /// Its name in the commands that have views of this sort only.
    pub short: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
    /// What it is made of.
    pub of: Of,
    /// What is written.
    pub form: Form,
    /// How it is made.
    pub make: Make,
}

/// What a view is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Events, one by one.
    Events,
    /// A whole trace.
    Trace,
    /// Function calls.
    Calls,
    /// Stacks and their weights.
    Stacks,
    /// Allocations.
    Heap,
}

/// What a view writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// JSON, and other formats of lines for programs.
    Data,
    /// A picture.
    Svg,
    /// Bytes that no terminal shows; and what opens them.
    Binary(&'static str),
    /// A directory of files.
    Directory,
}

/// How a view is made.
pub enum Make {
    /// Lines of events.
    Lines(fn(Options) -> Box<dyn View + Send>),
    /// A table of events, at their end.
    Table(fn() -> Box<dyn View>),
    /// A table of all events of a trace.
    Trace(fn(stats::Table) -> Box<dyn View>),
    /// All events of a trace, with stacks and the names of files.
    Whole(fn(&Timeline, &mut Vec<u8>)),
    /// All events of a trace, with stacks and the names of files, in a directory.
    Directory(fn(parquet::Making<'_>) -> Result<Box<dyn Sink>>),
    /// Function calls, as they end or begin.
    Calls {
        /// Makes it.
        view: fn(Making<'_>) -> Box<dyn CallView>,
        /// How functions are called where nobody has said it.
        names: Demangle,
        /// A faster way over many calls, to a terminal.
        whole: Option<totals::Write>,
    },
    /// What function calls add up to: the records of a trace, thread by thread.
    Totals {
        /// Writes it.
        write: totals::Write,
        /// How functions are called where nobody has said it.
        names: Demangle,
    },
    /// A profile.
    Stacks {
        /// Draws it; the flag is whether it is for a terminal.
        draw: fn(&Stacks, &Style, bool, &mut Vec<u8>),
        /// It has source files and lines in it.
        lines: bool,
    },
    /// A heap.
    Heap(memory::Write),
}

/// All views. Of several with one name, the one that is meant depends on what a trace has ([`of_trace`]).
pub static ALL: &[Kind] = &[
    Kind::lines("text", Form::Text, "lines as strace's", |o| Box::new(views::text::Text::new(o))),
    Kind::lines("json", Form::Data, "an object for each event (docs/JSON.md)", |o| Box::new(views::json::Json::new(o))),
    Kind::lines("record", Form::Data, "a line for each event, for scripts (docs/RECORD.md)", lines::record),
    Kind {
        name: "open",
        short: "open",
        help: "descriptors that were opened and not closed, by stack",
        of: Of::Events,
        form: Form::Text,
        make: Make::Table(|| Box::new(views::open_files::OpenFiles::default())),
    },
    Kind::trace("stats", Form::Text, "what is in the trace", stats::text),
    Kind::trace("stats-json", Form::Data, "what is in the trace, as one object", stats::json),
    Kind {
        name: "html",
        short: "html",
        help: "everything over time, in one file for a browser",
        of: Of::Trace,
        form: Form::Binary("for a browser"),
        make: Make::Whole(html::write),
    },
    Kind {
        name: "timeline",
        short: "timeline",
        help: "everything over time, for Perfetto",
        of: Of::Trace,
        form: Form::Binary("for ui.perfetto.dev"),
        make: Make::Whole(perfetto::write),
    },
    Kind {
        name: "parquet",
        short: "parquet",
        help: "tables of everything, for SQL (docs/PARQUET.md)",
        of: Of::Trace,
        form: Form::Directory,
        make: Make::Directory(parquet::open),
    },
    Kind::whole("overview", Form::Text, "lanes of processes over time, and when most has happened", overview::write),
    Kind::whole("processes", Form::Text, "who started whom, and what each has done", tree::write),
    Kind::whole("processes-json", Form::Data, "an object for each process", tree::write_json),
    Kind::whole(
        "spans",
        Form::Text,
        "spans of two probes (--span): how long, and what the slowest were made of",
        span_table::write,
    ),
    Kind::whole("spans-json", Form::Data, "spans of two probes, as an object for each --span", span_table::write_json),
    Kind {
        name: "tree",
        short: "tree",
        help: "calls below their callers; on a terminal the slowest",
        of: Of::Calls,
        form: Form::Text,
        make: Make::Calls { view: calls::tree, names: Demangle::Simple, whole: Some(totals::brief) },
    },
    Kind::calls("cat", Form::Text, "a line for each entry and each exit", Demangle::Simple, calls::cat),
    Kind::totals("functions", Form::Text, "a table of functions", Demangle::Simple, totals::functions),
    Kind::totals("stat", Form::Text, "a table of functions with fixed units", Demangle::Simple, totals::stat),
    Kind::totals("callgraph", Form::Data, "who calls whom, in the language of dot", Demangle::Simple, |calls, to| {
        totals::graph(calls, to, Language::Dot)
    }),
    Kind::totals("mermaid", Form::Data, "who calls whom, in the language of Mermaid", Demangle::Simple, |calls, to| {
        totals::graph(calls, to, Language::Mermaid)
    }),
    Kind::totals("flame", Form::Svg, "a flame graph of the time in functions", Demangle::Plain, totals::flame),
    Kind::totals("folded", Form::Data, "folded stacks of the time in functions", Demangle::Plain, totals::folded),
    Kind::calls(
        "timeline",
        Form::Binary("for ui.perfetto.dev"),
        "all threads over time",
        Demangle::Simple,
        calls::timeline,
    ),
    Kind::calls("calls-json", Form::Data, "an object for each call", Demangle::Plain, calls::json),
    Kind::totals("functions-json", Form::Data, "an object for each function", Demangle::Plain, totals::json),
    Kind::stacks("table", Form::Text, "a table of functions by their samples", stacks::table),
    Kind::stacks("calltree", Form::Text, "a tree of functions, each below its callers", stacks::calltree),
    Kind::stacks("bottom-up", Form::Text, "a tree of functions, each below what it calls", stacks::bottom_up),
    Kind::stacks("folded", Form::Data, "folded stacks", stacks::folded),
    Kind::stacks("flame", Form::Svg, "a flame graph", stacks::flame),
    Kind {
        name: "pprof",
        short: "pprof",
        help: "a profile for pprof",
        of: Of::Stacks,
        form: Form::Binary(""),
        make: Make::Stacks { draw: stacks::pprof, lines: true },
    },
    Kind {
        name: "profile-json",
        short: "json",
        help: "a profile for speedscope",
        of: Of::Stacks,
        form: Form::Data,
        make: Make::Stacks { draw: stacks::json, lines: true },
    },
    Kind::heap("leaks", Form::Text, "what is outstanding, by stack", memory::leaks::write),
    Kind::heap("peak", Form::Text, "what was outstanding at the peak", memory::peak::write),
    Kind::heap("totals", Form::Text, "all allocations, by stack", memory::totals::write),
    Kind::heap("temporary", Form::Text, "blocks that were freed at once", memory::temporary::write),
    Kind::heap("growth", Form::Text, "memory over time", memory::growth::write),
    Kind::heap(
        "calltree",
        Form::Text,
        "a tree of functions by their memory, each below its callers",
        memory::profile::calltree,
    ),
    Kind::heap(
        "bottom-up",
        Form::Text,
        "a tree of functions by their memory, each below what it calls",
        memory::profile::bottom_up,
    ),
    Kind::heap("flame", Form::Svg, "a flame graph of memory", memory::profile::flame),
    Kind::heap("pprof", Form::Binary(""), "memory for pprof", memory::profile::pprof),
    Kind::heap("folded", Form::Data, "folded stacks of memory", memory::profile::folded),
    Kind {
        name: "heap-json",
        short: "json",
        help: "one object with all numbers of the heap",
        of: Of::Heap,
        form: Form::Data,
        make: Make::Heap(memory::json::write),
    },
];

impl Kind {
    const fn lines(
        name: &'static str,
        form: Form,
        help: &'static str,
        make: fn(Options) -> Box<dyn View + Send>,
    ) -> Kind {
        Kind { name, short: name, help, of: Of::Events, form, make: Make::Lines(make) }
    }

    const fn trace(
        name: &'static str,
        form: Form,
        help: &'static str,
        make: fn(stats::Table) -> Box<dyn View>,
    ) -> Kind {
        Kind { name, short: name, help, of: Of::Trace, form, make: Make::Trace(make) }
    }

    const fn whole(name: &'static str, form: Form, help: &'static str, write: fn(&Timeline, &mut Vec<u8>)) -> Kind {
        Kind { name, short: name, help, of: Of::Trace, form, make: Make::Whole(write) }
    }

    const fn calls(
        name: &'static str,
        form: Form,
        help: &'static str,
        names: Demangle,
        view: fn(Making<'_>) -> Box<dyn CallView>,
    ) -> Kind {
        Kind { name, short: name, help, of: Of::Calls, form, make: Make::Calls { view, names, whole: None } }
    }

    const fn totals(name: &'static str, form: Form, help: &'static str, names: Demangle, write: totals::Write) -> Kind {
        Kind { name, short: name, help, of: Of::Calls, form, make: Make::Totals { write, names } }
    }

    const fn stacks(
        name: &'static str,
        form: Form,
        help: &'static str,
        draw: fn(&Stacks, &Style, bool, &mut Vec<u8>),
    ) -> Kind {
        Kind { name, short: name, help, of: Of::Stacks, form, make: Make::Stacks { draw, lines: false } }
    }

    const fn heap(name: &'static str, form: Form, help: &'static str, write: memory::Write) -> Kind {
        Kind { name, short: name, help, of: Of::Heap, form, make: Make::Heap(write) }
    }

    /// Whether it can show a recording that goes on: else it needs all of it.
    pub fn follows(&self) -> bool {
        matches!(self.make, Make::Lines(_) | Make::Calls { .. } | Make::Stacks { .. })
    }

    /// Opens where it goes.
    ///
    /// # Errors
    /// The file cannot be made, or a terminal would get what it cannot show.
    pub fn open(&self, file: Option<&str>) -> Result<Output> {
        self.check(file)?;
        Output::view(file)
    }

    /// Opens where it goes while a recording runs: lines can be read as they come.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open_live(&self, file: Option<&str>) -> Result<Output> {
        let grows = matches!(self.make, Make::Lines(_) | Make::Calls { .. });
        if grows { self.check(file).and_then(|()| Output::growing(file)) } else { self.open(file) }
    }

    /// Refuses a terminal that cannot show it.
    pub fn check(&self, file: Option<&str>) -> Result<()> {
        let whom = match self.form {
            Form::Binary(whom) => whom,
            Form::Directory if file.is_none_or(str::is_empty) => {
                let todo = format!("--as {}=DIR", self.short);
                return Err(Error::usage(format!("--as {}", self.short), "it is a directory of files", todo));
            }
            _ => return Ok(()),
        };
        if file.is_some() || !sys::process::is_terminal(&io::stdout()) {
            return Ok(());
        }
        let todo = format!("--as {}=FILE", self.short);
        let todo = if whom.is_empty() { todo } else { format!("{todo}, {whom}") };
        Err(Error::usage(format!("--as {}", self.short), "it is binary, and stdout is a terminal", todo))
    }
}

/// The views that commands about these things have: each name once, as it is given there.
pub fn names(of: &[Of]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for kind in ALL.iter().filter(|kind| of.contains(&kind.of)) {
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
/// There is none.
pub fn find(view: &str, of: &[Of]) -> Result<&'static Kind> {
    let is_it = |kind: &&Kind| of.contains(&kind.of) && (kind.name == view || name(kind, of) == view);
    ALL.iter().find(is_it).ok_or_else(|| unknown(view, &names(of)))
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
    for kind in ALL.iter().filter(|kind| of.contains(&kind.of)) {
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
pub const OF_TRACES: &[Of] = &[Of::Events, Of::Trace, Of::Calls, Of::Stacks, Of::Heap];

/// The view of a trace that is meant. Names that several have are those of function calls where it has no stacks, and those of the heap where
/// nothing else has any, or where `--of` is given. A timeline has everything, unless the trace has function calls only, some of them are
/// selected, or Chrome's format is asked for.
///
/// # Errors
/// There is no such view.
pub fn of_trace(view: &str, ask: &Ask, trace: &Trace) -> Result<&'static Kind> {
    let of = |of: Of| ALL.iter().find(move |kind| kind.of == of && kind.name == view);
    let calls = &ask.calls;
    let selects =
        !calls.function.is_empty() || !calls.no_function.is_empty() || calls.depth.is_some() || calls.syscalls;
    let chrome = |show: &Show| show.view == view && show.file.as_ref().is_some_and(|file| file.ends_with(".json"));
    let has_spans = spans::are_shown(ask, trace, view)?;
    if view == "timeline" && !has_spans && (selects || totals::has_calls_only(trace) || ask.show.iter().any(chrome)) {
        return find(view, &[Of::Calls]);
    }
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
                Of::Trace => "the trace",
                Of::Calls => "function calls",
                Of::Stacks => "stacks",
                Of::Heap => "allocations",
            };
            format!("| `{}` | {of} | {} |\n", kind.name, kind.help)
        };
        let rows: String = ALL.iter().map(row).collect();
        expect_test::expect_file![page].assert_eq(&format!("{before}{HEAD}{rows}\n{after}"));
    }

    #[test]
    fn a_name_means_one_view_of_a_sort() {
        for kind in ALL {
            for name in [kind.name, kind.short] {
                let same = ALL.iter().filter(|k| k.of == kind.of && (k.name == name || k.short == name));
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
