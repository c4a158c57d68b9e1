//! Where the clauses of a script run: their probes become requests, and the classes of events lead back to clauses.
//!
//! ```text
//! Point ─► pattern of the catalogue ─► probes ─► one request for each, with what all its clauses capture
//!                                        └─────► clauses, by the probe's name
//! ```

use super::catalogue::{APART, As, Catalogue, Kind, Known, in_files, process};
use engine::capture::captures;
use engine::provider::location::{CODE_SEGMENT, REGISTERS, Register};
use engine::provider::{Probe, quoting};
use engine::request::functions::Values;
use engine::request::parse::is_probe;
use engine::request::select::Calls;
use engine::rights;
use engine::{Error, Result};
use events::names::FunctionName;
use events::registry;
use events::schema::Schema;
use kernel::objects::Objects;
use lang::pattern::glob;
use lang::script::Program;
use lang::script::attach::Point;
use lang::script::ir::{Leaf, What};
use lang::script::types::Type;
use std::collections::{BTreeMap, HashMap};

/// This many bytes of a string that an argument of a function leads to are captured.
const MOST_TEXT: u16 = 128;

/// A clause, and how it sees the event.
pub type Run = (As, usize);

/// Where each clause runs.
#[derive(Clone, Default)]
pub struct Places {
    /// By the names of probes.
    pub probes: HashMap<String, Vec<Run>>,
    /// By patterns of names of functions.
    pub functions: Vec<(String, Run)>,
    /// Clocks: their periods in ns, and their clauses.
    pub intervals: Vec<(u64, usize)>,
    /// Clauses that run for each object of a kind.
    pub objects: Vec<(&'static Objects, usize)>,
    /// Before the first event.
    pub begin: Vec<usize>,
    /// After the last event.
    pub end: Vec<usize>,
    /// When trapline gets SIGUSR1.
    pub signals: Vec<usize>,
    /// Other names of arguments, by probe.
    pub aliases: HashMap<String, Vec<(String, String)>>,
    /// What is captured of calls of functions.
    pub values: Option<Values>,
    /// A clause reads arguments of functions at their return.
    pub keeps_arguments: bool,
    /// The requests of `-e`.
    pub requests: Vec<String>,
    /// How many probes there are.
    pub attached: usize,
    /// Probes that are asked for by a pattern with others: the pattern.
    together: HashMap<String, String>,
}

/// Whether a pattern is one of a function's names.
pub fn fits(pattern: &str, function: &FunctionName<'_>) -> bool {
    let one = |name: &str| glob(pattern.as_bytes(), name.as_bytes());
    one(function.name) || one(function.symbol) || function.aliases.iter().any(|name| one(name))
}

/// How many frames of a stack a clause reads.
pub fn frames_of(leaf: &Leaf) -> u32 {
    match (&leaf.what, &leaf.ty) {
        (What::Kind(_, n), _) => n.parse().unwrap_or(u32::MAX),
        (_, Type::Stack(.., most)) => *most,
        _ => u32::MAX,
    }
}

/// What the clauses of a probe capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Captured {
    kstack: u32,
    ustack: u32,
    comm: bool,
    /// `cpu`, `uid`, `gid`, in that order.
    of_task: [bool; 3],
    strings: Vec<String>,
    arguments: bool,
    result: bool,
}

impl Captured {
    fn add(&mut self, leaf: &Leaf) {
        let frames = || frames_of(leaf).max(1);
        self.arguments |= matches!(leaf.what, What::Arg(_) | What::Number(_) | What::TextOf(_) | What::TextOfNumber(_));
        self.result |= leaf.what == What::Value("retval");
        match &leaf.what {
            What::Value("kstack") | What::Kind("kstack", _) => {
                self.kstack = self.kstack.max(frames()).min(captures::KERNEL.into());
            }
            What::Value("ustack") | What::Kind("ustack", _) => {
                self.ustack = self.ustack.max(frames()).min(captures::USER.into());
            }
            What::Value("comm") => self.comm = true,
            What::Value("cpu") => self.of_task[0] = true,
            What::Value("uid" | "username") => self.of_task[1] = true,
            What::Value("gid") => self.of_task[2] = true,
            What::TextOf(name) => self.string(name.clone()),
            What::TextOfNumber(n) => self.string(format!("arg{n}")),
            _ => {}
        }
    }

    fn join(&mut self, other: &Captured) {
        (self.kstack, self.ustack) = (self.kstack.max(other.kstack), self.ustack.max(other.ustack));
        self.comm |= other.comm;
        (0..3).for_each(|i| self.of_task[i] |= other.of_task[i]);
        other.strings.iter().for_each(|s| self.string(s.clone()));
    }

