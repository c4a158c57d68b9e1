//! `--debuginfod`: debug information from a server of this machine, by HTTP, and what a server can do wrong.
//!
//! `debuginfod-find` is a stand-in for the program of that name: it takes the same variables, asks for the same path, and keeps what it gets.

use crate::lab::{self, Outcome, Running, User};
use crate::record::{Recorded, record};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::compile;

pub const FIND: &str = r#"#!/usr/bin/python3
import os, sys, urllib.error, urllib.request
kind, id = sys.argv[1:]
kept = os.path.join(os.environ["HOME"], id)
why = "No such file or directory"
for server in os.environ["DEBUGINFOD_URLS"].split():
    try:
        url = "%s/buildid/%s/%s" % (server.rstrip("/"), id, kind)
        with urllib.request.urlopen(url, timeout=float(os.environ["DEBUGINFOD_TIMEOUT"])) as answer:
            open(kept, "wb").write(answer.read())
        print(kept)
        sys.exit(0)
    except urllib.error.HTTPError as e:
        why = why if e.code == 404 else "HTTP status %d" % e.code
    except urllib.error.URLError as e:
        why = "Connection refused" if "refused" in str(e) else "Timer expired"
    except OSError:
        why = "Timer expired"
print("Server query failed:", why, file=sys.stderr)
sys.exit(1)
"#;

/// Serves the files of a directory, or accepts and never answers.
const SERVER: &str = r#"
import functools, http.server, socket, sys, time
if sys.argv[1] == "hang":
    s = socket.create_server(("127.0.0.1", 0))
    print(s.getsockname()[1], flush=True)
    time.sleep(600)
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A server, and its address.
fn serve(what: &str) -> (Running, String) {
    let mut command = lab::as_user(User::Me, &["python3", "-c", SERVER, what]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("python3");
    let mut port = String::new();
    BufReader::new(child.stdout.take().expect("its stdout")).read_line(&mut port).expect("a port");
    (lab::start_with(child), format!("http://127.0.0.1:{}", port.trim()))
}

/// A recording of a stripped program, and what was stripped off.
struct Stripped {
    r: Recorded,
    dir: PathBuf,
    debug: PathBuf,
    build_id: String,
}

#[track_caller]
fn stripped() -> Option<Stripped> {
    if !lab::has("python3") {
        lab::skip("package:python3", "no server of files");
        return None;
    }
    let built = compile("gcc", "walks_debug", "walks.c", &["-O2", "-g", "-Wl,--build-id=sha1"])?;
    let dir = lab::scratch();
    let (program, debug) = (dir.join("program"), dir.join("debug"));
    let made = |args: &[&str]| {
        assert_eq!(lab::run(&mut lab::as_user(User::Me, &[&["objcopy"], args].concat())).code(), 0);
    };
    let name = |p: &Path| p.display().to_string();
    made(&["--only-keep-debug", &built, &name(&debug)]);
    made(&["--strip-all", &built, &name(&program)]);
    let r = record(User::Ptrace, &["-e", "getppid ustack"], &[&name(&program), "plain"]);
    let notes = lab::run(Command::new("readelf").args(["-n", &built])).out();
    let build_id = notes.split("Build ID: ").nth(1).and_then(|t| t.split_whitespace().next()).expect("a build id");
    fs::write(dir.join("debuginfod-find"), FIND).expect("write");
    testkit::open_to_all(&dir.join("debuginfod-find"), 0o755);
    Some(Stripped { r, dir, debug, build_id: build_id.to_string() })
}

impl Stripped {
    fn report(&self, servers: &str, variables: &[(&str, &str)]) -> Outcome {
        let home = lab::scratch();
        let args = ["report", "--debuginfod", "-e", "getppid", self.r.trace.to_str().expect("UTF-8")];
        let mut command = lab::trapline(User::Me, &args);
        command.env("PATH", format!("{}:{}", self.dir.display(), testkit::PATH)).env("HOME", home);
        command.env("DEBUGINFOD_URLS", servers).env("DEBUGINFOD_TIMEOUT", "1");
        command.envs(variables.iter().copied());
        let out = lab::run(&mut command);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out
    }

    /// Publishes a file as the debug information of the program.
    fn publish(&self, file: &Path) -> PathBuf {
        let root = lab::scratch();
        let place = root.join("buildid").join(&self.build_id);
        fs::create_dir_all(&place).expect("mkdir");
        fs::copy(file, place.join("debuginfo")).expect("copy");
        root
    }
}

/// The lines about servers.
fn said(out: &Outcome) -> Vec<&str> {
    out.stderr.lines().filter(|l| l.contains("debuginfod")).collect()
}

#[test]
fn functions_of_a_stripped_program_are_named() {
    let Some(p) = stripped() else { return };
    let (server, url) = serve(p.publish(&p.debug).to_str().expect("UTF-8"));
    // One that has nothing is no mistake.
    let (empty, other) = serve(lab::scratch().to_str().expect("UTF-8"));
    let out = p.report(&format!("{other} {url}"), &[]);
    for name in ["inner", "middle", "outer", "main"] {
        assert!(out.out().contains(&format!("/program({name}+0x")), "{name}: {} {}", out.out(), out.stderr);
    }
    assert_eq!(said(&out).len(), 0, "{}", out.stderr);
    let out = p.report(&other, &[]);
    assert!(!out.out().contains("(middle+0x") && said(&out).is_empty(), "{} {}", out.out(), out.stderr);
    drop((server, empty));
    // Nobody is there any more: one line, however many files are missing.
    let out = p.report(&url, &[]);
    assert!(!out.out().contains("(middle+0x"), "{}", out.out());
    let lines = said(&out);
    assert!(lines.len() == 1 && lines[0].contains("Connection refused"), "{}", out.stderr);
}

/// A server may be wrong, or be somebody else.
#[test]
fn what_has_another_build_id_is_not_used() {
    let Some(p) = stripped() else { return };
    let flags = ["-O2", "-g", "-Wl,--build-id=0x0123456789", "-Dmiddle=forged"];
    let Some(forged) = compile("gcc", "walks_forged", "walks.c", &flags) else { return };
    for file in [PathBuf::from(forged), PathBuf::from("/bin/sh"), p.dir.join("debuginfod-find")] {
        let (_server, url) = serve(p.publish(&file).to_str().expect("UTF-8"));
        let out = p.report(&url, &[]);
        assert!(!out.out().contains("forged") && !out.out().contains("(middle+0x"), "{file:?} {}", out.out());
        assert!(out.out().contains("/program() [0x"), "{file:?} {}", out.out());
    }
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let Some(p) = stripped() else { return };
    let (_server, url) = serve("hang");
    let out = p.report(&url, &[]);
    let lines = said(&out);
    assert!(lines.len() == 1 && lines[0].contains("Timer expired"), "{}", out.stderr);
    // The program waits for longer than it may take.
    let out = p.report(&url, &[("DEBUGINFOD_TIMEOUT", "500"), ("DEBUGINFOD_MAXTIME", "1")]);
    let lines = said(&out);
    assert!(lines.len() == 1 && lines[0].contains("no answer within 1 s"), "{}", out.stderr);
    assert!(out.out().contains("/program() [0x") && out.out().contains("__libc_start_main"), "{}", out.out());
}
