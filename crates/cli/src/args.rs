//! The command line, as one table: help, man page, completions and parsing come from it.

mod ask;
mod candidates;
mod complete;
mod examples;
mod groups;
mod heap;
mod help;
mod man;
mod options;
mod recorded;
mod run;
mod running;
mod stacks;
mod topics;
mod traced;
mod usage;
pub use ask::Subcommand;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
pub use complete::{complete, completions};
pub use help::help;
pub use man::man;
use options::{flag, value};
use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

/// The whole command line.
fn command() -> Command {
    Command::new("trapline")
        .version(env!("CARGO_PKG_VERSION"))
        .about("One tracer for Linux: what a program does, on one timeline")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .arg(help::help_all())
        .max_term_width(100)
        .subcommand(later(
            "trace",
            "Show the system calls of a command or of running processes, as they happen",
            traced::trace,
        ))
        .subcommand(later(
            "record",
            "Record the events of a command or of running processes to a trace",
            traced::record,
        ))
        .subcommand(later(
            "profile",
            "Show where the time goes, or events and their weights, by stacks of functions",
            traced::profile,
        ))
        .subcommand(later(
            "graph",
            "Show which functions a program calls, and how long they take, without root",
            traced::graph,
        ))
        .subcommand(later(
            "stacks",
            "Show what each thread is doing now, what it waits for and who holds that: deadlocks",
            stacks::stacks,
        ))
        .subcommand(later(
            "run",
            "Run a script in bpftrace's language: in the kernel's events, or without root",
            run::run,
        ))
        .subcommand(later("test", "Run the tests of scripts, and measure their benchmarks", run::test))
        .subcommand(later("tracer", "Switch tracers of functions on and off in a running process", running::tracer))
        .subcommand(later("report", "Show a recorded trace, of this machine or another", recorded::report))
        .subcommand(later(
            "open",
            "Look at a recorded trace in the browser: everything over time, in one file",
            recorded::open,
        ))
        .subcommand(later("diff", recorded::DIFF, recorded::diff))
        .subcommand(later(
            "repair",
            "Remove incomplete packets from the ends of a trace, for readers that refuse them",
            recorded::repair,
        ))
        .subcommand(later(
            "pack",
            "Put the names of functions into a trace, for other machines and later times",
            recorded::pack,
        ))
        .subcommand(later(
            "session",
            "List, stop, start, change and end what runs: recordings, heaps, tracers, slab traces",
            running::session,
        ))
        .subcommand(later(
            "slab",
            "Show kernel objects that were allocated and not freed, with process and stack (root)",
            running::slab,
        ))
        .subcommand(later(
            "heap",
            "Show who holds a program's memory: what was allocated and not freed, without root",
            heap::heap,
        ))
        .subcommands(about_trapline())
}

/// The commands that trace nothing: what there is, what works, help.
fn about_trapline() -> Vec<Command> {
    vec![
        Command::new("list")
            .about("List system calls and other probes, with the names and types of their arguments")
            .arg(flag("verbose", 'v', "Show arguments, types, numbers, groups and places"))
            .arg(
                Arg::new("pattern")
                    .value_name("PATTERN")
                    .help("Calls: names with * and ?, %group, or /regex/. Probes: PROVIDER:NAME with * and ?"),
            )
            .after_help(list_help()),
        Command::new("schema")
            .about("Describe JSON lines and Parquet tables: members, columns, types")
            .arg(
                Arg::new("part")
                    .value_name("PART")
                    .value_parser(PossibleValuesParser::new(["lines", "tables"]))
                    .help("lines: of --as json; tables: of --as parquet [default: both]"),
            )
            .arg(
                value("as", "VIEW", "text [default] or json: of lines a JSON Schema (2020-12)")
                    .value_parser(PossibleValuesParser::new(["text", "json"])),
            ),
        Command::new("doctor").about("Show what works on this machine, why the rest does not, and what to do next"),
        Command::new("help")
            .about("Answer a question, or explain a topic or a command")
            .arg(Arg::new("topic").value_name("TOPIC").num_args(0..).help("'trapline help' alone lists them")),
        Command::new("man")
            .about("Show a man page, of trapline or of a command")
            .arg(Arg::new("page").value_name("PAGE").help("A command, such as trace, or trapline-trace"))
            .arg(
                value("output", "DIR", "Write all pages to files in DIR")
                    .short('o')
                    .conflicts_with("page")
                    .value_hint(ValueHint::DirPath)
                    .value_parser(value_parser!(OsString)),
            ),
        Command::new("completions")
            .about("Print completions for a shell")
            .arg(Arg::new("shell").required(true).value_parser(PossibleValuesParser::new(complete::SHELLS))),
        Command::new("complete")
            .about("What may stand at the cursor, for the scripts of 'completions'")
            .hide(true)
            .arg(Arg::new("before").required(true).allow_hyphen_values(true))
            .arg(Arg::new("after").required(true).allow_hyphen_values(true)),
    ]
}

/// Completes a command that has a name.
type Rest = fn(Command) -> Command;

/// A subcommand whose options are made only if it is used: all of them together take half a millisecond.
fn later(name: &'static str, about: &'static str, rest: Rest) -> Command {
    Command::new(name).about(about).args_override_self(true).defer(rest)
}

/// The providers, a line each.
fn list_help() -> String {
    let lines = engine::provider::all().iter().map(|p| format!("\n  {}", p.describe()));
    format!("Probes:{}", lines.collect::<String>())
}