    fn string(&mut self, name: String) {
        if !self.strings.contains(&name) {
            self.strings.push(name);
        }
    }

    /// As `-e` has them behind the name.
    fn text(&self, probe: &str, with_strings: bool, of_calls: bool) -> String {
        let mut out = String::new();
        for (name, n) in [("kstack", self.kstack), ("ustack", self.ustack)] {
            match n {
                0 => {}
                // Stacks of allocations are whole.
                _ if name == "ustack" && probe.starts_with("heap:") => out += " ustack",
                n => out += &format!(" {name}={n}"),
            }
        }
        // Elsewhere names of threads are known from what happens to them.
        let of_agent = probe.starts_with("function:") || probe.starts_with("heap:");
        out += if self.comm && !of_agent && !of_calls { " comm" } else { "" };
        let is_call = probe == "all" || probe.starts_with("syscall:") && probe.matches(':').count() == 1;
        for (name, wanted) in ["cpu", "uid", "gid"].into_iter().zip(self.of_task) {
            if wanted && !of_agent && !is_call {
                out += &format!(" {name}");
            }
        }
        if with_strings {
            self.strings.iter().for_each(|s| out += &format!(" str({s})"));
        }
        out
    }
}

/// What is captured at each probe, by its name in requests, and whether its strings are named there.
type Wanted = BTreeMap<String, (Captured, bool)>;

/// Requests a probe, or all probes of a pattern, with the values that a clause captures there.
fn ask(wanted: &mut Wanted, name: &str, captured: &Captured, with_strings: bool) {
    let (all, strings) = wanted.entry(name.into()).or_default();
    all.join(captured);
    *strings = with_strings;
}

/// Finds the probes of all clauses. `missing` learns of those that do not exist, and whether others of the clause do.
pub fn places(program: &Program, catalogue: &Catalogue, mut missing: impl FnMut(&Point, &Error, bool)) -> Places {
    let mut places = Places::default();
    let mut wanted = Wanted::new();
    for (nth, clause) in program.clauses.iter().enumerate() {
        let mut captured = Captured::default();
        clause.leaves.iter().for_each(|leaf| captured.add(leaf));
        let mut absent = Vec::new();
        for point in &clause.points {
            if let Err(e) = places.add(catalogue, point, nth, &captured, &mut wanted) {
                absent.push((point, e));
            }
        }
        let others = absent.len() < clause.points.len();
        absent.iter().for_each(|(point, e)| missing(point, e, others));
    }
    // Of one call the entry comes first, whatever the order of the clauses.
    places.probes.values_mut().for_each(|runs| runs.sort_by_key(|r| r.0 != As::Entry));
    if let Some((captured, _)) = wanted.remove("all") {
        wanted.retain(|name, _| !name.starts_with("syscall:") || name.matches(':').count() > 1);
        places.requests.push(format!("all{}", captured.text("all", false, catalogue.of_calls)));
    }
    let text = |(name, (captured, strings)): (&String, &(Captured, bool))| {
        name.clone() + &captured.text(name, *strings, catalogue.of_calls)
    };
    places.requests.extend(wanted.iter().map(text));
    let is_call = |r: &String| !is_probe(r.split(' ').next().unwrap_or_default());
    if !places.requests.iter().any(is_call) && places.probes.keys().any(|name| name.starts_with("process:")) {
        places.requests.push("none".into());
    }
    places
}

