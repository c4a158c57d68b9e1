//! The command line, as one table: help, man page, completions and parsing come from it.

mod ask;
mod candidates;
mod complete;
mod examples;
mod groups;
mod heap;
mod help;
mod man;
mod run;
mod stacks;
mod topics;
mod usage;

pub use ask::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
pub use complete::{complete, completions};
pub use help::help;
pub use man::man;
use session::view::{self, Of};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

fn flag(name: &'static str, short: char, help: &'static str) -> Arg {
    Arg::new(name).short(short).long(name).action(ArgAction::SetTrue).help(help)
}

fn long_flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Digits of a time, which may be left out.
fn digits(name: &'static str, short: char, help: &'static str) -> Arg {
    value(name, "PRECISION", help).short(short).num_args(0..=1).require_equals(true).default_missing_value("us")
}

fn count(name: &'static str, short: char, help: &'static str) -> Arg {
    Arg::new(name).short(short).action(ArgAction::Count).help(help)
}

fn value(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

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
        .subcommand(later("trace", "Show the system calls of a command or of running processes, as they happen", trace))
        .subcommand(later("record", "Record the events of a command or of running processes to a trace", record))
        .subcommand(later(
            "profile",
            "Show where the time goes, or events and their weights, by stacks of functions",
            profile,
        ))
        .subcommand(later("graph", "Show which functions a program calls, and how long they take, without root", graph))
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
        .subcommand(later("tracer", "Switch tracers of functions on and off in a running process", tracer))
        .subcommand(later("report", "Show a recorded trace, of this machine or another", report))
        .subcommand(later("open", "Look at a recorded trace in the browser: everything over time, in one file", open))
        .subcommand(later("diff", DIFF, diff))
        .subcommand(later(
            "repair",
            "Remove incomplete packets from the ends of a trace, for readers that refuse them",
            repair,
        ))
        .subcommand(later("pack", "Put the names of functions into a trace, for other machines and later times", pack))
        .subcommand(later(
            "session",
            "List, stop, start, change and end what runs: recordings, heaps, tracers, slab traces",
            session,
        ))
        .subcommand(later(
            "slab",
            "Show kernel objects that were allocated and not freed, with process and stack (root)",
            slab,
        ))
        .subcommand(later(
            "heap",
            "Show who holds a program's memory: what was allocated and not freed, without root",
            heap::heap,
        ))
        .subcommand(
            Command::new("list")
                .about("List system calls and other probes, with the names and types of their arguments")
                .arg(flag("verbose", 'v', "Show arguments, types, numbers, groups and places"))
                .arg(
                    Arg::new("pattern")
                        .value_name("PATTERN")
                        .help("Calls: names with * and ?, %group, or /regex/. Probes: PROVIDER:NAME with * and ?"),
                )
                .after_help(list_help()),
        )
        .subcommand(
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
        )
        .subcommand(
            Command::new("doctor").about("Show what works on this machine, why the rest does not, and what to do next"),
        )
        .subcommand(
            Command::new("help")
                .about("Answer a question, or explain a topic or a command")
                .arg(Arg::new("topic").value_name("TOPIC").num_args(0..).help("'trapline help' alone lists them")),
        )
        .subcommand(
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
        )
        .subcommand(
            Command::new("completions")
                .about("Print completions for a shell")
                .arg(Arg::new("shell").required(true).value_parser(PossibleValuesParser::new(complete::SHELLS))),
        )
        .subcommand(
            Command::new("complete")
                .about("What may stand at the cursor, for the scripts of 'completions'")
                .hide(true)
                .arg(Arg::new("before").required(true).allow_hyphen_values(true))
                .arg(Arg::new("after").required(true).allow_hyphen_values(true)),
        )
}

const DIFF: &str = "Show what has changed from one recording to another: calls, heaps or profiles";

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

fn trace(c: Command) -> Command {
    let c = c
        .override_usage("trapline trace [OPTIONS] [--] COMMAND [ARG]...\n       trapline trace [OPTIONS] -p PID...\n       trapline trace [OPTIONS] -a")
        .after_help(
            "Options and output follow strace; children are traced too. -a is the whole machine, \
             and -a N strace's column of the results. See 'trapline man'.",
        )
        .version(env!("CARGO_PKG_VERSION"))
        .args(target_args())
        .args(strace_args())
        .args(selection_args())
        .args(format_args())
        .args(session_args())
        .arg(long_flag("kill-on-exit", "Kill the command and all that is traced when the tracing ends, however (ptrace)"))
        .arg(traced_command());
    with_scripts(c)
}

/// Options of strace whose letters mean something else in other commands.
fn strace_args() -> Vec<Arg> {
    vec![
        Arg::new("follow-only").short('F').action(ArgAction::SetTrue).help("As -f").hide(true),
        long_flag("output-separately", "With -o: one file per thread, FILE.TID"),
        flag("arg-names", 'N', "Argument names"),
    ]
}

