//! The request of a command, as plain data: each option of the command line about tracing, keeping or showing. An option that was not given is
//! `None`, false, zero or empty; the code that uses it has the default.

use std::ffi::OsString;
use std::path::PathBuf;

/// What to trace, keep and show.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Whose events.
    pub target: Targets,
    /// Which events.
    pub select: Select,
    /// What is captured with them.
    pub capture: Capture,
    /// How they are traced.
    pub tracing: Tracing,
    /// Where they are kept.
    pub keep: Keep,
    /// What lines of text look like.
    pub format: Format,
    /// Where names of functions are looked for.
    pub names: Names,
    /// Tables of calls.
    pub table: Tables,
    /// Function calls that are shown.
    pub calls: FunctionCalls,
    /// Profiles.
    pub profile: Profiles,
    /// Heaps.
    pub heap: Heaps,
    /// What of stacks is shown.
    pub lens: Lens,
    /// Threads as they are now.
    pub snapshot: Snapshot,
    /// A script, and how it runs.
    pub script: Scripts,
    /// The views: `--as VIEW[=FILE]`.
    pub show: Vec<Show>,
    /// A recorded trace, whole or in part.
    pub trace: Recorded,
    /// `-q`, so often.
    pub quiet: u8,
    /// When it was asked, ns of the monotonic clock: `--stats` says how long it takes to the first event.
    pub started: u64,
}

/// `--as VIEW[=FILE]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// The name of the view.
    pub view: String,
    /// Where it goes; none is stdout.
    pub file: Option<String>,
}

impl Show {
    /// A view on stdout.
    pub fn stdout(view: &str) -> Show {
        Show { view: view.into(), file: None }
    }
}

impl From<&str> for Show {
    fn from(text: &str) -> Show {
        match text.split_once('=') {
            Some((view, file)) => Show { view: view.into(), file: Some(file.into()) },
            None => Show::stdout(text),
        }
    }
}

/// Whose events are traced.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// A command and its arguments.
    pub command: Vec<OsString>,
    /// `-p`: lists of process ids.
    pub attach: Vec<String>,
    /// `-a`
    pub all: bool,
    /// `-f`, so often.
    pub follow: u8,
    /// `--output-separately`
    pub output_separately: bool,
    /// `--no-follow`
    pub no_follow: bool,
    /// `-E VAR[=VAL]`
    pub env: Vec<OsString>,
    /// `-u USER`
    pub user: Option<String>,
}

impl Targets {
    /// A running process.
    pub fn process(pid: i32) -> Targets {
        Targets { attach: vec![pid.to_string()], ..Targets::default() }
    }

    /// Whether each thread has a file of its own.
    pub fn is_per_thread(&self) -> bool {
        self.follow > 1 || self.output_separately
    }

    /// The command in words.
    pub fn words(&self) -> String {
        self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// Which events are traced or shown.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// `-e`
    pub expr: Vec<String>,
    /// `--trace SET`
    pub trace: Vec<String>,
    /// `--signal SET`
    pub signal: Vec<String>,
    /// `--status SET`
    pub status: Vec<String>,
    /// `-P PATH`
    pub trace_path: Vec<OsString>,
    /// `--where EXPR`
    pub filter: Option<String>,
    /// `--param VALUE`
    pub param: Vec<String>,
    /// `-z`
    pub successful_only: bool,
    /// `-Z`
    pub failed_only: bool,
}

impl Select {
    /// The expressions of `-e` and `--trace`. `trace=SET` is SET.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        let set = |e| ["trace=", "t="].iter().find_map(|kind| str::strip_prefix(e, kind)).unwrap_or(e);
        self.expr.iter().map(String::as_str).map(set).chain(self.trace.iter().map(String::as_str))
    }
}

/// What is captured with events.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// `--capture [CALL,…=]LEVEL`
    pub levels: Vec<String>,
    /// `--kstack[=N]`
    pub kstack: Option<String>,
    /// `--ustack[=N]`
    pub ustack: Option<String>,
    /// `--comm`
    pub comm: bool,
    /// `--args`: arguments and results of functions.
    pub args: bool,
    /// `--lib`: functions of shared libraries too.
    pub lib: bool,
    /// `--leave NAME`: functions that are not patched.
    pub leave: Vec<String>,
    /// `--program NAME`: only functions of these programs.
    pub program: Vec<String>,
}

/// How events are traced.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    /// `--backend NAME`
    pub backend: Option<String>,
    /// `--unwind HOW`
    pub unwind: Option<String>,
    /// `--buffer SIZE`
    pub buffer: Option<String>,
    /// `--on-full WHAT`
    pub on_full: Option<String>,
    /// `--no-seccomp`
    pub no_seccomp: bool,
    /// `--kill-on-exit`
    pub kill_on_exit: bool,
    /// `--no-duration`
    pub no_duration: bool,
    /// `--cost`
    pub cost: bool,
    /// `--force`: return probes too that may break the program; a trace is replaced.
    pub force: bool,
    /// `--duration TIME`
    pub duration: Option<String>,
    /// `--explain[=WHAT]`
    pub explain: Option<String>,
}