impl Places {
    /// The clause `nth` runs at a probe.
    fn add(
        &mut self,
        catalogue: &Catalogue,
        point: &Point,
        nth: usize,
        captured: &Captured,
        wanted: &mut Wanted,
    ) -> Result<()> {
        let mut want = |name: &str, with_strings: bool| ask(wanted, name, captured, with_strings);
        match catalogue.kind(point) {
            Kind::Own => match (point.provider.name, point.period) {
                ("iter", _) => self.objects.push((catalogue.objects(point)?, nth)),
                ("begin" | "test" | "bench", _) => self.begin.push(nth),
                ("end", _) => self.end.push(nth),
                ("self", _) => self.signals.push(nth),
                (_, period) => self.intervals.push((period.unwrap_or(1_000_000_000), nth)),
            },
            Kind::Calls(pattern, role) => {
                let fits = |s: &&'static Schema| s.name != "raw" && glob(pattern.as_bytes(), s.name.as_bytes());
                let found: Vec<&Schema> = registry::syscalls().filter(fits).collect();
                if found.is_empty() {
                    // Its message has the nearest names.
                    return Calls::parse(&pattern).map(drop);
                }
                self.attached += found.len();
                for schema in found {
                    self.runs(schema.probe().into_owned(), (role, nth));
                    if pattern != "*" {
                        want(&schema.probe(), false);
                    }
                }
                if pattern == "*" {
                    self.runs("syscall:raw".into(), (role, nth));
                    want("all", false);
                }
            }
            Kind::Process(name) => {
                if process(&name).is_none() {
                    let todo = "process:fork, process:exec, process:exit, process:signal or process:stop";
                    return Err(Error::usage(point.name(), "no such event of processes", todo));
                }
                self.attached += 1;
                self.runs(format!("process:{name}"), (As::Whole, nth));
            }
            Kind::Functions(pattern, at_return) => {
                if captured.arguments || captured.result {
                    self.read_values(catalogue, &pattern, captured, at_return)?;
                }
                self.attached += 1;
                let role = if at_return { As::Exit } else { As::Entry };
                want(&format!("function:{}", quoting::quote(&pattern)), false);
                self.functions.push((pattern, (role, nth)));
            }
            Kind::Heap(name) => {
                if engine::heap::classes::Probe::named(&name).is_none() {
                    return Err(Error::usage(
                        name,
                        "no such probe",
                        "heap:malloc, heap:free, heap:mmap or heap:munmap",
                    ));
                }
                self.attached += 1;
                want(&name, false);
                self.runs(name, (As::Whole, nth));
            }
            Kind::Probes(pattern) => {
                let found = catalogue.find(&pattern)?;
                // A static probe is one at each of its places.
                let places = |p: &Probe| if p.name.starts_with("usdt:") { p.sites.len().max(1) } else { 1 };
                self.attached += found.iter().map(places).sum::<usize>();
                let many = found.len() > APART && in_files(&pattern).is_none();
                // Where another pattern asks for some of them, the others are asked for by their names.
                if many && !found.iter().any(|p| self.together.contains_key(&p.name)) {
                    for probe in found.iter() {
                        self.together.insert(probe.name.clone(), pattern.clone());
                        // A clause before this one may have asked for it alone.
                        if let Some((earlier, strings)) = wanted.remove(&probe.name) {
                            ask(wanted, &pattern, &earlier, strings);
                        }
                    }
                }
                for probe in found.iter() {
                    ask(wanted, self.together.get(&probe.name).unwrap_or(&probe.name), captured, true);
                    if !probe.aliases.is_empty() {
                        self.aliases.insert(probe.name.clone(), probe.aliases.clone());
                    }
                    self.runs(probe.name.clone(), (As::Whole, nth));
                }
            }
        }
        Ok(())
    }

    /// A clause reads values of calls of functions, by a pattern of their names.
    fn read_values(
        &mut self,
        catalogue: &Catalogue,
        pattern: &str,
        captured: &Captured,
        at_return: bool,
    ) -> Result<()> {
        let refuse = |why: &str, todo| Err(Error::usage(format!("function:{pattern}"), why, todo));
        if catalogue.lacks_values() {
            return refuse("the trace has no values of calls", "record them: trapline record --args, or --for SCRIPT");
        }
        // To look at all functions takes long.
        if !pattern.contains(['*', '?']) && matches!(catalogue.of_functions(pattern, false), Known::Never) {
            return refuse("no debug information says what it takes and returns", "compile the program with -g");
        }
        self.keeps_arguments |= at_return && captured.arguments;
        let texts = if captured.strings.is_empty() { 0 } else { MOST_TEXT };
        let strings = self.values.map_or(0, |v| v.strings).max(texts);
        self.values = Some(Values { strings, numbers: true });
        Ok(())
    }

    /// A clause runs at a probe: once, however many of its patterns match.
    fn runs(&mut self, probe: String, run: Run) {
        let all = self.probes.entry(probe).or_default();
        if !all.contains(&run) {
            all.push(run);
        }
    }

    /// Other names of a probe's arguments.
    pub fn aliases_of(&self, probe: &str) -> &[(String, String)] {
        self.aliases.get(probe).map_or(&[], Vec::as_slice)
    }

    /// How many probes there are, with those that are the script's own.
    pub fn count(&self) -> usize {
        let own = self.begin.len() + self.end.len() + self.intervals.len() + self.signals.len() + self.objects.len();
        self.attached + own
    }
}

/// Whether a probe is an instruction of a file.
fn is_in_file(point: &Point) -> bool {
    matches!(point.provider.name, "uprobe" | "uretprobe" | "usdt")
}

