//! What every scenario needs: programs, users, bounded runs, parsed lines.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long any run may take before it is killed and the test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// What everybody may search; that of whoever runs the tests may have directories of his own.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Who runs trapline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests.
    Me,
    /// nobody, by way of root.
    Nobody,
}

pub fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        status.lines().any(|l| l.starts_with("Uid:") && l.split_whitespace().nth(2) == Some("0"))
    })
}

/// Runs a scenario as root and as nobody; as an ordinary user, as that one only.
pub fn each_user(scenario: impl Fn(User)) {
    let users = if !is_root() {
        skip("root", "the tests do not run as root");
        vec![User::Me]
    } else if !has("setpriv") {
        skip("unprivileged", "no setpriv to become nobody");
        vec![User::Me]
    } else {
        vec![User::Me, User::Nobody]
    };
    for user in users {
        eprintln!("as {user:?}");
        scenario(user);
    }
}

/// The same for scenarios that attach to processes that are not descendants of trapline.
pub fn each_attacher(scenario: impl Fn(User)) {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    each_user(|user| match scope.trim() {
        "" | "0" => scenario(user),
        "1" | "2" if user == User::Me && is_root() => scenario(user),
        _ => skip("kernel:ptrace_scope", "attaching is restricted by kernel.yama.ptrace_scope"),
    });
}

/// Says that the calling test does not run, on stderr and in the file named by TRAPLINE_SKIPS.
#[track_caller]
pub fn skip(tier: &str, why: &str) {
    let here = std::panic::Location::caller();
    let name = std::thread::current().name().filter(|n| *n != "main").map(str::to_string);
    let test = name.unwrap_or_else(|| format!("{}:{}", here.file(), here.line()));
    eprintln!("SKIPPED {test} ({tier}): {why}");
    if let Some(path) = std::env::var_os("TRAPLINE_SKIPS") {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("TRAPLINE_SKIPS");
        file.write_all(format!("{tier}\t{test}\t{why}\n").as_bytes()).expect("TRAPLINE_SKIPS");
    }
}

/// Whether a program is in PATH.
pub fn has(program: &str) -> bool {
    PATH.split(':').any(|d| Path::new(d).join(program).is_file())
}

/// A directory that everybody can read, with trapline in it; those of runs that have ended are removed.
pub fn dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let temp = std::env::temp_dir();
        for entry in fs::read_dir(&temp).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name.strip_prefix("trapline-e2e-").and_then(|p| p.parse::<u32>().ok());
            if pid.is_some_and(|p| !Path::new(&format!("/proc/{p}")).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let dir = temp.join(format!("trapline-e2e-{}", std::process::id()));
        fs::create_dir(&dir).expect("a directory for the tests");
        open_to_all(&dir, 0o755);
        fs::copy(env!("CARGO_BIN_EXE_trapline"), dir.join("trapline")).expect("copy of trapline");
        open_to_all(&dir.join("trapline"), 0o755);
        dir
    })
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

/// A fresh directory that everybody can write to.
pub fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let path = dir().join(format!("scratch{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&path).expect("scratch directory");
    open_to_all(&path, 0o777);
    path
}

/// A program of `tests/programs`, compiled once; none where there is no compiler, which is said.
#[track_caller]
pub fn program(name: &str) -> Option<String> {
    static BUILT: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);
    if !has("gcc") {
        skip("package:gcc", "no C compiler");
        return None;
    }
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let built = built.get_or_insert_default();
    if let Some(path) = built.get(name) {
        return Some(path.clone());
    }
    let source = format!("{}/../../tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let target = dir().join(name).to_str().expect("UTF-8").to_string();
    let out = Command::new("gcc").args(["-O1", "-pthread", "-o", &target, &source]).output().expect("gcc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    open_to_all(Path::new(&target), 0o755);
    built.insert(name.to_string(), target.clone());
    Some(target)
}

/// A command of `user`, in a process group of its own, with nothing on stdin.
pub fn as_user<S: AsRef<OsStr>>(user: User, argv: &[S]) -> Command {
    let mut c = match user {
        User::Me => Command::new(&argv[0]),
        User::Nobody => {
            let mut c = Command::new("setpriv");
            c.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]).arg(&argv[0]);
            c
        }
    };
    c.args(&argv[1..]).current_dir(dir()).process_group(0).stdin(Stdio::null());
    // cargo test sets it, and the loader would search it.
    c.env("LC_ALL", "C").env("PATH", PATH).env_remove("LD_LIBRARY_PATH");
    c
}

/// `trapline ARGS`
pub fn trapline<S: AsRef<OsStr>>(user: User, args: &[S]) -> Command {
    let exe = dir().join("trapline");
    let mut argv = vec![exe.as_os_str()];
    argv.extend(args.iter().map(AsRef::as_ref));
    as_user(user, &argv)
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    /// The exit status as a shell shows it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A process group that was started here; it does not outlive this value.
pub struct Running {
    pub child: Child,
    out: Option<JoinHandle<Vec<u8>>>,
    err: Option<JoinHandle<Vec<u8>>>,
}

/// Starts a command; what it writes is gathered, except where the caller has redirected it.
pub fn start(command: &mut Command) -> Running {
    start_with(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
}

/// Takes over a child that leads a process group of its own.
pub fn start_with(mut child: Child) -> Running {
    fn gather(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = from.read_to_end(&mut all);
            all
        })
    }
    let (out, err) = (child.stdout.take().map(gather), child.stderr.take().map(gather));
    Running { child, out, err }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end; too long a run fails the test.
    pub fn end(mut self) -> Outcome {
        let started = Instant::now();
        let status = loop {
            if let Some(s) = self.child.try_wait().expect("wait") {
                break s;
            }
            if started.elapsed() > LIMIT {
                self.kill();
                panic!("still running after {LIMIT:?}; stderr: {}", self.text_of_stderr());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let stdout = self.out.take().map_or_else(Vec::new, |t| t.join().unwrap_or_default());
        Outcome { status, stdout, stderr: self.text_of_stderr() }
    }

    fn text_of_stderr(&mut self) -> String {
        let bytes = self.err.take().map_or_else(Vec::new, |t| t.join().unwrap_or_default());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn kill(&mut self) {
        kill("KILL", -i64::from(self.child.id()));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Outcome {
    start(command.stdout(Stdio::piped()).stderr(Stdio::piped())).end()
}

/// Sends a signal to a process (or, negative, a group) that a test has started.
pub fn kill(signal: &str, pid: i64) {
    let _ = Command::new("sh").args(["-c", &format!("kill -s {signal} -- {pid}")]).stderr(Stdio::null()).status();
}

/// Polls for a state; never reached, the test fails.
#[track_caller]
pub fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < LIMIT / 2, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A field of `/proc/PID/status`.
pub fn status_field(pid: u32, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_string())
}

/// The tracer of a process; 0 for none.
pub fn tracer_of(pid: u32) -> u32 {
    status_field(pid, "TracerPid").and_then(|t| t.parse().ok()).unwrap_or(0)
}