fn traced_command() -> Arg {
    Arg::new("command")
        .value_name("COMMAND")
        .num_args(0..)
        .trailing_var_arg(true)
        .value_hint(ValueHint::CommandWithArguments)
        .value_parser(value_parser!(OsString))
}

fn record(c: Command) -> Command {
    let c = c
        .override_usage("trapline record [OPTIONS] [-o DIR] [--] COMMAND [ARG]...\n       trapline record [OPTIONS] [-o DIR] -p PID...")
        .after_help(
            "The trace is a directory in the Common Trace Format, which babeltrace2 and Trace Compass read too. \
             'trapline report DIR' shows it, with all options of trace. Without -o, the view goes to stdout and no trace is written.",
        )
        .args(target_args())
        .args(strace_args())
        .args(selection_args())
        .args(format_args())
        .args(session_args())
        .mut_arg("output", |a| a.value_name("DIR").help("Write the trace to DIR (mode 0700), which must not exist yet, or be empty and yours"))
        .mut_arg("output-append-mode", |a| a.hide(true))
        .mut_arg("output-separately", |a| a.hide(true))
        .mut_arg("as", |_| as_views(format!("Also show the events, on stdout or in FILE: {}", view::or(&view::help(EVENTS, EVENTS, ""))), EVENTS))
        .mut_arg("expr", |_| {
            Arg::new("expr").short('e').value_name("PROBE [/FILTER/]").action(ArgAction::Append).help(
                "What to record: names of calls, %group, PROVIDER:… (see 'trapline list'); each -e may have a filter \
                 and what to capture: kstack[=N], ustack[=N], comm, cpu, uid, gid, str(ARGUMENT)",
            )
        })
        .arg(
            value("for", "FILE", "Record what the script in FILE reads, without running it: 'trapline run --trace DIR FILE' does")
                .conflicts_with("script-file")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(OsString)),
        )
        .arg(leave())
        .arg(span().help(
            "Also record the probes of 'NAME = PROBE .. PROBE by KEY', and what the key is made of: reports show these spans (docs/REPORT.md)",
        ))
        .arg(long_flag("args", "With -e function:NAME: arguments and results too, of functions that debug information (-g) describes"))
        .arg(frames("kstack", "Record the kernel stack with each event, at most N frames [default: 127]"))
        .arg(frames("ustack", "Record the user stack with each event, at most N frames [default: 512]"))
        .arg(long_flag("comm", "Record the thread's name with each event"))
        .arg(long_flag("cost", "Measure each program in the kernel: shown in --stats and after the last line (costs some more)"))
        .arg(
            long_flag("pack", "Pack the trace at the end, as 'trapline pack' does, while the programs are still as they were")
                .requires("output")
                .conflicts_with("flight"),
        )
        .arg(long_flag("force", "Replace the trace in DIR; set return probes even if they may break the program"))
        .arg(value("max-size", "SIZE", "Limit the trace to SIZE on disk, all files together: the oldest packets are deleted and counted"))
        .arg(
            value("flight", "SIZE", "Keep the last SIZE of events in memory; write them at the end, on SIGUSR2, or for 'trapline session snapshot'")
                .conflicts_with("max-size"),
        )
        .arg(value("name", "NAME", "Name the session, so that 'trapline session' can stop, start, change and end it"))
        .arg(long_flag("paused", "Start stopped: record nothing until 'trapline session start NAME'").requires("name"))
        .arg(traced_command());
    with_scripts(c)
}

fn profile(c: Command) -> Command {
    let shared = |wanted: &'static [&'static str]| {
        let all = selection_args().into_iter().chain(format_args()).chain(session_args());
        all.filter(move |a| wanted.contains(&a.get_id().as_str()))
    };
    c
        .override_usage(
            "trapline profile [OPTIONS] [--] COMMAND [ARG]...\n       trapline profile [OPTIONS] -p PID...\n       \
             trapline profile [OPTIONS] -a",
        )
        .after_help(
            "Without -o, the view goes to stdout. With -o DIR, a trace is written, which 'trapline report DIR --as flame' draws. \
             'trapline profile -- diff ARG' profiles a command that is called diff.",
        )
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .args(target_args())
        .args(shared(&["where", "param", "symbols", "debuginfod"]))
        .args(shared(&["output", "quiet", "stats", "explain", "duration", "unwind", "backend", "on-full", "buffer"]))
        .args(profile_args())
        .args(lens_args())
        .mut_arg("follow", |a| a.help("Follow children (the default)"))
        .mut_arg("where", |a| a.help("Only samples for which EXPR holds, for instance 'cpu == 0' (docs/FILTERS.md)"))
        .mut_arg("output", |a| a.value_name("DIR").help("Write a trace to DIR (mode 0700), which must not exist yet, or be empty and yours"))
        .arg(
            value("frequency", "HZ", "Samples per second, on each CPU [default: 997]").short('F').conflicts_with_all(["expr", "off-cpu"]),
        )
        .arg(Arg::new("expr").short('e').value_name("PROBE [/FILTER/]").action(ArgAction::Append).help(
            "Count the events of a probe or a call instead of samples, as in record: uprobe:libc:malloc, software:page-faults:1, openat",
        ))
        .arg(as_views(on_stdout(STACKS, "table"), STACKS))
        .arg(long_flag("force", "Replace the trace in DIR; set return probes even if they may break the program"))
        .arg(traced_command())
        .subcommand(later("diff", DIFF, diff).hide(true))
}

