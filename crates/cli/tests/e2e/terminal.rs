//! On a terminal: Ctrl-C, hangup, colour, prefixes. python3 makes the terminal.

use crate::lab::{self, Outcome, Running, User, each_backend};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs argv on a new terminal. Steps: text to wait for, then what to type (MASH: Ctrl-C until the end; HANGUP: the terminal is
/// closed). Prints what the terminal showed, then the wait status; kills the whole session at the end.
const PTY: &str = r#"
import os, pty, select, signal, sys, time
at = sys.argv.index("--")
steps, argv = sys.argv[1:at], sys.argv[at + 1:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
shown, limit, status = b"", time.time() + 40, None
def more():
    global shown
    if fd is None:
        return time.sleep(0.02)
    try:
        if select.select([fd], [], [], 0.05)[0]:
            shown += os.read(fd, 65536)
    except OSError:
        time.sleep(0.02)
seen = 0
for wait, keys in zip(steps[::2], steps[1::2]):
    while wait.encode() not in shown[seen:] and time.time() < limit:
        more()
    seen = len(shown)
    while keys == "MASH" and time.time() < limit:
        # Until the session ends; two interrupts that are pending at once are one.
        try:
            os.write(fd, b"\x03")
            more()
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
        except OSError:
            break
    if keys == "MASH":
        continue
    if keys == "HANGUP":
        os.close(fd)
        fd = None
        continue
    os.write(fd, keys.encode().decode("unicode_escape").encode())
while status is None and time.time() < limit:
    more()
    done, raw = os.waitpid(pid, os.WNOHANG)
    if done:
        status = raw
# A read takes a part of what is left.
before = -1
while before < len(shown):
    before = len(shown)
    more()
if status is None:
    os.kill(pid, signal.SIGKILL)
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
if status is None:
    print("\nSTATUS none")
elif os.WIFSIGNALED(status):
    print("\nSTATUS signal", os.WTERMSIG(status))
else:
    print("\nSTATUS", os.WEXITSTATUS(status))
"#;

pub fn on_terminal(user: User, steps: &[&str], args: &[&str]) -> Option<String> {
    command_on_terminal(steps, &lab::trapline(user, args))
}

pub fn command_on_terminal(steps: &[&str], inner: &std::process::Command) -> Option<String> {
    if !lab::has("python3") {
        lab::skip("package:python3", "no python3 to make a terminal");
        return None;
    }
    let script: PathBuf = lab::scratch().join("terminal.py");
    std::fs::write(&script, PTY).expect("terminal.py");
    let mut argv: Vec<OsString> = vec!["python3".into(), script.into()];
    argv.extend(steps.iter().map(Into::into));
    argv.push("--".into());
    argv.push(inner.get_program().into());
    argv.extend(inner.get_args().map(Into::into));
    let out: Outcome = lab::run(&mut lab::as_user(User::Me, &argv));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    Some(out.out())
}

/// Bounded, and able to take an interrupt.
const TRAPS: &str = "trap 'echo GOT' INT; echo READY; i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done";

#[test]
fn ctrl_c_goes_to_the_command() {
    each_backend(|user| {
        for options in [&[][..], &["-e", "openat"]] {
            let args = [
                &["trace", "-o", "/dev/null"],
                options,
                &["sh", "-c", "trap 'echo GOT; exit 7' INT; echo READY; while :; do sleep 0.1; done"],
            ]
            .concat();
            let Some(shown) = on_terminal(user, &["READY", r"\x03"], &args) else { return };
            assert!(shown.contains("GOT") && shown.contains("STATUS 7"), "{shown}");
            let args = [&["trace", "-o", "/dev/null"], options, &["sh", "-c", "echo READY; exec sleep 30"]].concat();
            let Some(shown) = on_terminal(user, &["READY", r"\x03"], &args) else { return };
            assert!(shown.contains("STATUS signal 2"), "{shown}");
        }
    });
}

#[test]
fn a_second_one_ends_trapline() {
    each_backend(|user| {
        for options in [&[][..], &["-e", "openat"]] {
            let args = [&["trace", "-o", "/dev/null"], options, &["sh", "-c", TRAPS]].concat();
            let Some(shown) = on_terminal(user, &["READY", "MASH"], &args) else { return };
            assert!(shown.contains("STATUS 130"), "{options:?} {shown}");
        }
    });
}

#[test]
fn one_at_a_time_does_not() {
    each_backend(|user| {
        let script = "trap 'echo GOT$n; n=$((n+1))' INT; n=1; echo READY; while [ $n -lt 3 ]; do sleep 0.2; \
            if [ $n = 2 ] && [ -z $said ]; then sleep 1.5; said=1; echo AGAIN; fi; done; exit 9";
        let args = ["trace", "-o", "/dev/null", "-e", "openat", "sh", "-c", script];
        let Some(shown) = on_terminal(user, &["READY", r"\x03", "AGAIN", r"\x03"], &args) else { return };
        assert!(shown.contains("GOT1") && shown.contains("GOT2") && shown.contains("STATUS 9"), "{shown}");
    });
}

#[test]
fn a_man_page_is_formatted() {
    if !lab::has("man") {
        return lab::skip("package:man-db", "no man(1) to show a page");
    }
    let mut command = std::process::Command::new("env");
    command.args(["MANPAGER=cat", "TERM=dumb"]).arg(lab::dir().join("trapline")).args(["man", "trace"]);
    let Some(shown) = command_on_terminal(&[], &command) else { return };
    assert!(
        shown.contains("There is no configuration file.") && !shown.contains(".SH") && shown.contains("STATUS 0"),
        "{shown}"
    );
}

#[test]
fn the_command_has_the_terminal() {
    each_backend(|user| {
        let script =
            "test -t 0 && test -t 1 && test -t 2 && echo TTY; echo ASK; read -r line; echo \"<$line>\"; exit 4";
        let args = ["trace", "-q", "-e", "none", "sh", "-c", script];
        let Some(shown) = on_terminal(user, &["ASK", "words\n"], &args) else { return };
        assert!(shown.contains("TTY") && shown.contains("<words>") && shown.contains("STATUS 4"), "{shown}");
    });
}

#[test]
fn colour_on_a_terminal() {
    each_backend(|user| {
        let Some(shown) = on_terminal(user, &[], &["trace", "-q", "-e", "openat", "true"]) else { return };
        assert!(shown.contains("\x1b["), "{shown}");
        let Some(shown) = on_terminal(user, &[], &["trace", "-q", "--color", "never", "-e", "openat", "true"]) else {
            return;
        };
        assert!(!shown.contains("\x1b[") && shown.contains("openat("), "{shown}");
    });
}

fn pid_in(file: &Path) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn runs(pid: u32) -> bool {
    lab::status_field(pid, "State").is_some_and(|s| !s.starts_with(['Z', 'X']))
}

/// Deaf to the hangup itself; says who it is in a file.
fn deaf(file: &Path) -> String {
    format!("trap '' HUP; echo $$ > '{}'; echo READY; exec sleep 60", file.display())
}

#[test]
fn a_hangup_ends_trapline_and_not_a_command_that_is_deaf_to_it() {
    each_backend(|user| {
        let dir = lab::scratch();
        let (file, trace) = (dir.join("pid"), dir.join("recorded").display().to_string());
        for options in [
            &["trace"][..],
            &["trace", "-e", "openat"],
            &["trace", "-o", "/dev/null"],
            &["trace", "--no-seccomp", "-e", "openat"],
            &["record", "-q", "-o", &trace],
        ] {
            let script = deaf(&file);
            let Some(shown) = on_terminal(user, &["READY", "HANGUP"], &[options, &["sh", "-c", &script]].concat())
            else {
                return;
            };
            assert!(shown.contains("STATUS signal 1"), "{options:?} {shown}");
            let command = pid_in(&file).expect("the command's pid");
            assert!(runs(command), "{options:?}");
            lab::kill("KILL", command.into());
        }
        let report = lab::run(&mut lab::trapline(user, &["report", &trace]));
        assert!(report.code() == 0 && report.out().contains("execve("), "{}", report.stderr);
    });
}

#[test]
fn a_hangup_ends_trapline_and_the_command() {
    each_backend(|user| {
        for options in [&[][..], &["-e", "openat"]] {
            let file = lab::scratch().join("pid");
            let script = format!("echo $$ > '{}'; echo READY; exec sleep 60", file.display());
            let args = [&["trace"], options, &["sh", "-c", &script]].concat();
            let Some(shown) = on_terminal(user, &["READY", "HANGUP"], &args) else { return };
            assert!(shown.contains("STATUS signal 1"), "{options:?} {shown}");
            let command = pid_in(&file).expect("the command's pid");
            lab::until("the command's end", || !runs(command));
        }
    });
}

#[test]
fn a_hangup_that_the_end_of_the_shell_brings_ends_trapline() {
    each_backend(|user| {
        let dir = lab::scratch();
        let (own, file) = (dir.join("trapline"), dir.join("pid"));
        std::fs::write(dir.join("deaf"), deaf(&file)).expect("a script");
        let (trace, place) = (lab::trace_in_a_shell(user), dir.display());
        let script = format!("{trace} -o /dev/null sh '{place}/deaf' & echo $! > '{}'; wait", own.display());
        let shell = lab::as_user(user, &["sh", "-c", &script]);
        let Some(shown) = command_on_terminal(&["READY", "HANGUP"], &shell) else { return };
        assert!(shown.contains("STATUS signal 1"), "{shown}");
        let trapline = pid_in(&own).expect("trapline's pid");
        lab::until("the end of trapline", || !runs(trapline));
        lab::kill("KILL", pid_in(&file).expect("the command's pid").into());
    });
}

fn sleeper(user: User) -> Running {
    lab::start(&mut lab::as_user(user, &["sleep", "100"]))
}

#[test]
fn a_hangup_ends_the_trace_of_a_process_and_of_the_machine() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let target = sleeper(user);
        let pid = target.pid().to_string();
        let record = lab::scratch().join("recorded").display().to_string();
        let mut cases = vec![vec!["trace", "-p", &pid], vec!["record", "-p", &pid]];
        let all = ["trace", "-a"];
        if user == User::Kernel {
            cases.push(all.to_vec());
        }
        for args in cases {
            let Some(shown) = on_terminal(user, &["(", "HANGUP"], &args) else { return };
            assert!(shown.contains("STATUS 0"), "{args:?} {shown}");
            assert!(runs(target.pid()) && lab::tracer_of(target.pid()) == 0, "{args:?}");
        }
        let args = ["record", "--as", "text", "-o", &record, "-p", &pid];
        let Some(shown) = on_terminal(user, &["(", "HANGUP"], &args) else { return };
        assert!(shown.contains("STATUS 0"), "{shown}");
        let report = lab::run(&mut lab::trapline(user, &["report", &record]));
        assert!(report.code() == 0 && report.out().contains("<in flight"), "{} {}", report.out(), report.stderr);
    });
}

