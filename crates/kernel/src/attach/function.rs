//! At functions of the kernel: through a trampoline (fentry, fexit), or by a breakpoint (kprobe, kretprobe).

use super::{Attached, Way, registers};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use engine::provider::attach_point::FunctionPoint;
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::attach as perf;

/// The ways to attach at a function.
pub fn ways(function: &FunctionPoint) -> Vec<Box<dyn Way + '_>> {
    match function.by_breakpoint {
        true => vec![Box::new(Kprobe(function))],
        false => vec![Box::new(Trampoline(function)), Box::new(Kprobe(function))],
    }
}

/// How a program is attached at a function, in words.
pub fn how(function: &FunctionPoint) -> &'static str {
    match (function.by_breakpoint, function.at_return) {
        (true, _) => "a breakpoint (perf kprobe)",
        (false, false) => "fentry, else a breakpoint (kprobe)",
        (false, true) => "fexit, else a breakpoint (kretprobe)",
    }
}

/// fentry and fexit.
struct Trampoline<'p>(&'p FunctionPoint);

impl Way for Trampoline<'_> {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        ProgramSpec::function(name, insns, self.0.id, self.0.at_return)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        Ok(vec![Link::tracing(program)?].into())
    }

    /// The context is the arguments, 8 bytes each, and at the return the result.
    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        let nth = match at {
            ArgLocation::Argument(i) => *i,
            ArgLocation::Result => self.0.arguments,
            _ => return None,
        };
        Some(Value::Context { off: 8 * i16::from(nth), size, signed })
    }

    /// The program and its trampoline.
    fn own_frames(&self) -> u8 {
        2
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        refusal(e, "fentry and fexit")
    }
}

/// kprobe and kretprobe.
struct Kprobe<'p>(&'p FunctionPoint);

impl Way for Kprobe<'_> {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        ProgramSpec::new(ProgramKind::Kprobe, name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        Ok(vec![Link::perf(program, perf::kprobe(&self.0.name, 0, self.0.at_return)?, 0)?].into())
    }

    /// The registers of arguments have other contents at the return.
    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        match at {
            ArgLocation::Argument(_) if self.0.at_return => None,
            at => registers::value(at, size, signed),
        }
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        refusal(e, "kprobes")
    }
}

fn refusal(e: &io::Error, what: &str) -> Option<(String, String)> {
    let why = match e.kind() {
        io::ErrorKind::PermissionDenied => "refuses",
        io::ErrorKind::NotFound => "is built without",
        _ => return None,
    };
    Some((format!("this kernel {why} {what}"), "use a tracepoint".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_each_way_where_it_has_them() {
        let of = |at_return| FunctionPoint { name: "f".into(), id: 1, arguments: 3, at_return, by_breakpoint: false };
        let offsets = |f: &FunctionPoint, at: ArgLocation| -> Vec<Option<i16>> {
            let off = |way: &dyn Way| match way.value(&at, 8, false)? {
                Value::Context { off, .. } => Some(off),
                other => panic!("{other:?}"),
            };
            ways(f).iter().map(|way| off(way.as_ref())).collect()
        };
        assert_eq!(offsets(&of(false), ArgLocation::Argument(1)), [Some(8), Some(104)]);
        assert_eq!(offsets(&of(true), ArgLocation::Argument(1)), [Some(8), None]);
        assert_eq!(offsets(&of(true), ArgLocation::Result), [Some(24), Some(80)]);
    }
}
