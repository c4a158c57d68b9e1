//! From clap's matches to what a command is asked to do.

use clap::ArgMatches;
use session::ask::{
    Ask, Capture, Collector, Format, FunctionCalls, Heaps, Keep, Lens, Names, Profiles, Recorded, Scripts, Select,
    Session, Show, Slab, Snapshot, Tables, Targets, Tracer, Tracing,
};
use session::manner;
use std::ffi::OsString;
use std::path::PathBuf;

/// An option's value, where the command has such an option.
fn one<T: Clone + Send + Sync + 'static>(m: &ArgMatches, id: &str) -> Option<T> {
    m.try_get_one::<T>(id).ok().flatten().cloned()
}

/// An option's values.
fn many<T: Clone + Send + Sync + 'static>(m: &ArgMatches, id: &str) -> Vec<T> {
    m.try_get_many::<T>(id).ok().flatten().into_iter().flatten().cloned().collect()
}

/// Whether a flag is given.
fn flag(m: &ArgMatches, id: &str) -> bool {
    one(m, id).unwrap_or(false)
}

fn text(m: &ArgMatches, id: &str) -> Option<String> {
    one(m, id)
}

fn texts(m: &ArgMatches, id: &str) -> Vec<String> {
    many(m, id)
}

fn words(m: &ArgMatches, id: &str) -> Vec<OsString> {
    many(m, id)
}

fn times(m: &ArgMatches, id: &str) -> u8 {
    one(m, id).unwrap_or(0)
}

/// Options that are `-e` with a qualifier: both may be given, and the last counts.
const QUALIFIERS: [&str; 9] =
    ["trace-fds", "abbrev", "verbose", "raw", "read", "write", "quiet-set", "decode-fds", "decode-pids"];

/// The expressions of `-e` and of the options like it, in their order.
fn expressions(m: &ArgMatches) -> Vec<String> {
    let mut all: Vec<(usize, String)> = Vec::new();
    for id in ["expr"].iter().chain(&QUALIFIERS) {
        let given = texts(m, id);
        let at = if given.is_empty() { None } else { m.indices_of(id) };
        let qualified = |text: String| match id {
            &"expr" => text,
            _ => format!("{}={text}", id.trim_end_matches("-set")),
        };
        all.extend(at.into_iter().flatten().zip(given.into_iter().map(qualified)));
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, text)| text).collect()
}

/// What the options of a command ask for. Those that it does not have are not given.
pub fn ask(m: &ArgMatches) -> Ask {
    let select = select(m);
    Ask {
        quiet: manner::messages(&select).map_or(times(m, "quiet"), u8::from),
        target: Targets {
            command: words(m, "command"),
            attach: texts(m, "attach"),
            all: flag(m, "all"),
            follow: times(m, "follow").max(flag(m, "follow-only").into()),
            output_separately: flag(m, "output-separately"),
            no_follow: flag(m, "no-follow"),
            env: words(m, "env"),
            user: text(m, "user"),
        },
        select,
        capture: Capture {
            levels: texts(m, "capture"),
            kstack: text(m, "kstack"),
            ustack: text(m, "ustack"),
            comm: flag(m, "comm"),
            args: flag(m, "args"),
            lib: flag(m, "lib"),
            leave: texts(m, "leave"),
            program: texts(m, "program"),
        },
        tracing: tracing(m),
        keep: Keep {
            output: one(m, "output"),
            append: flag(m, "output-append-mode"),
            max_size: text(m, "max-size"),
            flight: text(m, "flight"),
            pack: flag(m, "pack"),
            name: text(m, "name"),
            paused: flag(m, "paused"),
            stats: one(m, "stats"),
        },
        format: format(m),
        names: names(m),
        table: tables(m),
        calls: FunctionCalls {
            function: texts(m, "function"),
            no_function: texts(m, "no-function"),
            depth: one(m, "depth"),
            min_time: text(m, "min-time"),
            demangle: text(m, "demangle"),
            no_time: flag(m, "no-time"),
            module: flag(m, "module"),
            syscalls: flag(m, "syscalls"),
        },
        profile: Profiles {
            frequency: text(m, "frequency"),
            off_cpu: flag(m, "off-cpu"),
            wall: flag(m, "wall"),
            wakers: flag(m, "wakers"),
            unit: text(m, "unit"),
            group: text(m, "group"),
            order: text(m, "order"),
            icicle: flag(m, "icicle"),
        },
        heap: heap(m),
        lens: Lens {
            hide: texts(m, "hide"),
            focus: text(m, "focus"),
            no_inline: flag(m, "no-inline"),
            percent_limit: text(m, "percent-limit"),
        },
        snapshot: Snapshot { each: flag(m, "each"), no_stop: flag(m, "no-stop") },
        script: script(m),
        show: texts(m, "as").iter().map(|text| Show::from(text.as_str())).collect(),
        trace: recorded(m),
        started: 0,
    }
}

