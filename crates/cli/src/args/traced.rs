//! The commands that trace: a program, running processes, the machine.

use super::options::{
    CALLS, EVENTS, STACKS, as_views, call_args, format_args, frames, leave, lens_args, libraries, long_flag, on_stdout,
    profile_args, selection_args, session_args, span, strace_args, target_args, traced_command, value, with_scripts,
};
use super::{later, recorded};
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use session::view;
use std::ffi::OsString;

pub(super) fn trace(c: Command) -> Command {
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

pub(super) fn record(c: Command) -> Command {
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
        .arg(libraries().help("With -e function:NAME: also the functions of shared libraries"))
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

pub(super) fn profile(c: Command) -> Command {
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
        .subcommand(later("diff", recorded::DIFF, recorded::diff).hide(true))
}

pub(super) fn graph(c: Command) -> Command {
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
        .mut_arg("syscalls", |a| a.help("Record the system calls too, and show them in tree and cat; timeline has them anyway"))
        .mut_arg("buffer", |a| a.help("Size of the buffer of each process [default: 64M]"))
        .mut_arg("on-full", |a| a.help("Full buffer: drop and count records [default], or block the command's threads"))
        .arg(
            long_flag("args", "Arguments and results too, of functions that debug information (-g) describes")
                .conflicts_with("min-time"),
        )
        .arg(libraries())
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