/// The views of a difference.
const DIFFERENCES: &str = "Of system calls: calls [default] or calls-json; of function calls: functions [default] or functions-json; of heaps: text [default]; of stacks: table [default], \
                           folded or flame (SVG); on stdout or in FILE";

fn diff(c: Command) -> Command {
    let dir_or_file =
        |name, help| Arg::new(name).value_name(name).required(true).value_parser(value_parser!(OsString)).help(help);
    let shared = |wanted: &'static [&'static str]| {
        format_args().into_iter().chain(call_args()).filter(move |a| wanted.contains(&a.get_id().as_str()))
    };
    c
        .override_usage("trapline diff [OPTIONS] A B")
        .after_help("Calls are compared by their times and numbers, heaps by the bytes of each stack, other stacks by their shares of the whole.")
        .arg(dir_or_file("A", "The recording before: a trace, or a file of folded stacks; of system calls, also a directory of traces, or a pattern such as 'old-*'"))
        .arg(dir_or_file("B", "The recording after"))
        .arg(value("as", "VIEW[=FILE]", DIFFERENCES).action(ArgAction::Append))
        .args(heap::heap_view_args())
        .args(shared(&["symbols", "debuginfod", "color", "function", "no-function", "depth", "demangle"]))
        .mut_arg("function", |a| a.short('F'))
        .mut_arg("no-function", |a| a.short('N'))
        .mut_arg("depth", |a| a.short('D'))
        .arg(
            value("summary-sort-by", "COLUMN", "Largest change first, of total [default], self, calls, avg, min, max; or by name")
                .short('S'),
        )
        .args(profile_args().into_iter().filter(|a| !matches!(a.get_id().as_str(), "wakers" | "order" | "off-cpu" | "wall")))
        .arg(count("quiet", 'q', "Report nothing on stderr about missing events"))
}

/// Functions whose code is not touched.
fn leave() -> Arg {
    value("leave", "NAME", "Leave the code of functions NAME, which may have * and ?, as it is: they are not traced")
        .action(ArgAction::Append)
}

