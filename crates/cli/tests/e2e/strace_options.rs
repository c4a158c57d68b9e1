//! strace's options as its users type them: their meaning and the form of what they print are strace's.

use crate::lab::{self, User, each_backend, each_ptracer};
use crate::trace::{on_stderr, trace};

/// A time of `digits` behind the point at the beginning of a text, and what follows its space.
#[track_caller]
fn time(text: &str, digits: usize) -> (f64, &str) {
    let (time, rest) = text.trim_start().split_once(' ').unwrap_or_else(|| panic!("no time: {text}"));
    assert_eq!(time.split_once('.').map_or(0, |(_, f)| f.len()), digits, "{text}");
    (time.parse().unwrap_or_else(|_| panic!("no time: {text}")), rest)
}

#[test]
fn times_have_the_requested_digits() {
    each_backend(|user| {
        let shown = |options: &[&str]| trace(user, options, &["true"]).lines;
        for (precision, digits) in [("s", 0), ("ms", 3), ("us", 6), ("ns", 9)] {
            let since = shown(&[&format!("--relative-timestamps={precision}")]);
            assert!(since.iter().all(|l| time(&l.text, digits).0 < 1000.0));
            let epoch = shown(&[&format!("--absolute-timestamps=unix,{precision}")]);
            assert!(epoch.iter().all(|l| time(&l.text, digits).0 > 1e9));
            let calls = shown(&[&format!("--syscall-times={precision}")]);
            let last = |text: &str| Some(text.rsplit_once(" <")?.1.strip_suffix('>')?.to_string());
            let took: Vec<String> = calls.iter().filter_map(|l| last(&l.text)).collect();
            assert!(took.len() > 10, "{took:?}");
            took.iter().for_each(|t| assert_eq!(time(&format!("{t} "), digits).1, "", "{t}"));
        }
        let clock = shown(&["--timestamps=precision:ms,format:time"]);
        assert!(
            clock.iter().all(|l| l.text.as_bytes()[2] == b':' && l.text.as_bytes()[8] == b'.'),
            "{}",
            clock[0].text
        );
        let both = shown(&["-r", "-t"]);
        assert!(both[0].text[8..].starts_with(" (+     0.000000) execve("), "{}", both[0].text);
    });
}

#[test]
fn a_repeated_option_takes_the_last() {
    each_backend(|user| {
        let t =
            trace(user, &["-s1", "-s", "4", "-e", "read", "-e", "trace=openat", "-T", "-T", "-qq", "-qq"], &["true"]);
        assert_eq!(t.names(), ["openat"]);
        let t = trace(user, &["-e", "read=all", "--read=none", "-e", "read"], &["true"]);
        t.lacks("00000");
        let t = trace(user, &["--quiet=exit", "-e", "quiet=none"], &["true"]);
        t.one("+++ exited with 0 +++");
    });
}

#[test]
fn children_are_followed_under_each_name() {
    each_backend(|user| {
        for option in ["-F", "-f", "--follow-forks"] {
            let t = trace(user, &[option, "-F", "-e", "process"], &["sh", "-c", "/bin/true; exit 3"]);
            assert_eq!((t.outcome.code(), t.calls("execve").len()), (3, 2), "{option} {}", t.text());
        }
        let dir = lab::scratch();
        let args = ["-q", "--output-separately", "-o", "out", "-e", "execve", "sh", "-c", "/bin/true; exit 3"];
        let all = [&["trace"], &args[..]].concat();
        assert_eq!(lab::run(lab::trapline(user, &all).current_dir(&dir)).code(), 3);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
        let version = on_stderr(user, &["-V"]);
        assert!(version.code() == 0 && version.out().ends_with(concat!(env!("CARGO_PKG_VERSION"), "\n")));
    });
}

