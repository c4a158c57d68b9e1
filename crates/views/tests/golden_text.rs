//! Golden tests of the text view over the cases of `build/cases.rs`. `UPDATE_EXPECT=1` writes them anew.
//!
//! Invariant: what the view says of an event follows from its bytes and the names it is given.

mod build;

use events::Event;
use events::names::{AT_FDCWD, FdName, Names, NoNames};
use events::traces::{self, Origin, Renumber};
use expect_test::expect_file;
use views::options::{FdNames, HexStrings, Precision, Prefix, Stamp, Xlat};
use views::record::Record;
use views::text::Text;
use views::{Options, View};

fn show(opts: Options, names: &dyn Names) -> String {
    let mut view = Text::new(opts);
    let mut out = Vec::new();
    for (name, events) in build::cases::all() {
        out.extend_from_slice(format!("## {name}\n").as_bytes());
        for bytes in &events {
            view.event(&Event::parse(bytes).expect("the builder writes events that parse"), names, &mut out);
        }
    }
    String::from_utf8(out).expect("text is ASCII")
}

#[test]
fn text() {
    let text = show(Options { prefix: Prefix::Never, ..Options::default() }, &NoNames);
    assert!(text.bytes().all(|b| b == b'\n' || (0x20..0x7f).contains(&b)), "a control character came through");
    expect_file!["golden/text.txt"].assert_eq(&text);
}

#[test]
fn ends_that_are_hidden() {
    let exit = |pid: u32, tid: u32| build::Call::process("exit").who(pid, tid).encode();
    let killed = build::Call::process("exit").who(9, 9).arg("signo", 11).encode();
    let superseded = build::Call::process("superseded").who(7, 8).arg("by", 7).encode();
    let call = build::Call::new("getpid").who(7, 7).ret(7).encode();
    let shown = |opts: Options| {
        let mut view = Text::new(opts);
        let mut out = Vec::new();
        for event in [&exit(6, 6), &call, &exit(7, 8), &exit(7, 7), &exit(7, 7), &killed, &superseded] {
            view.event(&Event::parse(event).unwrap(), &NoNames, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|l| l.split_once(' ').unwrap().0.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(Options::default()), "6 7 8 7 7 9 8");
    assert_eq!(shown(Options { no_exits: true, ..Options::default() }), "7 9 8");
    assert_eq!(shown(Options { no_exits: true, no_superseded: true, ..Options::default() }), "7 9");
    // Of a process whose end was shown, nothing is known: another one may have its number.
    assert_eq!(shown(Options { no_strangers: true, ..Options::default() }), "7 8 7");
}

/// Where the events of two traces come from.
struct Hosts([Origin; 2]);
impl Names for Hosts {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
    fn origin(&self, id: u32) -> Option<&Origin> {
        self.0.get(traces::of(id))
    }
}

fn hosts() -> Hosts {
    let host = |name: &str| Origin { host: name.into(), trace: "app".into(), label: name.into(), width: 5 };
    Hosts([host("web-1"), host("web-2")])
}

#[test]
fn several_traces() {
    let opens = build::Call::new("openat").arg("dfd", AT_FDCWD as u64).str("filename", b"/etc/app.conf").ret(3);
    let (names, mut view, mut out) = (hosts(), Text::new(Options::default()), Vec::new());
    for (nth, id) in [(0, 22591), (1, 4711)] {
        let mut event = opens.clone().who(id, id).encode();
        Renumber { nth, ..Renumber::default() }.event(&mut event);
        view.event(&Event::parse(&event).unwrap(), &names, &mut out);
    }
    expect_file!["golden/several_traces.txt"].assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn several_traces_as_records() {
    let close = build::Call::new("close").arg("fd", 3).ret(0);
    let child = || build::Call::process("fork").arg("child", 12).arg("tid", 13);
    let (names, mut view, mut out) = (hosts(), Record::new(), Vec::new());
    for (nth, event) in [(0, close), (0, child()), (1, child()), (0, child())] {
        let mut event = event.who(10, 11).encode();
        Renumber { nth, ..Renumber::default() }.event(&mut event);
        view.event(&Event::parse(&event).unwrap(), &names, &mut out);
    }
    expect_file!["golden/several_traces_record.txt"].assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn text_with_everything() {
    struct OneName(FdName);
    impl Names for OneName {
        fn fd(&self, _: u32, fd: i32) -> Option<&FdName> {
            (fd == 3).then_some(&self.0)
        }
        fn comm(&self, _: u32) -> Option<&[u8]> {
            Some(b"a<\x1b")
        }
    }
    let opts = Options {
        stamp: Stamp::Clock(Precision::Us),
        duration: Some(Precision::Us),
        verbose: true,
        xlat: Xlat::Verbose,
        hex_strings: HexStrings::NonAscii,
        fd_names: FdNames::FULL,
        comm: true,
        numbers: true,
        types: true,
        column: 60,
        ..Options::default()
    };
    let names = OneName(FdName { path: b"/tmp/>\n".to_vec(), detail: Vec::new() });
    expect_file!["golden/text_everything.txt"].assert_eq(&show(opts, &names));
}

#[test]
fn colour_does_not_move_the_result() {
    let plain = show(Options { prefix: Prefix::Never, ..Options::default() }, &NoNames);
    let coloured = show(Options { prefix: Prefix::Never, colour: true, ..Options::default() }, &NoNames);
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find("\x1b[") {
        stripped.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('m').expect("a colour ends with m") + 1..];
    }
    stripped.push_str(rest);
    assert_eq!(plain, stripped);
}

#[test]
fn arguments_of_an_execve_that_nobody_has_seen_are_not_shown_as_zeros() {
    use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN};
    let exec = |name: &str| build::Call::new(name).who(7, 7).flags(CAP_START_UNKNOWN);
    let calls = [
        exec("execve"),
        exec("execveat"),
        exec("execve").flags(CAP_START_UNKNOWN | CAP_NO_RESULT),
        exec("execve").ret(-14),
        exec("execve").arg("filename", 0x1000),
        build::Call::new("execve").who(7, 7),
        exec("pause"),
    ];
    let shown = |view: &mut dyn View| {
        let mut out = Vec::new();
        for call in &calls {
            view.event(&Event::parse(&call.clone().encode()).unwrap(), &NoNames, &mut out);
        }
        String::from_utf8(out).unwrap()
    };
    let text = shown(&mut Text::new(Options { prefix: Prefix::Never, column: 0, ..Options::default() }));
    let wanted = [
        "execve(?) = 0",
        "execveat(?) = 0",
        "execve(?) = ?",
        "execve(NULL, NULL, NULL) = -1 EFAULT (Bad address)",
        "execve(0x1000, NULL, NULL) = 0",
        "execve(NULL, NULL, NULL) = 0",
        "pause() = 0",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    let lines = shown(&mut views::json::Json::new(Options::default()));
    let args = lines.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["args"].clone());
    let known: Vec<usize> = args.map(|args| args.as_object().map_or(0, |o| o.len())).collect();
    assert_eq!(known, [0, 0, 0, 3, 3, 3, 0]);
}