/// What a tracer of functions is asked to do in a process.
fn tracer(c: Command) -> Command {
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
    let some = |id, of, help| value(id, of, help).action(ArgAction::Append);
    c
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(
            "count: calls and time of functions. thread_checker: calls of functions by threads that may not call them. loop_checker: callees of \
             a loop on the main thread that take too long. What is enabled stays in the process. docs/TRACERS.md has the details.\n\n  \
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
                .arg(long_flag("lib", "Also the functions of shared libraries"))
                .arg(long_flag("no-time", "count: calls only, which costs less"))
                .arg(
                    some(
                        "thread",
                        "NAME",
                        "thread_checker: threads of this name, which may have * and ?, may call the functions; several: 3 at most, and main, \
                         which is the main thread [default: main]",
                    ),
                )
                .arg(long_flag("stop", "Checkers: stop the program (SIGSTOP) where it breaks the rule"))
                .arg(value("loop", "FUNCTION", "loop_checker: the function whose callees are watched"))
                .arg(
                    value("output", "DIR", "graph: write the trace to DIR, and return while the recording goes on")
                        .short('o')
                        .value_parser(value_parser!(OsString)),
                )
                .arg(long_flag("here", "graph: record in this process").hide(true))
                .arg(
                    value("budget", "US", "loop_checker: how many microseconds they may take [default: 1000]")
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

fn graph(c: Command) -> Command {
    let shared = |wanted: &'static [&'static str]| {
        let all = target_args().into_iter().chain(selection_args()).chain(format_args()).chain(session_args());
        all.filter(move |a| wanted.contains(&a.get_id().as_str()))
    };
    c
        .override_usage("trapline graph [OPTIONS] [--] COMMAND [ARG]...\n       trapline graph [OPTIONS] -p PID...")
        .after_help(
            "Without -o, the view goes to stdout. With -o DIR, a trace is written, which 'trapline report DIR --as tree' shows. \
             See docs/GRAPH.md.",
        )
        .args(target_args().into_iter().map(|a| match a.get_id().as_str() {
            "all" => a.hide(true),
            _ => a,
        }))
        .args(shared(&["where", "param", "color", "output", "quiet", "stats", "explain", "duration", "backend", "on-full", "buffer"]))
        .mut_arg("follow", |a| a.help("Follow children (the default)"))
        .mut_arg("where", |a| a.hide(true))
        .mut_arg("param", |a| a.hide(true))
        .mut_arg("output", |a| a.value_name("DIR").help("Write a trace to DIR (mode 0700), which must not exist yet, or be empty and yours"))
        .args(call_args())
        .mut_arg("function", |a| a.short('F').help("Only calls of NAME, which may have * and ?, and what they call"))
        .mut_arg("no-function", |a| a.short('N').help("No calls of NAME, nor what they call"))
        .mut_arg("depth", |a| a.short('D').help("Only N levels, from the outermost that is shown"))
        .mut_arg("min-time", |a| a.short('t').help("Record no call that takes less than TIME, such as 10us, with all that it calls"))
        .mut_arg("no-time", |a| a.help("Show no durations"))
        .mut_arg("quiet", |a| a.help("No summary line at the end, and no lines about files without functions that can be traced"))
        .mut_arg("module", |a| a.help("Show the files that contain the functions"))
        .mut_arg("syscalls", |a| a.help("Record the system calls too, and show them in tree, cat and timeline"))
        .mut_arg("buffer", |a| a.help("Size of the buffer of each process [default: 64M]"))
        .mut_arg("on-full", |a| a.help("Full buffer: drop and count records [default], or block the command's threads"))
        .arg(
            long_flag("args", "Arguments and results too, of functions that debug information (-g) describes")
                .conflicts_with("min-time"),
        )
        .arg(long_flag("lib", "Also the functions of shared libraries"))
        .arg(leave())
        .arg(
            value("program", "NAME", "Only the functions of programs with this name or path, which may have * and ?")
                .action(ArgAction::Append),
        )
        .arg(value("summary-sort-by", "COLUMN", "Order of a table: total [default], self, calls, avg, min, max or name").short('S'))
        .arg(value("rows", "N", "Show at most N functions in a table").value_parser(value_parser!(u32).range(1..)))
        .arg(as_views(on_stdout(CALLS, "tree"), CALLS))
        .arg(long_flag("icicle", "Draw flame graphs with callers above what they call"))
        .arg(long_flag("force", "Replace the trace in DIR"))
        .arg(traced_command())
}

/// How events become a profile, and how it is drawn.
fn profile_args() -> Vec<Arg> {
    vec![
        value(
            "by",
            "FIELD",
            "Add up an argument of the events (args.NAME), their result (retval) or their duration (dur) instead of counting them",
        ),
        value("unit", "UNIT", "What --by adds up, where its name does not say so: bytes, ns or events")
            .value_parser(PossibleValuesParser::new(["bytes", "ns", "events"]))
            .requires("by"),
        long_flag("off-cpu", "Time in which threads were blocked, by their stacks (root only)"),
        long_flag("wall", "Time of the wall clock: running and blocked threads in one profile"),
        long_flag("wakers", "With --off-cpu: also the stacks of the threads that ended it"),
        value("group", "BY", "Group stacks in folded, flame and json by: comm [default], process, thread or none")
            .value_parser(PossibleValuesParser::new(["comm", "process", "thread", "none"])),
        value("rows", "N", "Show at most N functions in a table").value_parser(value_parser!(u32).range(1..)),
        value("order", "BY", "Order of the table: self [default] or total")
            .value_parser(PossibleValuesParser::new(["self", "total"])),
        long_flag("icicle", "Draw flame graphs with callers above what they call"),
    ]
}

/// What of stacks is shown, in profiles and heaps.
fn lens_args() -> Vec<Arg> {
    vec![
        value(
            "focus",
            "FUNCTION",
            "Only stacks with FUNCTION, which may have * and ?: calltree and bottom-up begin there",
        ),
        value("hide", "FUNCTION", "Leave FUNCTION, which may have * and ?, out of stacks; several times")
            .action(ArgAction::Append),
        long_flag("no-inline", "Leave out functions that the compiler has inlined"),
        value(
            "percent-limit",
            "PERCENT",
            "Leave nodes below PERCENT of the whole out of calltree and bottom-up [default: 0.5]",
        ),
    ]
}

fn session(c: Command) -> Command {
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

fn text_or_json() -> Arg {
    value("as", "VIEW", "text [default] or json: an array").value_parser(PossibleValuesParser::new(["text", "json"]))
}

fn slab(c: Command) -> Command {
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

fn report(c: Command) -> Command {
    c
        .override_usage("trapline report [OPTIONS] DIR...")
        .after_help(
            "It prints what 'trapline trace -o FILE' would have written with the same options. It shows any trace in the \
             Common Trace Format 1.8, with fewer options.",
        )
        .arg(
            dir("A trace, or a directory of traces; several are shown as one").num_args(0..),
        )
        .arg(
            value(
                "clock-offset",
                "TRACE=TIME",
                "Add this to the times of a trace, or of all traces of a host: web-2=+1.5ms, web-2=-20us",
            )
            .action(ArgAction::Append),
        )
        .args(selection_args())
        .args(format_args())
        .arg(long_flag("arg-names", "Argument names"))
        .mut_arg("columns", |a| a.short('a'))
        .mut_arg("as", |_| {
            let of = |of, default| view::help(&[of], view::OF_TRACES, default);
            let help = format!(
                "{}, {} (what is in the trace); of a trace with stacks also {}, as 'trapline profile' draws them; of one with function \
                 calls {} (docs/GRAPH.md); of one with allocations {} (docs/HEAP.md); on stdout or in FILE",
                of(Of::Events, "text").join(", "),
                view::or(&of(Of::Trace, "")),
                view::or(&of(Of::Stacks, "")),
                view::or(&of(Of::Calls, "")),
                view::or(&of(Of::Heap, ""))
            );
            as_views(help, view::OF_TRACES)
        })
        .args(profile_args())
        .args(lens_args())
        .args(heap::heap_view_args())
        .args(call_args())
        .mut_arg("function", |a| a.short('F'))
        .mut_arg("no-function", |a| a.short('N'))
        .mut_arg("depth", |a| a.short('D'))
        .arg(
            value("latency", "BY", "Table of latencies by call [default], thread, path or fd; -S and -U choose order and columns")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("call"),
        )
        .arg(
            Arg::new("follow-recording").long("follow").action(ArgAction::SetTrue).help(
                "Follow a running recording: show new events, a second or two later, until it ends or Ctrl-C",
            ),
        )
        .arg(long_flag("no-script", "Leave out what the script of the recording prints, and show what only it has read"))
        .arg(redact())
        .arg(long_flag("mappings", "Also show the files that processes mapped (json and record)"))
        .mut_arg("by", |_| {
            value(
                "by",
                "WHAT",
                "Table of the events with each distinct stack: stack, stack=ustack or stack=kstack; with a profile, what it adds up: \
                 args.NAME, retval or dur; with -c, --latency and heaps, a table for each host or trace",
            )
        })
        .arg(span())
        .arg(long_flag("hist", "With --latency: show a histogram for each row"))
        .arg(value("pid", "PID", "Only events of this process or thread").short('p').visible_alias("tid").action(ArgAction::Append))
        .arg(value("from", "TIME", "Only events from TIME on: +1.5 or +200ms after the beginning, 13:45:00, or seconds since the epoch"))
        .arg(value("to", "TIME", "Only events up to TIME"))
        .arg(count("quiet", 'q', "Report nothing on stderr about missing events, and show no progress bar"))
}

/// Spans of two probes.
fn span() -> Arg {
    value(
        "span",
        "SPAN",
        "Spans of two probes, 'NAME = PROBE .. PROBE by KEY': how long they take and what the slowest are made of; a track in \
         html and timeline (docs/REPORT.md)",
    )
    .action(ArgAction::Append)
}

/// Texts that are not to be shown.
fn redact() -> Arg {
    value(
        "redact",
        "WHAT",
        "Leave out what the program has said: env, argv, buffers, strings, paths, addresses, host, all or /REGEX/, with commas; \
         '[redacted]' stands there (docs/REDACT.md)",
    )
    .action(ArgAction::Append)
}

/// The directory of a trace.
fn dir(help: &'static str) -> Arg {
    Arg::new("dir").value_name("DIR").value_hint(ValueHint::DirPath).value_parser(value_parser!(OsString)).help(help)
}

fn open(c: Command) -> Command {
    c.override_usage("trapline open [OPTIONS] DIR")
        .after_help(
            "The file has the picture and everything that the browser needs for it: it loads nothing, and can be sent to somebody. Without \
             a screen, its path is printed. 'trapline report --as html=FILE' writes the same.",
        )
        .arg(
            dir("A trace").required(true),
        )
        .arg(
            value("output", "FILE", "Write it to FILE [default: a file that only you can read]")
                .short('o')
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(OsString)),
        )
        .args(selection_args().into_iter().filter(|a| matches!(a.get_id().as_str(), "expr" | "where" | "param")))
        .arg(span())
        .arg(redact())
        .arg(value("pid", "PID", "Only events of this process or thread").short('p').action(ArgAction::Append))
        .arg(value("from", "TIME", "Only events from TIME on: +1.5 or +200ms after the beginning, 13:45:00, or seconds since the epoch"))
        .arg(value("to", "TIME", "Only events up to TIME"))
        .arg(
            value("symbols", "PATH", "Look for programs and debug information in this directory first")
                .action(ArgAction::Append)
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(OsString)),
        )
        .arg(long_flag("debuginfod", "Ask the servers in DEBUGINFOD_URLS for debug information that is found nowhere else"))
        .arg(count("quiet", 'q', "Report nothing on stderr about missing events, and print no path where a browser opens it"))
}

fn repair(c: Command) -> Command {
    c.after_help("'trapline report' needs no repair. Lost events stay lost, and reports still say so.")
        .arg(dir("The trace").required(true))
}

fn pack(c: Command) -> Command {
    c
        .after_help("They are written into DIR/.trapline/symbols: about 20 bytes for each distinct address. 'trapline report' reads them. With --redact, a \
             copy can be given away: the texts are gone from its events, metadata and names.")
        .arg(
            dir("The trace").required(true),
        )
        .arg(
            value("output", "NEW", "Write a packed copy into the directory NEW, and change nothing in DIR")
                .short('o')
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(OsString)),
        )
        .arg(redact())
        .arg(
            value("symbols", "PATH", "Look for programs and debug information in this directory first")
                .action(ArgAction::Append)
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(OsString)),
        )
        .arg(long_flag("debuginfod", "Ask the servers in DEBUGINFOD_URLS for debug information that is found nowhere else"))
        .arg(count("quiet", 'q', "Do not report files that were not found"))
}