#[test]
fn an_interrupt_ends_what_a_shell_has_started_deaf_to_it_but_the_terminal_s_does_not() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let dir = lab::scratch();
        for (what, output) in [("trace", "-o live"), ("record", "-o recorded --as text=live")] {
            let target = sleeper(user);
            let trace = lab::trace_in_a_shell(user).replace(" trace", &format!(" {what}"));
            // What is pending still when another one comes is one with it.
            let script = format!(
                "cd '{}'; rm -f live; {trace} -q {output} -p {} & t=$!; until grep -q flight live; do sleep 0.05; done; \
                 echo READY; read -r line; while grep 'ShdPnd:.*[1-9a-f]' /proc/$t/status; do :; done; \
                 kill -0 $t && echo ALIVE; kill -INT $t; wait $t; echo CODE $?",
                dir.display(),
                target.pid()
            );
            // As a shell without job control starts it.
            let deaf = format!("trap '' INT QUIT; {script}");
            let shell = lab::as_user(user, &["sh", "-c", &deaf]);
            let Some(shown) = command_on_terminal(&["READY", r"\x03", "^C", r"\x1c", "^\\", "go\n"], &shell) else {
                return;
            };
            assert!(shown.contains("ALIVE") && shown.contains("CODE 0"), "{what} {shown}");
            assert!(runs(target.pid()), "{what}");
        }
    });
}
