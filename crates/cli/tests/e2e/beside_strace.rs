//! The kernel backend beside strace: one run that both trace, of programs that nobody here wrote, line by line.
//!
//! ```text
//! trapline trace -ff -o trapline strace -ff -o strace PROGRAM ─► strace.TID = trapline.TID, from the first execve on
//! ```

use crate::kernel::possible;
use crate::lab::{self, User};
use std::fs;
use std::path::Path;

/// The lines of a thread, less what is not a line of strace's.
fn lines(path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    text.lines().filter(|l| !l.contains("<in flight>")).map(ToString::to_string).collect()
}

/// A call without its result, and the result; else the line, and nothing.
fn parts(line: &str) -> (&str, &str) {
    match line.rsplit_once(" = ") {
        Some((call, result)) if !line.starts_with("--- ") => (call.trim_end(), result),
        _ => (line, ""),
    }
}

/// Three digits for each octal escape: strace writes a short one before a digit that is none of it.
fn escaped(call: &str) -> String {
    call.replace("\\00", "\\").replace("\\0", "\\")
}

/// Whether both lines say the same. strace remembers which call is restarted.
fn alike(strace: &str, own: &str) -> bool {
    let ((call, result), (own_call, own_result)) = (parts(strace), parts(own));
    let restart = "restart_syscall(";
    let same_call = escaped(call) == escaped(own_call) || call.starts_with(restart) && own_call.starts_with(restart);
    same_call && (result == own_result || result == "?")
}

/// The first pair of lines that differ. Of a thread that is killed strace may not see the last call, or not its end, or shows
/// what another thread's registers were.
fn difference(strace: &[String], own: &[String]) -> Option<String> {
    let mut own = own.to_vec();
    let last_call = own.len().saturating_sub(2);
    let killed = own.len() > 1 && own[last_call + 1].starts_with("+++ killed");
    let result = own.get(last_call).map_or("", |line| parts(line).1);
    if killed && result.starts_with("-1 ENOSYS") {
        return Some(format!("it was not carried out: {}", own[last_call]));
    }
    if killed && own.len() == strace.len() + 1 && result.starts_with('?') {
        own.remove(last_call);
    }
    let none = String::new();
    (0..strace.len().max(own.len())).find_map(|i| {
        let (s, t) = (strace.get(i).unwrap_or(&none), own.get(i).unwrap_or(&none));
        let cut_off = killed && i == last_call;
        (!alike(s, t) && !cut_off).then(|| format!("line {i}\nstrace:   {s}\ntrapline: {t}"))
    })
}

/// Runs a command under both, and compares; at least this many lines.
#[track_caller]
fn same(at_least: usize, command: &[&str]) {
    let dir = lab::scratch();
    let own = dir.join("trapline").display().to_string();
    let strace = dir.join("strace").display().to_string();
    let traced = ["trace", "--backend", "kernel", "-ff", "-o", &own, "--", "strace", "-ff", "-o", &strace];
    let run = lab::run(&mut lab::trapline(User::Me, &[&traced[..], command].concat()));
    assert!(run.stderr.contains(" 0 dropped"), "{}", run.stderr);
    let mut compared = 0;
    for entry in fs::read_dir(&dir).expect("the directory").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        let Some(tid) = name.strip_prefix("strace.") else { continue };
        let (strace, own) = (lines(&entry.path()), lines(&dir.join(format!("trapline.{tid}"))));
        // What strace's own child does before it becomes the command.
        let from = match strace.first() {
            Some(first) if first.starts_with("execve(") => own.iter().position(|l| l.starts_with("execve(")),
            _ => None,
        };
        let own = &own[from.unwrap_or(0)..];
        if let Some(text) = difference(&strace, own) {
            panic!(
                "{command:?}, thread {tid}: {text}\n\nstrace:\n{}\n\ntrapline:\n{}",
                strace.join("\n"),
                own.join("\n")
            );
        }
        compared += strace.len();
    }
    assert!(compared >= at_least, "{compared} lines of {command:?}");
}

#[track_caller]
fn there(programs: &[&str]) -> bool {
    let missing = ["strace"].iter().chain(programs).find(|p| !lab::has(p));
    missing.inspect(|p| lab::skip(&format!("package:{p}"), "not installed")).is_none() && possible()
}

#[test]
fn threads_that_start_processes() {
    const SCRIPT: &str = "
import os, subprocess, threading
def f():
    for _ in range(5): subprocess.run(['/bin/true'])
ts = [threading.Thread(target=f) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
p = os.fork()
if p == 0: os.read(os.pipe()[0], 1)
os.waitpid(p, os.WNOHANG); os.kill(p, 15); os.waitpid(p, 0)
";
    if there(&["python3"]) {
        same(2000, &["/usr/bin/python3", "-c", SCRIPT]);
    }
}

#[test]
fn signals_in_calls() {
    const SCRIPT: &str = "use Time::HiRes qw(setitimer ITIMER_REAL sleep); my $n = 0; $SIG{ALRM} = sub { $n++ };\
        setitimer(ITIMER_REAL, 0.002, 0.002); for (1..100) { sleep 0.003; open(F, '/etc/passwd'); close F; }";
    if there(&["perl"]) {
        same(500, &["/usr/bin/perl", "-e", SCRIPT]);
    }
}

/// Threads that are killed as they call, stop at the entry of a call that is then not carried out.
#[test]
fn threads_that_are_killed_in_calls() {
    const SCRIPT: &str = "
import os, threading, time
def f():
    while True: os.getppid()
for r in range(12):
    p = os.fork()
    if p == 0:
        for _ in range(2): threading.Thread(target=f, daemon=True).start()
        while True: time.sleep(0.0001)
    time.sleep(0.02); os.kill(p, [9, 15][r % 2]); os.waitpid(p, 0)
";
    if there(&["python3"]) {
        same(1000, &["/usr/bin/python3", "-c", SCRIPT]);
    }
}

#[test]
fn a_compiler_and_its_processes() {
    if !there(&["gcc", "git", "make"]) {
        return;
    }
    let out = lab::scratch().join("out").display().to_string();
    same(1000, &["sh", "-c", &format!("echo 'int main(void) {{ return 0; }}' | gcc -O1 -x c -o {out} - && {out}")]);
    same(50, &["git", "--no-pager", "config", "--list", "--show-origin"]);
    let script = format!("printf 'a: b c\\n\\ttrue\\nb:\\n\\ttouch {out}.b\\nc:\\n\\tls /\\n' | make -j3 -f -");
    same(500, &["sh", "-c", &script]);
}
