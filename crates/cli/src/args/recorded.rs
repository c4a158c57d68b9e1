//! The commands that read recordings.

use super::heap;
use super::options::{
    as_views, call_args, clock_offset, count, dir, format_args, lens_args, long_flag, profile_args, redact,
    selection_args, span, value,
};
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use session::view::{self, Of};
use std::ffi::OsString;

pub(super) const DIFF: &str = "Show what has changed from one recording to another: calls, heaps or profiles";

/// The views of a difference.
pub(super) const DIFFERENCES: &str = "Of system calls: calls [default] or calls-json; of function calls: functions [default] or functions-json; of heaps: text [default]; of stacks: table [default], \
                           folded or flame (SVG); on stdout or in FILE";

pub(super) fn diff(c: Command) -> Command {
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

pub(super) fn report(c: Command) -> Command {
    c
        .override_usage("trapline report [OPTIONS] DIR...")
        .after_help(
            "It prints what 'trapline trace -o FILE' would have written with the same options. It shows any trace in the \
             Common Trace Format 1.8, with fewer options.",
        )
        .arg(
            dir("A trace, or a directory of traces; several are shown as one").num_args(0..),
        )
        .arg(clock_offset())
        .args(selection_args())
        .args(format_args())
        .arg(long_flag("arg-names", "Argument names"))
        .mut_arg("columns", |a| a.short('a'))
        .mut_arg("as", |_| {
            let of = |of, default| view::help(&[of], view::OF_TRACES, default);
            let help = format!(
                "{}, {} (what is in the trace), {} (everything over time); of a trace with stacks also {}, as 'trapline profile' draws them; of one with function \
                 calls {} (docs/GRAPH.md); of one with allocations {} (docs/HEAP.md); on stdout or in FILE",
                of(Of::Events, "text").join(", "),
                view::or(&of(Of::Trace, "")),
                view::or(&of(Of::Time, "")),
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
                "Follow a running recording: show new events, a second or two later, and tables and pictures when it ends, or at Ctrl-C",
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

pub(super) fn open(c: Command) -> Command {
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

pub(super) fn repair(c: Command) -> Command {
    c.after_help("'trapline report' needs no repair. Lost events stay lost, and reports still say so.")
        .arg(dir("The trace").required(true))
}

pub(super) fn pack(c: Command) -> Command {
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
