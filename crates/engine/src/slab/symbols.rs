//! Names for the addresses of a snapshot: functions of the kernel, of programs, and the programs' paths.
//!
//! A process may have ended since, and another one may have its number: a process is looked into only if it is older than the
//! object, and has executed no other program meanwhile.

use super::snapshot::Object;
use crate::resolver::{Origin, Places, Resolver};
use events::names::{Frame, Stack};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

/// Frames of a stack that are shown.
const SHOWN: usize = 20;
/// Functions that are innermost in the stack of a program at a tracepoint, and not the place itself.
const OF_PROGRAMS: [&str; 5] = ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "__probestub_"];
/// Ticks of `/proc/PID/stat` in a second (`USER_HZ`).
const TICKS: u64 = 100;

/// Finds names, and remembers them.
pub struct Symbols {
    resolver: Resolver,
    kernel: HashMap<(u64, bool), String>,
    processes: HashMap<u32, Option<Process>>,
    user: HashMap<(u32, u64), String>,
}

/// A process that is running now.
struct Process {
    /// When it has begun, ns of CLOCK_BOOTTIME.
    start: u64,
    inode: u64,
    path: String,
}

impl Default for Symbols {
    fn default() -> Symbols {
        let resolver = Resolver::new(Origin::Live, Places::default()).without_lines();
        Symbols { resolver, kernel: HashMap::new(), processes: HashMap::new(), user: HashMap::new() }
    }
}

impl Symbols {
    /// The kernel's functions of a stack, innermost first, at most 20, as `NAME+0xOFFSET`.
    pub fn stack(&mut self, frames: &[u64]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (nth, frame) in frames.iter().enumerate() {
            let name = self.kernel_function(*frame, nth == 0);
            if !(all.is_empty() && OF_PROGRAMS.iter().any(|p| name.starts_with(p))) {
                all.push(name);
            }
        }
        all.truncate(SHOWN);
        all
    }

    fn kernel_function(&mut self, address: u64, innermost: bool) -> String {
        if let Some(name) = self.kernel.get(&(address, innermost)) {
            return name.clone();
        }
        // A return address is looked for one byte before, where the call is: the resolver does so behind the first frame.
        let frames = if innermost { vec![address] } else { vec![0, address] };
        let stack = Stack { kernel: true, ended: 0, guessed: 0, frames: &frames };
        let mut name = String::new();
        self.resolver.frames(0, 0, &stack, &mut |f| {
            if f.address == Some(address) && !f.inlined {
                name = shown(f);
            }
        });
        self.kernel.insert((address, innermost), name.clone());
        name
    }

    /// The path of the program of the process that has allocated an object; none where it has ended, or runs another program.
    pub fn program(&mut self, object: &Object) -> Option<String> {
        self.process(object).map(|p| p.path.clone())
    }

    /// The place in user space, as `NAME+0xOFFSET (FILE)`; none where nothing is known of it.
    pub fn user_place(&mut self, object: &Object) -> Option<String> {
        if object.user_pc == 0 || self.process(object).is_none() {
            return None;
        }
        let key = (object.pid, object.user_pc);
        if !self.user.contains_key(&key) {
            let frames = [object.user_pc];
            let stack = Stack { kernel: false, ended: 0, guessed: 0, frames: &frames };
            let mut name = String::new();
            self.resolver.frames(object.pid, sys::time::monotonic(), &stack, &mut |f| name = shown(f));
            self.user.insert(key, name);
        }
        self.user.get(&key).filter(|n| !n.is_empty()).cloned()
    }

    fn process(&mut self, object: &Object) -> Option<&Process> {
        let process = self.processes.entry(object.pid).or_insert_with(|| look_at(object.pid)).as_ref()?;
        let is_older = process.start <= object.time.saturating_add(suspended()).saturating_add(1_000_000_000 / TICKS);
        (is_older && process.inode == object.inode).then_some(process)
    }
}

/// How much CLOCK_BOOTTIME, by which processes begin, is ahead of CLOCK_MONOTONIC, ns.
fn suspended() -> u64 {
    sys::time::boot().saturating_sub(sys::time::monotonic())
}

fn look_at(pid: u32) -> Option<Process> {
    let exe = format!("/proc/{pid}/exe");
    let path = std::fs::read_link(&exe).ok()?.to_string_lossy().into_owned();
    let inode = std::fs::metadata(&exe).ok()?.ino();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have any characters; field 22 is the start, and the state after the name is field 3.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    Some(Process { start: ticks.checked_mul(1_000_000_000 / TICKS)?, inode, path })
}

fn shown(f: &Frame<'_>) -> String {
    let address = || format!("{:#x}", f.address.unwrap_or(0));
    let mut text = match f.function {
        "" => address(),
        name => format!("{name}+{:#x}", f.offset.unwrap_or(0)),
    };
    if !f.module.is_empty() {
        text.push_str(&match f.kernel {
            true => format!(" [{}]", f.module),
            false => format!(" ({})", f.module),
        });
    }
    text
}
