//! The options of `trapline run`.

use super::options::{clock_offset, flag, libraries, long_flag, session_args, target_args, value};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use std::ffi::OsString;

/// Options of bpftrace's command lines that have nothing to change here, as --include HEADER: its constants are known anyway.
const OF_THE_PEER: [(&str, Option<char>); 3] =
    [("verbose", Some('v')), ("usdt-file-activation", None), ("no-warnings", None)];

pub(super) fn run(c: Command) -> Command {
    let shared = |wanted: &'static [&'static str]| {
        let all = target_args().into_iter().chain(session_args());
        all.filter(move |a| wanted.contains(&a.get_id().as_str()))
    };
    c.override_usage(
        "trapline run [OPTIONS] FILE [ARG]... [-- --NAME=VALUE...]\n       trapline run [OPTIONS] -e SCRIPT [ARG]...",
    )
    .after_help(
        "The language is bpftrace's. Without -c and -p, root's scripts see the whole machine. 'trapline -e SCRIPT' is \
             'trapline run -e SCRIPT'. See docs/SCRIPTS.md.",
    )
    .arg(value("script", "SCRIPT", "The script's text").short('e').allow_hyphen_values(true))
    .arg(
        Arg::new("args")
            .value_name("FILE [ARG]...")
            .num_args(0..)
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(OsString))
            .help("The script's file, - for stdin, and its arguments: $1, and behind -- what getopt() reads"),
    )
    .arg(value("cmd", "COMMAND", "Start COMMAND, and end with it").short('c').allow_hyphen_values(true))
    .arg(
        value(
            "trace",
            "DIR",
            "Run over the events of a recorded trace, or of a directory of traces; several times: as one",
        )
        .action(ArgAction::Append)
        .value_hint(ValueHint::DirPath)
        .value_parser(value_parser!(OsString)),
    )
    .arg(value("from", "TIME", "With --trace: from TIME on, as in report"))
    .arg(value("to", "TIME", "With --trace: up to TIME"))
    .arg(clock_offset())
    .args(shared(&["attach", "output", "quiet", "backend", "duration", "on-full", "buffer", "explain", "stats"]))
    .mut_arg("output", |a| {
        a.value_name("FILE").help("Write to FILE (mode 0600) instead of stdout; '|CMD' writes to a command")
    })
    .mut_arg("quiet", |a| {
        a.help("Neither 'Attached N probes' nor warnings; -qq: nothing about what was lost or not known either")
    })
    .arg(
        value("format", "FORMAT", "text [default] or json: an object on each line")
            .short('f')
            .value_parser(PossibleValuesParser::new(["text", "json"])),
    )
    .arg(
        value("config", "NAME=VALUE", "A setting, instead of the script's own: max_map_keys=10000")
            .action(ArgAction::Append),
    )
    .arg(libraries().help("function: probes are of shared libraries too"))
    .arg(long_flag("raw-strings", "Print strings of programs as they are, without escapes"))
    .arg(long_flag("force", "Set return probes even if they may break the program"))
    .arg(long_flag("unsafe", "Let the script run commands: system()"))
    .arg(
        Arg::new("failures")
            .short('k')
            .long("failures")
            .action(ArgAction::Count)
            .help("Say which operations of the script on maps fail; -kk: reads of memory and of keys too"),
    )
    .arg(long_flag("watch", "Run the script anew each time FILE is saved"))
    .arg(flag("dry-run", 'd', "Check the script, and do nothing"))
    .args(OF_THE_PEER.map(|(name, short)| {
        let arg = Arg::new(name).long(name).action(ArgAction::SetTrue).hide(true);
        short.into_iter().fold(arg, Arg::short)
    }))
    .arg(value("include", "HEADER", "").action(ArgAction::Append).hide(true))
}

pub(super) fn test(c: Command) -> Command {
    c.override_usage("trapline test FILE...")
        .after_help(
            "Clauses of 'test:NAME' run once each, with maps of their own. One fails where assert() does, where it ends with \
             exit(N) and N is not 0, or where it reads what is not known. Clauses of 'bench:NAME' run for a moment, and the time of \
             a run is shown. See docs/SCRIPTS.md.",
        )
        .arg(
            Arg::new("args")
                .value_name("FILE")
                .num_args(1..)
                .required(true)
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(OsString))
                .help("Scripts with tests"),
        )
}
