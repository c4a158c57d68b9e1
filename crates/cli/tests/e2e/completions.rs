//! Completions in the shells: what is typed before TAB, and what stands there behind it.

use crate::injected::started;
use crate::lab::{self, User};
use crate::sessions::Room;
use crate::terminal::command_on_terminal;
use std::fs;
use std::process::Command;

/// What a session, a process and a program give names to.
struct Named {
    room: Room,
    pid: u32,
    program: String,
}

/// Calls the scenario while a session `completed-by-name` records, and a process with functions runs.
fn with_names(scenario: impl Fn(&Named)) {
    let Some(program) = testkit::compile("gcc", "checked_own", "checked.c", &["-g", "-O1", "-pthread"]) else { return };
    let room = Room::new(User::Me);
    let recording = ["record", "--backend", "ptrace", "--name", "completed-by-name", "-o", "trace", "sleep", "100"];
    let recording = lab::start(&mut room.trapline(&recording));
    let run = started(User::Me, &[&program, "later"]);
    lab::until("the session is there", || room.socket("completed-by-name").exists());
    scenario(&Named { room, pid: run.pid(), program });
    lab::kill("INT", recording.pid().into());
    recording.end();
    lab::kill("KILL", run.pid().into());
}

/// What is typed, and what completion puts behind it.
fn cases(named: &Named) -> Vec<(String, String)> {
    let Named { pid, program, .. } = named;
    let mut all = vec![
        ("trapline prof".into(), "ile ".into()),
        ("trapline trace --summary-o".into(), "nly ".into()),
        ("trapline trace -e read,open_by".into(), "_handle_at".into()),
        ("trapline heap --as grow".into(), "th".into()),
        ("trapline heap --as=grow".into(), "th".into()),
        ("trapline help kill".into(), "ed".into()),
        ("trapline run -e 'begin { } inter".into(), "val:".into()),
        ("trapline run -e 'syscall:read { @[args.cou".into(), "nt".into()),
        ("trapline record -e 'syscall:read /args.co > 1/ { @[usern".into(), "ame".into()),
        ("trapline session status completed-by".into(), "-name".into()),
        (format!("trapline tracer enable -p {pid} count -F dra"), "w".into()),
        (format!("trapline record -e uprobe:{program}:dra"), "w".into()),
        (format!("trapline trace -e open {}", &program[..program.len() - 2]), program[program.len() - 2..].into()),
    ];
    if fs::metadata("/sys/kernel/tracing/events/sched").is_ok() {
        all.push(("trapline record -e tracepoint:sched:sched_swi".into(), "tch".into()));
    }
    all
}

/// Types it all in an interactive shell that reads `rc` first.
fn in_shell(named: &Named, shell: &[&str], rc: &str) {
    let path = std::env::var("PATH").unwrap_or_default();
    let script = named.room.path.join(rc);
    let commands = format!(
        "PATH={}:{path}\nPS1='REA''DY> '\n[ -z \"$ZSH_VERSION\" ] || {{ autoload -U compinit; compinit -u -D; }}\n\
         [ -z \"$BASH_VERSION\" ] || bind 'set enable-bracketed-paste off'\neval \"$(trapline completions {})\"\n",
        lab::dir().display(),
        shell[0]
    );
    fs::write(&script, commands).expect("a script");
    let mut steps = vec!["READY> ".to_string(), String::new()];
    for (typed, rest) in cases(named) {
        // The echo of what is typed is waited for, then what completion adds to it.
        steps.extend([String::new(), typed.clone(), typed, "\\t".into(), rest, "\\x15".into()]);
    }
    steps.extend([String::new(), "exit\\n".into()]);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut command = Command::new("env");
    command.arg("TERM=dumb").arg("COLUMNS=300").arg(format!("ZDOTDIR={}", named.room.path.display()));
    command.arg(format!("XDG_RUNTIME_DIR={}", named.room.path.display())).args(shell);
    if shell[0] == "bash" {
        command.arg(&script).arg("-i");
    }
    let Some(shown) = command_on_terminal(&steps, &command) else { return };
    assert!(shown.contains("STATUS 0"), "{shown}");
}

#[test]
fn bash_completes_names() {
    with_names(|named| in_shell(named, &["bash", "--rcfile"], "rc"));
}

#[test]
fn zsh_completes_names() {
    if !lab::has("zsh") {
        return lab::skip("package:zsh", "no zsh to complete in");
    }
    with_names(|named| in_shell(named, &["zsh", "-d", "-i"], ".zshrc"));
}

#[test]
fn fish_completes_names() {
    if !lab::has("fish") {
        return lab::skip("package:fish", "no fish to complete in");
    }
    with_names(|named| {
        for (typed, rest) in cases(named) {
            let line = format!("trapline completions fish | source; complete -C '{}'", typed.replace('\'', "\\'"));
            let mut command = lab::as_user(User::Me, &["fish", "--no-config", "-c", &line]);
            let path = format!("{}:{}", lab::dir().display(), std::env::var("PATH").unwrap_or_default());
            let out = lab::run(command.env("PATH", path).env("XDG_RUNTIME_DIR", &named.room.path));
            let last = typed.rsplit([' ', '=']).next().unwrap_or_default();
            let whole = format!("{last}{}", rest.trim());
            assert!(
                out.out().lines().any(|l| l.split('\t').next().is_some_and(|w| w.ends_with(&whole))),
                "{typed}: {} {}",
                out.out(),
                out.stderr
            );
        }
    });
}