/// Providers of events of the processor's, or of its clocks.
const OF_EVENTS: [&str; 5] = ["profile", "software", "hardware", "watchpoint", "asyncwatchpoint"];

/// Whether the program of a probe has the registers of the place that was reached.
fn has_registers(point: &Point) -> bool {
    let name = point.provider.name;
    is_in_file(point) || matches!(name, "kprobe" | "kretprobe") || OF_EVENTS.contains(&name)
}

/// Whether `trapline trace` has a line for an event of a probe.
fn has_line(point: &Point) -> bool {
    let is_of_process = point.provider.name == "process";
    !point.is_own() && (!is_of_process || point.parts.first().is_some_and(|name| !matches!(&**name, "fork" | "exec")))
}

/// The register of a name, with or without the letter that the whole one begins with.
pub fn register(name: &str) -> Option<Register> {
    let whole = |name: &str| REGISTERS.contains(&name).then(|| Register::named(name)).flatten();
    let of_code = (name == CODE_SEGMENT.name).then_some(CODE_SEGMENT);
    whole(name).or_else(|| whole(&format!("r{name}"))).or(of_code)
}

/// What of a leaf no event of a clause has, and what to do about it.
pub fn unknown(program: &Program, leaf: &Leaf, clause: &lang::script::ir::Clause) -> Option<(String, &'static str)> {
    let name = match &leaf.what {
        What::Value(name) => (*name).to_string(),
        What::Kind("nsecs", clock) if clock == "monotonic" => return None,
        of if *of == What::thread_of_all() => return None,
        What::Kind(name @ ("kstack" | "ustack"), _) => (*name).into(),
        What::Kind(name, of) => format!("{name}({of})"),
        What::Register(name) if register(name).is_none() => {
            let todo = "they are ax, bx, cx, dx, si, di, bp, sp, ip and r8 to r15";
            return Some((format!("'{name}' is no register"), todo));
        }
        // `usermode` reads it.
        What::Register(name) if name == CODE_SEGMENT.name && rights::is_root() => "usermode".into(),
        What::Register(_) if !rights::is_root() && !clause.points.iter().all(is_in_file) => {
            return Some(("registers of the kernel are for root".into(), "run trapline as root"));
        }
        What::Register(name) => format!("reg(\"{name}\")"),
        What::Address(_, name) => format!("uaddr(\"{name}\")"),
        What::Memory(n) if !rights::is_root() && program.hoisted.get(*n).is_some_and(|h| h.reads_kernel()) => {
            return Some(("memory of the kernel is for root".into(), "run trapline as root"));
        }
        _ => return None,
    };
    let points = || clause.points.iter();
    let has_stacks = || points().all(|p| !p.is_own());
    let is_call = |p: &Point| matches!(p.provider.name, "syscall");
    let is_entry = |p: &Point| p.provider.name == "function" && p.parts.len() == 1;
    let is_known = match name.as_str() {
        "retval" => !points().any(is_entry),
        "pid" | "tid" | "uid" | "gid" | "username" | "comm" | "ncpus" | "nsecs" | "elapsed" | "probe" | "probetype"
        | "func" | "host" | "trace" => true,
        "kstack" | "ustack" => has_stacks(),
        "strace" => points().all(has_line),
        "cpid" => points().all(|p| p.provider.name != "begin"),
        "numaid" | "cgroup" if points().all(Point::is_own) => true,
        "curtask" if points().all(Point::is_own) => rights::is_root(),
        "ctx" if points().all(Point::is_own) => true,
        // Their programs see the kernel's context by other offsets than those at its address.
        "ctx" if points().any(|p| OF_EVENTS.contains(&p.provider.name)) => false,
        _ if matches!(leaf.what, What::Address(..)) => points().all(is_in_file),
        _ if matches!(leaf.what, What::Register(_)) => points().all(has_registers),
        "dur" => points().all(|p| is_call(p) || p.provider.name == "function" && p.parts.len() > 1),
        _ if leaf.what.is_of_programs() => {
            let of_programs = |p: &Point| !is_call(p) && !matches!(p.provider.name, "function" | "heap" | "process");
            (rights::is_root() || !matches!(&*name, "curtask" | "ctx")) && has_stacks() && points().all(of_programs)
        }
        "cpu" => points().all(|p| !matches!(p.provider.name, "function" | "heap" | "process")),
        _ => false,
    };
    let points = || points().map(Point::name).collect::<Vec<_>>().join(", ");
    (!is_known).then(|| (format!("'{name}' is not known at {}", points()), "leave it out, or use another probe"))
}
