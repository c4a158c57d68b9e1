//! The options that several commands have.

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, StyledStr, TypedValueParser};
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use session::view::{self, Of};
use std::ffi::{OsStr, OsString};

pub(super) fn flag(name: &'static str, short: char, help: &'static str) -> Arg {
    Arg::new(name).short(short).long(name).action(ArgAction::SetTrue).help(help)
}

pub(super) fn long_flag(name: &'static str, help: impl Into<StyledStr>) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help.into())
}

/// Digits of a time, which may be left out.
pub(super) fn digits(name: &'static str, short: char, help: &'static str) -> Arg {
    value(name, "PRECISION", help).short(short).num_args(0..=1).require_equals(true).default_missing_value("us")
}

pub(super) fn count(name: &'static str, short: char, help: &'static str) -> Arg {
    Arg::new(name).short(short).action(ArgAction::Count).help(help)
}

pub(super) fn value(name: &'static str, value: &'static str, help: impl Into<StyledStr>) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help.into())
}

/// Functions of libraries.
pub(super) fn libraries() -> Arg {
    long_flag("lib", "Also the functions of shared libraries")
}

/// Functions whose code is not touched.
pub(super) fn leave() -> Arg {
    value("leave", "NAME", "Leave the code of functions NAME, which may have * and ?, as it is: they are not traced")
        .action(ArgAction::Append)
}

/// How events become a profile, and how it is drawn.
pub(super) fn profile_args() -> Vec<Arg> {
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
pub(super) fn lens_args() -> Vec<Arg> {
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

pub(super) fn text_or_json() -> Arg {
    value("as", "VIEW", "text [default] or json: an array").value_parser(PossibleValuesParser::new(["text", "json"]))
}

/// Spans of two probes.
pub(super) fn span() -> Arg {
    value(
        "span",
        "SPAN",
        "Spans of two probes, 'NAME = PROBE .. PROBE by KEY': how long they take and what the slowest are made of; a track in \
         html and timeline (docs/REPORT.md)",
    )
    .action(ArgAction::Append)
}

/// Texts that are not to be shown.
pub(super) fn redact() -> Arg {
    value(
        "redact",
        "WHAT",
        "Leave out what the program has said: env, argv, buffers, strings, paths, addresses, host, all or /REGEX/, with commas; \
         '[redacted]' stands there (docs/REDACT.md)",
    )
    .action(ArgAction::Append)
}

/// The directory of a trace.
pub(super) fn dir(help: &'static str) -> Arg {
    Arg::new("dir").value_name("DIR").value_hint(ValueHint::DirPath).value_parser(value_parser!(OsString)).help(help)
}

pub(super) fn frames(name: &'static str, help: &'static str) -> Arg {
    value(name, "N", help).num_args(0..=1).require_equals(true).default_missing_value("32")
}

/// What is shown of function calls, and how.
pub(super) fn call_args() -> Vec<Arg> {
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
        long_flag("syscalls", "Function calls in a tree: also the system calls in them"),
    ]
}

/// What the views of commands are made of.
pub(super) const EVENTS: &[Of] = &[Of::Events];

pub(super) const STACKS: &[Of] = &[Of::Stacks];

pub(super) const CALLS: &[Of] = view::OF_CALLS;

/// The help of `--as` in a command with views of one sort.
pub(super) fn on_stdout(of: &[Of], default: &str) -> String {
    view::or(&view::help(of, of, default)) + ", on stdout or in FILE"
}

/// `--clock-offset TRACE=TIME`, several times.
pub fn clock_offset() -> Arg {
    value(
        "clock-offset",
        "TRACE=TIME",
        "Add this to the times of a trace, or of all traces of a host: web-2=+1.5ms, web-2=-20us",
    )
    .action(ArgAction::Append)
}

/// `--as VIEW[=FILE]`, several times.
pub(super) fn as_views(help: String, of: &'static [Of]) -> Arg {
    let arg = Arg::new("as").long("as").value_name("VIEW[=FILE]").help(help).action(ArgAction::Append);
    arg.value_parser(ViewParser(of)).hide_possible_values(true)
}

/// Takes any text: the views are only suggested, because a file may follow.
#[derive(Clone)]
pub(super) struct ViewParser(&'static [Of]);

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

pub(super) fn target_args() -> Vec<Arg> {
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
pub(super) fn set(name: &'static str, of: &'static str, help: &'static str) -> Arg {
    value(name, of, help).action(ArgAction::Append)
}

/// What `record` and `trace` have of scripts.
pub(super) fn with_scripts(c: Command) -> Command {
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

pub(super) fn selection_args() -> Vec<Arg> {
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

pub(super) fn format_args() -> Vec<Arg> {
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

pub(super) fn session_args() -> Vec<Arg> {
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

/// Options of strace whose letters mean something else in other commands.
pub(super) fn strace_args() -> Vec<Arg> {
    vec![
        Arg::new("follow-only").short('F').action(ArgAction::SetTrue).help("As -f").hide(true),
        long_flag("output-separately", "With -o: one file per thread, FILE.TID"),
        flag("arg-names", 'N', "Argument names"),
    ]
}

pub(super) fn traced_command() -> Arg {
    Arg::new("command")
        .value_name("COMMAND")
        .num_args(0..)
        .trailing_var_arg(true)
        .value_hint(ValueHint::CommandWithArguments)
        .value_parser(value_parser!(OsString))
}
