//! What every scenario needs: programs, users, bounded runs, parsed lines.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testkit::{PATH, open_to_all};
pub use testkit::{compiled, has, is_root, skip};

/// How long any run may take before it is killed and the test fails; TRAPLINE_TEST_LIMIT says this many seconds, for slow machines.
fn limit() -> Duration {
    let said = std::env::var("TRAPLINE_TEST_LIMIT").ok().and_then(|s| s.parse().ok());
    Duration::from_secs(said.unwrap_or(60))
}

/// The user that runs trapline, and the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests, with the backend that trapline selects.
    Me,
    /// The user who runs the tests, with the ptrace backend.
    Ptrace,
    /// The user who runs the tests, with the kernel backend.
    Kernel,
    /// nobody, by way of root; trapline takes ptrace.
    Nobody,
}

impl User {
    /// The backend that is asked for; none where trapline is to choose.
    pub fn asks_for(self) -> Option<&'static str> {
        match self {
            User::Me | User::Nobody => None,
            User::Ptrace => Some("ptrace"),
            User::Kernel => Some("kernel"),
        }
    }

    /// The backend that must be taken.
    pub fn backend(self) -> &'static str {
        self.asks_for().unwrap_or(if self == User::Me && is_root() && bpf_refused().is_none() {
            "kernel"
        } else {
            "ptrace"
        })
    }
}

/// Why bpf(2) is refused to whoever runs the tests.
pub fn bpf_refused() -> Option<String> {
    sys::bpf::info::ids(sys::bpf::info::Object::Program).err().map(|e| format!("bpf(2) is refused: {e}"))
}

/// Whether the kernel backend can run here; where it cannot, that is said.
#[track_caller]
pub fn kernel_backend_is_possible() -> bool {
    if !is_root() {
        skip("root", "the kernel backend needs root");
        return false;
    }
    bpf_refused().inspect(|why| skip("kernel:bpf", why)).is_none()
}

#[track_caller]
fn each_of(of_root: &[User], scenario: impl Fn(User)) {
    if !is_root() {
        skip("root", "the tests do not run as root");
        return scenario(User::Me);
    }
    let mut users = of_root.to_vec();
    if has("setpriv") {
        users.push(User::Nobody);
    } else {
        skip("unprivileged", "no setpriv to become nobody");
    }
    for user in users {
        eprintln!("as {user:?}");
        if user != User::Kernel || kernel_backend_is_possible() {
            scenario(user);
        }
    }
}

/// Runs a scenario as root and as nobody; as an ordinary user, as that one only. trapline chooses the backend.
#[track_caller]
pub fn each_user(scenario: impl Fn(User)) {
    each_of(&[User::Me], scenario);
}

/// Runs a scenario like [`each_user`], with each of the two backends.
#[track_caller]
pub fn each_backend(scenario: impl Fn(User)) {
    each_of(&[User::Ptrace, User::Kernel], scenario);
}

/// Runs a scenario like [`each_user`], with the ptrace backend only: for what depends on its stops, its filter, or its process.
#[track_caller]
pub fn each_ptracer(scenario: impl Fn(User)) {
    each_of(&[User::Ptrace], scenario);
}

/// [`each_user`] for scenarios that attach.
#[track_caller]
pub fn each_attacher(scenario: impl Fn(User)) {
    each_user(|user| {
        if may_attach(user) {
            scenario(user);
        }
    });
}

/// For scenarios that attach to processes that are not descendants of trapline: whether this user may.
#[track_caller]
pub fn may_attach(user: User) -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let may = match scope.trim() {
        "" | "0" => true,
        "1" | "2" => user != User::Nobody && is_root(),
        _ => user == User::Kernel,
    };
    if !may {
        skip("kernel:ptrace_scope", "attaching is restricted by kernel.yama.ptrace_scope");
    }
    may
}

/// Whether Yama lets an ordinary user attach to his descendants only.
pub fn attach_is_restricted() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    !matches!(scope.trim(), "" | "0")
}

/// kernel.perf_event_paranoid; from 3 on, distributions shut out all but root.
pub fn paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("kernel.perf_event_paranoid");
    text.trim().parse().expect("a number")
}