fn tracing(m: &ArgMatches) -> Tracing {
    Tracing {
        backend: text(m, "backend"),
        unwind: text(m, "unwind"),
        buffer: text(m, "buffer"),
        on_full: text(m, "on-full"),
        no_seccomp: flag(m, "no-seccomp"),
        kill_on_exit: flag(m, "kill-on-exit"),
        no_duration: flag(m, "no-duration"),
        cost: flag(m, "cost"),
        force: flag(m, "force"),
        duration: text(m, "duration"),
        explain: text(m, "explain"),
    }
}

fn tables(m: &ArgMatches) -> Tables {
    Tables {
        summary_only: flag(m, "summary-only"),
        summary: flag(m, "summary"),
        summary_wall_clock: flag(m, "summary-wall-clock"),
        sort_by: text(m, "summary-sort-by"),
        columns: text(m, "summary-columns"),
        latency: text(m, "latency"),
        hist: flag(m, "hist"),
        by: text(m, "by"),
        rows: one(m, "rows"),
        spans: texts(m, "span"),
    }
}

fn recorded(m: &ArgMatches) -> Recorded {
    // A script's traces are those of --trace.
    let mut dirs = [many::<OsString>(m, "dir"), many(m, "trace")].into_iter().flatten().map(PathBuf::from);
    Recorded {
        dir: dirs.next(),
        more: dirs.collect(),
        clock_offset: texts(m, "clock-offset"),
        pid: texts(m, "pid"),
        from: text(m, "from"),
        to: text(m, "to"),
        mappings: flag(m, "mappings"),
        redact: texts(m, "redact"),
        follow: flag(m, "follow-recording"),
    }
}

fn select(m: &ArgMatches) -> Select {
    Select {
        expr: expressions(m),
        trace: texts(m, "trace"),
        signal: texts(m, "signal"),
        status: texts(m, "status"),
        trace_path: words(m, "trace-path"),
        filter: text(m, "where"),
        param: texts(m, "param"),
        successful_only: flag(m, "successful-only"),
        failed_only: flag(m, "failed-only"),
    }
}

fn format(m: &ArgMatches) -> Format {
    Format {
        string_limit: one(m, "string-limit"),
        time: times(m, "time"),
        absolute_timestamps: text(m, "absolute-timestamps"),
        relative_timestamps: text(m, "relative-timestamps"),
        syscall_times: text(m, "syscall-times"),
        fd: times(m, "fd"),
        decode_pids: flag(m, "comm-names"),
        syscall_number: flag(m, "syscall-number"),
        instruction_pointer: flag(m, "instruction-pointer"),
        hex: times(m, "hex"),
        strings_in_hex: text(m, "strings-in-hex"),
        const_print_style: text(m, "const-print-style"),
        no_abbrev: flag(m, "no-abbrev"),
        types: flag(m, "types"),
        arg_names: flag(m, "arg-names"),
        always_show_pid: flag(m, "always-show-pid"),
        columns: one(m, "columns"),
        sort: text(m, "sort"),
        color: text(m, "color"),
        stack_trace: texts(m, "stack-trace"),
        no_stacks: flag(m, "no-stacks"),
    }
}

fn names(m: &ArgMatches) -> Names {
    Names { symbols: words(m, "symbols"), debuginfod: flag(m, "debuginfod") }
}

fn heap(m: &ArgMatches) -> Heaps {
    Heaps {
        sample: text(m, "sample"),
        of: text(m, "of"),
        top: one(m, "top"),
        min_age: text(m, "min-age"),
        collector: flag(m, "collector"),
    }
}

/// The subcommand that is given, and what it is asked to do.
pub enum Subcommand {
    Trace(Box<Ask>),
    Record(Box<Ask>),
    Profile(Box<Ask>),
    Graph(Box<Ask>),
    Heap(Box<Ask>),
    Stacks(Box<Ask>),
    Run(Box<Ask>),
    Test(Box<Ask>),
    Collector(Box<Collector>),
    Report(Box<Ask>),
    Open(Box<Ask>),
    /// Two recordings: the one before, and the one after.
    Diff(Box<Ask>, PathBuf, PathBuf),
    Repair(PathBuf),
    Pack(Box<Ask>),
    Tracer(Box<Tracer>),
    Session(Session),
    Slab(Slab),
    /// A pattern, and `-v`.
    List(Option<String>, bool),
    /// A part of it, and `--as json`.
    Schema(Option<String>, bool),
    Doctor,
    /// The words behind it.
    Help(Vec<String>),
    /// A page, and a directory for all of them.
    Man(Option<String>, Option<PathBuf>),
    /// A shell.
    Completions(String),
    /// The line before the cursor, and behind it.
    Complete(String, String),
}

