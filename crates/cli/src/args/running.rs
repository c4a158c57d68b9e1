//! The commands that control what runs: tracers, sessions, slab traces.

use super::options::{format_args, libraries, long_flag, text_or_json, value};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, value_parser};
use session::tracer::{Choice, about, with};
use std::ffi::OsString;

/// What a tracer of functions is asked to do in a process.
pub(super) fn tracer(c: Command) -> Command {
    let pid = || {
        Arg::new("attach")
            .short('p')
            .long("attach")
            .value_name("PID")
            .required(true)
            .help("The process")
            .value_parser(value_parser!(i32).range(1..))
    };
    let name = |required| Arg::new("name").value_name("NAME").required(required).help("The tracer");
    let some = |id, of, help: &str| value(id, of, help.to_string()).action(ArgAction::Append);
    c
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(about() + " What is enabled stays in the process. docs/TRACERS.md has the details.\n\n  \
             trapline tracer enable -p 4711 count -F 'parse_*'\n  \
             trapline tracer enable -p 4711 thread_checker --section 'ui_*'\n  \
             trapline tracer enable -p 4711 loop_checker --loop run_events --budget 5000\n  \
             trapline tracer print -p 4711 count -S calls --rows 20",
        )
        .subcommand(Command::new("list").about("List the tracers of a process").arg(pid()))
        .subcommand(
            Command::new("enable")
                .about("Enable a tracer: NAME, or a path with '/': the process loads that library first")
                .arg(pid())
                .arg(name(true))
                .arg(some("function", "NAME", "Only these functions; NAME may have * and ?").short('F'))
                .arg(some("no-function", "NAME", "Not these functions").short('N'))
                .arg(some("section", "NAME", "Only functions in these sections of their files; NAME may have * and ?"))
                .arg(libraries())
                .arg(long_flag("no-time", format!("{}: calls only, which costs less", with(Choice::Time))))
                .arg(
                    some(
                        "thread",
                        "NAME",
                        &format!(
                            "{}: threads of this name, which may have * and ?, may call the functions; several: 3 at most, and main, which is \
                             the main thread [default: main]",
                            with(Choice::Thread)
                        ),
                    ),
                )
                .arg(long_flag("stop", format!("{}: stop the program (SIGSTOP) at a violation", with(Choice::Flags))))
                .arg(value("loop", "FUNCTION", format!("{}: the function whose callees are watched", with(Choice::Caller))))
                .arg(
                    value("output", "DIR", "graph: write the trace to DIR, and return while the recording goes on")
                        .short('o')
                        .value_parser(value_parser!(OsString)),
                )
                .arg(long_flag("here", "graph: record in this process").hide(true))
                .arg(
                    value("budget", "US", format!("{}: how many microseconds calls may take [default: 1000]", with(Choice::Budget)))
                        .value_parser(value_parser!(u64)),
                ),
        )
        .subcommand(Command::new("disable").visible_alias("end").about("Disable a tracer").arg(pid()).arg(name(true)))
        .subcommand(
            Command::new("status")
                .about("Print NAME, a tab, and enabled or disabled; failures and missed calls go to stderr")
                .arg(pid())
                .arg(name(false)),
        )
        .subcommand(
            Command::new("print")
                .about("Show what a tracer has so far: counts of functions, or violations with their stacks")
                .arg(pid())
                .arg(name(true))
                .arg(
                    value("summary-sort-by", "COLUMN", "count: order of the table: total [default], self, calls, avg or name").short('S'),
                )
                .arg(value("rows", "N", "count: show at most N functions").value_parser(value_parser!(u32).range(1..)))
                .arg(
                    value("as", "VIEW", "text [default] or json: an object for each function or violation, on a line of its own")
                        .value_parser(PossibleValuesParser::new(["text", "json"])),
                )
                .args(format_args().into_iter().filter(|a| matches!(a.get_id().as_str(), "symbols" | "debuginfod" | "color"))),
        )
}