/// The directory of these tests, which everybody can read, with trapline in it.
pub fn dir() -> &'static Path {
    static DIR: OnceLock<&'static Path> = OnceLock::new();
    crate::alone::beside_others();
    DIR.get_or_init(|| {
        let dir = testkit::dir();
        fs::copy(env!("CARGO_BIN_EXE_trapline"), dir.join("trapline")).expect("copy of trapline");
        // Whoever runs the tests in the background, or under nohup, is deaf to some of them.
        const HUP_INT_QUIT_TERM: [i32; 4] = [1, 2, 3, 15];
        for sig in HUP_INT_QUIT_TERM {
            sys::signal::ignore_only_here(sig).expect("a disposition");
        }
        open_to_all(&dir.join("trapline"), 0o755);
        dir
    })
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
    compiled(name, &format!("{name}.c"), &[])
}

/// A program by its path: one that is only named, with a PATH of its own, would be started by a copy of this process, which is large.
fn found(program: &OsStr) -> PathBuf {
    let in_path = || testkit::PATH.split(':').map(|dir| Path::new(dir).join(program)).find(|path| path.is_file());
    let named = Some(program).filter(|name| !name.as_encoded_bytes().contains(&b'/'));
    named.and_then(|_| in_path()).unwrap_or_else(|| program.into())
}

/// A command of `user`, in a process group of its own, with nothing on stdin.
pub fn as_user<S: AsRef<OsStr>>(user: User, argv: &[S]) -> Command {
    let mut c = match user {
        User::Me | User::Ptrace | User::Kernel => Command::new(found(argv[0].as_ref())),
        User::Nobody => {
            let mut c = Command::new(found("setpriv".as_ref()));
            c.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]).arg(&argv[0]);
            c
        }
    };
    c.args(&argv[1..]).current_dir(dir()).process_group(0).stdin(Stdio::null());
    // cargo test sets it, and the loader would search it.
    c.env("LC_ALL", "C").env("PATH", PATH).env_remove("LD_LIBRARY_PATH");
    c
}

/// `trapline ARGS`; a trace or a recording by the user's backend, if the arguments name none.
pub fn trapline<S: AsRef<OsStr>>(user: User, args: &[S]) -> Command {
    let exe = dir().join("trapline");
    let mut argv = vec![exe.as_os_str()];
    argv.extend(args.iter().map(AsRef::as_ref));
    let traces = argv.get(1).is_some_and(|a| *a == "trace" || *a == "record");
    if let Some(backend) = user.asks_for().filter(|_| traces && argv.iter().all(|a| *a != "--backend")) {
        argv.splice(2..2, [OsStr::new("--backend"), OsStr::new(backend)]);
    }
    as_user(user, &argv)
}

/// `trapline trace` for a shell, by the user's backend.
pub fn trace_in_a_shell(user: User) -> String {
    let exe = dir().join("trapline").display().to_string();
    user.asks_for().map_or(format!("{exe} trace"), |b| format!("{exe} trace --backend {b}"))
}

/// Whether a trapline has attached to a thread.
pub fn is_attached(user: User, trapline: u32, thread: u32) -> bool {
    if user.backend() == "ptrace" {
        return tracer_of(thread) != 0;
    }
    let fds = fs::read_dir(format!("/proc/{trapline}/fd")).into_iter().flatten().flatten();
    let mut names = fds.filter_map(|e| fs::read_link(e.path()).ok());
    names.any(|n| n.to_string_lossy().contains("bpf_link") || n.to_string_lossy().contains("bpf-link"))
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
    /// What it says on stderr, but that there is nothing to print yet.
    pub fn complaints(&self) -> String {
        let lines = self.stderr.lines().filter(|line| !line.contains(": nothing to print: "));
        lines.map(|line| format!("{line}\n")).collect()
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

    /// Fails the test, with what it said, where it has ended.
    #[track_caller]
    pub fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().expect("wait") {
            panic!("ended with {status}; stderr: {}", self.text_of_stderr());
        }
    }

    /// Waits for the end; too long a run fails the test.
    pub fn end(mut self) -> Outcome {
        let started = Instant::now();
        let status = loop {
            if let Some(s) = self.child.try_wait().expect("wait") {
                break s;
            }
            if started.elapsed() > limit() {
                self.kill();
                panic!("still running after {:?}; stderr: {}", limit(), self.text_of_stderr());
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

/// Every file below a directory that can be read, with its contents; of what is no regular file, its name.
pub fn contents(dir: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("its kind");
        if kind.is_dir() {
            all.extend(contents(&entry.path()));
        }
        let bytes = if kind.is_file() { fs::read(entry.path()).unwrap_or_default() } else { Vec::new() };
        all.insert(entry.path(), bytes);
    }
    all
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
        assert!(started.elapsed() < limit() / 2, "never: {what}");
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