/// Reads the command line of a process that has begun at `started`, ns of the monotonic clock. One without a subcommand, or with another mistake, has been answered: its exit status.
pub fn parse(argv: &[OsString], started: u64) -> std::result::Result<Subcommand, ExitCode> {
    if is_peer(argv) && argv.get(1).is_some_and(|word| word == "--version" || word == "-V") {
        let line = format!("bpftrace v{PEER} (trapline {})\n", env!("CARGO_PKG_VERSION"));
        return Err(ExitCode::from(session::output::to_stdout(line.as_bytes()).unwrap_or(125)));
    }
    let argv = &*with_run(argv);
    let matches = command().try_get_matches_from(argv);
    let matches = match column(argv, &matches) {
        Some(argv) => command().try_get_matches_from(argv),
        None => matches,
    };
    let matches = matches.map_err(|e| usage::usage(&e, argv))?;
    ask::subcommand(&matches, started).ok_or(ExitCode::from(2))
}

/// The version of bpftrace whose language scripts are written in: programs that run it ask for that.
const PEER: &str = "0.26.1";

/// Whether it was called by the name `bpftrace`.
fn is_peer(argv: &[OsString]) -> bool {
    argv.first().and_then(|name| std::path::Path::new(name).file_name()).is_some_and(|name| name == "bpftrace")
}

/// The command line with `run` where a script stands alone: `trapline -e SCRIPT`, and what is called `bpftrace`, of which `-l` lists probes, and
/// `--info` says what works.
fn with_run(argv: &[OsString]) -> Cow<'_, [OsString]> {
    let Some((name, rest)) = argv.split_first() else { return Cow::Borrowed(argv) };
    let is_peer = is_peer(argv);
    let first = rest.first().map(|w| w.to_string_lossy()).unwrap_or_default();
    let command = match &*first {
        "-l" | "-lv" | "-vl" if is_peer => {
            let verbose = first.contains('v').then(|| "-v".into());
            return std::iter::once(name.clone())
                .chain(["list".into()])
                .chain(verbose)
                .chain(rest[1..].to_vec())
                .collect();
        }
        "--info" if is_peer => return vec![name.clone(), "doctor".into()].into(),
        "--version" | "-V" | "--help" | "-h" if !is_peer => return Cow::Borrowed(argv),
        _ if is_peer || first == "-e" => "run",
        _ => return Cow::Borrowed(argv),
    };
    std::iter::once(name.clone()).chain([command.into()]).chain(rest.to_vec()).collect()
}

/// The command line with `--columns=N` for strace's `-a N`, where `-a` was taken for the whole machine: no command is called N.
fn column(argv: &[OsString], read: &std::result::Result<ArgMatches, clap::Error>) -> Option<Vec<OsString>> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let at = match read {
        Ok(whole) => {
            let (name, m) = whole.subcommand()?;
            let command = m.try_get_many::<OsString>("command").ok()??;
            let is_asked = ["trace", "record"].contains(&name) && m.get_flag("all");
            argv.len().checked_sub(command.len() + 1).filter(|_| is_asked)?
        }
        // `-a40`: the first such word, because nothing before it was wrong.
        Err(e) if e.kind() == ErrorKind::UnknownArgument => argv.iter().position(|word| {
            let word = word.to_str().unwrap_or_default();
            word.starts_with('-') && word.split_once('a').is_some_and(|(_, n)| is_number(n))
        })?,
        Err(_) => return None,
    };
    let (options, column) = argv.get(at)?.to_str()?.split_once('a').filter(|(o, _)| o.starts_with('-'))?;
    let (column, rest) = match column {
        "" => (argv.get(at + 1)?.to_str()?, at + 2),
        column => (column, at + 1),
    };
    if options.starts_with("--") || !is_number(column) {
        return None;
    }
    let options = Some(options).filter(|o| *o != "-").map(OsString::from);
    let replaced = options.into_iter().chain([format!("--columns={column}").into()]);
    Some(argv[..at].iter().cloned().chain(replaced).chain(argv[rest..].iter().cloned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_after_a_is_a_column() {
        let asked = |words: &str| {
            let argv: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let read = command().try_get_matches_from(&argv);
            let argv = column(&argv, &read).unwrap_or(argv);
            let m = command().try_get_matches_from(&argv).unwrap_or_else(|e| panic!("{words}: {e}"));
            let m = m.subcommand().expect("a command").1;
            let command = m.get_many::<OsString>("command").into_iter().flatten();
            let command = command.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
            (m.get_flag("all"), m.get_one::<u16>("columns").copied(), command)
        };
        let is = |all, column, command: &str| (all, column, command.to_string());
        assert_eq!(asked("trapline trace -a 50 ls -a 3"), is(false, Some(50), "ls -a 3"));
        assert_eq!(asked("trapline trace -fa 50 -y -- ls -a40"), is(false, Some(50), "ls -a40"));
        assert_eq!(asked("trapline trace -e read -ya50 -f ls"), is(false, Some(50), "ls"));
        assert_eq!(asked("trapline trace -a 50 -p 1"), is(false, Some(50), ""));
        assert_eq!(asked("trapline trace -a -e read"), is(true, None, ""));
        assert_eq!(asked("trapline trace -ay"), is(true, None, ""));
        assert_eq!(asked("trapline trace ls -a50"), is(false, None, "ls -a50"));
        assert_eq!(asked("trapline trace --columns 30 -- 50"), is(false, Some(30), "50"));
    }

    #[test]
    fn the_last_of_an_option_that_is_given_again_is_taken() {
        let m =
            command().try_get_matches_from("trapline trace -s 5 -s7 -o a -o b -r -r=ms -z -z ls".split(' ')).unwrap();
        let m = m.subcommand().expect("a command").1;
        assert_eq!(m.get_one::<u32>("string-limit"), Some(&7));
        assert_eq!(m.get_one::<OsString>("output"), Some(&"b".into()));
        assert_eq!(m.get_one::<String>("relative-timestamps").map(String::as_str), Some("ms"));
    }
}