#[test]
fn a_number_is_a_column() {
    each_backend(|user| {
        for options in [&["-a", "60"][..], &["-a60"], &["-qa", "60"], &["--columns=60"]] {
            let t = trace(user, &[options, &["-e", "brk"]].concat(), &["true"]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            let text = &t.lines[0].text;
            assert!(text.starts_with("brk(NULL)  ") && text.find(" = ") >= Some(45), "{text}");
        }
    });
}

#[test]
fn ends_are_hidden_and_kills_are_not() {
    each_backend(|user| {
        let shown = |options: &[&str]| {
            let out = on_stderr(user, &[options, &["-e", "none", "sh", "-c", "/bin/true; kill -9 $$"]].concat());
            (out.stderr.contains("+++ exited with 0 +++"), out.stderr.contains("trapline: "), out.stderr)
        };
        for (options, exits, messages) in [
            (&[][..], true, true),
            (&["-q"], true, false),
            (&["--quiet"], true, false),
            (&["-qq"], false, false),
            (&["-qqq"], false, false),
            (&["--quiet=exit"], false, true),
            (&["-e", "quiet=exit"], false, true),
            (&["-e", "q=all"], false, false),
            (&["--silence=!exit"], true, false),
        ] {
            let (e, m, text) = shown(options);
            assert!((e, m) == (exits, messages) && text.contains("+++ killed by SIGKILL +++"), "{options:?} {text}");
        }
        let (.., text) = shown(&["-e", "signal=none"]);
        assert!(!text.contains("+++ killed"), "strace takes a kill for a signal: {text}");
    });
}

/// The lines below a call, up to the next thread's.
fn below(user: User, options: &[&str], command: &[&str]) -> Vec<String> {
    let file = lab::scratch().join("trace");
    let to = ["-q", "-o", file.to_str().unwrap()];
    let out = on_stderr(user, &[&to, options, command].concat());
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let text = std::fs::read_to_string(&file).unwrap();
    text.lines()
        .filter(|l| l.starts_with(" |") || l.starts_with(" *") || l.starts_with(" ="))
        .map(str::to_string)
        .collect()
}

#[test]
fn data_is_dumped_as_strace_dumps_it() {
    each_backend(|user| {
        let dir = lab::scratch();
        let file = dir.join("in");
        std::fs::write(&file, "a test of dumps, longer than 32 bytes\n").unwrap();
        let file = file.to_str().unwrap();
        let whole = [
            " | 00000  61 20 74 65 73 74 20 6f  66 20 64 75 6d 70 73 2c  a test of dumps, |",
            " | 00010  20 6c 6f 6e 67 65 72 20  74 68 61 6e 20 33 32 20   longer than 32  |",
            " | 00020  62 79 74 65 73 0a                                 bytes.           |",
        ];
        assert_eq!(below(user, &["-e", "trace=write", "-e", "write=1"], &["cat", file]), whole);
        assert_eq!(below(user, &["-e", "trace=write", "-s", "3", "--write=all"], &["cat", file]), whole);
        assert_eq!(below(user, &["-e", "trace=write", "-e", "write=!1", "-e", "read=1"], &["cat", file]), [""; 0]);
        let read = below(user, &["-e", "trace=read", "-e", "read=3"], &["cat", file]);
        assert!(read.ends_with(&whole.map(str::to_string)) && read[0].contains("  .ELF"), "{read:?}");
        // Lines are as long as without a dump.
        let t = trace(user, &["-e", "write", "-s", "3", "-e", "write=9"], &["cat", file]);
        assert!(t.lines[0].text.starts_with("write(1, \"a t\"..., 38)"), "{}", t.text());
    });
}

#[test]
fn what_is_shown_of_structs_and_descriptors_is_said_call_by_call() {
    each_backend(|user| {
        let shown = |options: &[&str], call: &str| {
            let t = trace(
                user,
                &[options, &["-e", "trace=newfstatat,uname,execve,close,openat,read"]].concat(),
                &["cat", "/dev/null"],
            );
            t.calls(call).last().map_or_else(|| panic!("no {call}: {}", t.text()), |l| l.text.clone())
        };
        let hidden = shown(&["-e", "verbose=none"], "newfstatat");
        assert!(hidden.contains(", 0x") && !hidden.contains('{'), "{hidden}");
        assert!(shown(&["--verbose=!newfstatat"], "newfstatat").contains(", 0x"));
        assert!(shown(&["--verbose=newfstatat"], "newfstatat").contains("{st_mode="));
        let whole = shown(&["-e", "abbrev=none"], "newfstatat");
        assert!(whole.contains("st_nlink=") && whole == shown(&["-v"], "newfstatat"), "{whole}");
        assert!(shown(&["-e", "abbrev=!newfstatat"], "execve").contains("vars */"));
        assert!(shown(&["-v", "--abbrev=newfstatat"], "newfstatat").contains(", ...}"));
        let raw = shown(&["--raw=read"], "read");
        assert!(raw.starts_with("read(0x3, 0x") && raw.ends_with("= 0"), "{raw}");
        for (set, name) in
            [("dev", "<char 1:3>>"), ("path", "3</dev/null>"), ("all", "<char 1:3>>"), ("none", "read(3,")]
        {
            for option in [format!("--decode-fds={set}"), format!("-edecode-fds={set}")] {
                let read = shown(&[&option], "read");
                assert!(read.contains(name), "{option} {read}");
            }
        }
        assert!(shown(&["--decode-fds=dev"], "close").contains("close(2)"), "a file is no device");
        assert!(shown(&["-N"], "openat").starts_with("openat(dfd=AT_FDCWD, filename=\"/dev/null\", flags=O_RDONLY)"));
    });
}

#[test]
fn calls_of_descriptors_are_selected() {
    each_backend(|user| {
        let names = |options: &[&str]| {
            let t = trace(user, options, &["sh", "-c", "exec 7</dev/null; read x <&7; exec 7<&-"]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            t.names().into_iter().map(str::to_string).collect::<Vec<_>>()
        };
        for option in ["--trace-fds=7", "-efd=7", "-etrace-fd=7", "-efds=7,9"] {
            let names = names(&[option]);
            assert!(names.contains(&"close".into()) && !names.contains(&"brk".into()), "{option} {names:?}");
        }
        assert_eq!(names(&["--trace-fds=99"]), [""; 0]);
        let either = names(&["--trace-fds=99", "-P", "/dev/null"]);
        assert!(either.contains(&"openat".into()), "{either:?}");
    });
}

#[test]
fn numbers_and_instructions_are_in_every_line() {
    each_backend(|user| {
        let t = trace(user, &["-n", "-i"], &["sh", "-c", "/bin/true; exit 3"]);
        assert_eq!(t.outcome.code(), 3, "{}", t.text());
        for line in &t.lines {
            let number = line.text.get(..7).filter(|n| n.starts_with('[') && n.ends_with("] "));
            let address = line.text.get(7..26).filter(|a| a.starts_with('[') && a.ends_with("] "));
            assert!(number.is_some() && address.is_some(), "{}", line.text);
        }
        let brk = t.with(" brk(");
        let of = |c: char| brk.iter().all(|l| l.text.starts_with("[  12] [0000") && !l.text[7..26].contains(c));
        assert!(!brk.is_empty() && of('?'), "{}", t.text());
        assert!(t.with("+++ exited with 3").iter().all(|l| l.text.starts_with("[ 231] [????????????????] +++")));
        let json = trace_json(user, &["-n"]);
        assert!(json.contains("\"name\":\"brk\",\"nr\":12,"), "{json}");
    });
}

fn trace_json(user: User, options: &[&str]) -> String {
    let file = lab::scratch().join("trace");
    let to = ["--as", "json", "-o", file.to_str().unwrap()];
    let out = on_stderr(user, &[&to, options, &["true"]].concat());
    assert!(!out.stderr.contains("has no effect"), "{}", out.stderr);
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn what_is_traced_is_killed_with_the_tracing() {
    each_ptracer(|user| {
        let gone = |shell: i64| {
            lab::until("the command is gone", || {
                lab::status_field(shell as u32, "State").is_none_or(|s| s.starts_with('Z'))
            })
        };
        let dir = lab::scratch();
        let script = "echo $$ >pid; while :; do :; done";
        let read = || std::fs::read_to_string(dir.join("pid")).ok().and_then(|p| p.trim().parse::<i64>().ok());
        let args = ["trace", "-q", "--kill-on-exit", "-e", "none", "-o", "/dev/null", "sh", "-c", script];
        let running = lab::start(lab::trapline(user, &args).current_dir(&dir));
        lab::until("the command runs", || read().is_some());
        lab::kill("KILL", i64::from(running.pid()));
        gone(read().unwrap());
        drop(running);
        std::fs::remove_file(dir.join("pid")).unwrap();
        let args = [&args[..1], &["--duration", "300ms"], &args[1..]].concat();
        assert_eq!(lab::run(lab::trapline(user, &args).current_dir(&dir)).code(), 0);
        read().into_iter().for_each(gone);
    });
}

/// A line as Perfetto's importer of strace's text reads it (src/trace_processor/plugins/strace): a thread, the time since the epoch in ns,
/// a call, its arguments and result, and its duration.
#[derive(Debug, PartialEq)]
struct Imported {
    tid: u32,
    time: u64,
    call: String,
    args: String,
    result: String,
    duration: Option<u64>,
}

/// ns of `SECONDS.FRACTION`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || fraction.len() > 9 || !(whole.to_owned() + fraction).bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().unwrap_or(0) * scale)
}

/// What the importer makes of a line: a complete call, or nothing. An unfinished call begins a slice that nothing would end.
fn imported(line: &str) -> Option<Imported> {
    // Fewer than ten digits are a thread: a time has more.
    let (tid, rest) = line.trim().split_once(' ').filter(|(t, _)| t.len() < 10)?;
    let (time, rest) = rest.trim_start().split_once(' ')?;
    assert!(!time.contains(':'), "a time of day, which is refused: {line}");
    let (tid, time) = (tid.parse().ok()?, nanoseconds(time)?);
    let rest = rest.trim_start();
    assert!(!rest.contains("<unfinished ...>") && !rest.starts_with("<... "), "{line}");
    let (call, rest) = rest.split_once('(')?;
    // The last parenthesis before an equals sign, however many spaces are between them; else the first equals sign.
    let closes = |at: &usize| rest[at + 1..].trim_start().starts_with('=');
    let close = rest.match_indices(')').map(|(at, _)| at).rfind(closes);
    let (args, result) = match close {
        Some(at) => (&rest[..at], rest[at + 1..].trim_start()[1..].trim()),
        None => ("", rest.split_once('=')?.1.trim()),
    };
    let split = result.rsplit_once('<').and_then(|(r, d)| Some((r.trim_end(), nanoseconds(d.strip_suffix('>')?)?)));
    let (result, duration) = split.map_or((result, None), |(result, d)| (result, Some(d)));
    Some(Imported { tid, time, call: call.into(), args: args.trim().into(), result: result.into(), duration })
}

#[test]
fn perfetto_imports_the_text() {
    let line = "7     1700000000.000100 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL)  = -1 ECHILD (No x) <0.000027>";
    let read = imported(line).unwrap();
    assert_eq!((read.tid, read.time, read.call.as_str()), (7, 1_700_000_000_000_100_000, "wait4"));
    assert_eq!((read.result.as_str(), read.duration), ("-1 ECHILD (No x)", Some(27_000)));
    assert_eq!(read.args, "-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL");
    each_backend(|user| {
        let script = "/bin/true; echo 'x) = y' >/dev/null; (exit 3) & wait; kill -USR1 $$; echo no";
        let file = lab::scratch().join("trace");
        let to = ["-f", "-ttt", "-T", "-o", file.to_str().unwrap(), "sh", "-c", script];
        on_stderr(user, &to);
        let text = std::fs::read_to_string(&file).unwrap();
        // The first line decides whether the file is taken for strace's.
        assert_eq!(imported(text.lines().next().unwrap()).map(|l| l.call), Some("execve".into()));
        let read: Vec<Imported> = text.lines().filter(|l| !l.contains("<in flight")).filter_map(imported).collect();
        let shown = text.lines().filter(|l| !l.contains("<in flight") && !l.contains(" +++ ") && !l.contains(" --- "));
        assert_eq!(read.len(), shown.count(), "{text}");
        assert!(read.iter().any(|l| l.call == "write" && l.args.contains("x) = y") && l.result == "7"), "{text}");
        for call in &read {
            let is_name = call.call.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            assert!(is_name && (call.duration.is_some() || call.result == "?"), "{call:?}");
        }
        // A notice of a call that is still running begins nothing that would never end: at most it is a moment.
        let set = ["-ttt", "-T", "-e", "clock_nanosleep"];
        let t = trace(user, &set, &["sleep", "0.4"]);
        let notice = t.one("<in flight");
        let moment = imported(&format!("{} {}", notice.tid, notice.text));
        assert!(moment.is_none_or(|l| l.duration.is_none()), "{}", t.text());
        trace(user, &[&set[..], &["-e", "status=!detached"]].concat(), &["sleep", "0.4"]).lacks("<in flight");
    });
}