pub(super) fn session(c: Command) -> Command {
    let named = |c: Command| {
        let name = Arg::new("session").value_name("NAME").required(true);
        c.arg(name.help("Name given to 'record --name'; root can also give the path of a socket"))
    };
    let json = || long_flag("json", "Print JSON");
    c
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("list").about("List what runs: recordings, heaps, tracers and slab traces; each ends by 'trapline session end NAME'").arg(json()))
        .subcommand(named(Command::new("start").about("Record events again")))
        .subcommand(named(Command::new("stop").about("Record no events for now; the target continues")))
        .subcommand(named(Command::new("status").about("Show state, buffers and counters")).arg(json()))
        .subcommand(
            named(Command::new("set").about("Change what it records from now on"))
                .arg(
                    Arg::new("expr")
                        .short('e')
                        .value_name("[+-]PROBE")
                        .action(ArgAction::Append)
                        .allow_hyphen_values(true)
                        .required_unless_present("attach")
                        .help("+PROBE: this too, with filter and captures as in record; -PROBE: this no more; SET: these calls and no others"),
                )
                .arg(
                    Arg::new("attach")
                        .short('p')
                        .value_name("[-]PID")
                        .action(ArgAction::Append)
                        .allow_hyphen_values(true)
                        .help("Trace this process too; -PID: no more"),
                ),
        )
        .subcommand(named(
            Command::new("snapshot").about("With --flight: write the events in memory to disk, and continue"),
        ))
        .subcommand(named(Command::new("print").about("Show what it has so far: the events of a trace, a heap, counts, objects")))
        .subcommand(named(Command::new("reset").about("Forget what a heap or a slab trace has so far")))
        .subcommand(named(Command::new("end").alias("destroy").about("End it; the target continues")))
}

pub(super) fn slab(c: Command) -> Command {
    let named = |c: Command| {
        let name = Arg::new("slab").value_name("NAME").required(true);
        c.arg(name.help("A slab cache (see 'trapline slab list'), pages, or pages-ORDER: pages-1 is 8 KiB"))
    };
    c.after_help(
        "What is recorded stays in the kernel until 'clear': no process runs meanwhile. docs/SLAB.md has the details.",
    )
    .subcommand_required(true)
    .arg_required_else_help(true)
    .subcommand(
        Command::new("list")
            .about("List the slab caches, what they are merged with, and which are traced")
            .arg(Arg::new("pattern").value_name("PATTERN").help("Names with * and ?"))
            .arg(text_or_json()),
    )
    .subcommand(
        named(Command::new("start").about("Record allocations from now on, or again after 'stop'")).arg(
            value(
                "max",
                "N",
                "Room for N objects, of 330 bytes each; the allocations that do not fit are counted [default: 100000]",
            )
            .value_parser(value_parser!(u32).range(1..=i64::from(engine::slab::Settings::MOST_ROOM))),
        ),
    )
    .subcommand(named(Command::new("stop").about("Record no more allocations; objects that are released still go")))
    .subcommand(
        named(Command::new("print").about("Show the objects that were allocated and not released"))
            .arg(
                value(
                    "by",
                    "WHAT",
                    "object: each of them, oldest first [default]; stack: how many of each kernel stack",
                )
                .value_parser(PossibleValuesParser::new(["object", "stack"])),
            )
            .arg(
                value("pid", "PID", "Only objects of this process; several: -p 1 -p 2")
                    .short('p')
                    .action(ArgAction::Append)
                    .value_parser(value_parser!(u32)),
            )
            .arg(value("top", "N", "Only the first N").value_parser(value_parser!(u64).range(1..)))
            .arg(value("min-age", "TIME", "Only objects that are at least so old (10, 1.5s, 200ms, 2m)"))
            .arg(text_or_json()),
    )
    .subcommand(named(Command::new("reset").about("Forget all objects")))
    .subcommand(named(
        Command::new("clear")
            .visible_alias("end")
            .about("End the tracing, and remove everything that it has in the kernel"),
    ))
}