/// Where events are kept, and by which name a session is reached.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// `-o`: the directory of a trace, or a file or command for text.
    pub output: Option<OsString>,
    /// `-A`
    pub append: bool,
    /// `--max-size SIZE`
    pub max_size: Option<String>,
    /// `--flight SIZE`
    pub flight: Option<String>,
    /// `--pack`
    pub pack: bool,
    /// `--name NAME`
    pub name: Option<String>,
    /// `--paused`
    pub paused: bool,
    /// `--stats FILE`
    pub stats: Option<OsString>,
}

impl Keep {
    /// The directory of the trace.
    pub fn dir(&self) -> Option<PathBuf> {
        self.output.as_ref().map(PathBuf::from)
    }
}

/// What lines of text look like.
#[derive(Clone, Debug, Default)]
pub struct Format {
    /// `-s SIZE`
    pub string_limit: Option<u32>,
    /// `-t`, so often.
    pub time: u8,
    /// `--absolute-timestamps[=FORMAT]`
    pub absolute_timestamps: Option<String>,
    /// `-r`, `--relative-timestamps[=PRECISION]`
    pub relative_timestamps: Option<String>,
    /// `-T`, `--syscall-times[=PRECISION]`
    pub syscall_times: Option<String>,
    /// `-y`, so often.
    pub fd: u8,
    /// `--decode-pids=comm`
    pub decode_pids: bool,
    /// `-n`
    pub syscall_number: bool,
    /// `-i`
    pub instruction_pointer: bool,
    /// `-x`, so often.
    pub hex: u8,
    /// `--strings-in-hex[=WHICH]`
    pub strings_in_hex: Option<String>,
    /// `-X FORM`
    pub const_print_style: Option<String>,
    /// `-v`
    pub no_abbrev: bool,
    /// `--types`
    pub types: bool,
    /// `-N`
    pub arg_names: bool,
    /// `--always-show-pid`
    pub always_show_pid: bool,
    /// `--columns N`
    pub columns: Option<u16>,
    /// `--sort ORDER`
    pub sort: Option<String>,
    /// `--color WHEN`
    pub color: Option<String>,
    /// `-k[=FORM]`
    pub stack_trace: Vec<String>,
    /// `--no-stacks`
    pub no_stacks: bool,
}

impl Format {
    /// Whether what a line shows depends on the lines before.
    pub fn depends_on_others(&self) -> bool {
        self.relative_timestamps.is_some() || self.syscall_number
    }

    /// Bytes shown of strings and buffers.
    pub fn string(&self) -> usize {
        self.string_limit.map_or(32, |n| n as usize)
    }
}

/// Where names of functions are looked for.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// `--symbols PATH`
    pub symbols: Vec<OsString>,
    /// `--debuginfod`
    pub debuginfod: bool,
}

/// Tables of calls.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// `-c`
    pub summary_only: bool,
    /// `-C`
    pub summary: bool,
    /// `-w`
    pub summary_wall_clock: bool,
    /// `-S`
    pub sort_by: Option<String>,
    /// `-U`
    pub columns: Option<String>,
    /// `--latency[=BY]`
    pub latency: Option<String>,
    /// `--hist`
    pub hist: bool,
    /// `--by`: events by stack, or what a profile adds up.
    pub by: Option<String>,
    /// `--rows N`
    pub rows: Option<u32>,
    /// `--span 'NAME = PROBE .. PROBE by KEY'`
    pub spans: Vec<String>,
}

/// Function calls that are shown, and how.
#[derive(Clone, Debug, Default)]
pub struct FunctionCalls {
    /// `--function NAME`
    pub function: Vec<String>,
    /// `--no-function NAME`
    pub no_function: Vec<String>,
    /// `--depth N`
    pub depth: Option<usize>,
    /// `--min-time TIME`
    pub min_time: Option<String>,
    /// `--demangle HOW`
    pub demangle: Option<String>,
    /// `--no-time`
    pub no_time: bool,
    /// `--module`
    pub module: bool,
    /// `--syscalls`
    pub syscalls: bool,
}

/// Profiles, and how they are drawn.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// `-F HZ`
    pub frequency: Option<String>,
    /// `--off-cpu`
    pub off_cpu: bool,
    /// `--wall`
    pub wall: bool,
    /// `--wakers`
    pub wakers: bool,
    /// `--unit UNIT`
    pub unit: Option<String>,
    /// `--group BY`
    pub group: Option<String>,
    /// `--order BY`
    pub order: Option<String>,
    /// `--icicle`
    pub icicle: bool,
}