fn frames(name: &'static str, help: &'static str) -> Arg {
    value(name, "N", help).num_args(0..=1).require_equals(true).default_missing_value("32")
}

/// What is shown of function calls, and how.
fn call_args() -> Vec<Arg> {
    vec![
        value("depth", "N", "Function calls: only N levels, from the outermost that is shown")
            .value_parser(value_parser!(usize)),
        value("function", "NAME", "Function calls: only those of NAME, which may have * and ?, and what they call")
            .action(ArgAction::Append),
        value("no-function", "NAME", "Function calls: not those of NAME, nor what they call").action(ArgAction::Append),
        value("min-time", "TIME", "Function calls in lines: none that takes less than TIME, such as 10us"),
        value(
            "demangle",
            "HOW",
            "Function names: simple, without template arguments and parameters; full; no, the linker's names",
        )
        .value_parser(PossibleValuesParser::new(["simple", "full", "no"])),
        long_flag("no-time", "Function calls in a tree: no durations"),
        long_flag("module", "Function calls in a tree: the files that contain the functions"),
        long_flag("syscalls", "Function calls in a tree or timeline: also the system calls in them"),
    ]
}

/// What the views of commands are made of.
const EVENTS: &[Of] = &[Of::Events];
const STACKS: &[Of] = &[Of::Stacks];
const CALLS: &[Of] = &[Of::Calls];

