//! Options that do not go together: those that exclude each other are an error; those that have no effect with the others get a note, so
//! that no option is ignored silently.

use crate::complain;
use clap::ArgMatches;
use clap::parser::ValueSource;
use engine::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// An option as it is written, and its name in the table of [`crate::args`].
type Name = (&'static str, &'static str);

/// Options of lines of text.
const OF_TEXT: &[Name] = &[
    ("-t", "time"),
    ("-r", "relative-timestamps"),
    ("-T", "syscall-times"),
    ("-n", "syscall-number"),
    ("-x", "hex"),
    ("--types", "types"),
    ("--columns", "columns"),
    ("--color", "color"),
];
/// Options of stacks that are shown.
const OF_STACKS: &[Name] = &[("--no-stacks", "no-stacks")];
/// Where names of functions are looked for.
const OF_NAMES: &[Name] = &[("--symbols", "symbols"), ("--debuginfod", "debuginfod")];
/// Options of the table.
const OF_TABLE: &[Name] = &[("-S", "summary-sort-by"), ("-U", "summary-columns"), ("-w", "summary-wall-clock")];
/// Options that ask for the table.
const TABLES: &[Name] = &[("-c", "summary-only"), ("-C", "summary")];

fn given(m: &ArgMatches, name: &str) -> bool {
    m.try_contains_id(name).unwrap_or(false) && m.value_source(name) == Some(ValueSource::CommandLine)
}

fn per_thread(m: &ArgMatches) -> bool {
    m.try_get_one::<u8>("follow").ok().flatten().is_some_and(|n| *n > 1)
}

fn asks_status(m: &ArgMatches) -> bool {
    let mut exprs = m.try_get_many::<String>("expr").ok().flatten().into_iter().flatten();
    given(m, "status") || exprs.any(|e| e.starts_with("status="))
}

fn views(m: &ArgMatches) -> Vec<&String> {
    m.try_get_many::<String>("as").ok().flatten().into_iter().flatten().collect()
}

/// Whether text is shown; a table goes there too.
fn shows_text(m: &ArgMatches) -> bool {
    let kinds = views(m);
    kinds.is_empty() || kinds.iter().any(|k| !k.starts_with("json") && !k.starts_with("record"))
}

fn output_is_command(m: &ArgMatches) -> bool {
    m.try_get_one::<OsString>("output").ok().flatten().is_some_and(|o| o.as_bytes().starts_with(b"|"))
}

/// Refuses options that exclude each other.
pub fn exclusive(m: &ArgMatches) -> Result<()> {
    let has = |name| given(m, name);
    let running = has("attach") || has("all");
    let rules: [(bool, &str, &str, &str); 10] = [
        (has("successful-only") && has("failed-only"), "-z", "given together with -Z", "leave both out for all calls"),
        (
            (has("successful-only") || has("failed-only")) && asks_status(m),
            "-e status=",
            "given together with -z or -Z",
            "-e status= alone is enough",
        ),
        (
            has("summary-only") && has("summary"),
            "-c",
            "given together with -C",
            "-c shows only the table, -C after the calls",
        ),
        (has("summary-only") && !shows_text(m), "--as", "-c shows no lines", "use -C for both"),
        (
            has("relative-timestamps") && has("time"),
            "-r",
            "given together with -t",
            "a line has one time: leave one of them out",
        ),
        (
            per_thread(m) && output_is_command(m),
            "-ff",
            "the output is one command, not a file per thread",
            "use -f, or -o FILE",
        ),
        (
            per_thread(m) && has("output") && TABLES.iter().any(|t| has(t.1)),
            "-ff",
            "the table is for all threads together",
            "leave out -ff, or the table",
        ),
        (has("no-follow") && has("follow"), "--no-follow", "given together with -f", "leave one of them out"),
        (running && has("user"), "-u", "there is no command to start", "leave it out, or give a command"),
        (running && has("env"), "-E", "there is no command to start", "leave it out, or give a command"),
    ];
    match rules.into_iter().find(|rule| rule.0) {
        Some((_, what, why, todo)) => Err(Error::usage(what, why, todo)),
        None => Ok(()),
    }
}

/// Reports which options have no effect in combination with the others. `lines`: there is a view that shows events.
pub fn say_without_effect(m: &ArgMatches, lines: bool) {
    if given(m, "quiet") {
        return;
    }
    let note = |names: &[Name], why: &str| {
        for (option, _) in names.iter().filter(|n| given(m, n.1)) {
            complain(&format!("{option}: has no effect {why}"));
        }
    };
    let table = TABLES.iter().any(|t| given(m, t.1));
    if !lines {
        let names = if given(m, "pack") { &[] } else { OF_NAMES };
        let all = [OF_TEXT, OF_TABLE, TABLES, OF_STACKS, names, &[("--sort", "sort")]].concat();
        note(&all, "on a trace: give it to 'trapline report', or add --as VIEW");
        return;
    }
    if given(m, "summary-only") {
        note(&[OF_TEXT, &[("--sort", "sort")]].concat(), "with -c, which shows only the table");
    } else if let Some(kind) = views(m).first().filter(|_| !shows_text(m)) {
        note(OF_TEXT, &format!("with --as {kind}"));
    }
    if !table {
        note(OF_TABLE, "without a table (-c, -C)");
    }
}

/// Reports which output options have no effect without a file.
pub fn say_without_file(m: &ArgMatches) {
    if given(m, "quiet") || given(m, "output") && !output_is_command(m) {
        return;
    }
    for (option, given) in [("-A", given(m, "output-append-mode")), ("-ff", per_thread(m))] {
        if given {
            complain(&format!("{option}: has no effect without -o FILE"));
        }
    }
}
