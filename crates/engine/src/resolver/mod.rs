//! From the stacks of events to functions, live and of a trace.
//!
//! ```text
//!  process:map, exec, fork ─► processes: what was mapped where, and when ─┐
//!  (process, time, stack) ───────────────────────────────────────────────┴► frames ─► symbols::Symbolizer ─► functions
//!  files: packs of the trace │ --symbols │ files of this machine that are the mapped ones │ of a running process
//!  kernel: pack of the trace │ /proc/kallsyms, if this is the boot that was recorded
//! ```
//!
//! A file is used only if it is the one that was mapped: its build id says so, or, where it has none, its device, inode and time, on the
//! machine that was recorded. What could not be used is reported by [`Resolver::troubles`].

mod files;
mod jit;
mod kernel;
mod packs;
mod processes;
mod texts;

use crate::error::{Error, Result};
use crate::maps::Maps;
use events::Event;
use events::generated::{P_MAP, P_STACK};
use events::names::{EXACT, Frame, GUESSED, Stack};
use files::{Mapped, SessionFiles};
use jit::Jit;
use kernel::Kernel;
pub use packs::Packed;
use processes::Processes;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use symbols::files::Identity;
use symbols::finder::Debuginfod;
use symbols::symbolizer::StackFrame;
use symbols::{ModuleId, ReadAt, Symbolizer};
pub use texts::{AsShown, Texts};

/// A process whose mappings were looked up is not looked at again for this long, ns.
const LOOK_AGAIN_NS: u64 = 50_000_000;
/// Processes that are remembered for this.
const MOST_LOOKED_AT: usize = 4096;

/// Where else names are looked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Directories with programs and debug information (`--symbols`), which come first.
    pub symbols: Vec<PathBuf>,
    /// Servers of debug information (`--debuginfod`), which come last.
    pub debuginfod: Option<Debuginfod>,
}

impl Places {
    /// These, and, where `debuginfod`, the servers in `DEBUGINFOD_URLS`.
    ///
    /// # Errors
    /// No server is named, or the program that asks them is missing.
    pub fn of(symbols: Vec<PathBuf>, debuginfod: bool) -> Result<Places> {
        if !debuginfod {
            return Ok(Places { symbols, debuginfod: None });
        }
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let limit = variable("DEBUGINFOD_MAXTIME").trim().parse().ok().filter(|n| *n > 0).map(Duration::from_secs);
        match Debuginfod::new(&variable("DEBUGINFOD_URLS"), &variable("PATH")) {
            Ok(servers) => {
                let servers = limit.into_iter().fold(servers, Debuginfod::max_time);
                Ok(Places { symbols, debuginfod: Some(servers) })
            }
            Err(e) => Err(Error::failed("--debuginfod", e.to_string(), "or leave it out")),
        }
    }
}

/// Where the events come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// This machine, now.
    Live,
    /// A trace.
    Trace {
        /// Its directory, which may have packs.
        dir: PathBuf,
        /// It was recorded on a machine with this machine's name.
        same_host: bool,
        /// It was recorded since this machine was started.
        same_boot: bool,
        /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
        realtime_offset: i64,
    },
}

impl Origin {
    /// A trace by its metadata.
    pub fn of_trace(dir: &Path, metadata: &ctf::model::Metadata) -> Origin {
        let is =
            |name: &str, here: String| metadata.env_str(name).is_some_and(|there| there == here && !here.is_empty());
        let clock = metadata.clock(ctf::classes::CLOCK);
        Origin::Trace {
            dir: dir.into(),
            same_host: is("hostname", sys::proc::host_name()),
            same_boot: is("boot_id", sys::proc::boot_id()),
            realtime_offset: clock.map_or(0, |c| c.offset_s.saturating_mul(1_000_000_000).saturating_add(c.offset)),
        }
    }

    /// Of events with times since the epoch.
    pub fn on_wall_clock(self) -> Origin {
        match self {
            Origin::Trace { dir, same_host, same_boot, .. } => {
                Origin::Trace { dir, same_host, same_boot, realtime_offset: 0 }
            }
            Origin::Live => Origin::Live,
        }
    }
}

/// Turns stacks into functions. It belongs to one thread.
pub struct Resolver {
    origin: Origin,
    symbolizer: Symbolizer,
    processes: Processes,
    mapped: Rc<Mapped>,
    /// Paths as they are shown.
    paths: HashMap<ModuleId, Rc<str>>,
    jit: Jit,
    kernel: Kernel,
    debuginfod: Option<Debuginfod>,
    vdso: Option<Rc<dyn ReadAt>>,
    /// Files whose paths are not known: whether the trace has a pack of each.
    hidden: HashMap<Identity, bool>,
    /// When the mappings of a process were looked up last, ns of the monotonic clock.
    looked_at: HashMap<u32, u64>,
    /// What was asked for, where it is to be packed.
    asked: Option<Asked>,
}

/// Addresses that were asked for.
#[derive(Default)]
struct Asked {
    modules: HashMap<ModuleId, BTreeSet<u64>>,
    kernel: BTreeSet<u64>,
}

