//! Options that do not go together: those that exclude each other are an error; those that have no effect with the others get a note, so
//! that no option is ignored silently.

use crate::ask::Ask;
use crate::complain;
use engine::{Error, Result};
use std::os::unix::ffi::OsStrExt;

/// An option as it is written, and whether it is given.
pub type Name = (&'static str, fn(&Ask) -> bool);

/// Options of lines of text.
const OF_TEXT: &[Name] = &[
    ("-t", |ask| ask.format.time > 0 || ask.format.absolute_timestamps.is_some()),
    ("-r", |ask| ask.format.relative_timestamps.is_some()),
    ("-T", |ask| ask.format.syscall_times.is_some()),
    ("-i", |ask| ask.format.instruction_pointer),
    ("-N", |ask| ask.format.arg_names),
    ("-x", |ask| ask.format.hex > 0 || ask.format.strings_in_hex.is_some()),
    ("--types", |ask| ask.format.types),
    ("--columns", |ask| ask.format.columns.is_some()),
    ("--color", |ask| ask.format.color.is_some()),
];
/// Options of stacks that are shown.
const OF_STACKS: &[Name] = &[("--no-stacks", |ask| ask.format.no_stacks)];
/// Where names of functions are looked for.
const OF_NAMES: &[Name] =
    &[("--symbols", |ask| !ask.names.symbols.is_empty()), ("--debuginfod", |ask| ask.names.debuginfod)];
/// Options of the table.
const OF_TABLE: &[Name] = &[
    ("-S", |ask| ask.table.sort_by.is_some()),
    ("-U", |ask| ask.table.columns.is_some()),
    ("-w", |ask| ask.table.summary_wall_clock),
];
/// Options that ask for the table.
const TABLES: &[Name] = &[("-c", |ask| ask.table.summary_only), ("-C", |ask| ask.table.summary)];

fn per_thread(ask: &Ask) -> bool {
    ask.target.is_per_thread()
}

fn asks_status(ask: &Ask) -> bool {
    let mut exprs = ask.select.expr.iter();
    !ask.select.status.is_empty() || exprs.any(|e| e.starts_with("status="))
}

/// Whether text is shown; a table goes there too.
fn shows_text(ask: &Ask) -> bool {
    ask.show.is_empty() || ask.show.iter().any(|s| !matches!(s.view.as_str(), "json" | "record"))
}

fn output_is_command(ask: &Ask) -> bool {
    ask.keep.output.as_ref().is_some_and(|o| o.as_bytes().starts_with(b"|"))
}

/// Refuses options that exclude each other.
pub fn exclusive(ask: &Ask) -> Result<()> {
    let Ask { target, select, .. } = ask;
    let running = !target.attach.is_empty() || target.all;
    let rules: [(bool, &str, &str, &str); 10] = [
        (select.successful_only && select.failed_only, "-z", "given together with -Z", "leave both out for all calls"),
        (
            (select.successful_only || select.failed_only) && asks_status(ask),
            "-e status=",
            "given together with -z or -Z",
            "-e status= alone is enough",
        ),
        (
            ask.table.summary_only && ask.table.summary,
            "-c",
            "given together with -C",
            "-c shows only the table, -C after the calls",
        ),
        (ask.table.summary_only && !shows_text(ask), "--as", "-c shows no lines", "use -C for both"),
        (
            ask.format.absolute_timestamps.is_some() && ask.format.time > 0,
            "-t",
            "given together with --absolute-timestamps",
            "leave one of them out",
        ),
        (
            per_thread(ask) && output_is_command(ask),
            "-ff",
            "the output is one command, not a file per thread",
            "use -f, or -o FILE",
        ),
        (
            per_thread(ask) && ask.keep.output.is_some() && TABLES.iter().any(|t| t.1(ask)),
            "-ff",
            "the table is for all threads together",
            "leave out -ff, or the table",
        ),
        (target.no_follow && target.follow > 0, "--no-follow", "given together with -f", "leave one of them out"),
        (running && target.user.is_some(), "-u", "there is no command to start", "leave it out, or give a command"),
        (running && !target.env.is_empty(), "-E", "there is no command to start", "leave it out, or give a command"),
    ];
    match rules.into_iter().find(|rule| rule.0) {
        Some((_, what, why, todo)) => Err(Error::usage(what, why, todo)),
        None => Ok(()),
    }
}

/// Reports which options have no effect in combination with the others. `lines`: there is a view that shows events.
pub fn say_without_effect(ask: &Ask, lines: bool) {
    if ask.quiet > 0 {
        return;
    }
    let note = |names: &[Name], why: &str| {
        for (option, _) in names.iter().filter(|n| n.1(ask)) {
            complain(&format!("{option}: has no effect {why}"));
        }
    };
    let table = TABLES.iter().any(|t| t.1(ask));
    if !lines {
        let names = if ask.keep.pack { &[] } else { OF_NAMES };
        let all =
            [OF_TEXT, OF_TABLE, TABLES, OF_STACKS, names, &[("--sort", |ask| ask.format.sort.is_some())]].concat();
        note(&all, "on a trace: give it to 'trapline report', or add --as VIEW");
        return;
    }
    if ask.table.summary_only {
        note(
            &[OF_TEXT, &[("--sort", |ask| ask.format.sort.is_some())]].concat(),
            "with -c, which shows only the table",
        );
    } else if let Some(first) = ask.show.first().filter(|_| !shows_text(ask)) {
        note(OF_TEXT, &format!("with --as {}", first.view));
    }
    if !table {
        note(OF_TABLE, "without a table (-c, -C)");
    }
}

/// Reports which output options have no effect without a file.
pub fn say_without_file(ask: &Ask) {
    if ask.quiet > 0 || ask.keep.output.is_some() && !output_is_command(ask) {
        return;
    }
    for (option, given) in [("-A", ask.keep.append), ("-ff", per_thread(ask))] {
        if given {
            complain(&format!("{option}: has no effect without -o FILE"));
        }
    }
}