/// What of stacks is shown, in profiles and heaps.
#[derive(Clone, Debug, Default)]
pub struct Lens {
    /// `--hide FUNCTION`
    pub hide: Vec<String>,
    /// `--focus FUNCTION`
    pub focus: Option<String>,
    /// `--no-inline`
    pub no_inline: bool,
    /// `--percent-limit PERCENT`
    pub percent_limit: Option<String>,
}

/// Heaps, and how they are shown.
#[derive(Clone, Debug, Default)]
pub struct Heaps {
    /// `--sample BYTES`
    pub sample: Option<String>,
    /// `--of WHAT`
    pub of: Option<String>,
    /// `--top N`
    pub top: Option<u32>,
    /// `--min-age TIME`
    pub min_age: Option<String>,
    /// This process is the collector that `heap start` starts.
    pub collector: bool,
}

/// A recorded trace, and the part of it that is read.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Its directory.
    pub dir: Option<PathBuf>,
    /// Further traces, which are shown with it as one.
    pub more: Vec<PathBuf>,
    /// `--clock-offset TRACE=SPAN`
    pub clock_offset: Vec<String>,
    /// `-p`: lists of processes and threads.
    pub pid: Vec<String>,
    /// `--from TIME`
    pub from: Option<String>,
    /// `--to TIME`
    pub to: Option<String>,
    /// `--mappings`
    pub mappings: bool,
    /// Which texts are not to be shown.
    pub redact: Vec<String>,
    /// `--follow`
    pub follow: bool,
}

/// What `trapline tracer` is asked to do in a process.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    /// `list`, `enable`, `disable`, `status`, `print`
    pub what: String,
    /// The process.
    pub pid: i32,
    /// The tracer.
    pub name: Option<String>,
    /// The functions, the trace, and how it is printed.
    pub ask: Ask,
    /// `--section NAME`
    pub section: Vec<String>,
    /// `--thread NAME`
    pub thread: Vec<String>,
    /// `--stop`
    pub stop: bool,
    /// `--loop FUNCTION`
    pub caller: Option<String>,
    /// `--budget US`
    pub budget: Option<u64>,
    /// This process is the one that records in the background.
    pub here: bool,
}

/// What `trapline heap` is asked about a process whose heap a collector records.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// `start`, `stop`, `print`, `reset`, `clear`
    pub what: String,
    /// The process.
    pub pid: i32,
    /// The views, and what they show.
    pub ask: Ask,
}

/// A script, and how it runs.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    /// `-e`: its text.
    pub text: Option<String>,
    /// Its file (`--script`); `-` is stdin.
    pub file: Option<OsString>,
    /// What follows it: `$1`, and `--name=value`.
    pub args: Vec<String>,
    /// `-c`: a command, in one word.
    pub command: Option<String>,
    /// `-f`: text or json.
    pub format: Option<String>,
    /// `--config NAME=VALUE`
    pub config: Vec<String>,
    /// `--raw-strings`
    pub raw_strings: bool,
    /// `--unsafe`: it may run commands.
    pub may_run: bool,
    /// Operations that fail are said; from 2 on, reads too.
    pub failures: u8,
    /// `--dry-run`
    pub dry_run: bool,
    /// `--watch`: it runs anew each time its file is saved.
    pub watch: bool,
    /// `--for FILE`: what it reads is recorded.
    pub reader: Option<OsString>,
    /// `--no-script`: that of a trace does not run.
    pub none: bool,
}

/// How threads are looked at and shown (`trapline stacks`).
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// `--each`
    pub each: bool,
    /// `--no-stop`
    pub no_stop: bool,
}

/// What `trapline slab` is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Slab {
    /// `list`, `start`, `stop`, `print`, `reset`, `clear`
    pub what: String,
    /// The slab cache.
    pub name: String,
    /// Names that are listed.
    pub pattern: Option<String>,
    /// `--max N`
    pub max: Option<u32>,
    /// `--by stack`
    pub by_stack: bool,
    /// `-p PID`
    pub pid: Vec<u32>,
    /// `--top N`
    pub top: Option<u64>,
    /// `--min-age TIME`
    pub min_age: Option<String>,
    /// `--as json`
    pub json: bool,
}

/// What `trapline session` is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// `list`, `start`, `stop`, `status`, `set`, `snapshot`, `print`, `reset`, `end`
    pub what: String,
    /// The session.
    pub name: String,
    /// `-e [+-]PROBE`
    pub expr: Vec<String>,
    /// `-p [-]PID`, or several with commas between them.
    pub attach: Vec<String>,
    /// `--json`
    pub json: bool,
}