impl Resolver {
    /// Of events from there.
    pub fn new(origin: Origin, places: Places) -> Resolver {
        Resolver::with(origin, places, true)
    }

    /// To pack a trace again: without the packs that it has, and with a memory of the addresses that are asked for
    /// ([`Resolver::packed`]).
    pub fn to_pack(origin: Origin, places: Places) -> Resolver {
        Resolver { asked: Some(Asked::default()), jit: Jit::to_pack(), ..Resolver::with(origin, places, false) }
    }

    /// Does not look for source files and lines, which takes a large part of the time.
    pub fn without_lines(self) -> Resolver {
        Resolver { symbolizer: self.symbolizer.without_lines(), ..self }
    }

    fn with(origin: Origin, places: Places, packs: bool) -> Resolver {
        let mapped = Rc::new(Mapped::new(&origin));
        let trace = match &origin {
            Origin::Trace { dir, .. } if packs => Some(dir.clone()),
            _ => None,
        };
        let debuginfod = places.debuginfod.clone();
        let symbolizer = Symbolizer::new(SessionFiles::new(trace.clone(), places, Rc::clone(&mapped)));
        Resolver {
            debuginfod,
            kernel: Kernel::new(&origin, trace),
            origin,
            symbolizer,
            processes: Processes::default(),
            mapped,
            paths: HashMap::new(),
            jit: Jit::default(),
            vdso: None,
            hidden: HashMap::new(),
            looked_at: HashMap::new(),
            asked: None,
        }
    }

    /// Learns what `ev` makes known of processes and what they have mapped.
    pub fn note(&mut self, ev: &Event<'_>) {
        if ev.is_syscall() || ev.schema.class != events::Class::Process {
            return;
        }
        if ev.schema.id == P_MAP.id {
            self.jit.mapped(&self.origin, ev.pid(), ev.bytes_of("path"));
            let module = self.module_of(ev);
            let (addr, len, offset) = (ev.value_of("addr"), ev.value_of("len"), ev.value_of("pgoff"));
            return self.processes.map(ev.pid(), ev.time(), (addr, len, offset), module);
        }
        if ev.schema.id == P_STACK.id {
            if ev.value_of("kind") != 0 {
                self.kernel.begin();
            }
            return;
        }
        match ev.schema.name {
            "exec" => {
                self.jit.forget(ev.pid());
                self.jit.belongs_to(ev.pid(), ev.value_of("uid") as u32);
                self.processes.exec(ev.pid(), ev.time());
            }
            "attach" => self.jit.belongs_to(ev.pid(), ev.value_of("uid") as u32),
            "fork" => {
                let child = ev.value_of("child") as u32;
                self.jit.fork(ev.pid(), child);
                self.processes.fork(ev.pid(), child, ev.time());
            }
            "exit" if ev.pid() == ev.tid() => self.processes.exit(ev.pid()),
            _ => {}
        }
    }

    fn module_of(&mut self, ev: &Event<'_>) -> Option<ModuleId> {
        let (path, build_id) = (ev.bytes_of("path"), ev.bytes_of("build_id"));
        let identity = match texts::hidden(ev) {
            Some(hidden) => self.known(hidden)?,
            None => Identity::of_mapping(path, build_id)?,
        };
        self.mapped.note(&identity, ev);
        let vdso = if path == b"[vdso]" { self.own_vdso(build_id) } else { None };
        let id = match vdso {
            Some(bytes) => self.symbolizer.module_of_bytes(&identity, bytes),
            None => self.symbolizer.module(&identity),
        }?;
        self.paths.entry(id).or_insert_with(|| String::from_utf8_lossy(path).into());
        Some(id)
    }

    /// A file whose path is not known, if the trace knows more of it: it may be memory that is no file.
    fn known(&mut self, hidden: Identity) -> Option<Identity> {
        let Origin::Trace { dir, .. } = &self.origin else { return None };
        let is_known = |of: &Identity| !of.build_id.is_empty() || packs::read(dir, of).is_some();
        let known = *self.hidden.entry(hidden.clone()).or_insert_with_key(is_known);
        known.then_some(hidden)
    }

    /// The vDSO of this kernel, where it is, or may be, the one that was mapped.
    fn own_vdso(&mut self, build_id: &[u8]) -> Option<Rc<dyn ReadAt>> {
        let same = matches!(self.origin, Origin::Live | Origin::Trace { same_boot: true, .. });
        if !same && build_id.is_empty() {
            return None;
        }
        if self.vdso.is_none() {
            self.vdso = files::own_vdso();
        }
        self.vdso.clone().filter(|v| build_id.is_empty() || symbols::build_id::of(&**v).as_deref() == Some(build_id))
    }

