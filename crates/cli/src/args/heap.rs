//! The options of `trapline heap`.

use super::options::{
    as_views, format_args, lens_args, long_flag, on_stdout, selection_args, session_args, target_args, traced_command,
    value,
};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, value_parser};
use session::view::Of;

/// How the heap is shown.
pub fn heap_view_args() -> Vec<Arg> {
    vec![
        value("of", "WHAT", "Memory in flame, pprof, folded and differences: outstanding [default], peak or total")
            .value_parser(PossibleValuesParser::new(["outstanding", "peak", "total"])),
        value("top", "N", "At most N stacks [default: 20]").value_parser(value_parser!(u32).range(1..)),
        value("min-age", "TIME", "Only blocks that are at least so old (10, 1.5s, 200ms, 2m)"),
    ]
}

/// The process whose heap a command is about.
fn process() -> Arg {
    value("process", "PID", "The process").short('p').required(true).value_parser(value_parser!(i32).range(1..))
}

/// `--as`
fn views() -> Arg {
    as_views(on_stdout(HEAP, "leaks"), HEAP)
}

/// What its views are made of.
const HEAP: &[Of] = &[Of::Heap];

pub(super) fn heap(c: Command) -> Command {
    let shared = |wanted: &'static [&'static str]| {
        let all = selection_args().into_iter().chain(format_args()).chain(session_args());
        all.filter(move |a| wanted.contains(&a.get_id().as_str()))
    };
    let command = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(process());
    c
        .override_usage(
            "trapline heap [OPTIONS] [--] COMMAND [ARG]...\n       trapline heap [OPTIONS] -p PID...\n       \
             trapline heap start|stop|print|reset|clear -p PID",
        )
        .after_help(
            "Without -o, the view goes to stdout when the command or the tracing ends. With -o DIR, a trace is written, which \
             'trapline report DIR --as leaks' shows, and 'trapline diff' compares. 'trapline heap -- print ARG' traces a command that is \
             called print. See docs/HEAP.md.",
        )
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .args(target_args().into_iter().map(|a| if a.get_id() == "all" { a.hide(true) } else { a }))
        .args(shared(&["where", "param", "symbols", "debuginfod"]))
        .args(shared(&["output", "quiet", "stats", "explain", "duration", "backend", "on-full", "buffer"]))
        .mut_arg("follow", |a| a.help("Follow children (the default)"))
        .mut_arg("where", |a| a.hide(true))
        .mut_arg("param", |a| a.hide(true))
        .mut_arg("output", |a| a.value_name("DIR").help("Write a trace to DIR (mode 0700), which must not exist yet, or be empty and yours"))
        .mut_arg("quiet", |a| a.help("No summary line at the end"))
        .mut_arg("buffer", |a| a.help("Size of the buffer of each process [default: 64M]"))
        .mut_arg("on-full", |a| a.help("Full buffer: block the command's threads [default], or drop and count"))
        .arg(value("sample", "BYTES", "Record one allocation per BYTES allocated (such as 512K), and weigh it accordingly"))
        .args(heap_view_args())
        .args(lens_args())
        .arg(views())
        .arg(long_flag("force", "Replace the trace in DIR"))
        .arg(long_flag("collector", "What 'heap start' starts").requires("attach").hide(true))
        .arg(traced_command())
        .subcommand(
            command("start", "Record the allocations of a running process from now on, or again after 'stop'")
                .arg(value("sample", "BYTES", "Record one allocation per BYTES allocated (such as 512K)")),
        )
        .subcommand(command("stop", "Record no more allocations; blocks that are freed still go"))
        .subcommand(
            command("print", "Show what was allocated since 'start' and not freed")
                .args(heap_view_args())
                .args(lens_args())
                .arg(views()),
        )
        .subcommand(command("reset", "Forget all blocks and totals, and begin anew"))
        .subcommand(command("clear", "End the tracing: the process is as it was before").visible_alias("end"))
}
