//! At functions of the kernel: through a trampoline (fentry, fexit), or by a breakpoint (kprobe, kretprobe).

use super::{Attached, Way, registers};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use engine::provider::attach_point::FunctionPoint;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use sys::bpf::info::types_of_module;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::attach as perf;

/// What the kernel says where no instruction begins: EILSEQ, EINVAL.
const NO_INSTRUCTION: [i32; 2] = [84, 22];

/// The ways to attach at a function.
pub fn ways(function: &FunctionPoint) -> Vec<Box<dyn Way + '_>> {
    let mut ways: Vec<Box<dyn Way + '_>> = Vec::new();
    // A module's id means something else among the kernel's types.
    let types = function.module.as_ref().map(|m| types_of_module(m).ok());
    if !function.by_breakpoint && types.as_ref().is_none_or(Option::is_some) {
        ways.push(Box::new(Trampoline { function, types: types.flatten() }));
    }
    ways.push(Box::new(Kprobe(function)));
    ways
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
struct Trampoline<'p> {
    function: &'p FunctionPoint,
    /// Those of its module.
    types: Option<OwnedFd>,
}

impl Way for Trampoline<'_> {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        let spec = ProgramSpec::function(name, insns, self.function.id, self.function.at_return);
        ProgramSpec { attach_btf: self.types.as_ref().map(AsFd::as_fd), ..spec }
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        Ok(vec![Link::tracing(program)?].into())
    }

    /// The context is the arguments, 8 bytes each, and at the return the result.
    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        let nth = match at {
            ArgLocation::Argument(i) => *i,
            ArgLocation::Result => self.function.arguments,
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
        let FunctionPoint { name, address, offset, at_return, .. } = self.0;
        let event = match address {
            Some(address) => perf::kprobe_at(address + offset, *at_return),
            None => perf::kprobe(name, *offset, *at_return),
        };
        Ok(vec![Link::perf(program, event?, 0)?].into())
    }

    fn is_slow_to_close(&self) -> bool {
        true
    }

    /// The registers of arguments have other contents at the return.
    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        match at {
            ArgLocation::Argument(_) if self.0.at_return => None,
            at => registers::value(at, size, signed),
        }
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        if self.0.offset != 0 && e.raw_os_error().is_some_and(|e| NO_INSTRUCTION.contains(&e)) {
            return Some((
                "no instruction begins at this offset".into(),
                "use an offset that a disassembly shows".into(),
            ));
        }
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
        let of =
            |at_return| FunctionPoint { name: "f".into(), id: 1, arguments: 3, at_return, ..FunctionPoint::default() };
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