/// The subcommand that the matches of the whole command line have.
pub fn subcommand(m: &ArgMatches, started: u64) -> Option<Subcommand> {
    let (name, m) = m.subcommand()?;
    let whole = || Box::new(Ask { started, ..ask(m) });
    Some(match (name, m.subcommand()) {
        ("trace", _) => Subcommand::Trace(whole()),
        ("record", _) => Subcommand::Record(whole()),
        ("profile", Some((_, m))) => diff(m),
        ("diff", _) => diff(m),
        ("profile", _) => Subcommand::Profile(whole()),
        ("graph", _) => Subcommand::Graph(whole()),
        ("stacks", _) => Subcommand::Stacks(whole()),
        ("run", _) => Subcommand::Run(whole()),
        ("test", _) => Subcommand::Test(whole()),
        ("heap", None) => Subcommand::Heap(whole()),
        ("heap", Some((what, m))) => Subcommand::Collector(Box::new(Collector {
            what: what.into(),
            pid: one(m, "process").unwrap_or(0),
            ask: ask(m),
        })),
        ("report", _) => Subcommand::Report(whole()),
        ("open", _) => Subcommand::Open(whole()),
        ("repair", _) => Subcommand::Repair(one::<OsString>(m, "dir").map(PathBuf::from).unwrap_or_default()),
        ("pack", _) => Subcommand::Pack(whole()),
        ("tracer", Some((what, m))) => Subcommand::Tracer(Box::new(tracer(what, m, started))),
        ("session", Some((what, m))) => Subcommand::Session(session(what, m)),
        ("slab", Some((what, m))) => Subcommand::Slab(slab(what, m)),
        ("list", _) => Subcommand::List(text(m, "pattern"), flag(m, "verbose")),
        ("schema", _) => Subcommand::Schema(text(m, "part"), text(m, "as").is_some_and(|view| view == "json")),
        ("doctor", _) => Subcommand::Doctor,
        ("help", _) => Subcommand::Help(texts(m, "topic")),
        ("man", _) => Subcommand::Man(text(m, "page"), one::<OsString>(m, "output").map(PathBuf::from)),
        ("completions", _) => Subcommand::Completions(text(m, "shell")?),
        ("complete", _) => Subcommand::Complete(text(m, "before")?, text(m, "after")?),
        _ => return None,
    })
}

/// A script is a text, or the first of the words.
fn script(m: &ArgMatches) -> Scripts {
    let text = text(m, "script");
    let mut words = words(m, "args");
    let file = (text.is_none() && !words.is_empty()).then(|| words.remove(0)).or_else(|| one(m, "script-file"));
    Scripts {
        text,
        file,
        args: words.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
        command: self::text(m, "cmd"),
        format: self::text(m, "format"),
        config: texts(m, "config"),
        raw_strings: flag(m, "raw-strings"),
        may_run: flag(m, "unsafe"),
        failures: one(m, "failures").unwrap_or(0),
        dry_run: flag(m, "dry-run"),
        watch: flag(m, "watch"),
        reader: one(m, "for"),
        none: flag(m, "no-script"),
    }
}

fn diff(m: &ArgMatches) -> Subcommand {
    let path = |id| one::<OsString>(m, id).map(PathBuf::from).unwrap_or_default();
    Subcommand::Diff(Box::new(ask(m)), path("A"), path("B"))
}

fn tracer(what: &str, m: &ArgMatches, started: u64) -> Tracer {
    Tracer {
        what: what.into(),
        pid: one(m, "attach").unwrap_or(0),
        name: text(m, "name"),
        ask: Ask { started, ..ask(m) },
        section: texts(m, "section"),
        thread: texts(m, "thread"),
        stop: flag(m, "stop"),
        caller: text(m, "loop"),
        budget: one(m, "budget"),
        here: flag(m, "here"),
    }
}

fn session(what: &str, m: &ArgMatches) -> Session {
    Session {
        what: what.into(),
        name: text(m, "session").unwrap_or_default(),
        expr: texts(m, "expr"),
        attach: texts(m, "attach"),
        json: flag(m, "json"),
    }
}