/// The help of `--as` in a command with views of one sort.
fn on_stdout(of: &[Of], default: &str) -> String {
    view::or(&view::help(of, of, default)) + ", on stdout or in FILE"
}

/// `--as VIEW[=FILE]`, several times.
fn as_views(help: String, of: &'static [Of]) -> Arg {
    let arg = Arg::new("as").long("as").value_name("VIEW[=FILE]").help(help).action(ArgAction::Append);
    arg.value_parser(ViewParser(of)).hide_possible_values(true)
}

/// Takes any text: the views are only suggested, because a file may follow.
#[derive(Clone)]
struct ViewParser(&'static [Of]);

impl TypedValueParser for ViewParser {
    type Value = String;

    fn parse_ref(&self, c: &Command, arg: Option<&Arg>, value: &OsStr) -> std::result::Result<String, clap::Error> {
        let view = StringValueParser::new().parse_ref(c, arg, value)?;
        // Lines of JSON have two names; elsewhere `json` is one object.
        let rest = view.strip_prefix("jsonl").filter(|rest| rest.is_empty() || rest.starts_with('='));
        Ok(match rest.filter(|_| self.0.contains(&Of::Events)) {
            Some(rest) => format!("json{rest}"),
            None => view,
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let help = |name: &'static str| view::find(name, self.0).map_or("", |kind| kind.help);
        Some(Box::new(view::names(self.0).into_iter().map(move |name| PossibleValue::new(name).help(help(name)))))
    }
}

fn target_args() -> Vec<Arg> {
    vec![
        value("attach", "PID", "Attach to a process; several: -p 1 -p 2 or -p 1,2. Ctrl-C detaches")
            .short('p')
            .action(ArgAction::Append),
        Arg::new("all")
            .short('a')
            .action(ArgAction::SetTrue)
            .help("Trace the whole machine until Ctrl-C (needs root and the kernel backend)"),
        count("follow", 'f', "Follow children (the default); -ff with -o: one file per thread, FILE.TID")
            .long("follow-forks"),
        long_flag("no-follow", "Trace only the first thread of the command"),
        value("env", "VAR[=VAL]", "Set an environment variable of the command, or remove it")
            .short('E')
            .action(ArgAction::Append)
            .value_parser(value_parser!(OsString)),
        value("user", "USER", "Run the command as this user").short('u'),
    ]
}

/// A set that `-e NAME=SET` has too.
fn set(name: &'static str, of: &'static str, help: &'static str) -> Arg {
    value(name, of, help).action(ArgAction::Append)
}

/// What `record` and `trace` have of scripts.
fn with_scripts(c: Command) -> Command {
    c.arg(
        Arg::new("script-file")
            .long("script")
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(OsString))
            .help("Run the script in FILE (- is stdin) on the events, as -e 'PROBE { … }' does; -e all shows the calls too"),
    )
    .mut_arg("expr", |a| {
        let help = a.get_help().map(ToString::to_string).unwrap_or_default();
        a.help(format!("{help}; 'PROBE /FILTER/ {{ … }}' is a clause of a script, and runs (docs/SCRIPTS.md)"))
    })
    .mut_arg("param", |a| a.help("Value of $1 in --where and in scripts; a second --param is $2, and so on"))
}

fn selection_args() -> Vec<Arg> {
    vec![
        Arg::new("expr").short('e').value_name("EXPR").action(ArgAction::Append).help(
            "What to show: names, %group, /regex/, all or none, separated by commas; ! negates; \
             a prefix trace= [default], trace-fds=, signal= or status= sets what is selected; abbrev=, verbose=, raw=, read=, write=, \
             quiet=, decode-fds= and decode-pids= are the options with these names",
        ),
        value("trace", "SET", "Same as -e trace=SET").action(ArgAction::Append),
        value("signal", "SET", "Same as -e signal=SET").action(ArgAction::Append),
        value("status", "SET", "Same as -e status=SET").action(ArgAction::Append),
        set("trace-fds", "FDS", "Only calls about these descriptors (3,5, !0, all), or about a PATH of -P"),
        value("trace-path", "PATH", "Only calls that name PATH or a descriptor of it")
            .short('P')
            .action(ArgAction::Append)
            .value_parser(value_parser!(OsString)),
        value(
            "where",
            "EXPR",
            "Only calls for which EXPR holds, for instance 'retval < 0 && dur > 1ms' (docs/FILTERS.md)",
        ),
        value("param", "VALUE", "Value of $1 in --where; a second --param is $2, and so on")
            .action(ArgAction::Append)
            .allow_hyphen_values(true),
        flag("successful-only", 'z', "Only calls that succeed"),
        flag("failed-only", 'Z', "Only calls that fail"),
    ]
}

fn format_args() -> Vec<Arg> {
    vec![
        value("string-limit", "SIZE", "Show at most SIZE bytes of strings and buffers [default: 32]")
            .short('s')
            .value_parser(value_parser!(u32)),
        count("time", 't', "Time of day; -tt: microseconds; -ttt: seconds since the epoch"),
        value("absolute-timestamps", "FORMAT", "none, time or unix, and s, ms, us or ns: unix,ms [default: time,s]")
            .alias("timestamps")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("time"),
        digits("relative-timestamps", 'r', "Time since the line before, in s, ms, us [default] or ns"),
        digits("syscall-times", 'T', "Time spent in each call, in s, ms, us [default] or ns"),
        count("fd", 'y', "Paths of descriptors; -yy: socket addresses and device numbers too"),
        set("decode-fds", "WHAT", "What is shown of descriptors: path [default], socket, dev, all, none")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("path"),
        flag("comm-names", 'Y', "Command names after pids").long(None),
        set("decode-pids", "WHAT", "comm: as -Y"),
        flag("syscall-number", 'n', "Call numbers, in other lines those of the threads' last calls"),
        flag("instruction-pointer", 'i', "Addresses of the instructions that make the calls"),
        count("hex", 'x', "Strings that are not ASCII in hexadecimal; -xx: all strings"),
        value("const-print-style", "FORM", "Constants: abbrev, raw, verbose")
            .short('X')
            .value_parser(PossibleValuesParser::new(["abbrev", "raw", "verbose"])),
        value("strings-in-hex", "WHICH", "all [default]; non-ascii: as -x; non-ascii-chars: in escapes instead of octal; none")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("all")
            .value_parser(PossibleValuesParser::new(["all", "non-ascii", "non-ascii-chars", "none"])),
        flag("no-abbrev", 'v', "All fields of structs, all variables of environments"),
        set("abbrev", "SET", "Calls whose structs are shortened [default: all]; -v is --abbrev=none"),
        set("verbose", "SET", "Calls whose structs are shown, those of others as addresses [default: all]"),
        set("raw", "SET", "Calls whose arguments are shown as registers"),
        set("read", "FDS", "Dump what is read from these descriptors (3,5, !0, all) below the calls"),
        set("write", "FDS", "Dump what is written to these descriptors below the calls"),
        set("quiet-set", "WHAT", "What is not said: attach (all that -q leaves out), exit, thread-execve, all, none")
            .long("quiet")
            .aliases(["silent", "silence"])
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("attach"),
        long_flag("always-show-pid", "The pid in each line, on a terminal too"),
        Arg::new("stack-trace")
            .short('k')
            .long("stack-trace")
            .value_name("FORM")
            .action(ArgAction::Append)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("symbol")
            .value_parser(PossibleValuesParser::new(["symbol", "source", "fold"]))
            .help("Stacks: a line for each frame below the event; -kk, -k=source: with source lines; -k=fold: on one line"),
        long_flag("no-stacks", "Show no stacks, and do not look for their functions"),
        value("symbols", "PATH", "Look for programs and debug information in this directory first")
            .action(ArgAction::Append)
            .value_hint(ValueHint::AnyPath)
            .value_parser(value_parser!(OsString)),
        long_flag("debuginfod", "Ask the servers in DEBUGINFOD_URLS for debug information that is found nowhere else"),
        long_flag("types", "Argument names and types"),
        value("columns", "N", "Column of the result [default: 40]").value_parser(value_parser!(u16)),
        flag("summary-only", 'c', "Count calls, errors and time of the wall clock, and show only the table"),
        flag("summary", 'C', "Show the table after the calls"),
        flag("summary-wall-clock", 'w', "Accepted without effect: times in the table are always those of the wall clock"),
        value("summary-sort-by", "KEY", "Order of the table: time, calls, errors, name, min, max, avg, nothing")
            .short('S'),
        value("summary-columns", "LIST", "Columns of the table, as strace's -U").short('U'),
        value("as", "VIEW", "text, json (docs/JSON.md) or record (docs/RECORD.md)")
            .value_parser(PossibleValuesParser::new(view::names(EVENTS)))
            .hide_possible_values(true),
        value(
            "sort",
            "ORDER",
            "end: in the order in which calls end [default]; start: in which they start (lines wait for a running call)",
        )
        .value_parser(PossibleValuesParser::new(["end", "start"])),
        value("color", "WHEN", "auto, always, never")
            .visible_alias("colour")
            .value_parser(PossibleValuesParser::new(["auto", "always", "never"])),
    ]
}

fn session_args() -> Vec<Arg> {
    vec![
        value("output", "FILE", "Write to FILE (mode 0600) instead of stderr; '|CMD' writes to a command")
            .short('o')
            .value_parser(value_parser!(OsString)),
        flag("output-append-mode", 'A', "Append to FILE"),
        count("quiet", 'q', "No summary line at the end; -qq: nor that threads exit; -qqq: nor that an execve replaces them"),
        value("stats", "FILE", "Write counters to FILE as JSON").value_parser(value_parser!(OsString)),
        value(
            "explain",
            "WHAT",
            "Print on stderr what will be traced, how, and what is lost; =programs: also the programs in the kernel; =functions: also the \
             names of all functions that the agent does not trace",
        )
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("plan")
        .value_parser(PossibleValuesParser::new(["plan", "programs", "functions"])),
        value(
            "capture",
            "[CALL,…=]LEVEL",
            "What to copy of call arguments: all, strings (no contents of buffers), none (no strings either) [default: all]",
        )
        .action(ArgAction::Append),
        value(
            "unwind",
            "HOW",
            "User stacks: tables (of .eh_frame, right without frame pointers), fp (frame pointers), copy[,SIZE] (samples only: \
             SIZE bytes of each stack are copied and walked by tables; needs no privilege) [default: 32K], or auto: tables \
             where the kernel can (Linux 5.17), copy for samples where it may not be used [default: auto]",
        ),
        long_flag(
            "no-duration",
            "Trace call exits only (kernel backend): cheaper, no durations, and arguments lost by then are counted (docs/TRACE.md)",
        ),
        value("duration", "TIME", "End the trace after this time (10, 1.5s, 200ms, 2m); the target continues"),
        value(
            "backend",
            "NAME",
            "kernel (eBPF: needs privilege), perf (samples with copied stacks), ptrace, or auto: kernel where it may be used \
             [default: auto]",
        )
        .value_parser(PossibleValuesParser::new(["auto", "ptrace", "kernel", "perf", "agent"])),
        value(
            "on-full",
            "WHAT",
            "Full buffer: block the command (ptrace's default), or drop and count events (kernel's and perf's)",
        )
        .value_parser(PossibleValuesParser::new(["block", "drop"])),
        value("buffer", "SIZE", "Size of the event buffer, for instance 4M [default: 1M; per CPU, kernel: 4M, or 2M for up to 4 calls; perf: 2M]"),
        long_flag("no-seccomp", "Use no seccomp filter: slower, but the command survives if the tracer is killed"),
        Arg::new("seccomp-bpf").long("seccomp-bpf").action(ArgAction::SetTrue).hide(true),
    ]
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
