//! On a terminal: Ctrl-C, colour, prefixes. python3 makes the terminal.

use crate::lab::{self, Outcome, User, each_backend};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs argv on a new terminal. Steps: text to wait for, then what to type (MASH: Ctrl-C until the end). Prints what the terminal showed, then the
/// wait status; kills the whole session at the end.
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
    os.write(fd, keys.encode().decode("unicode_escape").encode())
while status is None and time.time() < limit:
    more()
    done, raw = os.waitpid(pid, os.WNOHANG)
    if done:
        status = raw
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
    if !lab::has("python3") {
        lab::skip("package:python3", "no python3 to make a terminal");
        return None;
    }
    let script: PathBuf = lab::scratch().join("terminal.py");
    std::fs::write(&script, PTY).expect("terminal.py");
    let inner = lab::trapline(user, args);
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