fn slab(what: &str, m: &ArgMatches) -> Slab {
    Slab {
        what: what.into(),
        name: text(m, "slab").unwrap_or_default(),
        pattern: text(m, "pattern"),
        max: one(m, "max"),
        by_stack: text(m, "by").is_some_and(|by| by == "stack"),
        pid: many(m, "pid"),
        top: one(m, "top"),
        min_age: text(m, "min-age"),
        json: text(m, "as").is_some_and(|view| view == "json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command};

    /// Options that others need beside them.
    const BESIDE: [(&str, &str, &[&str]); 6] = [
        ("heap", "collector", &["-p", "1"]),
        ("record", "paused", &["--name=n"]),
        ("record", "pack", &["-o", "d"]),
        ("profile", "unit", &["--by=x"]),
        ("report", "unit", &["--by=x"]),
        ("diff", "unit", &["--by=x"]),
    ];

    /// The commands that are about tracing, keeping or showing, with what they must be given.
    const COMMANDS: [(&[&str], &[&str]); 9] = [
        (&["trace"], &[]),
        (&["record"], &[]),
        (&["profile"], &[]),
        (&["graph"], &[]),
        (&["heap"], &[]),
        (&["heap", "print"], &["-p", "1"]),
        (&["stacks"], &[]),
        (&["report"], &[]),
        (&["diff"], &["a", "b"]),
    ];

    /// The words that give an option: without a value, with one, or with the first of those that it may have.
    fn given(arg: &Arg) -> Vec<String> {
        let long = arg.get_long().map(|l| format!("--{l}"));
        let Some(name) = long.or_else(|| arg.get_short().map(|s| format!("-{s}"))) else { return vec!["7".into()] };
        if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::Count) {
            return vec![name];
        }
        let value = arg.get_possible_values().first().map_or("7".to_string(), |v| v.get_name().to_string());
        if name.starts_with("--") { vec![format!("{name}={value}")] } else { vec![name, value] }
    }

    /// The fields that differ from those of a request without options, one a line.
    fn differences(ask: &Ask, none: &Ask) -> String {
        let lines = |ask: &Ask| -> Vec<String> {
            let mut path: Vec<String> = Vec::new();
            let mut all = Vec::new();
            for line in format!("{ask:#?}").lines() {
                let text = line.trim();
                if let Some(group) = text.strip_suffix(['{', '[', '(']) {
                    path.push(group.trim_end_matches([' ', ':']).to_string());
                } else if text.starts_with(['}', ']', ')']) {
                    path.pop();
                } else {
                    all.push(format!("{}.{text}", path[1..].join(".")));
                }
            }
            all
        };
        let known = lines(none);
        lines(ask).into_iter().filter(|l| !known.contains(l)).collect::<Vec<_>>().join(" ")
    }

    fn parsed(words: Vec<String>) -> Ask {
        let m = super::super::command().try_get_matches_from(std::iter::once("trapline".to_string()).chain(words));
        let m = m.unwrap_or_else(|e| panic!("{e}"));
        let mut m = m.subcommand().expect("a command").1.clone();
        while let Some((_, inner)) = m.subcommand() {
            m = inner.clone();
        }
        ask(&m)
    }

    #[test]
    fn each_option_of_each_command_is_a_part_of_the_request() {
        let mut golden = String::new();
        for (names, must) in COMMANDS {
            let mut whole = super::super::command();
            whole.build();
            let find = |c: Command, name: &&str| c.find_subcommand(name).expect("a command").clone();
            let command = names.iter().fold(whole, find);
            let words = |more: &[String]| -> Vec<String> {
                names
                    .iter()
                    .map(|n| (*n).into())
                    .chain(more.iter().cloned())
                    .chain(must.iter().map(|w| (*w).into()))
                    .collect()
            };
            for arg in command
                .get_arguments()
                .filter(|a| !matches!(a.get_id().as_str(), "help" | "help-all" | "version" | "A" | "B" | "process"))
            {
                let id = arg.get_id().as_str();
                let beside = BESIDE.iter().find(|b| b.0 == names[0] && b.1 == id).map_or(&[][..], |b| b.2);
                let beside: Vec<String> = beside.iter().map(|w| (*w).into()).collect();
                let none = parsed(words(&beside));
                let more = [given(arg), beside].concat();
                let found = differences(&parsed(words(&more)), &none);
                assert!(!found.is_empty() || id == "seccomp-bpf", "{names:?} {more:?} is not in the request");
                golden += &format!("{} {}: {found}\n", names.join(" "), more.join(" "));
            }
        }
        expect_test::expect_file!["asks.txt"].assert_eq(&golden);
    }
}
