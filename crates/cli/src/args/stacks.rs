//! The options of `trapline stacks`.

use super::options::{format_args, long_flag, session_args, target_args, value};
use clap::Command;
use clap::builder::PossibleValuesParser;

pub(super) fn stacks(c: Command) -> Command {
    let shared = |wanted: &'static [&'static str]| {
        let all = target_args().into_iter().chain(format_args()).chain(session_args());
        all.filter(move |a| wanted.contains(&a.get_id().as_str()))
    };
    c.override_usage("trapline stacks [OPTIONS] -p PID...\n       trapline stacks [OPTIONS] -a")
        .after_help(
            "A blocked thread is read without being stopped, wherever that suffices; one that runs is stopped for a moment. \
             See docs/STACKS.md.",
        )
        .args(shared(&["attach", "all", "symbols", "debuginfod", "color", "output", "quiet"]))
        .mut_arg("attach", |a| a.help("A process; several: -p 1 -p 2 or -p 1,2"))
        .mut_arg("all", |a| a.help("All processes that you may look into"))
        .mut_arg("output", |a| a.help("Write to FILE (mode 0600) instead of stdout; '|CMD' writes to a command"))
        .mut_arg("quiet", |a| a.help("Nothing about processes and files that could not be read"))
        .arg(
            value("as", "VIEW", "text [default] or json (docs/STACKS.md)")
                .value_parser(PossibleValuesParser::new(["text", "json"])),
        )
        .arg(long_flag("each", "Show each thread alone, also those with the same stack"))
        .arg(long_flag("no-inline", "Leave out functions that the compiler has inlined"))
        .arg(long_flag("no-stop", "Stop no thread, not even for a moment: stacks that need it end early, and say so"))
}