    /// Hands over the frames of a stack that process `pid` had at `time`, innermost first, with those that the compiler has inlined.
    /// Frames of the same address are the same each time.
    pub fn frames(&mut self, pid: u32, time: u64, stack: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        for (nth, raw) in stack.frames.iter().enumerate() {
            if stack.kernel {
                // The innermost is where the probe is, the others are return addresses.
                self.kernel_frame(*raw, u64::from(nth > 0), each);
            } else {
                self.user_frame(pid, time, *raw, each);
            }
        }
    }

    fn kernel_frame(&mut self, address: u64, behind: u64, each: &mut dyn FnMut(&Frame<'_>)) {
        let lookup = address.wrapping_sub(behind);
        self.kernel.prepare(&mut self.symbolizer);
        if let Some(asked) = &mut self.asked {
            asked.kernel.insert(lookup);
        }
        for f in self.symbolizer.kernel_frames(lookup) {
            let (function, module) = match f.function.split_once(" [") {
                Some((name, module)) => (name, module.trim_end_matches(']')),
                None => (&*f.function, ""),
            };
            let function = if f.known { function } else { "" };
            let offset = f.known.then_some(f.offset + behind);
            each(&Frame { function, module, offset, address: Some(address), kernel: true, ..Frame::default() });
        }
    }

    fn user_frame(&mut self, pid: u32, time: u64, raw: u64, each: &mut dyn FnMut(&Frame<'_>)) {
        let (address, guessed) = (raw & !(GUESSED | EXACT), raw & GUESSED != 0);
        let behind = u64::from(raw & EXACT == 0);
        let lookup = address.wrapping_sub(behind);
        let unknown = Frame { address: Some(address), guessed, ..Frame::default() };
        let mut located = self.processes.locate(pid, lookup, time);
        if located.is_none() && self.look_at(pid) {
            located = self.processes.locate(pid, lookup, time);
        }
        let Some((id, offset)) = located.and_then(|l| Some((l.module?, l.offset))) else {
            return match self.jit.find(&self.origin, pid, lookup, time) {
                Some((name, start, module)) => {
                    let offset = Some(address - start);
                    each(&Frame { function: name, module, offset, guessed, ..Frame::default() });
                }
                None => {
                    // Calls that the process records itself are made by code of trapline, which has no file and no frame.
                    let is_own = address >> 32 == sys::intercept::CODE >> 32;
                    each(&Frame { module: if is_own { "[trapline]" } else { "" }, ..unknown })
                }
            };
        };
        let module = self.paths.get(&id).cloned().unwrap_or_default();
        let place = Frame { module: &module, address: Some(offset.wrapping_add(behind)), guessed, ..Frame::default() };
        let Some(own) = self.symbolizer.address_of(id, offset) else { return each(&place) };
        if let Some(asked) = &mut self.asked {
            asked.modules.entry(id).or_default().insert(own);
        }
        for f in self.symbolizer.frames(id, own) {
            each(&of_symbols(f, behind, place));
        }
    }

    /// Reads what a process that still runs has mapped now: a mapping may be reported later than the events that need it.
    fn look_at(&mut self, pid: u32) -> bool {
        let now = sys::time::monotonic();
        let again = self.looked_at.get(&pid).is_none_or(|then| now.saturating_sub(*then) > LOOK_AGAIN_NS);
        if !matches!(self.origin, Origin::Live) || !again {
            return false;
        }
        if self.looked_at.len() >= MOST_LOOKED_AT {
            self.looked_at.clear();
        }
        self.looked_at.insert(pid, now);
        let mut maps = Maps::new();
        if maps.snapshot(pid as i32).is_err() {
            return false;
        }
        let mut found = Vec::new();
        maps.drain(|bytes| found.push(bytes.to_vec()));
        for bytes in &found {
            if let Ok(ev) = Event::parse(bytes) {
                self.note(&ev);
            }
        }
        !found.is_empty()
    }

    /// What could not be resolved, and why: a line for each file.
    pub fn troubles(&self) -> Vec<String> {
        let mut all: Vec<String> = self.kernel.trouble().into_iter().collect();
        for (id, module) in self.symbolizer.modules() {
            let Some(problem) = module.status().problem else { continue };
            let path = self.paths.get(&id).cloned().unwrap_or_default();
            all.push(format!("{path}: {}", self.mapped.why(module.identity(), problem)));
        }
        all.extend(self.jit.troubles());
        if let Some(why) = self.debuginfod.as_ref().and_then(Debuginfod::trouble) {
            all.push(format!("--debuginfod: {why} (the servers are not asked any more)"));
        }
        all
    }
}

/// A function of a frame at `place`, whose address is `behind` bytes behind the one that was asked for.
fn of_symbols<'a>(f: &'a StackFrame, behind: u64, place: Frame<'a>) -> Frame<'a> {
    if !f.known {
        return Frame { file: f.file.as_deref().unwrap_or_default(), line: f.line, inlined: f.inlined, ..place };
    }
    Frame {
        function: &f.function,
        file: f.file.as_deref().unwrap_or_default(),
        line: f.line,
        offset: (!f.inlined).then_some(f.offset + behind),
        inlined: f.inlined,
        ..place
    }
}
